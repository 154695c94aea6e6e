/* SPDX-License-Identifier: Apache-2.0
 * Turns a config.json into a configuration, and tensors into carriers. Invariant: a checkpoint that
 * has been opened is closed on every way out. */
#include "model/pretrained.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "checkpoints/hf_tensors.h"
#include "checkpoints/shipped.h"
#include "checkpoints/tokenizer_files.h"
#include "data/tokenizer.h"
#include "kernels/op.h"

#define BLOCK 4096 /* elements converted at once: 32 KiB of doubles on the stack */

int pretrained_is_named(const struct config *config) {
    return strcmp(config->model.from, CONFIG_NO_CHECKPOINT) != 0;
}

const struct tokenizer_specials pretrained_bytes = {TOKENIZER_BOS, TOKENIZER_EOS, TOKENIZER_PAD};

const char *pretrained_tokenizer(const char *folder) {
    static const char *const names[] = {"tokenizer.json", "tokenizer.model", "vocab.json",
                                        "tokenizer_config.json"};
    for (size_t i = 0; i < COUNT_OF(names) && !shipped_is(folder); i++) {
        char path[CONFIG_PATH_SIZE + 32];
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        if (access(path, F_OK) == 0)
            return tokenizer_files_are_ours(&pretrained_bytes, folder) ? NULL : names[i];
    }
    return NULL;
}

enum status pretrained_refuse_text(const void *context) {
    const struct config *const config = (const struct config *)context;
    const char *const folder = config->model.from;
    if (!pretrained_is_named(config)) return STATUS_OK;
    const char *const found = pretrained_tokenizer(folder);
    const char *const key = config->task == TASK_SFT ? "data.text" : "data.pairs";
    const char *const source = config->task == TASK_SFT ? config->data.text : config->data.pairs;
    if (found == NULL) return STATUS_OK;
    FAIL(STATUS_INPUT,
         "%s: %s is text, which is trained as bytes here, but model.from %s has a tokenizer (%s), "
         "so the model knows other ids; make ids: python3 docs/pretokenise.py %s < %s > ids.jsonl; "
         "then %s: ids.jsonl",
         key, source, folder, found, folder, dataset_is_builtin(source) ? "rows.jsonl" : source,
         key);
}

enum status pretrained_check_text(const struct config *config, const struct dataset *dataset) {
    return dataset->bytes ? pretrained_refuse_text(config) : STATUS_OK;
}

static double or_none(double value) {
    return value == 0.0 ? KEY_WORD_REAL : value;
}

enum model_family pretrained_family(enum hf_family family) {
    static const enum model_family families[HF_FAMILIES] = {[HF_LLAMA] = FAMILY_LLAMA,
                                                            [HF_OLMO2] = FAMILY_OLMO2,
                                                            [HF_QWEN2] = FAMILY_QWEN2,
                                                            [HF_QWEN3] = FAMILY_QWEN3};
    return families[family];
}

/* Copies rotary settings. Those that a type of scaling does not have stay as they were; nothing
 * reads them. */
static void describe_rope(const struct hf_rope *rope, struct config *config) {
    config->model.rope_theta = rope->theta;
    config->model.rope_scaling = ROPE_PLAIN;
    if (rope->type == HF_ROPE_DEFAULT) return;
    config->model.rope_scaling = rope->type == HF_ROPE_YARN ? ROPE_YARN : ROPE_LLAMA3;
    config->model.rope_factor = rope->factor;
    config->model.rope_original_positions = rope->original_positions;
    if (rope->type == HF_ROPE_LLAMA3) {
        config->model.rope_low_freq_factor = rope->low_freq_factor;
        config->model.rope_high_freq_factor = rope->high_freq_factor;
        return;
    }
    config->model.rope_attention_factor = or_none(rope->attention_factor);
    config->model.rope_beta_fast = rope->beta_fast;
    config->model.rope_beta_slow = rope->beta_slow;
    config->model.rope_mscale = or_none(rope->mscale);
    config->model.rope_mscale_all_dim = or_none(rope->mscale_all_dim);
    config->model.rope_truncate = rope->truncate != 0;
}

static void describe_sizes(const struct hf_config *hf, struct config *config) {
    config->model.family = (int32_t)pretrained_family(hf->family);
    config->model.norm_eps = hf->eps;
#define TAKE(ours, theirs) config->model.ours = hf->theirs;
#define TAKE_FLAG(ours, theirs) config->model.ours = hf->theirs != 0;
    PRETRAINED_SIZES(TAKE)
    PRETRAINED_FLAGS(TAKE_FLAG)
}

static enum status describe_tensors(const struct hf_config *hf, const struct checkpoint *checkpoint,
                                    struct arena *arena, struct config *config) {
    struct digest digest;
    char text[DIGEST_HEX];
    TRY(hf_tensors_check(hf, checkpoint, arena));
    TRY(checkpoint_digest(checkpoint, arena, &digest));
    digest_hex(&digest, text);
    memset(config->model.from_digest, 0, sizeof config->model.from_digest);
    memcpy(config->model.from_digest, text, sizeof text);
    return STATUS_OK;
}

static enum status describe_folder(const char *folder, struct arena *arena, struct config *config) {
    struct checkpoint checkpoint;
    struct hf_config hf;
    char *path;
    TRY(checkpoint_open(folder, arena, &checkpoint));
    enum status status = STATUS_OK;
    if (!checkpoint.is_folder)
        status = status_fail(
            STATUS_INPUT, "%s: expected a folder with config.json and weights, got a file", folder);
    if (status == STATUS_OK) status = arena_format(arena, &path, "%s/config.json", folder);
    if (status == STATUS_OK) status = hf_config_read(path, &hf);
    if (status == STATUS_OK) {
        describe_sizes(&hf, config);
        describe_rope(&hf.rope, config);
        status = describe_tensors(&hf, &checkpoint, arena, config);
    }
    checkpoint_close(&checkpoint);
    return status;
}

enum status pretrained_describe(const char *folder, struct config *config) {
    struct arena arena = ARENA_EMPTY;
    const enum status status = describe_folder(folder, &arena, config);
    arena_close(&arena);
    return status;
}

/* Whether the tensor is a buffer of old Llama checkpoints, which transformers and twinstep skip. */
static int is_buffer(const char *name) {
    static const char tail[] = "rotary_emb.inv_freq";
    const size_t length = strlen(name);
    return length >= sizeof tail - 1 && strcmp(name + length - (sizeof tail - 1), tail) == 0;
}

static enum status note_dtypes(const struct checkpoint *checkpoint, enum dtype said,
                               struct arena *arena, char **out) {
    const struct safetensors_tensor *first = NULL;
    size_t tensors = 0, others = 0;
    for (size_t i = 0; i < checkpoint->count; i++) {
        const struct safetensors_tensor *tensor = checkpoint->tensors[i];
        if (is_buffer(tensor->name)) continue;
        tensors++;
        if (tensor->dtype == safetensors_dtype_from(said)) continue;
        if (others++ == 0) first = tensor;
    }
    if (first == NULL) return STATUS_OK;
    return arena_format(arena, out,
                        "model.from: the dtype of config.json is %s, %zu of %zu tensors have "
                        "another, first %s with %s: transformers casts them on loading (dtype "
                        "\"auto\"), twinstep takes them as they are",
                        dtype_name(said), others, tensors, first->name,
                        safetensors_dtype_name(first->dtype));
}

enum status pretrained_dtype_note(const struct config *config, struct arena *arena, char **out) {
    struct checkpoint checkpoint;
    struct hf_config hf;
    char *path;
    *out = NULL;
    if (!pretrained_is_named(config)) return STATUS_OK;
    TRY(arena_format(arena, &path, "%s/config.json", config->model.from));
    TRY(hf_config_read(path, &hf));
    TRY(checkpoint_open(config->model.from, arena, &checkpoint));
    const enum status status = note_dtypes(&checkpoint, hf.dtype, arena, out);
    checkpoint_close(&checkpoint);
    return status;
}

static int same_tensors(const struct config *a, const struct config *b) {
#define IS_SAME(ours, theirs) &&a->model.ours == b->model.ours
    return a->model.family == b->model.family PRETRAINED_SIZES(IS_SAME) PRETRAINED_FLAGS(IS_SAME);
}

enum status pretrained_fits(const struct config *hybrid, const struct config *a,
                            const struct config *b) {
    const struct config *const of = strcmp(hybrid->model.from, a->model.from) == 0 ? a : b;
    if (!pretrained_is_named(hybrid) || same_tensors(hybrid, of)) return STATUS_OK;
    FAIL(STATUS_INPUT, "model.from: the weights of %s are those of another family or size",
         hybrid->model.from);
}

static enum status check_digest(const struct config *config, struct pretrained *pretrained) {
    struct digest digest;
    char text[DIGEST_HEX];
    TRY(checkpoint_digest(&pretrained->checkpoint, &pretrained->arena, &digest));
    digest_hex(&digest, text);
    if (strcmp(text, config->model.from_digest) == 0) return STATUS_OK;
    FAIL(STATUS_INPUT,
         "model.from: expected weights with digest %s in %s, got %s: the files were "
         "changed",
         config->model.from_digest, config->model.from, text);
}

enum status pretrained_open(const struct config *config, struct pretrained *out) {
    out->arena = (struct arena)ARENA_EMPTY;
    enum status status = checkpoint_open(config->model.from, &out->arena, &out->checkpoint);
    if (status == STATUS_OK) {
        status = check_digest(config, out);
        if (status == STATUS_OK) return STATUS_OK;
        checkpoint_close(&out->checkpoint);
    }
    arena_close(&out->arena);
    return status;
}

void pretrained_close(struct pretrained *pretrained) {
    checkpoint_close(&pretrained->checkpoint);
    arena_close(&pretrained->arena);
}

static enum status find(const struct pretrained *pretrained, const struct param_row *row,
                        const struct safetensors_tensor **out, enum dtype *out_dtype) {
    char shape[SAFETENSORS_SHAPE_TEXT], second[32] = "";
    const struct safetensors_tensor *tensor = checkpoint_find(&pretrained->checkpoint, row->name);
    *out = tensor;
    if (tensor == NULL)
        FAIL(STATUS_INPUT, "model.from: %s has no tensor %s", pretrained->checkpoint.path,
             row->name);
    if (tensor->rank == row->rank && tensor->shape[0] == row->shape[0] &&
        (row->rank == 1 || tensor->shape[1] == row->shape[1]) &&
        safetensors_dtype_number(tensor->dtype, out_dtype))
        return STATUS_OK;
    if (row->rank == 2) snprintf(second, sizeof second, ", %" PRIu64, row->shape[1]);
    safetensors_shape_text(tensor, shape);
    FAIL(STATUS_INPUT, "model.from: %s: expected tensor %s of shape [%" PRIu64 "%s], got %s",
         pretrained->checkpoint.path, row->name, row->shape[0], second, shape);
}

enum status pretrained_values(const struct pretrained *pretrained, const struct param_row *row,
                              const struct pretrained_rounding *rounding, enum dtype to,
                              void *out_values) {
    const struct safetensors_tensor *tensor;
    double block[BLOCK];
    enum dtype dtype;
    TRY(find(pretrained, row, &tensor, &dtype));
    for (size_t first = 0; first < row->count; first += BLOCK) {
        const size_t rest = row->count - first, count = rest < BLOCK ? rest : BLOCK;
        TRY(safetensors_numbers(tensor, first, count, block));
        const struct convert_args args = {
            count, dtype, to, block, (unsigned char *)out_values + first * dtype_carrier(to), 0};
        rounding->ops->convert(rounding->call, &args);
    }
    return STATUS_OK;
}

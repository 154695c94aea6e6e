/* SPDX-License-Identifier: Apache-2.0
 * Turns a configuration into config.json, and parameter rows into tensors. checkpoints/ writes the
 * files; this knows what they should say. Invariant: config.json is there only when the weights are
 * whole. */
#include "model/save_model.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoints/checkpoint.h"
#include "checkpoints/hf_config_write.h"
#include "checkpoints/tokenizer_files.h"
#include "data/tokenizer.h"
#include "model/pretrained.h"

static double none_as_0(double value) {
    return value == KEY_WORD_REAL ? 0.0 : value;
}

static void fill_rope(const struct config *config, struct hf_rope *rope) {
    rope->theta = config->model.rope_theta;
    if (config->model.rope_scaling == ROPE_PLAIN) return;
    rope->factor = config->model.rope_factor;
    rope->original_positions = config->model.rope_original_positions;
    rope->type = HF_ROPE_LLAMA3;
    if (config->model.rope_scaling == ROPE_LLAMA3) {
        rope->low_freq_factor = config->model.rope_low_freq_factor;
        rope->high_freq_factor = config->model.rope_high_freq_factor;
        return;
    }
    rope->type = HF_ROPE_YARN;
    rope->attention_factor = config->model.rope_attention_factor;
    rope->beta_fast = config->model.rope_beta_fast;
    rope->beta_slow = config->model.rope_beta_slow;
    rope->mscale = none_as_0(config->model.rope_mscale);
    rope->mscale_all_dim = none_as_0(config->model.rope_mscale_all_dim);
    rope->truncate = config->model.rope_truncate;
}

/* Fills the token ids of a model that did not start from a checkpoint: the byte tokenizer's, where
 * the vocabulary is that tokenizer's. */
static void fill_tokens(const struct config *config, struct hf_config *hf) {
    hf->bos = hf->pad = -1;
    hf->positions = config->data.max_len;
    if (config->model.vocab != TOKENIZER_VOCAB) return;
    hf->bos = TOKENIZER_BOS;
    hf->pad = TOKENIZER_PAD;
    hf->ends[0] = TOKENIZER_EOS;
    hf->end_count = 1;
}

static void fill_sizes(const struct config *config, struct hf_config *hf) {
    for (int family = 0; family < HF_FAMILIES; family++)
        if ((int32_t)pretrained_family((enum hf_family)family) == config->model.family)
            hf->family = (enum hf_family)family;
    hf->eps = config->model.norm_eps;
    hf->dtype = (enum dtype)config->numerics.param;
#define GIVE(ours, theirs) hf->theirs = config->model.ours;
    PRETRAINED_SIZES(GIVE)
    PRETRAINED_FLAGS(GIVE)
}

/* Describes the model. Positions and token ids are those of the checkpoint that the run started
 * from, if any; everything else is the configuration's. */
static enum status describe(const struct config *config, struct arena *arena,
                            struct hf_config *out) {
    char *path;
    *out = (struct hf_config){.family = HF_LLAMA};
    if (pretrained_is_named(config)) {
        TRY(arena_format(arena, &path, "%s/config.json", config->model.from));
        TRY(hf_config_read(path, out));
    } else {
        fill_tokens(config, out);
    }
    out->rope = (struct hf_rope){.type = HF_ROPE_DEFAULT};
    fill_sizes(config, out);
    fill_rope(config, &out->rope);
    return STATUS_OK;
}

/* Whether a file is a shard of weights, as transformers and checkpoint_write name it. */
static int is_shard(const char *name) {
    unsigned number, of;
    int end = 0;
    return sscanf(name, "model-%5u-of-%5u.safetensors%n", &number, &of, &end) == 2 && end != 0 &&
           name[end] == '\0';
}

static enum status fail_there(const char *folder, const char *name) {
    FAIL(STATUS_IO, "%s/%s: it is there already; give another folder, or --overwrite", folder,
         name);
}

/* A writer that was cut off before its index leaves shards alone. */
static enum status check_shards(const char *folder) {
    enum status status = STATUS_OK;
    DIR *open = opendir(folder);
    if (open == NULL) return STATUS_OK; /* it is made, or cannot be: check_place */
    for (const struct dirent *entry; status == STATUS_OK && (entry = readdir(open)) != NULL;)
        if (is_shard(entry->d_name)) status = fail_there(folder, entry->d_name);
    closedir(open);
    return status;
}

static enum status check_free(const char *folder, struct arena *arena) {
    static const char *const names[] = {CHECKPOINT_SINGLE, CHECKPOINT_INDEX, "config.json"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        char *path;
        TRY(arena_format(arena, &path, "%s/%s", folder, names[i]));
        if (access(path, F_OK) == 0) return fail_there(folder, names[i]);
    }
    return check_shards(folder);
}

int save_model_is_there(const char *folder) {
    struct arena arena = ARENA_EMPTY;
    const enum status status = check_free(folder, &arena);
    arena_close(&arena);
    return status == STATUS_IO;
}

/* Where the last name of a path begins, and where it ends before its last slashes. */
static size_t name_start(const char *path, size_t *out_end) {
    size_t start = strlen(path);
    while (start > 0 && path[start - 1] == '/')
        start--;
    *out_end = start;
    while (start > 0 && path[start - 1] != '/')
        start--;
    return start;
}

/* Checks that the folder can be written to, or else the one in which it will be made. */
static enum status check_place(const char *folder, struct arena *arena) {
    struct stat info;
    char *parent;
    size_t end;
    const size_t start = name_start(folder, &end);
    TRY(start == 0 ? arena_text(arena, ".", 1, &parent)
                   : arena_text(arena, folder, start, &parent));
    const char *const place = stat(folder, &info) == 0 ? folder : parent;
    if (stat(place, &info) != 0)
        FAIL(STATUS_IO, "%s: cannot be made in %s: %s", folder, place, strerror(errno));
    if (!S_ISDIR(info.st_mode))
        FAIL(STATUS_IO, "%s: expected a folder to save to, got %s, which is none", folder, place);
    if (access(place, W_OK | X_OK) != 0)
        FAIL(STATUS_IO, "%s: cannot be saved to: %s: %s", folder, place, strerror(errno));
    return STATUS_OK;
}

enum status save_model_check(const struct config *config, const char *folder, int overwrite) {
    struct arena arena = ARENA_EMPTY;
    struct hf_config hf;
    char *text;
    enum status status = check_place(folder, &arena);
    if (status == STATUS_OK) status = describe(config, &arena, &hf);
    if (status == STATUS_OK) status = hf_config_text(&hf, &arena, &text);
    if (status == STATUS_OK && !overwrite) status = check_free(folder, &arena);
    arena_close(&arena);
    return status;
}

/* A place in the file system: a folder that is there, or the folder in which one would be made and
 * that one's name. */
struct place {
    struct stat info;
    char name[256];
};

/* Finds the place of a path, without its last slashes. Returns 0 where its parent is not there, or
 * where the path is too long to be compared. */
static int find_place(const char *path, struct place *out) {
    char parent[4096];
    size_t end;
    const size_t start = name_start(path, &end);
    memset(out, 0, sizeof *out);
    if (stat(path, &out->info) == 0) return 1;
    if (start >= sizeof parent || end - start >= sizeof out->name) return 0;
    memcpy(out->name, path + start, end - start);
    memcpy(parent, path, start);
    parent[start] = '\0';
    return stat(start == 0 ? "." : parent, &out->info) == 0;
}

int save_model_same_place(const char *a, const char *b) {
    struct place x, y;
    return find_place(a, &x) && find_place(b, &y) && x.info.st_dev == y.info.st_dev &&
           x.info.st_ino == y.info.st_ino && strcmp(x.name, y.name) == 0;
}

static enum status remove_config(const char *path) {
    struct stat info;
    if (lstat(path, &info) == 0 && unlink(path) != 0)
        FAIL(STATUS_IO, "%s: cannot remove: %s", path, strerror(errno));
    return STATUS_OK;
}

static enum status write_weights(const struct saved_model *model, const char *folder, int overwrite,
                                 struct arena *arena) {
    static const struct safetensors_pair metadata[] = {{"format", "pt"}};
    struct safetensors_source *sources;
    TRY(arena_take(arena, model->count, sizeof *sources, "tensors", &sources));
    for (uint32_t i = 0; i < model->count; i++) {
        const struct param_row *row = &model->table->rows[model->owner[i]];
        sources[i] = (struct safetensors_source){.name = row->name,
                                                 .dtype = safetensors_dtype_from(row->dtype),
                                                 .rank = row->rank,
                                                 .shape = row->shape,
                                                 .carriers = model->values[i]};
    }
    return checkpoint_write(folder, overwrite, sources, model->count, metadata, 1, 0);
}

/* The tokenizer of the checkpoint that the run started from; bytes, where the vocabulary is theirs;
 * else files that say that there is none. A checkpoint in the binary is a model of bytes. */
static enum status write_tokenizer(const struct config *config, const char *folder,
                                   struct arena *arena) {
    if (pretrained_is_named(config) && pretrained_tokenizer(config->model.from) != NULL)
        return tokenizer_files_copy(config->model.from, folder, arena);
    return config->model.vocab == TOKENIZER_VOCAB
               ? tokenizer_files_bytes(&pretrained_bytes, folder, arena)
               : tokenizer_files_none(folder, arena);
}

/* Of a tensor's entry in the header (a name, a shape, two offsets), and of the JSON files: a
 * tokenizer of bytes has 9 kB. */
#define ENTRY_BYTES 128
#define FILES_BYTES 16384

uint64_t save_model_bytes(const struct saved_model *model) {
    const struct config *const config = model->config;
    uint64_t all = FILES_BYTES;
    for (uint32_t i = 0; i < model->count; i++) {
        const struct param_row *const row = &model->table->rows[model->owner[i]];
        uint64_t count = 0, bytes = 0;
        (void)safetensors_size(safetensors_dtype_from(row->dtype), row->shape, row->rank, &count,
                               &bytes);
        all += bytes + ENTRY_BYTES;
    }
    if (pretrained_is_named(config) && pretrained_tokenizer(config->model.from) != NULL)
        all += tokenizer_files_bytes_of(config->model.from);
    return all;
}

enum status save_model(const struct saved_model *model, const char *folder, int overwrite) {
    struct arena arena = ARENA_EMPTY;
    struct hf_config hf;
    char *path;
    enum status status = describe(model->config, &arena, &hf);
    if (status == STATUS_OK) status = arena_format(&arena, &path, "%s/config.json", folder);
    if (status == STATUS_OK) status = overwrite ? remove_config(path) : check_free(folder, &arena);
    if (status == STATUS_OK) status = write_weights(model, folder, overwrite, &arena);
    if (status == STATUS_OK) status = write_tokenizer(model->config, folder, &arena);
    if (status == STATUS_OK) status = hf_config_write(path, overwrite, &hf);
    arena_close(&arena);
    return status;
}

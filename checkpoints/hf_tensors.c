/* SPDX-License-Identifier: Apache-2.0
 * A table with one row for each tensor: where it is, when it is there, and how large it is. */
#include "checkpoints/hf_tensors.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "checkpoints/strict_json.h"

enum dim { DIM_NONE = 0, DIM_VOCAB, DIM_HIDDEN, DIM_MLP, DIM_QUERY, DIM_KV, DIM_HEAD };
enum when { ALWAYS = 0, QKV_BIAS, OUTPUT_BIAS, MLP_BIAS, PRE_NORM, OLMO2, QWEN3, UNTIED };

struct row {
    enum hf_part part;
    const char *name; /* in a layer this follows "model.layers.N." */
    enum when when;
    enum dim dims[2];
    int in_layer;
};

static const struct row rows[] = {
    {HF_EMBEDDING, "model.embed_tokens.weight", ALWAYS, {DIM_VOCAB, DIM_HIDDEN}, 0},
    {HF_INPUT_NORM, "input_layernorm.weight", PRE_NORM, {DIM_HIDDEN, DIM_NONE}, 1},
    {HF_Q_PROJ, "self_attn.q_proj.weight", ALWAYS, {DIM_QUERY, DIM_HIDDEN}, 1},
    {HF_Q_BIAS, "self_attn.q_proj.bias", QKV_BIAS, {DIM_QUERY, DIM_NONE}, 1},
    {HF_K_PROJ, "self_attn.k_proj.weight", ALWAYS, {DIM_KV, DIM_HIDDEN}, 1},
    {HF_K_BIAS, "self_attn.k_proj.bias", QKV_BIAS, {DIM_KV, DIM_NONE}, 1},
    {HF_V_PROJ, "self_attn.v_proj.weight", ALWAYS, {DIM_KV, DIM_HIDDEN}, 1},
    {HF_V_BIAS, "self_attn.v_proj.bias", QKV_BIAS, {DIM_KV, DIM_NONE}, 1},
    {HF_Q_NORM, "self_attn.q_norm.weight", OLMO2, {DIM_QUERY, DIM_NONE}, 1},
    {HF_K_NORM, "self_attn.k_norm.weight", OLMO2, {DIM_KV, DIM_NONE}, 1},
    {HF_Q_NORM, "self_attn.q_norm.weight", QWEN3, {DIM_HEAD, DIM_NONE}, 1},
    {HF_K_NORM, "self_attn.k_norm.weight", QWEN3, {DIM_HEAD, DIM_NONE}, 1},
    {HF_O_PROJ, "self_attn.o_proj.weight", ALWAYS, {DIM_HIDDEN, DIM_QUERY}, 1},
    {HF_O_BIAS, "self_attn.o_proj.bias", OUTPUT_BIAS, {DIM_HIDDEN, DIM_NONE}, 1},
    {HF_ATTENTION_NORM, "post_attention_layernorm.weight", ALWAYS, {DIM_HIDDEN, DIM_NONE}, 1},
    {HF_GATE_PROJ, "mlp.gate_proj.weight", ALWAYS, {DIM_MLP, DIM_HIDDEN}, 1},
    {HF_GATE_BIAS, "mlp.gate_proj.bias", MLP_BIAS, {DIM_MLP, DIM_NONE}, 1},
    {HF_UP_PROJ, "mlp.up_proj.weight", ALWAYS, {DIM_MLP, DIM_HIDDEN}, 1},
    {HF_UP_BIAS, "mlp.up_proj.bias", MLP_BIAS, {DIM_MLP, DIM_NONE}, 1},
    {HF_DOWN_PROJ, "mlp.down_proj.weight", ALWAYS, {DIM_HIDDEN, DIM_MLP}, 1},
    {HF_DOWN_BIAS, "mlp.down_proj.bias", MLP_BIAS, {DIM_HIDDEN, DIM_NONE}, 1},
    {HF_FEEDFORWARD_NORM, "post_feedforward_layernorm.weight", OLMO2, {DIM_HIDDEN, DIM_NONE}, 1},
    {HF_FINAL_NORM, "model.norm.weight", ALWAYS, {DIM_HIDDEN, DIM_NONE}, 0},
    {HF_HEAD, "lm_head.weight", UNTIED, {DIM_VOCAB, DIM_HIDDEN}, 0},
};

static int is_there(const struct hf_config *config, enum when when) {
    switch (when) {
    case QKV_BIAS:
        return config->qkv_bias;
    case OUTPUT_BIAS:
        return config->output_bias;
    case MLP_BIAS:
        return config->mlp_bias;
    case PRE_NORM:
        return config->family != HF_OLMO2;
    case OLMO2:
        return config->family == HF_OLMO2;
    case QWEN3:
        return config->family == HF_QWEN3;
    case UNTIED:
        return !config->tied;
    default:
        return 1;
    }
}

static uint64_t size_of(const struct hf_config *config, enum dim dim) {
    switch (dim) {
    case DIM_VOCAB:
        return config->vocab;
    case DIM_HIDDEN:
        return config->hidden;
    case DIM_MLP:
        return config->intermediate;
    case DIM_QUERY:
        return config->heads * config->head_dim;
    case DIM_KV:
        return config->kv_heads * config->head_dim;
    case DIM_HEAD:
        return config->head_dim;
    default:
        return 0;
    }
}

static enum status fill(const struct hf_config *config, const struct row *row, uint64_t layer,
                        struct arena *arena, struct hf_tensor *out) {
    char *name;
    out->name = row->name;
    out->part = row->part;
    out->layer = layer;
    out->rank = row->dims[1] == DIM_NONE ? 1 : 2;
    for (size_t i = 0; i < out->rank; i++)
        out->shape[i] = size_of(config, row->dims[i]);
    if (!row->in_layer) return STATUS_OK;
    TRY(arena_format(arena, &name, "model.layers.%" PRIu64 ".%s", layer, row->name));
    out->name = name;
    return STATUS_OK;
}

enum status hf_tensors_list(const struct hf_config *config, struct arena *arena,
                            struct hf_tensor **out, size_t *out_count) {
    size_t count = 0, first = 0;
    TRY(arena_take(arena, (config->layers + 1) * COUNT_OF(rows), sizeof **out, "tensors", out));
    while (first < COUNT_OF(rows)) {
        const int in_layer = rows[first].in_layer;
        size_t end = first;
        while (end < COUNT_OF(rows) && rows[end].in_layer == in_layer)
            end++;
        for (uint64_t layer = 0; layer < (in_layer ? config->layers : 1); layer++)
            for (size_t i = first; i < end; i++)
                if (is_there(config, rows[i].when))
                    TRY(fill(config, &rows[i], layer, arena, &(*out)[count++]));
        first = end;
    }
    *out_count = count;
    return STATUS_OK;
}

/* Whether it is a buffer such as "model.rotary_emb.inv_freq" or
 * "model.layers.7.self_attn.rotary_emb.inv_freq". */
static int is_buffer(const char *name) {
    static const char tail[] = "rotary_emb.inv_freq";
    const size_t length = strlen(name), end = sizeof tail - 1;
    return strncmp(name, "model.", 6) == 0 && length > end && name[length - end - 1] == '.' &&
           strcmp(name + length - end, tail) == 0;
}

static int has_shape(const struct safetensors_tensor *tensor, const struct hf_tensor *expected) {
    return tensor->rank == expected->rank && tensor->shape[0] == expected->shape[0] &&
           (tensor->rank < 2 || tensor->shape[1] == expected->shape[1]);
}

static void describe(const struct hf_tensor *expected, const struct safetensors_tensor *tensor,
                     struct listing *wrong) {
    char shape[SAFETENSORS_SHAPE_TEXT], text[400], second[32] = "";
    if (expected->rank == 2) snprintf(second, sizeof second, ", %" PRIu64, expected->shape[1]);
    safetensors_shape_text(tensor, shape);
    snprintf(text, sizeof text, "%s is %s for [%" PRIu64 "%s]", tensor->name, shape,
             expected->shape[0], second);
    listing_add_text(wrong, text);
}

/* Lists the names in the checkpoint that nobody asked for. `used` is [checkpoint->count]. */
static void list_extra(const struct hf_config *config, const struct checkpoint *checkpoint,
                       const unsigned char *used, struct listing *extra) {
    for (size_t i = 0; i < checkpoint->count; i++) {
        const char *name = checkpoint->tensors[i]->name;
        const int is_tied_head = config->tied && strcmp(name, "lm_head.weight") == 0;
        if (!used[i] && !is_buffer(name) && !is_tied_head) listing_add(extra, name);
    }
}

/* A tied model's file may hold lm_head.weight, too. transformers would put the embedding in its
 * place without a word, so other bytes there are refused. */
static enum status check_tied(const struct hf_config *config, const struct checkpoint *checkpoint) {
    const struct safetensors_tensor *head = checkpoint_find(checkpoint, "lm_head.weight");
    const struct safetensors_tensor *embedding =
        checkpoint_find(checkpoint, "model.embed_tokens.weight");
    if (!config->tied || head == NULL || embedding == NULL) return STATUS_OK;
    const uint64_t bytes = head->end - head->begin;
    if (head->dtype == embedding->dtype && bytes == embedding->end - embedding->begin &&
        (bytes == 0 || memcmp(head->data, embedding->data, (size_t)bytes) == 0))
        return STATUS_OK;
    FAIL(STATUS_INPUT,
         "%s: lm_head.weight: expected the bytes of model.embed_tokens.weight, since config.json "
         "says tie_word_embeddings; got others",
         head->path);
}

enum status hf_tensors_check(const struct hf_config *config, const struct checkpoint *checkpoint,
                             struct arena *arena) {
    struct listing missing = {0}, extra = {0}, wrong = {0};
    struct hf_tensor *expected;
    unsigned char *used;
    size_t count;
    enum dtype number;
    TRY(hf_tensors_list(config, arena, &expected, &count));
    TRY(arena_take(arena, checkpoint->count, 1, "tensors", &used));
    for (size_t i = 0; i < count; i++) {
        const size_t at =
            safetensors_place(checkpoint->tensors, checkpoint->count, expected[i].name);
        if (at == checkpoint->count) {
            listing_add_text(&missing, expected[i].name);
            continue;
        }
        used[at] = 1;
        if (!has_shape(checkpoint->tensors[at], &expected[i]) ||
            !safetensors_dtype_number(checkpoint->tensors[at]->dtype, &number))
            describe(&expected[i], checkpoint->tensors[at], &wrong);
    }
    list_extra(config, checkpoint, used, &extra);
    if (missing.count + extra.count + wrong.count > 0)
        FAIL(STATUS_INPUT,
             "%s: expected the tensors of a %s model as config.json describes it; missing: %s; "
             "extra: %s; of another shape or without numbers: %s",
             checkpoint->path, hf_family_name(config->family), listing_close(&missing),
             listing_close(&extra), listing_close(&wrong));
    return check_tied(config, checkpoint);
}

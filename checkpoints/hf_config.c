/* SPDX-License-Identifier: Apache-2.0
 * Reads sizes, switches, number format and token ids of a config.json. hf_keys.c checks the keys,
 * and hf_rope.c reads the parameters of RoPE.
 *
 * Invariant: what hf_config_read accepts has sizes whose products of three do not overflow. */
#include "checkpoints/hf_config.h"

#include <stdio.h>
#include <string.h>

#include "checkpoints/hf_json.h"
#include "checkpoints/strict_json.h"

static const struct {
    const char *name, *class_name;
} families[HF_FAMILIES] = {{"llama", "LlamaForCausalLM"},
                           {"olmo2", "Olmo2ForCausalLM"},
                           {"qwen2", "Qwen2ForCausalLM"},
                           {"qwen3", "Qwen3ForCausalLM"}};

/* PyTorch's names; nothing is stored in tf32. */
static const char *const dtypes[DTYPE_COUNT] = {
    [DTYPE_F32] = "float32", [DTYPE_F64] = "float64",        [DTYPE_BF16] = "bfloat16",
    [DTYPE_F16] = "float16", [DTYPE_E4M3] = "float8_e4m3fn", [DTYPE_E5M2] = "float8_e5m2",
};

const char *hf_dtype_name(enum dtype dtype) {
    return dtypes[dtype];
}

const char *hf_family_name(enum hf_family family) {
    return families[family].name;
}

const char *hf_family_class(enum hf_family family) {
    return families[family].class_name;
}

enum status hf_fail(const char *name, const char *key, const char *what, const json_t *value) {
    FAIL(STATUS_INPUT, "%s: %s: expected %s, got %s", name, key, what, strict_show(value).text);
}

json_t *hf_get(const json_t *object, const char *key) {
    json_t *value = json_object_get(object, key);
    return json_is_null(value) ? NULL : value;
}

enum status hf_read_real(const char *name, const json_t *object, const char *key, const char *shown,
                         struct hf_range range, double *out) {
    const json_t *value = hf_get(object, key);
    char what[64];
    *out = json_number_value(value);
    if (json_is_number(value) && *out >= range.least && *out <= range.most) return STATUS_OK;
    if (range.least < 1.0)
        snprintf(what, sizeof what, "a number above 0, at most %g", range.most);
    else
        snprintf(what, sizeof what, "a number from %g to %g", range.least, range.most);
    return hf_fail(name, shown, what, value);
}

static enum status read_size(const char *name, const json_t *root, const char *key, uint64_t limit,
                             uint64_t *out) {
    const json_t *value = hf_get(root, key);
    char what[64];
    if (strict_json_count(value, out) && *out > 0 && *out <= limit) return STATUS_OK;
    snprintf(what, sizeof what, "a whole number from 1 to %llu", (unsigned long long)limit);
    return hf_fail(name, key, what, value);
}

static enum status read_switch(const char *name, const json_t *root, const char *key, int *out) {
    const json_t *value = hf_get(root, key);
    *out = json_is_true(value);
    if (value == NULL || json_is_boolean(value)) return STATUS_OK;
    return hf_fail(name, key, "true or false", value);
}

static enum status read_family(const char *name, const json_t *root, enum hf_family *out) {
    const json_t *type = hf_get(root, "model_type"), *classes = hf_get(root, "architectures");
    size_t i = 0;
    while (i < HF_FAMILIES &&
           !(json_is_string(type) && strcmp(json_string_value(type), families[i].name) == 0))
        i++;
    if (i == HF_FAMILIES) return hf_fail(name, "model_type", "llama, olmo2, qwen2 or qwen3", type);
    *out = (enum hf_family)i;
    if (classes == NULL) return STATUS_OK;
    const char *only =
        json_array_size(classes) == 1 ? json_string_value(json_array_get(classes, 0)) : NULL;
    if (only != NULL && strcmp(only, families[i].class_name) == 0) return STATUS_OK;
    return hf_fail(name, "architectures", families[i].class_name, classes);
}

/* If the key is absent there are as many as heads. The Qwen classes would take 32 then, whatever
 * the model, so their files must have it. */
static enum status read_kv_heads(const char *name, const json_t *root, struct hf_config *out) {
    const int is_qwen = out->family == HF_QWEN2 || out->family == HF_QWEN3;
    if (is_qwen && json_object_get(root, "num_key_value_heads") == NULL)
        return hf_fail(name, "num_key_value_heads", "a whole number or null", NULL);
    out->kv_heads = out->heads;
    if (hf_get(root, "num_key_value_heads") == NULL) return STATUS_OK;
    TRY(read_size(name, root, "num_key_value_heads", HF_HEADS_LIMIT, &out->kv_heads));
    if (out->heads % out->kv_heads == 0) return STATUS_OK;
    return hf_fail(name, "num_key_value_heads", "a divisor of num_attention_heads",
                   hf_get(root, "num_key_value_heads"));
}

/* If the key is absent it is hidden_size / heads; Qwen3's class has 128. */
static enum status read_head_dim(const char *name, const json_t *root, struct hf_config *out) {
    const json_t *value = hf_get(root, "head_dim");
    if (value != NULL) {
        TRY(read_size(name, root, "head_dim", HF_HEAD_DIM_LIMIT, &out->head_dim));
    } else if (out->family == HF_QWEN3) {
        out->head_dim = 128;
    } else {
        if (out->hidden % out->heads != 0)
            return hf_fail(name, "hidden_size", "a multiple of num_attention_heads (no head_dim)",
                           hf_get(root, "hidden_size"));
        out->head_dim = out->hidden / out->heads;
    }
    if (out->head_dim % 2 == 0) return STATUS_OK;
    return hf_fail(name, "head_dim", "an even number: RoPE turns pairs",
                   value != NULL ? value : hf_get(root, "hidden_size"));
}

static enum status read_sizes(const char *name, const json_t *root, struct hf_config *out) {
    TRY(read_size(name, root, "vocab_size", HF_SIZE_LIMIT, &out->vocab));
    TRY(read_size(name, root, "hidden_size", HF_HIDDEN_LIMIT, &out->hidden));
    TRY(read_size(name, root, "intermediate_size", HF_MLP_LIMIT, &out->intermediate));
    TRY(read_size(name, root, "num_hidden_layers", HF_LAYERS_LIMIT, &out->layers));
    TRY(read_size(name, root, "num_attention_heads", HF_HEADS_LIMIT, &out->heads));
    TRY(read_size(name, root, "max_position_embeddings", (uint64_t)1 << 40, &out->positions));
    TRY(read_kv_heads(name, root, out));
    return read_head_dim(name, root, out);
}

/* Qwen2 has biases at q, k and v whatever its file says, so a file that says otherwise is
 * refused. */
static enum status read_biases(const char *name, const json_t *root, struct hf_config *out) {
    const json_t *value = hf_get(root, "attention_bias");
    TRY(read_switch(name, root, "attention_bias", &out->qkv_bias));
    TRY(read_switch(name, root, "mlp_bias", &out->mlp_bias));
    out->output_bias = out->qkv_bias;
    if (out->family != HF_QWEN2) return STATUS_OK;
    out->qkv_bias = 1;
    out->output_bias = 0;
    if (value == NULL || json_is_true(value)) return STATUS_OK;
    return hf_fail(name, "attention_bias", "true or nothing: qwen2 always has biases at q, k, v",
                   value);
}

/* transformers looks at sliding_window only if use_sliding_window says so, which must be off. Llama
 * and OLMo-2 have no sliding window at all. */
static enum status check_windows(const char *name, const json_t *root,
                                 const struct hf_config *config) {
    const enum hf_family family = config->family;
    const json_t *window = hf_get(root, "sliding_window"), *layers = hf_get(root, "layer_types");
    if (window != NULL && family != HF_QWEN2 && family != HF_QWEN3)
        return hf_fail(name, "sliding_window", "nothing: a sliding window is not supported",
                       window);
    if (layers != NULL && !json_is_array(layers))
        return hf_fail(name, "layer_types", "a list", layers);
    if (layers != NULL && json_array_size(layers) != config->layers)
        return hf_fail(name, "layer_types", "as many entries as num_hidden_layers says", layers);
    for (size_t i = 0; i < json_array_size(layers); i++) {
        const char *type = json_string_value(json_array_get(layers, i));
        if (type == NULL || strcmp(type, "full_attention") != 0)
            return hf_fail(name, "layer_types", "full_attention in every layer",
                           json_array_get(layers, i));
    }
    return STATUS_OK;
}

static enum status read_dtype(const char *name, const json_t *root, enum dtype *out) {
    const json_t *older = hf_get(root, "torch_dtype"), *newer = hf_get(root, "dtype");
    const json_t *value = newer != NULL ? newer : older;
    if (value == NULL)
        FAIL(STATUS_INPUT,
             "%s: expected torch_dtype (transformers v4) or dtype (v5), got neither: the number "
             "format of the weights is not known",
             name);
    if (older != NULL && newer != NULL && !json_equal(older, newer))
        return hf_fail(name, "torch_dtype", "the same as dtype", older);
    for (int i = 0; i < DTYPE_COUNT; i++)
        if (json_is_string(value) && dtypes[i] != NULL &&
            strcmp(json_string_value(value), dtypes[i]) == 0) {
            *out = (enum dtype)i;
            return STATUS_OK;
        }
    return hf_fail(name, newer != NULL ? "dtype" : "torch_dtype",
                   "float32, bfloat16, float16, float64, float8_e4m3fn or float8_e5m2", value);
}

static enum status read_token(const char *name, const char *key, const json_t *value,
                              int64_t *out) {
    *out = -1;
    if (value == NULL) return STATUS_OK;
    if (!json_is_integer(value) || json_integer_value(value) < -1)
        return hf_fail(name, key, "a token id", value);
    *out = json_integer_value(value);
    return STATUS_OK;
}

static enum status read_tokens(const char *name, const json_t *root, struct hf_config *out) {
    const json_t *ends = hf_get(root, "eos_token_id");
    TRY(read_token(name, "bos_token_id", hf_get(root, "bos_token_id"), &out->bos));
    TRY(read_token(name, "pad_token_id", hf_get(root, "pad_token_id"), &out->pad));
    if (ends == NULL) return STATUS_OK;
    if (!json_is_array(ends)) {
        out->end_count = 1;
        return read_token(name, "eos_token_id", ends, &out->ends[0]);
    }
    if (json_array_size(ends) > HF_ENDS)
        return hf_fail(name, "eos_token_id", "at most 8 token ids", ends);
    for (; out->end_count < json_array_size(ends); out->end_count++)
        TRY(read_token(name, "eos_token_id", json_array_get(ends, out->end_count),
                       &out->ends[out->end_count]));
    return STATUS_OK;
}

static enum status read_root(const char *name, const json_t *root, struct hf_config *out) {
    const json_t *act = hf_get(root, "hidden_act");
    TRY(read_family(name, root, &out->family));
    TRY(hf_check_keys(name, root, out->family));
    TRY(read_sizes(name, root, out));
    TRY(hf_read_real(name, root, "rms_norm_eps", "rms_norm_eps", HF_ABOVE_0(1.0), &out->eps));
    if (act != NULL && !(json_is_string(act) && strcmp(json_string_value(act), "silu") == 0))
        return hf_fail(name, "hidden_act", "silu", act);
    TRY(check_windows(name, root, out));
    TRY(read_biases(name, root, out));
    TRY(read_switch(name, root, "tie_word_embeddings", &out->tied));
    TRY(hf_read_rope(name, root, out));
    TRY(read_dtype(name, root, &out->dtype));
    return read_tokens(name, root, out);
}

enum status hf_config_parse(const char *name, const unsigned char *bytes, size_t length,
                            struct hf_config *out) {
    json_t *root;
    memset(out, 0, sizeof *out);
    TRY(strict_json_object(name, bytes, length, &root));
    const enum status status = read_root(name, root, out);
    json_decref(root);
    return status;
}

enum status hf_config_read(const char *path, struct hf_config *out) {
    json_t *root;
    memset(out, 0, sizeof *out);
    TRY(strict_json_file(path, &root));
    const enum status status = read_root(path, root, out);
    json_decref(root);
    return status;
}

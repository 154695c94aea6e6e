/* SPDX-License-Identifier: Apache-2.0
 * Writes one line for each key, in alphabetical order as transformers does. */
#include "checkpoints/hf_config_write.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "base/publish.h"
#include "checkpoints/hf_json.h"

#define TEXT_SIZE 8192 /* far more than all keys take */

struct writing {
    char text[TEXT_SIZE];
    size_t used;
    const char *indent; /* the indent of the object that is open */
    int lines;          /* number of lines in it so far */
};

static void put(struct writing *to, const char *format, ...) TWINSTEP_PRINTF(2, 3);
static void put(struct writing *to, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    to->used +=
        (size_t)vsnprintf(to->text + to->used, sizeof to->text - to->used, format, arguments);
    va_end(arguments);
}

static void put_key(struct writing *to, const char *key) {
    put(to, "%s\n%s\"%s\": ", to->lines++ == 0 ? "" : ",", to->indent, key);
}

static void put_text(struct writing *to, const char *key, const char *text) {
    put_key(to, key);
    put(to, "\"%s\"", text);
}

static void put_count(struct writing *to, const char *key, uint64_t value) {
    put_key(to, key);
    put(to, "%" PRIu64, value);
}

static void put_switch(struct writing *to, const char *key, int on) {
    put_key(to, key);
    put(to, "%s", on ? "true" : "false");
}

/* Always writes a real number of JSON, because transformers warns of factors that are integers. */
static void put_real(struct writing *to, const char *key, double value) {
    const struct number_text text = number_text_f64(value);
    put_key(to, key);
    put(to, "%s%s", text.text, strpbrk(text.text, ".e") == NULL ? ".0" : "");
}

static void put_token(struct writing *to, const char *key, int64_t token) {
    put_key(to, key);
    if (token < 0)
        put(to, "null");
    else
        put(to, "%" PRId64, token);
}

static void put_ends(struct writing *to, const struct hf_config *config) {
    if (config->end_count < 2) {
        put_token(to, "eos_token_id", config->end_count == 0 ? -1 : config->ends[0]);
        return;
    }
    put_key(to, "eos_token_id");
    for (size_t i = 0; i < config->end_count; i++)
        put(to, "%s%" PRId64, i == 0 ? "[" : ", ", config->ends[i]);
    put(to, "]");
}

static void put_yarn(struct writing *to, const struct hf_rope *rope) {
    if (rope->attention_factor > 0.0) put_real(to, "attention_factor", rope->attention_factor);
    put_real(to, "beta_fast", rope->beta_fast);
    put_real(to, "beta_slow", rope->beta_slow);
    put_real(to, "factor", rope->factor);
    if (rope->mscale > 0.0) put_real(to, "mscale", rope->mscale);
    if (rope->mscale_all_dim > 0.0) put_real(to, "mscale_all_dim", rope->mscale_all_dim);
    put_count(to, "original_max_position_embeddings", rope->original_positions);
}

static void put_llama3(struct writing *to, const struct hf_rope *rope) {
    put_real(to, "factor", rope->factor);
    put_real(to, "high_freq_factor", rope->high_freq_factor);
    put_real(to, "low_freq_factor", rope->low_freq_factor);
    put_count(to, "original_max_position_embeddings", rope->original_positions);
}

static void put_rope(struct writing *to, const char *key, const struct hf_rope *rope) {
    put_key(to, key);
    if (rope->type == HF_ROPE_DEFAULT && strcmp(key, "rope_scaling") == 0) {
        put(to, "null");
        return;
    }
    put(to, "{");
    to->indent = "    ";
    to->lines = 0;
    if (rope->type == HF_ROPE_YARN) put_yarn(to, rope);
    if (rope->type == HF_ROPE_LLAMA3) put_llama3(to, rope);
    put_real(to, "rope_theta", rope->theta);
    put_text(to, "rope_type", hf_rope_name(rope->type));
    if (rope->type == HF_ROPE_YARN && !rope->truncate) put_switch(to, "truncate", 0);
    put(to, "\n  }");
    to->indent = "  ";
}

static enum status check_words(const struct hf_config *config) {
    const int uneven = config->qkv_bias != config->output_bias;
    const int is_qwen2 = config->family == HF_QWEN2;
    const char *family = hf_family_name(config->family);
    if (is_qwen2 && (!config->qkv_bias || config->output_bias))
        FAIL(STATUS_UNSUPPORTED, "config.json: a qwen2 model has biases at q, k and v and none at "
                                 "the output; expected those");
    if (!is_qwen2 && uneven)
        FAIL(STATUS_UNSUPPORTED,
             "config.json: a %s model has biases at q, k, v and the output or "
             "at none of them (attention_bias); expected one of both",
             family);
    if (config->mlp_bias && config->family != HF_LLAMA)
        FAIL(STATUS_UNSUPPORTED,
             "config.json: model.mlp_bias: the class of %s models has no biases in its MLP",
             family);
    if (config->dtype == DTYPE_TF32)
        FAIL(STATUS_UNSUPPORTED, "config.json: weights are not stored in tf32");
    return STATUS_OK;
}

static void put_all(struct writing *to, const struct hf_config *config) {
    const int has_width = config->family == HF_LLAMA || config->family == HF_QWEN3;
    put_key(to, "architectures");
    put(to, "[\"%s\"]", hf_family_class(config->family));
    if (config->family != HF_QWEN2) put_switch(to, "attention_bias", config->qkv_bias);
    put_token(to, "bos_token_id", config->bos);
    put_text(to, "dtype", hf_dtype_name(config->dtype));
    put_ends(to, config);
    if (has_width || config->head_dim * config->heads != config->hidden)
        put_count(to, "head_dim", config->head_dim);
    put_text(to, "hidden_act", "silu");
    put_count(to, "hidden_size", config->hidden);
    put_count(to, "intermediate_size", config->intermediate);
    put_count(to, "max_position_embeddings", config->positions);
    if (config->family == HF_LLAMA) put_switch(to, "mlp_bias", config->mlp_bias);
    put_text(to, "model_type", hf_family_name(config->family));
    put_count(to, "num_attention_heads", config->heads);
    put_count(to, "num_hidden_layers", config->layers);
    put_count(to, "num_key_value_heads", config->kv_heads);
    put_token(to, "pad_token_id", config->pad);
    put_real(to, "rms_norm_eps", config->eps);
    put_rope(to, "rope_parameters", &config->rope);
    put_rope(to, "rope_scaling", &config->rope);
    put_real(to, "rope_theta", config->rope.theta);
    put_switch(to, "tie_word_embeddings", config->tied);
    put_text(to, "torch_dtype", hf_dtype_name(config->dtype));
    put_count(to, "vocab_size", config->vocab);
}

enum status hf_config_text(const struct hf_config *config, struct arena *arena, char **out_text) {
    struct writing to = {.indent = "  "};
    TRY(check_words(config));
    put(&to, "{");
    put_all(&to, config);
    put(&to, "\n}\n");
    if (to.used >= sizeof to.text) FAIL(STATUS_INTERNAL, "config.json takes %zu bytes", to.used);
    return arena_format(arena, out_text, "%s", to.text);
}

enum status hf_config_write(const char *path, int overwrite, const struct hf_config *config) {
    struct arena arena = ARENA_EMPTY;
    char *text, *live;
    enum status status = hf_config_text(config, &arena, &text);
    if (status == STATUS_OK) status = arena_format(&arena, &live, "%s.part", path);
    if (status == STATUS_OK) status = publish_bytes(live, path, overwrite, text, strlen(text));
    arena_close(&arena);
    return status;
}

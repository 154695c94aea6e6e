/* SPDX-License-Identifier: Apache-2.0
 * The table of keys: those that are read, those without effect on the maths, and those that are
 * fine while they are off. A key that is not in it is refused. "Off" is null, false, 0, "", an
 * empty list or object, or the value given. */
#include <stdio.h>
#include <string.h>

#include "checkpoints/hf_json.h"
#include "checkpoints/strict_json.h"

#define IN(family) (1u << (family))
#define ALL (IN(HF_LLAMA) | IN(HF_OLMO2) | IN(HF_QWEN2) | IN(HF_QWEN3))

struct off_row {
    const char *key;
    const char *what;  /* what the key would switch on */
    unsigned families; /* the families in which it must be off; in others hf_config.c reads it */
    double neutral;    /* a number that is off, too */
};

static const struct off_row off_rows[] = {
    {"quantization_config", "quantised weights", ALL, 0.0},
    {"compression_config", "compressed weights", ALL, 0.0},
    {"auto_map", "code of its own", ALL, 0.0},
    {"attention_dropout", "dropout of attention weights", ALL, 0.0},
    {"hidden_dropout", "dropout", ALL, 0.0},
    {"resid_pdrop", "dropout", ALL, 0.0},
    {"embd_pdrop", "dropout", ALL, 0.0},
    {"attn_pdrop", "dropout", ALL, 0.0},
    {"neftune_noise_alpha", "noise on embeddings", ALL, 0.0},
    {"pretraining_tp", "split products", ALL, 1.0},
    {"partial_rotary_factor", "rotation of a part of each head", ALL, 1.0},
    {"rope_interleaved", "another pairing of rotated elements", ALL, 0.0},
    {"use_mrope", "positions of several axes", ALL, 0.0},
    {"use_sliding_window", "a sliding window", ALL, 0.0},
    {"dual_chunk_attention_config", "attention by chunks", ALL, 0.0},
    {"attention_chunk_size", "attention by chunks", ALL, 0.0},
    {"no_rope_layers", "layers without positions", ALL, 0.0},
    {"no_rope_layer_interval", "layers without positions", ALL, 0.0},
    {"use_qk_norm", "norms of queries and keys", ALL, 0.0},
    {"clip_qkv", "clipping of queries, keys and values", ALL, 0.0},
    {"attn_logit_softcapping", "a soft cap on attention scores", ALL, 0.0},
    {"final_logit_softcapping", "a soft cap on logits", ALL, 0.0},
    {"logit_scale", "scaled logits", ALL, 1.0},
    {"logits_scaling", "scaled logits", ALL, 1.0},
    {"embedding_multiplier", "scaled embeddings", ALL, 1.0},
    {"residual_multiplier", "scaled residuals", ALL, 1.0},
    {"num_experts", "a mixture of experts", ALL, 0.0},
    {"num_local_experts", "a mixture of experts", ALL, 0.0},
    {"num_experts_per_tok", "a mixture of experts", ALL, 0.0},
    {"n_routed_experts", "a mixture of experts", ALL, 0.0},
    {"moe_intermediate_size", "a mixture of experts", ALL, 0.0},
    {"num_nextn_predict_layers", "more predicted tokens", ALL, 0.0},
    {"pruned_heads", "pruned heads", ALL, 0.0},
    {"chunk_size_feed_forward", "an MLP by chunks", ALL, 0.0},
    {"is_encoder_decoder", "an encoder", ALL, 0.0},
    {"add_cross_attention", "cross attention", ALL, 0.0},
    {"cross_attention_hidden_size", "cross attention", ALL, 0.0},
    {"tie_encoder_decoder", "an encoder", ALL, 0.0},
    {"mlp_bias", "biases in the MLP", ALL & ~IN(HF_LLAMA), 0.0},
};

/* Keys that hf_config.c and hf_rope.c read. */
static const char *const read_keys[] = {
    "model_type",        "architectures",     "vocab_size",          "hidden_size",
    "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
    "head_dim",          "hidden_act",        "rms_norm_eps",        "max_position_embeddings",
    "rope_theta",        "rope_scaling",      "rope_parameters",     "tie_word_embeddings",
    "attention_bias",    "mlp_bias",          "torch_dtype",         "dtype",
    "bos_token_id",      "eos_token_id",      "pad_token_id",        "sliding_window",
    "layer_types",
};

/* Keys that say where a file came from, how text is generated or what is returned: no weight and no
 * logit of a forward pass over given tokens depends on them. */
static const char *const harmless[] = {
    "_name_or_path",
    "_commit_hash",
    "transformers_version",
    "transformers.js_config",
    "unsloth_version",
    "unsloth_fixed",
    "tokenizer_class",
    "initializer_range",
    "use_cache",
    "_attn_implementation",
    "attn_implementation",
    "_attn_implementation_autoset",
    "is_llama_config",
    "max_window_layers",
    "return_dict",
    "output_hidden_states",
    "output_attentions",
    "torchscript",
    "use_bfloat16",
    "tf_legacy_loss",
    "is_decoder",
    "id2label",
    "label2id",
    "num_labels",
    "problem_type",
    "finetuning_task",
    "task_specific_params",
    "prefix",
    "max_sequence_length",
    "decoder_start_token_id",
    "sep_token_id",
    "max_length",
    "min_length",
    "do_sample",
    "early_stopping",
    "num_beams",
    "num_beam_groups",
    "diversity_penalty",
    "temperature",
    "top_k",
    "top_p",
    "typical_p",
    "repetition_penalty",
    "length_penalty",
    "no_repeat_ngram_size",
    "encoder_no_repeat_ngram_size",
    "bad_words_ids",
    "num_return_sequences",
    "output_scores",
    "return_dict_in_generate",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "remove_invalid_values",
    "exponential_decay_length_penalty",
    "suppress_tokens",
    "begin_suppress_tokens",
};

static int is_in(const char *const *names, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0) return 1;
    return 0;
}

static int is_off(const json_t *value, double neutral) {
    if (json_is_null(value) || json_is_false(value)) return 1;
    if (json_is_number(value))
        return json_number_value(value) == 0.0 || json_number_value(value) == neutral;
    if (json_is_string(value)) return json_string_length(value) == 0;
    if (json_is_array(value)) return json_array_size(value) == 0;
    return json_is_object(value) && json_object_size(value) == 0;
}

/* Sets *out_known to 1 for a key of off_rows, and checks that it is off. */
static enum status check_off(const char *name, const char *key, const json_t *value,
                             enum hf_family family, int *out_known) {
    for (size_t i = 0; i < COUNT_OF(off_rows); i++) {
        const struct off_row *row = &off_rows[i];
        char what[160];
        if (strcmp(row->key, key) != 0) continue;
        *out_known = 1;
        if ((row->families & IN(family)) == 0 || is_off(value, row->neutral)) return STATUS_OK;
        snprintf(what, sizeof what, "it to be off (%s: no support for %s)", hf_family_name(family),
                 row->what);
        return hf_fail(name, key, what, value);
    }
    return STATUS_OK;
}

enum status hf_check_keys(const char *name, const json_t *root, enum hf_family family) {
    struct listing unknown = {0};
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(size_t)root, key, value) {
        int known =
            is_in(read_keys, COUNT_OF(read_keys), key) || is_in(harmless, COUNT_OF(harmless), key);
        TRY(check_off(name, key, value, family, &known));
        if (!known) listing_add(&unknown, key);
    }
    if (unknown.count == 0) return STATUS_OK;
    FAIL(STATUS_INPUT,
         "%s: expected keys of a %s model that are known, got %s: what is not known may change the "
         "maths; remove what does not",
         name, hf_family_name(family), listing_close(&unknown));
}

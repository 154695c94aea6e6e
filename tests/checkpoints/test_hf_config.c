/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * config.json: files of releases in both spellings, every rule for keys broken once, and the
 * tensors that follow from it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/macro.h"
#include "checkpoints/hf_tensors.h"
#include "tests/checkpoints/helper_checkpoint.h"

static enum status parse(const char *text, struct hf_config *out) {
    return hf_config_parse("config.json", (const unsigned char *)text, strlen(text), out);
}

static void accept(const char *text, struct hf_config *out) {
    if (parse(text, out) != STATUS_OK) fail_msg("%s\nin: %s", status_text(), text);
}

/* meta-llama/Llama-3.2-1B as it was released (transformers 4.45). */
static const char llama32[] =
    "{\"architectures\":[\"LlamaForCausalLM\"],\"attention_bias\":false,\"attention_dropout\":0.0,"
    "\"bos_token_id\":128000,\"eos_token_id\":[128001,128008,128009],\"head_dim\":64,"
    "\"hidden_act\":\"silu\",\"hidden_size\":2048,\"initializer_range\":0.02,"
    "\"intermediate_size\":8192,\"max_position_embeddings\":131072,\"mlp_bias\":false,"
    "\"model_type\":\"llama\",\"num_attention_heads\":32,\"num_hidden_layers\":16,"
    "\"num_key_value_heads\":8,\"pretraining_tp\":1,\"rms_norm_eps\":1e-05,\"rope_scaling\":"
    "{\"factor\":32.0,\"high_freq_factor\":4.0,\"low_freq_factor\":1.0,"
    "\"original_max_position_embeddings\":8192,\"rope_type\":\"llama3\"},\"rope_theta\":500000.0,"
    "\"tie_word_embeddings\":true,\"torch_dtype\":\"bfloat16\",\"transformers_version\":\"4.45.0\","
    "\"use_cache\":true,\"vocab_size\":128256}";

/* The same as transformers 5 writes it. */
static const char llama32_v5[] =
    "{\"architectures\":[\"LlamaForCausalLM\"],\"attention_bias\":false,\"attention_dropout\":0.0,"
    "\"bos_token_id\":128000,\"dtype\":\"bfloat16\",\"eos_token_id\":[128001,128008,128009],"
    "\"head_dim\":64,\"hidden_act\":\"silu\",\"hidden_size\":2048,\"initializer_range\":0.02,"
    "\"intermediate_size\":8192,\"max_position_embeddings\":131072,\"mlp_bias\":false,"
    "\"model_type\":\"llama\",\"num_attention_heads\":32,\"num_hidden_layers\":16,"
    "\"num_key_value_heads\":8,\"pad_token_id\":null,\"pretraining_tp\":1,\"rms_norm_eps\":1e-05,"
    "\"rope_parameters\":{\"factor\":32.0,\"high_freq_factor\":4.0,\"low_freq_factor\":1.0,"
    "\"original_max_position_embeddings\":8192,\"rope_theta\":500000.0,\"rope_type\":\"llama3\"},"
    "\"tie_word_embeddings\":true,\"transformers_version\":\"5.23.0\",\"use_cache\":true,"
    "\"vocab_size\":128256}";

static void validate_llama(void **state) {
    (void)state;
    struct hf_config older, newer;
    accept(llama32, &older);
    accept(llama32_v5, &newer);
    assert_int_equal(older.family, HF_LLAMA);
    assert_int_equal(older.vocab, 128256);
    assert_int_equal(older.hidden, 2048);
    assert_int_equal(older.intermediate, 8192);
    assert_int_equal(older.layers, 16);
    assert_int_equal(older.heads, 32);
    assert_int_equal(older.kv_heads, 8);
    assert_int_equal(older.head_dim, 64);
    assert_int_equal(older.positions, 131072);
    assert_true(older.eps == 1e-5);
    assert_int_equal(older.rope.type, HF_ROPE_LLAMA3);
    assert_true(older.rope.theta == 500000.0 && older.rope.factor == 32.0);
    assert_true(older.rope.low_freq_factor == 1.0 && older.rope.high_freq_factor == 4.0);
    assert_int_equal(older.rope.original_positions, 8192);
    assert_int_equal(older.dtype, DTYPE_BF16);
    assert_true(older.tied && !older.qkv_bias && !older.output_bias && !older.mlp_bias);
    assert_int_equal(older.bos, 128000);
    assert_int_equal(older.pad, -1);
    assert_int_equal(older.end_count, 3);
    assert_int_equal(older.ends[2], 128009);
    assert_memory_equal(&older, &newer, sizeof older);
}

/* allenai/OLMo-2-0425-1B, Qwen/Qwen2.5-0.5B and Qwen/Qwen3-0.6B as they were released. */
static void validate_releases(void **state) {
    (void)state;
    struct hf_config config;
    accept("{\"architectures\":[\"Olmo2ForCausalLM\"],\"attention_bias\":false,"
           "\"attention_dropout\":0.0,\"eos_token_id\":100257,\"hidden_act\":\"silu\","
           "\"hidden_size\":2048,\"initializer_range\":0.02,\"intermediate_size\":8192,"
           "\"max_position_embeddings\":4096,\"model_type\":\"olmo2\",\"num_attention_heads\":16,"
           "\"num_hidden_layers\":16,\"num_key_value_heads\":16,\"pad_token_id\":100277,"
           "\"rms_norm_eps\":1e-06,\"rope_scaling\":null,\"rope_theta\":500000,"
           "\"tie_word_embeddings\":false,\"torch_dtype\":\"float32\",\"transformers_version\":"
           "\"4.47.0\",\"use_cache\":true,\"vocab_size\":100352}",
           &config);
    assert_int_equal(config.family, HF_OLMO2);
    assert_int_equal(config.head_dim, 128);
    assert_int_equal(config.rope.type, HF_ROPE_DEFAULT);
    assert_true(config.rope.theta == 500000.0 && !config.tied);
    assert_int_equal(config.bos, -1);
    assert_int_equal(config.dtype, DTYPE_F32);
    accept(
        "{\"architectures\":[\"Qwen2ForCausalLM\"],\"attention_dropout\":0.0,\"bos_token_id\":"
        "151643,\"eos_token_id\":151643,\"hidden_act\":\"silu\",\"hidden_size\":896,"
        "\"initializer_range\":0.02,\"intermediate_size\":4864,\"max_position_embeddings\":32768,"
        "\"max_window_layers\":24,\"model_type\":\"qwen2\",\"num_attention_heads\":14,"
        "\"num_hidden_layers\":24,\"num_key_value_heads\":2,\"rms_norm_eps\":1e-06,"
        "\"rope_theta\":1000000.0,\"sliding_window\":32768,\"tie_word_embeddings\":true,"
        "\"torch_dtype\":\"bfloat16\",\"transformers_version\":\"4.40.1\",\"use_cache\":true,"
        "\"use_mrope\":false,\"use_sliding_window\":false,\"vocab_size\":151936}",
        &config);
    assert_int_equal(config.family, HF_QWEN2);
    assert_true(config.qkv_bias && !config.output_bias && config.tied);
    assert_int_equal(config.head_dim, 64);
    accept("{\"architectures\":[\"Qwen3ForCausalLM\"],\"attention_bias\":false,"
           "\"attention_dropout\":0.0,\"bos_token_id\":151643,\"eos_token_id\":151645,\"head_dim\":"
           "128,\"hidden_act\":\"silu\",\"hidden_size\":1024,\"initializer_range\":0.02,"
           "\"intermediate_size\":3072,\"max_position_embeddings\":40960,\"max_window_layers\":28,"
           "\"model_type\":\"qwen3\",\"num_attention_heads\":16,\"num_hidden_layers\":28,"
           "\"num_key_value_heads\":8,\"rms_norm_eps\":1e-06,\"rope_scaling\":null,\"rope_theta\":"
           "1000000,\"sliding_window\":null,\"tie_word_embeddings\":true,\"torch_dtype\":"
           "\"bfloat16\",\"transformers_version\":\"4.51.0\",\"use_cache\":true,"
           "\"use_sliding_window\":false,\"vocab_size\":151936}",
           &config);
    assert_int_equal(config.family, HF_QWEN3);
    assert_int_equal(config.heads * config.head_dim, 2048);
    assert_false(config.qkv_bias);
}

/* A small model of one family. `more` are further members, which replace earlier ones of the same
 * name. */
#define HEAD(type)                                                                                 \
    "{\"model_type\":\"" type "\",\"hidden_size\":16,\"intermediate_size\":24,"                    \
    "\"num_hidden_layers\":2,\"num_attention_heads\":4,\"vocab_size\":32,"                         \
    "\"rms_norm_eps\":1e-6,\"max_position_embeddings\":64,"
#define ROPE "\"rope_theta\":10000,"
#define KV "\"num_key_value_heads\":2,"
#define DTYPE "\"dtype\":\"float32\""
#define LLAMA(more) HEAD("llama") KV ROPE more DTYPE "}"
#define LLAMA_NUMBERS(eps, theta)                                                                  \
    "{\"model_type\":\"llama\",\"hidden_size\":16,\"intermediate_size\":24,"                       \
    "\"num_hidden_layers\":2,\"num_attention_heads\":4,\"vocab_size\":32,"                         \
    "\"max_position_embeddings\":64,\"rms_norm_eps\":" eps ",\"rope_theta\":" theta "," DTYPE "}"

static void validate_yarn(void **state) {
    (void)state;
    struct hf_config config;
    accept(LLAMA("\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4.0},"), &config);
    assert_int_equal(config.rope.type, HF_ROPE_YARN);
    assert_true(config.rope.factor == 4.0 && config.rope.beta_fast == 32.0 &&
                config.rope.beta_slow == 1.0 && config.rope.attention_factor == 0.0);
    assert_int_equal(config.rope.original_positions, 64);
    assert_int_equal(config.rope.truncate, 1);
    accept(HEAD("qwen3") KV "\"rope_parameters\":{\"rope_type\":\"yarn\",\"rope_theta\":1e6,"
                            "\"factor\":2,\"original_max_position_embeddings\":32,\"beta_fast\":16,"
                            "\"beta_slow\":2,\"attention_factor\":1.5,\"mscale\":0.5,"
                            "\"mscale_all_dim\":0.25,\"truncate\":false}," DTYPE "}",
           &config);
    assert_true(config.rope.theta == 1e6 && config.rope.factor == 2.0);
    assert_true(config.rope.beta_fast == 16.0 && config.rope.beta_slow == 2.0);
    assert_true(config.rope.attention_factor == 1.5 && config.rope.mscale == 0.5);
    assert_true(config.rope.mscale_all_dim == 0.25);
    assert_int_equal(config.rope.original_positions, 32);
    assert_int_equal(config.rope.truncate, 0);
    assert_int_equal(config.head_dim, 128);
}

/* Spellings that must be accepted. */
static void validate_accepted(void **state) {
    (void)state;
    static const char *const texts[] = {
        LLAMA(""),
        LLAMA("\"torch_dtype\":\"float32\","),
        LLAMA("\"rope_scaling\":null,"),
        LLAMA("\"rope_scaling\":{\"rope_type\":\"default\"},"),
        LLAMA("\"rope_parameters\":{\"rope_theta\":10000.0},"),
        LLAMA("\"rope_scaling\":{\"type\":\"yarn\",\"rope_type\":\"yarn\",\"factor\":4},"),
        LLAMA("\"rope_parameters\":{\"type\":\"yarn\",\"factor\":4},\"rope_scaling\":{\"type\":"
              "\"yarn\",\"factor\":4},"),
        LLAMA("\"quantization_config\":null,\"num_experts\":0,\"pruned_heads\":{},"),
        LLAMA("\"pretraining_tp\":1,\"partial_rotary_factor\":1.0,\"sliding_window\":null,"),
        LLAMA(
            "\"layer_types\":[\"full_attention\",\"full_attention\"],\"id2label\":{\"0\":\"L\"},"),
        LLAMA("\"architectures\":null,\"eos_token_id\":null,\"pad_token_id\":-1,"),
        LLAMA("\"attention_bias\":true,\"mlp_bias\":true,"),
        HEAD("llama") ROPE DTYPE "}",
        HEAD("olmo2") ROPE "\"num_key_value_heads\":null," DTYPE "}",
        HEAD("qwen2") ROPE KV "\"attention_bias\":true,\"mlp_bias\":false," DTYPE "}",
        HEAD("qwen3") ROPE KV "\"sliding_window\":4096," DTYPE "}",
    };
    struct hf_config config;
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        accept(texts[i], &config);
}

static void validate_refusals(void **state) {
    (void)state;
    static const struct {
        const char *text;
        const char *needle;
    } cases[] = {
        {"[]", "expected a JSON object, got an array"},
        {"{\"a\":NaN}", "expected JSON"},
        {"{\"a\":1,\"a\":1}", "duplicate"},
        {"{}", "model_type: expected llama, olmo2, qwen2 or qwen3, got nothing"},
        {HEAD("mistral") ROPE KV DTYPE "}", "got \"mistral\""},
        {LLAMA("\"architectures\":[\"LlamaModel\"],"), "architectures: expected LlamaForCausalLM"},
        {LLAMA("\"architectures\":[\"LlamaForCausalLM\",\"X\"],"), "architectures: expected"},
        {LLAMA("\"hidden_act\":\"gelu\","), "hidden_act: expected silu, got \"gelu\""},
        {HEAD("llama") KV DTYPE "}",
         "expected rope_theta (transformers v4) or rope_parameters.rope_theta (v5), got neither"},
        {HEAD("llama") KV "\"rope_parameters\":{\"rope_type\":\"default\"}," DTYPE "}",
         "got neither"},
        {HEAD("llama") KV ROPE "\"use_cache\":true}",
         "expected torch_dtype (transformers v4) or dtype (v5), got neither"},
        {LLAMA("\"torch_dtype\":\"bfloat16\","), "torch_dtype: expected the same as dtype"},
        {HEAD("llama") KV ROPE "\"dtype\":\"float8_e8m0fnu\"}", "got \"float8_e8m0fnu\""},
        {HEAD("llama") KV ROPE "\"torch_dtype\":\"auto\"}", "torch_dtype: expected float32"},
        {LLAMA("\"rope_parameters\":{\"rope_theta\":500000.0},"), "rope_theta: expected the same"},
        {LLAMA("\"rope_parameters\":{\"rope_type\":\"yarn\",\"factor\":4},\"rope_scaling\":{"
               "\"rope_type\":\"yarn\",\"factor\":8},"),
         "rope_scaling: expected the same as rope_parameters"},
        {LLAMA("\"rope_scaling\":{\"rope_type\":\"linear\",\"factor\":2},"), "got \"linear\""},
        {LLAMA("\"rope_scaling\":{\"type\":\"dynamic\",\"factor\":2},"), "got \"dynamic\""},
        {LLAMA("\"rope_scaling\":{\"factor\":2},"), "rope_scaling.rope_type: expected default"},
        {LLAMA("\"rope_scaling\":{\"type\":\"yarn\",\"rope_type\":\"llama3\",\"factor\":4},"),
         "rope_scaling.type: expected the same as rope_type"},
        {LLAMA("\"rope_scaling\":{\"type\":\"yarn\"},"), "rope_scaling.factor: expected a number"},
        {LLAMA("\"rope_scaling\":{\"type\":\"yarn\",\"factor\":0.5},"),
         "factor: expected a number from 1"},
        {LLAMA("\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4,\"beta_fast\":1},"),
         "more than beta_slow"},
        {LLAMA("\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4,\"truncate\":1},"),
         "truncate: expected true or false"},
        {LLAMA("\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4,\"short_factor\":[1]},"),
         "parameters of rope_type yarn, got \"short_factor\""},
        {LLAMA("\"rope_scaling\":{\"type\":\"default\",\"mrope_section\":[1]},"), "mrope_section"},
        {LLAMA("\"rope_scaling\":{\"type\":\"llama3\",\"factor\":4,\"low_freq_factor\":1,"
               "\"high_freq_factor\":4},"),
         "original_max_position_embeddings: expected a whole number above 0, got nothing"},
        {LLAMA("\"rope_scaling\":{\"type\":\"llama3\",\"factor\":4,\"low_freq_factor\":4,"
               "\"high_freq_factor\":4,\"original_max_position_embeddings\":32},"),
         "more than low_freq_factor"},
        {LLAMA("\"rope_parameters\":{\"full_attention\":{\"rope_theta\":1}},"),
         "one set of parameters for all layers"},
        {LLAMA("\"rope_parameters\":{\"partial_rotary_factor\":0.5},"), "whole heads are rotated"},
        {LLAMA("\"rope_scaling\":[],"), "rope_scaling: expected an object"},
        {LLAMA("\"partial_rotary_factor\":0.25,"), "rotation of a part of each head"},
        {LLAMA("\"sliding_window\":4096,"), "sliding_window: expected nothing"},
        {LLAMA("\"use_sliding_window\":true,"), "no support for a sliding window"},
        {HEAD("qwen2") ROPE KV "\"use_sliding_window\":true," DTYPE "}", "sliding window"},
        {HEAD("qwen2") ROPE KV "\"layer_types\":[\"full_attention\",\"sliding_attention\"]," DTYPE
                               "}",
         "full_attention in every layer, got \"sliding_attention\""},
        {LLAMA("\"layer_types\":[\"full_attention\"],"),
         "layer_types: expected as many entries as num_hidden_layers says, got [\"full"},
        {LLAMA("\"layer_types\":[],"), "as many entries as num_hidden_layers says, got []"},
        {LLAMA_NUMBERS("2.0", "1e4"), "rms_norm_eps: expected a number above 0, at most 1, got 2"},
        {LLAMA_NUMBERS("0", "1e4"), "rms_norm_eps: expected a number above 0"},
        {LLAMA_NUMBERS("1e-310", "1e4"), "rms_norm_eps: expected a number above 0"},
        {LLAMA_NUMBERS("1e-6", "1e300"), "rope_theta: expected a number from 1 to 1e+12, got 1"},
        {LLAMA_NUMBERS("1e-6", "0.5"), "rope_theta: expected a number from 1 to 1e+12, got 0.5"},
        {LLAMA_NUMBERS("1e-6", "\"1e4\""), "rope_theta: expected a number from 1"},
        {LLAMA("\"rope_parameters\":{\"rope_theta\":1e13},"),
         "rope_parameters.rope_theta: expected a number from 1 to 1e+12, got"},
        {LLAMA("\"rope_scaling\":{\"type\":\"llama3\",\"factor\":0.5,\"low_freq_factor\":1,"
               "\"high_freq_factor\":4,\"original_max_position_embeddings\":32},"),
         "rope_scaling.factor: expected a number from 1 to 1e+06, got 0.5"},
        {LLAMA("\"rope_scaling\":{\"type\":\"llama3\",\"factor\":4,\"low_freq_factor\":1,"
               "\"high_freq_factor\":1e7,\"original_max_position_embeddings\":32},"),
         "rope_scaling.high_freq_factor: expected a number above 0, at most 1e+06, got"},
        {LLAMA("\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4,"
               "\"original_max_position_embeddings\":1099511627777},"),
         "a whole number above 0, at most 1099511627776, got 1099511627777"},
        {LLAMA_NUMBERS("1e-6", "1,\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4}"),
         "rope_theta: expected more than 1 with yarn"},
        {LLAMA("\"num_local_experts\":8,"), "no support for a mixture of experts)"},
        {LLAMA("\"quantization_config\":{\"quant_method\":\"gptq\"},"),
         "no support for quantised weights), got {\"quant_method\":\"gptq\"}"},
        {LLAMA("\"auto_map\":{\"AutoModel\":\"m.M\"},"), "code of its own"},
        {LLAMA("\"attention_dropout\":0.1,"), "dropout of attention weights"},
        {LLAMA("\"pretraining_tp\":2,"), "split products"},
        {LLAMA("\"final_logit_softcapping\":30.0,"), "a soft cap on logits"},
        {LLAMA("\"embedding_multiplier\":12,"), "scaled embeddings"},
        {LLAMA("\"new_norm\":true,\"b\":null,"), "got \"new_norm\", \"b\": what is not known"},
        {HEAD("olmo2") ROPE "\"mlp_bias\":true," DTYPE "}",
         "mlp_bias: expected it to be off (olmo2: no support for biases in the MLP), got true"},
        {HEAD("qwen2") ROPE KV "\"attention_bias\":false," DTYPE "}", "always has biases"},
        {HEAD("qwen2") ROPE DTYPE "}", "num_key_value_heads: expected a whole number or null"},
        {HEAD("llama") ROPE "\"num_key_value_heads\":3," DTYPE "}", "a divisor of num_attention"},
        {LLAMA("\"head_dim\":3,"), "an even number"},
        {LLAMA("\"head_dim\":0,"), "a whole number from 1"},
        {LLAMA("\"tie_word_embeddings\":1,"), "true or false, got 1"},
        {LLAMA("\"eos_token_id\":\"</s>\","), "a token id"},
        {"{\"model_type\":\"llama\"}", "vocab_size: expected a whole number from 1 to 2097152"},
        {"{\"model_type\":\"llama\",\"vocab_size\":2097153}", "got 2097153"},
        {"{\"model_type\":\"llama\",\"vocab_size\":9,\"hidden_size\":262145}",
         "hidden_size: expected a whole number from 1 to 262144, got 262145"},
        {"{\"model_type\":\"llama\",\"vocab_size\":-1}", "got -1"},
        {"{\"model_type\":\"llama\",\"vocab_size\":32.0}", "got 32.0"},
    };
    struct hf_config config;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const enum status status = parse(cases[i].text, &config);
        if (status == STATUS_OK) fail_msg("accepted: %s", cases[i].text);
        helper_require(status, STATUS_INPUT, cases[i].needle);
        helper_require(status, STATUS_INPUT, "config.json: ");
    }
}

/* The counts of parameters that the releases state must be the sum over all shapes. */
static void validate_parameters(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct hf_config config;
    struct hf_tensor *tensors;
    size_t count;
    uint64_t parameters = 0;
    accept(llama32, &config);
    assert_int_equal(hf_tensors_list(&config, &arena, &tensors, &count), STATUS_OK);
    for (size_t i = 0; i < count; i++)
        parameters += tensors[i].shape[0] * (tensors[i].rank == 2 ? tensors[i].shape[1] : 1);
    assert_int_equal(count, 146);
    assert_int_equal(parameters, 1235814400);
    arena_close(&arena);
}

static size_t count_tensors(const char *text, const char *wanted, uint64_t rows, uint64_t columns) {
    struct arena arena = ARENA_EMPTY;
    struct hf_config config;
    struct hf_tensor *tensors;
    size_t count, found = 0;
    accept(text, &config);
    assert_int_equal(hf_tensors_list(&config, &arena, &tensors, &count), STATUS_OK);
    for (size_t i = 0; i < count; i++)
        found += strcmp(tensors[i].name, wanted) == 0 && tensors[i].shape[0] == rows &&
                 tensors[i].shape[1] == columns;
    if (wanted[0] != '\0' && found != 1) fail_msg("%s is not there once", wanted);
    arena_close(&arena);
    return count;
}

static void validate_tensors(void **state) {
    (void)state;
    static const char olmo2[] = HEAD("olmo2") ROPE KV DTYPE "}";
    static const char qwen2[] = HEAD("qwen2") ROPE KV "\"tie_word_embeddings\":true," DTYPE "}";
    static const char qwen3[] = HEAD("qwen3") ROPE KV "\"head_dim\":6," DTYPE "}";
    assert_int_equal(count_tensors(LLAMA(""), "model.layers.1.self_attn.k_proj.weight", 8, 16),
                     2 * 9 + 3);
    assert_int_equal(count_tensors(LLAMA("\"attention_bias\":true,\"mlp_bias\":true,"),
                                   "model.layers.0.self_attn.o_proj.bias", 16, 0),
                     2 * 16 + 3);
    assert_int_equal(count_tensors(olmo2, "model.layers.1.self_attn.k_norm.weight", 8, 0),
                     2 * 11 + 3);
    count_tensors(olmo2, "model.layers.1.post_feedforward_layernorm.weight", 16, 0);
    assert_int_equal(count_tensors(qwen2, "model.layers.0.self_attn.v_proj.bias", 8, 0),
                     2 * 12 + 2);
    assert_int_equal(count_tensors(qwen3, "model.layers.0.self_attn.q_norm.weight", 6, 0),
                     2 * 11 + 3);
    count_tensors(qwen3, "model.layers.1.self_attn.o_proj.weight", 16, 24);
}

#define MOST 40

/* Makes a checkpoint of the config's tensors, as sources that a test may change. */
static size_t make_sources(const struct hf_config *config, struct arena *arena,
                           struct safetensors_source *sources) {
    static const float zeros[1024] = {0};
    struct hf_tensor *tensors;
    size_t count;
    assert_int_equal(hf_tensors_list(config, arena, &tensors, &count), STATUS_OK);
    assert_true(count + 2 <= MOST);
    for (size_t i = 0; i < count; i++)
        sources[i] = (struct safetensors_source){tensors[i].name,  SAFETENSORS_F32, tensors[i].rank,
                                                 tensors[i].shape, zeros,           NULL};
    return count;
}

static enum status check(const struct hf_config *config, const struct safetensors_source *sources,
                         size_t count) {
    struct arena arena = ARENA_EMPTY;
    struct checkpoint checkpoint;
    assert_int_equal(checkpoint_write("m", 1, sources, count, NULL, 0, 0), STATUS_OK);
    assert_int_equal(checkpoint_open("m", &arena, &checkpoint), STATUS_OK);
    const enum status status = hf_tensors_check(config, &checkpoint, &arena);
    checkpoint_close(&checkpoint);
    arena_close(&arena);
    return status;
}

static void validate_check(void **state) {
    (void)state;
    static const uint64_t turned[] = {16, 32}, eight[] = {8}, head[] = {32, 16};
    static float ones[512];
    struct arena arena = ARENA_EMPTY;
    struct hf_config config;
    struct safetensors_source sources[MOST];
    accept(LLAMA(""), &config);
    const size_t count = make_sources(&config, &arena, sources);
    assert_int_equal(check(&config, sources, count), STATUS_OK);
    helper_require(check(&config, sources + 1, count - 1), STATUS_INPUT,
                   "missing: model.embed_tokens.weight; extra: none");
    sources[count] = (struct safetensors_source){
        "model.layers.2.mlp.up_proj.weight", SAFETENSORS_F32, 1, eight, ones, NULL};
    helper_require(check(&config, sources, count + 1), STATUS_INPUT,
                   "missing: none; extra: \"model.layers.2.mlp.up_proj.weight\"; of another");
    sources[count].name = "model.layers.1.self_attn.rotary_emb.inv_freq";
    assert_int_equal(check(&config, sources, count + 1), STATUS_OK);
    sources[count].name = "rotary_emb.inv_freq";
    helper_require(check(&config, sources, count + 1), STATUS_INPUT, "extra: \"rotary_emb");
    sources[0].shape = turned;
    helper_require(check(&config, sources, count), STATUS_INPUT,
                   "model.embed_tokens.weight is F32 [16, 32] for [32, 16]");
    sources[0].shape = head;
    sources[0].dtype = SAFETENSORS_I32;
    helper_require(check(&config, sources, count), STATUS_INPUT, "is I32 [32, 16] for [32, 16]");
    sources[0].dtype = SAFETENSORS_F32;
    config.tied = 1; /* lm_head stays in the file */
    assert_int_equal(check(&config, sources, count), STATUS_OK);
    ones[511] = 1.0f;
    sources[0].bytes = ones;
    helper_require(check(&config, sources, count), STATUS_INPUT,
                   "lm_head.weight: expected the bytes of model.embed_tokens.weight");
    arena_close(&arena);
}

static void validate_files(void **state) {
    (void)state;
    struct hf_config config;
    helper_write_text("config.json", llama32);
    assert_int_equal(hf_config_read("config.json", &config), STATUS_OK);
    helper_write_text("config.json", "");
    helper_require(hf_config_read("config.json", &config), STATUS_INPUT, "got no bytes");
    helper_require(hf_config_read("nowhere.json", &config), STATUS_IO, "cannot open");
    helper_require(hf_config_read(".", &config), STATUS_INPUT, "got a folder");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_llama),    cmocka_unit_test(validate_releases),
        cmocka_unit_test(validate_yarn),     cmocka_unit_test(validate_accepted),
        cmocka_unit_test(validate_refusals), cmocka_unit_test(validate_parameters),
        cmocka_unit_test(validate_tensors),  cmocka_unit_test(validate_check),
        cmocka_unit_test(validate_files),
    };
    return cmocka_run_group_tests(tests, helper_enter, helper_leave);
}

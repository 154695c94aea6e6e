/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * A config.json that we write must read back as it was, for every family and both scalings of RoPE;
 * it must hold both spellings; and what a family's class has no word for must be refused. The real
 * library reads it in tests/model/test_real_model.c. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "checkpoints/hf_config_write.h"
#include "tests/checkpoints/helper_checkpoint.h"

#define SIZES                                                                                      \
    .vocab = 300, .hidden = 32, .intermediate = 48, .layers = 2, .heads = 4, .kv_heads = 2,        \
    .positions = 128
#define TOKENS .bos = -1, .pad = 0

static const struct hf_config configs[] = {
    {.family = HF_LLAMA,
     SIZES,
     .head_dim = 8,
     .eps = 1e-5,
     .rope = {.theta = 10000.0},
     .dtype = DTYPE_F32,
     TOKENS},
    {.family = HF_LLAMA,
     SIZES,
     .head_dim = 12,
     .eps = 0.1,
     .tied = 1,
     .qkv_bias = 1,
     .output_bias = 1,
     .mlp_bias = 1,
     .dtype = DTYPE_BF16,
     .bos = 256,
     .pad = -1,
     .ends = {1, 2, 299},
     .end_count = 3,
     .rope = {.type = HF_ROPE_LLAMA3,
              .theta = 500000.0,
              .factor = 32.0,
              .low_freq_factor = 1.0,
              .high_freq_factor = 4.0,
              .original_positions = 8192}},
    {.family = HF_OLMO2,
     SIZES,
     .head_dim = 8,
     .eps = 1e-6,
     .rope = {.theta = 123456.789},
     .dtype = DTYPE_F16,
     .bos = 5,
     .pad = 6,
     .ends = {7},
     .end_count = 1},
    {.family = HF_OLMO2,
     SIZES,
     .head_dim = 10,
     .eps = 1e-6,
     .qkv_bias = 1,
     .output_bias = 1,
     .rope = {.theta = 5e5},
     .dtype = DTYPE_F64,
     TOKENS},
    {.family = HF_QWEN2,
     SIZES,
     .head_dim = 8,
     .eps = 1e-6,
     .tied = 1,
     .qkv_bias = 1,
     .dtype = DTYPE_E5M2,
     TOKENS,
     .rope = {.type = HF_ROPE_YARN,
              .theta = 1e6,
              .factor = 4.0,
              .original_positions = 32,
              .beta_fast = 32.0,
              .beta_slow = 1.0,
              .truncate = 1}},
    {.family = HF_QWEN3,
     SIZES,
     .head_dim = 16,
     .eps = 1e-6,
     .dtype = DTYPE_BF16,
     TOKENS,
     .rope = {.type = HF_ROPE_YARN,
              .theta = 1e12,
              .factor = 1.5,
              .original_positions = 77,
              .attention_factor = 1.25,
              .beta_fast = 16.0,
              .beta_slow = 0.5,
              .mscale = 0.707,
              .mscale_all_dim = 0.9,
              .truncate = 0}},
    {.family = HF_QWEN3,
     SIZES,
     .head_dim = 16,
     .eps = 0x1p-1022,
     .qkv_bias = 1,
     .output_bias = 1,
     .rope = {.theta = 1.0},
     .dtype = DTYPE_E4M3,
     TOKENS},
};

static void verify_round_trip(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(configs); i++) {
        struct arena arena = ARENA_EMPTY;
        struct hf_config read;
        char *text;
        assert_int_equal(hf_config_text(&configs[i], &arena, &text), STATUS_OK);
        if (hf_config_parse("x", (const unsigned char *)text, strlen(text), &read) != STATUS_OK)
            fail_msg("config %zu: %s\n%s", i, status_text(), text);
        if (memcmp(&read, &configs[i], sizeof read) != 0) fail_msg("config %zu: %s", i, text);
        arena_close(&arena);
    }
}

/* A reader of either version must find base, scaling and format. */
static void validate_spellings(void **state) {
    static const char *const needles[] = {"\n  \"rope_theta\": 1000000.0,",
                                          "\n  \"rope_parameters\": {",
                                          "\n  \"rope_scaling\": {",
                                          "\n  \"dtype\": \"float8_e5m2\",",
                                          "\n  \"torch_dtype\": \"float8_e5m2\",",
                                          "\n    \"rope_theta\": 1000000.0",
                                          "\n    \"factor\": 4.0,"};
    struct arena arena = ARENA_EMPTY;
    char *text;
    (void)state;
    assert_int_equal(hf_config_text(&configs[4], &arena, &text), STATUS_OK);
    for (size_t i = 0; i < COUNT_OF(needles); i++)
        if (strstr(text, needles[i]) == NULL) fail_msg("no %s in %s", needles[i], text);
    arena_close(&arena);
}

static void validate_refused(void **state) {
    static const struct {
        size_t of; /* configs */
        int qkv, output, mlp;
        enum dtype dtype;
        const char *needle;
    } cases[] = {
        {4, 0, 0, 0, DTYPE_F32, "a qwen2 model has biases at q, k and v"},
        {4, 1, 1, 0, DTYPE_F32, "none at the output"},
        {4, 1, 0, 1, DTYPE_F32, "qwen2 models has no biases in its MLP"},
        {0, 1, 0, 0, DTYPE_F32, "attention_bias"},
        {5, 0, 1, 0, DTYPE_F32, "attention_bias"},
        {2, 0, 0, 1, DTYPE_F32, "olmo2 models has no biases in its MLP"},
        {0, 0, 0, 0, DTYPE_TF32, "tf32"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct arena arena = ARENA_EMPTY;
        struct hf_config config = configs[cases[i].of];
        char *text;
        config.qkv_bias = cases[i].qkv;
        config.output_bias = cases[i].output;
        config.mlp_bias = cases[i].mlp;
        config.dtype = cases[i].dtype;
        helper_require(hf_config_text(&config, &arena, &text), STATUS_UNSUPPORTED, cases[i].needle);
        arena_close(&arena);
    }
}

static void validate_files(void **state) {
    struct hf_config read;
    (void)state;
    assert_int_equal(hf_config_write("config.json", 0, &configs[0]), STATUS_OK);
    assert_int_equal(hf_config_read("config.json", &read), STATUS_OK);
    assert_memory_equal(&read, &configs[0], sizeof read);
    helper_require(hf_config_write("config.json", 0, &configs[1]), STATUS_IO, "config.json");
    assert_int_equal(hf_config_read("config.json", &read), STATUS_OK);
    assert_memory_equal(&read, &configs[0], sizeof read);
    assert_int_equal(hf_config_write("config.json", 1, &configs[1]), STATUS_OK);
    assert_int_equal(hf_config_read("config.json", &read), STATUS_OK);
    assert_memory_equal(&read, &configs[1], sizeof read);
    helper_require(hf_config_write("nowhere/config.json", 0, &configs[0]), STATUS_IO, "nowhere");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_round_trip),
        cmocka_unit_test(validate_spellings),
        cmocka_unit_test(validate_refused),
        cmocka_unit_test(validate_files),
    };
    return cmocka_run_group_tests(tests, helper_enter, helper_leave);
}

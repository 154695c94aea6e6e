/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * PyTorch's CUDA random numbers on several GPUs, against published values: the first numbers of
 * torch.rand with seed 0 in PyTorch's documentation, and the sizes from which GPUs differ in
 * pytorch issues 194676 and 196613. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/macro.h"
#include "determinism/torch_rng.h"

/* torch.rand is curand_uniform4, except that 1 becomes 0. */
static float torch_rand(uint32_t word) {
    const float u = torch_uniform(word);
    return u < 1.0f ? u : 0.0f;
}

static const struct gpu {
    const char *name;
    struct torch_device device;
    uint64_t threads;
    double at_300000, at_1000000; /* of torch.rand(2^20), seed 0; six decimals */
} gpus[] = {
    {"T4", {40, 1024}, 40960, 0.805006, 0.080807},
    {"L4", {58, 1536}, 89088, 0.399685, 0.418403},
    {"A100", {108, 2048}, 221184, 0.808592, 0.531092},
    {"H100 PCIe", {114, 2048}, 233472, 0.549389, 0.177608},
    {"H100 SXM, H200", {132, 2048}, 270336, 0.629571, 0.135510},
};

static double value(const struct gpu *gpu, uint64_t count, uint64_t index) {
    const uint64_t threads = torch_threads(&gpu->device, count);
    return (double)torch_rand(torch_word(0, 0, threads, 1, index));
}

/* The documentation prints four decimals, so half a unit of the last one is allowed. */
static void validate_first_values(void **state) {
    (void)state;
    static const double first[] = {0.3990, 0.5167, 0.0249, 0.9401, 0.9459, 0.7967, 0.4150, 0.8203};
    for (size_t g = 0; g < COUNT_OF(gpus); g++)
        for (size_t i = 0; i < COUNT_OF(first); i++)
            assert_true(fabs(value(&gpus[g], COUNT_OF(first), i) - first[i]) <= 0.5e-4);
}

/* The values are known to six decimals, so half a unit of the last one is allowed. */
static void validate_gpus(void **state) {
    (void)state;
    const uint64_t count = (uint64_t)1 << 20;
    for (size_t g = 0; g < COUNT_OF(gpus); g++) {
        assert_int_equal(torch_threads(&gpus[g].device, count), gpus[g].threads);
        const double a = value(&gpus[g], count, 300000), b = value(&gpus[g], count, 1000000);
        if (fabs(a - gpus[g].at_300000) > 0.5e-6 || fabs(b - gpus[g].at_1000000) > 0.5e-6)
            fail_msg("%s: %.7f %.7f", gpus[g].name, a, b);
    }
}

/* Two GPUs must agree exactly up to the smaller number of resident threads. */
static void verify_divergence_threshold(void **state) {
    (void)state;
    const uint64_t small = gpus[0].threads;
    for (uint64_t i = 0; i < small; i += 97)
        assert_true(value(&gpus[0], 2 * small, i) == value(&gpus[2], 2 * small, i));
    uint64_t differing = 0;
    for (uint64_t i = small; i < 2 * small; i += 97)
        differing += value(&gpus[0], 2 * small, i) != value(&gpus[2], 2 * small, i);
    assert_true(differing > small / 97 - 5);
}

/* The words of one launch must all be distinct draws, whatever the vector width, and launches must
 * not overlap. */
static void verify_vectors_use_each_word_once(void **state) {
    (void)state;
    const uint64_t threads = 512, count = 512 * 16;
    const uint64_t next = torch_advance(count, threads);
    assert_int_equal(next, 16);
    assert_int_equal(torch_advance(0, 256), 0);
    assert_int_equal(torch_advance(1, 256), 4);
    assert_int_equal(torch_advance(1024, 256), 4);
    assert_int_equal(torch_advance(1025, 256), 8);
    for (uint32_t vector = 1; vector <= 4; vector *= 2) {
        uint64_t sum = 0, expected = 0;
        for (uint64_t i = 0; i < count; i++)
            sum += torch_word(9, 8, threads, vector, i);
        for (uint64_t i = 0; i < count; i++)
            expected += torch_word(9, 8, threads, 1, i);
        assert_true(sum == expected);
    }
    assert_true(torch_word(9, 0, threads, 1, 4 * threads) == torch_word(9, 4, threads, 1, 0));
    assert_true(torch_word(9, 0, threads, 4, 1) == torch_word(9, 0, threads, 1, threads));
    assert_true(torch_word(9, 0, threads, 2, 2 * threads) ==
                torch_word(9, 0, threads, 1, 2 * threads));
    assert_true(torch_word(9, 0, threads, 8, 4) == torch_word(9, 4, threads, 1, 0));
}

static void validate_uniform(void **state) {
    (void)state;
    assert_true(torch_uniform(0) == 0x1p-33f);
    assert_true(torch_uniform(UINT32_MAX) == 1.0f);
    assert_true(torch_rand(UINT32_MAX) == 0.0f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_first_values),
        cmocka_unit_test(validate_gpus),
        cmocka_unit_test(verify_divergence_threshold),
        cmocka_unit_test(verify_vectors_use_each_word_once),
        cmocka_unit_test(validate_uniform),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

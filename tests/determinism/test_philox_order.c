/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * cuRAND's Philox drawn without cuRAND, against what cuRAND gave: words of its device functions
 * (curand_init, curand, curand4 and curand_uniform of CUDA 13.0's curand_kernel.h, compiled for the
 * host by g++ 12) and of its host generator (curandCreateGeneratorHost of libcurand 10.4.0),
 * recorded on 2026-11-26. test_curand asks the library itself where there is one; cuda_curand the
 * functions. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/macro.h"
#include "determinism/philox_order.h"

/* Three words by curand(), then four by curand4(), which go on where those ended. */
static const struct {
    uint64_t seed, subsequence, offset;
    uint32_t word[7];
    float uniform; /* of the first word */
} device[] = {
    {0,
     0,
     0,
     {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8, 0xf8e4cca4, 0x5cb200db, 0xb1a574eb},
     0x1.989fa4p-2f},
    {42,
     7,
     0,
     {0x67ee6f2c, 0xe55410cc, 0x6c7eca35, 0x557398d3, 0xe5dde940, 0x600f6196, 0x8fcdf8f1},
     0x1.9fb9bcp-2f},
    {42,
     7,
     5,
     {0x600f6196, 0x8fcdf8f1, 0x2c8ed839, 0x24ecfc6e, 0xf000aacd, 0x571a4cf0, 0xd301a3d5},
     0x1.803d86p-2f},
    {67280421310721,
     270335,
     20000000000,
     {0x742d8afd, 0xfe65491e, 0xff3d1f2b, 0x048ad43d, 0xe3f6af5f, 0x4c7ff241, 0x30be52d8},
     0x1.d0b62cp-2f},
    {UINT64_MAX,
     0x123456789abcdef,
     (UINT64_C(1) << 34) - 2, /* the block's low word overflows */
     {0x38f5de62, 0x99864d11, 0xa9a4f9d7, 0xfeda25fe, 0xe8a6bc9e, 0xb3ebbbe1, 0xd7592fd6},
     0x1.c7aef4p-3f},
    {2385,
     UINT64_MAX,
     (UINT64_C(1) << 40) + 3,
     {0xbde0be1e, 0x17d87c5a, 0x7b390341, 0x55ae788d, 0x00229170, 0xbb2923b8, 0x58d27709},
     0x1.7bc17cp-1f},
};

static void validate_device_functions(void **state) {
    (void)state;
    for (size_t c = 0; c < COUNT_OF(device); c++) {
        for (uint64_t i = 0; i < COUNT_OF(device[c].word); i++)
            assert_int_equal(
                philox_word(device[c].seed, device[c].subsequence, device[c].offset + i),
                device[c].word[i]);
        assert_true(philox_uniform(device[c].word[0]) == device[c].uniform);
    }
}

static const struct {
    uint64_t seed, offset, first; /* the place of word[0] in the array */
    uint32_t word[4];
} host[] = {
    {0, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {42, 0, 0, {0x9ceaf053, 0x77f5493b, 0x12bf50ad, 0x5742b3d7}},
    {42, 0, 4, {0x02933769, 0x2051e913, 0x3b68b038, 0xb62c409c}}, /* of another subsequence */
    {42, 0, 8, {0x65fe70a6, 0x852e5866, 0x6bef1d5a, 0xb11de8b5}},
    {67280421310721, 6, 0, {0xde1c0b42, 0x50da8e40, 0xe293bdd0, 0x8f24911d}},
    {2385, 4 * PHILOX_DEALT_SEQUENCES - 2, 0, {0x37b03928, 0xa202b01c, 0x3b1756c2, 0x2e5d1a75}},
    {0xFEDCBA9876543210,
     (UINT64_C(1) << 51) + 3,
     4,
     {0x450b0743, 0x9485d37c, 0x2554da3e, 0xeecb7a61}},
};

static void validate_host_generator(void **state) {
    (void)state;
    for (size_t c = 0; c < COUNT_OF(host); c++)
        for (uint64_t i = 0; i < COUNT_OF(host[c].word); i++)
            assert_int_equal(philox_dealt_word(host[c].seed, host[c].offset, host[c].first + i),
                             host[c].word[i]);
    /* curandGenerateUniform, seed 42 */
    static const float uniforms[] = {0x1.39d5e0p-1f, 0x1.dfd524p-2f, 0x1.2bf50ap-4f,
                                     0x1.5d0ad0p-2f};
    for (uint64_t i = 0; i < COUNT_OF(uniforms); i++)
        assert_true(philox_uniform(philox_dealt_word(42, 0, i)) == uniforms[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_device_functions),
        cmocka_unit_test(validate_host_generator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

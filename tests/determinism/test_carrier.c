/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The packing of carriers: known patterns of every dtype, NaNs, misfits reported with their index,
 * vectors against one element at a time, and all 65536 halves and 2 * 256 codes of fp8 there and
 * back. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/macro.h"
#include "base/real.h"
#include "determinism/carrier.c" /* for the instruction set that this machine would not choose */
#include "determinism/philox.h"

static const struct {
    enum dtype dtype;
    uint64_t carrier; /* bits */
    uint64_t own;
} values[] = {
    {DTYPE_F32, 0x3F800001u, 0x3F800001u},
    {DTYPE_F32, 0x80000000u, 0x80000000u},
    {DTYPE_F32, 0x00000001u, 0x00000001u},
    {DTYPE_F32, 0xFF800000u, 0xFF800000u},
    {DTYPE_F32, 0x7F800001u, 0x7FC00000u},
    {DTYPE_F32, 0xFFFFFFFFu, 0x7FC00000u},
    {DTYPE_TF32, 0x3F802000u, 0x3F802000u},
    {DTYPE_TF32, 0xFFC00001u, 0x7FC00000u},
    {DTYPE_F64, UINT64_C(0x3FF0000000000001), UINT64_C(0x3FF0000000000001)},
    {DTYPE_F64, UINT64_C(0xFFF0000000000000), UINT64_C(0xFFF0000000000000)},
    {DTYPE_F64, UINT64_C(0xFFF0000000000001), UINT64_C(0x7FF8000000000000)},
    {DTYPE_F64, UINT64_C(0x7FFFFFFFFFFFFFFF), UINT64_C(0x7FF8000000000000)},
    {DTYPE_BF16, 0xC0200000u, 0xC020u},
    {DTYPE_BF16, 0x7F800000u, 0x7F80u},
    {DTYPE_BF16, 0x7F800001u, 0x7FC0u}, /* a NaN whose upper half alone would be infinity */
    {DTYPE_BF16, 0x00010000u, 0x0001u},
    {DTYPE_F16, 0x3F800000u, 0x3C00u},
    {DTYPE_F16, 0xC77FE000u, 0xFBFFu}, /* -65504 */
    {DTYPE_F16, 0x38800000u, 0x0400u}, /* 2^-14, smallest normal */
    {DTYPE_F16, 0x33800000u, 0x0001u}, /* 2^-24, smallest subnormal */
    {DTYPE_F16, 0x387FC000u, 0x03FFu}, /* largest subnormal */
    {DTYPE_F16, 0x80000000u, 0x8000u},
    {DTYPE_F16, 0xFF800000u, 0xFC00u},
    {DTYPE_F16, 0xFFC12345u, 0x7E00u},
    {DTYPE_E4M3, 0x3F800000u, 0x38u},
    {DTYPE_E4M3, 0xC3E00000u, 0xFEu}, /* -448 */
    {DTYPE_E4M3, 0x3C800000u, 0x08u}, /* 2^-6, smallest normal */
    {DTYPE_E4M3, 0x3B000000u, 0x01u}, /* 2^-9, smallest subnormal */
    {DTYPE_E4M3, 0xFFC00000u, 0x7Fu},
    {DTYPE_E5M2, 0x3FA00000u, 0x3Du}, /* 1.25 */
    {DTYPE_E5M2, 0xC7600000u, 0xFBu}, /* -57344 */
    {DTYPE_E5M2, 0x37800000u, 0x01u}, /* 2^-16 */
    {DTYPE_E5M2, 0xFF800000u, 0xFCu},
    {DTYPE_E5M2, 0xFF800001u, 0x7Fu},
};

static const struct {
    enum dtype dtype;
    uint32_t carrier;
} misfits[] = {
    {DTYPE_TF32, 0x3F800001u}, {DTYPE_TF32, 0x3F801000u}, {DTYPE_BF16, 0x3F800001u},
    {DTYPE_BF16, 0x3F808000u}, {DTYPE_F16, 0x3F800001u},  {DTYPE_F16, 0x3F801000u},
    {DTYPE_F16, 0x47800000u},                             /* 65536 */
    {DTYPE_F16, 0x47801000u},  {DTYPE_F16, 0x33000000u},  /* 2^-25 */
    {DTYPE_F16, 0x34400001u},  {DTYPE_F16, 0x33C00000u},  /* 1.5 * 2^-24 */
    {DTYPE_F16, 0x00000001u},  {DTYPE_E4M3, 0x3F880000u}, /* 1.0625 */
    {DTYPE_E4M3, 0x43F00000u}, {DTYPE_E4M3, 0x7F800000u}, /* 480, infinity */
    {DTYPE_E4M3, 0x3A800000u}, {DTYPE_E4M3, 0x3B400000u}, /* 2^-10, 1.5 2^-9 */
    {DTYPE_E5M2, 0x3F900000u}, {DTYPE_E5M2, 0x47800000u}, /* 1.125, 65536 */
    {DTYPE_E5M2, 0x37000000u}, {DTYPE_E5M2, 0x37C00000u}, /* 2^-17, 1.5 2^-16 */
};

static uint64_t pack_value(enum dtype dtype, uint64_t carrier, size_t *packed) {
    uint64_t own = 0;
    *packed = carrier_pack(dtype, &carrier, 1, &own);
    return own;
}

static void validate_values(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        size_t packed;
        assert_int_equal(pack_value(values[i].dtype, values[i].carrier, &packed), values[i].own);
        assert_int_equal(packed, 1);
    }
}

static void validate_misfits(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(misfits); i++) {
        size_t packed;
        (void)pack_value(misfits[i].dtype, misfits[i].carrier, &packed);
        assert_int_equal(packed, 0);
    }
}

/* Every bit that a dtype leaves unused must be found when it alone is set, in the vectors and in
 * the tail. */
static void validate_every_spare_bit(void **state) {
    (void)state;
    static const struct {
        enum dtype dtype;
        unsigned spare;
    } spares[] = {{DTYPE_BF16, 16}, {DTYPE_TF32, 13}, {DTYPE_F16, 13},
                  {DTYPE_F32, 0},   {DTYPE_E4M3, 20}, {DTYPE_E5M2, 21}};
    for (size_t d = 0; d < COUNT_OF(spares); d++) {
        for (unsigned bit = 0; bit < 23; bit++) {
            uint32_t carriers[17];
            uint32_t own[17];
            for (size_t i = 0; i < 17; i++)
                carriers[i] = 0x3F800000u;
            carriers[13] |= 1u << bit;
            const size_t expected = bit < spares[d].spare ? 13 : 17;
            assert_int_equal(carrier_pack(spares[d].dtype, carriers, 17, own), expected);
        }
    }
}

/* The index must be right wherever the misfit is, in the vectors or in the tail. */
static void validate_misfit_index(void **state) {
    (void)state;
    static const enum dtype dtypes[] = {DTYPE_BF16, DTYPE_F16, DTYPE_TF32, DTYPE_E4M3, DTYPE_E5M2};
    for (size_t d = 0; d < COUNT_OF(dtypes); d++) {
        for (size_t at = 0; at < 29; at++) {
            float carriers[29] = {0.0f};
            uint32_t own[29];
            carriers[at] = 0x1.000002p0f;
            if (at + 1 < 29) carriers[at + 1] = 0x1.000002p0f;
            assert_int_equal(carrier_pack(dtypes[d], carriers, 29, own), at);
        }
    }
}

static int has_vectors(enum dtype dtype) {
    return dtype != DTYPE_F16 && dtype_width(dtype) > 1;
}

/* Draws carriers with all kinds of exponents, one in eight NaN, one in eight infinite. */
static void make_carriers(enum dtype dtype, uint32_t *bits, uint32_t count) {
    const uint32_t spare = dtype == DTYPE_BF16 ? 0xFFFFu : dtype == DTYPE_TF32 ? 0x1FFFu : 0u;
    for (uint32_t i = 0; i < count; i++) {
        const struct philox_block draw = philox_draw((struct philox_block){{i, dtype, 0, 0}}, 2385);
        bits[i] = draw.word[0] & ~spare;
        if (draw.word[1] % 8 == 0) bits[i] = draw.word[0] | 0x7F800001u;
        if (draw.word[1] % 8 == 1) bits[i] = (draw.word[0] & 0x80000000u) | 0x7F800000u;
        if (draw.word[1] % 8 == 2) bits[i] = (draw.word[0] & 0x80000000u) | 0x7FF00000u;
        if (draw.word[1] % 8 == 2 && i % 2 == 1) bits[i - 1] = 0u; /* an infinity of f64 */
        if (!has_vectors(dtype)) bits[i] = (draw.word[1] % 16 + 120u) << 23;
    }
}

static void corroborate_vectors_and_elements(void **state) {
    (void)state;
    uint32_t carriers[2 * 67];
    unsigned char together[8 * 67 + 1];
    unsigned char alone[8 * 67 + 1];
    for (int d = 0; d < DTYPE_COUNT; d++) {
        const enum dtype dtype = (enum dtype)d;
        const size_t width = dtype_width(dtype);
        make_carriers(dtype, carriers, 2 * 67);
        for (size_t count = 0; count <= 67; count++) {
            memset(together, 0xAA, sizeof together);
            assert_int_equal(carrier_pack(dtype, carriers, count, together), count);
            for (size_t i = 0; i < count; i++) {
                const unsigned char *const one =
                    (const unsigned char *)carriers + i * dtype_carrier(dtype);
                assert_int_equal(carrier_pack(dtype, one, 1, alone + i * width), 1);
            }
            assert_memory_equal(together, alone, count * width);
            if (has_vectors(dtype) && count % OWN_VECTOR == 0) {
                const unsigned char *const bytes = (const unsigned char *)carriers;
                assert_true(pack_bulk(dtype, bytes, count, alone));
                assert_memory_equal(together, alone, count * width);
            }
            assert_int_equal(together[count * width], 0xAA); /* nothing behind the end */
        }
    }
}

/* Returns the value of a half by its definition; as a float it is exact. */
static float half_value(uint32_t half) {
    const uint32_t exponent = half >> 10 & 31u;
    const float fraction = (float)(half & 1023u);
    float value = exponent == 0 ? fraction * 0x1p-24f : (1024.0f + fraction) * 0x1p-25f;
    for (uint32_t e = 1; e <= exponent && exponent > 0; e++)
        value *= 2.0f;
    return half & 0x8000u ? -value : value;
}

/* Every pattern of two bytes, at every place of a vector: only NaN become other bytes. */
static void verify_folding(void **state) {
    static const struct {
        enum dtype dtype;
        uint32_t infinite;
        uint16_t quiet;
    } formats[] = {{DTYPE_BF16, 0x7F80u, 0x7FC0u}, {DTYPE_F16, 0x7C00u, 0x7E00u}};
    enum { PATTERNS = 65536, ODD = 3 };
    static uint16_t drawn[PATTERNS + ODD], own[PATTERNS + ODD + 1];
    (void)state;
    for (size_t f = 0; f < COUNT_OF(formats); f++)
        for (size_t shift = 0; shift < OWN_VECTOR; shift++) {
            for (size_t i = 0; i < PATTERNS + ODD; i++)
                drawn[i] = (uint16_t)(i * 257 + shift);
            own[PATTERNS + ODD] = 0xAAAAu;
            carrier_fold(formats[f].dtype, drawn, PATTERNS + ODD, own);
            for (size_t i = 0; i < PATTERNS + ODD; i++) {
                const int is_nan = (drawn[i] & 0x7FFFu) > formats[f].infinite;
                assert_int_equal(own[i], is_nan ? formats[f].quiet : drawn[i]);
            }
            assert_int_equal(own[PATTERNS + ODD], 0xAAAAu); /* nothing behind the end */
            fold_bulk((const unsigned char *)drawn, PATTERNS, (unsigned char *)own,
                      (int16_t)formats[f].infinite, formats[f].quiet);
            for (size_t i = 0; i < PATTERNS; i++) {
                const int is_nan = (drawn[i] & 0x7FFFu) > formats[f].infinite;
                assert_int_equal(own[i], is_nan ? formats[f].quiet : drawn[i]);
            }
        }
}

static void verify_all_halves(void **state) {
    (void)state;
    for (uint32_t half = 0; half < 65536; half++) {
        if ((half >> 10 & 31u) == 31u) continue; /* infinity and NaN: validate_values */
        const float value = half_value(half);
        uint16_t own = 0;
        assert_int_equal(carrier_pack(DTYPE_F16, &value, 1, &own), 1);
        assert_int_equal(own, half);
    }
}

/* Returns the value of a code of fp8 with `fraction` bits after the point and this exponent bias,
 * by its definition. */
static float eighth_value(uint32_t code, uint32_t fraction, int bias) {
    const int exponent = (int)((code & 0x7Fu) >> fraction);
    const uint32_t rest = code & ((1u << fraction) - 1u);
    const uint32_t steps = exponent == 0 ? rest : rest + (1u << fraction);
    float value = (float)steps;
    for (int e = (exponent == 0 ? 1 : exponent) - bias - (int)fraction; e != 0; e += e < 0 ? 1 : -1)
        value = e < 0 ? value / 2.0f : value * 2.0f;
    return code & 0x80u ? -value : value;
}

/* Rounding must also leave every one of these values as it is. */
static void verify_all_eighths(void **state) {
    (void)state;
    static const struct {
        enum dtype dtype;
        uint32_t fraction, finite;
        int bias;
    } formats[] = {{DTYPE_E4M3, 3, 0x7E, 7}, {DTYPE_E5M2, 2, 0x7B, 15}};
    for (size_t f = 0; f < COUNT_OF(formats); f++)
        for (uint32_t code = 0; code < 256; code++) {
            if ((code & 0x7Fu) > formats[f].finite)
                continue; /* infinity and NaN: validate_values */
            const float value = eighth_value(code, formats[f].fraction, formats[f].bias);
            unsigned char own = 0;
            assert_int_equal(carrier_pack(formats[f].dtype, &value, 1, &own), 1);
            assert_int_equal(own, code);
            const float rounded = (float)dtype_round((double)value, formats[f].dtype);
            assert_int_equal(real_bits_f32(rounded), real_bits_f32(value));
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_values),
        cmocka_unit_test(validate_misfits),
        cmocka_unit_test(validate_every_spare_bit),
        cmocka_unit_test(validate_misfit_index),
        cmocka_unit_test(corroborate_vectors_and_elements),
        cmocka_unit_test(verify_folding),
        cmocka_unit_test(verify_all_halves),
        cmocka_unit_test(verify_all_eighths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

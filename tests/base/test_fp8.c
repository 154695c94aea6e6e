/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * fp8 against torch's casts, which tests/golden/fp8 holds completely: for every code its value, and
 * the first f32 that is cast to it. Without an argument, every step of the staircase and some
 * 65,000 floats in between are tried; with "all", every one of 2^32 (label nightly). In casts from
 * f64 the steps must lie where they do for real numbers: a double next to one falls on its own
 * side. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/dtype.h"
#include "base/macro.h"
#include "base/real.h"

#define INFINITE_F32 0x7F800000u
#define SIGN_F32 0x80000000u

struct stairs {
    const char *name;
    float (*from_f32)(float);
    float (*from_f64)(double);
    uint32_t first[128]; /* bits of the least magnitude with this code; 0 of code 0 */
    float value[128];
    uint32_t count; /* codes in use */
};

static struct stairs stairs[] = {
    {.name = "e4m3", .from_f32 = real_round_e4m3_f32, .from_f64 = real_round_e4m3_f64},
    {.name = "e5m2", .from_f32 = real_round_e5m2_f32, .from_f64 = real_round_e5m2_f64},
};

static uint32_t stride = 65521;

/* Reads lines such as "e4m3 3f 3ff00000 3fe80001"; value and first are nan and - for codes of
 * NaN. */
static int read_codes(void **state) {
    char line[256], name[8], value[16], first[16];
    unsigned code;
    (void)state;
    FILE *const file = fopen(TWINSTEP_SOURCE_DIR "/tests/golden/fp8/codes.txt", "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        if (line[0] == '#') continue;
        assert_int_equal(sscanf(line, "%7s %x %15s %15s", name, &code, value, first), 4);
        struct stairs *const s = &stairs[strcmp(name, "e5m2") == 0];
        unsigned bits;
        if (strcmp(value, "nan") == 0) continue;
        assert_int_equal(code, s->count);
        assert_int_equal(sscanf(value, "%x", &bits), 1);
        s->value[s->count] = real_from_bits_f32(bits);
        assert_int_equal(sscanf(first, "%x", &bits), 1);
        s->first[s->count++] = bits;
    }
    fclose(file);
    assert_int_equal(stairs[0].count, 127); /* 448 is the last */
    assert_int_equal(stairs[1].count, 125); /* infinity */
    return 0;
}

static void check(const struct stairs *s, uint32_t bits, float expected) {
    const float x = real_from_bits_f32(bits);
    const uint32_t wanted = real_bits_f32(expected) | (bits & SIGN_F32);
    const uint32_t narrow = real_bits_f32(s->from_f32(x));
    const uint32_t wide = real_bits_f32(s->from_f64((double)x));
    if (narrow != wanted || wide != wanted)
        fail_msg("%s of %a: %08x, from f64 %08x, expected %08x", s->name, (double)x,
                 (unsigned)narrow, (unsigned)wide, (unsigned)wanted);
}

static void validate_every_code(void **state) {
    (void)state;
    for (size_t f = 0; f < COUNT_OF(stairs); f++)
        for (uint32_t code = 0; code < stairs[f].count; code++) {
            const struct stairs *const s = &stairs[f];
            check(s, real_bits_f32(s->value[code]), s->value[code]);
            check(s, real_bits_f32(s->value[code]) | SIGN_F32, s->value[code]);
            check(s, s->first[code], s->value[code]);
            check(s, s->first[code] | SIGN_F32, s->value[code]);
            if (code == 0) continue;
            check(s, s->first[code] - 1, s->value[code - 1]);
            check(s, (s->first[code] - 1) | SIGN_F32, s->value[code - 1]);
        }
}

/* NaN must stay NaN, whatever its bits, and the carrier's unused bits must be 0. */
static void verify_nans(void **state) {
    (void)state;
    static const uint32_t spare[] = {0x000FFFFFu, 0x001FFFFFu};
    for (size_t f = 0; f < COUNT_OF(stairs); f++)
        for (uint32_t i = 0; i < 4096; i++) {
            const uint32_t payload = i * 2048 + 1;
            const float x = real_from_bits_f32(INFINITE_F32 | payload | (i % 2) << 31);
            const float narrow = stairs[f].from_f32(x);
            const float wide = stairs[f].from_f64((double)x);
            assert_true(narrow != narrow && wide != wide);
            assert_int_equal(real_bits_f32(narrow) & spare[f], 0);
        }
}

static void corroborate_floats_between(void **state) {
    (void)state;
    for (size_t f = 0; f < COUNT_OF(stairs); f++) {
        const struct stairs *const s = &stairs[f];
        uint32_t code = 0;
        for (uint64_t at = 0; at <= INFINITE_F32; at += stride) {
            const uint32_t bits = (uint32_t)at;
            while (code + 1 < s->count && bits >= s->first[code + 1])
                code++;
            check(s, bits, s->value[code]);
            check(s, bits | SIGN_F32, s->value[code]);
        }
    }
}

/* The tie below code c lies at `first`, or just below it where the tie goes down to an even
 * code. */
static void verify_one_rounding_of_doubles(void **state) {
    (void)state;
    for (size_t f = 0; f < COUNT_OF(stairs); f++) {
        const struct stairs *const s = &stairs[f];
        for (uint32_t code = 1; code < s->count; code++) {
            const float below = s->value[code - 1];
            const double tie =
                s->value[code] <= FLT_MAX ? ((double)below + (double)s->value[code]) / 2 : 61440.0;
            const double above = real_next_up_f64(tie), under = real_next_down_f64(tie);
            assert_true((float)above == (float)tie && (float)under == (float)tie);
            assert_true(s->from_f64(above) == s->value[code]);
            assert_true(s->from_f64(under) == below);
            assert_true(s->from_f64(-above) == -s->value[code]);
            assert_true(s->from_f64(tie) == (code % 2 == 0 ? s->value[code] : below));
        }
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_every_code),
        cmocka_unit_test(verify_nans),
        cmocka_unit_test(corroborate_floats_between),
        cmocka_unit_test(verify_one_rounding_of_doubles),
    };
    if (argc > 1 && strcmp(argv[1], "all") == 0) stride = 1;
    return cmocka_run_group_tests(tests, read_codes, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Stored numbers and the reals that round to them; votes against a count by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/real_round.h"
#include "readback/stored.h"
#include "readback/votes.h"

static uint64_t drawn(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

/* Every bf16 and f16: reading is what widening the bits by hand gives. */
static void validate_stored_halves(void **unused) {
    (void)unused;
    for (uint32_t bits = 0; bits < 65536; bits++) {
        const uint16_t half = (uint16_t)bits;
        const struct stored bf16 = {DTYPE_BF16, (const unsigned char *)&half};
        const struct stored f16 = {DTYPE_F16, (const unsigned char *)&half};
        double value, expected;
        const int exponent = (int)(bits >> 10 & 31), fraction = (int)(bits & 1023);
        const double sign = bits >> 15 ? -1.0 : 1.0;
        const uint32_t wide = bits << 16;
        float as_f32;
        memcpy(&as_f32, &wide, sizeof as_f32);
        stored_get(&bf16, 0, 1, &value);
        if (isnan((double)as_f32))
            assert_true(isnan(value));
        else
            assert_true(value == (double)as_f32);
        stored_get(&f16, 0, 1, &value);
        if (exponent == 31)
            expected = fraction == 0 ? sign * (double)INFINITY : (double)NAN;
        else
            expected = sign * ldexp(exponent == 0 ? fraction : fraction + 1024,
                                    exponent == 0 ? -24 : exponent - 25);
        if (isnan(expected))
            assert_true(isnan(value));
        else
            assert_true(value == expected && !signbit(value) == !signbit(expected));
    }
}

/* The middle and both ends of the interval round to the number, what lies beyond an end does not.
 */
static void verify_interval_is_what_rounds(void **unused) {
    static const enum dtype dtypes[] = {DTYPE_BF16, DTYPE_F16, DTYPE_F32};
    uint64_t state = 18;
    (void)unused;
    for (int i = 0; i < 30000; i++) {
        const enum dtype dtype = dtypes[i % 3];
        const double value = dtype_round(
            ldexp((double)drawn(&state) / 0x1p30 - 1.0, (int)(drawn(&state) % 12) - 11), dtype);
        if (value == 0.0) continue;
        const struct stored_interval at = stored_interval(dtype, value);
        const double width = at.high - at.low;
        assert_true(at.low < value && value < at.high);
        assert_true(dtype_round(at.low + width * 1e-6, dtype) == value);
        assert_true(dtype_round(at.high - width * 1e-6, dtype) == value);
        assert_true(dtype_round(at.low - width * 1e-6, dtype) < value);
        assert_true(dtype_round(at.high + width * 1e-6, dtype) > value);
    }
}

/* The most that any point has, counted at every end. */
static size_t count_by_hand(const struct votes_interval *list, size_t count, double *out_low,
                            double *out_high, size_t lenient) {
    size_t best = 0;
    for (int pass = 0; pass < 2; pass++) {
        *out_low = (double)INFINITY;
        *out_high = -(double)INFINITY;
        for (size_t i = 0; i < 2 * count; i++) {
            const double at = i < count ? list[i].low : list[i - count].high;
            size_t held = 0;
            for (size_t k = 0; k < count; k++)
                held += list[k].low <= at && at <= list[k].high;
            if (pass == 0 && held > best) best = held;
            if (pass == 0 || held + lenient < best) continue;
            *out_low = fmin(*out_low, at);
            *out_high = fmax(*out_high, at);
        }
    }
    return best;
}

static void corroborate_votes(void **unused) {
    struct arena arena = ARENA_EMPTY;
    uint64_t state = 20;
    (void)unused;
    for (int round = 0; round < 400; round++) {
        struct votes_interval list[40];
        struct votes votes;
        const size_t count = 1 + drawn(&state) % COUNT_OF(list), lenient = drawn(&state) % 3;
        double low, high;
        assert_int_equal(votes_open(&votes, 64, &arena), STATUS_OK);
        for (size_t i = 0; i < count; i++) {
            const double a = (double)(drawn(&state) % 24), b = (double)(drawn(&state) % 24);
            list[i] = (struct votes_interval){fmin(a, b), fmax(a, b)};
            votes_add(&votes, list[i].low, list[i].high);
        }
        const size_t best = count_by_hand(list, count, &low, &high, lenient);
        const struct votes_answer answer = votes_count(&votes, lenient);
        assert_int_equal(answer.for_it, best);
        assert_int_equal(answer.count, count);
        if (best > lenient) assert_true(answer.low == low && answer.high == high);
    }
    arena_close(&arena);
}

/* Where more come than there is room for, the narrow ones stay, and they decide. */
static void verify_narrow_ones_stay(void **unused) {
    struct arena arena = ARENA_EMPTY;
    struct votes votes;
    (void)unused;
    assert_int_equal(votes_open(&votes, 16, &arena), STATUS_OK);
    for (int i = 0; i < 1000; i++) {
        const double width = i % 100 == 7 ? 1e-3 : 10.0 + i;
        votes_add(&votes, 5.0 - width, 5.0 + width);
    }
    votes_add(&votes, 2.0, 1.0);
    votes_add(&votes, (double)NAN, 1.0);
    assert_int_equal(votes.asked, 1000);
    const struct votes_answer answer = votes_count(&votes, 0);
    assert_int_equal(answer.for_it, answer.count);
    assert_true(answer.low == 5.0 - 1e-3 && answer.high == 5.0 + 1e-3);
    votes_clear(&votes);
    assert_int_equal(votes_count(&votes, 0).for_it, 0);
    arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_stored_halves),
        cmocka_unit_test(verify_interval_is_what_rounds),
        cmocka_unit_test(corroborate_votes),
        cmocka_unit_test(verify_narrow_ones_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

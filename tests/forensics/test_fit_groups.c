/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Which fits say the same: at which points and between which they are compared, and how they are
 * grouped, once more for random samples. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/macro.h"
#include "forensics/fit.c" /* for the groups, which no other file asks for */
#include "tests/base/helper_draws.h"

enum { ROWS = 400, FITS = 6, POINTS = 3, CASES = 4000 };

static struct series_point points[ROWS];

static void validate_sampled_points(void **state) {
    (void)state;
    for (size_t count = 1; count <= ROWS; count++) {
        const struct series series = {points, count};
        const size_t taken = samples_of(&series);
        size_t before = 0;
        assert_int_equal(taken, count < 64 ? count : 64);
        for (size_t n = 0; n < taken; n++) {
            const size_t at = sample_point(&series, n);
            if (count <= 64 || n < 16)
                assert_int_equal(at, n); /* the ends are where conventions differ */
            else if (n >= 48)
                assert_int_equal(at, count - (64 - n));
            else
                assert_int_equal(at, count * n / 64);
            assert_true(n == 0 || at > before);
            before = at;
        }
        assert_int_equal(before, count - 1);
    }
}

static void validate_updates_between(void **state) {
    (void)state;
    for (uint64_t before = 0; before < 6; before++)
        for (uint64_t now = before + 1; now < before + 9; now++)
            for (uint32_t part = 0; part < 2; part++) {
                uint64_t between[2];
                const struct series series = {points, 2};
                points[0] = (struct series_point){.update = before};
                points[1] = (struct series_point){.update = now, .part = part};
                between_of(&series, 1, between);
                const uint64_t first = now - before > 1 && part == 0 ? before + 1 : now;
                assert_int_equal(between[0], first);
                assert_int_equal(between[1], first < now ? first + (now - first) / 2 : now);
                between_of(&series, 0, between); /* in front of the first one */
                assert_int_equal(between[0], before > 1 ? 1 : before);
                assert_int_equal(between[1], before > 1 ? 1 + (before - 1) / 2 : before);
            }
}

static void validate_equal_samples(void **state) {
    (void)state;
    const double a[] = {1.0, 2.0, (double)NAN};
    for (size_t at = 0; at < 3; at++) {
        double b[3];
        memcpy(b, a, sizeof b);
        assert_true(same(a, b, 3, 0.0));
        b[at] = at == 2 ? 3.0 : (double)NAN;
        assert_int_equal(same(a, b, at, 0.0), 1);
        assert_int_equal(same(a, b, 3, 1e9), 0);
        if (at == 2) continue;
        for (int way = -1; way < 2; way += 2) {
            b[at] = a[at] + way * 0.25;
            assert_true(same(a, b, 3, 0.25));
            assert_false(same(a, b, 3, 0.2499));
        }
    }
}

/* Fits of equal logged columns are one group, those of equal applied ones in it another, and in
 * that those that are equal between the points. */
static void corroborate_groups(void **state) {
    (void)state;
    static struct sample samples[FITS];
    for (uint32_t number = 0; number < CASES; number++) {
        struct draws draws = {.key = UINT64_C(0x69726f7570), .number = number};
        struct fit fits[FITS];
        struct groups groups = {0, 0, 0};
        uint32_t kinds[FITS][3];
        memset(samples, 0, sizeof samples);
        memset(fits, 0, sizeof fits);
        for (size_t n = 0; n < FITS; n++) {
            for (size_t k = 0; k < 3; k++)
                kinds[n][k] = draws_pick(&draws, 2);

            samples[n].logged[2] = (double)kinds[n][0];
            samples[n].applied[2] = (double)kinds[n][1];
            samples[n].between[2 * POINTS - 1] = (double)kinds[n][2];
            group(fits, samples, n, POINTS, 1e-9, &groups);
        }
        uint32_t counted[3] = {0, 0, 0};
        for (size_t n = 0; n < FITS; n++) {
            size_t logged = n, applied = n, throughout = n;
            for (size_t i = n; i-- > 0;) {
                if (kinds[i][0] != kinds[n][0]) continue;
                logged = i;
                if (kinds[i][1] != kinds[n][1]) continue;
                applied = i;
                if (kinds[i][2] == kinds[n][2]) throughout = i;
            }
            assert_int_equal(fits[n].same_logged,
                             logged < n ? fits[logged].same_logged : counted[0]++);
            assert_int_equal(fits[n].same_applied,
                             applied < n ? fits[applied].same_applied : counted[1]++);
            assert_int_equal(fits[n].same_throughout,
                             throughout < n ? fits[throughout].same_throughout : counted[2]++);
        }
        assert_true(groups.logged == counted[0] && groups.applied == counted[1] &&
                    groups.throughout == counted[2]);
        for (size_t n = 1; n < FITS; n++) { /* what stays beyond the limit */
            int has = 0;
            for (size_t i = 0; i < n; i++)
                has |= fits[i].same_applied == fits[n].same_applied;
            assert_int_equal(adds(fits, n, &fits[0]),
                             !has && fits[n].same_logged == fits[0].same_logged);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_sampled_points),
        cmocka_unit_test(validate_updates_between),
        cmocka_unit_test(validate_equal_samples),
        cmocka_unit_test(corroborate_groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

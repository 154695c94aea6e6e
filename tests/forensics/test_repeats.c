/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Runs of other programs that are meant to be the same, at random: how far they are apart, pair by
 * pair, where the first one parts from the others, and whether all roots are equal, each computed
 * once more from the records; and what is refused, on both sides of each limit. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "determinism/statistics.h"
#include "forensics/repeats.h"
#include "tests/base/helper_draws.h"

enum { CASES = 3000, RUNS = 7, ROWS = 5 };

static struct record records[RUNS][ROWS];
static struct trace_run runs[RUNS];
static const struct trace_run *list[RUNS];
static const char *const paths[RUNS] = {"a", "b", "c", "d", "e", "f", "g"};
static struct repeats repeats = {.runs = list, .paths = paths, .writer = "trl 0.24"};

static void open_runs(uint32_t count) {
    memset(records, 0, sizeof records);
    memset(runs, 0, sizeof runs);
    repeats.count = count;
    for (size_t r = 0; r < RUNS; r++) {
        runs[r].plan.configuration = "lr: 1e-4";
        runs[r].plan.id = "baseline";
        runs[r].records = records[r];
        runs[r].updates = ROWS;
        list[r] = &runs[r];
        for (size_t i = 0; i < ROWS; i++) {
            records[r][i].step = i + 1;
            records[r][i].reals[REAL_LOSS] = 2.0;
            records[r][i].reals[REAL_GRAD_NORM] = 1.0;
        }
    }
}

static double apart(double a, double b) {
    if (isnan(a) || isnan(b)) return isnan(a) && isnan(b) ? 0.0 : (double)INFINITY;
    return a == b ? 0.0 : fabs(a - b);
}

static int has_root(const struct record *record) {
    int has = 0;
    for (size_t b = 0; b < RECORD_DIGEST_BYTES; b++)
        has |= record->digests[DIGEST_ROOT][b] != 0;
    return has;
}

/* Losses and norms that differ in one row of eight, or are no numbers; roots that differ, or are
 * none; runs that end sooner. */
static void draw_runs(struct draws *draws) {
    static const double losses[] = {2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.25, 1.5};
    open_runs(2 + draws_pick(draws, RUNS - 1));
    const uint32_t norms = draws_pick(draws, 3), roots = draws_pick(draws, 3);
    const uint32_t same = draws_pick(draws, 3), missing = draws_pick(draws, 4);
    for (size_t r = 0; r < RUNS; r++) {
        runs[r].updates = ROWS - (missing == 0 ? draws_pick(draws, 3) : 0);
        for (size_t i = 0; i < ROWS; i++) {
            struct record *const record = &records[r][i];
            const uint32_t loss = draws_pick(draws, 8), norm = draws_pick(draws, 8),
                           root = draws_pick(draws, 8), none = draws_pick(draws, 16);
            if (same > 0) record->reals[REAL_LOSS] = losses[loss];
            if (same > 0 && none == 0) record->reals[REAL_LOSS] = (double)NAN;
            if (norms == 0) record->reals[REAL_GRAD_NORM] = (double)NAN;
            if (norms == 1) record->reals[REAL_GRAD_NORM] = losses[norm] / 2.0;
            if (norms == 1 && none == 1) record->reals[REAL_GRAD_NORM] = (double)NAN;
            if (roots > 0)
                record->digests[DIGEST_ROOT][RECORD_DIGEST_BYTES - 1] =
                    roots == 1 || root > 1 ? 7 : (uint8_t)root;
        }
    }
}

static void hold_gaps(uint32_t number, const struct repeats_found *out,
                      const struct floor_file *file) {
    static const enum floor_column columns[] = {FLOOR_LOSS, FLOOR_GRAD_NORM};
    static const int reals[] = {REAL_LOSS, REAL_GRAD_NORM};
    int has_norm = 0;
    for (size_t r = 0; r < repeats.count; r++)
        for (size_t i = 0; i < out->updates; i++)
            has_norm |= !isnan(records[r][i].reals[REAL_GRAD_NORM]);
    for (size_t c = 0; c < COUNT_OF(columns); c++) {
        const double *const gaps = file->columns[columns[c]];
        double largest = 0.0;
        uint64_t at = 0;
        if (c == 1 && !has_norm) {
            if (gaps != NULL || !isnan(out->largest[FLOOR_GRAD_NORM]))
                fail_msg("case %u has gaps of norms that nobody recorded", number);
            continue;
        }
        assert_non_null(gaps);
        for (size_t p = 0; p < file->pairs; p++)
            for (size_t i = 0; i < out->updates; i++) {
                const double a = records[2 * p][i].reals[reals[c]];
                double gap = apart(a, records[2 * p + 1][i].reals[reals[c]]);
                if (c == 1 && gap > 0.0 && isfinite(gap)) gap /= fabs(a);
                if (gaps[p * out->updates + i] != gap)
                    fail_msg("case %u, pair %zu, update %zu", number, p, i + 1);
                if (gap > largest) {
                    largest = gap;
                    at = i + 1;
                }
            }
        if (out->largest[columns[c]] != largest || (at > 0 && out->largest_at[columns[c]] != at))
            fail_msg("case %u: the largest gap is %g at %llu", number, largest,
                     (unsigned long long)at);
    }
}

static void corroborate_random_runs(void **state) {
    (void)state;
    size_t exact_count = 0, other_count = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        struct draws draws = {.key = UINT64_C(0x4e9), .number = number};
        struct arena arena = ARENA_EMPTY;
        struct repeats_found out;
        struct floor_file file;
        uint64_t updates = ROWS, other = 0, at = 0;
        int equal = 1, exact = 1;
        draw_runs(&draws);
        assert_int_equal(repeats_measure(&repeats, &arena, &out, &file), STATUS_OK);
        for (size_t r = 0; r < repeats.count; r++)
            if (runs[r].updates < updates) updates = runs[r].updates;
        for (size_t r = 1; r < repeats.count; r++)
            for (size_t i = 0; i < updates; i++) {
                const struct record *const x = &records[0][i], *const y = &records[r][i];
                const int same = apart(x->reals[REAL_LOSS], y->reals[REAL_LOSS]) == 0.0 &&
                                 apart(x->reals[REAL_GRAD_NORM], y->reals[REAL_GRAD_NORM]) == 0.0;
                const int both = has_root(x) && has_root(y);
                const int one = memcmp(x->digests, y->digests, sizeof x->digests) == 0;
                equal &= same;
                exact &= both && one;
                if ((same && (!both || one)) || other > 0) continue;
                other = r;
                at = i + 1;
            }
        if (out.updates != updates || out.equal != equal || out.exact != exact ||
            out.other != other || out.update != at)
            fail_msg("case %u: %llu updates, equal %d, exact %d, run %u at %llu", number,
                     (unsigned long long)out.updates, out.equal, out.exact, out.other,
                     (unsigned long long)out.update);
        assert_int_equal(file.steps, updates);
        assert_int_equal(file.pairs, repeats.count / 2);
        assert_int_equal(file.exact, exact);
        assert_string_equal(file.writer, "trl 0.24");
        assert_non_null(out.where.phase); /* of runs without roots, too */
        assert_non_null(out.where.tensor);
        hold_gaps(number, &out, &file);
        exact_count += exact != 0;
        other_count += other > 0;
        arena_close(&arena);
    }
    assert_true(exact_count > 50 && other_count > 1000);
}

static void hold_refusal(const char *text) {
    struct arena arena = ARENA_EMPTY;
    struct repeats_found out;
    struct floor_file file;
    const enum status status = repeats_measure(&repeats, &arena, &out, &file);
    if (text == NULL) {
        assert_int_equal(status, STATUS_OK);
    } else {
        assert_int_equal(status, STATUS_INPUT);
        if (strstr(status_text(), text) == NULL) fail_msg("%s", status_text());
    }
    arena_close(&arena);
}

static void negate_runs(void **state) {
    (void)state;
    open_runs(2);
    hold_refusal(NULL);
    open_runs(1);
    hold_refusal("floor: expected at least two runs, got 1");
    open_runs(3);
    runs[2].updates = 0;
    hold_refusal("c: expected updates, got none");
    open_runs(3);
    runs[2].updates = 1;
    hold_refusal(NULL);
    open_runs(2);
    records[1][4].step = 6;
    hold_refusal("b: expected updates 1, 2, ..., got update 6 in row 5");
    open_runs(2);
    records[0][0].step = 0;
    hold_refusal("a: expected updates 1, 2, ..., got update 0 in row 1");
    open_runs(3);
    runs[1].plan.configuration = "lr: 2e-4";
    hold_refusal("b: expected the configuration of a, got another one");
}

/* Two arms: the same runs, and runs that are far apart. With 3 and 3 of them the smallest p is 1 of
 * 20 labelings, and a distance between the arms alone has it. */
static void validate_arms(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    double p, least, again, of_all;
    open_runs(6);
    const struct trace_run *const first[] = {&runs[0], &runs[1], &runs[2]};
    const struct trace_run *const second[] = {&runs[3], &runs[4], &runs[5]};
    const struct repeats a = {.count = 3, .runs = first, .paths = paths};
    const struct repeats b = {.count = 3, .runs = second, .paths = paths + 3};
    for (size_t r = 0; r < 6; r++)
        records[r][ROWS - 1].reals[REAL_LOSS] = 2.0 + 0.001 * (double)(r * r % 5);
    assert_int_equal(repeats_against(&a, &b, &arena, &p, &least), STATUS_OK);
    assert_true(p > 0.05);
    for (size_t r = 3; r < 6; r++)
        records[r][ROWS - 1].reals[REAL_LOSS] += 1.0;
    assert_int_equal(repeats_against(&a, &b, &arena, &again, &of_all), STATUS_OK);
    assert_true(again == of_all && of_all == least && again < p);
    runs[1].updates = ROWS - 1; /* the row that differs is no longer one of all */
    for (size_t r = 0; r < 6; r++)
        records[r][0].reals[REAL_LOSS] = 2.0 + 0.001 * (double)(r * r % 5);
    assert_int_equal(repeats_against(&a, &b, &arena, &again, &of_all), STATUS_OK);
    assert_true(again == p);
    arena_close(&arena);
}

/* The p of two arms at random, from distances that are computed once more. */
static void corroborate_arms(void **state) {
    (void)state;
    for (uint32_t number = 0; number < 300; number++) {
        struct draws draws = {.key = UINT64_C(0xa45), .number = number};
        struct arena arena = ARENA_EMPTY;
        double p, least, distances[15];
        struct statistics_p expected;
        const uint32_t of_a = 2 + draws_pick(&draws, 3), apart_by = draws_pick(&draws, 3);
        open_runs(6);
        const struct repeats a = {.count = of_a, .runs = list, .paths = paths};
        const struct repeats b = {.count = 6 - of_a, .runs = list + of_a, .paths = paths + of_a};
        for (size_t r = 0; r < 6; r++)
            for (size_t i = 0; i < ROWS; i++)
                records[r][i].reals[REAL_LOSS] = 2.0 + 0.01 * (double)draws_pick(&draws, 8) +
                                                 0.01 * (double)(r >= of_a ? apart_by : 0);
        runs[draws_pick(&draws, 6)].updates = ROWS - 2;
        for (size_t i = 0; i < 6; i++)
            for (size_t j = i + 1; j < 6; j++) {
                double sum = 0.0;
                for (size_t k = 0; k < ROWS - 2; k++)
                    sum +=
                        pow(records[i][k].reals[REAL_LOSS] - records[j][k].reals[REAL_LOSS], 2.0);
                distances[statistics_pair(6, i, j)] = sqrt(sum / (double)(ROWS - 2));
            }
        assert_int_equal(statistics_test_labels(distances, 6, of_a, &expected), STATUS_OK);
        assert_int_equal(repeats_against(&a, &b, &arena, &p, &least), STATUS_OK);
        if (p != expected.p) fail_msg("case %u: p is %g, and not %g", number, p, expected.p);
        assert_true(least == statistics_labels_least(of_a, 6 - of_a));
        arena_close(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_random_runs),
        cmocka_unit_test(negate_runs),
        cmocka_unit_test(validate_arms),
        cmocka_unit_test(corroborate_arms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * How two columns are put beside each other, part by part and once more for random ones: rows that
 * are sorted and matched, where a column ends before its log does, ratios and fixed offsets between
 * the pairs with what each is known for, and trainings that differ in nothing but the updates that
 * were skipped. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
/* For the parts, which no other file asks for. */
#include "forensics/compare_align.c"
#include "forensics/compare_ratio.c"
#include "forensics/compare_skips.c"
#define holds offset_holds
#include "forensics/compare_offset.c"
#undef holds
#include "tests/base/helper_draws.h"
#include "tests/forensics/helper_fit.h"
#include "tests/forensics/helper_log.h"

enum { ROWS = 40, CASES = 2500 };

static struct arena arena;
static struct series_point points[2][ROWS];
static struct log_column headers[2];
static struct compare_column column;

static void open_column(size_t a, size_t b) {
    arena_close(&arena);
    memset(&column, 0, sizeof column);
    memset(headers, 0, sizeof headers);
    const size_t counts[2] = {a, b};
    for (size_t s = 0; s < 2; s++) {
        column.side[s].column = &headers[s];
        column.side[s].points = points[s];
        column.side[s].count = counts[s];
    }
}

/* Ascending updates of two sides, most of them of both, and small whole numbers. */
static void draw_column(struct draws *draws) {
    size_t counts[2] = {0, 0};
    const size_t most = 1 + draws_pick(draws, ROWS - 1);
    const uint32_t rare = 1 + draws_pick(draws, 8);
    for (uint64_t k = 1; k <= most; k++)
        for (size_t s = 0; s < 2; s++) {
            if (draws_pick(draws, rare + 1) == 0) continue;
            static const double odd[] = {0.0, (double)NAN, (double)INFINITY, -(double)INFINITY};
            struct series_point *const p = &points[s][counts[s]++];
            const uint32_t kind = draws_pick(draws, 20);
            *p = (struct series_point){.update = 2 * k, .row = k};
            p->value = kind < 4 ? odd[kind] : (double)draws_pick(draws, 5) - 1.0;
            p->quantum = draws_pick(draws, 3) == 0 ? 0.0 : draws_pick(draws, 2) == 0 ? 0.5 : 1.5;
        }
    open_column(counts[0], counts[1]);
}

/* ---- pairs ---- */

static void corroborate_pairs(void **state) {
    (void)state;
    size_t unlike = 0, differ = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        struct draws draws = {.key = UINT64_C(0xa119), .number = number};
        draw_column(&draws);
        for (size_t s = 0; s < 2; s++) {
            headers[s].windowed = draws_pick(&draws, 4) == 0;
            headers[s].cumulative = draws_pick(&draws, 6) == 0;
            if (draws_pick(&draws, 12) == 0) column.side[s] = (struct compare_side){.count = 0};
        }
        const struct compare_side *const a = &column.side[0], *const b = &column.side[1];
        struct compare_column want;
        memset(&want, 0, sizeof want);
        for (size_t s = 0; s < 2; s++)
            for (size_t i = column.side[s].count; i-- > 0;)
                if (isfinite(points[s][i].value)) want.start[s] = points[s][i];
        const int alike = a->column != NULL && b->column != NULL &&
                          headers[0].cumulative == headers[1].cumulative;
        for (size_t i = 0; i < a->count && alike; i++)
            for (size_t j = 0; j < b->count; j++) {
                const struct series_point *const x = &points[0][i], *const y = &points[1][j];
                if (x->update != y->update) continue;
                const uint64_t before[2] = {i > 0 ? x[-1].update : 0, j > 0 ? y[-1].update : 0};
                if ((headers[0].windowed || headers[1].windowed) && before[0] != before[1]) {
                    want.unlike++;
                    continue;
                }
                const enum log_order order =
                    log_compare(x->value, x->quantum, y->value, y->quantum);
                if (want.pairs++ == 0) want.from = x->update;
                want.to = x->update;
                const struct series_point *const pair[2] = {x, y};
                for (size_t s = 0; s < 2; s++)
                    if (isfinite(pair[s]->value) &&
                        fabs(pair[s]->value - want.start[s].value) >
                            0.5 * (pair[s]->quantum + want.start[s].quantum))
                        want.moves = 1;
                const int numbers = isfinite(x->value) && isfinite(y->value);
                if (numbers) want.last_number = x->update;
                if (!numbers && order == LOG_EQUAL) want.not_finite++;
                want.equal += order == LOG_EQUAL;
                want.within += order == LOG_WITHIN;
                if (order != LOG_DIFFERENT) continue;
                const double apart =
                    numbers ? fabs(x->value - y->value) / fmax(fabs(x->value), fabs(y->value))
                            : (double)INFINITY;
                if (want.different++ == 0) {
                    want.first_update = x->update;
                    want.first[0] = *x;
                    want.first[1] = *y;
                    want.largest = apart;
                    want.largest_update = x->update;
                } else if (apart > want.largest) {
                    want.largest = apart;
                    want.largest_update = x->update;
                }
            }
        compare_classify(&column);
        const int class_of = want.pairs == 0      ? COMPARE_ABSENT
                             : want.different > 0 ? COMPARE_DIFFERENT
                             : want.within > 0    ? COMPARE_WITHIN
                                                  : COMPARE_EQUAL;
        if (column.class_of != class_of || column.pairs != want.pairs ||
            column.equal != want.equal || column.within != want.within ||
            column.different != want.different || column.unlike != want.unlike)
            fail_msg("case %u: %zu pairs for %zu", number, column.pairs, want.pairs);
        assert_true(column.from == want.from && column.to == want.to);
        assert_true(column.moves == want.moves && column.not_finite == want.not_finite);
        assert_true(column.last_number == want.last_number);
        assert_true(column.first_update == want.first_update);
        assert_true(column.start[0].update == want.start[0].update);
        assert_true(column.start[1].update == want.start[1].update);
        unlike += want.unlike > 0;
        differ += want.different > 0;
        assert_true(column.largest == want.largest);
        assert_true(column.largest_update == want.largest_update);
        if (want.different > 0) {
            assert_true(column.first[0].row == want.first[0].row);
            assert_true(column.first[1].quantum == want.first[1].quantum);
        }
        const char *const why = a->column == NULL   ? "only B has it"
                                : b->column == NULL ? "only A has it"
                                : !alike ? "one is a running total, the other is of each update"
                                : want.unlike > 0 ? "means over different windows"
                                                  : "no update is in both";
        if (class_of == COMPARE_ABSENT)
            assert_string_equal(column.why, why);
        else
            assert_null(column.why);
    }
    assert_true(unlike > 100 && differ > 500);
}

static void corroborate_sorting(void **state) {
    (void)state;
    size_t dense = 0, repeated = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        struct draws draws = {.key = UINT64_C(0x5047), .number = number};
        arena_close(&arena);
        const size_t rows = 1 + draws_pick(&draws, 16);
        struct log *const log = helper_log(&arena, rows);
        const uint32_t back = draws_pick(&draws, 4), holes = draws_pick(&draws, 3);
        for (size_t i = 0; i < rows; i++) {
            if (back == 0) log->step[i] = (int64_t)draws_pick(&draws, 12);
            if (holes > 0 || draws_pick(&draws, 4) > 0)
                helper_put(&arena, log, LOG_LOSS, i, 1.0 + (double)i, 2);
        }
        struct compare_side side;
        assert_int_equal(compare_align(log, LOG_LOSS, &arena, &side), STATUS_OK);
        const struct log_column *const loss = log_column_of(log, LOG_LOSS);
        assert_ptr_equal(side.column, loss);
        if (loss == NULL) continue;
        int64_t last = 0, widest = 0, reach = 0;
        size_t count = 0, rows_with = 0;
        for (int64_t update = 1; update < 20; update++) { /* the last row of each update */
            size_t at = rows;
            for (size_t i = 0; i < rows; i++)
                if (log->step[i] == update && log_has(loss, i)) at = i, rows_with++;
            if (at == rows) continue;
            assert_true(count < side.count);
            const struct series_point p = compare_point(&side, count++);
            assert_true(p.update == (uint64_t)update && p.row == at);
            assert_true(p.value == loss->value[at] && p.quantum == (double)loss->quantum[at]);
            assert_int_equal(p.part, log->part[at]);
        }
        assert_int_equal(side.count, count);
        assert_int_equal(side.repeated, rows_with - count);
        dense += side.points == NULL;
        repeated += side.repeated > 0;
        for (size_t i = 0; i < rows; i++) {
            if (log->step[i] > last && last > 0 && log->step[i] - last > widest)
                widest = log->step[i] - last;
            if (log->step[i] > last) last = log->step[i];
            reach = log->step[i] > reach ? log->step[i] : reach;
        }
        assert_int_equal(compare_reach(log), reach);
        assert_int_equal(compare_widest(log), widest > 0 ? widest : last);
    }
    assert_true(dense > 300 && repeated > 100);
}

/* A column ends where its rows stop for as long as they are apart at most, while the other goes on.
 */
static void corroborate_ends(void **state) {
    (void)state;
    size_t ended[3] = {0, 0, 0};
    for (uint32_t number = 0; number < CASES; number++) {
        struct draws draws = {.key = UINT64_C(0xe9d5), .number = number};
        int64_t steps[2];
        struct log logs[2];
        draw_column(&draws);
        for (size_t s = 0; s < 2; s++) {
            steps[s] = 2 + (int64_t)draws_pick(&draws, 90);
            logs[s] = (struct log){.rows = 1, .step = &steps[s]};
            if (draws_pick(&draws, 2) == 0)
                column.side[s].count = draws_pick(&draws, (uint32_t)column.side[s].count + 1);
        }
        uint64_t before = 0;
        int in = 0;
        for (int s = 0; s < 2; s++) {
            const size_t count = column.side[s].count, other = column.side[1 - s].count;
            if (count == 0 || other == 0) continue;
            const uint64_t last = points[s][count - 1].update;
            uint64_t widest = points[s][0].update, next = 0;
            for (size_t i = 1; i < count; i++)
                if (points[s][i].update - points[s][i - 1].update > widest)
                    widest = points[s][i].update - points[s][i - 1].update;
            for (size_t i = other; i-- > 0;)
                if (points[1 - s][i].update > last) next = points[1 - s][i].update;
            if ((uint64_t)steps[s] < last + widest || next == 0 || next > (uint64_t)steps[s])
                continue;
            before = next;
            in = s;
        }
        compare_find_end(&column, (const struct log *const[]){&logs[0], &logs[1]});
        if (column.ends_before != before || column.ends_in != in)
            fail_msg("case %u: %ju in %d", number, (uintmax_t)column.ends_before, column.ends_in);
        ended[before == 0 ? 2 : in]++;
    }
    assert_true(ended[0] > 50 && ended[1] > 50 && ended[2] > 500);
}

static void corroborate_medians(void **state) {
    (void)state;
    for (uint32_t number = 0; number < CASES; number++) {
        struct draws draws = {.key = UINT64_C(0x3ed1), .number = number};
        struct compare_sorted sorted = {.count = 0};
        double kept[COMPARE_ROWS];
        size_t count = 0;
        sorted.values[0] = 7.0;
        const uint32_t offered = draws_pick(&draws, COMPARE_ROWS + 8);
        for (uint32_t i = 0; i < offered; i++) {
            const uint32_t kind = draws_pick(&draws, 30);
            const double x = kind == 0   ? (double)NAN
                             : kind == 1 ? (double)INFINITY
                                         : (double)draws_pick(&draws, 50);
            compare_keep(&sorted, x);
            if (kind > 1 && count < COMPARE_ROWS) kept[count++] = x;
        }
        const double median = compare_median(&sorted);
        assert_int_equal(sorted.count, count);
        assert_int_equal(isnan(median), count == 0);
        size_t below = 0, same = 0;
        for (size_t i = 0; i < count; i++)
            below += kept[i] < median, same += kept[i] == median;
        if (count > 0) assert_true(below <= count / 2 && count / 2 < below + same);
    }
}

/* ---- ratios ---- */

static void corroborate_intervals(void **state) {
    (void)state;
    size_t some = 0, against = 0;
    static const double values[] = {
        0.0, 0.5, 1.0, -1.0, 2.0, -2.0, 3.0, (double)NAN, (double)INFINITY};
    static const double quanta[] = {0.0, 0.25, 0.5, 1.0, 2.0};
    for (size_t i = 0; i < COUNT_OF(values); i++)
        for (size_t j = 0; j < COUNT_OF(values); j++)
            for (size_t p = 0; p < COUNT_OF(quanta); p++)
                for (size_t q = 0; q < COUNT_OF(quanta); q++) {
                    const struct series_point a = {.value = values[i], .quantum = quanta[p]},
                                              b = {.value = values[j], .quantum = quanta[q]};
                    const struct interval r = ratios_of(&a, &b);
                    const double x = fabs(a.value), y = fabs(b.value);
                    const int is = isfinite(x) && isfinite(y) && x > quanta[p] && y > quanta[q] &&
                                   (a.value > 0.0) == (b.value > 0.0);
                    assert_int_equal(r.low <= r.high, is);
                    some += is != 0;
                    if (is) {
                        assert_true(r.low == (x - 0.5 * quanta[p]) / (y + 0.5 * quanta[q]));
                        assert_true(r.high == (x + 0.5 * quanta[p]) / (y - 0.5 * quanta[q]));
                    }
                    for (int f = 1; f < 4; f++) {
                        /* One prints as 0, and the other is more than the factor makes of what
                         * that may be. */
                        const int zero_a =
                            a.value == 0.0 && f * (y - 0.5 * quanta[q]) > 0.5 * quanta[p];
                        const int zero_b =
                            b.value == 0.0 && x - 0.5 * quanta[p] > f * 0.5 * quanta[q];
                        const int speaks = isfinite(x) && isfinite(y) && (zero_a || zero_b);
                        assert_int_equal(speaks_against(&a, &b, f), speaks);
                        against += speaks != 0;
                    }
                }
    assert_true(some > 200 && against > 200);
    for (int n = -2; n <= 2; n++) { /* drift widens either end */
        const struct interval r = {2.0, 4.0}, empty = {4.0, 2.0};
        const double step = n * 0x1p-20;
        assert_int_equal(holds(r, 1.5 + step, 0.25), n >= 0);
        assert_int_equal(holds(r, 5.0 + step, 0.25), n <= 0);
        assert_false(holds(empty, 3.0 + step, 0.25));
    }
}

/* Of whole numbers from 2 to 1024, those that are no square's root, and what divides by them, the
 * ones within a thousandth of x. */
static size_t candidates_near(double x) {
    size_t count = 0;
    for (int n = 2; n <= 1024; n++) {
        const double root = sqrt((double)n);
        const double all[] = {(double)n, 1.0 / n, root, 1.0 / root};
        for (size_t i = 0; i < (fabs(root - round(root)) < 1e-12 ? 2u : 4u); i++)
            count += all[i] >= x * 0.999 && all[i] <= x * 1.001;
    }
    return count;
}

static void validate_candidates(void **state) {
    (void)state;
    for (uint64_t n = 2; n <= 1024; n++) {
        const size_t at = 4 * (size_t)(n - 2);
        const int square = fabs(sqrt((double)n) - round(sqrt((double)n))) < 1e-12;
        const struct candidate whole = candidate_at(at), inverse = candidate_at(at + 1),
                               root = candidate_at(at + 2), other = candidate_at(at + 3);
        assert_true(whole.kind == COMPARE_FACTOR_WHOLE && whole.factor == (double)n);
        assert_true(inverse.kind == COMPARE_FACTOR_INVERSE && inverse.factor == 1.0 / (double)n);
        assert_true(whole.n == n && inverse.n == n && root.n == n && other.n == n);
        assert_int_equal(root.kind, square ? COMPARE_FACTOR_NONE : COMPARE_FACTOR_ROOT);
        assert_int_equal(other.kind, square ? COMPARE_FACTOR_NONE : COMPARE_FACTOR_ROOT_INVERSE);
        assert_true(root.factor == sqrt((double)n) && other.factor == 1.0 / sqrt((double)n));
        struct candidate found = candidate_in((struct interval){(double)n, (double)n});
        const int alone = candidates_near((double)n) == 1;
        if ((found.kind == COMPARE_FACTOR_WHOLE && found.n == n) != alone)
            fail_msg("%ju: kind %d", (uintmax_t)n, found.kind);
        found = candidate_in((struct interval){1.0 / (double)n, 1.0 / (double)n});
        assert_int_equal(found.kind == COMPARE_FACTOR_INVERSE && found.n == n,
                         candidates_near(1.0 / (double)n) == 1);
    }
    /* More processes than any run has: 1025 is near enough to this, and 1024 no longer. */
    const double past = 1024.5 * (1.0 + FIRST_DRIFT);
    assert_int_equal(candidate_in((struct interval){past, past}).kind, COMPARE_FACTOR_NONE);
    /* 1024 is the last of them: 1024.9 is within its drift alone, and 1026 would be 1025. */
    for (int inverse = 0; inverse < 2; inverse++)
        for (int beyond = 0; beyond < 2; beyond++) {
            const double n = beyond ? 1026.0 : 1024.9, ratio = inverse ? 1.0 / n : n;
            const struct candidate last = candidate_in((struct interval){ratio, ratio});
            const int32_t kind = inverse ? COMPARE_FACTOR_INVERSE : COMPARE_FACTOR_WHOLE;
            assert_int_equal(last.kind, beyond ? COMPARE_FACTOR_NONE : kind);
            assert_int_equal(last.n, beyond ? 0 : 1024);
        }
    assert_int_equal(candidate_in((struct interval){2.0, 3.0}).kind, COMPARE_FACTOR_NONE);
    assert_int_equal(candidate_in((struct interval){1.1, 1.2}).kind, COMPARE_FACTOR_NONE);
    assert_int_equal(candidate_in((struct interval){1.4142, 1.4143}).kind, COMPARE_FACTOR_ROOT);
    assert_int_equal(candidate_in((struct interval){0.7071, 0.7072}).kind,
                     COMPARE_FACTOR_ROOT_INVERSE);
}

static void corroborate_held(void **state) {
    (void)state;
    size_t convinced = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        struct draws draws = {.key = UINT64_C(0x4e1d), .number = number};
        static struct series_point counts[ROWS];
        struct compare_side tokens = {.points = counts};
        struct compare_ratio is = {.factor = 2.0}, want = {.factor = 2.0};
        draw_column(&draws);
        const uint32_t exact = 2 + draws_pick(&draws, 30);
        for (size_t i = 0; i < column.side[0].count;
             i++) /* most pairs are 2 to 1, or within drift */
            for (size_t j = 0; j < column.side[1].count; j++) {
                if (points[0][i].update != points[1][j].update) continue;
                if (draws_pick(&draws, exact) == 0) continue;
                static const double off[] = {1.0, 1.0009, 1.0011, 1.0049, 1.0051, 0.9951, 0.9949};
                points[1][j].value = 3.0;
                points[0][i].value = 6.0 * off[draws_pick(&draws, COUNT_OF(off))];
                points[0][i].quantum = points[1][j].quantum = 0.0;
            }
        const int with = draws_pick(&draws, 2) == 0;
        for (uint64_t k = 1; k < ROWS; k++) {
            if (draws_pick(&draws, 8) == 0) continue;
            counts[tokens.count] = (struct series_point){.update = 2 * k};
            counts[tokens.count++].value = draws_pick(&draws, 6) == 0 ? 1.0 : 2.0;
        }
        is.kind = want.kind =
            with ? COMPARE_FACTOR_TOKENS + (int)draws_pick(&draws, 2) : COMPARE_FACTOR_WHOLE;
        is.pairs = is.held = 99;
        is.first_exact = want.first_exact = 1;
        for (size_t i = 0; i < column.side[0].count; i++)
            for (size_t j = 0; j < column.side[1].count; j++) {
                const struct series_point *const x = &points[0][i], *const y = &points[1][j];
                if (x->update != y->update) continue;
                double factor = want.factor;
                const struct interval r = ratios_of(x, y);
                if (!with && speaks_against(x, y, factor)) {
                    if (want.pairs++ == 0) want.first_exact = 0;
                    continue;
                }
                if (r.low > r.high) continue;
                if (with) {
                    double count = (double)NAN;
                    for (size_t t = 0; t < tokens.count; t++)
                        if (counts[t].update == x->update) count = counts[t].value;
                    assert_false(isnan(value_at(&tokens, x->update)) != isnan(count));
                    if (!(count > 1.0)) continue;
                    factor = want.kind == COMPARE_FACTOR_TOKENS ? count : 1.0 / count;
                }
                if (want.pairs++ == 0) {
                    want.first_exact = factor >= r.low * 0.999 && factor <= r.high * 1.001;
                    want.factor = factor;
                }
                want.held += factor >= r.low * 0.995 && factor <= r.high * 1.005;
            }
        count_held(&column, with ? &tokens : NULL, &is);
        if (is.pairs != want.pairs || is.held != want.held || is.factor != want.factor ||
            is.first_exact != want.first_exact)
            fail_msg("case %u: %zu of %zu for %zu of %zu", number, is.held, is.pairs, want.held,
                     want.pairs);
        const int convincing = want.first_exact && want.pairs >= 4 &&
                               (double)want.held >= 0.8 * (double)want.pairs - 1e-9;
        assert_int_equal(convinces(&is), convincing);
        convinced += convincing != 0;
    }
    assert_true(convinced > 100);
    assert_true(isnan(value_at(NULL, 1)));
}

/* What an offset is known for, by column, and where it is taken in place of a ratio. */
static void validate_offsets_known(void **state) {
    (void)state;
    static const struct {
        int32_t name;
        const char *meaning;
    } cases[] = {
        {LOG_LOSS, "such as a term that is in one loss alone and hardly changes (an auxiliary "
                   "loss, a penalty)"},
        {LOG_LOGP_CHOSEN, "such as tokens that one sum alone counts and that are alike in every "
                          "row (of a template, the end of a text)"},
        {LOG_LOGP_REJECTED, "such as tokens that one sum alone counts and that are alike in every "
                            "row (of a template, the end of a text)"},
        {LOG_REWARD_CHOSEN, "such as another reference"},
        {LOG_REWARD_REJECTED, "such as another reference"},
        {LOG_REWARD_MARGIN, "such as another reference"},
        {LOG_LOGITS_CHOSEN, "something is added to one of the two"}};
    for (size_t c = 0; c < COUNT_OF(cases); c++)
        for (int kind = COMPARE_FACTOR_NONE; kind <= COMPARE_FACTOR_CONSTANT; kind++)
            for (int reading = COMPARE_READ_FACTOR; reading <= COMPARE_READ_EITHER; reading++) {
                struct compare_ratio ratio = {.name = cases[c].name,
                                              .kind = kind,
                                              .factor = 2.0,
                                              .meaning = "before",
                                              .bug = "a bug"};
                const struct compare_ratio apart = {
                    .name = cases[c].name, .factor = 1.5, .offset = 0.5, .pairs = 9};
                weigh_offset(&apart, (enum compare_reading)reading, &ratio);
                const int free_kind =
                    kind == COMPARE_FACTOR_NONE || kind == COMPARE_FACTOR_CONSTANT;
                if (reading == COMPARE_READ_OFFSET) {
                    assert_int_equal(ratio.kind, COMPARE_FACTOR_OFFSET);
                    assert_true(ratio.factor == 0.0 && ratio.offset == 0.5 && ratio.pairs == 9);
                    assert_string_equal(ratio.meaning, cases[c].meaning);
                    assert_string_equal(ratio.bug, "");
                } else if (reading == COMPARE_READ_EITHER && free_kind) {
                    assert_int_equal(ratio.kind, COMPARE_FACTOR_EITHER);
                    assert_true(ratio.factor == 1.5 && ratio.offset == 0.5);
                    assert_string_equal(ratio.meaning, "the columns vary too little to tell which");
                    assert_string_equal(ratio.bug, "");
                } else {
                    assert_true(ratio.kind == kind && ratio.factor == 2.0);
                    assert_string_equal(ratio.meaning, "before");
                }
            }
}

/* Offsets between random pairs, with the rests of both readings summed anew. */
static void corroborate_offsets(void **state) {
    (void)state;
    size_t readings[3] = {0, 0, 0};
    for (uint32_t number = 0; number < CASES; number++) {
        struct draws draws = {.key = UINT64_C(0x0ff5), .number = number};
        struct compare_ratio is = {.factor = 7.0};
        const size_t count = 1 + draws_pick(&draws, ROWS - 1);
        const uint32_t vary = draws_pick(&draws, 4), how = draws_pick(&draws, 5);
        double differences[ROWS], ratios[ROWS];
        size_t d = 0, r = 0, pairs = 0, held = 0;
        int first = 0;
        open_column(count, count);
        column.name = how == 4 && draws_pick(&draws, 2) == 0 ? LOG_GRAD_NORM : LOG_LOSS;
        for (size_t i = 0; i < count; i++) {
            static const double spans[] = {0.0, 0.25, 4.0, 40.0};
            const double y = 10.0 + spans[vary] * (double)draws_pick(&draws, 8) / 8.0;
            const uint32_t odd = draws_pick(&draws, 24);
            for (size_t s = 0; s < 2; s++)
                points[s][i] = (struct series_point){.update = i + 1, .row = i, .value = y};
            points[0][i].value = how == 0 ? 1.05 * y : how == 1 ? y + 0.5 : y + 0.53;
            points[0][i].value += 0.01 * ((double)draws_pick(&draws, 9) - 4.0) * (how > 2);
            if (odd == 0) points[0][i].value = (double)NAN;
            if (odd == 1) points[1][i].value = (double)INFINITY;
            if (odd == 2) points[1][i].value = 0.0;
            if (odd == 3) points[0][i].value += 1.0;
            if (how == 2) points[0][i].quantum = points[1][i].quantum = 0.125;
        }
        for (size_t i = 0; i < count && d < COMPARE_ROWS; i++) {
            const double a = points[0][i].value, b = points[1][i].value;
            if (!isfinite(a) || !isfinite(b)) continue;
            differences[d++] = a - b;
            if (b != 0.0) ratios[r++] = a / b;
        }
        struct compare_sorted of_d = {.count = 0}, of_r = {.count = 0};
        for (size_t i = 0; i < d; i++)
            compare_keep(&of_d, differences[i]);
        for (size_t i = 0; i < r; i++)
            compare_keep(&of_r, ratios[i]);
        const double offset = compare_median(&of_d), factor = compare_median(&of_r);
        double rest_offset = 0.0, rest_factor = 0.0, scatter = 0.0;
        for (size_t i = 0; i < count; i++) {
            const double a = points[0][i].value, b = points[1][i].value;
            if (!isfinite(a) || !isfinite(b)) continue;
            const double quanta = points[0][i].quantum + points[1][i].quantum;
            const double room =
                0.5 * quanta + fmin(0.005 * fmax(fabs(a), fabs(b)), 0.1 * fabs(offset));
            const int near = fabs(a - b - offset) <= room && fabs(offset) > 2.0 * quanta;
            if (pairs++ == 0) first = near;
            held += near != 0;
            rest_offset += (a - b - offset) * (a - b - offset);
            rest_factor += (a - factor * b) * (a - factor * b);
            if (near) scatter += (a - b - offset) * (a - b - offset);
        }
        const enum compare_reading got = compare_find_offset(&column, &is);
        int want = COMPARE_READ_FACTOR;
        if (column.name == LOG_LOSS) {
            assert_true(is.pairs == pairs && is.held == held && is.first_exact == first);
            if (held > 0)
                assert_true(fabs(is.scatter - sqrt(scatter / (double)held)) < 1e-12);
            else
                assert_true(is.scatter == 0.0);
            if (first && pairs >= 4 && 5 * held >= 4 * pairs) {
                assert_true(is.factor == factor || isnan(factor));
                want = !(rest_factor <= 4.0 * rest_offset) ? COMPARE_READ_OFFSET
                       : 4.0 * rest_factor < rest_offset   ? COMPARE_READ_FACTOR
                                                           : COMPARE_READ_EITHER;
                /* Sums that meet the border but for rounding. */
                if (fabs(rest_factor - 4.0 * rest_offset) < 1e-12 ||
                    fabs(4.0 * rest_factor - rest_offset) < 1e-12)
                    continue;
            }
        }
        if ((int)got != want) fail_msg("case %u: reading %d for %d", number, (int)got, want);
        readings[want]++;
    }
    assert_true(readings[0] > 100 && readings[1] > 100 && readings[2] > 50);
}

static void validate_ratios(void **state) {
    (void)state;
    /* A constant of a narrow interval that is a hundredth from 1 or more. */
    static const double factors[] = {1.005, 1.0099, 1.0101, 1.37, 0.9901, 0.9899, 2.0};
    for (size_t f = 0; f < COUNT_OF(factors); f++)
        for (size_t rows = 3; rows < 7; rows++) {
            struct compare_ratio ratio;
            open_column(rows, rows);
            column.name = LOG_GRAD_NORM;
            column.class_of = COMPARE_DIFFERENT;
            for (size_t i = 0; i < rows; i++) {
                points[1][i] =
                    (struct series_point){.update = i + 1, .value = 1.0 + 0.5 * (double)i};
                points[0][i] = points[1][i];
                points[0][i].value *= factors[f];
            }
            assert_int_equal(compare_find_ratio(&column, NULL, &ratio), STATUS_OK);
            const int far = f == 2 || f == 3 || f > 4;
            const int kind = rows < 4 || !far ? COMPARE_FACTOR_NONE
                             : f == 6         ? COMPARE_FACTOR_WHOLE
                                              : COMPARE_FACTOR_CONSTANT;
            if (ratio.kind != kind) fail_msg("%g: kind %d", factors[f], ratio.kind);
            if (kind == COMPARE_FACTOR_CONSTANT)
                assert_true(fabs(ratio.factor - factors[f]) < 1e-9);
            column.class_of = COMPARE_WITHIN;
            assert_int_equal(compare_find_ratio(&column, NULL, &ratio), STATUS_OK);
            assert_int_equal(ratio.kind, COMPARE_FACTOR_NONE);
            /* An interval wider than two thousandths names no constant. */
            column.class_of = COMPARE_DIFFERENT;
            for (size_t i = 0; i < rows; i++)
                points[0][i].quantum = 0.003;
            assert_int_equal(compare_find_ratio(&column, NULL, &ratio), STATUS_OK);
            assert_int_equal(ratio.kind,
                             rows >= 4 && f == 6 ? COMPARE_FACTOR_WHOLE : COMPARE_FACTOR_NONE);
        }
}

/* A constant is named where the first pair leaves at most two thousandths of it open, however large
 * it is. */
static void validate_widths_of_constants(void **state) {
    (void)state;
    static const double factors[] = {5.5, 1.37, 1.0 / 5.5};
    for (size_t f = 0; f < COUNT_OF(factors); f++)
        for (int wide = 0; wide < 2; wide++) {
            struct compare_ratio ratio;
            open_column(5, 5);
            column.name = LOG_GRAD_NORM;
            column.class_of = COMPARE_DIFFERENT;
            for (size_t i = 0; i < 5; i++) {
                points[1][i] =
                    (struct series_point){.update = i + 1, .value = 1.0 + 0.5 * (double)i};
                points[0][i] = points[1][i];
                points[0][i].value *= factors[f];
                points[0][i].quantum = (wide ? 0.00201 : 0.00199) * factors[f];
            }
            assert_int_equal(compare_find_ratio(&column, NULL, &ratio), STATUS_OK);
            assert_int_equal(ratio.kind, wide ? COMPARE_FACTOR_NONE : COMPARE_FACTOR_CONSTANT);
        }
}

/* Digits that leave more than two thousandths open name no constant, and tokens all the same. */
static void validate_coarse_tokens(void **state) {
    (void)state;
    static struct series_point counts[ROWS];
    static struct log_column of_tokens;
    for (size_t rows = 3; rows < 7; rows++)
        for (int how = 0; how < 5; how++) {
            const struct compare_side tokens = {
                .column = &of_tokens, .points = counts, .count = rows};
            struct compare_ratio ratio;
            open_column(rows, rows);
            column.name = LOG_LOSS;
            column.class_of = COMPARE_DIFFERENT;
            of_tokens.cumulative = how == 3 ? 1 : 0;
            for (size_t i = 0; i < rows; i++) {
                const double count = 1000.0 + 377.0 * (double)i, value = 2.0 + 0.25 * (double)i;
                counts[i] = (struct series_point){.update = i + 1, .value = count};
                points[0][i] = points[1][i] = (struct series_point){.update = i + 1};
                points[0][i].value = how == 1 ? value : value * count;
                points[1][i].value = how == 1 ? value * count : value;
                points[how == 1 ? 0 : 1][i].quantum = 0.01;
                if (how == 2) counts[i].value = 1.0;
            }
            assert_int_equal(compare_find_ratio(&column, how == 4 ? NULL : &tokens, &ratio),
                             STATUS_OK);
            assert_int_equal(ratio.kind, rows < 4 || how > 1 ? COMPARE_FACTOR_NONE
                                         : how == 0          ? COMPARE_FACTOR_TOKENS
                                                             : COMPARE_FACTOR_TOKENS_INVERSE);
            if (ratio.kind != COMPARE_FACTOR_NONE)
                assert_string_equal(ratio.bug, "ipo_sum_vs_mean");
        }
}

/* ---- skipped updates ---- */

static struct fit pair[2];
static struct fit_skip skips[2][4];
static struct fit_segment segment;

static void open_pair(void) {
    arena_close(&arena);
    segment = (struct fit_segment){.update = 1, .scale = 1.0};
    const struct contract_request request = helper_fit_request("hf", "linear", 1e-3, 10.0, 100);
    for (size_t s = 0; s < 2; s++) {
        helper_fit_make(&pair[s], &arena, &request, &segment);
        pair[s].skips = skips[s];
        pair[s].text = s == 0 ? "hf linear, 100 updates; skipped: 3" : "hf linear, 100 updates";
    }
}

static void validate_courses(void **state) {
    (void)state;
#define SAME(expected)                                                                             \
    do {                                                                                           \
        if (same_course(&pair[0], &pair[1]) != (expected)) fail_msg("line %d", __LINE__);          \
        open_pair();                                                                               \
    } while (0)
    open_pair();
    SAME(1);
    pair[1].contract = contract_find("lag1");
    SAME(0);
    pair[1].schedule = sched_find_in("hf", "cosine");
    SAME(0);
    pair[1].lr *= 1.0 + 0.9e-9;
    SAME(1);
    pair[1].lr *= 1.0 + 1.1e-9;
    SAME(0);
    pair[1].warmup = 11.0;
    SAME(0);
    pair[1].steps = 101;
    SAME(0);
    pair[1].floor_ratio = 0.1; /* the other one has none */
    SAME(0);
    pair[0].floor_ratio = pair[1].floor_ratio = 0.1;
    SAME(1);
    pair[1].stride = 2.0;
    SAME(0);
    pair[1].parameters = "power=2";
    SAME(0);
    pair[1].epoch_updates = 5;
    SAME(0);
    for (size_t s = 0; s < 2; s++) {
        pair[s].segment_count = 2;
        SAME(0);
        pair[s].first_differs = 1;
        SAME(0);
        pair[s].bug = "lag1";
        SAME(0);
    }
    assert_string_equal(skips_text(&pair[0]), "3");
    assert_string_equal(skips_text(&pair[1]), "none");
    assert_int_equal(course_length(&pair[0]), 22);
    assert_int_equal(course_length(&pair[1]), 22);
}

/* Lists of skipped updates, each in a range: where the numbers must differ, whatever they are. */
static void corroborate_skips(void **state) {
    (void)state;
    size_t apart = 0, contradicted = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        struct draws draws = {.key = UINT64_C(0x5419), .number = number};
        struct fit_set sets[2];
        struct log *logs[2];
        struct compare_input input[2];
        open_pair();
        memset(input, 0, sizeof input);
        for (size_t s = 0; s < 2; s++) {
            uint64_t update = 1;
            pair[s].skip_count = draws_pick(&draws, 4);
            for (size_t i = 0; i < pair[s].skip_count; i++) {
                skips[s][i].first = update + draws_pick(&draws, 4);
                skips[s][i].last = skips[s][i].first + draws_pick(&draws, 3);
                skips[s][i].count = 1 + draws_pick(&draws, 2);
                update = skips[s][i].last + 1;
            }
            logs[s] = helper_log(&arena, 24);
            sets[s] = (struct fit_set){.fits = &pair[s], .count = 1};
            input[s].log = logs[s];
            input[s].fits = &sets[s];
            const uint32_t norms = draws_pick(&draws, 3);
            for (size_t i = 0; i < 24 && norms > 0; i++) {
                if (draws_pick(&draws, 8) == 0) continue;
                helper_put(&arena, logs[s], LOG_GRAD_NORM, i, 1.0, PRINT_EXACT);
                if (norms == 2 && draws_pick(&draws, 10) == 0)
                    log_column_of(logs[s], LOG_GRAD_NORM)->value[i] =
                        draws_pick(&draws, 2) == 0 ? (double)INFINITY : (double)NAN;
            }
            if (draws_pick(&draws, 4) == 0) logs[s]->step[0] = 0;
        }
        uint64_t part = 0, most[2] = {0, 0}, overflows[2] = {0, 0};
        for (uint64_t update = 1; update < 40 && part == 0; update++) {
            uint64_t least[2] = {0, 0};
            for (size_t s = 0; s < 2; s++) {
                most[s] = 0;
                for (size_t i = 0; i < pair[s].skip_count; i++) {
                    if (skips[s][i].last <= update) least[s] += skips[s][i].count;
                    if (skips[s][i].first <= update) most[s] += skips[s][i].count;
                }
            }
            if (least[0] > most[1] || least[1] > most[0]) part = update;
        }
        for (size_t s = 0; s < 2; s++) {
            const struct log_column *const norm = log_column_of(logs[s], LOG_GRAD_NORM);
            for (size_t i = 0; i < 24 && norm != NULL; i++)
                overflows[s] += logs[s]->step[i] > 0 && (uint64_t)logs[s]->step[i] <= part &&
                                !isnan(norm->quantum[i]) && log_has(norm, i) &&
                                !isfinite(norm->value[i]);
        }
        const int wrong = overflows[0] > most[0] || overflows[1] > most[1];
        struct compare_lr lr = {.state =
                                    number % 2 == 0 ? COMPARE_LR_DIFFERENT : COMPARE_LR_UNTESTABLE,
                                .fits = {1, 1},
                                .skips_words = ""};
        assert_int_equal(compare_skips(input, &arena, &lr), STATUS_OK);
        const int said = part > 0 && !wrong;
        if (lr.skips_part != (said ? part : 0))
            fail_msg("case %u: %ju for %ju", number, (uintmax_t)lr.skips_part, (uintmax_t)part);
        apart += said != 0;
        contradicted += part > 0 && wrong;
        if (!said) {
            assert_string_equal(lr.skips_words, "");
            continue;
        }
        assert_string_equal(lr.skips_words,
                            "Under hf linear, 100 updates for both the schedules agree, and only "
                            "the skipped updates differ: 3 in A, none in B.");
        assert_true(lr.fit[0] == &pair[0] && lr.fit[1] == &pair[1] && lr.skips_simplest == 1);
    }
    assert_true(apart > 500 && contradicted > 30);
}

/* Of several explanations the first pair of one course is taken. */
static void validate_pairs_of_courses(void **state) {
    (void)state;
    static const int32_t states[] = {COMPARE_LR_NONE, COMPARE_LR_UNFITTED, COMPARE_LR_SAME,
                                     COMPARE_LR_DIFFERENT, COMPARE_LR_UNTESTABLE};
    for (size_t st = 0; st < COUNT_OF(states); st++)
        for (size_t a = 0; a < 3; a++)
            for (size_t b = 0; b < 3; b++) {
                struct fit lists[2][3];
                struct fit_set sets[2];
                struct compare_input input[2];
                struct compare_lr lr = {.state = states[st], .fits = {3, 3}, .skips_words = ""};
                open_pair();
                memset(input, 0, sizeof input);
                pair[0].skip_count = 1;
                skips[0][0] = (struct fit_skip){3, 3, 1, 0};
                for (size_t s = 0; s < 2; s++) {
                    for (size_t i = 0; i < 3; i++) {
                        lists[s][i] = pair[s];
                        lists[s][i].steps = 200 + 10 * s + i; /* none is another's */
                    }
                    lists[s][s == 0 ? a : b].steps = 100;
                    sets[s] = (struct fit_set){.fits = lists[s], .count = 3};
                    input[s].fits = &sets[s];
                    input[s].log = helper_log(&arena, 5);
                }
                assert_int_equal(compare_skips(input, &arena, &lr), STATUS_OK);
                const int asked = st > 2;
                assert_int_equal(lr.skips_part, asked ? 3 : 0);
                assert_int_equal(lr.skips_simplest, asked && a == 0 && b == 0);
                if (asked) assert_true(lr.fit[0] == &lists[0][a] && lr.fit[1] == &lists[1][b]);
            }
}

static int close_arena(void **state) {
    (void)state;
    arena_close(&arena);
    return 0;
}

/* Which factors of a gradient norm may be a loss scale. */
static void validate_scales(void **state) {
    (void)state;
    static const struct {
        double factor, scale;
        int name, kind;
    } cases[] = {
        {256.0, 256.0, LOG_GRAD_NORM, COMPARE_FACTOR_WHOLE},
        {1.0 / 1024.0, 1024.0, LOG_GRAD_NORM, COMPARE_FACTOR_INVERSE},
        {65536.0, 65536.0, LOG_GRAD_NORM, COMPARE_FACTOR_CONSTANT},
        {65536.0 * 1.0009, 65536.0, LOG_GRAD_NORM, COMPARE_FACTOR_CONSTANT},
        {65536.0 * 0.9991, 65536.0, LOG_GRAD_NORM, COMPARE_FACTOR_CONSTANT},
        {65536.0 * 1.0011, 0.0, LOG_GRAD_NORM, COMPARE_FACTOR_CONSTANT},
        {0x1p64, 0x1p64, LOG_GRAD_NORM, COMPARE_FACTOR_CONSTANT},
        {0x1p65, 0.0, LOG_GRAD_NORM, COMPARE_FACTOR_CONSTANT},
        {128.0, 0.0, LOG_GRAD_NORM, COMPARE_FACTOR_WHOLE},
        {1.0 / 128.0, 0.0, LOG_GRAD_NORM, COMPARE_FACTOR_INVERSE},
        {1000.0, 0.0, LOG_GRAD_NORM, COMPARE_FACTOR_WHOLE},
        {1024.0, 0.0, LOG_LOSS, COMPARE_FACTOR_WHOLE},
        {1024.0, 0.0, LOG_GRAD_NORM, COMPARE_FACTOR_TOKENS},
        {0x1p-10, 0.0, LOG_GRAD_NORM, COMPARE_FACTOR_TOKENS_INVERSE},
        {0.0, 0.0, LOG_GRAD_NORM, COMPARE_FACTOR_NONE},
    };
    assert_true(compare_scale_of(NULL) == 0.0);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct compare_ratio ratio = {
            .name = cases[i].name, .kind = cases[i].kind, .factor = cases[i].factor};
        assert_true(compare_scale_of(&ratio) == cases[i].scale);
        name_meaning(&ratio);
        assert_int_equal(strncmp(ratio.bug, "clip_scaled_grads", 17) == 0, cases[i].scale > 0.0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_scales),
        cmocka_unit_test(corroborate_pairs),
        cmocka_unit_test(corroborate_sorting),
        cmocka_unit_test(corroborate_ends),
        cmocka_unit_test(corroborate_medians),
        cmocka_unit_test(corroborate_intervals),
        cmocka_unit_test(validate_candidates),
        cmocka_unit_test(corroborate_held),
        cmocka_unit_test(validate_offsets_known),
        cmocka_unit_test(corroborate_offsets),
        cmocka_unit_test(validate_ratios),
        cmocka_unit_test(validate_coarse_tokens),
        cmocka_unit_test(validate_widths_of_constants),
        cmocka_unit_test(validate_courses),
        cmocka_unit_test(corroborate_skips),
        cmocka_unit_test(validate_pairs_of_courses),
    };
    return cmocka_run_group_tests(tests, NULL, close_arena);
}

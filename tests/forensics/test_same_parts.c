/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Trainings that are the same beside a column that is logged otherwise, part by part: each function
 * of forensics/compare_explain_same.c over all small inputs, told a second time from its rule. Most
 * numbers are whole, so that every sum is exact and each threshold is met from both sides. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "forensics/compare_explain.h"
#define compare_is_fine given_fine
#define compare_first_of given_first
#define compare_ratio_of given_ratio
#define compare_lrs_differ given_lrs
#define compare_judge_norm given_norm
static int given_fine(const struct compare_column *column, uint64_t update);
static const struct compare_column *given_first(const struct compare_report *report,
                                                const enum log_name *names);
static const struct compare_ratio *given_ratio(const struct compare_report *report,
                                               enum log_name name);
static int given_lrs(const struct compare_report *report);
static enum compare_gap given_norm(const struct compare_report *report);
#include "forensics/compare_explain_same.c" /* for the means, which no other file asks for */

enum { ROWS = 700, COLUMNS = 3 };

static struct series_point points[2][ROWS];
static struct compare_column columns[COLUMNS];
static struct compare_report report;
static struct arena arena;

/* ---- what is replaced ---- */

static int fine, lrs_differ, has_ratio;
static const enum log_name *first_of; /* the group that has a column that differs; NULL: none */
static enum compare_gap norm_gap;
static struct compare_ratio ratio;

static int given_fine(const struct compare_column *column, uint64_t update) {
    assert_true(update == UINT64_MAX);
    return column != NULL && fine;
}
static const struct compare_column *given_first(const struct compare_report *of,
                                                const enum log_name *names) {
    assert_ptr_equal(of, &report);
    return names == first_of ? &columns[1] : NULL;
}
static const struct compare_ratio *given_ratio(const struct compare_report *of,
                                               enum log_name name) {
    assert_ptr_equal(of, &report);
    return has_ratio && name == LOG_GRAD_NORM ? &ratio : NULL;
}
static int given_lrs(const struct compare_report *of) {
    assert_ptr_equal(of, &report);
    return lrs_differ;
}
static enum compare_gap given_norm(const struct compare_report *of) {
    assert_ptr_equal(of, &report);
    return norm_gap;
}

/* Both sides of the first column, of which `a` and `b` rows are used, hold updates 1, 2, 3, ... */
static void open_scene(enum log_name name, size_t a, size_t b) {
    const size_t counts[2] = {a, b};
    arena_close(&arena);
    arena = (struct arena)ARENA_EMPTY;
    memset(columns, 0, sizeof columns);
    memset(&report, 0, sizeof report);
    report.columns = columns;
    report.column_count = 1;
    report.cause = 77;
    report.start = 1;
    columns[0].name = (int32_t)name;
    columns[0].class_of = COMPARE_DIFFERENT;
    for (int s = 0; s < 2; s++) {
        columns[0].side[s].points = points[s];
        columns[0].side[s].count = counts[s];
        for (size_t i = 0; i < ROWS; i++)
            points[s][i] = (struct series_point){.update = i + 1, .row = i, .value = 1.0};
    }
    fine = 1;
    lrs_differ = has_ratio = 0;
    first_of = NULL;
    norm_gap = COMPARE_GAP_OTHER;
}

/* ---- columns that speak ---- */

static void corroborate_changes(void **state) {
    (void)state;
    enum { LENGTH = 4 };
    static const double values[] = {0.0, 1.0, 3.0, (double)NAN, (double)INFINITY};
    size_t some = 0;
    open_scene(LOG_LOSS, LENGTH, LENGTH);
    assert_int_equal(compare_changes_behind(NULL, 0), 0);
    for (int number = 0; number < 5 * 5 * 5 * 5 * 3 * 2; number++) {
        int left = number;
        for (size_t i = 0; i < LENGTH; i++, left /= 5)
            points[0][i].value = values[left % 5];
        const double quantum = (double)(left % 3);
        const int lacks = left / 3; /* B lacks an update, so that there is no such pair */
        for (size_t i = 0; i < LENGTH; i++) {
            points[0][i].quantum = quantum;
            points[1][i].update = i + 1 + (size_t)(lacks && i >= 1);
        }
        for (uint64_t update = 0; update < 6; update++) {
            size_t expected = 0;
            double before = (double)NAN;
            for (size_t i = 0; i < LENGTH; i++) {
                const double value = points[0][i].value;
                if ((lacks && i == 1) || !isfinite(value)) continue;
                if (!isnan(before) && i + 1 > update && fabs(value - before) > quantum) expected++;
                before = value;
            }
            if (compare_changes_behind(&columns[0], update) != expected)
                fail_msg("case %d behind %d", number, (int)update);
            some += expected > 0;
        }
    }
    assert_true(some > 1000);
}

static void validate_what_speaks(void **state) {
    (void)state;
    for (size_t rows = 7; rows < 13; rows++) /* each row is another number, which is a change */
        for (uint64_t start = 0; start < 4; start++)
            for (uint64_t update = 0; update < 4; update++)
                for (unsigned flags = 0; flags < 64; flags++) {
                    open_scene(LOG_LOSS, rows, rows);
                    for (size_t i = 0; i < rows; i++)
                        points[0][i].value = (double)i;
                    report.start = (flags & 1) != 0 ? UINT64_MAX : start;
                    fine = (flags & 2) == 0;
                    columns[0].class_of = (flags & 4) != 0   ? COMPARE_DIFFERENT
                                          : (flags & 8) != 0 ? COMPARE_WITHIN
                                                             : COMPARE_EQUAL;
                    columns[0].not_finite = (flags & 16) != 0;
                    report.column_count = (flags & 32) == 0;
                    /* Rows 2, 3, ... change; those behind both updates count. */
                    const size_t behind = (size_t)(update > start ? update : start);
                    const size_t changes = rows - (behind > 1 ? behind : 1);
                    const int expected = (flags & ~8u) == 0 && changes >= 8;
                    if (!!compare_speaks(&report, LOG_LOSS, update) != expected)
                        fail_msg("%zu rows, %d, %d, flags %u", rows, (int)start, (int)update,
                                 flags);
                }
}

/* ---- means ---- */

static double sums[ROWS + 1];
static struct losses losses = {.sums = sums};
static struct mean mean;

/* A has the losses, B the means. */
static void open_losses(size_t plain, size_t means) {
    open_scene(LOG_LOSS, plain, means);
    losses = (struct losses){
        .plain = &columns[0].side[0], .mean = &columns[0].side[1], .sums = sums, .grain = 0.0};
    mean = (struct mean){.kind = MEAN_WINDOW, .n = 2};
}

static void corroborate_places(void **state) {
    (void)state;
    static const double values[] = {2.0, (double)NAN, -(double)INFINITY};
    for (uint64_t first = 1; first < 4; first++)
        for (uint64_t update = 0; update < 8; update++)
            for (size_t count = 1; count < 4; count++)
                for (size_t v = 0; v < COUNT_OF(values); v++) {
                    struct place place;
                    open_losses(count, 2);
                    for (size_t i = 0; i < count; i++)
                        points[0][i].update = first + i;
                    points[1][1] =
                        (struct series_point){.update = update, .value = values[v], .quantum = 5.0};
                    const int expected = update >= first && update < first + count && v == 0;
                    assert_int_equal(place_of(&losses, 1, &place) != 0, expected);
                    if (!expected) continue;
                    assert_int_equal(place.at, update - first);
                    assert_true(place.mean.value == 2.0 && place.mean.quantum == 5.0);
                }
}

static void corroborate_expected_windows(void **state) {
    (void)state;
    open_losses(6, 6);
    for (size_t i = 0; i < 6; i++) {
        points[0][i].value = (double)(1 << (2 * i)); /* each window has another sum */
        sums[i + 1] = sums[i] + points[0][i].value;
    }
    for (uint64_t n = 1; n < 9; n++)
        for (size_t at = 0; at < 6; at++) {
            double sum = 0.0, count = 0.0, out;
            for (size_t i = 0; i < 6; i++)
                if (i <= at && i + n > at) {
                    sum += points[0][i].value;
                    count += 1.0;
                }
            mean.n = n == 8 ? UINT64_MAX : n;
            assert_int_equal(
                expect_window(&losses, &mean, 0, &(struct place){points[1][at], at}, &out), 1);
            assert_true(out == sum / count);
        }
}

static void corroborate_expected_averages(void **state) {
    (void)state;
    for (uint64_t before = 0; before < 6; before++)
        for (uint64_t update = 0; update < 6; update++)
            for (int broken = 0; broken < 2; broken++)
                for (size_t i = 0; i < 2; i++) {
                    double out;
                    open_losses(4, 2);
                    mean = (struct mean){.kind = MEAN_MOVING, .weight = 0.25};
                    for (size_t k = 0; k < 4; k++)
                        points[0][k] =
                            (struct series_point){.update = k + 1, .value = 16.0 * (double)k};
                    points[1][0].update = before;
                    points[1][0].value = broken ? (double)NAN : 4.0;
                    points[1][1].update = update;
                    const size_t at = (size_t)(update - 1);
                    if (update < 1 || update > 4) continue;
                    const int expected = i == 1 && before >= 1 && before + 1 == update && !broken;
                    assert_int_equal(
                        expect_moving(&losses, &mean, i, &(struct place){points[1][i], at}, &out),
                        expected);
                    if (expected) assert_true(out == 1.0 + 12.0 * (double)at);
                }
}

/* The weight is that of least squares; of whole numbers below 3 it is exact. */
static void corroborate_weights(void **state) {
    (void)state;
    size_t found = 0;
    for (int number = 0; number < 3 * 3 * 3 * 3 * 3 * 3 * 3; number++) {
        int left = number;
        double squares = 0.0, products = 0.0;
        open_losses(3, 3);
        for (size_t s = 0; s < 2; s++)
            for (size_t i = 0; i < 3; i++, left /= 3)
                points[s][i].value = (double)(left % 3);
        if (left == 1) points[1][1].update = 9;          /* not among the losses */
        if (left == 2) points[1][0].value = (double)NAN; /* no number before the second */
        for (size_t i = 1; i < 3; i++) {
            if (left == 1 || (left == 2 && i == 1)) continue;
            const double gap = points[1][i - 1].value - points[0][i].value;
            squares += gap * gap;
            products += gap * (points[1][i].value - points[0][i].value);
        }
        const double expected = products > 0.0 && products < squares ? products / squares : 0.0;
        assert_true(find_weight(&losses) == expected);
        found += expected > 0.0;
    }
    assert_true(found > 50);
    open_losses(3, 3); /* means two updates apart have none before them */
    for (size_t i = 0; i < 3; i++)
        points[0][i].value = (double)i;
    points[1][0].value = 3.0;
    points[1][1] = (struct series_point){.update = 3, .value = 2.5};
    columns[0].side[1].count = 2;
    assert_true(find_weight(&losses) == 0.0);
    points[1][1].update = 2;
    assert_true(find_weight(&losses) == 1.5 / 2.0);
}

static double expected_of[16];
static uint32_t unknown;
static int given_expect(const struct losses *of, const struct mean *with, size_t i,
                        const struct place *place, double *out) {
    assert_true(of == &losses && with == &mean && place->mean.update == points[1][i].update);
    assert_int_equal(place->at, i);
    *out = expected_of[i];
    return (unknown >> i & 1) == 0;
}

/* A mean of 0 may be off by its quantum and the grain, and shows itself beyond 20 times that. */
static void corroborate_what_holds(void **state) {
    (void)state;
    for (size_t rows = 7; rows < 11; rows++)
        for (size_t shown = 0; shown <= rows; shown++)
            for (int edge = 0; edge < 4; edge++)
                for (uint32_t lost = 0; lost < 4; lost++) {
                    open_losses(rows, rows);
                    losses.grain = 0.25;
                    for (size_t i = 0; i < rows; i++) {
                        points[1][i].value = 0.0;
                        points[1][i].quantum = 0.5;
                        /* 15.0 is 20 times the slack and shows nothing; what lies above does. */
                        points[0][i].value = i < shown ? (i % 2 ? -15.125 : 15.125) : 15.0;
                        expected_of[i] = i % 2 ? 0.75 : -0.75;
                    }
                    unknown = lost; /* of the first two rows nothing is known */
                    if (edge == 1) expected_of[rows - 1] = 0.75 + 0x1p-20;
                    if (edge == 2) expected_of[rows - 1] = -0.75 - 0x1p-20;
                    if (edge == 3) expected_of[rows - 1] = (double)NAN;
                    const size_t gone = (lost & 1) + (lost >> 1);
                    const size_t seen =
                        shown - ((lost & 1) != 0 && shown > 0) - ((lost & 2) != 0 && shown > 1);
                    const int expected = edge == 0 && rows - gone >= 8 && 2 * seen >= rows - gone;
                    if (!!holds(&losses, &mean, given_expect) != expected)
                        fail_msg("%zu rows, %zu shown, %d, %u", rows, shown, edge, lost);
                }
    /* Of a mean that is not 0 a millionth of its size comes in addition. */
    for (int sign = -1; sign < 2; sign += 2)
        for (int off = 0; off < 2; off++) {
            open_losses(8, 8);
            unknown = 0;
            for (size_t i = 0; i < 8; i++) {
                points[1][i].value = (double)sign * 1024.0;
                points[0][i].value = 0.0;
                expected_of[i] = points[1][i].value * (1.0 + (off ? 1.0625e-6 : 0.9375e-6));
            }
            assert_int_equal(holds(&losses, &mean, given_expect) != 0, !off);
        }
}

/* Losses of no order, whole and far apart. */
static double loss_at(size_t i) {
    return (double)((i * 37 + i * i * 11) % 101) + 10.0;
}

static void fill_losses(size_t count) {
    sums[0] = 0.0;
    for (size_t i = 0; i < count; i++) {
        points[0][i].value = loss_at(i);
        sums[i + 1] = sums[i] + loss_at(i);
    }
}

static double mean_of_last(size_t at, size_t n) {
    double sum = 0.0;
    size_t count = 0;
    for (size_t i = at + 1 > n ? at + 1 - n : 0; i <= at; i++, count++)
        sum += loss_at(i);
    return sum / (double)count;
}

/* The shortest window that gives every row, up to 256 updates and below the number of losses. */
static void corroborate_windows(void **state) {
    (void)state;
    static const size_t counts[] = {9, 10, 256, 257, 258, 300};
    static const size_t windows[] = {1, 2, 3, 7, 8, 9, 10, 254, 255, 256, 257, 299, 300, 400};
    for (size_t c = 0; c < COUNT_OF(counts); c++)
        for (size_t w = 0; w < COUNT_OF(windows); w++) {
            const size_t count = counts[c], n = windows[w];
            open_losses(count, count);
            fill_losses(count);
            for (size_t i = 0; i < count; i++)
                points[1][i].value = mean_of_last(i, n);
            mean = (struct mean){.kind = MEAN_NONE};
            const int found = find_kind(&losses, &mean);
            /* A window of all losses is the mean of all of them; of one loss nothing is a mean. */
            const enum mean_kind kind = n < 2        ? MEAN_NONE
                                        : n >= count ? MEAN_ALL
                                        : n <= 256   ? MEAN_WINDOW
                                                     : MEAN_NONE;
            if (found != (kind != MEAN_NONE)) fail_msg("%zu of %zu", n, count);
            if (!found) continue;
            assert_int_equal(mean.kind, kind);
            if (kind == MEAN_WINDOW) assert_int_equal(mean.n, n);
        }
}

/* Trackers begin at 0 and divide by what the weights sum to. */
static void corroborate_unbiased(void **state) {
    (void)state;
    static const double weights[] = {0.4, 0.5,  0.55, 0.6,  0.7,   0.8,
                                     0.9, 0.95, 0.98, 0.99, 0.995, 0.999};
    for (size_t w = 0; w < COUNT_OF(weights); w++)
        for (size_t rows = 7; rows < 11; rows++)
            for (size_t every = 1; every < 3; every++)
                for (int hides = 0; hides < 5; hides++) {
                    const double weight = weights[w];
                    const size_t count = rows * every;
                    open_losses(count, rows);
                    fill_losses(count);
                    for (size_t r = 0; r < rows; r++) {
                        const size_t at = r * every + every - 1;
                        double sum = 0.0, total = 0.0;
                        for (size_t i = 0; i <= at; i++) {
                            sum += pow(weight, (double)(at - i)) * loss_at(i);
                            total += pow(weight, (double)(at - i));
                        }
                        points[1][r].update = at + 1;
                        points[1][r].value = sum / total;
                        /* The first is the loss itself. */
                    }
                    if (hides == 1) points[1][rows - 1].value += 0.001;
                    if (hides == 2) points[1][0].value = (double)NAN;
                    if (hides == 3) losses.grain = 1000.0; /* anything is within so much */
                    if (hides == 4) points[1][rows / 2].value = (double)NAN;
                    const size_t told = rows - (hides == 2 || hides == 4);
                    const int is_typed = weight != 0.4 && weight != 0.55;
                    const int expected =
                        is_typed && told >= 8 && (hides == 0 || hides == 2 || hides == 4);
                    mean = (struct mean){.kind = MEAN_NONE};
                    if (!!find_unbiased(&losses, &mean) != expected)
                        fail_msg("%g, %zu rows, every %zu, %d", weight, rows, every, hides);
                    if (!expected) continue;
                    assert_int_equal(mean.kind, MEAN_UNBIASED);
                    assert_true(mean.weight == weight);
                }
}

/* Half of the rows must show that they are no losses. */
static void validate_unbiased_that_show(void **state) {
    (void)state;
    for (size_t quiet = 0; quiet < 12; quiet++)
        for (int beyond = 0; beyond < 2; beyond++) {
            /* Losses of one size, then one that is another in every row: before it the average is
             * the loss itself. The slack is 2^-10, and 20 times it is what a row must be beyond. */
            double average = 0.0, left = 1.0;
            open_losses(12, 12);
            losses.grain = 0x1p-10;
            for (size_t i = 0; i < 12; i++) {
                points[0][i].value = i < quiet ? 0.0 : ldexp(i % 2 ? 1.0 : -1.0, beyond ? 3 : -12);
                average = 0.5 * average + 0.5 * points[0][i].value;
                left *= 0.5;
                points[1][i].value = average / (1.0 - left);
            }
            size_t shown = 0;
            for (size_t i = 0; i < 12; i++)
                shown += fabs(points[1][i].value - points[0][i].value) >
                         20.0 * (0x1p-10 + 1e-6 * fabs(points[1][i].value));
            const int expected = 2 * shown >= 12;
            assert_int_equal(find_unbiased(&losses, &mean), expected);
        }
}

static void corroborate_taken_losses(void **state) {
    (void)state;
    for (int side = 0; side < 2; side++)
        for (size_t plain = 7; plain < 10; plain++)
            for (size_t means = 7; means < 10; means++)
                for (int broken = 0; broken < 5; broken++)
                    for (size_t at = 0; at < plain; at += 3) {
                        struct losses out = {.sums = sums};
                        open_scene(LOG_LOSS, side == 0 ? means : plain, side == 0 ? plain : means);
                        struct series_point *const of = points[1 - side];
                        for (size_t i = 0; i < plain; i++)
                            of[i] = (struct series_point){.update = 5 + i,
                                                          .value = loss_at(i),
                                                          .quantum = i == at ? 4.0 : 2.0};
                        if (broken == 1) of[at].value = (double)NAN;
                        if (broken == 2) of[at].value = (double)INFINITY;
                        if (broken == 3) of[at].update++;
                        if (broken == 4) of[at].update--;
                        /* Of a first row that is another one all others are off. */
                        const int expected = plain >= 8 && means >= 8 && broken == 0;
                        assert_int_equal(take_losses(&columns[0], side, &out) != 0, expected);
                        if (!expected) continue;
                        assert_ptr_equal(out.plain, &columns[0].side[1 - side]);
                        assert_ptr_equal(out.mean, &columns[0].side[side]);
                        assert_true(out.grain == 2.0);
                        double sum = 0.0;
                        for (size_t i = 0; i < plain; sum += loss_at(i), i++)
                            assert_true(out.sums[i] == sum);
                        assert_true(out.sums[plain] == sum);
                    }
}

static const char next_mean[] =
    "Log the loss of each update in both runs; then they can be compared.";

static void validate_words_of_means(void **state) {
    (void)state;
    static const struct {
        struct mean mean;
        const char *words;
    } cases[] = {
        {{.kind = MEAN_WINDOW, .side = 0, .n = 12},
         "A logs the mean of its last 12 losses where B logs the loss itself, in every row of "
         "both: the losses agree, and nothing in the training is shown to differ."},
        {{.kind = MEAN_ALL, .side = 1},
         "B logs the mean of all its losses up to there where A logs the loss itself, in every "
         "row of both: the losses agree, and nothing in the training is shown to differ."},
        {{.kind = MEAN_MOVING, .side = 1, .weight = 0.9},
         "B logs a moving average of its losses (0.9 of the one before) where A logs the loss "
         "itself, in every row of both: the losses agree, and nothing in the training is shown to "
         "differ."},
        {{.kind = MEAN_UNBIASED, .side = 0, .weight = 0.98},
         "A logs a moving average of its losses (0.98 of the one before, freed of its start) where "
         "B logs the loss itself, in every row of both: the losses agree, and nothing in the "
         "training is shown to differ."},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        open_scene(LOG_LOSS, 1, 1);
        assert_int_equal(say_mean(&report, &cases[i].mean, &arena), STATUS_OK);
        assert_string_equal(report.meaning, cases[i].words);
        assert_string_equal(report.next, next_mean);
        assert_int_equal(report.cause, -1);
    }
}

/* Either log may hold the mean; another column of the forward pass, or a gradient, that differs
 * says that the training does. */
static void validate_when_means_are_sought(void **state) {
    (void)state;
    static const enum log_name others[] = {LOG_LOGP_CHOSEN, LOG_REWARD_CHOSEN, LOG_LOGITS_REJECTED,
                                           LOG_LR_LOGGED};
    for (int side = 0; side < 2; side++)
        for (int how = 0; how < 5; how++)
            for (size_t o = 0; o < COUNT_OF(others); o++)
                for (int32_t class_of = COMPARE_EQUAL; class_of <= COMPARE_ABSENT; class_of++) {
                    int out = 7;
                    open_scene(LOG_LOSS, 20, 20);
                    for (size_t i = 0; i < 20; i++) {
                        points[1 - side][i].value = loss_at(i);
                        points[side][i].value = mean_of_last(i, 3);
                    }
                    columns[1].name = (int32_t)others[o];
                    columns[1].class_of = class_of;
                    report.column_count = 2;
                    if (how == 1) columns[0].name = LOG_OTHER;
                    if (how == 2) columns[0].class_of = COMPARE_WITHIN;
                    if (how == 3) first_of = compare_gradient_names;
                    if (how == 4) first_of = compare_data_names; /* nobody asks for these */
                    const int other = class_of == COMPARE_DIFFERENT && others[o] != LOG_LR_LOGGED;
                    const int expected = (how == 0 || how == 4) && !other;
                    assert_int_equal(compare_explain_mean(&report, &arena, &out), STATUS_OK);
                    assert_int_equal(out, expected);
                    assert_int_equal(report.cause, expected ? -1 : 77);
                    if (expected) assert_int_equal(report.meaning[0], "AB"[side]);
                }
}

/* ---- a row for each micro-batch ---- */

static void corroborate_counts(void **state) {
    (void)state;
    for (int number = 0; number < 5 * 5 * 5 * 4; number++) {
        open_scene(LOG_LOSS, (size_t)(number / 125), 0);
        int expected = 1, left = number;
        for (size_t i = 0; i < 3; i++, left /= 5) {
            points[0][i].update = (uint64_t)(left % 5);
            if (i < columns[0].side[0].count && points[0][i].update != i + 1) expected = 0;
        }
        assert_int_equal(counts_from_1(&columns[0].side[0]), expected);
    }
}

/* Blocks of two rows, whole numbers: the mean may be off by half of what it is printed to, by that
 * of its rows, and by a millionth. */
static void corroborate_blocks(void **state) {
    (void)state;
    static const double offs[] = {0.0, 1.0, -1.0, 1.000001, -1.000001};
    size_t held = 0;
    for (int number = 0; number < 81 * 5 * 2; number++) {
        int left = number, varies = 0;
        double block[2][2];
        open_scene(LOG_LOSS, 2, 4);
        for (size_t b = 0; b < 2; b++)
            for (size_t i = 0; i < 2; i++, left /= 3) {
                block[b][i] = (double)(left % 3) - 1.0;
                points[1][2 * b + i].value = block[b][i];
                points[1][2 * b + i].quantum = 0.5;
            }
        const double off = offs[left % 5];
        const double quantum =
            left / 5 == 0 ? 1.5 : 0.0; /* 0.75 and 2 times 0.125, or the latter */
        const double room = 0.5 * quantum + 0.25;
        int expected = 1;
        for (size_t b = 0; b < 2; b++) {
            points[0][b].quantum = quantum;
            points[0][b].value = (block[b][0] + block[b][1]) / 2.0 + (b == 1 ? off * room : 0.0);
            const double gap = fabs(points[0][b].value - (block[b][0] + block[b][1]) / 2.0);
            if (gap > room + 1e-6 * fabs(points[0][b].value)) expected = 0;
            varies |= fabs(block[b][1] - block[b][0]) > 0.5;
        }
        const int found = are_means_of_blocks(&columns[0].side[0], &columns[0].side[1], 2);
        if (!!found != (expected && varies)) fail_msg("case %d", number);
        held += found != 0;
    }
    assert_true(held > 100);
    /* Rows within their precision of each other are equal ones. */
    open_scene(LOG_LOSS, 2, 4);
    for (size_t i = 0; i < 4; i++)
        points[1][i].quantum = 0.5;
    points[1][1].value = 1.5;
    points[0][0].value = 1.25;
    assert_int_equal(are_means_of_blocks(&columns[0].side[0], &columns[0].side[1], 2), 0);
    points[1][1].value = 1.5625;
    assert_int_equal(are_means_of_blocks(&columns[0].side[0], &columns[0].side[1], 2) != 0, 1);
    points[1][2].value = (double)NAN;
    assert_int_equal(are_means_of_blocks(&columns[0].side[0], &columns[0].side[1], 2), 0);
}

static void validate_blocks(void **state) {
    (void)state;
    for (int side = 0; side < 2; side++)
        for (size_t blocks = 0; blocks < 11; blocks++)
            for (size_t rows = 0; rows < 5; rows++)
                for (size_t more = 0; more < 2; more++)
                    for (int broken = 0; broken < 5; broken++) {
                        int out = 7;
                        const size_t many = blocks * rows + more;
                        open_scene(LOG_LOSS, side == 0 ? blocks : many, side == 0 ? many : blocks);
                        for (size_t i = 0; i < many; i++)
                            points[1 - side][i].value = loss_at(i);
                        for (size_t b = 0; b < blocks && rows > 0; b++) {
                            double sum = 0.0;
                            for (size_t i = 0; i < rows; i++)
                                sum += loss_at(b * rows + i);
                            points[side][b].value = sum / (double)rows;
                        }
                        if (broken == 1) columns[0].class_of = COMPARE_WITHIN;
                        if (broken == 2) columns[0].name = LOG_OTHER;
                        if (broken == 3) points[0][5].update = 0;
                        if (broken == 4) points[1][5].update = 0;
                        assert_int_equal(compare_explain_blocks(&report, &arena, &out), STATUS_OK);
                        const int expected = blocks >= 8 && rows >= 2 && more == 0 && broken == 0;
                        if (out != expected)
                            fail_msg("%zu blocks of %zu rows and %zu, %d: %d", blocks, rows, more,
                                     broken, out);
                        assert_int_equal(report.cause, expected ? -1 : 77);
                        if (!expected) continue;
                        char words[512];
                        const char one = "AB"[side], other = "BA"[side];
                        snprintf(words, sizeof words,
                                 "%c has %zu rows for each one of %c, and each loss of %c is the "
                                 "mean of %zu losses of %c, in every row: the losses agree, and %c "
                                 "counts micro-batches or processes where %c counts updates, so "
                                 "that rows of one number are of other updates. Nothing else was "
                                 "compared.",
                                 other, rows, one, one, rows, other, other, one);
                        assert_string_equal(report.meaning, words);
                        assert_string_equal(report.next,
                                            "Log one row for each update in both runs, numbered by "
                                            "updates; then they can be compared.");
                    }
}

/* An update has up to 4096 rows. */
static void validate_most_rows(void **state) {
    (void)state;
    static struct series_point many[8 * 4097];
    for (size_t rows = 4095; rows < 4098; rows++) {
        int out = 7;
        open_scene(LOG_LOSS, 8, 8 * rows);
        columns[0].side[1].points = many;
        for (size_t i = 0; i < 8 * rows; i++)
            many[i] = (struct series_point){.update = i + 1, .value = i % rows == 1 ? 0.0 : 1.0};
        for (size_t b = 0; b < 8; b++)
            points[0][b].value = 1.0 - 1.0 / (double)rows;
        assert_int_equal(compare_explain_blocks(&report, &arena, &out), STATUS_OK);
        assert_int_equal(out, rows <= 4096);
    }
}

/* ---- a norm that one log takes elsewhere ---- */

static void corroborate_norms_elsewhere(void **state) {
    (void)state;
    for (unsigned flags = 0; flags < 128; flags++) {
        open_scene(LOG_GRAD_NORM, 20, 20);
        columns[0].first_update = (flags & 64) != 0 ? 13 : 12;
        columns[1] = columns[0];
        columns[1].name = LOG_LOSS;
        columns[1].class_of = COMPARE_EQUAL;
        static struct series_point changing[20];
        for (size_t i = 0; i < 20; i++)
            changing[i] = (struct series_point){.update = i + 1, .value = (double)i};
        columns[1].side[0].points = columns[1].side[1].points = changing;
        report.column_count = 2;
        if ((flags & 1) != 0) columns[0].class_of = COMPARE_WITHIN;
        if ((flags & 2) != 0) first_of = compare_forward_names;
        has_ratio = (flags & 4) != 0;
        lrs_differ = (flags & 8) != 0;
        norm_gap = (flags & 16) != 0 ? COMPARE_GAP_ROUNDING : COMPARE_GAP_BETWEEN;
        if ((flags & 32) != 0) columns[0].name = LOG_OTHER;
        assert_int_equal(compare_norm_elsewhere(&report) != 0, flags == 0);
    }
}

/* All norms of five updates among four sizes, and what is logged of them, printed to the last bit
 * or to halves. Two rows at least are clipped, to one number, and two at least are not. */
static void corroborate_clipped_norms(void **state) {
    (void)state;
    enum { LENGTH = 5 };
    size_t found = 0;
    for (int side = 0; side < 2; side++)
        for (int number = 0; number < 1 << (4 * LENGTH); number += 1 + (number % 7)) {
            static const double quanta[] = {0.0, 0.5};
            const double quantum = quanta[number % 2];
            double limit = 0.0;
            size_t clipped = 0, left_alone = 0;
            int is_clip = 1;
            if (number == 0) open_scene(LOG_GRAD_NORM, LENGTH, LENGTH);
            for (size_t i = 0; i < LENGTH; i++) {
                const double whole = 1.0 + (double)(number >> (4 * i) & 3);
                const double shown = 1.0 + (double)(number >> (4 * i + 2) & 3);
                points[side][i].value = shown;
                points[1 - side][i].value = whole;
                points[side][i].quantum = points[1 - side][i].quantum = quantum;
                if (shown != whole) { /* whole numbers are apart by more than halves */
                    if (clipped++ == 0) limit = shown;
                    if (shown != limit || whole < limit) is_clip = 0;
                } else {
                    left_alone++;
                    if (clipped > 0 && shown > limit + quantum) is_clip = 0;
                }
            }
            const double expected = is_clip && clipped >= 2 && left_alone >= 2 ? limit : 0.0;
            const double got = clipped_to(&columns[0], side);
            if (got != expected) fail_msg("case %d: %g, not %g", number, got, expected);
            found += got > 0.0;
        }
    assert_true(found > 100);
}

/* Clipped norms may be off by what they are printed to and by a hundred-thousandth, and a norm that
 * is not clipped may be above the limit by what it is printed to. */
static void validate_edges_of_clips(void **state) {
    (void)state;
    for (int edge = 0; edge < 7; edge++) {
        open_scene(LOG_GRAD_NORM, 6, 6);
        for (size_t i = 0; i < 6; i++) {
            points[0][i].value = points[1][i].value = 1.0;
            points[0][i].quantum = points[1][i].quantum = 0.25;
            if (i < 3) points[1][i].value = 8.0;
            if (i < 3) points[0][i].value = 4.0;
        }
        if (edge == 1) points[0][1].value = 4.25;
        if (edge == 2) points[0][1].value = 4.25 + 0.9 * 4e-5;
        if (edge == 3) points[0][1].value = 4.25 + 1.1 * 4e-5;
        if (edge == 4) points[0][4].value = points[1][4].value = 4.25;
        if (edge == 5) points[0][4].value = points[1][4].value = 4.25 + 0x1p-30;
        if (edge == 6) points[1][2].value = 4.0 - 0x1p-30; /* equal within what is printed */
        const int expected = edge != 3 && edge != 5;
        assert_true((clipped_to(&columns[0], 0) == 4.0) == expected);
    }
    open_scene(LOG_GRAD_NORM, 4, 4); /* a norm that is the limit itself, and one below it */
    for (int below = 0; below < 2; below++) {
        for (size_t i = 0; i < 4; i++) {
            points[0][i].value = i < 2 ? 4.0 : 1.0;
            points[1][i].value = i < 2 ? 8.0 : 1.0;
        }
        points[0][1].value = 4.0 + 0x1p-17;
        points[1][1].value = below ? 4.0 - 0x1p-18 : 4.0;
        assert_true(clipped_to(&columns[0], 0) == (below ? 0.0 : 4.0));
    }
}

static void validate_words_of_norms(void **state) {
    (void)state;
    static const char front[] = "The losses agree in many digits in every update, so the trainings "
                                "do as far as these digits show, and the gradient norm that is "
                                "logged is another one.";
    for (int side = 0; side < 3; side++) {
        char words[1024];
        open_scene(LOG_GRAD_NORM, 4, 4);
        for (size_t i = 0; i < 4; i++)
            points[0][i].value = points[1][i].value = 0.5;
        for (size_t i = 0; i < 2; i++) {
            points[side % 2][i].value = side == 2 && i == 1 ? 1.0 : 1.25;
            points[1 - side % 2][i].value = 3.0;
        }
        if (side == 2)
            snprintf(words, sizeof words,
                     "%s It may be taken in front of clipping or behind it, of scaled gradients, "
                     "of a part of the tensors, or of one process or micro-batch; or the "
                     "gradients are divided by another number, which steps of Adam hide.",
                     front);
        else
            snprintf(words, sizeof words,
                     "%s That of %c is the other one up to 1.25, and never more: it is taken "
                     "behind clipping, and that of %c in front of it.",
                     front, "AB"[side], "BA"[side]);
        assert_int_equal(compare_explain_norm_elsewhere(&report, &arena), STATUS_OK);
        assert_string_equal(report.meaning, words);
        assert_string_equal(report.next, "Look where each of the two takes its norm; nothing in "
                                         "the training is shown to differ.");
        assert_int_equal(report.cause, -1);
    }
}

/* ---- an LR of another update ---- */

static void corroborate_printed_lrs(void **state) {
    (void)state;
    static struct fit fit;
    for (unsigned flags = 0; flags < 32; flags++)
        for (int32_t lr = COMPARE_LR_NONE; lr <= COMPARE_LR_UNTESTABLE; lr++) {
            open_scene(LOG_LR_LOGGED, 2, 2);
            columns[1].name = LOG_LR_APPLIED;
            report.lr.state = lr;
            report.lr.alike[0] = (flags & 1) != 0 ? NULL : &fit;
            report.lr.groups_differ = (flags & 2) != 0;
            report.column_count = (flags & 4) != 0 ? 2 : 1;
            if ((flags & 8) != 0) columns[0].class_of = COMPARE_WITHIN;
            if ((flags & 16) != 0) columns[0].name = LOG_OTHER;
            assert_int_equal(compare_lr_of_print(&report) != 0,
                             flags == 0 && lr != COMPARE_LR_SAME);
        }
}

static void validate_words_of_printed_lrs(void **state) {
    (void)state;
    static struct series_point changing[10];
    for (uint64_t first = 1; first < 4; first++) {
        open_scene(LOG_LR_LOGGED, 10, 10);
        columns[0].first_update = first;
        columns[1] = columns[0];
        columns[1].name = LOG_LOSS;
        columns[1].class_of = COMPARE_EQUAL;
        for (size_t i = 0; i < 10; i++)
            changing[i] = (struct series_point){.update = i + 1, .value = (double)i};
        columns[1].side[0].points = columns[1].side[1].points = changing;
        report.column_count = 2;
        compare_explain_lr_of_print(&report);
        assert_int_equal(report.lr_of_print, 1);
        assert_int_equal(report.cause, -1);
        assert_string_equal(report.next,
                            "Nothing else is shown to differ. State the contracts (--contract-a, "
                            "--contract-b) to have the applied LRs compared.");
        assert_string_equal(
            report.meaning,
            first <= 2
                ? "Only the printed LRs differ. Losses agree in many digits behind the first "
                  "update in which they do, and there are explanations of both columns under which "
                  "the applied LRs agree (line LR): so one log prints the LR of another update, "
                  "unless applied LRs are apart by too little for these digits to show it."
                : "Only the printed LRs differ. There are explanations of both columns under which "
                  "the applied LRs agree (line LR), one log printing that of another update, and "
                  "others under which they differ; nothing else that both logs print shows which "
                  "it is.");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_changes),
        cmocka_unit_test(validate_what_speaks),
        cmocka_unit_test(corroborate_places),
        cmocka_unit_test(corroborate_expected_windows),
        cmocka_unit_test(corroborate_expected_averages),
        cmocka_unit_test(corroborate_weights),
        cmocka_unit_test(corroborate_what_holds),
        cmocka_unit_test(corroborate_windows),
        cmocka_unit_test(corroborate_unbiased),
        cmocka_unit_test(validate_unbiased_that_show),
        cmocka_unit_test(corroborate_taken_losses),
        cmocka_unit_test(validate_words_of_means),
        cmocka_unit_test(validate_when_means_are_sought),
        cmocka_unit_test(corroborate_counts),
        cmocka_unit_test(corroborate_blocks),
        cmocka_unit_test(validate_blocks),
        cmocka_unit_test(validate_most_rows),
        cmocka_unit_test(corroborate_norms_elsewhere),
        cmocka_unit_test(corroborate_clipped_norms),
        cmocka_unit_test(validate_edges_of_clips),
        cmocka_unit_test(validate_words_of_norms),
        cmocka_unit_test(corroborate_printed_lrs),
        cmocka_unit_test(validate_words_of_printed_lrs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 * How large the gap of a column is: what rounding makes, what other data or weights make, or what
 * lies between, by how the column varies from row to row. */
#include "base/real.h"
#include "forensics/compare_explain.h"

/* How much of a column's own variation from row to row a gap may be. Rows hold other batches, so
 * other data, weights or another reference move the first value by about as much as that: by half
 * of it and more. Rounding moves it by far less: summed log-probabilities moved by 2e-4 to 9e-4 of
 * themselves when the batch shape changed in bf16, and norms of bf16 tensors by 2e-3, where losses
 * vary by 2 to 10 % from row to row. What lies between (a mean of means is such a gap) is told to
 * nobody as one or the other. Beyond a share of the value itself no gap is rounding. */
#define ROUNDING 0.0625
#define OTHER 0.5
#define FORWARD_NOISE 0.02
#define GRADIENT_NOISE 0.2
/* The fewest rows that tell how a column varies. */
#define ROWS_LEAST 6
/* The first rows whose middle gap is judged beside that of the first one. Rounding has not grown by
 * much in so few updates. */
#define ROWS_FIRST 5

/* Returns the median change from row to row at the beginning of one side, or NaN. */
static double variation_of(const struct compare_side *side) {
    struct compare_sorted changes = {.count = 0};
    for (size_t i = 1; i < side->count && changes.count < COMPARE_ROWS; i++)
        compare_keep(&changes,
                     real_abs_f64(compare_point(side, i).value - compare_point(side, i - 1).value));
    return changes.count + 1 >= ROWS_LEAST ? compare_median(&changes) : real_nan_f64();
}

/* Judges a gap of a column between two values. Without rows enough to know its variation, only a
 * tenth of the share that rounding may reach counts as rounding. */
static enum compare_gap judge_values(const struct compare_column *column, double a, double b,
                                     double most) {
    const double size = real_abs_f64(a) > real_abs_f64(b) ? real_abs_f64(a) : real_abs_f64(b);
    const double gap = real_abs_f64(a - b);
    const double x = variation_of(&column->side[0]), y = variation_of(&column->side[1]);
    const double variation = x < y || y != y ? x : y; /* of the side that tells it */
    if (!(gap <= most * size)) return COMPARE_GAP_OTHER;
    if (variation != variation)
        return real_finite_f64(most) && gap <= 0.1 * most * size ? COMPARE_GAP_ROUNDING
                                                                 : COMPARE_GAP_BETWEEN;
    return gap <= ROUNDING * variation ? COMPARE_GAP_ROUNDING
           : gap < OTHER * variation   ? COMPARE_GAP_BETWEEN
                                       : COMPARE_GAP_OTHER;
}

/* Judges the first gap of a column that differs before the first step. */
enum compare_gap compare_judge_gap(const struct compare_column *column, double most) {
    return judge_values(column, column->first[0].value, column->first[1].value, most);
}

/* Returns the share of its value beyond which no gap of a column is rounding. Rewards are 0 until
 * policy and reference differ, so any gap is all of their value: only their variation judges it. */
static double most_of(enum log_name name) {
    const int is_reward =
        name == LOG_REWARD_CHOSEN || name == LOG_REWARD_REJECTED || name == LOG_REWARD_MARGIN;
    return is_reward ? real_inf_f64() : FORWARD_NOISE;
}

/* Judges the first gap of a column before the first step. It is no rounding where that of another
 * update before that step is none, or most of those of its first rows: a mean of means is near the
 * mean of all tokens by chance in one update of five, and rounding is of one size in updates that
 * follow each other. */
static enum compare_gap judge_first_rows(const struct compare_report *report,
                                         const struct compare_column *column, double most) {
    const enum compare_gap first = compare_judge_gap(column, most);
    size_t seen = 0, apart = 0;
    int before = 0;
    for (size_t i = 0, j = 0; compare_next(column, &i, &j); i++, j++) {
        const struct series_point a = compare_point(&column->side[0], i),
                                  b = compare_point(&column->side[1], j);
        if (seen >= ROWS_FIRST && a.update > report->start) break;
        const int differs = judge_values(column, a.value, b.value, most) != COMPARE_GAP_ROUNDING;
        before |= differs && a.update <= report->start;
        apart += differs && seen < ROWS_FIRST;
        seen++;
    }
    return first == COMPARE_GAP_ROUNDING && (before || 2 * apart > ROWS_FIRST) ? COMPARE_GAP_BETWEEN
                                                                               : first;
}

/* Tells whether a column is a mean of logits beside numbers that tell more. Logits have either
 * sign, so their mean is near 0 and no measure of them: what it changes by from row to row and
 * between two runs says little of either. */
static int is_mean_of_logits(const struct compare_report *report, enum log_name name) {
    static const enum log_name telling[] = {LOG_LOGP_CHOSEN, LOG_LOGP_REJECTED, LOG_OTHER};
    return (name == LOG_LOGITS_CHOSEN || name == LOG_LOGITS_REJECTED) &&
           compare_covers_start(report, telling);
}

int compare_logits_apart(const struct compare_report *report) {
    static const enum log_name names[] = {LOG_LOGITS_CHOSEN, LOG_LOGITS_REJECTED};
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        const struct compare_column *const column = compare_column_of(report, names[n]);
        if (column != NULL && column->class_of == COMPARE_DIFFERENT &&
            column->first_update <= report->start && is_mean_of_logits(report, names[n]) &&
            compare_judge_gap(column, FORWARD_NOISE) != COMPARE_GAP_ROUNDING)
            return 1;
    }
    return 0;
}

/* Judges the forward pass and the gradient before the first step: the largest gap counts. */
enum compare_gap compare_judge_start(const struct compare_report *report) {
    enum compare_gap worst = COMPARE_GAP_ROUNDING;
    for (const enum log_name *name = compare_forward_names; *name != LOG_OTHER; name++) {
        const struct compare_column *column = compare_column_of(report, *name);
        if (compare_is_other_mean(report, *name) || is_mean_of_logits(report, *name)) continue;
        if (column == NULL || column->class_of != COMPARE_DIFFERENT ||
            column->first_update > report->start)
            continue;
        const enum compare_gap gap = *name == LOG_LOSS
                                         ? judge_first_rows(report, column, most_of(*name))
                                         : compare_judge_gap(column, most_of(*name));
        if (gap > worst) worst = gap;
    }
    const struct compare_column *gradient = compare_column_of(report, LOG_GRAD_NORM);
    if (gradient != NULL && gradient->class_of == COMPARE_DIFFERENT &&
        gradient->first_update <= report->start &&
        compare_judge_gap(gradient, GRADIENT_NOISE) == COMPARE_GAP_OTHER)
        worst = COMPARE_GAP_OTHER;
    return worst;
}

/* How far losses of f32 are apart, as a share, by what orders and kernels make: up to 1e-6 was seen
 * of other micro-batches, and 5e-6 is a sum of some hundred roundings. A lower precision makes
 * more, and so does a mean of means over micro-batches, whose gaps were 1e-4 to 1e-3. */
#define FLOAT_NOISE 1e-5

int compare_may_average(const struct compare_report *report) {
    const struct compare_column *const loss = compare_column_of(report, LOG_LOSS);
    struct compare_sorted gaps = {.count = 0};
    static const enum log_name pairs[] = {LOG_LOGP_CHOSEN, LOG_LOGP_REJECTED, LOG_REWARD_CHOSEN,
                                          LOG_REWARD_REJECTED, LOG_OTHER};
    if (loss == NULL || loss->class_of != COMPARE_DIFFERENT || loss->first_update > report->start)
        return 0;
    if (compare_covers_start(report, pairs)) return 0; /* means over pairs, and not over tokens */
    for (size_t i = 0, j = 0; gaps.count < ROWS_FIRST && compare_next(loss, &i, &j); i++, j++) {
        const double a = compare_point(&loss->side[0], i).value,
                     b = compare_point(&loss->side[1], j).value;
        if (a != 0.0) compare_keep(&gaps, real_abs_f64(a - b) / real_abs_f64(a));
        if (!real_finite_f64(a) || !real_finite_f64(b)) return 0;
    }
    return gaps.count > 0 && compare_median(&gaps) > FLOAT_NOISE;
}

/* The first rows of which each gap must be on one side of 0 and of about one size, and the factor
 * between the largest and the smallest of them. Gaps of rounding have either sign: so many are on
 * one side once in 128 pairs of logs, and seldom of one size then. */
#define ROWS_OF_TERM 8
#define TERM_SPREAD 4.0

int compare_gaps_lean(const struct compare_report *report) {
    const struct compare_column *const loss = compare_column_of(report, LOG_LOSS);
    static const enum log_name policy[] = {LOG_LOGP_CHOSEN, LOG_LOGP_REJECTED, LOG_OTHER};
    double least = real_inf_f64(), most = 0.0;
    size_t rows = 0, above = 0;
    if (compare_covers_start(report, policy)) return 0; /* which no term of the loss moves */
    if (loss == NULL || loss->class_of != COMPARE_DIFFERENT || loss->first_update > report->start)
        return 0;
    for (size_t i = 0, j = 0; rows < ROWS_OF_TERM && compare_next(loss, &i, &j); i++, j++) {
        const struct series_point a = compare_point(&loss->side[0], i),
                                  b = compare_point(&loss->side[1], j);
        const double gap = a.value - b.value, size = real_abs_f64(gap);
        /* A gap of the size of the printed digits has the size that these leave, and one that f32
         * makes may come of one kernel. */
        if (!(size > a.quantum + b.quantum) || !(size > FLOAT_NOISE * real_abs_f64(a.value)))
            return 0;
        least = size < least ? size : least;
        most = size > most ? size : most;
        above += gap > 0.0;
        rows++;
    }
    return rows == ROWS_OF_TERM && (above == 0 || above == rows) && most <= TERM_SPREAD * least;
}

enum compare_gap compare_judge_norm(const struct compare_report *report) {
    return compare_judge_gap(compare_column_of(report, LOG_GRAD_NORM), GRADIENT_NOISE);
}

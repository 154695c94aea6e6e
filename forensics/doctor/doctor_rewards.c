/* SPDX-License-Identifier: Apache-2.0
 * Checks among the columns of a preference training: margins, accuracies, and the bound that
 * convexity sets between loss and margin. docs/FORENSICS.md lists them.
 *
 * Invariant: a check that compares columns uses rows alone that have all of them. */
#include "base/real.h"
#include "forensics/doctor/doctor_check.h"

/* Means of bf16 numbers carry errors of half a spacing, 2^-8 relative each; twice that covers a
 * mean that was itself rounded. */
#define COARSE 0x1p-7

struct margins {
    size_t rows, broken, negated;
    const struct series_point *first; /* the margin of the first broken row */
};

static double slack_of(const struct series_point *point) {
    return 0.5 * point->quantum + COARSE * real_abs_f64(point->value);
}

static struct margins compare_margins(const struct doctor *doctor) {
    struct margins margins = {0, 0, 0, NULL};
    const struct series *series = &doctor->series[LOG_REWARD_MARGIN];
    for (size_t i = 0; i < series->count; i++) {
        const struct series_point *margin = &series->points[i];
        const struct series_point *chosen =
            series_in_row(&doctor->series[LOG_REWARD_CHOSEN], margin->row);
        const struct series_point *rejected =
            series_in_row(&doctor->series[LOG_REWARD_REJECTED], margin->row);
        if (chosen == NULL || rejected == NULL) continue;
        const double difference = chosen->value - rejected->value;
        const double slack = slack_of(margin) + slack_of(chosen) + slack_of(rejected);
        margins.rows++;
        if (!(real_abs_f64(margin->value - difference) > slack)) continue;
        margins.negated += real_abs_f64(margin->value + difference) <= slack;
        if (margins.broken++ == 0) margins.first = margin;
    }
    return margins;
}

static enum status margin_evidence(struct doctor *doctor, const struct series_point *margin) {
    static const enum log_name names[] = {LOG_REWARD_CHOSEN, LOG_REWARD_REJECTED};
    TRY(doctor_evidence_column(doctor, LOG_REWARD_MARGIN, margin));
    for (size_t i = 0; i < COUNT_OF(names); i++)
        TRY(doctor_evidence_column(doctor, names[i],
                                   series_in_row(&doctor->series[names[i]], margin->row)));
    return STATUS_OK;
}

static enum status margin_sum(struct doctor *doctor) {
    const struct margins margins = compare_margins(doctor);
    if (margins.rows < 3)
        return doctor_untestable(doctor, "fewer than 3 rows with margin, chosen and rejected");
    if (margins.broken < 3 || 3 * margins.broken < margins.rows) return STATUS_OK;
    if (5 * margins.negated >= 4 * margins.broken)
        TRY(doctor_found(doctor, "margin_sign", DOCTOR_CERTAIN, margins.first->row,
                         "The margin is rejected minus chosen in %zu of %zu rows.", margins.negated,
                         margins.rows));
    else
        TRY(doctor_found(doctor, "margin_averaging", DOCTOR_LIKELY, margins.first->row,
                         "The margin is not chosen minus rejected in %zu of %zu rows.",
                         margins.broken, margins.rows));
    TRY(margin_evidence(doctor, margins.first));
    return doctor_explain(
        doctor, "the difference exceeds what the printed digits and bf16 means can make",
        "The three are means of the same pairs only when they are weighted alike: look "
        "for token weights, for a mean of means over ranks, or for a metric of the last "
        "micro-batch only.");
}

/* ---- accuracies ---- */

double doctor_sigmoid_loss(double x) {
    if (x < 0.0) return -x + real_log_f64(1.0 + real_exp_f64(x));
    return real_log_f64(1.0 + real_exp_f64(-x));
}

enum pairs { PAIRS_UNKNOWN, PAIRS_ONE, PAIRS_SEVERAL };

/* Tells by the loss whether a row is one pair: then its loss is -ln sigmoid(margin). With several
 * pairs the loss is larger, by Jensen's inequality. */
static enum pairs pairs_by_loss(const struct doctor *doctor) {
    const struct series *series = &doctor->series[LOG_REWARD_MARGIN];
    size_t rows = 0, closed = 0, above = 0;
    for (size_t i = 0; i < series->count; i++) {
        const struct series_point *margin = &series->points[i];
        const struct series_point *loss = series_in_row(&doctor->series[LOG_LOSS], margin->row);
        if (loss == NULL || !real_finite_f64(margin->value)) continue;
        const double one = doctor_sigmoid_loss(margin->value);
        const double slack = 0.5 * loss->quantum + 0.5 * margin->quantum + 1e-5 + COARSE * one;
        rows++;
        closed += real_abs_f64(loss->value - one) <= slack;
        above += loss->value > one + slack;
    }
    if (rows < 5) return PAIRS_UNKNOWN;
    if (10 * closed >= 9 * rows) return PAIRS_ONE;
    return 2 * above >= rows ? PAIRS_SEVERAL : PAIRS_UNKNOWN;
}

static enum pairs pairs_per_row(const struct doctor *doctor) {
    const struct series *batch = &doctor->series[LOG_GLOBAL_BATCH];
    if (doctor->options->pairs != 0) return doctor->options->pairs == 1 ? PAIRS_ONE : PAIRS_SEVERAL;
    if (batch->count > 0) return batch->points[0].value > 1.0 ? PAIRS_SEVERAL : PAIRS_ONE;
    return pairs_by_loss(doctor);
}

/* Returns how often n rows of two pairs are all right or all wrong by chance, at most, for that
 * share of ones. */
static double chance(size_t n, double share) {
    const double row = share * share + (1.0 - share) * (1.0 - share);
    return real_exp_f64((double)n * real_log_f64(row));
}

static enum status accuracy_of_means(struct doctor *doctor) {
    const struct series *series = &doctor->series[LOG_REWARD_ACCURACY];
    size_t ones = 0, zeros = 0;
    for (size_t i = 0; i < series->count; i++) {
        const double value = series->points[i].value;
        if (value > 0.0 && value < 1.0) return STATUS_OK;
        zeros += value <= 0.0;
        ones += value >= 1.0;
    }
    const size_t n = ones + zeros;
    if (n < 8) return doctor_untestable(doctor, "fewer than 8 accuracies");
    const double share = (double)ones / (double)n;
    const double p = chance(n, share);
    /* One chance in a thousand: chosen so that even a thousand healthy logs give about one. */
    if (p > 1e-3) return STATUS_OK;
    const enum pairs pairs = pairs_per_row(doctor);
    if (pairs == PAIRS_ONE) return STATUS_OK;
    if (pairs == PAIRS_UNKNOWN)
        return doctor_untestable(doctor, "all accuracies are 0 or 1, which is normal for one pair "
                                         "per row: say --pairs N");
    TRY(doctor_found(doctor, "accuracy_of_means", DOCTOR_LIKELY, series->points[0].row,
                     "All %zu accuracies are 0 or 1 (%zu are 1) although a row averages several "
                     "pairs: the means are compared, not the pairs.",
                     n, ones));
    TRY(doctor_evidence(doctor,
                        "with two pairs per row, each right with probability %s, this happens by "
                        "chance with probability %s",
                        word_about(share).text, word_about(p).text));
    TRY(doctor_evidence(doctor, "several pairs per row: %s",
                        doctor->options->pairs != 0 ? "--pairs says so"
                        : doctor->series[LOG_GLOBAL_BATCH].count > 0
                            ? "the batch size column says so"
                            : "the losses exceed -ln sigmoid(margin)"));
    return doctor_explain(doctor,
                          "pairs of one batch are not independent, so the probability is a guide",
                          "Compute (chosen > rejected).mean() over pairs, not chosen.mean() > "
                          "rejected.mean().");
}

/* ---- the model prefers the rejected ones ---- */

static enum status labels_swapped(struct doctor *doctor) {
    const struct series *series = &doctor->series[LOG_REWARD_MARGIN];
    const size_t from = series->count - series->count / 3;
    size_t negative = 0, low = 0, seen = 0;
    if (series->count < 30) return doctor_untestable(doctor, "fewer than 30 margins");
    for (size_t i = from; i < series->count; i++) {
        const struct series_point *accuracy =
            series_in_row(&doctor->series[LOG_REWARD_ACCURACY], series->points[i].row);
        negative += series->points[i].value < -0.5 * series->points[i].quantum - 1e-4;
        seen += accuracy != NULL;
        low += accuracy != NULL && accuracy->value < 0.5;
    }
    const size_t rows = series->count - from;
    if (10 * negative < 9 * rows || 10 * low < 9 * seen) return STATUS_OK;
    TRY(doctor_found(doctor, "labels_swapped", DOCTOR_LIKELY, series->points[from].row,
                     "In the last third the margin is negative in %zu of %zu rows: training makes "
                     "the rejected answers likelier.",
                     negative, rows));
    TRY(doctor_evidence_column(doctor, LOG_REWARD_MARGIN, &series->points[0]));
    TRY(doctor_evidence_column(doctor, LOG_REWARD_MARGIN, &series->points[series->count - 1]));
    return doctor_explain(
        doctor, "the objective pushes margins up; noise does not hold them down",
        "Look at one pair as the trainer sees it: chosen and rejected are swapped, or "
        "the sign of the margin is.");
}

/* ---- loss against margin ---- */

/* Holds each row's loss against the least that its margin allows. */
static enum status loss_bound(struct doctor *doctor) {
    const struct series *series = &doctor->series[LOG_REWARD_MARGIN];
    const struct series_point *start = series_at(&doctor->series[LOG_LOSS], 1), *first = NULL;
    size_t rows = 0, below = 0;
    if (start == NULL || real_abs_f64(start->value - 0x1.62e42fefa39efp-1) > 0.01)
        return doctor_untestable(doctor, "only a loss that starts at ln 2 is sigmoid DPO");
    for (size_t i = 0; i < series->count; i++) {
        const struct series_point *margin = &series->points[i];
        const struct series_point *loss = series_in_row(&doctor->series[LOG_LOSS], margin->row);
        if (loss == NULL) continue;
        const double one = doctor_sigmoid_loss(margin->value);
        rows++;
        if (!(loss->value + 0.5 * loss->quantum <
              DOCTOR_MARGIN_BOUND * one - 0.5 * margin->quantum - 1e-4))
            continue;
        if (below++ == 0) first = margin;
    }
    if (rows < 5) return doctor_untestable(doctor, "fewer than 5 rows with loss and margin");
    if (below < 3 || 2 * below < rows) return STATUS_OK;
    TRY(doctor_found(doctor, "loss_below_margin_bound", DOCTOR_POSSIBLE, first->row,
                     "In %zu of %zu rows the loss is lower than its margin permits: the mean of "
                     "-ln sigmoid is never below -ln sigmoid of the mean.",
                     below, rows));
    TRY(doctor_evidence_column(doctor, LOG_LOSS,
                               series_in_row(&doctor->series[LOG_LOSS], first->row)));
    TRY(doctor_evidence_column(doctor, LOG_REWARD_MARGIN, first));
    TRY(doctor_evidence(doctor, "-ln sigmoid(margin) = %s",
                        word_about(doctor_sigmoid_loss(first->value)).text));
    return doctor_explain(doctor,
                          "loss and margin are not means of the same pairs with the same weights, "
                          "or the loss is not the sigmoid one: TRL's robust loss and its "
                          "f-divergences start at ln 2, too",
                          "See whether one of them is of the last micro-batch or of one rank only "
                          "(metric_last_microbatch), and which loss_type ran.");
}

const struct doctor_check doctor_reward_checks[] = {
    {"margin_averaging",
     "margin is chosen minus rejected",
     {LOG_REWARD_MARGIN, LOG_REWARD_CHOSEN, LOG_REWARD_REJECTED},
     margin_sum},
    {"accuracy_of_means",
     "accuracies are not only 0 and 1",
     {LOG_REWARD_ACCURACY},
     accuracy_of_means},
    {"labels_swapped", "margins do not end negative", {LOG_REWARD_MARGIN}, labels_swapped},
    {"loss_below_margin_bound",
     "loss is at least -ln sigmoid of the margin",
     {LOG_LOSS, LOG_REWARD_MARGIN},
     loss_bound},
    {NULL, NULL, {LOG_OTHER}, NULL}};

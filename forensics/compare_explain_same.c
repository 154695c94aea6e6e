/* SPDX-License-Identifier: Apache-2.0
 * Trainings that are the same as far as their logs show, beside a column that is logged otherwise:
 * a loss that one log smooths, a norm that one log takes elsewhere, an LR of another update.
 *
 * Invariant: nothing is called the same without numbers of many digits that change and agree behind
 * the update in question. */
#include <inttypes.h>

#include "base/real.h"
#include "forensics/compare_explain.h"

/* In so many updates a number of many digits must have changed and agreed before it speaks for the
 * whole training (chosen), and so many rows must be a mean before the column is one. */
#define SPEAKS_LEAST 8
/* The longest window of a mean that is looked for, and what a mean in f32 may be off by (chosen).
 */
#define WINDOW_MOST 256
#define MEAN_NOISE 1e-6
/* By how many times its slack a mean must differ from the loss itself, so that it is none. */
#define MEAN_SHOWS 20.0

size_t compare_changes_behind(const struct compare_column *column, uint64_t update) {
    size_t changes = 0, seen = 0;
    double last = 0.0;
    for (size_t i = 0, j = 0; column != NULL && compare_next(column, &i, &j); i++, j++) {
        const struct series_point point = compare_point(&column->side[0], i);
        if (!real_finite_f64(point.value)) continue;
        changes +=
            seen++ > 0 && point.update > update && real_abs_f64(point.value - last) > point.quantum;
        last = point.value;
    }
    return changes;
}

int compare_speaks(const struct compare_report *report, enum log_name name, uint64_t update) {
    const struct compare_column *const column = compare_column_of(report, name);
    return report->start != UINT64_MAX && compare_is_fine(column, UINT64_MAX) &&
           column->class_of != COMPARE_DIFFERENT && column->not_finite == 0 &&
           compare_changes_behind(column, update > report->start ? update : report->start) >=
               SPEAKS_LEAST;
}

/* ---- a loss that one log smooths ---- */

enum mean_kind { MEAN_NONE, MEAN_WINDOW, MEAN_ALL, MEAN_MOVING, MEAN_UNBIASED };

struct mean {
    enum mean_kind kind;
    int side;      /* which log holds the mean */
    uint64_t n;    /* MEAN_WINDOW: of how many updates */
    double weight; /* MEAN_MOVING, MEAN_UNBIASED: that of the mean before */
};

/* The losses of the log that has each of them, without a gap, and the sums of the first ones. */
struct losses {
    const struct compare_side *plain, *mean;
    double *sums; /* (count + 1) */
    double grain; /* half of the largest quantum among them */
};

static double slack_of(const struct losses *losses, const struct series_point *mean) {
    return mean->quantum + losses->grain + MEAN_NOISE * real_abs_f64(mean->value);
}

/* One row of the mean, and the place of its update among the losses. */
struct place {
    struct series_point mean;
    size_t at;
};

/* Finds row i of the mean among the losses; returns 0 where they have no such update. */
static int place_of(const struct losses *losses, size_t i, struct place *out) {
    const uint64_t first = compare_point(losses->plain, 0).update;
    out->mean = compare_point(losses->mean, i);
    if (out->mean.update < first) return 0;
    out->at = (size_t)(out->mean.update - first);
    return out->at < losses->plain->count && real_finite_f64(out->mean.value);
}

/* Tells whether each row of the mean is that of `expect`, and enough of them not the loss itself.
 * `expect` sets *out to the number that the row would have; it returns 0 where it knows none. */
static int holds(const struct losses *losses, const struct mean *mean,
                 int (*expect)(const struct losses *losses, const struct mean *mean, size_t i,
                               const struct place *place, double *out)) {
    size_t rows = 0, shown = 0;
    for (size_t i = 0; i < losses->mean->count; i++) {
        struct place place;
        double expected;
        if (!place_of(losses, i, &place) || !expect(losses, mean, i, &place, &expected)) continue;
        const double slack = slack_of(losses, &place.mean);
        if (!(real_abs_f64(place.mean.value - expected) <= slack)) return 0;
        rows++;
        shown += real_abs_f64(place.mean.value - compare_point(losses->plain, place.at).value) >
                 MEAN_SHOWS * slack;
    }
    return rows >= SPEAKS_LEAST && 2 * shown >= rows;
}

static int expect_window(const struct losses *losses, const struct mean *mean, size_t i,
                         const struct place *place, double *out) {
    const size_t n = mean->n < place->at + 1 ? (size_t)mean->n : place->at + 1;
    (void)i;
    *out = (losses->sums[place->at + 1] - losses->sums[place->at + 1 - n]) / (double)n;
    return 1;
}

static int expect_moving(const struct losses *losses, const struct mean *mean, size_t i,
                         const struct place *place, double *out) {
    struct place before;
    if (i == 0 || !place_of(losses, i - 1, &before) || before.at + 1 != place->at) return 0;
    *out = mean->weight * before.mean.value +
           (1.0 - mean->weight) * compare_point(losses->plain, place->at).value;
    return 1;
}

/* Returns the weight of a moving average that leaves the least squares of all rows, or 0. */
static double find_weight(const struct losses *losses) {
    double squares = 0.0, products = 0.0;
    for (size_t i = 1; i < losses->mean->count; i++) {
        struct place before, place;
        if (!place_of(losses, i - 1, &before) || !place_of(losses, i, &place) ||
            before.at + 1 != place.at)
            continue;
        const double loss = compare_point(losses->plain, place.at).value;
        const double gap = before.mean.value - loss;
        squares += gap * gap;
        products += gap * (place.mean.value - loss);
    }
    return products > 0.0 && products < squares ? products / squares : 0.0;
}

/* A moving average that begins at 0 and is divided by 1 - weight^k, as trackers smooth. */
static int find_unbiased(const struct losses *losses, struct mean *mean) {
    static const double weights[] = {0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999};
    for (size_t w = 0; w < COUNT_OF(weights); w++) {
        const double weight = weights[w];
        double average = 0.0, left = 1.0;
        size_t at = 0, rows = 0, shown = 0, i = 0;
        for (; i < losses->mean->count; i++) {
            struct place place;
            if (!place_of(losses, i, &place)) continue;
            for (; at <= place.at; at++) {
                average =
                    weight * average + (1.0 - weight) * compare_point(losses->plain, at).value;
                left *= weight;
            }
            const double slack = slack_of(losses, &place.mean);
            if (!(real_abs_f64(place.mean.value - average / (1.0 - left)) <= slack)) break;
            rows++;
            shown += real_abs_f64(place.mean.value - compare_point(losses->plain, place.at).value) >
                     MEAN_SHOWS * slack;
        }
        if (i < losses->mean->count || rows < SPEAKS_LEAST || 2 * shown < rows) continue;
        *mean = (struct mean){.kind = MEAN_UNBIASED, .weight = weight};
        return 1;
    }
    return 0;
}

static int find_kind(const struct losses *losses, struct mean *mean) {
    for (uint64_t n = 2; n <= WINDOW_MOST && n < losses->plain->count; n++) {
        *mean = (struct mean){.kind = MEAN_WINDOW, .n = n};
        if (holds(losses, mean, expect_window)) return 1;
    }
    *mean = (struct mean){.kind = MEAN_ALL, .n = UINT64_MAX};
    if (holds(losses, mean, expect_window)) return 1;
    *mean = (struct mean){.kind = MEAN_MOVING, .weight = find_weight(losses)};
    if (mean->weight > 0.0 && holds(losses, mean, expect_moving)) return 1;
    return find_unbiased(losses, mean);
}

/* Prepares the losses of one side; returns 0 where it lacks an update or a number. */
static int take_losses(const struct compare_column *column, int mean, struct losses *out) {
    const struct compare_side *const plain = &column->side[1 - mean];
    if (plain->count < SPEAKS_LEAST || column->side[mean].count < SPEAKS_LEAST) return 0;
    out->plain = plain;
    out->mean = &column->side[mean];
    out->grain = out->sums[0] = 0.0;
    for (size_t i = 0; i < plain->count; i++) {
        const struct series_point point = compare_point(plain, i);
        if (point.update != compare_point(plain, 0).update + i || !real_finite_f64(point.value))
            return 0;
        out->sums[i + 1] = out->sums[i] + point.value;
        if (0.5 * point.quantum > out->grain) out->grain = 0.5 * point.quantum;
    }
    return 1;
}

static enum status say_mean(struct compare_report *report, const struct mean *mean,
                            struct arena *arena) {
    const char side = "AB"[mean->side], other = "BA"[mean->side];
    char *what, *text;
    switch (mean->kind) {
    case MEAN_WINDOW:
        TRY(arena_format(arena, &what, "the mean of its last %" PRIu64 " losses", mean->n));
        break;
    case MEAN_ALL:
        TRY(arena_format(arena, &what, "the mean of all its losses up to there"));
        break;
    default:
        TRY(arena_format(arena, &what, "a moving average of its losses (%s of the one before%s)",
                         word_about(mean->weight).text,
                         mean->kind == MEAN_UNBIASED ? ", freed of its start" : ""));
    }
    TRY(arena_format(arena, &text,
                     "%c logs %s where %c logs the loss itself, in every row of both: the losses "
                     "agree, and nothing in the training is shown to differ.",
                     side, what, other));
    compare_say(report, -1, text,
                "Log the loss of each update in both runs; then they can be compared.");
    return STATUS_OK;
}

enum status compare_explain_mean(struct compare_report *report, struct arena *arena, int *out) {
    const struct compare_column *const loss = compare_column_of(report, LOG_LOSS);
    *out = 0;
    if (loss == NULL || loss->class_of != COMPARE_DIFFERENT ||
        compare_first_of(report, compare_gradient_names) != NULL)
        return STATUS_OK;
    for (const enum log_name *name = compare_forward_names + 1; *name != LOG_OTHER; name++) {
        const struct compare_column *const column = compare_column_of(report, *name);
        if (column != NULL && column->class_of == COMPARE_DIFFERENT) return STATUS_OK;
    }
    for (int side = 0; side < 2 && !*out; side++) {
        struct losses losses;
        struct mean mean;
        TRY(arena_take(arena, loss->side[1 - side].count + 1, sizeof *losses.sums, "sums",
                       &losses.sums));
        if (!take_losses(loss, side, &losses) || !find_kind(&losses, &mean)) continue;
        mean.side = side;
        *out = 1;
        TRY(say_mean(report, &mean, arena));
    }
    return STATUS_OK;
}

/* ---- a row for each micro-batch ---- */

/* The fewest rows of the log of updates that tell it, and the most rows that an update has. */
#define BLOCKS_LEAST 8
#define BLOCK_MOST 4096

/* Tells whether the rows of a side are those of updates 1, 2, 3, ... */
static int counts_from_1(const struct compare_side *side) {
    for (size_t i = 0; i < side->count; i++)
        if (compare_point(side, i).update != i + 1) return 0;
    return 1;
}

/* Tells whether each loss of the one side is the mean of `rows` losses of the other, one block
 * behind the other, within what is printed, and not all blocks are of equal losses. */
static int are_means_of_blocks(const struct compare_side *one, const struct compare_side *other,
                               size_t rows) {
    int varies = 0;
    for (size_t i = 0; i < one->count; i++) {
        const struct series_point mean = compare_point(one, i);
        const double first = compare_point(other, i * rows).value;
        double sum = 0.0, open = 0.5 * mean.quantum;
        for (size_t j = i * rows; j < (i + 1) * rows; j++) {
            const struct series_point point = compare_point(other, j);
            sum += point.value;
            open += 0.5 * point.quantum / (double)rows;
            varies |= real_abs_f64(point.value - first) > point.quantum;
        }
        /* f32 adds up to some parts in ten million. */
        open += 1e-6 * real_abs_f64(mean.value);
        if (!(real_abs_f64(sum / (double)rows - mean.value) <= open)) return 0;
    }
    return varies;
}

enum status compare_explain_blocks(struct compare_report *report, struct arena *arena, int *out) {
    const struct compare_column *const loss = compare_column_of(report, LOG_LOSS);
    *out = 0;
    if (loss == NULL || loss->class_of != COMPARE_DIFFERENT) return STATUS_OK;
    for (int side = 0; side < 2 && !*out; side++) {
        const struct compare_side *const one = &loss->side[side], *const other =
                                                                      &loss->side[1 - side];
        const size_t rows = one->count > 0 ? other->count / one->count : 0;
        char *text;
        if (one->count < BLOCKS_LEAST || rows < 2 || rows > BLOCK_MOST ||
            other->count != rows * one->count || !counts_from_1(one) || !counts_from_1(other) ||
            !are_means_of_blocks(one, other, rows))
            continue;
        *out = 1;
        TRY(arena_format(arena, &text,
                         "%c has %zu rows for each one of %c, and each loss of %c is the mean of "
                         "%zu losses of %c, in every row: the losses agree, and %c counts "
                         "micro-batches or processes where %c counts updates, so that rows of one "
                         "number are of other updates. Nothing else was compared.",
                         "BA"[side], rows, "AB"[side], "AB"[side], rows, "BA"[side], "BA"[side],
                         "AB"[side]));
        compare_say(report, -1, text,
                    "Log one row for each update in both runs, numbered by updates; then they can "
                    "be compared.");
    }
    return STATUS_OK;
}

/* ---- a norm that one log takes elsewhere ---- */

int compare_norm_elsewhere(const struct compare_report *report) {
    const struct compare_column *const norm = compare_column_of(report, LOG_GRAD_NORM);
    return norm != NULL && norm->class_of == COMPARE_DIFFERENT &&
           compare_first_of(report, compare_forward_names) == NULL &&
           compare_ratio_of(report, LOG_GRAD_NORM) == NULL && !compare_lrs_differ(report) &&
           compare_judge_norm(report) != COMPARE_GAP_ROUNDING &&
           compare_speaks(report, LOG_LOSS, norm->first_update);
}

/* Returns the limit that the norms of one side are clipped to, if they are those of the other side
 * otherwise; or 0. */
static double clipped_to(const struct compare_column *norm, int side) {
    double limit = 0.0;
    size_t above = 0, below = 0;
    for (size_t i = 0, j = 0; compare_next(norm, &i, &j); i++, j++) {
        const struct series_point points[] = {compare_point(&norm->side[0], i),
                                              compare_point(&norm->side[1], j)};
        const struct series_point *const clipped = &points[side], *const whole = &points[1 - side];
        if (log_compare(clipped->value, clipped->quantum, whole->value, whole->quantum) !=
            LOG_DIFFERENT) {
            below++;
            if (limit > 0.0 && clipped->value > limit + clipped->quantum) return 0.0;
            continue;
        }
        if (above++ == 0) limit = clipped->value;
        if (!(real_abs_f64(clipped->value - limit) <= clipped->quantum + 1e-5 * limit) ||
            whole->value < limit)
            return 0.0;
    }
    return above >= 2 && below >= 2 ? limit : 0.0;
}

enum status compare_explain_norm_elsewhere(struct compare_report *report, struct arena *arena) {
    const struct compare_column *const norm = compare_column_of(report, LOG_GRAD_NORM);
    const double limits[] = {clipped_to(norm, 0), clipped_to(norm, 1)};
    const int side = limits[1] > 0.0;
    char *clip, *text;
    if (limits[side] > 0.0)
        TRY(arena_format(arena, &clip,
                         " That of %c is the other one up to %s, and never more: it is taken "
                         "behind clipping, and that of %c in front of it.",
                         "AB"[side], word_about(limits[side]).text, "BA"[side]));
    else
        TRY(arena_format(arena, &clip,
                         " It may be taken in front of clipping or behind it, of scaled gradients, "
                         "of a part of the tensors, or of one process or micro-batch; or the "
                         "gradients are divided by another number, which steps of Adam hide."));
    TRY(arena_format(arena, &text,
                     "The losses agree in many digits in every update, so the trainings do as far "
                     "as these digits show, and the gradient norm that is logged is another one.%s",
                     clip));
    compare_say(report, -1, text,
                "Look where each of the two takes its norm; nothing in the training is shown to "
                "differ.");
    return STATUS_OK;
}

/* ---- an LR of another update ---- */

int compare_lr_of_print(const struct compare_report *report) {
    const struct compare_column *const lr = compare_column_of(report, LOG_LR_LOGGED);
    return lr != NULL && lr->class_of == COMPARE_DIFFERENT &&
           compare_column_of(report, LOG_LR_APPLIED) == NULL && report->lr.groups_differ == 0 &&
           report->lr.state != COMPARE_LR_SAME && report->lr.alike[0] != NULL;
}

void compare_explain_lr_of_print(struct compare_report *report) {
    const struct compare_column *const lr = compare_column_of(report, LOG_LR_LOGGED);
    report->lr_of_print = 1;
    compare_say(
        report, -1,
        compare_speaks(report, LOG_LOSS, lr->first_update)
            ? "Only the printed LRs differ. Losses agree in many digits behind the first update in "
              "which they do, and there are explanations of both columns under which the applied "
              "LRs agree (line LR): so one log prints the LR of another update, unless applied LRs "
              "are apart by too little for these digits to show it."
            : "Only the printed LRs differ. There are explanations of both columns under which the "
              "applied LRs agree (line LR), one log printing that of another update, and others "
              "under which they differ; nothing else that both logs print shows which it is.",
        "Nothing else is shown to differ. State the contracts (--contract-a, --contract-b) to have "
        "the applied LRs compared.");
}

/* SPDX-License-Identifier: Apache-2.0
 * Ranks the logs' largest ratio among those of the floor's pairs.
 *
 * Invariant: the test is distribution-free. Only ranks of ratios decide, and the ratio of each
 * pair, as that of the logs, is its own gaps over medians of all the others': the same function of
 * one pair and of the rest without their order. So logs and pairs are exchangeable when they are
 * alike.
 */
#include "forensics/compare_floor.h"

#include <math.h>
#include <string.h>

#include "base/real.h"
#include "determinism/power.h"
#include "forensics/compare_parts.h"

/* The largest ratio of each of the n pairs, with that of the logs behind them. */
struct holding {
    const struct floor_file *file;
    struct arena *arena;
    size_t pairs;
    /* (pairs + 1): with the logs' gaps as small, and as large, as they may be. */
    double *low, *high;
    double *usual[2];      /* the same: what stands in for a median of 0 */
    double *cell, *sorted; /* (pairs + 1) */
    struct compare_floor *out;
};

const char *compare_floor_name(enum compare_floor_verdict verdict) {
    static const char *const names[] = {"inside-floor", "outside-floor", "untestable"};
    return names[verdict];
}

/* Returns how many medians a gap is long. */
static double ratio_of(double gap, double median) {
    if (gap == 0.0) return 0.0;
    return median == 0.0 || isinf(gap) ? (double)INFINITY : gap / median;
}

/* Returns the (upper) median of what is left of sorted values without `own`, some of them, sorted
 * as well; 0 if nothing is left. */
static double median_without(const double *sorted, size_t count, const double *own,
                             size_t own_count) {
    const size_t left = count - own_count;
    size_t at = left / 2;
    if (left == 0) return 0.0;
    for (size_t i = 0; i < own_count && own[i] <= sorted[at]; i++)
        at++;
    return sorted[at];
}

/* Adds one cell: the pairs' gaps and that of the logs, all in the same measure. usual[i] stands in
 * where the median of the others than i is 0. A median that counted i itself would measure a gap by
 * itself where no other run moved, and make of any such gap, however large, the same ratio. */
static void add_cell(struct holding *holding, double gap, const double *usual, double *into) {
    const size_t n = holding->pairs;
    holding->cell[n] = gap;
    memcpy(holding->sorted, holding->cell, (n + 1) * sizeof *holding->sorted);
    statistics_sort(holding->sorted, n + 1);
    for (size_t i = 0; i <= n; i++) {
        const double median = median_without(holding->sorted, n + 1, &holding->cell[i], 1);
        const double ratio = ratio_of(holding->cell[i], median == 0.0 ? usual[i] : median);
        if (ratio > into[i]) into[i] = ratio;
    }
}

struct gap {
    double low, high;
};

static double share_of(double gap, double scale) {
    return gap == 0.0 ? 0.0 : gap / scale;
}

/* Measures a gap as the floor measures the column. Printed digits leave half a quantum on either
 * side. */
static struct gap gap_of(const struct series_point *a, const struct series_point *b, int column) {
    const double size = real_abs_f64(a->value - b->value);
    const double slack = (a->quantum + b->quantum) / 2;
    const struct gap gap = {size > slack ? size - slack : 0.0, size + slack};
    /* As the floor's pairs are measured: equal where both broke alike, else without measure. */
    if (isnan(a->value) && isnan(b->value)) return (struct gap){0.0, 0.0};
    if (!isfinite(a->value) && a->value == b->value) return (struct gap){0.0, 0.0};
    if (!isfinite(size)) return (struct gap){(double)INFINITY, (double)INFINITY};
    if (column != FLOOR_GRAD_NORM) return gap;
    const double scale = real_abs_f64(a->value);
    return (struct gap){share_of(gap.low, scale), share_of(gap.high, scale)};
}

static void note_worst(struct compare_floor_column *into, uint64_t update, struct gap gap,
                       double bound) {
    const double worst = into->worst == 0 ? -1.0 : ratio_of(into->gap, into->bound);
    into->updates++;
    if (gap.low > bound && into->above++ == 0) into->first_above = update;
    if (ratio_of(gap.low, bound) <= worst) return;
    into->worst = update;
    into->gap = gap.low;
    into->bound = bound;
}

/* Tells whether a row is of one update: a mean over several updates is no value of one. */
static int is_single(const struct compare_side *side, size_t i) {
    const uint64_t before = i == 0 ? 0 : compare_point(side, i - 1).update;
    return !side->column->windowed || compare_point(side, i).update == before + 1;
}

/* One column of the logs, and where a walk over its updates is. */
struct walk {
    const struct compare_column *column;
    enum floor_column floor;
    size_t i, j;
    uint64_t update;
    struct gap gap;
    int one_broke; /* 1: one of the two values is NaN or infinite, and the other one is a number */
};

/* Goes on to the next update that is in both logs and in the floor, whose gaps come into the cell;
 * 0 after the last one. */
static int next_cell(struct holding *holding, struct walk *walk) {
    const struct compare_side *a = &walk->column->side[0], *b = &walk->column->side[1];
    while (compare_next(walk->column, &walk->i, &walk->j)) {
        const size_t i = walk->i++, j = walk->j++;
        const struct series_point x = compare_point(a, i), y = compare_point(b, j);
        walk->update = x.update;
        if (walk->update < 1 || walk->update > holding->file->steps) continue;
        if (!is_single(a, i) || !is_single(b, j)) continue;
        walk->gap = gap_of(&x, &y, (int)walk->floor);
        walk->one_broke = !isfinite(x.value) != !isfinite(y.value);
        floor_file_at(holding->file, walk->floor, walk->update, holding->cell);
        return 1;
    }
    return 0;
}

/* The gaps of one column that are neither 0 nor infinite, by pair and, behind them, of the logs. */
struct moved {
    double *all, *own; /* own: `most` places for each pair */
    size_t *counts;    /* (pairs + 1), how many of these are taken */
    size_t most, count;
};

static void keep_gap(struct moved *moved, size_t pair, double gap) {
    if (!(gap > 0.0) || isinf(gap)) return;
    moved->own[pair * moved->most + moved->counts[pair]++] = gap;
    moved->all[moved->count++] = gap;
}

/* For each pair and the logs: the median of all gaps of the column that are not 0 and not its own;
 * 0 if there are none. Where most runs agree at an update to the last bit, it says how large a gap
 * is when there is one. */
static enum status usual_gaps(struct holding *holding, struct walk walk, int high, double *out) {
    const size_t n = holding->pairs, a = walk.column->side[0].count, b = walk.column->side[1].count;
    const size_t most = a < b ? a : b; /* a mean of one update counts, whatever the other log is */
    struct moved moved = {.most = most};
    TRY(arena_take(holding->arena, most * (n + 1), sizeof *moved.all, "floor", &moved.all));
    TRY(arena_take(holding->arena, most * (n + 1), sizeof *moved.own, "floor", &moved.own));
    TRY(arena_take(holding->arena, n + 1, sizeof *moved.counts, "floor", &moved.counts));
    while (next_cell(holding, &walk)) {
        for (size_t p = 0; p < n; p++)
            keep_gap(&moved, p, holding->cell[p]);
        keep_gap(&moved, n, high ? walk.gap.high : walk.gap.low);
    }
    statistics_sort(moved.all, moved.count);
    for (size_t i = 0; i <= n; i++) {
        double *own = moved.own + i * most;
        statistics_sort(own, moved.counts[i]);
        out[i] = median_without(moved.all, moved.count, own, moved.counts[i]);
    }
    return STATUS_OK;
}

static enum status hold_column(struct holding *holding, const struct compare_column *column,
                               enum floor_column floor, struct compare_floor_column *into) {
    struct walk walk = {.column = column, .floor = floor};
    TRY(usual_gaps(holding, walk, 0, holding->usual[0]));
    TRY(usual_gaps(holding, walk, 1, holding->usual[1]));
    while (next_cell(holding, &walk)) {
        double bound = 0.0;
        for (size_t p = 0; p < holding->pairs; p++)
            if (holding->cell[p] > bound) bound = holding->cell[p];
        note_worst(into, walk.update, walk.gap, bound);
        if (walk.one_broke && (holding->out->broken == 0 || walk.update < holding->out->broken))
            holding->out->broken = walk.update;
        add_cell(holding, walk.gap.low, holding->usual[0], holding->low);
        add_cell(holding, walk.gap.high, holding->usual[1], holding->high);
    }
    return STATUS_OK;
}

static enum status hold_columns(struct holding *holding, const struct compare_report *report) {
    static const struct {
        enum log_name log;
        enum floor_column floor;
    } known[] = {{LOG_LOSS, FLOOR_LOSS}, {LOG_GRAD_NORM, FLOOR_GRAD_NORM}};
    for (size_t c = 0; c < COUNT_OF(known); c++) {
        const struct compare_column *column = compare_column_of(report, known[c].log);
        struct compare_floor_column *into = &holding->out->columns[holding->out->column_count];
        if (column == NULL || column->pairs == 0) continue;
        if (holding->file->columns[known[c].floor] == NULL) continue;
        *into = (struct compare_floor_column){.name = (int32_t)known[c].log};
        TRY(hold_column(holding, column, known[c].floor, into));
        if (into->updates == 0) continue;
        if (into->updates > holding->out->updates) holding->out->updates = into->updates;
        holding->out->column_count++;
    }
    return STATUS_OK;
}

/* Tells whether any run of any pair broke: its gap to the other one is infinite then. */
static int floor_breaks(const struct floor_file *file) {
    for (int c = 0; c < FLOOR_COLUMNS; c++)
        for (size_t i = 0; file->columns[c] != NULL && i < file->pairs * file->steps; i++)
            if (isinf(file->columns[c][i])) return 1;
    return 0;
}

static enum status say(struct holding *holding, enum compare_floor_verdict verdict, double p) {
    char *text;
    holding->out->verdict = (int32_t)verdict;
    TRY(arena_format(holding->arena, &text, "p = %.4g is %sabove alpha = %g", p,
                     verdict == COMPARE_FLOOR_OUTSIDE ? "not " : "", holding->out->alpha));
    holding->out->words = text;
    return STATUS_OK;
}

/* Whether the Python package measured it, in which other words ask for more pairs. */
static int is_of_python(const struct floor_file *file) {
    return file->writer != NULL && strcmp(file->writer, "twinstep.noise") == 0;
}

static enum status decide(struct holding *holding) {
    struct compare_floor *out = holding->out;
    char *text;
    out->verdict = COMPARE_FLOOR_UNTESTABLE;
    if (out->column_count == 0) {
        out->words = "neither loss nor gradient norm of one update is in both logs and in the "
                     "floor's updates";
        return STATUS_OK;
    }
    if (out->smallest_p > out->alpha) {
        size_t needed;
        char *more;
        TRY(statistics_distance_needed(out->alpha, &needed));
        TRY(arena_format(holding->arena, &more,
                         is_of_python(holding->file) ? "twinstep.noise(..., pairs=%zu)"
                                                     : "twinstep noise --pairs %zu",
                         needed));
        if (out->broken > 0) {
            TRY(arena_format(
                holding->arena, &text,
                "at update %ju one log has NaN or infinity and the other one a number, "
                "as in none of the %ju A/A pairs: that is no gap of rounding, and the "
                "logs differ; whether noise breaks a run as rarely as p <= %g (least "
                "%.3g), %s would say",
                (uintmax_t)out->broken, (uintmax_t)out->pairs, out->alpha, out->smallest_p, more));
            out->words = text;
            return STATUS_OK;
        }
        TRY(arena_format(holding->arena, &text,
                         "%ju A/A pairs cannot give p <= %g (least %.3g): %s would",
                         (uintmax_t)out->pairs, out->alpha, out->smallest_p, more));
        out->words = text;
        return STATUS_OK;
    }
    /* Larger gaps mostly make p smaller, and not always: beside pairs that agree to the last bit
     * they are the only gaps of a cell, and what measures those pairs shrinks. */
    const double most = out->p[0] > out->p[1] ? out->p[0] : out->p[1];
    const double least = out->p[0] > out->p[1] ? out->p[1] : out->p[0];
    if (most <= out->alpha) return say(holding, COMPARE_FLOOR_OUTSIDE, most);
    if (least > out->alpha) return say(holding, COMPARE_FLOOR_INSIDE, least);
    TRY(arena_format(holding->arena, &text,
                     "the printed digits leave p between %.4g and %.4g, alpha = %g", least, most,
                     out->alpha));
    out->words = text;
    return STATUS_OK;
}

/* Runs that are equal to the last bit leave no room: any gap that is surely one is outside. */
static void decide_exact(struct holding *holding, const struct compare_report *report) {
    struct compare_floor *out = holding->out;
    size_t above = report->root_update > 0;
    for (size_t c = 0; c < out->column_count; c++)
        above += out->columns[c].above;
    out->verdict = above > 0               ? COMPARE_FLOOR_OUTSIDE
                   : out->column_count > 0 ? COMPARE_FLOOR_INSIDE
                                           : COMPARE_FLOOR_UNTESTABLE;
    out->words = above > 0 ? "the runs of the floor are equal to the last bit, and these are not"
                 : out->column_count > 0
                     ? "the runs of the floor are equal to the last bit, and these are, too"
                     : "neither loss nor gradient norm of one update is in both logs and in the "
                       "floor's updates";
}

static enum status rank(const double *ratios, size_t pairs, double *out) {
    struct statistics_p p;
    TRY(statistics_test_distance(ratios, pairs, ratios[pairs], &p));
    *out = p.p;
    return STATUS_OK;
}

enum status compare_hold(const struct compare_report *report, const struct floor_file *file,
                         double alpha, struct arena *arena, struct compare_floor *out) {
    struct holding holding = {
        .file = file, .arena = arena, .pairs = (size_t)file->pairs, .out = out};
    double **const arrays[] = {&holding.low,      &holding.high, &holding.usual[0],
                               &holding.usual[1], &holding.cell, &holding.sorted};
    struct power power;
    memset(out, 0, sizeof *out);
    if (file->pairs == 0) FAIL(STATUS_UNTESTABLE, "the floor file holds no A/A pair");
    for (size_t i = 0; i < COUNT_OF(arrays); i++)
        TRY(arena_take(arena, holding.pairs + 1, sizeof **arrays[i], "floor", arrays[i]));
    out->pairs = file->pairs;
    out->alpha = alpha;
    out->smallest_p = 1.0 / (double)(file->pairs + 1);
    /* the largest of n exceeds the content quantile with probability 1 - content^n (Wilks 1941) */
    out->content = real_exp_f64(real_log_f64(1.0 - COMPARE_FLOOR_CONFIDENCE) / (double)file->pairs);
    TRY(power_distance(holding.pairs, alpha, POWER_SHIFT, &power));
    out->power = power.power;
    TRY(hold_columns(&holding, report));
    if (floor_breaks(file)) out->broken = 0;
    out->exact = file->exact;
    if (out->exact) {
        decide_exact(&holding, report);
        return STATUS_OK;
    }
    TRY(rank(holding.low, holding.pairs, &out->p[0]));
    TRY(rank(holding.high, holding.pairs, &out->p[1]));
    /* A run that broke is farther out than any that did not, also than one whose gap is beyond
     * every measure because no other run moved there. */
    if (out->broken > 0) out->p[0] = out->p[1] = out->smallest_p;
    return decide(&holding);
}

/* Tells whether rounding moves a column: it does what runs compute, not what they are given. */
static int is_computed(int32_t name) {
    return name == LOG_LOSS || (name >= LOG_LOGP_CHOSEN && name <= LOG_LOGITS_REJECTED) ||
           name == LOG_GRAD_NORM || name == LOG_PARAM_NORM || name == LOG_EVAL_LOSS;
}

enum compare_verdict compare_floor_verdict_of(const struct compare_report *report,
                                              const struct compare_floor *held) {
    if (report->verdict != COMPARE_VERDICT_DIFFERS) return (enum compare_verdict)report->verdict;
    if (report->lr.state == COMPARE_LR_DIFFERENT || report->rng.found)
        return COMPARE_VERDICT_DIFFERS;
    for (size_t i = 0; i < report->order_count; i++)
        if (!is_computed(report->columns[report->order[i]].name)) return COMPARE_VERDICT_DIFFERS;
    if (held->broken > 0) return COMPARE_VERDICT_DIFFERS;
    if (held->verdict == COMPARE_FLOOR_UNTESTABLE) return COMPARE_VERDICT_UNTESTABLE;
    if (held->verdict != COMPARE_FLOOR_INSIDE) return COMPARE_VERDICT_DIFFERS;
    return report->undecided ? COMPARE_VERDICT_UNTESTABLE : COMPARE_VERDICT_EQUAL;
}

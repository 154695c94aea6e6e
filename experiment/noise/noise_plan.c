/* SPDX-License-Identifier: Apache-2.0
 * Measures the effect of an LR error, cell by cell, and holds it against the floor. The number of
 * runs comes from a model (determinism/power.h), everything else from pairs that were trained.
 * Prints nothing. */
#include "experiment/noise/noise_plan.h"

#include <math.h>
#include <string.h>

#include "base/real.h"
#include "determinism/power.h"
#include "experiment/noise/noise_use.h"

/* These are first_run of the pairs: none of their order seeds is one of the floor's pairs. */
#define EFFECT_RUN 2000000u
#define TWICE_RUN 3000000u

struct planning {
    const struct noise_plan_request *request;
    struct arena *arena;
    struct noise_plan *out;
    double *effect[FLOOR_COLUMNS], *twice[FLOOR_COLUMNS];
    double *values; /* scratch with room for the larger of the two numbers of pairs */
};

static enum status check(const struct noise_plan_request *request) {
    const struct {
        const char *name;
        double value;
    } shares[] = {{"alpha", request->alpha}, {"power", request->power}};
    for (size_t i = 0; i < COUNT_OF(shares); i++)
        if (!(shares[i].value > 0.0 && shares[i].value < 1.0))
            FAIL(STATUS_INPUT, "plan: %s: expected a number between 0 and 1, got %g",
                 shares[i].name, shares[i].value);
    if (request->lr_error > 0.0 && request->lr_error <= 1.0) return STATUS_OK;
    FAIL(STATUS_INPUT, "plan: LR error: expected a number above 0 and up to 1, got %g",
         request->lr_error);
}

static enum status measure_effect(struct planning *planning, const char *what, double error,
                                  uint64_t first, double *columns[FLOOR_COLUMNS]) {
    struct config *other;
    const struct noise_request *of = &planning->request->of;
    TRY(arena_take(planning->arena, 1, sizeof *other, "configuration", &other));
    *other = *of->config;
    other->optimizer.lr = of->config->optimizer.lr * (1.0 + error);
    const struct noise_pairs_plan pairs = {
        .of = of, .other = other, .pairs = planning->out->pairs, .what = what, .first_run = first};
    return noise_pairs_measure(&pairs, planning->arena, columns);
}

static double median_of(double *values, size_t count) {
    statistics_sort(values, count);
    return statistics_quantile(values, count, 0.5);
}

/* Gathers a column's values after update `step` from (pairs, steps). */
static double *gather(struct planning *planning, const double *column, uint64_t pairs,
                      uint64_t step) {
    for (uint64_t i = 0; i < pairs; i++)
        planning->values[i] = column[i * planning->out->steps + step - 1];
    return planning->values;
}

/* The value that a distance must exceed to have p <= alpha: at most alpha (n + 1) - 1 of the n
 * floor pairs are then at or above it. */
static double bound_of(const double *sorted, size_t n, double alpha) {
    size_t above = 0;
    while ((double)(above + 2) / (double)(n + 1) <= alpha)
        above++;
    return sorted[n - 1 - above];
}

/* The median of |x - y| of two normal values of deviation 1: sqrt(2) times the 3/4 quantile. */
#define MEDIAN_PAIR 0.9538725524

/* The shift in units of a run's scatter, from d_AB^2 = shift^2 + d_AA^2, which holds for runs whose
 * scatter and shift are at right angles. It is 0 where noise covers the effect, infinite without
 * noise. */
static double shift_of(double effect, double noise) {
    const double left = effect * effect - noise * noise;
    if (!(left > 0.0)) return 0.0;
    return noise == 0.0 ? (double)INFINITY : real_sqrt_f64(left) / (noise / MEDIAN_PAIR);
}

static enum status fill_cell(struct planning *planning, int column, uint64_t step,
                             struct noise_plan_cell *out) {
    const struct noise_plan *plan = planning->out;
    const struct floor_file *floor = planning->request->floor;
    const size_t n = (size_t)floor->pairs, pairs = (size_t)plan->pairs;
    floor_file_at(floor, (enum floor_column)column, step, planning->values);
    out->noise = median_of(planning->values, n);
    out->bound = bound_of(planning->values, n, plan->alpha);
    out->twice = median_of(gather(planning, planning->twice[column], pairs, step), pairs);
    out->effect = median_of(gather(planning, planning->effect[column], pairs, step), pairs);
    for (size_t i = 0; i < pairs; i++)
        out->seen += planning->values[i] > out->bound;
    out->shift = shift_of(out->effect, out->noise);
    out->least = out->effect > 0.0 ? plan->lr_error * out->bound / out->effect : (double)INFINITY;
    /* The smallest share that would still show so many hits with the confidence: the interval is
     * one-sided, hence the lower end of the two-sided one with twice the error. */
    struct statistics_interval interval;
    TRY(statistics_share_interval(out->seen, plan->pairs, 2.0 * NOISE_PLAN_CONFIDENCE - 1.0,
                                  &interval));
    out->power = interval.low;
    return STATUS_OK;
}

/* Finds the fewest runs of each arm with the power, and for them the fewest updates. */
static enum status find_runs(struct noise_plan *plan) {
    size_t least;
    TRY(statistics_labels_needed(plan->alpha, &least));
    for (size_t runs = least; 2 * runs <= STATISTICS_MAX_RUNS && plan->runs == 0; runs++)
        for (uint64_t k = 1; k <= plan->steps && plan->runs == 0; k++) {
            const double shift = plan->cells[FLOOR_DISTANCE][k - 1].shift;
            struct power power;
            if (shift == 0.0) continue;
            TRY(power_labels(runs, runs, plan->alpha, shift < 100.0 ? shift : 100.0, &power));
            if (power.interval.low < plan->power) continue;
            plan->runs = runs;
            plan->runs_update = k;
        }
    return STATUS_OK;
}

static enum status fill_cells(struct planning *planning) {
    struct noise_plan *plan = planning->out;
    for (int c = 0; c < FLOOR_COLUMNS; c++) {
        TRY(arena_take(planning->arena, (size_t)plan->steps, sizeof *plan->cells[c], "plan",
                       &plan->cells[c]));
        for (uint64_t k = 1; k <= plan->steps; k++) {
            TRY(fill_cell(planning, c, k, &plan->cells[c][k - 1]));
            if (plan->update[c] == 0 && plan->cells[c][k - 1].power >= plan->power)
                plan->update[c] = k;
        }
    }
    return find_runs(plan);
}

static enum status read_floor(const struct noise_plan_source *source, struct noise_request *of,
                              struct arena *arena, struct floor_file *out) {
    struct config *config;
    TRY(floor_file_open(source->path, arena, out));
    if (out->writer != NULL)
        FAIL(STATUS_INPUT, "%s: this floor is of runs of %s, whose weights are not known",
             source->path, out->writer);
    if (of->config != NULL)
        TRY(noise_use_check(source->schema, source->path, out, of->config, 1, arena));
    else {
        TRY(arena_take(arena, 1, sizeof *config, "configuration", &config));
        TRY(config_read(source->schema, source->path, out->configuration, arena, config));
        of->config = config;
    }
    of->steps = out->steps;
    return STATUS_OK;
}

enum status noise_plan_floor(const struct noise_plan_source *source, struct noise_request *of,
                             struct arena *arena, struct floor_file *out) {
    double *columns[FLOOR_COLUMNS];
    if (source->path != NULL) return read_floor(source, of, arena, out);
    const struct noise_pairs_plan pairs = {of, of->config, source->pairs, "A/A pairs",
                                           NOISE_PAIRS_RUN};
    TRY(noise_pairs_measure(&pairs, arena, columns));
    *out = (struct floor_file){.pairs = source->pairs, .steps = of->steps};
    for (int c = 0; c < FLOOR_COLUMNS; c++)
        out->columns[c] = columns[c];
    return STATUS_OK;
}

int noise_plan_is_seen(const struct noise_plan *plan) {
    int seen = plan->runs != 0;
    for (int c = 0; c < FLOOR_COLUMNS; c++)
        seen = seen || plan->update[c] != 0;
    return seen;
}

enum status noise_plan_measure(const struct noise_plan_request *request, struct arena *arena,
                               struct noise_plan *out) {
    struct planning planning = {.request = request, .arena = arena, .out = out};
    size_t pairs, needed;
    char *text;
    TRY(check(request));
    TRY(statistics_maximum_needed(request->power, NOISE_PLAN_CONFIDENCE, &pairs));
    *out = (struct noise_plan){.lr_error = request->lr_error,
                               .alpha = request->alpha,
                               .power = request->power,
                               .floor_pairs = request->floor->pairs,
                               .pairs = pairs,
                               .steps = request->of.steps,
                               .untestable = ""};
    TRY(statistics_distance_needed(out->alpha, &needed));
    if (out->floor_pairs < needed) {
        TRY(arena_format(arena, &text,
                         "%ju A/A pairs cannot give p <= %g: twinstep noise --pairs %zu would",
                         (uintmax_t)out->floor_pairs, out->alpha, needed));
        out->untestable = text;
        return STATUS_OK;
    }
    const size_t most = pairs > out->floor_pairs ? pairs : (size_t)out->floor_pairs;
    TRY(arena_take(arena, most, sizeof *planning.values, "plan", &planning.values));
    TRY(measure_effect(&planning, "pairs with the error", request->lr_error, EFFECT_RUN,
                       planning.effect));
    TRY(measure_effect(&planning, "pairs with twice the error", 2.0 * request->lr_error, TWICE_RUN,
                       planning.twice));
    return fill_cells(&planning);
}

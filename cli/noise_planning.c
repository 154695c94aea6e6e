/* SPDX-License-Identifier: Apache-2.0
 * The floor, the plan, and the plan as text and JSON. */
#include "cli/noise_planning.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/json.h"
#include "experiment/noise/noise_use.h"

/* A file's floor, of the configuration that was asked for, or of its own. */
static enum status open_floor(const struct noise_planning *planning, struct floor_file *floor,
                              struct config *config) {
    struct arena *arena = &planning->cli->arena;
    TRY(floor_file_open(planning->floor, arena, floor));
    if (planning->config == NULL)
        return config_read(planning->cli->schema, planning->floor, floor->configuration, arena,
                           config);
    *config = *planning->config;
    return noise_use_check(planning->cli->schema, planning->floor, floor, config, 1, arena);
}

static void show(void *context, const char *what, uint64_t done, uint64_t total) {
    struct progress *progress = (struct progress *)context;
    progress_count(progress, what, done, total);
}

static enum status measure_floor(const struct noise_planning *planning,
                                 const struct noise_request *request, struct floor_file *floor) {
    double *columns[FLOOR_COLUMNS];
    const struct noise_pairs_plan pairs = {request, request->config, planning->pairs, "A/A pairs",
                                           NOISE_PAIRS_RUN};
    TRY(noise_pairs_measure(&pairs, &planning->cli->arena, columns));
    floor->pairs = planning->pairs;
    floor->steps = request->steps;
    for (int c = 0; c < FLOOR_COLUMNS; c++)
        floor->columns[c] = columns[c];
    return STATUS_OK;
}

static void print_cells(const struct noise_plan *plan, FILE *out) {
    static const char *const titles[FLOOR_COLUMNS] = {
        "loss gap (a log has it)", "gradient norm, relative gap (a log has it)",
        "distance of the weights (a trace or checkpoints have it)"};
    for (int c = FLOOR_COLUMNS - 1; c >= 0; c--) {
        fprintf(out, "\n%s\n  %6s  %10s  %10s  %10s  %9s  %6s  %9s\n", titles[c], "update", "noise",
                "bound", "effect", "seen", "power", "least");
        for (uint64_t k = 0; k < plan->steps; k++) {
            const struct noise_plan_cell *cell = &plan->cells[c][k];
            char seen[48];
            snprintf(seen, sizeof seen, "%ju/%ju", (uintmax_t)cell->seen, (uintmax_t)plan->pairs);
            fprintf(out, "  %6ju  %10.3g  %10.3g  %10.3g  %9s  %6.2f", (uintmax_t)k + 1,
                    cell->noise, cell->bound, cell->effect, seen, cell->power);
            if (isfinite(cell->least))
                fprintf(out, "  %7.2g %%\n", 100.0 * cell->least);
            else
                fprintf(out, "  %9s\n", "-");
        }
    }
}

static void print_answer(const struct noise_plan *plan, FILE *out) {
    static const char *const from[FLOOR_COLUMNS] = {"losses", "gradient norms", "weights"};
    for (int c = FLOOR_COLUMNS - 1; c >= 0; c--)
        if (plan->update[c] != 0)
            fprintf(out, "  from %s: 2 runs, %ju update%s\n", from[c], (uintmax_t)plan->update[c],
                    plan->update[c] == 1 ? "" : "s");
        else
            fprintf(out, "  from %s: untestable within %ju updates with one pair of runs\n",
                    from[c], (uintmax_t)plan->steps);
    if (plan->runs != 0)
        fprintf(out,
                "  without a floor: %zu + %zu runs, %ju update%s (labels permuted, by the "
                "model)\n",
                plan->runs, plan->runs, (uintmax_t)plan->runs_update,
                plan->runs_update == 1 ? "" : "s");
    else
        fprintf(out, "  without a floor: untestable with up to %d + %d runs of %ju updates\n",
                STATISTICS_MAX_RUNS / 2, STATISTICS_MAX_RUNS / 2, (uintmax_t)plan->steps);
}

static void print_plan(const struct noise_planning *planning, const struct noise_plan *plan,
                       const struct config *config, FILE *out) {
    const struct noise_plan_cell *last = &plan->cells[FLOOR_DISTANCE][plan->steps - 1];
    fprintf(out, "%s: an LR error of %g %% (optimizer.lr %g -> %g), alpha %g, power %g\n",
            planning->name, 100.0 * plan->lr_error, config->optimizer.lr,
            config->optimizer.lr * (1.0 + plan->lr_error), plan->alpha, plan->power);
    fprintf(out, "measured: %ju A/A pairs, %ju A/B pairs with this error, %ju with twice of it\n\n",
            (uintmax_t)plan->floor_pairs, (uintmax_t)plan->pairs, (uintmax_t)plan->pairs);
    print_answer(plan, out);
    print_cells(plan, out);
    const double ratio = last->effect > 0.0 ? last->twice / last->effect : (double)NAN;
    fprintf(out,
            "\nnoise, effect: medians of A/A, of A/B pairs. bound: above it p <= alpha. seen: A/B "
            "pairs above it. power: lower\nend of that share with %.0f %% confidence. least: the "
            "smallest LR error whose median is at the bound, if effects are\nproportional to it; "
            "checked: twice the error moved the weights %.3f times as far after update %ju%s.\n"
            "Updates beyond the last were not looked at.\n",
            100.0 * NOISE_PLAN_CONFIDENCE, ratio, (uintmax_t)plan->steps,
            fabs(ratio - 2.0) < 0.2 ? "" : ", so least is no guide here");
}

static json_t *cells_json(const struct noise_plan *plan, int column) {
    json_t *list = json_array();
    for (uint64_t k = 0; k < plan->steps; k++) {
        const struct noise_plan_cell *cell = &plan->cells[column][k];
        json_array_append_new(
            list, json_pack("{sI so so so so sI so so so}", "update", (json_int_t)k + 1, "noise",
                            json_finite(cell->noise), "bound", json_finite(cell->bound), "effect",
                            json_finite(cell->effect), "twice", json_finite(cell->twice), "seen",
                            (json_int_t)cell->seen, "power", json_finite(cell->power), "shift",
                            json_finite(cell->shift), "least", json_finite(cell->least)));
    }
    return list;
}

static json_t *plan_json(const struct noise_planning *planning, const struct noise_plan *plan) {
    json_t *columns = json_object();
    for (int c = 0; c < FLOOR_COLUMNS && plan->untestable[0] == '\0'; c++)
        json_object_set_new(columns, floor_columns[c].name,
                            json_pack("{so so}", "update",
                                      plan->update[c] == 0
                                          ? json_null()
                                          : json_integer((json_int_t)plan->update[c]),
                                      "updates", cells_json(plan, c)));
    return json_pack(
        "{ss so so so sI sI sI so so so so}", "scenario", planning->name, "lr_error",
        json_finite(plan->lr_error), "alpha", json_finite(plan->alpha), "power",
        json_finite(plan->power), "floor_pairs", (json_int_t)plan->floor_pairs, "pairs",
        (json_int_t)plan->pairs, "steps", (json_int_t)plan->steps, "untestable",
        plan->untestable[0] == '\0' ? json_null() : json_string(plan->untestable), "columns",
        columns, "runs_of_each_arm",
        plan->runs == 0 ? json_null() : json_integer((json_int_t)plan->runs), "runs_update",
        plan->runs == 0 ? json_null() : json_integer((json_int_t)plan->runs_update));
}

static int is_seen(const struct noise_plan *plan) {
    int seen = plan->runs != 0;
    for (int c = 0; c < FLOOR_COLUMNS; c++)
        seen = seen || plan->update[c] != 0;
    return seen;
}

enum status noise_planning_run(const struct noise_planning *planning, int *out_exit) {
    struct arena *arena = &planning->cli->arena;
    struct floor_file *floor;
    struct config *config;
    struct noise_plan plan;
    TRY(arena_take(arena, 1, sizeof *floor, "floor", &floor));
    TRY(arena_take(arena, 1, sizeof *config, "configuration", &config));
    if (planning->floor != NULL)
        TRY(open_floor(planning, floor, config));
    else
        *config = *planning->config;
    struct noise_plan_request request = {.of = {.config = config,
                                                .interrupted = planning->cli->interrupted,
                                                .progress = show,
                                                .progress_context = planning->progress},
                                         .floor = floor,
                                         .lr_error = planning->lr_error,
                                         .alpha = planning->alpha,
                                         .power = planning->power};
    request.of.steps = planning->floor != NULL ? floor->steps : planning->steps;
    if (planning->floor == NULL) TRY(measure_floor(planning, &request.of, floor));
    TRY(noise_plan_measure(&request, arena, &plan));
    progress_close(planning->progress);
    *out_exit = plan.untestable[0] == '\0' && is_seen(&plan) ? EXIT_AS_EXPECTED : EXIT_UNTESTABLE;
    if (planning->json) return json_print(plan_json(planning, &plan));
    if (plan.untestable[0] != '\0')
        printf("%s: untestable: %s\n", planning->name, plan.untestable);
    else
        print_plan(planning, &plan, config, stdout);
    return STATUS_OK;
}

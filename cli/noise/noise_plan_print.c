/* SPDX-License-Identifier: Apache-2.0
 * `twinstep noise --plan`: prints how many runs and updates show an LR error above a floor, as text
 * and as JSON. The floor is a file's, or it is measured first. */
#include <math.h>
#include <stdio.h>

#include "base/number.h"
#include "cli/json.h"
#include "cli/noise/noise_asking.h"
#include "experiment/noise/noise_plan.h"

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

static void print_plan(const char *name, const struct noise_plan *plan, const struct config *config,
                       FILE *out) {
    const struct noise_plan_cell *last = &plan->cells[FLOOR_DISTANCE][plan->steps - 1];
    fprintf(out, "%s: an LR error of %g %% (optimizer.lr %g -> %g), alpha %g, power %g\n", name,
            100.0 * plan->lr_error, config->optimizer.lr,
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

static json_t *plan_json(const char *name, const struct noise_case *one,
                         const struct noise_plan *plan) {
    json_t *columns = json_object();
    for (int c = 0; c < FLOOR_COLUMNS && plan->untestable[0] == '\0'; c++)
        json_object_set_new(columns, floor_columns[c].name,
                            json_pack("{so so}", "update", json_positive(plan->update[c]),
                                      "updates", cells_json(plan, c)));
    return json_pack("{ss so so so sI sI sI so so so so ss}", "scenario", name, "lr_error",
                     json_finite(plan->lr_error), "alpha", json_finite(plan->alpha), "power",
                     json_finite(plan->power), "floor_pairs", (json_int_t)plan->floor_pairs,
                     "pairs", (json_int_t)plan->pairs, "steps", (json_int_t)plan->steps,
                     "untestable", json_text(plan->untestable), "columns", columns,
                     "runs_of_each_arm", json_positive(plan->runs), "runs_update",
                     plan->runs == 0 ? json_null() : json_integer((json_int_t)plan->runs_update),
                     "set_by_mode", one->reset);
}

/* Reads a number between 0 and 1, neither of which it may be. */
static enum status read_share(const struct options *options, int key, const char *name,
                              double standard, double *out) {
    const char *text = options_value(options, key);
    *out = standard;
    if (text == NULL) return STATUS_OK;
    if (number_parse_real(text, NUMBER_FINITE, out) == STATUS_OK && *out > 0.0 && *out < 1.0)
        return STATUS_OK;
    FAIL(STATUS_INPUT, "noise: --%s: expected a number between 0 and 1, got \"%s\"", name, text);
}

enum status noise_run_plan(struct noise_asking *asking, int *out_exit) {
    const struct options *options = asking->options;
    struct arena *arena = &asking->cli->arena;
    struct noise_case own = {.mode = asking->modes[0], .dtype = asking->dtypes[0]};
    struct noise_plan_source source = {.schema = asking->cli->schema,
                                       .path = options_value(options, KEY_FLOOR)};
    /* Without a scenario, a floor file says itself what is planned. */
    const int theirs = source.path != NULL && options->argument_count == 0;
    const char *const name = theirs ? source.path : asking->scenario->name;
    struct noise_plan_request request;
    struct floor_file *floor;
    struct config *config;
    struct noise_plan plan;
    size_t needed;
    if (options->output != NULL)
        FAIL(STATUS_INPUT, "noise: --plan writes no file: expected no output");
    if (asking->mode_count != 1 || asking->dtype_count != 1)
        FAIL(STATUS_INPUT, "noise: --plan: expected one mode and one dtype, got %u and %u",
             asking->mode_count, asking->dtype_count);
    TRY(read_share(options, KEY_LR_ERROR, "lr-error", 0.01, &request.lr_error));
    TRY(read_share(options, KEY_ALPHA, "alpha", 0.01, &request.alpha));
    TRY(read_share(options, KEY_POWER, "power", 0.9, &request.power));
    TRY(statistics_distance_needed(request.alpha, &needed));
    source.pairs = asking->pairs != 0 ? asking->pairs : needed;
    TRY(arena_take(arena, 1, sizeof *config, "configuration", &config));
    TRY(arena_take(arena, 1, sizeof *floor, "floor", &floor));
    *config = asking->arm->config;
    TRY(noise_case_set_up(&own, asking->threads, config));
    request.of = noise_request_of(asking, theirs ? NULL : config);
    request.of.resolved = 0;
    request.floor = floor;
    TRY(noise_plan_floor(&source, &request.of, arena, floor));
    TRY(noise_plan_measure(&request, arena, &plan));
    progress_close(asking->progress);
    *out_exit = plan.untestable[0] == '\0' && noise_plan_is_seen(&plan) ? EXIT_AS_EXPECTED
                                                                        : EXIT_UNTESTABLE;
    if (options->json) return json_print(plan_json(name, &own, &plan));
    if (own.reset[0] != '\0' && !theirs)
        printf("mode %s sets %s (own keeps what the scenario gives)\n", own.mode, own.reset);
    if (plan.untestable[0] != '\0')
        printf("%s: untestable: %s\n", name, plan.untestable);
    else
        print_plan(name, &plan, request.of.config, stdout);
    return STATUS_OK;
}

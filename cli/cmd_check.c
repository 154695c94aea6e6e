/* SPDX-License-Identifier: Apache-2.0
 * twinstep check: resolves and validates a scenario and opens both arms. It trains nothing.
 * Invariant: a scenario that passes fails in `run` only for reasons of the machine. */
#include "cli/check.h"

#include <inttypes.h>
#include <string.h>

#include "cli/consent.h"
#include "cli/json.h"
#include "cli/load.h"
#include "experiment/parity/parity.h"
#include "model/pretrained.h"
#include "trainer/run.h"

uint32_t check_trainings(const struct check *check) {
    return check->plan.run_count + (check->plan.floor == FLOOR_EXACT ? 1u : 0u);
}

static enum status open_data(struct check *check, struct arena *arena) {
    struct dataset_options options[2];
    for (int i = 0; i < 2; i++) {
        TRY(load_check_data(check->scenario, i));
        options[i] = run_dataset_options(&check->arms[i].arm->config);
        check->arms[i].dataset = &check->datasets[i];
        if (i == 1 && dataset_options_equal(&options[0], &options[1]))
            check->arms[1].dataset = &check->datasets[0];
        else
            TRY(dataset_open(&options[i], arena, &check->datasets[i]));
    }
    const struct dataset *const datasets[2] = {check->arms[0].dataset, check->arms[1].dataset};
    TRY(held_out_open(check->scenario, datasets, arena, &check->held_out));
    if (check->held_out.count == 0) return STATUS_OK;
    return held_out_words(&check->held_out, arena, &check->held_out_rows, &check->held_out_seen);
}

/* Warns of weights that no training survives (NaN, infinity), and of tensors whose dtype is not the
 * one that config.json says, because another loader would read other values. */
static enum status warn_of_weights(struct check_arm *arm, const struct run *run,
                                   struct arena *arena) {
    struct notes *warnings = &arm->warnings;
    uint32_t broken;
    const char *first;
    char *text;
    TRY(parity_find_broken(run, &broken, &first));
    if (broken > 0) {
        TRY(arena_format(arena, &text,
                         "%" PRIu32 " of %" PRIu32 " tensors hold NaN or infinity in "
                         "numerics.param, first %s: what reads one is NaN",
                         broken, run_owner_count(run), first));
        warnings->text[warnings->count++] = text;
    }
    TRY(pretrained_dtype_note(&arm->arm->config, arena, &text));
    if (text != NULL) warnings->text[warnings->count++] = text;
    return STATUS_OK;
}

/* Does everything that `run` does before its first update, apart from the reference pass of DPO. */
static enum status open_arm(struct check *check, int index, struct arena *arena) {
    struct check_arm *arm = &check->arms[index];
    struct run_options options = check->plan.options;
    struct run *run;
    options.steps = 0;
    options.order_seed = check->plan.runs[index].config.numerics.order_seed;
    TRY(pretrained_check_text(&arm->arm->config, arm->dataset));
    enum status status = run_open(&check->plan.runs[index].config, arm->dataset, &options, &run);
    if (status != STATUS_OK) return status_prefix(status, "%s", arm->arm->name);
    arm->tensors = run_owner_count(run);
    arm->parameters = run_table(run)->elements;
    arm->state_bytes = run_layout(run)->bytes;
    status = warn_of_weights(arm, run, arena);
    run_close(run);
    TRY(status);
    loop_words_of(&arm->arm->config, &arm->words);
    arm->hazard_count = loop_hazards(&arm->arm->config, arm->hazards);
    return notes_of(&arm->arm->config, arm->dataset, check->scenario->steps, arena, &arm->notes);
}

static enum status check_open(struct cli *cli, const struct options *options, struct arena *arena,
                              struct check *check) {
    struct scenario *scenario;
    TRY(load_scenario(cli, arena, options->arguments[0], options, &scenario));
    check->scenario = scenario;
    check->schema = cli->schema;
    for (int i = 0; i < 2; i++)
        check->arms[i].arm = &scenario->arms[i];
    TRY(experiment_plan_open(cli->schema, scenario, arena, &check->plan));
    TRY(factors_of(cli->schema, &check->plan.runs[0].config, &check->plan.runs[1].config, arena,
                   &check->factors, &check->factor_count)); /* seeds that are drawn included */
    TRY(open_data(check, arena));
    for (int i = 0; i < 2; i++)
        TRY(open_arm(check, i, arena));
    return experiment_may_share(&check->plan, check->arms[0].dataset->samples, &check->shared);
}

static enum status run(struct cli *cli, const struct options *options, int *out_exit) {
    struct check *check;
    TRY(arena_take(&cli->arena, 1, sizeof *check, "check", &check));
    TRY(check_open(cli, options, &cli->arena, check));
    *out_exit = EXIT_AS_EXPECTED;
    if (options->json) return json_print(check_json(check));
    check_print(check, stdout);
    return STATUS_OK;
}

static const struct argp_option option_rows[] = {OPTION_SET, OPTIONS_MODULES, OPTION_JSON,
                                                 OPTIONS_END};

const struct verb verb_check = {
    .name = "check",
    .brief = "resolve and validate a scenario; train nothing",
    .arguments = "SCENARIO",
    .text =
        "Resolves SCENARIO and prints what `run` would do: arms, the keys in which they differ and "
        "their causes, what the loops mean and what is risky about them, the floor that will be "
        "measured, the number of trainings, parameters, and the data; and warns of what is odd "
        "about data and weights (NaN, another dtype than config.json says).\v"
        "Example: twinstep check lr-set-before-step --set steps=20",
    .options = option_rows,
    .least = 1,
    .most = 1,
    .run = run,
};

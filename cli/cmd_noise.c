/* SPDX-License-Identifier: Apache-2.0
 * twinstep noise: how far runs are apart that are meant to be the same, one stratum at a time. */
#include <stdio.h>

#include "cli/json.h"
#include "cli/noise_asking.h"
#include "cli/noise_ladder.h"
#include "cli/noise_measuring.h"
#include "cli/noise_models.h"
#include "cli/noise_planning.h"
#include "cli/noise_pricing.h"
#include "cli/noise_report.h"
#include "cli/output.h"
#include "cli/perform.h"
#include "cli/progress.h"

static enum status run_plan(const struct noise_asking *asking, int *out_exit) {
    const struct options *options = asking->options;
    const struct noise_case own = {.mode = asking->modes[0], .dtype = asking->dtypes[0]};
    const char *floor = options_value(options, KEY_FLOOR);
    const int theirs = floor != NULL && options->argument_count == 0;
    struct noise_planning planning = {.cli = asking->cli,
                                      .name = theirs ? floor : asking->scenario->name,
                                      .floor = floor,
                                      .steps = asking->steps,
                                      .progress = asking->progress,
                                      .json = options->json};
    struct config *config;
    size_t needed;
    TRY(noise_read_share(options, KEY_LR_ERROR, "lr-error", 0.01, &planning.lr_error));
    TRY(noise_read_share(options, KEY_ALPHA, "alpha", 0.01, &planning.alpha));
    TRY(noise_read_share(options, KEY_POWER, "power", 0.9, &planning.power));
    TRY(statistics_distance_needed(planning.alpha, &needed));
    planning.pairs = asking->pairs != 0 ? asking->pairs : needed;
    TRY(arena_take(&asking->cli->arena, 1, sizeof *config, "configuration", &config));
    *config = asking->arm->config;
    TRY(noise_case_set_up(&own, asking->threads, config));
    planning.config = theirs ? NULL : config;
    return noise_planning_run(&planning, out_exit);
}

/* Threads race only where there are two; the same number for all, so that times compare. */
static enum status price_dtype(const struct noise_asking *asking, const char *dtype,
                               struct noise_report *report, int *out_exit) {
    struct arena *const arena = &asking->cli->arena;
    const struct noise_case own = {.mode = "own", .dtype = dtype};
    struct config *config;
    TRY(arena_take(arena, 1, sizeof *config, "configuration", &config));
    *config = asking->arm->config;
    const int alone =
        config->numerics.backend == BACKEND_CPU && config->numerics.threads < 2 && !asking->threads;
    TRY(noise_case_set_up(&own, alone ? 2 : asking->threads, config));
    const struct noise_request request = noise_measuring_request(asking, config);
    const struct noise_pricing pricing = {.cli = asking->cli,
                                          .report = report,
                                          .request = &request,
                                          .dtype = dtype,
                                          .json = asking->options->json};
    struct noise_switches switches;
    TRY(noise_pricing_measure(&pricing, &switches));
    TRY(noise_measuring_device(asking, report));
    *out_exit = EXIT_AS_EXPECTED;
    return noise_pricing_print(&pricing, &switches);
}

static enum status run_switches(struct noise_asking *asking, int *out_exit) {
    const struct options *options = asking->options;
    struct noise_report report;
    if (options->output != NULL || options_given(options, KEY_PLAN) ||
        options_given(options, KEY_MODES))
        FAIL(STATUS_INPUT, "noise: --switches goes through modes of its own: expected no --modes, "
                           "no output and no plan");
    TRY(noise_ask(asking));
    if (asking->dtype_count != 1)
        FAIL(STATUS_INPUT, "noise: --switches: expected one dtype, got %u", asking->dtype_count);
    report = (struct noise_report){.scenario = asking->scenario->name,
                                   .arm = asking->arm->name,
                                   .steps = asking->steps,
                                   .repeats = asking->repeats};
    return price_dtype(asking, asking->dtypes[0], &report, out_exit);
}

static enum status run_ops(struct noise_asking *asking, int *out_exit) {
    const struct options *options = asking->options;
    struct noise_ladder ladder = {.cli = asking->cli, .json = options->json};
    char modes[NOISE_WORDS][CONFIG_NAME_SIZE], dtypes[NOISE_WORDS][CONFIG_NAME_SIZE];
    uint64_t threads;
    if (options->argument_count != 0 || options->output != NULL)
        FAIL(STATUS_INPUT, "noise: --ops measures operations: expected no scenario and no output");
    TRY(noise_read_words(options, KEY_MODES, "modes",
                         "invariant,shaped small-batch,shaped large-batch,shuffled,atomic,fast",
                         modes, &ladder.mode_count));
    TRY(noise_read_words(options, KEY_DTYPES, "dtypes", "f32,bf16", dtypes, &ladder.dtype_count));
    TRY(noise_read_number(options, KEY_THREADS, "threads", 64,
                          asking->processors < 2    ? 2
                          : asking->processors < 64 ? asking->processors
                                                    : 64,
                          &threads));
    TRY(noise_load(asking));
    ladder.config = &asking->scenario->arms[0].config;
    ladder.modes = (const char(*)[CONFIG_NAME_SIZE])modes;
    ladder.dtypes = (const char(*)[CONFIG_NAME_SIZE])dtypes;
    ladder.threads = (int)threads;
    return noise_ladder_run(&ladder, out_exit);
}

static enum status run_models(const struct noise_asking *asking, int *out_exit) {
    const struct options *options = asking->options;
    struct noise_models models = {.cli = asking->cli,
                                  .options = options,
                                  .progress = asking->progress,
                                  .processors = asking->processors,
                                  .process = noise_measuring_process};
    char modes[NOISE_WORDS][CONFIG_NAME_SIZE], dtypes[NOISE_WORDS][CONFIG_NAME_SIZE];
    uint64_t repeats;
    if (options->argument_count != 0 || options->output != NULL || options_given(options, KEY_PLAN))
        FAIL(STATUS_INPUT, "noise: --models measures models of its own: expected no scenario, no "
                           "output and no plan");
    TRY(noise_read_words(options, KEY_MODES, "modes",
                         "invariant,deterministic,fast,shuffled,atomic", modes,
                         &models.mode_count));
    TRY(noise_read_words(options, KEY_DTYPES, "dtypes", "bf16", dtypes, &models.dtype_count));
    TRY(noise_read_number(options, KEY_STEPS, "steps", 1000, 1, &models.steps));
    TRY(noise_read_number(options, KEY_REPEAT, "repeat", 1000, 1, &repeats));
    TRY(noise_read_number(options, KEY_THREADS, "threads", 1024, 0, &models.threads));
    models.modes = (const char(*)[CONFIG_NAME_SIZE])modes;
    models.dtypes = (const char(*)[CONFIG_NAME_SIZE])dtypes;
    models.repeats = (uint32_t)repeats;
    return noise_models_run(&models, out_exit);
}

static enum status run_with(struct cli *cli, const struct options *given, struct progress *progress,
                            int *out_exit) {
    struct options with, *const options = &with;
    struct noise_asking asking = {.cli = cli, .options = options, .progress = progress};
    TRY(check_backend(given->backend));
    TRY(set_backend(given, &cli->arena, options));
    struct noise_report report;
    asking.processors = noise_count_processors();
    if (options_given(options, KEY_OPS)) return run_ops(&asking, out_exit);
    if (options_given(options, KEY_MODELS)) return run_models(&asking, out_exit);
    if (options_given(options, KEY_SWITCHES)) return run_switches(&asking, out_exit);
    if (options->output != NULL) TRY(output_try(options->output, options->overwrite));
    TRY(noise_ask(&asking));
    if (options_given(options, KEY_PLAN)) return run_plan(&asking, out_exit);
    TRY(noise_measuring_run(&asking, &report));
    TRY(noise_measuring_write(&asking, &report));
    progress_close(progress);
    const struct noise_counts counts = noise_count(&report);
    *out_exit = counts.apart != 0   ? EXIT_DIFFERS
                : counts.equal != 0 ? EXIT_AS_EXPECTED
                                    : EXIT_UNTESTABLE;
    if (options->json) return json_print(noise_json(&report));
    noise_print(&report, stdout);
    if (options->output != NULL)
        printf("floor    %s: %ju A/A pairs of %s, %s (run --floor, compare --floor, attribute "
               "--floor)\n",
               options->output, (uintmax_t)asking.pairs, report.cases[0].mode,
               report.cases[0].dtype);
    return STATUS_OK;
}

static enum status run(struct cli *cli, const struct options *options, int *out_exit) {
    struct progress progress;
    progress_open(&progress, "noise", progress_wanted(options));
    const enum status status = run_with(cli, options, &progress, out_exit);
    progress_close(&progress);
    return status;
}

static const struct argp_option option_rows[] = {
    OPTION("arm", KEY_ARM, "NAME", "Arm of the scenario; default its first"),
    OPTION(
        "modes", KEY_MODES, "LIST",
        "Of invariant, deterministic, fast, shuffled, shaped, atomic, order-free (beside shuffled: "
        "how far two orders are from exact sums), or own (as the scenario has it); default own, "
        "all but shaped and order-free without scenario and output"),
    OPTION("dtypes", KEY_DTYPES, "LIST",
           "Of f32, f64, bf16, f16 (the last two with f32 masters), or own; default own, f32,bf16 "
           "without scenario and output"),
    OPTION("repeat", KEY_REPEAT, "N", "Runs of each stratum; the worst is shown. Default 3"),
    OPTION("steps", KEY_STEPS, "K", "Updates of each run; default the scenario's"),
    OPTION("threads", KEY_THREADS, "T",
           "Threads of the baseline; default the scenario's, in mode atomic at least 2"),
    OPTION("pairs", KEY_PAIRS, "N",
           "A/A pairs of the floor file, each of two runs that are used for nothing else; default "
           "99, the fewest with which p can be 0.01"),
    OPTION("backend", KEY_BACKEND, "NAME",
           "Whose ops are measured: cpu, cuda; default the scenario's, cpu without one"),
    OPTION("ops", KEY_OPS, NULL,
           "Measure single operations instead of trainings: which keep their bits when other rows, "
           "threads or buffers change"),
    OPTION("models", KEY_MODELS, NULL,
           "Measure a ladder of models (OLMo-2 and Llama, SFT and DPO, 1 to 16 layers) instead of "
           "a scenario, one line per model, dtype and mode; default one update, one repeat, bf16"),
    OPTION("switches", KEY_SWITCHES, NULL,
           "Price each mechanism of determinism (numerics.determinism.*, kinds of sum, modes): one "
           "switched at a time, time ratio and floor of each. --repeat: rounds, default 7"),
    OPTION("plan", KEY_PLAN, NULL,
           "How many runs and updates show an LR error above this floor; measures both"),
    OPTION("lr-error", KEY_LR_ERROR, "X", "Relative LR error of the plan; default 0.01"),
    OPTION("alpha", KEY_ALPHA, "X", "Of the plan's test; default 0.01"),
    OPTION("power", KEY_POWER, "X", "Share of errors that the plan must see; default 0.9"),
    OPTION("floor", KEY_FLOOR, "FILE",
           "Floor file to plan with, instead of measuring one; without SCENARIO its own"),
    OPTION_OUTPUT("Floor file to write, of the first mode and dtype; default none"),
    OPTION_OVERWRITE("Replace a floor file that exists"),
    OPTION_REPRODUCIBLE,
    OPTION_SET,
    OPTION_QUIET,
    OPTION_JSON,
    OPTIONS_END};

const struct verb verb_noise = {
    .name = "noise",
    .brief = "how far runs are apart that are meant to be the same",
    .arguments = "[SCENARIO]",
    .text =
        "Trains the baseline of SCENARIO (a file, or the name of a catalogue scenario; without one "
        "a small DPO training) again and again, changing one thing of the protocol at a time: the "
        "same run restored, a second run, a second process, other threads, micro-batches, padding, "
        "layout. Prints what stays bit-equal, how far the rest is apart, and how far the run is "
        "from the same training in f64.\v"
        "Exit status: 0 all that could be measured is bit-equal, 1 something is not, 2 error, 3 "
        "nothing could be measured.\n"
        "Example: twinstep noise --modes fast --dtypes f32,bf16",
    .options = option_rows,
    .least = 0,
    .most = 1,
    .trains = 1,
    .run = run,
};

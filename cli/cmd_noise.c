/* SPDX-License-Identifier: Apache-2.0
 * twinstep noise: how far runs are apart that are meant to be the same, one stratum at a time. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/number.h"
#include "cli/json.h"
#include "cli/load.h"
#include "cli/noise_file.h"
#include "cli/noise_ladder.h"
#include "cli/noise_models.h"
#include "cli/noise_planning.h"
#include "cli/noise_pricing.h"
#include "cli/noise_report.h"
#include "cli/perform.h"
#include "cli/progress.h"
#include "cli/second.h"

enum {
    KEY_ARM = KEY_OWN,
    KEY_MODES,
    KEY_DTYPES,
    KEY_REPEAT,
    KEY_STEPS,
    KEY_THREADS,
    KEY_PAIRS,
    KEY_PLAN,
    KEY_LR_ERROR,
    KEY_ALPHA,
    KEY_POWER,
    KEY_FLOOR,
    KEY_OPS,
    KEY_MODELS,
    KEY_SWITCHES
};

#define WORDS_MAX 8
#define STANDARD_ROUNDS 7 /* 6 are the fewest with a 95 % interval of a median */
#define STANDARD_PAIRS 99 /* the least p is then 0.01 */

/* Measured when no scenario is named: small enough to wait for, and every stratum has a variant. */
static const char own_scenario[] = "twinstep: 1\n"
                                   "name: noise\n"
                                   "about: Small DPO training for noise floors\n"
                                   "steps: 5\n"
                                   "common:\n"
                                   "  optimizer: {lr: 5e-7}\n"
                                   "  batch: {size: 8, micro: 4}\n"
                                   "arms:\n"
                                   "  baseline: {}\n"
                                   "  test: {}\n";

struct asking {
    struct cli *cli;
    const struct options *options;
    struct progress *progress;
    struct scenario *scenario;
    const struct scenario_arm *arm;
    uint64_t steps, threads, processors; /* threads 0: as the scenario has them */
    uint64_t pairs;                      /* A/A pairs; 0: none */
    uint32_t repeats;
    char modes[WORDS_MAX][CONFIG_NAME_SIZE], dtypes[WORDS_MAX][CONFIG_NAME_SIZE];
    uint32_t mode_count, dtype_count;
};

static enum status read_words(const struct options *options, int key, const char *name,
                              const char *standard, char words[WORDS_MAX][CONFIG_NAME_SIZE],
                              uint32_t *out_count) {
    const char *text = options_value(options, key);
    if (text == NULL) text = standard;
    *out_count = 0;
    for (;;) {
        const size_t length = strcspn(text, ",");
        if (length == 0 || length >= CONFIG_NAME_SIZE || *out_count == WORDS_MAX)
            FAIL(STATUS_INPUT, "noise: --%s: expected up to %d names parted by commas, got \"%s\"",
                 name, WORDS_MAX, text);
        snprintf(words[(*out_count)++], CONFIG_NAME_SIZE, "%.*s", (int)length, text);
        if (text[length] == '\0') return STATUS_OK;
        text += length + 1;
    }
}

static enum status read_number(const struct options *options, int key, const char *name,
                               uint64_t most, uint64_t standard, uint64_t *out) {
    const char *text = options_value(options, key);
    *out = standard;
    if (text == NULL) return STATUS_OK;
    if (number_parse_uint(text, out) != STATUS_OK || *out < 1 || *out > most)
        FAIL(STATUS_INPUT, "noise: --%s: expected a number from 1 to %ju, got \"%s\"", name,
             (uintmax_t)most, text);
    return STATUS_OK;
}

static enum status find_arm(struct asking *asking) {
    const struct scenario *scenario = asking->scenario;
    const char *name = options_value(asking->options, KEY_ARM);
    for (int i = 0; i < 2; i++) {
        asking->arm = &scenario->arms[i];
        if (name == NULL || strcmp(name, asking->arm->name) == 0) return STATUS_OK;
    }
    FAIL(STATUS_INPUT, "noise: --arm: expected %s or %s, got \"%s\"", scenario->arms[0].name,
         scenario->arms[1].name, name);
}

static enum status load(struct asking *asking) {
    const struct options *options = asking->options;
    struct arena *arena = &asking->cli->arena;
    if (options->argument_count == 1)
        return load_scenario(asking->cli, arena, options->arguments[0], options, &asking->scenario);
    return scenario_parse(arena, asking->cli->schema, "builtin:noise", own_scenario,
                          sizeof own_scenario - 1, options->sets, options->set_count,
                          &asking->scenario);
}

static uint64_t count_processors(void) {
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    return processors > 0 ? (uint64_t)processors : 1;
}

static enum status ask(struct asking *asking) {
    const struct options *options = asking->options;
    const int all = options->argument_count == 0 && options->output == NULL &&
                    !options_given(options, KEY_PLAN) && !options_given(options, KEY_SWITCHES);
    uint64_t repeats;
    TRY(load(asking));
    TRY(find_arm(asking));
    TRY(read_words(options, KEY_MODES, "modes",
                   all ? "invariant,deterministic,fast,shuffled,atomic" : "own", asking->modes,
                   &asking->mode_count));
    TRY(read_words(options, KEY_DTYPES, "dtypes", all ? "f32,bf16" : "own", asking->dtypes,
                   &asking->dtype_count));
    TRY(read_number(options, KEY_STEPS, "steps", 1000000, asking->scenario->steps, &asking->steps));
    TRY(read_number(options, KEY_REPEAT, "repeat", 1000000,
                    options_given(options, KEY_SWITCHES) ? STANDARD_ROUNDS : 3, &repeats));
    TRY(read_number(options, KEY_THREADS, "threads", 1024, 0, &asking->threads));
    TRY(read_number(options, KEY_PAIRS, "pairs", 1000000,
                    options->output == NULL ? 0 : STANDARD_PAIRS, &asking->pairs));
    asking->repeats = (uint32_t)repeats;
    return STATUS_OK;
}

static enum status other_process(void *context, const struct config *config, uint64_t steps,
                                 unsigned char *out_path, size_t size) {
    const struct cli *cli = (const struct cli *)context;
    return second_process_path(config, steps, cli->interrupted, out_path, size);
}

static void show(void *context, const char *what, uint64_t done, uint64_t total) {
    struct progress *progress = (struct progress *)context;
    progress_count(progress, what, done, total);
}

static struct noise_request request_of(const struct asking *asking, const struct config *config) {
    return (struct noise_request){.config = config,
                                  .steps = asking->steps,
                                  .resolved = asking->scenario->steps,
                                  .repeats = asking->repeats,
                                  .processors = asking->processors,
                                  .process = other_process,
                                  .context = asking->cli,
                                  .interrupted = asking->cli->interrupted,
                                  .progress = show,
                                  .progress_context = asking->progress};
}

/* Where the noise of runs that are told to be the same arose. */
static enum status find_parts(struct noise_case *one, struct arena *arena) {
    static const enum noise_stratum order[] = {NOISE_INSTANCE, NOISE_PROCESS, NOISE_REPEAT};
    one->parts_of = "";
    for (size_t i = 0; i < COUNT_OF(order) && one->parts == NULL; i++)
        for (uint32_t r = 0; r < one->table.count; r++) {
            const struct noise_row *row = &one->table.rows[r];
            if (row->stratum != order[i] || row->figures.first == 0) continue;
            one->parts_of = noise_stratum_name(row->stratum);
            TRY(arena_take(arena, 1, sizeof *one->parts, "parts", &one->parts));
            TRY(noise_parts_of(&one->table.layout, &row->figures, arena, one->parts));
            break;
        }
    return STATUS_OK;
}

static enum status measure_case(const struct asking *asking, struct noise_case *one) {
    TRY(arena_take(&asking->cli->arena, 1, sizeof *one->config, "configuration", &one->config));
    *one->config = asking->arm->config;
    TRY(noise_case_set_up(one, asking->threads, one->config));
    const struct noise_request request = request_of(asking, one->config);
    TRY(noise_case_measure(&request, &asking->cli->arena, one));
    return find_parts(one, &asking->cli->arena);
}

/* After what is measured: by then the device has loaded what it needs, and its clocks are those of
 * work. */
static enum status find_device(const struct asking *asking, struct noise_report *out) {
    struct arena *arena = &asking->cli->arena;
    char *line;
    TRY(backends_of_config(&asking->arm->config, arena, &out->device));
    TRY(backends_line(&out->device, arena, &line));
    out->device_line = line;
    return STATUS_OK;
}

static int is_measured(const struct noise_case *one, int32_t mode) {
    return one->untestable[0] == '\0' && one->config->numerics.mode == mode &&
           one->table.path != NULL && one->table.instance != NULL;
}

/* Two orders against their neutral reference, of each dtype that has both. */
static enum status relate_orders(const struct asking *asking, struct noise_report *report) {
    struct arena *arena = &asking->cli->arena;
    for (uint32_t a = 0; a < report->count; a++)
        for (uint32_t b = 0; b < report->count; b++) {
            struct noise_case *one = &report->cases[a];
            const struct noise_case *other = &report->cases[b];
            if (!is_measured(one, MODE_SHUFFLED) || !is_measured(other, MODE_ORDER_FREE)) continue;
            if (strcmp(one->dtype, other->dtype) != 0) continue;
            TRY(arena_take(arena, 1, sizeof *one->orders, "orders", &one->orders));
            TRY(noise_orders_measure(&one->table, &other->table, arena, one->orders));
        }
    return STATUS_OK;
}

static enum status measure(const struct asking *asking, struct noise_report *out) {
    *out = (struct noise_report){.scenario = asking->scenario->name,
                                 .arm = asking->arm->name,
                                 .steps = asking->steps,
                                 .repeats = asking->repeats};
    const size_t count = (size_t)asking->mode_count * asking->dtype_count;
    TRY(arena_take(&asking->cli->arena, count, sizeof *out->cases, "cases", &out->cases));
    for (uint32_t m = 0; m < asking->mode_count; m++)
        for (uint32_t d = 0; d < asking->dtype_count; d++) {
            struct noise_case *one = &out->cases[out->count++];
            one->mode = asking->modes[m];
            one->dtype = asking->dtypes[d];
            TRY(measure_case(asking, one));
        }
    TRY(find_device(asking, out));
    return relate_orders(asking, out);
}

/* Before anything is trained: measuring takes longer than being told. */
static enum status check_output(const struct options *options) {
    struct stat info;
    if (options->output == NULL || options->overwrite || stat(options->output, &info) != 0)
        return STATUS_OK;
    FAIL(STATUS_IO, "%s: exists; choose another name, or ask to overwrite it", options->output);
}

static enum status write_file(const struct asking *asking, const struct noise_report *report) {
    const struct options *options = asking->options;
    const struct noise_case *first = &report->cases[0];
    struct noise_writing writing = {.cli = asking->cli,
                                    .report = report,
                                    .scenario = asking->scenario,
                                    .config = first->config,
                                    .pairs = asking->pairs,
                                    .overwrite = options->overwrite,
                                    .reproducible = options->reproducible};
    if (options->output == NULL) return STATUS_OK;
    if (first->untestable[0] != '\0') FAIL(STATUS_UNTESTABLE, "noise: %s", first->untestable);
    const struct noise_request request = request_of(asking, first->config);
    const struct noise_pairs_plan plan = {&request, first->config, asking->pairs, "A/A pairs",
                                          NOISE_PAIRS_RUN};
    TRY(noise_pairs_measure(&plan, &asking->cli->arena, writing.columns));
    return noise_file_write(options->output, &writing);
}

static enum status read_share(const struct options *options, int key, const char *name,
                              double standard, double *out) {
    const char *text = options_value(options, key);
    *out = standard;
    if (text == NULL) return STATUS_OK;
    if (number_parse_real(text, NUMBER_FINITE, out) == STATUS_OK && *out > 0.0 && *out < 1.0)
        return STATUS_OK;
    FAIL(STATUS_INPUT, "noise: --%s: expected a number between 0 and 1, got \"%s\"", name, text);
}

static enum status run_plan(const struct asking *asking, int *out_exit) {
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
    TRY(read_share(options, KEY_LR_ERROR, "lr-error", 0.01, &planning.lr_error));
    TRY(read_share(options, KEY_ALPHA, "alpha", 0.01, &planning.alpha));
    TRY(read_share(options, KEY_POWER, "power", 0.9, &planning.power));
    TRY(statistics_distance_needed(planning.alpha, &needed));
    planning.pairs = asking->pairs != 0 ? asking->pairs : needed;
    TRY(arena_take(&asking->cli->arena, 1, sizeof *config, "configuration", &config));
    *config = asking->arm->config;
    TRY(noise_case_set_up(&own, asking->threads, config));
    planning.config = theirs ? NULL : config;
    return noise_planning_run(&planning, out_exit);
}

/* Threads race only where there are two; the same number for all, so that times compare. */
static enum status price_dtype(const struct asking *asking, const char *dtype,
                               struct noise_report *report, int *out_exit) {
    struct arena *const arena = &asking->cli->arena;
    const struct noise_case own = {.mode = "own", .dtype = dtype};
    struct config *config;
    TRY(arena_take(arena, 1, sizeof *config, "configuration", &config));
    *config = asking->arm->config;
    const int alone =
        config->numerics.backend == BACKEND_CPU && config->numerics.threads < 2 && !asking->threads;
    TRY(noise_case_set_up(&own, alone ? 2 : asking->threads, config));
    const struct noise_request request = request_of(asking, config);
    const struct noise_pricing pricing = {.cli = asking->cli,
                                          .report = report,
                                          .request = &request,
                                          .dtype = dtype,
                                          .json = asking->options->json};
    struct noise_switches switches;
    TRY(noise_pricing_measure(&pricing, &switches));
    TRY(find_device(asking, report));
    *out_exit = EXIT_AS_EXPECTED;
    return noise_pricing_print(&pricing, &switches);
}

static enum status run_switches(struct asking *asking, int *out_exit) {
    const struct options *options = asking->options;
    struct noise_report report;
    if (options->output != NULL || options_given(options, KEY_PLAN) ||
        options_given(options, KEY_MODES))
        FAIL(STATUS_INPUT, "noise: --switches goes through modes of its own: expected no --modes, "
                           "no output and no plan");
    TRY(ask(asking));
    if (asking->dtype_count != 1)
        FAIL(STATUS_INPUT, "noise: --switches: expected one dtype, got %u", asking->dtype_count);
    report = (struct noise_report){.scenario = asking->scenario->name,
                                   .arm = asking->arm->name,
                                   .steps = asking->steps,
                                   .repeats = asking->repeats};
    return price_dtype(asking, asking->dtypes[0], &report, out_exit);
}

static enum status run_ops(struct asking *asking, int *out_exit) {
    const struct options *options = asking->options;
    struct noise_ladder ladder = {.cli = asking->cli, .json = options->json};
    char modes[WORDS_MAX][CONFIG_NAME_SIZE], dtypes[WORDS_MAX][CONFIG_NAME_SIZE];
    uint64_t threads;
    if (options->argument_count != 0 || options->output != NULL)
        FAIL(STATUS_INPUT, "noise: --ops measures operations: expected no scenario and no output");
    TRY(read_words(options, KEY_MODES, "modes",
                   "invariant,shaped small-batch,shaped large-batch,shuffled,atomic,fast", modes,
                   &ladder.mode_count));
    TRY(read_words(options, KEY_DTYPES, "dtypes", "f32,bf16", dtypes, &ladder.dtype_count));
    TRY(read_number(options, KEY_THREADS, "threads", 64,
                    asking->processors < 2    ? 2
                    : asking->processors < 64 ? asking->processors
                                              : 64,
                    &threads));
    TRY(load(asking));
    ladder.config = &asking->scenario->arms[0].config;
    ladder.modes = (const char(*)[CONFIG_NAME_SIZE])modes;
    ladder.dtypes = (const char(*)[CONFIG_NAME_SIZE])dtypes;
    ladder.threads = (int)threads;
    return noise_ladder_run(&ladder, out_exit);
}

static enum status run_models(const struct asking *asking, int *out_exit) {
    const struct options *options = asking->options;
    struct noise_models models = {.cli = asking->cli,
                                  .options = options,
                                  .progress = asking->progress,
                                  .processors = asking->processors,
                                  .process = other_process};
    char modes[WORDS_MAX][CONFIG_NAME_SIZE], dtypes[WORDS_MAX][CONFIG_NAME_SIZE];
    uint64_t repeats;
    if (options->argument_count != 0 || options->output != NULL || options_given(options, KEY_PLAN))
        FAIL(STATUS_INPUT, "noise: --models measures models of its own: expected no scenario, no "
                           "output and no plan");
    TRY(read_words(options, KEY_MODES, "modes", "invariant,deterministic,fast,shuffled,atomic",
                   modes, &models.mode_count));
    TRY(read_words(options, KEY_DTYPES, "dtypes", "bf16", dtypes, &models.dtype_count));
    TRY(read_number(options, KEY_STEPS, "steps", 1000, 1, &models.steps));
    TRY(read_number(options, KEY_REPEAT, "repeat", 1000, 1, &repeats));
    TRY(read_number(options, KEY_THREADS, "threads", 1024, 0, &models.threads));
    models.modes = (const char(*)[CONFIG_NAME_SIZE])modes;
    models.dtypes = (const char(*)[CONFIG_NAME_SIZE])dtypes;
    models.repeats = (uint32_t)repeats;
    return noise_models_run(&models, out_exit);
}

static enum status run_with(struct cli *cli, const struct options *given, struct progress *progress,
                            int *out_exit) {
    struct options with, *const options = &with;
    struct asking asking = {.cli = cli, .options = options, .progress = progress};
    TRY(check_backend(given->backend));
    TRY(set_backend(given, &cli->arena, options));
    struct noise_report report;
    asking.processors = count_processors();
    if (options_given(options, KEY_OPS)) return run_ops(&asking, out_exit);
    if (options_given(options, KEY_MODELS)) return run_models(&asking, out_exit);
    if (options_given(options, KEY_SWITCHES)) return run_switches(&asking, out_exit);
    TRY(check_output(options));
    TRY(ask(&asking));
    if (options_given(options, KEY_PLAN)) return run_plan(&asking, out_exit);
    TRY(measure(&asking, &report));
    TRY(write_file(&asking, &report));
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

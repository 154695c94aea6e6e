/* SPDX-License-Identifier: Apache-2.0
 * twinstep noise: how far runs are apart that are meant to be the same, one stratum at a time.
 * Options --ops, --models, --switches and --plan ask for something else in its place; each has a
 * file of its own. */
#include <stdio.h>
#include <string.h>

#include "cli/ci.h"
#include "cli/consent.h"
#include "cli/cores.h"
#include "cli/environment.h"
#include "cli/json.h"
#include "cli/noise/noise_asking.h"
#include "cli/output.h"
#include "cli/perform.h"
#include "experiment/noise/noise_file.h"

int noise_exit(uint32_t equal, uint32_t apart) {
    return apart != 0 ? EXIT_DIFFERS : equal != 0 ? EXIT_AS_EXPECTED : EXIT_UNTESTABLE;
}

/* The strata and, with --output, the A/A pairs of the first case. */
struct measuring {
    struct noise_asking *asking;
    double *columns[FLOOR_COLUMNS];
    uint64_t pairs; /* measured so far */
};

static void count_pairs(void *context, const char *what, uint64_t done, uint64_t total) {
    struct measuring *m = (struct measuring *)context;
    m->pairs = done;
    progress_count(m->asking->progress, what, done, total);
}

/* Trains the A/A pairs of the first case, of which the floor file is. */
static enum status measure_pairs(struct measuring *m, const struct noise_case *first) {
    struct noise_asking *const asking = m->asking;
    if (first->untestable[0] != '\0') FAIL(STATUS_UNTESTABLE, "noise: %s", first->untestable);
    struct noise_request request = noise_request_of(asking, first->config);
    request.progress = count_pairs;
    request.progress_context = m;
    const struct noise_pairs_plan plan = {&request, first->config, asking->pairs, "A/A pairs",
                                          NOISE_PAIRS_RUN};
    return noise_pairs_measure(&plan, &asking->cli->arena, m->columns);
}

/* Prints a case while the next one is measured, since all of them take a minute. The pairs come
 * right after the first case, so that an interruption later leaves a floor file. */
static enum status case_is_ready(void *context, const struct noise_report *report,
                                 const struct noise_case *one) {
    struct measuring *m = (struct measuring *)context;
    const struct options *options = m->asking->options;
    const volatile int *interrupted = m->asking->cli->interrupted;
    if (!options->json) {
        progress_close(m->asking->progress);
        noise_print_case(report, one, stdout);
        fflush(stdout);
    }
    if (options->output == NULL || report->count != 1 || (interrupted != NULL && *interrupted))
        return STATUS_OK;
    return measure_pairs(m, one);
}

static enum status write_floor(const struct measuring *m, const struct noise_report *report) {
    const struct noise_asking *asking = m->asking;
    const struct options *options = asking->options;
    const struct noise_case *first = &report->cases[0];
    struct arena *const arena = &asking->cli->arena;
    struct noise_file_request file = {.schema = asking->cli->schema,
                                      .scenario = asking->scenario,
                                      .report = report,
                                      .pairs = m->pairs,
                                      .reproducible = options->reproducible};
    struct floor_file floor;
    memcpy(file.columns, m->columns, sizeof file.columns);
    TRY(environment_attributes(asking->cli, config_uses_openblas(first->config), arena,
                               &file.environment, &file.environment_count));
    TRY(noise_file_fill(&file, arena, &floor));
    return floor_file_write(options->output, &floor, options->overwrite, arena);
}

/* Says what was measured, all of it or what there was when the run was interrupted. */
static enum status tell(const struct measuring *m, const struct noise_report *report, int cut) {
    const struct options *options = m->asking->options;
    const uint32_t wanted = m->asking->mode_count * m->asking->dtype_count;
    progress_close(m->asking->progress);
    if (options->json) {
        json_t *object = noise_json(report);
        if (object != NULL) json_object_set_new(object, "interrupted", json_boolean(cut));
        return json_print(object);
    }
    noise_print_end(report, stdout);
    if (cut)
        printf("interrupted: %u of %u tables, the last perhaps in part\n", report->count, wanted);
    if (m->pairs > 0)
        printf("floor    %s: %ju A/A pairs of %s, %s (run --floor, compare --floor, attribute "
               "--floor)\n",
               options->output, (uintmax_t)m->pairs, report->cases[0].mode, report->cases[0].dtype);
    else if (options->output != NULL)
        printf("floor    %s was not written: it holds A/A pairs, and the run was interrupted "
               "before the first of them\n",
               options->output);
    return STATUS_OK;
}

/* An interruption before the first stratum leaves nothing to print or to write. */
static enum status nothing_was_measured(const struct options *options) {
    FAIL(STATUS_INTERRUPTED, "noise: interrupted before the first stratum was measured%s%s%s",
         options->output == NULL ? "" : "; ", options->output == NULL ? "" : options->output,
         options->output == NULL ? "" : " was not written");
}

/* Tells a CI system of one stratum; those that are meant to differ are no case. */
static enum status add_row(struct cli *cli, const struct noise_case *one,
                           const struct noise_row *row) {
    const char *const stratum = noise_stratum_name(row->stratum);
    const int untestable = row->untestable[0] != '\0', apart = row->figures.first != 0;
    char *name, *message;
    if (row->stratum == NOISE_ONE_ULP || row->stratum == NOISE_F64) return STATUS_OK;
    TRY(arena_format(&cli->arena, &name, "%s, %s: %s%s%s", one->mode, one->dtype, stratum,
                     row->variant[0] != '\0' ? ", " : "", row->variant));
    if (untestable)
        TRY(arena_format(&cli->arena, &message, "%s", row->untestable));
    else if (apart)
        TRY(arena_format(&cli->arena, &message, "not bit-equal from update %ju on, first in %s",
                         (uintmax_t)row->figures.first, row->figures.first_place));
    else
        TRY(arena_format(&cli->arena, &message, "%s", "bit-equal"));
    return ci_add(cli, &(struct ci_case){.name = name,
                                         .outcome = untestable ? EXIT_UNTESTABLE
                                                    : apart    ? EXIT_DIFFERS
                                                               : EXIT_AS_EXPECTED,
                                         .title = "twinstep noise",
                                         .message = message,
                                         .seconds = -1.0});
}

static enum status add_cases(struct cli *cli, const struct noise_report *report) {
    for (uint32_t c = 0; c < report->count; c++) {
        const struct noise_case *one = &report->cases[c];
        char *name;
        for (uint32_t i = 0; i < one->table.count; i++)
            TRY(add_row(cli, one, &one->table.rows[i]));
        if (one->untestable[0] == '\0') continue;
        TRY(arena_format(&cli->arena, &name, "%s, %s", one->mode, one->dtype));
        TRY(ci_add(cli, &(struct ci_case){.name = name,
                                          .outcome = EXIT_UNTESTABLE,
                                          .title = "twinstep noise",
                                          .message = one->untestable,
                                          .seconds = -1.0}));
    }
    return STATUS_OK;
}

static enum status run_strata(struct noise_asking *asking, int *out_exit) {
    const struct options *options = asking->options;
    struct measuring m = {.asking = asking};
    struct noise_report report = {.scenario = asking->scenario->name,
                                  .arm = asking->arm->name,
                                  .steps = asking->steps,
                                  .repeats = asking->repeats,
                                  .ready = case_is_ready,
                                  .ready_context = &m};
    const struct noise_request of = noise_request_of(asking, &asking->arm->config);
    const struct noise_words words = noise_words_of(asking);
    if (!options->json) {
        noise_print_title(&report, stdout);
        fflush(stdout); /* a pipe's reader sees that the first table is being measured */
    }
    const enum status status =
        noise_report_measure(&of, &words, asking->threads, &asking->cli->arena, &report);
    const int cut = status == STATUS_INTERRUPTED;
    if (cut && report.count == 0) return nothing_was_measured(options);
    if (status != STATUS_OK && !cut) return status;
    if (m.pairs > 0) TRY(write_floor(&m, &report));
    TRY(tell(&m, &report, cut));
    TRY(add_cases(asking->cli, &report));
    const struct noise_counts counts = noise_count(&report);
    *out_exit = cut ? EXIT_INTERRUPTED : noise_exit(counts.equal, counts.apart);
    return STATUS_OK;
}

/* What the verb is asked for. */
enum asked { ASKED_STRATA, ASKED_PLAN, ASKED_SWITCHES, ASKED_MODELS, ASKED_OPS, ASKED_COUNT };

static const struct {
    int key; /* 0: asked for by none of these options */
    const char *name;
} asked_by[ASKED_COUNT] = {[ASKED_STRATA] = {0, "strata"},
                           [ASKED_PLAN] = {KEY_PLAN, "--plan"},
                           [ASKED_SWITCHES] = {KEY_SWITCHES, "--switches"},
                           [ASKED_MODELS] = {KEY_MODELS, "--models"},
                           [ASKED_OPS] = {KEY_OPS, "--ops"}};

#define OF_STRATA (1u << ASKED_STRATA)
#define OF_PLAN (1u << ASKED_PLAN)
#define OF_SWITCHES (1u << ASKED_SWITCHES)
#define OF_MODELS (1u << ASKED_MODELS)

/* Fails where an option is given that what was asked for does not read. It would be ignored, and a
 * mistake in it stay unseen. Each of the four refuses a scenario, an output or modes by itself. */
static enum status check_read(const struct options *options, enum asked asked) {
    static const struct {
        int key;
        const char *name;
        unsigned readers;
    } rows[] = {{KEY_LR_ERROR, "lr-error", OF_PLAN},
                {KEY_ALPHA, "alpha", OF_PLAN},
                {KEY_POWER, "power", OF_PLAN},
                {KEY_FLOOR, "floor", OF_PLAN},
                {KEY_ARM, "arm", OF_STRATA | OF_PLAN | OF_SWITCHES},
                {KEY_REPEAT, "repeat", OF_STRATA | OF_SWITCHES | OF_MODELS},
                {KEY_STEPS, "steps", OF_STRATA | OF_PLAN | OF_SWITCHES | OF_MODELS},
                {KEY_PAIRS, "pairs", OF_STRATA | OF_PLAN}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (!options_given(options, rows[i].key) || (rows[i].readers >> asked & 1u) != 0) continue;
        if (rows[i].readers == OF_PLAN)
            FAIL(STATUS_INPUT, "noise: --%s: acts on --plan alone, which is not asked for",
                 rows[i].name);
        FAIL(STATUS_INPUT, "noise: --%s: expected no such option beside %s, which does not read it",
             rows[i].name, asked_by[asked].name);
    }
    return STATUS_OK;
}

static enum status find_asked(const struct options *options, enum asked *out) {
    *out = ASKED_STRATA;
    for (int i = ASKED_PLAN; i < ASKED_COUNT; i++) {
        if (!options_given(options, asked_by[i].key)) continue;
        if (*out != ASKED_STRATA)
            FAIL(STATUS_INPUT,
                 "noise: expected one of --plan, --switches, --models and --ops, got "
                 "%s and %s",
                 asked_by[*out].name, asked_by[i].name);
        *out = (enum asked)i;
    }
    return check_read(options, *out);
}

static enum status run_with(struct cli *cli, const struct options *given, struct progress *progress,
                            int *out_exit) {
    struct options with, *const options = &with;
    struct noise_asking asking = {.cli = cli, .options = options, .progress = progress};
    enum asked asked;
    TRY(check_backend(given->backend));
    TRY(find_asked(given, &asked));
    TRY(set_backend(given, &cli->arena, options));
    asking.processors = cores_usable();
    switch (asked) {
    case ASKED_OPS:
        return noise_run_ops(&asking, out_exit);
    case ASKED_MODELS:
        return noise_run_models(&asking, out_exit);
    case ASKED_SWITCHES:
        return noise_run_switches(&asking, out_exit);
    case ASKED_PLAN:
        TRY(noise_ask(&asking));
        return noise_run_plan(&asking, out_exit);
    default:
        if (options_given(options, KEY_PAIRS) && options->output == NULL)
            FAIL(STATUS_INPUT, "noise: --pairs: acts on --output and on --plan, of which neither "
                               "is asked for");
        TRY(noise_ask(&asking));
        const struct noise_words words = noise_words_of(&asking);
        TRY(noise_words_check(&words));
        if (options->output != NULL) {
            TRY(output_try(options->output, options->overwrite));
            TRY(trace_try(options->output, options->overwrite, &cli->arena));
        }
        return run_strata(&asking, out_exit);
    }
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
        "how far two orders are from exact sums), or own (as the scenario has it); a mode sets "
        "numerics.determinism.* as well, and says which given keys that takes back; default own; "
        "without a scenario fast,atomic,shuffled,deterministic,invariant, and fast,atomic with "
        "--output"),
    OPTION("dtypes", KEY_DTYPES, "LIST",
           "Of f32, f64, bf16, f16 (the last two with f32 masters), or own; default own; without a "
           "scenario f32,bf16, and f32 with --output"),
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
    OPTION("no-room-check", KEY_ROOM, NULL,
           "Measure even where the disk or the memory that are free seem too small for it. By "
           "default such a measurement is refused when its first run is open, with what it needs "
           "and what there is (not with --ops, whose buffers are small)"),
    OPTION_OUTPUT("Floor file to write, of the first mode and dtype; default none"),
    OPTION_OVERWRITE("Replace a floor file that exists"),
    OPTION_REPRODUCIBLE,
    OPTION_SET,
    OPTION_QUIET,
    OPTIONS_MODULES,
    OPTIONS_CI,
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
        "layout, and, where several ranks train, their number or the order and buckets of their "
        "sums. Prints what stays bit-equal, how far the rest is apart, and how far the run is from "
        "the same training in f64. Without SCENARIO the modes in which a machine is noisy come "
        "first (fast, atomic). A table is printed as soon as it is measured. An interrupted run "
        "prints the strata that it has and writes the A/A pairs that it has, which are measured "
        "behind the first table; without a pair it writes no floor file and says so.\v"
        "Exit status: 0 all that could be measured is bit-equal, 1 something is not, 2 error, 3 "
        "nothing could be measured.\n"
        "Example: twinstep noise --modes fast --dtypes f32,bf16",
    .options = option_rows,
    .least = 0,
    .most = 1,
    .trains = 1,
    .run = run,
};

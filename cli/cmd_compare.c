/* SPDX-License-Identifier: Apache-2.0
 * twinstep compare: holds two logs against each other, column by column. It trains nothing. */
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "cli/ci.h"
#include "cli/compare_print.h"
#include "cli/consent.h"
#include "cli/log_options.h"
#include "cli/verb.h"
#include "evidence/backend_seen.h"
#include "experiment/noise/noise_use.h"
#include "forensics/compare_floor.h"
#include "forensics/compare_rows.h"
#include "forensics/cut_digits.h"

enum {
    KEY_CONTRACT_A = KEY_OWN,
    KEY_CONTRACT_B,
    KEY_FORMAT_A,
    KEY_FORMAT_B,
    KEY_RUN_A,
    KEY_RUN_B,
    KEY_FLOOR,
    KEY_ALPHA,
    KEY_COMMON
};

/* Reads --contract-a or --contract-b; *out is NULL without the option. */
static enum status read_contract(const struct options *options, int key, const char *name,
                                 const struct contract **out) {
    const char *text = options_value(options, key);
    *out = NULL;
    if (text == NULL) return STATUS_OK;
    *out = contract_find(text);
    if (*out == NULL)
        FAIL(STATUS_INPUT, "%s: no contract \"%s\" (twinstep list contracts)", name, text);
    return STATUS_OK;
}

static enum status fit_side(struct compare_input *input, const struct contract *contract,
                            struct arena *arena) {
    struct series *series;
    struct fit_set *fits;
    struct fit_known known;
    fit_known_init(&known);
    size_t skipped;
    TRY(fit_known_from_log(&known, input->log, arena));
    TRY(fit_skipped_from_log(&known, input->log, arena, &skipped));
    known.request.contract = contract;
    TRY(arena_take(arena, 1, sizeof *series, "series", &series));
    TRY(arena_take(arena, 1, sizeof *fits, "fits", &fits));
    TRY(series_of(input->log, log_column_of(input->log, LOG_LR_LOGGED), arena, series));
    TRY(fit_series(series, &known, arena, fits));
    fit_keep_native(&known, fits);
    input->fits = fits;
    input->contract = contract != NULL ? contract->name : NULL;
    return STATUS_OK;
}

static enum status read_side(struct cli *cli, const struct options *options, size_t side,
                             struct compare_input *out, struct log **out_log,
                             struct trace_image **out_image) {
    static const char *const formats[] = {"--format-a", "--format-b"};
    struct log_options log_options;
    TRY(log_options_read(options, &cli->arena, &log_options));
    TRY(log_options_format(formats[side],
                           options_value(options, side == 0 ? KEY_FORMAT_A : KEY_FORMAT_B),
                           &log_options));
    const char *run = options_value(options, side == 0 ? KEY_RUN_A : KEY_RUN_B);
    if (run != NULL) log_options.run = run;
    TRY(log_import(options->arguments[side], &log_options, &cli->arena, out_log));
    out->log = *out_log;
    out->may_end = options_given(options, KEY_COMMON);
    if (strcmp(out->log->format, "trace") == 0)
        TRY(log_import_run(options->arguments[side], &log_options, &cli->arena, out_image,
                           &out->run));
    return STATUS_OK;
}

/* Fits the LRs of both, whose rows are numbered by each other's epochs where one prints no step. */
static enum status fit_sides(struct cli *cli, const struct options *options, struct log *logs[2],
                             struct compare_input input[2]) {
    static const char *const names[] = {"--contract-a", "--contract-b"};
    for (size_t side = 0; side < 2; side++)
        TRY(compare_number_rows(logs[1 - side], logs[side], &cli->arena));
    for (size_t side = 2; side-- > 0;)
        TRY(compare_shift_rows(logs[1 - side], logs[side], &cli->arena));
    TRY(cut_digits_by_other(logs[0], logs[1], &cli->arena));
    for (size_t side = 0; side < 2; side++) {
        const struct contract *contract;
        TRY(read_contract(options, side == 0 ? KEY_CONTRACT_A : KEY_CONTRACT_B, names[side],
                          &contract));
        TRY(fit_side(&input[side], contract, &cli->arena));
    }
    return STATUS_OK;
}

static enum status read_alpha(const struct options *options, double *out) {
    const char *text = options_value(options, KEY_ALPHA);
    *out = 0.01;
    if (text == NULL) return STATUS_OK;
    if (number_parse_real(text, NUMBER_FINITE, out) == STATUS_OK && *out > 0.0 && *out < 1.0)
        return STATUS_OK;
    FAIL(STATUS_INPUT, "compare: --alpha: expected a number between 0 and 1, got \"%s\"", text);
}

/* The configuration of A, of another program, line by line against the floor's: which line is the
 * first that differs, because a floor for another machine or setting is asked for most often. */
static enum status check_lines(const char *path, const char *of_floor, const char *of_a) {
    while (*of_floor != '\0' || *of_a != '\0') {
        const size_t floor_length = strcspn(of_floor, "\n"), a_length = strcspn(of_a, "\n");
        if (floor_length != a_length || memcmp(of_floor, of_a, a_length) != 0)
            FAIL(STATUS_INPUT,
                 "%s: this floor was measured for another configuration than A's (B may have "
                 "another one). The first line that differs: \"%.*s\" in the floor, \"%.*s\" in A",
                 path, (int)(floor_length < 200 ? floor_length : 200), of_floor,
                 (int)(a_length < 200 ? a_length : 200), of_a);
        of_floor += floor_length + (of_floor[floor_length] == '\n');
        of_a += a_length + (of_a[a_length] == '\n');
    }
    return STATUS_OK;
}

/* If A is a run of a trace, its configuration is known and must be the floor's. */
static enum status check_floor(const struct cli *cli, const char *path,
                               const struct floor_file *file, const struct compare_input *a,
                               struct arena *arena) {
    struct config config;
    const struct trace_foreign *foreign = a->run == NULL ? NULL : a->run->plan.foreign;
    if (foreign != NULL && file->writer == NULL)
        FAIL(STATUS_INPUT,
             "%s: this floor was measured for a run of twinstep, and A is of another "
             "program: twinstep floor measures one of such runs",
             path);
    if (foreign != NULL) return check_lines(path, file->configuration, a->run->plan.configuration);
    if (a->run == NULL || a->run->plan.configuration == NULL ||
        a->run->plan.configuration[0] == '\0')
        return STATUS_OK;
    TRY(config_read(cli->schema, "configuration of A", a->run->plan.configuration, arena, &config));
    return noise_use_check(cli->schema, path, file, &config, 1, arena);
}

/* Finds out what a run of a trace ran on. Of any other log this is not known. */
static struct backend_seen seen_of(const struct compare_input *input,
                                   const struct trace_image *image) {
    if (input->run == NULL) return (struct backend_seen){NULL, 0, NULL};
    return backends_of_run(image, input->run->plan.id);
}

static enum status note_devices(struct cli *cli, const struct compare_input *input,
                                struct trace_image *const *images, struct compare_report *report) {
    static const char *const names[2] = {"in A", "in B"};
    const struct backend_seen seen[2] = {seen_of(&input[0], images[0]),
                                         seen_of(&input[1], images[1])};
    char *text;
    TRY(backends_difference(seen, names, &cli->arena, &text));
    report->devices = text;
    return STATUS_OK;
}

static enum status hold(struct cli *cli, const struct options *options,
                        const struct compare_input *input, const struct trace_image *image,
                        struct compare_report *report) {
    const char *path = options_value(options, KEY_FLOOR);
    struct floor_file file;
    struct compare_floor *held;
    char *elsewhere;
    double alpha;
    TRY(read_alpha(options, &alpha));
    if (path == NULL) return STATUS_OK;
    TRY(floor_file_open(path, &cli->arena, &file));
    TRY(check_floor(cli, path, &file, &input[0], &cli->arena));
    TRY(arena_take(&cli->arena, 1, sizeof *held, "floor", &held));
    TRY(compare_hold(report, &file, alpha, &cli->arena, held));
    report->floor = held;
    TRY(compare_explain_floor(report, held, &cli->arena));
    const struct backend_seen seen[2] = {backends_of_floor(&file), seen_of(&input[0], image)};
    TRY(backends_difference(seen, backends_here, &cli->arena, &elsewhere));
    report->elsewhere = elsewhere;
    return STATUS_OK;
}

static enum status add_case(struct cli *cli, const struct options *options,
                            const struct compare_report *report, int code) {
    const struct compare_column *first =
        report->order_count > 0 ? &report->columns[report->order[0]] : NULL;
    char *name, *message;
    TRY(arena_format(&cli->arena, &name, "%s against %s", options->arguments[0],
                     options->arguments[1]));
    if (first == NULL)
        TRY(arena_format(&cli->arena, &message, "%s", report->why));
    else
        TRY(arena_format(&cli->arena, &message, "%s differs first, at update %llu. %s",
                         log_names[first->name].name, (unsigned long long)first->first_update,
                         report->meaning));
    return ci_add(cli, &(struct ci_case){.name = name,
                                         .outcome = code,
                                         .title = code == EXIT_DIFFERS ? "the logs differ"
                                                                       : "the logs cannot say",
                                         .message = message,
                                         .file = options->arguments[1],
                                         .seconds = -1.0});
}

/* Compares while the traces, of which there are none, one or two, are open. */
static enum status compare(struct cli *cli, const struct options *options,
                           struct compare_input *input, struct trace_image **images,
                           struct compare_report *report) {
    struct log *logs[2];
    for (size_t side = 0; side < 2; side++)
        TRY(read_side(cli, options, side, &input[side], &logs[side], &images[side]));
    TRY(fit_sides(cli, options, logs, input));
    TRY(compare_logs(input, &cli->arena, report));
    for (size_t side = 0; side < 2; side++)
        if (images[side] != NULL) TRY(trace_rows_status(images[side]));
    TRY(note_devices(cli, input, images, report));
    return hold(cli, options, input, images[0], report);
}

static enum status run(struct cli *cli, const struct options *options, int *out_exit) {
    static const int exits[] = {EXIT_AS_EXPECTED, EXIT_DIFFERS, EXIT_UNTESTABLE};
    struct compare_input input[2];
    struct compare_report report;
    struct trace_image *images[2] = {NULL, NULL};
    memset(input, 0, sizeof input);
    const enum status status = compare(cli, options, input, images, &report);
    for (size_t side = 0; side < 2; side++)
        trace_close(images[side]);
    TRY(status);
    *out_exit = exits[report.floor == NULL ? (enum compare_verdict)report.verdict
                                           : compare_floor_verdict_of(&report, report.floor)];
    TRY(add_case(cli, options, &report, *out_exit));
    if (options->json) return compare_print_json(input, &report);
    if (options->markdown)
        compare_print_markdown(input, &report, stdout);
    else
        compare_print_text(input, &report, stdout);
    return STATUS_OK;
}

static const struct argp_option option_rows[] = {
    OPTIONS_LOG,
    OPTION("format-a", KEY_FORMAT_A, "NAME", "Format of log A (before --format)"),
    OPTION("format-b", KEY_FORMAT_B, "NAME", "Format of log B (before --format)"),
    OPTION("run-a", KEY_RUN_A, "ID", "Which run of trace A (before --run)"),
    OPTION("run-b", KEY_RUN_B, "ID", "Which run of trace B (before --run)"),
    OPTION("contract-a", KEY_CONTRACT_A, "NAME",
           "LR contract of A's framework and version; default: every one that explains its LRs"),
    OPTION("contract-b", KEY_CONTRACT_B, "NAME", "The same of B"),
    OPTION("floor", KEY_FLOOR, "FILE",
           "Hold loss and gradient norm against this floor file (twinstep noise -o)"),
    OPTION("alpha", KEY_ALPHA, "X", "Of the test against the floor; default 0.01"),
    OPTION("common", KEY_COMMON, NULL,
           "Judge the updates that both have; without it a log that ends while the other one goes "
           "on is not equal to it (exit status 3)"),
    OPTIONS_MODULES,
    OPTIONS_CI,
    OPTION_JSON,
    OPTION("markdown", KEY_MARKDOWN, NULL, "Print a block to paste into an issue"),
    OPTIONS_END};

const struct verb verb_compare = {
    .name = "compare",
    .brief = "two runs from their logs: what differs first, and what it means",
    .arguments = "A B",
    .text =
        "Reads two logs of any kinds, aligns them by update (of updates that a log repeats after a "
        "resume the later rows count) and compares every column within the precision it was "
        "printed with. The order of first differences points to a cause; a fixed ratio names a "
        "bug. Printed LRs are not applied LRs: the contracts that explain both columns are "
        "compared, too.\v"
        "Exit status: 0 equal within precision (with --floor: or inside the floor), 1 differs, 2 "
        "error, 3 untestable, as where all agrees and one log ends early.\n"
        "Example: twinstep compare baseline/trainer_state.json test.log --contract-a hf-4.50 "
        "--contract-b olmo-core",
    .options = option_rows,
    .least = 2,
    .most = 2,
    .run = run,
};

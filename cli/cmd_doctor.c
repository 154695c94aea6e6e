/* SPDX-License-Identifier: Apache-2.0
 * twinstep doctor: says what is wrong with a training, as far as its log can tell. It trains
 * nothing. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "cli/ci.h"
#include "cli/json.h"
#include "cli/log_options.h"
#include "cli/plain_text.h"
#include "cli/verb.h"
#include "determinism/trace.h"
#include "forensics/cut_digits.h"
#include "forensics/doctor/doctor.h"
#include "forensics/fit_rows.h"

enum {
    KEY_PROCESSES = KEY_OWN,
    KEY_ACCUMULATE,
    KEY_PAIRS,
    KEY_VOCAB,
    KEY_DTYPE,
    KEY_MASTER,
    KEY_DECAY,
    KEY_EVERY,
    KEY_VERBOSE
};

static enum status read_count(const struct options *options, int key, const char *name,
                              uint64_t *out) {
    const char *text = options_value(options, key);
    if (text == NULL) return STATUS_OK;
    if (number_parse_uint(text, out) != STATUS_OK || *out == 0)
        FAIL(STATUS_INPUT, "--%s: expected an integer >= 1, got \"%s\"", name, text);
    return STATUS_OK;
}

static enum status read_dtype(const struct options *options, struct doctor_options *out) {
    const char *text = options_value(options, KEY_DTYPE);
    const char *master = options_value(options, KEY_MASTER);
    if (master != NULL && strcmp(master, "none") != 0 && strcmp(master, "f32") != 0)
        FAIL(STATUS_INPUT, "--master: expected none or f32, got \"%s\"", master);
    out->master_none = master != NULL && strcmp(master, "none") == 0;
    if (text == NULL) return STATUS_OK;
    for (int32_t dtype = 0; dtype < DTYPE_COUNT; dtype++)
        if (strcmp(text, dtype_name((enum dtype)dtype)) == 0) {
            out->dtype_given = 1;
            out->dtype = dtype;
            return STATUS_OK;
        }
    FAIL(STATUS_INPUT, "--dtype: expected f32, f64, bf16, f16, tf32, e4m3 or e5m2, got \"%s\"",
         text);
}

static enum status read_own(const struct options *options, struct doctor_options *out) {
    const char *decay = options_value(options, KEY_DECAY);
    doctor_options_init(out);
    TRY(read_count(options, KEY_PROCESSES, "processes", &out->processes));
    TRY(read_count(options, KEY_ACCUMULATE, "accumulate", &out->accumulate));
    TRY(read_count(options, KEY_PAIRS, "pairs", &out->pairs));
    TRY(read_count(options, KEY_VOCAB, "vocab", &out->vocab));
    TRY(read_dtype(options, out));
    if (decay == NULL) return STATUS_OK;
    const enum status status = number_parse_real(decay, NUMBER_FINITE, &out->weight_decay);
    if (status != STATUS_OK) return status_prefix(status, "--weight-decay");
    if (!(out->weight_decay >= 0.0 && out->weight_decay <= 1.0))
        FAIL(STATUS_INPUT, "--weight-decay: expected a number from 0 to 1, got \"%s\"", decay);
    return STATUS_OK;
}

static enum status fit_log(struct log *log, const struct doctor_options *options,
                           struct arena *arena, struct fit_set *out) {
    struct series *series;
    struct fit_known known;
    fit_known_init(&known);
    TRY(fit_known_from_log(&known, log, arena));
    known.request.processes = options->processes;
    known.request.accumulate = options->accumulate;
    TRY(arena_take(arena, 1, sizeof *series, "series", &series));
    /* If the log has no update numbers, we guessed them, and strides and offsets of the LR would be
     * our own. */
    TRY(series_of(log, log->step_guessed ? NULL : log_column_of(log, LOG_LR_LOGGED), arena,
                  series));
    TRY(cut_digits_fit(log, series, &known, arena, out));
    fit_keep_native(&known, out);
    return STATUS_OK;
}

/* Numbers the rows of a log that prints no update numbers, where --log-every says how many lie
 * between two; the fit says whether the first row is update 1. The note that they are numbered from
 * 1 makes way for one that says how. */
static enum status number_rows(const struct options *options, struct log *log,
                               struct arena *arena) {
    struct fit_rows *rows;
    struct fit_known known;
    struct series series;
    const char **notes, *words;
    uint64_t every = 0;
    char *note;
    TRY(read_count(options, KEY_EVERY, "log-every", &every));
    if (every == 0 || (!log->step_guessed && log_is_every(log, every))) return STATUS_OK;
    if (!log->step_guessed)
        FAIL(STATUS_INPUT,
             "--log-every: %s prints update numbers, and they are not every %llu; expected a log "
             "that prints none",
             log->path, (unsigned long long)every);
    if (every > UINT64_C(1) << 32)
        FAIL(STATUS_INPUT, "--log-every: expected an integer up to 2^32");
    fit_known_init(&known);
    TRY(fit_known_from_log(&known, log, arena));
    TRY(series_of(log, log_column_of(log, LOG_LR_LOGGED), arena, &series));
    TRY(arena_take(arena, 1, sizeof *rows, "rows", &rows));
    TRY(fit_rows_number(log, &series, &known, every, arena, rows));
    fit_rows_put(rows, log);
    TRY(arena_take(arena, log->note_count + 1, sizeof *notes, "notes", &notes));
    TRY(fit_rows_words(rows, arena, &words));
    TRY(arena_format(arena, &note, "update numbers: %s", words));
    for (size_t i = 0; i < log->note_count; i++)
        notes[i] = strstr(log->notes[i], "rows are numbered") != NULL ? note : log->notes[i];
    log->notes = notes;
    return STATUS_OK;
}

/* Takes over what a recording says of the loop beside its columns. */
static enum status place_run(const char *path, const struct log_options *log_options,
                             const struct log *log, struct arena *arena,
                             struct doctor_options *own) {
    struct trace_image *image = NULL;
    const struct trace_run *recorded;
    if (strcmp(log->format, "trace") != 0) return STATUS_OK;
    TRY(log_import_run(path, log_options, arena, &image, &recorded));
    doctor_options_place(own, recorded);
    doctor_options_order(own, recorded);
    const enum status status = trace_rows_status(image);
    trace_close(image);
    return status;
}

/* ---- text ---- */

static void print_finding(const struct doctor_finding *finding) {
    if (finding->remark)
        printf("\nremark %s\n", finding->id);
    else
        printf("\n%s: %s\n", finding->id,
               doctor_confidence_name((enum doctor_confidence)finding->confidence));
    printf("  %s\n", finding->words);
    for (size_t i = 0; i < finding->evidence_count; i++)
        printf("  evidence: %s\n", finding->evidence[i]);
    if (finding->reason[0] != 0)
        printf("  %s: %s\n", finding->remark ? "note" : "confidence", finding->reason);
    if (finding->next[0] != 0) printf("  next: %s\n", finding->next);
}

static void print_lines(const struct doctor_report *report, int32_t result, const char *heading) {
    int first = 1;
    for (size_t i = 0; i < report->line_count; i++) {
        const struct doctor_line *line = &report->lines[i];
        if (line->result != result) continue;
        if (first) printf("\n%s\n", heading);
        first = 0;
        if (line->why != NULL)
            printf("  %s: %s\n", line->title, line->why);
        else
            printf("  %s\n", line->title);
    }
}

/* Every check with its result. */
static void print_checks(const struct doctor_report *report) {
    print_lines(report, DOCTOR_QUIET, "Checked, nothing found:");
    print_lines(report, DOCTOR_UNTESTABLE, "Could not be checked:");
    print_lines(report, DOCTOR_NOT_ASKED, "Not asked; needs:");
}

static size_t count_lines(const struct doctor_report *report, int32_t result) {
    size_t count = 0;
    for (size_t i = 0; i < report->line_count; i++)
        count += report->lines[i].result == result;
    return count;
}

/* What a check says that could not look: the column alone where one is missing, else its reason. */
static const char *short_why(const struct doctor_line *line) {
    return line->lacks != NULL ? line->lacks : line->why;
}

/* Prints what the checks of a result miss, each thing once: the columns first (`columns` is 1), or
 * the other reasons. Returns how many it printed. */
static size_t print_missing(const struct doctor_report *report, int32_t result, int columns,
                            const char *before, const char *between) {
    size_t printed = 0;
    for (size_t i = 0; i < report->line_count; i++) {
        const struct doctor_line *line = &report->lines[i];
        size_t same = 0;
        if (line->result != result || (line->lacks != NULL) != columns) continue;
        while (report->lines[same].result != result ||
               strcmp(short_why(&report->lines[same]), short_why(line)) != 0)
            same++;
        if (same < i) continue;
        printf("%s%s", printed == 0 ? before : between, short_why(line));
        printed++;
    }
    return printed;
}

/* The same in a few lines: what was looked at, what was not and why, and what no log shows. */
static void print_summary(const struct log *log, const struct doctor_report *report) {
    const size_t untestable = count_lines(report, DOCTOR_UNTESTABLE);
    const size_t not_asked = count_lines(report, DOCTOR_NOT_ASKED);
    printf("\nLooked at %s", log->step_guessed ? "" : "update numbers");
    for (size_t i = 0; i < report->column_count; i++)
        printf("%s%s", i == 0 && log->step_guessed ? "" : ", ", report->columns[i]);
    if (untestable > 0) {
        printf(".\n%zu check%s could not look: ", untestable, untestable == 1 ? "" : "s");
        const size_t columns = print_missing(report, DOCTOR_UNTESTABLE, 1, "no column ", ", ");
        print_missing(report, DOCTOR_UNTESTABLE, 0, columns > 0 ? "; " : "", "; ");
    }
    if (not_asked > 0) {
        printf(".\n%zu need%s an option: ", not_asked, not_asked == 1 ? "s" : "");
        print_missing(report, DOCTOR_NOT_ASKED, 0, "", "; ");
    }
    if (log->step_guessed)
        printf(".\n--log-every N (the Trainer's logging_steps) numbers the rows, for the checks of "
               "the learning rate and of resumes");
    printf(".\nA log shows what was printed: not the weights, the gradients or the rows that were "
           "trained on. --verbose lists each check.\n");
}

static void print_text(const struct log *log, const struct doctor_report *report, int verbose) {
    plain_text_put(log->path, stdout);
    printf(": %s, %zu rows\n", log->title, log->rows);
    for (size_t i = 0; i < log->note_count; i++)
        printf("note: %s\n", log->notes[i]);
    if (report->checked == 0)
        printf("Nothing can be checked in this log.\n");
    else if (report->finding_count == 0)
        printf("Nothing found in %zu check%s.\n", report->checked, report->checked == 1 ? "" : "s");
    else
        printf("%zu finding%s in %zu check%s.\n", report->finding_count,
               report->finding_count == 1 ? "" : "s", report->checked,
               report->checked == 1 ? "" : "s");
    for (size_t i = 0; i < report->finding_count + report->remark_count; i++)
        print_finding(&report->findings[i]);
    if (verbose || report->checked == 0)
        print_checks(report);
    else
        print_summary(log, report);
}

/* ---- JSON ---- */

static json_t *finding_json(const struct doctor_finding *finding) {
    json_t *evidence = json_array();
    for (size_t i = 0; i < finding->evidence_count; i++)
        json_array_append_new(evidence, json_string(finding->evidence[i]));
    return json_pack("{ss ss so* so so* so* so so}", "id", finding->id, "confidence",
                     doctor_confidence_name((enum doctor_confidence)finding->confidence), "words",
                     json_string(finding->words), "evidence", evidence, "reason",
                     json_string(finding->reason), "next", json_string(finding->next), "update",
                     json_positive(finding->update), "line", json_positive(finding->line));
}

static json_t *findings_json(const struct doctor_finding *findings, size_t count) {
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(array, finding_json(&findings[i]));
    return array;
}

static json_t *lines_json(const struct doctor_report *report) {
    static const char *const results[] = {"nothing", "found", "untestable", "not-asked"};
    json_t *array = json_array();
    for (size_t i = 0; i < report->line_count; i++) {
        const struct doctor_line *line = &report->lines[i];
        json_array_append_new(array,
                              json_pack("{ss ss so*}", "check", line->id, "result",
                                        results[line->result], "why", json_string(line->why)));
    }
    return array;
}

/* A path or a text with bytes that are not UTF-8 is left out by "so*". */
static enum status print_json(const struct log *log, const struct doctor_report *report) {
    const struct doctor_finding *const remarks = report->findings + report->finding_count;
    return json_print(
        json_pack("{so* ss sI sI so so so}", "log", json_string(log->path), "format", log->format,
                  "rows", (json_int_t)log->rows, "checked", (json_int_t)report->checked, "findings",
                  findings_json(report->findings, report->finding_count), "remarks",
                  findings_json(remarks, report->remark_count), "checks", lines_json(report)));
}

/* Adds a case for every finding, and one for every check without any. What is only possible is
 * skipped, as what could not be checked is: it warns and fails nothing. */
static enum status add_cases(struct cli *cli, const struct log *log,
                             const struct doctor_report *report) {
    for (size_t i = 0; i < report->line_count; i++) {
        const struct doctor_line *line = &report->lines[i];
        struct ci_case one = {.name = line->title,
                              .outcome = line->why != NULL ? EXIT_UNTESTABLE : EXIT_AS_EXPECTED,
                              .title = line->id,
                              .message = line->why,
                              .file = log->path,
                              .seconds = -1.0};
        if (line->result != DOCTOR_FOUND) TRY(ci_add(cli, &one));
        for (size_t f = 0; f < report->finding_count; f++) {
            const struct doctor_finding *finding = &report->findings[f];
            if (strcmp(finding->check, line->id) != 0) continue;
            one.outcome = finding->confidence == DOCTOR_POSSIBLE ? EXIT_UNTESTABLE : EXIT_DIFFERS;
            one.title = finding->id;
            one.message = finding->words;
            one.line = finding->line;
            TRY(ci_add(cli, &one));
        }
    }
    return STATUS_OK;
}

/* What is only possible has an innocent reading, so it fails no CI job by itself. */
static int any_likely(const struct doctor_report *report) {
    for (size_t i = 0; i < report->finding_count; i++)
        if (report->findings[i].confidence != DOCTOR_POSSIBLE) return 1;
    return 0;
}

static enum status run(struct cli *cli, const struct options *options, int *out_exit) {
    struct log_options log_options;
    struct doctor_options own;
    struct doctor_report report;
    struct fit_set fits;
    struct log *log;
    TRY(log_options_read(options, &cli->arena, &log_options));
    TRY(read_own(options, &own));
    TRY(log_import(options->arguments[0], &log_options, &cli->arena, &log));
    TRY(place_run(options->arguments[0], &log_options, log, &cli->arena, &own));
    TRY(number_rows(options, log, &cli->arena));
    TRY(fit_log(log, &own, &cli->arena, &fits));
    TRY(doctor_examine(log, &own, &fits, &cli->arena, &report));
    *out_exit = report.checked == 0   ? EXIT_UNTESTABLE
                : any_likely(&report) ? EXIT_DIFFERS
                                      : EXIT_AS_EXPECTED;
    TRY(add_cases(cli, log, &report));
    if (options->json) return print_json(log, &report);
    print_text(log, &report, options_given(options, KEY_VERBOSE));
    return STATUS_OK;
}

static const struct argp_option option_rows[] = {
    OPTIONS_LOG,
    OPTION("processes", KEY_PROCESSES, "P", "Data-parallel processes of the run"),
    OPTION("accumulate", KEY_ACCUMULATE, "A", "Micro-batches of one update"),
    OPTION("pairs", KEY_PAIRS, "N", "Preference pairs that one row of the log averages"),
    OPTION("vocab", KEY_VOCAB, "N",
           "Vocabulary size, when training started from trained weights: warns of a first loss "
           "of ln(N)"),
    OPTION("dtype", KEY_DTYPE, "NAME",
           "Format of the weights: f32, f64, bf16, f16, tf32, e4m3, e5m2"),
    OPTION("master", KEY_MASTER, "NAME", "Copy of higher precision: none or f32 (default)"),
    OPTION("weight-decay", KEY_DECAY, "X", "Decoupled weight decay of the optimizer"),
    OPTION("log-every", KEY_EVERY, "N",
           "Updates between two rows (logging_steps), for a log that prints no update numbers"),
    OPTION("verbose", KEY_VERBOSE, NULL,
           "List every check: what it looked at, or what it lacks (--json always does)"),
    OPTIONS_CI,
    OPTION_JSON,
    OPTIONS_END};

const struct verb verb_doctor = {
    .name = "doctor",
    .brief = "what is wrong with a training, from its log",
    .arguments = "LOG",
    .text = "Checks a log of any kind against what must hold in every training and against known "
            "bugs. A finding comes with the rows that show it, a confidence and what to try; what "
            "could not be checked is told with what is missing. Remarks are normal in some "
            "framework and change no exit status.\v"
            "Exit status: 0 nothing found that is more than possible, 1 findings, 2 error, 3 "
            "nothing in the "
            "log can be checked.\n"
            "Example: twinstep doctor trainer_state.json --dtype bf16 --master none",
    .options = option_rows,
    .least = 1,
    .most = 1,
    .run = run,
};

/* SPDX-License-Identifier: Apache-2.0
 * twinstep lr check: says whether the learning rates of a log are those of a contract. Invariant:
 * the exit status is 0 only if every printed rate agrees and no other contract would have printed
 * the same while applying something else (or --logged asked about the printed column alone). */
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "cli/ci.h"
#include "cli/json.h"
#include "cli/lr_options.h"
#include "cli/lr_report.h"
#include "forensics/cut_digits.h"
#include "forensics/words.h"

enum { KEY_EXPECT = KEY_OWN, KEY_LOGGED };

struct checked {
    struct lr_report report;
    struct fit_check check;
};

static const char *const number_names[] = {"lr", "warmup", "steps", "min_lr_ratio", "schedule"};

static json_t *numbers_json(uint32_t bits) {
    json_t *list = json_array();
    for (size_t i = 0; i < COUNT_OF(number_names); i++)
        if ((bits >> i & 1u) != 0) json_array_append_new(list, json_string(number_names[i]));
    return list;
}

static const struct series_point *first_point(const struct checked *c) {
    return &c->report.series.points[c->check.first];
}

static json_t *mismatch_json(const struct checked *c) {
    if (c->check.bad_points == 0) return json_null();
    const struct series_point *point = first_point(c);
    const uint32_t line = c->report.log->line[point->row];
    return json_pack("{s:I, s:o, s:o, s:f, s:o}", "update", (json_int_t)point->update, "line",
                     json_positive(line), "logged", json_finite(point->value), "quantum",
                     point->quantum, "expected", json_finite(c->check.first_expected));
}

static json_t *text_or_null(const char *text) {
    return text != NULL ? json_string(text) : json_null();
}

static json_t *check_json(const struct checked *c) {
    const struct fit_check *check = &c->check;
    const int decided = check->verdict != FIT_UNDECIDED;
    json_t *object = json_pack(
        "{so* ss sI so sb so so so}", "log", json_string(c->report.log->path), "format",
        c->report.log->format, "values", (json_int_t)c->report.series.count, "pass",
        decided ? json_boolean(check->verdict == FIT_PASS) : json_null(), "decidable", decided,
        "expected", check->expected != NULL ? lr_report_fit_json(check->expected) : json_null(),
        "fitted", numbers_json(check->fitted), "from_log", numbers_json(check->from_log));
    return json_join(
        object,
        json_pack("{so sI so* so* so* so* so* so so so}", "first_mismatch", mismatch_json(c),
                  "mismatches", (json_int_t)check->bad_points, "words", text_or_null(check->words),
                  "bug", text_or_null(check->bug), "rival", text_or_null(check->rival), "needs",
                  text_or_null(check->needs), "untested", text_or_null(check->untested), "why",
                  lr_report_why_json(check->why), "row_spacing", lr_report_rows_json(&c->report),
                  "fits", lr_report_fits_json(&check->found)));
}

static void print_sources(const char *heading, uint32_t bits) {
    if (bits == 0) return;
    printf("%s:", heading);
    for (size_t i = 0; i < COUNT_OF(number_names); i++)
        if ((bits >> i & 1u) != 0) printf(" %s", number_names[i]);
    putchar('\n');
}

static void print_mismatch(const struct checked *c) {
    const struct series_point *point = first_point(c);
    const struct word place = word_place(c->report.log, point->row);
    const struct word value = word_value(point->value, point->quantum);
    printf("first difference at %s: the log says %s, %s logs %s\n", place.text, value.text,
           c->check.expected->contract->name, number_text_f64(c->check.first_expected).text);
    printf("%zu of %zu values differ\n", c->check.bad_points, c->report.series.count);
}

static enum status print_text(const struct checked *c, struct arena *arena) {
    static const char *const verdicts[] = {"pass", "FAIL", "undecided"};
    const struct fit_check *check = &c->check;
    lr_report_print_head(&c->report);
    if (check->expected != NULL) printf("expected: %s\n", check->expected->text);
    print_sources("taken from the log", check->from_log);
    print_sources("fitted, not given", check->fitted);
    printf("%s: %s\n", verdicts[check->verdict], check->words);
    if (check->verdict == FIT_FAIL && check->bad_points > 0) print_mismatch(c);
    if (check->bug != NULL) printf("known as: %s (docs/LR.md)\n", check->bug);
    if (check->needs != NULL) printf("what would decide: %s\n", check->needs);
    if (check->untested != NULL) printf("not tested: %s\n", check->untested);
    if (check->verdict == FIT_PASS) {
        lr_report_print_unseen(&c->report, check->expected);
        return STATUS_OK;
    }
    lr_report_print_why(check->why);
    if (check->verdict == FIT_FAIL && check->found.count > 0) {
        puts("What the log fits:");
        return lr_report_print_fits(&check->found, arena);
    }
    return STATUS_OK;
}

/* Writes one line such as "update 1 (line 7): 4e-07, hf logs 5e-07; fits olmo-core: ...". */
static enum status message_of(const struct checked *c, struct arena *arena, char **out) {
    const struct fit_check *check = &c->check;
    if (check->bad_points == 0 || check->verdict != FIT_FAIL)
        return arena_format(arena, out, "%s%s%s", check->words,
                            check->needs != NULL ? "; what would decide: " : "",
                            check->needs != NULL ? check->needs : "");
    const struct series_point *point = first_point(c);
    return arena_format(
        arena, out, "%s: %s, %s logs %s; %s", word_place(c->report.log, point->row).text,
        word_value(point->value, point->quantum).text, check->expected->contract->name,
        number_text_f64(check->first_expected).text, check->words);
}

static enum status publish(struct cli *cli, struct checked *c, const struct options *options) {
    static const int outcomes[] = {EXIT_AS_EXPECTED, EXIT_DIFFERS, EXIT_UNTESTABLE};
    const struct log *log = c->report.log;
    char *message;
    TRY(message_of(c, &cli->arena, &message));
    TRY(ci_add(cli, &(struct ci_case){
                        .name = log->path,
                        .outcome = outcomes[c->check.verdict],
                        .title = c->check.verdict == FIT_FAIL ? "learning rate differs"
                                                              : "learning rate cannot be judged",
                        .message = message,
                        .file = log->path,
                        .line = c->check.bad_points > 0 ? log->line[first_point(c)->row] : 0,
                        .seconds = -1.0}));
    if (options->json) return json_print(check_json(c));
    return print_text(c, &cli->arena);
}

/* Withdraws a verdict on rows whose updates are guessed, and says which option numbers them: a
 * total only where none was given. */
static enum status ask_numbers(const struct fit_rows *rows, struct arena *arena,
                               struct fit_check *check) {
    const int is_verdict = check->verdict != FIT_UNDECIDED;
    char *text;
    check->verdict = FIT_UNDECIDED;
    /* Rows that are told apart by no numbers (a constant column) ask for what the check says. */
    if (!is_verdict && (rows->count > 0 || check->needs == NULL)) return STATUS_OK;
    TRY(arena_format(arena, &text,
                     "update numbers, which this log does not print: --log-every N (the Trainer's "
                     "logging_steps)%s%s%s",
                     rows->total > 0 ? "" : " or --steps T", is_verdict ? "" : "; then ",
                     is_verdict ? "" : check->needs));
    check->needs = text;
    return STATUS_OK;
}

/* Withdraws what was found of digits that were cut off, where numbers beside those that were asked
 * for print the rows rounded: rows in few digits are printed by a total that is one update apart,
 * too. */
static enum status doubt_cut(struct checked *c, struct arena *arena, struct fit_check *cut) {
    struct fit_beside beside;
    int found;
    char *text;
    TRY(fit_check_beside(&c->report.series, &c->report.known, cut->expected, FIT_PEAK_APART, arena,
                         &beside, &found));
    if (!found) return STATUS_OK;
    cut->verdict = FIT_UNDECIDED;
    TRY(arena_format(
        arena, &text,
        "every printed LR agrees with %s if its digits were cut off, and with peak %s, "
        "warm-up %s and total %llu if they were rounded",
        cut->expected->text, word_about(beside.peak).text, number_text_f64(beside.warmup).text,
        (unsigned long long)beside.steps));
    cut->words = text;
    cut->rival = NULL;
    cut->needs = "more digits, or how the training prints them: nearly all programs round";
    return STATUS_OK;
}

/* Withdraws a failure for which nothing was found, where the expectation gives every number if
 * digits were cut off and updates were skipped, neither of which the log shows. */
static enum status doubt_failure(const struct fit *cut, struct arena *arena,
                                 struct fit_check *check) {
    char *text;
    if (check->found.count > 0) return STATUS_OK;
    TRY(arena_format(arena, &text, "every printed LR agrees with %s if its digits were cut off",
                     cut->text));
    check->words = text;
    check->needs = "how the training prints its learning rates, and --skipped";
    check->verdict = FIT_UNDECIDED;
    check->bug = check->rival = NULL;
    check->bad_points = 0;
    return STATUS_OK;
}

/* Of a log that has rows which do not agree: checks its numbers as ones whose digits were cut off,
 * and takes that answer where every row agrees then. */
static enum status check_cut(struct checked *c, int applied, struct arena *arena) {
    struct fit_check *other;
    struct series *cut;
    if (c->report.of_applied || c->report.log->step_guessed) return STATUS_OK;
    TRY(arena_take(arena, 1, sizeof *cut, "cut digits", &cut));
    TRY(arena_take(arena, 1, sizeof *other, "lr check", &other));
    TRY(cut_digits_series(&c->report.series, arena, cut));
    if (cut->count == 0) return STATUS_OK;
    TRY(fit_check(cut, &c->report.known, applied, arena, other));
    if (other->verdict == FIT_FAIL || other->expected == NULL || other->bad_points > 0 ||
        !cut_digits_may_be(other->expected, cut))
        return STATUS_OK;
    if (fit_skips_any(other->expected)) return doubt_failure(other->expected, arena, &c->check);
    TRY(doubt_cut(c, arena, other));
    c->check = *other;
    c->report.series = *cut;
    return cut_digits_put(c->report.log, cut, arena);
}

static enum status run(struct cli *cli, const struct options *options, int *out_exit) {
    static const int exits[] = {EXIT_AS_EXPECTED, EXIT_DIFFERS, EXIT_UNTESTABLE};
    struct checked *c;
    const char *expected = options_value(options, KEY_EXPECT);
    TRY(arena_take(&cli->arena, 1, sizeof *c, "lr check", &c));
    if (expected == NULL)
        FAIL(STATUS_INPUT, "lr check: expected --expect CONTRACT (twinstep list contracts)");
    TRY(lr_report_open(cli, options, &c->report));
    TRY(lr_contract("--expect", expected, &c->report.known.request.contract));
    TRY(fit_check_request(&c->report.known.request, &cli->arena));
    TRY(lr_report_number(cli, options, &c->report));
    c->report.known.used = &c->report.used;
    TRY(fit_check(&c->report.series, &c->report.known, !options_given(options, KEY_LOGGED),
                  &cli->arena, &c->check));
    if (c->check.verdict != FIT_PASS && (c->check.verdict == FIT_FAIL || c->check.bad_points > 0))
        TRY(check_cut(c, !options_given(options, KEY_LOGGED), &cli->arena));
    if (!options_given(options, KEY_LOGGED))
        TRY(fit_check_used(&c->check, &cli->arena, &c->report.used));
    if (c->report.known.steps_guessed) TRY(ask_numbers(&c->report.rows, &cli->arena, &c->check));
    *out_exit = exits[c->check.verdict];
    return publish(cli, c, options);
}

static const struct argp_option option_rows[] = {
    OPTION("expect", KEY_EXPECT, "C",
           "The contract that the run should have (twinstep list "
           "contracts)"),
    OPTION("logged", KEY_LOGGED, NULL,
           "Judge the printed column alone, not whether the rates that were applied can be others"),
    LR_OPTION_ROWS,
    LR_OPTION_LOG_EVERY,
    OPTIONS_LOG,
    OPTIONS_CI,
    OPTION_JSON,
    OPTIONS_END};

const struct verb verb_lr_check = {
    .name = "lr check",
    .brief = "whether a log's learning rates are those that a framework would give",
    .arguments = "LOG",
    .text =
        "Compares every learning rate of LOG, within its printed precision, with what the contract "
        "of --expect logs. Numbers that are not given are taken from the log where it says them, "
        "else fitted; the output says which. Parameters of a schedule that is given are its "
        "defaults (--min-lr-ratio, --value). Where it differs, says what the log fits instead.\v"
        "Exit status: 0 pass, 1 fail, 3 the log cannot decide: then the output says what would. A "
        "log whose column another contract prints alike while applying other rates is such a log, "
        "unless its format names the framework that is expected or --logged is given.\n\n"
        "Example: twinstep lr check run.csv --expect hf --lr 5e-7 --schedule linear --steps 5",
    .options = option_rows,
    .least = 1,
    .most = 1,
    .run = run,
};

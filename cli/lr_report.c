/* SPDX-License-Identifier: Apache-2.0
 * Reads a log for the lr verbs and prints fits. All judging is done by forensics/. */
#include "cli/lr_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "cli/json.h"
#include "cli/lr_options.h"
#include "cli/plain_text.h"

/* Refuses --skipped where one list cannot hold: an update that a resume ran again may have been
 * skipped once and not the other time. Without the list the fit finds the skips of each part. */
static enum status check_skipped(const struct contract_request *request, const struct log *log) {
    uint64_t reached = 0, last = 0;
    for (size_t row = 0; row < log->rows; row++)
        if (log->step[row] > 0 && (uint64_t)log->step[row] > last) last = (uint64_t)log->step[row];
    for (size_t i = 0; i < request->skipped_count; i++)
        if (last > 0 && request->skipped[i] > last)
            FAIL(STATUS_INPUT,
                 "--skipped: update %" PRIu64 " lies behind the last one of %s, which is %" PRIu64
                 "; expected updates that the log covers",
                 request->skipped[i], log->path, last);
    for (size_t row = 0; log->part != NULL && row < log->rows; row++) {
        const uint64_t update = log->step[row] > 0 ? (uint64_t)log->step[row] : 0;
        uint64_t before = 0; /* the last update behind which this part can have begun */
        if (update > reached) reached = update;
        if (row == 0 || log->part[row] == log->part[row - 1]) continue;
        for (size_t i = 0; i < row; i++)
            if (log->step[i] < log->step[row] && (uint64_t)log->step[i] > before)
                before = (uint64_t)log->step[i];
        for (size_t i = 0; i < request->skipped_count; i++)
            if (request->skipped[i] > before && request->skipped[i] <= reached)
                FAIL(
                    STATUS_INPUT,
                    "--skipped: update %" PRIu64
                    " may have been run twice, as the resume in line %" PRIu32
                    " of %s falls back; one list says nothing of which time; expected updates that "
                    "were run once, or no --skipped: the fit finds those of each part",
                    request->skipped[i], log->line[row], log->path);
    }
    return STATUS_OK;
}

enum status lr_report_open(struct cli *cli, const struct options *options, struct lr_report *out) {
    struct log_options reading;
    struct log *log;
    memset(out, 0, sizeof *out);
    fit_known_init(&out->known);
    TRY(log_options_read(options, &cli->arena, &reading));
    TRY(lr_options_read(options, &cli->arena, &out->known.request));
    TRY(log_import(options->arguments[0], &reading, &cli->arena, &log));
    out->log = log;
    if (out->known.request.skipped_count > 0 && !log->step_guessed)
        TRY(check_skipped(&out->known.request, log));
    TRY(fit_known_from_log(&out->known, log, &cli->arena));
    TRY(fit_skipped_from_log(&out->known, log, &cli->arena, &out->skipped));
    TRY(fit_used_open(log, &cli->arena, &out->used));
    TRY(series_of(log, log_column_of(log, LOG_LR_LOGGED), &cli->arena, &out->series));
    out->of_applied = out->series.count == 0 && out->used.series.count > 0;
    out->used.alone = out->of_applied;
    if (out->of_applied) out->series = out->used.series;
    return STATUS_OK;
}

enum status lr_report_number(struct cli *cli, const struct options *options,
                             struct lr_report *report) {
    uint64_t every = 0;
    TRY(lr_option_count(options, LR_LOG_EVERY, "--log-every", &every));
    if (every > 0 && !report->log->step_guessed && !log_is_every(report->log, every))
        FAIL(STATUS_INPUT,
             "--log-every: %s prints update numbers, and they are not every %llu; expected a log "
             "that prints none",
             report->log->path, (unsigned long long)every);
    if (!report->log->step_guessed) return STATUS_OK;
    TRY(fit_rows_number(report->log, &report->series, &report->known, every, &cli->arena,
                        &report->rows));
    report->series = report->rows.series;
    report->known.steps_guessed = report->rows.decided_by == FIT_ROWS_OPEN;
    for (size_t i = 0; i < report->series.count; i++)
        report->log->step[report->series.points[i].row] = (int64_t)report->series.points[i].update;
    return fit_rows_words(&report->rows, &cli->arena, &report->numbering);
}

void lr_report_print_head(const struct lr_report *report) {
    const struct log *log = report->log;
    const struct log_column *column =
        log_column_of(log, report->of_applied ? LOG_LR_APPLIED : LOG_LR_LOGGED);
    plain_text_put(log->path, stdout);
    printf(": %s, %zu rows\n", log->title, log->rows);
    if (column != NULL) {
        printf("learning rate: column %s, %zu values", column->source, report->series.count);
        if (report->known.run_steps > 0)
            printf(", the log says %llu updates", (unsigned long long)report->known.run_steps);
        putchar('\n');
    }
    if (report->of_applied)
        puts("no LR was printed: fits are of contracts that print the LR they apply");
    else if (report->used.series.count > 0)
        printf("applied, as recorded: column lr_applied, %zu values\n", report->used.series.count);
    if (report->skipped > 0)
        printf("skipped updates: %zu, as the log says (--skipped overrules)\n", report->skipped);
    for (size_t i = 0; i < log->note_count; i++)
        if (report->numbering == NULL || strstr(log->notes[i], "rows are numbered") == NULL)
            printf("note: %s\n", log->notes[i]);
    if (report->numbering != NULL) printf("update numbers: %s\n", report->numbering);
}

static const struct {
    uint32_t bit;
    const char *name, *words;
} reasons[] = {
    {FIT_WHY_NO_COLUMN, "no-column", "the log has no learning rate with an update number"},
    {FIT_WHY_FEW, "few", "fewer than three values"},
    {FIT_WHY_CONSTANT, "constant", "every value is the same within its precision"},
    {FIT_WHY_COARSE, "coarse", "the printed digits admit several numbers or contracts"},
    {FIT_WHY_APPLIED, "applied",
     "contracts that apply different learning rates log these same values"},
    {FIT_WHY_NOTHING, "nothing",
     "no shipped contract and schedule was found that gives these values; the search is bounded "
     "and tried peaks, warm-ups and floors that follow from the rows, the total that the log says "
     "and some others, some skipped updates, and resumes (--schedule, --warmup, --steps and "
     "--min-lr-ratio say what is known)"},
    {FIT_WHY_NOT_FINITE, "not-finite", "a learning rate is not a number, or infinite"},
    {FIT_WHY_BATCH, "batch",
     "the batch grows, and the log does not say how many samples every update consumed"},
    {FIT_WHY_LOST, "lost",
     "every learning rate prints as 0, and smaller ones than a printed step "
     "are what trainings use"}};

json_t *lr_report_why_json(uint32_t why) {
    json_t *list = json_array();
    for (size_t i = 0; i < COUNT_OF(reasons); i++)
        if ((why & reasons[i].bit) != 0) json_array_append_new(list, json_string(reasons[i].name));
    return list;
}

void lr_report_print_why(uint32_t why) {
    for (size_t i = 0; i < COUNT_OF(reasons); i++)
        if ((why & reasons[i].bit) != 0) printf("because: %s\n", reasons[i].words);
}

void lr_report_print_unseen(const struct lr_report *report, const struct fit *fit) {
    const unsigned long long shown = report->known.skips.shown + report->skipped;
    if (shown == 0 || fit->contract->on_skip != CONTRACT_SKIP_ADVANCE) return;
    printf("remark: the log shows skipped updates, and the schedule of %s goes on at them: skips "
           "cannot be seen in the LR\n",
           fit->contract->name);
}

json_t *lr_report_rows_json(const struct lr_report *report) {
    const struct fit_rows *rows = &report->rows;
    if (report->numbering == NULL) return json_null();
    json_t *list = json_array();
    for (size_t i = 0; i < rows->count; i++)
        json_array_append_new(list,
                              json_pack("{s:I, s:b, s:o}", "every", (json_int_t)rows->at[i].every,
                                        "first_at_one", rows->at[i].first_at_one, "steps",
                                        json_positive(rows->at[i].steps)));
    return json_pack("{sb sI sb so so*}", "decided", rows->decided_by != FIT_ROWS_OPEN, "every",
                     (json_int_t)rows->at[rows->best].every, "first_at_one",
                     rows->at[rows->best].first_at_one, "alike", list, "text",
                     json_string(report->numbering));
}

static json_t *segment_json(const struct fit_segment *segment) {
    static const char *const names[] = {"plain",    "skip",      "jump",  "reset", "doubled",
                                        "rescaled", "restarted", "total", "back"};
    return json_pack("{s:s, s:I, s:I, s:f, s:o}", "event", names[segment->event], "update",
                     (json_int_t)segment->update, "shift", (json_int_t)segment->shift, "scale",
                     segment->scale, "steps", json_positive(segment->steps));
}

/* Where updates were skipped, and behind how many resumes: null where the fit needs none. */
json_t *lr_report_skips_json(const struct fit *fit) {
    if (fit->skip_count == 0) return json_null();
    json_t *list = json_array();
    for (size_t i = 0; i < fit->skip_count; i++)
        json_array_append_new(list, json_pack("{s:I, s:I, s:I, s:I}", "first",
                                              (json_int_t)fit->skips[i].first, "last",
                                              (json_int_t)fit->skips[i].last, "updates",
                                              (json_int_t)fit->skips[i].count, "resumes",
                                              (json_int_t)fit->skips[i].part));
    return list;
}

/* The warm-ups that no row shows, and the peaks that go with them: null where there are none. */
static json_t *unseen_json(const struct fit *fit) {
    if (!(fit->unseen_warmup > 0.0)) return json_null();
    return json_pack("{s:f, s:f, s:f, s:f}", "warmup_least", fit->unseen_from, "warmup_most",
                     fit->unseen_warmup, "lr_least", fit->unseen_least, "lr_most",
                     fit->unseen_most);
}

json_t *lr_report_fit_json(const struct fit *fit) {
    json_t *segments = json_array();
    for (size_t i = 0; i < fit->segment_count; i++)
        json_array_append_new(segments, segment_json(&fit->segments[i]));
    json_t *object = json_pack("{s:s, s:s, s:f, s:f, s:o, s:o, s:f, s:s, s:o, s:s?}", "contract",
                               fit->contract->name, "schedule", fit->schedule_name, "lr", fit->lr,
                               "warmup", fit->warmup, "steps", json_positive(fit->steps),
                               "min_lr_ratio", json_finite(fit->floor_ratio), "stride", fit->stride,
                               "parameters", fit->parameters, "updates_per_epoch",
                               json_positive(fit->epoch_updates), "bug", fit->bug);
    return json_join(
        object, json_pack("{sb so so so so so so so so sI sI sI sb sb sb so*}", "in_samples",
                          fit->in_samples, "unseen", unseen_json(fit), "reached",
                          fit->reached > 0.0 ? json_real(fit->reached) : json_null(), "skipped",
                          lr_report_skips_json(fit), "first_value",
                          fit->first_differs ? json_finite(fit->first_value) : json_null(),
                          "segments", segments, "max_error", json_finite(fit->max_error),
                          "rms_error", json_finite(fit->rms_error), "simplicity",
                          json_finite(fit->simplicity), "same_logged", (json_int_t)fit->same_logged,
                          "same_applied", (json_int_t)fit->same_applied, "same_throughout",
                          (json_int_t)fit->same_throughout, "warmup_hidden",
                          fit->warmup_hidden || fit->unseen_warmup > 0.0 || fit->reached > 0.0,
                          "steps_hidden", fit->total_hidden, "floor_hidden",
                          fit->reached > 0.0 || fit->total_hidden, "text", json_string(fit->text)));
}

json_t *lr_report_fits_json(const struct fit_set *set) {
    json_t *list = json_array();
    for (size_t i = 0; i < set->count; i++)
        json_array_append_new(list, lr_report_fit_json(&set->fits[i]));
    return list;
}

/* Returns whether two fits are the same training under two names of contracts: all words but the
 * contract's are equal. */
static int twins(const struct fit *a, const struct fit *b) {
    return a->same_throughout == b->same_throughout &&
           strcmp(a->text + strlen(a->contract->name), b->text + strlen(b->contract->name)) == 0 &&
           (a->bug == NULL) == (b->bug == NULL);
}

size_t lr_report_line_of(const struct fit_set *set, size_t i) {
    size_t first = 0;
    while (first < i && !twins(&set->fits[first], &set->fits[i]))
        first++;
    return first + 1;
}

/* Returns whether the contract of fit j stands in the line of fit i already. */
static int named_before(const struct fit_set *set, size_t i, size_t j) {
    for (size_t k = i; k < j; k++)
        if (set->fits[k].contract == set->fits[j].contract && twins(&set->fits[k], &set->fits[j]))
            return 1;
    return 0;
}

static void print_fit(const struct fit_set *set, size_t i) {
    const struct fit *fit = &set->fits[i];
    const char *unit = set->series->points[0].quantum > 0.0 ? "of a printed step" : "ulp";
    int named = 0;
    if (lr_report_line_of(set, i) != i + 1) return;
    printf("%3zu  %s%s%s%s\n     applies %c, error at most %.2g %s\n", i + 1, fit->text,
           fit->bug != NULL ? " [" : "", fit->bug != NULL ? fit->bug : "",
           fit->bug != NULL ? "]" : "", (char)('A' + fit->same_throughout % 26), fit->max_error,
           unit);
    for (size_t j = i + 1; j < set->count; j++) {
        if (!twins(&set->fits[j], fit) || named_before(set, i, j)) continue;
        printf("%s%s", named++ == 0 ? "     the same: " : ", ", set->fits[j].contract->name);
    }
    if (named > 0) putchar('\n');
}

/* Pairs the best fit with the first fit of each other class, and says what would tell them apart.
 */
static enum status print_apart(const struct fit_set *set, struct arena *arena) {
    size_t said = 0;
    for (size_t i = 1; i < set->count && said < 4; i++) {
        const char *text;
        int seen = set->fits[i].same_throughout == set->fits[0].same_throughout;
        for (size_t j = 1; j < i; j++)
            seen |= set->fits[j].same_throughout == set->fits[i].same_throughout;
        if (seen) continue;
        if (said++ == 0) puts("What would tell them apart:");
        TRY(fit_tell_apart(&set->fits[0], &set->fits[i], set, arena, &text));
        printf("  1 and %zu: %s\n", i + 1, text);
    }
    return STATUS_OK;
}

enum status lr_report_print_fits(const struct fit_set *set, struct arena *arena) {
    for (size_t i = 0; i < set->count; i++)
        print_fit(set, i);
    if (set->left_out > 0) printf("     and %zu more, less simple\n", set->left_out);
    return print_apart(set, arena);
}

/* SPDX-License-Identifier: Apache-2.0
 * Checks of the LR that updates applied, where a log records it beside the one that it prints: a
 * trace, ours or that of another trainer. docs/FORENSICS.md lists them.
 *
 * Every contract prints the LR that an update used, or that of the next one (enum contract_logged).
 * Invariant: neither is a finding, and nothing is compared across a resume. */
#include <string.h>

#include "base/real.h"
#include "determinism/trace.h"
#include "forensics/doctor/doctor_check.h"

/* A trainer may hold its LR in binary32, and a decay subtracts from the largest LR: what fit_used.c
 * allows. */
#define SLACK_OF_LR 0x1p-23
#define SLACK_OF_PEAK 0x1p-40
/* How many updates must contradict the printed LR before the order of the loop is accused. Chosen:
 * one or two are the end of a warm-up as likely. */
#define ROWS_AHEAD 3

/* What the printed LRs say of one column of applied ones. An update counts where both stand in its
 * row. `next` and `ahead` count only neighbours that follow each other update by update. */
struct held {
    size_t rows, differ;     /* updates with both, and those where the two differ */
    size_t first;            /* row of the first that differs */
    size_t next, next_not;   /* the printed LR is the one that the next update applied, or not */
    size_t ahead, ahead_not; /* the printed LR is the one that the update before applied */
    size_t printed_moves, moves; /* how often the printed and the applied LR change */
    int first_kept; /* 1: update 1 applied what it prints, although update 2 applied another LR */
};

static int unlike(const struct series_point *applied, const struct series_point *printed,
                  double peak) {
    const double gap = real_abs_f64(applied->value - printed->value);
    return !(gap <= 0.5 * (applied->quantum + printed->quantum) +
                        SLACK_OF_LR * real_abs_f64(printed->value) + SLACK_OF_PEAK * peak);
}

/* Returns the point `by` (1 or -1) rows of the series away, where it is the neighbouring update. */
static const struct series_point *neighbour(const struct series *series, size_t at, int by) {
    const struct series_point *point = &series->points[at];
    if (by < 0 ? at == 0 : at + 1 >= series->count) return NULL;
    const struct series_point *other = by < 0 ? point - 1 : point + 1;
    const uint64_t expected = by < 0 ? point->update - 1 : point->update + 1;
    return other->part == point->part && other->update == expected ? other : NULL;
}

static void hold_row(struct held *held, const struct series *applied, size_t at,
                     const struct series_point *printed, double peak) {
    const struct series_point *point = &applied->points[at];
    const struct series_point *before = neighbour(applied, at, -1);
    const struct series_point *after = neighbour(applied, at, 1);
    const int differs = unlike(point, printed, peak);
    if (differs && held->differ++ == 0) held->first = printed->row;
    if (after != NULL) *(unlike(after, printed, peak) ? &held->next_not : &held->next) += 1;
    if (before != NULL) *(unlike(before, printed, peak) ? &held->ahead_not : &held->ahead) += 1;
    if (point->update == 1 && after != NULL && !differs)
        held->first_kept = point_differs(point, after);
    held->rows++;
}

static struct held hold(const struct series *applied, const struct series *printed) {
    const double most = series_largest(applied), other = series_largest(printed);
    const double peak = most > other ? most : other;
    struct held held = {.rows = 0};
    for (size_t i = 1; i < printed->count; i++)
        held.printed_moves += (size_t)point_differs(&printed->points[i - 1], &printed->points[i]);
    for (size_t i = 1; i < applied->count; i++)
        held.moves += (size_t)point_differs(&applied->points[i - 1], &applied->points[i]);
    for (size_t i = 0, j = 0; i < printed->count; i++) {
        while (j < applied->count && applied->points[j].row < printed->points[i].row)
            j++;
        if (j < applied->count && applied->points[j].row == printed->points[i].row)
            hold_row(&held, applied, j, &printed->points[i], peak);
    }
    return held;
}

static int is_next(const struct held *held) {
    return held->differ > 0 && held->next > 0 && held->next_not == 0;
}

static int is_ahead(const struct held *held) {
    return held->differ >= ROWS_AHEAD && held->ahead >= ROWS_AHEAD && held->ahead_not == 0;
}

/* Adds what the row at hand prints and applied, and the same of the next row. */
static enum status show_rows(struct doctor *doctor, size_t row) {
    const struct series *const columns[] = {&doctor->series[LOG_LR_APPLIED],
                                            &doctor->series[LOG_LR_LOGGED]};
    for (size_t r = row; r < row + 2 && r < doctor->log->rows; r++)
        for (size_t c = 0; c < COUNT_OF(columns); c++) {
            const struct series_point *point = series_in_row(columns[c], r);
            if (point == NULL) continue;
            TRY(doctor_evidence_column(doctor, c == 0 ? LOG_LR_APPLIED : LOG_LR_LOGGED, point));
        }
    return STATUS_OK;
}

/* Adds what the schedule says that the printed LRs read as. */
static enum status show_schedule(struct doctor *doctor) {
    const struct fit *plain = doctor_plain_fit(doctor);
    if (plain == NULL) return STATUS_OK;
    return doctor_evidence(doctor, "the printed LRs read as %s", plain->text);
}

static enum status report_ahead(struct doctor *doctor, const struct held *held) {
    TRY(doctor_found(doctor, "lr_applied_ahead", held->first_kept ? DOCTOR_POSSIBLE : DOCTOR_LIKELY,
                     held->first,
                     "Each update applied the LR that the log prints for the next one: %zu of %zu "
                     "updates applied another LR than they print.",
                     held->differ, held->rows));
    TRY(show_rows(doctor, held->first));
    TRY(show_schedule(doctor));
    return doctor_explain(
        doctor,
        held->first_kept
            ? "update 1 applied what it prints, so the log may print the LR of the update before"
            : "no known framework prints the LR of the update before; a log that does so looks "
              "like this",
        "See whether scheduler.step() runs before optimizer.step(): the log is written before "
        "it, the weights move after it. Then every update is trained with the next one's LR.");
}

static enum status report_still(struct doctor *doctor, const struct held *held) {
    const struct series *applied = &doctor->series[LOG_LR_APPLIED];
    const struct series *printed = &doctor->series[LOG_LR_LOGGED];
    TRY(doctor_found(doctor, "schedule_not_applied", DOCTOR_LIKELY, held->first,
                     "The LR that updates applied is %s throughout, while the printed one changes "
                     "%zu times.",
                     word_number(applied->points[0].value).text, held->printed_moves));
    TRY(show_rows(doctor, held->first));
    TRY(doctor_evidence_column(doctor, LOG_LR_LOGGED, &printed->points[printed->count - 1]));
    TRY(show_schedule(doctor));
    return doctor_explain(
        doctor,
        "a schedule that is printed is meant to be applied; an optimizer that scales its LR "
        "inside (Prodigy, schedule-free) may print what it makes of it",
        "See whether the scheduler was made with the optimizer that steps: one that was wrapped, "
        "made anew or given other parameter groups afterwards keeps the LR it began with.");
}

static enum status remark_next(struct doctor *doctor, const struct held *held) {
    TRY(doctor_remark(doctor, "lr_printed_is_next", held->first,
                      "Each row prints the LR of the next update, as loops do that log after "
                      "scheduler.step(): %zu of %zu updates applied another LR than they print.",
                      held->differ, held->rows));
    TRY(show_rows(doctor, held->first));
    return doctor_explain(doctor, "",
                          "Compare the applied LRs with those of another run, and not the printed "
                          "ones.");
}

static enum status remark_differs(struct doctor *doctor, const struct held *held,
                                  const char *group) {
    if (group != NULL)
        TRY(doctor_remark(doctor, "lr_applied_differs", held->first,
                          "The printed LR is not that of the first parameter group; it fits %s.",
                          group));
    else
        TRY(doctor_remark(
            doctor, "lr_applied_differs", held->first,
            "%zu of %zu updates applied another LR than they print, and the printed ones "
            "are not those of the next or the last update throughout.",
            held->differ, held->rows));
    TRY(show_rows(doctor, held->first));
    return doctor_explain(doctor, "",
                          "A log may print another group's LR, a mean or a share of it. If it is "
                          "meant to print the one applied, see what runs between log and step.");
}

/* Finds a further parameter group that applied what is printed, at once or one update later. */
static enum status group_printed(struct doctor *doctor, const char **out) {
    static const char prefix[] = "lr_applied[";
    *out = NULL;
    for (size_t c = 0; c < doctor->log->column_count && *out == NULL; c++) {
        const struct log_column *column = &doctor->log->columns[c];
        struct series series;
        if (strncmp(column->source, prefix, sizeof prefix - 1) != 0) continue;
        TRY(series_of(doctor->log, column, doctor->arena, &series));
        const struct held held = hold(&series, &doctor->series[LOG_LR_LOGGED]);
        if (held.rows > 1 && (held.differ == 0 || is_next(&held))) *out = column->source;
    }
    return STATUS_OK;
}

void doctor_options_place(struct doctor_options *options, const struct trace_run *run) {
    for (uint64_t i = 0; i < run->updates && run->plan.foreign != NULL; i++) {
        const struct record *record = trace_row(run, i);
        const int64_t step = trace_phase_place(run, record, "optimize"),
                      schedule = trace_phase_place(run, record, "schedule");
        if (step < 0 || schedule < 0) continue;
        options->placed++;
        if (schedule > step) continue;
        if (options->ahead++ == 0) options->ahead_first = record->step;
    }
}

/* Tells of a loop that moves the LR before it steps, where nothing is printed that the applied LR
 * could be held against. That alone is no bug: a loop may set the LR of the update at hand. */
static enum status remark_ahead(struct doctor *doctor) {
    const struct series *const applied = &doctor->series[LOG_LR_APPLIED];
    const struct doctor_options *const said = doctor->options;
    size_t row = SIZE_MAX;
    for (size_t i = 0; i < applied->count && row == SIZE_MAX; i++)
        if (applied->points[i].update == said->ahead_first) row = applied->points[i].row;
    TRY(doctor_remark(doctor, "schedule_before_step", row,
                      "The LR was moved before the optimizer stepped in %llu of %llu updates.",
                      (unsigned long long)said->ahead, (unsigned long long)said->placed));
    doctor_set_confidence(doctor, DOCTOR_POSSIBLE);
    if (applied->count > 0)
        TRY(doctor_evidence_column(doctor, LOG_LR_APPLIED, &applied->points[0]));
    return doctor_explain(
        doctor,
        "a loop that sets the LR of the update at hand looks like this, too; no printed LR was "
        "recorded that would tell",
        "See whether scheduler.step() runs before optimizer.step(): then every update is trained "
        "with the next one's LR. Record the printed LR (recorder.update(lr_logged=...)), or hold "
        "the applied ones against the schedule that was meant: twinstep lr check --expect.");
}

static enum status applied_as_printed(struct doctor *doctor) {
    const struct series *printed = &doctor->series[LOG_LR_LOGGED];
    const char *group;
    if (printed->count == 0 && doctor->options->ahead >= ROWS_AHEAD &&
        doctor->options->ahead == doctor->options->placed)
        return remark_ahead(doctor);
    if (printed->count == 0) return doctor_untestable(doctor, "no column lr_logged");
    if (doctor_has(doctor, "interleaved_writers"))
        return doctor_untestable(doctor, "rows of two runs alternate");
    const struct held held = hold(&doctor->series[LOG_LR_APPLIED], printed);
    if (held.rows < 2) return doctor_untestable(doctor, "fewer than 2 updates have both LRs");
    if (held.differ == 0) return STATUS_OK;
    if (is_next(&held)) return remark_next(doctor, &held);
    TRY(group_printed(doctor, &group));
    if (group != NULL) return remark_differs(doctor, &held, group);
    if (is_ahead(&held)) return report_ahead(doctor, &held);
    if (held.moves == 0 && held.printed_moves >= ROWS_AHEAD && held.differ >= ROWS_AHEAD)
        return report_still(doctor, &held);
    return remark_differs(doctor, &held, NULL);
}

const struct doctor_check doctor_applied_checks[] = {
    {"lr_applied",
     "updates apply the LR that is printed, or print the next one's",
     {LOG_LR_APPLIED, LOG_OTHER},
     applied_as_printed},
    {NULL, NULL, {LOG_OTHER}, NULL}};

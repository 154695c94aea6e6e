/* SPDX-License-Identifier: Apache-2.0
 * What the checks of the doctor share: making a finding, and looking into series.
 *
 * Invariant: the texts of a finding live in the arena of the report. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/real.h"
#include "forensics/doctor/doctor_check.h"

static enum status text_of(struct doctor *doctor, const char *format, va_list arguments,
                           const char **out) {
    char buffer[1024];
    char *text;
    vsnprintf(buffer, sizeof buffer, format, arguments);
    TRY(arena_text(doctor->arena, buffer, strlen(buffer), &text));
    *out = text;
    return STATUS_OK;
}

static enum status make_room(struct doctor *doctor) {
    struct doctor_finding *larger;
    if (doctor->count < doctor->room) return STATUS_OK;
    const size_t room = doctor->room == 0 ? 16 : 2 * doctor->room;
    TRY(arena_take(doctor->arena, room, sizeof *larger, "findings", &larger));
    if (doctor->count > 0) memcpy(larger, doctor->findings, doctor->count * sizeof *larger);
    doctor->findings = larger;
    doctor->room = room;
    return STATUS_OK;
}

static enum status add(struct doctor *doctor, const struct doctor_finding *head, size_t row,
                       const char *format, va_list arguments) {
    const char **evidence, *words;
    TRY(text_of(doctor, format, arguments, &words));
    TRY(make_room(doctor));
    TRY(arena_take(doctor->arena, DOCTOR_EVIDENCE, sizeof *evidence, "evidence", &evidence));
    struct doctor_finding *finding = &doctor->findings[doctor->count++];
    *finding = *head;
    finding->words = words;
    finding->evidence = evidence;
    finding->reason = finding->next = "";
    if (row == SIZE_MAX) return STATUS_OK;
    finding->update = doctor->log->step[row] < 1 ? 0 : (uint64_t)doctor->log->step[row];
    finding->line = doctor->log->line[row];
    return STATUS_OK;
}

enum status doctor_found(struct doctor *doctor, const char *id, enum doctor_confidence confidence,
                         size_t row, const char *format, ...) {
    const struct doctor_finding head = {.id = id, .confidence = (int32_t)confidence};
    va_list arguments;
    va_start(arguments, format);
    const enum status status = add(doctor, &head, row, format, arguments);
    va_end(arguments);
    return status;
}

enum status doctor_remark(struct doctor *doctor, const char *id, size_t row, const char *format,
                          ...) {
    const struct doctor_finding head = {.id = id, .confidence = DOCTOR_CERTAIN, .remark = 1};
    va_list arguments;
    va_start(arguments, format);
    const enum status status = add(doctor, &head, row, format, arguments);
    va_end(arguments);
    return status;
}

void doctor_set_confidence(struct doctor *doctor, enum doctor_confidence confidence) {
    doctor->findings[doctor->count - 1].confidence = confidence;
}

int doctor_has(const struct doctor *doctor, const char *id) {
    for (size_t i = 0; i < doctor->count; i++)
        if (!doctor->findings[i].remark && strcmp(doctor->findings[i].id, id) == 0) return 1;
    return 0;
}

enum status doctor_evidence(struct doctor *doctor, const char *format, ...) {
    struct doctor_finding *finding = &doctor->findings[doctor->count - 1];
    const char **lines = (const char **)(uintptr_t)finding->evidence;
    va_list arguments;
    if (finding->evidence_count == DOCTOR_EVIDENCE) return STATUS_OK;
    va_start(arguments, format);
    const enum status status = text_of(doctor, format, arguments, &lines[finding->evidence_count]);
    va_end(arguments);
    TRY(status);
    finding->evidence_count++;
    return STATUS_OK;
}

enum status doctor_evidence_point(struct doctor *doctor, const char *source,
                                  const struct series_point *point) {
    const struct word value = word_value(point->value, point->quantum);
    const struct word place = word_place(doctor->log, point->row);
    return doctor_evidence(doctor, "%s: %s is %s", place.text, source, value.text);
}

enum status doctor_evidence_column(struct doctor *doctor, enum log_name name,
                                   const struct series_point *point) {
    return doctor_evidence_point(doctor, word_column(doctor->log, name), point);
}

enum status doctor_evidence_lr(struct doctor *doctor, const struct series_point *point) {
    return doctor_evidence_column(doctor, doctor->lr_applied ? LOG_LR_APPLIED : LOG_LR_LOGGED,
                                  point);
}

enum status doctor_explain(struct doctor *doctor, const char *reason, const char *next) {
    struct doctor_finding *finding = &doctor->findings[doctor->count - 1];
    finding->reason = reason;
    finding->next = next;
    return STATUS_OK;
}

enum status doctor_untestable(struct doctor *doctor, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const enum status status = text_of(doctor, format, arguments, &doctor->why);
    va_end(arguments);
    doctor->result = DOCTOR_UNTESTABLE;
    return status;
}

enum status doctor_not_asked(struct doctor *doctor, const char *option) {
    doctor->result = DOCTOR_NOT_ASKED;
    doctor->why = option;
    return STATUS_OK;
}

int doctor_is_preference(const struct doctor *doctor) {
    const struct series *const series = doctor->series;
    return series[LOG_REWARD_CHOSEN].count > 0 || series[LOG_REWARD_REJECTED].count > 0 ||
           series[LOG_REWARD_MARGIN].count > 0 ||
           (series[LOG_LOGP_CHOSEN].count > 0 && series[LOG_LOGP_REJECTED].count > 0);
}

const struct series_point *series_at(const struct series *series, uint64_t update) {
    for (size_t i = 0; i < series->count; i++)
        if (series->points[i].update == update) return &series->points[i];
    return NULL;
}

const struct series_point *series_in_row(const struct series *series, size_t row) {
    const size_t at = series_row(series, row);
    return at < series->count && series->points[at].row == row ? &series->points[at] : NULL;
}

int point_differs(const struct series_point *a, const struct series_point *b) {
    return log_compare(a->value, a->quantum, b->value, b->quantum) == LOG_DIFFERENT;
}

double series_largest(const struct series *series) {
    double largest = 0.0;
    for (size_t i = 0; i < series->count; i++) {
        const double value = series->points[i].value;
        if (real_finite_f64(value) && value > largest) largest = value;
    }
    return largest;
}

uint64_t doctor_last_update(const struct doctor *doctor) {
    int64_t last = 0;
    for (size_t i = 0; i < doctor->log->rows; i++)
        if (doctor->log->step[i] > last) last = doctor->log->step[i];
    return (uint64_t)last;
}

uint64_t doctor_run_length(const struct doctor *doctor) {
    const uint64_t last = doctor_last_update(doctor);
    return doctor->log->max_steps > last ? doctor->log->max_steps : last;
}

/* Another total is a decision of the user where the log says that total itself, or says none and
 * shows a resume. Else it is one free number, and explains what may be a bug. */
static int is_extension(const struct doctor *doctor, const struct fit_segment *segment) {
    if (segment->event != FIT_TOTAL) return 0;
    if (doctor->log->max_steps > 0) return segment->steps == doctor->log->max_steps;
    return !fit_break_is_hidden(segment, doctor->fits);
}

static int harmless(const struct doctor *doctor, const struct fit *fit) {
    if (fit->bug != NULL || fit->unsound) return 0;
    if (fit_changes_total(fit) && fit->contract->bug) return 0;
    for (size_t i = 0; i < fit->segment_count; i++) {
        const struct fit_segment *segment = &fit->segments[i];
        /* What is simpler than an extension may be a bug, and comes first. */
        if (is_extension(doctor, segment) && fit == &doctor->fits->fits[0]) continue;
        if (segment->event != FIT_PLAIN && segment->event != FIT_SKIP) return 0;
    }
    return 1;
}

const struct fit *doctor_plain_fit(const struct doctor *doctor) {
    for (size_t i = 0; i < doctor->fits->count; i++)
        if (harmless(doctor, &doctor->fits->fits[i])) return &doctor->fits->fits[i];
    return NULL;
}

int doctor_lr_skips(const struct doctor *doctor, uint64_t update) {
    const struct fit *fit = doctor_plain_fit(doctor);
    for (size_t i = 0; fit != NULL && i < fit->skip_count; i++)
        if (update >= fit->skips[i].first && update <= fit->skips[i].last) return 1;
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0
 * Runs the checks over a log and sorts what they say. Knows no check by itself.
 *
 * Invariant: every check that is asked gets a line in the report, also when it could not look. The
 * checks of phases are asked of a recording alone, because no log prints phases. */
#include "forensics/doctor/doctor.h"

#include <string.h>

#include "base/real.h"
#include "forensics/doctor/doctor_check.h"

static const struct doctor_check *const tables[] = {
    doctor_run_checks,   doctor_value_checks,   doctor_dpo_checks,  doctor_reward_checks,
    doctor_fit_checks,   doctor_applied_checks, doctor_lr_checks,   doctor_resume_checks,
    doctor_count_checks, doctor_number_checks,  doctor_phase_checks};

/* Whether a table has something to ask of this log: only a recording shows phases. */
static int is_asked(const struct doctor *doctor, const struct doctor_check *table) {
    return table != doctor_phase_checks || doctor->options->recorded;
}

const char *doctor_confidence_name(enum doctor_confidence confidence) {
    static const char *const names[] = {"possible", "likely", "certain"};
    return names[confidence];
}

void doctor_options_init(struct doctor_options *options) {
    memset(options, 0, sizeof *options);
    options->weight_decay = real_nan_f64();
}

static int has_column(const struct doctor *doctor, int32_t name) {
    if (name == LOG_LR_LOGGED) return doctor->lr.count > 0;
    return doctor->series[name].count > 0;
}

/* Returns the first column that the check needs and the log lacks, or LOG_OTHER when it has all. */
static int32_t lacking(const struct doctor *doctor, const struct doctor_check *check) {
    for (size_t i = 0; i < DOCTOR_NEEDS && check->needs[i] != LOG_OTHER; i++)
        if (!has_column(doctor, check->needs[i])) return check->needs[i];
    return LOG_OTHER;
}

static enum status run_check(struct doctor *doctor, const struct doctor_check *check,
                             struct doctor_line *line) {
    const size_t before = doctor->count;
    const int32_t missing = lacking(doctor, check);
    doctor->result = DOCTOR_QUIET;
    doctor->why = NULL;
    if (missing == LOG_OTHER)
        TRY(check->run(doctor));
    else
        TRY(doctor_untestable(doctor, "no column %s", log_names[missing].name));
    for (size_t i = before; i < doctor->count; i++) {
        doctor->findings[i].check = check->id;
        if (!doctor->findings[i].remark) doctor->result = DOCTOR_FOUND;
    }
    *line = (struct doctor_line){.id = check->id,
                                 .title = check->title,
                                 .result = doctor->result,
                                 .why = doctor->why,
                                 .lacks = missing == LOG_OTHER ? NULL : log_names[missing].name};
    return STATUS_OK;
}

static enum status run_tables(struct doctor *doctor, struct doctor_report *out) {
    struct doctor_line *lines;
    size_t total = 0;
    for (size_t t = 0; t < COUNT_OF(tables); t++)
        for (const struct doctor_check *check = tables[t]; check->id != NULL; check++)
            total++;
    TRY(arena_take(doctor->arena, total, sizeof *lines, "checks", &lines));
    for (size_t t = 0; t < COUNT_OF(tables); t++)
        for (const struct doctor_check *check = tables[t];
             is_asked(doctor, tables[t]) && check->id != NULL; check++) {
            struct doctor_line *line = &lines[out->line_count++];
            TRY(run_check(doctor, check, line));
            out->checked += line->result == DOCTOR_QUIET || line->result == DOCTOR_FOUND;
        }
    out->lines = lines;
    return STATUS_OK;
}

static enum status sort_findings(struct doctor *doctor, struct doctor_report *out) {
    struct doctor_finding *sorted;
    TRY(arena_take(doctor->arena, doctor->count, sizeof *sorted, "findings", &sorted));
    size_t used = 0;
    for (int remark = 0; remark < 2; remark++) {
        for (size_t i = 0; i < doctor->count; i++)
            if (doctor->findings[i].remark == remark) sorted[used++] = doctor->findings[i];
        if (!remark) out->finding_count = used;
    }
    out->remark_count = used - out->finding_count;
    out->findings = sorted;
    return STATUS_OK;
}

static enum status name_columns(const struct doctor *doctor, struct doctor_report *out) {
    const char **columns;
    TRY(arena_take(doctor->arena, LOG_NAMES, sizeof *columns, "columns", &columns));
    for (int32_t name = LOG_LOSS; name < LOG_NAMES; name++)
        if (doctor->series[name].count > 0)
            columns[out->column_count++] = word_column(doctor->log, (enum log_name)name);
    out->columns = columns;
    return STATUS_OK;
}

enum status doctor_examine(const struct log *log, const struct doctor_options *options,
                           const struct fit_set *fits, struct arena *arena,
                           struct doctor_report *out) {
    static const struct fit_set nothing = {.why = FIT_WHY_NO_COLUMN};
    struct doctor doctor = {
        .log = log, .options = options, .fits = fits != NULL ? fits : &nothing, .arena = arena};
    memset(out, 0, sizeof *out);
    for (int32_t name = LOG_LOSS; name < LOG_NAMES; name++)
        TRY(series_share(log, log_column_of(log, (enum log_name)name),
                         name == LOG_LR_LOGGED ? doctor.fits->series : NULL, arena,
                         &doctor.series[name]));
    doctor.lr_applied = doctor.series[LOG_LR_APPLIED].count > 0;
    doctor.lr = doctor.series[doctor.lr_applied ? LOG_LR_APPLIED : LOG_LR_LOGGED];
    TRY(run_tables(&doctor, out));
    TRY(name_columns(&doctor, out));
    return sort_findings(&doctor, out);
}

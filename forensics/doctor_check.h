/* SPDX-License-Identifier: Apache-2.0
 * What a check of the doctor is, and what it may use. Private to forensics/doctor_*.c.
 *
 * A check reports with doctor_found or doctor_remark, then adds evidence lines to the finding just
 * made. Returning without a report means that it looked and found nothing; doctor_untestable and
 * doctor_not_asked say that it could not look. */
#ifndef TWINSTEP_FORENSICS_DOCTOR_CHECK_H
#define TWINSTEP_FORENSICS_DOCTOR_CHECK_H

#include "forensics/doctor.h"
#include "forensics/words.h"

#define DOCTOR_NEEDS 4
#define DOCTOR_EVIDENCE 6 /* lines of one finding */

struct doctor {
    const struct log *log;
    const struct doctor_options *options;
    const struct fit_set *fits; /* never NULL; count 0 when nothing is known */
    struct arena *arena;
    struct series series[LOG_NAMES];
    struct series lr; /* applied where the log has it, else logged */
    int lr_applied;   /* 1: `lr` is the applied column */
    struct doctor_finding *findings;
    size_t count, room;
    int32_t result; /* of the check at hand */
    const char *why;
};

struct doctor_check {
    const char *id;
    const char *title;           /* what is checked, as a phrase */
    int32_t needs[DOCTOR_NEEDS]; /* enum log_name; LOG_OTHER ends. LOG_LR_LOGGED: any LR column */
    enum status (*run)(struct doctor *doctor);
};

/* Ends with a row whose id is NULL. */
extern const struct doctor_check doctor_lr_checks[];
extern const struct doctor_check doctor_fit_checks[];
extern const struct doctor_check doctor_resume_checks[];
extern const struct doctor_check doctor_dpo_checks[];
extern const struct doctor_check doctor_reward_checks[];
extern const struct doctor_check doctor_value_checks[];
extern const struct doctor_check doctor_count_checks[];
extern const struct doctor_check doctor_number_checks[];

/* row: where it shows first; SIZE_MAX: nowhere in particular. */
TWINSTEP_MUST_USE enum status doctor_found(struct doctor *doctor, const char *id,
                                           enum doctor_confidence confidence, size_t row,
                                           const char *format, ...) TWINSTEP_PRINTF(5, 6);
TWINSTEP_MUST_USE enum status doctor_remark(struct doctor *doctor, const char *id, size_t row,
                                            const char *format, ...) TWINSTEP_PRINTF(4, 5);
/* Whether a finding of that name is there already. */
int doctor_has(const struct doctor *doctor, const char *id);
/* To the finding just made; beyond DOCTOR_EVIDENCE lines they are dropped. */
TWINSTEP_MUST_USE enum status doctor_evidence(struct doctor *doctor, const char *format, ...)
    TWINSTEP_PRINTF(2, 3);
/* "SOURCE at PLACE: VALUE" of one point. */
TWINSTEP_MUST_USE enum status doctor_evidence_point(struct doctor *doctor, const char *source,
                                                    const struct series_point *point);
/* Texts of the finding just made. They must outlive the report. */
void doctor_explain(struct doctor *doctor, const char *reason, const char *next);

TWINSTEP_MUST_USE enum status doctor_untestable(struct doctor *doctor, const char *format, ...)
    TWINSTEP_PRINTF(2, 3);
TWINSTEP_MUST_USE enum status doctor_not_asked(struct doctor *doctor, const char *option);

/* Source name of the LR column. */
const char *doctor_lr_name(const struct doctor *doctor);
/* Whether the log is one of a preference objective with a reward or log-probability of pairs. */
int doctor_is_preference(const struct doctor *doctor);
/* Point of the first segment with that update; NULL when there is none. */
const struct series_point *series_at(const struct series *series, uint64_t update);
/* Point of a row; NULL when the row has no value there. Rows ascend in a series. */
const struct series_point *series_in_row(const struct series *series, size_t row);
/* Printed numbers that are different beyond their precision. */
int point_differs(const struct series_point *a, const struct series_point *b);
/* Largest finite value; 0 when there is none. */
double series_largest(const struct series *series);
/* Last update that the log prints, over all rows. */
uint64_t doctor_last_update(const struct doctor *doctor);
/* Where the run was to end: the log's own total, else its last update. */
uint64_t doctor_run_length(const struct doctor *doctor);
/* A fit that is no known bug, with one segment or harmless ones; NULL when there is none. */
const struct fit *doctor_plain_fit(const struct doctor *doctor);

#endif

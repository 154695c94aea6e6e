/* SPDX-License-Identifier: Apache-2.0
 * What a check of the doctor is, and what it may use. Private to forensics/doctor*.c.
 *
 * A check reports with doctor_found or doctor_remark, then adds lines of evidence to the finding
 * just made. Returning without a report means that it looked and found nothing; doctor_untestable
 * and doctor_not_asked say that it could not look. */
#ifndef TWINSTEP_FORENSICS_DOCTOR_DOCTOR_CHECK_H
#define TWINSTEP_FORENSICS_DOCTOR_DOCTOR_CHECK_H

#include "forensics/doctor/doctor.h"
#include "forensics/words.h"

#define DOCTOR_NEEDS 4
/* Lines of evidence that a finding may have: chosen so that it fits on a screen. */
#define DOCTOR_EVIDENCE 6

struct doctor {
    const struct log *log;
    const struct doctor_options *options;
    const struct fit_set *fits; /* never NULL; its count is 0 when nothing is known */
    struct arena *arena;
    struct series series[LOG_NAMES];
    struct series lr; /* the applied LR where the log has it, else the logged one */
    int lr_applied;   /* 1: `lr` is the applied column */
    struct doctor_finding *findings;
    size_t count, room;
    int32_t result; /* what the check at hand came to */
    const char *why;
};

struct doctor_check {
    const char *id;
    const char *title;           /* what is checked, as a phrase */
    int32_t needs[DOCTOR_NEEDS]; /* the columns it needs (enum log_name), ending with LOG_OTHER;
                                    LOG_LR_LOGGED stands for any LR column */
    enum status (*run)(struct doctor *doctor);
};

/* The tables of checks. Each ends with a row whose id is NULL. */
extern const struct doctor_check doctor_run_checks[];
extern const struct doctor_check doctor_lr_checks[];
extern const struct doctor_check doctor_applied_checks[];
extern const struct doctor_check doctor_phase_checks[];
extern const struct doctor_check doctor_fit_checks[];
extern const struct doctor_check doctor_resume_checks[];
extern const struct doctor_check doctor_dpo_checks[];
extern const struct doctor_check doctor_reward_checks[];
extern const struct doctor_check doctor_value_checks[];
extern const struct doctor_check doctor_count_checks[];
extern const struct doctor_check doctor_number_checks[];

/* Report a finding, or a remark. `row` is where it shows first; SIZE_MAX: nowhere in particular. */
TWINSTEP_MUST_USE enum status doctor_found(struct doctor *doctor, const char *id,
                                           enum doctor_confidence confidence, size_t row,
                                           const char *format, ...) TWINSTEP_PRINTF(5, 6);
TWINSTEP_MUST_USE enum status doctor_remark(struct doctor *doctor, const char *id, size_t row,
                                            const char *format, ...) TWINSTEP_PRINTF(4, 5);
/* Sets the confidence of the remark just made, which is certain otherwise. */
void doctor_set_confidence(struct doctor *doctor, enum doctor_confidence confidence);
/* Tells whether there is a finding of that name already. */
int doctor_has(const struct doctor *doctor, const char *id);
/* Adds a line of evidence to the finding just made. Lines beyond DOCTOR_EVIDENCE are dropped. */
TWINSTEP_MUST_USE enum status doctor_evidence(struct doctor *doctor, const char *format, ...)
    TWINSTEP_PRINTF(2, 3);
/* Adds one point as evidence: "PLACE: SOURCE is VALUE". */
TWINSTEP_MUST_USE enum status doctor_evidence_point(struct doctor *doctor, const char *source,
                                                    const struct series_point *point);
/* The same under the log's own name of a column, and of the LR column. */
TWINSTEP_MUST_USE enum status doctor_evidence_column(struct doctor *doctor, enum log_name name,
                                                     const struct series_point *point);
TWINSTEP_MUST_USE enum status doctor_evidence_lr(struct doctor *doctor,
                                                 const struct series_point *point);
/* Sets the texts of the finding just made, which must outlive the report. As the last words of a
 * check it returns STATUS_OK. */
TWINSTEP_MUST_USE enum status doctor_explain(struct doctor *doctor, const char *reason,
                                             const char *next);

TWINSTEP_MUST_USE enum status doctor_untestable(struct doctor *doctor, const char *format, ...)
    TWINSTEP_PRINTF(2, 3);
TWINSTEP_MUST_USE enum status doctor_not_asked(struct doctor *doctor, const char *option);

/* Tells whether the log is that of a preference objective, by a column of rewards or of
 * log-probabilities of pairs. */
int doctor_is_preference(const struct doctor *doctor);
/* Which share of the sigmoid loss of a mean margin the mean loss must have at least: -ln sigmoid is
 * convex, so it has all of it, and 5 % is left for means over unequal numbers of pairs. */
#define DOCTOR_MARGIN_BOUND 0.95

/* Returns -ln sigmoid(margin), which is ln(1 + exp(-margin)), without overflow for any margin. */
double doctor_sigmoid_loss(double margin);
/* Returns the first point with that update, or NULL. */
const struct series_point *series_at(const struct series *series, uint64_t update);
/* Returns the point of a row, or NULL when the row has no value there. It searches by halves, since
 * rows ascend in a series. */
const struct series_point *series_in_row(const struct series *series, size_t row);
/* Tells whether two printed numbers differ beyond their precision. */
int point_differs(const struct series_point *a, const struct series_point *b);
/* Returns the largest finite value, or 0 when there is none above it. */
double series_largest(const struct series *series);
/* Returns how many points from `at` on, up to a resume, are those from the first one on. */
size_t series_replayed(const struct series *series, size_t at);
/* Returns the last update that the log prints, over all rows. */
uint64_t doctor_last_update(const struct doctor *doctor);
/* Returns where the run was to end: the log's own total, or else its last update. */
uint64_t doctor_run_length(const struct doctor *doctor);
/* Returns the step that the LR is printed with where every LR prints as 0 and that says nothing (a
 * console with three decimals); 0: it is not so. The other one says that a check cannot look. */
double doctor_lr_is_lost(const struct doctor *doctor);
TWINSTEP_MUST_USE enum status doctor_lr_lost(struct doctor *doctor);
/* Returns a fit that is no known bug and has one segment or harmless ones, or NULL. */
const struct fit *doctor_plain_fit(const struct doctor *doctor);
/* Returns the first of the zeros that the LR ends with, where they are a fifth of the run or more
 * and the LR came down to them; else NULL. One that is printed to 0.1 of its peak or finer may be
 * small in place of 0. */
const struct series_point *doctor_runs_out(const struct doctor *doctor);
/* Tells whether the LR column says that this update was, or may have been, skipped by a loss
 * scaler: the simplest sound fit has a skip there. */
int doctor_lr_skips(const struct doctor *doctor, uint64_t update);

#endif

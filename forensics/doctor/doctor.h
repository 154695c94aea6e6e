/* SPDX-License-Identifier: Apache-2.0
 * What is wrong with a training, as far as its log alone can say.
 *
 * A table of small checks runs over one log. A check finds something, finds nothing, or cannot look
 * (a column, a row or an option is missing) and says which. A finding carries its evidence: rows
 * with their lines, and values with the precision they were printed with. A remark is a fact worth
 * knowing that is normal under some framework's convention; it is not a finding. The checks are
 * listed in docs/FORENSICS.md. Trains nothing, reads no file.
 *
 * Invariant: no finding without evidence, and what is normal in a shipped contract is no finding.
 */
#ifndef TWINSTEP_FORENSICS_DOCTOR_DOCTOR_H
#define TWINSTEP_FORENSICS_DOCTOR_DOCTOR_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/dtype.h"
#include "base/status.h"
#include "forensics/fit.h"
#include "logs/log.h"

enum doctor_confidence {
    DOCTOR_POSSIBLE = 0, /* an innocent reading exists, and `reason` names it */
    DOCTOR_LIKELY,       /* the innocent readings are far-fetched */
    DOCTOR_CERTAIN       /* it follows from the printed numbers alone */
};
/* The name of a confidence: "possible", "likely", "certain". */
const char *doctor_confidence_name(enum doctor_confidence confidence);

struct trace_run;

/* What the log does not print. Zero or NaN means that it was not said (doctor_options_init). */
struct doctor_options {
    uint64_t processes, accumulate;
    uint64_t pairs; /* preference pairs per row of the log */
    uint64_t vocab; /* size of the vocabulary, when the training starts from given weights: the
                       doctor warns when it looks like new ones */
    int dtype_given;
    int32_t dtype;       /* enum dtype of the weights that the optimizer writes */
    int master_none;     /* 1: there is no copy of higher precision and no stochastic rounding */
    double weight_decay; /* decoupled, applied as the factor 1 - lr * wd in binary32 */
    /* Of a recording: updates of which it says where the optimizer stepped and where the LR was
     * moved, those that moved it before the step, and the first of these; 0: it does not say. */
    uint64_t placed, ahead, ahead_first;
    /* Of a recording that shows phases (`recorded`): updates that unscale and clip, those that clip
     * first, and the first of these; updates that clear their gradient, those that step and do not,
     * though another backward follows, and the first of these. */
    int recorded;
    /* Of a recording: updates whose count of the optimizer's steps and that of the update before
     * are known; those of them in which it moved by two or more, with the first one's number, the
     * count at it and by how much it had moved. */
    uint64_t counted, stepped_often, stepped_first, stepped_to, stepped_by;
    uint64_t scaled, clipped_early, clipped_first;
    uint64_t cleared, kept, kept_first;
};
void doctor_options_init(struct doctor_options *options);
/* Fills `placed`, `ahead` and `ahead_first` from the places of the phases of a recording. */
void doctor_options_place(struct doctor_options *options, const struct trace_run *run);
/* Fills the members behind them. */
void doctor_options_order(struct doctor_options *options, const struct trace_run *run);

struct doctor_finding {
    const char *id;    /* its name in the catalogue of bugs */
    const char *check; /* the check that made it */
    int remark;        /* 1: it is normal somewhere, and said because it matters */
    int32_t confidence;
    const char *words;  /* what is the matter */
    const char *reason; /* why this confidence */
    const char *next;   /* what to try */
    const char *const *evidence;
    size_t evidence_count;
    uint64_t update; /* the update where it shows first; 0: nowhere in particular */
    uint32_t line;   /* line of the source; 0: none */
};

enum doctor_result {
    DOCTOR_QUIET = 0,  /* it looked and found nothing */
    DOCTOR_FOUND,      /* it made one finding or more */
    DOCTOR_UNTESTABLE, /* it could not look; `why` says what is missing */
    DOCTOR_NOT_ASKED   /* it needs an option, which `why` names */
};

struct doctor_line {
    const char *id, *title;
    int32_t result;
    const char *why;   /* NULL unless it could not look */
    const char *lacks; /* the column that it could not look without, as `why` says; else NULL */
};

struct doctor_report {
    /* Findings come before remarks, each in the order of the table. */
    const struct doctor_finding *findings;
    size_t finding_count; /* without remarks */
    size_t remark_count;
    const struct doctor_line *lines; /* one per check */
    size_t line_count;
    size_t checked; /* how many checks looked */
    /* The columns that they could look at, as the log spells them. */
    const char *const *columns;
    size_t column_count;
};

/* Examines a log. `fits` are those of the LR column (fit_series), or NULL. Everything lives in
 * `arena`. */
TWINSTEP_MUST_USE enum status doctor_examine(const struct log *log,
                                             const struct doctor_options *options,
                                             const struct fit_set *fits, struct arena *arena,
                                             struct doctor_report *out);

#endif

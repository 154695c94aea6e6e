/* SPDX-License-Identifier: Apache-2.0
 * What is wrong with a training, as far as its log alone can say.
 *
 * A table of small checks runs over one log. A check finds something, finds nothing, or cannot look
 * (a column, a row or an option is missing) and says which. A finding carries its evidence: rows
 * with their lines and values with the precision they were printed with. A remark is a fact worth
 * knowing that is normal under some framework's convention; it is not a finding.
 * Source of the checks: docs/FORENSICS.md. Trains nothing, reads no file.
 * Invariant: no finding without evidence; what is normal in a shipped contract is no finding. */
#ifndef TWINSTEP_FORENSICS_DOCTOR_H
#define TWINSTEP_FORENSICS_DOCTOR_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/dtype.h"
#include "base/status.h"
#include "forensics/fit.h"
#include "logs/log.h"

enum doctor_confidence {
    DOCTOR_POSSIBLE = 0, /* an innocent reading exists; `reason` names it */
    DOCTOR_LIKELY,       /* the innocent readings are far-fetched */
    DOCTOR_CERTAIN       /* follows from the printed numbers alone */
};
/* "possible", "likely", "certain". */
const char *doctor_confidence_name(enum doctor_confidence confidence);

/* What the log does not print. Zero or NaN: not said (doctor_options_init). */
struct doctor_options {
    uint64_t processes, accumulate;
    uint64_t pairs; /* preference pairs per row of the log */
    uint64_t vocab; /* post-training from given weights: warn when the start looks like new ones */
    int dtype_given;
    int32_t dtype;       /* enum dtype of the weights that the optimizer writes */
    int master_none;     /* 1: no copy of higher precision, no stochastic rounding */
    double weight_decay; /* decoupled, applied as the factor 1 - lr * wd in binary32 */
};
void doctor_options_init(struct doctor_options *options);

struct doctor_finding {
    const char *id; /* name of the catalogue */
    int remark;     /* 1: normal somewhere, said because it matters */
    int32_t confidence;
    const char *words;  /* what is the matter */
    const char *reason; /* why this confidence */
    const char *next;   /* what to try */
    const char *const *evidence;
    size_t evidence_count;
    uint64_t update; /* where it shows first; 0: nowhere in particular */
    uint32_t line;   /* of the source; 0: none */
};

enum doctor_result {
    DOCTOR_QUIET = 0,  /* looked, found nothing */
    DOCTOR_FOUND,      /* one finding or more */
    DOCTOR_UNTESTABLE, /* `why` says what is missing */
    DOCTOR_NOT_ASKED   /* needs an option, named in `why` */
};

struct doctor_line {
    const char *id, *title;
    int32_t result;
    const char *why; /* NULL unless it could not look */
};

struct doctor_report {
    const struct doctor_finding *findings; /* findings before remarks, in the order of the table */
    size_t finding_count;                  /* without remarks */
    size_t remark_count;
    const struct doctor_line *lines; /* one per check */
    size_t line_count;
    size_t checked; /* checks that looked */
};

/* `fits`: of the LR column (fit_series), or NULL. Everything lives in `arena`. */
TWINSTEP_MUST_USE enum status doctor_examine(const struct log *log,
                                             const struct doctor_options *options,
                                             const struct fit_set *fits, struct arena *arena,
                                             struct doctor_report *out);

#endif

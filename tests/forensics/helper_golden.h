/* SPDX-License-Identifier: Apache-2.0
 * All that the log side says of a case, as text, held against text that is committed: one file of
 * tests/golden/forensics for each program, one block for each case. Assertions name what a case is
 * about; the text holds everything else still, so that a changed threshold, cost or comparison is
 * seen where nobody thought of it.
 *
 * With TWINSTEP_WRITE_GOLDEN=FILE a program appends its blocks to FILE in place of comparing them.
 * What changed is to be read before it is committed. Only cases of the default run have a block:
 * the nightly run, which takes more, passes over the others. */
#ifndef TWINSTEP_TESTS_FORENSICS_HELPER_GOLDEN_H
#define TWINSTEP_TESTS_FORENSICS_HELPER_GOLDEN_H

#include <stdio.h>

#include "forensics/compare.h"
#include "forensics/doctor/doctor.h"
#include "forensics/fit.h"

/* Begins the block of a case; its name is made as by printf. */
__attribute__((format(printf, 2, 3))) FILE *golden_begin(const char *file, const char *name, ...);
/* Ends it, and fails where its text is not that of tests/golden/forensics/<file>. */
void golden_end(void);

/* Writes the first `most` fits and what is said of all of them. */
void golden_fits(FILE *out, const struct fit_set *set, size_t most);
/* Writes every fit with all of its members, and what is concluded from each. */
void golden_fits_whole(FILE *out, const struct fit_set *set, const struct fit_known *known);
/* Writes a verdict with the first `most` fits beside it. */
void golden_check(FILE *out, const struct fit_check *check, size_t most);
void golden_findings(FILE *out, const struct doctor_report *report);
void golden_comparison(FILE *out, const struct compare_report *report);

#endif

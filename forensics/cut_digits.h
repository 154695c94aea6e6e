/* SPDX-License-Identifier: Apache-2.0
 * Numbers whose digits were cut off behind the last one printed and not rounded, as scripts do that
 * take a part of a text (str(x)[:6]) or floor(x * 1e4) / 1e4.
 *
 * Such a number lies between the printed one and the next one away from 0, and not half a step
 * around it. Read as rounded, a sound schedule fits nothing, or an odd one with a bug, and of two
 * logs of one training half of the rows differ. A log does not say how it was printed: it is told
 * by numbers that are known otherwise, those of another log or of a schedule. Invariant: a column
 * is read so only where it agrees so in every row, as rounded it does not, and updates move it so
 * far that the numbers of another update would not agree. */
#ifndef TWINSTEP_FORENSICS_CUT_DIGITS_H
#define TWINSTEP_FORENSICS_CUT_DIGITS_H

#include "forensics/fit.h"

/* Compares each column of the two logs. Where all pairs of one agree if the digits of one log are
 * cut off, and as rounded numbers several do not, the numbers of that log become the middle of what
 * they can be, and a note says so. */
TWINSTEP_MUST_USE enum status cut_digits_by_other(struct log *a, struct log *b,
                                                  struct arena *arena);

/* Stores the LR column's points as they are where its digits were cut off: each number in the
 * middle of what it can be. Stores no points where too few rows or no printed digits would tell,
 * or where the LRs of another update look the same. */
TWINSTEP_MUST_USE enum status cut_digits_series(const struct series *series, struct arena *arena,
                                                struct series *out);

/* Tells whether the LRs that a fit of such a series logs can have been cut off to its numbers. */
int cut_digits_may_be(const struct fit *fit, const struct series *cut);

/* Fits the series as fit_series does. Where nothing plain explains the numbers as rounded ones, and
 * something plain does as numbers that were cut off, *series and the log's column
 * of LRs become these, *set their fits, and a note says so. The log's rows may not be numbered by
 * us. */
TWINSTEP_MUST_USE enum status cut_digits_fit(struct log *log, struct series *series,
                                             const struct fit_known *known, struct arena *arena,
                                             struct fit_set *set);

/* Makes the log's column of LRs the numbers of such a series, and says so in a note. */
TWINSTEP_MUST_USE enum status cut_digits_put(struct log *log, const struct series *series,
                                             struct arena *arena);

#endif

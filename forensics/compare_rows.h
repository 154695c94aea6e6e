/* SPDX-License-Identifier: Apache-2.0
 * Which updates the rows of a log are that prints none, by the epochs of another log. It looks at
 * nothing but steps and epochs, so the two need not be logs of one training: their epochs are as
 * long. */
#ifndef TWINSTEP_FORENSICS_COMPARE_ROWS_H
#define TWINSTEP_FORENSICS_COMPARE_ROWS_H

#include "logs/log.h"

/* Numbers the rows of `log`, of which the reader numbered them from 1, by the epochs of `other`,
 * which prints its updates, and says so in a note; leaves them where the epochs do not agree on one
 * distance of 2 or more in every row. */
TWINSTEP_MUST_USE enum status compare_number_rows(const struct log *other, struct log *log,
                                                  struct arena *arena);

/* Counts the updates of a log from 0 that nothing says the first update of, where that makes its
 * numbers those of the other log: a log that counts from 0 and has lost its first row is one update
 * off. Losses or gradient norms of eight rows that change must agree then, with all else that the
 * two have of the training, while as they stand three do not. A note says so. */
TWINSTEP_MUST_USE enum status compare_shift_rows(const struct log *other, struct log *log,
                                                 struct arena *arena);

#endif

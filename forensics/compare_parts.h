/* SPDX-License-Identifier: Apache-2.0
 * The steps of a comparison. Private to forensics/compare*.c. */
#ifndef TWINSTEP_FORENSICS_COMPARE_PARTS_H
#define TWINSTEP_FORENSICS_COMPARE_PARTS_H

#include "forensics/compare.h"
#include "forensics/words.h"

/* Next update that both sides have, from *i and *j on; 0 when there is none. */
int compare_next(const struct compare_column *column, size_t *i, size_t *j);

/* Fills `side`: sorted by update, later rows of an update win. */
TWINSTEP_MUST_USE enum status compare_align(const struct log *log, int32_t name,
                                            struct arena *arena, struct compare_side *side);
/* Classes of one column whose sides are filled. */
void compare_classify(struct compare_column *column);
/* Ratio of the two sides; kind COMPARE_FACTOR_NONE when there is none. `tokens` may be NULL. */
TWINSTEP_MUST_USE enum status compare_find_ratio(const struct compare_column *column,
                                                 const struct compare_side *tokens,
                                                 struct compare_ratio *out);
TWINSTEP_MUST_USE enum status compare_applied(const struct compare_input *input,
                                              const struct compare_column *logged,
                                              struct arena *arena, struct compare_lr *out);
/* What the order of first differences says: meaning, cause, next. */
void compare_explain(struct compare_report *report);

/* Column of that name; NULL when neither log has it. */
const struct compare_column *compare_column_of(const struct compare_report *report,
                                               enum log_name name);

#endif

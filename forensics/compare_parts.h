/* SPDX-License-Identifier: Apache-2.0
 * The steps of a comparison. Private to forensics/compare*.c. */
#ifndef TWINSTEP_FORENSICS_COMPARE_PARTS_H
#define TWINSTEP_FORENSICS_COMPARE_PARTS_H

#include "forensics/compare.h"
#include "forensics/words.h"

/* Point i of a side. A column whose rows all have a value, in ascending order of their updates, is
 * read from the log itself: a second copy of every column would be most of what comparing takes. */
struct series_point compare_point(const struct compare_side *side, size_t i);

/* Finds the next update that both sides have, from *i and *j on. Returns 0 when there is none. */
int compare_next(const struct compare_column *column, size_t *i, size_t *j);

/* Fills `side`, sorted by update; of an update's rows the last one counts. */
TWINSTEP_MUST_USE enum status compare_align(const struct log *log, int32_t name,
                                            struct arena *arena, struct compare_side *side);
/* The same of a column, which may be NULL. */
TWINSTEP_MUST_USE enum status compare_align_column(const struct log *log,
                                                   const struct log_column *column,
                                                   struct arena *arena, struct compare_side *side);
/* Gives a side whose numbers are all of f32 its cell, where the other one's are not: the two may be
 * one training's numbers, added up in f32 and in f64. */
void compare_find_cells(struct compare_column *column);
/* Classifies a column whose sides are filled. */
void compare_classify(struct compare_column *column);
/* Fills column->ends_before: a column that has its numbers at rows some updates apart, and has none
 * for as long at the end of its log, ends there. */
void compare_find_end(struct compare_column *column, const struct log *const *logs);
/* The update of a log's last row, and how many updates its rows are apart at most; of one row
 * alone, that row's update. 0: it has no row. */
uint64_t compare_reach(const struct log *log);
uint64_t compare_widest(const struct log *log);
/* Finds the ratio of the two sides; kind is COMPARE_FACTOR_NONE when there is none. `tokens` may be
 * NULL. */
TWINSTEP_MUST_USE enum status compare_find_ratio(const struct compare_column *column,
                                                 const struct compare_side *tokens,
                                                 struct compare_ratio *out);
/* Returns the loss scale that the fixed factor of a gradient norm, or its inverse, may be; 0: none.
 * `ratio` may be NULL. */
double compare_scale_of(const struct compare_ratio *ratio);
/* Which of a fixed offset and a fixed factor leaves less of the difference of two columns. */
enum compare_reading {
    COMPARE_READ_FACTOR = 0, /* a factor, or nothing: there is no fixed offset */
    COMPARE_READ_OFFSET,
    COMPARE_READ_EITHER
};
/* Looks for a fixed offset. Unless it returns COMPARE_READ_FACTOR, it fills factor (as if there
 * were one), offset, scatter, pairs, held and first_exact. */
enum compare_reading compare_find_offset(const struct compare_column *column,
                                         struct compare_ratio *out);
TWINSTEP_MUST_USE enum status compare_applied(const struct compare_input *input,
                                              const struct compare_column *logged,
                                              struct arena *arena, struct compare_lr *out);
/* Compares the LR columns of further parameter groups and fills the members of `lr` that speak of
 * them. `first_group` has the applied and the printed LR of the first group; NULL: neither log has
 * it. */
TWINSTEP_MUST_USE enum status compare_groups(const struct compare_input *input,
                                             const struct compare_column *const *first_group,
                                             struct arena *arena, struct compare_lr *lr);
/* Where the printed columns agree, and applied LRs differ under every pair of explanations, looks
 * for one explanation of all rows of both logs, and sets lr->agree and lr->alike where there is. */
TWINSTEP_MUST_USE enum status compare_one_for_both(const struct compare_input *input,
                                                   struct arena *arena, struct compare_lr *lr);
/* Looks for explanations of the two LR columns that differ in nothing but the skipped updates, and
 * fills skips_words, skips_part and fit; skips_words is "" where there are none. */
TWINSTEP_MUST_USE enum status compare_skips(const struct compare_input *input, struct arena *arena,
                                            struct compare_lr *lr);
/* What the row behind the first step shows. The first tells whether anything that the forward pass
 * shows before the first step depends on weights, data or dtype: a DPO loss of ln 2 and rewards of
 * 0 do not. The next two tell whether in the update behind that step rewards are apart further than
 * the policy's log-probabilities let them, and the loss further than the rewards let it; the last
 * whether both rewards of the update behind it are in the ratio of two neighbours of a printed LR
 * column that agrees, as where one run applies it an update late. */
int compare_start_tells(const struct compare_report *report);
int compare_rewards_alone(const struct compare_report *report);
int compare_loss_alone(const struct compare_report *report);
int compare_rewards_follow(const struct compare_report *report);
/* Of two DPO logs whose gradient norms of update 1 are in the ratio `factor` while both begin at ln
 * 2 with rewards of 0: whether they begin so, whether the losses leave ln 2 with their margins in
 * that ratio, too, as with another label smoothing, and whether rewards and loss of the next row
 * agree all the same, as where a step does not depend on the size of a gradient and nothing but a
 * divisor differs. */
int compare_starts_at_ln2(const struct compare_report *report);
int compare_slopes_in_ratio(const struct compare_report *report, double factor);
int compare_scaled_alike(const struct compare_report *report, double factor);
/* Tells whether the rewards of that update, of either kind, may be apart by one factor, which is
 * that of the update behind it, too, as another beta makes them. */
int compare_rewards_scaled(const struct compare_report *report);
/* Returns the side of which alone each reward is 0: 0 for A, 1 for B; -1: neither. */
int compare_own_reference(const struct compare_report *report);

/* Fills meaning, cause and next: what the order of first differences says. */
TWINSTEP_MUST_USE enum status compare_explain(struct compare_report *report, struct arena *arena);

/* Numbers in ascending order, of which a median is taken: the first COMPARE_ROWS that are finite,
 * because the runs have drifted least there. It begins as {.count = 0}. */
#define COMPARE_ROWS 33
struct compare_sorted {
    double values[COMPARE_ROWS];
    size_t count;
};
void compare_keep(struct compare_sorted *sorted, double value);
/* Returns the (upper) median, or NaN of none. */
double compare_median(const struct compare_sorted *sorted);

/* What the forward pass shows, losses, log-probabilities, logits and rewards; behind the last one
 * stands LOG_OTHER. */
extern const enum log_name compare_forward_names[];
/* Returns the column of that name, or NULL when neither log has it. */
const struct compare_column *compare_column_of(const struct compare_report *report,
                                               enum log_name name);

#endif

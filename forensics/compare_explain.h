/* SPDX-License-Identifier: Apache-2.0
 * What compare_explain rests on, by subject: columns, sizes of gaps, LRs, recordings. Private to
 * forensics/compare_explain*.c. A function here reads a report whose columns are filled; one that
 * is called compare_explain_... sets its meaning, cause and next. */
#ifndef TWINSTEP_FORENSICS_COMPARE_EXPLAIN_H
#define TWINSTEP_FORENSICS_COMPARE_EXPLAIN_H

#include "forensics/compare_parts.h"

/* How far the ratio of two norms may be from the loss scale: as far as a fixed ratio may drift. */
#define COMPARE_RATIO_DRIFT 0.005

/* Sets the meaning; a cause of -1 is undecided. */
void compare_say(struct compare_report *report, int32_t cause, const char *meaning,
                 const char *next);

/* ---- columns (compare_explain_columns.c) ---- */

/* Groups of columns, each with LOG_OTHER behind its last one: counts of data, gradients, LRs. Those
 * of the forward pass are compare_forward_names. */
extern const enum log_name compare_data_names[], compare_gradient_names[], compare_lr_names[];

/* Returns the column of a group that differs first, or NULL. */
const struct compare_column *compare_first_of(const struct compare_report *report,
                                              const enum log_name *names);
/* Tells whether some column of the group has a pair before the first step acts. */
int compare_covers_start(const struct compare_report *report, const enum log_name *names);
/* Returns the fixed factor of a column, or NULL. */
const struct compare_ratio *compare_ratio_of(const struct compare_report *report,
                                             enum log_name name);
/* Tells whether both sides print a column before `update`, with at least six digits. */
int compare_is_fine(const struct compare_column *column, uint64_t update);
/* Tells whether both sides print a column at the update. */
int compare_has_pair_at(const struct compare_column *column, uint64_t update);
/* Tells whether a column agrees in many digits before the first step. */
int compare_agrees_at_start(const struct compare_report *report, enum log_name name);
/* Tells whether a column is a mean of logits that says nothing of weights and data. */
int compare_is_other_mean(const struct compare_report *report, enum log_name name);
/* Tells whether rewards part in an update in which the policy's log-probs agree. */
int compare_reference_apart(const struct compare_report *report, uint64_t update);
/* Tells whether the loss of an update before the first step parts where the policy's log-probs
 * agree in so many digits that they cannot have moved it. */
int compare_loss_apart(const struct compare_report *report, uint64_t update);
/* Tells whether both logs show both rewards of an update, and they agree. */
int compare_rewards_agree(const struct compare_report *report, uint64_t update);
/* Tells whether loss and gradient norm agree in many digits over all updates. */
int compare_trains_alike(const struct compare_report *report);
/* Tells whether numbers that are logged are all that differs, of which `first` is the first of loss
 * and gradient: digests of two runs say so, or norms of gradients and of weights that
 * agree in every update. */
int compare_logged_alone(const struct compare_report *report, const struct compare_column *first);
/* Returns the last update before `update` that both logs have of forward pass or gradient, or 0. */
uint64_t compare_pair_before(const struct compare_report *report, uint64_t update);

/* ---- trainings that are the same beside a column that is logged otherwise
 * (compare_explain_same.c) ---- */

/* Returns in how many pairs behind an update A's number is another one than in the pair before. */
size_t compare_changes_behind(const struct compare_column *column, uint64_t update);
/* Tells whether a column changes and agrees in many digits behind an update, and behind the first
 * step, so often that it speaks for the training. */
int compare_speaks(const struct compare_report *report, enum log_name name, uint64_t update);
/* Says so where the loss of one log is a mean of the other's; sets *out to 0, and nothing else,
 * where it is none. */
TWINSTEP_MUST_USE enum status compare_explain_mean(struct compare_report *report,
                                                   struct arena *arena, int *out);
/* The same of a log that has a row for each micro-batch, numbered on, beside one that has a row for
 * each update: each loss of this one is the mean of as many of that one. */
TWINSTEP_MUST_USE enum status compare_explain_blocks(struct compare_report *report,
                                                     struct arena *arena, int *out);
/* Tells whether the gradient norm alone differs, by more than rounding, while the losses agree. */
int compare_norm_elsewhere(const struct compare_report *report);
TWINSTEP_MUST_USE enum status compare_explain_norm_elsewhere(struct compare_report *report,
                                                             struct arena *arena);
/* Tells, where nothing else differs, whether printed LRs do while explanations of both columns
 * apply the same LRs. */
int compare_lr_of_print(const struct compare_report *report);
void compare_explain_lr_of_print(struct compare_report *report);

/* ---- how large a gap is (compare_explain_gap.c) ---- */

enum compare_gap { COMPARE_GAP_ROUNDING, COMPARE_GAP_BETWEEN, COMPARE_GAP_OTHER };

/* Judges the first gap of a column. Beyond `most`, a share of the value, none is rounding. */
enum compare_gap compare_judge_gap(const struct compare_column *column, double most);
/* Judges the first gap of the gradient norm, which is a column of the report. */
enum compare_gap compare_judge_norm(const struct compare_report *report);
/* Judges the forward pass and the gradient before the first step: the largest gap counts. */
enum compare_gap compare_judge_start(const struct compare_report *report);
/* Tells whether losses are apart before the first step, and in most of the first rows, by more than
 * f32 makes: so another average of the same numbers may have made them, too. */
int compare_may_average(const struct compare_report *report);
/* Tells whether the losses of the first rows are apart by numbers of one sign and about one size,
 * as a small term of the loss makes them. */
int compare_gaps_lean(const struct compare_report *report);
/* Tells whether means of logits, which do not count there beside log-probs, are apart by more than
 * rounding makes. */
int compare_logits_apart(const struct compare_report *report);

/* ---- LRs and skipped updates (compare_explain_lr.c) ---- */

/* Tells whether LRs differ by more than two programs compute one schedule, of any group. */
int compare_lrs_differ(const struct compare_report *report);
/* Tells whether the weights moved before the first update that the printed LRs let move them;
 * `column` is the first to differ. */
int compare_moved_unseen(const struct compare_report *report, const struct compare_column *column);
void compare_explain_unseen(struct compare_report *report);
/* Both return 0, and set nothing, where the rows do not tell so. `column` is the first to differ of
 * the forward pass and the gradient. */
int compare_explain_first_lr(struct compare_report *report);
int compare_explain_unplaced(struct compare_report *report, const struct compare_column *column);
void compare_explain_lr_only(struct compare_report *report);
/* Tells whether the logs count other skipped updates. */
int compare_count_skips(const struct compare_report *report);
/* Tells whether other updates were skipped before anything else differs. */
int compare_skips_part(const struct compare_report *report);
TWINSTEP_MUST_USE enum status compare_explain_skips(struct compare_report *report,
                                                    struct arena *arena);
/* Tells whether one schedule explains both printed columns, which one log holds once, in the row in
 * which `column` parts, the first to differ of the forward pass and the gradient. */
int compare_hold_parts(const struct compare_report *report, const struct compare_column *column);
void compare_explain_hold(struct compare_report *report);

/* ---- what differs between two steps (compare_explain_between.c) ---- */

enum compare_between {
    COMPARE_BETWEEN_NONE, /* what differs first is not known to be computed of equal weights */
    COMPARE_BETWEEN_BATCH,
    COMPARE_BETWEEN_FORWARD,
    COMPARE_BETWEEN_GRADIENT
};

/* Tells what of a later update than the first differs, of weights that are the same behind the step
 * before: two runs of ours say so by their roots, logs by norms of weights and by losses in many
 * digits. `first` is the first to differ of the forward pass and the gradient; `other_lr`: LRs
 * differ before it, so that logs say nothing of it. */
enum compare_between compare_between(const struct compare_report *report,
                                     const struct compare_column *first, int other_lr);
TWINSTEP_MUST_USE enum status compare_explain_between(struct compare_report *report,
                                                      const struct compare_column *first,
                                                      enum compare_between what,
                                                      struct arena *arena);

/* ---- recordings (compare_explain_recorded.c) ---- */

/* Tells whether two recordings part in this phase by their digests, before the first step. */
int compare_parts_in(const struct compare_report *report, const char *phase);
/* Tells whether the gradient whose norm differs first is the same bit for bit, by its digests. */
int compare_norm_alone(const struct compare_report *report);
/* Returns 0, and sets nothing, where draws do not explain the difference. */
int compare_explain_draws(struct compare_report *report);
/* Says what the digests of weights before the first update say, if these differ; sets *out to 0,
 * and nothing else, where they do not. */
TWINSTEP_MUST_USE enum status compare_explain_initial(struct compare_report *report,
                                                      struct arena *arena, int *out);
/* Tells whether the states of random generators are all that two recordings part in, before `first`
 * does, the first difference of loss and gradient (NULL: there is none). */
int compare_generators_part(const struct compare_report *report,
                            const struct compare_column *first);
TWINSTEP_MUST_USE enum status compare_explain_generators(struct compare_report *report,
                                                         struct arena *arena);
/* Tells whether two recordings part in a later update than their first one, in its loss, while its
 * batch is the same and the states of generators behind it are not. */
int compare_draws_part(const struct compare_report *report, const struct compare_column *first);
TWINSTEP_MUST_USE enum status compare_explain_later_draws(struct compare_report *report,
                                                          struct arena *arena);
/* Tells whether two recordings part in the loss of a later update than their first one, of weights,
 * batch and draws that are the same. */
int compare_loss_parts(const struct compare_report *report, const struct compare_column *first);
TWINSTEP_MUST_USE enum status compare_explain_loss(struct compare_report *report,
                                                   struct arena *arena);
/* Tells whether two recordings part in the step of an update, by their digests, before `first`
 * does, the first difference of loss and gradient (NULL: there is none). Where no digest of the
 * gradient was taken in that update, an update at least lies between the two, or settings of the
 * optimizer differ and the norm of that gradient is the same. */
int compare_step_parts(const struct compare_report *report, const struct compare_column *first);
TWINSTEP_MUST_USE enum status compare_explain_step(struct compare_report *report,
                                                   const struct compare_column *first,
                                                   struct arena *arena);
/* Tells whether `first` is the gradient's norm of a later update than the first, up to which two
 * recordings are equal by their digests but for a digest of that gradient, which was not taken. */
int compare_gradient_parts(const struct compare_report *report, const struct compare_column *first);
/* Tells whether two recordings compute from the same weights, of which none is left out, and the
 * same batch in the update in which they part. */
int compare_same_start(const struct compare_report *report, uint64_t update);
/* Tells whether a part (enum compare_part) of the roots differs in the update in which they part.
 */
int compare_root_differs(const struct compare_report *report, enum compare_part part);
/* Takes a cause of schedule back, where recordings say that more than the LR of a step differs. */
TWINSTEP_MUST_USE enum status compare_add_step(struct compare_report *report, struct arena *arena);
/* Tells whether another order of phases explains `first`, the first difference of loss and gradient
 * (NULL: there is none). */
int compare_loops_part(const struct compare_report *report, const struct compare_column *first);
void compare_explain_loops(struct compare_report *report);
/* Says so where the first difference opens in the update in which one recording begins to have no
 * forward call of its model in training; sets *out to 0, and nothing else, where it does not.
 * `first` is the first to differ of loss and gradient. */
TWINSTEP_MUST_USE enum status compare_explain_unseen_forward(struct compare_report *report,
                                                             const struct compare_column *first,
                                                             struct arena *arena, int *out);
/* Tells whether the batch is what two recordings part in, no later than `first` does. */
int compare_batches_part(const struct compare_report *report, const struct compare_column *first);
TWINSTEP_MUST_USE enum status compare_explain_batches(struct compare_report *report,
                                                      struct arena *arena);

/* ---- beyond rounding (compare_explain_beyond.c) ---- */

/* Takes the answer back that rounding or kernels open the gap, where the files show what these do
 * not make: other batches, LRs, skipped updates, phases, counts or clipping, or a gap that jumps.
 */
TWINSTEP_MUST_USE enum status compare_explain_beyond(struct compare_report *report,
                                                     struct arena *arena);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * What two runs of other programs say of themselves: configurations, with the causes that their
 * writers name, and the order in which their loops went through the phases. It judges nothing. */
#ifndef TWINSTEP_FORENSICS_COMPARE_FOREIGN_H
#define TWINSTEP_FORENSICS_COMPARE_FOREIGN_H

#include "base/arena.h"
#include "determinism/trace.h"
#include "forensics/compare.h"

/* The keys that differ: "lr: 0.1 | 0.2 (schedule); seed: 1 | not there"; "" if none does. A cause
 * is that of A's list or else of B's, never one that follows from a key's name. Four keys or more
 * of a group (what stands before the first dot) of which the other run has none come last and as
 * one: "args.*: 62 keys | not there"; those of a parameter group are one, too: "optimizer.0.1: this
 * parameter group is in A alone (weight decay 0.1)". Of more than `most` the rest is counted: ";
 * and 3 more"; 0 names all. */
TWINSTEP_MUST_USE enum status compare_configurations(const struct trace_run_plan *a,
                                                     const struct trace_run_plan *b, size_t most,
                                                     struct arena *arena, const char **out);

/* The phases of an update in the order of their first events: "fetch, forward, backward, optimize";
 * "" where no places are recorded. */
TWINSTEP_MUST_USE enum status compare_order_of(const struct trace_run_plan *plan,
                                               const struct record *record, struct arena *arena,
                                               const char **out);

/* The first update that both have in which the orders differ, and the two orders: "update 1: A
 * optimize, schedule; B schedule, optimize"; "" if there is none. */
TWINSTEP_MUST_USE enum status compare_orders(const struct trace_run *a, const struct trace_run *b,
                                             struct arena *arena, const char **out);

/* Finds the first update that both have in which one loop does what enum compare_loop_kind lists
 * and the other does not, by the places of the phases backward, unscale, clip, optimize and zero.
 * A phase that a recording does not name tells nothing, and neither does an update in which one of
 * them does not clip; a run of ours names all that it runs, in their order. kind is
 * COMPARE_LOOP_ALIKE if there is none. */
struct compare_loop compare_loops(const struct trace_run *a, const struct trace_run *b);

/* Finds where one of two recordings has no forward call of its model in training. A run that names
 * no phase forward tells nothing, and neither does an update in which one of them goes nowhere
 * backward. */
struct compare_unseen compare_unseen_of(const struct trace_run *a, const struct trace_run *b);

/* Tells whether the configurations of two runs differ in a setting of an optimizer that moves its
 * step by more than rounding, beside the LR ("optimizer.0.0.betas", "args.max_grad_norm"). */
int compare_optimizers_apart(const struct trace_run_plan *a, const struct trace_run_plan *b);

/* Tells whether the configurations of two runs say that other kernels step ("optimizer.0.0.fused",
 * "optimizer.0.0.foreach"), which round otherwise. */
int compare_kernels_apart(const struct trace_run_plan *a, const struct trace_run_plan *b);

/* Returns the first setting of transformers and TRL that differs and changes by itself which labels
 * a model is given: a loss mask, or a loss for which the trainer keeps the labels. NULL if none
 * does. */
const char *compare_labels_key(const struct trace_run_plan *a, const struct trace_run_plan *b);
/* Tells whether TRL moves the reference of a DPO training towards the policy in one run alone. */
int compare_reference_moves(const struct trace_run_plan *a, const struct trace_run_plan *b);

int compare_has_key(const struct trace_run_plan *plan, const char *key);
/* Tells whether both configurations have the same value of a key, or neither has it; unknown where
 * one of them alone has it. */
enum compare_known compare_key(const struct trace_run_plan *a, const struct trace_run_plan *b,
                               const char *key);

/* Tells whether the configurations of two runs differ in anything but seeds, facts of the
 * environment and what the recorder says of the weights. */
int compare_settings_apart(const struct trace_run_plan *a, const struct trace_run_plan *b);
/* The same of those that can move the gradient of the first update: all but what acts in a step. */
int compare_others_apart(const struct trace_run_plan *a, const struct trace_run_plan *b);

/* Compares what two recordings of like tensors say of their weights before the first update, and of
 * batch and step in update `first`, in which anything differs first (0: nothing does). */
TWINSTEP_MUST_USE enum status compare_recordings(const struct trace_run *a,
                                                 const struct trace_run *b, uint64_t first,
                                                 struct arena *arena, struct compare_recorded *out);

/* Which parts of the roots of two records of one update differ, a bit each. */
unsigned compare_root_parts(const struct record *a, const struct record *b);

#endif

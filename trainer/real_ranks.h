/* SPDX-License-Identifier: Apache-2.0
 * Data-parallel ranks that are processes: each computes forward and backward of its own shards, and
 * all make the same update.
 *
 * Rank 0 runs the experiment as if its ranks were simulated; it decides, reads clocks and signals
 * and writes. The others serve it: they open the runs that it names and step them with it. In an
 * update, what the forwards found by label (log-probs, and digests of activations) is brought
 * together, so that every rank sums the loss of the update itself, in the order of law 5. Where an
 * update is one shard, each rank waits for the sums of the one before it and goes on with them;
 * elsewhere the ranks hand in the subtrees of their shards in phase `reduce`, and rank 0 joins them
 * in the order of law 21. All take the sum. At the end of the update they compare roots.
 *
 * Invariant: an update that is trained so leaves the bits of one with simulated ranks, or an error.
 * A message that is lost, doubled, exchanged or changed is told by its head or its checksum. */
#ifndef TWINSTEP_TRAINER_REAL_RANKS_H
#define TWINSTEP_TRAINER_REAL_RANKS_H

#include "ranks/ranks.h"
#include "trainer/run.h"

/* Makes the group ready: all ranks must be the program `build` (a text that tells builds apart).
 * `ranks` and `arena` must outlive it. STATUS_INPUT, on rank 0 alone: the others are another build.
 */
TWINSTEP_MUST_USE enum status real_ranks_open(struct ranks *ranks, const char *build,
                                              struct arena *arena, struct real_ranks **out);

/* Rank 0, before the first update: STATUS_INPUT where this configuration cannot be trained so; the
 * text names the key. Its parallel.ranks is 1 (then rank 0 trains it alone) or the number of ranks.
 */
TWINSTEP_MUST_USE enum status real_ranks_check(const struct real_ranks *ranks,
                                               const struct config *config);

/* Rank 0, while it does something else for long: tells the others that it is alive. Every update
 * that it trains alone does that, too. */
TWINSTEP_MUST_USE enum status real_ranks_beat(struct real_ranks *ranks);

/* The others: do what rank 0 says until it ends, and return in *out_code what it ends with. */
TWINSTEP_MUST_USE enum status real_ranks_serve(struct real_ranks *ranks, int *out_code);

/* Rank 0: ends the others with this exit status and leaves the group. Where an update broke off, so
 * that nobody knows what the others wait for, it leaves them to whoever started them, who ends all
 * when this process ends. */
TWINSTEP_MUST_USE enum status real_ranks_end(struct real_ranks *ranks, int code);

/* ---- for the run itself ---- */

/* What this process knows of a run that others train, too. */
struct real_run;

/* Begins an update: says in run->shared whether all ranks train it. They do where the run has
 * several ranks and nobody looks at its ops; the others' state is brought up to date if need be. */
TWINSTEP_MUST_USE enum status real_ranks_begin(struct run *run);
/* Trains this rank's micro-batches, each by one call of train_micro(), and takes in what those of
 * the others found. */
TWINSTEP_MUST_USE enum status real_ranks_micros(struct run *run,
                                                enum status (*train_micro)(struct run *));
/* This process's rank, in an update that all ranks train. */
uint32_t real_ranks_rank(const struct run *run);
/* Brings together what ranks made of their parts: `bytes` holds what each has, sizes[r] bytes of
 * rank r, behind what the ranks before it have. This rank's own is filled in before, all of it
 * behind. */
TWINSTEP_MUST_USE enum status real_ranks_share(struct run *run, unsigned char *bytes,
                                               const size_t *sizes);
/* Phase `reduce`. */
TWINSTEP_MUST_USE enum status real_ranks_reduce(struct run *run);
/* Ends an update that all ranks train, whether it went well or not, and returns how it went. */
TWINSTEP_MUST_USE enum status real_ranks_finish(struct run *run, enum status status);
/* The run is closed. */
void real_ranks_forget(struct run *run);

#endif

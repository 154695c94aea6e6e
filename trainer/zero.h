/* SPDX-License-Identifier: Apache-2.0
 * Ranks that own parts of what is trained (parallel.zero): which elements of a tensor are whose,
 * and the work of an update that is dealt by parts. Private to the run.
 *
 * At stage 1 a rank steps its part of masters and slots; from stage 2 on it alone joins that part
 * of the gradient, and sums the squares of it; at stage 3 it owns that part of the weights, which a
 * forward gathers. Parts of stages 1 and 2 are DeepSpeed's, those of stage 3 FSDP2's
 * (ranks/partition.h). Ranks work one after the other here, in the one copy that the state holds of
 * everything: parts do not overlap, so what one rank leaves no other one touches.
 *
 * Invariant: the bits are those of stage 0 (law 21 of docs/DETERMINISM.md). */
#ifndef TWINSTEP_TRAINER_ZERO_H
#define TWINSTEP_TRAINER_ZERO_H

#include "optim/clip.h"
#include "optim/optim.h"
#include "ranks/partition.h"
#include "scenarios/scenario.h"
#include "trainer/run.h"

struct zero; /* of a run whose ranks own parts */

/* STATUS_INPUT in `fault` where the optimizer cannot step a part of a tensor. */
TWINSTEP_MUST_USE enum status zero_check(const struct config *config, struct fault *fault);

/* Takes memory; run->zero is NULL where every rank has all. */
TWINSTEP_MUST_USE enum status zero_open(struct run *run);

/* What a rank owns of owner `index`. */
struct partition_range zero_part(const struct run *run, uint32_t rank, uint32_t index);

/* Whether the run's stage is at least `stage`. */
int zero_is(const struct run *run, enum parallel_zero stage);

/* The ranks whose work is done in this process: from *out_first on; returns the one behind the
 * last. All of them, or where ranks are processes (trainer/real_ranks.h) this one. */
uint32_t zero_here(const struct run *run, uint32_t *out_first);

/* The optimizer's step, rank by rank: `call` has the tensors of all owners. Where ranks are
 * processes each steps its part, and then all parts go to all, since the record is of all. */
TWINSTEP_MUST_USE enum status zero_step(struct run *run, struct optim_call *call);

/* Sums the squares of the gradients, of which call->tensors (run->clips) are all owners, by blocks
 * of law 2, each on the rank that owns its first element, and hands them to the call. What other
 * ranks own of a block is sent to that rank, fewer than 4096 elements at each border, so that parts
 * may end anywhere and blocks are those of stage 0. In mode order-free, whose sums have no order,
 * nothing is done. */
TWINSTEP_MUST_USE enum status zero_squares(struct run *run, struct clip_call *call);

/* ---- where ranks are processes (trainer/real_ranks.h) ---- */

/* What zero_move_sums does with a part: nothing, or it moves bytes. */
enum zero_way { ZERO_COUNT, ZERO_PACK, ZERO_UNPACK };

/* Moves what a rank owns of the accumulators at `sums`, which lie as in the state, to `packed` or
 * from there. Returns how many bytes that are. */
size_t zero_move_sums(const struct run *run, uint32_t rank, void *sums, unsigned char *packed,
                      enum zero_way way);

/* Room for what all ranks own of anything. */
unsigned char *zero_packed(const struct run *run);

/* Brings together the sums of the update, of which each process has joined its part. */
TWINSTEP_MUST_USE enum status zero_share_sums(struct run *run);

/* Brings the weights that ranks own to where a forward reads them. */
void zero_gather(struct run *run);

#endif

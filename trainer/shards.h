/* SPDX-License-Identifier: Apache-2.0
 * The sums of an update by shards (law 21 of docs/DETERMINISM.md): which chain each micro-batch
 * goes on with, and the joins of chains. Private to the run.
 *
 * Slot 0 of the tree is the accumulators of the state; memory for the others is taken here, and
 * holds nothing between updates. What the state's accumulators hold when an update begins, its
 * first chain goes on from: +0, a stored gradient, or a sum that was never closed.
 *
 * Invariant: after the last micro-batch of an update on one rank, and after phase `reduce` on
 * several, the state's accumulators hold the sum of the update. */
#ifndef TWINSTEP_TRAINER_SHARDS_H
#define TWINSTEP_TRAINER_SHARDS_H

#include "model/model.h"
#include "ranks/tree.h"
#include "trainer/run.h"

struct shards; /* of a run with numerics.shards above 1 */

/* Takes the memory; run->shards is NULL where there is one shard. */
TWINSTEP_MUST_USE enum status shards_open(struct run *run);

/* Cuts the micro-batch that was fetched last where a shard ends, and tells which chains its parts
 * continue. Returns the parts for model_backward(), or NULL where there is one shard. */
const struct model_parts *shards_parts(struct run *run);

/* Does what there is to do after the backward of a micro-batch: after the last one of the update
 * its last rank joins what it has. */
void shards_end_micro(struct run *run);

/* Joins what the ranks have: phase `reduce`. It changes nothing with one rank, or where they are
 * joined already. Under parallel.sync `first` that is the first micro-batch of each rank, and what
 * each rank has of the others is added to the sum, aside. */
void shards_reduce(struct run *run);

/* ---- where ranks are processes (trainer/real_ranks.h) ---- */

/* A sum that a rank holds: the node of the tree, and the accumulators of all tensors. */
struct shards_piece {
    struct tree_node node;
    void *bytes;
    size_t size;
};

/* The pieces that are held, but for the first `first` ones; returns their number. */
uint32_t shards_pieces(const struct run *run, uint32_t first,
                       struct shards_piece out[TREE_NODES_MAX]);

/* After the last micro-batch of rank 0: walks on over the shards of `rank`, the next one, and
 * returns the pieces that it will have, with the places in which they are awaited. */
uint32_t shards_expect(struct run *run, uint32_t rank, struct shards_piece out[TREE_NODES_MAX]);

/* Forgets what is held, and returns the pieces that all ranks have, in their order, with places for
 * them, as they are on one process. */
uint32_t shards_expect_all(struct run *run, struct shards_piece out[TREE_NODES_MAX]);

/* The place of the sum of the update; where there is one shard, of its chains too. */
struct shards_piece shards_sum(const struct run *run);

/* Behind shards_reduce, under parallel.sync `first`: puts the sums of a rank into the state's
 * accumulators. */
void shards_take_rank(struct run *run, uint32_t rank);

/* The rank whose micro-batch this is, from 0; 0 with one rank or one shard. */
uint32_t shards_rank_of(const struct run *run, uint32_t micro);

#endif

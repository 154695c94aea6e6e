/* SPDX-License-Identifier: Apache-2.0
 * The tree over the shards of an update: which shard a sample belongs to, which shards a rank owns,
 * and which sums are joined when (law 21 of docs/DETERMINISM.md). Pure functions of integers; the
 * sums themselves are whoever asks's.
 *
 * Sums lie in slots, numbered from 0. A walk over the samples in their order opens a slot for each
 * shard that has samples and joins slots as soon as their nodes are complete, so that few are in
 * use at a time. A node of level l and index j covers shards j 2^l to (j + 1) 2^l - 1. A node whose
 * sibling has no sample takes the place of their parent as it is: +0 is never added for it.
 *
 * Invariant: the tree that all joins make is a function of the number of shards and of which have
 * samples, never of ranks. */
#ifndef TWINSTEP_RANKS_TREE_H
#define TWINSTEP_RANKS_TREE_H

#include <stddef.h>
#include <stdint.h>

#define TREE_SHARDS_MAX 256
#define TREE_LEVELS_MAX 8              /* above the shards themselves */
#define TREE_NODES_MAX TREE_SHARDS_MAX /* that are held at once */

/* The shard of sample i of n: floor(i V / n). */
uint32_t tree_shard_of(uint64_t sample, uint64_t samples, uint32_t shards);

/* The first sample that belongs to `shard` or to a later one: ceil(shard n / V); n for shard V. */
uint64_t tree_first_sample(uint32_t shard, uint64_t samples, uint32_t shards);

/* The first shard of a rank: floor(rank V / P). The rank ends where the next one begins. */
uint32_t tree_first_shard(uint32_t rank, uint32_t shards, uint32_t ranks);

/* How many of n samples a rank has. */
uint64_t tree_rank_samples(uint32_t rank, uint64_t samples, uint32_t shards, uint32_t ranks);

/* How many micro-batches a rank has: its samples over `micro`, rounded up. One rank has all n
 * samples, whatever V is. */
uint64_t tree_rank_micros(uint32_t rank, uint64_t samples, uint64_t micro, uint32_t shards,
                          uint32_t ranks);

/* Those of all ranks together. */
uint64_t tree_micros(uint64_t samples, uint64_t micro, uint32_t shards, uint32_t ranks);

struct tree_node {
    uint32_t level, index;
};

/* slot[left] becomes slot[left] + slot[right], and slot[right] is free. */
struct tree_join {
    uint32_t left, right;
};

/* A walk over the shards: the nodes that are held, from left to right. The last one is that of the
 * open shard. */
struct tree {
    uint32_t shards, ranks;
    uint32_t first, end; /* shards of the rank that is walked */
    uint32_t rank;
    uint32_t base; /* nodes of the ranks before it */
    uint32_t count;
    struct tree_node node[TREE_NODES_MAX];
    uint32_t slot[TREE_NODES_MAX]; /* where the sum of a node lies */
};

/* Starts a walk; `shards` is a power of two up to TREE_SHARDS_MAX, and ranks are at most as many.
 */
void tree_open(struct tree *tree, uint32_t shards, uint32_t ranks);

/* Goes on to a shard behind the one that is open, if one is. Writes the joins that come first and
 * returns their number; then slot tree->count - 1 is the shard's, and it holds nothing that counts.
 * A rank joins within its own shards only, and what is left of a rank that ends stays. */
size_t tree_enter(struct tree *tree, uint32_t shard, struct tree_join out[TREE_LEVELS_MAX]);

/* Ends the last rank: writes its last joins and returns their number. With one rank the sum of the
 * update is in slot 0. */
size_t tree_leave(struct tree *tree, struct tree_join out[TREE_LEVELS_MAX]);

/* Joins what all ranks have left, after tree_leave: writes the joins and returns their number. Then
 * the sum of the update is in slot 0, and the walk holds nothing else. */
size_t tree_reduce(struct tree *tree, struct tree_join out[TREE_NODES_MAX]);

/* How many slots a walk over at most `samples` samples needs. */
uint32_t tree_slots(uint32_t shards, uint32_t ranks, uint64_t samples);

#endif

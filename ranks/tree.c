/* SPDX-License-Identifier: Apache-2.0
 * A binary counter that knows absent shards: its nodes lie on a stack, the rightmost on top, and
 * the top goes up as long as nothing that is still to come can stand below its parent. Where its
 * left sibling is the next node of the stack the two are joined; where it is not, that sibling has
 * no samples. */
#include "ranks/tree.h"

uint32_t tree_shard_of(uint64_t sample, uint64_t samples, uint32_t shards) {
    return (uint32_t)(sample * shards / samples);
}

uint64_t tree_first_sample(uint32_t shard, uint64_t samples, uint32_t shards) {
    return (shard * samples + shards - 1) / shards;
}

uint32_t tree_first_shard(uint32_t rank, uint32_t shards, uint32_t ranks) {
    return (uint32_t)((uint64_t)rank * shards / ranks);
}

uint64_t tree_rank_samples(uint32_t rank, uint64_t samples, uint32_t shards, uint32_t ranks) {
    const uint32_t first = tree_first_shard(rank, shards, ranks);
    const uint32_t end = tree_first_shard(rank + 1, shards, ranks);
    return tree_first_sample(end, samples, shards) - tree_first_sample(first, samples, shards);
}

uint64_t tree_rank_micros(uint32_t rank, uint64_t samples, uint64_t micro, uint32_t shards,
                          uint32_t ranks) {
    const uint64_t own = ranks == 1 ? samples : tree_rank_samples(rank, samples, shards, ranks);
    return own / micro + (own % micro != 0);
}

uint64_t tree_micros(uint64_t samples, uint64_t micro, uint32_t shards, uint32_t ranks) {
    uint64_t count = 0;
    for (uint32_t r = 0; r < ranks; r++)
        count += tree_rank_micros(r, samples, micro, shards, ranks);
    return count;
}

/* Shards from `first` up to `end`; within them a stack may join. */
struct range {
    uint32_t first, end;
};

static int covers(struct tree_node node, uint32_t shard) {
    return shard >> node.level == node.index;
}

static int lies_in(struct tree_node node, struct range range) {
    return node.index << node.level >= range.first && (node.index + 1) << node.level <= range.end;
}

/* Takes the top as far up as it can go within `range` before `next`, the shard that comes next;
 * range.end: none does. Nodes below `base` are left alone. */
static size_t rise(struct tree *tree, uint32_t base, struct range range, uint32_t next,
                   struct tree_join *out) {
    struct tree_node *const node = tree->node;
    size_t joins = 0;
    while (tree->count > base) {
        const uint32_t top = tree->count - 1;
        const struct tree_node parent = {node[top].level + 1, node[top].index / 2};
        if (!lies_in(parent, range) || (next < range.end && covers(parent, next))) break;
        if (top > base && node[top - 1].level == node[top].level &&
            node[top - 1].index / 2 == parent.index) {
            out[joins++] = (struct tree_join){tree->slot[top - 1], tree->slot[top]};
            tree->count--;
        }
        node[tree->count - 1] = parent;
    }
    return joins;
}

static void push(struct tree *tree, struct tree_node node, uint32_t slot) {
    tree->node[tree->count] = node;
    tree->slot[tree->count++] = slot;
}

static void begin_rank(struct tree *tree, uint32_t rank) {
    tree->rank = rank;
    tree->first = tree_first_shard(rank, tree->shards, tree->ranks);
    tree->end = tree_first_shard(rank + 1, tree->shards, tree->ranks);
    tree->base = tree->count;
}

void tree_open(struct tree *tree, uint32_t shards, uint32_t ranks) {
    tree->shards = shards;
    tree->ranks = ranks;
    tree->count = 0;
    begin_rank(tree, 0);
}

size_t tree_leave(struct tree *tree, struct tree_join out[TREE_LEVELS_MAX]) {
    return rise(tree, tree->base, (struct range){tree->first, tree->end}, tree->end, out);
}

size_t tree_enter(struct tree *tree, uint32_t shard, struct tree_join out[TREE_LEVELS_MAX]) {
    size_t joins;
    if (shard < tree->end) {
        joins = rise(tree, tree->base, (struct range){tree->first, tree->end}, shard, out);
    } else {
        joins = tree_leave(tree, out);
        while (shard >= tree->end)
            begin_rank(tree, tree->rank + 1);
    }
    push(tree, (struct tree_node){0, shard}, tree->count);
    return joins;
}

size_t tree_reduce(struct tree *tree, struct tree_join out[TREE_NODES_MAX]) {
    const struct range whole = {0, tree->shards};
    const uint32_t pieces = tree->count;
    size_t joins = 0;
    tree->count = 0; /* what is pushed stands in front of what is still to be read */
    for (uint32_t k = 0; k < pieces; k++) {
        const struct tree_node piece = tree->node[k];
        joins += rise(tree, 0, whole, piece.index << piece.level, out + joins);
        push(tree, piece, tree->slot[k]);
    }
    return joins + rise(tree, 0, whole, whole.end, out + joins);
}

uint32_t tree_slots(uint32_t shards, uint32_t ranks, uint64_t samples) {
    struct tree tree;
    struct tree_join joins[TREE_LEVELS_MAX];
    uint32_t most = 0;
    tree_open(&tree, shards, ranks);
    for (uint32_t shard = 0; shard < shards; shard++) {
        tree_enter(&tree, shard, joins);
        if (tree.count > most) most = tree.count;
    }
    return most < samples ? most : (uint32_t)samples;
}

/* SPDX-License-Identifier: Apache-2.0
 * Walks the shards of an update and keeps their chains.
 *
 * The tree says which slots are joined before a shard's chain begins. Those joins are made for each
 * sum when the model comes to it, not for all sums at once: until then a sum still lies in the
 * slots of before, and the numbers that are joined are the ones that are needed next. */
#include "trainer/shards.h"

#include <string.h>

#include "kernels/op.h"
#include "scenarios/scenario.h"
#include "trainer/run_private.h"
#include "trainer/zero.h"

/* A part of a micro-batch: what is done before its terms are added. */
struct part_plan {
    struct tree_join join[TREE_LEVELS_MAX];
    size_t joins;
    uint32_t slot; /* of its chain */
    int begins;    /* 1: the chain is its shard's first part */
};

struct shards {
    struct tree tree;
    uint32_t open;       /* the shard whose chain is open; UINT32_MAX: none is */
    size_t first;        /* offset of the first accumulator in the state */
    unsigned char *slot; /* the memory of slots 1 and up */
    uint32_t aside; /* slots from here on are no part of the tree: one for the others of each rank's
                       micro-batches (parallel.sync first), or one for what is wiped (parallel.keeps
                       last) */
    uint32_t *begun;         /* (ranks) the first sample whose terms the rank's slot aside holds;
                                UINT32_MAX: there is none in this update */
    size_t bytes;            /* of the accumulators of a slot */
    size_t slot_bytes;       /* those, and what keeps the next slot aligned */
    struct part_plan *plan;  /* (parts of a micro-batch) */
    struct model_part *part; /* likewise */
    struct model_parts handed;
};

/* The accumulator of a use in a slot. */
static void *in_slot(const struct run *run, uint32_t slot, uint32_t row, uint32_t use) {
    const struct shards *const shards = run->shards;
    const size_t at = run->layout.tensor[row].accumulator[use] - shards->first;
    if (slot == 0) return run->accumulators[row][use];
    return shards->slot + (slot - 1) * shards->slot_bytes + at;
}

/* An accumulator of mode order-free has a format that the op for closing reads and does not write.
 */
static void join_exactly(struct exact_sum *left, const struct exact_sum *right, size_t count) {
    for (size_t i = 0; i < count; i++)
        exact_sum_join(left + i, right + i);
}

/* Numbers of an accumulator: those of a row from `first` on, and of the rows behind it in the
 * state.
 */
struct stretch {
    uint32_t row, use;
    size_t first, count;
};

static void *at_stretch(const struct run *run, uint32_t slot, const struct stretch *on) {
    unsigned char *const first = (unsigned char *)in_slot(run, slot, on->row, on->use);
    return first + on->first * run->layout.accumulator;
}

/* to = left + right in the accumulation dtype: closing two uses of a tensor is that sum, rounded to
 * the dtype it is stored in, which here is its own. `to` is one of the two slots, and exact sums
 * have no order. */
static void join_to(const struct run *run, const struct tree_join *slots, uint32_t to,
                    struct stretch on) {
    const size_t count = on.count;
    void *const left = at_stretch(run, slots->left, &on);
    void *const right = at_stretch(run, slots->right, &on);
    void *const sum = to == slots->left ? left : right;
    const struct close_args args = {.count = count,
                                    .uses = 2,
                                    .acc = {left, right},
                                    .storage = run->layout.accumulator_dtype,
                                    .gradient = sum};
    if (run->layout.sums != 0)
        join_exactly((struct exact_sum *)sum,
                     (const struct exact_sum *)(to == slots->left ? right : left), count);
    else
        run->model.ops->close(&run->model.call, &args);
}

static void join(const struct run *run, const struct tree_join *slots, struct stretch on) {
    join_to(run, slots, slots->left, on);
}

static void *begin_part(void *context, uint32_t part, uint32_t row, uint32_t use) {
    const struct run *const run = (const struct run *)context;
    const struct part_plan *const plan = &run->shards->plan[part];
    const size_t count = run->table.rows[row].count;
    void *const chain = in_slot(run, plan->slot, row, use);
    for (size_t i = 0; i < plan->joins; i++)
        join(run, &plan->join[i], (struct stretch){row, use, 0, count});
    /* The state's own chain goes on from what it holds on the rank that has the first shard. */
    if (plan->begins && (plan->slot != 0 || run->micro_first > 0))
        model_set(&run->model, chain, count * run->layout.accumulator, 0);
    return chain;
}

/* Where the accumulators end in the state, and where they begin. */
static size_t find_accumulators(const struct run *run, size_t *out_first) {
    size_t first = SIZE_MAX, end = 0;
    for (uint32_t i = 0; i < run->owner_count; i++) {
        const struct param_row *const row = &run->table.rows[run->owner[i]];
        for (uint32_t use = 0; row->trainable && use < row->uses; use++) {
            const size_t at = run->layout.tensor[run->owner[i]].accumulator[use];
            const size_t last = at + row->count * run->layout.accumulator;
            if (at < first) first = at;
            if (last > end) end = last;
        }
    }
    *out_first = first;
    return end;
}

/* How many slots are no part of the tree. */
static uint32_t slots_aside(const struct config *config) {
    if (config->parallel.ranks <= 1) return 0;
    if (config_parts_ranks(config)) return (uint32_t)config->parallel.ranks;
    return config->parallel.keeps == KEEPS_LAST;
}

enum status shards_open(struct run *run) {
    const struct config *const config = &run->config;
    const uint32_t count = (uint32_t)config->numerics.shards;
    const uint32_t ranks = (uint32_t)config->parallel.ranks;
    /* A reading of plain sums takes the gradient of each micro-batch, not of an update. */
    if (count <= 1 || run->options.undivided) return STATUS_OK;
    struct shards *shards;
    TRY(arena_take(&run->arena, 1, sizeof *shards, "shards", &shards));
    run->shards = shards;
    const size_t end = find_accumulators(run, &shards->first);
    const size_t parts = run->limits.samples < count ? run->limits.samples : count;
    shards->bytes = end - shards->first;
    shards->slot_bytes = (shards->bytes + 63) & ~(size_t)63;
    TRY(arena_take(&run->arena, parts, sizeof *shards->plan, "shards", &shards->plan));
    TRY(arena_take(&run->arena, parts, sizeof *shards->part, "shards", &shards->part));
    shards->handed =
        (struct model_parts){.part = shards->part, .begin = begin_part, .context = run};
    shards->aside = tree_slots(count, ranks, config->batch.size);
    TRY(arena_take(&run->arena, ranks, sizeof *shards->begun, "shards", &shards->begun));
    return arena_take(arena_hidden(&run->arena), shards->aside - 1 + slots_aside(config),
                      shards->slot_bytes, "accumulators of shards", &shards->slot);
}

uint32_t shards_rank_of(const struct run *run, uint32_t micro) {
    const uint32_t ranks = (uint32_t)run->config.parallel.ranks;
    if (run->shards == NULL || ranks <= 1) return 0;
    const uint32_t shards = (uint32_t)run->config.numerics.shards;
    const uint32_t shard = tree_shard_of(run->plan.micro[micro].first, run->plan.samples, shards);
    uint32_t rank = 0;
    while (tree_first_shard(rank + 1, shards, ranks) <= shard)
        rank++;
    return rank;
}

/* Whether the terms of a micro-batch go into the tree, which is joined over ranks. */
static int is_joined(const struct run *run, uint32_t micro) {
    const struct config *const config = &run->config;
    const uint32_t rank = shards_rank_of(run, micro);
    if (config_parts_ranks(config)) return micro == 0 || shards_rank_of(run, micro - 1) != rank;
    if (config->parallel.ranks <= 1 || config->parallel.keeps == KEEPS_ALL) return 1;
    return micro + 1 == run->plan.micros || shards_rank_of(run, micro + 1) != rank;
}

/* Begins a part with `sample`, the first of the micro-batch that lies in `shard`. */
static void add_part(struct run *run, uint32_t shard, struct model_part from) {
    struct shards *const shards = run->shards;
    const uint32_t index = shards->handed.count++;
    struct part_plan *const plan = &shards->plan[index];
    plan->joins = 0;
    plan->begins = shard != shards->open;
    if (plan->begins) plan->joins = tree_enter(&shards->tree, shard, plan->join);
    plan->slot = shards->tree.slot[shards->tree.count - 1];
    shards->open = shard;
    shards->part[index] = from;
    shards->part[index].from =
        (uint32_t)tree_first_sample(shard, run->plan.samples, shards->tree.shards);
    if (plan->begins && shards->part[index].from < run->batch.first_sample)
        shards->part[index].from = run->batch.first_sample; /* what came before was wiped */
}

/* The micro-batch as one part, whose chain is the rank's own. Of what is wiped each micro-batch
 * starts anew. */
static void set_aside(struct run *run, uint32_t micro) {
    struct shards *const shards = run->shards;
    const uint32_t rank = config_parts_ranks(&run->config) ? shards_rank_of(run, micro) : 0;
    const int begins = !config_parts_ranks(&run->config) || shards->begun[rank] == UINT32_MAX;
    if (begins) shards->begun[rank] = run->batch.first_sample;
    shards->plan[0] =
        (struct part_plan){.joins = 0, .slot = shards->aside + rank, .begins = begins};
    shards->part[0] = (struct model_part){.tokens = run->batch.token_count,
                                          .labels = run->batch.label_count,
                                          .from = shards->begun[rank]};
    shards->handed.count = 1;
}

const struct model_parts *shards_parts(struct run *run) {
    struct shards *const shards = run->shards;
    const struct batch *const batch = &run->batch;
    struct model_part at = {0};
    if (shards == NULL) return NULL;
    if (run->micro == run->micro_first + 1) {
        tree_open(&shards->tree, (uint32_t)run->config.numerics.shards,
                  (uint32_t)run->config.parallel.ranks);
        shards->open = UINT32_MAX;
        for (uint32_t rank = 0; rank < run->config.parallel.ranks; rank++)
            shards->begun[rank] = UINT32_MAX;
    }
    shards->handed.count = 0;
    if (!is_joined(run, run->micro - 1)) {
        set_aside(run, run->micro - 1);
        return &shards->handed;
    }
    for (uint32_t s = 0; s < batch->sample_count; s++) {
        const uint32_t shard =
            tree_shard_of(batch->first_sample + s, run->plan.samples, shards->tree.shards);
        if (s == 0 || shard != shards->open) add_part(run, shard, at);
        struct model_part *const part = &shards->part[shards->handed.count - 1];
        for (uint32_t side = 0; side < batch->sides; side++) {
            const uint32_t sequence = batch->canonical_sequence[s * batch->sides + side];
            part->tokens += batch->sequences[sequence].length;
            part->labels += batch->label_length[sequence];
        }
        at.first_token = part->first_token + part->tokens;
        at.first_label = part->first_label + part->labels;
    }
    return &shards->handed;
}

static void join_all(struct run *run, const struct tree_join *joins, size_t count) {
    for (size_t i = 0; i < count; i++)
        RUN_EACH_SPAN(run, span)
    for (uint32_t use = 0; use < run->table.rows[span.row].uses; use++)
        join(run, &joins[i], (struct stretch){span.row, use, 0, span.count});
}

/* The joins of phase `reduce` where a rank has a part of the gradient: each rank makes all joins of
 * its part and of nothing else. */
static void join_parts(struct run *run, const struct tree_join *joins, size_t count) {
    uint32_t first;
    const uint32_t end = zero_here(run, &first);
    for (uint32_t rank = first; rank < end; rank++)
        for (uint32_t i = 0; i < run->owner_count; i++) {
            const struct partition_range part = zero_part(run, rank, i);
            const uint32_t row = run->owner[i];
            const size_t own = (size_t)(part.end - part.first);
            for (size_t j = 0; j < count && own > 0; j++)
                for (uint32_t use = 0; use < run->table.rows[row].uses; use++)
                    join(run, &joins[j], (struct stretch){row, use, (size_t)part.first, own});
        }
}

void shards_end_micro(struct run *run) {
    struct tree_join joins[TREE_LEVELS_MAX];
    const uint32_t end = run->shared ? run->micro_end : run->plan.micros;
    if (run->shards == NULL || run->micro < end) return;
    join_all(run, joins, tree_leave(&run->shards->tree, joins));
}

/* Multiplies sums by the number of ranks, with one rounding in the accumulation dtype. */
static void multiply_by_ranks(const struct run *run, void *sums, size_t count) {
    const uint32_t ranks = (uint32_t)run->config.parallel.ranks;
    const struct scale_args args = {count, run->layout.accumulator_dtype, ranks, sums};
    struct exact_sum *const exact = (struct exact_sum *)sums;
    if (run->layout.sums == 0) run->model.ops->scale(&run->model.call, &args);
    for (size_t i = 0; i < count && run->layout.sums != 0; i++) {
        const struct exact_sum once = exact[i];
        for (uint32_t rank = 1; rank < ranks; rank++)
            exact_sum_join(&exact[i], &once);
    }
}

/* What a rank has behind the one collective: the joined sum, and its other micro-batches added to
 * it. The mean over P ranks is in every coefficient. Frameworks take it in the collective, which
 * these micro-batches never meet, so they count P times. */
static void add_aside(struct run *run, uint32_t rank) {
    const struct tree_join sum = {0, run->shards->aside + rank};
    RUN_EACH_SPAN(run, span)
    for (uint32_t use = 0; use < run->table.rows[span.row].uses; use++) {
        multiply_by_ranks(run, in_slot(run, sum.right, span.row, use), span.count);
        join_to(run, &sum, sum.right, (struct stretch){span.row, use, 0, span.count});
    }
}

static void add_asides(struct run *run) {
    const struct shards *const shards = run->shards;
    for (uint32_t rank = 0; rank < run->config.parallel.ranks; rank++) {
        const struct tree_join sum = {0, shards->aside + rank};
        if (shards->begun[rank] != UINT32_MAX) {
            add_aside(run, rank);
            continue;
        }
        RUN_EACH_SPAN(run, span)
        for (uint32_t use = 0; use < run->table.rows[span.row].uses; use++)
            memcpy(in_slot(run, sum.right, span.row, use), in_slot(run, 0, span.row, use),
                   span.count * run->layout.accumulator);
    }
}

/* Where ranks own parts, the gradient that is stepped has of each part what its owner has. */
static void take_parts(struct run *run) {
    for (uint32_t rank = 0; rank < run->config.parallel.ranks; rank++)
        for (uint32_t i = 0; i < run->owner_count; i++) {
            const struct partition_range part = zero_part(run, rank, i);
            const uint32_t row = run->owner[i];
            for (uint32_t use = 0; use < run->table.rows[row].uses; use++) {
                const struct stretch own = {row, use, (size_t)part.first,
                                            (size_t)(part.end - part.first)};
                memcpy(at_stretch(run, 0, &own), at_stretch(run, run->shards->aside + rank, &own),
                       own.count * run->layout.accumulator);
            }
        }
}

void shards_reduce(struct run *run) {
    struct tree_join joins[TREE_NODES_MAX];
    if (run->shards == NULL || run->config.parallel.ranks <= 1) return;
    const size_t count = tree_reduce(&run->shards->tree, joins);
    (zero_is(run, ZERO_GRADIENTS) ? join_parts : join_all)(run, joins, count);
    if (count == 0 || !config_parts_ranks(&run->config)) return;
    add_asides(run);
    if (run->zero != NULL) take_parts(run);
}

void shards_take_rank(struct run *run, uint32_t rank) {
    RUN_EACH_SPAN(run, span)
    for (uint32_t use = 0; use < run->table.rows[span.row].uses; use++)
        memcpy(in_slot(run, 0, span.row, use),
               in_slot(run, run->shards->aside + rank, span.row, use),
               span.count * run->layout.accumulator);
}

/* What lies in slots: the accumulators of the state lie one behind the other (trainer/state.c), so
 * a slot is one piece. */
static struct shards_piece piece_at(const struct run *run, uint32_t node) {
    const struct shards *const shards = run->shards;
    const uint32_t slot = shards->tree.slot[node];
    return (struct shards_piece){.node = shards->tree.node[node],
                                 .size = shards->bytes,
                                 .bytes = slot == 0
                                              ? run_at(run, shards->first)
                                              : shards->slot + (slot - 1) * shards->slot_bytes};
}

uint32_t shards_pieces(const struct run *run, uint32_t first,
                       struct shards_piece out[TREE_NODES_MAX]) {
    const uint32_t count = run->shards->tree.count;
    for (uint32_t i = first; i < count; i++)
        out[i - first] = piece_at(run, i);
    return count - first;
}

uint32_t shards_expect(struct run *run, uint32_t rank, struct shards_piece out[TREE_NODES_MAX]) {
    struct tree *const tree = &run->shards->tree;
    struct tree_join made_there[TREE_LEVELS_MAX];
    const uint64_t samples = run->plan.samples;
    const uint32_t first = tree->count;
    const uint32_t end = tree_first_shard(rank + 1, tree->shards, tree->ranks);
    for (uint32_t s = tree_first_shard(rank, tree->shards, tree->ranks); s < end; s++)
        if (tree_first_sample(s, samples, tree->shards) <
            tree_first_sample(s + 1, samples, tree->shards))
            (void)tree_enter(tree, s, made_there);
    (void)tree_leave(tree, made_there);
    return shards_pieces(run, first, out);
}

uint32_t shards_expect_all(struct run *run, struct shards_piece out[TREE_NODES_MAX]) {
    const uint32_t ranks = (uint32_t)run->config.parallel.ranks;
    tree_open(&run->shards->tree, (uint32_t)run->config.numerics.shards, ranks);
    for (uint32_t rank = 0; rank < ranks; rank++)
        (void)shards_expect(run, rank, out);
    return shards_pieces(run, 0, out);
}

struct shards_piece shards_sum(const struct run *run) {
    size_t first;
    const size_t end = find_accumulators(run, &first);
    return (struct shards_piece){.bytes = run_at(run, first), .size = end - first};
}

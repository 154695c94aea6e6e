/* SPDX-License-Identifier: Apache-2.0
 * Deals an update's work to the ranks that own parts, and does it rank by rank. */
#include "trainer/zero.h"

#include <math.h>

#include "kernels/op.h"
#include "trainer/plugins/plugin.h"
#include "trainer/run_private.h"

struct zero {
    enum parallel_zero stage;
    uint32_t ranks;
    struct partition_range *part; /* (ranks, owners) */
    struct optim_tensor *tensors; /* (owners) those that a rank steps */
};

enum status zero_check(const struct config *config, struct fault *fault) {
    const struct optim_class *class_;
    if (config->parallel.zero == ZERO_NONE || config->parallel.ranks <= 1) return STATUS_OK;
    TRY(plugin_optimizer(&config->optimizer.which, &class_));
    if ((class_->flags & OPTIM_ELEMENTWISE) != 0) return STATUS_OK;
    return fault_set(fault, STATUS_INPUT, "parallel.zero",
                     "expected 0 with optimizer %s, which looks at whole tensors: no rank would "
                     "have one",
                     class_->name);
}

/* Of stages 1 and 2: the vector is that of a parameter group, the tensors of which lie in it in
 * table order. */
static void deal_flat(const struct run *run, struct zero *zero) {
    for (uint32_t group = 0; group < run->table.groups; group++) {
        uint64_t count = 0, at = 0;
        for (uint32_t i = 0; i < run->owner_count; i++) {
            const struct param_row *const row = &run->table.rows[run->owner[i]];
            if (row->group == group) count += row->count;
        }
        for (uint32_t i = 0; i < run->owner_count; i++) {
            const struct param_row *const row = &run->table.rows[run->owner[i]];
            if (row->group != group) continue;
            for (uint32_t rank = 0; rank < zero->ranks; rank++)
                zero->part[rank * run->owner_count + i] =
                    partition_flat(count, zero->ranks, rank, at, row->count);
            at += row->count;
        }
    }
}

static void deal_rows(const struct run *run, struct zero *zero) {
    for (uint32_t i = 0; i < run->owner_count; i++) {
        const struct param_row *const row = &run->table.rows[run->owner[i]];
        const uint64_t rows = (uint64_t)row->shape[0];
        for (uint32_t rank = 0; rank < zero->ranks; rank++)
            zero->part[rank * run->owner_count + i] =
                partition_rows(rows, row->count / rows, zero->ranks, rank);
    }
}

enum status zero_open(struct run *run) {
    const struct config *const config = &run->config;
    struct zero *zero;
    if (config->parallel.zero == ZERO_NONE || config->parallel.ranks <= 1) return STATUS_OK;
    TRY(arena_take(&run->arena, 1, sizeof *zero, "parts of ranks", &zero));
    zero->stage = (enum parallel_zero)config->parallel.zero;
    zero->ranks = (uint32_t)config->parallel.ranks;
    TRY(arena_take(&run->arena, (size_t)zero->ranks * run->owner_count, sizeof *zero->part,
                   "parts of ranks", &zero->part));
    TRY(arena_take(&run->arena, run->owner_count, sizeof *zero->tensors, "parts of ranks",
                   &zero->tensors));
    (zero->stage == ZERO_WEIGHTS ? deal_rows : deal_flat)(run, zero);
    run->zero = zero;
    return STATUS_OK;
}

struct partition_range zero_part(const struct run *run, uint32_t rank, uint32_t index) {
    return run->zero->part[rank * run->owner_count + index];
}

int zero_is(const struct run *run, enum parallel_zero stage) {
    return run->zero != NULL && run->zero->stage >= stage;
}

/* ---- the step ---- */

static void *move(void *numbers, enum dtype dtype, uint64_t first) {
    return numbers == NULL ? NULL : (unsigned char *)numbers + first * dtype_carrier(dtype);
}

/* The part of a tensor as a tensor of its own: its elements stand alone. */
static struct optim_tensor part_of(const struct optim_tensor *whole, struct partition_range part) {
    struct optim_tensor out = *whole;
    out.rank = 1;
    out.shape[0] = out.count = (size_t)(part.end - part.first);
    out.shape[1] = 1;
    out.param = move(whole->param, whole->param_dtype, part.first);
    out.master = move(whole->master, whole->master_dtype, part.first);
    out.gradient =
        (const unsigned char *)whole->gradient + part.first * dtype_carrier(whole->gradient_dtype);
    for (int slot = 0; slot < OPTIM_SLOTS_MAX; slot++)
        out.slots[slot] = move(whole->slots[slot], whole->slot_dtype, part.first);
    return out;
}

/* Every rank counts its steps, and all counts are one. */
enum status zero_step(struct run *run, const struct optim_call *call) {
    struct zero *const zero = run->zero;
    const uint64_t before = *call->t;
    for (uint32_t rank = 0; rank < zero->ranks; rank++) {
        struct optim_call own = *call;
        uint64_t t = before;
        own.size = sizeof own;
        own.t = &t;
        own.tensors = zero->tensors;
        own.tensor_count = 0;
        for (uint32_t i = 0; i < run->owner_count; i++) {
            const struct partition_range part = zero_part(run, rank, i);
            if (part.end > part.first)
                zero->tensors[own.tensor_count++] = part_of(&call->tensors[i], part);
        }
        TRY(plugin_step(&run->config.optimizer.which, run->optimizer, &own));
        if (rank > 0 && t != *call->t)
            FAIL(STATUS_INTERNAL,
                 "optimizer %s: rank %u counts %llu steps and rank 0 %llu, though all see one "
                 "update",
                 run->optimizer->name, (unsigned)rank, (unsigned long long)t,
                 (unsigned long long)*call->t);
        *call->t = t;
    }
    return STATUS_OK;
}

/* ---- the norm ---- */

/* The blocks of one tensor whose first elements a rank owns. */
static void sum_own(const struct run *run, const struct clip_call *call, uint32_t rank,
                    uint32_t index, double *blocks) {
    const struct partition_range part = zero_part(run, rank, index);
    for (size_t b = (size_t)((part.first + SQUARES_BLOCK - 1) / SQUARES_BLOCK);
         b * SQUARES_BLOCK < part.end; b++)
        blocks[b] = clip_block(call, index, b);
}

/* The same of all gradients as one vector, whose blocks do not begin where tensors do. */
static void sum_own_flat(const struct run *run, const struct clip_call *call, uint32_t rank,
                         double *blocks) {
    uint64_t at = 0;
    for (uint32_t i = 0; i < run->owner_count; at += call->tensors[i++].count) {
        const struct partition_range part = zero_part(run, rank, i);
        for (size_t b = (size_t)((at + part.first + SQUARES_BLOCK - 1) / SQUARES_BLOCK);
             b * SQUARES_BLOCK < at + part.end; b++)
            blocks[b] = clip_block(call, 0, b);
    }
}

/* A block that no rank sums makes a norm that nobody overlooks. */
static void spoil(const struct run *run, double *blocks) {
    size_t count = squares_blocks(run->table.elements);
    for (uint32_t i = 0; i < run->owner_count; i++)
        count += squares_blocks(run->table.rows[run->owner[i]].count);
    for (size_t b = 0; b < count; b++)
        blocks[b] = (double)NAN;
}

void zero_squares(struct run *run, struct clip_call *call) {
    double *blocks = run->clip_room.blocks;
    if (call->call->order_free) return;
    spoil(run, blocks);
    if (call->rule.norm == CLIP_FLAT) {
        for (uint32_t rank = 0; rank < run->zero->ranks; rank++)
            sum_own_flat(run, call, rank, blocks);
        call->flat = blocks;
        return;
    }
    for (uint32_t i = 0; i < run->owner_count; i++) {
        for (uint32_t rank = 0; rank < run->zero->ranks; rank++)
            sum_own(run, call, rank, i, blocks);
        run->clips[i].blocks = blocks;
        blocks += squares_blocks(run->clips[i].count);
    }
}

/* ---- the weights ---- */

void zero_gather(struct run *run) {
    for (uint32_t rank = 0; rank < run->zero->ranks; rank++)
        for (uint32_t i = 0; i < run->owner_count; i++) {
            const struct partition_range part = zero_part(run, rank, i);
            const uint32_t row = run->owner[i];
            const enum dtype dtype = run->table.rows[row].dtype;
            const struct convert_args args = {
                (size_t)(part.end - part.first), dtype, run->model.compute,
                move(run_at(run, run->layout.tensor[row].param), dtype, part.first),
                move(run->weight_copies[row], run->model.compute, part.first)};
            if (args.count > 0) run->model.ops->convert(&run->model.call, &args);
        }
}

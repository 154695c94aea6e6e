/* SPDX-License-Identifier: Apache-2.0
 * Deals an update's work to the ranks that own parts, and does it rank by rank. */
#include "trainer/zero.h"

#include <math.h>

#include "kernels/op.h"
#include "optim/slot.h"
#include "trainer/plugins/plugin.h"
#include "trainer/real_ranks.h"
#include "trainer/run_private.h"
#include "trainer/shards.h"

enum { RANKS_MOST = 256 }; /* of parallel.ranks */

struct zero {
    enum parallel_zero stage;
    uint32_t ranks;
    struct partition_range *part; /* (ranks, owners) */
    struct optim_tensor *tensors; /* (owners) those that a rank steps */
    unsigned char *packed;        /* what ranks that are processes send; NULL: they are not */
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
    if (run->options.ranks != NULL) {
        /* of all kinds that travel, each once: the state's own, or f32 copies for masters */
        const size_t room =
            run->layout.bytes - run->layout.tensors + run->table.elements * sizeof(double);
        TRY(arena_take(&run->arena, room, 1, "parts of ranks", &zero->packed));
    }
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

uint32_t zero_here(const struct run *run, uint32_t *out_first) {
    *out_first = run->shared ? real_ranks_rank(run) : 0;
    return run->shared ? *out_first + 1 : run->zero->ranks;
}

/* ---- what processes send ---- */

unsigned char *zero_packed(const struct run *run) {
    return run->zero->packed;
}

static size_t move_bytes(void *own, unsigned char *packed, size_t size, enum zero_way way) {
    if (size == 0 || own == NULL) return 0;
    if (way == ZERO_PACK) memcpy(packed, own, size);
    if (way == ZERO_UNPACK) memcpy(own, packed, size);
    return size;
}

/* Moves what a rank has of `what`, as zero_move_sums does. */
typedef size_t move_part(const struct run *run, uint32_t rank, void *what, unsigned char *packed,
                         enum zero_way way);

/* Each process sends what its rank has, and gets what the others have. */
static enum status share(struct run *run, move_part *move_one, void *what) {
    struct zero *const zero = run->zero;
    const uint32_t own = real_ranks_rank(run);
    size_t sizes[RANKS_MOST], first = 0;
    for (uint32_t rank = 0; rank < zero->ranks; rank++) {
        sizes[rank] = move_one(run, rank, what, NULL, ZERO_COUNT);
        if (rank < own) first += sizes[rank];
    }
    (void)move_one(run, own, what, zero->packed + first, ZERO_PACK);
    TRY(real_ranks_share(run, zero->packed, sizes));
    const unsigned char *at = zero->packed;
    for (uint32_t rank = 0; rank < zero->ranks; at += sizes[rank++])
        if (rank != own) (void)move_one(run, rank, what, (unsigned char *)at, ZERO_UNPACK);
    return STATUS_OK;
}

size_t zero_move_sums(const struct run *run, uint32_t rank, void *sums, unsigned char *packed,
                      enum zero_way way) {
    const size_t width = run->layout.accumulator;
    const unsigned char *const state = (const unsigned char *)shards_sum(run).bytes;
    size_t moved = 0;
    for (uint32_t i = 0; i < run->owner_count; i++) {
        const struct partition_range part = zero_part(run, rank, i);
        const uint32_t row = run->owner[i];
        for (uint32_t use = 0; use < run->table.rows[row].uses; use++) {
            const unsigned char *const in_state =
                (const unsigned char *)run->accumulators[row][use];
            unsigned char *const own =
                (unsigned char *)sums + (in_state - state) + part.first * width;
            moved += move_bytes(own, packed == NULL ? NULL : packed + moved,
                                (size_t)(part.end - part.first) * width, way);
        }
    }
    return moved;
}

enum status zero_share_sums(struct run *run) {
    return share(run, zero_move_sums, shards_sum(run).bytes);
}

/* ---- the step ---- */

static void *move(void *numbers, enum dtype dtype, uint64_t first) {
    return form_place(numbers, form_carried(dtype), first);
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
        out.slots[slot] = form_place(whole->slots[slot], optim_slot_form(whole), part.first);
    return out;
}

/* What a step has written: `what` is the call. */
static size_t move_stepped(const struct run *run, uint32_t rank, void *what, unsigned char *packed,
                           enum zero_way way) {
    const struct optim_call *const call = (const struct optim_call *)what;
    size_t moved = 0;
    for (uint32_t i = 0; i < run->owner_count; i++) {
        const struct partition_range part = zero_part(run, rank, i);
        const struct optim_tensor own = part_of(&call->tensors[i], part);
        const size_t slot = optim_slot_form(&own).width;
        const struct {
            void *numbers;
            size_t width;
        } written[2 + OPTIM_SLOTS_MAX] = {
            {own.param, dtype_carrier(own.param_dtype)},
            {own.master, dtype_carrier(own.master_dtype)},
            {own.slots[0], slot},
            {own.slots[1], slot},
            {own.slots[2], slot},
            {own.slots[3], slot},
        };
        for (size_t k = 0; k < COUNT_OF(written); k++)
            moved += move_bytes(written[k].numbers, packed == NULL ? NULL : packed + moved,
                                own.count * written[k].width, way);
    }
    return moved;
}

/* Every rank counts its steps, and all counts are one. */
enum status zero_step(struct run *run, struct optim_call *call) {
    struct zero *const zero = run->zero;
    const uint64_t before = *call->t;
    uint32_t first;
    const uint32_t end = zero_here(run, &first);
    for (uint32_t rank = first; rank < end; rank++) {
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
        if (rank > first && t != *call->t)
            FAIL(STATUS_INTERNAL,
                 "optimizer %s: rank %u counts %llu steps and rank %u %llu, though all see one "
                 "update",
                 run->optimizer->name, (unsigned)rank, (unsigned long long)t, (unsigned)first,
                 (unsigned long long)*call->t);
        *call->t = t;
    }
    return run->shared ? share(run, move_stepped, call) : STATUS_OK;
}

/* ---- the norm ---- */

/* The blocks that a rank sums: those whose first elements it owns, of one tensor or, where all
 * gradients are one vector, of the piece of it that a tensor is. Blocks from *out_first on; returns
 * the one behind the last. */
static size_t own_blocks(const struct run *run, uint32_t rank, uint32_t index, uint64_t at,
                         size_t *out_first) {
    const struct partition_range part = zero_part(run, rank, index);
    *out_first = squares_blocks((size_t)(at + part.first));
    return squares_blocks((size_t)(at + part.end));
}

/* Sums of squares that are being made: of tensors one by one, or of all as one vector. */
struct squares {
    const struct clip_call *call;
    double *blocks;
};

static size_t move_blocks(const struct run *run, uint32_t rank, void *what, unsigned char *packed,
                          enum zero_way way) {
    const struct squares *const of = (const struct squares *)what;
    const int flat = of->call->rule.norm == CLIP_FLAT;
    double *blocks = of->blocks;
    size_t moved = 0, first;
    uint64_t at = 0;
    for (uint32_t i = 0; i < run->owner_count; i++) {
        const size_t count = of->call->tensors[i].count;
        const size_t end = own_blocks(run, rank, i, flat ? at : 0, &first);
        if (end > first)
            moved += move_bytes(blocks + first, packed == NULL ? NULL : packed + moved,
                                (end - first) * sizeof *blocks, way);
        if (flat)
            at += count;
        else
            blocks += squares_blocks(count);
    }
    return moved;
}

static void sum_blocks(const struct run *run, uint32_t rank, const struct squares *of) {
    const int flat = of->call->rule.norm == CLIP_FLAT;
    double *blocks = of->blocks;
    size_t first;
    uint64_t at = 0;
    for (uint32_t i = 0; i < run->owner_count; i++) {
        const size_t count = of->call->tensors[i].count;
        const size_t end = own_blocks(run, rank, i, flat ? at : 0, &first);
        for (size_t b = first; b < end; b++)
            blocks[b] = clip_block(of->call, flat ? 0 : i, b);
        if (flat)
            at += count;
        else
            blocks += squares_blocks(count);
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

enum status zero_squares(struct run *run, struct clip_call *call) {
    struct squares of = {call, run->clip_room.blocks};
    const double *blocks = of.blocks;
    uint32_t first;
    const uint32_t end = zero_here(run, &first);
    if (call->call->order_free) return STATUS_OK;
    spoil(run, of.blocks);
    for (uint32_t rank = first; rank < end; rank++)
        sum_blocks(run, rank, &of);
    if (run->shared) TRY(share(run, move_blocks, &of));
    if (call->rule.norm == CLIP_FLAT) {
        call->flat = blocks;
        return STATUS_OK;
    }
    for (uint32_t i = 0; i < run->owner_count; i++) {
        run->clips[i].blocks = blocks;
        blocks += squares_blocks(run->clips[i].count);
    }
    return STATUS_OK;
}

/* ---- the weights ---- */

void zero_gather(struct run *run) {
    for (uint32_t rank = 0; rank < run->zero->ranks; rank++)
        for (uint32_t i = 0; i < run->owner_count; i++) {
            const struct partition_range part = zero_part(run, rank, i);
            const uint32_t row = run->owner[i];
            const enum dtype dtype = run->table.rows[row].dtype;
            const struct convert_args args = {
                (size_t)(part.end - part.first),
                dtype,
                run->model.compute,
                move(run_at(run, run->layout.tensor[row].param), dtype, part.first),
                form_place(run->weight_copies[row], run->model.form, part.first),
                form_is_narrow(run->model.form)};
            if (args.count > 0) run->model.ops->convert(&run->model.call, &args);
        }
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/closing.h"

#include "kernels/close_pieces.h"
#include "trainer/loop.h"

struct closing {
    struct close_pieces_tensor *tensors; /* (owners) */
    struct leaf_hashes_args *hashes;     /* (owners); NULL: no digest is recorded */
    struct squares_args *squares;        /* (owners); NULL: nobody needs the sums */
};

/* The one place that decides. A piece is closed by this program's own op, number by number, which
 * an exact sum is not; other ranks' gradients, and a bit that flips among the calls of an op, come
 * with sums or calls of their own. */
static int can_measure(const struct run *run) {
    return !run->options.apart && run->backend == NULL && run->layout.sums == 0 &&
           run->rank_gradients == NULL && run->replicas == NULL && run->zero == NULL &&
           run->options.ranks == NULL && run->corruption == NULL;
}

static int is_noted(const struct run *run) {
    return run->shape.phases + run->shape.tensors > 0;
}

/* Whether somebody takes norms of the gradient: the record, or a clip. */
static int needs_squares(const struct run *run) {
    return run->shape.tensors > 0 || loop_count(&run->config, LOOP_UPDATE, PHASE_CLIP) > 0;
}

static void *gradient_of(const struct run *run, uint32_t index) {
    return run_at(run, run->layout.tensor[run->owner[index]].gradient);
}

static size_t count_of(const struct run *run, uint32_t index) {
    return run->table.rows[run->owner[index]].count;
}

static enum status open_hashes(struct run *run) {
    const struct form form = form_carried(run->layout.gradient_dtype);
    struct leaf_hashes_args **const out = &run->closing->hashes;
    struct leafhash_leaf *leaves;
    size_t count = 0;
    for (uint32_t i = 0; i < run->owner_count; i++)
        count += leaf_hashes_count(form.dtype, count_of(run, i));
    TRY(arena_take(&run->arena, run->owner_count, sizeof **out, "digests", out));
    TRY(arena_take(&run->arena, count, sizeof *leaves, "leaves of digests", &leaves));
    for (uint32_t i = 0; i < run->owner_count; i++) {
        (*out)[i] = (struct leaf_hashes_args){form, count_of(run, i), gradient_of(run, i), leaves};
        leaves += leaf_hashes_count(form.dtype, count_of(run, i));
    }
    return STATUS_OK;
}

static enum status open_squares(struct run *run) {
    struct squares_args **const out = &run->closing->squares;
    double *blocks;
    size_t count = 0;
    for (uint32_t i = 0; i < run->owner_count; i++)
        count += squares_blocks(count_of(run, i));
    TRY(arena_take(&run->arena, run->owner_count, sizeof **out, "squares", out));
    TRY(arena_take(&run->arena, count, sizeof *blocks, "squares", &blocks));
    for (uint32_t i = 0; i < run->owner_count; i++) {
        (*out)[i] = (struct squares_args){.storage = run->layout.gradient_dtype,
                                          .wide = 1,
                                          .count = count_of(run, i),
                                          .values = gradient_of(run, i),
                                          .blocks = blocks};
        blocks += squares_blocks(count_of(run, i));
    }
    return STATUS_OK;
}

static enum status open_tensors(struct run *run) {
    struct closing *const closing = run->closing;
    TRY(arena_take(&run->arena, run->owner_count, sizeof *closing->tensors, "measures",
                   &closing->tensors));
    for (uint32_t i = 0; i < run->owner_count; i++) {
        void *const *const sums = run->accumulators[run->owner[i]];
        closing->tensors[i] = (struct close_pieces_tensor){
            .close = {.count = count_of(run, i),
                      .uses = run->table.rows[run->owner[i]].uses,
                      .acc = {sums[0], sums[1]},
                      .storage = run->layout.gradient_dtype,
                      .gradient = gradient_of(run, i)},
            .accumulator = run->layout.accumulator,
            .hashes = closing->hashes == NULL ? NULL : &closing->hashes[i],
            .squares = closing->squares == NULL ? NULL : &closing->squares[i]};
    }
    return STATUS_OK;
}

enum status closing_open(struct run *run) {
    const int noted = is_noted(run), squared = needs_squares(run);
    if (!can_measure(run) || (!noted && !squared)) return STATUS_OK;
    TRY(arena_take(&run->arena, 1, sizeof *run->closing, "measures", &run->closing));
    if (noted) TRY(open_hashes(run));
    if (squared) TRY(open_squares(run));
    return open_tensors(run);
}

int closing_can(const struct run *run) {
    return run->closing != NULL && run->model.watch == NULL && !run->replaying;
}

void closing_round(struct run *run) {
    struct state_head *const head = run_head(run);
    close_pieces(run->model.ops, &run->model.call, run->closing->tensors, run->owner_count);
    head->pending = 0;
    head->stored = 1;
}

const struct leafhash_leaf *closing_leaves(const struct run *run, uint32_t index) {
    return run->closing->hashes == NULL ? NULL : run->closing->hashes[index].leaves;
}

const double *closing_squares(const struct run *run, uint32_t index) {
    return run->closing->squares == NULL ? NULL : run->closing->squares[index].blocks;
}

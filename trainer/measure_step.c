/* SPDX-License-Identifier: Apache-2.0
 * Looks at the pieces of the optimizer's step (optim/seen.h). A piece is as long as a leaf of the
 * narrowest dtype that is hashed, so every leaf and every block of law 2 lies in one piece. */
#include "trainer/measure_step.h"

#include <string.h>

#include "kernels/evidence.h"
#include "trainer/loop.h"
#include "trainer/readback.h"

struct measure_step {
    size_t piece; /* elements */
    int kept;     /* run->before holds the parameters from before the update */
    int measured; /* run->moves and `leaves` are of the state as it is */
    int seen;     /* of the step that runs */
    enum status status;
    struct readback_step reading;
    struct leaf_hashes_args (*pieces)[STATE_PIECES]; /* (rows) */
};

/* Whether another phase of the loop than optimize writes what the optimizer writes. */
static int others_write(const struct config *config) {
    for (int list = 0; list < LOOP_LISTS; list++) {
        const struct key_list *const phases = loop_list_of(config, (enum loop_list)list);
        for (uint32_t i = 0; i < phases->count; i++)
            if (phases->item[i] != PHASE_OPTIMIZE &&
                (loop_phases()[phases->item[i]].writes & (LOOP_PARAMS | LOOP_SLOTS)) != 0)
                return 1;
    }
    return 0;
}

/* List `update` runs once in an update, and the others as often as the data says. */
static int steps_once(const struct config *config) {
    return loop_count(config, LOOP_UPDATE, PHASE_OPTIMIZE) == 1 &&
           loop_count(config, LOOP_MICRO, PHASE_OPTIMIZE) +
                   loop_count(config, LOOP_EPOCH, PHASE_OPTIMIZE) +
                   loop_count(config, LOOP_EVAL, PHASE_OPTIMIZE) ==
               0;
}

/* Whether slots have as many numbers as their tensors, or none. */
static int slots_are_whole(const struct run *run) {
    for (uint32_t i = 0; i < run->owner_count; i++) {
        const uint32_t row = run->owner[i];
        for (uint32_t slot = 0; slot < run->optimizer->slot_count; slot++) {
            const size_t count = run->layout.tensor[row].slot_count[slot];
            if (count != 0 && count != run->table.rows[row].count) return 0;
        }
    }
    return 1;
}

/* The one place that decides whether a step can measure its update. It cannot where a backend has
 * the tensors; where the class steps whole tensors or is a module's, which never calls anybody;
 * where the weights are rounded once more behind the step, or change hands between ranks or
 * processes, or ranks step parts; where a bit flips; where micro-batches run again from a state
 * that is put back; and where a step's old parameters may not be the update's. */
static int can_measure(const struct run *run) {
    const struct config *const config = &run->config;
    const int is_elementwise = (run->optimizer->flags & OPTIM_ELEMENTWISE) != 0;
    const int is_module = strcmp(config->optimizer.which.module, CONFIG_NO_MODULE) != 0;
    return !run->options.apart && !run->options.bare && run->backend == NULL && is_elementwise &&
           !is_module && slots_are_whole(run) && run->wide == NULL && run->replicas == NULL &&
           run->zero == NULL && run->options.ranks == NULL && run->corruption == NULL &&
           run->replay == NULL && steps_once(config) && !others_write(config);
}

static size_t larger(size_t a, size_t b) {
    return a > b ? a : b;
}

enum status measure_step_open(struct run *run) {
    struct leafhash_leaf *leaves;
    size_t count = 0;
    if (!can_measure(run)) return STATUS_OK;
    for (uint32_t i = 0; i < run->table.count; i++)
        count += state_leaves(&run->table.rows[i], &run->layout, &run->layout.tensor[i]);
    TRY(arena_take(&run->arena, 1, sizeof *run->measure_step, "measures", &run->measure_step));
    struct measure_step *const step = run->measure_step;
    TRY(arena_take(&run->arena, run->table.count, sizeof *step->pieces, "measures", &step->pieces));
    TRY(arena_take(&run->arena, count, sizeof *leaves, "leaves of digests", &leaves));
    step->piece = UPDATE_SIZES_BLOCK;
    for (uint32_t i = 0; i < run->table.count; i++) {
        state_pieces_of(&run->table.rows[i], &run->layout, &run->layout.tensor[i],
                        run->state.tensors, step->pieces[i]);
        for (uint32_t p = 0; p < STATE_PIECES; p++) {
            struct leaf_hashes_args *const piece = &step->pieces[i][p];
            piece->leaves = leaves;
            leaves += leaf_hashes_count(piece->form.dtype, piece->count);
            if (piece->count > 0)
                step->piece = larger(step->piece, LEAFHASH_BLOCK / own_width(piece->form.dtype));
        }
    }
    return STATUS_OK;
}

size_t measure_step_piece(const struct run *run) {
    return run->measure_step == NULL ? 0 : run->measure_step->piece;
}

int measure_step_begin(struct run *run) {
    struct measure_step *const step = run->measure_step;
    if (step == NULL) return 0;
    step->kept = step->measured = 0;
    return 1;
}

void measure_step_forget(struct run *run) {
    if (run->measure_step != NULL) run->measure_step->measured = 0;
}

static void begin(void *context, const struct optim_call *call) {
    struct run *const run = (struct run *)context;
    struct measure_step *const step = run->measure_step;
    step->status = STATUS_OK;
    if (run->options.readback) step->status = readback_see(run, call, &step->reading);
}

/* Keeps what the step overwrites of a piece. */
static void before_piece(void *context, uint32_t thread, uint32_t tensor, size_t first,
                         size_t count) {
    const struct run *const run = (const struct run *)context;
    const struct update_sizes_args *const sizes = &run->update_sizes_asked[tensor];
    const size_t carrier = dtype_carrier(sizes->dtype);
    unsigned char *const kept = run->before + run->packed[run->owner[tensor]] * carrier;
    memcpy(kept + first * carrier, (const unsigned char *)sizes->now + first * carrier,
           count * carrier);
    if (run->options.readback) readback_keep_piece(run, thread, tensor, first, count);
}

/* The address at which the next piece of these numbers begins; 0 where this one ends the tensor.
 * Another thread may step that piece, which does no harm. */
static uintptr_t next_piece(const struct measure_step *step, const void *values, struct form form,
                            size_t first, size_t total) {
    const size_t next = first + step->piece;
    return next < total ? (uintptr_t)form_at(values, form, next) : 0;
}

/* Measures a piece, and asks meanwhile for what the step of the next one reads. A hash asks for the
 * numbers that it hashes next; update sizes ask for the first parameters, and for the gradient
 * where nothing is read back; the read-back asks for the gradient. */
static void after_piece(void *context, uint32_t thread, uint32_t tensor, size_t first,
                        size_t count) {
    const struct run *const run = (const struct run *)context;
    const struct measure_step *const step = run->measure_step;
    const struct update_sizes_args *const sizes = &run->update_sizes_asked[tensor];
    const struct leaf_hashes_args *const pieces = step->pieces[run->owner[tensor]];
    const struct optim_tensor *const of = &run->tensors[tensor];
    const uintptr_t gradient =
        next_piece(step, of->gradient, form_carried(of->gradient_dtype), first, of->count);
    const int is_read = run->options.readback && step->status == STATUS_OK;
    struct ahead next = {
        {next_piece(step, sizes->start, form_carried(sizes->dtype), first, of->count),
         is_read ? 0 : gradient}};
    evidence_update_sizes_of(sizes, first, count, &next);
    for (uint32_t p = 0; p < STATE_PIECES; p++) {
        if (pieces[p].count == 0) continue;
        next = (struct ahead){
            {next_piece(step, pieces[p].values, pieces[p].form, first, of->count), 0}};
        evidence_leaf_hashes_of(&pieces[p], first, count, &next);
    }
    next = (struct ahead){{gradient, 0}};
    if (is_read) readback_piece(run, &step->reading, thread, tensor, first, count, &next);
}

enum status measure_step_see(struct run *run, struct optim_seen_call *call) {
    struct measure_step *const step = run->measure_step;
    struct update_sizes_block *blocks = run->moves;
    if (step == NULL) return STATUS_OK;
    step->kept = 1;
    if (call->call.found_inf) { /* the class may hold */
        measure_keep_params(run);
        return run->options.readback ? readback_keep(run) : STATUS_OK;
    }
    for (uint32_t i = 0; i < run->owner_count; i++) {
        run->update_sizes_asked[i] = measure_sizes_of(run, i, blocks);
        blocks += update_sizes_blocks(run->update_sizes_asked[i].count);
    }
    step->seen = 0;
    call->call.size = sizeof *call;
    call->piece = step->piece;
    call->begin = begin;
    call->before = before_piece;
    call->after = after_piece;
    call->context = run;
    call->seen = &step->seen;
    return STATUS_OK;
}

enum status measure_step_seen(struct run *run, const struct optim_seen_call *call) {
    if (call->seen == NULL) return STATUS_OK;
    if (!*call->seen)
        FAIL(STATUS_INTERNAL,
             "optimizer %s: expected a step of all elements that is seen, and it "
             "called nobody",
             run->optimizer->name);
    run->measure_step->measured = 1;
    return run->measure_step->status;
}

const struct readback_step *measure_step_read(const struct run *run,
                                              const struct optim_seen_call *call) {
    return call->seen == NULL ? NULL : &run->measure_step->reading;
}

int measure_step_is_valid(struct run *run) {
    struct measure_step *const step = run->measure_step;
    if (step == NULL) return 0;
    /* Where no step came, nobody has written a parameter, so those from before are those of now. */
    if (!step->kept) measure_keep_params(run);
    step->kept = 1;
    /* A watch is shown the state behind the step, and may write there (tests plant faults so). */
    return step->measured && run->model.watch == NULL;
}

enum status measure_step_digests(struct run *run) {
    return state_pieces_of_leaves(
        &run->table, &run->layout,
        (const struct leaf_hashes_args(*)[STATE_PIECES])run->measure_step->pieces, &run->digests,
        run->piece_digest);
}

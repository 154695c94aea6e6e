/* SPDX-License-Identifier: Apache-2.0
 * What the last op through a library left packed in scratch, so that the next one that multiplies
 * the same operand packs it no second time: x of q, k and v, of gate and up, and of their weights'
 * gradients.
 *
 * No caller promises anything for it. An operand is used again only where the same host thread has
 * started, copied, taken, given back and awaited nothing since the op (GPU_WORK), and where the op
 * itself did not write where it read. The host cannot have changed the numbers or their list
 * either, since who writes what ops read waits first (op_call.queued). Invariant: a kept operand
 * has the bytes that packing would make again. */
#ifndef TWINSTEP_KERNELS_CUDA_LIBRARY_KEPT_H
#define TWINSTEP_KERNELS_CUDA_LIBRARY_KEPT_H

#include "kernels/cuda/library_pack.h"

enum library_side { LIBRARY_RIGHT, LIBRARY_LEFT, LIBRARY_SIDES };

struct library_operand {
    struct library_pack pack; /* `to` is NULL: there is none */
    char *end;                /* where the next piece of scratch may begin */
};

/* What one host thread has kept. The orders of two threads' work are joined by waits alone, which
 * GPU_WORK counts. */
static GPU_THREAD_OWN struct library_kept {
    struct library_operand operand[LIBRARY_SIDES];
    const void *scratch;
    uint64_t work; /* GPU_WORK when the op that kept them had started its last piece of work */
    char *most;    /* how far into scratch ops have gone since something else was started */
} library_kept;

/* Forgets everything unless nothing was started since. */
static void library_kept_check(const struct op_call *call) {
    const struct library_kept nothing = {.scratch = call->scratch};
    if (library_kept.scratch != call->scratch || library_kept.work != GPU_WORK(0))
        library_kept = nothing;
}

/* Whether both packings read the same numbers and write the same bytes. A list that lies at the
 * same place is the same list. How many numbers a thread takes moves no byte. */
static int library_packs_alike(const struct library_pack *a, const struct library_pack *b) {
    return a->from == b->from && a->form.dtype == b->form.dtype && a->form.width == b->form.width &&
           a->lines == b->lines && a->width == b->width && a->stride == b->stride &&
           a->pitch == b->pitch && a->rows.index == b->rows.index &&
           a->rows.count == b->rows.count && a->first == b->first && a->places == b->places &&
           a->placed == b->placed && a->product == b->product && a->type == b->type;
}

/* What was kept of an operand that is to be packed so; NULL: nothing. */
static const struct library_operand *library_kept_of(const struct library_pack *pack) {
    for (int side = 0; side < LIBRARY_SIDES; side++) {
        const struct library_operand *const operand = &library_kept.operand[side];
        if (operand->pack.to != NULL && library_packs_alike(&operand->pack, pack)) return operand;
    }
    return NULL;
}

/* Whether bytes `first` to `end`, which an op wrote, may be of what was packed. No op writes where
 * it reads, so this looks for one that does, as far as the host can see: lists lie in the device's
 * memory, so of a list that may name any row it knows the number of rows alone. */
static int library_spoils(const struct library_pack *pack, const void *first, const void *end) {
    const size_t rows = pack->placed ? pack->first + pack->places : pack->lines;
    const void *const last =
        form_at(pack->from, pack->form, (rows - 1) * pack->stride + pack->width);
    return (uintptr_t)first < (uintptr_t)last && (uintptr_t)pack->from < (uintptr_t)end;
}

#endif

/* SPDX-License-Identifier: Apache-2.0
 * The pieces of a training state lie beside each other, so a module that writes one element past a
 * slot changes the next tensor, and nobody sees why. Here each piece that it is given lies alone,
 * between 64 bytes of a pattern; a gradient is compared with the one that the training keeps. It
 * costs two copies of what the step touches, which is little beside a step that is not vectorised.
 *
 * What is further off than a guard is wide is not found: a module is code with all rights. */
#include "trainer/plugins/plugin_guard.h"

#include <string.h>

#include "base/arena.h"
#include "base/dtype.h"
#include "optim/slot.h"

#define GUARD 64
#define PATTERN 0xA5

/* A copy of one piece of a tensor, in carriers. */
struct piece {
    unsigned char *copy; /* behind its first guard */
    void *original;      /* NULL: a gradient, which is read only */
    const void *source;
    struct form form;    /* of source and original */
    size_t count, bytes; /* bytes: of the copy */
    const char *tensor, *what;
};

struct guarded {
    struct arena arena;
    struct piece *pieces;
    size_t count;
};

static enum status add(struct guarded *g, const struct optim_tensor *tensor, const char *what,
                       const void *source, void *original, struct form form, void **out) {
    struct piece *piece = &g->pieces[g->count];
    unsigned char *memory;
    const size_t bytes = tensor->count * dtype_carrier(form.dtype);
    TRY(arena_take(&g->arena, bytes + 2 * GUARD, 1, "a copy for a module", &memory));
    memset(memory, PATTERN, GUARD);
    form_widen(source, form, tensor->count, memory + GUARD);
    memset(memory + GUARD + bytes, PATTERN, GUARD);
    *piece = (struct piece){memory + GUARD, original, source,       form,
                            tensor->count,  bytes,    tensor->name, what};
    g->count++;
    *out = piece->copy;
    return STATUS_OK;
}

static enum status copy_tensor(struct guarded *g, const struct optim_class *class_,
                               const struct optim_tensor *from, struct optim_tensor *to) {
    void *gradient;
    *to = *from;
    to->slot_width = 0;
    TRY(add(g, from, "its gradient", from->gradient, NULL, form_carried(from->gradient_dtype),
            &gradient));
    to->gradient = gradient;
    TRY(add(g, from, "its parameter", from->param, from->param, form_carried(from->param_dtype),
            &to->param));
    if (from->master != NULL)
        TRY(add(g, from, "its master", from->master, from->master, form_carried(from->master_dtype),
                &to->master));
    for (uint32_t i = 0; i < class_->slot_count; i++)
        if (from->slots[i] != NULL)
            TRY(add(g, from, class_->slot_names[i], from->slots[i], from->slots[i],
                    optim_slot_form(from), &to->slots[i]));
    return STATUS_OK;
}

static int is_whole(const unsigned char *guard) {
    for (int i = 0; i < GUARD; i++)
        if (guard[i] != PATTERN) return 0;
    return 1;
}

static enum status check(const struct guarded *g) {
    for (size_t i = 0; i < g->count; i++) {
        const struct piece *piece = &g->pieces[i];
        const int before = is_whole(piece->copy - GUARD);
        if (!before || !is_whole(piece->copy + piece->bytes))
            FAIL(STATUS_INPUT, "step() wrote %s %s of %s: nothing else may be written there",
                 before ? "behind the end of" : "before the begin of", piece->what, piece->tensor);
        if (piece->original == NULL && piece->bytes > 0 &&
            memcmp(piece->copy, piece->source, piece->bytes) != 0)
            FAIL(STATUS_INPUT, "step() wrote into the gradient of %s, which it may only read",
                 piece->tensor);
    }
    return STATUS_OK;
}

static void copy_back(const struct guarded *g) {
    for (size_t i = 0; i < g->count; i++)
        if (g->pieces[i].original != NULL)
            form_narrow(g->pieces[i].copy, g->pieces[i].form, g->pieces[i].count,
                        g->pieces[i].original);
}

static enum status step(struct guarded *g, const struct optim_class *class_,
                        const struct optim_call *call, enum status *out_step) {
    struct optim_call copied = *call;
    struct optim_tensor *tensors;
    const size_t most = 3 + OPTIM_SLOTS_MAX;
    TRY(arena_take(&g->arena, call->tensor_count, sizeof *tensors, "tensors", &tensors));
    TRY(arena_take(&g->arena, call->tensor_count * most, sizeof *g->pieces, "copies", &g->pieces));
    for (uint32_t i = 0; i < call->tensor_count; i++)
        TRY(copy_tensor(g, class_, &call->tensors[i], &tensors[i]));
    copied.tensors = tensors;
    (void)status_fail(STATUS_OK, "%s", ""); /* a text afterwards is the module's own */
    *out_step = class_->step(&copied);
    if (*out_step != STATUS_OK) return STATUS_OK;
    TRY(check(g));
    copy_back(g);
    return STATUS_OK;
}

enum status guarded_step(const struct optim_class *class_, const struct optim_call *call,
                         enum status *out_step) {
    struct guarded g = {.arena = ARENA_EMPTY};
    *out_step = STATUS_OK;
    const enum status status = step(&g, class_, call, out_step);
    arena_close(&g.arena);
    return status;
}

static enum status direction(struct arena *arena, const struct optim_class *class_,
                             const struct optim_call *call, uint32_t index, const void *before,
                             double *out, enum status *out_direction) {
    const struct optim_tensor *const from = &call->tensors[index];
    struct optim_call copied = *call;
    struct optim_tensor *tensors;
    TRY(arena_take(arena, call->tensor_count, sizeof *tensors, "tensors", &tensors));
    memcpy(tensors, call->tensors, call->tensor_count * sizeof *tensors);
    tensors[index].slot_width = 0;
    for (uint32_t i = 0; i < class_->slot_count; i++) {
        if (from->slots[i] == NULL) continue;
        TRY(arena_take(arena, from->count, dtype_carrier(from->slot_dtype), "a copy for a module",
                       &tensors[index].slots[i]));
        form_widen(from->slots[i], optim_slot_form(from), from->count, tensors[index].slots[i]);
    }
    copied.tensors = tensors;
    *out_direction = class_->direction(&copied, index, before, out);
    return STATUS_OK;
}

enum status guarded_direction(const struct optim_class *class_, const struct optim_call *call,
                              uint32_t index, const void *before, double *out,
                              enum status *out_direction) {
    struct arena arena = ARENA_EMPTY;
    *out_direction = STATUS_OK;
    const enum status status = direction(&arena, class_, call, index, before, out, out_direction);
    arena_close(&arena);
    return status;
}

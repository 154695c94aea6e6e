/* SPDX-License-Identifier: Apache-2.0
 * Copies gradients and weights of one run and sums those of the other against them. Sums are those
 * of kernels/distance.h. A tensor that only one run has stays unmeasured. */
#include "experiment/locate/locate_private.h"

#include <string.h>

#include "kernels/distance.h"

enum status signature_gather_open(const struct param_table *table, struct arena *arena,
                                  struct signature_gather *out) {
    memset(out, 0, sizeof *out);
    out->arena = arena;
    out->count = table->count;
    TRY(arena_take(arena, table->count, sizeof *out->copies, "gradients", &out->copies));
    TRY(arena_take(arena, table->count, sizeof *out->tensors, "gradients", &out->tensors));
    TRY(arena_take(arena, table->count, sizeof *out->old_equal, "gradients", &out->old_equal));
    for (uint32_t i = 0; i < table->count; i++) {
        const struct param_row *row = &table->rows[i];
        out->tensors[i] = (struct signature_tensor){.name = row->tied_to < 0 ? row->name : NULL,
                                                    .layer = row->layer,
                                                    .group = row->group,
                                                    .role = row->role};
    }
    return STATUS_OK;
}

/* Which of a parameter's copies a view is; COPY_KINDS: none that counts. */
static int kind_of(const struct signature_gather *gather, const struct watch_view *view) {
    const int backward = view->stage == WATCH_PHASE + (int)PHASE_BACKWARD;
    if (view->parameter == WATCH_NO_PARAMETER || view->parameter >= gather->count)
        return COPY_KINDS;
    if (backward && view->tensor.label == LABEL_GRADIENT) return COPY_GRADIENT;
    if (view->tensor.label == LABEL_GRADIENT_TAKEN) return COPY_TAKEN;
    if (view->tensor.label != (gather->has_master ? LABEL_MASTER : LABEL_PARAMETER))
        return COPY_KINDS;
    if (view->stage == WATCH_START) return COPY_OLD;
    return view->stage == WATCH_PHASE + (int)PHASE_OPTIMIZE ? COPY_NEW : COPY_KINDS;
}

static enum status keep(struct signature_gather *gather, const struct watch_view *view, int kind) {
    struct signature_copy *copy = &gather->copies[view->parameter][kind];
    const size_t carrier = dtype_carrier(view->dtype);
    if (copy->values == NULL) {
        TRY(arena_take(gather->arena, view->count, carrier, "gradients", &copy->values));
        copy->dtype = view->dtype;
        copy->count = view->count;
    }
    memcpy(copy->values, view->data, view->count * carrier);
    return STATUS_OK;
}

/* Sums values, or, with `from`, how far they are from it. */
static void sum_values(struct span a, struct span b, struct span from, size_t count,
                       struct signature_sums *out) {
    out->measured = 1;
    out->aa = distance_squares(a, from, count);
    out->bb = distance_squares(b, from, count);
    out->ab = distance_product(a, from, b, from, count);
    out->dd = distance_squares(a, b, count);
}

static void compare(struct signature_gather *gather, const struct watch_view *view, int kind) {
    const struct signature_copy *copies = gather->copies[view->parameter], *a = &copies[kind];
    const struct signature_copy *old = &copies[COPY_OLD];
    struct signature_tensor *out = &gather->tensors[view->parameter];
    if (a->values == NULL || a->count != view->count) return;
    const struct span x = {a->values, a->dtype}, y = {view->data, view->dtype};
    const struct span none = {NULL, a->dtype}, before = {old->values, old->dtype};
    if (kind == COPY_OLD) {
        gather->old_equal[view->parameter] = distance_squares(x, y, a->count) == 0.0;
    } else if (kind != COPY_NEW) {
        sum_values(x, y, none, a->count, kind == COPY_GRADIENT ? &out->gradient : &out->taken);
    } else if (old->values != NULL && gather->old_equal[view->parameter]) {
        /* changes of the weights are compared where both runs started from the same ones */
        sum_values(x, y, before, a->count, &out->update);
        out->weight = distance_squares(x, none, a->count);
    }
}

void signature_gather_see(void *context, const struct watch_view *view) {
    struct signature_gather *gather = (struct signature_gather *)context;
    const int kind = kind_of(gather, view);
    if (kind == COPY_KINDS || gather->status != STATUS_OK) return;
    if (gather->side == 0)
        gather->status = keep(gather, view, kind);
    else
        compare(gather, view, kind);
}

/* SPDX-License-Identifier: Apache-2.0
 * Copies gradients and weights of one run and sums those of the other against them. Sums are those
 * of trainer/distance.h. A tensor that only one run has stays unmeasured. */
#include "experiment/locate/locate_private.h"

#include <string.h>

#include "trainer/distance.h"

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

static void sum_values(const struct signature_copy *a, const struct watch_view *view,
                       struct signature_sums *out) {
    const struct span x = {a->values, a->dtype}, y = {view->data, view->dtype};
    const struct span none = {NULL, a->dtype};
    out->measured = 1;
    out->aa = distance_squares(x, none, a->count);
    out->bb = distance_squares(y, none, a->count);
    out->ab = distance_product(x, none, y, none, a->count);
    out->dd = distance_squares(x, y, a->count);
}

/* Sums the changes of the weights, where both runs started from the same ones. */
static void sum_update(const struct signature_gather *gather, const struct watch_view *view,
                       struct signature_tensor *out) {
    const struct signature_copy *copies = gather->copies[view->parameter];
    const struct signature_copy *old = &copies[COPY_OLD], *a = &copies[COPY_NEW];
    const struct span before = {old->values, old->dtype}, x = {a->values, a->dtype};
    const struct span y = {view->data, view->dtype}, none = {NULL, a->dtype};
    if (old->values == NULL || !gather->old_equal[view->parameter]) return;
    out->update.measured = 1;
    out->update.aa = distance_squares(x, before, a->count);
    out->update.bb = distance_squares(y, before, a->count);
    out->update.ab = distance_product(x, before, y, before, a->count);
    out->update.dd = distance_squares(x, y, a->count);
    out->weight = distance_squares(x, none, a->count);
}

static void compare(struct signature_gather *gather, const struct watch_view *view, int kind) {
    const struct signature_copy *a = &gather->copies[view->parameter][kind];
    struct signature_tensor *out = &gather->tensors[view->parameter];
    if (a->values == NULL || a->count != view->count) return;
    const struct span x = {a->values, a->dtype}, y = {view->data, view->dtype};
    if (kind == COPY_OLD)
        gather->old_equal[view->parameter] = distance_squares(x, y, a->count) == 0.0;
    else if (kind == COPY_NEW)
        sum_update(gather, view, out);
    else
        sum_values(a, view, kind == COPY_GRADIENT ? &out->gradient : &out->taken);
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

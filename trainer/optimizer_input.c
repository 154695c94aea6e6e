/* SPDX-License-Identifier: Apache-2.0
 * Reads one element after another; what scales them is settled once for the whole step. */
#include "trainer/optimizer_input.h"

#include <math.h>

#include "base/element.h"
#include "trainer/plugins/plugin.h"
#include "trainer/run_private.h"
#include "trainer/run_tensors.h"

enum dtype optimizer_working_dtype(const struct run *run) {
    return run->layout.has_master ? run->layout.master_dtype
                                  : (enum dtype)run->config.numerics.param;
}

const void *optimizer_weights_before(const struct run *run, uint32_t row) {
    return run->working + run->packed[row] * dtype_carrier(optimizer_working_dtype(run));
}

const void *optimizer_weights_now(const struct run *run, uint32_t row) {
    const struct state_tensor *tensor = &run->layout.tensor[row];
    return run_at(run, run->layout.has_master ? tensor->master : tensor->param);
}

static int every_moment_is_whole(const struct run *run) {
    for (uint32_t i = 0; i < run->owner_count; i++) {
        const uint32_t row = run->owner[i];
        if (run->layout.tensor[row].slot_count[0] != run->table.rows[row].count) return 0;
    }
    return 1;
}

enum status optimizer_input_rule_of(const struct run *run, struct optimizer_input_rule *out) {
    int known = 0;
    *out = (struct optimizer_input_rule){INPUT_UNKNOWN, 0.0, 1.0};
    if (run->moment == NULL && run->moment_pieces == NULL) return STATUS_OK;
    TRY(plugin_moment(&run->config.optimizer.which, run->optimizer,
                      state_head_of(run->state.host)->t, &out->keep, &out->take, &known));
    if (known && out->take != 0.0 && every_moment_is_whole(run))
        out->source = INPUT_FROM_MOMENT;
    else if (!known && (run->optimizer->flags & OPTIM_PLAIN) != 0)
        out->source = INPUT_FROM_WEIGHTS;
    return STATUS_OK;
}

static struct optimizer_places places_of(const struct run *run, uint32_t row) {
    const double *const group = run->record.groups[run->table.rows[row].group];
    const struct form slots = run->layout.slots;
    return (struct optimizer_places){
        .old = optimizer_weights_before(run, row),
        .now = optimizer_weights_now(run, row),
        .then = form_at(run->moment, slots, run->packed[row]),
        .slot = run_at(run, run->layout.tensor[row].slot[0]),
        .working = optimizer_working_dtype(run),
        .slots = slots,
        .decay = run->optimizer->flags & OPTIM_DECOUPLED ? 0.0 : group[GROUP_WD_APPLIED],
        .lr = group[GROUP_LR_APPLIED]};
}

enum status optimizer_input_places(const struct run *run, const struct optimizer_input_rule *rule,
                                   uint32_t row, struct optimizer_places *out) {
    const size_t count = run->table.rows[row].count;
    if (run->moment_pieces != NULL)
        FAIL(STATUS_INTERNAL, "read-back: the moments from before the step are not kept");
    *out = places_of(run, row);
    const size_t weights = count * dtype_carrier(out->working);
    TRY(run_read(run, WINDOW_OLD, out->old, weights, &out->old));
    TRY(run_read(run, WINDOW_NOW, out->now, weights, &out->now));
    if (rule->source != INPUT_FROM_MOMENT) return STATUS_OK;
    const size_t moments = count * out->slots.width;
    TRY(run_read(run, WINDOW_THEN, out->then, moments, &out->then));
    return run_read(run, WINDOW_SLOT, out->slot, moments, &out->slot);
}

/* The coarser of two dtypes. */
static enum dtype coarser(enum dtype a, enum dtype b) {
    return dtype_epsilon(a) > dtype_epsilon(b) ? a : b;
}

/* A gradient may be rounded to the dtype of the weights where these are coarser than the moment. Of
 * a number below the smallest normal one each rounding is as large as half the smallest number: the
 * moment has three of them at most, and the gradient one. */
static struct rule_taken scalars_at(const struct optimizer_input_rule *rule,
                                    const struct optimizer_places *at) {
    const enum dtype coarse = coarser(at->slots.dtype, at->working);
    return (struct rule_taken){.keep = rule->keep,
                               .take = rule->take,
                               .decay = at->decay,
                               .unit = INPUT_ROUNDINGS * dtype_epsilon(coarse) / 2,
                               .least = 2.0 * dtype_spacing(0x1p-126, at->slots.dtype) /
                                            fabs(rule->take) +
                                        dtype_spacing(0x1p-126, at->working)};
}

struct rule_taken optimizer_input_scalars(const struct run *run,
                                          const struct optimizer_input_rule *rule, uint32_t row) {
    const struct optimizer_places at = places_of(run, row);
    return scalars_at(rule, &at);
}

static void from_moment(const struct rule_taken *rule, const struct optimizer_places *at,
                        size_t first, size_t count, double *gradient, double *error) {
    for (size_t i = 0; i < count; i++) {
        const struct rule_taken_value value = rule_taken_value(
            rule, form_get(at->slot, at->slots, first + i),
            form_get(at->then, at->slots, first + i), element_get(at->old, at->working, first + i));
        gradient[i] = value.gradient;
        error[i] = value.error;
    }
}

/* The stored weight was rounded once: by half a unit at most, or by one whole unit where the
 * rounding is drawn. */
static void from_weights(const struct run *run, const struct optimizer_places *at, size_t first,
                         size_t count, double *gradient, double *error) {
    const double unit = INPUT_ROUNDINGS * dtype_epsilon(at->working) / 2;
    const double half = run->config.numerics.rounding == ROUNDING_STOCHASTIC ? 1.0 : 0.5;
    for (size_t i = 0; i < count; i++) {
        const double old = element_get(at->old, at->working, first + i);
        const double now = element_get(at->now, at->working, first + i);
        const double size = fabs(old) > fabs(now) ? fabs(old) : fabs(now);
        const double spacing = dtype_spacing(size > 0x1p-126 ? size : 0x1p-126, at->working);
        const double change = (old - now) / at->lr, inside = at->decay * old;
        gradient[i] = change - inside;
        error[i] = half * spacing / fabs(at->lr) + unit * (fabs(change) + fabs(inside));
    }
}

void optimizer_input_values(const struct run *run, const struct optimizer_input_rule *rule,
                            const struct optimizer_places *at, size_t first, size_t count,
                            double *gradient, double *error) {
    if (rule->source == INPUT_FROM_MOMENT) {
        const struct rule_taken scalars = scalars_at(rule, at);
        from_moment(&scalars, at, first, count, gradient, error);
    } else {
        from_weights(run, at, first, count, gradient, error);
    }
}

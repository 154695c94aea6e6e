/* SPDX-License-Identifier: Apache-2.0
 * Element loops of the optimizers on this processor (kernels/step.h says what they are handed): the
 * blocks in which elements travel between the tensors' memory and the working carrier.
 *
 * A tensor's values, gradient and slots may have different forms (base/form.h); a block converts
 * them, so each rule is written once. Blocks have a fixed length (the rest of the last one holds +0
 * and is never stored), so that compilers vectorise without a tail. No sum here: elements know
 * nothing of each other, hence no thread, block or instruction set moves a bit. */
#ifndef TWINSTEP_OPTIM_CPU_RANGE_H
#define TWINSTEP_OPTIM_CPU_RANGE_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/step.h"
#include "optim/optim.h"

/* The numbers of one step. With scale_parameter, lr is what the parameter's scale is multiplied by.
 */
struct optim_adafactor_scalars {
    double lr, weight_decay, eps1, eps2, clip_threshold, beta1, beta2;
    int scale_parameter;
    int averaged; /* there is a first moment, with beta1 */
};

#if defined(TWINSTEP_VARIANT)

#include "base/variant.h"

#define RANGE_BLOCK 256
#define RANGE_SLOTS 3

#define RANGE_LOOP(NAME, name, with) step_loop VARIANT(optim_##name##_range);
STEP_RULES(RANGE_LOOP, )
/* Steps a whole tensor by Adafactor; `range` is the whole of `tensor`. */
void VARIANT(optim_adafactor_tensor)(const struct optim_tensor *tensor,
                                     const struct step_range *range,
                                     const struct optim_adafactor_scalars *scalars);

struct range_block {
    carrier p[RANGE_BLOCK];
    carrier g[RANGE_BLOCK];
    carrier slot[RANGE_SLOTS][RANGE_BLOCK];
    carrier stored[RANGE_BLOCK];
};

/* Whole blocks have a constant length of their own, which compilers vectorise best. */
#define RANGE_EACH(count, statement)                                                               \
    do {                                                                                           \
        if ((count) == RANGE_BLOCK)                                                                \
            for (size_t i = 0; i < RANGE_BLOCK; i++)                                               \
                statement;                                                                         \
        else                                                                                       \
            for (size_t i = 0; i < (count); i++)                                                   \
                statement;                                                                         \
    } while (0)

static inline void range_load(carrier *restrict out, const void *values, struct form form,
                              size_t first, size_t count) {
    const void *const from = form_at(values, form, first);
    for (size_t i = count; i < RANGE_BLOCK; i++)
        out[i] = (carrier)0;
    if (form.dtype == DTYPE_F64)
        RANGE_EACH(count, out[i] = (carrier)((const double *)from)[i]);
    else if (!form_is_narrow(form))
        RANGE_EACH(count, out[i] = (carrier)((const float *)from)[i]);
    else if (form.dtype == DTYPE_BF16)
        RANGE_EACH(count, out[i] = (carrier)form_load_bf16(((const uint16_t *)from)[i]));
    else
        RANGE_EACH(count, out[i] = (carrier)form_load_f16(((const uint16_t *)from)[i]));
}

static inline void range_store(const carrier *restrict block, void *values, struct form form,
                               size_t first, size_t count) {
    void *const to = form_place(values, form, first);
    if (form.dtype == DTYPE_F64)
        RANGE_EACH(count, ((double *)to)[i] = (double)block[i]);
    else if (!form_is_narrow(form))
        RANGE_EACH(count, ((float *)to)[i] = (float)block[i]);
    else if (form.dtype == DTYPE_BF16)
        RANGE_EACH(count, ((uint16_t *)to)[i] = form_store_bf16((float)block[i]));
    else
        RANGE_EACH(count, ((uint16_t *)to)[i] = form_store_f16((float)block[i]));
}

/* Where a whole block lies in the tensor, if it lies there in carriers; else `copy`. */
static inline carrier *range_carriers(carrier *copy, void *values, struct form form, size_t first,
                                      size_t count) {
    const int is_there = count == RANGE_BLOCK && form.width == sizeof(carrier);
    return is_there ? (carrier *)form_place(values, form, first) : copy;
}

/* The block in the tensor or, where it does not lie there as the rule needs it, loaded to `copy`.
 */
static inline carrier *range_taken(carrier *copy, void *values, struct form form, size_t first,
                                   size_t count) {
    carrier *const block = range_carriers(copy, values, form, first, count);
    if (block == copy) range_load(copy, values, form, first, count);
    return block;
}

/* Loads gradients as they are stored, divides them by the loss scale and rounds them to their dtype
 * again: torch unscales in place. */
static inline void range_load_gradient(carrier *out, const struct step_range *range, size_t first,
                                       size_t count) {
    range_load(out, range->gradient, form_carried(range->gradient_dtype), first, count);
    if (range->grad_scale == 1.0) return;
    const carrier scale = (carrier)range->grad_scale;
    for (size_t i = 0; i < count; i++)
        out[i] = carrier_store((accumulator)(out[i] / scale), range->gradient_dtype);
}

/* The gradients of a block, in the tensor or in `copy`. */
static inline const carrier *range_gradient(carrier *copy, const struct step_range *range,
                                            size_t first, size_t count) {
    const int is_there = range->grad_scale == 1.0 && count == RANGE_BLOCK &&
                         form_carried(range->gradient_dtype).width == sizeof(carrier);
    if (is_there) return (const carrier *)range->gradient + first;
    range_load_gradient(copy, range, first, count);
    return copy;
}

static inline void range_round(carrier *restrict out, const carrier *restrict values, size_t count,
                               enum dtype dtype) {
    RANGE_EACH(count, out[i] = carrier_store((accumulator)values[i], dtype));
}

/* Stores the working copy `p`, unless it is the tensor itself. Where it is a master, the parameter
 * becomes its rounding. */
static inline void range_store_param(struct range_block *block, const carrier *p,
                                     const struct step_range *range, size_t first, size_t count) {
    const struct form working = form_carried(step_working_dtype(range));
    const struct form param = form_carried(range->param_dtype);
    if (p == block->p) range_store(p, step_working(range), working, first, count);
    if (range->master == NULL) return;
    carrier *const out = range_carriers(block->stored, range->param, param, first, count);
#define ROUND(dtype) range_round(out, p, count, dtype)
    STORAGE_SWITCH(range->param_dtype, ROUND);
#undef ROUND
    if (out == block->stored) range_store(out, range->param, param, first, count);
}

/* The numbers of one block, RANGE_BLOCK of each; no two of the lists overlap. */
struct range_view {
    carrier *p;
    const carrier *g;
    carrier *slot[RANGE_SLOTS];
};

/* Applies a rule to all numbers of a block; `k` is what it needs of the step. */
typedef void (*range_rule)(const struct range_view *block, const void *k, enum dtype param,
                           enum dtype slot);

/* Takes the range through the rule, block by block, with `slots` slots. Slots that the rule does
 * not have are +0 in the block. A whole block of carriers is worked on where it lies: copies took
 * more than half of a step's time on one thread (docs/measurements/train.md). */
static inline void range_step(const struct step_range *range, int slots, range_rule rule,
                              const void *k) {
    const enum dtype param = step_working_dtype(range);
    const struct form slot = range->slot;
    struct range_block block;
    struct range_view view;
    for (int s = slots; s < RANGE_SLOTS; s++) {
        range_load(block.slot[s], NULL, slot, 0, 0);
        view.slot[s] = block.slot[s];
    }
    for (size_t done = 0; done < range->count; done += RANGE_BLOCK) {
        const size_t first = range->first + done;
        const size_t left = range->count - done;
        const size_t count = left < RANGE_BLOCK ? left : RANGE_BLOCK;
        view.p = range_taken(block.p, step_working(range), form_carried(param), first, count);
        view.g = range_gradient(block.g, range, first, count);
        for (int s = 0; s < slots; s++)
            view.slot[s] = range_taken(block.slot[s], range->slots[s], slot, first, count);
        rule(&view, k, param, slot.dtype);
        range_store_param(&block, view.p, range, first, count);
        for (int s = 0; s < slots; s++)
            if (view.slot[s] == block.slot[s])
                range_store(block.slot[s], range->slots[s], slot, first, count);
    }
}

#endif
#endif

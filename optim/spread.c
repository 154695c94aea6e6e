/* SPDX-License-Identifier: Apache-2.0
 * Deals the elements of all tensors to threads, or hands whole tensors to a backend's loops; and
 * checks a call. Elements are independent, so who steps which moves no bit. */
#include "optim/spread.h"

#include <omp.h>
#include <string.h>

#include "base/isa_objects.h"
#include "kernels/op.h"
#include "optim/seen.h"

_Static_assert(STEP_SLOTS == OPTIM_SLOTS_MAX, "a range has the slots of its tensor");

/* Elements of one piece of work where nobody sees the step: enough that handing it out costs
 * nothing beside it, and a multiple of RANGE_BLOCK, so that only a tensor's last block is partly
 * filled. */
enum { PIECE = 8192 };

#define DECLARE_LOOP(NAME, name, variant) step_loop optim_##name##_range_##variant;
#define DECLARE(variant)                                                                           \
    STEP_RULES(DECLARE_LOOP, variant)                                                              \
    void optim_adafactor_tensor_##variant(const struct optim_tensor *, const struct step_range *,  \
                                          const struct optim_adafactor_scalars *);
#define LOOP(NAME, name, variant) [STEP_##NAME] = optim_##name##_range_##variant,
#define LOOPS(variant)                                                                             \
    { .elements = {{STEP_RULES(LOOP, variant)}}, .adafactor = optim_adafactor_tensor_##variant }

#define F32(isa) OBJECTS_OF(f32_f32, isa)
#define F64(isa) OBJECTS_OF(f64_f64, isa)
#define DECLARE_OF(variant) DECLARE(variant)
#define LOOPS_OF(variant) LOOPS(variant)

DECLARE_OF(F32(base))
DECLARE_OF(F32(OBJECTS_V3))
DECLARE_OF(F32(OBJECTS_V4))
DECLARE_OF(F64(base))
DECLARE_OF(F64(OBJECTS_V3))
DECLARE_OF(F64(OBJECTS_V4))

/* The loops of one instruction set and working type. */
struct loops {
    struct step_table elements;
    optim_adafactor_loop adafactor;
};

static const struct loops loops[ISA_COUNT][2] = {
    [ISA_AUTO] = {LOOPS_OF(F32(base)), LOOPS_OF(F64(base))},
    [ISA_BASE] = {LOOPS_OF(F32(base)), LOOPS_OF(F64(base))},
    [ISA_V3] = {LOOPS_OF(F32(OBJECTS_V3)), LOOPS_OF(F64(OBJECTS_V3))},
    [ISA_V4] = {LOOPS_OF(F32(OBJECTS_V4)), LOOPS_OF(F64(OBJECTS_V4))},
};

static enum status check_tensor(const struct optim_call *call, const struct optim_tensor *tensor,
                                const struct optim_class *class_) {
    if (tensor->group >= call->group_count)
        FAIL(STATUS_INTERNAL, "optimizer: %s is in group %u, expected a group below %u",
             tensor->name, (unsigned)tensor->group, (unsigned)call->group_count);
    if (tensor->count > 0 && (tensor->param == NULL || tensor->gradient == NULL))
        FAIL(STATUS_INTERNAL, "optimizer: %s has no parameter or no gradient", tensor->name);
    for (uint32_t slot = 0; slot < class_->slot_count; slot++)
        if (tensor->count > 0 && tensor->slots[slot] == NULL &&
            optim_slot_elements(class_, call->values, slot, tensor->rank, tensor->shape) > 0)
            FAIL(STATUS_INTERNAL, "optimizer: %s has no slot %u", tensor->name, (unsigned)slot);
    return STATUS_OK;
}

enum status optim_check_call(const struct optim_call *call, const struct optim_class *class_) {
    if (call->size < sizeof *call)
        FAIL(STATUS_INTERNAL, "optimizer call of %zu bytes, expected %zu", call->size,
             sizeof *call);
    if (call->t == NULL || (call->values == NULL && class_->values_size > 0))
        FAIL(STATUS_INTERNAL, "%s: expected t and values in the call", class_->name);
    if ((call->steps[0] == NULL) != (call->steps[1] == NULL))
        FAIL(STATUS_INTERNAL, "%s: expected two tables of steps or none", class_->name);
    const int is_elementwise = (class_->flags & OPTIM_ELEMENTWISE) != 0;
    if (is_elementwise && (class_->loop == STEP_NONE || class_->loop >= STEP_RULES_END))
        FAIL(STATUS_INTERNAL, "%s: the class names no loop for its elements", class_->name);
    for (int wide = 0; wide < 2 && is_elementwise; wide++)
        if (call->steps[wide] != NULL && call->steps[wide]->loop[class_->loop] == NULL)
            FAIL(STATUS_INTERNAL, "%s: the table of steps for %s has no loop for it", class_->name,
                 wide ? "f64" : "f32");
    if (call->isa <= ISA_AUTO || call->isa >= ISA_V4_BF16) /* which only products have */
        FAIL(STATUS_INTERNAL, "%s: expected a resolved instruction set, got number %d",
             class_->name, call->isa);
    if (call->threads < 1)
        FAIL(STATUS_INTERNAL, "%s: expected at least 1 thread, got %d", class_->name,
             call->threads);
    for (uint32_t i = 0; i < call->tensor_count; i++)
        TRY(check_tensor(call, &call->tensors[i], class_));
    return STATUS_OK;
}

static struct step_range range_of(const struct optim_call *call, const struct optim_tensor *tensor,
                                  size_t first, size_t count) {
    struct step_range range = {.param_dtype = tensor->param_dtype,
                               .master_dtype = tensor->master_dtype,
                               .gradient_dtype = tensor->gradient_dtype,
                               .slot = optim_slot_form(tensor),
                               .param = tensor->param,
                               .master = tensor->master,
                               .gradient = tensor->gradient,
                               .first = first,
                               .count = count,
                               .grad_scale = call->grad_scale};
    memcpy(range.slots, tensor->slots, sizeof range.slots);
    return range;
}

static size_t piece_count(const struct optim_tensor *tensor, size_t length) {
    return tensor->count / length + (tensor->count % length != 0);
}

/* Piece number `piece` of a tensor, of `length` elements; the last one is shorter. */
static struct step_range piece_of(const struct optim_call *call, const struct optim_tensor *tensor,
                                  size_t length, size_t piece) {
    const size_t first = piece * length;
    const size_t left = tensor->count - first;
    return range_of(call, tensor, first, left < length ? left : length);
}

/* Steps the tensors of one group and working type with a backend's loop, STEP_RANGES of them a
 * call. */
static void spread_group(const struct optim_call *call, const struct optim_class *class_,
                         uint32_t group, int wide, optim_step_ranges step, const void *context) {
    step_loop *const loop = call->steps[wide]->loop[class_->loop];
    struct step_range ranges[STEP_RANGES];
    size_t count = 0;
    for (uint32_t i = 0; i < call->tensor_count; i++) {
        const struct optim_tensor *tensor = &call->tensors[i];
        if (tensor->group != group || optim_is_wide(tensor) != wide) continue;
        ranges[count++] = range_of(call, tensor, 0, tensor->count);
        if (count < STEP_RANGES) continue;
        step(loop, ranges, count, &call->groups[group], context);
        count = 0;
    }
    if (count > 0) step(loop, ranges, count, &call->groups[group], context);
}

void optim_spread(const struct optim_call *call, const struct optim_class *class_,
                  optim_step_ranges step, const void *context) {
    if (call->steps[0] != NULL) {
        for (uint32_t group = 0; group < call->group_count; group++)
            for (int wide = 0; wide < 2; wide++)
                spread_group(call, class_, group, wide, step, context);
        return;
    }
    /* One parallel region serves the whole call: each thread meets every tensor and takes its share
     * of the pieces. */
    const struct optim_seen_call *const seen = optim_seen(call);
    const size_t length = seen == NULL ? PIECE : seen->piece;
    if (seen != NULL) seen->begin(seen->context, call);
#pragma omp parallel num_threads(call->threads)
    for (uint32_t i = 0; i < call->tensor_count; i++) {
        const struct optim_tensor *tensor = &call->tensors[i];
        const size_t pieces = piece_count(tensor, length);
#pragma omp for schedule(static) nowait
        for (size_t piece = 0; piece < pieces; piece++) {
            const struct step_range range = piece_of(call, tensor, length, piece);
            const uint32_t own = (uint32_t)omp_get_thread_num();
            if (seen != NULL) seen->before(seen->context, own, i, range.first, range.count);
            step(loops[call->isa][optim_is_wide(tensor)].elements.loop[class_->loop], &range, 1,
                 &call->groups[tensor->group], context);
            if (seen != NULL) seen->after(seen->context, own, i, range.first, range.count);
        }
    }
    if (seen != NULL) *seen->seen = 1;
}

void optim_spread_tensors(const struct optim_call *call, optim_step_tensor step,
                          const void *context) {
#pragma omp parallel for schedule(dynamic) num_threads(call->threads)
    for (uint32_t i = 0; i < call->tensor_count; i++) {
        const struct optim_tensor *tensor = &call->tensors[i];
        const struct step_range range = range_of(call, tensor, 0, tensor->count);
        step(loops[call->isa][optim_is_wide(tensor)].adafactor, tensor, &range,
             &call->groups[tensor->group], context);
    }
}

double optim_value(const void *values, enum dtype dtype, size_t index) {
    return form_get(values, form_carried(dtype), index);
}

enum status optim_direction(const struct optim_call *call, uint32_t index,
                            struct rule_direction rule, const void *before, double *out) {
    const struct optim_tensor *tensor = &call->tensors[index];
    const enum dtype working = optim_working_dtype(tensor);
    for (size_t i = 0; i < tensor->count; i++)
        out[i] = RULE_DIRECTION_OF(&rule, optim_value(tensor->gradient, tensor->gradient_dtype, i),
                                   real_nan_f64(), optim_slot_value(tensor, 0, i),
                                   optim_slot_value(tensor, (uint32_t)rule.second, i),
                                   optim_value(before, working, i));
    return STATUS_OK;
}

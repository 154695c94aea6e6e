/* SPDX-License-Identifier: Apache-2.0
 * The optimizers' steps, a thread per element of all ranges of a call: optim/cpu/ has the same
 * names and the same bits. The arithmetic is base/rule.h, rule_adam.h and rule_optim.h; here
 * elements are moved and rounded.
 *
 * Compiled for both working types, f32 and f64 (pairs f32_f32 and f64_f64). What a step needs once,
 * powers of beta among it, is made on the host and given by value. No sums; no step waits. */
#include "kernels/cuda/list.h"
#include "kernels/step.h"

/* ---- elements on their way, as optim/cpu/range.h moves blocks of them ---- */

GPU_INLINE carrier step_load(const void *values, enum dtype dtype, size_t i) {
    return dtype == DTYPE_F64 ? (carrier)((const double *)values)[i]
                              : (carrier)((const float *)values)[i];
}

GPU_INLINE void step_store(carrier x, void *values, enum dtype dtype, size_t i) {
    if (dtype == DTYPE_F64)
        ((double *)values)[i] = (double)x;
    else
        ((float *)values)[i] = (float)x;
}

/* The gradient as it is stored, divided by the loss scale and rounded to its dtype again. */
GPU_INLINE carrier step_gradient(const struct step_range *is, size_t i) {
    const carrier g = step_load(is->gradient, is->gradient_dtype, i);
    if (is->grad_scale == 1.0) return g;
    return carrier_store((accumulator)(g / (carrier)is->grad_scale), is->gradient_dtype);
}

/* Stores the working copy. Where that is a master, the parameter becomes its rounding. */
GPU_INLINE void step_store_param(carrier p, const struct step_range *is, size_t i) {
    step_store(p, step_working(is), step_working_dtype(is), i);
    if (is->master == NULL) return;
    step_store(carrier_store((accumulator)p, is->param_dtype), is->param, is->param_dtype, i);
}

GPU_INLINE carrier step_load_slot(const struct step_range *is, int slot, size_t i) {
    return step_load(is->slots[slot], is->slot.dtype, i);
}

GPU_INLINE void step_store_slot(carrier x, const struct step_range *is, int slot, size_t i) {
    step_store(x, is->slots[slot], is->slot.dtype, i);
}

/* ---- ranges on their way: every job begins with them ---- */

#if STEP_RANGES > LIST_TENSORS
#error "a call's ranges are one launch"
#endif

struct step_ranges {
    struct list list;
    struct step_range range[STEP_RANGES];
};

#define STEP_ELEMENT(is, i)                                                                        \
    struct list_place at;                                                                          \
    if (!list_find(&args->of.list, BLOCK, &at)) return;                                            \
    const struct step_range *const is = &args->of.range[at.tensor];                                \
    const size_t step_at = at.block * THREADS + THREAD;                                            \
    if (step_at >= is->count) return;                                                              \
    const size_t i = is->first + step_at

static void step_open(const struct step_range *ranges, size_t count, struct step_ranges *out) {
    for (size_t i = 0; i < count; i++) {
        out->range[i] = ranges[i];
        list_add(&out->list, element_blocks(ranges[i].count));
    }
}

#define STEP_OPEN(job, ranges, count)                                                              \
    LIST_FITS(*(job));                                                                             \
    LIST_OPEN(job);                                                                                \
    step_open(ranges, count, &(job)->of)

#define STEP_LAUNCH(kernel, job)                                                                   \
    LAUNCH(kernel, list_blocks(&(job)->of.list), ELEMENT_THREADS, 0, (job))

/* ---- Adam's variants, a kernel each ---- */

struct step_adam_job {
    struct step_ranges of;
    struct rule_adam k;
};

GPU_INLINE void step_adam_element(const struct step_range *is, const struct rule_adam *k,
                                  enum rule_adam_variant variant, size_t i) {
    const enum dtype param = step_working_dtype(is), slot = is->slot.dtype;
    struct rule_adam_element e = {step_load(step_working(is), param, i), step_load_slot(is, 0, i),
                                  step_load_slot(is, 1, i),
                                  k->amsgrad ? step_load_slot(is, 2, i) : (carrier)0};
    const carrier g = step_gradient(is, i);
    STEP_SWITCH(param, slot, rule_adam_step, &e, g, k, variant);
    step_store_param(e.p, is, i);
    step_store_slot(e.m, is, 0, i);
    step_store_slot(e.v, is, 1, i);
    if (k->amsgrad) step_store_slot(e.max, is, 2, i);
}

#define STEP_ADAM_KERNEL(NAME, name)                                                               \
    KERNEL(step_adam_##name##_kernel, struct step_adam_job) {                                      \
        STEP_ELEMENT(is, i);                                                                       \
        step_adam_element(is, &args->k, RULE_ADAM_##NAME, i);                                      \
    }
STEP_ADAM_VARIANTS(STEP_ADAM_KERNEL)

static void step_adam(const struct step_range *ranges, size_t count, const void *given) {
    const struct rule_adam_call *const call = (const struct rule_adam_call *)given;
    struct step_adam_job job;
    STEP_OPEN(&job, ranges, count);
    job.k = rule_adam_open(call);
#define STEP_ADAM_LAUNCH(NAME, name)                                                               \
    if (call->variant == RULE_ADAM_##NAME) STEP_LAUNCH(step_adam_##name##_kernel, &job);
    STEP_ADAM_VARIANTS(STEP_ADAM_LAUNCH)
}

/* ---- SGD ---- */

struct step_sgd_job {
    struct step_ranges of;
    struct rule_sgd k;
    int first, cpu;
};

KERNEL(step_sgd_kernel, struct step_sgd_job) {
    STEP_ELEMENT(is, i);
    const enum dtype param = step_working_dtype(is), slot = is->slot.dtype;
    struct rule_sgd_element e = {step_load(step_working(is), param, i), step_load_slot(is, 0, i)};
    const carrier g = step_gradient(is, i);
    if (args->cpu)
        STEP_SWITCH(param, slot, rule_sgd_cpu_step, &e, g, &args->k, args->first);
    else
        STEP_SWITCH(param, slot, rule_sgd_step, &e, g, &args->k, args->first);
    step_store_param(e.p, is, i);
    step_store_slot(e.buffer, is, 0, i);
}

static void step_sgd(const struct step_range *ranges, size_t count, const void *given) {
    const struct step_sgd_scalars *const scalars = (const struct step_sgd_scalars *)given;
    struct step_sgd_job job;
    STEP_OPEN(&job, ranges, count);
    job.k = step_sgd_narrow(scalars);
    job.first = scalars->first;
    job.cpu = scalars->cpu;
    STEP_LAUNCH(step_sgd_kernel, &job);
}

/* ---- Lion ---- */

struct step_lion_job {
    struct step_ranges of;
    struct rule_lion k;
    int cpu;
};

KERNEL(step_lion_kernel, struct step_lion_job) {
    STEP_ELEMENT(is, i);
    const enum dtype param = step_working_dtype(is), slot = is->slot.dtype;
    struct rule_lion_element e = {step_load(step_working(is), param, i), step_load_slot(is, 0, i)};
    const carrier g = step_gradient(is, i);
    STEP_SWITCH(param, slot, rule_lion_step, &e, g, &args->k, args->cpu);
    step_store_param(e.p, is, i);
    step_store_slot(e.m, is, 0, i);
}

static void step_lion(const struct step_range *ranges, size_t count, const void *given) {
    const struct step_lion_scalars *const scalars = (const struct step_lion_scalars *)given;
    struct step_lion_job job;
    STEP_OPEN(&job, ranges, count);
    job.k = rule_lion_narrow(&scalars->rule);
    job.cpu = scalars->cpu;
    STEP_LAUNCH(step_lion_kernel, &job);
}

extern const struct step_table VARIANT(step_table);
#define STEP_ROW(NAME, name, with) step_##name,
const struct step_table VARIANT(step_table) = {{NULL, STEP_RULES(STEP_ROW, )}};

/* SPDX-License-Identifier: Apache-2.0
 * Adafactor as Adafactor.step of transformers/optimization.py computes it; torch's own Adafactor is
 * another algorithm. Defaults are those of the Trainer's `optim: adafactor`: no relative step, no
 * scaling by the parameter.
 *
 * Gradients and parameters below f32 are worked on in f32 and stored once, as there. Sums follow
 * law 2 in f64 (optim/cpu/adafactor_tensor.c), so the last places differ from torch's. found_inf is
 * not looked at. Gradients are divided by grad_scale first. */
#include "base/macro.h"
#include "base/sum.h"
#include "optim/spread.h"

struct adafactor_values {
    double eps1, eps2, clip_threshold, decay_rate;
    double beta1; /* KEY_WORD_REAL: there is no first moment */
    uint8_t relative_step, scale_parameter, warmup_init, zero[5];
};

#define ROW(name, kind, ...)                                                                       \
    KEY_ROW(#name, kind, struct adafactor_values, name, .cause = CAUSE_OPTIMIZER, __VA_ARGS__)

static const struct key_row keys[] = {
    ROW(eps1, KEY_REAL, .unit = "1", .standard = "1e-30", .high = 1e6,
        .help = "Added to each squared gradient"),
    ROW(eps2, KEY_REAL, .unit = "1", .standard = "1e-3", .high = 1e6,
        .help = "Least root mean square that scale_parameter multiplies the rate by"),
    ROW(clip_threshold, KEY_REAL, .unit = "1", .standard = "1", .low = 0x1p-1022, .high = 1e300,
        .help = "Root mean square above which a tensor's update is scaled down to it"),
    ROW(decay_rate, KEY_REAL, .unit = "1", .standard = "-0.8", .low = -100,
        .help = "Exponent e of the decay 1 - t^e of the second moment"),
    ROW(beta1, KEY_REAL, .unit = "1", .standard = "none", .high = 1, .word = "none",
        .help = "Decay of the mean of updates, a slot more; none: no mean"),
    ROW(relative_step, KEY_BOOL, .unit = "", .standard = "false",
        .help = "The rate is min(1e-2, 1 / sqrt(t)) and the schedule's rate is not read"),
    ROW(scale_parameter, KEY_BOOL, .unit = "", .standard = "false",
        .help = "Multiplies the rate by the root mean square of the tensor's parameters"),
    ROW(warmup_init, KEY_BOOL, .unit = "", .standard = "false",
        .help = "With relative_step: min(1e-6 t, 1 / sqrt(t))"),
};

enum slot { SLOT_ROW = 0, SLOT_COLUMN, SLOT_ALL, SLOT_MEAN };
static const char *const slot_names[] = {"exp_avg_sq_row", "exp_avg_sq_col", "exp_avg_sq",
                                         "exp_avg"};

static int is_averaged(const struct adafactor_values *v) {
    return v->beta1 != KEY_WORD_REAL;
}

static uint64_t slot_elements(const void *values, uint32_t slot, uint32_t rank,
                              const uint64_t *shape) {
    const int factored = rank >= 2;
    switch ((enum slot)slot) {
    case SLOT_ROW:
        return factored ? shape[0] : 0;
    case SLOT_COLUMN:
        return factored ? shape[1] : 0;
    case SLOT_ALL:
        return factored ? 0 : shape[0];
    case SLOT_MEAN:
        break;
    }
    return is_averaged((const struct adafactor_values *)values) ? shape[0] * shape[1] : 0;
}

/* The rate of Adafactor._get_lr, before it is multiplied by the parameter's scale. */
static double relative_lr(const struct adafactor_values *v, double lr, uint64_t t) {
    if (!v->relative_step) return lr;
    const double least = v->warmup_init ? 1e-6 * (double)t : 1e-2;
    const double root = 1.0 / real_sqrt_f64((double)t);
    return root < least ? root : least;
}

double optim_adafactor_rate(const void *values, double lr, uint64_t t) {
    return relative_lr((const struct adafactor_values *)values, lr, t);
}

struct step_context {
    const struct adafactor_values *values;
    uint64_t t;
};

static void step_tensor(optim_adafactor_loop loop, const struct optim_tensor *tensor,
                        const struct step_range *range, const struct optim_group *group,
                        const void *context) {
    const struct step_context *c = (const struct step_context *)context;
    const struct adafactor_values *v = c->values;
    const struct optim_adafactor_scalars scalars = {
        .lr = relative_lr(v, group->lr, c->t),
        .weight_decay = group->weight_decay,
        .eps1 = v->eps1,
        .eps2 = v->eps2,
        .clip_threshold = v->clip_threshold,
        .beta1 = is_averaged(v) ? v->beta1 : 0.0,
        .beta2 = 1.0 - real_pow_f64((double)c->t, v->decay_rate),
        .scale_parameter = v->scale_parameter,
        .averaged = is_averaged(v)};
    loop(tensor, range, &scalars);
}

static enum status adafactor_step(const struct optim_call *call) {
    TRY(optim_check_call(call, &optim_adafactor));
    *call->t += 1;
    const struct step_context context = {(const struct adafactor_values *)call->values, *call->t};
    optim_spread_tensors(call, step_tensor, &context);
    return STATUS_OK;
}

/* What update_at needs to make elements of the update before it is clipped. They are made from the
 * statistics as they are after the step, because the step keeps no update. */
struct update {
    const struct optim_tensor *tensor;
    struct rule_direction gradient; /* how gradients are unscaled */
    double row_mean;
    size_t columns;
};

static double update_at(const struct update *u, size_t i) {
    const struct optim_tensor *t = u->tensor;
    const double g =
        rule_read_gradient(&u->gradient, optim_value(t->gradient, t->gradient_dtype, i));
    if (t->rank < 2) return g / real_sqrt_f64(optim_slot_value(t, SLOT_ALL, i));
    const double row = optim_slot_value(t, SLOT_ROW, i / u->columns);
    const double column = optim_slot_value(t, SLOT_COLUMN, i % u->columns);
    return g / (real_sqrt_f64(row / u->row_mean) * real_sqrt_f64(column));
}

/* Sums are those of the step (law 2). Where it is in f64, an f64 chain over the tensor would be off
 * by more than the bound of what is read back. */
static double rms_of(const void *values, enum dtype dtype, size_t count) {
    struct sum_lanes_f64 sum;
    sum_lanes_open_f64(&sum);
    for (size_t i = 0; i < count; i++) {
        const double x = optim_value(values, dtype, i);
        sum_lanes_append_products_f64_f64(&sum, &x, &x, 1);
    }
    return real_sqrt_f64(sum_lanes_close_f64(&sum)) / real_sqrt_f64((double)count);
}

static double mean_of_rows(const struct optim_tensor *tensor) {
    struct sum_lanes_f64 sum;
    if (tensor->rank < 2) return 1.0;
    sum_lanes_open_f64(&sum);
    for (size_t row = 0; row < tensor->shape[0]; row++)
        sum_lanes_term_f64(&sum, optim_slot_value(tensor, SLOT_ROW, row));
    return sum_lanes_close_f64(&sum) / (double)tensor->shape[0];
}

/* With a mean of updates the step is that mean, in which the LRs of earlier steps are: no LR is
 * read back, so an element that it moves is NaN. One that it does not move is 0. */
static double mean_at(const struct optim_tensor *tensor, size_t i) {
    return optim_slot_value(tensor, SLOT_MEAN, i) == 0.0 ? 0.0 : real_nan_f64();
}

/* The direction is d = scale (u / max(1, RMS(u) / threshold) + wd * old), where scale is max(eps2,
 * RMS(old)) with scale_parameter, else 1. */
static enum status adafactor_direction(const struct optim_call *call, uint32_t index,
                                       const void *before, double *out) {
    const struct adafactor_values *v = (const struct adafactor_values *)call->values;
    const struct optim_tensor *tensor = &call->tensors[index];
    const enum dtype working = optim_working_dtype(tensor);
    const double decay = call->groups[tensor->group].weight_decay;
    const struct update update = {.tensor = tensor,
                                  .gradient = {.is_wide = optim_is_wide(tensor),
                                               .grad_scale = call->grad_scale,
                                               .gradient = tensor->gradient_dtype},
                                  .row_mean = mean_of_rows(tensor),
                                  .columns =
                                      tensor->rank < 2 ? tensor->count : (size_t)tensor->shape[1]};
    double scale = 1.0;
    if (v->scale_parameter) {
        scale = rms_of(before, working, tensor->count);
        if (!(scale > v->eps2)) scale = v->eps2;
    }
    for (size_t i = 0; i < tensor->count; i++)
        out[i] = is_averaged(v) ? mean_at(tensor, i) : update_at(&update, i);
    const double rms = rms_of(out, DTYPE_F64, tensor->count) / v->clip_threshold;
    const double divisor = rms > 1.0 ? rms : 1.0;
    for (size_t i = 0; i < tensor->count; i++)
        out[i] = scale * (out[i] / divisor + decay * optim_value(before, working, i));
    return STATUS_OK;
}

static enum status adafactor_validate(const void *values) {
    const struct adafactor_values *v = (const struct adafactor_values *)values;
    if (!(v->eps1 >= 0.0) || !(v->eps2 >= 0.0) || !(v->clip_threshold > 0.0) ||
        !(v->decay_rate <= 0.0))
        FAIL(STATUS_INPUT,
             "optimizer: expected eps1 >= 0, eps2 >= 0, clip_threshold > 0 and decay_rate <= 0, "
             "got %.17g, %.17g, %.17g and %.17g",
             v->eps1, v->eps2, v->clip_threshold, v->decay_rate);
    if (is_averaged(v) && !(v->beta1 >= 0.0 && v->beta1 <= 1.0))
        FAIL(STATUS_INPUT, "optimizer.beta1: expected a number in [0, 1] or none, got %.17g",
             v->beta1);
    if (v->warmup_init && !v->relative_step)
        FAIL(STATUS_INPUT, "optimizer.warmup_init: true needs optimizer.relative_step: true");
    return STATUS_OK;
}

const struct optim_class optim_adafactor = {
    .size = sizeof(struct optim_class),
    .name = "adafactor",
    .help = "Adafactor in the order of operations of transformers.optimization.Adafactor",
    OPTIM_KEYS(keys, adafactor_values),
    OPTIM_SLOTS(slot_names),
    .flags = OPTIM_NEEDS_WHOLE_TENSOR | OPTIM_DECOUPLED,
    .step = adafactor_step,
    .direction = adafactor_direction,
    .validate = adafactor_validate,
    .slot_elements = slot_elements,
};

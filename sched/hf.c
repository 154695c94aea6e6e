/* SPDX-License-Identifier: Apache-2.0
 * Hugging Face's schedules: each is a multiplier of the base rate after its own warm-up, as torch's
 * LambdaLR applies it, even where the multiplier was divided by L before.
 *
 * Source: transformers src/transformers/optimization.py (005edacb), the function that each class's
 * help names, with its operations in its order. s is the counter, m the floor as a share of L.
 * reduce_lr_on_plateau is torch's and stands in plateau.c. */
#include "sched/values.h"

#include "base/real.h"

/* A constant rate after a linear warm-up. The total T is not used. */
static double constant_value(const struct sched_call *call, double counter) {
    const double s = sched_clamp_counter(counter);
    if (s < call->warmup) return call->base_lr * sched_warmup_factor(call, s);
    return call->base_lr;
}

SCHED_CLASS(sched_constant, "constant",
            "L after a linear warm-up from 0, as transformers get_constant_schedule_with_warmup",
            .value = constant_value, .minimum = sched_base_rate, .validate = sched_check_call);

SCHED_CLASS(sched_constant_with_warmup, "constant_with_warmup",
            "The same as constant, under the name that transformers gives it with a warm-up",
            .value = constant_value, .minimum = sched_base_rate, .validate = sched_check_call);

/* L times a multiplier h that is lifted onto the floor m. */
static double lifted(const struct sched_call *call, double h, double m) {
    const double factor = h * (1.0 - m) + m;
    return call->base_lr * (factor > 0.0 ? factor : 0.0);
}

/* With h = max(0, (T - s) / max(1, T - W)) the multiplier is h (1 - m) + m. Hugging Face has no
 * linear schedule with a floor: with m = 0 the bits are its own, and m > 0 lifts it as
 * cosine_with_min_lr is lifted, to reach m at T and stay there, as OLMo-core's alpha_f does up to
 * rounding. The warm-up starts at 0 whatever m is. */
struct linear_values {
    double min_lr_ratio;
};

static const struct key_row linear_keys[] = {
    SCHED_REAL(linear_values, min_lr_ratio, .standard = "0", .high = 1,
               .help = "Share of the base rate that is left at the end"),
};

static double linear_value(const struct sched_call *call, double counter) {
    const struct linear_values *values = SCHED_VALUES(call, linear_values);
    const double m = values->min_lr_ratio;
    const double s = sched_clamp_counter(counter);
    if (s < call->warmup) return call->base_lr * sched_warmup_factor(call, s);
    const double ratio = sched_after_warmup(call, call->total - s);
    const double h = ratio > 0.0 ? ratio : 0.0;
    return call->base_lr * (h * (1.0 - m) + m);
}

SCHED_MINIMUM_SHARE(linear_minimum, linear_values, min_lr_ratio)

SCHED_CLASS(sched_linear, "linear",
            "Linear from L to min_lr_ratio * L after a linear warm-up from 0, as transformers "
            "get_linear_schedule_with_warmup",
            SCHED_KEYS(linear_keys, linear_values), .value = linear_value,
            .minimum = linear_minimum, .validate = sched_check_call);

/* With p = (s - W) / max(1, T - W) and h = 0.5 (1 + cos(pi * c * 2 * p)) the multiplier is
 * max(0, h (1 - m) + m), computed in this order. Past T it rises again, as theirs does: with c =
 * 0.5 it is back at L at s = 2T - W. */
struct cosine_values {
    double num_cycles;
    double min_lr_ratio;
};

static const struct key_row cosine_keys[] = {
    SCHED_REAL(cosine_values, num_cycles, .standard = "0.5", .high = 1000,
               .help = "Waves of the cosine between warm-up and total; 0.5 falls from the base "
                       "rate to the minimum"),
    SCHED_REAL(cosine_values, min_lr_ratio, .standard = "0", .high = 1,
               .help = "Share of the base rate that is left at the bottom"),
};

static double cosine_value(const struct sched_call *call, double counter) {
    const struct cosine_values *values = SCHED_VALUES(call, cosine_values);
    const double s = sched_clamp_counter(counter);
    if (s < call->warmup) return call->base_lr * sched_warmup_factor(call, s);
    const double p = sched_after_warmup(call, s - call->warmup);
    const double h = 0.5 * (1.0 + sched_cos_waves(values->num_cycles, p));
    return lifted(call, h, values->min_lr_ratio);
}

SCHED_MINIMUM_SHARE(cosine_minimum, cosine_values, min_lr_ratio)

SCHED_CLASS(sched_cosine, "cosine",
            "Cosine from L to min_lr_ratio * L after a linear warm-up from 0, as transformers "
            "get_cosine_schedule_with_warmup and get_cosine_with_min_lr_schedule_with_warmup",
            SCHED_KEYS(cosine_keys, cosine_values), .value = cosine_value,
            .minimum = cosine_minimum, .validate = sched_check_call);

SCHED_CLASS(sched_cosine_with_min_lr, "cosine_with_min_lr",
            "The same as cosine, under the name that transformers gives it with a floor",
            SCHED_KEYS(cosine_keys, cosine_values), .value = cosine_value,
            .minimum = cosine_minimum, .validate = sched_check_call);

struct restart_values {
    double num_cycles;
};

static const struct key_row restart_keys[] = {
    SCHED_REAL(restart_values, num_cycles, .standard = "1", .high = 1000,
               .help = "Falls from the base rate to 0 between warm-up and total"),
};

static double restart_value(const struct sched_call *call, double counter) {
    const struct restart_values *values = SCHED_VALUES(call, restart_values);
    const double s = sched_clamp_counter(counter);
    if (s < call->warmup) return call->base_lr * sched_warmup_factor(call, s);
    const double p = sched_after_warmup(call, s - call->warmup);
    /* Theirs returns the multiplier 0.0 here; the product keeps LambdaLR's form. */
    if (p >= 1.0) return call->base_lr * 0.0;
    const double turns = values->num_cycles * p;
    const double h = 0.5 * (1.0 + sched_cos_pi(turns - sched_floor(turns)));
    return call->base_lr * (h > 0.0 ? h : 0.0);
}

/* These decays have no floor of their own. */
static double no_minimum(const struct sched_call *call) {
    (void)call;
    return 0.0;
}

SCHED_CLASS(sched_cosine_with_restarts, "cosine_with_restarts",
            "num_cycles cosines from L to 0 after a linear warm-up from 0, then 0, as transformers "
            "get_cosine_with_hard_restarts_schedule_with_warmup",
            SCHED_KEYS(restart_keys, restart_values), .value = restart_value, .minimum = no_minimum,
            .validate = sched_check_call);

struct polynomial_values {
    double lr_end;
    double power;
};

static const struct key_row polynomial_keys[] = {
    SCHED_REAL(polynomial_values, lr_end, .standard = "1e-7", .high = 1e6,
               .help = "Learning rate at the end"),
    SCHED_REAL(polynomial_values, power, .standard = "1", .high = 1000,
               .help = "Exponent q of the decay"),
};

static double polynomial_value(const struct sched_call *call, double counter) {
    const struct polynomial_values *values = SCHED_VALUES(call, polynomial_values);
    const double lr = call->base_lr;
    const double s = sched_clamp_counter(counter);
    if (s < call->warmup) return lr * sched_warmup_factor(call, s);
    if (s > call->total) return lr * (values->lr_end / lr);
    const double left = 1.0 - (s - call->warmup) / (call->total - call->warmup);
    const double shape = values->power == 1.0 ? left : sched_pow(left, values->power);
    const double decay = (lr - values->lr_end) * shape + values->lr_end;
    return lr * (decay / lr);
}

SCHED_MINIMUM_RATE(polynomial_minimum, polynomial_values, lr_end)

static enum status polynomial_validate(const struct sched_call *call) {
    const struct polynomial_values *values = SCHED_VALUES(call, polynomial_values);
    TRY(sched_check_call(call));
    if (!(call->base_lr > values->lr_end))
        FAIL(STATUS_INPUT, "schedule.lr_end: expected less than the base rate %.17g, got %.17g",
             call->base_lr, values->lr_end);
    if (!(call->total > call->warmup) && !(call->total < call->warmup))
        FAIL(STATUS_INPUT,
             "schedule.total: polynomial divides by zero where total and warm-up are both %.17g",
             call->total);
    return STATUS_OK;
}

SCHED_CLASS(sched_polynomial, "polynomial",
            "(L - lr_end) (1 - progress)^power + lr_end after a linear warm-up from 0, as "
            "transformers get_polynomial_decay_schedule_with_warmup",
            SCHED_KEYS(polynomial_keys, polynomial_values), .value = polynomial_value,
            .minimum = polynomial_minimum, .validate = polynomial_validate);

struct root_values {
    double timescale;
};

static const struct key_row root_keys[] = {
    SCHED_LENGTH(root_values, timescale, "Time scale of the decay; auto is warm-up, or 10000"),
};

static double root_value(const struct sched_call *call, double counter) {
    const double s = sched_clamp_counter(counter);
    double scale = SCHED_VALUES(call, root_values)->timescale;
    if (s < call->warmup) return call->base_lr * sched_warmup_factor(call, s);
    if (!(scale > 0.0)) scale = call->warmup > 0.0 ? call->warmup : 10000.0;
    const double shift = scale - call->warmup;
    return call->base_lr * (1.0 / real_sqrt_f64((s + shift) / scale));
}

SCHED_CLASS(sched_inverse_sqrt, "inverse_sqrt",
            "L / sqrt((s + timescale - W) / timescale) after a linear warm-up from 0, as "
            "transformers get_inverse_sqrt_schedule; never reaches 0",
            SCHED_KEYS(root_keys, root_values), .value = root_value, .minimum = no_minimum,
            .validate = sched_check_call);

struct lift_values {
    double num_cycles;
    double min_lr_ratio;
    double warmup_lr_ratio;
};

static const struct key_row lift_keys[] = {
    SCHED_REAL(lift_values, num_cycles, .standard = "0.5", .high = 1000,
               .help = "Waves of the cosine between warm-up and total"),
    SCHED_REAL(lift_values, min_lr_ratio, .standard = "0", .high = 1,
               .help = "Share of the base rate that is left at the bottom (theirs: min_lr_rate)"),
    SCHED_REAL(lift_values, warmup_lr_ratio, .standard = "none", .high = 1, .word = "none",
               .help = "Share of the base rate where the warm-up starts (theirs: warmup_lr_rate); "
                       "none is 1 / W"),
};

/* Theirs counts the warm-up from 1 (s + 1 of W steps) unless warmup_lr_rate says where it starts;
 * then it rises from there over W - 1 steps. */
static double lift_warmup(const struct sched_call *call, double s, double start) {
    if (start < 0.0) return (s + 1.0) / sched_at_least_one(call->warmup);
    return start + (1.0 - start) * s / sched_at_least_one(call->warmup - 1.0);
}

static double lift_value(const struct sched_call *call, double counter) {
    const struct lift_values *values = SCHED_VALUES(call, lift_values);
    const double s = sched_clamp_counter(counter);
    if (s < call->warmup) return call->base_lr * lift_warmup(call, s, values->warmup_lr_ratio);
    const double p = sched_after_warmup(call, s - call->warmup + 1.0);
    const double h = 0.5 * (1.0 + sched_cos_waves(values->num_cycles, p));
    return lifted(call, h, values->min_lr_ratio);
}

SCHED_MINIMUM_SHARE(lift_minimum, lift_values, min_lr_ratio)

SCHED_CLASS(sched_cosine_warmup_with_min_lr, "cosine_warmup_with_min_lr",
            "Cosine from L to min_lr_ratio * L, one step ahead in warm-up and decay, as "
            "transformers get_cosine_with_min_lr_schedule_with_warmup_lr_rate",
            SCHED_KEYS(lift_keys, lift_values), .value = lift_value, .minimum = lift_minimum,
            .validate = sched_check_call);

/* warmup_stable_decay has a shaped warm-up from the floor, a plateau and a shaped decay. It starts
 * at the floor, not at 0, and stays there after warm-up + stable + decay. So it is since
 * transformers 4.49.0; warmup_stable_decay_old below is what came before. */
enum shape { SHAPE_LINEAR, SHAPE_COSINE, SHAPE_ROOT };

struct stable_values {
    double stable;
    double decay;
    double min_lr_ratio;
    double num_cycles;
    int32_t warmup_type;
    int32_t decay_type;
};

static const char *const shapes[] = {"linear", "cosine", "1-sqrt", NULL};

static const struct key_row stable_keys[] = {
    SCHED_LENGTH(stable_values, stable, "Plateau (theirs: num_stable_steps); auto is what is left"),
    SCHED_LENGTH(stable_values, decay, "Decay (theirs: num_decay_steps); auto is what is left"),
    SCHED_REAL(stable_values, min_lr_ratio, .standard = "0", .high = 1,
               .help = "Share of the base rate at the start and at the end"),
    SCHED_REAL(stable_values, num_cycles, .standard = "0.5", .high = 1000,
               .help = "Waves of a cosine decay"),
    SCHED_ENUM(stable_values, warmup_type, .standard = "linear", .names = shapes,
               .help = "Shape of the warm-up"),
    SCHED_ENUM(stable_values, decay_type, .standard = "cosine", .names = shapes,
               .help = "Shape of the decay"),
};

static double rise(int32_t type, double p) {
    if (type == SHAPE_COSINE) return 0.5 * (1.0 - sched_cos_pi(p));
    if (type == SHAPE_ROOT) return 1.0 - real_sqrt_f64(1.0 - p);
    return p;
}

static double fall(const struct stable_values *values, double p) {
    if (values->decay_type == SHAPE_COSINE)
        return 0.5 * (1.0 + sched_cos_waves(values->num_cycles, p));
    if (values->decay_type == SHAPE_ROOT) return 1.0 - real_sqrt_f64(p);
    return 1.0 - p;
}

static double positive(double x) {
    return x > 0.0 ? x : 0.0;
}

/* The lengths of plateau and decay; "auto" is what is left of the total. */
static void stable_lengths(const struct sched_call *call, double *stable, double *decay) {
    const double after = call->total - call->warmup;
    if (*stable < 0.0) *stable = *decay < 0.0 ? 0.0 : positive(after - *decay);
    if (*decay < 0.0) *decay = positive(after - *stable);
}

static double stable_value(const struct sched_call *call, double counter) {
    const struct stable_values *values = SCHED_VALUES(call, stable_values);
    const double s = sched_clamp_counter(counter);
    const double m = values->min_lr_ratio;
    double stable = values->stable;
    double decay = values->decay;
    if (s < call->warmup)
        return lifted(call, rise(values->warmup_type, sched_warmup_factor(call, s)), m);
    stable_lengths(call, &stable, &decay);
    if (s < call->warmup + stable) return call->base_lr;
    if (s < call->warmup + stable + decay)
        return lifted(call, fall(values, (s - call->warmup - stable) / sched_at_least_one(decay)),
                      m);
    return call->base_lr * m;
}

SCHED_MINIMUM_SHARE(stable_minimum, stable_values, min_lr_ratio)

SCHED_CLASS(
    sched_warmup_stable_decay, "warmup_stable_decay",
    "Warm-up from min_lr_ratio * L, plateau, decay back to it, as transformers get_wsd_schedule "
    "since 4.49",
    SCHED_KEYS(stable_keys, stable_values), .value = stable_value, .minimum = stable_minimum,
    .validate = sched_check_call);

/* Source: transformers v4.48.3 src/transformers/optimization.py, _get_wsd_scheduler_lambda; those
 * of 4.43.4, 4.44.0, 4.46.0 and 4.47.1 are the same, and 4.49.0 has the one above. */
struct stable_old_values {
    double stable;
    double decay;
    double min_lr_ratio;
    double num_cycles;
};

static const struct key_row stable_old_keys[] = {
    SCHED_LENGTH(stable_old_values, stable,
                 "Plateau (theirs: num_stable_steps); auto is what is left"),
    SCHED_LENGTH(stable_old_values, decay, "Decay (theirs: num_decay_steps); auto is what is left"),
    SCHED_REAL(stable_old_values, min_lr_ratio, .standard = "0", .high = 1,
               .help = "Share of the base rate at the end"),
    SCHED_REAL(stable_old_values, num_cycles, .standard = "0.5", .high = 1000,
               .help = "Waves of the cosine decay"),
};

static double stable_old_value(const struct sched_call *call, double counter) {
    const struct stable_old_values *values = SCHED_VALUES(call, stable_old_values);
    const double s = sched_clamp_counter(counter);
    double stable = values->stable;
    double decay = values->decay;
    if (s < call->warmup) return call->base_lr * sched_warmup_factor(call, s);
    stable_lengths(call, &stable, &decay);
    if (s < call->warmup + stable) return call->base_lr;
    if (s >= call->warmup + stable + decay) return call->base_lr * values->min_lr_ratio;
    const double p = (s - call->warmup - stable) / sched_at_least_one(decay);
    return lifted(call, 0.5 * (1.0 + sched_cos_waves(values->num_cycles, p)), values->min_lr_ratio);
}

SCHED_MINIMUM_SHARE(stable_old_minimum, stable_old_values, min_lr_ratio)

SCHED_CLASS(sched_warmup_stable_decay_old, "warmup_stable_decay_old",
            "Warm-up from 0, plateau, cosine decay to min_lr_ratio * L, as get_wsd_schedule of "
            "transformers up to 4.48",
            SCHED_KEYS(stable_old_keys, stable_old_values), .value = stable_old_value,
            .minimum = stable_old_minimum, .validate = sched_check_call);

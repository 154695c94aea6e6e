/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The built-in schedules against the multipliers that each framework's formula gives (the source is
 * named in the schedule's file), and against Hugging Face's Python bit for bit, also past the end
 * and in the corners. */
#include "sched/sched.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <math.h>
#include <cmocka.h>

#include "base/macro.h"
#include "base/number.h"
#include "base/real.h"
#include "sched/values.h"

#define PI 0x1.921fb54442d18p+1

/* Sets a class's values to their defaults, then the named ones. */
struct setting {
    const char *key;
    double value;
};

static double values[32], state_of_schedule[64];

/* The parameters that a schedule needs beyond its defaults to be called at all. */
static const double metric_at[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14};
static const double metric_value[] = {2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
static const struct sched_metric stalled = {COUNT_OF(metric_at), metric_at, metric_value, 1.0};
static const struct needed {
    const char *schedule, *stages;
} needed[] = {
    {"olmo-core.composable", "linear:2:0:1,cosine:8:0"},
    {"torch.sequential", "linear:2:start_factor=0.5:total_iters=2,cosine:8:t_max=8,constant"},
};

static struct sched_call call_of(const struct sched_class *schedule, double lr, double warmup,
                                 double total, const struct setting *settings, size_t count) {
    memset(values, 0, sizeof values);
    memset(state_of_schedule, 0, sizeof state_of_schedule);
    assert_true(schedule->values_size <= sizeof values);
    assert_true(schedule->state_size <= sizeof state_of_schedule);
    assert_int_equal(sched_values_standard(schedule, values), STATUS_OK);
    for (size_t i = 0; i < COUNT_OF(needed); i++)
        if (strcmp(schedule->name, needed[i].schedule) == 0)
            assert_int_equal(sched_values_set(schedule, values, "stages", needed[i].stages),
                             STATUS_OK);
    for (size_t i = 0; i < count; i++)
        if (settings[i].key != NULL && sched_row(schedule, settings[i].key) != NULL)
            assert_int_equal(sched_values_set(schedule, values, settings[i].key,
                                              number_text_f64(settings[i].value).text),
                             STATUS_OK);
    return (struct sched_call){.size = sizeof(struct sched_call),
                               .base_lr = lr,
                               .warmup = warmup,
                               .total = total,
                               .values = values,
                               .state = state_of_schedule,
                               .metric = schedule->feedback ? &stalled : NULL};
}

/* Multipliers in units of L, with the digits that were printed, at the counters first, first + 1,
 * ... */
static const struct table_case {
    const char *name, *schedule;
    struct setting settings[2];
    double lr, warmup, total;
    double first, step;
    size_t count;
    const char *printed[10];
} table_cases[] = {
    {"(a) hf", "linear", {{0}}, 5e-7, 0, 5, 0, 1, 6, {"1", "0.8", "0.6", "0.4", "0.2", "0"}},
    {"(a) olmo", "linear", {{0}}, 5e-7, 0, 5, 1, 1, 6, {"0.8", "0.6", "0.4", "0.2", "0", "0"}},
    {"(a) olmo alpha_f 0.1",
     "linear",
     {{"min_lr_ratio", 0.1}},
     5e-7,
     0,
     5,
     1,
     1,
     6,
     {"0.82", "0.64", "0.46", "0.28", "0.1", "0.1"}},
    {"(a) xP, P=2", "linear", {{0}}, 5e-7, 0, 5, 0, 2, 5, {"1", "0.6", "0.2", "0", "0"}},
    {"(a) T ignored",
     "linear",
     {{0}},
     5e-7,
     0,
     276,
     1,
     1,
     6,
     {"0.996377", "0.992754", "0.98913", "0.985507", "0.981884", "0.978261"}},
    {"(b) hf",
     "linear",
     {{0}},
     1e-3,
     3,
     10,
     0,
     1,
     10,
     {"0", "0.333333", "0.666667", "1", "0.857143", "0.714286", "0.571429", "0.428571", "0.285714",
      "0.142857"}},
    {"(b) olmo",
     "linear",
     {{0}},
     1e-3,
     3,
     10,
     1,
     1,
     10,
     {"0.333333", "0.666667", "1", "0.857143", "0.714286", "0.571429", "0.428571", "0.285714",
      "0.142857", "0"}},
    {"(b) olmo alpha 0.1",
     "linear",
     {{"min_lr_ratio", 0.1}},
     1e-3,
     3,
     10,
     1,
     1,
     10,
     {"0.333333", "0.666667", "1", "0.871429", "0.742857", "0.614286", "0.485714", "0.357143",
      "0.228571", "0.1"}},
    {"(b) Accelerate P=2",
     "linear",
     {{0}},
     1e-3,
     3,
     10,
     0,
     2,
     7,
     {"0", "0.666667", "0.857143", "0.571429", "0.285714", "0", "0"}},
    {"(b) Accelerate P=2, T rescaled",
     "linear",
     {{0}},
     1e-3,
     3,
     20,
     0,
     2,
     10,
     {"0", "0.666667", "0.941176", "0.823529", "0.705882", "0.588235", "0.470588", "0.352941",
      "0.235294", "0.117647"}},
    {"(b) hf constant_with_warmup",
     "constant",
     {{0}},
     1e-3,
     3,
     10,
     0,
     1,
     6,
     {"0", "0.333333", "0.666667", "1", "1", "1"}},
    {"(c) hf cosine",
     "cosine",
     {{0}},
     1e-3,
     2,
     10,
     0,
     1,
     10,
     {"0", "0.5", "1", "0.96194", "0.853553", "0.691342", "0.5", "0.308658", "0.146447",
      "0.0380602"}},
    {"(c) hf cosine_with_min_lr",
     "cosine",
     {{"min_lr_ratio", 0.1}},
     1e-3,
     2,
     10,
     0,
     1,
     10,
     {"0", "0.5", "1", "0.965746", "0.868198", "0.722208", "0.55", "0.377792", "0.231802",
      "0.134254"}},
    {"(c) olmo",
     "cosine",
     {{"min_lr_ratio", 0.1}},
     1e-3,
     2,
     10,
     1,
     1,
     10,
     {"0.5", "1", "0.965746", "0.868198", "0.722208", "0.55", "0.377792", "0.231802", "0.134254",
      "0.1"}},
    {"(c) Accelerate P=2",
     "cosine",
     {{0}},
     1e-3,
     2,
     10,
     0,
     2,
     10,
     {"0", "1", "0.853553", "0.5", "0.146447", "0", "0.146447", "0.5", "0.853553", "1"}},
    {"past the end, cosine rises",
     "cosine",
     {{0}},
     1.0,
     0,
     10,
     11,
     1,
     10,
     {"0.0244717", "0.0954915", "0.206107", "0.345492", "0.5", "0.654508", "0.793893", "0.904508",
      "0.975528", "1"}},
};

static void validate_golden_tables(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(table_cases); i++) {
        const struct table_case *c = &table_cases[i];
        const struct sched_class *schedule = sched_find(c->schedule);
        const struct sched_call call =
            call_of(schedule, c->lr, c->warmup, c->total, c->settings, COUNT_OF(c->settings));
        for (size_t k = 0; k < c->count; k++) {
            char text[32];
            snprintf(text, sizeof text, "%.6g",
                     schedule->value(&call, c->first + (double)k * c->step) / c->lr);
            if (strcmp(text, c->printed[k]) != 0)
                fail_msg("%s, column %zu: expected %s, got %s", c->name, k + 1, c->printed[k],
                         text);
        }
    }
}

/* The values that Python printed with Hugging Face's lambdas: base_lr * lambda(s), as hex
 * floats. */
static const struct exact_case {
    const char *schedule;
    double lr, warmup, total, first, step;
    size_t count;
    double expected[12];
} exact_cases[] = {
    {"linear",
     5e-7,
     0,
     5,
     0,
     1,
     7,
     {0x1.0c6f7a0b5ed8dp-21, 0x1.ad7f29abcaf48p-22, 0x1.421f5f40d8376p-22, 0x1.ad7f29abcaf48p-23,
      0x1.ad7f29abcaf48p-24, 0.0, 0.0}},
    {"linear",
     1e-3,
     3,
     10,
     0,
     1,
     12,
     {0.0, 0x1.5d867c3ece2a5p-12, 0x1.5d867c3ece2a5p-11, 0x1.0624dd2f1a9fcp-10,
      0x1.c163c450bfed4p-11, 0x1.767dce434a9b1p-11, 0x1.2b97d835d548dp-11, 0x1.c163c450bfed4p-12,
      0x1.2b97d835d548dp-12, 0x1.2b97d835d548dp-13, 0.0, 0.0}},
};

static void validate_linear_bits(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(exact_cases); i++) {
        const struct exact_case *c = &exact_cases[i];
        const struct sched_class *schedule = sched_find(c->schedule);
        const struct sched_call call = call_of(schedule, c->lr, c->warmup, c->total, NULL, 0);
        for (size_t k = 0; k < c->count; k++) {
            const double lr = schedule->value(&call, c->first + (double)k * c->step);
            if (real_bits_f64(lr) != real_bits_f64(c->expected[k]))
                fail_msg("case %zu, k %zu: expected %a, got %a", i, k, c->expected[k], lr);
        }
    }
}

/* The same for the cosine, with c = 1.5 cycles, W = 7, T = 31, s = 0, 5, 10, ... Python uses the C
 * library's cosine, which rounds these correctly, as ours does. */
static void validate_cosine_bits(void **state) {
    (void)state;
    static const double expected[] = {0.0,
                                      0x1.1dcfd5f1d2213p-16,
                                      0x1.14a191660f107p-16,
                                      0.0,
                                      0x1.14a191660f105p-16,
                                      0x1.5589b7499d3fep-16,
                                      0x1.e7565d6810df6p-21,
                                      0x1.9022f8528c94ap-17,
                                      0x1.80e845674c0dep-16,
                                      0x1.d4ca08477aa9bp-19,
                                      0x1.ee059bb1f610bp-18,
                                      0x1.9022f8528c94dp-16,
                                      0x1.ee059bb1f611dp-18,
                                      0x1.d4ca08477aa37p-19,
                                      0x1.80e845674c0dfp-16,
                                      0x1.9022f8528c948p-17};
    const struct setting cycles = {"num_cycles", 1.5};
    const struct sched_class *schedule = sched_find("cosine");
    const double peak = 2.385e-5;
    const struct sched_call call = call_of(schedule, peak, 7, 31, &cycles, 1);
    for (size_t k = 0; k < COUNT_OF(expected); k++) {
        const double lr = schedule->value(&call, 5.0 * (double)k);
        if (real_bits_f64(lr) != real_bits_f64(expected[k]))
            fail_msg("s = %zu: expected %a, got %a", 5 * k, expected[k], lr);
    }
}

static const struct corner_case {
    const char *schedule;
    double warmup, total, counter, expected;
} corner_cases[] = {
    {"constant", 0, 5, 0, 1}, /* W = 0 */
    {"linear", 0, 5, 0, 1},
    {"cosine", 0, 5, 0, 1},
    {"linear", 5, 5, 4, 0.8}, /* T = W: nothing is left after the warm-up */
    {"linear", 5, 5, 5, 0},
    {"linear", 5, 5, 6, 0},
    {"cosine", 5, 5, 4, 0.8},
    {"cosine", 5, 5, 5, 1},
    {"cosine", 5, 5, 6, 0},
    {"constant", 5, 5, 6, 1},
    {"linear", 0, 0, 0, 0}, /* T = 0 */
    {"cosine", 0, 0, 0, 1},
    {"constant", 0, 0, 0, 1},
    {"linear", 8, 5, 4, 0.5}, /* W > T, as when only W was rescaled */
    {"linear", 8, 5, 8, 0},
    {"linear", 4, 8, -3, 0}, /* before 0: f(0) */
    {"linear", 0, 8, -3, 1},
    {"cosine", 0, 8, -3, 1},
    {"constant", 4, 8, -3, 0},
    {"linear", 0.5, 4.5, 2.5, 0.5}, /* Megatron's W is not a whole number */
    {"linear", 0, 8, 0x1p60, 0},
    {"cosine", 0, 8, 0x1p23, 1}, /* whole waves, where our cosine has ended */
    {"cosine", 0, 8, 0x1p23 + 8, 0},
    {"cosine", 0, 8, 0x1p23 + 4, 0.5},
    {"cosine", 0, 8, 0x1p500, 1},
    /* a share of 1 - 2^-40, whose cosine is -1 in f64, so that the LR is 0 and not below */
    {"cosine_with_restarts", 0, 0x1p40, 0x1p40 - 1, 0},
    {"cosine_with_restarts", 0, 0x1p40, 0x1p39, 0.5},
    {"cosine_with_restarts", 0, 0x1p40, 0x1p40, 0},
    /* get_wsd_schedule: no branch is left where warm-up and total end together */
    {"warmup_stable_decay", 3, 3, 3, 0},
    {"warmup_stable_decay", 3, 3, 1.5, 0.5},
    {"warmup_stable_decay_old", 3, 3, 3, 0},
    {"warmup_stable_decay_old", 3, 3, 1.5, 0.5},
    {"torchtitan.linear", 5, 3, 0, 1.0 / 3}, /* build_lr_schedulers cuts W to T */
    {"torchtitan.linear", 5, 3, 2, 1},
};

static void validate_corners(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(corner_cases); i++) {
        const struct corner_case *c = &corner_cases[i];
        const struct sched_class *schedule = sched_find(c->schedule);
        const struct sched_call call = call_of(schedule, 1.0, c->warmup, c->total, NULL, 0);
        const double lr = schedule->value(&call, c->counter);
        /* multipliers of 1 in f64: four ulps, for a handful of operations */
        if (!(real_abs_f64(lr - c->expected) <= 0x1p-50))
            fail_msg("case %zu, %s: expected %.17g, got %.17g", i, c->schedule, c->expected, lr);
    }
}

/* Past the total these follow their framework below 0, where none of its runs goes. */
static const char *const below_zero[] = {"olmo-core.wsd", "olmo-core.power",
                                         "olmo-core.cosine_linear_decay", "torchtitan.linear",
                                         "torchtitan.sqrt"};

static int goes_below(const struct sched_class *schedule) {
    for (size_t i = 0; i < COUNT_OF(below_zero); i++)
        if (strcmp(schedule->name, below_zero[i]) == 0) return 1;
    return 0;
}

/* Whatever the counter is, an LR is a number between 0 and the peak and never -0. One in binary32
 * may lie above a peak that is no binary32 number. */
static void verify_range(void **state) {
    (void)state;
    const struct setting floors[] = {{"min_lr_ratio", 0.0}, {"min_lr_ratio", 0.37}};
    for (size_t s = 0; sched_classes()[s] != NULL; s++)
        for (size_t f = 0; f < COUNT_OF(floors); f++) {
            const struct sched_class *schedule = sched_classes()[s];
            const struct sched_call call = call_of(schedule, 2.385e-5, 13, 97, &floors[f], 1);
            assert_int_equal(schedule->validate(&call), STATUS_OK);
            for (double step = 1.0; step < 1e300; step *= 1.0625) {
                const double lr = schedule->value(&call, step - 50.0);
                if (strcmp(schedule->name, "deepspeed.lr_range_test") == 0) {
                    assert_true(lr > 2.385e-5);
                    continue;
                }
                if (goes_below(schedule) && step - 50.0 > 97.0) {
                    assert_true(lr < 2.385e-5);
                    continue;
                }
                if (!(lr >= 0.0 && lr <= 2.385e-5 * (1 + 0x1p-24)) || real_bits_f64(lr) >> 63 != 0)
                    fail_msg("%s at %g: %a", schedule->name, step - 50.0, lr);
            }
            assert_true(schedule->minimum(&call) <= call.base_lr * (1 + 0x1p-24));
        }
}

/* The multiplier of each schedule one total past its end; W = 2, T = 10, L = 1, floors 0. */
static const struct past_case {
    const char *schedule;
    double counter, expected;
} past_cases[] = {
    {"constant", 20, 1},
    {"constant_with_warmup", 20, 1},
    {"linear", 20, 0},
    {"cosine", 14, 0.5}, /* rises again */
    {"cosine", 18, 1},
    {"cosine_with_min_lr", 18, 1},
    {"cosine_with_restarts", 18, 0}, /* stays */
    {"polynomial", 20, 1e-7},
    {"inverse_sqrt", 20, 0x1.43d136248490fp-2}, /* sqrt(0.1) */
    {"cosine_warmup_with_min_lr", 17, 1},
    {"warmup_stable_decay", 20, 0},
    {"warmup_stable_decay_old", 20, 0},
    {"olmo-core.constant", 20, 1},
    {"olmo-core.constant_with_warmup", 20, 1},
    {"olmo-core.linear", 20, 0},
    {"olmo-core.cosine", 20, 0},
    {"olmo-core.half_cosine", 20, 0},
    {"olmo-core.inverse_sqrt", 50, 0.2},
    {"olmo-core.wsd", 12, -2}, /* D = 1 */
    {"olmo-core.cosine_linear_decay", 10, 0},
    {"megatron.constant", 20, 1},
    {"megatron.linear", 20, 0},
    {"megatron.cosine", 20, 0},
    {"megatron.inverse-square-root", 20, 0},
    {"megatron.inverse-square-root", 8, 0.5},
    {"megatron.wsd", 20, 0},
    {"torchtitan.linear", 10, 0},
    {"torchtitan.linear", 14, -0.5},
    {"torchtitan.cosine", 14, 0.5},
    {"torchtitan.sqrt", 10, 0},
    {"llmc.constant", 20, 1},
    {"llmc.linear", 20, 0},
    {"llmc.cosine", 20, 0},
    {"llmc.wsd", 20, 0},
    {"deepspeed.warmup", 20, 1},
    {"deepspeed.warmup_decay", 20, 0},
    {"deepspeed.warmup_cosine", 20, 0},
    {"deepspeed.warmup_cosine_old", 17, 1},
    {"olmo-core.wsds", 20, 0},
    {"olmo-core.sequential", 20, 0},
    {"deepspeed.one_cycle", 5000, 0},
    {"deepspeed.lr_range_test", 3999, 3}, /* rises without end */
    {"veomni.constant", 20, 1},
    {"veomni.linear", 20, 1e-7},
    {"veomni.cosine", 20, 1e-7},
    {"torch.cosine_annealing", 15, 0.5}, /* and back up */
    {"torch.cosine_annealing", 20, 1},
    {"torch.linear_constant", 20, 1},
    {"torch.one_cycle", 9, 4e-6}, /* the floor; f(T) turns up again and is held */
    {"torch.one_cycle", 10, 0.04951936798652623},
    {"torch.one_cycle", 11, 0.04951936798652623},
    {"torch.one_cycle", 1e9, 0.04951936798652623},
    {"torch.sequential", 10, 1.0 / 3.0}, /* the last stage is ConstantLR: a third, then L */
    {"torch.sequential", 14, 1.0 / 3.0},
    {"torch.sequential", 15, 1},
    {"torch.sequential", 1e9, 1},
    {"olmo-core.composable", 20, 0},
    {"reduce_lr_on_plateau", 12, 1}, /* patience 10: the eleventh bad evaluation is at 13 */
    {"reduce_lr_on_plateau", 13, 0.1},
    {"reduce_lr_on_plateau", 1e9, 0.1}, /* no more evaluations: held */
};

static void validate_past_the_end(void **state) {
    (void)state;
    const struct setting floor = {"min_lr_ratio", 0.0};
    size_t covered = 0;
    for (size_t s = 0; sched_classes()[s] != NULL; s++) {
        size_t cases = 0;
        for (size_t i = 0; i < COUNT_OF(past_cases); i++) {
            const struct past_case *c = &past_cases[i];
            const struct sched_class *schedule = sched_find(c->schedule);
            if (schedule != sched_classes()[s]) continue;
            const struct sched_call call = call_of(schedule, 1.0, 2, 10, &floor, 1);
            const double lr = schedule->value(&call, c->counter);
            ++cases;
            /* the expectations are closed forms; a schedule that is a recursion rounds in every
             * step */
            if (!(real_abs_f64(lr - c->expected) <= 0x1p-40))
                fail_msg("%s at %g: expected %.17g, got %.17g", c->schedule, c->counter,
                         c->expected, lr);
        }
        covered += cases > 0;
    }
    assert_int_equal(covered, 49 - 1); /* power is a formula of its own: below */
    const struct sched_class *power = sched_find("olmo-core.power");
    const struct sched_call call = call_of(power, 1.0, 2, 10, NULL, 0);
    const double before = power->value(&call, 9);
    assert_true(real_abs_f64(power->value(&call, 11) + before) <= 0x1p-50);
}

/* The recursion must give the same bits from the start and from where it stopped, and must agree
 * with the closed form. */
static void corroborate_recursion(void **state) {
    (void)state;
    const struct sched_class *schedule = sched_find("torch.cosine_annealing");
    const struct setting floor = {"min_lr", 1e-5};
    struct sched_call kept = call_of(schedule, 1e-3, 0, 100, &floor, 1);
    struct sched_call fresh = kept;
    fresh.state = NULL;
    for (double s = 0.0; s <= 450.0; s += 1.0) {
        const double lr = schedule->value(&kept, s);
        const double closed = 1e-5 + (1e-3 - 1e-5) * (1.0 + real_cos_f64(PI * s / 100.0)) / 2.0;
        assert_true(real_bits_f64(lr) == real_bits_f64(schedule->value(&fresh, s)));
        /* 450 steps of the recursion, each with some half ulps, stay below 2^-40 of the peak */
        assert_true(real_abs_f64(lr - closed) <= 1e-3 * 0x1p-40);
    }
    assert_true(schedule->value(&kept, 3.0) == schedule->value(&fresh, 3.0)); /* back */
    kept.total = fresh.total = 7.0;
    assert_true(schedule->value(&kept, 5.0) == schedule->value(&fresh, 5.0)); /* other numbers */
}

/* What a recursive schedule keeps may only save time: going there and back must give the bits of a
 * call without it, and so must going on with another base rate, total or parameter, at the counter
 * where the numbers before ended. */
static void verify_state_only_saves_time(void **state) {
    (void)state;
    static const double counters[] = {13, 0, 1, 2, 9, 13, 14, 40, 13, 12, 3, 2, 14, 1e6, 5, 0, 13};
    size_t recursive = 0;
    for (size_t s = 0; sched_classes()[s] != NULL; s++) {
        const struct sched_class *schedule = sched_classes()[s];
        if (schedule->state_size == 0) continue;
        struct sched_call kept = call_of(schedule, 1e-3, 0, 10, NULL, 0);
        struct sched_call fresh = kept;
        fresh.state = NULL;
        ++recursive;
        for (int round = 0; round < 4; round++) {
            if (round == 1) kept.base_lr = fresh.base_lr = 3e-4;
            if (round == 2) kept.total = fresh.total = 11;
            if (round == 3 && sched_row(schedule, "min_lr") != NULL)
                assert_int_equal(sched_values_set(schedule, values, "min_lr", "2e-4"), STATUS_OK);
            if (round == 3 && sched_row(schedule, "stages") != NULL)
                assert_int_equal(sched_values_set(schedule, values, "stages", "cosine:t_max=7"),
                                 STATUS_OK);
            for (size_t i = 0; i < COUNT_OF(counters); i++) {
                const double a = schedule->value(&kept, counters[i]);
                const double b = schedule->value(&fresh, counters[i]);
                if (real_bits_f64(a) != real_bits_f64(b))
                    fail_msg("%s, round %d, at %g: %.17g with state, %.17g without", schedule->name,
                             round, counters[i], a, b);
            }
        }
    }
    assert_int_equal(recursive, 3);
}

/* Texts that are no lists must be refused, and a call with one must give NaN and not crash. */
static void verify_bad_lists(void **state) {
    (void)state;
    static const char *const lists[] = {"",
                                        ",",
                                        ":",
                                        ":::",
                                        "linear",
                                        "linear:",
                                        "linear:1:1,",
                                        ",linear:1:1",
                                        "linear:0:1",
                                        "linear:-1:1",
                                        "linear:nan:1",
                                        "linear:1:1:1:1",
                                        "constant:1:1",
                                        "linear:1:=",
                                        "constant:5:=1=2",
                                        "cosine:5:a=b,linear",
                                        "step:5,constant",
                                        "wsds:5:periods=1"};
    static const char *const schedules[] = {"olmo-core.composable", "torch.sequential",
                                            "olmo-core.sequential"};
    for (size_t s = 0; s < COUNT_OF(schedules); s++)
        for (size_t i = 0; i < COUNT_OF(lists); i++) {
            const struct sched_class *schedule = sched_find(schedules[s]);
            const struct sched_call call = call_of(schedule, 1e-3, 0, 100, NULL, 0);
            assert_int_equal(sched_values_set(schedule, values, "stages", lists[i]), STATUS_OK);
            const enum status status = schedule->validate(&call);
            const int fits = s > 0 && strcmp(lists[i], "linear") == 0; /* one stage is a list */
            if ((status == STATUS_OK) != fits)
                fail_msg("%s: \"%s\": status %d", schedules[s], lists[i], (int)status);
            (void)schedule->value(&call, 3.0);
        }
    const struct sched_class *wsds = sched_find("olmo-core.wsds");
    static const char *const periods[] = {"", ",", "5,", "5,x", "5,0", "-5", "nan", "1e999"};
    for (size_t i = 0; i < COUNT_OF(periods); i++) {
        const struct sched_call call = call_of(wsds, 1e-3, 0, 100, NULL, 0);
        assert_int_equal(sched_values_set(wsds, values, "periods", periods[i]), STATUS_OK);
        assert_int_equal(wsds->validate(&call), STATUS_INPUT);
        (void)wsds->value(&call, 3.0);
    }
    char longest[256];
    memset(longest, '1', sizeof longest);
    longest[255] = '\0';
    assert_int_equal(sched_values_set(wsds, values, "periods", longest), STATUS_INPUT);
    assert_non_null(strstr(status_text(), "expected at most 95 characters, got 255"));
}

/* Lengths of a list count length_unit: a list in units of 4 is the list of four times its lengths,
 * bit for bit. Those that are not given stay automatic. */
static void verify_lengths_count_units(void **state) {
    (void)state;
    static const struct {
        const char *schedule, *key, *fours, *ones;
        const char *override[2]; /* of a schedule that has one */
    } lists[] = {
        {"olmo-core.sequential",
         "stages",
         "wsd:10:warmup=1:decay=1,linear:5:warmup=2,wsd:decay=4",
         "wsd:40:warmup=4:decay=4,linear:20:warmup=8,wsd:decay=16",
         {NULL}},
        {"olmo-core.sequential",
         "stages",
         "wsds:20:period=10:decay=3,wsd",
         "wsds:80:period=40:decay=12,wsd",
         {NULL}},
        {"olmo-core.composable",
         "stages",
         "linear:1:0:1,cosine:10:0.1",
         "linear:4:0:1,cosine:40:0.1",
         {NULL}},
        {"olmo-core.composable",
         "stages",
         "linear:1:0:1,cosine:10:0.1",
         "linear:4:0:1,cosine:40:0.1",
         {"linear:5:10:0", "linear:20:40:0"}},
        {"torch.sequential",
         "stages",
         "linear:1:start_factor=0.5:total_iters=1,cosine:t_max=9",
         "linear:4:start_factor=0.5:total_iters=4,cosine:t_max=36",
         {NULL}},
        {"torch.sequential",
         "stages",
         "linear:5:start_factor=0.25:end_factor=0.75:total_iters=4,step:10:step_size=2:gamma=0.5,"
         "polynomial:total_iters=4:power=2",
         "linear:20:start_factor=0.25:end_factor=0.75:total_iters=16,step:40:step_size=8:gamma=0.5,"
         "polynomial:total_iters=16:power=2",
         {NULL}},
        {"olmo-core.wsds", "periods", "5,7,12", "20,28,48", {NULL}},
    };
    for (size_t i = 0; i < COUNT_OF(lists); i++) {
        const struct sched_class *schedule = sched_find(lists[i].schedule);
        double rates[121];
        for (int ones = 0; ones < 2; ones++) {
            const struct sched_call call = call_of(schedule, 1e-3, 0, 120, NULL, 0);
            assert_int_equal(sched_values_set(schedule, values, lists[i].key,
                                              ones ? lists[i].ones : lists[i].fours),
                             STATUS_OK);
            if (lists[i].override[0] != NULL)
                assert_int_equal(
                    sched_values_set(schedule, values, "override_decay", lists[i].override[ones]),
                    STATUS_OK);
            assert_int_equal(sched_values_set(schedule, values, "length_unit", ones ? "1" : "4"),
                             STATUS_OK);
            if (schedule->validate(&call) != STATUS_OK) fail_msg("%zu: %s", i, status_text());
            for (size_t c = 0; c < COUNT_OF(rates); c++) {
                const double rate = schedule->value(&call, (double)c);
                if (ones && real_bits_f64(rate) != real_bits_f64(rates[c]))
                    fail_msg("%s at %zu: %.17g for %s, %.17g for %s", lists[i].schedule, c,
                             rates[c], lists[i].fours, rate, lists[i].ones);
                rates[c] = rate;
            }
        }
    }
}

/* The update at which a warm-up ends is the cosine's first (scheduler.py: `current < warmup`). In
 * Python, 6e-5 + (6e-4 - 6e-5) * (1 + cos(0)) / 2 is an ulp below 6e-4. */
static void validate_the_end_of_a_warmup(void **state) {
    (void)state;
    const struct setting floor = {"min_lr_ratio", 0.1};
    const struct sched_class *cosine = sched_find("olmo-core.cosine");
    struct sched_call call = call_of(cosine, 6e-4, 4, 10, &floor, 1);
    assert_true(cosine->value(&call, 4) == 0.0005999999999999998);
    assert_true(cosine->value(&call, 2) == 0.0003);
}

/* Powers that a double holds, above 1 as below: polynomial goes above where W > T, exponential with
 * gamma > 1. */
static void validate_powers(void **state) {
    (void)state;
    static const double powers[][3] = {{2, 10, 1024},      {1.5, 3, 3.375},   {10, 5, 1e5},
                                       {0.5, 10, 0x1p-10}, {0.75, 2, 0.5625}, {4, 0.5, 2},
                                       {0.25, 0.5, 0.5},   {3, -1, 1.0 / 3},  {1, 7, 1}};
    for (size_t i = 0; i < COUNT_OF(powers); i++)
        if (sched_pow(powers[i][0], powers[i][1]) != powers[i][2])
            fail_msg("%g^%g: %a", powers[i][0], powers[i][1],
                     sched_pow(powers[i][0], powers[i][1]));
}

/* PolynomialLR.get_lr multiplies by ((1 - t/T) / (1 - (t-1)/T))**power, and 0.0**0 is 1 in Python:
 * a power of 0 moves nothing, at the last step neither. Any other one ends at 0. */
static void validate_a_polynomial_of_power_0(void **state) {
    (void)state;
    const struct sched_class *sequential = sched_find("torch.sequential");
    const struct sched_call call = call_of(sequential, 1e-3, 0, 8, NULL, 0);
    assert_int_equal(sched_values_set(sequential, values, "length_unit", "1"), STATUS_OK);
    assert_int_equal(
        sched_values_set(sequential, values, "stages", "polynomial:total_iters=4:power=0"),
        STATUS_OK);
    for (int c = 0; c <= 8; c++)
        assert_true(sequential->value(&call, c) == 1e-3);
    assert_int_equal(
        sched_values_set(sequential, values, "stages", "polynomial:total_iters=4:power=0.5"),
        STATUS_OK);
    assert_true(sequential->value(&call, 3) > 0.0);
    for (int c = 4; c <= 8; c++)
        assert_true(sequential->value(&call, c) == 0.0);
}

/* The defaults of torch's signatures: ConstantLR(factor=1/3, total_iters=5), LinearLR(1/3, 1.0, 5),
 * PolynomialLR(total_iters=5, power=1.0), StepLR(gamma=0.1), CosineAnnealingLR(eta_min=0); T_max is
 * here the total. Their closed forms, at an LR of 1; 1e-12 allows for the recursive ones. */
static void validate_stages_without_parts(void **state) {
    (void)state;
    static const struct {
        const char *stages;
        double rates[11];
    } rows[] = {
        {"constant", {1 / 3., 1 / 3., 1 / 3., 1 / 3., 1 / 3., 1, 1, 1, 1, 1, 1}},
        {"linear", {5 / 15., 7 / 15., 9 / 15., 11 / 15., 13 / 15., 1, 1, 1, 1, 1, 1}},
        {"polynomial", {1, 0.8, 0.6, 0.4, 0.2, 0, 0, 0, 0, 0, 0}},
        {"step:step_size=3", {1, 1, 1, 0.1, 0.1, 0.1, 0.01, 0.01, 0.01, 0.001, 0.001}},
        {"cosine",
         {1, 0.975528258147577, 0.904508497187474, 0.793892626146237, 0.654508497187474, 0.5,
          0.345491502812526, 0.206107373853763, 0.095491502812526, 0.024471741852423, 0}},
    };
    const struct sched_class *sequential = sched_find("torch.sequential");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct sched_call call = call_of(sequential, 1.0, 0, 10, NULL, 0);
        assert_int_equal(sched_values_set(sequential, values, "length_unit", "1"), STATUS_OK);
        assert_int_equal(sched_values_set(sequential, values, "stages", rows[i].stages), STATUS_OK);
        for (int c = 0; c <= 10; c++) {
            const double rate = sequential->value(&call, c);
            if (!(real_abs_f64(rate - rows[i].rates[c]) <= 1e-12))
                fail_msg("%s at %d: expected %.15g, got %.15g", rows[i].stages, c, rows[i].rates[c],
                         rate);
        }
    }
}

/* The wave of a cosine is as long as its stage where t_max is not given, be that one step, whatever
 * the total is; a last stage has what the total leaves, of which it needs a step. */
static void validate_short_stages(void **state) {
    (void)state;
    const struct sched_class *const sequential = sched_find("torch.sequential");
    static const char *const stages[] = {"cosine:1,constant:factor=1", "constant:1,cosine"};
    for (size_t i = 0; i < COUNT_OF(stages); i++)
        for (int total = 0; total < 4; total++) {
            const struct sched_call call = call_of(sequential, 1.0, 0, total, NULL, 0);
            assert_int_equal(sched_values_set(sequential, values, "length_unit", "1"), STATUS_OK);
            assert_int_equal(sched_values_set(sequential, values, "stages", stages[i]), STATUS_OK);
            assert_int_equal(sequential->validate(&call),
                             i == 0 || total > 1 ? STATUS_OK : STATUS_INPUT);
            if (i == 0) assert_true(sequential->value(&call, 0) == 1.0);
        }
}

/* OneCycleLR's phases end at T - 1, and f(T), its last value, lies one step past the floor: at 6/5
 * of the last of three phases (ends 2, 4, 9 of a total of 10), or 8/7 of the last of two (ends 2,
 * 9). */
static void validate_the_last_step_of_a_cycle(void **state) {
    (void)state;
    const struct sched_class *const cycle = sched_find("torch.one_cycle");
    for (int phases = 2; phases < 4; phases++) {
        const struct sched_call call = call_of(cycle, 1.0, 0, 10, NULL, 0);
        const double start = 1.0 / 25.0, low = start / 1e4;
        const double from = phases == 2 ? 1.0 : start, past = phases == 2 ? 8.0 / 7.0 : 1.2;
        if (phases == 3)
            assert_int_equal(sched_values_set(cycle, values, "three_phase", "true"), STATUS_OK);
        const double want = low + (from - low) / 2.0 * (1.0 + cos(past * acos(-1.0)));
        for (int counter = 10; counter < 13; counter++)
            assert_true(real_abs_f64(cycle->value(&call, counter) - want) <= 0x1p-48);
        assert_true(real_abs_f64(cycle->value(&call, 9) - low) <= 0x1p-48);
        assert_true(real_abs_f64(cycle->value(&call, 2) - 1.0) <= 0x1p-48);
        assert_true(real_abs_f64(cycle->value(&call, 0) - start) <= 0x1p-48);
        if (phases == 3) assert_true(real_abs_f64(cycle->value(&call, 4) - start) <= 0x1p-48);
    }
}

/* get_wsd_schedule fills in num_stable_steps where it is None; 0 is a plateau of no length, so the
 * decay of 4 begins at once and has ended at 4. */
static void validate_a_plateau_of_no_length(void **state) {
    (void)state;
    const struct setting lengths[] = {{"stable", 0}, {"decay", 4}};
    const struct sched_class *stable = sched_find("warmup_stable_decay");
    struct sched_call call = call_of(stable, 1.0, 0, 8, lengths, 2);
    assert_true(real_abs_f64(stable->value(&call, 2) - 0.5) <= 0x1p-50);
    assert_true(stable->value(&call, 6) == 0.0);
    call = call_of(stable, 1.0, 0, 8, &lengths[1], 1); /* auto: a plateau of 4 */
    assert_true(stable->value(&call, 2) == 1.0);
    assert_true(real_abs_f64(stable->value(&call, 6) - 0.5) <= 0x1p-50);
}

/* What _get_wsd_scheduler_lambda of transformers 4.48.3 itself returned (its source, run by CPython
 * 3.11): a warm-up of 4, a plateau of 3, a decay of 6, of half a wave to 0.1 and of one and a half
 * to 0.25. The warm-up rises from 0, where that of 4.49.0 begins at the floor. */
static void validate_an_elder_plateau(void **state) {
    (void)state;
    static const double rates[2][15] = {{0.0, 0.25, 0.5, 0.75, 1.0, 1.0, 1.0, 1.0,
                                         0.9397114317029974, 0.775, 0.55, 0.3250000000000001,
                                         0.16028856829700258, 0.1, 0.1},
                                        {0.0, 0.25, 0.5, 0.75, 1.0, 1.0, 1.0, 1.0, 0.625, 0.25,
                                         0.6249999999999999, 1.0, 0.6250000000000001, 0.25, 0.25}};
    const struct sched_class *const elder = sched_find("warmup_stable_decay_old");
    for (size_t i = 0; i < 2; i++) {
        const struct setting settings[] = {{"decay", 6},
                                           {"min_lr_ratio", i == 0 ? 0.1 : 0.25},
                                           {"num_cycles", i == 0 ? 0.5 : 1.5}};
        struct sched_call call = call_of(elder, 1.0, 4, 13, settings, COUNT_OF(settings));
        for (int s = 0; s < 15; s++)
            if (!(real_abs_f64(elder->value(&call, s) - rates[i][s]) <= 0x1p-52))
                fail_msg("%d: %.17g for %.17g", s, elder->value(&call, s), rates[i][s]);
        assert_true(elder->minimum(&call) == settings[1].value);
    }
}

static void validate_minimum(void **state) {
    (void)state;
    const struct setting floor = {"min_lr_ratio", 0.25};
    struct sched_call call = call_of(sched_find("linear"), 2.0, 0, 5, &floor, 1);
    assert_true(sched_find("linear")->minimum(&call) == 0.5);
    assert_true(sched_find("linear")->value(&call, 5) == 0.5);
    call = call_of(sched_find("cosine"), 2.0, 0, 5, &floor, 1);
    assert_true(sched_find("cosine")->minimum(&call) == 0.5);
    call = call_of(sched_find("constant"), 2.0, 0, 5, NULL, 0);
    assert_true(sched_find("constant")->minimum(&call) == 2.0);
}

static void validate_registry(void **state) {
    (void)state;
    size_t count = 0;
    for (; sched_classes()[count] != NULL; count++) {
        const struct sched_class *schedule = sched_classes()[count];
        assert_ptr_equal(sched_find(schedule->name), schedule);
        assert_true(schedule->size == sizeof *schedule);
        assert_true(schedule->values_size <= 256);
        assert_true(strlen(schedule->help) > 20);
    }
    assert_int_equal(count, 49);
    assert_ptr_equal(sched_find_in("hf", "cosine"), sched_find("cosine"));
    assert_ptr_equal(sched_find_in("olmo-core", "cosine"), sched_find("olmo-core.cosine"));
    assert_ptr_equal(sched_find_in("olmo-core", "hf.cosine"), sched_find("cosine"));
    assert_ptr_equal(sched_find_in("hf", "megatron.wsd"), sched_find("megatron.wsd"));
    assert_null(sched_find_in("torchtune", "cosine"));
    assert_null(sched_find_in("olmo-core", "polynomial"));
    assert_null(sched_find_in("olmo", "cosine"));
    assert_null(sched_find("cosin"));
    assert_null(sched_find(""));
}

static void validate_refusals(void **state) {
    (void)state;
    const struct sched_class *schedule = sched_find("linear");
    struct sched_call call = call_of(schedule, 1e-3, 3, 10, NULL, 0);
    assert_int_equal(schedule->validate(&call), STATUS_OK);
    call.warmup = 11; /* Hugging Face takes it, too */
    assert_int_equal(schedule->validate(&call), STATUS_OK);
    call.warmup = -1;
    assert_int_equal(schedule->validate(&call), STATUS_INPUT);
    assert_non_null(
        strstr(status_text(), "schedule.warmup: expected a finite number >= 0, got -1"));
    call.warmup = 3;
    call.base_lr = real_nan_f64();
    assert_int_equal(schedule->validate(&call), STATUS_INPUT);
    assert_non_null(strstr(status_text(), "optimizer.lr"));
    call.base_lr = 1e-3;
    call.total = real_inf_f64();
    assert_int_equal(schedule->validate(&call), STATUS_INPUT);
    assert_non_null(strstr(status_text(), "schedule.total"));
    call.total = 10;
    call.size--;
    assert_int_equal(schedule->validate(&call), STATUS_INTERNAL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_golden_tables),
        cmocka_unit_test(validate_linear_bits),
        cmocka_unit_test(validate_cosine_bits),
        cmocka_unit_test(validate_corners),
        cmocka_unit_test(verify_range),
        cmocka_unit_test(validate_the_end_of_a_warmup),
        cmocka_unit_test(validate_an_elder_plateau),
        cmocka_unit_test(validate_minimum),
        cmocka_unit_test(validate_a_plateau_of_no_length),
        cmocka_unit_test(validate_the_last_step_of_a_cycle),
        cmocka_unit_test(validate_short_stages),
        cmocka_unit_test(validate_powers),
        cmocka_unit_test(validate_a_polynomial_of_power_0),
        cmocka_unit_test(validate_stages_without_parts),
        cmocka_unit_test(validate_past_the_end),
        cmocka_unit_test(corroborate_recursion),
        cmocka_unit_test(verify_state_only_saves_time),
        cmocka_unit_test(verify_bad_lists),
        cmocka_unit_test(verify_lengths_count_units),
        cmocka_unit_test(validate_registry),
        cmocka_unit_test(validate_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

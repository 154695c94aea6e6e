/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What optimizers refuse of their parameters, each end from both sides; which share of a moment a
 * gradient has, how many elements a slot has, and who holds where a gradient is not finite; and
 * what the direction of Adam's variants leaves open, by the roundings of their sources. */
#include "optim/optim.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <math.h>
#include <string.h>
#include <cmocka.h>

#include "base/macro.h"
#include "optim/direction.h"
#include "optim/spread.h"
#include "tests/optim/helper_optim.h"

#define NONE ((double)NAN)
#define ENDLESS ((double)INFINITY)
#define BELOW_ONE 0x1.fffffffffffffp-1
#define ABOVE_ONE 0x1.0000000000001p+0
#define TINY 0x1p-1074

static unsigned char values[HELPER_VALUES];

/* Sets a parameter to a number, whatever its row would say of it. */
static void put(const struct optim_class *class_, const char *key, double value) {
    for (size_t k = 0; k < class_->key_count; k++) {
        const struct key_row *const row = &class_->keys[k];
        const int32_t index = row->type == KEY_ENUM ? (int32_t)value : 0;
        if (strcmp(row->path, key) != 0) continue;
        if (row->type == KEY_REAL) memcpy(values + row->offset, &value, sizeof value);
        if (row->type == KEY_ENUM) memcpy(values + row->offset, &index, sizeof index);
        if (row->type == KEY_BOOL) values[row->offset] = value != 0.0;
        return;
    }
    fail_msg("%s has no key %s", class_->name, key);
}

struct setting {
    const char *key;
    double value;
};

static const struct refusal {
    const char *class_name;
    struct setting settings[3];
    int is_taken;
} refusals[] = {
    {"sgd", {{"momentum", 0.0}}, 1},
    {"sgd", {{"momentum", -TINY}}, 0},
    {"sgd", {{"momentum", ENDLESS}}, 0},
    {"sgd", {{"momentum", NONE}}, 0},
    {"sgd", {{"dampening", -1.0}}, 1},
    {"sgd", {{"dampening", NONE}}, 0},
    {"sgd", {{"dampening", -ENDLESS}}, 0},
    {"sgd", {{"variant", -1}}, 0},
    {"sgd", {{"variant", 1}}, 1},
    {"sgd", {{"variant", 2}}, 0},
    {"sgd", {{"nesterov", 1}}, 0},
    {"sgd", {{"nesterov", 1}, {"momentum", TINY}}, 1},
    {"sgd", {{"nesterov", 1}, {"momentum", 0.5}, {"dampening", TINY}}, 0},
    {"lion", {{"beta1", 0.0}}, 1},
    {"lion", {{"beta1", -TINY}}, 0},
    {"lion", {{"beta1", 1.0}}, 1},
    {"lion", {{"beta1", ABOVE_ONE}}, 0},
    {"lion", {{"beta1", NONE}}, 0},
    {"lion", {{"beta2", 0.0}}, 1},
    {"lion", {{"beta2", -TINY}}, 0},
    {"lion", {{"beta2", 1.0}}, 1},
    {"lion", {{"beta2", ABOVE_ONE}}, 0},
    {"lion", {{"beta2", NONE}}, 0},
    {"lion", {{"variant", -1}}, 0},
    {"lion", {{"variant", 1}}, 1},
    {"lion", {{"variant", 2}}, 0},
    {"lion", {{"on_nonfinite", -1}}, 0},
    {"lion", {{"on_nonfinite", 2}}, 1},
    {"lion", {{"on_nonfinite", 3}}, 0},
    {"adafactor", {{"eps1", 0.0}}, 1},
    {"adafactor", {{"eps1", -TINY}}, 0},
    {"adafactor", {{"eps1", NONE}}, 0},
    {"adafactor", {{"eps2", 0.0}}, 1},
    {"adafactor", {{"eps2", -TINY}}, 0},
    {"adafactor", {{"eps2", NONE}}, 0},
    {"adafactor", {{"clip_threshold", TINY}}, 1},
    {"adafactor", {{"clip_threshold", 0.0}}, 0},
    {"adafactor", {{"clip_threshold", NONE}}, 0},
    {"adafactor", {{"decay_rate", 0.0}}, 1},
    {"adafactor", {{"decay_rate", TINY}}, 0},
    {"adafactor", {{"decay_rate", NONE}}, 0},
    {"adafactor", {{"beta1", 0.0}}, 1},
    {"adafactor", {{"beta1", 1.0}}, 1},
    {"adafactor", {{"beta1", -TINY}}, 0},
    {"adafactor", {{"beta1", ABOVE_ONE}}, 0},
    {"adafactor", {{"warmup_init", 1}}, 0},
    {"adafactor", {{"warmup_init", 1}, {"relative_step", 1}}, 1},
    {"adafactor", {{"relative_step", 1}}, 1},
};

static void validate_refusals(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(refusals); i++) {
        const struct refusal *const of = &refusals[i];
        const struct optim_class *const class_ = helper_values(of->class_name, NULL, 0, values);
        assert_int_equal(class_->validate(values), STATUS_OK);
        for (size_t k = 0; k < COUNT_OF(of->settings) && of->settings[k].key != NULL; k++)
            put(class_, of->settings[k].key, of->settings[k].value);
        if (class_->validate(values) != (of->is_taken ? STATUS_OK : STATUS_INPUT))
            fail_msg("case %zu: %s, %s %g", i, of->class_name, of->settings[0].key,
                     of->settings[0].value);
    }
}

/* The order of the variants' names; Adam with L2 decay has the first five. */
enum { TORCH, TORCH_CPU, CAPTURABLE, FUSED, APEX, LLM_C, OLMO, OLMO_FOREACH, HF_LEGACY, VARIANTS };

static int is_olmo(int variant) {
    return variant == OLMO || variant == OLMO_FOREACH;
}

static void validate_adam(void **state) {
    (void)state;
    static const char *const names[] = {"adamw", "adam"};
    static const struct {
        const char *key;
        double value;
        int is_taken;
    } numbers[] = {{"beta1", 0.0, 1},
                   {"beta1", -TINY, 0},
                   {"beta1", BELOW_ONE, 1},
                   {"beta1", 1.0, 0},
                   {"beta1", NONE, 0},
                   {"beta2", 0.0, 1},
                   {"beta2", -TINY, 0},
                   {"beta2", BELOW_ONE, 1},
                   {"beta2", 1.0, 0},
                   {"beta2", NONE, 0},
                   {"eps", 0.0, 1},
                   {"eps", -TINY, 0},
                   {"eps", ENDLESS, 0},
                   {"eps", NONE, 0},
                   {"t", -1, 0},
                   {"t", 0, 1},
                   {"t", 3, 1},
                   {"t", 4, 0},
                   {"on_nonfinite", -1, 0},
                   {"on_nonfinite", 2, 1},
                   {"on_nonfinite", 4, 0}};
    for (int l2 = 0; l2 < 2; l2++) {
        for (size_t i = 0; i < COUNT_OF(numbers); i++) {
            const struct optim_class *const class_ = helper_values(names[l2], NULL, 0, values);
            put(class_, numbers[i].key, numbers[i].value);
            if (class_->validate(values) != (numbers[i].is_taken ? STATUS_OK : STATUS_INPUT))
                fail_msg("%s: %s %g", names[l2], numbers[i].key, numbers[i].value);
        }
        for (int variant = -1; variant <= VARIANTS; variant++)
            for (int amsgrad = 0; amsgrad < 2; amsgrad++)
                for (int corrects = 0; corrects < 2; corrects++)
                    for (int nonfinite = 0; nonfinite < 4; nonfinite++) {
                        const struct optim_class *const class_ =
                            helper_values(names[l2], NULL, 0, values);
                        put(class_, "variant", variant);
                        put(class_, "amsgrad", amsgrad);
                        put(class_, "bias_correction", corrects);
                        put(class_, "on_nonfinite", nonfinite);
                        const int taken = variant >= 0 && variant < (l2 ? LLM_C : VARIANTS) &&
                                          (!amsgrad || variant <= FUSED) &&
                                          (corrects || variant == APEX || variant == HF_LEGACY) &&
                                          (nonfinite != 3 || is_olmo(variant));
                        if (class_->validate(values) != (taken ? STATUS_OK : STATUS_INPUT))
                            fail_msg("%s: variant %d, amsgrad %d, correction %d, nonfinite %d",
                                     names[l2], variant, amsgrad, corrects, nonfinite);
                        if (!taken) continue;
                        /* by default the fused kernel holds, and OLMo-core multiplies by 0 */
                        const int holds = nonfinite == 2 || (nonfinite == 0 && variant == FUSED);
                        assert_int_equal(optim_holds(class_, values) != 0, holds);
                    }
    }
    for (int nonfinite = 0; nonfinite < 3; nonfinite++) {
        const struct optim_class *const lion = helper_values("lion", NULL, 0, values);
        put(lion, "on_nonfinite", nonfinite);
        assert_int_equal(optim_holds(lion, values) != 0, nonfinite == 1);
    }
    assert_false(optim_holds(helper_values("sgd", NULL, 0, values), values));
    assert_false(optim_holds(helper_values("adafactor", NULL, 0, values), values));
}

/* A step makes the moment keep * moment + take * gradient. */
static void validate_moments(void **state) {
    (void)state;
    for (uint64_t t = 1; t < 4; t++)
        for (int has = 0; has < 2; has++) {
            double keep = NONE, take = NONE;
            const struct optim_class *class_ = helper_values("sgd", NULL, 0, values);
            put(class_, "momentum", has ? 0.75 : 0.0);
            put(class_, "dampening", 0.25);
            assert_int_equal(class_->moment(values, t, &keep, &take) != 0, has);
            assert_true(!has || keep == (t == 1 ? 0.0 : 0.75));
            assert_true(!has || take == (t == 1 ? 1.0 : 0.75));
            class_ = helper_values("lion", NULL, 0, values);
            put(class_, "beta1", 0.5);
            put(class_, "beta2", 0.875);
            assert_true(class_->moment(values, t, &keep, &take) != 0);
            assert_true(keep == 0.875 && take == 0.125);
            class_ = helper_values(has ? "adam" : "adamw", NULL, 0, values);
            put(class_, "beta1", 0.75);
            put(class_, "beta2", 0.5);
            assert_true(class_->moment(values, t, &keep, &take) != 0);
            assert_true(keep == 0.75 && take == 0.25);
        }
    assert_null(optim_find("adafactor")->moment);
}

static void validate_slots(void **state) {
    (void)state;
    static const uint64_t shapes[][2] = {{3, 1}, {1, 1}, {3, 5}, {1, 5}, {0, 1}};
    for (size_t s = 0; s < COUNT_OF(shapes); s++)
        for (uint32_t rank = 1; rank < 3; rank++) {
            const uint64_t *const shape = shapes[s], all = shape[0] * shape[1];
            if (rank == 1 && shape[1] > 1) continue;
            const struct optim_class *class_ = helper_values("sgd", NULL, 0, values);
            assert_int_equal(optim_slot_elements(class_, values, 0, rank, shape), all);
            class_ = helper_values("lion", NULL, 0, values);
            assert_int_equal(optim_slot_elements(class_, values, 0, rank, shape), all);
            for (int amsgrad = 0; amsgrad < 2; amsgrad++)
                for (uint32_t slot = 0; slot < 3; slot++) {
                    class_ = helper_values("adamw", NULL, 0, values);
                    put(class_, "amsgrad", amsgrad);
                    assert_int_equal(optim_slot_elements(class_, values, slot, rank, shape),
                                     slot < 2 || amsgrad ? all : 0);
                }
            for (int averaged = 0; averaged < 2; averaged++) {
                class_ = helper_values("adafactor", NULL, 0, values);
                if (averaged) put(class_, "beta1", 0.0);
                /* rows and columns of matrices, all of vectors, and the mean where there is one */
                const uint64_t want[] = {rank == 2 ? shape[0] : 0, rank == 2 ? shape[1] : 0,
                                         rank == 2 ? 0 : shape[0], averaged ? all : 0};
                for (uint32_t slot = 0; slot < COUNT_OF(want); slot++)
                    assert_int_equal(optim_slot_elements(class_, values, slot, rank, shape),
                                     want[slot]);
            }
        }
}

/* Kernels of one piece step by moments that were not rounded to the slots' dtype yet; capturable
 * rounds the root, the quotient and the sum with eps, the last two divided by the step's size; and
 * OLMo-core rounds the update, and its product with the LR and with the factor. */
static void validate_slack_of_adam(void **state) {
    (void)state;
    static const enum dtype dtypes[] = {DTYPE_F64, DTYPE_F32, DTYPE_F16, DTYPE_BF16};
    static const double digits[] = {52, 23, 10, 7}, least[] = {-1074, -149, -24, -133};
    static struct helper_tensor tensor;
    for (int variant = 0; variant < VARIANTS; variant++)
        for (size_t p = 0; p < COUNT_OF(dtypes); p++)
            for (size_t s = 0; s < COUNT_OF(dtypes); s++)
                for (int k = 0; k < 4; k++) {
                    const struct optim_class *const class_ =
                        helper_values("adamw", NULL, 0, values);
                    const struct optim_group group = {(k & 1) != 0 ? 0x1p-9 : 0.0,
                                                      (k & 2) != 0 ? 0.5 : 0.0};
                    uint64_t t = 3;
                    put(class_, "variant", variant);
                    helper_open(&tensor, 1,
                                (struct helper_dtypes){dtypes[p], dtypes[p], dtypes[s], -1}, 1);
                    const struct optim_call call =
                        helper_call(&tensor.tensor, 1, &group, 1, &t, values);
                    const struct rule_direction rule = optim_direction_rule(class_, &call, 0);
                    const struct rule_slack *const slack = &rule.slack;
                    const int one = variant >= FUSED && variant <= LLM_C;
                    const int scaled = variant == CAPTURABLE, olmo = is_olmo(variant);
                    const int wide = p == 0 || s == 0;
                    assert_int_equal(rule.is_wide != 0, wide);
                    const double half = exp2(-digits[s] - 1.0);
                    const double under = s == 0 ? 0.0 : exp2(least[s] - 1.0);
                    const double size = group.lr > 0.0 ? group.lr / rule.correction1 : 1.0;
                    const double f32s = 8.0 * 0x1p-24;
                    /* beta2 is 0.999, and the count 3; f32 corrections are off by 2^-24 of 1 */
                    const double root = sqrt(1.0 - 0.999 * 0.999 * 0.999);
                    const double decayed = 1.0 - group.lr * group.weight_decay;
                    const double factor = variant == HF_LEGACY ? decayed * root : 1.0;
                    assert_true(fabs(rule.factor - factor) <= 1e-4 * factor);
                    if (variant == HF_LEGACY) assert_true(rule.root == 1.0);
                    assert_int_equal(slack->is_on != 0, s == 2 || p == 2 || digits[s] < digits[p]);
                    assert_true(slack->first_unit == (one ? half : 0.0));
                    assert_true(slack->second_unit == (one ? half : 0.0));
                    assert_true(slack->first_least == (one ? under : 0.0));
                    assert_true(slack->second_least == (one ? under : 0.0));
                    assert_true(slack->under_unit == (scaled ? 3.0 * half : 0.0));
                    const double below = scaled ? under * (1.0 / rule.root + 2.0 * size) : 0.0;
                    assert_true(fabs(slack->under_least - below) <= 0x1p-50 * fabs(below));
                    assert_true(slack->under_most == (scaled && s == 2 ? 65504.0 * size : ENDLESS));
                    assert_true(slack->unit == (olmo ? 3.0 * half : 0.0));
                    const double lost = olmo ? under / rule.correction1 +
                                                   (group.lr > 0.0 ? 2.0 * under / group.lr : 0.0)
                                             : 0.0;
                    assert_true(fabs(slack->least - lost) <= 0x1p-50 * lost);
                    assert_true(slack->lr_unit == (wide && olmo ? f32s : 0.0));
                    assert_true(slack->taken_unit == (wide && olmo ? f32s : 0.0));
                    assert_true(slack->shrink_least ==
                                (wide && olmo && group.weight_decay != 0.0 ? 0x1p-24 : 0.0));
                }
}

/* With a mean of updates the direction is that mean, which is told only where it is 0; decay is
 * told in any case. */
static void validate_direction_of_a_mean(void **state) {
    (void)state;
    static struct helper_tensor tensor;
    static const struct helper_dtypes dtypes = {DTYPE_F32, DTYPE_F32, DTYPE_F32, -1};
    const struct optim_class *const class_ = helper_values("adafactor", NULL, 0, values);
    const struct optim_group group = {1e-3, 0.5};
    uint64_t t = 1;
    double out[3];
    put(class_, "beta1", 0.5);
    for (size_t other = 0; other <= 3; other++) {
        helper_open(&tensor, 3, dtypes, 1);
        helper_gradient(&tensor, 2, 0);
        for (size_t i = 0; i < 3; i++) {
            helper_set(tensor.before, DTYPE_F32, i, 4.0 * (double)(i + 1));
            helper_set(tensor.slot[2], DTYPE_F32, i, 0.25);
            helper_set(tensor.slot[3], DTYPE_F32, i, i == other ? 0.5 : 0.0);
        }
        const struct optim_call call = helper_call(&tensor.tensor, 1, &group, 1, &t, values);
        assert_int_equal(class_->direction(&call, 0, tensor.before, out), STATUS_OK);
        for (size_t i = 0; i < 3; i++)
            assert_true(i == other ? isnan(out[i]) : other < 3 || out[i] == 2.0 * (double)(i + 1));
    }
}

/* Of gradients that are 0 Lion's direction is the sign of the mean, and the decay's share. */
static void validate_direction_of_lion(void **state) {
    (void)state;
    static struct helper_tensor tensor;
    static const struct helper_dtypes dtypes = {DTYPE_F32, DTYPE_F32, DTYPE_F32, -1};
    static const double means[] = {0.25, -3.0, 0.0, 1.0}, signs[] = {1.0, -1.0, 0.0, 1.0};
    const struct optim_class *const class_ = helper_values("lion", NULL, 0, values);
    const struct optim_group group = {1e-3, 0.5};
    uint64_t t = 1;
    double out[COUNT_OF(means)];
    helper_open(&tensor, COUNT_OF(means), dtypes, 1);
    for (size_t i = 0; i < COUNT_OF(means); i++) {
        helper_set(tensor.before, DTYPE_F32, i, 4.0 * (double)i);
        helper_set(tensor.slot[0], DTYPE_F32, i, means[i]);
    }
    const struct optim_call call = helper_call(&tensor.tensor, 1, &group, 1, &t, values);
    assert_int_equal(class_->direction(&call, 0, tensor.before, out), STATUS_OK);
    for (size_t i = 0; i < COUNT_OF(means); i++)
        assert_true(out[i] == signs[i] + 2.0 * (double)i);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_refusals),
        cmocka_unit_test(validate_adam),
        cmocka_unit_test(validate_moments),
        cmocka_unit_test(validate_slots),
        cmocka_unit_test(validate_slack_of_adam),
        cmocka_unit_test(validate_direction_of_a_mean),
        cmocka_unit_test(validate_direction_of_lion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

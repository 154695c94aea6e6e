/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Signatures of causes at their limits: on sums made by hand, each must be named as far as rounding
 * allows and no farther, and every other condition on it is violated once. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "base/real.h"
#include "experiment/locate/signature.h"

enum { LAYERS = 4, TENSORS = 2 * LAYERS };

/* q_proj and down_proj of four layers, equal in both runs; gradients have norm 1, updates 0.001,
 * weights 1. */
struct plan {
    struct signature_tensor tensors[TENSORS];
    struct signature_position positions[32];
    struct signature_input input;
};

static struct signature_sums equal_sums(double norm) {
    const double square = norm * norm;
    return (struct signature_sums){1, square, square, square, 0.0};
}

/* Makes b = r * a + e, with e at right angles to a. */
static struct signature_sums sums_apart(double norm, double r, double e) {
    const double square = norm * norm;
    return (struct signature_sums){1, square, r * r * square + e * e, r * square,
                                   (r - 1.0) * (r - 1.0) * square + e * e};
}

static void open_plan(struct plan *out) {
    memset(out, 0, sizeof *out);
    for (uint32_t i = 0; i < TENSORS; i++)
        out->tensors[i] = (struct signature_tensor){.name = i % 2 ? "down" : "q",
                                                    .layer = i / 2,
                                                    .group = i % 2,
                                                    .role = i % 2 ? ROLE_DOWN : ROLE_Q,
                                                    .gradient = equal_sums(1.0),
                                                    .taken = equal_sums(1.0),
                                                    .update = equal_sums(1e-3),
                                                    .weight = 1.0,
                                                    .slots_equal = 1,
                                                    .weights_equal = 1};
    out->input = (struct signature_input){.forward_equal = 1,
                                          .tensors = out->tensors,
                                          .count = TENSORS,
                                          .layers = LAYERS,
                                          .groups = 2,
                                          .positions = out->positions,
                                          .roundings = 100,
                                          .terms = 400,
                                          .unit = 0x1p-24,
                                          .gradient_unit = 0x1p-24,
                                          .weight_unit = 0x1p-24,
                                          .lr = {1e-3, 8e-4}};
}

static void expect(const struct plan *plan, enum signature_kind kind, const char *what) {
    struct signature out;
    signature_recognise(&plan->input, &out);
    if (out.kind != kind)
        fail_msg("%s: expected %s, got %s", what, signature_name(kind), signature_name(out.kind));
}

static void validate_ratio(void **state) {
    (void)state;
    const double limit = 100 * 0x1p-24;
    struct plan plan;
    open_plan(&plan);
    expect(&plan, SIGNATURE_NONE, "equal");
    for (int i = 0; i < TENSORS; i++)
        plan.tensors[i].gradient = sums_apart(1.0, 2.0, 2.0 * 0.9 * limit);
    expect(&plan, SIGNATURE_CONSTANT_RATIO, "ratio 2, within rounding");
    plan.input.forward_equal = 0;
    expect(&plan, SIGNATURE_NONE, "ratio 2, other activations");
    plan.input.forward_equal = 1;
    plan.tensors[3].gradient = sums_apart(1.0, 2.0, 2.0 * 1.2 * limit);
    expect(&plan, SIGNATURE_NONE, "one tensor beyond rounding");
    plan.tensors[3].gradient = sums_apart(1.0, 2.1, 0.0);
    expect(&plan, SIGNATURE_NONE, "one tensor in another ratio");
    for (int i = 0; i < TENSORS; i++)
        plan.tensors[i].gradient = sums_apart(1.0, 1.0 + 0.5 * limit, 0.0);
    expect(&plan, SIGNATURE_NONE, "a ratio that rounding could be");
    for (int i = 0; i < TENSORS; i++)
        plan.tensors[i].gradient = sums_apart(1.0, -1.0, 0.0);
    expect(&plan, SIGNATURE_NONE, "the other sign");
}

static void validate_taken_ratio(void **state) {
    (void)state;
    struct plan plan;
    open_plan(&plan);
    for (int i = 0; i < TENSORS; i++)
        plan.tensors[i].taken = sums_apart(1.0, 0.5, 0.4 * 0x1p-23);
    expect(&plan, SIGNATURE_CONSTANT_RATIO, "clipped to half");
    plan.tensors[5].taken = sums_apart(1.0, 0.5, 0x1p-22);
    expect(&plan, SIGNATURE_NONE, "clipped, beyond four roundings");
    plan.tensors[5].taken = equal_sums(1.0);
    expect(&plan, SIGNATURE_NONE, "clipped but one");
}

static void validate_backward(void **state) {
    (void)state;
    static const struct {
        double distance[LAYERS]; /* by layer */
        enum signature_kind kind;
        const char *what;
    } rows[] = {
        {{3e-7, 2e-7, 1e-7, 0}, SIGNATURE_BACKWARD_ORDER, "grows towards the first"},
        {{3e-7, 1e-7, 2e-7, 0}, SIGNATURE_BACKWARD_ORDER, "grows, not in each layer"},
        {{3e-7, 2e-7, 1e-7, 1e-8}, SIGNATURE_NONE, "not exact above the last layer"},
        {{0, 1e-7, 2e-7, 3e-7}, SIGNATURE_NONE, "grows towards the last"},
        {{2e-7, 3e-7, 1e-7, 0}, SIGNATURE_NONE, "not largest at the first"},
        {{0, 0, 0, 0}, SIGNATURE_NONE, "exact"},
        {{3e-3, 2e-3, 1e-3, 0}, SIGNATURE_NONE, "more than an order of sums can do"},
    };
    for (size_t r = 0; r < COUNT_OF(rows); r++) {
        struct plan plan;
        open_plan(&plan);
        plan.input.backward_first = 1;
        for (uint32_t i = 0; i < LAYERS; i++) {
            plan.tensors[2 * i].gradient = sums_apart(1.0, 1.0, 1e-7);
            plan.tensors[2 * i + 1].gradient = sums_apart(1.0, 1.0, rows[r].distance[i]);
        }
        expect(&plan, rows[r].kind, rows[r].what);
        plan.input.backward_first = 0;
        expect(&plan, SIGNATURE_NONE, "not first in the backward");
    }
}

enum trend { TREND_GROWS, TREND_WEAK, TREND_NONE };

/* In a weak trend, the distance at position p is p plus a jump to and fro that spoils two pairs of
 * five. */
static double distance_at(uint32_t p, enum trend trend) {
    if (trend == TREND_GROWS) return (double)p;
    return trend == TREND_WEAK ? (double)p + (double)(p * 5 % 11) : (double)(p * 7919 % 31);
}

static void fill_positions(struct plan *plan, uint32_t count, uint32_t first, enum trend trend) {
    plan->input.position_count = count;
    for (uint32_t p = 0; p < count; p++) {
        const double distance = p < first ? 0.0 : distance_at(p, trend);
        plan->positions[p] = (struct signature_position){
            .differing = distance != 0.0, .squares = 1.0, .distance = distance * distance * 1e-12};
    }
}

static void validate_rope(void **state) {
    (void)state;
    struct plan plan;
    open_plan(&plan);
    plan.input.forward_equal = 0;
    plan.input.rotary_first = 1;
    fill_positions(&plan, 12, 1, TREND_GROWS);
    expect(&plan, SIGNATURE_ROPE_TABLE, "grows from position 1 on");
    plan.input.rotary_first = 0;
    expect(&plan, SIGNATURE_NONE, "not the rotary's");
    plan.input.rotary_first = 1;
    fill_positions(&plan, 12, 1, TREND_WEAK);
    expect(&plan, SIGNATURE_NONE, "a trend that chance could make");
    fill_positions(&plan, 12, 1, TREND_NONE);
    expect(&plan, SIGNATURE_NONE, "no trend");
    fill_positions(&plan, 7, 1, TREND_GROWS);
    expect(&plan, SIGNATURE_NONE, "too few positions to tell");
    fill_positions(&plan, 12, 1, TREND_GROWS);
    plan.positions[0].differing = 1;
    expect(&plan, SIGNATURE_NONE, "position 0 differs");
}

static void move_all(struct plan *plan, double ratio, double aside) {
    for (int i = 0; i < TENSORS; i++) {
        plan->tensors[i].update = sums_apart(1e-3, ratio, aside);
        plan->tensors[i].weights_equal = 0;
    }
}

static void validate_lr(void **state) {
    (void)state;
    const double rounded = 2.0 * 0x1p-24 * 1.8;
    struct signature out;
    struct plan plan;
    open_plan(&plan);
    move_all(&plan, 0.8, 0.9 * rounded);
    expect(&plan, SIGNATURE_LR_RATIO, "parallel within rounding");
    signature_recognise(&plan.input, &out);
    assert_int_equal(out.by_lr, 1);
    plan.input.lr[1] = 7e-4;
    signature_recognise(&plan.input, &out);
    assert_int_equal(out.by_lr, 0);
    plan.tensors[2].slots_equal = 0;
    expect(&plan, SIGNATURE_NONE, "another slot");
    plan.tensors[2].slots_equal = 1;
    plan.tensors[2].update = sums_apart(1e-3, 0.8, 1.2 * rounded);
    expect(&plan, SIGNATURE_NONE, "beyond rounding");
    move_all(&plan, 0.9999, 0.0);
    expect(&plan, SIGNATURE_NONE, "a ratio that rounding could be");
    move_all(&plan, 0.0, 0.0);
    expect(&plan, SIGNATURE_LR_RATIO, "the second does not move");
    move_all(&plan, 0.8, 0.0);
    for (int i = 0; i < TENSORS; i++)
        plan.tensors[i].gradient = sums_apart(1.0, 1.0, 1e-3);
    expect(&plan, SIGNATURE_NONE, "other gradients");
}

static void validate_lr_from_zero(void **state) {
    (void)state;
    struct plan plan;
    open_plan(&plan);
    for (int i = 0; i < TENSORS; i++) {
        plan.tensors[i].update = (struct signature_sums){1, 0.0, 1e-6, 0.0, 1e-6};
        plan.tensors[i].weights_equal = 0;
    }
    expect(&plan, SIGNATURE_NONE, "the first does not move, for whatever reason");
    plan.input.lr[0] = 0.0;
    expect(&plan, SIGNATURE_LR_RATIO, "the first has LR 0");
}

static void validate_one(void **state) {
    (void)state;
    struct plan plan;
    open_plan(&plan);
    plan.tensors[3].slots_equal = 0;
    plan.tensors[3].update = sums_apart(1e-3, 1.0, 1e-5);
    expect(&plan, SIGNATURE_ONE_TENSOR, "a slot of one tensor");
    plan.tensors[6].weights_equal = 0;
    expect(&plan, SIGNATURE_NONE, "two tensors of two groups");
    open_plan(&plan);
    for (int i = 0; i < TENSORS; i += 2) {
        plan.tensors[i].update = sums_apart(1e-3, 1.0, 1e-5);
        plan.tensors[i].weights_equal = 0;
    }
    expect(&plan, SIGNATURE_ONE_TENSOR, "a whole group");
    plan.tensors[1].weights_equal = 0;
    expect(&plan, SIGNATURE_NONE, "a group and one more");
    plan.tensors[1].weights_equal = plan.tensors[0].weights_equal = 1;
    expect(&plan, SIGNATURE_NONE, "part of a group");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_ratio),    cmocka_unit_test(validate_taken_ratio),
        cmocka_unit_test(validate_backward), cmocka_unit_test(validate_rope),
        cmocka_unit_test(validate_lr),       cmocka_unit_test(validate_lr_from_zero),
        cmocka_unit_test(validate_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

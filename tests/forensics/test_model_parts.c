/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What is known of each model before it is solved, from a look at a few updates: whether it needs a
 * warm-up and a total, whether its warm-up depends on neither total nor floor, and whether it is
 * proportional to its peak. Here from all updates of other runs. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/macro.h"
#include "forensics/fit_model.h"

/* The end stays out: what a schedule does behind it is asked of no model here. */
enum { WARMUP = 80, TOTAL = 640, UPDATES = TOTAL - 1 };

static struct arena arena;
static struct fit_model *models;
static size_t count;

static int take_models(void **state) {
    (void)state;
    static const struct fit_decays none = {.count = 0};
    struct fit_known known;
    fit_known_init(&known);
    assert_int_equal(fit_models(&known.request, &known, &none, &arena, &models, &count), STATUS_OK);
    return count > 100 ? 0 : -1;
}

static int leave_models(void **state) {
    (void)state;
    arena_close(&arena);
    return 0;
}

static struct fit_numbers numbers_of(const struct fit_model *model) {
    struct fit_numbers numbers = {.lr = 1.0, .warmup = WARMUP, .total = TOTAL, .stride = 1.0};
    numbers.epoch = model->contract->unit == CONTRACT_UNIT_EPOCH ? 1 : 0;
    if (model->floor_kind == FIT_FLOOR_RATIO) numbers.floor = model->floor_default;
    return numbers;
}

/* Tells whether the second numbers give so many times the LR of the first at all of these updates.
 */
static int same(struct fit_model *model, const struct fit_numbers *a, const struct fit_numbers *b,
                uint64_t first, uint64_t last, double times) {
    static double lr[UPDATES + 1];
    fit_model_set(model, a);
    for (uint64_t k = first; k <= last; k++)
        lr[k] = fit_model_logged(model, k, 0);
    fit_model_set(model, b);
    for (uint64_t k = first; k <= last; k++)
        if (fit_model_logged(model, k, 0) != times * lr[k]) return 0;
    return 1;
}

static void corroborate_needs(void **state) {
    (void)state;
    size_t warm = 0, plain = 0, mixed = 0, total = 0, linear = 0, looked = 0;
    for (size_t m = 0; m < count; m++) {
        struct fit_model *const model = &models[m];
        const struct fit_numbers one = numbers_of(model);
        struct fit_numbers other = one;
        if (model->plan.schedule->state_size > 0) continue; /* nothing is probed */
        looked++;
        other.total = 2.0 * TOTAL;
        const int needs_total = !same(model, &one, &other, 1, UPDATES, 1.0);
        other = one;
        other.warmup = 2.0 * WARMUP;
        const int needs_warmup =
            model->plan.call.warmup > 0.0 && !same(model, &one, &other, 1, UPDATES, 1.0);
        other = one;
        other.lr = 8.0;
        const int is_linear = same(model, &one, &other, 1, UPDATES, 8.0);
        struct fit_numbers low = one, far = one;
        low.floor = 0.0;
        far = low;
        far.total = 3.0 * TOTAL;
        other = low;
        other.floor = 0.25;
        const int is_plain = same(model, &low, &far, 2, WARMUP / 2, 1.0) &&
                             same(model, &low, &other, 2, WARMUP / 2, 1.0);
        if (model->needs_total != needs_total || model->needs_warmup != needs_warmup ||
            model->linear != is_linear || (needs_warmup && model->plain_rise != is_plain))
            fail_msg("%s %s %s: total %d, warm-up %d, linear %d, plain %d", model->contract->name,
                     model->plan.schedule->name, model->parameters, needs_total, needs_warmup,
                     is_linear, is_plain);
        warm += needs_warmup != 0;
        plain += needs_warmup && is_plain;
        mixed += needs_warmup && !is_plain;
        total += needs_total != 0;
        linear += is_linear != 0;
    }
    assert_true(looked > 500 && warm > 400 && warm < looked && plain > 400 && mixed > 100);
    assert_true(total > 500 && total < looked && linear == looked);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_needs),
    };
    return cmocka_run_group_tests(tests, take_models, leave_models);
}

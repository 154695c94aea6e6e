/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Each parameter group is given the LR of the schedule: what both groups apply and log in each
 * update is a linear decay on paper, and what is read back of their steps is that, too; decay acts
 * in the first of them alone. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "tests/trainer/helper_train.h"

enum { UPDATES = 6 };

static void verify_rates(const char *optimizer, const char *decay, uint32_t groups) {
    struct config config;
    struct arena arena = ARENA_EMPTY;
    struct dataset dataset;
    struct run run;
    helper_config(UPDATES, &config,
                  "task: sft, optimizer: {name: %s, lr: 0.0078125, weight_decay: 0.5, decay: %s}, "
                  "schedule: {name: linear, warmup: 0, total: 8}, clip: {max_norm: 0}, data: "
                  "{max_len: 16}, batch: {size: 4, micro: 2}, init: {std: 0.1}, model: {layers: 1, "
                  "hidden: 16, heads: 2, mlp: 24, vocab: 19}",
                  optimizer, decay);
    helper_ids_open(&config, 8, 24, 16, &arena, &dataset);
    const struct run_options options = {.tensors = 1, .readback = READBACK_ALL, .steps = UPDATES};
    assert_int_equal(run_open_at(&config, &dataset, &options, &run), STATUS_OK);
    assert_int_equal(run.shape.groups, groups);
    for (int k = 0; k < UPDATES; k++) {
        const struct record *const record = helper_step(&run);
        const double lr = 0.0078125 * (8.0 - k) / 8.0;
        for (uint32_t g = 0; g < groups; g++) {
            const double *const group = record->groups[g];
            assert_true(group[GROUP_LR_APPLIED] == lr);
            assert_true(group[GROUP_LR_LOGGED] == lr);
            assert_true(group[GROUP_WD_APPLIED] == (g == 0 ? 0.5 : 0.0));
            assert_true(group[GROUP_LR_ERROR] < 0.01 * lr);
            assert_true(fabs(group[GROUP_LR_READBACK] - lr) <= group[GROUP_LR_ERROR]);
        }
        double squares = 0.0; /* tensors make up the whole */
        for (uint32_t t = 0; t < run.shape.tensors; t++) {
            const double norm = record->tensors[t][TENSOR_UPDATE_NORM];
            assert_true(norm > 0.0);
            squares += norm * norm;
        }
        assert_true(fabs(sqrt(squares) - record->reals[REAL_UPDATE_NORM]) <=
                    1e-12 * record->reals[REAL_UPDATE_NORM]);
    }
    run_close(&run);
    arena_close(&arena);
}

static void verify_groups(void **state) {
    (void)state;
    verify_rates("sgd", "all", 1);
    verify_rates("sgd", "matrices", 2);
    verify_rates("adamw", "matrices", 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(verify_groups)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

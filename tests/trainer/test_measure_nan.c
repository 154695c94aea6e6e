/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Every NaN of a record has one pattern, whatever sign an invalid operation gives it: digests are
 * made of records, and which sign that is is up to the hardware. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "tests/trainer/helper_train.h"

enum { UPDATES = 8 };

static size_t count_nan(const double *values, size_t count) {
    const double one = (double)NAN;
    size_t nan = 0;
    for (size_t i = 0; i < count; i++) {
        if (!isnan(values[i])) continue;
        nan++;
        if (memcmp(&values[i], &one, sizeof one) != 0) fail_msg("number %zu", i);
    }
    return nan;
}

/* An LR so large that weights overflow, and what is made of them is no number. */
static void verify_one_pattern(void **state) {
    (void)state;
    struct config config;
    struct arena arena = ARENA_EMPTY;
    struct dataset dataset;
    struct run run;
    size_t nan = 0;
    helper_config(UPDATES, &config,
                  "optimizer: {name: sgd, lr: 1e6, momentum: 0.9, weight_decay: 1e6}, schedule: "
                  "{name: constant}, clip: {max_norm: "
                  "0}, data: {max_len: 16}, batch: {size: 4, micro: 2}, init: {std: 0.1}, "
                  "model: {layers: 1, hidden: 16, heads: 2, mlp: 24, vocab: 19}");
    helper_ids_open(&config, 8, 20, 16, &arena, &dataset);
    const struct run_options options = {.tensors = 1, .readback = 1, .steps = UPDATES};
    assert_int_equal(run_open_at(&config, &dataset, &options, &run), STATUS_OK);
    for (int k = 0; k < UPDATES; k++) {
        const struct record *const record = helper_step(&run);
        size_t here = count_nan(record->reals, RECORD_REALS);
        for (uint32_t g = 0; g < run.shape.groups; g++)
            here += count_nan(record->groups[g], RECORD_GROUPS);
        for (uint32_t t = 0; t < run.shape.tensors; t++)
            here += count_nan(record->tensors[t], RECORD_TENSORS);
        for (uint32_t m = 0; m < run.shape.micros; m++)
            here += count_nan(record->micros[m], RECORD_MICROS);
        nan = here;
    }
    assert_true(isnan(run.record.reals[REAL_LOSS]) && isnan(run.record.reals[REAL_GRAD_NORM]));
    assert_true(nan > 10);
    run_close(&run);
    arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_one_pattern),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

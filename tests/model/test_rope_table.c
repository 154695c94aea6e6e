/* SPDX-License-Identifier: Apache-2.0
 * labels: unit memory
 * Hypothesis 15 of the open-instruct investigation, in numbers: rotary frequencies cast to bf16
 * must change no angle at position 0, must change later ones in proportion to the position, and
 * must change nothing in f32. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "experiment/experiment.h"
#include "trainer/run_private.h"
#include "trainer/schema_classes.h"

#define POSITIONS 96

/* Computes, by position, the largest change of the rotated queries of layer 0 in the first update,
 * against f32. */
static void query_changes(const char *rope, double out[POSITIONS]) {
    static const char text[] = "twinstep: 1\nname: t\nsteps: 1\n"
                               "common:\n  model: {family: llama}\n  batch: {size: 8}\n";
    char override[64];
    snprintf(override, sizeof override, "arms.test.numerics.rope=%s", rope);
    const char *overrides[] = {override};
    struct arena arena = ARENA_EMPTY;
    const struct schema *schema;
    struct scenario *scenario;
    struct dataset dataset;
    struct run runs[2];
    assert_int_equal(schema_with_classes(&arena, &schema), STATUS_OK);
    assert_int_equal(
        scenario_parse(&arena, schema, "t", text, sizeof text - 1, overrides, 1, &scenario),
        STATUS_OK);
    struct dataset_options source = run_dataset_options(&scenario->arms[0].config);
    assert_int_equal(dataset_open(&source, &arena, &dataset), STATUS_OK);
    for (int arm = 0; arm < 2; arm++) {
        struct run_options options = {.steps = 1};
        const struct record *record;
        assert_int_equal(run_open_at(&scenario->arms[arm].config, &dataset, &options, &runs[arm]),
                         STATUS_OK);
        assert_int_equal(run_step(&runs[arm], &record), STATUS_OK);
    }
    memset(out, 0, POSITIONS * sizeof *out);
    const struct batch *batch = &runs[0].batch;
    const float *a = (const float *)runs[0].model.layer[0].q;
    const float *b = (const float *)runs[1].model.layer[0].q;
    for (uint32_t i = 0; i < batch->token_count; i++)
        for (uint32_t c = 0; c < runs[0].model.Q; c++) {
            size_t at = (size_t)batch->token_row[i] * runs[0].model.Q + c;
            double change = fabs((double)a[at] - (double)b[at]);
            uint32_t p = batch->token_position[i];
            if (change > out[p]) out[p] = change;
        }
    for (int arm = 0; arm < 2; arm++)
        run_close(&runs[arm]);
    arena_close(&arena);
}

static double mean(const double *values, size_t from, size_t to) {
    double sum = 0.0;
    for (size_t i = from; i < to; i++)
        sum += values[i];
    return sum / (double)(to - from);
}

static void verify_error_grows_with_position(void **state) {
    (void)state;
    double change[POSITIONS];
    query_changes("bf16", change);
    assert_true(change[0] == 0.0);
    double early = mean(change, 1, 9), middle = mean(change, 16, 24), late = mean(change, 48, 56);
    print_message("largest change of a query: positions 1-8 %.2e, 16-23 %.2e, 48-55 %.2e\n", early,
                  middle, late);
    assert_true(early > 0.0);
    /* The mean positions are 4.5, 19.5 and 51.5, and the angle's error is proportional to them; the
     * sine of an error of at most 51.5 * 2^-9 equals it within 0.2 %. The queries at these
     * positions differ, too, so of the expected ratios 4.3 and 2.6 only 3 and 2 are required. */
    assert_true(middle > 3.0 * early);
    assert_true(late > 2.0 * middle);
}

static void verify_no_change_in_f32(void **state) {
    (void)state;
    double change[POSITIONS];
    query_changes("f32", change);
    for (size_t p = 0; p < POSITIONS; p++)
        assert_true(change[p] == 0.0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_error_grows_with_position),
        cmocka_unit_test(verify_no_change_in_f32),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Hypothesis 10 of the open-instruct investigation, token by token, on the catalogue's scenario: an
 * attention that cuts long sums must leave short sequences and the first positions of long ones
 * unchanged, and must change log-probabilities behind them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "experiment/experiment.h"
#include "trainer/run_private.h"
#include "trainer/schema_classes.h"

/* These are the numbers of the scenario's table. */
enum { CUT_FROM = 64, PARTS = 4 };

static void open_scenario(struct arena *arena, struct scenario **out) {
    const struct schema *schema;
    char path[512];
    snprintf(path, sizeof path, "%s/scenarios/catalog/logps-diverge-at-later-positions.yaml",
             TWINSTEP_SOURCE_DIR);
    assert_int_equal(schema_with_classes(arena, &schema), STATUS_OK);
    assert_int_equal(scenario_open(arena, schema, path, NULL, 0, out), STATUS_OK);
}

static void first_forward(const struct config *config, const struct dataset *dataset,
                          struct run *out) {
    const struct run_options options = {.steps = 1};
    const struct record *record;
    assert_int_equal(run_open_at(config, dataset, &options, out), STATUS_OK);
    assert_int_equal(run_step(out, &record), STATUS_OK);
}

static void verify_positions(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct scenario *scenario;
    struct dataset dataset;
    struct run runs[2];
    open_scenario(&arena, &scenario);
    struct dataset_options source = run_dataset_options(&scenario->arms[0].config);
    assert_int_equal(dataset_open(&source, &arena, &dataset), STATUS_OK);
    for (int arm = 0; arm < 2; arm++)
        first_forward(&scenario->arms[arm].config, &dataset, &runs[arm]);
    const struct batch *batch = &runs[0].batch;
    uint32_t cut = 0, behind = 0, moved = 0;
    for (uint32_t s = 0; s < batch->sequence_count; s++) {
        const uint32_t keys = batch->sequences[s].length;
        const uint32_t part = keys < CUT_FROM ? keys : (keys + PARTS - 1) / PARTS;
        cut += keys >= CUT_FROM;
        for (uint32_t i = 0; i < batch->label_length[s]; i++) {
            const uint32_t label = batch->label_first[s] + i;
            const uint32_t position = batch->label_row[label] - batch->sequences[s].row;
            const int differs = runs[0].model.logp[label] != runs[1].model.logp[label];
            if (position < part) assert_false(differs);
            behind += position >= part;
            moved += (uint32_t)differs;
        }
    }
    print_message("%u of %u sequences are cut; behind their first part %u of %u labels moved\n",
                  cut, batch->sequence_count, moved, behind);
    assert_true(cut > 0);
    assert_true(cut < batch->sequence_count);
    assert_true(8 * moved > behind);
    for (int arm = 0; arm < 2; arm++)
        run_close(&runs[arm]);
    arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(verify_positions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

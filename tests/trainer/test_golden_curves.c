/* SPDX-License-Identifier: Apache-2.0
 * labels: golden
 * The applied LR, loss and gradient norm of every update of some catalogue scenarios, as hex
 * floats, must be those of tests/golden/curves.txt, with any compiler, optimisation level,
 * instruction set and thread count. `test_golden_curves --print` writes the file; a change of it
 * needs a CHANGELOG line. `first` tests the first update alone, for machines on which kernels are
 * slow: of one arm of four scenarios, nightly of both arms of all. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "experiment/experiment.h"
#include "tests/base/helper_size.h"
#include "tests/kernels/helper_variables.h"
#include "tests/trainer/helper_train.h"
#include "trainer/schema_classes.h"

/* Between them these scenarios cover DPO and SFT, both families, f32 and bf16, and modes invariant,
 * shuffled and shaped. */
static const char *const scenarios[] = {"lr-set-before-step", "grad-accum-mean-of-means",
                                        "rope-table-bf16",    "adamw-decay",
                                        "confounded",         "library-small-vs-large-batch"};

#define UPDATES 5u /* of each arm of each scenario */

static enum status print_arm(const struct scenario *scenario, int arm, uint64_t updates,
                             struct arena *arena, FILE *out) {
    struct config config = scenario->arms[arm].config;
    helper_backend(&config);
    struct dataset dataset;
    struct dataset_options source = run_dataset_options(&config);
    TRY(dataset_open(&source, arena, &dataset));
    struct run_options options = {.steps = scenario->steps,
                                  .order_seed = config.numerics.order_seed};
    struct run run;
    TRY(run_open_at(&config, &dataset, &options, &run));
    enum status status = STATUS_OK;
    for (uint64_t i = 0; i < updates && status == STATUS_OK; i++) {
        const struct record *record;
        status = run_step(&run, &record);
        if (status == STATUS_OK)
            fprintf(out, "%s %s %llu %s %s %s\n", scenario->name, scenario->arms[arm].name,
                    (unsigned long long)record->step,
                    number_hex_f64(record->groups[0][GROUP_LR_APPLIED]).text,
                    number_hex_f64(record->reals[REAL_LOSS]).text,
                    number_hex_f64(record->reals[REAL_GRAD_NORM]).text);
    }
    run_close(&run);
    return status;
}

struct asked {
    uint64_t updates; /* of each arm; 1 asks for one arm of a scenario, nightly for both */
    int few;          /* of the scenarios, too */
};

/* Whether anything is asked of a scenario. What the two do that are left out of few, the order of
 * the update's phases and the decay, no kernel sees but that of the step, which has a test of its
 * own. */
static int takes_scenario(size_t scenario, const struct asked *asked) {
    return !asked->few || helper_size(0, 0, 1) || scenario % 3 != 0;
}

/* The arms that are taken cover what the scenarios do. */
static int takes_arm(size_t scenario, int arm, const struct asked *asked) {
    return asked->updates > 1 || helper_size(0, 0, 1) || arm == (int)((scenario + 1) % 2);
}

static enum status print_scenario(size_t number, const struct asked *asked, FILE *out) {
    struct arena arena = ARENA_EMPTY;
    const struct schema *schema;
    struct scenario *scenario;
    char path[512];
    snprintf(path, sizeof path, "%s/scenarios/catalog/%s.yaml", TWINSTEP_SOURCE_DIR,
             scenarios[number]);
    enum status status = schema_with_classes(&arena, &schema);
    if (status == STATUS_OK) status = scenario_open(&arena, schema, path, NULL, 0, &scenario);
    for (int arm = 0; arm < 2 && status == STATUS_OK; arm++)
        if (takes_arm(number, arm, asked))
            status = print_arm(scenario, arm, asked->updates, &arena, out);
    arena_close(&arena);
    return status;
}

static enum status print_all(const struct asked *asked, FILE *out) {
    fprintf(out, "# scenario arm update lr_applied loss grad_norm\n");
    for (size_t i = 0; i < COUNT_OF(scenarios); i++)
        if (takes_scenario(i, asked)) TRY(print_scenario(i, asked, out));
    return STATUS_OK;
}

/* Whether `fresh` has a line of the scenario and arm of this line, which are its first two words.
 */
static int has_arm_of(const char *fresh, const char *line) {
    char words[256];
    const size_t scenario = strcspn(line, " ") + 1;
    const size_t length = scenario + strcspn(line + scenario, " ") + 1;
    snprintf(words, sizeof words, "\n%.*s", (int)length, line);
    return strstr(fresh, words) != NULL;
}

/* Reads the next line of updates up to this one, of arms that `fresh` has, without its end; returns
 * 0 where there is none. */
static int next_golden(FILE *golden, uint64_t updates, const char *fresh, char line[256]) {
    unsigned long long update;
    do {
        if (fgets(line, 256, golden) == NULL) return 0;
    } while (sscanf(line, "%*s %*s %llu", &update) == 1 &&
             (update > updates || !has_arm_of(fresh, line)));
    line[strcspn(line, "\n")] = '\0';
    return 1;
}

static void validate_curves_are_the_goldens(void **state) {
    const struct asked *const asked = (const struct asked *)*state;
    char *fresh = NULL;
    size_t length = 0;
    FILE *memory = open_memstream(&fresh, &length);
    assert_non_null(memory);
    assert_int_equal(print_all(asked, memory), STATUS_OK);
    assert_int_equal(fclose(memory), 0);
    FILE *golden = fopen(TWINSTEP_SOURCE_DIR "/tests/golden/curves.txt", "r");
    assert_non_null(golden);
    char line[256];
    size_t lines = 0;
    for (const char *at = fresh; *at != '\0'; lines++) {
        size_t count = strcspn(at, "\n");
        assert_true(next_golden(golden, asked->updates, fresh, line));
        if (strlen(line) != count || strncmp(line, at, count) != 0)
            fail_msg("golden \"%s\", now \"%.*s\"", line, (int)count, at);
        at += count + 1;
    }
    assert_false(next_golden(golden, asked->updates, fresh, line));
    size_t arms = 0;
    for (size_t i = 0; i < COUNT_OF(scenarios); i++)
        if (takes_scenario(i, asked))
            arms += takes_arm(i, 0, asked) && takes_arm(i, 1, asked) ? 2 : 1;
    assert_int_equal(lines, 1 + arms * asked->updates);
    fclose(golden);
    free(fresh);
}

int main(int argc, char **argv) {
    helper_unset_variables();
    struct asked asked = {.updates = HELPER_UNOPTIMISED ? 1 : UPDATES};
    if (argc == 2 && strcmp(argv[1], "--print") == 0)
        return print_all(&(struct asked){.updates = UPDATES}, stdout) != STATUS_OK;
    if (argc == 2 && strcmp(argv[1], "first") == 0)
        asked = (struct asked){.updates = 1, .few = 1};
    else if (argc > 1)
        return 2;
    if (helper_backend_lacks()) return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(validate_curves_are_the_goldens, &asked)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 * labels: golden short
 * Applied LR, loss and gradient norm of every update of catalogue scenarios, as hex floats, in
 * tests/golden/curves.txt. Any compiler, optimisation level, instruction set and thread count must
 * print the same file. `test_golden_curves --print` writes it; a change needs a CHANGELOG line.
 * `few`: the first update of each arm that has a task, family or compute dtype which no arm before
 * it had. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "tests/kernels/helper_variables.h"
#include "tests/trainer/helper_train.h"
#include "trainer/experiment.h"

/* Between them: DPO and SFT, both families, f32 and bf16, invariant and shuffled. */
static const char *const scenarios[] = {"lr-set-before-step", "grad-accum-mean-of-means",
                                        "rope-table-bf16", "adamw-decay", "confounded"};

/* What is printed; of `few`, what was so far. */
struct choice {
    int few;
    uint32_t tasks, families, dtypes;
};

static int is_chosen(struct choice *choice, const struct config *config) {
    const int is_new = helper_is_new(&choice->tasks, config->task) |
                       helper_is_new(&choice->families, config->model.family) |
                       helper_is_new(&choice->dtypes, config->numerics.compute);
    return !choice->few || is_new;
}

static enum status print_arm(const struct scenario *scenario, int arm, struct choice *choice,
                             struct arena *arena, FILE *out) {
    struct config config = scenario->arms[arm].config;
    if (!is_chosen(choice, &config)) return STATUS_OK;
    const uint64_t updates = choice->few ? 1 : scenario->steps;
    helper_backend(&config);
    struct dataset dataset;
    struct dataset_options source = run_dataset_options(&config);
    TRY(dataset_open(&source, arena, &dataset));
    struct run_options options = {.steps = scenario->steps,
                                  .order_seed = config.numerics.order_seed};
    struct run run;
    TRY(run_open(&config, &dataset, &options, &run));
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

static enum status print_scenario(const char *name, struct choice *choice, FILE *out) {
    struct arena arena = ARENA_EMPTY;
    const struct schema *schema;
    struct scenario *scenario;
    char path[512];
    snprintf(path, sizeof path, "%s/scenarios/catalog/%s.yaml", TWINSTEP_SOURCE_DIR, name);
    enum status status = experiment_schema(&arena, &schema);
    if (status == STATUS_OK) status = scenario_open(&arena, schema, path, NULL, 0, &scenario);
    for (int arm = 0; arm < 2 && status == STATUS_OK; arm++)
        status = print_arm(scenario, arm, choice, &arena, out);
    arena_close(&arena);
    return status;
}

static enum status print_all(int few, FILE *out) {
    struct choice choice = {.few = few};
    fprintf(out, "# scenario arm update lr_applied loss grad_norm\n");
    for (size_t i = 0; i < COUNT_OF(scenarios); i++)
        TRY(print_scenario(scenarios[i], &choice, out));
    return STATUS_OK;
}

/* The next line without its end; 0: there is none. */
static int read_line(FILE *file, char line[256]) {
    if (fgets(line, 256, file) == NULL) return 0;
    line[strcspn(line, "\n")] = '\0';
    return 1;
}

/* Bytes of "scenario arm update " at the start of a line. */
static size_t key_length(const char *line) {
    size_t at = 0;
    for (int word = 0; word < 3; word++)
        at += strcspn(line + at, " ") + 1;
    return at;
}

/* Every line of the file, or of `few` those that were printed, in the file's order. */
static void validate_curves_are_the_goldens(void **state) {
    const int few = *(const int *)*state;
    char *fresh = NULL;
    size_t length = 0;
    FILE *memory = open_memstream(&fresh, &length);
    assert_non_null(memory);
    assert_int_equal(print_all(few, memory), STATUS_OK);
    assert_int_equal(fclose(memory), 0);
    FILE *golden = fopen(TWINSTEP_SOURCE_DIR "/tests/golden/curves.txt", "r");
    assert_non_null(golden);
    char line[256];
    size_t lines = 0;
    for (const char *at = fresh; *at != '\0'; lines++) {
        size_t count = strcspn(at, "\n");
        assert_true(read_line(golden, line));
        while (few && strncmp(line, at, key_length(at)) != 0)
            if (!read_line(golden, line)) fail_msg("no golden for \"%.*s\"", (int)count, at);
        if (strlen(line) != count || strncmp(line, at, count) != 0)
            fail_msg("golden \"%s\", now \"%.*s\"", line, (int)count, at);
        at += count + 1;
    }
    if (few)
        assert_int_equal(lines, 1 + 1 + 3); /* the first arm; the other task, family and dtype */
    else
        assert_int_equal(lines, 1 + COUNT_OF(scenarios) * 2 * 5);
    assert_true(few || !read_line(golden, line));
    fclose(golden);
    free(fresh);
}

int main(int argc, char **argv) {
    helper_unset_variables();
    if (argc == 2 && strcmp(argv[1], "--print") == 0) return print_all(0, stdout) != STATUS_OK;
    int few = helper_few(argc, argv);
    if (helper_backend_lacks()) return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(validate_curves_are_the_goldens, &few)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

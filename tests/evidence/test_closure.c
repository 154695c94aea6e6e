/* SPDX-License-Identifier: Apache-2.0
 * labels: unit memory
 * Closure for runs that differ from their own repeats: a real race, distances planted in its trace
 * on both sides of the rule, both designs of the floor, and how often the rule errs. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "determinism/philox.h"
#include "evidence/judge_parts.h"
#include "experiment/experiment.h"
#include "trainer/schema_classes.h"

#define RACE                                                                                       \
    "twinstep: 1\nname: t\nsteps: 1\ncommon:\n  model: {layers: 1, hidden: 16, heads: 2, mlp: "    \
    "24}\n  batch: {size: 2, micro: 2}\n  data: {max_len: 96}\n  optimizer: {lr: 1e-3}\n"          \
    "  numerics: {mode: atomic, threads: 2}\n"                                                     \
    "  atomic: {kinds: [forward, weight, norm], chunk: 4}\n"                                       \
    "arms: {baseline: {}, test: {optimizer: {lr: 2e-3}}}\n"

enum { REPEATS = 5 };

struct trial {
    struct arena arena;
    struct trace_image *image;
    struct judgement judgement;
    char path[64];
};

static enum status no_second_process(void *context, const struct config *config, uint64_t steps,
                                     struct digest *out_root) {
    (void)context;
    return experiment_rerun(config, steps, out_root);
}

static void trial_open(struct trial *trial, const char *floor) {
    const struct schema *schema = NULL;
    struct scenario *scenario = NULL;
    char text[1024];
    memset(trial, 0, sizeof *trial);
    snprintf(text, sizeof text, "%sfloor: {%s}\n", RACE, floor);
    snprintf(trial->path, sizeof trial->path, "/tmp/twinstep-closure-%ld.h5", (long)getpid());
    if (schema_with_classes(&trial->arena, &schema) != STATUS_OK ||
        scenario_parse(&trial->arena, schema, "t", text, strlen(text), NULL, 0, &scenario) !=
            STATUS_OK)
        fail_msg("%s", status_text());
    struct experiment_options options = {.path = trial->path,
                                         .overwrite = 1,
                                         .reproducible = 1,
                                         .schema = schema,
                                         .scenario = scenario,
                                         .second_process = no_second_process};
    if (experiment_run(&options, &trial->arena, &trial->judgement) != STATUS_OK)
        fail_msg("%s", status_text());
    assert_int_equal(trace_open(trial->path, &trial->arena, &trial->image), STATUS_OK);
    assert_int_equal(trial->judgement.attributed, 1);
}

static void trial_close(struct trial *trial) {
    unlink(trial->path);
    arena_close(&trial->arena);
}

static double *values_of(const struct trial *trial, const char *path) {
    const struct trace_array *array = trace_array_of(trial->image, path);
    assert_non_null(array);
    return (double *)(uintptr_t)array->values;
}

static enum closure judged(struct trial *trial, char **out_words) {
    static char words[8192];
    struct arena arena = ARENA_EMPTY;
    assert_int_equal(judge(trial->image, &arena, &trial->judgement), STATUS_OK);
    if (out_words != NULL) {
        FILE *stream = fmemopen(words, sizeof words, "w");
        assert_non_null(stream);
        judgement_print(&trial->judgement, stream);
        assert_int_equal(fclose(stream), 0);
        *out_words = words;
    }
    const enum closure closure = trial->judgement.closure;
    arena_close(&arena);
    return closure;
}

/* The test arm's repeats lie `spread` from each other, the hybrid `away` from all of them. */
static void plant(const struct trial *trial, uint32_t baseline, uint32_t test, double spread,
                  double away) {
    double *const matrix = values_of(trial, "floor/distance");
    double *const hybrid = values_of(trial, "attribution/closure_distance");
    const uint32_t m = baseline + test;
    values_of(trial, "attribution/closure")[0] = 0.0;
    for (uint32_t i = 0; i < m; i++)
        for (uint32_t j = 0; j < m; j++)
            matrix[i * m + j] = i == j ? 0.0 : (i < baseline) == (j < baseline) ? spread : 1.0;
    for (uint32_t i = 0; i < test; i++)
        hybrid[i] = away;
}

static void verify_repeats(void **state) {
    (void)state;
    struct trial trial;
    char *words;
    trial_open(&trial, "design: both, replicates: 5");
    const double *const hybrid = values_of(&trial, "attribution/closure_distance");
    for (int i = 0; i < REPEATS; i++) /* it is the same training: far nearer than the arms */
        assert_true(hybrid[i] < 0.1 * trial.judgement.floor_distance);
    plant(&trial, REPEATS, REPEATS, 0.01, 0.009);
    assert_int_equal(judged(&trial, &words), CLOSURE_WITHIN_FLOOR);
    assert_non_null(strstr(words, "closure  within-floor: "));
    assert_non_null(strstr(words, "by chance the farthest of 6 in 0.17"));
    assert_true(trial.judgement.closure_noise.alpha == 1.0 / 6.0);
    plant(&trial, REPEATS, REPEATS, 0.01, 0.01); /* ties count for it */
    assert_int_equal(judged(&trial, NULL), CLOSURE_WITHIN_FLOOR);
    plant(&trial, REPEATS, REPEATS, 0.01, 0.011);
    assert_int_equal(judged(&trial, &words), CLOSURE_OPEN);
    assert_non_null(strstr(words, "closure  open: "));
    plant(&trial, REPEATS, REPEATS, 0.01, (double)NAN);
    assert_int_equal(judged(&trial, NULL), CLOSURE_OPEN);
    plant(&trial, REPEATS, REPEATS, 0.01, 1.0);
    values_of(&trial, "attribution/closure")[0] = 1.0;
    assert_int_equal(judged(&trial, NULL), CLOSURE_EXACT);
    trial_close(&trial);
}

static void verify_one_run_of_test(void **state) {
    (void)state;
    struct trial trial;
    char *words;
    trial_open(&trial, "design: baseline, replicates: 8, alpha: 0.05");
    const uint32_t repeats = trial.judgement.floor_runs[0];
    assert_int_equal(trial.judgement.floor_runs[1], 1);
    plant(&trial, repeats, 1, 0.01, 0.01);
    assert_int_equal(judged(&trial, &words), CLOSURE_WITHIN_FLOOR);
    assert_true(trial.judgement.closure_noise.alpha == 1.0 / (repeats / 2 + 1));
    plant(&trial, repeats, 1, 0.01, 0.02);
    assert_int_equal(judged(&trial, NULL), CLOSURE_OPEN);
    trial_close(&trial);
}

/* ---- calibration: points of one distribution ---- */

enum { AXES = 6, DRAWS = 3000 };

static double normal(uint64_t *next) {
    const struct philox_block at = {{(uint32_t)*next, (uint32_t)(*next >> 32), 77, 0}};
    const struct philox_block block = philox_draw(at, UINT64_C(0x5eed));
    double sum = -2.0;
    for (int i = 0; i < 4; i++)
        sum += (double)block.word[i] * 0x1p-32;
    ++*next;
    return sum;
}

static double apart(const double *a, const double *b) {
    double sum = 0.0;
    for (int i = 0; i < AXES; i++)
        sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sqrt(sum);
}

/* Returns the share of draws that are called open when the hybrid is one of the runs, moved by
 * `shift`. */
static double share_open(struct trial *trial, double shift, uint64_t *next) {
    double *const matrix = values_of(trial, "floor/distance");
    double *const hybrid = values_of(trial, "attribution/closure_distance");
    const uint32_t m = 2 * REPEATS;
    int open = 0;
    plant(trial, REPEATS, REPEATS, 0.01, 0.01);
    for (int draw = 0; draw < DRAWS; draw++) {
        double point[REPEATS + 1][AXES];
        for (int i = 0; i <= REPEATS; i++)
            for (int d = 0; d < AXES; d++)
                point[i][d] = normal(next) + (i == REPEATS && d == 0 ? shift : 0.0);
        for (uint32_t i = 0; i < REPEATS; i++) {
            hybrid[i] = apart(point[REPEATS], point[i]);
            for (uint32_t j = 0; j < REPEATS; j++)
                matrix[(REPEATS + i) * m + REPEATS + j] = apart(point[i], point[j]);
        }
        struct judgement out = {.floor = FLOOR_PERMUTATION, .floor_runs = {REPEATS, REPEATS}};
        struct judging judging = {.image = trial->image, .arena = &trial->arena, .out = &out};
        assert_int_equal(judge_closure(&judging), STATUS_OK);
        open += out.closure == CLOSURE_OPEN;
    }
    return (double)open / DRAWS;
}

/* The rule's alpha is 1/6, which 3000 draws estimate with a standard error of 0.007. A hybrid 20
 * standard deviations away must always be detected. */
static void verify_alpha(void **state) {
    (void)state;
    struct trial trial;
    uint64_t next = 0;
    trial_open(&trial, "design: both, replicates: 5");
    const double alone = share_open(&trial, 0.0, &next);
    print_message("open by chance: %.4f of %d\n", alone, DRAWS);
    /* four standard errors of 0.007 */
    assert_true(fabs(alone - 1.0 / 6.0) < 0.03);
    assert_true(share_open(&trial, 20.0, &next) == 1.0);
    trial_close(&trial);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_repeats),
        cmocka_unit_test(verify_one_run_of_test),
        cmocka_unit_test(verify_alpha),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

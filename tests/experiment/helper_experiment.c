/* SPDX-License-Identifier: Apache-2.0
 * Writes a scenario into the test's folder, runs its experiment with a second process of its own,
 * and reads the trace back. Any error fails the running test. */
#include "tests/experiment/helper_experiment.h"
#include "trainer/schema_classes.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static char folder[HELPER_BENCH_PATH];
char helper_bench_data[2][HELPER_PATH_SIZE]; /* by task */

int helper_bench_folder(void **state) {
    (void)state;
    helper_ids_write(TASK_SFT, 31, 1, 24, 16, helper_bench_data[TASK_SFT]);
    helper_ids_write(TASK_DPO, 31, 2, 24, 16, helper_bench_data[TASK_DPO]);
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/twinstep-experiment-XXXXXX", base != NULL ? base : "/tmp");
    return mkdtemp(folder) == NULL;
}

int helper_bench_remove(void **state) {
    (void)state;
    unlink(helper_bench_data[TASK_SFT]);
    unlink(helper_bench_data[TASK_DPO]);
    return rmdir(folder);
}

static void count_progress(void *context, const struct experiment_progress *progress) {
    struct bench *bench = (struct bench *)context;
    assert_true(progress->done <= progress->total);
    if (++bench->calls == bench->stop_after) bench->interrupted = 1;
}

static enum status second_process(void *context, const struct config *config, uint64_t steps,
                                  struct digest *out_root) {
    TRY(experiment_rerun(config, steps, out_root));
    out_root->byte[0] ^= (uint8_t)((const struct bench *)context)->lie;
    return STATUS_OK;
}

void helper_bench_open(struct bench *bench, uint64_t steps, const char *text) {
    char whole[4096], pairs[HELPER_PATH_SIZE + 32], texts_key[HELPER_PATH_SIZE + 32];
    const char *overrides[] = {pairs, texts_key};
    snprintf(pairs, sizeof pairs, "common.data.pairs=%s", helper_bench_data[TASK_DPO]);
    snprintf(texts_key, sizeof texts_key, "common.data.text=%s", helper_bench_data[TASK_SFT]);
    memset(bench, 0, sizeof *bench);
    const struct schema *schema;
    int length = snprintf(whole, sizeof whole, "twinstep: 1\nname: case\nsteps: %llu\n%s",
                          (unsigned long long)steps, text);
    assert_true(length > 0 && (size_t)length < sizeof whole);
    assert_int_equal(schema_with_classes(&bench->arena, &schema), STATUS_OK);
    if (scenario_parse(&bench->arena, schema, "case.yaml", whole, (size_t)length, overrides,
                       COUNT_OF(overrides), &bench->scenario) != STATUS_OK)
        fail_msg("%s", status_text());
    snprintf(bench->path, sizeof bench->path, "%s/case.h5", folder);
    snprintf(bench->part, sizeof bench->part, "%s.part", bench->path);
    bench->options = (struct experiment_options){.path = bench->path,
                                                 .reproducible = 1,
                                                 .schema = schema,
                                                 .scenario = bench->scenario,
                                                 .progress = count_progress,
                                                 .second_process = second_process,
                                                 .interrupted = &bench->interrupted,
                                                 .context = bench};
}

void helper_bench_run(struct bench *bench) {
    if (experiment_run(&bench->options, &bench->arena, &bench->judgement) != STATUS_OK)
        fail_msg("%s", status_text());
}

void helper_bench_close(struct bench *bench) {
    arena_close(&bench->arena);
    unlink(bench->path);
    unlink(bench->part);
}

static void printed(const struct judgement *judgement,
                    void (*print)(const struct judgement *, FILE *), char *out, size_t size) {
    FILE *file = tmpfile();
    assert_non_null(file);
    print(judgement, file);
    long length = ftell(file);
    assert_true(length > 0 && (size_t)length < size);
    rewind(file);
    assert_int_equal(fread(out, 1, (size_t)length, file), length);
    out[length] = '\0';
    fclose(file);
}

static void print_json(const struct judgement *judgement, FILE *out) {
    assert_int_equal(judgement_print_json(judgement, out), STATUS_OK);
}

static char texts[2][65536];

void helper_bench_check(struct bench *bench) {
    static void (*const prints[])(const struct judgement *, FILE *) = {judgement_print, print_json};
    static const char *const paths[] = {"verdict/text", "verdict/json"};
    struct arena arena = ARENA_EMPTY;
    struct trace_image *image;
    struct judgement again;
    assert_int_equal(trace_open(bench->path, &arena, &image), STATUS_OK);
    assert_int_equal(image->complete, 1);
    assert_int_equal(judge(image, &arena, &again), STATUS_OK);
    for (size_t i = 0; i < COUNT_OF(prints); i++) {
        printed(&bench->judgement, prints[i], texts[0], sizeof texts[0]);
        printed(&again, prints[i], texts[1], sizeof texts[1]);
        assert_string_equal(texts[0], texts[1]);
        assert_string_equal(texts[0], trace_text_of(image, paths[i])->text);
    }
    assert_int_equal(judgement_exit(&again), judgement_exit(&bench->judgement));
    arena_close(&arena);
}

const char *helper_bench_json(const struct bench *bench) {
    printed(&bench->judgement, print_json, texts[0], sizeof texts[0]);
    return texts[0];
}

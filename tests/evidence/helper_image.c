/* SPDX-License-Identifier: Apache-2.0
 * See helper_image.h. */
#include "tests/evidence/helper_image.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const char *const nothing_recorded = "optimizer.name: adamw\noptimizer.beta1: 0.9\n"
                                            "optimizer.beta2: 0.999\nnumerics.gradient: f32\n"
                                            "numerics.master: f32\nnumerics.rounding: nearest\n"
                                            "task: dpo\n";

static void fill(struct record *record, uint64_t step) {
    record->step = step;
    record->reals[REAL_LOSS] = 2.0;
    record->reals[REAL_GRAD_NORM] = 0.5;
    record->reals[REAL_CLIP_COEF] = 1.0;
    record->reals[REAL_GRAD_TAKEN] = 0.5;
    record->reals[REAL_UPDATE_NORM] = 0.25;
    record->reals[REAL_UPDATE_SURVIVAL] = 1.0;
    record->reals[REAL_TRAVEL] = (double)step;
    record->groups[0][GROUP_LR_APPLIED] = 0.001;
    record->groups[0][GROUP_LR_LOGGED] = 0.001;
    record->groups[0][GROUP_LR_READBACK] = (double)NAN;
    record->integers[INTEGER_OPTIMIZER_T] = (int64_t)step;
}

struct trace_run *helper_image_run(struct helper_image *of, const char *id, const char *arm,
                                   uint64_t mask) {
    assert_true(of->image.run_count < HELPER_RUNS);
    struct trace_run *const run = &of->runs[of->image.run_count++];
    const uint64_t updates = of->image.run_count == 1 ? run->updates : of->runs[0].updates;
    memset(run, 0, sizeof *run);
    run->plan = (struct trace_run_plan){.id = id,
                                        .arm = arm,
                                        .mask = mask,
                                        .first_step = 1,
                                        .shape = {.groups = 1, .tensors = 1},
                                        .groups = "0",
                                        .configuration = nothing_recorded};
    static const char *const tensors[] = {"w"};
    run->plan.tensors = tensors;
    run->updates = updates;
    assert_int_equal(
        arena_take(&of->arena, updates + 1, sizeof *run->records, "records", &run->records),
        STATUS_OK);
    assert_int_equal(record_take(&of->arena, &run->plan.shape, updates, run->records), STATUS_OK);
    for (uint64_t i = 0; i < updates; i++)
        fill(&run->records[i], i + 1);
    return run;
}

static void take_pair(struct helper_image *of, struct trace_pair *pair, const char *b,
                      uint64_t updates) {
    pair->plan = (struct trace_pair_plan){"left", b};
    pair->updates = updates;
    assert_int_equal(
        arena_take(&of->arena, updates + 1, sizeof *pair->records, "pairs", &pair->records),
        STATUS_OK);
    for (uint64_t i = 0; i < updates; i++) {
        memset(&pair->records[i], 0, sizeof pair->records[i]);
        pair->records[i].step = i + 1;
    }
}

void helper_image_open(struct helper_image *of, uint64_t updates) {
    static const double repeated[] = {1.0, 1.0};
    static char steps[24];
    memset(of, 0, sizeof *of);
    of->image = (struct trace_image){.complete = 1,
                                     .seal = TRACE_SEAL_WHOLE,
                                     .runs = of->runs,
                                     .pairs = of->pairs,
                                     .pair_count = 1,
                                     .arrays = of->arrays,
                                     .texts = of->texts,
                                     .attributes = of->attributes};
    of->runs[0].updates = updates;
    helper_image_run(of, "left", "left", 0);
    helper_image_run(of, "right", "right", 0);
    take_pair(of, &of->pairs[0], "right", updates);
    take_pair(of, &of->pairs[1], "twin", updates);
    snprintf(steps, sizeof steps, "%llu", (unsigned long long)updates);
    helper_image_set(of, "", "name", "made");
    helper_image_set(of, "", "baseline", "left");
    helper_image_set(of, "", "test", "right");
    helper_image_set(of, "", "steps", steps);
    helper_image_set(of, "floor", "kind", "exact");
    helper_image_set(of, "floor", "alpha", "0.01");
    helper_image_set(of, "floor", "runs_baseline", "1");
    helper_image_set(of, "floor", "runs_test", "1");
    helper_image_set(of, "attribution", "factors", "0");
    helper_image_set(of, "verdict", "expect_first_step", "0");
    helper_image_put(of, "floor/equal", 2, 1, repeated);
}

void helper_image_close(struct helper_image *of) {
    free(of->words);
    arena_close(&of->arena);
}

void helper_image_set(struct helper_image *of, const char *path, const char *name,
                      const char *text) {
    uint32_t i = 0;
    while (i < of->image.attribute_count &&
           (strcmp(of->attributes[i].path, path) != 0 || strcmp(of->attributes[i].name, name) != 0))
        i++;
    assert_true(i < COUNT_OF(of->attributes));
    of->attributes[i] = (struct trace_attribute){path, name, text};
    if (i == of->image.attribute_count) of->image.attribute_count++;
}

void helper_image_put(struct helper_image *of, const char *path, uint64_t rows, uint64_t columns,
                      const double *values) {
    uint32_t i = 0;
    while (i < of->image.array_count && strcmp(of->arrays[i].plan.path, path) != 0)
        i++;
    assert_true(i < COUNT_OF(of->arrays));
    of->arrays[i] = (struct trace_array){
        .plan = {.path = path, .rank = columns == 1 ? 1 : 2, .shape = {rows, columns}},
        .values = values};
    if (i == of->image.array_count) of->image.array_count++;
}

void helper_image_part(struct helper_image *of, uint64_t step, double distance) {
    for (uint64_t i = step - 1; i < of->runs[1].updates; i++) {
        struct record *const b = &of->runs[1].records[i];
        struct pair_record *const pair = &of->pairs[0].records[i];
        b->digests[DIGEST_ROOT][0] = b->digests[DIGEST_WEIGHTS][0] = 1;
        b->tensor_digests[0][TENSOR_DIGEST_PARAMETER][0] = 1;
        pair->reals[PAIR_DISTANCE] = distance * (double)(i + 2 - step);
        pair->reals[PAIR_DISTANCE_SHARE] = pair->reals[PAIR_DISTANCE] / (double)(i + 1);
    }
}

void helper_image_causes(struct helper_image *of, const char *const *names, uint32_t count) {
    static char texts[CAUSE_COUNT][3][64], factors[8];
    snprintf(factors, sizeof factors, "%u", count);
    helper_image_set(of, "attribution", "factors", factors);
    for (uint32_t i = 0; i < count; i++) {
        snprintf(texts[i][0], sizeof texts[i][0], "factor_%u", i);
        snprintf(texts[i][1], sizeof texts[i][1], "factor_%u_keys", i);
        snprintf(texts[i][2], sizeof texts[i][2], "%s.key: 1 -> 2", names[i]);
        helper_image_set(of, "attribution", texts[i][0], names[i]);
        helper_image_set(of, "attribution", texts[i][1], texts[i][2]);
    }
}

void helper_image_judge(struct helper_image *of, enum status expected) {
    size_t length = 0;
    const enum status status = judge(&of->image, &of->arena, &of->judgement);
    if (status != expected)
        fail_msg("status %d: %s", (int)status, status == STATUS_OK ? "" : status_text());
    if (status != STATUS_OK) return;
    free(of->words);
    of->words = NULL;
    FILE *const stream = open_memstream(&of->words, &length);
    assert_non_null(stream);
    judgement_print(&of->judgement, stream);
    assert_int_equal(fclose(stream), 0);
}

const char *helper_image_row(const struct helper_image *of, enum judged_row_kind kind,
                             uint32_t index) {
    for (uint32_t i = 0; i < of->judgement.row_count; i++)
        if (of->judgement.rows[i].kind == kind && index-- == 0) return of->judgement.rows[i].text;
    return "";
}

void helper_image_expect(const struct helper_image *of, enum judged_row_kind kind, uint32_t index,
                         const char *text) {
    const char *const got = helper_image_row(of, kind, index);
    if (strcmp(got, text) != 0)
        fail_msg("row %d:\nexpected \"%s\"\ngot      \"%s\"\nin\n%s", (int)kind, text, got,
                 of->words);
}

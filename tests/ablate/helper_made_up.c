/* SPDX-License-Identifier: Apache-2.0
 * The ablation in memory: vectors are tensors whose data are the test's own numbers. */
#include "tests/ablate/helper_made_up.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct bench bench;

const vector bench_ten[4] = {{0}, {10, 0}, {0, 1}, {10, 1}};

void bench_close(void) {
    arena_close(&bench.arena);
}

void bench_plan(uint32_t factors, int test, const char *rest) {
    char text[2048];
    int used = snprintf(text, sizeof text, "ablate: 1\ncommand: [train, \"{dir}\"");
    for (uint32_t i = 0; i < factors; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, ", \"{%c}\"", 'a' + (int)i);
    used += snprintf(text + used, sizeof text - (size_t)used, "]\nfactors:\n");
    for (uint32_t i = 0; i < factors; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, "  %c: [x, y]\n", 'a' + (int)i);
    if (test)
        used += snprintf(text + used, sizeof text - (size_t)used,
                         "test: {command: [other, \"{dir}\"]}\n");
    used += snprintf(text + used, sizeof text - (size_t)used, "%s", rest);
    arena_close(&bench.arena);
    memset(&bench, 0, sizeof bench);
    assert_int_equal(ablate_file_parse("x.yaml", text, (size_t)used, &bench.arena, &bench.file),
                     STATUS_OK);
    assert_int_equal(ablate_plan_open(&bench.file, &bench.arena, &bench.plan), STATUS_OK);
    assert_true(bench.plan.run_count <= RUNS_MOST);
    for (uint32_t i = 0; i < bench.plan.run_count; i++)
        bench.results[i].reason = bench.results[i].place = "here";
}

uint32_t bench_run(const char *id) {
    uint32_t i = 0;
    while (i < bench.plan.run_count && strcmp(bench.plan.runs[i].id, id) != 0)
        i++;
    if (i == bench.plan.run_count) fail_msg("the plan has no %s", id);
    return i;
}

static const char *digest_of(const void *bytes, size_t length) {
    struct digest digest;
    char hex[DIGEST_HEX], *copy;
    digest_bytes("x", bytes, length, &digest);
    digest_hex(&digest, hex);
    assert_int_equal(arena_format(&bench.arena, &copy, "%s", hex), STATUS_OK);
    return copy;
}

void bench_leave(uint32_t run, const vector value) {
    static const uint64_t shape[1] = {SIZE};
    struct safetensors_tensor *tensor;
    const struct safetensors_tensor **list;
    double *copy;
    assert_int_equal(arena_take(&bench.arena, 1, sizeof *tensor, "x", &tensor), STATUS_OK);
    assert_int_equal(arena_take(&bench.arena, 1, sizeof *list, "x", &list), STATUS_OK);
    assert_int_equal(arena_take(&bench.arena, SIZE, sizeof *copy, "x", &copy), STATUS_OK);
    memcpy(copy, value, SIZE * sizeof *copy);
    *tensor = (struct safetensors_tensor){.name = "w",
                                          .dtype = safetensors_dtype_of("F64"),
                                          .rank = 1,
                                          .shape = shape,
                                          .count = SIZE,
                                          .end = SIZE * sizeof *copy,
                                          .data = (const unsigned char *)copy};
    list[0] = tensor;
    struct ablate_left *left = &bench.results[run].left;
    left->weights.count = 1;
    left->weights.tensors = list;
    left->digest[READ_WEIGHTS] = digest_of(copy, SIZE * sizeof *copy);
    bench.results[run].state = ABLATE_DONE;
}

void bench_leave_log(uint32_t run, const double *loss, size_t rows) {
    struct ablate_left *left = &bench.results[run].left;
    int64_t *step;
    double *copy;
    assert_int_equal(arena_take(&bench.arena, rows, sizeof *step, "x", &step), STATUS_OK);
    assert_int_equal(arena_take(&bench.arena, rows, sizeof *copy, "x", &copy), STATUS_OK);
    for (size_t i = 0; i < rows; i++)
        step[i] = (int64_t)i + 1;
    memcpy(copy, loss, rows * sizeof *copy);
    left->rows = rows;
    left->step = step;
    left->loss = copy;
    left->digest[READ_LOG] = digest_of(copy, rows * sizeof *copy);
    bench.results[run].state = ABLATE_DONE;
}

void bench_leave_all(const vector *at, const vector test) {
    for (uint32_t i = 0; i < bench.plan.run_count; i++) {
        const struct ablate_run *run = &bench.plan.runs[i];
        bench_leave(i, run->arm == 1 ? test : at[run->mask]);
    }
}

void bench_fail(const char *id) {
    struct ablate_result *result = &bench.results[bench_run(id)];
    *result =
        (struct ablate_result){.state = ABLATE_FAILED, .reason = "exit status 7", .place = ""};
}

const struct ablate_verdict *bench_judge(void) {
    const enum status status =
        ablate_judge(&bench.plan, bench.results, &bench.arena, &bench.verdict);
    if (status != STATUS_OK) fail_msg("%s", status_text());
    return &bench.verdict;
}

void bench_near(double got, double expected) {
    /* shares of such vectors are sums of a few rounded quotients */
    if (!(got - expected <= 1e-12 && expected - got <= 1e-12))
        fail_msg("expected %.17g, got %.17g", expected, got);
}

void bench_forget(const char *id) {
    bench.results[bench_run(id)].state = ABLATE_ABSENT;
}

/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The layout digest of stored states: it must be equal where a state can be taken over, and
 * different wherever a piece has another place, kind or owner, even if the bytes are as many. And a
 * state that is not the one its record names must be refused. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/trainer/helper_train.h"
#include "trainer/snapshot.h"
#include "trainer/state_file.h"

#define BASE                                                                                       \
    "task: sft, batch: {size: 4}, data: {max_len: 16}, "                                           \
    "model: {layers: 1, hidden: 16, heads: 4, kv_heads: 2, mlp: 20, vocab: 19%s}, %s"

static void config_of(const char *model, const char *words, struct config *out) {
    char text[512];
    snprintf(text, sizeof text, BASE, model, words);
    helper_config(3, out, "%s", text);
}

static void plan_of(const char *model, const char *words, struct trace_snapshot_plan *out) {
    struct arena arena = ARENA_EMPTY;
    struct config config;
    struct dataset dataset;
    config_of(model, words, &config);
    helper_ids_open(&config, 5, 12, 16, &arena, &dataset);
    if (snapshot_plan(&config, &dataset, 1, out) != STATUS_OK) fail_msg("%s", status_text());
    arena_close(&arena);
}

static void verify_layout(void **state) {
    (void)state;
    static const struct {
        const char *model, *words;
        int equal, same_bytes; /* 0 also where numbers have two bytes */
    } rows[] = {
        {"", "optimizer: {lr: 1e-3}", 1, 1},
        {"", "seed: 9, clip: {max_norm: 1}", 1, 1},
        {"", "numerics: {compute: bf16}", 1, 1},
        {"", "schedule: {name: cosine}", 0, 1},
        {"", "optimizer: {name: adam}", 0, 1},
        {"", "optimizer: {name: sgd, momentum: 0.9}", 0, 0},
        {"", "numerics: {gradient: bf16}", 0, 0},
        {"", "numerics: {param: bf16, compute: f32}", 0, 0},
        {"", "numerics: {param: bf16, compute: f32, master: f32}", 0, 0},
        {", tied: true", "seed: 1", 0, 0},
        {"", "optimizer: {decay: matrices}", 0, 1},
    };
    struct trace_snapshot_plan base;
    plan_of("", "seed: 1", &base);
    assert_int_equal(base.format, SNAPSHOT_FORMAT);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct trace_snapshot_plan other;
        plan_of(rows[i].model, rows[i].words, &other);
        if ((memcmp(base.layout, other.layout, sizeof base.layout) == 0) != rows[i].equal)
            fail_msg("%s%s: layouts are %s", rows[i].model, rows[i].words,
                     rows[i].equal ? "different" : "equal");
        if ((base.bytes == other.bytes) != rows[i].same_bytes)
            fail_msg("%s%s: %ju bytes, %ju", rows[i].model, rows[i].words, (uintmax_t)base.bytes,
                     (uintmax_t)other.bytes);
        const int narrow = strstr(rows[i].words, "param: bf16") != NULL ||
                           strstr(rows[i].words, "gradient: bf16") != NULL;
        assert_int_equal(other.format, narrow ? SNAPSHOT_FORMAT_NARROW : SNAPSHOT_FORMAT);
    }
}

static void make(const struct run *run, unsigned char *out) {
    assert_int_equal(state_file_make(&run->table, &run->layout, run_state_host(run), out),
                     STATUS_OK);
}

/* Writes a trace of one run that was stepped twice, with states after 1 and 2; `swap` chooses the
 * second one. */
static void write_trace(const char *path, struct run *run, const struct trace_snapshot_plan *plan,
                        int swap) {
    struct arena arena = ARENA_EMPTY;
    struct trace *trace;
    unsigned char *first;
    const struct trace_run_plan planned = {.id = "r",
                                           .arm = "r",
                                           .first_step = 1,
                                           .shape = run->shape,
                                           .consumers = run->axes.consumers,
                                           .streams = run->axes.streams,
                                           .phases = run->axes.phases,
                                           .sites = run->axes.sites,
                                           .tensors = run->axes.tensors,
                                           .snapshots = *plan};
    const struct trace_plan all = {.runs = &planned, .run_count = 1, .overwrite = 1};
    assert_int_equal(arena_take(&arena, plan->bytes, 1, "state", &first), STATUS_OK);
    assert_int_equal(trace_create(path, &all, &arena, &trace), STATUS_OK);
    assert_int_equal(trace_put_record(trace, 0, helper_step(run)), STATUS_OK);
    make(run, first);
    assert_int_equal(snapshot_put(trace, 0, run, 1), STATUS_OK);
    assert_int_equal(trace_put_record(trace, 0, helper_step(run)), STATUS_OK);
    if (swap == 2) { /* 1: the state of update 1, under update 2 */
        make(run, first);
        state_head_of(first)->root.byte[5] ^= 1;
    }
    const enum status status =
        swap == 0 ? snapshot_put(trace, 0, run, 2) : trace_put_snapshot(trace, 0, 2, first);
    assert_int_equal(status, STATUS_OK);
    assert_int_equal(trace_finish(trace), STATUS_OK);
    arena_close(&arena);
}

/* swap 0 stores the right state, 1 that of another update, 2 that of another training, 3 the right
 * one under the format of a memory whose numbers have two bytes in files today. */
static void take(const char *words) {
    const int narrow = strstr(words, "bf16") != NULL;
    char path[] = "/tmp/twinstep-snapshot-XXXXXX";
    const int handle = mkstemp(path);
    assert_true(handle >= 0);
    close(handle);
    for (int swap = 0; swap < 3 + narrow; swap++) {
        struct arena arena = ARENA_EMPTY;
        struct config config;
        struct dataset dataset;
        struct run run, other;
        struct trace_image *image;
        struct trace_snapshot_plan plan;
        const struct run_options options = {.steps = 3};
        config_of("", words, &config);
        helper_ids_open(&config, 5, 12, 16, &arena, &dataset);
        assert_int_equal(snapshot_plan(&config, &dataset, 1, &plan), STATUS_OK);
        if (swap == 3) plan.format = SNAPSHOT_FORMAT;
        helper_run_open(&config, &dataset, &options, &run);
        helper_run_open(&config, &dataset, &options, &other);
        assert_int_equal(snapshot_room(&run), narrow ? plan.bytes : 0);
        write_trace(path, &run, &plan, swap % 3);
        assert_int_equal(trace_open(path, &arena, &image), STATUS_OK);
        const struct trace_run *recorded = &image->runs[0];
        if (swap == 3) {
            assert_int_equal(snapshot_take(path, recorded, 1, &other), STATUS_INPUT);
            assert_non_null(strstr(status_text(), "version 2; this twinstep takes version 3"));
        } else if (swap != 0) {
            assert_int_equal(snapshot_take(path, recorded, 1, &other), STATUS_INPUT);
            assert_non_null(strstr(status_text(), "is not the one that its record names"));
            assert_int_equal(state_head_of(other.state.host)->done, 0);
        } else {
            assert_int_equal(snapshot_take(path, recorded, 1, &other), STATUS_OK);
            assert_memory_equal(run_state_host(&other), run_state_host(&run), run.layout.bytes);
            assert_int_equal(snapshot_take(path, recorded, 2, &other), STATUS_INTERNAL);
        }
        run_close(&run);
        run_close(&other);
        arena_close(&arena);
    }
    unlink(path);
}

static void verify_take(void **state) {
    (void)state;
    take("seed: 1");
    take("numerics: {param: bf16, compute: bf16}");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_layout),
        cmocka_unit_test(verify_take),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 * labels: unit memory
 * Kept states beside a live trace that was copied too early: rows of runs that are finished are in
 * it, and what these runs leave at their end is not. No trace is finished from such files. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/macro.h"
#include "experiment/experiment_series.h"
#include "tests/experiment/helper_experiment.h"

/* What a trace has of tensors and phases are columns, and most of the time. */
#define COMMON                                                                                     \
    "record: {tensors: false, phases: false}\n"                                                    \
    "common: {batch: {size: 4, micro: 2}, model: {layers: 1, hidden: 16, heads: 2, mlp: 20, "      \
    "vocab: 31}, init: {std: 0.1}, optimizer: {lr: 1e-3}"

static const struct early_case {
    const char *name, *text;
    uint64_t copy_after, stop_after; /* progress events */
    const char *lacking;             /* NULL: nothing is, and the run goes on to its end */
} cases[] = {
    /* 3 updates of both arms, then rerun and perturbed run in lockstep: the place is put between */
    {"first place", COMMON "}\narms: {baseline: {}, test: {optimizer: {lr: 1e-4}}}\n", 3, 5,
     "that put first/place, and there is none"},
    {"arms that never part", COMMON "}\narms: {baseline: {}, test: {}}\n", 3, 4, NULL},
    /* 3 updates of both arms, 2 repeats of each, 3 hybrids (seeds of sums are the second cause),
     * the full one last, then their repeats */
    {"closure",
     "floor: {replicates: 3}\nattribution: {replicates: 3}\n" COMMON
     ", numerics: {mode: shuffled, order_seed: free}}\n"
     "arms: {baseline: {}, test: {optimizer: {lr: 1e-4}}}\n",
     3 + 4 * 3 + 3 * 3, 3 + 4 * 3 + 3 * 3 + 1,
     "that put attribution/closure_distance, and there is none"},
};

static char early[HELPER_BENCH_PATH + 64];
static uint64_t events, copy_after, stop_after;
static const char *live;
static volatile int interrupted;

static int always(void *context) {
    (void)context;
    return 1;
}

static int never(void *context) {
    (void)context;
    return 0;
}

static void ignore(void *context) {
    (void)context;
}

static void copy(const char *from, const char *to) {
    char bytes[4096];
    size_t length;
    FILE *const in = fopen(from, "rb"), *const out = fopen(to, "wb");
    assert_non_null(in);
    assert_non_null(out);
    while ((length = fread(bytes, 1, sizeof bytes, in)) > 0)
        assert_int_equal(fwrite(bytes, 1, length, out), length);
    assert_int_equal(fclose(in), 0);
    assert_int_equal(fclose(out), 0);
}

static void copy_or_stop(void *context, const struct experiment_progress *progress) {
    (void)context, (void)progress;
    if (++events == copy_after) copy(live, early);
    if (events == stop_after) interrupted = 1;
}

static void rename_kept(const char *from, const char *to) {
    int moved = 0;
    for (int i = 1; i <= 2; i++) {
        char a[HELPER_BENCH_PATH + 96], b[HELPER_BENCH_PATH + 96];
        snprintf(a, sizeof a, "%s.kept-%d", from, i);
        snprintf(b, sizeof b, "%s.kept-%d", to, i);
        if (to[0] == '\0')
            unlink(a);
        else
            moved += rename(a, b) == 0;
    }
    assert_true(to[0] == '\0' || moved > 0); /* one alone where it was kept once */
}

static void verify_early_copies(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct early_case *const one = &cases[i];
        struct bench bench;
        print_message("%s\n", one->name);
        helper_bench_open(&bench, 3, one->text);
        snprintf(early, sizeof early, "%s-early", bench.part);
        live = bench.part;
        events = 0;
        interrupted = 0;
        copy_after = one->copy_after;
        stop_after = one->stop_after;
        bench.options.progress = copy_or_stop;
        bench.options.interrupted = &interrupted;
        bench.options.keep_now = always;
        bench.options.kept = ignore;
        assert_int_equal(experiment_run(&bench.options, &bench.arena, &bench.judgement),
                         STATUS_INTERRUPTED);
        assert_true(events >= stop_after);
        rename_kept(bench.part, early);
        assert_int_equal(unlink(bench.part), 0);

        interrupted = 0;
        copy_after = stop_after = 0;
        bench.options.resume = early;
        const enum status status = experiment_run(&bench.options, &bench.arena, &bench.judgement);
        if (one->lacking == NULL) {
            if (status != STATUS_OK) fail_msg("%s", status_text());
        } else {
            assert_int_equal(status, STATUS_INPUT);
            if (strstr(status_text(), one->lacking) == NULL) fail_msg("%s", status_text());
            assert_int_not_equal(access(bench.path, F_OK), 0);
        }
        rename_kept(early, "");
        rename_kept(bench.part, "");
        unlink(early);
        helper_bench_close(&bench);
    }
}

/* ---- arrays with a number of each update ---- */

#define UPDATES (SERIES_BLOCK + 3) /* a block that is in the trace, and a part of one */
#define SERIES                                                                                     \
    "record: {tensors: false, phases: false}\n"                                                    \
    "common: {task: sft, batch: {size: 1, micro: 1}, model: {layers: 1, hidden: 8, heads: 1, "     \
    "mlp: 8, vocab: 31}, init: {std: 0.1}, optimizer: {lr: 1e-3}, data: {max_len: 24}}\n"          \
    "arms: {baseline: {}, test: {numerics: {param: bf16}}}\n"

static const char *const series_paths[] = {STEPS_MEANT_PATH, STEPS_LOST_PATH, RESPONSE_PATH};

/* The arrays of a trace; their numbers live in the arena. */
static void read_series(const char *path, struct arena *arena, const struct trace_array *out[3]) {
    struct trace_image *image;
    if (trace_open(path, arena, &image) != STATUS_OK) fail_msg("%s", status_text());
    for (size_t i = 0; i < COUNT_OF(series_paths); i++) {
        out[i] = trace_array_of(image, series_paths[i]);
        assert_non_null(out[i]);
    }
}

/* Trains until `stop` updates of runs, counted through them all, are done; 0: to the end. */
static enum status train(struct bench *bench, uint64_t stop) {
    events = copy_after = 0;
    interrupted = 0;
    stop_after = stop;
    bench->options.progress = copy_or_stop;
    bench->options.interrupted = &interrupted;
    bench->options.keep_now = never; /* but when it is interrupted */
    bench->options.kept = ignore;
    return experiment_run(&bench->options, &bench->arena, &bench->judgement);
}

/* Interrupts a training after so many updates of its runs, and moves what is left away. */
static void interrupt(struct bench *bench, uint64_t stop) {
    assert_int_equal(train(bench, stop), STATUS_INTERRUPTED);
    rename_kept(bench->part, early);
    assert_int_equal(rename(bench->part, early), 0);
    bench->options.resume = early;
}

/* Flips a bit wherever the file has these bytes, which begin at a multiple of 8. */
static void flip(const char *path, const void *bytes, size_t count) {
    FILE *const stream = fopen(path, "r+b");
    assert_non_null(stream);
    assert_int_equal(fseek(stream, 0, SEEK_END), 0);
    const size_t length = (size_t)ftell(stream);
    char *const file = (char *)malloc(length);
    size_t found = 0;
    assert_non_null(file);
    rewind(stream);
    assert_int_equal(fread(file, 1, length, stream), length);
    for (size_t i = 0; i + count <= length; i += 8)
        if (memcmp(file + i, bytes, count) == 0) {
            file[i] = (char)(file[i] ^ 1);
            found++;
        }
    assert_true(found > 0);
    rewind(stream);
    assert_int_equal(fwrite(file, 1, length, stream), length);
    assert_int_equal(fclose(stream), 0);
    free(file);
}

/* The trace that is gone on with has another number in a block of /steps/lost, and is as it was
 * afterwards. */
static void refuse_another(struct bench *bench, const double *block) {
    char aside[HELPER_BENCH_PATH + 64];
    snprintf(aside, sizeof aside, "%s-aside", bench->part);
    copy(early, aside);
    flip(early, block, SERIES_BLOCK * sizeof(double));
    assert_int_equal(train(bench, 0), STATUS_INPUT);
    if (strstr(status_text(), "/steps/lost is another up to update ") == NULL)
        fail_msg("%s", status_text());
    assert_int_equal(rename(aside, early), 0);
    rename_kept(bench->part, "");
    unlink(bench->part);
}

/* The numbers are those of a training that was never interrupted, and those that are in the trace
 * already are not believed where they are others. */
static void verify_series(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    const struct trace_array *wanted[3], *got[3];
    struct bench bench;
    helper_bench_open(&bench, UPDATES, SERIES);
    if (train(&bench, 0) != STATUS_OK) fail_msg("%s", status_text());
    read_series(bench.path, &arena, wanted);
    for (size_t i = 0; i < COUNT_OF(wanted); i++)
        assert_false(isnan(wanted[i]->values[0]) || isnan(wanted[i]->values[UPDATES - 1]));
    assert_true(bench.judgement.meant[1] > bench.judgement.meant[1] * bench.judgement.lost[1]);
    assert_true(bench.judgement.lost[1] > 0.0);
    helper_bench_close(&bench);

    helper_bench_open(&bench, UPDATES, SERIES);
    snprintf(early, sizeof early, "%s-early", bench.part);
    interrupt(&bench, UPDATES - 1); /* in the arms */
    refuse_another(&bench, wanted[1]->values + UPDATES);
    interrupt(&bench, 1 + 2 * (UPDATES - 1)); /* in the rerun and the perturbed run */
    if (train(&bench, 0) != STATUS_OK) fail_msg("%s", status_text());
    read_series(bench.path, &arena, got);
    for (size_t i = 0; i < COUNT_OF(wanted); i++) {
        const size_t count = (i < 2 ? 2 : 1) * (size_t)UPDATES;
        assert_memory_equal(got[i]->values, wanted[i]->values, count * sizeof(double));
    }
    rename_kept(early, "");
    unlink(early);
    helper_bench_close(&bench);
    arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(verify_early_copies),
                                       cmocka_unit_test(verify_series)};
    return cmocka_run_group_tests(tests, helper_bench_folder, helper_bench_remove);
}

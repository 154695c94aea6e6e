/* SPDX-License-Identifier: Apache-2.0
 * labels: unit memory
 * Kept states beside a live trace that was copied too early: rows of runs that are finished are in
 * it, and what these runs leave at their end is not. No trace is finished from such files. */
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
#include "tests/experiment/helper_experiment.h"

#define COMMON                                                                                     \
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
    /* 3 updates of both arms, 2 repeats of each, 7 hybrids (seeds of sums are the third cause), the
     * full one last, then their repeats */
    {"closure",
     "floor: {replicates: 3}\nattribution: {replicates: 3}\n" COMMON
     ", numerics: {mode: shuffled, order_seed: free}}\n"
     "arms: {baseline: {}, test: {optimizer: {lr: 1e-4, beta2: 0.9}}}\n",
     3 + 4 * 3 + 7 * 3, 3 + 4 * 3 + 7 * 3 + 1,
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
    for (int i = 1; i <= 2; i++) {
        char a[HELPER_BENCH_PATH + 96], b[HELPER_BENCH_PATH + 96];
        snprintf(a, sizeof a, "%s.kept-%d", from, i);
        snprintf(b, sizeof b, "%s.kept-%d", to, i);
        if (to[0] == '\0')
            unlink(a);
        else
            assert_int_equal(rename(a, b), 0);
    }
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

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(verify_early_copies)};
    return cmocka_run_group_tests(tests, helper_bench_folder, helper_bench_remove);
}

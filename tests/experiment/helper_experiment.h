/* SPDX-License-Identifier: Apache-2.0
 * A whole experiment from the text of a scenario, for tests: written into a folder of its own, with
 * a second process that may lie, and stopped after any update. Fails the running test on errors. */
#ifndef TWINSTEP_TESTS_EXPERIMENT_HELPER_EXPERIMENT_H
#define TWINSTEP_TESTS_EXPERIMENT_HELPER_EXPERIMENT_H

#include "experiment/experiment.h"
#include "tests/trainer/helper_train.h"

#define HELPER_BENCH_PATH 4096

/* Paths of the data, by task. */
extern char helper_bench_data[2][HELPER_PATH_SIZE];

/* A scenario, its experiment and what came of it. */
struct bench {
    struct arena arena;
    struct scenario *scenario;
    struct experiment_options options;
    struct judgement judgement;
    char path[HELPER_BENCH_PATH + 16], part[HELPER_BENCH_PATH + 32];
    uint64_t calls, stop_after; /* progress events */
    volatile int interrupted;
    int lie; /* the second process gives another root */
};

/* Group setup and teardown. */
int helper_bench_folder(void **state);
int helper_bench_remove(void **state);

/* `text`: common, arms and expect. */
void helper_bench_open(struct bench *bench, uint64_t steps, const char *text);
void helper_bench_run(struct bench *bench);
void helper_bench_close(struct bench *bench);

/* The file judges as memory did, and holds both texts. */
void helper_bench_check(struct bench *bench);

/* The verdict as JSON; overwritten by the next call. */
const char *helper_bench_json(const struct bench *bench);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Runs a whole experiment from the text of a scenario, for tests: it is written into a folder of
 * its own, its second process may be made to lie, and it can be stopped after any update. Errors
 * fail the running test. */
#ifndef TWINSTEP_TESTS_EXPERIMENT_HELPER_EXPERIMENT_H
#define TWINSTEP_TESTS_EXPERIMENT_HELPER_EXPERIMENT_H

#include "experiment/experiment.h"
#include "tests/trainer/helper_train.h"

#define HELPER_BENCH_PATH 4096

/* The paths of the data files, by task. */
extern char helper_bench_data[2][HELPER_PATH_SIZE];

/* A scenario, its experiment, and what came of it. */
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

/* Group setup and teardown: they make and remove the folder with the data. */
int helper_bench_folder(void **state);
int helper_bench_remove(void **state);

/* Opens an experiment from `text`: the sections common, arms and expect. */
void helper_bench_open(struct bench *bench, uint64_t steps, const char *text);
void helper_bench_run(struct bench *bench);
void helper_bench_close(struct bench *bench);

/* Judges once more from the trace file: the verdict must be the one that was computed from memory,
 * and the file must hold both texts. */
void helper_bench_check(struct bench *bench);

/* Returns the verdict as JSON, in memory that the next call overwrites. */
const char *helper_bench_json(const struct bench *bench);

#endif

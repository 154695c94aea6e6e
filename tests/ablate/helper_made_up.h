/* SPDX-License-Identifier: Apache-2.0
 * An ablation in memory, for tests of its verdict: a file is parsed, its runs are planned, and each
 * is given a vector as its weights, a log, or a failure. Nothing is run, no file is read. */
#ifndef TWINSTEP_TESTS_ABLATE_HELPER_MADE_UP_H
#define TWINSTEP_TESTS_ABLATE_HELPER_MADE_UP_H

#include <math.h>

#include "ablate/ablate_judge.h"

#define SIZE 3 /* elements of a vector */
#define RUNS_MOST 128
#define NOT_A_NUMBER ((double)NAN)

typedef double vector[SIZE];

struct bench {
    struct arena arena;
    struct ablate_file file;
    struct ablate_plan plan;
    struct ablate_result results[RUNS_MOST];
    struct checkpoint checkpoints[RUNS_MOST];
    struct ablate_verdict verdict;
};
extern struct bench bench; /* one at a time; bench_close frees it */

#define WEIGHTS "read: {weights: \"{dir}/w\"}\n"
#define LOG "read: {log: \"{dir}/l\"}\n"
#define BOTH "read: {weights: \"{dir}/w\", log: \"{dir}/l\"}\n"

/* Ten to one, by the mask of the factors: a makes 100/101 of the way, b 1/101. */
extern const vector bench_ten[4];

/* Plans an ablation of so many factors, called a, b, ...; `test` says whether the test arm is a
 * command of its own, and `rest` is the rest of the file. */
void bench_plan(uint32_t factors, int test, const char *rest);
void bench_close(void);

/* The index of the run of that name, without which the test fails. */
uint32_t bench_run(const char *id);

/* Gives a run weights, or losses after the updates 1, 2, ..., or neither. */
void bench_leave(uint32_t run, const vector value);
void bench_leave_log(uint32_t run, const double *loss, size_t rows);
void bench_fail(const char *id);
void bench_forget(const char *id); /* as if it had not been run */

/* Gives every run the vector of its factors, and the runs of the test arm `test`. */
void bench_leave_all(const vector *at, const vector test);

/* Judges what is there. */
const struct ablate_verdict *bench_judge(void);

/* Fails where a share of such vectors, a sum of a few rounded quotients, is not what it should be.
 */
void bench_near(double got, double expected);

#endif

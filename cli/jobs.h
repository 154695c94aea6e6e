/* SPDX-License-Identifier: Apache-2.0
 * Independent work, each piece (a job) done by a child of this process, several at once
 * (docs/decisions/jobs.md).
 *
 * How many run at once moves nothing but time: the results are handed over in the order of the
 * list, and a job sees no other one. Invariant: when jobs_run() returns, no child is left. */
#ifndef TWINSTEP_CLI_JOBS_H
#define TWINSTEP_CLI_JOBS_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

struct job {
    const char *name;
    uint64_t threads; /* cores that it fills, at least 1 */
    int alone;        /* nothing runs beside it: what it computes may depend on timing */
};

/* A child's way to its parent. */
struct jobs_link;

struct jobs {
    const char *what; /* "scenarios" */
    const struct job *list;
    size_t count;
    uint64_t cores;  /* that the jobs fill together; a job that has more threads runs alone */
    uint64_t memory; /* bytes that the jobs may take together; UINT64_MAX: nothing is known */
    const volatile int *interrupted;
    /* In the child: does a job and hands its result to jobs_answer(). What it leaves in memory is
     * gone with the child. */
    void (*work)(void *context, size_t index, struct jobs_link *link);
    /* In the parent, by index, each as soon as those before it are there: `answer` is what the job
     * answered; where it is NULL, `why` says why there is none. */
    enum status (*done)(void *context, size_t index, const char *answer, size_t length,
                        const char *why);
    /* In the parent, some ten times a second: how many jobs are done, and those that run, in words
     * ("a 40 %, b 3 %"). */
    void (*far)(void *context, size_t done, const char *now);
    void *context;
};

/* Runs all jobs. STATUS_INTERRUPTED once *interrupted is set: the jobs that run are asked to end by
 * jobs_interrupted() and waited for. STATUS_IO: no process can be started. */
TWINSTEP_MUST_USE enum status jobs_run(const struct jobs *jobs, struct arena *arena);

/* In the child. */

/* Nonzero once the job is asked to end. */
const volatile int *jobs_interrupted(const struct jobs_link *link);

/* Tells how much of the job is done; told at most ten times a second. */
void jobs_tell(struct jobs_link *link, uint64_t done, uint64_t total);

/* Waits until the job may take `bytes` of memory, and says in *out_last whether no other job works
 * now: if one does, and this one finds that the machine has too little, it may ask again, and waits
 * until another one has ended. STATUS_INTERRUPTED; STATUS_IO: the parent is gone. */
TWINSTEP_MUST_USE enum status jobs_ask_memory(struct jobs_link *link, uint64_t bytes,
                                              int *out_last);

/* Hands over the result, once. */
void jobs_answer(struct jobs_link *link, const void *bytes, size_t length);

#endif

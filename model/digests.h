/* SPDX-License-Identifier: Apache-2.0
 * Digests of tensors of a run, made where the tensors' memory is. The leaf hashes of several
 * tensors are computed together: by a backend behind the ops that write the tensors, for which the
 * host waits once, or by the threads of this program, which make the digests of the leaf hashes in
 * any case (125 M parameters with AdamW in bf16 have 6.8 MB of them an update, 6.5 ms of one
 * thread).
 *
 * Invariant: the digests, and what is said about a value outside its dtype, are those of
 * digest_tensor. */
#ifndef TWINSTEP_MODEL_DIGESTS_H
#define TWINSTEP_MODEL_DIGESTS_H

#include "base/form.h"
#include "determinism/digest.h"

struct arena;
struct backend; /* kernels/backend_abi.h */
struct leaf_hashes_args;

struct digest_job {
    const char *name; /* must stay, as the other pointers must, until the digests are done */
    struct form form;
    size_t rank;
    size_t shape[2];
    const void *data; /* in memory of the backend */
    struct digest *out;
    const struct leafhash_leaf
        *leaves; /* made elsewhere; NULL: they are made when the job is done */
};

struct digests {
    const struct backend *backend; /* NULL: none */
    int threads;
    struct leafhash_leaf *leaves;
    struct digest_job *jobs;
    /* (job_limit) arguments of the two calls that take all jobs */
    struct leaf_hashes_args *asked;
    struct digest_leaves *hashed;
    size_t leaf_limit, job_limit;              /* beyond them the jobs are done in several turns */
    size_t leaf_count, job_count, asked_count; /* of jobs that are not done yet */
};

/* Opens digests for at most these many leaves and jobs at once. The memory comes from the arena, so
 * that the backend sees it. `threads` >= 1. */
TWINSTEP_MUST_USE enum status digests_open(const struct backend *backend, int threads,
                                           size_t leaf_limit, size_t job_limit, struct arena *arena,
                                           struct digests *out);

/* Adds a job; job->out is written now or by digests_finish. An error may be one of a job that was
 * added before. */
TWINSTEP_MUST_USE enum status digests_add(struct digests *digests, const struct digest_job *job);

/* Finishes all jobs that were added, and waits for a backend where some were left. */
TWINSTEP_MUST_USE enum status digests_finish(struct digests *digests);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Digests of tensors of a run, where their memory is: with a backend the leaves of several tensors
 * are made on its device, behind the ops that write them, and the host waits once for all.
 *
 * Without one the host makes each digest at once. Invariant: the digests, and what is said of a
 * value outside its dtype, are those of digest_tensor. */
#ifndef TWINSTEP_MODEL_DIGESTS_H
#define TWINSTEP_MODEL_DIGESTS_H

#include "determinism/digest.h"

struct arena;
struct backend; /* kernels/backend_abi.h */
struct leaves_args;

struct digest_job {
    const char *name; /* as the others until the digests are done */
    enum dtype dtype;
    size_t rank;
    size_t shape[2];
    const void *data; /* carriers; in memory of the backend */
    struct digest *out;
};

struct digests {
    const struct backend *backend; /* NULL: none */
    struct leafhash_leaf *leaves;
    struct digest_job *jobs;
    struct leaves_args *asked;    /* of the jobs; all of them in one call */
    size_t leaf_limit, job_limit; /* more are done in several turns */
    size_t leaf_count, job_count; /* of jobs that are not done */
};

/* Memory for leaves comes from the arena, so from the backend. */
TWINSTEP_MUST_USE enum status digests_open(const struct backend *backend, size_t leaf_limit,
                                           size_t job_limit, struct arena *arena,
                                           struct digests *out);

/* job->out is written by now or by digests_finish. Errors may be those of jobs added before. */
TWINSTEP_MUST_USE enum status digests_add(struct digests *digests, const struct digest_job *job);

/* All that were added are done. Waits for the backend where something was left. */
TWINSTEP_MUST_USE enum status digests_finish(struct digests *digests);

#endif

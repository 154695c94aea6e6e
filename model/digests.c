/* SPDX-License-Identifier: Apache-2.0
 * Keeps jobs in the order in which they came, with their leaf hashes one behind the other in one
 * buffer. A tensor with more leaves than the buffer is hashed by the host. Invariant: a job's
 * digest is written once. */
#include "model/digests.h"

#include <string.h>

#include "base/arena.h"
#include "kernels/backend_abi.h"
#include "model/backends.h"

enum status digests_open(const struct backend *backend, int threads, size_t leaf_limit,
                         size_t job_limit, struct arena *arena, struct digests *out) {
    *out = (struct digests){
        .backend = backend, .threads = threads, .leaf_limit = leaf_limit, .job_limit = job_limit};
    TRY(arena_take(arena, job_limit, sizeof *out->jobs, "digests", &out->jobs));
    TRY(arena_take(arena, job_limit, sizeof *out->asked, "digests", &out->asked));
    return arena_take(arena, leaf_limit, sizeof *out->leaves, "leaves of digests", &out->leaves);
}

static size_t job_elements(const struct digest_job *job) {
    size_t count = 1;
    for (size_t i = 0; i < job->rank; i++)
        count *= job->shape[i];
    return count;
}

/* Hashes a tensor on the host, or says which of its numbers does not fit its dtype. */
static enum status on_host(const struct digests *digests, const struct digest_job *job) {
    struct host_window window = HOST_WINDOW_EMPTY;
    const void *data;
    enum status status = host_window_read(&window, digests->backend, job->data,
                                          job_elements(job) * dtype_carrier(job->dtype), &data);
    if (status == STATUS_OK)
        status = digest_tensor(job->name, job->dtype, job->rank, job->shape, data, job->out);
    host_window_close(&window);
    return status;
}

static int has_misfit(const struct leafhash_leaf *leaves, size_t count) {
    static const struct leafhash_leaf none = {.misfit = {0}};
    for (size_t i = 0; i < count; i++)
        if (memcmp(leaves[i].misfit, none.misfit, sizeof none.misfit) != 0) return 1;
    return 0;
}

enum status digests_add(struct digests *digests, const struct digest_job *job) {
    const size_t count = job_elements(job), leaves = leaf_hashes_count(job->dtype, count);
    if (digests->job_count == digests->job_limit ||
        leaves > digests->leaf_limit - digests->leaf_count)
        TRY(digests_finish(digests));
    if (leaves > digests->leaf_limit || digests->job_limit == 0) {
        TRY(backends_wait(digests->backend));
        return on_host(digests, job);
    }
    digests->asked[digests->job_count] = (struct leaf_hashes_args){
        job->dtype, count, job->data, digests->leaves + digests->leaf_count};
    digests->jobs[digests->job_count++] = *job;
    digests->leaf_count += leaves;
    return STATUS_OK;
}

enum status digests_finish(struct digests *digests) {
    const struct leafhash_leaf *leaves = digests->leaves;
    const size_t jobs = digests->job_count;
    digests->job_count = digests->leaf_count = 0;
    if (jobs == 0) return STATUS_OK;
    backends_leaf_hashes(digests->backend, digests->threads, digests->asked, jobs);
    TRY(backends_wait(digests->backend));
    for (size_t i = 0; i < jobs; i++) {
        const struct digest_job *const job = &digests->jobs[i];
        const size_t count = leaf_hashes_count(job->dtype, job_elements(job));
        TRY(has_misfit(leaves, count) ? on_host(digests, job)
                                      : digest_tensor_leaves(job->name, job->dtype, job->rank,
                                                             job->shape, NULL, leaves, job->out));
        leaves += count;
    }
    return STATUS_OK;
}

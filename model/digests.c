/* SPDX-License-Identifier: Apache-2.0
 * Keeps jobs in the order in which they came, with their leaf hashes one behind the other in one
 * buffer. A tensor with more leaves than the buffer is hashed by the host. Invariant: a job's
 * digest is written once. */
#include "model/digests.h"

#include "base/arena.h"
#include "kernels/backend_abi.h"
#include "kernels/evidence.h"
#include "model/backends.h"

enum status digests_open(const struct backend *backend, int threads, size_t leaf_limit,
                         size_t job_limit, struct arena *arena, struct digests *out) {
    *out = (struct digests){
        .backend = backend, .threads = threads, .leaf_limit = leaf_limit, .job_limit = job_limit};
    TRY(arena_take(arena, job_limit, sizeof *out->jobs, "digests", &out->jobs));
    TRY(arena_take(arena, job_limit, sizeof *out->asked, "digests", &out->asked));
    TRY(arena_take(arena, job_limit, sizeof *out->hashed, "digests", &out->hashed));
    return arena_take(arena, leaf_limit, sizeof *out->leaves, "leaves of digests", &out->leaves);
}

static size_t job_elements(const struct digest_job *job) {
    size_t count = 1;
    for (size_t i = 0; i < job->rank; i++)
        count *= job->shape[i];
    return count;
}

/* Replaces numbers in two bytes by their carriers, which live in the arena. */
static enum status widen(const struct digest_job *job, struct arena *arena, const void **data) {
    const size_t count = job_elements(job);
    float *numbers;
    TRY(arena_take(arena, count, sizeof *numbers, "numbers to hash", &numbers));
    form_widen(*data, job->form, count, numbers);
    *data = numbers;
    return STATUS_OK;
}

/* Hashes a tensor on the host, or says which of its numbers does not fit its dtype. */
static enum status on_host(const struct digests *digests, const struct digest_job *job) {
    struct host_window window = HOST_WINDOW_EMPTY;
    struct arena carriers = ARENA_EMPTY;
    const void *data;
    enum status status = host_window_read(&window, digests->backend, job->data,
                                          job_elements(job) * job->form.width, &data);
    if (status == STATUS_OK && form_is_narrow(job->form)) status = widen(job, &carriers, &data);
    if (status == STATUS_OK)
        status = digest_tensor(job->name, job->form.dtype, job->rank, job->shape, data, job->out);
    arena_close(&carriers);
    host_window_close(&window);
    return status;
}

/* Notes a job whose leaf hashes are at `leaves` when the jobs are finished. */
static void note(struct digests *digests, const struct digest_job *job,
                 const struct leafhash_leaf *leaves) {
    struct digest_job *const kept = &digests->jobs[digests->job_count];
    *kept = *job;
    digests->hashed[digests->job_count++] = (struct digest_leaves){
        kept->name, kept->form.dtype, kept->rank, kept->shape, leaves, kept->out, 0};
}

enum status digests_add(struct digests *digests, const struct digest_job *job) {
    const size_t count = job_elements(job);
    const size_t leaves = job->leaves != NULL ? 0 : leaf_hashes_count(job->form.dtype, count);
    if (digests->job_count == digests->job_limit ||
        leaves > digests->leaf_limit - digests->leaf_count)
        TRY(digests_finish(digests));
    if (leaves > digests->leaf_limit || digests->job_limit == 0) {
        TRY(backends_wait(digests->backend));
        return on_host(digests, job);
    }
    if (job->leaves != NULL) {
        note(digests, job, job->leaves);
        return STATUS_OK;
    }
    struct leafhash_leaf *const made = digests->leaves + digests->leaf_count;
    digests->asked[digests->asked_count++] =
        (struct leaf_hashes_args){job->form, count, job->data, made};
    digests->leaf_count += leaves;
    note(digests, job, made);
    return STATUS_OK;
}

/* Says which number of a job lies outside its dtype; where the leaf hashes were made elsewhere, it
 * is an error, too, if there is none. */
static enum status on_misfit(const struct digests *digests, const struct digest_job *job) {
    return job->leaves == NULL ? on_host(digests, job)
                               : digest_tensor_leaves(job->name, job->form.dtype, job->rank,
                                                      job->shape, job->data, job->leaves, job->out);
}

enum status digests_finish(struct digests *digests) {
    const size_t jobs = digests->job_count, asked = digests->asked_count;
    digests->job_count = digests->asked_count = digests->leaf_count = 0;
    if (asked > 0) {
        backends_leaf_hashes(digests->backend, digests->threads, digests->asked, asked);
        TRY(backends_wait(digests->backend));
    }
    evidence_digests(digests->threads, digests->hashed, jobs);
    for (size_t i = 0; i < jobs; i++)
        if (digests->hashed[i].misfit) TRY(on_misfit(digests, &digests->jobs[i]));
    return STATUS_OK;
}

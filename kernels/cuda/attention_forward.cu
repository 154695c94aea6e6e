/* SPDX-License-Identifier: Apache-2.0
 * Attention forward (law 6): each query's maximum and sum of exponentials, then out = round(P v)
 * over keys. As the mode says, one of several kernels makes the sums over keys, which the backward
 * takes from here for dQ. */
#include "kernels/cuda/attention_atomic.h"
#include "kernels/cuda/attention_joined.h"

/* Launches the kernel that makes the sums. The state of the group's queries must be there already.
 * `kind` and `pass` are those of this sum. */
static void attention_over_keys(const struct op_call *call, struct attention_job *job,
                                enum sum_kind kind, enum op_pass pass) {
    const size_t columns = (size_t)job->H * job->D;
    if (attention_cut(call, job)) {
        attention_joined_launch(job);
    } else if (shuffle_active(call, kind)) {
        const struct shuffle shuffle = order_open(call, pass);
        attention_in_batches(call, job, &shuffle, columns, attention_joined_launch);
    } else if (race_active(call, kind)) {
        attention_race(call, job);
    } else {
        LAUNCH(attention_keys_kernel, attention_blocks(job, job->H, ATTENTION_PANEL),
               ATTENTION_THREADS, ATTENTION_SHARED(2), job);
    }
}

static void attention_forward(const struct op_call *call,
                              const struct attention_forward_args *args) {
    struct attention_job job = attention_job_forward(call, args);
    for (uint32_t first = 0; first < args->count; first += GROUP_SEQUENCES) {
        job.group = group_at(args->sequences, args->count, first);
        attention_find_state(call, &job);
        attention_over_keys(call, &job, SUM_FORWARD, PASS_FORWARD);
        job.counted += job.group.tokens;
    }
}

/* SPDX-License-Identifier: Apache-2.0
 * Attention forward (law 6): each query's maximum and sum of exponentials (its state), then out =
 * round(P v) over keys. The sums over keys are made by the kernel of the mode: in chunks that are
 * joined in order where a library would cut the sum (shaped), in orders that are drawn (shuffled),
 * by atomic additions (atomic), else each as one chain (invariant). The backward makes its sums for
 * dQ by the same function.
 *
 * The result goes to args->out alone. States lie in the call's scratch, one group of sequences
 * after the other, and the backward finds them anew. Nothing here waits for the device: a launch
 * that fails is noted by LAUNCH, and told where the caller waits. */
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

/* `counted` is how many tokens of the call stand before the group: law 9's tiles of rows are
 * counted over the whole call. */
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

/* SPDX-License-Identifier: Apache-2.0
 * Which kernel makes the sums over keys of a call: PV of the forward, dQ of the backward. */
#ifndef TWINSTEP_KERNELS_CUDA_ATTENTION_MODES_H
#define TWINSTEP_KERNELS_CUDA_ATTENTION_MODES_H

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

#endif

/* SPDX-License-Identifier: Apache-2.0
 * The sums over keys that blocks of mode atomic add to: +0 before they start, rounded to the output
 * when all are in. Used by the kernels of attention_atomic.h and by those on tensor cores. */
#ifndef TWINSTEP_KERNELS_CUDA_ATTENTION_SUMS_H
#define TWINSTEP_KERNELS_CUDA_ATTENTION_SUMS_H

#include "kernels/cuda/attention_job.h"

KERNEL(attention_atomic_clear, struct attention_job) {
    const size_t i = (size_t)BLOCK * THREADS + THREAD;
    if (i < (size_t)args->group.tokens * args->H * args->D) args->sums[i] = ACC(0.0);
}

KERNEL(attention_atomic_round, struct attention_job) {
    const size_t i = (size_t)BLOCK * THREADS + THREAD, line = (size_t)args->H * args->D;
    if (i >= args->group.tokens * line) return;
    const struct place place = group_place(&args->group, (uint32_t)(i / line));
    const size_t row = (size_t)place.sequence->row + place.position;
    attention_over_keys_out(args)[row * line + i % line] =
        stored_of(carrier_round(args->sums[i], args->dtype));
}

static size_t attention_race_blocks(const struct attention_job *job) {
    return element_blocks((size_t)job->group.tokens * job->H * job->D);
}

/* Sets the sums to +0 before blocks add to them. */
static void attention_race_open(const struct op_call *call, struct attention_job *job) {
    job->race.chunk = (uint32_t)least(call->racing->chunk, (size_t)1 << 20);
    /* Behind the state, at a multiple of 16 bytes. */
    job->sums = job->state + ((size_t)job->group.tokens * job->H * ATTENTION_STATE + 3) / 4 * 4;
    LAUNCH(attention_atomic_clear, attention_race_blocks(job), ELEMENT_THREADS, 0, job);
}

static void attention_race_close(const struct attention_job *job) {
    LAUNCH(attention_atomic_round, attention_race_blocks(job), ELEMENT_THREADS, 0, job);
}

#endif

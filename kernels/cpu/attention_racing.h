/* SPDX-License-Identifier: Apache-2.0
 * Attention's sums over keys by law 14: PV of the forward, dQ of the backward. In rounds: each
 * thread opens a block of its own unit; then all threads take chunks of keys of all blocks and race
 * on the blocks' sums; then each closes its own.
 *
 * What opening and closing are is the caller's.
 * Invariant: every chunk of every block is added to space.result exactly once. */
#ifndef TWINSTEP_KERNELS_CPU_ATTENTION_RACING_H
#define TWINSTEP_KERNELS_CPU_ATTENTION_RACING_H

#include "kernels/cpu/attention.h"

#if defined(TWINSTEP_VARIANT)

struct attention_race {
    const struct op_call *call;
    const struct attention_problem *problem;
    size_t own;   /* attention_own() */
    int backward; /* 1: the sums are of space.dp and k_rows (dQ); 0: of space.p and v_rows (PV) */
    const void *data;
    void (*open_unit)(const struct attention_task *task);
    void (*open_block)(const struct attention_task *task, const struct attention_block *block,
                       const void *data);
    void (*close_block)(const struct attention_task *task, const struct attention_block *block,
                        const void *data);
    void (*close_unit)(const struct attention_task *task, const void *data);
};

void VARIANT(attention_racing)(const struct attention_race *race);

#endif
#endif

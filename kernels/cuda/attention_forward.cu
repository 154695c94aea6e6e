/* SPDX-License-Identifier: Apache-2.0
 * Attention forward (law 6): each query's maximum and sum of exponentials, then out = round(P v)
 * over keys, as the mode says. */
#include "kernels/cuda/attention_modes.h"

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

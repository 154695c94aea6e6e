/* SPDX-License-Identifier: Apache-2.0
 * Shares of more than five factors: reads the sampled orders and hybrids of a trace, checks them
 * and hands them to the estimator (determinism/orders.h). Private to the judge. */
#ifndef TWINSTEP_EVIDENCE_JUDGE_SAMPLED_H
#define TWINSTEP_EVIDENCE_JUDGE_SAMPLED_H

#include "determinism/orders.h"
#include "determinism/trace.h"

struct judged_orders {
    int known; /* 0: the trace holds no finished sample, and the rest is not set */
    struct orders_shares shares;
    double alone[ORDERS_FACTORS]; /* value of the hybrid with one factor; NaN: not in the sample */
    uint32_t hybrids;             /* distinct ones, without those of no and of all factors */
    uint32_t shared;              /* those of them that train like another run: not trained */
};

/* The estimate, with intervals that all hold together but with probability `alpha`. STATUS_INPUT:
 * the arrays do not fit together. */
TWINSTEP_MUST_USE enum status judge_orders(const struct trace_image *image, uint32_t factors,
                                           double alpha, struct arena *arena,
                                           struct judged_orders *out);

#endif

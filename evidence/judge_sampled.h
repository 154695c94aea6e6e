/* SPDX-License-Identifier: Apache-2.0
 * Shares of many factors from a trace: reads its sampled orders and mixtures, checks them, hands
 * them to the estimator. Private to the judge. */
#ifndef TWINSTEP_EVIDENCE_JUDGE_SAMPLED_H
#define TWINSTEP_EVIDENCE_JUDGE_SAMPLED_H

#include "determinism/orders.h"
#include "determinism/trace.h"

struct judged_orders {
    int known; /* 0: the trace holds no finished sample; the rest is not set */
    struct orders_shares shares;
    double alone[ORDERS_FACTORS]; /* value of the mixture with one factor; NaN: not in the sample */
    uint32_t hybrids;             /* distinct, those with no factor and with all left out */
    uint32_t shared;              /* of them: equal to another run, so not trained again */
};

/* STATUS_INPUT: arrays that do not fit together. */
TWINSTEP_MUST_USE enum status judge_orders(const struct trace_image *image, uint32_t factors,
                                           double alpha, struct arena *arena,
                                           struct judged_orders *out);

#endif

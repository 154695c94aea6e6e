/* SPDX-License-Identifier: Apache-2.0
 * The numbers of one step of AdamW's default variant with torch's usual betas and eps, for tests of
 * the arithmetic of one element. Only files that are compiled with a variant may include it. */
#ifndef TWINSTEP_TESTS_BASE_HELPER_ADAMW_H
#define TWINSTEP_TESTS_BASE_HELPER_ADAMW_H

#include "base/rule_adam.h"

#if defined(TWINSTEP_VARIANT)
static inline struct rule_adam helper_adamw(double lr, double weight_decay, uint64_t t) {
    const struct rule_adam_call call = {.variant = RULE_ADAM_TORCH,
                                        .decoupled = 1,
                                        .bias_correction = 1,
                                        .lr = lr,
                                        .weight_decay = weight_decay,
                                        .beta1 = 0.9,
                                        .beta2 = 0.999,
                                        .eps = 1e-8,
                                        .factor = 1.0,
                                        .t = t};
    return rule_adam_open(&call);
}
#endif

#endif

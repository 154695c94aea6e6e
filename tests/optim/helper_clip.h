/* SPDX-License-Identifier: Apache-2.0
 * The rule of clipping that most tests take. */
#ifndef TWINSTEP_TESTS_OPTIM_HELPER_CLIP_H
#define TWINSTEP_TESTS_OPTIM_HELPER_CLIP_H

#include "optim/clip.h"

/* The rule of law 7, which is that of torch.nn.utils.clip_grad_norm_, for this max_norm. */
static inline struct clip_rule helper_clip_rule(double max_norm) {
    return (struct clip_rule){.max_norm = max_norm, .eps = 1e-6, .replicas = 1};
}

#endif

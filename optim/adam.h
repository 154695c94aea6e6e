/* SPDX-License-Identifier: Apache-2.0
 * The parameters that the classes adam (L2 decay) and adamw (decoupled decay) share, for adam.c and
 * its tests. Private to optim/. */
#ifndef TWINSTEP_OPTIM_ADAM_H
#define TWINSTEP_OPTIM_ADAM_H

#include "optim/spread.h"

/* How the step count behind the bias corrections goes on. */
enum adam_t { ADAM_T_COUNTED = 0, ADAM_T_FROZEN, ADAM_T_TWICE, ADAM_T_AHEAD };

/* What a step does when a gradient is not finite. */
enum adam_nonfinite {
    ADAM_NONFINITE_VARIANT = 0, /* the rule of the variant's framework holds */
    ADAM_NONFINITE_STEP,        /* the step is made as if all were finite */
    ADAM_NONFINITE_HOLD,        /* nothing is written, t stays */
    ADAM_NONFINITE_ZERO /* every term is multiplied by 0, so NaN stays NaN; OLMo-core only */
};

struct adam_values {
    double beta1, beta2, eps;
    int32_t variant; /* enum rule_adam_variant */
    int32_t t;       /* enum adam_t */
    int32_t on_nonfinite;
    uint8_t amsgrad, bias_correction, zero[2];
};

#endif

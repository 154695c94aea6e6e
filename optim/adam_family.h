/* SPDX-License-Identifier: Apache-2.0
 * What the classes adam (L2) and adamw (decoupled decay) share: their parameters, the step over all
 * named arithmetic variants, the switches for known bugs, the read-back direction.
 * The arithmetic is base/rule.h and base/rule_adam.h. Private to optim/. */
#ifndef TWINSTEP_OPTIM_ADAM_FAMILY_H
#define TWINSTEP_OPTIM_ADAM_FAMILY_H

#include "optim/spread.h"

enum adam_t { ADAM_T_COUNTED = 0, ADAM_T_FROZEN, ADAM_T_TWICE };
enum adam_nonfinite {
    ADAM_NONFINITE_VARIANT = 0, /* what the variant's framework does */
    ADAM_NONFINITE_STEP,        /* found_inf is not looked at */
    ADAM_NONFINITE_HOLD,        /* nothing is written, t stays */
    ADAM_NONFINITE_ZERO         /* every term is multiplied by 0: NaN poisons; OLMo-core only */
};

struct adam_values {
    double beta1, beta2, eps;
    int32_t variant; /* enum rule_adam_variant */
    int32_t t;       /* enum adam_t */
    int32_t on_nonfinite;
    uint8_t amsgrad, bias_correction, zero[2];
};

/* As in torch: at 1 a correction of 1 - beta^t would be 0. */
#define ADAM_BELOW_ONE 0x1.fffffffffffffp-1

#define ADAM_AT(field) offsetof(struct adam_values, field), sizeof(((struct adam_values *)0)->field)

/* The rows of both classes but for the names of variants. */
#define ADAM_KEYS(variant_help, variant_names)                                                     \
    {"beta1",                                                                                      \
     KEY_REAL,                                                                                     \
     "1",                                                                                          \
     "0.9",                                                                                        \
     CAUSE_OPTIMIZER,                                                                              \
     "Decay of the mean of gradients",                                                             \
     ADAM_AT(beta1),                                                                               \
     0,                                                                                            \
     ADAM_BELOW_ONE,                                                                               \
     NULL,                                                                                         \
     NULL},                                                                                        \
        {"beta2",                                                                                  \
         KEY_REAL,                                                                                 \
         "1",                                                                                      \
         "0.999",                                                                                  \
         CAUSE_OPTIMIZER,                                                                          \
         "Decay of the mean of squared gradients",                                                 \
         ADAM_AT(beta2),                                                                           \
         0,                                                                                        \
         ADAM_BELOW_ONE,                                                                           \
         NULL,                                                                                     \
         NULL},                                                                                    \
        {"eps",                                                                                    \
         KEY_REAL,                                                                                 \
         "1",                                                                                      \
         "1e-8",                                                                                   \
         CAUSE_OPTIMIZER,                                                                          \
         "Added to the root of the corrected second moment (hf-legacy: before the correction)",    \
         ADAM_AT(eps),                                                                             \
         0,                                                                                        \
         1e6,                                                                                      \
         NULL,                                                                                     \
         NULL},                                                                                    \
        {"variant",        KEY_ENUM, "", "torch", CAUSE_OPTIMIZER, variant_help,                   \
         ADAM_AT(variant), 0,        0,  NULL,    variant_names},                                  \
        {"t",                                                                                      \
         KEY_ENUM,                                                                                 \
         "",                                                                                       \
         "counted",                                                                                \
         CAUSE_OPTIMIZER,                                                                          \
         "Step count behind the bias corrections: counted; frozen at the first step (OLMo-core "   \
         "before its step_increment_bugfix); twice per step (DeepSpeed's group of mixed dtypes)",  \
         ADAM_AT(t),                                                                               \
         0,                                                                                        \
         0,                                                                                        \
         NULL,                                                                                     \
         adam_t_names},                                                                            \
        {"amsgrad",                                                                                \
         KEY_BOOL,                                                                                 \
         "",                                                                                       \
         "false",                                                                                  \
         CAUSE_OPTIMIZER,                                                                          \
         "Divides by the root of the largest second moment so far; torch variants only",           \
         ADAM_AT(amsgrad),                                                                         \
         0,                                                                                        \
         0,                                                                                        \
         NULL,                                                                                     \
         NULL},                                                                                    \
        {"bias_correction",                                                                        \
         KEY_BOOL,                                                                                 \
         "",                                                                                       \
         "true",                                                                                   \
         CAUSE_OPTIMIZER,                                                                          \
         "Corrects the moments for their start at 0; only apex and hf-legacy can leave it out",    \
         ADAM_AT(bias_correction),                                                                 \
         0,                                                                                        \
         0,                                                                                        \
         NULL,                                                                                     \
         NULL},                                                                                    \
    {                                                                                              \
        "on_nonfinite", KEY_ENUM, "", "variant", CAUSE_OPTIMIZER,                                  \
            "An optimize phase that runs although a gradient is not finite: as the variant's "     \
            "framework; steps all the same; holds everything; or multiplies every term by zero, "  \
            "which NaN survives (OLMo-core's SkipStep)",                                           \
            ADAM_AT(on_nonfinite), 0, 0, NULL, adam_nonfinite_names                                \
    }

enum { ADAM_KEY_COUNT = 8, ADAM_SLOT_COUNT = 3 };

extern const char *const adam_t_names[];
extern const char *const adam_nonfinite_names[];
extern const char *const adam_slot_names[]; /* ADAM_SLOT_COUNT */

/* max_exp_avg_sq exists with amsgrad only. */
uint64_t adam_slot_elements(const void *values, uint32_t slot, uint32_t rank,
                            const uint64_t *shape);

/* decoupled: adamw; else adam. */
TWINSTEP_MUST_USE enum status adam_step(const struct optim_call *call,
                                        const struct optim_class *class_, int decoupled);
/* optim_class.moment: exp_avg' = beta1 exp_avg + (1 - beta1) g. */
int adam_moment(const void *values, uint64_t t, double *out_keep, double *out_take);

struct rule_direction adam_direction_rule(const struct optim_call *call, uint32_t index,
                                          int decoupled);
TWINSTEP_MUST_USE enum status adam_direction(const struct optim_call *call, uint32_t index,
                                             const void *before, int decoupled, double *out);

/* For callers that come past the rows, and for pairs of keys. `variants`: names of the class. */
TWINSTEP_MUST_USE enum status adam_validate(const void *values, int32_t variants);

#endif

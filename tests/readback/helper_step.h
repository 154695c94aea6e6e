/* SPDX-License-Identifier: Apache-2.0
 * One update of a small made-up training, computed here operation by operation as torch 2.15 writes
 * it down (torch/optim/adam.py:_single_tensor_adam, sgd.py:_single_tensor_sgd), and never by the
 * code under test. */
#ifndef TWINSTEP_TESTS_READBACK_HELPER_STEP_H
#define TWINSTEP_TESTS_READBACK_HELPER_STEP_H

#include "readback/observed_step.h"

#define SCENE_TENSORS 3
#define SCENE_COUNT 6000 /* elements of a tensor: more than one block */
#define SCENE_IDLE 1500  /* of these at the end no gradient reaches */

struct scene_asked {
    enum step_rule rule;
    enum dtype weights, state; /* what is stored; masters in f32 where weights are narrower */
    int has_masters;
    int is_one_kernel; /* computes in f32 and rounds to `state` what it stores, behind the step */
    double lr, decay, beta1, beta2, eps, momentum;
    int coupled, nesterov, amsgrad;
    double updates;     /* how many there have been, this one included */
    double count_ahead; /* the count that the arithmetic uses is so much larger */
    double true_beta2;  /* what makes v, if not 0 */
    int rounds_start;   /* the update begins from weights rounded to bf16 */
    int is_lost;        /* Adam begins from moments of 0, and the file before holds others */
    double scale;       /* of the weights */
    uint64_t drawn;     /* tensors that were drawn for other scenes: their numbers are other ones */
    double gradient;    /* the gradients are so many times the usual ones, if not 0 */
    double fresh;       /* this update's gradient alone is so many times the usual one, if not 0 */
};

struct scene {
    struct step step;
    struct step_group group;
    struct step_tensor tensor[SCENE_TENSORS];
    double norm; /* of the gradient that the optimizer took in, without the decay */
    unsigned char bytes[SCENE_TENSORS][7][SCENE_COUNT * sizeof(double)];
};

/* An AdamW update in f32 at LR 5e-4 with decay 0.1. */
struct scene_asked scene_usual(void);
void scene_make(const struct scene_asked *asked, struct scene *out);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * One update of a training, as two checkpoints hold it: weights before and after, the optimizer's
 * state after, and where it was saved, the state before. This is what every file of readback/
 * reads.
 *
 * It says nothing about files; readback/folders.c fills it from what a trainer left on disk. */
#ifndef TWINSTEP_READBACK_OBSERVED_STEP_H
#define TWINSTEP_READBACK_OBSERVED_STEP_H

#include "readback/stored.h"

/* What moves a weight. Sources, torch 2.15: torch/optim/adam.py (_single_tensor_adam, AdamW is Adam
 * with decoupled_weight_decay), sgd.py (_single_tensor_sgd), _adafactor.py
 * (_single_tensor_adafactor). Lion has no class in torch; the form is that of its paper, arXiv
 * 2302.06675, algorithm 2. */
enum step_rule { STEP_RULE_ADAM = 0, STEP_RULE_SGD, STEP_RULE_LION, STEP_RULE_ADAFACTOR };

/* The numbers of one parameter group, as the optimizer's own file has them after the update. A
 * number that the file lacks is NaN. `maximize` needs none: torch turns the gradient's sign before
 * it enters the state. */
struct step_group {
    enum step_rule rule;
    double promised;            /* the LR that the file before the update promises to it */
    double next;                /* the LR that the file after the update promises to the next one */
    double initial;             /* initial_lr: the peak, which a scheduler keeps there */
    double decay;               /* weight_decay */
    double beta1, beta2, eps;   /* Adam, Lion */
    double momentum, dampening; /* SGD */
    double eps2;                /* Adafactor: steps are scaled by max(eps2, rms of the weights) */
    int is_scaled;              /* 1, unless scale_parameter is off */
    int nesterov, amsgrad;
    int decoupled; /* the decay shrinks weights directly and does not enter the gradient */
    int is_unsaid; /* no file says whether; torch writes it from 2.6 on */
    /* The group lacks a key that torch's class writes, so another class made the step, and it may
     * size steps in its own way (RAdam, LAMB and BertAdam keep the same moments). */
    int is_other_class;
    int is_capturable;   /* Adam: its count is in f32 on the device, and so are its powers */
    int is_hand_set;     /* no scheduler of torch has touched the group */
    double largest_step; /* Adafactor: steps are clipped to this root mean square */
};

#define STEP_NO_GROUP UINT32_MAX

struct step_tensor {
    const char *name;
    uint32_t group;         /* STEP_NO_GROUP: the optimizer does not know this tensor */
    uint64_t count;         /* elements */
    int is_vector;          /* one axis or none: a bias or a norm, as a rule */
    struct stored old, now; /* weights before and after */
    /* The state after: exp_avg or momentum_buffer; exp_avg_sq; max_exp_avg_sq with amsgrad. */
    struct stored first, second, largest;
    struct stored first_before, second_before;
    int has_before; /* the state before was saved, or the update is the first */
    /* The update left it out: its moments and its count are as before. No gradient reached it (an
     * expert without a token), or a loss scaler met an overflow. */
    int is_left_out;
    /* The optimizer's count for this tensor; NaN: none is stored. Without one, `updates` is the
     * number of the update, and `is_assumed` 1. */
    double updates, updates_before;
    int is_assumed;
};

/* Who says which update it is. An optimizer's own count can say nothing against itself, and where
 * only scheduler and optimizer count, and not alike, nobody says. */
enum step_numbered_by {
    STEP_BY_NOBODY = 0,
    STEP_BY_TRAINER,
    STEP_BY_LOG, /* the row of the log whose gradient norm the optimizer took in */
    STEP_BY_SCHEDULER,
    STEP_BY_OPTIMIZER
};

struct step {
    const struct step_group *groups;
    uint32_t group_count;
    const struct step_tensor *tensors;
    uint32_t tensor_count;
    double update; /* which update it is, from 1; NaN: nobody says */
    enum step_numbered_by numbered_by;
    /* [group_count], or NULL: the groups with the numbers of the file before the update. A
     * scheduler that changes betas with the LR (OneCycleLR) leaves those of the next update in the
     * file after it. */
    const struct step_group *earlier;
    int is_ambiguous; /* the names may be exchanged within shapes */
};

#endif

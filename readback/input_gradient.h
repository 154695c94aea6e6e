/* SPDX-License-Identifier: Apache-2.0
 * The gradient that the optimizer took in, as its first moment tells it when the state before and
 * after the update were saved: m = keep m' + take g. From it follow the norm that reached the
 * optimizer, which clipping has changed or not; whether the second moment was made with the betas
 * that the file names; and whether a decay went through the gradient. */
#ifndef TWINSTEP_READBACK_INPUT_GRADIENT_H
#define TWINSTEP_READBACK_INPUT_GRADIENT_H

#include "readback/rate.h"

enum input_betas_state {
    INPUT_BETAS_UNKNOWN = 0, /* not Adam, or the states are too narrow or too few */
    INPUT_BETAS_AGREE,       /* v = beta2 v' + (1 - beta2) g^2 with the file's betas */
    INPUT_BETAS_OTHER,       /* it does with others, which were found */
    INPUT_BETAS_ANEW,        /* v = (1 - beta2) g^2 with m' = 0: both moments began from 0 */
    INPUT_BETAS_NONE         /* it does with none that were tried */
};
struct input_betas {
    enum input_betas_state state;
    double beta1, beta2;
    uint64_t elements;
};
void input_betas_read(const struct step *step, uint32_t group, struct rate_room *room,
                      struct input_betas *out);

/* The norm over the tensors of all groups. `betas` [group_count] say for each group from which
 * moments it began, and with which beta1: a state that was lost has m' = 0, whatever the file
 * before the update holds. The bound is that of the triangle inequality: the norm of the elements'
 * bounds. */
struct input_norm {
    int is_known;
    const char *why; /* not known: what is missing */
    double norm, error;
};
void input_norm_read(const struct step *step, const struct input_betas *betas,
                     struct rate_room *room, struct input_norm *out);

/* How far the gradients that two updates took in are apart: the norm of their difference over the
 * tensors that both have by one name, with the bar of both. Norms alone say little, because two
 * gradients that were clipped have one norm. */
struct input_apart {
    int is_known;
    const char *why; /* not known: what is missing, of the first of them or else of the second */
    int is_of_second;
    double apart, error;
    double norm; /* the larger of the two norms, over the same tensors */
};
struct input_side {
    const struct step *step;
    const struct input_betas *betas; /* [group_count] */
};
void input_apart_read(const struct input_side *a, const struct input_side *b,
                      struct rate_room *room, struct input_apart *out);

/* Elements whose gradient is `decay` times the weight and nothing else: those that no sample
 * touched, if the decay goes through the gradient. Without such a decay they have a gradient of 0.
 */
struct input_coupled {
    uint64_t elements, coupled;
};
void input_coupled_read(const struct step *step, uint32_t group, double decay,
                        struct rate_room *room, struct input_coupled *out);

/* Whether so many are coupled that it is no chance. */
int input_is_coupled(const struct input_coupled *coupled);

#endif

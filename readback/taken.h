/* SPDX-License-Identifier: Apache-2.0
 * The gradient that the optimizer took in, as its first moment tells it when the state before and
 * after the update were saved: m = keep m' + take g. From it follow the norm that reached the
 * optimizer, which clipping has changed or not; whether the second moment was made with the betas
 * that the file names; and whether a decay went through the gradient. */
#ifndef TWINSTEP_READBACK_TAKEN_H
#define TWINSTEP_READBACK_TAKEN_H

#include "readback/rate.h"

enum taken_betas_state {
    TAKEN_BETAS_UNKNOWN = 0, /* not Adam, or the states are too narrow or too few */
    TAKEN_BETAS_AGREE,       /* v = beta2 v' + (1 - beta2) g^2 with the file's betas */
    TAKEN_BETAS_OTHER,       /* it does with others, which were found */
    TAKEN_BETAS_ANEW,        /* v = (1 - beta2) g^2 with m' = 0: both moments began from 0 */
    TAKEN_BETAS_NONE         /* it does with none that were tried */
};
struct taken_betas {
    enum taken_betas_state state;
    double beta1, beta2;
    uint64_t elements;
};
void taken_betas_read(const struct step *step, uint32_t group, struct rate_room *room,
                      struct taken_betas *out);

/* The norm over the tensors of all groups. `betas` [group_count] say for each group from which
 * moments it began, and with which beta1: a state that was lost has m' = 0, whatever the file
 * before the update holds. The bound is that of the triangle inequality: the norm of the elements'
 * bounds. */
struct taken_norm {
    int is_known;
    const char *why; /* not known: what is missing */
    double norm, error;
};
void taken_norm_read(const struct step *step, const struct taken_betas *betas,
                     struct rate_room *room, struct taken_norm *out);

/* How far the gradients that two updates took in are apart: the norm of their difference over the
 * tensors that both have by one name, with the bar of both. Norms alone say little, because two
 * gradients that were clipped have one norm. */
struct taken_apart {
    int is_known;
    double apart, error;
    double norm; /* the larger of the two norms, over the same tensors */
};
struct taken_side {
    const struct step *step;
    const struct taken_betas *betas; /* [group_count] */
};
void taken_apart_read(const struct taken_side *a, const struct taken_side *b,
                      struct rate_room *room, struct taken_apart *out);

/* Elements whose gradient is `decay` times the weight and nothing else: those that no sample
 * touched, if the decay goes through the gradient. Without such a decay they have a gradient of 0.
 */
struct taken_coupled {
    uint64_t elements, coupled;
};
void taken_coupled_read(const struct step *step, uint32_t group, double decay,
                        struct rate_room *room, struct taken_coupled *out);

/* Whether so many are coupled that it is no chance. */
int taken_is_coupled(const struct taken_coupled *coupled);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * What the parts of the judgement share. Private to ablate/. */
#ifndef TWINSTEP_ABLATE_ABLATE_PRIVATE_H
#define TWINSTEP_ABLATE_ABLATE_PRIVATE_H

#include <math.h>

#include "ablate/ablate_judge.h"

#define ABLATE_UNKNOWN ((double)NAN)

struct judging {
    const struct ablate_plan *plan;
    const struct ablate_result *results;
    struct arena *arena;
    struct ablate_verdict *out;
    uint32_t full; /* the mask of all factors */
};

/* The run of an arm, or (arm ABLATE_NO_ARM) of a mixture; NULL if the plan has none. The mixture
 * without any factor is the baseline. */
const struct ablate_run *ablate_run_of(const struct judging *judging, int arm, uint32_t mask,
                                       uint32_t replicate);
const struct ablate_result *ablate_result_of(const struct judging *judging,
                                             const struct ablate_run *run);

/* What such a run left; NULL if it is not done. */
const struct ablate_left *ablate_left_of(const struct judging *judging, int arm, uint32_t mask,
                                         uint32_t replicate);
const struct ablate_left *ablate_mixture_of(const struct judging *judging, uint32_t mask);

/* The kinds of what is read in which two runs differ; 0: they are equal as far as anybody looks. */
unsigned ablate_differ(const struct judging *judging, const struct ablate_left *a,
                       const struct ablate_left *b);

/* The end points of some runs as numbers: products around the first, or squared distances. The
 * errors are those of ablate_products. */
TWINSTEP_MUST_USE enum status ablate_measure(struct judging *judging,
                                             const struct ablate_left *const *runs,
                                             const char *const *names, uint32_t count,
                                             struct ablate_pair *pairs, size_t pair_count,
                                             struct ablate_shape *shape);

/* Why nothing is known of two end points that differ and have distance 0: the kinds in which they
 * differ are `differ`. `who` names the two. */
TWINSTEP_MUST_USE enum status ablate_explain_zero(struct judging *judging, unsigned differ,
                                                  const char *who, const char **out);

/* ablate_shares.c: fills in the factors, their figures and the word. */
TWINSTEP_MUST_USE enum status ablate_judge_mixtures(struct judging *judging);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * What the parts of the judgement share. Private to ablate/. */
#ifndef TWINSTEP_ABLATE_ABLATE_PRIVATE_H
#define TWINSTEP_ABLATE_ABLATE_PRIVATE_H

#include <math.h>

#include "ablate/ablate_judge.h"
#include "determinism/statistics.h"

#define ABLATE_UNKNOWN ((double)NAN)

struct judging {
    const struct ablate_plan *plan;
    const struct ablate_result *results;
    struct arena *arena;
    struct ablate_verdict *out;
    uint32_t full; /* the mask of all factors */
    /* The hybrid whose end point is farthest from the baseline; `full` if none is farther. */
    uint32_t farthest;
    struct attribution_set *sets; /* what hybrids open, by masks of factors */
    uint32_t set_count;
    /* Over an exact floor, by the plan's masks, with d_S of evidence/attribution.h: <d_S, d_N>,
     * |d_S| and |d_N - d_S|, NaN where they are not known; NULL: nothing was measured. */
    double *way, *size, *rest;
    double largest;     /* the largest |d_S| that is known for certain */
    int full_elsewhere; /* the hybrid of all factors was run where no arm was */
};

/* Finds the run of an arm, or (arm ABLATE_NO_ARM) of a hybrid; NULL if the plan has none. The
 * hybrid without any factor is the baseline. */
const struct ablate_run *ablate_run_of(const struct judging *judging, int arm, uint32_t mask,
                                       uint32_t replicate);
const struct ablate_result *ablate_result_of(const struct judging *judging,
                                             const struct ablate_run *run);

/* Finds what such a run left; NULL if it is not done. */
const struct ablate_left *ablate_left_of(const struct judging *judging, int arm, uint32_t mask,
                                         uint32_t replicate);
const struct ablate_left *ablate_hybrid_of(const struct judging *judging, uint32_t mask);

/* Says whether the verdict needs the hybrid's first run. */
int ablate_is_asked(const struct judging *judging, uint32_t mask);

/* Returns the kinds of what is read in which two runs differ; 0: they are equal as far as anybody
 * looks. */
unsigned ablate_differ(const struct judging *judging, const struct ablate_left *a,
                       const struct ablate_left *b);

/* Computes the end points of some runs as numbers: products around the first, or squared distances.
 * The errors are those of ablate_products. */
TWINSTEP_MUST_USE enum status ablate_measure(struct judging *judging,
                                             const struct ablate_left *const *runs,
                                             const char *const *names, uint32_t count,
                                             struct ablate_pair *pairs, size_t pair_count,
                                             struct ablate_shape *shape);

/* Two groups of runs, compared by all relabelings: the first `first` of `count` runs and the rest.
 * The comparison fills in what stands below them. */
struct ablate_groups {
    const struct ablate_left *runs[STATISTICS_MAX_RUNS];
    const char *names[STATISTICS_MAX_RUNS];
    uint32_t count, first;
    double p, least;       /* p, and the smallest that so many runs can give */
    double heads, nearest; /* the distance of the groups' first runs, and the smallest of any two */
    double repeats;        /* the largest within a group */
    double shift;          /* as of struct ablate_verdict; NaN where the groups differ in size */
    struct ablate_shape shape;
};

/* Adds the runs of an arm, or of a hybrid, with the numbers 1 to `runs` that are done. */
void ablate_groups_add(const struct judging *judging, int arm, uint32_t mask, uint64_t runs,
                       struct ablate_groups *out);
/* Compares them. STATUS_UNTESTABLE: two runs have no distance; the text says why. */
TWINSTEP_MUST_USE enum status ablate_groups_compare(struct judging *judging,
                                                    struct ablate_groups *groups);

/* Makes the verdict untestable; `reason` has one %s, which `what` fills. */
TWINSTEP_MUST_USE enum status ablate_refuse(struct judging *judging, const char *reason,
                                            const char *what);

/* Takes all figures back, because `reason` leaves nothing of them. */
void ablate_take_shares(struct judging *judging, const char *reason);

/* ablate_closure.c: holds the hybrid of all factors against the test arm. */
TWINSTEP_MUST_USE enum status ablate_judge_closure(struct judging *judging);

/* Says that closure is untestable; `reason` has one %s, which `what` fills. */
TWINSTEP_MUST_USE enum status ablate_doubt_closure(struct judging *judging, const char *reason,
                                                   const char *what);
/* *out: test's command is that of all factors, or is it but for the place of a mixed file. */
TWINSTEP_MUST_USE enum status ablate_is_rerun(struct judging *judging, int *out);

/* ablate_machines.c: looks where the arms were run, and then where the hybrids were. */
TWINSTEP_MUST_USE enum status ablate_check_arms_places(struct judging *judging);
TWINSTEP_MUST_USE enum status ablate_check_places(struct judging *judging);

/* ablate_again.c: picks the hybrids that are run once more, and compares what they left. */
TWINSTEP_MUST_USE enum status ablate_judge_again(struct judging *judging);

/* ablate_linked.c: finds factors that cancel beside others, or act only together, and gives shares
 * with those that cancel as one factor. */
TWINSTEP_MUST_USE enum status ablate_judge_linked(struct judging *judging);

/* ablate_joined.c: makes the verdict of the game in which each set that is linked as cancelling is
 * one player. */
TWINSTEP_MUST_USE enum status ablate_join(struct judging *judging);

/* ablate_chance.c: how many equal runs make an exact floor, and whether a hybrid refutes it. */
TWINSTEP_MUST_USE enum status ablate_judge_chance(struct judging *judging);

/* Explains two end points that differ, in the kinds `differ`, and have distance 0. `who` names the
 * two. */
TWINSTEP_MUST_USE enum status ablate_explain_zero(struct judging *judging,
                                                  const struct ablate_left *a,
                                                  const struct ablate_left *b, unsigned differ,
                                                  const char *who, const char **out);

/* ablate_shares.c: fills in the factors, their figures and the word. */
TWINSTEP_MUST_USE enum status ablate_judge_hybrids(struct judging *judging);

/* Sorts the factors of a verdict by falling |share|, and puts their figures into a word. */
void ablate_sort_factors(struct ablate_verdict *out);
TWINSTEP_MUST_USE enum status ablate_choose_word(struct judging *judging);

/* Where a mask stands in the plan; its mask_count: it has none. */
uint32_t ablate_place_of(const struct judging *judging, uint32_t mask);

#endif

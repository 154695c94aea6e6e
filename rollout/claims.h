/* SPDX-License-Identifier: Apache-2.0
 * What the figures say: the verdict against a floor, and which causes they have the signature of.
 *
 * A floor is measured by the same code from A/A files: two log-probs of one engine, or of one
 * trainer, that are meant to be equal. Strengths are mean |d| in units of what the floor shows for
 * tokens of the same probability. A cause is named where its signature is there and the floor does
 * not show it as well; else the answer is that it is not decided. docs/ROLLOUT.md derives each. */
#ifndef TWINSTEP_ROLLOUT_CLAIMS_H
#define TWINSTEP_ROLLOUT_CLAIMS_H

#include "rollout/rollout_measure.h"

enum rollout_cause {
    ROLLOUT_TOKENISATION = 0,
    ROLLOUT_TRUNCATED,
    ROLLOUT_MASKED,
    ROLLOUT_SHIFTED,
    ROLLOUT_TEMPERATURE,
    ROLLOUT_STALE,
    ROLLOUT_ROUTING,
    ROLLOUT_PRECISION,
    ROLLOUT_CAUSES
};
extern const char *const rollout_cause_names[ROLLOUT_CAUSES];

enum rollout_state {
    ROLLOUT_NO = 0, /* its signature is not there */
    ROLLOUT_NAMED,
    ROLLOUT_OPEN /* the file cannot show it; the text says what is missing */
};

struct rollout_claim {
    enum rollout_state state;
    double strength; /* mean |d| of the tokens it is about, in floors; NaN: no floor */
    double share;    /* of tokens; NaN: not counted */
    char text[600];
};

enum rollout_verdict {
    ROLLOUT_EQUAL = 0, /* every bit */
    ROLLOUT_WITHIN,    /* the floor */
    ROLLOUT_OUTSIDE,
    ROLLOUT_UNDECIDED
};
extern const char *const rollout_verdict_names[];

struct rollout_judgement {
    const struct rollout_measure *measure;
    const struct rollout_measure *const *floors;
    size_t floor_count;
    enum rollout_verdict verdict;
    char why[400];
    double floor;        /* mean |d| that the largest floor expects here; NaN: none */
    double strength;     /* mean |d| of the rest, in floors */
    double error;        /* standard error of that, over sequences of both files */
    int level;           /* sequences are compared by 4^level tokens of each */
    double rank;         /* rank test of sequences against the floor, in standard deviations */
    double median_ratio; /* median over sequences of mean |d| / (1 - pi), against the floor's */
    double largest_rank, largest_ratio; /* the same of each sequence's largest */
    /* how much signs of d agree within groups; 0 without structure, 1 where all agree */
    double purity, by_id, by_sequence, by_position;
    uint32_t named;
    int in_line;     /* 1: positions are moved, and nothing else is judged at the same token */
    int far_apart;   /* 1: far more tokens are beyond twice a floor's 99.9 % than it has itself */
    int far_outside; /* 1: and so many sequences have one that chance is out of the question */
    struct rollout_claim claim[ROLLOUT_CAUSES];
};

/* Sequences that both sides of a comparison need; with fewer no rank test reaches its line. */
#define ROLLOUT_LEAST_SEQUENCES 12
/* Standard deviations from which on the rank test speaks. */
#define ROLLOUT_RANK_LINE 4.5

/* The size |d| / (1 - pi) from which on a token of a file is further apart than any of the floors
 * foretells: twice the 99.9 % quantile of the largest. 0 where one has too few tokens to say, or
 * there is none. rollout_measure_files() is told it. */
double rollout_far_line(const struct rollout_measure *const *floors, size_t floor_count);

void rollout_judge(const struct rollout_measure *measure,
                   const struct rollout_measure *const *floors, size_t floor_count,
                   struct rollout_judgement *out);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * What is measured of a file of sequences in one pass. Nothing is judged here: claims.h says what
 * the figures mean, metrics.h lists those that other projects print.
 *
 * d = trainer's log-prob - engine's log-prob of one token, w = exp(d) its importance weight; pi is
 * the probability halfway between both, exp of the mean log-prob. All sums are of the one engine
 * (base/sum.h), in the order of the file. */
#ifndef TWINSTEP_ROLLOUT_ROLLOUT_MEASURE_H
#define TWINSTEP_ROLLOUT_ROLLOUT_MEASURE_H

#include "base/sum.h"
#include "rollout/source.h"
#include "rollout/rollout_spread.h"

/* Sums over tokens. */
enum rollout_sum {
    TOTAL_D = 0,
    TOTAL_ABSOLUTE,
    TOTAL_SQUARE,
    TOTAL_FACTOR, /* exp|d| */
    TOTAL_WEIGHT, /* w, |d| held to ROLLOUT_BOUND */
    TOTAL_WEIGHT_SQUARE,
    TOTAL_WEIGHT_APART, /* |w - 1| */
    TOTAL_WEIGHT_HELD,  /* w held to [1/2, 2], less 1 */
    TOTAL_WEIGHT_HELD_SQUARE,
    TOTAL_K3_ENGINE,  /* w - 1 - d: KL(engine || trainer) */
    TOTAL_K3_TRAINER, /* 1/w - 1 + d: KL(trainer || engine) */
    TOTAL_JS,
    TOTAL_TRAINER_P, /* probabilities, for the correlation */
    TOTAL_ENGINE_P,
    TOTAL_TRAINER_P_SQUARE,
    TOTAL_ENGINE_P_SQUARE,
    TOTAL_PRODUCT_P,
    TOTAL_APART_P,
    TOTAL_APART_P_SQUARE,
    /* Sums over sequences. */
    TOTAL_SEQ_MEAN_ABSOLUTE,
    TOTAL_SEQ_MEAN_D,
    TOTAL_SEQ_MEAN_D_ABSOLUTE,
    TOTAL_SEQ_MEAN_FACTOR,
    TOTAL_SEQ_K3, /* of the sequence's log-probs: exp(sum d) - 1 - sum d */
    TOTAL_SEQ_WEIGHT,
    TOTAL_SEQ_WEIGHT_SQUARE,
    TOTAL_SEQ_TRAINER_PPL, /* exp(-mean log-prob) */
    TOTAL_SEQ_ENGINE_PPL,
    TOTAL_SEQ_TRAINER_LOG_PPL,
    TOTAL_SEQ_ENGINE_LOG_PPL,
    TOTAL_SEQ_PPL_RATIO, /* exp(-mean d) */
    TOTAL_SEQ_CLIP,      /* share of tokens with w > 2 */
    /* Sums over the sequences that have a reward: r is it less that of the first one, lean the mean
     * d less that of the first one, v the weight exp(sum d) over that of the first one, less 1. */
    TOTAL_REWARD,
    TOTAL_REWARD_SQUARE,
    TOTAL_REWARD_LEAN,
    TOTAL_REWARD_LEAN_SQUARE,
    TOTAL_REWARD_PRODUCT, /* r lean */
    TOTAL_REWARD_V,
    TOTAL_REWARD_V_SQUARE,
    TOTAL_REWARD_VR,   /* v r */
    TOTAL_REWARD_VRR,  /* v r^2 */
    TOTAL_REWARD_VVR,  /* v^2 r */
    TOTAL_REWARD_VVRR, /* v^2 r^2 */
    ROLLOUT_SUMS
};

/* Counts. */
enum rollout_count {
    COUNT_TOKENS = 0, /* that count: masked in, both sides finite */
    COUNT_SEQUENCES,  /* with at least one such token */
    COUNT_EMPTY,      /* sequences without */
    COUNT_MASKED,     /* tokens that the mask leaves out */
    COUNT_OPEN,       /* tokens without a number on a side */
    COUNT_INFINITE,   /* tokens with an infinite log-prob on a side */
    COUNT_PADDING,    /* tokens of exactly 0 on both sides at an end of a row: left out */
    COUNT_ZEROS,      /* the same in lists: they count, and nothing is judged by them */
    COUNT_EQUAL,      /* tokens with equal bits */
    COUNT_ABOVE,      /* d > 0 */
    COUNT_BELOW,
    COUNT_HELD, /* |d| above ROLLOUT_BOUND */
    COUNT_W_OVER_2,
    COUNT_W_UNDER_HALF,
    COUNT_W_OVER_5,
    COUNT_VETO, /* w < 1e-4 */
    COUNT_SEQ_OVER_2,
    COUNT_SEQ_UNDER_HALF,
    COUNT_SEQ_OVER_3,
    COUNT_SEQ_GEOMETRIC, /* exp(mean d) outside [0.999, 1.002] */
    COUNT_SEQ_VETO,      /* with a token of w < 1e-4 */
    COUNT_SEQ_HELD,
    COUNT_REWARDS,     /* sequences with a reward */
    COUNT_NO_REWARD,   /* without */
    COUNT_ODD_REWARDS, /* of these, those that have something else in its place */
    ROLLOUT_COUNTS
};

#define ROLLOUT_BOUND 20.0 /* verl's SAFETY_BOUND */

/* A part of the tokens: of a position, a batch, ... */
struct rollout_slice {
    int64_t key;
    uint64_t tokens, sequences, above;
    double d, absolute, k3, factor, largest;
};

#define SLICE_POSITIONS 32    /* [0, 1), [1, 2), [2, 4), ... */
#define SLICE_PROBABILITIES 7 /* edges 1e-3, 1e-2, 0.1, 0.5, 0.9, 0.99 */
#define SLICE_KEYS 1024       /* batches, versions; more are counted together */
#define SLICE_REWARDS 4       /* below 0, 0, between 0 and 1, 1 and above */

/* A growing set of slices by a number of the file. */
struct rollout_keys {
    struct rollout_slice slice[SLICE_KEYS];
    uint32_t count;
    uint64_t more; /* tokens of keys that found no room */
};

/* Signs of d by group: whether tokens that have something in common lean to the same side. */
struct rollout_signs {
    double pairs, agree; /* sum n (n - 1) and sum (sum s)^2 - n over the groups */
};

#define MEASURE_LAGS 5      /* the other list moved by -2 ... 2 */
#define MEASURE_HEATS 24    /* groups of tokens by log-prob, half octaves of its size */
#define MEASURE_LENGTHS 144 /* eighth octaves of a sequence's tokens */
#define MEASURE_VERSIONS 64
#define MEASURE_IDS ((size_t)1 << 18)

#define GROUP_BITS 4
#define GROUP_CELLS ((size_t)SPREAD_OCTAVES << GROUP_BITS)

#define GROUP_EARLY 16 /* tokens at the beginning of a sequence */

/* Sequences are compared by equal numbers of their uncertain tokens, evenly spaced: the maximum of
 * more tokens is larger, and where most differences are 0 so is the median of their means. Level l
 * takes 4^l tokens of each sequence that has as many. */
#define MEASURE_LEVELS 6
#define GROUP_LEVELS 3 /* those of groups: 4, 16 and 64 tokens */

struct rollout_level {
    struct rollout_spread mean, middle, largest; /* of each sequence: mean, median, maximum */
};

/* The sequences of one group: how large their mean difference is. */
struct rollout_group {
    struct rollout_slice slice;
    struct rollout_slice early; /* of the first GROUP_EARLY tokens; lengths alone fill it */
    struct rollout_spread spread[GROUP_LEVELS]; /* of their mean |d| / (1 - pi) */
};

/* Kinds of structure. */
enum rollout_kind { LINE_IDS = 0, LINE_SHORT, LINE_FRONT, LINE_ZERO, LINE_SHIFT, ROLLOUT_KINDS };

/* What may foretell which tokens are far. A choice that falls out differently for single tokens has
 * nothing to do with any of these. */
enum rollout_way {
    FAR_POSITION = 0, /* the position that the file gives, or the place in the lists */
    FAR_FIRST,        /* tokens behind the first one that counts */
    FAR_LAST,         /* tokens before the last one that counts */
    FAR_ORDER,        /* place among those of the sequence that are not certain */
    FAR_LEFT,         /* the same from the end */
    FAR_SINCE,        /* tokens since the last one that does not count, of a prompt or a tool */
    FAR_UNTIL,        /* tokens until the next one that does not */
    FAR_VERSION,      /* tokens since the weights' version changed in the sequence */
    FAR_PART,         /* 64 equal parts of the sequence */
    FAR_ID,
    FAR_ID_BEFORE, /* of the token before */
    FAR_AGAIN,     /* tokens since the same id was there last; never: the last group */
    FAR_ENGINE,    /* log-prob of the engine, in eighths of a nat */
    FAR_TRAINER,   /* that of the trainer */
    FAR_BEHIND,    /* whether the one before that is not certain is far itself */
    FAR_WAYS
};

#define FAR_PLACES ((size_t)1 << 16) /* places; more are one group with the last */
#define FAR_PARTS 64
#define FAR_LOGPS 512
#define FAR_LOGP_CELLS 8.0 /* in a nat */

/* Tokens with pi < 0.9, and those of size `line` and more, in groups by each of these. */
struct rollout_far {
    double line;          /* 0: none is asked for, and nothing is counted */
    uint64_t tokens, far; /* of all */
    uint64_t before;      /* tokens of the sequences before, and 1 */
    uint64_t *last;       /* (MEASURE_IDS): `before` and the place of an id; less: not yet here */
    size_t groups[FAR_WAYS];
    uint32_t *all[FAR_WAYS], *apart[FAR_WAYS]; /* (groups): tokens, and the far ones */
};

/* What the signatures rest on. Of tokens that no structural finding has set aside. */
#define MEASURE_DECIMALS 4

struct rollout_traits {
    /* structure: sequences of each kind, and the difference on them */
    struct rollout_slice shifted[MEASURE_LAGS], ids, shorter, front;
    struct rollout_slice moved_back;       /* of the shifted ones, after positions are moved back */
    uint64_t lined, in_line[MEASURE_LAGS]; /* sequences that were asked for a line, by their lag */
    double line_left[MEASURE_LAGS];  /* sums over these: the variance that is not on the line, */
    double line_slope[MEASURE_LAGS]; /* and the trainer's log-prob for one of the engine */
    struct rollout_slice zero_front[2], zero_inside[2],
        zero_end[2]; /* by the side that has zeros */
    struct rollout_slice zero_all[2];
    uint64_t both_ids;                  /* sequences with token ids of both sides */
    uint32_t first_line[ROLLOUT_KINDS]; /* where each was met first; 0: nowhere */
    struct rollout_slice rest;
    /* by probability */
    uint64_t heat_tokens[MEASURE_HEATS];
    double heat_sign[MEASURE_HEATS], heat_absolute[MEASURE_HEATS], heat_d[MEASURE_HEATS];
    double heat_logp[MEASURE_HEATS], heat_squares[MEASURE_HEATS]; /* squares of d */
    /* by id, by sequence, by position */
    uint32_t *id_tokens;
    int32_t *id_sign;
    double position_sign[SLICE_POSITIONS], position_tokens[SLICE_POSITIONS];
    uint32_t *place_tokens; /* (FAR_PLACES): by single position */
    int32_t *place_sign;
    struct rollout_signs sequences;
    double neighbours,
        neighbour_signs;  /* pairs of tokens, and those that agree less those that do not */
    double signs, tokens; /* sum of signs, and of tokens that have one */
    double squares;       /* of d */
    /* sizes: d / (1 - pi) of tokens with pi < 0.9 */
    struct rollout_spread size; /* of each */
    struct rollout_level level[MEASURE_LEVELS];
    struct rollout_spread most; /* the largest of each sequence, of all its tokens */
    struct rollout_far far;
    uint64_t sizes;
    struct rollout_group length[MEASURE_LENGTHS], version[MEASURE_VERSIONS];
    struct rollout_slice routed[2]; /* experts equal, and not */
    struct rollout_spread routed_size[2];
    /* over sequences: sums of A^2, A n and n^2, where A is the sum of |d| over n tokens */
    double mean_squares[3];
    uint64_t few_bits[2][2]; /* [side][bf16, f16]: nonzero log-probs that fit the format */
    uint64_t nonzero[2];
    uint64_t inside_step[2][2]; /* of those, with |d| of at most half a step of the format */
    /* [side][decimals - 2]: nonzero log-probs that are numbers of 2 to 5 decimals, in binary32 or
     * finer, and those of them with |d| of at most half of the last decimal. */
    uint64_t decimals[2][MEASURE_DECIMALS], inside_decimal[2][MEASURE_DECIMALS];
    /* The least log-prob of a side, how many tokens have it, and how many of these have another one
     * on the other side. */
    double least[2];
    uint64_t least_tokens[2], least_apart[2];
};

struct rollout_measure {
    const char *path;
    struct rollout_facts facts;
    uint64_t count[ROLLOUT_COUNTS];
    double sum[ROLLOUT_SUMS];
    double weight_most, weight_least, seq_weight_most, seq_weight_least, apart_p_most;
    double seq_factor_most, seq_factor_least, seq_d_most, seq_d_least;
    struct rollout_spread size; /* |d| of every token */
    struct rollout_slice position[SLICE_POSITIONS], probability[SLICE_PROBABILITIES],
        length[SLICE_POSITIONS];
    struct rollout_keys batch;
    /* Of the first sequence that has a reward: that, the mean d, and the sum of d as it is held. */
    double first_reward, first_lean, first_sum;
    struct rollout_slice reward[SLICE_REWARDS];
    struct rollout_traits shape;
};

/* Reads a whole file. `line` is the size |d| / (1 - pi) from which on a token counts as far, as
 * rollout_far_line() takes it from floors; 0 where there is none. */
TWINSTEP_MUST_USE enum status rollout_measure_files(const struct rollout_files *files, double line,
                                                    struct arena *arena,
                                                    struct rollout_measure **out);

#endif

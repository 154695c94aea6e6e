/* SPDX-License-Identifier: Apache-2.0
 * What is recorded of one update of one run, and of one update of a pair: the columns of the trace.
 *
 * The tables below name every column once (name, units, long name); writer, reader, comparison and
 * docs/TRACE.md walk them. A value that was not measured is NaN (real), -1 (integer) or an all-zero
 * digest; zero never stands for "unknown".
 * Knows nothing of HDF5 (trace.h) and nothing of models. Schema version: TRACE_VERSION. */
#ifndef TWINSTEP_DETERMINISM_RECORD_H
#define TWINSTEP_DETERMINISM_RECORD_H

#include <stdint.h>

#define RECORD_DIGEST_BYTES 32

struct record_column {
    const char *name;
    const char *units; /* "1" dimensionless, "nat", "tokens", ... */
    const char *long_name;
};

/* Reals of one update, f64. */
enum record_real {
    REAL_LOSS = 0,    /* of the update, divisor applied */
    REAL_LOGP_CHOSEN, /* DPO: mean over pairs of log-probs as the loss takes them */
    REAL_LOGP_REJECTED,
    REAL_REWARD_CHOSEN, /* beta * (logp - reference) */
    REAL_REWARD_REJECTED,
    REAL_REWARD_MARGIN,
    REAL_REWARD_ACCURACY, /* share of pairs with margin > 0; ties count as not greater */
    REAL_GRAD_NORM,       /* before clipping */
    REAL_CLIP_COEF,
    REAL_UPDATE_NORM, /* |theta_k - theta_{k-1}| */
    REAL_PARAM_NORM,
    REAL_TRAVEL,          /* |theta_k - theta_0| */
    REAL_UPDATE_SURVIVAL, /* share of stored weights whose bits changed */
    REAL_LOSS_SCALE,      /* on the gradients of this update; NaN without a scaler */
    REAL_GRAD_TAKEN,      /* norm of the gradient that the first moment took in, read back */
    REAL_GRAD_TAKEN_ERROR,
    RECORD_REALS
};

/* Integers of one update, i64. */
enum record_integer {
    INTEGER_TOKENS = 0, /* label tokens of the update */
    INTEGER_SKIPPED,    /* 1: the optimizer did not run */
    INTEGER_EPOCH,
    INTEGER_COUNTER, /* n, the update counter, at the end of the update */
    INTEGER_OPTIMIZER_T,
    RECORD_INTEGERS
};

/* 32-byte digests of one update. */
enum record_digest {
    DIGEST_BATCH = 0, /* token ids and targets, canonical order */
    DIGEST_RNG,       /* ledger of draws */
    DIGEST_WEIGHTS,   /* parameters, masters, slots, optimizer's count after the update */
    DIGEST_LR,        /* learning rate that each tensor's update used */
    DIGEST_STATE,     /* parameters, masters, slots, counters, LR after the update */
    DIGEST_ROOT,      /* root k: of root k-1, batch, rng, weights, lr and the loss (root.h) */
    RECORD_DIGESTS
};

/* Reals of one parameter group and update. */
enum record_group {
    GROUP_LR_APPLIED = 0, /* what optimize used */
    GROUP_LR_LOGGED,      /* what that loop would have printed */
    GROUP_LR_READBACK,    /* estimated from weights and slots before and after */
    GROUP_LR_ERROR,       /* bound of its error from rounding */
    GROUP_WD_APPLIED,
    GROUP_WD_READBACK, /* of decay outside of the gradient, estimated likewise */
    GROUP_WD_ERROR,
    RECORD_GROUPS
};

/* Reals and digests of one tensor and update. */
enum record_tensor {
    TENSOR_GRAD_NORM = 0, /* of the closed gradient, before clipping */
    TENSOR_UPDATE_NORM,
    RECORD_TENSORS
};
enum record_tensor_digest {
    TENSOR_DIGEST_GRADIENT = 0, /* as closed after the last backward, before clipping (law 4) */
    TENSOR_DIGEST_PARAMETER,    /* after the update */
    RECORD_TENSOR_DIGESTS
};

/* Reals of one micro-batch: loss (its share of the update's), label tokens. */
enum record_micro { MICRO_LOSS = 0, MICRO_TOKENS, RECORD_MICROS };

/* Integers of one consumer of random numbers. */
enum record_ledger { LEDGER_WORDS = 0, RECORD_LEDGERS };

/* Where one random stream stands before an update. Integers hold the bits of the u64. */
enum record_place {
    PLACE_SEED = 0,
    PLACE_CLOCK, /* updates that it was drawn for; of PyTorch's generator its offset in words */
    RECORD_PLACES
};

/* Who may draw random words in a run, and from what: fixed for the run. */
struct record_consumer {
    const char *name;    /* "dropout/attention": stream, then consumer */
    uint64_t stream, op; /* as digest_rng and the draws' addresses number them */
    uint64_t seed;
    uint64_t initial; /* words drawn before the first update */
};

/* Reals of one update of a pair (a, b); gaps are a - b of every record_real besides. */
enum record_pair {
    PAIR_DISTANCE = 0,   /* |a - b| over all parameters, f64 */
    PAIR_DISTANCE_SHARE, /* |a - b| / |a - a0| */
    PAIR_UPDATE_COSINE,  /* of the two update vectors; NaN when one is zero */
    PAIR_UPDATE_RATIO,   /* |update b| / |update a| */
    PAIR_PROBE_KL,       /* mean KL(a || b) in nat over the probe batch's label positions */
    PAIR_PROBE_TOP1,     /* share of positions with equal arg max */
    PAIR_PROBE_ERROR,    /* mean exp|logp_a - logp_b| of the labels */
    RECORD_PAIRS
};
enum record_pair_integer {
    PAIR_TENSORS_DIFFERING = 0,
    PAIR_FIRST_TENSOR, /* table index of the first differing parameter tensor, -1 none */
    PAIR_MAX_ULP,      /* largest distance in units of the parameter dtype's last place */
    RECORD_PAIR_INTEGERS
};

extern const struct record_column record_reals[RECORD_REALS];
extern const struct record_column record_integers[RECORD_INTEGERS];
extern const struct record_column record_digests[RECORD_DIGESTS];
extern const struct record_column record_groups[RECORD_GROUPS];
extern const struct record_column record_tensors[RECORD_TENSORS];
extern const struct record_column record_tensor_digests[RECORD_TENSOR_DIGESTS];
extern const struct record_column record_micros[RECORD_MICROS];
extern const struct record_column record_ledgers[RECORD_LEDGERS];
extern const struct record_column record_places[RECORD_PLACES];
extern const struct record_column record_pairs[RECORD_PAIRS];
extern const struct record_column record_pair_integers[RECORD_PAIR_INTEGERS];

/* Lengths of the axes of a run; equal for all updates. */
struct record_shape {
    uint32_t groups;
    uint32_t tensors; /* trainable tensors, table order; 0: not recorded */
    uint32_t phases;  /* phases in loop order (names in the trace); 0: not recorded */
    uint32_t sites;   /* activation sites with a digest: embedding, layers, final norm, logp */
    uint32_t micros;
    uint32_t consumers; /* of random numbers; 0: not recorded */
    uint32_t streams;   /* of random numbers whose place moves; 0: not recorded */
};

/* One update of one run. Arrays by shape, owned by the caller, row-major [axis][column]. */
struct record {
    uint64_t step; /* update k, 1-based */
    double reals[RECORD_REALS];
    int64_t integers[RECORD_INTEGERS];
    uint8_t digests[RECORD_DIGESTS][RECORD_DIGEST_BYTES];
    double (*groups)[RECORD_GROUPS];
    double (*tensors)[RECORD_TENSORS];
    uint8_t (*tensor_digests)[RECORD_TENSOR_DIGESTS][RECORD_DIGEST_BYTES];
    uint8_t (*phases)[RECORD_DIGEST_BYTES];
    uint8_t (*sites)[RECORD_DIGEST_BYTES];
    double (*micros)[RECORD_MICROS];
    int64_t (*ledger)[RECORD_LEDGERS];
    int64_t (*places)[RECORD_PLACES];
};

/* One update of one pair. */
struct pair_record {
    uint64_t step;
    double gaps[RECORD_REALS];
    double reals[RECORD_PAIRS];
    int64_t integers[RECORD_PAIR_INTEGERS];
};

#endif

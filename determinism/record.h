/* SPDX-License-Identifier: Apache-2.0
 * What is recorded of one update of one run, and of one update of a pair: the columns of the trace.
 *
 * The tables name every column once (name, units, long name); writer, reader, comparison and
 * docs/TRACE.md walk them. A value that was not measured is NaN (real), -1 (integer) or an all-zero
 * digest; zero never stands for "unknown". The file knows nothing of HDF5 (trace.h) and nothing of
 * models. The schema's version is TRACE_VERSION. */
#ifndef TWINSTEP_DETERMINISM_RECORD_H
#define TWINSTEP_DETERMINISM_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct arena;

#define RECORD_DIGEST_BYTES 32

struct record_column {
    const char *name;
    const char *units; /* "1" if dimensionless, else "nat", "tokens", ... */
    const char *long_name;
};

/* The reals of one update, f64. */
enum record_real {
    REAL_LOSS = 0,    /* loss of the update, with the divisor applied */
    REAL_LOGP_CHOSEN, /* for DPO: mean over pairs of the log-probs that the loss takes */
    REAL_LOGP_REJECTED,
    REAL_REWARD_CHOSEN, /* beta * (logp - reference) */
    REAL_REWARD_REJECTED,
    REAL_REWARD_MARGIN,
    REAL_REWARD_ACCURACY, /* share of pairs with a margin above 0; a tie counts as not above */
    REAL_GRAD_NORM,       /* gradient norm before clipping */
    REAL_CLIP_COEF,
    REAL_UPDATE_NORM, /* |theta_k - theta_{k-1}| */
    REAL_PARAM_NORM,
    REAL_TRAVEL,          /* |theta_k - theta_0| */
    REAL_UPDATE_SURVIVAL, /* share of stored weights whose bits changed */
    REAL_LOSS_SCALE,      /* loss scale on the gradients of this update; NaN without a scaler */
    REAL_GRAD_TAKEN,      /* norm of the optimizer input, read back from the first moment */
    REAL_GRAD_TAKEN_ERROR,
    RECORD_REALS
};

/* The integers of one update, i64. */
enum record_integer {
    INTEGER_TOKENS = 0, /* number of label tokens in the update */
    INTEGER_SKIPPED,    /* 1 if the optimizer did not run, or held everything */
    INTEGER_EPOCH,
    INTEGER_COUNTER, /* the update counter n at the end of the update */
    INTEGER_OPTIMIZER_T,
    RECORD_INTEGERS
};

/* The 32-byte digests of one update. */
enum record_digest {
    DIGEST_BATCH = 0, /* token ids and targets, in canonical order */
    DIGEST_RNG,       /* the ledger of random draws */
    DIGEST_WEIGHTS,   /* parameters, masters, slots and the optimizer's count after the update */
    DIGEST_LR,        /* the learning rate that each tensor's update used */
    DIGEST_STATE,     /* parameters, masters, slots, counters and LR after the update */
    DIGEST_ROOT,      /* root k, made of root k-1, batch, rng, weights, lr and the loss (root.h) */
    RECORD_DIGESTS
};

/* The reals of one parameter group in one update. */
enum record_group {
    GROUP_LR_APPLIED = 0, /* the LR that phase optimize used */
    GROUP_LR_LOGGED,      /* the LR that this loop would have printed */
    GROUP_LR_READBACK,    /* the LR estimated from weights and slots before and after */
    GROUP_LR_ERROR,       /* bound of that estimate's error from rounding */
    GROUP_WD_APPLIED,
    GROUP_WD_READBACK, /* decay outside of the gradient, estimated likewise */
    GROUP_WD_ERROR,
    RECORD_GROUPS
};

/* The reals and digests of one tensor in one update. */
enum record_tensor {
    TENSOR_GRAD_NORM = 0, /* norm of the closed gradient, before clipping */
    TENSOR_UPDATE_NORM,
    RECORD_TENSORS
};
enum record_tensor_digest {
    /* as it is closed after the last backward, before clipping (law 4) */
    TENSOR_DIGEST_GRADIENT = 0,
    TENSOR_DIGEST_PARAMETER, /* the parameter after the update */
    RECORD_TENSOR_DIGESTS
};

/* The integers of one phase in one update, which a foreign run alone records. */
enum record_phase {
    PHASE_PLACE = 0, /* the place of its first event among those of the update, -1: not seen */
    RECORD_PHASES
};

/* The reals of one micro-batch: its share of the update's loss, and its label tokens. */
enum record_micro { MICRO_LOSS = 0, MICRO_TOKENS, RECORD_MICROS };

/* The integers of one consumer of random numbers. */
enum record_ledger { LEDGER_WORDS = 0, RECORD_LEDGERS };

/* Where one random stream stands before an update. The integers hold the bits of u64 values. */
enum record_place {
    PLACE_SEED = 0,
    /* number of updates for which it was drawn; for PyTorch's generator its offset in words */
    PLACE_CLOCK,
    RECORD_PLACES
};

/* What one rank holds after an update: a digest of its parameters, masters, slots and
 * optimizer's count, and the first tensor of which anything differs from what rank 0 holds. */
enum record_rank_digest { RANK_DIGEST = 0, RECORD_RANK_DIGESTS };
enum record_rank {
    RANK_FIRST_TENSOR = 0, /* table index, -1: the rank holds what rank 0 holds */
    RECORD_RANKS
};

/* Who may draw random words in a run, and from what. It is fixed for the run. */
struct record_consumer {
    const char *name;    /* the stream, then the consumer: "dropout/attention" */
    uint64_t stream, op; /* as digest_rng and the addresses of draws number them */
    uint64_t seed;
    uint64_t initial; /* number of words drawn before the first update */
};

/* The reals of one update of a pair (a, b). The gaps a - b of every record_real come besides. */
enum record_pair {
    PAIR_DISTANCE = 0,   /* |a - b| over all parameters, in f64 */
    PAIR_DISTANCE_SHARE, /* |a - b| / |a - a0| */
    PAIR_UPDATE_COSINE,  /* cosine of the two update vectors; NaN when one is zero */
    PAIR_UPDATE_RATIO,   /* |update b| / |update a| */
    PAIR_PROBE_KL,       /* mean KL(a || b) in nat over the label positions of the probe batch */
    PAIR_PROBE_TOP1,     /* share of those positions with an equal arg max */
    PAIR_PROBE_ERROR,    /* mean exp|logp_a - logp_b| of the labels */
    RECORD_PAIRS
};
enum record_pair_integer {
    PAIR_TENSORS_DIFFERING = 0,
    PAIR_FIRST_TENSOR, /* table index of the first parameter tensor that differs, -1 if none does */
    PAIR_MAX_ULP,      /* largest distance in units in the last place of the parameters' dtype */
    RECORD_PAIR_INTEGERS
};

extern const struct record_column record_reals[RECORD_REALS];
extern const struct record_column record_integers[RECORD_INTEGERS];
extern const struct record_column record_digests[RECORD_DIGESTS];
extern const struct record_column record_groups[RECORD_GROUPS];
extern const struct record_column record_tensors[RECORD_TENSORS];
extern const struct record_column record_tensor_digests[RECORD_TENSOR_DIGESTS];
extern const struct record_column record_phases[RECORD_PHASES];
extern const struct record_column record_micros[RECORD_MICROS];
extern const struct record_column record_ledgers[RECORD_LEDGERS];
extern const struct record_column record_places[RECORD_PLACES];
extern const struct record_column record_rank_digests[RECORD_RANK_DIGESTS];
extern const struct record_column record_ranks[RECORD_RANKS];
extern const struct record_column record_pairs[RECORD_PAIRS];
extern const struct record_column record_pair_integers[RECORD_PAIR_INTEGERS];

/* The lengths of the axes of a run. They are equal for all updates, and 0 where something is not
 * recorded. */
struct record_shape {
    uint32_t groups;
    uint32_t tensors; /* trainable tensors, in table order */
    uint32_t phases;  /* phases, in loop order (names in the trace) */
    uint32_t sites;   /* activations with a digest: embedding, layers, final norm, logp */
    uint32_t micros;
    uint32_t consumers; /* consumers of random numbers */
    uint32_t streams;   /* random streams whose place moves */
    uint32_t ranks;     /* ranks that train or may part; 0 where there is one */
};

/* One update of one run. The arrays have the lengths of the shape, belong to the caller and are
 * row-major [axis][column]. */
struct record {
    uint64_t step; /* update k, counted from 1 */
    double reals[RECORD_REALS];
    int64_t integers[RECORD_INTEGERS];
    uint8_t digests[RECORD_DIGESTS][RECORD_DIGEST_BYTES];
    double (*groups)[RECORD_GROUPS];
    double (*tensors)[RECORD_TENSORS];
    uint8_t (*tensor_digests)[RECORD_TENSOR_DIGESTS][RECORD_DIGEST_BYTES];
    uint8_t (*phases)[RECORD_DIGEST_BYTES];
    int64_t (*phase_places)[RECORD_PHASES];
    uint8_t (*sites)[RECORD_DIGEST_BYTES];
    double (*micros)[RECORD_MICROS];
    int64_t (*ledger)[RECORD_LEDGERS];
    int64_t (*places)[RECORD_PLACES];
    uint8_t (*rank_digests)[RECORD_RANK_DIGESTS][RECORD_DIGEST_BYTES];
    int64_t (*ranks)[RECORD_RANKS];
};

/* Takes the arrays of `count` records from `arena`, filled with zeros: one piece for each array. */
TWINSTEP_MUST_USE enum status record_take(struct arena *arena, const struct record_shape *shape,
                                          uint64_t count, struct record *records);

/* A record as bytes without pointers, for another process of this build: how many bytes there are,
 * and the way there and back. record_unpack() fills a record whose arrays record_take() has taken
 * by the same shape. */
size_t record_packed(const struct record_shape *shape);
void record_pack(const struct record_shape *shape, const struct record *record, unsigned char *out);
void record_unpack(const struct record_shape *shape, const unsigned char *bytes,
                   struct record *record);

/* Whether two records have the same root, which is that all bits up to their update were equal. */
int record_equal_roots(const struct record *a, const struct record *b);

/* Whether a digest (RECORD_DIGEST_BYTES bytes) was recorded: one that was not is all zero. */
int record_has_digest(const uint8_t *digest);

/* One update of one pair. */
struct pair_record {
    uint64_t step;
    double gaps[RECORD_REALS];
    double reals[RECORD_PAIRS];
    int64_t integers[RECORD_PAIR_INTEGERS];
};

#endif

/* SPDX-License-Identifier: Apache-2.0
 * The floor file: what a noise floor was measured to be, so that others judge against it without
 * measuring again.
 *
 * A trace without runs (trace.h): whole or not there, bounded and checked when read. Knows numbers,
 * texts and digests; nothing of configurations or trainings. Layout: docs/NOISE.md.
 * Invariant: what floor_file_open returns is no NaN and not negative (infinite: a run diverged), as
 * long as it says, and agrees with a digest over all of it. */
#ifndef TWINSTEP_DETERMINISM_FLOOR_FILE_H
#define TWINSTEP_DETERMINISM_FLOOR_FILE_H

#include "determinism/digest.h"
#include "determinism/trace.h"

#define FLOOR_FILE_VERSION 2 /* a file without parts is one of version 1 */

/* Of an A/A pair after an update: two runs of one configuration that share nothing else. */
enum floor_column {
    FLOOR_LOSS = 0,  /* |a - b| of the loss, nat */
    FLOOR_GRAD_NORM, /* |a - b| / |a| of the norm over all gradients, before clipping */
    FLOOR_DISTANCE,  /* |a - b| of the working weights: masters, or parameters without them */
    FLOOR_COLUMNS
};
extern const struct record_column floor_columns[FLOOR_COLUMNS];

/* One row of the invariance table. Texts hold no tab and no line end. */
enum floor_figure {
    FIGURE_REPEATS = 0,
    FIGURE_FIRST, /* update that differs first; 0: bit-equal */
    FIGURE_TENSORS,
    FIGURE_GRADIENTS_EQUAL,
    FIGURE_UPDATES_EQUAL,
    FIGURE_GRADIENT_ULP,
    FIGURE_WEIGHT_ULP,
    FIGURE_TENSOR_RELATIVE,
    FIGURE_TOTAL_RELATIVE,
    FLOOR_FIGURES
};
enum floor_word {
    WORD_MODE = 0,
    WORD_DTYPE,
    WORD_THREADS,
    WORD_STRATUM,
    WORD_VARIANT,
    WORD_UNTESTABLE, /* why there are no figures; "" */
    WORD_FIRST_PLACE,
    WORD_WORST_TENSOR,
    FLOOR_WORDS
};
struct floor_stratum {
    const char *words[FLOOR_WORDS];
    double figures[FLOOR_FIGURES];
    const double *share; /* (steps) |a - b| / |a - a0|; NaN where the arm has not moved */
};

/* The 1-ulp twin's envelope: of the measured configuration, by update and tensor. */
struct floor_twin {
    uint32_t tensors; /* 0: there is none */
    const char *const *names;
    const char *weight;     /* "model.layers.0.self_attn.q_proj.weight[0]" */
    const double *gradient; /* (steps, tensors) | |g| - |h| | / |g| */
    const double *distance; /* (steps, tensors) |a - b| of the weights */
};

struct floor_file {
    const char *scenario, *arm; /* names */
    const char *text;           /* of the scenario, verbatim */
    const char *configuration;  /* canonical text of the arm, a free order seed left free */
    const char *determines;     /* hexadecimal digest of what decides what it trains */
    const char *protocol;       /* how the two runs of a pair were made */
    uint64_t steps, pairs;
    const double *columns[FLOOR_COLUMNS]; /* (pairs, steps) */
    const struct floor_stratum *strata;
    uint32_t stratum_count;
    struct floor_twin twin;
    /* Where differences of gradients arose: lines of mode, dtype, stratum, "layer" or "op", its
     * name, tensors, those bit-equal, largest relative difference of a norm, largest ulp; tabs
     * between them. NULL, or "": there are none. */
    const char *parts;
    const struct trace_attribute *environment; /* paths env, env/volatile */
    uint32_t environment_count;
};

/* Writes PATH, or nothing. STATUS_IO: PATH is there and `overwrite` is 0, or it cannot be written.
 */
TWINSTEP_MUST_USE enum status floor_file_write(const char *path, const struct floor_file *file,
                                               int overwrite, struct arena *arena);

/* Everything lives in `arena`. STATUS_INPUT: no floor file, of another version, truncated, damaged,
 * or with a number that none can have. */
TWINSTEP_MUST_USE enum status floor_file_open(const char *path, struct arena *arena,
                                              struct floor_file *out);

/* Distances of one column after update `step` (1-based), pair by pair. */
void floor_file_at(const struct floor_file *file, enum floor_column column, uint64_t step,
                   double *out);

#endif

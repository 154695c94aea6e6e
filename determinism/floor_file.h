/* SPDX-License-Identifier: Apache-2.0
 * The floor file: what a noise floor was measured to be, so that other runs are judged against it
 * without measuring again.
 *
 * It is a trace without runs (trace.h): whole or not there, bounded and checked when it is read.
 * This module knows numbers, texts and digests; it knows nothing of configurations or trainings.
 * docs/NOISE.md describes the layout.
 *
 * Invariant: what floor_file_open returns has no NaN among its distances and no negative number
 * (infinity says that a run diverged), is as long as it says, and agrees with a digest over all of
 * it. */
#ifndef TWINSTEP_DETERMINISM_FLOOR_FILE_H
#define TWINSTEP_DETERMINISM_FLOOR_FILE_H

#include "base/status.h"
#include "determinism/record.h"

struct arena;
struct trace_attribute;

#define FLOOR_FILE_VERSION 2 /* a file without `parts` has version 1 */

/* What is kept of an A/A pair after each update: the differences of two runs of one configuration
 * that share nothing else. */
enum floor_column {
    FLOOR_LOSS = 0,  /* |a - b| of the loss, nat */
    FLOOR_GRAD_NORM, /* |a - b| / |a| of the norm of all gradients, before clipping */
    /* a - b| of the working weights: masters, or parameters where there are none */
    FLOOR_DISTANCE,
    FLOOR_COLUMNS
};
extern const struct record_column floor_columns[FLOOR_COLUMNS];

/* One row of the invariance table. Its texts hold no tab and no line end. */
enum floor_figure {
    FIGURE_REPEATS = 0,
    FIGURE_FIRST, /* the first update that differs; 0 if the runs are bit-equal */
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
    WORD_UNTESTABLE, /* why there are no figures, or "" */
    WORD_FIRST_PLACE,
    WORD_WORST_TENSOR,
    FLOOR_WORDS
};
struct floor_stratum {
    const char *words[FLOOR_WORDS];
    double figures[FLOOR_FIGURES];
    const double *share; /* (steps) |a - b| / |a - a0|; NaN where the arm has not moved */
};

/* How far the run that was perturbed by one ulp went from the measured configuration, by update and
 * tensor. */
struct floor_twin {
    uint32_t tensors; /* 0 if there is none */
    const char *const *names;
    const char *weight;     /* the perturbed element: "model.layers.0.self_attn.q_proj.weight[0]" */
    const double *gradient; /* (steps, tensors) | |g| - |h| | / |g| */
    const double *distance; /* (steps, tensors) |a - b| of the weights */
};

struct floor_file {
    const char *scenario, *arm; /* the names of scenario and arm */
    const char *text;           /* the scenario's text, verbatim */
    /* canonical text of the arm; an order seed that is free stays free */
    const char *configuration;
    const char *determines; /* hexadecimal digest of the keys that decide what it trains */
    const char *protocol;   /* says how the two runs of a pair were made */
    uint64_t steps, pairs;
    /* (pairs, steps); NULL: not recorded, which is so in a file of foreign runs alone */
    const double *columns[FLOOR_COLUMNS];
    /* The program that trained the runs, or NULL for twinstep; then `exact` may say that they have
     * equal roots, so that any difference of another run is one. */
    const char *writer;
    int exact;
    const struct floor_stratum *strata;
    uint32_t stratum_count;
    struct floor_twin twin;
    /* Where differences of gradients arose. Each line holds, with tabs between them: mode, dtype,
     * stratum, "layer" or "op", its name, the number of tensors, the number of bit-equal ones, the
     * largest relative difference of a norm, the largest difference in ulps. NULL or "" if there
     * are none. */
    const char *parts;
    const struct trace_attribute *environment; /* attributes of the paths env and env/volatile */
    uint32_t environment_count;
};

/* Writes PATH as a whole, or nothing. STATUS_IO if PATH exists and `overwrite` is 0, or if it
 * cannot be written. */
TWINSTEP_MUST_USE enum status floor_file_write(const char *path, const struct floor_file *file,
                                               int overwrite, struct arena *arena);

/* Reads a floor file; everything lives in `arena`. STATUS_INPUT if it is no floor file, is of
 * another version, truncated or damaged, or holds a number that no floor can have. */
TWINSTEP_MUST_USE enum status floor_file_open(const char *path, struct arena *arena,
                                              struct floor_file *out);

/* Stores the distances of one column after update `step`, counted from 1, pair by pair. */
void floor_file_at(const struct floor_file *file, enum floor_column column, uint64_t step,
                   double *out);

#endif

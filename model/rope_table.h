/* SPDX-License-Identifier: Apache-2.0
 * Cosines and sines of rotary embeddings by position, with the two ways of stretching them to
 * longer texts.
 *
 * Frequencies are computed in f64 from an f32 exponent and rounded once to f32, because
 * transformers computes and keeps them in f32; then they are rounded to numerics.rope. With f64
 * compute and an f64 table nothing is rounded. Formulas: transformers 5.23, modeling_rope_utils.py
 * (_compute_llama3_parameters, _compute_yarn_parameters); tests/model/test_rope_scaling.c states
 * the distance in ulp. Invariant: a table is a function of the configuration alone. */
#ifndef TWINSTEP_MODEL_ROPE_TABLE_H
#define TWINSTEP_MODEL_ROPE_TABLE_H

#include "base/form.h"
#include "scenarios/config.h"

/* The frequency (transformers: inv_freq) of a pair of channels in f64; pair < head_dim / 2. */
double rope_frequency(const struct config *config, uint32_t pair);

/* Fills both tables, (positions, head_dim / 2) each, numbers of numerics.compute in `form`: cos and
 * sin of position * frequency, times rope_attention_factor. With f64 compute and an f64 table all
 * of it is f64. Otherwise angle, cosine and sine are f32 values, as in transformers, and are
 * rounded to numerics.compute at the end. */
void rope_table_fill(const struct config *config, uint32_t positions, struct form form,
                     void *cosine, void *sine);

#endif

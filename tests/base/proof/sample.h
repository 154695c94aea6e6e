/* SPDX-License-Identifier: Apache-2.0
 * Inputs of the proofs: every float, every n-th float, floats around special points, samples of the
 * doubles, and the lines of pow that trainings use. Each is a function of the block's number alone.
 */
#ifndef TWINSTEP_TESTS_BASE_PROOF_SAMPLE_H
#define TWINSTEP_TESTS_BASE_PROOF_SAMPLE_H

#include "tests/base/proof/proof.h"

/* Blocks that hold all 2^32 bit patterns, and one of each 2^12 of them. */
#define SAMPLE_ALL_BLOCKS ((uint64_t)1 << 21)
#define SAMPLE_STRIDED_BLOCKS ((uint64_t)512)

proof_fill sample_all;
proof_fill sample_strided;

/* 4 blocks: floats within 64 ulps of 0, 1, the ends of each function's range and its thresholds. */
#define SAMPLE_SPECIAL_BLOCKS ((uint64_t)4)
proof_fill sample_special;

/* Doubles (floats for pow in f32). Block k is of kind k mod 8: 0 any bits, 1 to 3 ranges of the
 * function, 4 within 64 ulps of the function's seams (switches between ranges, multiples of its
 * period, ends), 5 beside the midpoint of two results, 6 any exponent from -60 to 12, 7 short
 * numbers (integers, eighths, floats). */
#define SAMPLE_MANY_BLOCKS ((uint64_t)48832) /* 100 007 936 inputs */
#define SAMPLE_FEW_BLOCKS ((uint64_t)496)    /* 1 015 808 inputs */
proof_fill sample_mixed;
proof_fill sample_pow;   /* f64 */
proof_fill sample_pow32; /* the same as floats */

/* beta^t of Adam's bias correction: 11 betas, t = 1 to 2^20. */
#define SAMPLE_BETA_BLOCKS ((uint64_t)11 * 512)
proof_fill sample_beta, sample_beta32;

/* theta^(2i/D) of rotary tables: 5 bases, D = 2, 4, ... 512, every i below D/2. */
#define SAMPLE_THETA_BLOCKS ((uint64_t)5 * 256)
proof_fill sample_theta, sample_theta32;

/* x^y for every positive float x, y of the context (const double *). */
#define SAMPLE_LINE_BLOCKS ((uint64_t)1 << 20)
proof_fill sample_line;

#endif

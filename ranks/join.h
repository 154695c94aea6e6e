/* SPDX-License-Identifier: Apache-2.0
 * Adds the vectors of P ranks as a collective does, bit by bit: in a given grouping
 * (ranks/grouping.h), with one rounding to the wire's dtype for each addition, and with the
 * division by P at the place where DDP or FSDP2 has it.
 *
 * Values stand in floats, as base/dtype.h has it, and are already of the wire's dtype: f32, bf16 or
 * f16. An f32 sum of two bf16 or f16 numbers, rounded once more, is the sum rounded once, because
 * 24 bits are at least twice 11 and two more (Figueroa, When is double rounding innocuous?, 1995).
 * What accumulates in f32 and rounds once, such as NVLink SHARP or NCCL's symmetric kernels, is not
 * this arithmetic. */
#ifndef TWINSTEP_RANKS_JOIN_H
#define TWINSTEP_RANKS_JOIN_H

#include <stddef.h>

#include "base/dtype.h"
#include "ranks/grouping.h"

/* Where the mean over P ranks is made of the sum. They differ in bits unless P is a power of two.
 */
enum join_mean {
    JOIN_SUM,            /* nowhere */
    JOIN_MULTIPLY_FIRST, /* DDP copies a gradient into its bucket times 1/P, the reciprocal in f32
                          */
    JOIN_DIVIDE_FIRST,   /* DDP where the gradient lives in the bucket: gradient_as_bucket_view=True
                          * and zero_grad(set_to_none=False), from update 2 on */
    JOIN_DIVIDE_LAST,    /* FSDP2 over Gloo in f32 and bf16 */
    JOIN_RECIPROCAL, /* ncclAvg, so FSDP2 over NCCL in f32 and bf16: multiplied first, by 1/P in the
                      * wire's dtype; read in NCCL 2.30.7 (enqueue.cc), not recorded */
    JOIN_SPLIT       /* FSDP2 in f16: by a power of two near sqrt(P) first, by the rest last */
};

/* Writes what one rank contributes to the sum: its `count` values, scaled and rounded to `wire`.
 * `in` may be `out`. */
void join_scale_first(enum join_mean mean, uint32_t ranks, enum dtype wire, const float *in,
                      size_t count, float *out);

/* Scales the sum in place. */
void join_scale_last(enum join_mean mean, uint32_t ranks, enum dtype wire, float *values,
                     size_t count);

/* Adds vectors[0 .. P-1] over the elements of one run: out[i] is the sum of vectors[r][i] for i
 * from run->start to run->end - 1. STATUS_INTERNAL: the run has no grouping of P ranks. */
TWINSTEP_MUST_USE enum status join_run(const struct grouping_run *run, uint32_t ranks,
                                       enum dtype wire, const float *const *vectors, float *out);

/* Adds all elements of a call, whose width must be that of `wire`. STATUS_INPUT as
 * grouping_check(), or a dtype that no wire has here. */
TWINSTEP_MUST_USE enum status join_vectors(const struct grouping_call *call, enum dtype wire,
                                           const float *const *vectors, float *out);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * One dense product through a library: cuBLAS (library.cu), or on the host its scalar twin
 * (library_twin.c), which tests run. Everything around it is in library_linear.cu and runs in both.
 *
 * How a library orders a sum is its affair and moves with what struct library_mode leaves free.
 * Invariant: nothing but C is written, nothing outside A and B is read, and C only when `held`. */
#ifndef TWINSTEP_KERNELS_CUDA_LIBRARY_H
#define TWINSTEP_KERNELS_CUDA_LIBRARY_H

#include "base/status.h"
#include "kernels/op.h"

/* Products of one op that work at once where the order is free. */
#define LIBRARY_STREAMS 4u

#if defined(__cplusplus)
extern "C" {
#endif

/* C (M, N) = A (M, K) . B (K, N), row-major. */
struct library_product {
    size_t M, N, K;
    const void *a, *b;
    size_t a_stride, b_stride; /* elements from line to line; those of C have N */
    int a_transposed;          /* A lies as (K, M) */
    int b_transposed;          /* B lies as (N, K) */
    int held;                  /* C = C + A . B */
    enum dtype type;           /* A and B: f64, f32, tf32 (f32 numbers), bf16, f16 (2 bytes) */
    enum dtype sum;            /* C and its sums: f64 where A and B are, else f32 */
    void *c;
};

/* Bytes of scratch of an op through a library: both operands and C, of any number pair. */
static inline size_t library_scratch_bytes(const struct op_limits *limits) {
    const size_t lines = (size_t)limits->rows * limits->width;
    const size_t other = limits->library > lines ? limits->library : lines;
    const size_t pads = (2 * (size_t)limits->rows + limits->width) * 16; /* short lines end there */
    return (2 * lines + other) * sizeof(double) + pads + 1024;
}

/* Looks for the library. STATUS_UNSUPPORTED: it is not installed, with one line that says so. */
TWINSTEP_MUST_USE enum status library_open(void);

/* Starts the product on stream `part` (0 .. LIBRARY_STREAMS-1), in order behind all kernels that
 * were launched before; kernels launched later come behind it. */
void library_multiply(const struct library_mode *mode, const struct library_product *product,
                      unsigned part);

/* The first thing that went wrong since the last call. */
TWINSTEP_MUST_USE enum status library_error(void);

#if defined(__cplusplus)
}
#endif

#endif

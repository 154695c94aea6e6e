/* SPDX-License-Identifier: Apache-2.0
 * One dense product through a library: cuBLAS (library.cu); in tests on the host its scalar twin
 * (tests/shim/library_twin.c). Everything around the product is in library_linear.cu and runs in
 * both.
 *
 * How a library orders a sum is its own affair, and changes with what struct library_mode leaves
 * free. Invariant: nothing but C is written, nothing outside A and B is read, and C is read only
 * when `held`. */
#ifndef TWINSTEP_KERNELS_CUDA_LIBRARY_H
#define TWINSTEP_KERNELS_CUDA_LIBRARY_H

#include "base/status.h"
#include "kernels/op.h"

/* How many products of one op work at once where the order is free. */
#define LIBRARY_STREAMS 4u

#if defined(__cplusplus)
extern "C" {
#endif

/* C (M, N) = A (M, K) . B (K, N), row-major. */
struct library_product {
    size_t M, N, K;
    const void *a, *b;
    size_t a_stride, b_stride, c_stride; /* elements between the starts of two lines */
    int a_transposed;                    /* A lies as (K, M) */
    int b_transposed;                    /* B lies as (N, K) */
    int held;                            /* 1: C = C + A . B; 0: C = A . B */
    enum dtype type; /* A and B: f64, f32, tf32 (f32 numbers), bf16, f16 (2 bytes) */
    enum dtype sum;  /* the sums: f64 where A and B are, else f32 */
    enum dtype out;  /* C: as `sum`; or bf16 or f16 as A and B, each sum rounded once, not `held` */
    void *c;
};

/* The most bytes of an op's packed operands and sums, and the least lines of a piece. What does not
 * fit is made in pieces of C, each over all of its terms. Both are small on the host, so that small
 * tests have pieces. */
#if defined(__CUDACC__)
#define LIBRARY_SCRATCH_MOST ((size_t)1 << 30)
#define LIBRARY_PIECE ((size_t)64)
#else
#define LIBRARY_SCRATCH_MOST ((size_t)1 << 14)
#define LIBRARY_PIECE ((size_t)8)
#endif

/* Bytes of scratch of an op through a library: at most `most` of them for packed operands and sums,
 * or what one piece of `piece` lines needs. An op of rows by N and K packs rows of one width, a
 * weight, and sums of the other width (in f32, except for f64 numbers); one of the two widths is at
 * most what the largest weight has beside the widest. Lines that tensor cores read are padded to 16
 * bytes. */
static inline size_t library_scratch_within(const struct op_limits *limits, size_t most,
                                            size_t piece) {
    const size_t operand = limits->library_bytes == 0 ? sizeof(double) : limits->library_bytes;
    const size_t sum = operand == sizeof(double) ? sizeof(double) : sizeof(float);
    const size_t rows = limits->rows, wide = limits->width == 0 ? 1 : limits->width;
    const size_t narrow = (limits->library + wide - 1) / wide;
    const size_t whole = rows * (narrow * operand + wide * sum) + limits->library * operand +
                         (2 * rows + 3 * wide) * 16;
    const size_t terms = (rows > wide ? rows : wide) + 8;
    const size_t least = 2 * piece * terms * operand + piece * piece * sum;
    const size_t bounded = whole < most ? whole : most;
    return (bounded > least ? bounded : least) + 1024;
}

static inline size_t library_scratch_bytes(const struct op_limits *limits) {
    return library_scratch_within(limits, LIBRARY_SCRATCH_MOST, LIBRARY_PIECE);
}

/* Looks for the library. STATUS_UNSUPPORTED: it is not installed, with one line that says so. */
TWINSTEP_MUST_USE enum status library_open(void);

/* The versions of what this host thread has open, as "13.0.2". Both are "" where nothing is open,
 * or where the version is the program's own (the twin). cublasLt is a file of its own. */
struct library_versions {
    char cublas[32], cublaslt[32];
};
void library_version(struct library_versions *out);

/* Whether the library has an algorithm for the product that the mode allows; 0: the op is left to
 * our kernels of mode invariant. It is asked before anything of the op was started, and changes
 * nothing. */
int library_has(const struct library_mode *mode, const struct library_product *product,
                unsigned part);

/* Starts the product on stream `part` (0 .. LIBRARY_STREAMS-1), in order behind all kernels that
 * were launched before and all products of that stream; kernels launched later come behind it.
 * Products of two streams with neither a kernel nor library_join() between them have no order: none
 * may write what another touches. */
void library_multiply(const struct library_mode *mode, const struct library_product *product,
                      unsigned part);

/* All products that this host thread started before come before all that it starts later, whatever
 * their streams. An op that uses several streams joins them first and last: so ops are in order,
 * however each of them deals its products. */
void library_join(void);

/* Returns the first thing that went wrong since the last call. */
TWINSTEP_MUST_USE enum status library_error(void);

#if defined(__cplusplus)
}
#endif

#endif

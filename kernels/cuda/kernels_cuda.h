/* SPDX-License-Identifier: Apache-2.0
 * The tables of kernels/cuda/, what a call may ask of them, and what they need of scratch.
 *
 * Usable without a variant, in C and in CUDA C++. What is refused here is refused by name, at load:
 * an op of these tables has no way to report. Invariant: scratch bounds every number pair. */
#ifndef TWINSTEP_KERNELS_CUDA_KERNELS_CUDA_H
#define TWINSTEP_KERNELS_CUDA_KERNELS_CUDA_H

#include "base/status.h"
#include "kernels/op.h"

/* Parts of a sum of squares; behind their sums stands the result. */
#define SQUARE_GROUPS ((size_t)256)

/* Widest head: a block keeps two sums of each column in shared memory. */
#define CUDA_HEAD_MAX 2048u

/* Scratch begins with a table of orders (kernels/cuda/order.h), which holds at least one tile of
 * SHUFFLE_CHUNKS chunks; what else an op needs lies behind it. */
#define CUDA_ORDER_BYTES ((size_t)1 << 21)

static inline void *cuda_rest(const struct op_call *call) {
    return (char *)call->scratch + CUDA_ORDER_BYTES;
}

/* Bytes of scratch that every op is content with: three numbers of each token and head. */
static inline size_t cuda_scratch_bytes(const struct op_limits *limits) {
    const size_t state = (size_t)limits->rows * limits->H * 3 * sizeof(double);
    const size_t square = (SQUARE_GROUPS + 1) * sizeof(double);
    return CUDA_ORDER_BYTES + (state > square ? state : square) + 64;
}

/* What of `call` these tables do not have; NULL: nothing. They have mode invariant alone. */
static inline const char *cuda_refuses(const struct op_call *call) {
    if (call->order != NULL) return "mode shuffled";
    if (call->splits != NULL) return "mode shaped";
    if (call->racing != NULL) return "mode atomic";
    if (call->blas != NULL) return "mode fast (a library)";
    if (call->order_free) return "mode order-free";
    return NULL;
}

#endif

/* SPDX-License-Identifier: Apache-2.0
 * The tables of kernels/cuda/, what a call may ask of them, and what they need of scratch.
 *
 * Usable without a variant, in C and in CUDA C++. What is refused here is refused by name, at load:
 * an op of these tables has no way to report. Invariant: scratch bounds every number pair. */
#ifndef TWINSTEP_KERNELS_CUDA_KERNELS_CUDA_H
#define TWINSTEP_KERNELS_CUDA_KERNELS_CUDA_H

#include "base/status.h"
#include "kernels/op.h"
#include "kernels/shuffle.h"

/* Scratch begins with a table of orders (kernels/cuda/joined.h), which holds at least one tile of
 * SHUFFLE_CHUNKS chunks; what else an op needs lies behind it. */
#define CUDA_ORDER_BYTES ((size_t)1 << 21)

/* How many numbers a sum of squares needs: one for each block of law 2 that joins at a time, the
 * next level of their tree, and the result. */
#define CUDA_SQUARES ((size_t)SHUFFLE_CHUNKS / 2 * 3 + 1)

static inline void *cuda_rest(const struct op_call *call) {
    return (char *)call->scratch + CUDA_ORDER_BYTES;
}

/* How many columns of a linear layer's output are raced on at a time; a multiple of its tile. */
#define LINEAR_RACE_COLUMNS ((size_t)256)

/* Whether the call is of mode `fast` or `deterministic`, which promise the same bits from run to
 * run at most: sums that have an order of the device's own (law 20) take it. */
static inline int call_has_tree(const struct op_call *call) {
    return call->library != NULL;
}

/* Law 20, in columns.h: terms of a chunk; chunks that a block joins, and columns that are dealt
 * with at a time. The last two move no bit. */
#define TREE_CHUNK 32u
#define TREE_WARPS 8u
#define TREE_COLUMNS ((size_t)1024)

/* Bytes of the sums that are still to be joined, for a norm or a bias of `rows` rows. */
static inline size_t tree_bytes(size_t rows) {
    return (rows / (TREE_CHUNK * TREE_WARPS) + 1) * TREE_COLUMNS * sizeof(double);
}

/* Tokens that an embedding's gradient lists by id have four numbers each. Behind them stand the
 * sums of chunks that are still to be joined: an id of more than one chunk has two tokens or more
 * for each half of one, so that tokens / (TREE_CHUNK / 2) places are enough. */
static inline size_t embedding_lists(size_t rows) {
    return (4 * rows + 15) / 16 * 16;
}

static inline size_t embedding_bytes(size_t rows) {
    return embedding_lists(rows) * sizeof(uint32_t) +
           (rows / (TREE_CHUNK / 2) + 1) * TREE_COLUMNS * sizeof(double);
}

/* The widest head on tensor cores: what shared memory and registers hold; and the columns that the
 * operands of one have in a tile. */
#define TENSOR_HEAD_MAX 128u
#define TENSOR_WIDTH(D) ((D) <= 64 ? (size_t)64 : (size_t)TENSOR_HEAD_MAX)

/* Bytes of attention's operands on tensor cores: q, dout, k and v in 2 bytes, heads of a tile's
 * width. */
static inline size_t cuda_packed_bytes(const struct op_limits *limits) {
    const int narrow = limits->library_bytes == 2 ||
                       (limits->library_bytes == 0 && limits->library != 0); /* not known */
    if (!narrow || limits->D > TENSOR_HEAD_MAX) return 0;
    return (size_t)limits->rows * (limits->H + limits->G) * 2 * TENSOR_WIDTH(limits->D) *
               sizeof(uint16_t) +
           64;
}

/* Bytes of scratch that are enough for every op. Behind the orders stands the largest of: three
 * numbers of each token and head, where dQ may race a sum for each of its columns (not with
 * `dq_stays`), and operands for tensor cores; sums of a block of columns; sums of norms' rows;
 * tokens listed by id; sums of squares. */
static inline size_t cuda_scratch_bytes(const struct op_limits *limits) {
    const size_t each[] = {
        (size_t)limits->rows * limits->H * (3 + (limits->dq_stays ? 0 : limits->D)) *
                sizeof(double) +
            cuda_packed_bytes(limits),
        (size_t)limits->rows * LINEAR_RACE_COLUMNS * sizeof(double),
        tree_bytes(limits->norms > limits->rows ? limits->norms : limits->rows),
        embedding_bytes(limits->rows),
        CUDA_SQUARES * sizeof(double),
    };
    size_t most = 0;
    for (size_t i = 0; i < sizeof each / sizeof each[0]; i++)
        if (each[i] > most) most = each[i];
    return CUDA_ORDER_BYTES + most + 64;
}

/* Names what of `call` these tables do not have, as a scenario calls it; NULL: nothing is missing.
 */
static inline const char *cuda_refuses(const struct op_call *call) {
    if (call->blas != NULL) return "mode fast (a library)";
    if (call->order_free) return "mode order-free";
    return NULL;
}

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Law 2 with loads of four neighbours: a thread has four lanes of a block, 4 u to 4 u + 3, eight
 * threads have a block, and a warp has four blocks. (A lane a thread would load one number at a
 * time, as numbers that are neighbours belong to different lanes.)
 *
 * Invariant: a lane takes its terms in order, and lanes join as law 2 says: (l, l + 16), (l, l + 8)
 * and (l, l + 4) between threads, the rest in one. */
#ifndef TWINSTEP_KERNELS_CUDA_LANES_H
#define TWINSTEP_KERNELS_CUDA_LANES_H

#include "kernels/cuda/list.h"

#define LANES_EACH 4u                           /* lanes of a thread */
#define LANES_THREADS (GPU_WARP / LANES_EACH)   /* threads of a block of law 2 */
#define LANES_BLOCKS (GPU_WARP / LANES_THREADS) /* blocks of a warp */

/* How many warps the blocks of a tensor need. */
static inline size_t lanes_warps(size_t blocks) {
    return (blocks + LANES_BLOCKS - 1) / LANES_BLOCKS;
}

/* What of a tensor is a thread's. */
struct lanes_place {
    size_t tensor, block;
    size_t first, count; /* the block's numbers; where there is no such block, none */
    unsigned own;        /* the first of the thread's lanes */
};

/* Finds the block of a thread; returns 0 where the warp has none. `count` of numbers is not known
 * yet: lanes_open() comes next. */
GPU_INLINE int lanes_find(GPU_PARAM const struct list *list, struct lanes_place *out) {
    struct list_place at;
    if (!list_find_row(GPU_ARG list, &at)) return 0;
    out->tensor = at.tensor;
    out->block = at.block * LANES_BLOCKS + THREAD % GPU_WARP / LANES_THREADS;
    out->own = THREAD % LANES_THREADS * LANES_EACH;
    return 1;
}

/* Says which of the tensor's `count` numbers are in the block. */
GPU_INLINE void lanes_open(struct lanes_place *at, size_t count) {
    at->first = least(at->block * SUM_BLOCK, count);
    at->count = least(SUM_BLOCK, count - at->first);
}

/* lanes_sum_f32 and lanes_sum_f64: the sum of the block; its eight threads get it. All lanes of the
 * warp come. */
#define LANES_SUM(name, type)                                                                      \
    GPU_INLINE type lanes_sum_##name(GPU_PARAM const type *lane) {                                 \
        type sum[LANES_EACH];                                                                      \
        UNROLL                                                                                     \
        for (unsigned j = 0; j < LANES_EACH; j++)                                                  \
            sum[j] = lane[j];                                                                      \
        UNROLL                                                                                     \
        for (unsigned half = LANES_THREADS / 2; half > 0; half /= 2) {                             \
            UNROLL                                                                                 \
            for (unsigned j = 0; j < LANES_EACH; j++)                                              \
                sum[j] = sum[j] + gpu_shuffle_xor_##name(GPU_ARG sum[j], half);                    \
        }                                                                                          \
        return (sum[0] + sum[2]) + (sum[1] + sum[3]);                                              \
    }
LANES_SUM(f64, double)
LANES_SUM(f32, float)

#endif

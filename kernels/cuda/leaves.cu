/* SPDX-License-Identifier: Apache-2.0
 * Leaf hashes of a tensor (determinism/leafhash.h): a warp has a block of 64 KiB, lane l of it the
 * words l, l + 32, ... of the numbers' own-format bytes.
 *
 * Carriers become own-format bits as on the host (determinism/own_bits.h); the last word is zero
 * padded. Lanes say nothing to each other: each writes what its own words make of it. */
#include "kernels/leaves.h"

#include "base/real_basic.h"
#include "base/variant.h"
#include "kernels/cuda/list.h"

#define LEAVES_WORDS ((size_t)LEAFHASH_BLOCK / sizeof(uint32_t)) /* words of a full block */
#define LEAVES_AHEAD 8u /* words read before they are hashed */

/* How many numbers a word holds; of f64, a number has two words. */
GPU_INLINE unsigned leaves_per_word(enum dtype dtype) {
    const unsigned width = (unsigned)own_width(dtype);
    return width < sizeof(uint32_t) ? (unsigned)sizeof(uint32_t) / width : 1u;
}

/* Word `word` of the tensor, of whose numbers `some` are there; the rest is zero. */
GPU_INLINE uint32_t leaves_word(const struct leaves_args *args, enum dtype dtype, size_t word,
                                unsigned some, uint32_t *misfit) {
    if (dtype == DTYPE_F64) {
        const double x = ((const double *)args->values)[word / 2];
        return (uint32_t)(own_bits_f64(real_bits_f64(x)) >> (word % 2 * 32));
    }
    const unsigned per = leaves_per_word(dtype);
    const float *const x = (const float *)args->values + word * per;
    uint32_t bits = 0;
    UNROLL
    for (unsigned i = 0; i < per; i++) {
        int fits = 1;
        if (i >= some) break;
        bits |= own_bits_f32(dtype, real_bits_f32(x[i]), &fits) << (i * (32u / per));
        *misfit |= (uint32_t)!fits;
    }
    return bits;
}

/* What of a block is there. The tensor's last block may end inside a word. */
struct leaves_extent {
    size_t first;    /* the tensor's word that is its first */
    size_t words;    /* words, the last one perhaps in part */
    size_t whole;    /* words all of whose numbers are there */
    unsigned some;   /* numbers of the word behind these; 0: there is none */
    uint32_t length; /* its bytes, as the leaf hash counts them */
};

GPU_INLINE struct leaves_extent leaves_reach(const struct leaves_args *args, enum dtype dtype,
                                             size_t leaf) {
    const unsigned per = leaves_per_word(dtype), twice = dtype == DTYPE_F64 ? 2u : 1u;
    const size_t all = args->count * twice; /* halves of f64, else numbers */
    struct leaves_extent e;
    e.first = leaf * LEAVES_WORDS;
    const size_t left = all - e.first * per;
    const size_t here = least(left, LEAVES_WORDS * per);
    e.whole = here / per;
    e.some = (unsigned)(here % per);
    e.words = e.whole + (e.some != 0);
    e.length = (uint32_t)(here * (sizeof(uint32_t) / per));
    return e;
}

GPU_INLINE void leaves_make(GPU_PARAM const struct leaves_args *args, enum dtype dtype,
                            size_t leaf) {
    const struct leaves_extent e = leaves_reach(args, dtype, leaf);
    const unsigned lane = THREAD % GPU_WARP, per = leaves_per_word(dtype);
    struct leafhash_lane state = leafhash_begin(lane);
    uint32_t misfit = 0;
    size_t at = lane;
    ROLLED
    for (; at + (LEAVES_AHEAD - 1) * GPU_WARP < e.whole; at += LEAVES_AHEAD * GPU_WARP) {
        uint32_t ahead[LEAVES_AHEAD];
        UNROLL
        for (unsigned i = 0; i < LEAVES_AHEAD; i++)
            ahead[i] = leaves_word(args, dtype, e.first + at + i * GPU_WARP, per, &misfit);
        UNROLL
        for (unsigned i = 0; i < LEAVES_AHEAD; i++)
            state = leafhash_step(state, ahead[i]);
    }
    ROLLED
    for (; at < e.words; at += GPU_WARP) {
        const unsigned some = at < e.whole ? per : e.some;
        state = leafhash_step(state, leaves_word(args, dtype, e.first + at, some, &misfit));
    }
    args->leaves[leaf].lane[lane] = leafhash_end(state, e.length);
    args->leaves[leaf].misfit[lane] = misfit;
}

struct leaves_job {
    struct list list;
    struct leaves_args is[LIST_TENSORS];
};

/* There is one kernel for each dtype, because which words a lane reads depends on it. */
#define LEAVES_KERNEL(name, dtype)                                                                 \
    KERNEL(name, struct leaves_job) {                                                              \
        struct list_place at;                                                                      \
        if (list_find_row(GPU_ARG & args->list, &at))                                              \
            leaves_make(GPU_ARG & args->is[at.tensor], dtype, at.block);                           \
    }

LEAVES_KERNEL(leaves_f32_kernel, DTYPE_F32)
LEAVES_KERNEL(leaves_f64_kernel, DTYPE_F64)
LEAVES_KERNEL(leaves_bf16_kernel, DTYPE_BF16)
LEAVES_KERNEL(leaves_f16_kernel, DTYPE_F16)
LEAVES_KERNEL(leaves_tf32_kernel, DTYPE_TF32)
LEAVES_KERNEL(leaves_e4m3_kernel, DTYPE_E4M3)
LEAVES_KERNEL(leaves_e5m2_kernel, DTYPE_E5M2)

#define LEAVES_LAUNCH(kernel)                                                                      \
    LAUNCH(kernel, row_blocks(list_blocks(&job->list)), ROW_THREADS, 0, job)

static void leaves_start(const struct leaves_job *job, enum dtype dtype) {
    if (dtype == DTYPE_F32)
        LEAVES_LAUNCH(leaves_f32_kernel);
    else if (dtype == DTYPE_F64)
        LEAVES_LAUNCH(leaves_f64_kernel);
    else if (dtype == DTYPE_BF16)
        LEAVES_LAUNCH(leaves_bf16_kernel);
    else if (dtype == DTYPE_F16)
        LEAVES_LAUNCH(leaves_f16_kernel);
    else if (dtype == DTYPE_TF32)
        LEAVES_LAUNCH(leaves_tf32_kernel);
    else if (dtype == DTYPE_E4M3)
        LEAVES_LAUNCH(leaves_e4m3_kernel);
    else
        LEAVES_LAUNCH(leaves_e5m2_kernel);
}

/* Tensors that are neighbours in the list and have one dtype share a launch. */
void VARIANT(leaves)(const struct leaves_args *tensors, size_t count);
void VARIANT(leaves)(const struct leaves_args *tensors, size_t count) {
    struct leaves_job job;
    LIST_FITS(struct leaves_job);
    for (size_t i = 0; i < count;) {
        const enum dtype dtype = tensors[i].dtype;
        LIST_OPEN(&job);
        for (; i < count && tensors[i].dtype == dtype && job.list.count < LIST_TENSORS; i++) {
            job.is[job.list.count] = tensors[i];
            list_add(&job.list, leaves_count(dtype, tensors[i].count));
        }
        leaves_start(&job, dtype);
    }
}

/* SPDX-License-Identifier: Apache-2.0
 * Leaf hashes of a tensor (determinism/leafhash.h): a warp has a block of 64 KiB, lane l of it the
 * words l, l + 32, ... of the numbers' own-format bytes.
 *
 * Carriers become own-format bits as on the host (determinism/own_bits.h); the last word is zero
 * padded. Lanes say nothing to each other: each writes what its own words make of it. */
#include "kernels/leaf_hashes.h"

#include "base/real_basic.h"
#include "base/variant.h"
#include "kernels/cuda/list.h"

#define LEAF_HASHES_WORDS ((size_t)LEAFHASH_BLOCK / sizeof(uint32_t)) /* words of a full block */
#define LEAF_HASHES_AHEAD 8u /* words read before they are hashed */

/* How many numbers a word holds; of f64, a number has two words. */
GPU_INLINE unsigned leaf_hashes_per_word(enum dtype dtype) {
    const unsigned width = (unsigned)own_width(dtype);
    return width < sizeof(uint32_t) ? (unsigned)sizeof(uint32_t) / width : 1u;
}

/* Word `word` of the tensor, of whose numbers `some` are there; the rest is zero. */
GPU_INLINE uint32_t leaf_hashes_word(const struct leaf_hashes_args *args, enum dtype dtype,
                                     size_t word, unsigned some, uint32_t *misfit) {
    if (dtype == DTYPE_F64) {
        const double x = ((const double *)args->values)[word / 2];
        return (uint32_t)(own_bits_f64(real_bits_f64(x)) >> (word % 2 * 32));
    }
    const unsigned per = leaf_hashes_per_word(dtype);
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
struct leaf_hashes_extent {
    size_t first;    /* the tensor's word that is its first */
    size_t words;    /* words, the last one perhaps in part */
    size_t whole;    /* words all of whose numbers are there */
    unsigned some;   /* numbers of the word behind these; 0: there is none */
    uint32_t length; /* its bytes, as the leaf hash counts them */
};

GPU_INLINE struct leaf_hashes_extent leaf_hashes_reach(const struct leaf_hashes_args *args,
                                                       enum dtype dtype, size_t leaf) {
    const unsigned per = leaf_hashes_per_word(dtype), twice = dtype == DTYPE_F64 ? 2u : 1u;
    const size_t all = args->count * twice; /* halves of f64, else numbers */
    struct leaf_hashes_extent e;
    e.first = leaf * LEAF_HASHES_WORDS;
    const size_t left = all - e.first * per;
    const size_t here = least(left, LEAF_HASHES_WORDS * per);
    e.whole = here / per;
    e.some = (unsigned)(here % per);
    e.words = e.whole + (e.some != 0);
    e.length = (uint32_t)(here * (sizeof(uint32_t) / per));
    return e;
}

GPU_INLINE void leaf_hashes_make(GPU_PARAM const struct leaf_hashes_args *args, enum dtype dtype,
                                 size_t leaf) {
    const struct leaf_hashes_extent e = leaf_hashes_reach(args, dtype, leaf);
    const unsigned lane = THREAD % GPU_WARP, per = leaf_hashes_per_word(dtype);
    struct leafhash_lane state = leafhash_begin(lane);
    uint32_t misfit = 0;
    size_t at = lane;
    ROLLED
    for (; at + (LEAF_HASHES_AHEAD - 1) * GPU_WARP < e.whole; at += LEAF_HASHES_AHEAD * GPU_WARP) {
        uint32_t ahead[LEAF_HASHES_AHEAD];
        UNROLL
        for (unsigned i = 0; i < LEAF_HASHES_AHEAD; i++)
            ahead[i] = leaf_hashes_word(args, dtype, e.first + at + i * GPU_WARP, per, &misfit);
        UNROLL
        for (unsigned i = 0; i < LEAF_HASHES_AHEAD; i++)
            state = leafhash_step(state, ahead[i]);
    }
    ROLLED
    for (; at < e.words; at += GPU_WARP) {
        const unsigned some = at < e.whole ? per : e.some;
        state = leafhash_step(state, leaf_hashes_word(args, dtype, e.first + at, some, &misfit));
    }
    args->leaves[leaf].lane[lane] = leafhash_end(state, e.length);
    args->leaves[leaf].misfit[lane] = misfit;
}

struct leaf_hashes_job {
    struct list list;
    struct leaf_hashes_args is[LIST_TENSORS];
};

/* There is one kernel for each dtype, because which words a lane reads depends on it. */
#define LEAF_HASHES_DTYPES(ROW)                                                                    \
    ROW(F32, f32)                                                                                  \
    ROW(F64, f64)                                                                                  \
    ROW(BF16, bf16)                                                                                \
    ROW(F16, f16)                                                                                  \
    ROW(TF32, tf32)                                                                                \
    ROW(E4M3, e4m3)                                                                                \
    ROW(E5M2, e5m2)
#define LEAF_HASHES_KERNEL(NAME, name)                                                             \
    KERNEL(leaf_hashes_##name##_kernel, struct leaf_hashes_job) {                                  \
        struct list_place at;                                                                      \
        if (list_find_row(GPU_ARG & args->list, &at))                                              \
            leaf_hashes_make(GPU_ARG & args->is[at.tensor], DTYPE_##NAME, at.block);               \
    }
LEAF_HASHES_DTYPES(LEAF_HASHES_KERNEL)

#define LEAF_HASHES_LAUNCH(NAME, name)                                                             \
    if (dtype == DTYPE_##NAME)                                                                     \
        LAUNCH_ROWS(leaf_hashes_##name##_kernel, list_blocks(&job->list), job);
static void leaf_hashes_start(const struct leaf_hashes_job *job, enum dtype dtype) {
    LEAF_HASHES_DTYPES(LEAF_HASHES_LAUNCH)
}

/* Tensors that are neighbours in the list and have one dtype share a launch. */
void VARIANT(leaf_hashes)(const struct leaf_hashes_args *tensors, size_t count);
void VARIANT(leaf_hashes)(const struct leaf_hashes_args *tensors, size_t count) {
    struct leaf_hashes_job job;
    LIST_FITS(struct leaf_hashes_job);
    for (size_t i = 0; i < count;) {
        const enum dtype dtype = tensors[i].form.dtype;
        LIST_OPEN(&job);
        for (; i < count && tensors[i].form.dtype == dtype && job.list.count < LIST_TENSORS; i++) {
            job.is[job.list.count] = tensors[i];
            list_add(&job.list, leaf_hashes_count(dtype, tensors[i].count));
        }
        leaf_hashes_start(&job, dtype);
    }
}

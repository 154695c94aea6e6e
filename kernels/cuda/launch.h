/* SPDX-License-Identifier: Apache-2.0
 * What the kernels share: shapes of launches, rows of a list, law 2 by warps.
 *
 * Law 2 has 32 lanes and so has a warp: lane l of a block of 4096 terms is lane l of the warp, and
 * the lanes join by butterflies, which add the same pairs. Invariant: a sum's order comes from its
 * terms' numbers alone, never from the shape of a launch. */
#ifndef TWINSTEP_KERNELS_CUDA_LAUNCH_H
#define TWINSTEP_KERNELS_CUDA_LAUNCH_H

#include "base/rule.h"
#include "base/sum.h"
#include "kernels/cuda/port.h"
#include "kernels/cuda/short.h"
#include "kernels/read_call.h"

/* Appends the suffix of the carrier, the type that numbers are worked on in:
 * CARRIER_NAME_(gpu_load4) is gpu_load4_f32 or gpu_load4_f64. */
#if defined(TWINSTEP_CARRIER_f64)
#define CARRIER_NAME_(name) name##_f64
#else
#define CARRIER_NAME_(name) name##_f32
#endif

#define ELEMENT_THREADS 256u /* of a block whose threads take one element each */
#define ROW_THREADS 128u     /* of a block whose warps take one row each */
#define ROW_WARPS (ROW_THREADS / GPU_WARP)

/* How many blocks `count` elements or rows need. */
static inline size_t element_blocks(size_t count) {
    return (count + ELEMENT_THREADS - 1) / ELEMENT_THREADS;
}

static inline size_t row_blocks(size_t count) {
    return (count + ROW_WARPS - 1) / ROW_WARPS;
}

#define LAUNCH_ELEMENTS(kernel, count, args)                                                       \
    LAUNCH(kernel, element_blocks(count), ELEMENT_THREADS, 0, args)
#define LAUNCH_ROWS(kernel, rows, args) LAUNCH(kernel, row_blocks(rows), ROW_THREADS, 0, args)

/* What the kernels of an operation are handed where they need its arguments and its dtype. */
#define OP_JOB(op)                                                                                 \
    struct op##_job {                                                                              \
        struct op##_args is;                                                                       \
        enum dtype dtype;                                                                          \
    }

/* ---- element by element ---- */

/* Neighbours that a lane loads at a time, where it can: 16 bytes, of f64 32. */
#if defined(STORED_DTYPE)
#define SPAN_EACH SHORT_EACH
#else
#define SPAN_EACH 4u
#endif
#define SPAN_COLUMNS ((size_t)1024) /* columns of a row that one warp has */

/* A warp's piece of a row: columns first .. end-1 of physical row `row`, the i-th of the list. */
struct span {
    size_t i, row, first, end;
};

static inline size_t span_blocks(const struct row_list *rows, uint32_t C) {
    return row_blocks(rows->count * (((size_t)C + SPAN_COLUMNS - 1) / SPAN_COLUMNS));
}

/* Gives every piece of the listed rows to a warp of `kernel`. */
#define LAUNCH_SPANS(kernel, rows, C, args)                                                        \
    LAUNCH(kernel, span_blocks(rows, C), ROW_THREADS, 0, args)

/* Finds the piece of a warp; returns 0 where there is none left. No element divides: a warp does so
 * once, and only where rows have several pieces. */
GPU_INLINE int span_find(GPU_PARAM const struct row_list *rows, uint32_t C, struct span *out) {
    const uint32_t pieces = (uint32_t)(((size_t)C + SPAN_COLUMNS - 1) / SPAN_COLUMNS);
    const uint32_t warp = BLOCK * ROW_WARPS + THREAD / GPU_WARP;
    const uint32_t i = pieces == 1 ? warp : warp / pieces;
    out->i = i;
    if (pieces == 0 || i >= rows->count) return 0;
    out->row = list_row(rows, i);
    out->first = (size_t)(warp - i * pieces) * SPAN_COLUMNS;
    out->end = least(out->first + SPAN_COLUMNS, C);
    return 1;
}

/* Whether neighbours that begin there can be loaded at a time, of rows of a multiple of SPAN_EACH.
 */
GPU_INLINE int span_aligned(const void *values) {
    return (uintptr_t)values % GPU_ALIGNED == 0;
}

/* Whether lines that begin `apart` bytes behind each other all begin at a multiple of GPU_ALIGNED.
 */
static inline int lines_aligned(const void *first, size_t apart) {
    return ((uintptr_t)first | apart) % GPU_ALIGNED == 0;
}

/* The lane's columns of a piece, SPAN_EACH at a time, or one by one. */
#define SPAN_GROUPS(c, at)                                                                         \
    for (size_t c = (at).first + THREAD % GPU_WARP * SPAN_EACH; c < (at).end;                      \
         c += SPAN_EACH * GPU_WARP)
#define SPAN_ONES(c, at)                                                                           \
    for (size_t c = (at).first + THREAD % GPU_WARP; c < (at).end; c += GPU_WARP)

/* For tensors without rows a thread has four neighbours from `first` on: `some` of them, the last
 * thread perhaps fewer. */
#define FOUR_EACH 4u
#define LAUNCH_FOURS(kernel, count, args)                                                          \
    LAUNCH_ELEMENTS(kernel, ((size_t)(count) + FOUR_EACH - 1) / FOUR_EACH, args)

struct four {
    size_t first;
    unsigned some;
};

GPU_INLINE int four_find(GPU_PARAM size_t count, struct four *out) {
    out->first = ((size_t)BLOCK * THREADS + THREAD) * FOUR_EACH;
    if (out->first >= count) return 0;
    out->some = (unsigned)least(FOUR_EACH, count - out->first);
    return 1;
}

#define FOUR_WORDS(name, type)                                                                     \
    GPU_INLINE void four_load_##name(type *to, const type *values, struct four at) {               \
        if (at.some == FOUR_EACH && span_aligned(values + at.first)) {                             \
            gpu_load4_##name(to, values + at.first);                                               \
            return;                                                                                \
        }                                                                                          \
        UNROLL                                                                                     \
        for (unsigned k = 0; k < FOUR_EACH; k++)                                                   \
            to[k] = k < at.some ? values[at.first + k] : 0;                                        \
    }                                                                                              \
    GPU_INLINE void four_store_##name(type *values, const type *from, struct four at) {            \
        if (at.some == FOUR_EACH && span_aligned(values + at.first)) {                             \
            gpu_put4_##name(values + at.first, from);                                              \
            return;                                                                                \
        }                                                                                          \
        UNROLL                                                                                     \
        for (unsigned k = 0; k < FOUR_EACH; k++)                                                   \
            if (k < at.some) values[at.first + k] = from[k];                                       \
    }
FOUR_WORDS(f32, float)
FOUR_WORDS(f64, double)

/* SPAN_EACH neighbours of a tensor (base/variant.h), which lie at a multiple of GPU_ALIGNED bytes:
 * one access on a device, for f64 two. */
#if defined(STORED_DTYPE)
GPU_INLINE void load_each(carrier *to, const struct stored *memory) {
    short_load8(to, (const uint16_t *)(const void *)memory, STORED_DTYPE);
}

GPU_INLINE void store_each(struct stored *memory, const carrier *from) {
    short_store8((uint16_t *)(void *)memory, from, STORED_DTYPE);
}
#else
GPU_INLINE void load_each(carrier *to, const struct stored *memory) {
    CARRIER_NAME_(gpu_load4)(to, (const carrier *)(const void *)memory);
}

GPU_INLINE void store_each(struct stored *memory, const carrier *from) {
    CARRIER_NAME_(gpu_put4)((carrier *)(void *)memory, from);
}
#endif

/* A stored number as a double. */
GPU_INLINE double number_at(const void *values, enum dtype dtype, size_t i) {
    return dtype == DTYPE_F64 ? ((const double *)values)[i] : (double)((const float *)values)[i];
}

/* Adds to a sum that other threads add to. Only kernels whose names hold `atomic` may do so;
 * tests/kernels/ptx.py looks. */
GPU_INLINE void race_add(GPU_PARAM accumulator *sum, accumulator term) {
    (void)ACC_NAME_(gpu_atomic_add)(GPU_ARG sum, term);
}

/* A number as it enters a product (law 11). */
GPU_INLINE accumulator operand(carrier x, enum dtype product) {
    return (accumulator)carrier_round((accumulator)x, product);
}

/* The sum of one block of law 2, whose lanes' parts the lanes of the warp have; every lane gets it.
 */
GPU_INLINE float lanes_join_f32(GPU_PARAM float lane) {
    for (unsigned half = GPU_WARP / 2; half > 0; half /= 2)
        lane = lane + gpu_shuffle_xor_f32(GPU_ARG lane, half);
    return lane;
}

GPU_INLINE double lanes_join_f64(GPU_PARAM double lane) {
    for (unsigned half = GPU_WARP / 2; half > 0; half /= 2)
        lane = lane + gpu_shuffle_xor_f64(GPU_ARG lane, half);
    return lane;
}

GPU_INLINE accumulator lanes_join(GPU_PARAM accumulator lane) {
    return ACC_NAME_(lanes_join)(GPU_ARG lane);
}

/* The larger of two numbers; x where `than` is NaN. */
GPU_INLINE carrier larger(carrier x, carrier than) {
    return than > x ? than : x;
}

/* The largest number that any lane has; every lane gets it. */
GPU_INLINE carrier lanes_largest(GPU_PARAM carrier x) {
    for (unsigned half = GPU_WARP / 2; half > 0; half /= 2) {
#if defined(TWINSTEP_CARRIER_f64)
        x = larger(x, gpu_shuffle_xor_f64(GPU_ARG x, half));
#else
        x = larger(x, gpu_shuffle_xor_f32(GPU_ARG x, half));
#endif
    }
    return x;
}

#endif

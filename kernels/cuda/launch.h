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
#include "kernels/read_call.h"

/* Makes CARRIER_NAME_(gpu_load4) the name gpu_load4_f32, and so on: for numbers as they lie in
 * memory. */
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

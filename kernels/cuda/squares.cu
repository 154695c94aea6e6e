/* SPDX-License-Identifier: Apache-2.0
 * Squares by blocks of law 2 (kernels/cuda/lanes.h), through as many tensors as a block lies in. */
#include "kernels/squares.h"

#include "base/variant.h"
#include "kernels/cuda/lanes.h"

struct squares_job {
    struct list list;
    struct squares_args is[LIST_TENSORS];
};

/* Where a thread reads: values[i - first] for numbers i before `end`. */
struct squares_place {
    const void *values;
    size_t first, end;
};

/* The piece in which number `i` lies: the last one that begins at or before it. */
GPU_INLINE struct squares_place squares_find(const struct squares_args *is, size_t i) {
    struct squares_place at = {is->values, 0, is->count};
    if (is->values != NULL) return at;
    size_t low = 0, high = is->pieces;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (is->piece[middle].first <= i)
            low = middle;
        else
            high = middle;
    }
    at.values = is->piece[low].values;
    at.first = is->piece[low].first;
    at.end = high < is->pieces ? is->piece[high].first : is->count;
    return at;
}

#define SQUARES_BATCH 8u /* loads that are on their way before the first number is used */

/* Goes on over rows of 32 numbers, from memory that can be loaded by four, and returns how many
 * rows that were. */
#define SQUARES_ROWS(name, type, number, sum)                                                      \
    GPU_INLINE size_t squares_rows_##name(const type *values, size_t rows, sum *lane) {            \
        size_t row = 0;                                                                            \
        ROLLED                                                                                     \
        for (; row + SQUARES_BATCH <= rows; row += SQUARES_BATCH) {                                \
            type x[SQUARES_BATCH * LANES_EACH];                                                    \
            UNROLL                                                                                 \
            for (unsigned k = 0; k < SQUARES_BATCH; k++)                                           \
                gpu_load4_##number(x + k * LANES_EACH, values + (row + k) * GPU_WARP);             \
            UNROLL                                                                                 \
            for (unsigned k = 0; k < SQUARES_BATCH * LANES_EACH; k++)                              \
                lane[k % LANES_EACH] = SQUARES_FMA_##sum((sum)x[k], lane[k % LANES_EACH]);         \
        }                                                                                          \
        return row;                                                                                \
    }
#define SQUARES_FMA_double(x, lane) real_fma_f64(x, x, lane)
#define SQUARES_FMA_float(x, lane) real_fma_f32(x, x, lane)
SQUARES_ROWS(wide_f64, double, f64, double)
SQUARES_ROWS(wide_f32, float, f32, double)
SQUARES_ROWS(narrow, float, f32, float)

/* The numbers that are left, one by one, from row `row` of the block on. */
#define SQUARES_REST(name, sum)                                                                    \
    GPU_INLINE void squares_rest_##name(const struct squares_args *is,                             \
                                        const struct lanes_place *of, size_t row, sum *lane) {     \
        struct squares_place at = {NULL, 0, 0};                                                    \
        ROLLED                                                                                     \
        for (size_t i = row * GPU_WARP + of->own; i < of->count; i += GPU_WARP) {                  \
            UNROLL                                                                                 \
            for (unsigned j = 0; j < LANES_EACH; j++) {                                            \
                const size_t own = of->first + i + j;                                              \
                if (i + j >= of->count) break;                                                     \
                if (own >= at.end) at = squares_find(is, own);                                     \
                const sum x = (sum)number_at(at.values, is->storage, own - at.first);              \
                lane[j] = SQUARES_FMA_##sum(x, lane[j]);                                           \
            }                                                                                      \
        }                                                                                          \
    }
SQUARES_REST(wide, double)
SQUARES_REST(narrow, float)

/* Number `behind` of memory that holds numbers of the vector's storage. */
GPU_INLINE const void *squares_at(const struct squares_args *is, const void *values,
                                  size_t behind) {
    return is->storage == DTYPE_F64 ? (const void *)((const double *)values + behind)
                                    : (const void *)((const float *)values + behind);
}

/* Where the block's numbers begin, if all of them lie in one piece and can be loaded by four. */
GPU_INLINE const void *squares_whole(const struct squares_args *is, const struct lanes_place *of) {
    if (of->count == 0) return NULL;
    const struct squares_place at = squares_find(is, of->first);
    const void *const values = squares_at(is, at.values, of->first - at.first);
    return of->first + of->count <= at.end && span_aligned(values) ? values : NULL;
}

/* All rows of a block that can be loaded by four. */
GPU_INLINE size_t squares_rows_wide(const struct squares_args *is, const struct lanes_place *of,
                                    const void *values, double *lane) {
    const size_t rows = of->count / GPU_WARP;
    return is->storage == DTYPE_F64
               ? squares_rows_wide_f64((const double *)values + of->own, rows, lane)
               : squares_rows_wide_f32((const float *)values + of->own, rows, lane);
}

/* A vector without pieces has code of its own: nvcc knows that its memory is global, and does not
 * know it of a pointer that the kernel reads from memory. */
GPU_INLINE double squares_wide(GPU_PARAM const struct squares_args *is,
                               const struct lanes_place *of) {
    const void *const values = squares_whole(is, of);
    double lane[LANES_EACH] = {0.0, 0.0, 0.0, 0.0};
    size_t row = 0;
    if (values != NULL && is->values != NULL)
        row = squares_rows_wide(is, of, squares_at(is, is->values, of->first), lane);
    else if (values != NULL)
        row = squares_rows_wide(is, of, values, lane);
    squares_rest_wide(is, of, row, lane);
    return lanes_sum_f64(GPU_ARG lane);
}

GPU_INLINE double squares_narrow(GPU_PARAM const struct squares_args *is,
                                 const struct lanes_place *of) {
    const size_t rows = of->count / GPU_WARP;
    const float *const values = (const float *)squares_whole(is, of);
    float lane[LANES_EACH] = {0.0f, 0.0f, 0.0f, 0.0f};
    size_t row = 0;
    if (values != NULL && is->values != NULL)
        row = squares_rows_narrow((const float *)is->values + of->first + of->own, rows, lane);
    else if (values != NULL)
        row = squares_rows_narrow(values + of->own, rows, lane);
    squares_rest_narrow(is, of, row, lane);
    return (double)lanes_sum_f32(GPU_ARG lane);
}

KERNEL(squares_kernel, struct squares_job) {
    struct lanes_place of;
    if (!lanes_find(GPU_ARG & args->list, &of)) return;
    const struct squares_args *const is = &args->is[of.tensor];
    lanes_open(&of, is->count);
    const double sum = is->wide ? squares_wide(GPU_ARG is, &of) : squares_narrow(GPU_ARG is, &of);
    if (of.own == 0 && of.count != 0) is->blocks[of.block] = sum;
}

static size_t squares_warps(size_t count) {
    return lanes_warps(squares_blocks(count));
}

void VARIANT(squares)(const struct squares_args *vectors, size_t count);
void VARIANT(squares)(const struct squares_args *vectors, size_t count) {
    LIST_LAUNCH(squares_kernel, struct squares_job, vectors, count, squares_warps);
}

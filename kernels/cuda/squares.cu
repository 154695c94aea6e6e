/* SPDX-License-Identifier: Apache-2.0
 * Squares by blocks of law 2: a warp has a block, lane l of it the numbers l, l + 32, ..., through
 * as many tensors as the block lies in. */
#include "kernels/squares.h"

#include "base/variant.h"
#include "kernels/cuda/list.h"

struct squares_job {
    struct list list;
    struct squares_args is[LIST_TENSORS];
};

/* Where a lane reads: values[i - first] for numbers i before `end`. */
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

GPU_INLINE double squares_wide(const struct squares_args *is, size_t i, size_t end) {
    struct squares_place at = {NULL, 0, 0};
    double lane = 0.0;
    for (; i < end; i += GPU_WARP) {
        if (i >= at.end) at = squares_find(is, i);
        const double x = number_at(at.values, is->storage, i - at.first);
        lane = real_fma_f64(x, x, lane);
    }
    return lane;
}

GPU_INLINE float squares_narrow(const struct squares_args *is, size_t i, size_t end) {
    struct squares_place at = {NULL, 0, 0};
    float lane = 0.0f;
    for (; i < end; i += GPU_WARP) {
        if (i >= at.end) at = squares_find(is, i);
        const float x = ((const float *)at.values)[i - at.first];
        lane = real_fma_f32(x, x, lane);
    }
    return lane;
}

KERNEL(squares_kernel, struct squares_job) {
    struct list_place at;
    if (!list_find_row(GPU_ARG & args->list, &at)) return;
    const struct squares_args *const is = &args->is[at.tensor];
    const size_t first = at.block * SQUARES_BLOCK, end = least(first + SQUARES_BLOCK, is->count);
    const size_t own = first + THREAD % GPU_WARP;
    double sum;
    if (is->wide)
        sum = lanes_join_f64(GPU_ARG squares_wide(is, own, end));
    else
        sum = (double)lanes_join_f32(GPU_ARG squares_narrow(is, own, end));
    if (THREAD % GPU_WARP == 0) is->blocks[at.block] = sum;
}

void VARIANT(squares)(const struct squares_args *vectors, size_t count);
void VARIANT(squares)(const struct squares_args *vectors, size_t count) {
    LIST_LAUNCH(squares_kernel, struct squares_job, vectors, count, squares_blocks);
}

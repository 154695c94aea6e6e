/* SPDX-License-Identifier: Apache-2.0
 * What happens to a whole gradient: closing it (law 4), its sum of squares and its scaling
 * (law 7). Its storage dtype is its own and may have another carrier than the variant's.
 *
 * Invariant: square is law 2 in f64 for every variant: groups of 2^p blocks are nodes of the tree,
 * so threads divide groups and the join of their sums is the tree itself. */
#include "kernels/cpu/call.h"
#include "base/form.h"
#include "kernels/cpu/exact.h"
#include "kernels/cpu/race.h"

#define GROUPS ((size_t)256) /* the most groups of one sum of squares */

ROW_INLINE void close_elements(const struct close_args *args, size_t first, size_t last, int uses,
                               enum dtype dtype) {
    const accumulator *const a = (const accumulator *)args->acc[0];
    const accumulator *const b = (const accumulator *)args->acc[uses - 1];
    EACH for (size_t i = first; i < last; i++) {
        const accumulator sum = uses == 2 ? a[i] + b[i] : a[i];
        if (dtype == DTYPE_F64)
            form_set_f64(args->gradient, i, (double)sum);
        else
            form_set_f32(args->gradient, form_carried(dtype), i, (float)carrier_store(sum, dtype));
    }
}

ROW_INLINE void close_piece(const struct close_args *args, size_t first, size_t last,
                            enum dtype dtype) {
    if (args->uses == 2)
        close_elements(args, first, last, 2, dtype);
    else
        close_elements(args, first, last, 1, dtype);
}

/* Closes by law 16: the sums of all uses are joined exactly, then rounded to the accumulator and
 * then to storage. */
static void close_exactly(const struct close_args *args, size_t first, size_t last) {
    const struct exact_sum *const a = (const struct exact_sum *)args->acc[0];
    const struct exact_sum *const b = (const struct exact_sum *)args->acc[1];
    for (size_t i = first; i < last; i++) {
        struct exact_sum sum = a[i];
        if (args->uses == 2) exact_sum_join(&sum, b + i);
        form_set_f32(args->gradient, form_carried(args->storage), i,
                     (float)carrier_store(exact_acc(&sum), args->storage));
    }
}

void VARIANT(close)(const struct op_call *call, const struct close_args *args) {
#pragma omp parallel for schedule(static) num_threads(call_threads(call, args->count))
    for (size_t first = 0; first < args->count; first += SUM_BLOCK) {
        const size_t last = least(first + SUM_BLOCK, args->count);
        if (call->order_free) {
            close_exactly(args, first, last);
            continue;
        }
#define CLOSE(d) close_piece(args, first, last, d)
        STORAGE_SWITCH(args->storage, CLOSE);
    }
}

/* The sum of squares by law 2 over values first .. first+count-1; `first` is a multiple of the
 * block. */
static double squares(const struct square_args *args, size_t first, size_t count) {
    if (args->storage == DTYPE_F64)
        return sum_squares_f64_f64((const double *)args->values + first, count);
    return sum_squares_f32_f64((const float *)args->values + first, count);
}

static double square_tree(const struct op_call *call, const struct square_args *args) {
    size_t step = SUM_BLOCK;
    while ((args->count + step - 1) / step > GROUPS)
        step *= 2;
    double group[GROUPS];
    const size_t groups = (args->count + step - 1) / step;
#pragma omp parallel for schedule(static) num_threads(call_threads(call, args->count))
    for (size_t g = 0; g < groups; g++)
        group[g] = squares(args, g * step, least(step, args->count - g * step));
    struct sum_blocks_f64 blocks;
    blocks.count = 0;
    for (size_t g = 0; g < groups; g++)
        sum_blocks_push_f64(&blocks, group[g]);
    return sum_blocks_close_f64(&blocks);
}

/* By law 16, of f32 numbers: any number of threads may share the vector, since their sums join
 * exactly. */
static double square_exactly(const struct op_call *call, const struct square_args *args) {
    const float *const values = (const float *)args->values;
    const size_t parts = least((args->count + SUM_BLOCK - 1) / SUM_BLOCK, 16);
    struct exact_wide part[16] = {{{0}}};
#pragma omp parallel for schedule(static) num_threads(call_threads(call, args->count))
    for (size_t p = 0; p < parts; p++) {
        const size_t first = args->count / parts * p;
        const size_t last = p + 1 == parts ? args->count : args->count / parts * (p + 1);
        VARIANT(exact_append_squares)(&part[p], values + first, last - first);
    }
    for (size_t p = 1; p < parts; p++)
        exact_wide_join(&part[0], &part[p]);
    return exact_wide_f64(&part[0]);
}

/* By law 9: the chunks are law 2's blocks, joined in a drawn order. In the scratch the sums of the
 * chunks come first, and what shuffle_join needs lies behind them. */
static double square_shuffled(const struct op_call *call, const struct square_args *args) {
    const struct shuffle shuffle = shuffle_open(call, PASS_FORWARD);
    double *const block = (double *)call->scratch;
    const size_t blocks = (args->count + SUM_BLOCK - 1) / SUM_BLOCK;
    double sum = 0.0;
    for (size_t first = 0; first < blocks; first += SHUFFLE_CHUNKS) {
        const size_t n = least(blocks - first, SHUFFLE_CHUNKS);
#pragma omp parallel for schedule(static) num_threads(call_threads(call, n *SUM_BLOCK))
        for (size_t i = 0; i < n; i++) {
            const size_t at = (first + i) * SUM_BLOCK;
            block[i] = squares(args, at, least(SUM_BLOCK, args->count - at));
        }
        sum += shuffle_join(&shuffle, first / SHUFFLE_CHUNKS, block, n, block + SHUFFLE_CHUNKS);
    }
    return sum;
}

/* By law 14: the chunks are law 2's blocks; threads add them to one sum as they come. */
static double square_racing(const struct op_call *call, const struct square_args *args) {
    const size_t blocks = (args->count + SUM_BLOCK - 1) / SUM_BLOCK;
    double sum = 0.0;
#pragma omp parallel for schedule(dynamic, 1) num_threads(race_threads(call, blocks))
    for (size_t i = 0; i < blocks; i++) {
        const size_t at = i * SUM_BLOCK;
        race_add_f64(&sum, squares(args, at, least(SUM_BLOCK, args->count - at)));
    }
    return sum;
}

void VARIANT(square)(const struct op_call *call, const struct square_args *args) {
    if (call->order_free)
        *args->result = square_exactly(call, args);
    else if (race_active(call, SUM_NORM))
        *args->result = square_racing(call, args);
    else
        *args->result =
            shuffle_active(call, SUM_NORM) ? square_shuffled(call, args) : square_tree(call, args);
}

/* Multiplies as PyTorch multiplies a stored gradient by an f32 scalar: in f64 for f64, else in f32,
 * then with one rounding to storage. It is the same for every variant. */
ROW_INLINE void scale_elements(const struct scale_args *args, size_t first, size_t last,
                               enum dtype dtype) {
    const struct form form = form_carried(dtype);
    const float narrow = (float)args->factor;
    EACH for (size_t i = first; i < last; i++) {
        if (dtype == DTYPE_F64) {
            form_set_f64(args->values, i, form_get(args->values, form, i) * args->factor);
        } else {
            const float product = form_get_f32(args->values, form, i) * narrow;
            form_set_f32(args->values, form, i, (float)carrier_store((accumulator)product, dtype));
        }
    }
}

void VARIANT(scale)(const struct op_call *call, const struct scale_args *args) {
#pragma omp parallel for schedule(static) num_threads(call_threads(call, args->count))
    for (size_t first = 0; first < args->count; first += SUM_BLOCK) {
        const size_t last = least(first + SUM_BLOCK, args->count);
#define SCALE(d) scale_elements(args, first, last, d)
        STORAGE_SWITCH(args->storage, SCALE);
    }
}

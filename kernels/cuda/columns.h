/* SPDX-License-Identifier: Apache-2.0
 * Sums down the columns of listed rows, each acc = fma(a, b, acc): gradients of norm weights and of
 * weights with one column (those of biases are such). A column's sum is one chain here (law 1).
 *
 * No row can be split off a chain, so it is as long as its fma take. What can be had is that
 * nothing else takes longer: few columns a block, so that many multiprocessors read; a warp that
 * does nothing but join; workers whose reads are on their way for a whole slab before they are
 * needed. Invariant: a column's terms join in list order, from what acc holds. */
#ifndef TWINSTEP_KERNELS_CUDA_COLUMNS_H
#define TWINSTEP_KERNELS_CUDA_COLUMNS_H

#include "kernels/cuda/launch.h"

#define COLUMNS_ACROSS 8u /* columns of a block: of f32 as many as a sector of memory holds */
#define COLUMNS_SLAB 128u /* rows that are worked ahead at a time; two slabs take turns */
#define COLUMNS_WORKERS 256u
#define COLUMNS_THREADS (GPU_WARP + COLUMNS_WORKERS)    /* the first warp joins */
#define COLUMNS_STEP (COLUMNS_WORKERS / COLUMNS_ACROSS) /* rows that all workers have at a time */
#define COLUMNS_AHEAD (COLUMNS_SLAB / COLUMNS_STEP)     /* rows of a slab that one worker has */
/* A column's factors in shared memory. With four more than a slab has, the rows and columns that
 * the lanes of a warp write lie in different banks, and so do those that it reads by four. */
#define COLUMNS_LINE (COLUMNS_SLAB + 4u)
#define COLUMNS_FACTORS (COLUMNS_ACROSS * COLUMNS_LINE)
#define COLUMNS_BYTES (4 * COLUMNS_FACTORS * sizeof(accumulator))

/* What the terms are made of: of a norm's weight dy and xhat, of a weight with one column dy and
 * the row's only x. Which of them is known to each kernel as a constant. */
enum columns_of { COLUMNS_OF_NORM, COLUMNS_OF_WEIGHT };

struct columns {
    struct row_list rows;
    uint32_t C;
    const carrier *dy;       /* (.., C) */
    const carrier *x;        /* norm: (.., C); weight: (..) */
    const accumulator *rstd; /* norm: (..) */
    const carrier *w;        /* norm, NORM_BACKWARD_OUTPUT: (C) */
    carrier eps;
    int of_output;
    enum dtype inner, dtype; /* norm: of xhat and of the output; weight: dtype is the product's */
    accumulator *acc;        /* (C) */
};

/* The numbers of one term as they are read. */
struct columns_read {
    carrier dy, x;
    accumulator rstd;
};

GPU_INLINE struct columns_read columns_read(const struct columns *of, size_t row, size_t c,
                                            enum columns_of kind) {
    struct columns_read read;
    read.dy = of->dy[row * of->C + c];
    read.x = kind == COLUMNS_OF_NORM ? of->x[row * of->C + c] : of->x[row];
    read.rstd = kind == COLUMNS_OF_NORM ? of->rstd[row] : ACC(1.0);
    return read;
}

/* The two factors of a term. */
GPU_INLINE accumulator columns_first(const struct columns *of, struct columns_read read,
                                     enum columns_of kind) {
    return kind == COLUMNS_OF_NORM ? (accumulator)read.dy : operand(read.dy, of->dtype);
}

GPU_INLINE accumulator columns_second(const struct columns *of, struct columns_read read, size_t c,
                                      enum columns_of kind) {
    if (kind == COLUMNS_OF_WEIGHT) return operand(read.x, of->dtype);
    if (!of->of_output) return (accumulator)rule_norm_hat(read.x, read.rstd, of->inner);
    const carrier w = of->w[c];
    return (accumulator)rule_norm_hat_of_output(
        rule_norm(read.x, read.rstd, w, of->inner, of->dtype), rule_norm_clamp(w, of->eps),
        rule_wide(of->dtype));
}

#define COLUMNS_BATCH 8u /* rows whose numbers are read before the first of them is used */

/* The chain of column c goes on from `sum` over rows first .. last-1 of the list. */
GPU_INLINE accumulator columns_sum(const struct columns *of, size_t first, size_t last, size_t c,
                                   accumulator sum, enum columns_of kind) {
    for (; first + COLUMNS_BATCH <= last; first += COLUMNS_BATCH) {
        struct columns_read read[COLUMNS_BATCH];
        UNROLL
        for (unsigned k = 0; k < COLUMNS_BATCH; k++)
            read[k] = columns_read(of, list_row(&of->rows, first + k), c, kind);
        UNROLL
        for (unsigned k = 0; k < COLUMNS_BATCH; k++)
            sum = acc_fma(columns_first(of, read[k], kind), columns_second(of, read[k], c, kind),
                          sum);
    }
    ROLLED
    for (; first < last; first++) {
        const struct columns_read read = columns_read(of, list_row(&of->rows, first), c, kind);
        sum = acc_fma(columns_first(of, read, kind), columns_second(of, read, c, kind), sum);
    }
    return sum;
}

/* ---- one chain a column (law 1) ---- */

/* The rows of a worker in the slab that begins at `first`. Behind the last row it is the last one
 * again, whose factors nobody joins. */
GPU_INLINE void columns_find(const struct columns *of, size_t first, unsigned own, size_t *row) {
    UNROLL
    for (unsigned k = 0; k < COLUMNS_AHEAD; k++)
        row[k] =
            list_row(&of->rows, least(first + own + k * COLUMNS_STEP, (size_t)of->rows.count - 1));
}

GPU_INLINE void columns_load(const struct columns *of, const size_t *row, size_t c,
                             struct columns_read *read, enum columns_of kind) {
    UNROLL
    for (unsigned k = 0; k < COLUMNS_AHEAD; k++)
        read[k] = columns_read(of, row[k], c, kind);
}

GPU_INLINE void columns_store(const struct columns *of, const struct columns_read *read, size_t c,
                              accumulator *to, enum columns_of kind) {
    UNROLL
    for (unsigned k = 0; k < COLUMNS_AHEAD; k++) {
        to[k * COLUMNS_STEP] = columns_first(of, read[k], kind);
        to[COLUMNS_FACTORS + k * COLUMNS_STEP] = columns_second(of, read[k], c, kind);
    }
}

/* Four terms at a time, as they lie in shared memory. */
GPU_INLINE accumulator columns_join4(const accumulator *from, accumulator sum) {
    accumulator first[4], second[4];
    ACC_NAME_(gpu_load4)(first, from);
    ACC_NAME_(gpu_load4)(second, from + COLUMNS_FACTORS);
    UNROLL
    for (unsigned i = 0; i < 4; i++)
        sum = acc_fma(first[i], second[i], sum);
    return sum;
}

/* The chain goes on over the first `rows` rows of a slab. */
GPU_INLINE accumulator columns_join(const accumulator *from, size_t rows, accumulator sum) {
    if (rows == COLUMNS_SLAB) {
        UNROLL
        for (unsigned i = 0; i < COLUMNS_SLAB; i += 4)
            sum = columns_join4(from + i, sum);
        return sum;
    }
    ROLLED
    for (size_t i = 0; i < rows; i++)
        sum = acc_fma(from[i], from[COLUMNS_FACTORS + i], sum);
    return sum;
}

/* Block BLOCK has COLUMNS_ACROSS columns. While its first warp joins one slab, its workers write
 * the next one to shared memory, have read the numbers of the one behind it, and the rows of the
 * one behind that. */
GPU_INLINE void columns_chain(GPU_PARAM const struct columns *of, accumulator *shared,
                              enum columns_of kind) {
    const int joins = THREAD < GPU_WARP;
    const unsigned worker = joins ? THREAD : THREAD - GPU_WARP;
    const unsigned across = worker % COLUMNS_ACROSS, own = worker / COLUMNS_ACROSS;
    const size_t column = (size_t)BLOCK * COLUMNS_ACROSS + across;
    const size_t c = least(column, (size_t)of->C - 1), rows = of->rows.count;
    const int has = joins && own == 0 && column < of->C;
    accumulator *const line = shared + across * COLUMNS_LINE;
    accumulator sum = has ? of->acc[c] : ACC(0.0);
    struct columns_read read[2][COLUMNS_AHEAD];
    size_t row[COLUMNS_AHEAD];
    if (!joins) {
        columns_find(of, 0, own, row);
        columns_load(of, row, c, read[0], kind);
        columns_find(of, COLUMNS_SLAB, own, row);
    }
    ROLLED
    for (size_t first = 0; first < rows + COLUMNS_SLAB; first += 2 * COLUMNS_SLAB) {
        UNROLL
        for (unsigned half = 0; half < 2; half++) {
            const size_t now = first + half * COLUMNS_SLAB;
            accumulator *const ahead = line + half * 2 * COLUMNS_FACTORS;
            const accumulator *const ready = line + (1 - half) * 2 * COLUMNS_FACTORS;
            if (!joins) {
                columns_load(of, row, c, read[1 - half], kind);
                columns_find(of, now + 2 * COLUMNS_SLAB, own, row);
                columns_store(of, read[half], c, ahead + own, kind);
            } else if (has && now > 0 && now < rows + COLUMNS_SLAB) {
                sum = columns_join(ready, least(COLUMNS_SLAB, rows + COLUMNS_SLAB - now), sum);
            }
            BARRIER();
        }
    }
    if (has) of->acc[c] = sum;
}

static inline size_t columns_blocks(const struct columns *of) {
    return of->rows.count == 0 ? 0 : ((size_t)of->C + COLUMNS_ACROSS - 1) / COLUMNS_ACROSS;
}

#endif

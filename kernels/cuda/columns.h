/* SPDX-License-Identifier: Apache-2.0
 * Sums down the columns of listed rows, each acc = fma(a, b, acc): gradients of norm weights and of
 * weights with one column (those of biases are such). A column's sum is one chain (law 1), or, in
 * the modes that leave products to a device's library, chunks that join by a tree (law 20).
 *
 * No row can be split off a chain, so it is as long as its fma take. What can be had is that
 * nothing else takes longer: few columns a block, so that many multiprocessors read; a warp that
 * does nothing but join; workers whose reads are on their way for a whole slab before they are
 * needed. Chunks are walked all at once instead. Invariant: an order comes from the list alone. */
#ifndef TWINSTEP_KERNELS_CUDA_COLUMNS_H
#define TWINSTEP_KERNELS_CUDA_COLUMNS_H

#include "kernels/cuda/kernels_cuda.h"
#include "kernels/cuda/launch.h"

#define COLUMNS_ACROSS 8u /* columns of a block: of f32 as many as a sector of memory holds */
#define COLUMNS_WORKERS 256u
#define COLUMNS_THREADS (GPU_WARP + COLUMNS_WORKERS)    /* the first warp joins */
#define COLUMNS_STEP (COLUMNS_WORKERS / COLUMNS_ACROSS) /* rows that all workers have at a time */
/* Rows of a slab that one worker has: as many as two slabs in 48 KiB of shared memory allow. */
#if defined(TWINSTEP_ACCUMULATOR_f32)
#define COLUMNS_AHEAD 8u
#else
#define COLUMNS_AHEAD 4u
#endif
#define COLUMNS_SLAB (COLUMNS_AHEAD * COLUMNS_STEP) /* rows that are worked ahead at a time */
/* A column's factors in shared memory. With four more than a slab has, the rows and columns that
 * the lanes of a warp write lie in different banks, and so do those that it reads by four. */
#define COLUMNS_LINE (COLUMNS_SLAB + 4u)
#define COLUMNS_FACTORS (COLUMNS_ACROSS * COLUMNS_LINE)
#define COLUMNS_BYTES (4 * COLUMNS_FACTORS * sizeof(accumulator))

/* What the terms are made of: of a norm's weight dy and xhat, of a weight with one column dy and
 * the row's only x, of an embedding's row dy and 1 (fma(dy, 1, acc) is dy + acc). Each kernel knows
 * as a constant which it is. */
enum columns_of { COLUMNS_OF_NORM, COLUMNS_OF_WEIGHT, COLUMNS_OF_ROWS };

struct columns {
    struct row_list rows;
    uint32_t C;
    const struct stored *dy; /* (.., C) */
    const struct stored *x;  /* norm: (.., C); weight: (..) */
    const accumulator *rstd; /* norm: (..) */
    const struct stored *w;  /* norm, NORM_BACKWARD_OUTPUT: (C) */
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
    read.dy = stored_load(of->dy[row * of->C + c]);
    read.x = kind == COLUMNS_OF_NORM     ? stored_load(of->x[row * of->C + c])
             : kind == COLUMNS_OF_WEIGHT ? stored_load(of->x[row])
                                         : (carrier)1;
    read.rstd = kind == COLUMNS_OF_NORM ? of->rstd[row] : ACC(1.0);
    return read;
}

/* The two factors of a term. */
GPU_INLINE accumulator columns_first(const struct columns *of, struct columns_read read,
                                     enum columns_of kind) {
    return kind == COLUMNS_OF_WEIGHT ? operand(read.dy, of->dtype) : (accumulator)read.dy;
}

GPU_INLINE accumulator columns_second(const struct columns *of, struct columns_read read, size_t c,
                                      enum columns_of kind) {
    if (kind == COLUMNS_OF_WEIGHT) return operand(read.x, of->dtype);
    if (kind == COLUMNS_OF_ROWS) return (accumulator)read.x;
    if (!of->of_output) return (accumulator)rule_norm_hat(read.x, read.rstd, of->inner);
    const carrier w = stored_load(of->w[c]);
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

/* Block `block` of a sum has COLUMNS_ACROSS columns. While its first warp joins slab n, its workers
 * write slab n + 1 to shared memory, read the numbers of slab n + 2, and look up the rows of slab
 * n + 3. */
GPU_INLINE void columns_chain(GPU_PARAM const struct columns *of, size_t block, accumulator *shared,
                              enum columns_of kind) {
    const int joins = THREAD < GPU_WARP;
    const unsigned worker = joins ? THREAD : THREAD - GPU_WARP;
    const unsigned across = worker % COLUMNS_ACROSS, own = worker / COLUMNS_ACROSS;
    const size_t column = block * COLUMNS_ACROSS + across;
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

/* ---- chunks that join by a tree (law 20) ---- */

#define TREE_THREADS (TREE_WARPS * GPU_WARP)
#define TREE_BYTES (TREE_THREADS * sizeof(accumulator))

/* Joins sums 0 .. count-1, a power of two, level by level, 2j with 2j+1. Those that are not there
 * are -0, which changes no sum, not that of -0 either. */
GPU_INLINE accumulator tree_join(accumulator *sum, unsigned count) {
    UNROLL
    for (unsigned apart = 1; apart < count; apart *= 2) {
        UNROLL
        for (unsigned i = 0; i < count; i += 2 * apart)
            sum[i] = sum[i] + sum[i + apart];
    }
    return sum[0];
}

/* Joins what the warps of the block have, lane by lane. Every thread comes and gets the result of
 * its lane. `shared` holds a number for each thread. */
GPU_INLINE accumulator tree_of_warps(GPU_PARAM accumulator *shared, accumulator own) {
    accumulator sum[TREE_WARPS];
    BARRIER();
    shared[THREAD] = own;
    BARRIER();
    UNROLL
    for (unsigned i = 0; i < TREE_WARPS; i++)
        sum[i] = shared[i * GPU_WARP + THREAD % GPU_WARP];
    return tree_join(sum, TREE_WARPS);
}

/* What holds the sums that are still to be joined: a column has `count` of them, `line` apart. */
struct tree_sums {
    const accumulator *sum;
    size_t count, line;
};

/* Joins the sums of column c, which is one of the lane's. Every thread of the block comes and gets
 * the result of its lane. A block takes TREE_CHUNK * TREE_WARPS sums at a time, which are a node of
 * the tree. */
GPU_INLINE accumulator tree_of_sums(GPU_PARAM accumulator *shared, const struct tree_sums *of,
                                    size_t c) {
    const size_t own = (size_t)(THREAD / GPU_WARP) * TREE_CHUNK;
    struct ACC_NAME_(sum_blocks) nodes;
    nodes.count = 0;
    ROLLED
    for (size_t first = 0; first < of->count; first += TREE_CHUNK * TREE_WARPS) {
        const size_t left = of->count - first, some = left > own ? left - own : 0;
        accumulator sum[TREE_CHUNK];
        UNROLL
        for (unsigned i = 0; i < TREE_CHUNK; i++)
            sum[i] = i < some ? of->sum[(first + own + i) * of->line + c] : ACC(-0.0);
        const accumulator node = tree_of_warps(GPU_ARG shared, tree_join(sum, TREE_CHUNK));
        ACC_NAME_(sum_blocks_push)(&nodes, node);
    }
    return ACC_NAME_(sum_blocks_close)(&nodes);
}

/* Columns first .. first+columns-1 in one launch: `parts` blocks for each 32 of them, every one of
 * which has TREE_WARPS chunks and leaves their sum, or adds it to the accumulator where it is the
 * only one. */
struct tree_job {
    struct columns of;
    size_t first;
    uint32_t columns, across, parts; /* across: blocks for all columns */
    accumulator *sum;                /* (parts, columns) */
};

/* The column of a thread of block `across`, counted from job->first, or the last one. */
GPU_INLINE uint32_t tree_column(GPU_PARAM const struct tree_job *job, uint32_t across) {
    return (uint32_t)least((size_t)across * GPU_WARP + THREAD % GPU_WARP, job->columns - 1);
}

/* Whether the thread writes what the block has for its column. */
GPU_INLINE int tree_writes(GPU_PARAM const struct tree_job *job, uint32_t across) {
    return THREAD < GPU_WARP && (size_t)across * GPU_WARP + THREAD < job->columns;
}

GPU_INLINE void tree_chunks(GPU_PARAM const struct tree_job *job, accumulator *shared,
                            enum columns_of kind) {
    const uint32_t part = BLOCK / job->across, across = BLOCK % job->across;
    const uint32_t column = tree_column(GPU_ARG job, across), rows = job->of.rows.count;
    const size_t c = job->first + column;
    const size_t chunk = (size_t)part * TREE_WARPS + THREAD / GPU_WARP, from = chunk * TREE_CHUNK;
    const accumulator own =
        from < rows ? columns_sum(&job->of, from, least(from + TREE_CHUNK, rows), c, ACC(0.0), kind)
                    : ACC(-0.0);
    const accumulator sum = tree_of_warps(GPU_ARG shared, own);
    if (!tree_writes(GPU_ARG job, across)) return;
    if (job->parts == 1)
        job->of.acc[c] = job->of.acc[c] + sum;
    else
        job->sum[(size_t)part * job->columns + column] = sum;
}

KERNEL(tree_join_kernel, struct tree_job) {
    SHARED(accumulator, shared);
    const uint32_t column = tree_column(GPU_ARG args, BLOCK);
    const struct tree_sums sums = {args->sum, args->parts, args->columns};
    const accumulator sum = tree_of_sums(GPU_ARG shared, &sums, column);
    accumulator *const acc = args->of.acc + args->first + column;
    if (tree_writes(GPU_ARG args, BLOCK)) *acc = *acc + sum;
}

static inline struct tree_job tree_open(const struct op_call *call, const struct columns *of) {
    const size_t chunks = ((size_t)of->rows.count + TREE_CHUNK - 1) / TREE_CHUNK;
    const struct tree_job job = {
        .of = *of,
        .parts = (uint32_t)((chunks + TREE_WARPS - 1) / TREE_WARPS),
        .sum = (accumulator *)cuda_rest(call),
    };
    return job;
}

/* Goes to the columns behind those of the last launch; 0: there are none. */
static inline int tree_next(struct tree_job *job) {
    job->first += job->columns;
    job->columns = (uint32_t)least(TREE_COLUMNS, job->of.C - job->first);
    job->across = (job->columns + GPU_WARP - 1) / GPU_WARP;
    return job->columns != 0;
}

/* Starts `kernel`, whose threads call tree_chunks(), for all columns of a job that was opened, and
 * what joins its sums behind it. */
#define TREE_LAUNCH(kernel, job)                                                                   \
    while (tree_next(job)) {                                                                       \
        LAUNCH(kernel, (size_t)(job)->across *(job)->parts, TREE_THREADS, TREE_BYTES, job);        \
        if ((job)->parts > 1)                                                                      \
            LAUNCH(tree_join_kernel, (job)->across, TREE_THREADS, TREE_BYTES, job);                \
    }

static inline size_t columns_blocks(const struct columns *of) {
    return of->rows.count == 0 ? 0 : ((size_t)of->C + COLUMNS_ACROSS - 1) / COLUMNS_ACROSS;
}

#endif

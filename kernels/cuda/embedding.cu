/* SPDX-License-Identifier: Apache-2.0
 * Embedding: the gather, and the gradient of the table. Tokens are first listed by id, in list
 * order within an id, by a merge sort: blocks of threads sort their own, then neighbouring runs
 * join until one is left. A warp then has an id that occurs and 128 columns, so that table rows
 * nobody read cost nothing.
 *
 * Invariant: a chain of adds over the id's tokens in list order (law 1), which cannot be split: an
 * id of many tokens goes by columns.h, as norms do, and is as slow as it is long. Deterministic and
 * fast: chunks that join by a tree (law 20). Shuffled: chunks from +0, in the order of the tile of
 * 64 ids x 64 columns (law 9). Atomic: a thread per chunk (law 14). */
#include <string.h>

#include "kernels/cuda/columns.h"
#include "kernels/cuda/joined.h"

KERNEL(embedding_forward_kernel, struct embedding_forward_args) {
    const size_t C = args->C;
    struct span at;
    if (!span_find(GPU_ARG & args->rows, args->C, &at)) return;
    const struct stored *const from =
        (const struct stored *)args->table + (size_t)args->ids[at.i] * C;
    struct stored *const x = (struct stored *)args->x + at.row * C;
    if (C % SPAN_EACH == 0 && span_aligned(from) && span_aligned(x)) {
        SPAN_GROUPS(c, at) {
            carrier each[SPAN_EACH];
            load_each(each, from + c);
            store_each(x + c, each);
        }
        return;
    }
    SPAN_ONES(c, at) x[c] = from[c];
}

static void embedding_forward(const struct op_call *call,
                              const struct embedding_forward_args *args) {
    (void)call;
    LAUNCH_SPANS(embedding_forward_kernel, &args->rows, args->C, args);
}

/* Places: tokens sorted by id, by their places in the list within an id. Places first .. last-1 and
 * columns column .. column+columns-1 are one launch. */
struct embedding_job {
    struct embedding_weight_args is;
    uint32_t *token; /* (rows.count) by place: index into the list */
    uint32_t *start; /* (rows.count) by place: the first of its id */
    uint32_t *same;  /* (rows.count) by place: how many its id has */
    uint32_t *row;   /* (rows.count) by place: the physical row */
    size_t first, last, column, columns;
    struct joined by;
    int drawn;        /* ids of several chunks, in the tile's order; else those of one */
    accumulator *sum; /* law 20: sums of chunks that are still to be joined, `columns` of each */
};

/* Tokens of the list in runs that are sorted, by id and then by their places in the list. */
struct embedding_runs {
    const uint32_t *ids;
    uint32_t count, run;  /* tokens; of a run, the last of which may be shorter */
    const uint32_t *from; /* (count) */
    uint32_t *to;         /* (count) runs of twice the length */
    uint32_t *same;       /* (count) */
    uint32_t *row;        /* (count) */
    struct row_list rows;
};

/* Of `count` sorted tokens, those of smaller ids, and those of the id itself where `own` is set. */
GPU_INLINE uint32_t embedding_below(const uint32_t *ids, const uint32_t *token, uint32_t count,
                                    uint32_t id, int own) {
    uint32_t low = 0, high = count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2, other = ids[token[middle]];
        if (other < id || (own && other == id))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* A block of threads sorts as many tokens, each of which counts the others. */
KERNEL(embedding_block_kernel, struct embedding_runs) {
    SHARED(uint32_t, ids);
    const uint32_t first = BLOCK * THREADS, i = first + THREAD;
    const uint32_t count = (uint32_t)least(THREADS, args->count - first);
    if (i < args->count) ids[THREAD] = args->ids[i];
    BARRIER();
    if (i >= args->count) return;
    uint32_t before = 0;
    for (uint32_t j = 0; j < count; j++)
        before += ids[j] < ids[THREAD] || (ids[j] == ids[THREAD] && j < THREAD);
    args->to[first + before] = i;
}

/* A token of either of two neighbouring runs comes behind those of its own, which it follows there,
 * and behind the other run's: those of its id too where that is the left one. */
KERNEL(embedding_merge_kernel, struct embedding_runs) {
    const uint32_t i = BLOCK * THREADS + THREAD, run = args->run;
    if (i >= args->count) return;
    const uint32_t own = i / run * run, left = own / run / 2 * 2 * run;
    const uint32_t other = own == left ? left + run : left;
    const uint32_t others = other < args->count ? (uint32_t)least(run, args->count - other) : 0;
    const uint32_t token = args->from[i];
    const uint32_t before =
        embedding_below(args->ids, args->from + other, others, args->ids[token], other == left);
    args->to[left + (i - own) + before] = token;
}

/* Where the id of each place begins, into `to`, how many tokens it has, and the place's row. */
KERNEL(embedding_list_kernel, struct embedding_runs) {
    const uint32_t i = BLOCK * THREADS + THREAD, count = args->count;
    if (i >= count) return;
    const uint32_t id = args->ids[args->from[i]];
    const uint32_t start = embedding_below(args->ids, args->from, count, id, 0);
    args->to[i] = start;
    args->row[i] = (uint32_t)list_row(&args->rows, args->from[i]);
    args->same[i] = embedding_below(args->ids, args->from + start, count - start, id, 1);
}

#define EMBEDDING_LAUNCH(kernel, runs, shared)                                                     \
    LAUNCH(kernel, element_blocks((runs)->count), ELEMENT_THREADS, shared, runs)

static struct embedding_job embedding_list(const struct op_call *call,
                                           const struct embedding_weight_args *args) {
    const size_t count = args->rows.count;
    uint32_t *const lists = (uint32_t *)cuda_rest(call);
    uint32_t *token = lists, *other = lists + count;
    struct embedding_runs runs = {
        .ids = args->ids,
        .count = (uint32_t)count,
        .to = token,
        .same = lists + 2 * count,
        .row = lists + 3 * count,
        .rows = args->rows,
    };
    EMBEDDING_LAUNCH(embedding_block_kernel, &runs, ELEMENT_THREADS * sizeof(uint32_t));
    for (size_t run = ELEMENT_THREADS; run < count; run *= 2) {
        runs.run = (uint32_t)run;
        runs.from = token;
        runs.to = other;
        EMBEDDING_LAUNCH(embedding_merge_kernel, &runs, 0);
        other = token;
        token = runs.to;
    }
    runs.from = token;
    runs.to = other;
    EMBEDDING_LAUNCH(embedding_list_kernel, &runs, 0);
    const struct embedding_job job = {
        .is = *args,
        .token = token,
        .start = other,
        .same = runs.same,
        .row = runs.row,
        .last = count,
        .columns = args->C,
        .by = {0, 1, NULL},
        .sum = (accumulator *)(void *)(lists + embedding_lists(count)),
    };
    return job;
}

static size_t embedding_blocks(const struct embedding_job *job) {
    return element_blocks((job->last - job->first) * job->columns);
}

/* A thread's place in the list, its id, and its column. */
struct embedding_place {
    size_t place, id, column, first, count; /* first, count: places of the id */
    accumulator *acc;
};

GPU_INLINE int embedding_find(const struct embedding_job *job, size_t at,
                              struct embedding_place *out) {
    out->place = job->first + at / job->columns;
    if (out->place >= job->last) return 0;
    out->id = job->is.ids[job->token[out->place]];
    out->column = job->column + at % job->columns;
    out->first = job->start[out->place];
    out->count = job->same[out->place];
    out->acc = (accumulator *)job->is.acc + out->id * job->is.C + out->column;
    return 1;
}

/* The chain goes on from `sum` over `count` tokens of the list. */
GPU_INLINE accumulator embedding_chain(const struct embedding_job *job, size_t place, size_t count,
                                       size_t column, accumulator sum) {
    const struct stored *const dx = (const struct stored *)job->is.dx + column;
    for (size_t i = 0; i < count; i++)
        sum = sum + (accumulator)stored_load(dx[job->row[place + i] * (size_t)job->is.C]);
    return sum;
}

/* ---- a warp for an id, or a chunk of one, and columns ---- */

#define EMBEDDING_EACH 4u /* columns of a lane, GPU_WARP apart */
#define EMBEDDING_SPAN ((size_t)EMBEDDING_EACH * GPU_WARP)
#define EMBEDDING_BATCH 8u /* rows whose numbers are read before the first of them is used */
#define EMBEDDING_WARPS (ELEMENT_THREADS / GPU_WARP)
/* Of more tokens than these an id is long. Where all ids of a list are, each of their first places
 * is in another piece of so many places. */
#define EMBEDDING_LONG 256u

static size_t embedding_spans(const struct embedding_job *job) {
    return (job->columns + EMBEDDING_SPAN - 1) / EMBEDDING_SPAN;
}

static size_t embedding_warp_blocks(const struct embedding_job *job) {
    return ((job->last - job->first) * embedding_spans(job) + EMBEDDING_WARPS - 1) /
           EMBEDDING_WARPS;
}

/* The place of a warp, and the first column of the lane, counted from job->column. Returns 0 behind
 * the last place. */
GPU_INLINE int embedding_warp(GPU_PARAM const struct embedding_job *job, size_t *place,
                              size_t *column) {
    const uint32_t spans = (uint32_t)((job->columns + EMBEDDING_SPAN - 1) / EMBEDDING_SPAN);
    const uint32_t warp = BLOCK * EMBEDDING_WARPS + THREAD / GPU_WARP;
    *place = job->first + warp / spans;
    *column = warp % spans * EMBEDDING_SPAN + THREAD % GPU_WARP;
    return *place < job->last;
}

/* The lane's columns that are there read their own numbers, the others the last column's. */
GPU_INLINE void embedding_load(const struct embedding_job *job, size_t row, size_t column,
                               carrier *dx) {
    UNROLL
    for (unsigned j = 0; j < EMBEDDING_EACH; j++)
        dx[j] = stored_load(
            ((const struct stored *)job->is.dx)[row * job->is.C + job->column +
                                                least(column + j * GPU_WARP, job->columns - 1)]);
}

/* The lane's chains go on over places place .. place+count-1. Kernels that call this leave
 * registers for a whole batch (KERNEL_BY): with fewer, ptxas adds the first numbers before it reads
 * the last ones. */
GPU_INLINE void embedding_chains(const struct embedding_job *job, size_t place, size_t count,
                                 size_t column, accumulator *sum) {
    const uint32_t *const row = job->row + place;
    size_t i = 0;
    ROLLED
    for (; i + EMBEDDING_BATCH <= count; i += EMBEDDING_BATCH) {
        carrier dx[EMBEDDING_BATCH * EMBEDDING_EACH];
        UNROLL
        for (unsigned k = 0; k < EMBEDDING_BATCH; k++)
            embedding_load(job, row[i + k], column, dx + k * EMBEDDING_EACH);
        UNROLL
        for (unsigned k = 0; k < EMBEDDING_BATCH; k++) {
            UNROLL
            for (unsigned j = 0; j < EMBEDDING_EACH; j++)
                sum[j] = sum[j] + (accumulator)dx[k * EMBEDDING_EACH + j];
        }
    }
    ROLLED
    for (; i < count; i++) {
        carrier dx[EMBEDDING_EACH];
        embedding_load(job, row[i], column, dx);
        UNROLL
        for (unsigned j = 0; j < EMBEDDING_EACH; j++)
            sum[j] = sum[j] + (accumulator)dx[j];
    }
}

/* The accumulators of a place's id, from column job->column on. */
GPU_INLINE accumulator *embedding_acc(const struct embedding_job *job, size_t place) {
    const size_t id = job->is.ids[job->token[place]];
    return (accumulator *)job->is.acc + id * job->is.C + job->column;
}

KERNEL_BY(embedding_weight_kernel, struct embedding_job, ELEMENT_THREADS, 3) {
    size_t place, column;
    if (!embedding_warp(GPU_ARG args, &place, &column)) return;
    const size_t count = args->same[place];
    if (place != args->start[place] || count > EMBEDDING_LONG) return;
    accumulator *const acc = embedding_acc(args, place);
    accumulator sum[EMBEDDING_EACH];
    UNROLL
    for (unsigned j = 0; j < EMBEDDING_EACH; j++)
        sum[j] = column + j * GPU_WARP < args->columns ? acc[column + j * GPU_WARP] : ACC(0.0);
    embedding_chains(args, place, count, column, sum);
    UNROLL
    for (unsigned j = 0; j < EMBEDDING_EACH; j++)
        if (column + j * GPU_WARP < args->columns) acc[column + j * GPU_WARP] = sum[j];
}

/* ---- ids of many tokens: a block for each piece of the list in which one may begin ---- */

struct embedding_many {
    struct embedding_job of;
    uint32_t most;   /* tokens of an id that is not looked for, and places of a piece */
    uint32_t across; /* blocks for all columns */
};

static struct embedding_many embedding_many(const struct embedding_job *job, uint32_t most,
                                            size_t columns) {
    const struct embedding_many many = {*job, most,
                                        (uint32_t)((job->columns + columns - 1) / columns)};
    return many;
}

static size_t embedding_many_blocks(const struct embedding_many *many) {
    return (many->of.is.rows.count / many->most + 1) * many->across;
}

/* The first place of the id of more than `most` tokens that begins in the block's piece. Returns 0
 * where none does. Every thread comes. */
GPU_INLINE int embedding_find_many(GPU_PARAM const struct embedding_many *many, uint32_t *found,
                                   size_t *place) {
    const uint32_t none = ~(uint32_t)0, count = many->of.is.rows.count;
    const uint32_t piece = BLOCK / many->across * many->most;
    if (THREAD == 0) *found = none;
    BARRIER();
    for (uint32_t i = THREAD; i < many->most; i += THREADS) {
        const uint32_t at = piece + i;
        if (at < count && many->of.start[at] == at && many->of.same[at] > many->most) *found = at;
    }
    BARRIER();
    *place = *found;
    BARRIER();
    return *place != none;
}

/* The columns of one id: its tokens' rows, whose second factor is 1. */
KERNEL_BY(embedding_long_kernel, struct embedding_many, COLUMNS_THREADS, 1) {
    SHARED(accumulator, shared);
    size_t place;
    if (!embedding_find_many(GPU_ARG args, (uint32_t *)(void *)shared, &place)) return;
    struct columns terms;
    terms.rows.index = args->of.row + place;
    terms.rows.count = args->of.same[place];
    terms.C = args->of.is.C;
    terms.dy = (const struct stored *)args->of.is.dx;
    terms.acc = embedding_acc(&args->of, place);
    columns_chain(GPU_ARG & terms, BLOCK % args->across, shared, COLUMNS_OF_ROWS);
}

static void embedding_chain_all(struct embedding_job *job) {
    const struct embedding_many many = embedding_many(job, EMBEDDING_LONG, COLUMNS_ACROSS);
    LAUNCH(embedding_weight_kernel, embedding_warp_blocks(job), ELEMENT_THREADS, 0, job);
    if (job->is.rows.count > EMBEDDING_LONG)
        LAUNCH(embedding_long_kernel, embedding_many_blocks(&many), COLUMNS_THREADS, COLUMNS_BYTES,
               &many);
}

/* ---- law 20 ---- */

/* The sums of an id of several chunks begin at place / (TREE_CHUNK / 2): it has two tokens or more
 * for each half of a chunk, so that the next one's begin behind them. */
GPU_INLINE accumulator *embedding_sums(const struct embedding_job *job, size_t place) {
    return job->sum + place / (TREE_CHUNK / 2) * job->columns;
}

KERNEL_BY(embedding_tree_kernel, struct embedding_job, ELEMENT_THREADS, 3) {
    size_t place, column;
    if (!embedding_warp(GPU_ARG args, &place, &column)) return;
    const size_t first = args->start[place], behind = place - first, count = args->same[place];
    if (behind % TREE_CHUNK != 0) return;
    accumulator sum[EMBEDDING_EACH] = {ACC(0.0)};
    embedding_chains(args, place, least(TREE_CHUNK, count - behind), column, sum);
    const int only = count <= TREE_CHUNK;
    accumulator *const to = only
                                ? embedding_acc(args, place)
                                : embedding_sums(args, first) + behind / TREE_CHUNK * args->columns;
    UNROLL
    for (unsigned j = 0; j < EMBEDDING_EACH; j++) {
        const size_t c = column + j * GPU_WARP;
        if (c < args->columns) to[c] = only ? to[c] + sum[j] : sum[j];
    }
}

KERNEL(embedding_tree_join_kernel, struct embedding_many) {
    SHARED(accumulator, shared);
    const struct embedding_job *const job = &args->of;
    const size_t span = BLOCK % args->across * EMBEDDING_SPAN;
    size_t place;
    if (!embedding_find_many(GPU_ARG args, (uint32_t *)(void *)shared, &place)) return;
    const size_t chunks = ((size_t)job->same[place] + TREE_CHUNK - 1) / TREE_CHUNK;
    const struct tree_sums sums = {embedding_sums(job, place), chunks, job->columns};
    accumulator *const acc = embedding_acc(job, place);
    ROLLED
    for (unsigned j = 0; j < EMBEDDING_EACH; j++) {
        const size_t c = span + j * GPU_WARP + THREAD % GPU_WARP;
        const accumulator sum = tree_of_sums(GPU_ARG shared, &sums, least(c, job->columns - 1));
        if (THREAD < GPU_WARP && c < job->columns) acc[c] = acc[c] + sum;
    }
}

static void embedding_tree(struct embedding_job *job) {
    for (; job->column < job->is.C; job->column += TREE_COLUMNS) {
        job->columns = least(TREE_COLUMNS, job->is.C - job->column);
        const struct embedding_many many = embedding_many(job, TREE_CHUNK, EMBEDDING_SPAN);
        LAUNCH(embedding_tree_kernel, embedding_warp_blocks(job), ELEMENT_THREADS, 0, job);
        if (job->is.rows.count > TREE_CHUNK)
            LAUNCH(embedding_tree_join_kernel, embedding_many_blocks(&many), TREE_THREADS,
                   TREE_BYTES, &many);
    }
}

/* ---- laws 9 and 14 ---- */

KERNEL(embedding_shuffled_kernel, struct embedding_job) {
    struct embedding_place at;
    if (!embedding_find(args, (size_t)BLOCK * THREADS + THREAD, &at)) return;
    if (at.place != at.first || (at.count > args->by.chunk) != args->drawn) return;
    const size_t tile = (at.column - args->column) / SHUFFLE_TILE;
    accumulator sum = 0;
    for (uint32_t i = 0; i < args->by.chunks; i++) {
        const size_t first = (size_t)joined_chunk(&args->by, tile, i) * args->by.chunk;
        if (first >= at.count) continue; /* the tile's longest id has more chunks */
        sum = sum + embedding_chain(args, at.first + first, least(args->by.chunk, at.count - first),
                                    at.column, 0);
    }
    *at.acc = *at.acc + sum;
}

/* The ids of one tile that have several chunks: columns in batches, as the table of orders holds
 * them. */
static void embedding_tiles(const struct op_call *call, struct embedding_job *job,
                            const struct shuffle *shuffle, size_t row_tile, uint32_t chunks) {
    const size_t across = ((size_t)job->is.C + SHUFFLE_TILE - 1) / SHUFFLE_TILE;
    const size_t batch = order_batch(shuffle, chunks, across);
    for (size_t tile = 0; tile < across; tile += batch) {
        const size_t tiles = least(batch, across - tile);
        job->by = order_draw(call, shuffle, chunks, row_tile * across + tile, tiles, across);
        job->column = tile * SHUFFLE_TILE;
        job->columns = least(tiles * SHUFFLE_TILE, job->is.C - job->column);
        LAUNCH(embedding_shuffled_kernel, embedding_blocks(job), ELEMENT_THREADS, 0, job);
    }
}

/* How often ids from `first` on occur, which the host counts: no op writes them. */
#define EMBEDDING_WINDOW ((size_t)64 * SHUFFLE_TILE)
struct embedding_window {
    size_t first, before; /* tokens of smaller ids */
    uint32_t often[EMBEDDING_WINDOW];
};

static void embedding_count(const struct embedding_weight_args *args, size_t first,
                            struct embedding_window *out) {
    memset(out, 0, sizeof *out);
    out->first = first;
    for (size_t i = 0; i < args->rows.count; i++) {
        if (args->ids[i] < first)
            out->before++;
        else if (args->ids[i] - first < EMBEDDING_WINDOW)
            out->often[args->ids[i] - first]++;
    }
}

/* The places of the next tile's ids, and how many the most frequent one has. */
static size_t embedding_tile(struct embedding_job *job, const struct embedding_window *window,
                             size_t id) {
    size_t most = 0;
    job->first = id == window->first ? window->before : job->last;
    job->last = job->first;
    for (size_t v = 0; v < SHUFFLE_TILE; v++) {
        const size_t own = window->often[id - window->first + v];
        job->last += own;
        if (own > most) most = own;
    }
    return most;
}

/* An id of one chunk has one order: all of them in one launch. */
static void embedding_shuffled(const struct op_call *call, struct embedding_job *job) {
    const struct shuffle shuffle = order_open(call, PASS_WEIGHT);
    struct embedding_window window;
    job->by.chunk = shuffle.chunk;
    LAUNCH(embedding_shuffled_kernel, embedding_blocks(job), ELEMENT_THREADS, 0, job);
    job->drawn = 1;
    for (size_t id = 0; id < job->is.V; id += SHUFFLE_TILE) {
        if (id % EMBEDDING_WINDOW == 0) embedding_count(&job->is, id, &window);
        const size_t most = embedding_tile(job, &window, id);
        if (most <= shuffle.chunk) continue;
        embedding_tiles(call, job, &shuffle, id / SHUFFLE_TILE, shuffle_chunks(&shuffle, most));
    }
}

KERNEL(embedding_atomic_kernel, struct embedding_job) {
    struct embedding_place at;
    if (!embedding_find(args, (size_t)BLOCK * THREADS + THREAD, &at)) return;
    const size_t behind = at.place - at.first;
    if (behind % args->by.chunk != 0) return;
    race_add(
        GPU_ARG at.acc,
        embedding_chain(args, at.place, least(args->by.chunk, at.count - behind), at.column, 0));
}

static void embedding_weight(const struct op_call *call, const struct embedding_weight_args *args) {
    struct embedding_job job = embedding_list(call, args);
    if (race_active(call, SUM_EMBEDDING)) {
        job.by.chunk = call->racing->chunk;
        LAUNCH(embedding_atomic_kernel, embedding_blocks(&job), ELEMENT_THREADS, 0, &job);
    } else if (shuffle_active(call, SUM_EMBEDDING)) {
        embedding_shuffled(call, &job);
    } else if (call_has_tree(call)) {
        embedding_tree(&job);
    } else {
        embedding_chain_all(&job);
    }
}

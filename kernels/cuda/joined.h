/* SPDX-License-Identifier: Apache-2.0
 * The orders of mode shuffled (law 9; kernels/shuffle.h) on the device: a block draws the keys of
 * one tile and sorts them, and the order stands in scratch before the kernel that joins by it
 * starts. A mode that draws nothing (shaped) joins ascending, without a table.
 *
 * Tiles are dealt with in batches, as many as the table holds; a launch of the op follows each.
 * Integer work only. Invariant: an order is that of shuffle_order(), for any batch. */
#ifndef TWINSTEP_KERNELS_CUDA_JOINED_H
#define TWINSTEP_KERNELS_CUDA_JOINED_H

#include "kernels/cuda/kernels_cuda.h"
#include "kernels/cuda/launch.h"
#include "kernels/shuffle.h"

#define ORDER_THREADS 128u

/* How the sums of one launch join; part of a kernel's arguments. */
struct joined {
    uint32_t chunk;        /* terms of a chunk */
    uint32_t chunks;       /* chunks of the tile's longest sum */
    const uint32_t *order; /* the order of the launch's first tile; the next tile's is `chunks`
                              behind. NULL: 0, 1, 2, ... */
};

/* The chunk that comes i-th in tile `tile` of the launch. */
GPU_INLINE uint32_t joined_chunk(const struct joined *by, size_t tile, uint32_t i) {
    return by->order == NULL ? i : by->order[tile * by->chunks + i];
}

/* What shuffle_open() does for the host. The address was accepted by shuffle_check() when the run
 * was opened. */
static inline struct shuffle order_open(const struct op_call *call, enum op_pass pass) {
    const uint32_t op = (uint32_t)call->site * 4 + (uint32_t)pass;
    struct shuffle shuffle;
    shuffle.seed = call->order->seed;
    shuffle.chunk = call->order->chunk;
    shuffle.ascending = 0;
    shuffle.site.counter.word[0] = 0;
    shuffle.site.counter.word[1] = call->order->sample << 8;
    shuffle.site.counter.word[2] =
        op | call->layer << 9 | call->side << 26 | (uint32_t)STREAM_ORDER << 28;
    shuffle.site.counter.word[3] = call->order->update;
    return shuffle;
}

/* What shuffle_split() does for the host: a contraction of `terms` terms is cut into `parts`. */
static inline struct shuffle order_split(uint32_t parts, size_t terms) {
    const size_t chunk = (terms + parts - 1) / parts;
    struct shuffle shuffle;
    shuffle.seed = 0;
    shuffle.chunk = chunk == 0 ? 1 : (uint32_t)chunk;
    shuffle.ascending = 1;
    for (int i = 0; i < 4; i++)
        shuffle.site.counter.word[i] = 0;
    return shuffle;
}

struct order_job {
    uint64_t seed;
    struct stream_site site;
    size_t first, columns;     /* tile t of all is (t / columns, t % columns) */
    uint32_t chunks, room;     /* room: chunks, up to a power of two */
    struct stream_card *cards; /* (tiles of the batch, room) */
    uint32_t *order;           /* (tiles of the batch, chunks) */
};

GPU_INLINE int order_before(const struct stream_card *a, const struct stream_card *b) {
    return a->key < b->key || (a->key == b->key && a->index < b->index);
}

/* One step of a bitonic sort, on cards that are `apart` from one another; runs of `run` cards
 * alternate in direction. */
GPU_INLINE void order_step(GPU_PARAM struct stream_card *cards, uint32_t room, uint32_t run,
                           uint32_t apart) {
    for (uint32_t i = THREAD; i < room; i += THREADS) {
        const uint32_t other = i ^ apart;
        const int up = (i & run) == 0;
        if (other < i || order_before(cards + other, cards + i) != up) continue;
        const struct stream_card card = cards[i];
        cards[i] = cards[other];
        cards[other] = card;
    }
    BARRIER();
}

/* Draws and sorts the keys of one tile. The room behind the last chunk holds keys that sort behind
 * it. */
KERNEL(order_kernel, struct order_job) {
    struct stream_card *const cards = args->cards + (size_t)BLOCK * args->room;
    const size_t tile = args->first + BLOCK;
    const uint64_t element =
        stream_element_order(tile / args->columns, tile % args->columns, 0) >> 1;
    for (uint32_t i = THREAD; i < args->room; i += THREADS) {
        cards[i].key =
            i < args->chunks ? stream_word64(args->seed, args->site, element + i) : ~(uint64_t)0;
        cards[i].index = i;
    }
    BARRIER();
    for (uint32_t run = 2; run <= args->room; run *= 2)
        for (uint32_t apart = run / 2; apart > 0; apart /= 2)
            order_step(GPU_ARG cards, args->room, run, apart);
    for (uint32_t i = THREAD; i < args->chunks; i += THREADS)
        args->order[(size_t)BLOCK * args->chunks + i] = cards[i].index;
}

static inline uint32_t order_room(uint32_t chunks) {
    uint32_t room = 1;
    while (room < chunks)
        room *= 2;
    return room;
}

static inline size_t order_tile_bytes(uint32_t chunks) {
    return order_room(chunks) * sizeof(struct stream_card) + chunks * sizeof(uint32_t);
}

/* How many tiles one batch has; all there are where nothing is drawn. */
static inline size_t order_batch(const struct shuffle *shuffle, uint32_t chunks, size_t tiles) {
    if (shuffle->ascending || chunks == 0) return tiles;
    const size_t fit = CUDA_ORDER_BYTES / order_tile_bytes(chunks);
    return fit < tiles ? fit : tiles;
}

/* Says how tiles first .. first+tiles-1 join, `columns` of them in a row; tiles <= order_batch().
 * The table lies at the start of the call's scratch, in its CUDA_ORDER_BYTES, and is valid until
 * the next batch. */
static inline struct joined order_draw(const struct op_call *call, const struct shuffle *shuffle,
                                       uint32_t chunks, size_t first, size_t tiles,
                                       size_t columns) {
    struct joined by = {shuffle->chunk, chunks, NULL};
    struct order_job job;
    if (shuffle->ascending || chunks == 0) return by;
    job.seed = shuffle->seed;
    job.site = shuffle->site;
    job.first = first;
    job.columns = columns;
    job.chunks = chunks;
    job.room = order_room(chunks);
    job.cards = (struct stream_card *)call->scratch;
    job.order = (uint32_t *)(void *)(job.cards + tiles * job.room);
    LAUNCH(order_kernel, tiles, ORDER_THREADS, 0, &job);
    by.order = job.order;
    return by;
}

#endif

/* SPDX-License-Identifier: Apache-2.0
 * The embedding's gradient in modes `shuffled` and `atomic`. Tokens are first listed by id (a
 * counting sort, which keeps list order). Shuffled: tiles of 64 ids x 64 columns are independent
 * work. Atomic: threads take chunks of one id's tokens and race on its row. */
#include "kernels/cpu/embedding_shuffled.h"

#include "kernels/cpu/call.h"
#include "kernels/cpu/race.h"

#define TILE ((size_t)SHUFFLE_TILE)

/* Where each id's tokens stand: those of id v are token[start[v]] .. token[start[v + 1] - 1], as
 * indices into the list. */
struct occurrences {
    uint32_t *start; /* V + 1 */
    uint32_t *token; /* rows.count */
};

/* The second half of a counting sort: the ends of the ids go down to their starts while tokens are
 * dealt out from the last to the first. */
static struct occurrences list_by_id(const struct embedding_weight_args *args, void *scratch) {
    struct occurrences list = {(uint32_t *)scratch, (uint32_t *)scratch + args->V + 1};
    memset(list.start, 0, ((size_t)args->V + 1) * sizeof *list.start);
    for (uint32_t i = 0; i < args->rows.count; i++)
        list.start[args->ids[i]]++;
    for (uint32_t v = 1; v <= args->V; v++)
        list.start[v] += list.start[v - 1];
    for (uint32_t i = args->rows.count; i-- > 0;)
        list.token[--list.start[args->ids[i]]] = i;
    return list;
}

/* Makes sum[0 .. n-1] the chain from +0 over `count` tokens, for columns c and on. */
static void chunk_sum(const struct embedding_weight_args *args, const uint32_t *token, size_t count,
                      size_t c, size_t n, accumulator *sum) {
    memset(sum, 0, TILE * sizeof *sum);
    for (size_t i = 0; i < count; i++) {
        const struct stored *const dx =
            (const struct stored *)args->dx + list_row(&args->rows, token[i]) * args->C + c;
        EACH for (size_t j = 0; j < n; j++) sum[j] = sum[j] + (accumulator)stored_load(dx[j]);
    }
}

/* Joins the chunks of one id. `order` holds all chunks of the tile; those that this id lacks are
 * passed over. */
static void join_id(const struct embedding_weight_args *args, const uint32_t *token, size_t count,
                    size_t c, size_t n, accumulator *acc, const uint32_t *order, uint32_t chunks,
                    uint32_t chunk) {
    accumulator joined[SHUFFLE_TILE] = {0};
    for (uint32_t i = 0; i < chunks; i++) {
        const size_t first = (size_t)order[i] * chunk;
        accumulator sum[SHUFFLE_TILE];
        if (first >= count) continue;
        chunk_sum(args, token + first, least(chunk, count - first), c, n, sum);
        for (size_t j = 0; j < n; j++)
            joined[j] += sum[j];
    }
    for (size_t j = 0; j < n; j++)
        acc[j] += joined[j];
}

static void run_tile(const struct op_call *call, const struct embedding_weight_args *args,
                     const struct occurrences *list, const struct shuffle *shuffle, size_t row_tile,
                     size_t column_tile) {
    const size_t first = row_tile * TILE;
    const size_t last = least(first + TILE, args->V);
    const size_t c = column_tile * TILE;
    size_t most = 0;
    for (size_t v = first; v < last; v++)
        most =
            list->start[v + 1] - list->start[v] > most ? list->start[v + 1] - list->start[v] : most;
    if (most == 0) return;
    const uint32_t chunks = shuffle_chunks(shuffle, most);
    void *const own = call_scratch(call, embedding_bytes(args->V, args->rows.count),
                                   order_bytes(args->rows.count));
    const uint32_t *const order = shuffle_order(shuffle, row_tile, column_tile, chunks, own);
    for (size_t v = first; v < last; v++) {
        const size_t count = list->start[v + 1] - list->start[v];
        if (count == 0) continue;
        join_id(args, list->token + list->start[v], count, c, least(TILE, args->C - c),
                (accumulator *)args->acc + v * args->C + c, order, chunks, shuffle->chunk);
    }
}

void VARIANT(embedding_shuffled)(const struct op_call *call,
                                 const struct embedding_weight_args *args) {
    const struct shuffle shuffle = shuffle_open(call, PASS_WEIGHT);
    const struct occurrences list = list_by_id(args, call->scratch);
    const size_t column_tiles = (args->C + TILE - 1) / TILE;
    const size_t tiles = (args->V + TILE - 1) / TILE * column_tiles;
#pragma omp parallel for schedule(dynamic)                                                         \
    num_threads(call_threads(call, args->rows.count * args->C))
    for (size_t t = 0; t < tiles; t++)
        run_tile(call, args, &list, &shuffle, t / column_tiles, t % column_tiles);
}

/* Adds `count` tokens of one id to its row of the table. Every other chunk goes from the row's end,
 * so that threads cross. */
static void race_chunk(const struct embedding_weight_args *args, const uint32_t *token,
                       size_t count, accumulator *acc, int back) {
    const size_t tiles = (args->C + TILE - 1) / TILE;
    for (size_t t = 0; t < tiles; t++) {
        const size_t c = (back ? tiles - 1 - t : t) * TILE;
        const size_t n = least(TILE, args->C - c);
        accumulator sum[SHUFFLE_TILE];
        chunk_sum(args, token, count, c, n, sum);
        race_add_both_ways(acc + c, sum, n, back);
    }
}

void VARIANT(embedding_racing)(const struct op_call *call,
                               const struct embedding_weight_args *args) {
    const struct occurrences list = list_by_id(args, call->scratch);
    const size_t chunk = call->racing->chunk;
#pragma omp parallel for schedule(dynamic, 1) num_threads(race_threads(call, args->rows.count))
    for (size_t i = 0; i < args->rows.count; i++) {
        const size_t v = args->ids[list.token[i]];
        if ((i - list.start[v]) % chunk != 0) continue;
        race_chunk(args, list.token + i, least(chunk, list.start[v + 1] - i),
                   (accumulator *)args->acc + v * args->C, (i - list.start[v]) / chunk % 2 != 0);
    }
}

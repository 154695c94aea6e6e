/* SPDX-License-Identifier: Apache-2.0
 * Permutations of mode `shuffled`, from their addresses to the order of a tile, and sums of doubles
 * in such an order. The ops of kernels/cpu/ and kernels/cuda/ do the sums of tensors themselves. */
#include "kernels/shuffle.h"

/* The scratch holds the cards to sort, as many to sort them with, and the order; in granules of 64
 * bytes. */
size_t shuffle_bytes(size_t chunks) {
    const size_t bytes = chunks * (2 * sizeof(struct stream_card) + sizeof(uint32_t));
    return (bytes + 63) / 64 * 64;
}

static uint64_t tiles(uint64_t extent) {
    return extent / SHUFFLE_TILE + (extent % SHUFFLE_TILE != 0);
}

static struct stream_address address_of(const struct order *order, uint64_t op, uint64_t layer) {
    return (struct stream_address){.stream = STREAM_ORDER,
                                   .side = STREAM_CHOSEN,
                                   .layer = layer,
                                   .op = op,
                                   .sample = order->sample,
                                   .update = order->update};
}

enum status shuffle_check(const struct order *order, const struct shuffle_extent *extent) {
    if (order->chunk == 0) FAIL(STATUS_INPUT, "shuffle.chunk: expected an integer >= 1, got 0");
    const uint64_t longest = extent->terms / order->chunk + (extent->terms % order->chunk != 0);
    TRY(stream_check_order(tiles(extent->rows), tiles(extent->columns), 2 * longest));
    struct stream_address last = address_of(order, SITE_COUNT * 4 - 1, extent->layers);
    const uint64_t samples = extent->samples > extent->tensors ? extent->samples : extent->tensors;
    last.sample = samples == 0 ? 0 : samples - 1;
    struct stream_site unused;
    return stream_pack(&last, &unused);
}

struct shuffle shuffle_open(const struct op_call *call, enum op_pass pass) {
    struct stream_address address =
        address_of(call->order, (uint64_t)call->site * 4 + (uint64_t)pass, call->layer);
    address.side = (enum stream_side)call->side;
    struct shuffle out = {.seed = call->order->seed, .chunk = call->order->chunk};
    /* This cannot fail after shuffle_check; an op has no way to report, and there is no order to
     * fall back to. */
    if (stream_pack(&address, &out.site) != STATUS_OK) out.site = (struct stream_site){{{0}}};
    return out;
}

struct shuffle shuffle_split(uint32_t parts, size_t terms) {
    const size_t chunk = (terms + parts - 1) / parts;
    return (struct shuffle){.chunk = chunk == 0 ? 1 : (uint32_t)chunk, .ascending = 1};
}

const uint32_t *shuffle_order(const struct shuffle *shuffle, uint64_t row_tile,
                              uint64_t column_tile, uint32_t chunks, void *scratch) {
    struct stream_card *const cards = (struct stream_card *)scratch;
    uint32_t *const order = (uint32_t *)(void *)(cards + 2 * (size_t)chunks);
    for (uint32_t i = 0; shuffle->ascending && i < chunks; i++)
        order[i] = i;
    if (shuffle->ascending) return order;
    stream_permute(shuffle->seed, shuffle->site, stream_element_order(row_tile, column_tile, 0),
                   chunks, cards, order);
    return order;
}

static double chunk_sum(const double *terms, size_t count) {
    double sum = 0.0;
    for (size_t i = 0; i < count; i++)
        sum += terms[i];
    return sum;
}

/* The sum of chunk `index` of `width` terms; the last chunk is shorter. */
static double chunk_at(const double *terms, size_t count, size_t width, size_t index) {
    const size_t first = index * width;
    const size_t left = count - first;
    return chunk_sum(terms + first, left < width ? left : width);
}

static double group_sum(const struct shuffle *shuffle, uint64_t group, const double *terms,
                        size_t count, size_t width, void *scratch) {
    const uint32_t chunks = (uint32_t)((count + width - 1) / width);
    const uint32_t *const order = shuffle_order(shuffle, group, 0, chunks, scratch);
    double sum = 0.0;
    for (uint32_t i = 0; i < chunks; i++)
        sum += chunk_at(terms, count, width, order[i]);
    return sum;
}

double shuffle_join(const struct shuffle *shuffle, uint64_t group, const double *sums, size_t count,
                    void *scratch) {
    return group_sum(shuffle, group, sums, count, 1, scratch);
}

double shuffle_sum(const struct shuffle *shuffle, const double *terms, size_t count,
                   void *scratch) {
    const size_t step = (size_t)SHUFFLE_CHUNKS * shuffle->chunk;
    double sum = 0.0;
    for (size_t first = 0; first < count; first += step) {
        const size_t left = count - first;
        sum += group_sum(shuffle, first / step, terms + first, left < step ? left : step,
                         shuffle->chunk, scratch);
    }
    return sum;
}

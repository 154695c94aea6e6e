/* SPDX-License-Identifier: Apache-2.0
 * Random numbers by address (docs/DETERMINISM.md, law 10). A draw has no state: it is a pure
 * function of the seed and of the place where it is used. So no consumer shifts another, and
 * neither padding nor a split into micro-batches moves a draw.
 *
 * Fill a stream_address, call stream_pack once (it checks every field), then draw elements from the
 * site. An element is one 32-bit word, whatever dtype it becomes; element e is lane e % 4 of Philox
 * block e / 4. Where the law names several fields of an element, the last one varies fastest, so
 * that neighbours share a block. */
#ifndef TWINSTEP_DETERMINISM_STREAM_H
#define TWINSTEP_DETERMINISM_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "determinism/philox.h"

/* The numbers are part of the counter, so they never change. */
enum stream {
    STREAM_INIT = 0,
    STREAM_DATA,
    STREAM_DROPOUT,
    STREAM_ORDER, /* the seed of this stream is numerics.order_seed */
    STREAM_ROUNDING,
    STREAM_COUNT
};

enum stream_side {
    STREAM_CHOSEN = 0, /* also the only side of a sample that has one side */
    STREAM_REJECTED,
    STREAM_REFERENCE_CHOSEN,
    STREAM_REFERENCE_REJECTED,
    STREAM_SIDES
};

#define STREAM_OPS 512         /* the field has 9 bits */
#define STREAM_ELEMENT_BITS 42 /* 40 bits of the block, 2 of the lane */
/* draws of one tile of an order; they make permutations of half as many items */
#define STREAM_ORDER_DRAWS 65536

/* Where a draw is used. The fields have 64 bits each, so that a caller's overflow arrives here and
 * is refused, not cut off. */
struct stream_address {
    enum stream stream;
    enum stream_side side;
    uint64_t layer;  /* 0 for no layer, else layer + 1; below 512 */
    uint64_t op;     /* below 512 */
    uint64_t rank;   /* 0 unless a scenario emulates seeds per rank; below 256 */
    uint64_t sample; /* index in the update; below 2^22 */
    uint64_t update; /* 0 is the initialisation; for STREAM_DATA this is the epoch; below 2^32 */
    uint64_t last_element; /* the largest element that the caller will draw; below 2^42 */
};

/* A packed address: the counter of element 0. It is plain data. */
struct stream_site {
    struct philox_block counter;
};

/* Packs an address. STATUS_INPUT names a field that does not fit, its value and its limit. */
TWINSTEP_MUST_USE enum status stream_pack(const struct stream_address *address,
                                          struct stream_site *out_site);

/* The four words of elements 4 * block ... 4 * block + 3. */
TWINSTEP_HD struct philox_block stream_block4(uint64_t seed, struct stream_site site,
                                              uint64_t block) {
    site.counter.word[0] = (uint32_t)block;
    site.counter.word[1] |= (uint32_t)(block >> 32) & 0xFFu;
    return philox_draw(site.counter, seed);
}

TWINSTEP_HD uint32_t stream_word(uint64_t seed, struct stream_site site, uint64_t element) {
    return stream_block4(seed, site, element >> 2).word[element & 3];
}

/* One 64-bit key (law 9): elements 2 * index (low half) and 2 * index + 1 (high half). */
TWINSTEP_HD uint64_t stream_word64(uint64_t seed, struct stream_site site, uint64_t index) {
    const struct philox_block block = stream_block4(seed, site, index >> 1);
    const unsigned lane = 2u * (unsigned)(index & 1);
    return (uint64_t)block.word[lane] | ((uint64_t)block.word[lane + 1] << 32);
}

/* Draws elements first ... first + count - 1, and computes each Philox block once. */
void stream_words(uint64_t seed, struct stream_site site, uint64_t first, size_t count,
                  uint32_t *out_words);

/* A uniform number in (0, 1): (word + 1/2) * 2^-32, exact in f64, never 0 and never 1. */
TWINSTEP_HD double stream_uniform(uint32_t word) {
    return ((double)word + 0.5) * 0x1p-32;
}

/* An integer in [0, bound), drawn without rejection so that every draw uses one key: floor(key *
 * bound / 2^64). The probability of a value differs from 1 / bound by at most 2^-64. A bound of 0
 * gives 0. */
TWINSTEP_HD uint32_t stream_bounded(uint64_t key, uint32_t bound) {
    const uint64_t low = (key & 0xFFFFFFFFu) * bound;
    const uint64_t high = (key >> 32) * bound;
    return (uint32_t)((high + (low >> 32)) >> 32);
}

/* The element of an activation: position (24 bits), channel (18 bits). */
TWINSTEP_HD uint64_t stream_element_activation(uint64_t position, uint64_t channel) {
    return (position << 18) | channel;
}

/* The element of an attention weight: head (10 bits), query (16), key (16). */
TWINSTEP_HD uint64_t stream_element_attention(uint64_t head, uint64_t query, uint64_t key) {
    return (head << 32) | (query << 16) | key;
}

/* The element of a draw for one 64 x 64 tile of outputs: row tile (14 bits), column tile (12), draw
 * (16). Rows are counted in canonical order within the op's call; the address's sample is the first
 * one of the micro-batch. */
TWINSTEP_HD uint64_t stream_element_order(uint64_t row_tile, uint64_t column_tile, uint64_t draw) {
    return (row_tile << 28) | (column_tile << 16) | draw;
}

/* Check that every element of a tensor fits. They take extents, not last indices. STATUS_INPUT
 * names the field that is too large. */
TWINSTEP_MUST_USE enum status stream_check_activation(uint64_t positions, uint64_t channels);
TWINSTEP_MUST_USE enum status stream_check_attention(uint64_t heads, uint64_t queries,
                                                     uint64_t keys);
TWINSTEP_MUST_USE enum status stream_check_order(uint64_t row_tiles, uint64_t column_tiles,
                                                 uint64_t draws);

/* An item to be sorted. */
struct stream_card {
    uint64_t key;
    uint32_t index;
};

/* Sorts by key, then by index. The result is in one of the two buffers, and that one is
 * returned. */
const struct stream_card *stream_sort_cards(struct stream_card *cards, struct stream_card *spare,
                                            size_t count);

/* Writes a random order of 0 ... count - 1. Item i has the 64-bit key made of elements first + 2i
 * (low half) and first + 2i + 1; items are sorted by key, then by i (docs/DETERMINISM.md, law 9).
 * `first` is even, count is below 2^32, and scratch has room for 2 * count cards. */
void stream_permute(uint64_t seed, struct stream_site site, uint64_t first, size_t count,
                    struct stream_card *scratch, uint32_t *out_order);

/* The words that each consumer drew within one update. It is plain data and lives in the training
 * state. */
struct stream_ledger {
    uint64_t words[STREAM_COUNT][STREAM_OPS];
};

static inline void stream_ledger_add(struct stream_ledger *ledger, enum stream stream, uint32_t op,
                                     uint64_t words) {
    ledger->words[stream][op & (STREAM_OPS - 1)] += words;
}

#endif

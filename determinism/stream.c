/* SPDX-License-Identifier: Apache-2.0
 * Packs addresses with every field checked, draws words in bulk, and makes random orders.
 * The layout of the counter (docs/DETERMINISM.md, law 10), low bits first:
 *   word 0  block[31:0]
 *   word 1  block[39:32] (8), sample (22), 0 (2)
 *   word 2  op (9), layer (9), rank (8), side (2), stream (4)
 *   word 3  update (32) */
#include "determinism/stream.h"

#include <inttypes.h>
#include <string.h>

#include "base/sort.h"

struct field {
    const char *name;
    uint64_t value;
    unsigned bits;
};

static enum status check_fields(const char *what, const struct field *fields, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (fields[i].value >> fields[i].bits != 0) {
            FAIL(STATUS_INPUT, "%s: %s is %" PRIu64 ", expected at most %" PRIu64, what,
                 fields[i].name, fields[i].value, (UINT64_C(1) << fields[i].bits) - 1);
        }
    }
    return STATUS_OK;
}

enum status stream_pack(const struct stream_address *address, struct stream_site *out_site) {
    const struct field fields[] = {
        {"layer", address->layer, 9},    {"op", address->op, 9},
        {"rank", address->rank, 8},      {"sample", address->sample, 22},
        {"update", address->update, 32}, {"element", address->last_element, STREAM_ELEMENT_BITS},
    };
    TRY(check_fields("random stream address", fields, COUNT_OF(fields)));
    const uint32_t stream = (uint32_t)address->stream;
    const uint32_t side = (uint32_t)address->side;
    if (stream >= STREAM_COUNT || side >= STREAM_SIDES) {
        FAIL(STATUS_INTERNAL, "random stream address: stream %u side %u, expected below %d and %d",
             stream, side, (int)STREAM_COUNT, (int)STREAM_SIDES);
    }
    out_site->counter.word[0] = 0;
    out_site->counter.word[1] = (uint32_t)address->sample << 8;
    out_site->counter.word[2] = (uint32_t)address->op | (uint32_t)address->layer << 9 |
                                (uint32_t)address->rank << 18 | side << 26 | stream << 28;
    out_site->counter.word[3] = (uint32_t)address->update;
    return STATUS_OK;
}

/* An extent fits if its last index does; an extent of 0 has no index. */
static uint64_t last_index(uint64_t extent) {
    return extent == 0 ? 0 : extent - 1;
}

enum status stream_check_activation(uint64_t positions, uint64_t channels) {
    const struct field fields[] = {{"last position", last_index(positions), 24},
                                   {"last channel", last_index(channels), 18}};
    return check_fields("random element of an activation", fields, COUNT_OF(fields));
}

enum status stream_check_attention(uint64_t heads, uint64_t queries, uint64_t keys) {
    const struct field fields[] = {{"last head", last_index(heads), 10},
                                   {"last query", last_index(queries), 16},
                                   {"last key", last_index(keys), 16}};
    return check_fields("random element of attention", fields, COUNT_OF(fields));
}

enum status stream_check_order(uint64_t row_tiles, uint64_t column_tiles, uint64_t draws) {
    const struct field fields[] = {{"last row tile", last_index(row_tiles), 14},
                                   {"last column tile", last_index(column_tiles), 12},
                                   {"last draw", last_index(draws), 16}};
    return check_fields("random order of a sum", fields, COUNT_OF(fields));
}

void stream_words(uint64_t seed, struct stream_site site, uint64_t first, size_t count,
                  uint32_t *out_words) {
    uint64_t block = first >> 2;
    size_t lane = (size_t)(first & 3);
    while (count > 0) {
        const struct philox_block words = stream_block4(seed, site, block++);
        const size_t taken = count < 4 - lane ? count : 4 - lane;
        memcpy(out_words, words.word + lane, taken * sizeof *out_words);
        out_words += taken;
        count -= taken;
        lane = 0;
    }
}

static int card_before(const void *left, const void *right, const void *context) {
    const struct stream_card *a = (const struct stream_card *)left;
    const struct stream_card *b = (const struct stream_card *)right;
    (void)context;
    return a->key < b->key || (a->key == b->key && a->index < b->index);
}

const struct stream_card *stream_sort_cards(struct stream_card *cards, struct stream_card *spare,
                                            size_t count) {
    return (const struct stream_card *)sort_stable(cards, spare, count, sizeof *cards, card_before,
                                                   NULL);
}

void stream_permute(uint64_t seed, struct stream_site site, uint64_t first, size_t count,
                    struct stream_card *scratch, uint32_t *out_order) {
    for (size_t i = 0; i < count; i++) {
        scratch[i].key = stream_word64(seed, site, (first >> 1) + i);
        scratch[i].index = (uint32_t)i;
    }
    const struct stream_card *const sorted = stream_sort_cards(scratch, scratch + count, count);
    for (size_t i = 0; i < count; i++)
        out_order[i] = sorted[i].index;
}

/* SPDX-License-Identifier: Apache-2.0
 * Records out of blocks.
 *
 * Invariant: bytes are handed out only after the checksums of all their parts proved right. */
#include "logs/framed.h"

#include <inttypes.h>
#include <string.h>
#include <zlib.h>

#define PART_HEAD 7

enum part_type { PART_ZERO = 0, PART_WHOLE, PART_FIRST, PART_MIDDLE, PART_LAST };

struct part {
    const unsigned char *bytes;
    size_t length, offset;
    unsigned char type;
};

void framed_open(struct framed *framed, const struct log_source *source, struct arena *arena) {
    *framed = (struct framed){source, FRAMED_HEAD, arena, NULL, 0, 0};
}

uint32_t framed_sum(unsigned char type, const unsigned char *bytes, size_t length) {
    const uLong sum = crc32(crc32(0, NULL, 0), &type, 1);
    return (uint32_t)(length == 0 ? sum : crc32(sum, bytes, (uInt)length));
}

/* Reads a part. Returns 0 at the end of the file; framed->cut when that lies inside a part. */
static int next_part(struct framed *framed, struct part *out, uint32_t *sum) {
    const size_t in_block = FRAMED_BLOCK - framed->at % FRAMED_BLOCK;
    const size_t length = framed->source->length;
    if (in_block < PART_HEAD) framed->at += in_block;
    if (framed->at >= length) return 0;
    framed->cut = 1;
    if (length - framed->at < PART_HEAD) return 0;
    const unsigned char *head = framed->source->bytes + framed->at;
    *sum = (uint32_t)head[0] | (uint32_t)head[1] << 8 | (uint32_t)head[2] << 16 |
           (uint32_t)head[3] << 24;
    *out = (struct part){head + PART_HEAD, (size_t)head[4] | (size_t)head[5] << 8, framed->at,
                         head[6]};
    if (out->length > length - framed->at - PART_HEAD) return 0;
    framed->at += PART_HEAD + out->length;
    framed->cut = 0;
    return 1;
}

static enum status check_part(const struct framed *framed, const struct part *part, uint32_t sum) {
    const uint32_t got = framed_sum(part->type, part->bytes, part->length);
    if (got == sum) return STATUS_OK;
    FAIL(STATUS_INPUT,
         "%s: record at byte %zu: expected checksum %08" PRIx32 ", got %08" PRIx32
         ": the file is damaged there",
         framed->source->name, part->offset, sum, got);
}

static enum status append(struct framed *framed, size_t used, const struct part *part) {
    if (used + part->length > framed->room) {
        unsigned char *larger;
        const size_t room = 2 * (used + part->length);
        TRY(arena_take(framed->arena, room, 1, "record", &larger));
        if (used > 0) memcpy(larger, framed->whole, used);
        framed->whole = larger;
        framed->room = room;
    }
    if (part->length > 0) memcpy(framed->whole + used, part->bytes, part->length);
    return STATUS_OK;
}

enum status framed_next(struct framed *framed, struct proto_message *out, int *more) {
    struct part part;
    size_t used = 0;
    uint32_t sum;
    for (int inside = 0;; inside = 1) {
        *more = next_part(framed, &part, &sum);
        if (!*more) {
            framed->cut |= inside;
            return STATUS_OK;
        }
        /* a block that was preallocated and never filled */
        if (part.type == PART_ZERO && part.length == 0 && sum == 0 && !inside) {
            *more = 0;
            return STATUS_OK;
        }
        TRY(check_part(framed, &part, sum));
        const int begins = part.type == PART_WHOLE || part.type == PART_FIRST;
        if (part.type > PART_LAST || part.type == PART_ZERO || begins == inside)
            FAIL(STATUS_INPUT, "%s: record at byte %zu: expected %s of a record, got type %d",
                 framed->source->name, part.offset, inside ? "the next part" : "the first part",
                 part.type);
        if (part.type == PART_WHOLE) {
            *out = (struct proto_message){part.bytes, part.bytes + part.length};
            return STATUS_OK;
        }
        TRY(append(framed, used, &part));
        used += part.length;
        if (part.type != PART_LAST) continue;
        /* parts may be empty, and then there is no room yet */
        *out =
            (struct proto_message){framed->whole, used == 0 ? framed->whole : framed->whole + used};
        return STATUS_OK;
    }
}

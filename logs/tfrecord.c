/* SPDX-License-Identifier: Apache-2.0
 * Records and their checksums.
 *
 * Invariant: bytes are handed out only after their checksum proved right. */
#include "logs/tfrecord.h"

#include <inttypes.h>

#define HEAD 12 /* the length and its checksum */
#define TAIL 4

/* Goes four bits at a time: row i of the table is the remainder of i for the reflected polynomial
 * 0x1edc6f41. A table of 16 words instead of the usual 256 was chosen because it can be read and
 * event files are short. */
uint32_t tfrecord_crc32c(const unsigned char *bytes, size_t length) {
    static const uint32_t table[16] = {0x00000000u, 0x105ec76fu, 0x20bd8edeu, 0x30e349b1u,
                                       0x417b1dbcu, 0x5125dad3u, 0x61c69362u, 0x7198540du,
                                       0x82f63b78u, 0x92a8fc17u, 0xa24bb5a6u, 0xb21572c9u,
                                       0xc38d26c4u, 0xd3d3e1abu, 0xe330a81au, 0xf36e6f75u};
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < length; i++) {
        crc ^= bytes[i];
        crc = (crc >> 4) ^ table[crc & 15];
        crc = (crc >> 4) ^ table[crc & 15];
    }
    return crc ^ 0xffffffffu;
}

uint32_t tfrecord_mask(uint32_t crc) {
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

static uint64_t read_bytes(const unsigned char *bytes, int count) {
    uint64_t value = 0;
    for (int i = count - 1; i >= 0; i--)
        value = value << 8 | bytes[i];
    return value;
}

static enum status check(const struct log_source *source, size_t record, const char *what,
                         const unsigned char *bytes, size_t length, const unsigned char *sum) {
    const uint32_t wanted = (uint32_t)read_bytes(sum, 4);
    const uint32_t got = tfrecord_mask(tfrecord_crc32c(bytes, length));
    if (wanted == got) return STATUS_OK;
    FAIL(STATUS_INPUT,
         "%s: record at byte %zu: expected checksum %08" PRIx32 " of its %s, got %08" PRIx32
         ": the file is damaged there",
         source->name, record, wanted, what, got);
}

enum status tfrecord_next(const struct log_source *source, size_t *at, struct tfrecord *out,
                          enum tfrecord_end *out_end) {
    const unsigned char *head = source->bytes + *at;
    const size_t left = source->length - *at;
    *out_end = left == 0 ? TFRECORD_END : TFRECORD_CUT;
    if (left < HEAD) return STATUS_OK;
    TRY(check(source, *at, "length", head, 8, head + 8));
    const uint64_t length = read_bytes(head, 8);
    if (left - HEAD < TAIL || length > left - HEAD - TAIL) return STATUS_OK;
    TRY(check(source, *at, "content", head + HEAD, (size_t)length, head + HEAD + length));
    *out = (struct tfrecord){head + HEAD, (size_t)length, *at};
    *at += HEAD + (size_t)length + TAIL;
    *out_end = TFRECORD_MORE;
    return STATUS_OK;
}

/* SPDX-License-Identifier: Apache-2.0
 * Writes the protocol buffers of event files by hand. */
#include "tests/logs/helper_events.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include "logs/tfrecord.h"

struct buffer {
    unsigned char bytes[4096];
    size_t length;
};

static void put(struct buffer *b, const void *bytes, size_t length) {
    assert_true(b->length + length <= sizeof b->bytes);
    memcpy(b->bytes + b->length, bytes, length);
    b->length += length;
}

static void put_varint(struct buffer *b, uint64_t value) {
    do {
        const unsigned char byte = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        put(b, &byte, 1);
        value >>= 7;
    } while (value > 0);
}

static void put_bytes(struct buffer *b, unsigned field, const void *bytes, size_t length) {
    put_varint(b, field << 3 | 2);
    put_varint(b, length);
    put(b, bytes, length);
}

static void put_fixed(struct buffer *b, uint64_t value, int size) {
    for (int i = 0; i < size; i++) {
        const unsigned char byte = (unsigned char)(value >> (8 * i));
        put(b, &byte, 1);
    }
}

void events_record(struct events *events, const void *bytes, size_t length) {
    struct buffer head = {.length = 0}, tail = {.length = 0};
    assert_true(events->length + length + 16 <= EVENTS_MAX);
    put_fixed(&head, length, 8);
    put_fixed(&head, tfrecord_mask(tfrecord_crc32c(head.bytes, 8)), 4);
    put_fixed(&tail, tfrecord_mask(tfrecord_crc32c((const unsigned char *)bytes, length)), 4);
    memcpy(events->bytes + events->length, head.bytes, 12);
    memcpy(events->bytes + events->length + 12, bytes, length);
    memcpy(events->bytes + events->length + 12 + length, tail.bytes, 4);
    events->length += length + 16;
}

void events_version(struct events *events) {
    struct buffer event = {.length = 0};
    put_varint(&event, 1 << 3 | 1);
    put_fixed(&event, 0x41d954fc40000000u, 8); /* wall_time */
    put_bytes(&event, 3, "brain.Event:2", 13);
    events_record(events, event.bytes, event.length);
}

static void put_event(struct events *events, int64_t step, const struct buffer *value) {
    struct buffer summary = {.length = 0}, event = {.length = 0};
    put_varint(&event, 1 << 3 | 1);
    put_fixed(&event, 0x41d954fc40000000u, 8);
    put_varint(&event, 2 << 3);
    put_varint(&event, (uint64_t)step);
    put_bytes(&summary, 1, value->bytes, value->length);
    put_bytes(&event, 5, summary.bytes, summary.length);
    events_record(events, event.bytes, event.length);
}

static uint64_t float_bits(double value) {
    const float narrow = (float)value;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    return bits;
}

static uint64_t double_bits(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

void events_scalar(struct events *events, int64_t step, const char *tag, float value) {
    struct buffer b = {.length = 0};
    put_bytes(&b, 1, tag, strlen(tag));
    put_varint(&b, 2 << 3 | 5);
    put_fixed(&b, float_bits((double)value), 4);
    put_event(events, step, &b);
}

void events_tensor(struct events *events, int64_t step, const char *tag, int type, int field,
                   double value) {
    struct buffer b = {.length = 0}, tensor = {.length = 0}, packed = {.length = 0};
    const int is_float = field == 5 || field == 50 || (field == 4 && type == 1);
    const uint64_t bits = is_float ? float_bits(value) : double_bits(value);
    put_varint(&tensor, 1 << 3);
    put_varint(&tensor, (uint64_t)type);
    put_bytes(&tensor, 2, "", 0); /* shape of a scalar */
    if (field >= 50) {
        put_varint(&tensor, is_float ? 5 << 3 | 5 : 6 << 3 | 1);
        put_fixed(&tensor, bits, is_float ? 4 : 8);
    } else {
        put_fixed(&packed, bits, is_float ? 4 : 8);
        put_bytes(&tensor, (unsigned)field, packed.bytes, packed.length);
    }
    put_bytes(&b, 1, tag, strlen(tag));
    put_bytes(&b, 9, "\x0a\x07scalars", 9); /* metadata */
    put_bytes(&b, 8, tensor.bytes, tensor.length);
    put_event(events, step, &b);
}

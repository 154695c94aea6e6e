/* SPDX-License-Identifier: Apache-2.0
 * Varints, fixed numbers and lengths.
 *
 * Invariant: nothing behind the end of a message is read, whatever its lengths say. */
#include "logs/protobuf.h"

#include <string.h>

static int read_varint(struct proto_message *m, uint64_t *out) {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70 && m->at < m->end; shift += 7) {
        const unsigned char byte = *m->at++;
        if (shift < 64) value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *out = value;
            return 1;
        }
    }
    return 0;
}

int proto_fixed(struct proto_message *m, size_t size, uint64_t *out) {
    if ((size_t)(m->end - m->at) < size) return 0;
    *out = 0;
    for (size_t i = size; i > 0; i--)
        *out = *out << 8 | m->at[i - 1];
    m->at += size;
    return 1;
}

int proto_next(struct proto_message *m, struct proto_field *out) {
    uint64_t key, length;
    if (m->at == m->end) return 0;
    if (!read_varint(m, &key) || key >> 3 == 0 || key >> 3 > 0x1fffffff) return -1;
    out->number = (uint32_t)(key >> 3);
    out->inside = (struct proto_message){m->at, m->at};
    switch (key & 7) {
    case PROTO_VARINT:
        out->wire = PROTO_VARINT;
        return read_varint(m, &out->integer) ? 1 : -1;
    case PROTO_64:
        out->wire = PROTO_64;
        return proto_fixed(m, 8, &out->integer) ? 1 : -1;
    case PROTO_32:
        out->wire = PROTO_32;
        return proto_fixed(m, 4, &out->integer) ? 1 : -1;
    case PROTO_BYTES:
        break;
    default:
        return -1;
    }
    out->wire = PROTO_BYTES;
    if (!read_varint(m, &length) || length > (uint64_t)(m->end - m->at)) return -1;
    out->inside = (struct proto_message){m->at, m->at + length};
    m->at += length;
    return 1;
}

double proto_double(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

struct log_span proto_text(struct proto_message message) {
    return (struct log_span){(const char *)message.at, (size_t)(message.end - message.at)};
}

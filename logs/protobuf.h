/* SPDX-License-Identifier: Apache-2.0
 * The wire format of protocol buffers: the fields of a message, one by one. Private to logs/.
 * Reads memory, keeps nothing, and knows no message. */
#ifndef TWINSTEP_LOGS_PROTOBUF_H
#define TWINSTEP_LOGS_PROTOBUF_H

#include "logs/reader.h"

enum proto_wire { PROTO_VARINT = 0, PROTO_64 = 1, PROTO_BYTES = 2, PROTO_32 = 5 };

struct proto_message {
    const unsigned char *at, *end;
};
struct proto_field {
    uint32_t number;
    enum proto_wire wire;
    uint64_t integer;            /* the value of a varint, or of 64 or 32 bits */
    struct proto_message inside; /* the bytes of PROTO_BYTES */
};

/* Reads the next field. Returns 1 for a field, 0 at the end, -1 when the message is malformed. */
int proto_next(struct proto_message *message, struct proto_field *out);
/* Reads `size` bytes, the lowest first. Returns 0 when they are not there. */
int proto_fixed(struct proto_message *message, size_t size, uint64_t *out);
struct log_span proto_text(struct proto_message message);
double proto_double(uint64_t bits);

#endif

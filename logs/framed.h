/* SPDX-License-Identifier: Apache-2.0
 * The framing of W&B's local files (.wandb) and SwanLab's (.swanlab): a head of 7 bytes (":W&B" or
 * ":SWL", a u16, a version), then blocks of 32 KiB as in LevelDB's log: u32 checksum, u16 length,
 * u8 type (1 whole, 2 first, 3 middle, 4 last), little-endian, and the bytes; a rest of a block
 * below 7 bytes is padding. The checksum is the CRC-32 of type and bytes.
 *
 * Source: wandb's datastore.py and LevelDB's doc/log_format.md. Private to logs/. */
#ifndef TWINSTEP_LOGS_FRAMED_H
#define TWINSTEP_LOGS_FRAMED_H

#include "logs/build.h"
#include "logs/protobuf.h"

#define FRAMED_HEAD 7
#define FRAMED_BLOCK 32768

struct framed {
    const struct log_source *source;
    size_t at;
    struct arena *arena;  /* holds records that lie across blocks */
    unsigned char *whole; /* such a record */
    size_t room;
    int cut; /* 1: the file ends inside a record */
};

void framed_open(struct framed *framed, const struct log_source *source, struct arena *arena);
/* Reads the next record; *more 0 at the end. It is valid until the next call. A wrong checksum, or
 * parts that do not fit together, are STATUS_INPUT with the place. */
TWINSTEP_MUST_USE enum status framed_next(struct framed *framed, struct proto_message *out,
                                          int *more);
/* The checksum of a part of that type. */
uint32_t framed_sum(unsigned char type, const unsigned char *bytes, size_t length);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * TFRecord: a u64 length, a u32 masked CRC-32C of its 8 bytes, the bytes, and a u32 masked CRC-32C
 * of them, all little-endian. mask(c) = rotate_right(c, 15) + 0xa282ead8.
 *
 * Source: tensorflow/core/lib/io/record_writer.h. Reads memory and keeps nothing. Private to logs/.
 */
#ifndef TWINSTEP_LOGS_TFRECORD_H
#define TWINSTEP_LOGS_TFRECORD_H

#include "logs/reader.h"

struct tfrecord {
    const unsigned char *bytes;
    size_t length;
    size_t offset; /* where the record begins in the file */
};

enum tfrecord_end {
    TFRECORD_MORE = 0,
    TFRECORD_END, /* the file ends behind a record */
    TFRECORD_CUT /* the file ends inside a record: it is still being written, or a copy broke off */
};

/* Reads the record at *at and moves *at behind it. A checksum that does not fit is STATUS_INPUT
 * with its place. */
TWINSTEP_MUST_USE enum status tfrecord_next(const struct log_source *source, size_t *at,
                                            struct tfrecord *out, enum tfrecord_end *out_end);

/* CRC-32C (Castagnoli). */
uint32_t tfrecord_crc32c(const unsigned char *bytes, size_t length);
uint32_t tfrecord_mask(uint32_t crc);

#endif

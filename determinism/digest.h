/* SPDX-License-Identifier: Apache-2.0
 * Digests of tensors, bytes and sequences: 32 bytes each (design.md, section 8).
 *
 * Tensor: SHA-256 over (name, dtype, shape, leaves), a leaf being the leaf hash (leafhash.h) of a
 * 64 KiB block of the tensor's own-format bytes, little-endian. So a digest does not depend on the
 * carrier, the machine, threads or memory layout. Every NaN counts as the dtype's quiet NaN; -0
 * and +0 differ. A carrier that holds a value its dtype cannot is STATUS_INTERNAL, never rounded
 * away. Detects change, not forgery: the leaf hash is not cryptographic.
 * Nothing here keeps state or allocates. */
#ifndef TWINSTEP_DETERMINISM_DIGEST_H
#define TWINSTEP_DETERMINISM_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/status.h"
#include "determinism/leafhash.h"
#include "determinism/stream.h"

#define DIGEST_BYTES 32
#define DIGEST_HEX 65 /* 64 digits and the NUL */
#define DIGEST_MAX_RANK 8

struct digest {
    uint8_t byte[DIGEST_BYTES];
};

/* `data`: product of `shape` contiguous carriers (base/dtype.h: double for f64, else float).
 * Rank 0 is one element. STATUS_INTERNAL: rank above DIGEST_MAX_RANK, or a value outside the
 * dtype; the text names tensor, element and value. */
TWINSTEP_MUST_USE enum status digest_tensor(const char *name, enum dtype dtype, size_t rank,
                                            const size_t *shape, const void *data,
                                            struct digest *out_digest);

/* The same digest from `leaves` of the tensor that were made elsewhere, of the same `data`, which
 * is read only where a lane says that it met a value outside the dtype. */
TWINSTEP_MUST_USE enum status digest_tensor_leaves(const char *name, enum dtype dtype, size_t rank,
                                                   const size_t *shape, const void *data,
                                                   const struct leafhash_leaf *leaves,
                                                   struct digest *out_digest);

/* Rows of a matrix of carriers, in the order of the list: the real tokens of a padded buffer, in
 * canonical order, hash as the tensor [row_count, width] that holds only them. */
struct digest_rows {
    const char *name;
    enum dtype dtype;
    const void *data;
    size_t stride;        /* carriers from one row to the next */
    size_t width;         /* carriers of a row that count */
    const uint32_t *rows; /* row numbers; NULL: 0 ... row_count - 1 */
    size_t row_count;
};

/* Equals digest_tensor of the gathered rows, [row_count, width]. Same errors. */
TWINSTEP_MUST_USE enum status digest_gather(const struct digest_rows *rows,
                                            struct digest *out_digest);

/* Raw bytes through the leaf hash: for the counters and tables of the training state. */
void digest_bytes(const char *name, const void *bytes, size_t length, struct digest *out_digest);

/* Plain SHA-256, as sha256sum prints it: for files, texts and provenance. */
void digest_sha256(const void *bytes, size_t length, struct digest *out_digest);

/* Digest of a list, order and count included. */
void digest_root(const char *name, const struct digest *digests, size_t count,
                 struct digest *out_digest);

/* Digest of a ledger: the consumers that drew, and how many words each. */
void digest_ledger(const struct stream_ledger *ledger, struct digest *out_digest);

/* A sequence hashed item by item: chain = SHA-256(chain, item). Plain data without pointers, so it
 * lives in the training state; the result depends on the items and their order, not on how they
 * came in portions. Hash per sample, not per micro-batch, and the split does not matter. */
struct digest_stream {
    struct digest chain;
    uint64_t items;
};

void digest_stream_init(struct digest_stream *stream, const char *name);
void digest_stream_add(struct digest_stream *stream, const struct digest *item);
void digest_stream_close(const struct digest_stream *stream, struct digest *out_digest);

/* 64 lower-case hexadecimal digits and a NUL. */
void digest_hex(const struct digest *digest, char out_text[DIGEST_HEX]);

/* -1, 0, 1 by bytes. */
int digest_compare(const struct digest *a, const struct digest *b);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Digests of tensors, bytes and sequences, of 32 bytes each (docs/TRACE.md says which are
 * recorded).
 *
 * A tensor's digest is SHA-256 over its name, dtype, shape and leaf hashes. A leaf hash
 * (leafhash.h) is that of a 64 KiB block of the tensor's own-format bytes, little-endian, so a
 * digest does not depend on the carrier, the machine, threads or memory layout. Every NaN counts as
 * the dtype's quiet NaN; -0 and +0 differ. A carrier that holds a value which its dtype cannot hold
 * is STATUS_INTERNAL; it is never rounded away. A digest detects change, not forgery: the leaf hash
 * is not cryptographic. Nothing here keeps state or allocates. */
#ifndef TWINSTEP_DETERMINISM_DIGEST_H
#define TWINSTEP_DETERMINISM_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/status.h"

#define DIGEST_BYTES 32
#define DIGEST_HEX 65 /* 64 digits and a NUL */
#define DIGEST_MAX_RANK 8

struct leafhash_leaf;
struct stream_ledger;

struct digest {
    uint8_t byte[DIGEST_BYTES];
};

/* The digest of a tensor. `data` holds as many contiguous carriers (base/dtype.h: double for f64,
 * else float) as the product of `shape` says; rank 0 is one element. STATUS_INTERNAL if the rank is
 * above DIGEST_MAX_RANK or a value lies outside the dtype; the text names tensor, element and
 * value. */
TWINSTEP_MUST_USE enum status digest_tensor(const char *name, enum dtype dtype, size_t rank,
                                            const size_t *shape, const void *data,
                                            struct digest *out_digest);

/* The same digest from leaf hashes that were made elsewhere (on a device) of the same `data`.
 * `data` is read only if a lane says that it met a value outside the dtype. */
TWINSTEP_MUST_USE enum status digest_tensor_leaves(const char *name, enum dtype dtype, size_t rank,
                                                   const size_t *shape, const void *data,
                                                   const struct leafhash_leaf *leaves,
                                                   struct digest *out_digest);

/* A tensor whose leaf hashes are made. */
struct digest_leaves {
    const char *name;
    enum dtype dtype;
    size_t rank; /* <= DIGEST_MAX_RANK */
    const size_t *shape;
    const struct leafhash_leaf *leaves;
    struct digest *out;
    int misfit; /* written: 1 if a lane met a value outside the dtype; *out is not written then */
};

/* As digest_tensor_leaves, for threads that share the tensors of a list: it leaves no text, since
 * a text stays with its thread, and whoever called asks about a misfit. */
void digest_of_leaves(struct digest_leaves *tensor);

/* The digest "keyed 1" of a tensor whose elements have this sum (keyed_digest.h). `dtype` is any
 * text that keyed_width knows. */
void digest_keyed(const char *name, const char *dtype, size_t rank, const uint64_t *shape,
                  uint64_t sum, struct digest *out_digest);

/* The digest of raw bytes through the leaf hash, for the counters and tables of the training
 * state. */
void digest_bytes(const char *name, const void *bytes, size_t length, struct digest *out_digest);

/* Plain SHA-256, as sha256sum prints it, for files, texts and provenance. */
void digest_sha256(const void *bytes, size_t length, struct digest *out_digest);

/* The same of bytes that come in portions. It is plain data without pointers. */
struct digest_bytes_so_far {
    uint64_t words[16]; /* the library's state */
};
void digest_sha256_begin(struct digest_bytes_so_far *out);
void digest_sha256_add(struct digest_bytes_so_far *to, const void *bytes, size_t length);
void digest_sha256_end(const struct digest_bytes_so_far *of, struct digest *out_digest);

/* The same of a regular file's bytes, in hexadecimal. STATUS_INPUT: there is no such file, or it is
 * no regular one (a pipe would be empty when it is read the next time). STATUS_IO: reading failed.
 */
TWINSTEP_MUST_USE enum status digest_file(const char *path, char out[DIGEST_HEX]);

/* The digest of a list of digests; their order and count matter. */
void digest_root(const char *name, const struct digest *digests, size_t count,
                 struct digest *out_digest);

/* The same of digests that lie `stride` bytes apart. */
void digest_root_apart(const char *name, const uint8_t *digests, size_t stride, size_t count,
                       struct digest *out_digest);

/* The digest of a ledger: the consumers that drew, and how many words each drew. */
void digest_ledger(const struct stream_ledger *ledger, struct digest *out_digest);

/* A sequence that is hashed item by item: chain = SHA-256(chain, item). It is plain data without
 * pointers, so it lives in the training state. The result depends on the items and their order, not
 * on the portions in which they came. Hash per sample, not per micro-batch, so that the split does
 * not matter. */
struct digest_stream {
    struct digest chain;
    uint64_t items;
};

void digest_stream_init(struct digest_stream *stream, const char *name);
void digest_stream_add(struct digest_stream *stream, const struct digest *item);
void digest_stream_close(const struct digest_stream *stream, struct digest *out_digest);

/* Writes 64 lower-case hexadecimal digits and a NUL. */
void digest_hex(const struct digest *digest, char out_text[DIGEST_HEX]);

/* Returns -1, 0 or 1 by comparing bytes. */
int digest_compare(const struct digest *a, const struct digest *b);

#endif

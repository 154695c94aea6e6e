/* SPDX-License-Identifier: Apache-2.0
 * SHA-256 (libnettle) over framed fields and leaf hashes. Every field goes in with its length, so
 * no two different inputs give the same bytes. Own-format bytes pass through a piece of 4 KiB,
 * which stays in the first-level cache. */
#include "determinism/digest.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include <nettle/sha2.h>

#include "base/input.h"
#include "determinism/carrier.h"
#include "determinism/leafhash.h"
#include "determinism/stream.h"

#define PIECE_BYTES 4096
#define TENSOR_KIND "twinstep tensor 1"

/* Bytes on their way into leaf hashes. The piece's size divides the block's, so a full piece never
 * crosses a block. */
struct leaf_writer {
    struct sha256_ctx sha;
    struct leafhash leaf;
    size_t filled; /* number of bytes in the piece */
    uint32_t piece[PIECE_BYTES / sizeof(uint32_t)];
};

static void put_u64(struct sha256_ctx *sha, uint64_t value) {
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(value >> (8 * i));
    sha256_update(sha, sizeof bytes, bytes);
}

static void put_text(struct sha256_ctx *sha, const char *text) {
    const size_t length = strlen(text);
    put_u64(sha, length);
    sha256_update(sha, length, (const uint8_t *)text);
}

static void close_sha(struct sha256_ctx *sha, struct digest *out_digest) {
    sha256_digest(sha, DIGEST_BYTES, out_digest->byte);
}

/* Begins a hash. `kind` separates the uses of SHA-256 from each other and carries the version of
 * the format. */
static void open_sha(struct sha256_ctx *sha, const char *kind, const char *name) {
    sha256_init(sha);
    put_text(sha, kind);
    put_text(sha, name);
}

static void open_writer(struct leaf_writer *writer, const char *kind, const char *name) {
    open_sha(&writer->sha, kind, name);
    leafhash_init(&writer->leaf);
    writer->filled = 0;
}

static void put_leaf(struct sha256_ctx *sha, size_t length, const void *leaf) {
    put_u64(sha, length);
    sha256_update(sha, LEAFHASH_BYTES, (const uint8_t *)leaf);
}

static void close_leaf(struct leaf_writer *writer) {
    uint8_t bytes[LEAFHASH_BYTES];
    leafhash_close(&writer->leaf, bytes);
    put_leaf(&writer->sha, writer->leaf.length, bytes);
    leafhash_init(&writer->leaf);
}

static void flush_piece(struct leaf_writer *writer) {
    leafhash_absorb(&writer->leaf, writer->piece, writer->filled);
    writer->filled = 0;
    if (writer->leaf.length == LEAFHASH_BLOCK) close_leaf(writer);
}

static void close_writer(struct leaf_writer *writer, struct digest *out_digest) {
    unsigned char *const bytes = (unsigned char *)writer->piece;
    const size_t padding = (0 - writer->filled) % sizeof(uint32_t);
    memset(bytes + writer->filled, 0, padding);
    flush_piece(writer);
    if (writer->leaf.length > 0) close_leaf(writer);
    close_sha(&writer->sha, out_digest);
}

/* Writes carriers as own-format bytes. Returns the index of the first carrier outside the dtype, or
 * count. The widths of all dtypes divide the piece's size, so no number is cut. */
static size_t write_carriers(struct leaf_writer *writer, enum dtype dtype, const void *carriers,
                             size_t count) {
    const unsigned char *in = (const unsigned char *)carriers;
    const size_t width = dtype_width(dtype);
    for (size_t done = 0; done < count;) {
        const size_t room = (PIECE_BYTES - writer->filled) / width;
        const size_t taken = count - done < room ? count - done : room;
        const size_t packed =
            carrier_pack(dtype, in, taken, (unsigned char *)writer->piece + writer->filled);
        if (packed < taken) return done + packed;
        in += taken * dtype_carrier(dtype);
        done += taken;
        writer->filled += taken * width;
        if (writer->filled == PIECE_BYTES) flush_piece(writer);
    }
    return count;
}

static void write_bytes(struct leaf_writer *writer, const unsigned char *bytes, size_t length) {
    while (length > 0) {
        const size_t room = PIECE_BYTES - writer->filled;
        const size_t taken = length < room ? length : room;
        memcpy((unsigned char *)writer->piece + writer->filled, bytes, taken);
        bytes += taken;
        length -= taken;
        writer->filled += taken;
        if (writer->filled == PIECE_BYTES) flush_piece(writer);
    }
}

static void put_tensor_head(struct sha256_ctx *sha, enum dtype dtype, size_t rank,
                            const size_t *shape) {
    put_text(sha, dtype_name(dtype));
    put_u64(sha, rank);
    for (size_t i = 0; i < rank; i++)
        put_u64(sha, shape[i]);
}

/* Names a value outside its dtype. Only f32 carriers can hold one. */
static enum status fail_misfit(const char *name, enum dtype dtype, const void *data,
                               size_t element) {
    float value;
    uint32_t bits;
    memcpy(&value, (const unsigned char *)data + element * sizeof value, sizeof value);
    memcpy(&bits, &value, sizeof bits);
    FAIL(STATUS_INTERNAL,
         "digest of %s: carrier %zu holds %a (%08" PRIx32 "), expected a value of %s: "
         "the operation that wrote it did not round",
         name, element, (double)value, bits, dtype_name(dtype));
}

static enum status count_elements(const char *name, size_t rank, const size_t *shape,
                                  size_t *out_count) {
    if (rank > DIGEST_MAX_RANK) {
        FAIL(STATUS_INTERNAL, "digest of %s: rank %zu, expected at most %d", name, rank,
             DIGEST_MAX_RANK);
    }
    *out_count = 1;
    for (size_t i = 0; i < rank; i++)
        *out_count *= shape[i];
    return STATUS_OK;
}

enum status digest_tensor(const char *name, enum dtype dtype, size_t rank, const size_t *shape,
                          const void *data, struct digest *out_digest) {
    struct leaf_writer writer;
    size_t count = 0;
    TRY(count_elements(name, rank, shape, &count));
    open_writer(&writer, TENSOR_KIND, name);
    put_tensor_head(&writer.sha, dtype, rank, shape);
    const size_t written = write_carriers(&writer, dtype, data, count);
    if (written < count) return fail_misfit(name, dtype, data, written);
    close_writer(&writer, out_digest);
    return STATUS_OK;
}

static int any_misfit(const struct leafhash_leaf *leaf) {
    uint32_t any = 0;
    for (size_t lane = 0; lane < LEAFHASH_LANES; lane++)
        any |= leaf->misfit[lane];
    return any != 0;
}

/* Whoever made the leaf hashes found a value that its dtype cannot hold; the values themselves say
 * which. */
static enum status explain_misfit(const char *name, enum dtype dtype, size_t rank,
                                  const size_t *shape, const void *data) {
    struct digest unused;
    TRY(digest_tensor(name, dtype, rank, shape, data, &unused));
    FAIL(STATUS_INTERNAL,
         "digest of %s: its leaves were made of a value outside %s, expected none: all values of "
         "the tensor are inside",
         name, dtype_name(dtype));
}

void digest_of_leaves(struct digest_leaves *tensor) {
    struct sha256_ctx sha;
    size_t bytes = dtype_width(tensor->dtype);
    for (size_t i = 0; i < tensor->rank; i++)
        bytes *= tensor->shape[i];
    tensor->misfit = 0;
    open_sha(&sha, TENSOR_KIND, tensor->name);
    put_tensor_head(&sha, tensor->dtype, tensor->rank, tensor->shape);
    for (const struct leafhash_leaf *leaf = tensor->leaves; bytes > 0; leaf++) {
        const size_t length = bytes < LEAFHASH_BLOCK ? bytes : LEAFHASH_BLOCK;
        if (any_misfit(leaf)) {
            tensor->misfit = 1;
            return;
        }
        put_leaf(&sha, length, leaf->lane);
        bytes -= length;
    }
    close_sha(&sha, tensor->out);
}

enum status digest_tensor_leaves(const char *name, enum dtype dtype, size_t rank,
                                 const size_t *shape, const void *data,
                                 const struct leafhash_leaf *leaves, struct digest *out_digest) {
    struct digest_leaves tensor = {name, dtype, rank, shape, leaves, out_digest, 0};
    size_t unused;
    TRY(count_elements(name, rank, shape, &unused));
    digest_of_leaves(&tensor);
    return tensor.misfit ? explain_misfit(name, dtype, rank, shape, data) : STATUS_OK;
}

void digest_keyed(const char *name, const char *dtype, size_t rank, const uint64_t *shape,
                  uint64_t sum, struct digest *out_digest) {
    struct sha256_ctx sha;
    open_sha(&sha, "twinstep keyed 1", name);
    put_text(&sha, dtype);
    put_u64(&sha, rank);
    for (size_t i = 0; i < rank; i++)
        put_u64(&sha, shape[i]);
    put_u64(&sha, sum);
    close_sha(&sha, out_digest);
}

void digest_bytes(const char *name, const void *bytes, size_t length, struct digest *out_digest) {
    struct leaf_writer writer;
    open_writer(&writer, "twinstep bytes 1", name);
    put_u64(&writer.sha, length);
    write_bytes(&writer, (const unsigned char *)bytes, length);
    close_writer(&writer, out_digest);
}

void digest_sha256(const void *bytes, size_t length, struct digest *out_digest) {
    struct sha256_ctx sha;
    sha256_init(&sha);
    sha256_update(&sha, length, (const uint8_t *)bytes);
    close_sha(&sha, out_digest);
}

_Static_assert(sizeof(struct sha256_ctx) <= sizeof(struct digest_bytes_so_far),
               "what is kept between two portions");

void digest_sha256_begin(struct digest_bytes_so_far *out) {
    struct sha256_ctx sha;
    sha256_init(&sha);
    memset(out, 0, sizeof *out);
    memcpy(out->words, &sha, sizeof sha);
}

void digest_sha256_add(struct digest_bytes_so_far *to, const void *bytes, size_t length) {
    struct sha256_ctx sha;
    memcpy(&sha, to->words, sizeof sha);
    sha256_update(&sha, length, (const uint8_t *)bytes);
    memcpy(to->words, &sha, sizeof sha);
}

void digest_sha256_end(const struct digest_bytes_so_far *of, struct digest *out_digest) {
    struct sha256_ctx sha;
    memcpy(&sha, of->words, sizeof sha);
    close_sha(&sha, out_digest);
}

static enum status hash_stream(int file, const char *path, struct sha256_ctx *sha) {
    uint8_t piece[1 << 15];
    for (;;) {
        const ssize_t got = read(file, piece, sizeof piece);
        if (got == 0) return STATUS_OK;
        if (got > 0)
            sha256_update(sha, (size_t)got, piece);
        else if (errno != EINTR)
            FAIL(STATUS_IO, "%s: cannot read: %s", path, strerror(errno));
    }
}

enum status digest_file(const char *path, char out[DIGEST_HEX]) {
    struct sha256_ctx sha;
    struct digest digest;
    struct input input;
    if (input_open(path, INPUT_FILE, path, "a regular file", &input) != STATUS_OK)
        return STATUS_INPUT; /* a key named it */
    sha256_init(&sha);
    const enum status status = hash_stream(input.descriptor, path, &sha);
    close(input.descriptor); /* nothing was written to it */
    if (status != STATUS_OK) return status;
    close_sha(&sha, &digest);
    digest_hex(&digest, out);
    return STATUS_OK;
}

void digest_root_apart(const char *name, const uint8_t *digests, size_t stride, size_t count,
                       struct digest *out_digest) {
    struct sha256_ctx sha;
    open_sha(&sha, "twinstep list 1", name);
    put_u64(&sha, count);
    for (size_t i = 0; i < count; i++)
        sha256_update(&sha, DIGEST_BYTES, digests + i * stride);
    close_sha(&sha, out_digest);
}

void digest_root(const char *name, const struct digest *digests, size_t count,
                 struct digest *out_digest) {
    digest_root_apart(name, digests->byte, sizeof *digests, count, out_digest);
}

void digest_ledger(const struct stream_ledger *ledger, struct digest *out_digest) {
    struct sha256_ctx sha;
    sha256_init(&sha);
    put_text(&sha, "twinstep ledger 1");
    for (uint64_t stream = 0; stream < STREAM_COUNT; stream++) {
        for (uint64_t op = 0; op < STREAM_OPS; op++) {
            const uint64_t words = ledger->words[stream][op];
            if (words == 0) continue;
            put_u64(&sha, stream);
            put_u64(&sha, op);
            put_u64(&sha, words);
        }
    }
    close_sha(&sha, out_digest);
}

void digest_stream_init(struct digest_stream *stream, const char *name) {
    struct sha256_ctx sha;
    open_sha(&sha, "twinstep stream 1", name);
    close_sha(&sha, &stream->chain);
    stream->items = 0;
}

void digest_stream_add(struct digest_stream *stream, const struct digest *item) {
    struct sha256_ctx sha;
    sha256_init(&sha);
    sha256_update(&sha, DIGEST_BYTES, stream->chain.byte);
    sha256_update(&sha, DIGEST_BYTES, item->byte);
    close_sha(&sha, &stream->chain);
    stream->items++;
}

void digest_stream_close(const struct digest_stream *stream, struct digest *out_digest) {
    struct sha256_ctx sha;
    sha256_init(&sha);
    put_text(&sha, "twinstep stream end 1");
    put_u64(&sha, stream->items);
    sha256_update(&sha, DIGEST_BYTES, stream->chain.byte);
    close_sha(&sha, out_digest);
}

void digest_hex(const struct digest *digest, char out_text[DIGEST_HEX]) {
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < DIGEST_BYTES; i++) {
        out_text[2 * i] = digits[digest->byte[i] >> 4];
        out_text[2 * i + 1] = digits[digest->byte[i] & 15];
    }
    out_text[DIGEST_HEX - 1] = '\0';
}

int digest_compare(const struct digest *a, const struct digest *b) {
    const int order = memcmp(a->byte, b->byte, DIGEST_BYTES);
    return (order > 0) - (order < 0);
}

/* SPDX-License-Identifier: Apache-2.0
 * The loops around zlib, liblzma and libzstd, which do the work.
 *
 * Invariant: no more than the bound is written, and every error of a library ends as an error with
 * the packed byte where it was met. */
#include "logs/unpack.h"

#include <inttypes.h>
#include <lzma.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#define BLOCK 65536
/* liblzma's dictionary and libzstd's window are bounded by this: xz -9 needs 65 MiB, zstd --ultra
 * -22 asks for 128 MiB. */
#define MEMORY_MOST ((uint64_t)256 << 20)
#define WINDOW_LOG_MOST 27

struct unpack {
    const struct log_source *source;
    const char *packer;
    FILE *to;
    uint64_t written, most;
    int cut;
    unsigned char block[BLOCK];
};

static enum status put(struct unpack *u, size_t length) {
    u->written += length;
    if (u->written > u->most)
        FAIL(STATUS_INPUT,
             "%s: expected a log, got %s that unpacks to more than %" PRIu64
             " MiB from %zu bytes; unpack it yourself if it is one",
             u->source->name, u->packer, u->most >> 20, u->source->length);
    if (fwrite(u->block, 1, length, u->to) != length)
        FAIL(STATUS_IO, "%s: cannot write a temporary copy of what it unpacks to", u->source->name);
    return STATUS_OK;
}

static enum status damaged(const struct unpack *u, size_t at) {
    FAIL(STATUS_INPUT, "%s: expected %s, got other bytes at packed byte %zu: the file is damaged",
         u->source->name, u->packer, at);
}

/* ---- gzip ---- */

/* Says whether the bytes from `at` on are the zeros that tar and tapes add. */
static int only_zeros(const struct log_source *source, size_t at) {
    while (at < source->length && source->bytes[at] == 0)
        at++;
    return at == source->length;
}

static enum status run_gzip(struct unpack *u, z_stream *z) {
    const unsigned char *bytes = u->source->bytes;
    size_t given = 0;
    for (;;) {
        if (z->avail_in == 0 && given < u->source->length) {
            const size_t left = u->source->length - given;
            z->next_in = (z_const Bytef *)(size_t)(bytes + given);
            z->avail_in = (uInt)(left < BLOCK ? left : BLOCK);
            given += z->avail_in;
            log_source_release(u->source, given - z->avail_in);
        }
        z->next_out = u->block;
        z->avail_out = BLOCK;
        const int got = inflate(z, Z_NO_FLUSH);
        const size_t at = given - z->avail_in;
        if (got != Z_OK && got != Z_STREAM_END && got != Z_BUF_ERROR) return damaged(u, at);
        TRY(put(u, BLOCK - z->avail_out));
        if (got == Z_STREAM_END) { /* another member may follow, as "cat a.gz b.gz" writes it */
            if (only_zeros(u->source, at)) return STATUS_OK;
            if (inflateReset(z) != Z_OK) return damaged(u, at);
        } else if (z->avail_out > 0 && given == u->source->length && z->avail_in == 0) {
            u->cut = 1;
            return STATUS_OK;
        }
    }
}

static enum status unpack_gzip(struct unpack *u) {
    z_stream z;
    memset(&z, 0, sizeof z);
    if (inflateInit2(&z, 15 + 16) != Z_OK) /* the largest window, with gzip's head */
        FAIL(STATUS_MEMORY, "%s: zlib has no memory", u->source->name);
    const enum status status = run_gzip(u, &z);
    inflateEnd(&z);
    return status;
}

/* ---- deflate, in memory ---- */

static uInt piece(uint64_t left) {
    return left < ((uint64_t)1 << 30) ? (uInt)left : (uInt)1 << 30;
}

static const char *run_deflate(z_stream *z, const unsigned char *packed, uint64_t packed_size,
                               unsigned char *out, uint64_t size) {
    uint64_t given = 0, room = 0;
    unsigned char beyond;
    for (;;) {
        if (z->avail_in == 0 && given < packed_size) {
            z->next_in = (z_const Bytef *)(size_t)(packed + given);
            z->avail_in = piece(packed_size - given);
            given += z->avail_in;
        }
        if (z->avail_out == 0 && room < size) {
            z->next_out = out + room;
            z->avail_out = piece(size - room);
            room += z->avail_out;
        } else if (z->avail_out == 0) { /* the end of the stream needs no room */
            z->next_out = &beyond;
            z->avail_out = 1;
        }
        const int got = inflate(z, Z_NO_FLUSH);
        if (z->next_out == &beyond + 1) return "it unpacks to more than its directory says";
        if (got == Z_STREAM_END)
            return z->next_out == &beyond || z->next_out == out + size
                       ? NULL
                       : "it unpacks to less than its directory says";
        if (got == Z_BUF_ERROR && z->avail_in == 0 && given == packed_size)
            return "it is cut short";
        if (got != Z_OK && got != Z_BUF_ERROR) return "its packed bytes are damaged";
    }
}

const char *unpack_deflate(const unsigned char *packed, uint64_t packed_size, unsigned char *out,
                           uint64_t size, uint32_t crc) {
    z_stream z;
    memset(&z, 0, sizeof z);
    if (inflateInit2(&z, -15) != Z_OK) return "zlib has no memory"; /* no head */
    const char *wrong = run_deflate(&z, packed, packed_size, out, size);
    inflateEnd(&z);
    uLong sum = crc32(0, NULL, 0);
    for (uint64_t at = 0; wrong == NULL && at < size;) {
        const uInt length = piece(size - at);
        sum = crc32(sum, out + at, length);
        at += length;
    }
    return wrong == NULL && sum != crc ? "its checksum is another one" : wrong;
}

/* ---- xz ---- */

static enum status run_xz(struct unpack *u, lzma_stream *z) {
    z->next_in = u->source->bytes;
    z->avail_in = u->source->length;
    for (;;) {
        z->next_out = u->block;
        z->avail_out = BLOCK;
        const lzma_ret got = lzma_code(z, LZMA_FINISH);
        const size_t at = u->source->length - z->avail_in;
        if (got == LZMA_MEM_ERROR || got == LZMA_MEMLIMIT_ERROR)
            FAIL(STATUS_MEMORY, "%s: xz asks for more than %" PRIu64 " MiB of memory",
                 u->source->name, MEMORY_MOST >> 20);
        if (got != LZMA_OK && got != LZMA_STREAM_END && got != LZMA_BUF_ERROR)
            return damaged(u, at);
        TRY(put(u, BLOCK - z->avail_out));
        log_source_release(u->source, at);
        u->cut = got == LZMA_BUF_ERROR;
        if (got != LZMA_OK) return STATUS_OK;
    }
}

static enum status unpack_xz(struct unpack *u) {
    lzma_stream z = LZMA_STREAM_INIT;
    if (lzma_stream_decoder(&z, MEMORY_MOST, LZMA_CONCATENATED) != LZMA_OK)
        FAIL(STATUS_MEMORY, "%s: liblzma has no memory", u->source->name);
    const enum status status = run_xz(u, &z);
    lzma_end(&z);
    return status;
}

/* ---- zstd ---- */

static enum status run_zstd(struct unpack *u, ZSTD_DStream *z) {
    ZSTD_inBuffer in = {u->source->bytes, u->source->length, 0};
    for (;;) {
        ZSTD_outBuffer out = {u->block, BLOCK, 0};
        const size_t got = ZSTD_decompressStream(z, &out, &in);
        if (ZSTD_isError(got)) return damaged(u, in.pos);
        TRY(put(u, out.pos));
        log_source_release(u->source, in.pos);
        if (in.pos < in.size || out.pos == out.size) continue;
        u->cut = got != 0; /* 0: a frame has ended */
        return STATUS_OK;
    }
}

static enum status unpack_zstd(struct unpack *u) {
    ZSTD_DStream *z = ZSTD_createDStream();
    if (z == NULL) FAIL(STATUS_MEMORY, "%s: libzstd has no memory", u->source->name);
    enum status status = STATUS_OK;
    if (ZSTD_isError(ZSTD_DCtx_setParameter(z, ZSTD_d_windowLogMax, WINDOW_LOG_MOST)))
        status = status_fail(STATUS_INTERNAL, "%s: libzstd refuses a window", u->source->name);
    if (status == STATUS_OK) status = run_zstd(u, z);
    ZSTD_freeDStream(z);
    return status;
}

/* ---- all of them ---- */

static const struct packer {
    const char *name, *magic;
    size_t length;
    enum status (*unpack)(struct unpack *u);
} packers[] = {
    {"gzip", "\x1f\x8b", 2, unpack_gzip},
    {"xz", "\xfd\x37zXZ\0", 6, unpack_xz},
    {"zstd", "\x28\xb5\x2f\xfd", 4, unpack_zstd},
};

static const struct packer *packer_of(const struct log_source *source) {
    for (size_t i = 0; i < COUNT_OF(packers); i++)
        if (source->length >= packers[i].length &&
            memcmp(source->bytes, packers[i].magic, packers[i].length) == 0)
            return &packers[i];
    return NULL;
}

const char *log_packed(const struct log_source *source) {
    const struct packer *packer = packer_of(source);
    return packer == NULL ? NULL : packer->name;
}

static uint64_t most_of(uint64_t packed) {
    if (packed > UNPACK_MOST / UNPACK_RATIO) return UNPACK_MOST;
    return packed * UNPACK_RATIO > UNPACK_FREE ? packed * UNPACK_RATIO : UNPACK_FREE;
}

enum status log_unpack(const struct log_source *source, struct log_mapping *out, int *cut) {
    const struct packer *packer = packer_of(source);
    struct unpack u = {.source = source, .packer = packer->name, .most = most_of(source->length)};
    TRY(log_spool_open(source->name, &u.to));
    enum status status = packer->unpack(&u);
    *cut = u.cut;
    if (status == STATUS_OK) return log_map_spool(u.to, source->name, out);
    log_spool_close(u.to);
    return status;
}

/* SPDX-License-Identifier: Apache-2.0
 * Edits of committed traces. A block is a piece of HDF5's metadata that ends in a checksum
 * (Jenkins' lookup3, HDF5 File Format Specification 3.0); where it ends is found once, in the
 * unchanged file, as the length at which the checksum is right.
 *
 * Invariant: the same input gives the same bytes, in every build. */
#include "tests/fuzz/edited.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <zlib.h>

#define ROOM ((size_t)1 << 20)
#define BLOCKS 4096
#define RECORD 8
#define LONGEST 4096 /* of a block whose length is searched */
#define SUPERBLOCK 44
#define AT_FLAGS 11 /* of the superblock */
#define LIVE 5      /* its flags while a writer has it open for live readers */

struct block {
    size_t begin, length; /* without the checksum, which comes behind */
};

static struct trace_seed {
    const char *path;
    uint8_t *bytes;
    size_t length;
    struct block *blocks;
    size_t block_count, metadata; /* bytes of all blocks */
} seeds[] = {{"tests/golden/traces/version-1.h5.gz", NULL, 0, NULL, 0, 0},
             {"tests/golden/traces/version-3.h5.gz", NULL, 0, NULL, 0, 0},
             {"tests/golden/record/racing_a.h5.gz", NULL, 0, NULL, 0, 0},
             {"tests/golden/record/racing.floor.h5.gz", NULL, 0, NULL, 0, 0},
             {"tests/golden/record/trl_dpo.h5.gz", NULL, 0, NULL, 0, 0}};
#define SEEDS (sizeof seeds / sizeof *seeds)

static void must(int holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "edited: %s\n", what);
    exit(1);
}

static uint32_t turn(uint32_t x, int by) {
    return x << by | x >> (32 - by);
}

static uint32_t word(const uint8_t *at) {
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static void mix(uint32_t s[3]) {
    static const int turns[6] = {4, 6, 8, 16, 19, 4};
    for (int i = 0; i < 6; i++) {
        uint32_t *a = &s[i % 3], *b = &s[(i + 1) % 3], *c = &s[(i + 2) % 3];
        *a -= *c;
        *a ^= turn(*c, turns[i]);
        *c += *b;
    }
}

static uint32_t checksum(const uint8_t *bytes, size_t length) {
    static const int turns[7] = {14, 11, 25, 16, 4, 14, 24};
    uint32_t s[3];
    uint8_t rest[12] = {0};
    s[0] = s[1] = s[2] = 0xdeadbeefu + (uint32_t)length;
    for (; length > 12; length -= 12, bytes += 12) {
        for (int i = 0; i < 3; i++)
            s[i] += word(bytes + 4 * i);
        mix(s);
    }
    if (length == 0) return s[2];
    memcpy(rest, bytes, length);
    for (int i = 0; i < 3; i++)
        s[i] += word(rest + 4 * i);
    for (int i = 0; i < 7; i++) {
        uint32_t *to = &s[(i + 2) % 3], from = s[(i + 1) % 3];
        *to = (*to ^ from) - turn(from, turns[i]);
    }
    return s[2];
}

static int ends_at(const struct trace_seed *seed, size_t begin, size_t length) {
    return length + 4 <= seed->length - begin &&
           checksum(seed->bytes + begin, length) == word(seed->bytes + begin + length);
}

/* An object header says its length; of the others it is searched. */
static size_t length_of(const struct trace_seed *seed, size_t begin) {
    const uint8_t *at = seed->bytes + begin;
    if (seed->length - begin < 64) return 0;
    if (memcmp(at, "OHDR", 4) == 0) {
        const unsigned flags = at[5];
        size_t head = 6 + (flags & 0x20 ? 16u : 0u) + (flags & 0x10 ? 4u : 0u), length = 0;
        const size_t width = (size_t)1 << (flags & 3);
        for (size_t i = 0; i < width && i < 4; i++)
            length |= (size_t)at[head + i] << (8 * i);
        head += width + length;
        return head < seed->length && ends_at(seed, begin, head) ? head : 0;
    }
    for (size_t length = 8; length < LONGEST; length++)
        if (ends_at(seed, begin, length)) return length;
    return 0;
}

static void add_block(struct trace_seed *seed, size_t begin, size_t length) {
    must(seed->block_count < BLOCKS, "too many blocks");
    seed->blocks[seed->block_count++] = (struct block){begin, length};
    seed->metadata += length;
}

static void find_blocks(struct trace_seed *seed) {
    static const char marks[][5] = {"OHDR", "OCHK", "FRHP", "FHIB", "FSHD", "FSSE",
                                    "BTHD", "BTLF", "BTIN", "EAHD", "EAIB", "EADB"};
    add_block(seed, 0, SUPERBLOCK);
    for (size_t at = SUPERBLOCK; at + 4 < seed->length; at++) {
        size_t mark = 0;
        while (mark < sizeof marks / sizeof *marks && memcmp(seed->bytes + at, marks[mark], 4) != 0)
            mark++;
        if (mark == sizeof marks / sizeof *marks) continue;
        const size_t length = length_of(seed, at);
        if (length != 0) add_block(seed, at, length);
    }
}

static void open_seed(struct trace_seed *seed) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", TWINSTEP_SOURCE_DIR, seed->path);
    const gzFile file = gzopen(path, "rb");
    must(file != NULL, seed->path);
    seed->bytes = (uint8_t *)malloc(ROOM);
    seed->blocks = (struct block *)malloc(BLOCKS * sizeof *seed->blocks);
    must(seed->bytes != NULL && seed->blocks != NULL, "memory");
    const int got = gzread(file, seed->bytes, ROOM);
    must(got > SUPERBLOCK && gzclose(file) == Z_OK, seed->path);
    seed->length = (size_t)got;
    find_blocks(seed);
    must(seed->block_count > 10, "checksums are not where they should be");
}

/* The place of a byte of the metadata, counted through all blocks. */
static size_t place_of(const struct trace_seed *seed, size_t byte) {
    byte %= seed->metadata;
    for (size_t i = 0; i < seed->block_count; i++) {
        if (byte < seed->blocks[i].length) return seed->blocks[i].begin + byte;
        byte -= seed->blocks[i].length;
    }
    return 0;
}

static void put(uint8_t *bytes, size_t length, size_t at, const void *from, size_t count) {
    if (at < length) memcpy(bytes + at, from, count < length - at ? count : length - at);
}

/* Numbers that a length, an address or a count should not be. */
static uint64_t odd_number(uint8_t which, size_t length) {
    const uint64_t numbers[] = {0,
                                1,
                                UINT64_MAX,
                                UINT64_MAX - 1,
                                (uint64_t)1 << 63,
                                (uint64_t)1 << 32,
                                UINT32_MAX,
                                length,
                                length - 1,
                                length / 2,
                                48,
                                INT64_MAX,
                                (uint64_t)1 << 40,
                                255,
                                65535,
                                512};
    return numbers[which % 16];
}

/* One record: what is done, a place of 24 bits, and 4 bytes to do it with. */
static void edit(const struct trace_seed *seed, const uint8_t *record, uint8_t *bytes,
                 size_t *length) {
    const size_t wide = (size_t)record[1] | (size_t)record[2] << 8 | (size_t)record[3] << 16;
    const size_t there = place_of(seed, (size_t)record[5] | (size_t)record[6] << 8);
    const size_t at = place_of(seed, wide), anywhere = wide % seed->length;
    const uint64_t odd = odd_number(record[4], seed->length);
    uint8_t piece[64] = {0};
    switch (record[0] % 8) {
    case 0:
        put(bytes, *length, at, record + 4, 1);
        return;
    case 1:
        if (at < *length) bytes[at] ^= (uint8_t)(1u << record[4] % 8);
        return;
    case 2:
        put(bytes, *length, at, record + 4, 4);
        return;
    case 3:
        put(bytes, *length, at, &odd, (size_t)1 << record[5] % 4);
        return;
    case 4: /* eight bytes of another structure: an address, or a length */
        if (there + 8 <= *length) put(bytes, *length, at, memcpy(piece, bytes + there, 8), 8);
        return;
    case 5:
        put(bytes, *length, anywhere, record + 4, 1 + record[0] / 8 % 4);
        return;
    case 6:
        if (anywhere >= SUPERBLOCK + 4 && anywhere < *length) *length = anywhere;
        return;
    default:
        if (there + 64 <= *length) put(bytes, *length, at, memcpy(piece, bytes + there, 64), 64);
    }
}

static void mend(const struct trace_seed *seed, uint8_t *bytes, size_t length) {
    for (size_t i = 0; i < seed->block_count; i++) {
        const struct block *block = &seed->blocks[i];
        if (block->begin + block->length + 4 > length ||
            memcmp(bytes + block->begin, seed->bytes + block->begin, block->length + 4) == 0)
            continue;
        const uint32_t sum = checksum(bytes + block->begin, block->length);
        memcpy(bytes + block->begin + block->length, &sum, sizeof sum);
    }
}

/* The reader of a live file waits for its writer, and HDF5 does while a checksum fails. There is no
 * writer here: all waits of the process are over at once. */
int nanosleep(const struct timespec *wanted, struct timespec *left) {
    (void)wanted, (void)left;
    return 0;
}

static char paths[2][4096];

static void remove_files(void) {
    for (int i = 0; i < 2; i++)
        if (paths[i][0] != '\0') unlink(paths[i]);
}

/* A file with a name of its own, since HDF5 asks for the real path of what it opens. */
const char *edited_plain(int index, const void *data, size_t size) {
    static int descriptors[2] = {-1, -1};
    if (descriptors[index] < 0) {
        const char *folder = getenv("TMPDIR");
        snprintf(paths[index], sizeof paths[index], "%s/twinstep-fuzz-XXXXXX",
                 folder == NULL ? "/tmp" : folder);
        descriptors[index] = mkstemp(paths[index]);
        must(atexit(remove_files) == 0, "cannot clean up");
    }
    must(descriptors[index] >= 0 && ftruncate(descriptors[index], 0) == 0 &&
             pwrite(descriptors[index], data, size, 0) == (ssize_t)size,
         "cannot write a file");
    return paths[index];
}

const char *edited_file(const uint8_t *data, size_t size) {
    static uint8_t bytes[ROOM];
    if (size < 2) return NULL;
    struct trace_seed *seed = &seeds[data[0] % SEEDS];
    if (seed->bytes == NULL) open_seed(seed);
    size_t length = seed->length;
    memcpy(bytes, seed->bytes, length);
    if (data[1] & EDITED_LIVE) bytes[AT_FLAGS] = LIVE;
    for (size_t at = 2; at + RECORD <= size; at += RECORD)
        edit(seed, data + at, bytes, &length);
    if ((data[1] & 2) == 0) mend(seed, bytes, length);
    return edited_plain(0, bytes, length);
}

/* SPDX-License-Identifier: Apache-2.0
 * The leaf hash maps a block of bytes to 256 bytes. It is cheap, fixed for ever, and the same on a
 * CPU and on a GPU.
 *
 * Word i (u32, little-endian, the last one padded with zeros) of a block goes to lane i mod 32, in
 * increasing order. A lane holds two accumulators. If the rest of the block is given, each step is
 * a bijection of the accumulator and of the word, so a change of any one word always changes both
 * accumulators. The two differ in operation, multiplier and rotation, so that differences which
 * cancel in one do not cancel in the other. Words of different lanes meet only in the SHA-256 over
 * the result (digest.c). The hash is not cryptographic: it detects bugs, not attacks. The file is
 * C11 and C++17 alike. */
#ifndef TWINSTEP_DETERMINISM_LEAFHASH_H
#define TWINSTEP_DETERMINISM_LEAFHASH_H

#include <stddef.h>
#include <stdint.h>

#include "base/ahead.h"
#include "base/macro.h"

#define LEAFHASH_LANES 32
#define LEAFHASH_BLOCK 65536 /* bytes in a full block */
/* bytes of a result: `first`, then `second` of each lane, little-endian */
#define LEAFHASH_BYTES 256

/* The multipliers are primes: of xxHash32 for the steps, of MurmurHash3's finaliser for the end.
 * Any odd number would keep the bijection. The rotations only have to differ; 13 is xxHash32's. */
#define LEAFHASH_MULTIPLY_FIRST 0x9E3779B1u
#define LEAFHASH_MULTIPLY_SECOND 0x85EBCA77u
#define LEAFHASH_ROTATE_FIRST 13
#define LEAFHASH_ROTATE_SECOND 18

struct leafhash_lane {
    uint32_t first;
    uint32_t second;
};

TWINSTEP_HD uint32_t leafhash_rotate(uint32_t value, int by) {
    return value << by | value >> (32 - by);
}

TWINSTEP_HD struct leafhash_lane leafhash_begin(uint32_t lane) {
    struct leafhash_lane state;
    state.first = (lane + 1u) * 0x9E3779B9u;
    state.second = (lane + 1u) * 0xC2B2AE3Du;
    return state;
}

TWINSTEP_HD struct leafhash_lane leafhash_step(struct leafhash_lane state, uint32_t word) {
    state.first =
        leafhash_rotate((state.first ^ word) * LEAFHASH_MULTIPLY_FIRST, LEAFHASH_ROTATE_FIRST);
    state.second =
        leafhash_rotate((state.second + word) * LEAFHASH_MULTIPLY_SECOND, LEAFHASH_ROTATE_SECOND);
    return state;
}

/* MurmurHash3's 32-bit finaliser (A. Appleby): a bijection in which every input bit changes about
 * half of the output bits. */
TWINSTEP_HD uint32_t leafhash_avalanche(uint32_t value) {
    value = (value ^ value >> 16) * 0x85EBCA6Bu;
    value = (value ^ value >> 13) * 0xC2B2AE35u;
    return value ^ value >> 16;
}

/* Ends a lane. `length` is the number of bytes of the block. This is a bijection of the pair of
 * accumulators. */
TWINSTEP_HD struct leafhash_lane leafhash_end(struct leafhash_lane state, uint32_t length) {
    state.first = leafhash_avalanche(state.first ^ length);
    state.second = leafhash_avalanche(state.second + state.first);
    return state;
}

/* A block in progress on the CPU. Each accumulator has an array of its own, so that loops over
 * lanes vectorise. */
struct leafhash {
    uint32_t first[LEAFHASH_LANES];
    uint32_t second[LEAFHASH_LANES];
    uint32_t length; /* number of bytes so far */
};

/* The number of blocks in `bytes` bytes. */
TWINSTEP_HD size_t leafhash_leaves(size_t bytes) {
    return (bytes + LEAFHASH_BLOCK - 1) / LEAFHASH_BLOCK;
}

/* A finished block as the lanes of a warp leave it, each writing its own part. On a little-endian
 * machine `lane` holds the bytes that leafhash_close writes. */
struct leafhash_leaf {
    struct leafhash_lane lane[LEAFHASH_LANES]; /* after leafhash_end */
    uint32_t misfit[LEAFHASH_LANES]; /* not 0 if the lane met a number that its dtype cannot hold */
};

#ifndef __CUDACC__
void leafhash_init(struct leafhash *hash);

/* Adds the next `length` bytes of the block, given as words; the caller pads the last word with
 * zeros. In every call but the last one of a block, `length` is a multiple of 128. */
void leafhash_absorb(struct leafhash *hash, const uint32_t *words, size_t length);

/* Adds the next `count` numbers of the block, f32 as a tensor holds them. The hash is that of their
 * own-format bytes (own_bits.h): every NaN counts as the one without sign and payload. In every
 * call but the last one of a block, `count` is a multiple of LEAFHASH_LANES. Asks for as many bytes
 * of `next` (base/ahead.h). */
void leafhash_absorb_f32(struct leafhash *hash, const float *numbers, size_t count,
                         const struct ahead *next);

void leafhash_close(const struct leafhash *hash, uint8_t out_bytes[LEAFHASH_BYTES]);
#endif

#endif

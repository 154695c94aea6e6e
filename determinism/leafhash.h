/* SPDX-License-Identifier: Apache-2.0
 * The leaf hash: a block of bytes to 256 bytes, fast, fixed for ever, the same on CPU and GPU.
 *
 * Word i (u32, little-endian, the last one zero padded) of a block goes to lane i mod 32, in
 * increasing order. A lane holds two accumulators; for a given rest of the block each step is a
 * bijection of the accumulator and of the word, so a change of any one word always changes both.
 * The two differ in operation, multiplier and rotation, so that differences which cancel in one do
 * not in the other. Words of different lanes meet only in the SHA-256 over the result (digest.c).
 * Not cryptographic: it detects bugs, not attacks. C11 and C++17 alike. */
#ifndef TWINSTEP_DETERMINISM_LEAFHASH_H
#define TWINSTEP_DETERMINISM_LEAFHASH_H

#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"

#define LEAFHASH_LANES 32
#define LEAFHASH_BLOCK 65536 /* bytes of a full block */
#define LEAFHASH_BYTES 256   /* of a result: per lane `first`, then `second`, little-endian */

/* Multipliers: primes of xxHash32 (steps) and of MurmurHash3's finaliser (end); any odd number
 * keeps the bijection. */
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

/* MurmurHash3's 32-bit finaliser (Appleby): a bijection in which every bit moves every other. */
TWINSTEP_HD uint32_t leafhash_avalanche(uint32_t value) {
    value = (value ^ value >> 16) * 0x85EBCA6Bu;
    value = (value ^ value >> 13) * 0xC2B2AE35u;
    return value ^ value >> 16;
}

/* `length`: bytes of the block. A bijection of the pair. */
TWINSTEP_HD struct leafhash_lane leafhash_end(struct leafhash_lane state, uint32_t length) {
    state.first = leafhash_avalanche(state.first ^ length);
    state.second = leafhash_avalanche(state.second + state.first);
    return state;
}

/* A block in progress on the CPU, one array per accumulator so that lanes vectorise. */
struct leafhash {
    uint32_t first[LEAFHASH_LANES];
    uint32_t second[LEAFHASH_LANES];
    uint32_t length; /* bytes so far */
};

/* Blocks of `bytes` bytes. */
TWINSTEP_HD size_t leafhash_leaves(size_t bytes) {
    return (bytes + LEAFHASH_BLOCK - 1) / LEAFHASH_BLOCK;
}

/* A block as lanes of a warp leave it, each on its own. Memory holds the bytes of leafhash_close on
 * a little-endian machine. */
struct leafhash_leaf {
    struct leafhash_lane lane[LEAFHASH_LANES]; /* after leafhash_end */
    uint32_t misfit[LEAFHASH_LANES]; /* not 0: the lane met a number that its dtype cannot hold */
};

#ifndef __CUDACC__
void leafhash_init(struct leafhash *hash);

/* The next `length` bytes of the block, given as words; the last word is zero padded by the caller.
 * Every call but the block's last has a multiple of 128 bytes. */
void leafhash_absorb(struct leafhash *hash, const uint32_t *words, size_t length);

void leafhash_close(const struct leafhash *hash, uint8_t out_bytes[LEAFHASH_BYTES]);
#endif

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Philox4x32-10, which maps a 128-bit counter and a 64-bit key to four 32-bit words (Salmon,
 * Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
 *
 * It is a pure function of integers, the same with every compiler and on every device. stream.h
 * decides what the counter means. The file is C11 and C++17 alike, because .cu files include it. */
#ifndef TWINSTEP_DETERMINISM_PHILOX_H
#define TWINSTEP_DETERMINISM_PHILOX_H

#include <stdint.h>

#include "base/macro.h"

#define PHILOX_ROUNDS 10

/* A counter or an output; word 0 holds the low bits. */
struct philox_block {
    uint32_t word[4];
};

TWINSTEP_HD struct philox_block philox_round(struct philox_block in, uint32_t key0, uint32_t key1) {
    const uint64_t product0 = (uint64_t)0xD2511F53u * in.word[0];
    const uint64_t product1 = (uint64_t)0xCD9E8D57u * in.word[2];
    struct philox_block out;
    out.word[0] = (uint32_t)(product1 >> 32) ^ in.word[1] ^ key0;
    out.word[1] = (uint32_t)product1;
    out.word[2] = (uint32_t)(product0 >> 32) ^ in.word[3] ^ key1;
    out.word[3] = (uint32_t)product0;
    return out;
}

/* The ten rounds. The key's low half is its first word, as in cuRAND and Random123. */
TWINSTEP_HD struct philox_block philox_draw(struct philox_block counter, uint64_t key) {
    uint32_t key0 = (uint32_t)key;
    uint32_t key1 = (uint32_t)(key >> 32);
    for (int round = 0; round < PHILOX_ROUNDS; round++) {
        counter = philox_round(counter, key0, key1);
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    return counter;
}

#endif

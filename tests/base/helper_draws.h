/* SPDX-License-Identifier: Apache-2.0
 * Numbers for random cases, each a function of the case's own number: a case is the same whatever
 * was drawn for those before it. And one number made of what is said of many cases. */
#ifndef TWINSTEP_TESTS_BASE_HELPER_DRAWS_H
#define TWINSTEP_TESTS_BASE_HELPER_DRAWS_H

#include <stddef.h>
#include <stdint.h>

#include "determinism/philox.h"

struct draws {
    uint64_t key;    /* of the test */
    uint32_t number; /* of the case */
    uint32_t used;
    struct philox_block block;
};

/* Returns a number below `most`, which is small: its residues are not quite equally likely. Two
 * draws never stand among the arguments of one call, whose order C leaves open. */
static inline uint32_t draws_pick(struct draws *draws, uint32_t most) {
    if (draws->used % 4 == 0) {
        const struct philox_block at = {{draws->number, draws->used / 4, 0, 0}};
        draws->block = philox_draw(at, draws->key);
    }
    return draws->block.word[draws->used++ % 4] % most;
}

/* The hash FNV-1a of bytes, which goes on from `hash`; it begins with this one. */
#define DRAWS_HASH UINT64_C(0xcbf29ce484222325)
static inline uint64_t draws_hash(uint64_t hash, const void *bytes, size_t size) {
    const unsigned char *const at = (const unsigned char *)bytes;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    return hash;
}

#endif

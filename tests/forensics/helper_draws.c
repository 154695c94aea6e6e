/* SPDX-License-Identifier: Apache-2.0
 * Draws a block of Philox for each four numbers. */
#include "tests/forensics/helper_draws.h"

uint32_t draws_pick(struct draws *draws, uint32_t most) {
    if (draws->used % 4 == 0) {
        const struct philox_block at = {{draws->number, draws->used / 4, 0, 0}};
        draws->block = philox_draw(at, draws->key);
    }
    return draws->block.word[draws->used++ % 4] % most;
}

uint64_t draws_hash(uint64_t hash, const void *bytes, size_t size) {
    const unsigned char *const at = (const unsigned char *)bytes;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    return hash;
}

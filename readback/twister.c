/* SPDX-License-Identifier: Apache-2.0
 * The recurrence of mt19937ar.c (Matsumoto and Nishimura 2002). */
#include "readback/twister.h"

#include <string.h>

#define SHIFT 397

void twister_seed(struct twister *twister, uint32_t seed) {
    twister->key[0] = seed;
    for (uint32_t i = 1; i < TWISTER_WORDS; i++) {
        const uint32_t last = twister->key[i - 1];
        twister->key[i] = UINT32_C(1812433253) * (last ^ last >> 30) + i;
    }
    twister->position = TWISTER_WORDS;
}

static void make_key(struct twister *twister) {
    uint32_t *const key = twister->key;
    for (uint32_t i = 0; i < TWISTER_WORDS; i++) {
        const uint32_t y =
            (key[i] & UINT32_C(0x80000000)) | (key[(i + 1) % TWISTER_WORDS] & UINT32_C(0x7fffffff));
        key[i] =
            key[(i + SHIFT) % TWISTER_WORDS] ^ y >> 1 ^ ((y & 1u) != 0 ? UINT32_C(0x9908b0df) : 0);
    }
    twister->position = 0;
}

uint32_t twister_draw(struct twister *twister) {
    if (twister->position >= TWISTER_WORDS) make_key(twister);
    uint32_t y = twister->key[twister->position++];
    y ^= y >> 11;
    y ^= y << 7 & UINT32_C(0x9d2c5680);
    y ^= y << 15 & UINT32_C(0xefc60000);
    return y ^ y >> 18;
}

int twister_between(const struct twister *earlier, const struct twister *later, uint64_t keys,
                    uint64_t *out_drawn) {
    struct twister now = *earlier;
    for (uint64_t made = 0; made <= keys; made++) {
        const uint32_t least = made == 0 ? earlier->position : 0;
        if (memcmp(now.key, later->key, sizeof now.key) == 0 && later->position >= least) {
            *out_drawn = made * TWISTER_WORDS + later->position - earlier->position;
            return 1;
        }
        make_key(&now);
    }
    return 0;
}

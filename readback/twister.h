/* SPDX-License-Identifier: Apache-2.0
 * Whether one state of the Mersenne Twister follows from another: how many numbers were drawn in
 * between. torch's CPU generator, numpy's RandomState and Python's random are all MT19937, so a
 * checkpoint's generators can be shown to go on where those before a restart stopped.
 *
 * Source: Matsumoto and Nishimura 1998, and their mt19937ar.c; torch 2.15,
 * aten/src/ATen/core/MT19937RNGEngine.h. */
#ifndef TWINSTEP_READBACK_TWISTER_H
#define TWINSTEP_READBACK_TWISTER_H

#include <stdint.h>

#define TWISTER_WORDS 624

struct twister {
    uint32_t key[TWISTER_WORDS];
    uint32_t position; /* words of the key that were drawn; 624: the next draw makes a new key */
};

/* Sets the state that a seed begins with. numpy's and Python's seedings by arrays are others. */
void twister_seed(struct twister *twister, uint32_t seed);

/* The next number, tempered. */
uint32_t twister_draw(struct twister *twister);

/* Stores how many numbers lie between two states. Returns 0 if `later` is not reached within `keys`
 * new keys of 624 numbers each. Equal states are 0 apart. */
int twister_between(const struct twister *earlier, const struct twister *later, uint64_t keys,
                    uint64_t *out_drawn);

#endif

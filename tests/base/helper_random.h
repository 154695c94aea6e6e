/* SPDX-License-Identifier: Apache-2.0
 * Inputs for the tests of base/: splitmix64 and the ranges made from it. The sequence is the same
 * on every machine; the seed is in the test. */
#ifndef TWINSTEP_TESTS_BASE_HELPER_RANDOM_H
#define TWINSTEP_TESTS_BASE_HELPER_RANDOM_H

#include <stdint.h>

#include "base/real.h"

struct random_source {
    uint64_t state;
};

static inline uint64_t random_bits(struct random_source *source) {
    uint64_t z = (source->state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Draws uniformly from [low, high). */
static inline double random_between(struct random_source *source, double low, double high) {
    return low + (high - low) * ((double)(random_bits(source) >> 11) * 0x1p-53);
}

/* Draws any bit pattern: zeros, subnormals, infinities and NaN are among them. */
static inline float random_any_f32(struct random_source *source) {
    return real_from_bits_f32((uint32_t)(random_bits(source) >> 32));
}

static inline double random_any_f64(struct random_source *source) {
    return real_from_bits_f64(random_bits(source));
}

#endif

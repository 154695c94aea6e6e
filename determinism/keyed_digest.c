/* SPDX-License-Identifier: Apache-2.0
 * The mix is the finaliser of SplitMix64 (G. Steele, D. Lea, C. Flood, OOPSLA 2014), a bijection of
 * 64 bits. */
#include "determinism/keyed_digest.h"

#include <string.h>

#include "base/macro.h"

static const struct {
    const char *name;
    size_t width;
} dtypes[] = {{"bool", 1}, {"u8", 1},  {"i8", 1},  {"e4m3", 1}, {"e5m2", 1},
              {"u16", 2},  {"i16", 2}, {"f16", 2}, {"bf16", 2}, {"u32", 4},
              {"i32", 4},  {"f32", 4}, {"u64", 8}, {"i64", 8},  {"f64", 8}};

size_t keyed_width(const char *dtype) {
    for (size_t i = 0; i < COUNT_OF(dtypes); i++)
        if (strcmp(dtypes[i].name, dtype) == 0) return dtypes[i].width;
    return 0;
}

static inline uint64_t mix(uint64_t index, uint32_t word) {
    uint64_t x = (index << 32) + word + UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

static inline uint32_t word_at(const uint8_t *byte) {
    return (uint32_t)byte[0] | (uint32_t)byte[1] << 8 | (uint32_t)byte[2] << 16 |
           (uint32_t)byte[3] << 24;
}

static uint64_t sum_words(const uint8_t *bytes, uint64_t first, uint64_t words) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < words; i++)
        sum += mix(first + i, word_at(bytes + 4 * i));
    return sum;
}

uint64_t keyed_sum(const void *elements, size_t width, uint64_t first, uint64_t count) {
    const uint8_t *bytes = (const uint8_t *)elements;
    uint64_t sum = 0;
    if (width == 8) return sum_words(bytes, 2 * first, 2 * count);
    if (width == 4) return sum_words(bytes, first, count);
    for (uint64_t i = 0; i < count; i++) {
        const uint32_t low = bytes[width * i];
        sum += mix(first + i, width == 2 ? low | (uint32_t)bytes[2 * i + 1] << 8 : low);
    }
    return sum;
}

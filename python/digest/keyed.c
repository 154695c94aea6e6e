/* SPDX-License-Identifier: Apache-2.0
 * "keyed 1" (docs/FOREIGN.md) for the recorder, which calls it through ctypes in somebody else's
 * training. It is the sum of determinism/keyed_digest.c once more, in one file that a wheel is
 * built from with a compiler alone, and compiled for AVX-512, AVX2 and every machine: the digest of
 * all weights is taken in every update there. Sums of integers are the same in all of them, and
 * tests/python/record_digest.py holds them against each other and against the page's vectors.
 * Nothing here allocates, keeps state or needs another library. A byte order other than
 * little-endian is not compiled. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "keyed 1 reads elements as little-endian words"
#endif

static inline uint64_t mix(uint64_t index, uint32_t word) {
    uint64_t x = (index << 32) + word + UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

/* One loop per width of a word; memcpy because elements need not be aligned. */
#define SUM(type)                                                                                  \
    for (uint64_t i = 0; i < count; i++) {                                                         \
        type word;                                                                                 \
        memcpy(&word, bytes + sizeof word * i, sizeof word);                                       \
        sum += mix(first + i, word);                                                               \
    }

static inline __attribute__((always_inline)) uint64_t sum_words(const uint8_t *bytes, size_t width,
                                                                uint64_t first, uint64_t count) {
    uint64_t sum = 0;
    if (width == 4) {
        SUM(uint32_t)
    } else if (width == 2) {
        SUM(uint16_t)
    } else {
        SUM(uint8_t)
    }
    return sum;
}

static uint64_t sum_anywhere(const uint8_t *bytes, size_t width, uint64_t first, uint64_t count) {
    return sum_words(bytes, width, first, count);
}

#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("avx2"))) static uint64_t sum_avx2(const uint8_t *bytes, size_t width,
                                                         uint64_t first, uint64_t count) {
    return sum_words(bytes, width, first, count);
}

__attribute__((target("avx512f,avx512dq,avx512vl,avx512bw"))) static uint64_t sum_avx512(
    const uint8_t *bytes, size_t width, uint64_t first, uint64_t count) {
    return sum_words(bytes, width, first, count);
}
#endif

/* The sum over `count` elements of `width` bytes (1, 2, 4 or 8), which are elements `first` and on
 * of their tensor; 0 for another width. */
__attribute__((visibility("default"))) uint64_t twinstep_keyed_sum(const void *elements,
                                                                   size_t width, uint64_t first,
                                                                   uint64_t count);

uint64_t twinstep_keyed_sum(const void *elements, size_t width, uint64_t first, uint64_t count) {
    const uint8_t *bytes = (const uint8_t *)elements;
    if (width == 8) return twinstep_keyed_sum(elements, 4, 2 * first, 2 * count);
    if (width != 1 && width != 2 && width != 4) return 0;
#if defined(__x86_64__) && defined(__GNUC__)
    if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512bw"))
        return sum_avx512(bytes, width, first, count);
    if (__builtin_cpu_supports("avx2")) return sum_avx2(bytes, width, first, count);
#endif
    return sum_anywhere(bytes, width, first, count);
}

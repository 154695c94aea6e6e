/* SPDX-License-Identifier: Apache-2.0
 * The leaf hash over whole rows of 32 words, compiled for plain x86-64, AVX2 and AVX-512. It uses
 * integers only, so the three give the same bits, and a test compares them with the scalar step of
 * the header. */
#include "determinism/leafhash.h"

#include <string.h>

#include "determinism/own_vector.h"

#define ROW_BYTES (LEAFHASH_LANES * sizeof(uint32_t))

/* The arithmetic is that of leafhash_step, in vectors of eight or sixteen lanes. It is a macro,
 * because the calling convention of a helper that takes vectors by value depends on the instruction
 * set. */
#define ROTATE(value, by) ((value) << (by) | (value) >> (32 - (by)))

/* Defines `name`, which absorbs rows in vectors of the type `vector`. `numbers`: the words are f32
 * numbers, of which each NaN counts as the one without sign and payload. Row by row it asks for as
 * many bytes of `next`. */
#define ROWS_ABSORB(name, vector, signs)                                                           \
    static inline __attribute__((always_inline)) void name(                                        \
        struct leafhash *hash, const uint32_t *words, size_t rows, int numbers,                    \
        const struct ahead *next) {                                                                \
        enum { LANES = sizeof(vector) / sizeof(uint32_t), VECTORS = LEAFHASH_LANES / LANES };      \
        vector first[VECTORS], second[VECTORS];                                                    \
        memcpy(first, hash->first, sizeof first);                                                  \
        memcpy(second, hash->second, sizeof second);                                               \
        for (size_t row = 0; row < rows; row++) {                                                  \
            if (numbers) ahead_ask(next, row *ROW_BYTES, ROW_BYTES);                               \
            _Pragma("GCC unroll 4") for (int v = 0; v < VECTORS; v++) {                            \
                vector word;                                                                       \
                memcpy(&word, words + row * LEAFHASH_LANES + v * LANES, sizeof word);              \
                if (numbers) OWN_CANONICAL_OF(vector, signs, word);                                \
                first[v] = (first[v] ^ word) * LEAFHASH_MULTIPLY_FIRST;                            \
                first[v] = ROTATE(first[v], LEAFHASH_ROTATE_FIRST);                                \
                second[v] = (second[v] + word) * LEAFHASH_MULTIPLY_SECOND;                         \
                second[v] = ROTATE(second[v], LEAFHASH_ROTATE_SECOND);                             \
            }                                                                                      \
        }                                                                                          \
        memcpy(hash->first, first, sizeof first);                                                  \
        memcpy(hash->second, second, sizeof second);                                               \
    }

/* Compiled for words and for numbers, so that the loop over words has no choice in it. */
#define ROWS(name, target, absorb)                                                                 \
    target static void name(struct leafhash *hash, const void *words, size_t rows, int numbers,    \
                            const struct ahead *next) {                                            \
        if (numbers)                                                                               \
            absorb(hash, (const uint32_t *)words, rows, 1, next);                                  \
        else                                                                                       \
            absorb(hash, (const uint32_t *)words, rows, 0, next);                                  \
    }

ROWS_ABSORB(rows_absorb, own_words, own_signs)
ROWS(rows_plain, , rows_absorb)
#if defined(__x86_64__)
ROWS_ABSORB(rows_absorb_wide, own_words_wide, own_signs_wide)
ROWS(rows_avx2, __attribute__((target("avx2"))), rows_absorb)
ROWS(rows_avx512, __attribute__((target("avx2,avx512f,avx512vl"))), rows_absorb_wide)
#endif

static void rows_best(struct leafhash *hash, const void *words, size_t rows, int numbers,
                      const struct ahead *next) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512vl")) {
        rows_avx512(hash, words, rows, numbers, next);
        return;
    }
    if (__builtin_cpu_supports("avx2")) {
        rows_avx2(hash, words, rows, numbers, next);
        return;
    }
#endif
    rows_plain(hash, words, rows, numbers, next);
}

void leafhash_init(struct leafhash *hash) {
    for (uint32_t lane = 0; lane < LEAFHASH_LANES; lane++) {
        const struct leafhash_lane state = leafhash_begin(lane);
        hash->first[lane] = state.first;
        hash->second[lane] = state.second;
    }
    hash->length = 0;
}

static void step_lane(struct leafhash *hash, size_t lane, uint32_t word) {
    struct leafhash_lane state = {hash->first[lane], hash->second[lane]};
    state = leafhash_step(state, word);
    hash->first[lane] = state.first;
    hash->second[lane] = state.second;
}

void leafhash_absorb(struct leafhash *hash, const uint32_t *words, size_t length) {
    const size_t rows = length / ROW_BYTES;
    const size_t words_left = (length - rows * ROW_BYTES + sizeof *words - 1) / sizeof *words;
    rows_best(hash, words, rows, 0, &ahead_none);
    for (size_t lane = 0; lane < words_left; lane++)
        step_lane(hash, lane, words[rows * LEAFHASH_LANES + lane]);
    hash->length += (uint32_t)length;
}

void leafhash_absorb_f32(struct leafhash *hash, const float *numbers, size_t count,
                         const struct ahead *next) {
    const size_t rows = count / LEAFHASH_LANES, left = count % LEAFHASH_LANES;
    rows_best(hash, numbers, rows, 1, next);
    for (size_t lane = 0; lane < left; lane++) {
        uint32_t bits;
        memcpy(&bits, numbers + rows * LEAFHASH_LANES + lane, sizeof bits);
        step_lane(hash, lane, own_canonical_f32(bits));
    }
    hash->length += (uint32_t)(count * sizeof *numbers);
}

static uint8_t *put_word(uint8_t *bytes, uint32_t word) {
    for (int shift = 0; shift < 32; shift += 8)
        *bytes++ = (uint8_t)(word >> shift);
    return bytes;
}

void leafhash_close(const struct leafhash *hash, uint8_t out_bytes[LEAFHASH_BYTES]) {
    for (size_t lane = 0; lane < LEAFHASH_LANES; lane++) {
        const struct leafhash_lane state = {hash->first[lane], hash->second[lane]};
        const struct leafhash_lane end = leafhash_end(state, hash->length);
        out_bytes = put_word(out_bytes, end.first);
        out_bytes = put_word(out_bytes, end.second);
    }
}

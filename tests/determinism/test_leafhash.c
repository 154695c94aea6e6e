/* SPDX-License-Identifier: Apache-2.0
 * labels: unit memory
 * The leaf hash: the vectorised code must equal the header's scalar step; every single-bit change
 * and every swap of words must show; the length must count; and the bits are pinned. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "determinism/leafhash.c" /* for the instruction sets that this machine would not choose */
#include "determinism/philox.h"

#define WORDS (LEAFHASH_BLOCK / 4)

static uint32_t block[WORDS];

static void fill_block(void) {
    for (uint32_t i = 0; i < WORDS / 4; i++) {
        const struct philox_block words = philox_draw((struct philox_block){{i, 0, 0, 0}}, 2385);
        memcpy(block + 4 * i, &words, sizeof words);
    }
}

static void hash_words(const uint32_t *words, size_t length, uint8_t out[LEAFHASH_BYTES]) {
    struct leafhash hash;
    leafhash_init(&hash);
    leafhash_absorb(&hash, words, length);
    leafhash_close(&hash, out);
}

/* Computes the hash lane by lane, as a GPU with a thread per lane would. */
static void hash_by_lane(const uint32_t *words, size_t length, uint8_t out[LEAFHASH_BYTES]) {
    const size_t count = (length + 3) / 4;
    for (uint32_t lane = 0; lane < LEAFHASH_LANES; lane++) {
        struct leafhash_lane state = leafhash_begin(lane);
        for (size_t i = lane; i < count; i += LEAFHASH_LANES)
            state = leafhash_step(state, words[i]);
        state = leafhash_end(state, (uint32_t)length);
        for (int byte = 0; byte < 4; byte++) {
            out[8 * lane + (size_t)byte] = (uint8_t)(state.first >> (8 * byte));
            out[8 * lane + 4 + (size_t)byte] = (uint8_t)(state.second >> (8 * byte));
        }
    }
}

static void corroborate_vectors_and_lanes(void **state) {
    (void)state;
    static const size_t lengths[] = {0,   1,   3,    4,    5,     124,   127,           128,
                                     129, 132, 4095, 4096, 65408, 65535, LEAFHASH_BLOCK};
    fill_block();
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        uint8_t vectors[LEAFHASH_BYTES];
        uint8_t lanes[LEAFHASH_BYTES];
        hash_words(block, lengths[i], vectors);
        hash_by_lane(block, lengths[i], lanes);
        assert_memory_equal(vectors, lanes, sizeof lanes);
    }
}

static void corroborate_instruction_sets(void **state) {
    (void)state;
    struct leafhash plain;
    struct leafhash other;
    fill_block();
    leafhash_init(&plain);
    rows_plain(&plain, block, 512, 0, &ahead_none);
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        leafhash_init(&other);
        rows_avx2(&other, block, 512, 0, &ahead_none);
        assert_memory_equal(&plain, &other, sizeof other);
    }
    if (__builtin_cpu_supports("avx512vl")) {
        leafhash_init(&other);
        rows_avx512(&other, block, 512, 0, &ahead_none);
        assert_memory_equal(&plain, &other, sizeof other);
    }
#endif
    leafhash_init(&other);
    rows_best(&other, block, 512, 0, &ahead_none);
    assert_memory_equal(&plain, &other, sizeof other);
}

/* Numbers of f32 hash as their own-format bytes do. Every seventh word is one around the border of
 * NaN, of either sign. */
static void corroborate_numbers(void **state) {
    static const uint32_t odd[] = {0x7F800000u, 0x7F800001u, 0x7FC00000u, 0x7FFFFFFFu, 0xFF800000u,
                                   0xFF800001u, 0xFFC00000u, 0xFFFFFFFFu, 0x80000000u, 0x7F7FFFFFu};
    static const size_t counts[] = {0, 1, 31, 32, 33, 8 * 32 + 5, WORDS - 1, WORDS};
    static float numbers[WORDS];
    static uint32_t own[WORDS];
    (void)state;
    const struct ahead next = {{(uintptr_t)numbers, (uintptr_t)&numbers[WORDS - 1]}};
    fill_block();
    for (size_t i = 0; i < WORDS; i++) {
        if (i % 7 == 0) block[i] = odd[i / 7 % COUNT_OF(odd)];
        const uint32_t magnitude = block[i] & 0x7FFFFFFFu;
        own[i] = magnitude > 0x7F800000u ? 0x7FC00000u : block[i];
    }
    memcpy(numbers, block, sizeof numbers);
    for (size_t c = 0; c < COUNT_OF(counts); c++) {
        uint8_t want[LEAFHASH_BYTES], got[LEAFHASH_BYTES];
        struct leafhash hash;
        hash_by_lane(own, counts[c] * sizeof *own, want);
        leafhash_init(&hash);
        leafhash_absorb_f32(&hash, numbers, counts[c], c % 2 == 0 ? &ahead_none : &next);
        leafhash_close(&hash, got);
        assert_memory_equal(got, want, sizeof want);
    }
    struct leafhash of_own, plain;
    leafhash_init(&of_own);
    rows_plain(&of_own, own, 512, 0, &ahead_none);
    leafhash_init(&plain);
    rows_plain(&plain, numbers, 512, 1, &ahead_none);
    assert_memory_equal(&plain, &of_own, sizeof plain);
#if defined(__x86_64__)
    struct leafhash other;
    leafhash_init(&other);
    if (__builtin_cpu_supports("avx2")) {
        rows_avx2(&other, numbers, 512, 1, &ahead_none);
        assert_memory_equal(&other, &of_own, sizeof other);
    }
    leafhash_init(&other);
    if (__builtin_cpu_supports("avx512vl")) {
        rows_avx512(&other, numbers, 512, 1, &ahead_none);
        assert_memory_equal(&other, &of_own, sizeof other);
    }
#endif
}

static void verify_pieces_join(void **state) {
    (void)state;
    fill_block();
    uint8_t whole[LEAFHASH_BYTES];
    hash_words(block, 60001, whole);
    for (size_t piece = 128; piece < 60001; piece = piece * 3 / 128 * 128) {
        struct leafhash hash;
        uint8_t parts[LEAFHASH_BYTES];
        leafhash_init(&hash);
        for (size_t at = 0; at < 60001; at += piece)
            leafhash_absorb(&hash, block + at / 4, 60001 - at < piece ? 60001 - at : piece);
        leafhash_close(&hash, parts);
        assert_memory_equal(whole, parts, sizeof parts);
    }
}

/* Counts how many of the 64 accumulators differ. */
static int differing(const uint8_t *a, const uint8_t *b) {
    int count = 0;
    for (size_t i = 0; i < LEAFHASH_BYTES; i += 4)
        count += memcmp(a + i, b + i, 4) != 0;
    return count;
}

/* Each step is a bijection, so a changed word must change both accumulators of its lane, and no
 * other. */
static void verify_each_bit_counts(void **state) {
    (void)state;
    static const size_t lengths[] = {4, 200, 4096};
    fill_block();
    for (size_t l = 0; l < COUNT_OF(lengths); l++) {
        uint8_t before[LEAFHASH_BYTES];
        hash_words(block, lengths[l], before);
        for (size_t bit = 0; bit < lengths[l] * 8; bit++) {
            uint8_t after[LEAFHASH_BYTES];
            block[bit / 32] ^= 1u << bit % 32;
            hash_words(block, lengths[l], after);
            block[bit / 32] ^= 1u << bit % 32;
            assert_int_equal(differing(before, after), 2);
        }
    }
}

/* Two changed words of one lane are the case in which steps could cancel. Every pair of bits in
 * neighbouring steps is flipped, in a block of zeros and in a random one; at least one accumulator
 * must differ. */
static void verify_pairs_of_bits_count(void **state) {
    (void)state;
    for (int random = 0; random < 2; random++) {
        memset(block, 0, sizeof block);
        if (random) fill_block();
        uint8_t before[LEAFHASH_BYTES];
        hash_words(block, 512, before);
        for (uint32_t i = 0; i < 32; i++) {
            for (uint32_t j = 0; j < 32; j++) {
                uint8_t after[LEAFHASH_BYTES];
                block[5] ^= 1u << i;
                block[5 + LEAFHASH_LANES] ^= 1u << j;
                hash_words(block, 512, after);
                block[5] ^= 1u << i;
                block[5 + LEAFHASH_LANES] ^= 1u << j;
                assert_true(differing(before, after) >= 1);
            }
        }
    }
}

static void verify_swaps_count(void **state) {
    (void)state;
    fill_block();
    uint8_t before[LEAFHASH_BYTES];
    hash_words(block, 1024, before);
    for (size_t i = 0; i < 256; i++) {
        for (size_t j = 0; j < i; j++) {
            uint8_t after[LEAFHASH_BYTES];
            const uint32_t kept = block[i];
            block[i] = block[j];
            block[j] = kept;
            hash_words(block, 1024, after);
            block[j] = block[i];
            block[i] = kept;
            assert_true(differing(before, after) >= 2);
        }
    }
}

/* Zeros of any length: inside one word only the length distinguishes them. */
static void verify_length_counts(void **state) {
    (void)state;
    static uint8_t hashes[300][LEAFHASH_BYTES];
    memset(block, 0, sizeof block);
    for (size_t length = 0; length < 300; length++) {
        hash_words(block, length, hashes[length]);
        for (size_t other = 0; other < length; other++)
            assert_int_equal(differing(hashes[length], hashes[other]), 64);
    }
}

/* Lane 0 of a block of one zero word, computed by an implementation in Python integers that was
 * written from the definition in docs/decisions/digest.md. */
static void validate_known_answer(void **state) {
    (void)state;
    const uint32_t word = 0;
    uint8_t out[LEAFHASH_BYTES];
    static const uint8_t expected[8] = {0x28, 0xBF, 0xED, 0xE2, 0x02, 0x70, 0xCD, 0x7D};
    hash_words(&word, 4, out);
    assert_memory_equal(out, expected, sizeof expected);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_known_answer),
        cmocka_unit_test(corroborate_vectors_and_lanes),
        cmocka_unit_test(corroborate_instruction_sets),
        cmocka_unit_test(corroborate_numbers),
        cmocka_unit_test(verify_pieces_join),
        cmocka_unit_test(verify_each_bit_counts),
        cmocka_unit_test(verify_pairs_of_bits_count),
        cmocka_unit_test(verify_swaps_count),
        cmocka_unit_test(verify_length_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short whole
 * The digest "keyed 1": vectors that numpy and torch computed on their own, shards that add up, and
 * planted changes, all of which must be seen. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "determinism/digest.h"
#include "determinism/keyed_digest.h"
#include "determinism/philox.h"
#include "tests/base/helper_size.h"

static const uint32_t f32_bits[] = {0x3F800000u, 0x80000000u, 0x40200000u}; /* 1, -0, 2.5 */
static const uint16_t bf16_bits[] = {0x3F80u, 0x8000u, 0x4020u};
static const uint16_t f16_bits[] = {0x3C00u, 0x8000u, 0x4100u};
static const uint64_t f64_bits[] = {UINT64_C(0x3FF0000000000000), UINT64_C(0x8000000000000000),
                                    UINT64_C(0x4004000000000000)};
static const int64_t i64_values[] = {-1, INT64_C(1) << 40, 3};
static const int8_t i8_values[] = {-1, 0, 127};
static const uint32_t one_bits[] = {0x40E80000u}; /* 7.25 */
static const float grid_values[] = {0.0f, 1.0f, 2.0f, 3.0f, 4.0f, 5.0f};

/* The sums and the digests of a tensor "weight", as /usr/bin/python3 and numpy gave them with the
 * code of docs/FOREIGN.md. */
static const struct {
    const char *dtype;
    size_t rank;
    uint64_t shape[2];
    const void *data;
    uint64_t sum;
    const char *hex;
} vectors[] = {
    {"f32",
     1,
     {3},
     f32_bits,
     UINT64_C(0x92c951b87dfbbf40),
     "a16778b1dfd3750e5417430703618029aa2d395077e0341cdf9ef60188187a8b"},
    {"bf16",
     1,
     {3},
     bf16_bits,
     UINT64_C(0xde730c2f7e3e230d),
     "38451d7403ed0c5c811688f30e4cbfcb971e9e3666c3816b19766bcaa3da68bb"},
    {"f16",
     1,
     {3},
     f16_bits,
     UINT64_C(0x5c5c34170481591f),
     "a0080c5b55f0639ed0231a916c9d634fe6ae84356350bac83d3fad26ae5a68d6"},
    {"f64",
     1,
     {3},
     f64_bits,
     UINT64_C(0xc592f9cdd08d8c60),
     "d2e156ff3e30fb8388e6c6ba41508eb4867052bcc0bd6d7860f71eac00bd365c"},
    {"i64",
     1,
     {3},
     i64_values,
     UINT64_C(0x4b81f940db634e57),
     "15b01f84216e245d35f581836e9a7a2cc82c75e2ad3a7b7e36a5da755ea51f5a"},
    {"i8",
     1,
     {3},
     i8_values,
     UINT64_C(0x317e6bdf7ede4e6f),
     "e91bdad31197f54d50c4b090565f03007c78a27e0bc477db4608383a83adefcc"},
    {"f32",
     1,
     {0},
     f32_bits,
     0,
     "249309e490d1a5621e86f41e89dae3c9a8443197a05542f1719e0b236930fe26"},
    {"f32",
     0,
     {0},
     one_bits,
     UINT64_C(0xfafbe78df82c095c),
     "838be9721ef8e540916312aa0f6dd57e7b9953592f61df0ada863f34f7d5e758"},
    {"f32",
     2,
     {2, 3},
     grid_values,
     UINT64_C(0x69ee030164f69b13),
     "137383bb3156a3471d84c49421b056f9f08ff55f948cc96aafda7b39f8e0cdb9"},
};

static void corroborate_vectors(void **state) {
    (void)state;
    for (size_t v = 0; v < COUNT_OF(vectors); v++) {
        uint64_t count = 1;
        struct digest digest;
        char hex[DIGEST_HEX];
        for (size_t i = 0; i < vectors[v].rank; i++)
            count *= vectors[v].shape[i];
        const uint64_t sum = keyed_sum(vectors[v].data, keyed_width(vectors[v].dtype), 0, count);
        assert_int_equal(sum, vectors[v].sum);
        digest_keyed("weight", vectors[v].dtype, vectors[v].rank, vectors[v].shape, sum, &digest);
        digest_hex(&digest, hex);
        assert_string_equal(hex, vectors[v].hex);
    }
    assert_int_equal(keyed_width("f31"), 0);
    assert_int_equal(keyed_width("c64"), 0);
}

#define BYTES 768

static void fill(uint8_t *bytes, uint32_t number) {
    for (uint32_t i = 0; i < BYTES / 16; i++) {
        const struct philox_block words = philox_draw((struct philox_block){{i, number, 0, 0}}, 20);
        memcpy(bytes + 16 * i, &words, 16);
    }
}

static void verify_shards_add_up(void **state) {
    (void)state;
    static const size_t widths[] = {1, 2, 4, 8};
    uint8_t bytes[BYTES + 1];
    fill(bytes + 1, 0); /* no shard is aligned */
    for (size_t w = 0; w < COUNT_OF(widths); w++) {
        const size_t width = widths[w];
        const uint64_t count = BYTES / width;
        const uint64_t whole = keyed_sum(bytes + 1, width, 0, count);
        for (uint64_t shards = 1; shards <= 7; shards++) {
            uint64_t sum = 0;
            for (uint64_t s = shards; s-- > 0;) {
                const uint64_t from = count * s / shards, to = count * (s + 1) / shards;
                sum += keyed_sum(bytes + 1 + from * width, width, from, to - from);
            }
            assert_int_equal(sum, whole);
        }
        /* the place counts: the same bytes elsewhere give another sum */
        assert_int_not_equal(keyed_sum(bytes + 1, width, 1, count), whole);
    }
}

static void swap(uint8_t *bytes, size_t width, size_t a, size_t b) {
    uint8_t held[BYTES];
    memcpy(held, bytes + a * width, width);
    memcpy(bytes + a * width, bytes + b * width, width);
    memcpy(bytes + b * width, held, width);
}

/* Plants one change of five kinds: a bit, two elements swapped, the same bit flipped in two
 * elements (which an xor does not see), two rows swapped (which a sum without places does not see),
 * all elements shifted by one. Returns 0 if the bytes stay what they were. */
static int plant(uint8_t *bytes, size_t width, int kind, const struct philox_block *draw) {
    const size_t count = BYTES / width;
    const size_t a = draw->word[0] % count, b = draw->word[1] % count;
    const unsigned bit = draw->word[2] % (8 * (unsigned)width);
    uint8_t before[BYTES];
    memcpy(before, bytes, BYTES);
    if (kind == 0 || kind == 2) bytes[a * width + bit / 8] ^= (uint8_t)(1u << bit % 8);
    if (kind == 2) bytes[b * width + bit / 8] ^= (uint8_t)(1u << bit % 8);
    if (kind == 1) swap(bytes, width, a, b);
    if (kind == 3) swap(bytes, BYTES / 12, a % 12, b % 12);
    if (kind == 4) memmove(bytes + width, before, BYTES - width);
    return memcmp(before, bytes, BYTES) != 0;
}

static void verify_planted_changes_are_seen(void **state) {
    (void)state;
    static const size_t widths[] = {1, 2, 4, 8};
    const uint32_t trials = (uint32_t)helper_size(20000, 40000, 1050000);
    size_t planted = 0;
    for (uint32_t i = 0; i < trials; i++) {
        const size_t width = widths[i % 4];
        const struct philox_block draw = philox_draw((struct philox_block){{i, 0, 1, 0}}, 20);
        uint8_t bytes[BYTES];
        fill(bytes, i % 97);
        const uint64_t before = keyed_sum(bytes, width, 0, BYTES / width);
        if (!plant(bytes, width, (int)(i / 4 % 5), &draw)) continue;
        planted++;
        const uint64_t after = keyed_sum(bytes, width, 0, BYTES / width);
        const size_t cut = draw.word[3] % (BYTES / width);
        assert_int_not_equal(after, before);
        assert_int_equal(keyed_sum(bytes, width, 0, cut) +
                             keyed_sum(bytes + cut * width, width, cut, BYTES / width - cut),
                         after);
    }
    print_message("%zu planted changes, all seen\n", planted);
    assert_true(planted > trials / 100 * 95);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_vectors),
        cmocka_unit_test(verify_shards_add_up),
        cmocka_unit_test(verify_planted_changes_are_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

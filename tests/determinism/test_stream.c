/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Addressed streams: the packing of docs/DETERMINISM.md, law 10, bit by bit; the refusal of every
 * field that does not fit; bulk draws against single ones; permutations, bounded integers, and the
 * ledger. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/sum.h"
#include "determinism/stream.h"
#include "tests/determinism/helper_ledger.h"

#define SEED UINT64_C(0x0123456789ABCDEF)

static const struct stream_address full = {
    STREAM_ROUNDING, STREAM_REFERENCE_REJECTED, 511, 511, 255, (1u << 22) - 1,
    0xFFFFFFFFu,     (UINT64_C(1) << 42) - 1};

/* For one field at a time: which bits of words 1 to 3 it sets by the table of law 10
 * (docs/DETERMINISM.md). */
static const struct {
    struct stream_address address;
    uint32_t word[3];
} packings[] = {
    {{.stream = STREAM_INIT}, {0, 0, 0}},
    {{.sample = 1}, {1u << 8, 0, 0}},
    {{.sample = (1u << 22) - 1}, {0x3FFFFF00u, 0, 0}},
    {{.op = 1}, {0, 1, 0}},
    {{.op = 511}, {0, 0x1FFu, 0}},
    {{.layer = 1}, {0, 1u << 9, 0}},
    {{.layer = 511}, {0, 0x3FE00u, 0}},
    {{.rank = 1}, {0, 1u << 18, 0}},
    {{.rank = 255}, {0, 0x3FC0000u, 0}},
    {{.side = STREAM_REJECTED}, {0, 1u << 26, 0}},
    {{.side = STREAM_REFERENCE_REJECTED}, {0, 3u << 26, 0}},
    {{.stream = STREAM_DATA}, {0, 1u << 28, 0}},
    {{.stream = STREAM_DROPOUT}, {0, 2u << 28, 0}},
    {{.stream = STREAM_ORDER}, {0, 3u << 28, 0}},
    {{.stream = STREAM_ROUNDING}, {0, 4u << 28, 0}},
    {{.update = 0xDEADBEEFu}, {0, 0, 0xDEADBEEFu}},
};

static void validate_packing(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(packings); i++) {
        struct stream_site site;
        assert_int_equal(stream_pack(&packings[i].address, &site), STATUS_OK);
        assert_int_equal(site.counter.word[0], 0);
        for (size_t w = 0; w < 3; w++)
            assert_int_equal(site.counter.word[w + 1], packings[i].word[w]);
    }
    struct stream_site site;
    assert_int_equal(stream_pack(&full, &site), STATUS_OK);
    assert_int_equal(site.counter.word[1], 0x3FFFFF00u); /* bits 30 and 31 stay zero */
    assert_int_equal(site.counter.word[2], 0x4FFFFFFFu);
}

/* Element 4 b + l is lane l of the block with counter (b[31:0], b[39:32] | ..., ...). */
static void validate_element(void **state) {
    (void)state;
    struct stream_site site;
    assert_int_equal(stream_pack(&full, &site), STATUS_OK);
    const uint64_t block = UINT64_C(0xA512345678);
    const struct philox_block counter = {{0x12345678u, 0x3FFFFFA5u, 0x4FFFFFFFu, 0xFFFFFFFFu}};
    const struct philox_block expected = philox_draw(counter, SEED);
    for (unsigned lane = 0; lane < 4; lane++)
        assert_int_equal(stream_word(SEED, site, 4 * block + lane), expected.word[lane]);
    assert_int_equal(stream_word64(SEED, site, 2 * block),
                     expected.word[0] | (uint64_t)expected.word[1] << 32);
    assert_int_equal(stream_word64(SEED, site, 2 * block + 1),
                     expected.word[2] | (uint64_t)expected.word[3] << 32);
}

static void validate_composed_elements(void **state) {
    (void)state;
    assert_int_equal(stream_element_activation(3, 5), 3u << 18 | 5u);
    assert_int_equal(stream_element_activation((1u << 24) - 1, (1u << 18) - 1),
                     (UINT64_C(1) << 42) - 1);
    assert_int_equal(stream_element_attention(1, 2, 3), (UINT64_C(1) << 32) + (2u << 16) + 3u);
    assert_int_equal(stream_element_attention(1023, 65535, 65535), (UINT64_C(1) << 42) - 1);
    assert_int_equal(stream_element_order(1, 2, 3), (1u << 28) + (2u << 16) + 3u);
    assert_int_equal(stream_element_order(16383, 4095, 65535), (UINT64_C(1) << 42) - 1);
}

static void expect_refusal(enum status status, const char *part) {
    assert_int_equal(status, STATUS_INPUT);
    if (strstr(status_text(), part) == NULL) fail_msg("'%s' lacks '%s'", status_text(), part);
}

static void validate_overflow_is_named(void **state) {
    (void)state;
    struct stream_site site;
    struct stream_address a = full;
    a.layer = 512;
    expect_refusal(stream_pack(&a, &site), "layer is 512, expected at most 511");
    a = full;
    a.op = 512;
    expect_refusal(stream_pack(&a, &site), "op is 512, expected at most 511");
    a = full;
    a.rank = 256;
    expect_refusal(stream_pack(&a, &site), "rank is 256, expected at most 255");
    a = full;
    a.sample = 1u << 22;
    expect_refusal(stream_pack(&a, &site), "sample is 4194304, expected at most 4194303");
    a = full;
    a.update = UINT64_C(1) << 32;
    expect_refusal(stream_pack(&a, &site), "update is 4294967296, expected at most 4294967295");
    a = full;
    a.last_element = UINT64_C(1) << 42;
    expect_refusal(stream_pack(&a, &site), "element is 4398046511104, expected at most");
    a = full;
    a.stream = STREAM_COUNT;
    assert_int_equal(stream_pack(&a, &site), STATUS_INTERNAL);
    a = full;
    a.side = STREAM_SIDES;
    assert_int_equal(stream_pack(&a, &site), STATUS_INTERNAL);
}

static void validate_extents(void **state) {
    (void)state;
    assert_int_equal(stream_check_activation(1u << 24, 1u << 18), STATUS_OK);
    assert_int_equal(stream_check_activation(0, 0), STATUS_OK);
    expect_refusal(stream_check_activation((1u << 24) + 1, 1), "last position is 16777216");
    expect_refusal(stream_check_activation(1, (1u << 18) + 1), "last channel is 262144");
    assert_int_equal(stream_check_attention(1024, 65536, 65536), STATUS_OK);
    expect_refusal(stream_check_attention(1025, 1, 1), "last head is 1024");
    expect_refusal(stream_check_attention(1, 65537, 1), "last query is 65536");
    expect_refusal(stream_check_attention(1, 1, 65537), "last key is 65536");
    assert_int_equal(stream_check_order(16384, 4096, STREAM_ORDER_DRAWS), STATUS_OK);
    expect_refusal(stream_check_order(16385, 1, 1), "last row tile is 16384");
    expect_refusal(stream_check_order(1, 4097, 1), "last column tile is 4096");
    expect_refusal(stream_check_order(1, 1, STREAM_ORDER_DRAWS + 1), "last draw is 65536");
}

/* Any start and length, also across the 2^32 boundary of the block number. */
static void verify_bulk_equals_single(void **state) {
    (void)state;
    static const uint64_t starts[] = {
        0, 1, 2, 3, 5, (UINT64_C(1) << 34) - 7, (UINT64_C(1) << 42) - 30};
    struct stream_site site;
    assert_int_equal(stream_pack(&full, &site), STATUS_OK);
    for (size_t s = 0; s < COUNT_OF(starts); s++) {
        for (size_t count = 0; count < 24; count++) {
            uint32_t words[25];
            words[count] = 0xAAAAAAAAu;
            stream_words(SEED, site, starts[s], count, words);
            assert_int_equal(words[count], 0xAAAAAAAAu);
            for (size_t i = 0; i < count; i++)
                assert_int_equal(words[i], stream_word(SEED, site, starts[s] + i));
        }
    }
}

static void validate_uniform(void **state) {
    (void)state;
    assert_true(stream_uniform(0) == 0x1p-33);
    assert_true(stream_uniform(0xFFFFFFFFu) == 1.0 - 0x1p-33);
    assert_true(stream_uniform(0x80000000u) == 0.5 + 0x1p-33);
}

/* The definition is floor(key * bound / 2^64); the keys are chosen so that the quotient is known by
 * hand. */
static void validate_bounded(void **state) {
    (void)state;
    assert_int_equal(stream_bounded(0, 7), 0);
    assert_int_equal(stream_bounded(UINT64_MAX, 7), 6);
    assert_int_equal(stream_bounded(UINT64_MAX, 0), 0);
    assert_int_equal(stream_bounded(UINT64_MAX, 0xFFFFFFFFu), 0xFFFFFFFEu);
    assert_int_equal(stream_bounded(UINT64_C(1) << 63, 10), 5);
    assert_int_equal(stream_bounded((UINT64_C(1) << 63) - 1, 10), 4);
    /* 2^64 / 3 = 6148914691236517205.33: the first key of value 1 is the next integer */
    assert_int_equal(stream_bounded(UINT64_C(6148914691236517205), 3), 0);
    assert_int_equal(stream_bounded(UINT64_C(6148914691236517206), 3), 1);
    assert_int_equal(stream_bounded(UINT64_C(12297829382473034410), 3), 1);
    assert_int_equal(stream_bounded(UINT64_C(12297829382473034411), 3), 2);
}

static void permute(uint64_t seed, uint64_t first, size_t count, uint32_t *order) {
    struct stream_card scratch[2 * 300];
    struct stream_site site;
    assert_int_equal(stream_pack(&full, &site), STATUS_OK);
    stream_permute(seed, site, first, count, scratch, order);
}

/* States law 9 independently: the place of i is how many (key, index) pairs are smaller. */
static void corroborate_permutation_by_ranks(void **state) {
    (void)state;
    for (size_t count = 0; count < 300; count = count * 3 / 2 + 1) {
        uint32_t order[300];
        struct stream_site site;
        assert_int_equal(stream_pack(&full, &site), STATUS_OK);
        permute(SEED, 64, count, order);
        for (size_t i = 0; i < count; i++) {
            const uint64_t key = stream_word(SEED, site, 64 + 2 * i) |
                                 (uint64_t)stream_word(SEED, site, 65 + 2 * i) << 32;
            size_t place = 0;
            for (size_t j = 0; j < count; j++) {
                const uint64_t other = stream_word(SEED, site, 64 + 2 * j) |
                                       (uint64_t)stream_word(SEED, site, 65 + 2 * j) << 32;
                place += other < key || (other == key && j < i);
            }
            assert_int_equal(order[place], i);
        }
    }
}

/* Many equal keys, which draws never give, sorted here and by the summation engine's own sort. */
static void corroborate_sort_with_ties(void **state) {
    (void)state;
    for (size_t count = 0; count < 300; count = count * 3 / 2 + 1) {
        struct stream_card cards[300];
        struct stream_card spare[300];
        uint64_t keys[300];
        uint32_t order[300];
        for (size_t i = 0; i < count; i++) {
            const struct stream_site site = {{{0, 0, 0, 0}}};
            keys[i] = stream_bounded(stream_word64(SEED, site, i), 7) * (UINT64_MAX / 6);
            cards[i] = (struct stream_card){keys[i], (uint32_t)i};
        }
        const struct stream_card *const sorted = stream_sort_cards(cards, spare, count);
        sum_permutation(count, keys, order);
        for (size_t i = 0; i < count; i++) {
            assert_int_equal(sorted[i].index, order[i]);
            if (i == 0 || sorted[i].key != sorted[i - 1].key) continue;
            assert_true(sorted[i].index > sorted[i - 1].index);
        }
    }
}

/* All 24 orders of four items must occur about equally often. In 12000 draws 500 of each are
 * expected, with a standard deviation of sqrt(500 * 23 / 24) = 21.9; six of these are 131. */
static void verify_orders_are_even(void **state) {
    (void)state;
    int seen[256] = {0};
    for (uint64_t seed = 0; seed < 12000; seed++) {
        uint32_t order[4];
        permute(seed, 0, 4, order);
        seen[order[0] << 6 | order[1] << 4 | order[2] << 2 | order[3]]++;
    }
    int orders = 0;
    for (size_t i = 0; i < COUNT_OF(seen); i++) {
        if (seen[i] == 0) continue;
        orders++;
        assert_in_range(seen[i], 500 - 131, 500 + 131);
    }
    assert_int_equal(orders, 24);
}

static void validate_ledger(void **state) {
    (void)state;
    static struct stream_ledger ledger;
    stream_ledger_add(&ledger, STREAM_DROPOUT, 511, 10);
    stream_ledger_add(&ledger, STREAM_DROPOUT, 511, 5);
    stream_ledger_add(&ledger, STREAM_DROPOUT, 0, UINT64_C(1) << 40);
    assert_int_equal(ledger.words[STREAM_DROPOUT][511], 15);
    assert_int_equal(helper_ledger_total(&ledger, STREAM_DROPOUT), (UINT64_C(1) << 40) + 15);
    assert_int_equal(helper_ledger_total(&ledger, STREAM_INIT), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_packing),
        cmocka_unit_test(validate_element),
        cmocka_unit_test(validate_composed_elements),
        cmocka_unit_test(validate_overflow_is_named),
        cmocka_unit_test(validate_extents),
        cmocka_unit_test(verify_bulk_equals_single),
        cmocka_unit_test(validate_uniform),
        cmocka_unit_test(validate_bounded),
        cmocka_unit_test(corroborate_permutation_by_ranks),
        cmocka_unit_test(corroborate_sort_with_ties),
        cmocka_unit_test(verify_orders_are_even),
        cmocka_unit_test(validate_ledger),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The order of sums: permutations must follow the table of law 10 and the sorting rule of law 9,
 * depend on every field of the address, and be what sums are added in. A configuration that law 9
 * cannot address must be refused at load. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "kernels/shuffle.h"
#include "tests/kernels/helper_ops.h"

static _Alignas(64) unsigned char scratch[64 << 10];

static const uint32_t *order_of(const struct op_call *call, uint64_t row, uint64_t column,
                                uint32_t chunks) {
    const struct shuffle shuffle = shuffle_open(call, PASS_WEIGHT);
    assert_true(shuffle_bytes(chunks) <= sizeof scratch && shuffle_bytes(chunks) % 64 == 0);
    return shuffle_order(&shuffle, row, column, chunks, scratch);
}

static void verify_order(void **state) {
    (void)state;
    static const uint32_t counts[] = {0, 1, 2, 3, 17, 200};
    struct bench b;
    bench_open(&b, 0);
    bench_shuffle(&b, SUM_WEIGHT, 16, SITE_DOWN_PROJ);
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        const struct law_tile tile = {&b.call, PASS_WEIGHT, 9000 + i, 4000 + i};
        uint32_t want[200];
        law_order(&tile, counts[i], want);
        assert_memory_equal(order_of(&b.call, tile.row, tile.column, counts[i]), want,
                            counts[i] * sizeof *want);
    }
    bench_close(&b);
}

/* Law 9: a longer draw with the larger indices left out is the shorter draw. */
static void verify_prefix(void **state) {
    (void)state;
    struct bench b;
    uint32_t shorter[70];
    size_t at = 0;
    bench_open(&b, 0);
    bench_shuffle(&b, SUM_WEIGHT, 16, SITE_DOWN_PROJ);
    memcpy(shorter, order_of(&b.call, 3, 5, 70), sizeof shorter);
    const uint32_t *const longer = order_of(&b.call, 3, 5, 333);
    for (size_t i = 0; i < 333; i++)
        if (longer[i] < 70) assert_int_equal(longer[i], shorter[at++]);
    assert_int_equal(at, 70);
    bench_close(&b);
}

static void vary(struct bench *b, int field) {
    if (field == 0) b->order.seed++;
    if (field == 1) b->order.update++;
    if (field == 2) b->order.sample++;
    if (field == 3) b->call.side = 0;
    if (field == 4) b->call.layer++;
    if (field == 5) b->call.site = SITE_UP_PROJ;
}

static void verify_address(void **state) {
    (void)state;
    struct bench b;
    uint32_t first[64];
    bench_open(&b, 0);
    for (int field = 0; field < 8; field++) {
        bench_shuffle(&b, SUM_WEIGHT, 16, SITE_DOWN_PROJ);
        memcpy(first, order_of(&b.call, 3, 5, 64), sizeof first);
        assert_memory_equal(order_of(&b.call, 3, 5, 64), first, sizeof first);
        vary(&b, field);
        const uint32_t *const other = order_of(&b.call, field == 6 ? 4 : 3, field == 7 ? 6 : 5, 64);
        assert_memory_not_equal(other, first, sizeof first);
    }
    bench_close(&b);
}

static void verify_sums(void **state) {
    (void)state;
    struct bench b;
    bench_open(&b, BENCH_PAIRS - 1);
    for (uint32_t chunk = 1; chunk < 20; chunk += 6) {
        for (size_t count = 0; count < 300; count += 37) {
            const double *const terms = bench_draw(&b, count, DTYPE_F64, 1.0);
            bench_shuffle(&b, SUM_LOSS, chunk, SITE_LOSS);
            const struct law_tile tile = {&b.call, PASS_FORWARD, 0, 0};
            const struct shuffle shuffle = shuffle_open(&b.call, PASS_FORWARD);
            const double sum = shuffle_sum(&shuffle, terms, count, scratch);
            assert_true(sum == law_shuffled(&b.law, &tile, terms, 1, NULL, 0, count));
            b.order.chunk = 1;
            const double joined = shuffle_join(&shuffle, 0, terms, count, scratch);
            assert_true(joined == law_shuffled(&b.law, &tile, terms, 1, NULL, 0, count));
        }
    }
    bench_close(&b);
}

/* Beyond 32768 chunks there is a second group, which has tile (1, 0); the groups' sums are added in
 * order. */
static void verify_groups(void **state) {
    (void)state;
    struct bench b;
    const size_t count = SHUFFLE_CHUNKS + 100;
    void *space = NULL;
    bench_open(&b, BENCH_PAIRS - 1);
    bench_shuffle(&b, SUM_LOSS, 1, SITE_LOSS);
    const double *const terms = bench_draw(&b, count, DTYPE_F64, 1.0);
    const struct law_tile tile = {&b.call, PASS_FORWARD, 1, 0};
    const struct shuffle shuffle = shuffle_open(&b.call, PASS_FORWARD);
    assert_int_equal(arena_take(&b.arena, shuffle_bytes(SHUFFLE_CHUNKS), 1, "order", &space),
                     STATUS_OK);
    const double first = shuffle_join(&shuffle, 0, terms, SHUFFLE_CHUNKS, space);
    const double second = law_shuffled(&b.law, &tile, terms + SHUFFLE_CHUNKS, 1, NULL, 0, 100);
    assert_true(shuffle_sum(&shuffle, terms, count, space) == first + second);
    bench_close(&b);
}

/* Two seeds must give different sums, at least now and then (more than 10 of 50: rounding hides
 * many orders); with fewer than three chunks they never differ, since a + b = b + a. */
static void verify_noise(void **state) {
    (void)state;
    struct bench b;
    int differ = 0;
    bench_open(&b, BENCH_PAIRS - 1);
    for (uint32_t i = 0; i < 50; i++) {
        const double *const terms = bench_draw(&b, 320, DTYPE_F64, 1.0);
        bench_shuffle(&b, SUM_LOSS, 16, SITE_LOSS);
        struct shuffle one = shuffle_open(&b.call, PASS_FORWARD);
        struct shuffle other = one;
        other.seed++;
        differ +=
            shuffle_sum(&one, terms, 320, scratch) != shuffle_sum(&other, terms, 320, scratch);
        assert_true(shuffle_sum(&one, terms, 32, scratch) ==
                    shuffle_sum(&other, terms, 32, scratch));
    }
    assert_true(differ > 10);
    bench_close(&b);
}

static const struct {
    const char *text; /* part of the refusal; NULL: accepted */
    uint32_t chunk, sample;
    struct shuffle_extent extent;
} loads[] = {
    {NULL, 16, 0, {1u << 20, 1u << 18, 1u << 19, 510, 1u << 22, 200}},
    {"chunk", 0, 0, {64, 64, 64, 2, 8, 20}},
    {"row tile", 16, 0, {(1u << 20) + 1, 64, 64, 2, 8, 20}},
    {"column tile", 16, 0, {64, (1u << 18) + 1, 64, 2, 8, 20}},
    {"draw", 16, 0, {64, 64, (1u << 19) + 1, 2, 8, 20}},
    {"layer", 16, 0, {64, 64, 64, 512, 8, 20}},
    {"sample", 16, 0, {64, 64, 64, 2, (1u << 22) + 1, 20}},
};

static void verify_refused(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(loads); i++) {
        const struct order order = {1, 63, loads[i].chunk, 0, loads[i].sample};
        const enum status status = shuffle_check(&order, &loads[i].extent);
        assert_int_equal(status, loads[i].text == NULL ? STATUS_OK : STATUS_INPUT);
        if (loads[i].text != NULL) assert_non_null(strstr(status_text(), loads[i].text));
    }
}

static void validate_active(void **state) {
    (void)state;
    const struct order order = {1, SUM_DQ | SUM_LOSS, 16, 0, 0};
    const struct op_call none = {.order = NULL};
    const struct op_call some = {.order = &order};
    assert_false(shuffle_active(&none, SUM_DQ));
    assert_true(shuffle_active(&some, SUM_DQ) && shuffle_active(&some, SUM_LOSS));
    assert_false(shuffle_active(&some, SUM_FORWARD));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_order),   cmocka_unit_test(verify_prefix),
        cmocka_unit_test(verify_address), cmocka_unit_test(verify_sums),
        cmocka_unit_test(verify_groups),  cmocka_unit_test(verify_noise),
        cmocka_unit_test(verify_refused), cmocka_unit_test(validate_active),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The alignment against the length of the longest common row of ops, by the table that textbooks
 * fill; it is in order and pairs only ops that are the same. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "dumps/align.h"

#define MOST 60

static uint32_t draw(uint64_t *state, uint32_t below) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33) % below;
}

static size_t longest_common(const struct dump *a, const struct dump *b) {
    size_t table[MOST + 1][MOST + 1] = {{0}};
    for (size_t i = 1; i <= a->count; i++)
        for (size_t j = 1; j <= b->count; j++) {
            const size_t up = table[i - 1][j], left = table[i][j - 1];
            table[i][j] = a->ops[i - 1].op == b->ops[j - 1].op ? table[i - 1][j - 1] + 1
                          : up > left                          ? up
                                                               : left;
        }
    return table[a->count][b->count];
}

static void require_alignment(const struct dump *a, const struct dump *b) {
    struct arena arena = ARENA_EMPTY;
    struct words words;
    uint32_t *of_a, *of_b;
    int aligned;
    size_t pairs = 0, last = 0;
    assert_int_equal(words_open(&arena, &words), STATUS_OK);
    assert_int_equal(dump_align(a, b, &words, &of_a, &of_b, &aligned), STATUS_OK);
    assert_true(aligned);
    for (uint32_t i = 0; i < a->count; i++) {
        if (of_a[i] == UINT32_MAX) continue;
        assert_int_equal(of_b[of_a[i]], i);
        assert_int_equal(a->ops[i].op, b->ops[of_a[i]].op);
        assert_true(pairs == 0 || of_a[i] > last);
        last = of_a[i];
        pairs++;
    }
    for (uint32_t j = 0; j < b->count; j++)
        assert_true(of_b[j] == UINT32_MAX || of_a[of_b[j]] == j);
    assert_int_equal(pairs, longest_common(a, b));
    arena_close(&arena);
}

static void verify_alignments_are_the_longest(void **state) {
    struct dump_op x[MOST], y[MOST];
    uint64_t seed = 7;
    (void)state;
    memset(x, 0, sizeof x);
    memset(y, 0, sizeof y);
    for (int round = 0; round < 2000; round++) {
        const uint32_t letters = 1 + draw(&seed, 6);
        struct dump a = {.ops = x, .count = draw(&seed, MOST + 1)},
                    b = {.ops = y, .count = draw(&seed, MOST + 1)};
        for (size_t i = 0; i < a.count; i++)
            x[i].op = draw(&seed, letters);
        for (size_t j = 0; j < b.count; j++)
            y[j].op = round % 2 == 1 && j < a.count && draw(&seed, 5) > 0
                          ? x[j].op
                          : draw(&seed, letters + 1);
        require_alignment(&a, &b);
    }
}

static void verify_dumps_too_far_apart_are_not_aligned(void **state) {
    static struct dump_op x[3 * DUMP_APART_MOST], y[3 * DUMP_APART_MOST];
    struct arena arena = ARENA_EMPTY;
    struct words words;
    uint32_t *of_a, *of_b;
    int aligned;
    const struct dump a = {.ops = x, .count = 3 * DUMP_APART_MOST},
                      b = {.ops = y, .count = 3 * DUMP_APART_MOST};
    (void)state;
    for (uint32_t i = 0; i < a.count; i++) { /* the same ops, the other way round */
        x[i].op = i;
        y[i].op = (uint32_t)a.count - i;
    }
    assert_int_equal(words_open(&arena, &words), STATUS_OK);
    assert_int_equal(dump_align(&a, &b, &words, &of_a, &of_b, &aligned), STATUS_OK);
    assert_false(aligned);
    for (size_t i = 0; i < a.count; i++)
        assert_true(of_a[i] == UINT32_MAX && of_b[i] == UINT32_MAX);
    for (uint32_t i = 0; i < a.count; i++) /* ops that only one side has do not count */
        y[i].op = i % 2 == 0 ? i : 1000000 + i;
    assert_int_equal(dump_align(&a, &b, &words, &of_a, &of_b, &aligned), STATUS_OK);
    assert_true(aligned);
    assert_int_equal(of_a[8], 8);
    assert_int_equal(of_a[9], UINT32_MAX);
    arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_alignments_are_the_longest),
        cmocka_unit_test(verify_dumps_too_far_apart_are_not_aligned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What is read of hybrids and of other measures of causes, from arrays made by hand: which sizes
 * and numbers are taken, each end from both sides; sampled hybrids and their orders; shares at
 * marks; and the update from which on a cause acts. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/macro.h"
#include "evidence/judge_hybrids.c"  /* for its parts, which no other file asks for */
#include "evidence/judge_measures.c" /* and for these */

enum { MOST = 2048, ARRAYS = 8 };

static struct arena arena;
static struct judgement judgement;
static struct trace_image image;
static struct trace_array arrays[ARRAYS];
static double numbers[ARRAYS][MOST];
static struct judging judging = {.image = &image, .arena = &arena, .out = &judgement};

static void open_image(uint32_t factors) {
    arena_close(&arena);
    memset(&judgement, 0, sizeof judgement);
    memset(&image, 0, sizeof image);
    image.arrays = arrays;
    judgement.cause_count = factors;
}

/* Adds an array, with 1, 2, 3, .. in it; one of one column has rank 1. */
static double *add(const char *path, uint64_t rows, uint64_t columns) {
    const uint32_t i = image.array_count++;
    assert_true(i < ARRAYS && rows * columns <= MOST);
    for (size_t k = 0; k < MOST; k++)
        numbers[i][k] = (double)(k + 1);
    arrays[i] = (struct trace_array){
        .plan = {.path = path, .rank = columns == 1 ? 1 : 2, .shape = {rows, columns}},
        .values = numbers[i]};
    return numbers[i];
}

static void validate_whole_numbers(void **state) {
    (void)state;
    static const struct {
        double value;
        int taken;
    } cases[] = {{0.0, 1},
                 {-0.0, 1},
                 {1.0, 1},
                 {6.0, 1},
                 {7.0, 0},
                 {8.0, 0},
                 {-1.0, 0},
                 {0.5, 0},
                 {(double)NAN, 0},
                 {6.5, 0},
                 {1e300, 0},
                 {-0x1p-1074, 0},
                 {(double)INFINITY, 0}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        uint32_t out = 99;
        const enum status status = read_whole("a/b", cases[i].value, 7, &out);
        assert_int_equal(status, cases[i].taken ? STATUS_OK : STATUS_INPUT);
        if (cases[i].taken) assert_true((double)out == cases[i].value);
    }
}

static void validate_shapes(void **state) {
    (void)state;
    for (uint64_t rows = 0; rows < 10; rows++)
        for (uint64_t columns = 1; columns < 3; columns++)
            for (int how = 0; how < 3; how++) {
                open_image(3);
                add("attribution/mask", rows, columns);
                add("attribution/value", how == 1 ? rows + 1 : rows, how == 2 ? 2 : 1);
                const int taken = columns == 1 && how == 0 && rows >= 2 && rows <= 8;
                assert_int_equal(check_shapes(&arrays[0], &arrays[1], 3),
                                 taken ? STATUS_OK : STATUS_INPUT);
            }
}

static void validate_orders(void **state) {
    (void)state;
    for (uint64_t count = 0; count <= 260; count++)
        for (uint64_t columns = 2; columns < 5; columns++) {
            struct orders orders;
            open_image(3);
            double *const order = add("attribution/order", count, columns);
            for (size_t i = 0; i < MOST; i++)
                order[i] = (double)(i % 3);
            const int taken = columns == 3 && count >= 4 && count <= 256 && count % 2 == 0;
            assert_int_equal(read_orders(&arrays[0], 3, &arena, &orders),
                             taken ? STATUS_OK : STATUS_INPUT);
            if (!taken) continue;
            assert_true(orders.factors == 3 && orders.count == count);
            for (size_t i = 0; i < 3 * count; i++)
                assert_int_equal(orders.entering[i], i % 3);
            order[3 * count - 1] = 3.0; /* there is no fourth factor */
            assert_int_equal(read_orders(&arrays[0], 3, &arena, &orders), STATUS_INPUT);
        }
}

static void validate_last_rows(void **state) {
    (void)state;
    open_image(2);
    assert_null(last_row(&judging, "a", 4));
    add("a", 4, 1);
    add("b", 3, 4);
    add("c", 0, 4);
    assert_ptr_equal(last_row(&judging, "a", 4), numbers[0]);
    assert_ptr_equal(last_row(&judging, "b", 4), numbers[1] + 8);
    assert_null(last_row(&judging, "c", 4));
    for (uint32_t width = 2; width < 6; width++)
        for (int which = 0; which < 2; which++)
            assert_int_equal(last_row(&judging, which == 0 ? "a" : "b", width) != NULL, width == 4);
    for (size_t i = 0; i < 4; i++) { /* a value that was not written, in that row alone */
        numbers[1][i] = (double)NAN;
        assert_non_null(last_row(&judging, "b", 4));
        const double before = numbers[1][8 + i];
        numbers[1][8 + i] = (double)NAN;
        assert_null(last_row(&judging, "b", 4));
        numbers[1][8 + i] = before;
        numbers[0][i] = (double)INFINITY;
        assert_null(last_row(&judging, "a", 4));
        numbers[0][i] = 1.0;
    }
}

/* Six factors are sampled: of 64 hybrids some were trained, by their masks. */
static void validate_sampled_hybrids(void **state) {
    (void)state;
    for (uint32_t factors = 5; factors <= ORDERS_FACTORS + 1; factors++)
        for (int how = 0; how < 5; how++) {
            struct hybrid_table table;
            open_image(factors);
            const int sampled = factors > JUDGE_FACTORS_MAX;
            const uint64_t rows = sampled ? 7 : 32;
            double *const value = add(how == 1 ? "x" : "attribution/value", rows, 1);
            double *const mask = add(how == 2 ? "y" : "attribution/mask", rows, 1);
            double *const order = add(how == 3 ? "z" : "attribution/order", 4, factors);
            for (size_t i = 0; i < 4 * (size_t)factors; i++)
                order[i] = (double)(i % factors);
            mask[6] = sampled ? 63.0 : 7.0;
            if (how == 4) value[rows - 1] = (double)NAN; /* not finished */
            value[rows] = (double)NAN;                   /* behind the last */
            assert_int_equal(judge_hybrids(&judging, &table), STATUS_OK);
            const int there = how == 0 || (!sampled && (how == 2 || how == 3));
            const int read = there && factors <= ORDERS_FACTORS;
            assert_int_equal(table.count, read ? rows : 0);
            assert_int_equal(table.factors, factors);
            assert_ptr_equal(table.distance, read ? value : NULL);
            assert_null(table.way);
            assert_null(table.moved);
            if (!read) continue;
            assert_int_equal(table.orders.count, sampled ? 4 : 0);
            for (uint32_t i = 0; i < 64; i++) {
                const double expected = !sampled         ? (i < 32 ? (double)i + 1.0 : (double)NAN)
                                        : i == 63        ? 7.0
                                        : i > 0 && i < 7 ? (double)i
                                                         : (double)NAN;
                if (!sampled && i >= 32) continue;
                const double got = hybrid_value(&table, table.distance, i);
                assert_true(got == expected || (isnan(got) && isnan(expected)));
                assert_true(isnan(hybrid_value(&table, NULL, i)));
            }
        }
}

/* Shares are made of the way where it was recorded: the last row of marks, or else the one row of
 * elder programs; and first weights tell whether a hybrid moved. Arrays of another width are none
 * of these hybrids'. */
static void validate_ways(void **state) {
    (void)state;
    for (int at = 0; at < 4; at++)
        for (int way = 0; way < 3; way++)
            for (int moved = 0; moved < 3; moved++)
                for (int finished = 0; finished < 2; finished++) {
                    struct hybrid_table table;
                    open_image(2);
                    double *const value = add("attribution/value", 4, 1);
                    double *const marks = add(at > 0 ? "attribution/way_at" : "x", 3, 4);
                    double *const last =
                        add(way > 0 ? "attribution/way" : "y", way == 2 ? 5 : 4, 1);
                    double *const first =
                        add(moved > 0 ? "attribution/first_weights" : "z", moved == 2 ? 3 : 4, 1);
                    if (at == 2) marks[0] = (double)NAN; /* of a mark that counts no more */
                    if (at == 3) marks[11] = (double)NAN;
                    if (!finished) value[0] = (double)INFINITY;
                    assert_int_equal(judge_hybrids(&judging, &table), STATUS_OK);
                    const double *const want = at == 1 || at == 2 ? marks + 8
                                               : way == 1         ? last
                                                                  : NULL;
                    assert_int_equal(table.count, finished ? 4 : 0);
                    assert_ptr_equal(table.distance, finished ? value : NULL);
                    assert_ptr_equal(table.way, finished ? want : NULL);
                    assert_ptr_equal(table.moved, finished && moved == 1 ? first : NULL);
                }
}

/* Numbers of marks, and what is read of each: two causes, of which the first does everything. */
static void validate_marks(void **state) {
    (void)state;
    static const uint32_t order[2] = {0, 1};
    open_image(2);
    assert_int_equal(judge_measures(&judging, order), STATUS_OK);
    for (uint64_t rows = 0; rows <= JUDGE_MARKS + 1; rows++)
        for (uint64_t columns = 1; columns < 3; columns++) {
            open_image(2);
            judgement.updates = JUDGE_MARKS;
            add("attribution/mark", rows, columns);
            double *const way = add("attribution/way_at", rows, 4);
            add(RESPONSE_PATH, 5, 1);
            const int taken = rows >= 1 && rows <= JUDGE_MARKS && columns == 1;
            if (rows > 4) numbers[0][4] = 0.0; /* no update */
            if (rows > 5) numbers[0][5] = (double)NAN;
            if (rows > 6) way[4 * 6 + 1] = (double)NAN;
            for (size_t i = 0; i < 4 * rows; i++)
                if (i / 4 != 6) way[i] = i % 2 == 1 ? (double)(i / 4 + 1) : 0.0;
            assert_int_equal(judge_measures(&judging, order), taken ? STATUS_OK : STATUS_INPUT);
            if (!taken) continue;
            const uint64_t left = rows - (rows > 4) - (rows > 5) - (rows > 6);
            assert_int_equal(judgement.mark_count, left);
            for (uint64_t m = 0; m < left; m++) {
                const struct judged_mark *const mark = &judgement.marks[m];
                const uint64_t update = m < 4 ? m + 1 : m + 4;
                assert_int_equal(mark->update, update);
                assert_true(mark->whole == (double)update);
                assert_true(mark->share[0] == 1.0 && mark->share[1] == 0.0);
                /* the response was recorded for five updates */
                assert_true(update <= 5 ? mark->response == (double)update : isnan(mark->response));
            }
        }
}

static void validate_first_updates(void **state) {
    (void)state;
    static const double firsts[] = {-1.0, -0x1p-1074, 0.0, 1.0, 8.0, 8.5, 9.0};
    static const uint32_t order[2] = {1, 0};
    for (size_t i = 0; i < COUNT_OF(firsts); i++) {
        open_image(2);
        judgement.updates = 8;
        judgement.causes[0].acted = judgement.causes[1].acted = -7;
        double *const first = add("attribution/first_update", 4, 1);
        first[2] = firsts[i]; /* of the second factor, which stands first */
        assert_int_equal(read_first(&judging, order), STATUS_OK);
        const int taken = firsts[i] >= 0.0 && firsts[i] <= 8.0;
        assert_int_equal(judgement.causes[0].acted, taken ? (int64_t)firsts[i] : -7);
        assert_int_equal(judgement.causes[1].acted, 2);
    }
}

static int close_arena(void **state) {
    (void)state;
    arena_close(&arena);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(validate_whole_numbers),
                                       cmocka_unit_test(validate_shapes),
                                       cmocka_unit_test(validate_orders),
                                       cmocka_unit_test(validate_last_rows),
                                       cmocka_unit_test(validate_sampled_hybrids),
                                       cmocka_unit_test(validate_marks),
                                       cmocka_unit_test(validate_ways),
                                       cmocka_unit_test(validate_first_updates)};
    return cmocka_run_group_tests(tests, NULL, close_arena);
}

/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What is said of products that our kernel computed: nothing where it computed none; and which rows
 * of counts no run can have written. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <math.h>
#include <string.h>
#include <cmocka.h>

#include "base/arena.h"
#include "evidence/products_seen.h"

static void validate_what_is_said_of_products(void **state) {
    (void)state;
    static const struct {
        double row[PRODUCTS_COLUMNS];
        const char *said;
    } cases[] = {
        {{40, 0, 0, 0, 0}, ""},
        {{40, 1, 8, 16, 32},
         "1 of 40 products of mode own were computed by the kernel of invariant: cublasLt has no "
         "algorithm without a split of k for 8 x 16 with 32 terms"},
        {{40, 3, 8, 16, 32},
         "3 of 40 products of mode own were computed by the kernel of invariant: cublasLt has no "
         "algorithm without a split of k for 8 x 16 with 32 terms (the first of them)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct arena arena = ARENA_EMPTY;
        const char *text;
        assert_int_equal(products_text(cases[i].row, "own", &arena, &text), STATUS_OK);
        assert_string_equal(text, cases[i].said);
        arena_close(&arena);
    }
}

/* A row is of counts up to 2^53, of which those of our kernel are no more than all; a run without a
 * row, or of another name, says nothing. */
static void validate_rows(void **state) {
    (void)state;
    static const struct {
        double row[PRODUCTS_COLUMNS];
        int is_sound;
    } rows[] = {
        {{40, 0, 0, 0, 0}, 1},           {{40, 40, 1, 1, 1}, 1},
        {{40, 41, 1, 1, 1}, 0},          {{0x1p53, 1, 1, 1, 1}, 1},
        {{0x1p53 + 2, 1, 1, 1, 1}, 0},   {{-1, 0, 0, 0, 0}, 0},
        {{40, 0.5, 1, 1, 1}, 0},         {{40, 1, 1, 1, -1}, 0},
        {{40, 1, 1, 1, 0x1p53}, 1},      {{40, 1, 1, 1, 0x1p53 + 2}, 0},
        {{40, 1, 1, 1, (double)NAN}, 0}, {{(double)NAN, 1, 1, 1, 0.5}, 1},
    };
    enum { RUNS = 3 };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (uint32_t run = 0; run < RUNS; run++)
            for (int how = 0; how < 5; how++) {
                static const char *const names[] = {"a", "b", "c"};
                struct arena arena = ARENA_EMPTY;
                struct trace_run runs[RUNS] = {{.updates = 0}, {.updates = 0}, {.updates = 0}};
                double values[RUNS][PRODUCTS_COLUMNS];
                const char *text = "x";
                for (uint32_t r = 0; r < RUNS; r++) {
                    runs[r].plan.id = names[r];
                    runs[r].plan.configuration = "numerics.mode: own\n";
                    for (int c = 0; c < PRODUCTS_COLUMNS; c++)
                        values[r][c] = r == run ? rows[i].row[c] : -5.0;
                }
                struct trace_array array = {
                    .plan = {.path = how == 1 ? "other" : PRODUCTS_PATH,
                             .rank = how == 2 ? 1 : 2,
                             .shape = {how == 3 ? RUNS - 1 : RUNS,
                                       how == 4 ? PRODUCTS_COLUMNS - 1 : PRODUCTS_COLUMNS}},
                    .values = &values[0][0]};
                const struct trace_image image = {
                    .runs = runs, .run_count = RUNS, .arrays = &array, .array_count = 1};
                const enum status status = products_line(&image, names[run], &arena, &text);
                const int sound = how == 1 || (how == 0 && rows[i].is_sound);
                assert_int_equal(status, sound ? STATUS_OK : STATUS_INPUT);
                const int said = how == 0 && sound && rows[i].row[PRODUCTS_ALL] >= 0.0 &&
                                 rows[i].row[PRODUCTS_OURS] > 0.0;
                assert_int_equal(text[0] != '\0', said);
                if (said) assert_non_null(strstr(text, " of mode own "));
                assert_int_equal(products_line(&image, "none", &arena, &text),
                                 how < 2 ? STATUS_OK : STATUS_INPUT);
                assert_string_equal(text, "");
                arena_close(&arena);
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_what_is_said_of_products),
        cmocka_unit_test(validate_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

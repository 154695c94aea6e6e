/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What is said of products that our kernel computed: nothing where it computed none. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
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

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(validate_what_is_said_of_products)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 * labels: repro golden threads memory
 * The root digest of each family after two updates must equal the golden, in every build: all
 * compilers, optimisation levels and machines must print tests/golden/roots.txt. And a far shape of
 * each family (with another micro-batch, layout, padding, instruction set and threads) must have
 * the same bits, which is the part of test_invariance.c that fits into a second.
 *
 * After a change that changes bits on purpose: test_invariance_roots --print >
 * tests/golden/roots.txt, and a line in CHANGELOG.md that says why. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "tests/base/helper_size.h"
#include "tests/kernels/helper_variables.h"
#include "tests/trainer/test_invariance.h"

#define GOLDEN "tests/golden/roots.txt"

/* The near shape has one sample per micro-batch, separate, padded as long as the longest, with one
 * thread. */
static struct shape reference_shape(void) {
    return shape_of(0, ISA_AUTO);
}

static void reference_outcome(const struct family *family, struct helper_outcome *out) {
    const struct shape shape = reference_shape();
    family_outcome(family, &shape, out);
}

/* The far shape has micro-batches of 8, 4 or 2, concatenated, padded by 7 or packed; v3 where the
 * machine has v4; and two threads once. */
static struct shape far_shape(uint32_t number) {
    const enum isa other = helper_has_isa(ISA_V3) ? ISA_V3 : ISA_BASE;
    return shape_of((3 - number / 3 % 3) | 4 | (number % 2 == 0 ? 8 : 24) | (number == 0 ? 32 : 0),
                    other);
}

static void print_roots(void) {
    printf("# Root digests after %d updates; written by test_invariance_roots --print\n",
           INVARIANCE_UPDATES);
    for (uint32_t number = 0; number < INVARIANCE_FAMILIES; number++) {
        struct family family;
        struct helper_outcome outcome;
        char hex[DIGEST_HEX];
        family_open(number, &family);
        reference_outcome(&family, &outcome);
        digest_hex(&outcome.root, hex);
        printf("%s %s\n", family.key, hex);
        family_close(&family);
    }
}

/* Which families are taken: all; with argument `few` two, and under a sanitizer or without
 * optimisation four, which have each choice in both values. */
static int few;

static int is_taken(uint32_t number) {
    if (few) return number % 15 == 0;
    return number % 5 == 0 || !(HELPER_UNOPTIMISED || helper_size(1, 0, 0));
}

struct golden {
    char key[64], hex[DIGEST_HEX];
};

static uint32_t read_goldens(struct golden out[INVARIANCE_FAMILIES]) {
    FILE *file = fopen(TWINSTEP_SOURCE_DIR "/" GOLDEN, "r");
    if (file == NULL) fail_msg("%s cannot be read", GOLDEN);
    char line[256];
    uint32_t count = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        if (line[0] == '#') continue;
        assert_true(count < INVARIANCE_FAMILIES);
        assert_int_equal(sscanf(line, "%63s %64s", out[count].key, out[count].hex), 2);
        count++;
    }
    fclose(file);
    return count;
}

static void validate_root(uint32_t number, const struct shape *shape, const struct golden *golden) {
    struct family family;
    struct helper_outcome outcome;
    char hex[DIGEST_HEX];
    family_open(number, &family);
    family_outcome(&family, shape, &outcome);
    digest_hex(&outcome.root, hex);
    assert_string_equal(golden->key, family.key);
    if (strcmp(golden->hex, hex) != 0)
        fail_msg("%s: root %s, golden %s", family.key, hex, golden->hex);
    family_close(&family);
}

static void validate_roots(void **state) {
    (void)state;
    const struct shape shape = reference_shape();
    struct golden goldens[INVARIANCE_FAMILIES];
    assert_int_equal(read_goldens(goldens), INVARIANCE_FAMILIES);
    for (uint32_t number = 0; number < INVARIANCE_FAMILIES; number++)
        if (is_taken(number)) validate_root(number, &shape, &goldens[number]);
}

static void verify_far_shapes(void **state) {
    (void)state;
    for (uint32_t number = 0; number < INVARIANCE_FAMILIES; number += 3) {
        if (!is_taken(number)) continue;
        struct family family;
        struct helper_outcome near, far;
        const struct shape shape = far_shape(number);
        char text[96];
        family_open(number, &family);
        reference_outcome(&family, &near);
        family_outcome(&family, &shape, &far);
        shape_text(&shape, text);
        const char *gap = helper_outcome_gap(&near, &far);
        if (gap != NULL) fail_msg("%s: %s differs at %s", family.key, gap, text);
        family_close(&family);
    }
}

int main(int argc, char **argv) {
    helper_unset_variables();
    if (argc == 2 && strcmp(argv[1], "--print") == 0) {
        print_roots();
        return 0;
    }
    few = argc == 2 && strcmp(argv[1], "few") == 0;
    if (helper_backend_lacks()) return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_roots),
        cmocka_unit_test(verify_far_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

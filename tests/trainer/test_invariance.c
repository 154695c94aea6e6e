/* SPDX-License-Identifier: Apache-2.0
 * labels: repro omp whole
 * Mode invariant, every word of its promise at once. Two updates (AdamW with decay, clipping) must
 * give the same bits of activations, gradients, norm, loss, parameters and root for every
 * micro-batch, layout, padding and thread count. The nightly run (label `whole`) takes the full
 * product of these with the widest instruction set, and with the other sets a product that is
 * thinned where it is slow; the default run takes a thinner one with each. Each value of each axis
 * is met in both: in each family with the widest set, over the families with the others. The
 * trainings are DPO and SFT, both families with grouped-query attention, tied and untied, f32 and
 * bf16, with activations full of NaN before every forward. test_invariance_roots.c is the part that
 * fits into a second.
 *
 * When you start it by hand on a busy machine, set OMP_WAIT_POLICY=passive. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/trainer/test_invariance.h"

#include "tests/base/helper_isa.h"
#include "tests/base/helper_size.h"

static void check(const struct family *family, const struct shape *shape,
                  const struct helper_outcome *like) {
    struct helper_outcome outcome;
    family_outcome(family, shape, &outcome);
    const char *gap = helper_outcome_gap(like, &outcome);
    if (gap == NULL) return;
    char text[96];
    shape_text(shape, text);
    fail_msg("%s: %s differs at %s", family->key, gap, text);
}

/* The shapes of one instruction set: `count` of them, `stride` apart from 0 on (prime to 64, so
 * that each value of each axis is met), and the bits of `turn`, another one in each family,
 * exchanged in all of them: that exchanges values of an axis, and each is met as before. */
struct tour {
    uint32_t count, stride, turn, span;
};

static uint32_t check_tour(const struct family *family, enum isa isa, struct tour tour,
                           uint32_t threads_bit, const struct helper_outcome *like) {
    uint32_t checked = 0;
    for (uint32_t k = 0; k < tour.count; k++) {
        uint32_t number = (k * tour.stride ^ tour.turn) % tour.span | threads_bit;
        struct shape shape = shape_of(number, isa);
        if (tour.stride == 1 && family->config.task == TASK_SFT && number & 4) continue;
        check(family, &shape, like);
        checked++;
    }
    return checked;
}

/* Families whose four choices are even in number: with those every pair of choices is met. */
static int is_even(uint32_t number) {
    return ((number ^ number >> 1 ^ number >> 2 ^ number >> 3) & 1) == 0;
}

/* Nightly the widest set takes all 64 shapes, AVX2 9 of them and the portable one 2 (it is 30 times
 * slower), with two threads in every fourth family; by default they take 4, 2 and, in every second
 * family, 1. The shapes 0, 21, 42 and 63 have each value of each axis; turned by 11 times the
 * number of the family they have, over the families of either task, each pair of values of two
 * axes. */
static uint32_t check_isa(const struct family *family, uint32_t number, enum isa isa,
                          const struct helper_outcome *like) {
    if (isa == backend_isa(ISA_AUTO))
        return helper_size(1, 0, 1)
                   ? check_tour(family, isa, (struct tour){64, 1, 0, 64}, 0, like)
                   : check_tour(family, isa, (struct tour){4, 21, 11 * number, 64}, 0, like);
    if (isa == ISA_BASE && !is_even(number) && helper_size(0, 1, 0)) return 0;
    if (isa == ISA_BASE && helper_size(0, 1, 0))
        return check_tour(family, isa, (struct tour){1, 19, 13 * (number / 2), 32},
                          number % 4 == 0 ? 32 : 0, like);
    if (isa == ISA_BASE)
        return check_tour(family, isa, (struct tour){2, 19, 13 * number, 32},
                          number % 4 == 0 ? 32 : 0, like);
    return check_tour(family, isa, (struct tour){(uint32_t)helper_size(9, 2, 9), 7, 5 * number, 64},
                      0, like);
}

static void verify_invariance(void **state) {
    (void)state;
    for (uint32_t number = 0; number < INVARIANCE_FAMILIES; number++) {
        struct family family;
        struct helper_outcome like;
        uint32_t checked = 0;
        char hex[DIGEST_HEX];
        family_open(number, &family);
        struct shape first = shape_of(3, backend_isa(ISA_AUTO));
        family_outcome(&family, &first, &like);
        for (int isa = ISA_BASE; isa < ISA_COUNT; isa++)
            if (helper_has_isa((enum isa)isa) && helper_has_own_objects((enum isa)isa))
                checked += check_isa(&family, number, (enum isa)isa, &like);
        digest_hex(&like.root, hex);
        print_message("%-24s %3u shapes, one root: %s\n", family.key, checked, hex);
        family_close(&family);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(verify_invariance)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

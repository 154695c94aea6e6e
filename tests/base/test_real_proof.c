/* SPDX-License-Identifier: Apache-2.0
 * labels: unit memory golden
 * The proof of base/real.h on a small scale: one float of each 2^12, floats around special points,
 * and 10^6 doubles per function, against goldens (counts and the hash of every result) and the
 * errors that docs/DETERMINISM.md states. The judge itself is tested against MPFR, and against
 * results that are wrong. TWINSTEP_PRINT_GOLDENS=1 prints the table. test_real_exhaustive.c is the
 * whole proof. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "tests/base/proof/claim.h"
#include "tests/base/proof/proof_pair.h"
#include "tests/base/proof/sample.h"

struct golden {
    enum proof_function function;
    int wide;
    uint64_t inputs, misrounded, hash;
};

static const struct golden goldens[] = {
#include "tests/base/proof/proof_goldens.inc"
};

static struct proof_tally measure(enum proof_function function, int wide) {
    if (wide && function == PROOF_POW)
        return proof_run(function, 1, sample_pow, NULL, SAMPLE_FEW_BLOCKS, 1);
    if (wide) return proof_run(function, 1, sample_mixed, NULL, SAMPLE_FEW_BLOCKS, 1);
    if (function == PROOF_POW)
        return proof_run(function, 0, sample_pow32, NULL, SAMPLE_FEW_BLOCKS, 1);
    struct proof_tally tally =
        proof_run(function, 0, sample_strided, NULL, SAMPLE_STRIDED_BLOCKS, 1);
    struct proof_tally more =
        proof_run(function, 0, sample_special, NULL, SAMPLE_SPECIAL_BLOCKS, 1);
    proof_merge(&tally, &more);
    return tally;
}

static int check(const struct golden *golden) {
    struct proof_tally tally = measure(golden->function, golden->wide);
    char name[16];
    snprintf(name, sizeof name, "%s %s", proof_names[golden->function],
             golden->wide ? "f64" : "f32");
    double claim = claim_error(name);
    if (getenv("TWINSTEP_PRINT_GOLDENS") != NULL)
        printf("{PROOF_%s, %d, %" PRIu64 ", %" PRIu64 ", 0x%016" PRIx64 "u},\n",
               proof_names[golden->function], golden->wide, tally.inputs, tally.misrounded,
               tally.hash);
    if (tally.inputs == golden->inputs && tally.misrounded == golden->misrounded &&
        tally.hash == golden->hash && tally.isa == 0 && tally.worst <= claim)
        return 0;
    fprintf(stderr,
            "%s: %" PRIu64 " inputs, %" PRIu64 " misrounded, hash %016" PRIx64 ", %" PRIu64
            " differ between instruction sets, %.9f ulp at %a, %a; stated %.9f\n",
            name, tally.inputs, tally.misrounded, tally.hash, tally.isa, tally.worst, tally.at,
            tally.at_y, claim);
    return 1;
}

static void validate_functions(void **state) {
    (void)state;
    int failures = 0;
    for (size_t i = 0; i < COUNT_OF(goldens); i++)
        failures += check(&goldens[i]);
    assert_int_equal(failures, 0);
    assert_int_equal(COUNT_OF(goldens), 2 * PROOF_FUNCTIONS);
}

/* Fills the 64th part of a block of each kind. */
static void fill_some(enum proof_function function, uint64_t index, struct proof_block *block) {
    (function == PROOF_POW ? sample_pow : sample_mixed)(function, index, NULL, block);
    block->count = PROOF_BLOCK / 64;
}

static double worst_of_reference(enum proof_function function, const struct proof_block *b) {
    double worst = 0.0;
    for (size_t i = 0; i < b->count; i++) {
        double high = pair_abs(b->high[i]);
        if (b->ask[i] == 2 || !(high > 0x1p-900 && high < 0x1p1000)) continue;
        double error = proof_reference_error(function, b->x[i], b->y[i], b->high[i], b->low[i]);
        if (!(error <= worst)) worst = error;
    }
    return worst;
}

/* Every instruction set must give the same high and low, with the error that proof_reference.c
 * derives. */
static void verify_reference(void **state) {
    (void)state;
    static const struct {
        const char *isa;
        proof_refer *refer;
    } sets[] = {{"base", proof_refer_base},
#ifndef TWINSTEP_ONE_ISA /* base/isa_objects.h */
                {"v3", proof_refer_v3},
                {"v4", proof_refer_v4}
#endif
    };
    static struct proof_block b, other;
    for (int f = 0; f < PROOF_FUNCTIONS; f++) {
        double worst = 0.0;
        for (uint64_t k = 0; k < 11; k++) {
            fill_some((enum proof_function)f, k, &b);
            memcpy(b.result, b.x, sizeof b.x);
            proof_best_judge()((enum proof_function)f, 1, &b);
            double error = worst_of_reference((enum proof_function)f, &b);
            if (!(error <= worst)) worst = error;
            for (size_t s = 0; s < COUNT_OF(sets); s++) {
                other = b;
                if (proof_machine_has(sets[s].isa)) sets[s].refer((enum proof_function)f, &other);
                assert_memory_equal(other.high, b.high, b.count * sizeof b.high[0]);
                assert_memory_equal(other.low, b.low, b.count * sizeof b.low[0]);
            }
        }
        printf("reference of %s: %a\n", proof_names[f], worst);
        /* the bounds that proof_reference.c derives */
        assert_true(worst <= (f == PROOF_POW ? 0x1p-85 : 0x1p-91));
    }
}

/* Two of three results are moved by one ulp. What the judge calls nearest must be what MPFR rounds
 * to, and a wrong result must be found. */
static int64_t move_of(size_t i) {
    return (int64_t)(i % 3) - 1;
}

static void check_judge(enum proof_function function, int wide, uint64_t index, int *wrong) {
    static struct proof_block b;
    fill_some(function, index, &b);
    for (size_t i = 0; i < b.count && !wide; i++) {
        b.x[i] = (double)(float)b.x[i];
        b.y[i] = (double)(float)b.y[i];
    }
    proof_evaluate_base(function, wide, b.x, b.y, b.result, b.count);
    for (size_t i = 0; i < b.count; i++) {
        float narrow = (float)b.result[i];
        uint32_t bits;
        memcpy(&bits, &narrow, sizeof bits);
        bits += (uint32_t)move_of(i);
        memcpy(&narrow, &bits, sizeof bits);
        if (!(pair_abs(b.result[i]) > 0x1p-120 && pair_abs(b.result[i]) < 0x1p120)) continue;
        b.result[i] =
            wide ? pair_from_bits(pair_bits(b.result[i]) + (uint64_t)move_of(i)) : (double)narrow;
    }
    proof_best_judge()(function, wide, &b);
    for (size_t i = 0; i < b.count; i++) {
        double want, error;
        if (b.ask[i] != 0 || !(pair_abs(b.want[i]) > 0x1p-120)) continue;
        proof_ask(function, wide, b.x[i], b.y[i], b.result[i], &want, &error);
        /* errors are in ulps; both sides know them far better than 1e-9 */
        if (pair_bits(want) != pair_bits(b.want[i]) || pair_abs(error - b.error[i]) > 1e-9)
            fail_msg("%s(%a, %a) = %a: judged %a, %.12f; MPFR %a, %.12f", proof_names[function],
                     b.x[i], b.y[i], b.result[i], b.want[i], b.error[i], want, error);
        if (b.result[i] != want && error < 0.499) /* 0.5 except at powers of two */
            fail_msg("%s(%a, %a) = %a: nearest %a, error %.12f", proof_names[function], b.x[i],
                     b.y[i], b.result[i], want, error);
        *wrong += b.result[i] != want;
    }
}

static void verify_judge(void **state) {
    (void)state;
    for (int f = 0; f < PROOF_FUNCTIONS; f++) {
        int wrong = 0;
        for (int wide = 0; wide < 2; wide++)
            for (uint64_t index = 0; index < 8; index++)
                check_judge((enum proof_function)f, wide, index, &wrong);
        assert_in_range(wrong, 100, 2 * 8 * PROOF_BLOCK / 64);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_reference),
        cmocka_unit_test(verify_judge),
        cmocka_unit_test(validate_functions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

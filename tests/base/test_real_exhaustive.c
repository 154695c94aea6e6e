/* SPDX-License-Identifier: Apache-2.0
 * labels: nightly
 * Each f32 function of base/real.h on all 2^32 floats, each f64 function on 10^8 doubles, and pow
 * on samples and on the lines that trainings use: every result is compared with the exact value,
 * and each instruction set of this machine with the others. The rows printed must be those of
 * docs/DETERMINISM.md. The test uses two threads; arguments choose rows: test_real_exhaustive "exp
 * f32". */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/macro.h"
#include "tests/base/proof/claim.h"
#include "tests/base/proof/sample.h"

#define THREADS 2

static const double inverse_root = -0.5, square = 2.0;

static const struct row {
    const char *name;
    enum proof_function function;
    int wide;
    proof_fill *fill;
    const double *context;
    uint64_t blocks;
} rows[] = {
#define UNARY(function, name)                                                                      \
    {name " f32", function, 0, sample_all, NULL, SAMPLE_ALL_BLOCKS}, {                             \
        name " f64", function, 1, sample_mixed, NULL, SAMPLE_MANY_BLOCKS                           \
    }
    UNARY(PROOF_EXP, "exp"),
    UNARY(PROOF_EXP2, "exp2"),
    UNARY(PROOF_EXPM1, "expm1"),
    UNARY(PROOF_TANH, "tanh"),
    UNARY(PROOF_LOG, "log"),
    UNARY(PROOF_LOG1P, "log1p"),
    UNARY(PROOF_SIN, "sin"),
    UNARY(PROOF_COS, "cos"),
    {"pow f32", PROOF_POW, 0, sample_pow32, NULL, SAMPLE_MANY_BLOCKS},
    {"pow f64", PROOF_POW, 1, sample_pow, NULL, SAMPLE_MANY_BLOCKS},
    {"beta^t f32", PROOF_POW, 0, sample_beta32, NULL, SAMPLE_BETA_BLOCKS},
    {"beta^t f64", PROOF_POW, 1, sample_beta, NULL, SAMPLE_BETA_BLOCKS},
    {"theta^(2i/D) f32", PROOF_POW, 0, sample_theta32, NULL, SAMPLE_THETA_BLOCKS},
    {"theta^(2i/D) f64", PROOF_POW, 1, sample_theta, NULL, SAMPLE_THETA_BLOCKS},
    {"x^-0.5 f32", PROOF_POW, 0, sample_line, &inverse_root, SAMPLE_LINE_BLOCKS},
    {"x^2 f32", PROOF_POW, 0, sample_line, &square, SAMPLE_LINE_BLOCKS},
};

static void prove(void **state) {
    const struct row *row = (const struct row *)*state;
    struct timespec began, ended;
    char measured[CLAIM_ROW], claimed[CLAIM_ROW] = "nothing";
    timespec_get(&began, TIME_UTC);
    struct proof_tally tally =
        proof_run(row->function, row->wide, row->fill, row->context, row->blocks, THREADS);
    timespec_get(&ended, TIME_UTC);
    claim_format(measured, row->name, &tally, row->function == PROOF_POW);
    printf("%s\n%s: %llu below 2^-126, %llu special, %llu decided by MPFR, %llu differ between "
           "instruction sets, %lld s\n",
           measured, row->name, (unsigned long long)tally.flushed,
           (unsigned long long)tally.special, (unsigned long long)tally.asked,
           (unsigned long long)tally.isa, (long long)(ended.tv_sec - began.tv_sec));
    fflush(stdout);
    assert_int_equal(tally.isa, 0);
    (void)claim_find(claimed, row->name);
    assert_string_equal(measured, claimed);
}

int main(int argc, char **argv) {
    struct CMUnitTest tests[COUNT_OF(rows)];
    size_t count = 0;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        int chosen = argc == 1;
        for (int a = 1; a < argc; a++)
            chosen |= strcmp(argv[a], rows[i].name) == 0;
        void *row = (void *)(uintptr_t)&rows[i]; /* cmocka's state is not const; prove reads it */
        if (chosen) tests[count++] = (struct CMUnitTest){rows[i].name, prove, NULL, NULL, row};
    }
    return count == 0 ? 1 : _cmocka_run_group_tests("prove", tests, count, NULL, NULL);
}

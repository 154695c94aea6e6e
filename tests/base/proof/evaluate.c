/* SPDX-License-Identifier: Apache-2.0
 * Evaluates base/real.h on arrays; compiled once per instruction set with the flags of the build.
 * This is what the proof judges. f32 arguments and results are passed as doubles, exactly. */
#include "base/real.h"
#include "tests/base/proof/proof.h"
#include "tests/base/proof/proof_isa.h"

#define CASE(tag, name)                                                                            \
    case PROOF_##tag:                                                                              \
        if (wide)                                                                                  \
            for (size_t i = 0; i < count; i++)                                                     \
                result[i] = real_##name##_f64(x[i]);                                               \
        else                                                                                       \
            for (size_t i = 0; i < count; i++)                                                     \
                result[i] = (double)real_##name##_f32((float)x[i]);                                \
        break

static void evaluate_pow(int wide, const double *x, const double *y, double *result, size_t count) {
    for (size_t i = 0; i < count; i++)
        result[i] =
            wide ? real_pow_f64(x[i], y[i]) : (double)real_pow_f32((float)x[i], (float)y[i]);
}

void JOIN(proof_evaluate_, TWINSTEP_PROOF_ISA)(enum proof_function function, int wide,
                                               const double *x, const double *y, double *result,
                                               size_t count) {
    switch (function) {
        CASE(EXP, exp);
        CASE(EXP2, exp2);
        CASE(EXPM1, expm1);
        CASE(TANH, tanh);
        CASE(LOG, log);
        CASE(LOG1P, log1p);
        CASE(SIN, sin);
        CASE(COS, cos);
    case PROOF_POW:
        evaluate_pow(wide, x, y, result, count);
        break;
    case PROOF_FUNCTIONS:
        break;
    }
}

/* SPDX-License-Identifier: Apache-2.0
 * Asks MPFR the same questions, at 200 bits, for the inputs where the reference does not decide,
 * and for the error of the reference itself. sin and cos beyond 2^20 are NaN: base/real_trig.h. */
#include <mpfr.h>

#include "tests/base/proof/proof_pair.h"
#include "tests/base/proof/proof.h"

#define BITS 200

typedef int mpfr_unary(mpfr_t, const mpfr_t, mpfr_rnd_t);

static int exact_exp2(mpfr_t y, const mpfr_t x, mpfr_rnd_t round) {
    return mpfr_exp2(y, x, round);
}

static void exact_value(mpfr_t v, enum proof_function function, double x, double y) {
    static mpfr_unary *const unary[] = {mpfr_exp, exact_exp2, mpfr_expm1, mpfr_tanh,
                                        mpfr_log, mpfr_log1p, mpfr_sin,   mpfr_cos};
    mpfr_t a, b;
    mpfr_init2(a, 53);
    mpfr_set_d(a, x, MPFR_RNDN);
    if (function == PROOF_POW) {
        mpfr_init2(b, 53);
        mpfr_set_d(b, y, MPFR_RNDN);
        mpfr_pow(v, a, b, MPFR_RNDN);
        mpfr_clear(b);
    } else if ((function == PROOF_SIN || function == PROOF_COS) && pair_abs(x) > 0x1p20) {
        mpfr_set_nan(v);
    } else {
        unary[function](v, a, MPFR_RNDN);
    }
    mpfr_clear(a);
}

/* Returns |v - got| in ulps of v; an infinite `got` counts as the power of two after the largest
 * number. Where v is no number, `got` is never the value. */
static double error_of(mpfr_t v, double got, int wide) {
    const double never = 0x1p1000;
    if (!mpfr_number_p(v) || got != got) return never;
    if (mpfr_zero_p(v)) return got < 0.0 || got > 0.0 ? never : 0.0;
    mpfr_t reach;
    mpfr_init2(reach, 79); /* as the reference: 2^k (1 - 2^-90) takes the ulp above 2^k */
    mpfr_set(reach, v, MPFR_RNDN);
    long ulp = (long)mpfr_get_exp(reach) - (wide ? 53 : 24);
    long least = wide ? -1074 : -149;
    if (ulp < least) ulp = least;
    mpfr_clear(reach);
    mpfr_init2(reach, BITS + 60);
    mpfr_set_d(reach, got, MPFR_RNDN);
    if (mpfr_inf_p(reach))
        mpfr_set_si_2exp(reach, got < 0.0 ? -1 : 1, wide ? 1024 : 128, MPFR_RNDN);
    mpfr_sub(reach, reach, v, MPFR_RNDN);
    mpfr_mul_2si(reach, reach, -ulp, MPFR_RNDN);
    double error = pair_abs(mpfr_get_d(reach, MPFR_RNDN));
    mpfr_clear(reach);
    return error < never ? error : never;
}

void proof_ask(enum proof_function function, int wide, double x, double y, double result,
               double *want, double *error) {
    mpfr_t v;
    mpfr_init2(v, BITS);
    exact_value(v, function, x, y);
    *want = wide ? mpfr_get_d(v, MPFR_RNDN) : (double)mpfr_get_flt(v, MPFR_RNDN);
    int same = pair_bits(*want) == pair_bits(result) || (*want != *want && result != result);
    int number = pair_abs(*want) < 0x1p1023 * 2.0;
    *error = same && !number ? 0.0 : error_of(v, result, wide);
    mpfr_clear(v);
}

double proof_reference_error(enum proof_function function, double x, double y, double high,
                             double low) {
    mpfr_t v, w;
    mpfr_init2(v, BITS);
    mpfr_init2(w, BITS);
    exact_value(v, function, x, y);
    mpfr_set_d(w, high, MPFR_RNDN);
    mpfr_add_d(w, w, low, MPFR_RNDN);
    mpfr_sub(w, w, v, MPFR_RNDN);
    if (!mpfr_zero_p(w)) mpfr_div(w, w, v, MPFR_RNDN);
    double error = pair_abs(mpfr_get_d(w, MPFR_RNDN));
    mpfr_clear(v);
    mpfr_clear(w);
    return error;
}

/* SPDX-License-Identifier: Apache-2.0
 * Fills the constants of the reference. Every value comes from MPFR at 300 bits; none is typed
 * in. */
#include "tests/base/proof/proof_table.h"

#include <mpfr.h>

#define BITS 300

static struct pair pair_of(mpfr_t value) {
    mpfr_t rest;
    mpfr_init2(rest, BITS);
    double high = mpfr_get_d(value, MPFR_RNDN);
    mpfr_sub_d(rest, value, high, MPFR_RNDN);
    double low = mpfr_get_d(rest, MPFR_RNDN);
    mpfr_clear(rest);
    return (struct pair){high, low};
}

/* Returns the leading 33 bits of value, which keeps the rest. */
static double take(mpfr_t value) {
    mpfr_t first;
    mpfr_init2(first, 33);
    mpfr_set(first, value, MPFR_RNDZ);
    double taken = mpfr_get_d(first, MPFR_RNDN);
    mpfr_sub(value, value, first, MPFR_RNDN);
    mpfr_clear(first);
    return taken;
}

static void fill_exp(struct proof_table *table, mpfr_t v) {
    for (long i = 0; i < 128; i++) {
        mpfr_set_si(v, i, MPFR_RNDN);
        mpfr_div_ui(v, v, 128, MPFR_RNDN);
        mpfr_exp2(v, v, MPFR_RNDN);
        struct pair p = pair_of(v);
        table->exp2_high[i] = p.high;
        table->exp2_low[i] = p.low;
    }
    mpfr_const_log2(v, MPFR_RNDN);
    table->ln2 = pair_of(v);
    mpfr_div_ui(v, v, 128, MPFR_RNDN);
    table->ln2_first = take(v);
    table->ln2_second = take(v);
    table->ln2_rest = pair_of(v);
}

/* An m in [1, 2) has as its index i the leading 7 bits of its fraction; from i = 53 on m/2 is used.
 * c is near the inverse of the middle of the numbers with that index, and 1 on both sides of m =
 * 1. */
static void fill_log(struct proof_table *table, mpfr_t v) {
    for (int i = 0; i < 128; i++) {
        double middle = (1.0 + (i + 0.5) / 128.0) * (i < 53 ? 1.0 : 0.5);
        double c = i == 0 || i == 127 ? 1.0 : (double)(int)(512.0 / middle + 0.5) / 512.0;
        mpfr_set_d(v, c, MPFR_RNDN);
        mpfr_log(v, v, MPFR_RNDN);
        mpfr_neg(v, v, MPFR_RNDN);
        struct pair p = pair_of(v);
        table->inverse[i] = c;
        table->log_high[i] = c < 1.0 || c > 1.0 ? p.high : 0.0; /* not -0 */
        table->log_low[i] = p.low;
    }
}

static void fill_trig(struct proof_table *table, mpfr_t v) {
    for (long i = -TABLE_ANGLES; i <= TABLE_ANGLES; i++) {
        mpfr_set_si(v, i, MPFR_RNDN);
        mpfr_div_ui(v, v, 128, MPFR_RNDN);
        mpfr_sin(v, v, MPFR_RNDN);
        struct pair p = pair_of(v);
        table->sin_high[i + TABLE_ANGLES] = p.high;
        table->sin_low[i + TABLE_ANGLES] = p.low;
        mpfr_set_si(v, i, MPFR_RNDN);
        mpfr_div_ui(v, v, 128, MPFR_RNDN);
        mpfr_cos(v, v, MPFR_RNDN);
        p = pair_of(v);
        table->cos_high[i + TABLE_ANGLES] = p.high;
        table->cos_low[i + TABLE_ANGLES] = p.low;
    }
    mpfr_const_pi(v, MPFR_RNDN);
    mpfr_div_ui(v, v, 2, MPFR_RNDN);
    table->half_pi_first = take(v);
    table->half_pi_second = take(v);
    table->half_pi_third = take(v);
    table->half_pi_rest = pair_of(v);
}

static void fill_series(struct proof_table *table, mpfr_t v) {
    for (unsigned long n = 1; n < 16; n++) {
        mpfr_fac_ui(v, n, MPFR_RNDN);
        mpfr_ui_div(v, 1, v, MPFR_RNDN);
        table->inverse_factorial[n] = pair_of(v);
        mpfr_set_ui(v, n, MPFR_RNDN);
        mpfr_ui_div(v, 1, v, MPFR_RNDN);
        table->inverse_integer[n] = pair_of(v);
    }
}

const struct proof_table *proof_table(void) {
    static struct proof_table table;
    static int filled;
    if (filled) return &table;
    mpfr_t v;
    mpfr_init2(v, BITS);
    fill_exp(&table, v);
    fill_log(&table, v);
    fill_trig(&table, v);
    fill_series(&table, v);
    mpfr_clear(v);
    filled = 1;
    return &table;
}

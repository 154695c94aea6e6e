/* SPDX-License-Identifier: Apache-2.0
 * The constants of the reference (proof_reference.c) as high + low, rounded from MPFR's values when
 * a test starts (proof_table.c), each with an error below 2^-106 of itself. */
#ifndef TWINSTEP_TESTS_BASE_PROOF_PROOF_TABLE_H
#define TWINSTEP_TESTS_BASE_PROOF_PROOF_TABLE_H

#include "tests/base/proof/proof_pair.h"

#define TABLE_ANGLES 101 /* round(pi/4 * 128) */

struct proof_table {
    double exp2_high[128], exp2_low[128]; /* 2^(i/128) */
    double inverse[128]; /* c, 10 bits, near 128/(128.5 + i), halved: see proof_table.c */
    double log_high[128], log_low[128];                                   /* -log c */
    double sin_high[2 * TABLE_ANGLES + 1], sin_low[2 * TABLE_ANGLES + 1]; /* sin((i - 101)/128) */
    double cos_high[2 * TABLE_ANGLES + 1], cos_low[2 * TABLE_ANGLES + 1];
    struct pair ln2;
    double ln2_first, ln2_second; /* of ln2/128: 33 bits each, then the rest */
    struct pair ln2_rest;
    double half_pi_first, half_pi_second, half_pi_third; /* 33 bits each, then the rest */
    struct pair half_pi_rest;
    struct pair inverse_factorial[16]; /* 1/n! */
    struct pair inverse_integer[16];   /* 1/n */
};

/* Filled by the first call, which must not race with another. */
const struct proof_table *proof_table(void);

#endif

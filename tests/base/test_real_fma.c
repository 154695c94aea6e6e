/* SPDX-License-Identifier: Apache-2.0
 * labels: unit
 * The fma for machines without FMA hardware must equal the C library's on 2e7 triples: any bits,
 * near cancellation, near ties, subnormal and overflowing results. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "base/real.h"
#include "tests/base/helper_random.h"

static void check(float a, float b, float c) {
    float ours = real_fma_portable_f32(a, b, c);
    float libm = fmaf(a, b, c);
    if (real_bits_f32(ours) == real_bits_f32(libm) || (ours != ours && libm != libm)) return;
    fail_msg("fma(%a, %a, %a) = %a, expected %a", (double)a, (double)b, (double)c, (double)ours,
             (double)libm);
}

/* The significands are short and the exponents close, so that ties and exact sums are frequent. */
static float tie_operand(struct random_source *source, int bits, int low, int high) {
    uint64_t random = random_bits(source);
    float significand = (float)(random >> (64 - bits));
    int exponent = low + (int)(random % (uint64_t)(high - low + 1));
    return ldexpf((random & 0x800) != 0 ? -significand : significand, exponent);
}

static void corroborate_fma(void **state) {
    (void)state;
    struct random_source source = {4};
    for (int i = 0; i < 4000000; i++) {
        float a = random_any_f32(&source);
        float b = random_any_f32(&source);
        check(a, b, random_any_f32(&source));
        check(a, b, -(a * b) * (1.0f + (float)random_between(&source, -1e-6, 1e-6)));
        float x = tie_operand(&source, 12, -20, 0);
        float y = tie_operand(&source, 14, -20, 0);
        check(x, y, tie_operand(&source, 24, -30, 10));
        check(x * 0x1p-60f, y * 0x1p-60f, tie_operand(&source, 24, -149, -120));
        check(x * 0x1p60f, y * 0x1p50f, tie_operand(&source, 24, 80, 103));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(corroborate_fma)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

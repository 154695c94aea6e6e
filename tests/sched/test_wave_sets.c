/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The cosine and the power of schedules, compiled with the instruction for fma and without, have
 * the same bits: over drawn arguments and where turns end. What the bits must be, test_sched_exact
 * and the frameworks' tables say. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "determinism/philox.h"
#include "sched/wave.c" /* for the functions that this machine would not choose */
#include "tests/base/helper_size.h"

#if defined(__x86_64__)
static double drawn(uint32_t i, uint32_t place, double low, double high) {
    const struct philox_block at = {{i, place, 0, 0}};
    return low + (high - low) * (double)philox_draw(at, UINT64_C(0x3a7e)).word[0] * 0x1p-32;
}

static void same(double a, double b, double x, double y) {
    if (real_bits_f64(a) != real_bits_f64(b))
        fail_msg("of %a and %a: %a without the instruction, %a with it", x, y, a, b);
}

static void corroborate_cosines(void **state) {
    (void)state;
    const uint32_t count = (uint32_t)helper_size(2000, 50000, 50000);
    for (uint32_t i = 0; i < count; i++) {
        const double x = i % 4 == 0 ? SCHED_PI * 0.25 * (double)i
                                    : drawn(i, 0, 0.0,
                                            i % 4 == 1   ? 1.0
                                            : i % 4 == 2 ? 7.0
                                                         : 0x1p20);
        same(cosine_plain(x), cosine_fma(x), x, 0.0);
        same(cosine_plain(-x), cosine_fma(-x), -x, 0.0);
    }
}

static void corroborate_powers(void **state) {
    (void)state;
    const uint32_t count = (uint32_t)helper_size(2000, 50000, 50000);
    for (uint32_t i = 0; i < count; i++) {
        const double x = drawn(i, 1, 0.0, i % 2 == 0 ? 1.0 : 1e6), y = drawn(i, 2, -3.0, 3.0);
        same(power_plain(x, y), power_fma(x, y), x, y);
    }
}
#endif

int main(void) {
#if defined(__x86_64__)
    if (!__builtin_cpu_supports("fma")) return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_cosines),
        cmocka_unit_test(corroborate_powers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
#else
    return 77;
#endif
}

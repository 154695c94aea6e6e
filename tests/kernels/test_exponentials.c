/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * kernels/exponentials.h: on every instruction set, and however many numbers are asked for at once,
 * each is real_exp_f64() of its own, and no number beside them is touched. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/isa_objects.h"
#include "base/macro.h"
#include "base/real.h"
#include "determinism/stream.h"
#include "kernels/cpu/exponential_pieces.h"
#include "kernels/exponentials.h"
#include "kernels/op.h"

#define F64(isa) OBJECTS_OF(f64_f64, isa)
EXPONENTIAL_PIECES(F64(base))
EXPONENTIAL_PIECES(F64(OBJECTS_V3))
EXPONENTIAL_PIECES(F64(OBJECTS_V4))
#define FUNCTION_OF(variant) exponential_pieces_##variant
#define FUNCTION(variant) FUNCTION_OF(variant)

enum { MOST = 77 };

static const double untouched = -77.0;

/* Numbers of logits less their maximum, and those at the ends of what exp() has. */
static double number(size_t i) {
    static const double ends[] = {0.0,
                                  -0.0,
                                  1.0,
                                  -1.0,
                                  709.7,
                                  709.9,
                                  -745.1,
                                  -745.2,
                                  -0x1p-60,
                                  0x1p-60,
                                  1000.5,
                                  -1000.5,
                                  -708.4,
                                  (double)INFINITY,
                                  -(double)INFINITY};
    const struct stream_address address = {.stream = STREAM_INIT, .op = 3};
    struct stream_site site;
    if (i < COUNT_OF(ends)) return ends[i];
    assert_int_equal(stream_pack(&address, &site), STATUS_OK);
    return -40.0 * stream_uniform(stream_word(11, site, (uint32_t)i));
}

static void check(exponential_pieces *function, size_t first, size_t count, const char *who) {
    double numbers[MOST + 2];
    for (size_t i = 0; i < MOST + 2; i++)
        numbers[i] = i == 0 || i > count ? untouched : number(first + i - 1);
    function(numbers + 1, count);
    for (size_t i = 0; i < MOST + 2; i++) {
        const double want = i == 0 || i > count ? untouched : real_exp_f64(number(first + i - 1));
        if (memcmp(&numbers[i], &want, sizeof want) != 0)
            fail_msg("%s, %zu numbers from %zu, number %zu: %a, due %a", who, count, first, i,
                     numbers[i], want);
    }
}

static void corroborate_each(void **state) {
    static const struct {
        const char *name;
        enum isa isa;
        exponential_pieces *function;
    } sets[] = {{"this machine", ISA_AUTO, exponentials},
                {"base", ISA_BASE, FUNCTION(F64(base))},
                {"v3", ISA_V3, FUNCTION(F64(OBJECTS_V3))},
                {"v4", ISA_V4, FUNCTION(F64(OBJECTS_V4))}};
    const struct op_table *unused;
    int met = 0;
    (void)state;
    for (size_t s = 0; s < COUNT_OF(sets); s++) {
        if (backend_ops(sets[s].isa, DTYPE_F32, DTYPE_F32, &unused) != STATUS_OK) continue;
        for (size_t count = 0; count <= MOST; count++)
            check(sets[s].function, count * 13, count, sets[s].name);
        check(sets[s].function, 0, MOST, sets[s].name);
        met++;
    }
    assert_true(met > 1);
}

/* Known from mathematics: 1 at 0, and no number below the smallest or above the largest. */
static void validate_known(void **state) {
    double numbers[] = {0.0, -1000.5, 1000.5, 1.0};
    (void)state;
    exponentials(numbers, COUNT_OF(numbers));
    assert_true(numbers[0] == 1.0);
    assert_true(numbers[1] == 0.0);
    assert_true(isinf(numbers[2]));
    /* e, within one unit in the last place (base/real.h) */
    assert_true(real_abs_f64(numbers[3] - 0x1.5bf0a8b145769p+1) <= 0x1p-51);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_each),
        cmocka_unit_test(validate_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

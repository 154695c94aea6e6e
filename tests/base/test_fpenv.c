/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * base/fpenv.c: the default environment must pass; each control bit that changes results must be
 * refused and named; sticky flags must be ignored. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/fpenv.h"

static void validate_default(void **state) {
    char text[100];
    (void)state;
    assert_int_equal(fpenv_check(), STATUS_OK);
    fpenv_describe(text, sizeof text);
    assert_non_null(strstr(text, "to nearest"));
    assert_non_null(strstr(text, "kept"));
    fpenv_describe(text, 8);
    assert_int_equal(strlen(text), 7);
}

#if defined(__x86_64__)
#include <xmmintrin.h>

static void validate_refusals(void **state) {
    (void)state;
    static const struct {
        unsigned bits;
        const char *text;
        const char *described;
    } cases[] = {
        {0x8000u, "results flushed", "flushed"},
        {0x0040u, "operands read as zero", "flushed"},
        {0x8040u, "operands read as zero", "flushed"}, /* what -ffast-math sets */
        {0x2000u, "rounding down", "round down"},
        {0x4000u, "rounding up", "round up"},
        {0x6000u, "rounding towards zero", "towards zero"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        unsigned before = _mm_getcsr();
        char text[100];
        _mm_setcsr(before | cases[i].bits);
        enum status status = fpenv_check();
        fpenv_describe(text, sizeof text);
        _mm_setcsr(before);
        assert_int_equal(status, STATUS_UNSUPPORTED);
        assert_non_null(strstr(status_text(), cases[i].text));
        assert_non_null(strstr(text, cases[i].described));
    }
    assert_int_equal(fpenv_check(), STATUS_OK);
}

static void verify_sticky_flags_do_not_matter(void **state) {
    (void)state;
    unsigned before = _mm_getcsr();
    uint32_t control = fpenv_control();
    _mm_setcsr(before | 0x3fu);
    enum status status = fpenv_check();
    uint32_t control_with_flags = fpenv_control();
    _mm_setcsr(before);
    assert_int_equal(status, STATUS_OK);
    assert_int_equal(control, control_with_flags);
    assert_int_equal(control, 0x1f80);
}

/* What foreign code may do to each unit must be found and undone; sticky flags must be ignored. */
static void validate_keep_and_restore(void **state) {
    (void)state;
    static const unsigned bits[] = {0x8000u, 0x0040u, 0x2000u, 0x6000u};
    struct fpenv_kept kept;
    fpenv_keep(&kept);
    assert_false(fpenv_changed(&kept));
    for (size_t i = 0; i < COUNT_OF(bits); i++) {
        _mm_setcsr(_mm_getcsr() | bits[i]);
        assert_true(fpenv_changed(&kept));
        fpenv_restore(&kept);
        assert_false(fpenv_changed(&kept));
        assert_int_equal(fpenv_control(), 0x1f80);
    }
    _mm_setcsr(_mm_getcsr() & ~0x0200u); /* division by zero traps */
    assert_true(fpenv_changed(&kept));
    fpenv_restore(&kept);
    _mm_setcsr(_mm_getcsr() | 0x3fu);
    assert_false(fpenv_changed(&kept));
    unsigned short unit = 0;
    __asm__ volatile("fnstcw %0" : "=m"(unit));
    const unsigned short up = (unsigned short)(unit | 0x0800u);
    __asm__ volatile("fldcw %0" : : "m"(up)); /* the x87 unit alone */
    assert_true(fpenv_changed(&kept));
    fpenv_restore(&kept);
    assert_false(fpenv_changed(&kept));
}
#else
static void validate_refusals(void **state) {
    (void)state;
    skip();
}

static void validate_keep_and_restore(void **state) {
    (void)state;
    struct fpenv_kept kept;
    fpenv_keep(&kept);
    fesetround(FE_DOWNWARD);
    assert_true(fpenv_changed(&kept));
    fpenv_restore(&kept);
    assert_false(fpenv_changed(&kept));
}

static void verify_sticky_flags_do_not_matter(void **state) {
    (void)state;
    assert_int_equal(fpenv_control(), 0);
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_default),
        cmocka_unit_test(validate_refusals),
        cmocka_unit_test(verify_sticky_flags_do_not_matter),
        cmocka_unit_test(validate_keep_and_restore),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

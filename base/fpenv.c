/* SPDX-License-Identifier: Apache-2.0
 * Reads the control register MXCSR on x86-64; on other machines finds out by trying the arithmetic.
 * Only fpenv_restore() changes the environment. */
#include "base/fpenv.h"

#include <float.h>
#include <stdio.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#define MXCSR_STICKY 0x003fu
#define MXCSR_DAZ 0x0040u
#define MXCSR_FTZ 0x8000u
#define MXCSR_ROUNDING 0x6000u
#endif

struct environment {
    /* Whether subnormal results become zero (FTZ), and whether subnormal operands are read as zero
     * (DAZ). */
    int flushes_results;
    int flushes_operands;
    int nearest; /* whether it rounds to nearest */
    const char *rounding;
};

static struct environment environment_read(void) {
    struct environment e;
#if defined(__x86_64__)
    static const char *const names[] = {"to nearest", "down", "up", "towards zero"};
    uint32_t control = fpenv_control();
    e.flushes_results = (control & MXCSR_FTZ) != 0;
    e.flushes_operands = (control & MXCSR_DAZ) != 0;
    e.nearest = (control & MXCSR_ROUNDING) == 0;
    e.rounding = names[(control & MXCSR_ROUNDING) >> 13];
#else
    volatile float least_normal = FLT_MIN;
    volatile float subnormal = 0x1p-149f;
    volatile float one = 1.0f;
    volatile float half_ulp = 0x1p-24f;
    volatile float up = one + half_ulp;
    volatile float down = one - half_ulp * 0.75f;
    volatile float negative = -one - half_ulp;
    e.flushes_results = least_normal * 0.5f == 0.0f;
    e.flushes_operands = subnormal * 0x1p100f == 0.0f;
    e.nearest = up == 1.0f && down == 1.0f - 0x1p-24f && negative == -1.0f;
    e.rounding = e.nearest ? "to nearest" : "not to nearest";
#endif
    return e;
}

uint32_t fpenv_control(void) {
#if defined(__x86_64__)
    return (uint32_t)_mm_getcsr() & ~MXCSR_STICKY;
#else
    return 0;
#endif
}

enum status fpenv_check(void) {
    struct environment e = environment_read();
    if (!e.nearest || e.flushes_results || e.flushes_operands)
        FAIL(STATUS_UNSUPPORTED,
             "floating-point environment: expected rounding to nearest with subnormals kept, "
             "found rounding %s%s%s (control word %04x); a library built with -ffast-math does "
             "this to a whole process",
             e.rounding, e.flushes_results ? ", subnormal results flushed to zero" : "",
             e.flushes_operands ? ", subnormal operands read as zero" : "",
             (unsigned)fpenv_control());
    return STATUS_OK;
}

void fpenv_describe(char *text, size_t size) {
    struct environment e = environment_read();
    const char *subnormals = e.flushes_results || e.flushes_operands ? "flushed" : "kept";
#if defined(__x86_64__)
    snprintf(text, size, "round %s, subnormals %s (MXCSR control %04x)", e.rounding, subnormals,
             (unsigned)fpenv_control());
#else
    snprintf(text, size, "round %s, subnormals %s", e.rounding, subnormals);
#endif
}

void fpenv_keep(struct fpenv_kept *out) {
    const struct environment e = environment_read();
    fegetenv(&out->all);
    out->rounding = fegetround();
    out->control = fpenv_control();
    out->flushes = e.flushes_results + 2 * e.flushes_operands;
}

/* fegetround() also looks at the x87 unit's rounding mode, which MXCSR does not show. */
int fpenv_changed(const struct fpenv_kept *kept) {
    if (fpenv_control() != kept->control || fegetround() != kept->rounding) return 1;
    const struct environment e = environment_read();
    return e.flushes_results + 2 * e.flushes_operands != kept->flushes;
}

void fpenv_restore(const struct fpenv_kept *kept) {
    fesetenv(&kept->all);
}

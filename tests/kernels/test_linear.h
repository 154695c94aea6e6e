/* SPDX-License-Identifier: Apache-2.0
 * The material that the tests of the linear ops share: the nine variants, problems filled from an
 * addressed stream, and rounding written a second time.
 *
 * Nothing here comes from kernels/cpu but the functions under test; sums and roundings are the
 * plainest loops over fma(), rint() and ldexp(). */
#ifndef TWINSTEP_TESTS_KERNELS_TEST_LINEAR_H
#define TWINSTEP_TESTS_KERNELS_TEST_LINEAR_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/splits.h"
#include "determinism/stream.h"
#include "kernels/cpu/gemm.h"
#include "kernels/op.h"
#include "tests/base/helper_isa.h"

#ifdef TWINSTEP_ONE_ISA /* base/isa_objects.h */
#define EACH_ISA(do_variant, carrier, accumulator)                                                 \
    do_variant(carrier, accumulator, base) do_variant(carrier, accumulator, base)                  \
        do_variant(carrier, accumulator, base)
#define EACH_VARIANT(do_variant)                                                                   \
    EACH_ISA(do_variant, f32, f32) EACH_ISA(do_variant, f32, f64) EACH_ISA(do_variant, f64, f64)
#else
#define EACH_VARIANT(do_variant)                                                                   \
    do_variant(f32, f32, base) do_variant(f32, f32, v3) do_variant(f32, f32, v4)                   \
        do_variant(f32, f64, base) do_variant(f32, f64, v3) do_variant(f32, f64, v4)               \
            do_variant(f64, f64, base) do_variant(f64, f64, v3) do_variant(f64, f64, v4)
#endif

#define DECLARE_VARIANT(carrier, accumulator, isa)                                                 \
    void linear_forward_##carrier##_##accumulator##_##isa(const struct op_call *,                  \
                                                          const struct linear_forward_args *);     \
    void linear_input_##carrier##_##accumulator##_##isa(const struct op_call *,                    \
                                                        const struct linear_input_args *);         \
    void linear_weight_##carrier##_##accumulator##_##isa(const struct op_call *,                   \
                                                         const struct linear_weight_args *);
EACH_VARIANT(DECLARE_VARIANT)

enum { LEVEL_base = 0, LEVEL_v3, LEVEL_v4 };

struct variant {
    const char *name;
    size_t carrier, accumulator; /* bytes */
    int level;
    void (*forward)(const struct op_call *, const struct linear_forward_args *);
    void (*input)(const struct op_call *, const struct linear_input_args *);
    void (*weight)(const struct op_call *, const struct linear_weight_args *);
};

#define BYTES_f32 sizeof(float)
#define BYTES_f64 sizeof(double)
#define VARIANT_ROW(carrier, accumulator, isa)                                                     \
    {#carrier "_" #accumulator "_" #isa,                                                           \
     BYTES_##carrier,                                                                              \
     BYTES_##accumulator,                                                                          \
     LEVEL_##isa,                                                                                  \
     linear_forward_##carrier##_##accumulator##_##isa,                                             \
     linear_input_##carrier##_##accumulator##_##isa,                                               \
     linear_weight_##carrier##_##accumulator##_##isa},
static const struct variant variants[] = {EACH_VARIANT(VARIANT_ROW)};

static inline int variant_runs(const struct variant *variant) {
    const int v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const int v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                   __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
    if (HELPER_ISA_SETS == 1 && (variant - variants) % 3 != 0)
        return 0; /* the same objects again */
    return variant->level == LEVEL_base || (variant->level == LEVEL_v3 && v3) || v4;
}

/* Returns element i of a buffer of floats (4 bytes) or doubles (8). */
static inline double element(const void *buffer, size_t bytes, size_t i) {
    return bytes == sizeof(float) ? (double)((const float *)buffer)[i]
                                  : ((const double *)buffer)[i];
}

static inline void set_element(void *buffer, size_t bytes, size_t i, double value) {
    if (bytes == sizeof(float)) {
        ((float *)buffer)[i] = (float)value;
    } else {
        ((double *)buffer)[i] = value;
    }
}

/* Adds one term a * b to a chain, in the accumulator's format. */
static inline double chain_step(size_t bytes, double a, double b, double sum) {
    return bytes == sizeof(float) ? (double)fmaf((float)a, (float)b, (float)sum) : fma(a, b, sum);
}

static inline double add_step(size_t bytes, double a, double b) {
    return bytes == sizeof(float) ? (double)((float)a + (float)b) : a + b;
}

/* Rounds x to `digits` binary digits with 2^least as the smallest quantum; beyond 2^top it
 * overflows to infinity. */
static inline double round_digits(double x, int digits, int least, int top, int away) {
    if (x == 0.0 || isnan(x) || isinf(x)) return x;
    int exponent = 0;
    frexp(x, &exponent);
    const int quantum = exponent - digits > least ? exponent - digits : least;
    const double scaled = ldexp(x, -quantum);
    const double rounded = ldexp(away ? round(scaled) : rint(scaled), quantum);
    return fabs(rounded) >= ldexp(1.0, top) ? copysign((double)INFINITY, x) : copysign(rounded, x);
}

static inline double round_to(double x, enum dtype dtype) {
    switch (dtype) {
    case DTYPE_BF16:
        return round_digits(x, 8, -133, 128, 0);
    case DTYPE_F16:
        return round_digits(x, 11, -24, 16, 0);
    case DTYPE_TF32:
        return round_digits(x, 11, -136, 128, 1);
    case DTYPE_E4M3:
        return fabs(x) >= 464.0 ? copysign(448.0, x) : round_digits(x, 4, -9, 9, 0);
    case DTYPE_E5M2:
        return round_digits(x, 3, -16, 16, 0);
    case DTYPE_F32:
        return (double)(float)x;
    case DTYPE_F64:
    case DTYPE_COUNT:
        break;
    }
    return x;
}

#define SEED UINT64_C(0x6c696e656172)

/* Returns a number that (seed, place) fix: of either sign and around 1, now and then much smaller,
 * much larger, or a signed zero. It is always a value of `dtype`. */
static inline double drawn(uint64_t place, enum dtype dtype) {
    const struct stream_site site = {{{0}}};
    const uint64_t key = stream_word64(SEED, site, place);
    const double unit = (double)(int64_t)key * 0x1p-63;
    const uint32_t kind = (uint32_t)key & 31u;
    const double scale = kind == 0 ? 0x1p-9 : kind == 1 ? 0x1p8 : kind == 2 ? 0.0 : 1.0;
    return round_to(unit * scale, dtype);
}

static inline void fill(void *buffer, size_t bytes, size_t count, uint64_t place,
                        enum dtype dtype) {
    for (size_t i = 0; i < count; i++)
        set_element(buffer, bytes, i, drawn(place + i, dtype));
}

static inline void *take(struct arena *arena, size_t count, size_t bytes) {
    void *out = NULL;
    assert_int_equal(arena_take(arena, count, bytes, "test buffer", &out), STATUS_OK);
    return out;
}

/* Compares bit for bit, except that any NaN equals any NaN. */
static inline int same(const void *a, const void *b, size_t bytes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const double x = element(a, bytes, i);
        const double y = element(b, bytes, i);
        if (isnan(x) && isnan(y)) continue;
        if (memcmp((const char *)a + i * bytes, (const char *)b + i * bytes, bytes) != 0) return 0;
    }
    return 1;
}

/* Lists `count` of about twice as many physical rows, in an order that is neither sorted nor
 * dense. */
static inline struct row_list scattered(struct arena *arena, uint32_t count) {
    uint32_t *const index = (uint32_t *)take(arena, count + 1, sizeof *index);
    for (uint32_t i = 0; i < count; i++)
        index[i] = 2 * i + 1;
    for (uint32_t i = count; i > 1; i--) {
        const struct stream_site site = {{{1}}};
        const uint32_t j = stream_bounded(stream_word64(SEED, site, i), i);
        const uint32_t kept = index[i - 1];
        index[i - 1] = index[j];
        index[j] = kept;
    }
    return (struct row_list){index, count};
}

static inline size_t physical(const struct row_list *rows, size_t i) {
    return rows->index == NULL ? i : rows->index[i];
}

/* Puts NaN into every row that is not listed. */
static inline void poison(void *buffer, size_t bytes, size_t rows, size_t width,
                          const struct row_list *listed) {
    for (size_t r = 0; r < rows; r++) {
        int real = 0;
        for (uint32_t i = 0; i < listed->count; i++)
            real |= physical(listed, i) == r;
        for (size_t j = 0; !real && j < width; j++)
            set_element(buffer, bytes, r * width + j, (double)NAN);
    }
}

/* Scratch of exactly the promised size, with a fence behind it that an overrun would change. */
struct fenced {
    void *scratch;
    size_t bytes;
};

#define FENCE 64

static inline struct fenced fenced_scratch(struct arena *arena, uint32_t rows, uint32_t width,
                                           int threads) {
    const struct op_limits limits = {.rows = rows, .width = width, .threads = threads};
    struct fenced out = {.bytes = linear_scratch(&limits)};
    out.scratch = take(arena, out.bytes + FENCE, 1);
    memset(out.scratch, 0xA5, out.bytes + FENCE);
    return out;
}

static inline void check_fence(const struct fenced *fenced) {
    const unsigned char *const end = (const unsigned char *)fenced->scratch + fenced->bytes;
    for (size_t i = 0; i < FENCE; i++)
        assert_int_equal(end[i], 0xA5);
}

static inline enum dtype accumulator_dtype(const struct variant *variant) {
    return variant->accumulator == sizeof(float) ? DTYPE_F32 : DTYPE_F64;
}

#endif

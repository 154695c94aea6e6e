/* SPDX-License-Identifier: Apache-2.0
 * The vocabulary of the arithmetic folders (kernels/cpu, optim/cpu), whose files
 * cmake/kernels.cmake compiles once for each number pair and instruction set.
 *
 * carrier is the C type in which an element of a tensor is worked on, struct stored what lies in
 * memory of it. accumulator is the C type in which operations compute and sums accumulate. A value
 * leaves the accumulator through carrier_round, once per operation. Functions that are not static
 * are named with VARIANT(name), so that the nine copies can be linked together. The three
 * instruction sets of one pair give the same bits. */
#ifndef TWINSTEP_BASE_VARIANT_H
#define TWINSTEP_BASE_VARIANT_H

#include "base/dtype.h"
#include "base/form.h"
#include "base/real_exp.h"
#include "base/real_log.h"
#include "base/real_round.h"

#if !defined(TWINSTEP_VARIANT)
#error "base/variant.h is for files that cmake/kernels.cmake compiles per variant"
#endif

#define VARIANT_JOIN_(name, variant) name##_##variant
#define VARIANT_NAME_(name, variant) VARIANT_JOIN_(name, variant)

/* VARIANT(step) is step_f32_f64_v3, for example. */
#define VARIANT(name) VARIANT_NAME_(name, TWINSTEP_VARIANT)

#if defined(TWINSTEP_CARRIER_f32)
typedef float carrier;
#elif defined(TWINSTEP_CARRIER_f64)
typedef double carrier;
#elif defined(TWINSTEP_CARRIER_bf16)
typedef float carrier;
#define STORED_DTYPE DTYPE_BF16
#elif defined(TWINSTEP_CARRIER_f16)
typedef float carrier;
#define STORED_DTYPE DTYPE_F16
#else
#error "TWINSTEP_CARRIER_f32, _f64, _bf16 or _f16 must be defined"
#endif

#if defined(TWINSTEP_ACCUMULATOR_f32)
typedef float accumulator;
#define ACC(number) number##f /* ACC(0.5) is a literal of the accumulator's type */
#define ACC_NAME_(name) name##_f32
#elif defined(TWINSTEP_ACCUMULATOR_f64)
typedef double accumulator;
#define ACC(number) number
#define ACC_NAME_(name) name##_f64
#else
#error "TWINSTEP_ACCUMULATOR_f32 or TWINSTEP_ACCUMULATOR_f64 must be defined"
#endif

/* PAIR(sum_terms) is sum_terms_f32_f64, for example: the function of base/sum.h for carriers as
 * input and this accumulator. TERM(sum_terms) is sum_terms_f64_f64: the one for terms that already
 * have the accumulator's type. */
#if defined(TWINSTEP_CARRIER_f64)
#define PAIR(name) name##_f64_f64
#define TERM(name) name##_f64_f64
#elif defined(TWINSTEP_ACCUMULATOR_f64)
#define PAIR(name) name##_f32_f64
#define TERM(name) name##_f64_f64
#else
#define PAIR(name) name##_f32_f32
#define TERM(name) name##_f32_f32
#endif

/* An element of a tensor as it lies in memory (docs/decisions/carriers.md): its carrier, or, in the
 * pairs of numbers in two bytes, which kernels/cuda has, the bits of STORED_DTYPE. A struct is no
 * number, so code that reads or writes an element without the functions below does not compile. */
#if defined(STORED_DTYPE)
struct stored {
    uint16_t bits;
};

/* The element as a number, exactly. */
TWINSTEP_HD carrier stored_load(struct stored element) {
    return STORED_DTYPE == DTYPE_BF16 ? form_load_bf16(element.bits) : form_load_f16(element.bits);
}

/* The element that `rounded` is, a number that its dtype has. */
TWINSTEP_HD struct stored stored_of(carrier rounded) {
    const struct stored element = {STORED_DTYPE == DTYPE_BF16 ? form_store_bf16(rounded)
                                                              : form_store_f16(rounded)};
    return element;
}

/* The dtype of a call's results, which is a constant where elements have one dtype alone. */
TWINSTEP_HD enum dtype stored_dtype(enum dtype compute) {
    (void)compute;
    return STORED_DTYPE;
}
#else
struct stored {
    carrier number;
};

TWINSTEP_HD carrier stored_load(struct stored element) {
    return element.number;
}

TWINSTEP_HD struct stored stored_of(carrier rounded) {
    const struct stored element = {rounded};
    return element;
}

TWINSTEP_HD enum dtype stored_dtype(enum dtype compute) {
    return compute;
}

/* The numbers of a row, for what takes carriers side by side: they are where the elements are. */
TWINSTEP_HD const carrier *stored_numbers(const struct stored *row) {
    return &row->number;
}
#endif

TWINSTEP_HD accumulator acc_fma(accumulator a, accumulator b, accumulator c) {
    return ACC_NAME_(real_fma)(a, b, c);
}

TWINSTEP_HD accumulator acc_sqrt(accumulator x) {
    return ACC_NAME_(real_sqrt)(x);
}

TWINSTEP_HD accumulator acc_exp(accumulator x) {
    return ACC_NAME_(real_exp)(x);
}

TWINSTEP_HD accumulator acc_log(accumulator x) {
    return ACC_NAME_(real_log)(x);
}

TWINSTEP_HD accumulator acc_inf(void) {
    return ACC_NAME_(real_inf)();
}

/* Rounds x once to a dtype that operations compute in (not fp8). f64 is exact only in a double
 * carrier. Called with a constant dtype it folds to a few instructions: write loops as a static
 * function of `enum dtype` and call that through DTYPE_SWITCH, so that the loop vectorises. */
TWINSTEP_HD carrier carrier_round(accumulator x, enum dtype dtype) {
    switch (dtype) {
    case DTYPE_F64:
        return (carrier)x;
    case DTYPE_BF16:
        return (carrier)ACC_NAME_(real_round_bf16)(x);
    case DTYPE_F16:
        return (carrier)ACC_NAME_(real_round_f16)(x);
    case DTYPE_TF32:
        return (carrier)ACC_NAME_(real_round_tf32)(x);
    case DTYPE_F32:
    case DTYPE_E4M3:
    case DTYPE_E5M2:
    case DTYPE_COUNT:
        break;
    }
    return (carrier)(float)x;
}

/* Rounds x once to any dtype in which numbers are stored, fp8 included. */
TWINSTEP_HD carrier carrier_store(accumulator x, enum dtype dtype) {
    if (dtype == DTYPE_E4M3) return (carrier)ACC_NAME_(real_round_e4m3)(x);
    if (dtype == DTYPE_E5M2) return (carrier)ACC_NAME_(real_round_e5m2)(x);
    return carrier_round(x, dtype);
}

/* Runs `call(DTYPE)` with DTYPE a constant that equals `dtype`, one that operations compute in:
 *     #define RUN(d) scale_rows(rows, d)
 *     DTYPE_SWITCH(t->dtype, RUN); */
#define DTYPE_SWITCH(dtype, call)                                                                  \
    do {                                                                                           \
        switch (dtype) {                                                                           \
        case DTYPE_F64:                                                                            \
            call(DTYPE_F64);                                                                       \
            break;                                                                                 \
        case DTYPE_BF16:                                                                           \
            call(DTYPE_BF16);                                                                      \
            break;                                                                                 \
        case DTYPE_F16:                                                                            \
            call(DTYPE_F16);                                                                       \
            break;                                                                                 \
        case DTYPE_TF32:                                                                           \
            call(DTYPE_TF32);                                                                      \
            break;                                                                                 \
        case DTYPE_F32:                                                                            \
        case DTYPE_E4M3:                                                                           \
        case DTYPE_E5M2:                                                                           \
        case DTYPE_COUNT:                                                                          \
            call(DTYPE_F32);                                                                       \
            break;                                                                                 \
        }                                                                                          \
    } while (0)

/* Does the same for every dtype in which numbers are stored, fp8 included. */
#define STORAGE_SWITCH(dtype, call)                                                                \
    do {                                                                                           \
        if ((dtype) == DTYPE_E4M3)                                                                 \
            call(DTYPE_E4M3);                                                                      \
        else if ((dtype) == DTYPE_E5M2)                                                            \
            call(DTYPE_E5M2);                                                                      \
        else                                                                                       \
            DTYPE_SWITCH(dtype, call);                                                             \
    } while (0)

#endif

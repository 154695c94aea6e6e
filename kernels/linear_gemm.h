/* SPDX-License-Identifier: Apache-2.0
 * The three linear ops, each posed as one matrix product C (M, N) = A (M, K) . B (K, N), alike for
 * the CPU and for a device:
 *
 * forward  y  (T, N) = x  (T, K) . w^T (K, N), terms k
 * input    dx (T, K) = dy (T, N) . w   (N, K), terms n
 * weight   acc (N, K) += dy^T (N, T) . x (T, K), terms are the listed rows in list order
 *
 * For files that are compiled per variant, in C and in CUDA C++. Holds no arithmetic. */
#ifndef TWINSTEP_KERNELS_LINEAR_GEMM_H
#define TWINSTEP_KERNELS_LINEAR_GEMM_H

#include "base/splits.h"
#include "kernels/read_call.h"

#if defined(TWINSTEP_VARIANT)
#include "base/variant.h"

/* What an operand and a rounded result consist of: the CPU's files say struct stored. */
#if !defined(GEMM_ELEMENT)
#define GEMM_ELEMENT carrier
#endif

struct gemm {
    size_t M, N, K;
    const GEMM_ELEMENT *a, *b;
    size_t a_stride, b_stride;
    int by_terms;         /* 1: `rows` lists the terms (weight); 0: it lists the rows of A and C */
    int b_transposed;     /* 1: term p of column j is b[j * b_stride + p], as in the forward */
    struct row_list rows; /* the physical rows of the activations */
    enum dtype dtype;     /* the dtype that C is rounded to; unused with by_terms */
    enum dtype product;   /* the dtype that A and B are rounded to as operands; f64: none */
    int add;              /* 1: C = round(C + round(chain)) */
    GEMM_ELEMENT *out;    /* C when it is rounded: physical rows of N columns; else NULL */
    accumulator *held;    /* C when it is held in accumulators, M x N, and continued; else NULL */
    int opens;            /* with `held`; 1: it counts as +0 before the first term */
    /* 1: A, B, and C where it is rounded, lie in two bytes, as numbers of `compute`, whatever their
     * pointers say: only a device's library has such products (op_call.narrow). */
    int narrow;
    const void *bias; /* (N) with `narrow`, added to C's sums before they are rounded; else NULL */
};

static inline struct gemm gemm_forward(const struct op_call *call,
                                       const struct linear_forward_args *args) {
    const struct gemm g = {
        .M = args->rows.count,
        .N = args->N,
        .K = args->K,
        .a = (const GEMM_ELEMENT *)args->x,
        .b = (const GEMM_ELEMENT *)args->w,
        .a_stride = args->K,
        .b_stride = args->K,
        .b_transposed = 1,
        .rows = args->rows,
        .dtype = call->compute,
        .product = call_product(call),
        .out = (GEMM_ELEMENT *)args->y,
        .narrow = call->narrow,
        .bias = args->b,
    };
    return g;
}

static inline struct gemm gemm_input(const struct op_call *call,
                                     const struct linear_input_args *args) {
    const struct gemm g = {
        .M = args->rows.count,
        .N = args->K,
        .K = args->N,
        .a = (const GEMM_ELEMENT *)args->dy,
        .b = (const GEMM_ELEMENT *)args->w,
        .a_stride = args->N,
        .b_stride = args->K,
        .rows = args->rows,
        .dtype = call->compute,
        .product = call_product(call),
        .add = args->add,
        .out = (GEMM_ELEMENT *)args->dx,
        .narrow = call->narrow,
    };
    return g;
}

static inline struct gemm gemm_weight(const struct op_call *call,
                                      const struct linear_weight_args *args) {
    const struct gemm g = {
        .M = args->N,
        .N = args->K,
        .K = args->rows.count,
        .a = (const GEMM_ELEMENT *)args->dy,
        .b = (const GEMM_ELEMENT *)args->x,
        .a_stride = args->N,
        .b_stride = args->K,
        .by_terms = 1,
        .rows = args->rows,
        .product = call_product(call),
        .held = (accumulator *)args->acc,
        .opens = args->opens,
        .narrow = call->narrow,
    };
    return g;
}

/* Into how many parts mode shaped cuts the sum. M counts physical rows, since a library is called
 * with those. */
static inline uint32_t gemm_parts(const struct op_call *call, const struct gemm *g,
                                  enum op_pass pass) {
    static const enum split_op ops[] = {SPLIT_FORWARD, SPLIT_INPUT, SPLIT_WEIGHT}; /* by pass */
    struct split_shape shape = {g->M, g->N, g->K};
    if (call->splits == NULL) return 1;
    if (call->rows != 0 && !g->by_terms) shape.m = call->rows;
    return splits_parts(call->splits, ops[pass], shape);
}

#endif
#endif

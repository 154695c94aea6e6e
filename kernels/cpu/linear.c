/* SPDX-License-Identifier: Apache-2.0
 * The three linear ops, each posed as one product. No arithmetic of its own.
 *
 * forward  y  (T, N) = x  (T, K) . w^T (K, N), terms k
 * input    dx (T, K) = dy (T, N) . w   (N, K), terms n
 * weight   acc (N, K) += dy^T (N, T) . x (T, K), terms are the listed rows in list order
 * Invariant: rows not listed are neither read nor written. */
#include "base/splits.h"
#include "kernels/cpu/call.h"
#include "kernels/cpu/gemm_block.h"
#include "kernels/cpu/race.h"

/* Into how many parts mode shaped cuts the sum. M counts physical rows, since a library is called
 * with those. */
static uint32_t parts_of(const struct op_call *call, const struct gemm *g, enum op_pass pass) {
    static const enum split_op ops[] = {
        [PASS_FORWARD] = SPLIT_FORWARD, [PASS_INPUT] = SPLIT_INPUT, [PASS_WEIGHT] = SPLIT_WEIGHT};
    struct split_shape shape = {g->M, g->N, g->K};
    if (call->splits == NULL) return 1;
    if (call->rows != 0 && !g->by_terms) shape.m = call->rows;
    return splits_parts(call->splits, ops[pass], shape);
}

static void run(const struct op_call *call, const struct gemm *g, enum sum_kind kind,
                enum op_pass pass) {
    const uint32_t parts = parts_of(call, g, pass);
    if (call->order_free) {
        VARIANT(gemm_exact)(g, call->threads, call->scratch);
    } else if (race_active(call, kind)) {
        VARIANT(gemm_racing)(g, call);
    } else if (shuffle_active(call, kind)) {
        const struct shuffle shuffle = shuffle_open(call, pass);
        VARIANT(gemm_shuffled)(g, &shuffle, call->threads, call->scratch);
    } else if (parts > 1) {
        const struct shuffle split = shuffle_split(parts, g->K);
        VARIANT(gemm_shuffled)(g, &split, call->threads, call->scratch);
    } else if (call->blas != NULL) {
        VARIANT(linear_library)(call, g);
    } else {
        VARIANT(gemm_chain)(g, call->threads, call->scratch);
    }
}

void VARIANT(linear_forward)(const struct op_call *call, const struct linear_forward_args *args) {
    const struct gemm g = {
        .M = args->rows.count,
        .N = args->N,
        .K = args->K,
        .a = (const carrier *)args->x,
        .b = (const carrier *)args->w,
        .a_stride = args->K,
        .b_stride = args->K,
        .b_transposed = 1,
        .rows = args->rows,
        .product = call_product(call),
        .dtype = call->compute,
        .out = (carrier *)args->y,
    };
    run(call, &g, SUM_FORWARD, PASS_FORWARD);
}

void VARIANT(linear_input)(const struct op_call *call, const struct linear_input_args *args) {
    const struct gemm g = {
        .M = args->rows.count,
        .N = args->K,
        .K = args->N,
        .a = (const carrier *)args->dy,
        .b = (const carrier *)args->w,
        .a_stride = args->N,
        .b_stride = args->K,
        .rows = args->rows,
        .product = call_product(call),
        .dtype = call->compute,
        .add = args->add,
        .out = (carrier *)args->dx,
    };
    run(call, &g, SUM_FORWARD, PASS_INPUT);
}

void VARIANT(linear_weight)(const struct op_call *call, const struct linear_weight_args *args) {
    const struct gemm g = {
        .M = args->N,
        .N = args->K,
        .K = args->rows.count,
        .a = (const carrier *)args->dy,
        .b = (const carrier *)args->x,
        .a_stride = args->N,
        .b_stride = args->K,
        .by_terms = 1,
        .rows = args->rows,
        .product = call_product(call),
        .held = (accumulator *)args->acc,
    };
    run(call, &g, SUM_WEIGHT, PASS_WEIGHT);
}

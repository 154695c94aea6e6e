/* SPDX-License-Identifier: Apache-2.0
 * What a pair of numbers in two bytes takes from pair f32_f32: products, which read either width
 * (op_call.narrow), and what works on no activation. Included by ops.cu alone. */
#ifndef TWINSTEP_KERNELS_CUDA_OPS_PLAIN_H
#define TWINSTEP_KERNELS_CUDA_OPS_PLAIN_H

#include "kernels/cuda/column_weight.cu"

#define PLAIN_JOIN_(name, variant) name##_##variant
#define PLAIN_NAME_(name, variant) PLAIN_JOIN_(name, variant)
/* TWINSTEP_PLAIN is f32_f32 with the variant's last word. */
#define PLAIN_TABLE PLAIN_NAME_(op_table, TWINSTEP_PLAIN)

extern const struct op_table PLAIN_TABLE;

/* The calls behind which the table below waits are queued, whatever `call` says. */
#define PLAIN_OP(op, name)                                                                         \
    static void name(const struct op_call *call, const struct op##_args *args) {                   \
        struct op_call queued = *call;                                                             \
        queued.queued = 1;                                                                         \
        PLAIN_TABLE.op(&queued, args);                                                             \
    }
/* clang-format off */
PLAIN_OP(linear_forward, linear_forward)
PLAIN_OP(linear_input, linear_input)
PLAIN_OP(close, close_gradient)
PLAIN_OP(square, square)
PLAIN_OP(scale, scale)
PLAIN_OP(convert, convert)
PLAIN_OP(fill, fill)
/* clang-format on */

/* The gradient of a bias is a sum of rows, which no library makes. Calls whose sums race, are drawn
 * or cut do not come here (tables.h), so column_weight() takes all of these. */
static void linear_weight(const struct op_call *call, const struct linear_weight_args *args) {
    const struct fill_args zeros = {(size_t)args->N * args->K * sizeof(accumulator), 0, args->acc};
    struct op_call queued = *call;
    queued.queued = 1;
    if (args->K != 1) {
        PLAIN_TABLE.linear_weight(&queued, args);
        return;
    }
    if (args->opens) fill(call, &zeros);
    (void)column_weight(call, args);
}

#endif

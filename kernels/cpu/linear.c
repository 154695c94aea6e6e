/* SPDX-License-Identifier: Apache-2.0
 * The three linear ops, as the products that kernels/linear_gemm.h poses, and which of the
 * products' forms makes them: exact, racing, shuffled, cut, by a library, or the plain chain. No
 * arithmetic.
 *
 * Invariant: rows not listed are neither read nor written. */
#include <string.h>

#include "base/exact_sum.h"
#include "kernels/cpu/call.h"
#include "kernels/cpu/gemm_block.h"
#include "kernels/cpu/race.h"

/* NULL where the operands are not rounded to bf16, so that looking at them would be in vain. */
static struct bf16_tiles *bf16_tiles_of(const struct op_call *call, const struct gemm *g) {
    return call->compute == DTYPE_BF16 || g->product == DTYPE_BF16 ? call->bf16 : NULL;
}

/* Writes the +0 that sums begin with, for the forms that go on from what C holds. */
static void clear(const struct gemm *g, size_t width) {
    if (g->opens) memset(g->held, 0, g->M * g->N * width);
}

static void run(const struct op_call *call, const struct gemm *g, enum sum_kind kind,
                enum op_pass pass) {
    const uint32_t parts = gemm_parts(call, g, pass);
    if (call->order_free) {
        clear(g, sizeof(struct exact_sum));
        VARIANT(gemm_exact)(g, call->threads, call->scratch);
    } else if (race_active(call, kind)) {
        clear(g, sizeof *g->held);
        VARIANT(gemm_racing)(g, call);
    } else if (shuffle_active(call, kind)) {
        const struct shuffle shuffle = shuffle_open(call, pass);
        clear(g, sizeof *g->held);
        VARIANT(gemm_shuffled)(g, &shuffle, call->threads, call->scratch);
    } else if (parts > 1) {
        const struct shuffle split = shuffle_split(parts, g->K);
        clear(g, sizeof *g->held);
        VARIANT(gemm_shuffled)(g, &split, call->threads, call->scratch);
    } else if (call->blas != NULL) {
        clear(g, sizeof *g->held);
        VARIANT(linear_library)(call, g);
    } else {
        const uint32_t cuts = call->cuts > 1 && g->held == NULL ? call->cuts : 1;
        VARIANT(gemm_chain)(g, cuts, bf16_tiles_of(call, g), call->threads, call->scratch);
    }
}

void VARIANT(linear_forward)(const struct op_call *call, const struct linear_forward_args *args) {
    const struct gemm g = gemm_forward(call, args);
    run(call, &g, SUM_FORWARD, PASS_FORWARD);
}

void VARIANT(linear_input)(const struct op_call *call, const struct linear_input_args *args) {
    const struct gemm g = gemm_input(call, args);
    run(call, &g, SUM_FORWARD, PASS_INPUT);
}

void VARIANT(linear_weight)(const struct op_call *call, const struct linear_weight_args *args) {
    const struct gemm g = gemm_weight(call, args);
    run(call, &g, SUM_WEIGHT, PASS_WEIGHT);
}

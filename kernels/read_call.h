/* SPDX-License-Identifier: Apache-2.0
 * What a call means for an op, read alike by the CPU's ops and by those of a device: the dtypes of
 * law 11, what races (law 14) in which chunks, and the rows of a list.
 *
 * Usable without a variant, in C and in CUDA C++. Invariant: none of this moves a bit. */
#ifndef TWINSTEP_KERNELS_READ_CALL_H
#define TWINSTEP_KERNELS_READ_CALL_H

#include "base/macro.h"
#include "kernels/op.h"

TWINSTEP_HD size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

/* The physical row of the i-th listed row. */
TWINSTEP_HD size_t list_row(const struct row_list *rows, size_t i) {
    return rows->index == NULL ? i : rows->index[i];
}

/* The dtype that operands of products are rounded to; f64 means that they enter as they are. */
TWINSTEP_HD enum dtype call_product(const struct op_call *call) {
    const enum dtype product = call->rounding == NULL ? DTYPE_F64 : call->rounding->product;
    return product == DTYPE_F32 ? DTYPE_F64 : product;
}

/* The dtype of attention's scores and probabilities. */
TWINSTEP_HD enum dtype call_score(const struct op_call *call) {
    return call->rounding == NULL ? call->compute : call->rounding->score;
}

/* Whether the call's sums of this kind race (mode atomic). */
TWINSTEP_HD int race_active(const struct op_call *call, enum sum_kind kind) {
    return call->racing != NULL && (call->racing->kinds & (uint32_t)kind) != 0;
}

/* How many chunks a racing sum of `terms` terms has. */
TWINSTEP_HD size_t race_chunks(const struct op_call *call, size_t terms) {
    return (terms + call->racing->chunk - 1) / call->racing->chunk;
}

#endif

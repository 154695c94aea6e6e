/* SPDX-License-Identifier: Apache-2.0
 * Gradient of a weight that has one column, as that of a bias is (law 17: its x is 1). A tile of
 * linear.cu would have one column that is used.
 *
 * Invariant: the bits are those of the product. Modes fast and deterministic do not ask the library
 * and join chunks by a tree (law 20); what other modes cut, draw or race stays with their tiles. */
#include "kernels/cuda/columns.h"
#include "kernels/linear_gemm.h"

KERNEL_BY(column_weight_kernel, struct columns, COLUMNS_THREADS, 1) {
    SHARED(accumulator, shared);
    columns_chain(GPU_ARG args, BLOCK, shared, COLUMNS_OF_WEIGHT);
}

KERNEL(column_weight_tree_kernel, struct tree_job) {
    SHARED(accumulator, shared);
    tree_chunks(GPU_ARG args, shared, COLUMNS_OF_WEIGHT);
}

/* Returns 0, and starts nothing, where the product is not one of these. */
static int column_weight(const struct op_call *call, const struct linear_weight_args *args) {
    const struct gemm job = gemm_weight(call, args);
    const struct columns terms = {
        .rows = args->rows,
        .C = args->N,
        .dy = (const struct stored *)args->dy,
        .x = (const struct stored *)args->x,
        .dtype = job.product,
        .acc = job.held,
    };
    if (args->K != 1 || race_active(call, SUM_WEIGHT) || shuffle_active(call, SUM_WEIGHT) ||
        gemm_parts(call, &job, PASS_WEIGHT) > 1)
        return 0;
    if (call_has_tree(call)) {
        struct tree_job tree = tree_open(call, &terms);
        TREE_LAUNCH(column_weight_tree_kernel, &tree);
    } else {
        LAUNCH(column_weight_kernel, columns_blocks(&terms), COLUMNS_THREADS, COLUMNS_BYTES,
               &terms);
    }
    return 1;
}

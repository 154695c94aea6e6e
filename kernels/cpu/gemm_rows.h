/* SPDX-License-Identifier: Apache-2.0
 * The rows of a panel, written out: how a micro-kernel opens and closes the two vectors of sums
 * that each row has. For files that define micro-kernels, with `rows` and `vectors` constant.
 *
 * Rows are named one by one, not kept in an array: a compiler that does not unroll a loop over them
 * in time (clang 14) would leave the sums in memory. Rows beyond `rows`, a constant at every call,
 * fold away.
 * Invariant: no arithmetic. */
#ifndef TWINSTEP_KERNELS_CPU_GEMM_ROWS_H
#define TWINSTEP_KERNELS_CPU_GEMM_ROWS_H

#include "kernels/cpu/gemm_block.h"

#define EACH_ROW(do_row)                                                                           \
    do_row(0) do_row(1) do_row(2) do_row(3) do_row(4) do_row(5) do_row(6) do_row(7) do_row(8)      \
        do_row(9) do_row(10) do_row(11) do_row(12) do_row(13)

#define OPEN_ROW(i)                                                                                \
    vec low##i = vec_splat(ACC(0.0));                                                              \
    vec high##i = low##i;                                                                          \
    if (i < rows && start == GEMM_CONTINUE) {                                                      \
        low##i = vec_load(c[i] + column);                                                          \
        if (vectors == 2) high##i = vec_load(c[i] + column + VEC_LANES);                           \
    }

#define CLOSE_ROW(i)                                                                               \
    if (i < rows) {                                                                                \
        vec_store(c[i] + column, low##i);                                                          \
        if (vectors == 2) vec_store(c[i] + column + VEC_LANES, high##i);                           \
    }

/* do_rows(n) for each height that a panel of this instruction set may have. */
#if defined(TWINSTEP_ISA_v4)
#define EACH_HEIGHT(do_rows)                                                                       \
    do_rows(1) do_rows(2) do_rows(3) do_rows(4) do_rows(5) do_rows(6) do_rows(7) do_rows(8)        \
        do_rows(9) do_rows(10) do_rows(11) do_rows(12) do_rows(13) do_rows(14)
#elif defined(TWINSTEP_ISA_v3)
#define EACH_HEIGHT(do_rows) do_rows(1) do_rows(2) do_rows(3) do_rows(4) do_rows(5) do_rows(6)
#else
#define EACH_HEIGHT(do_rows) do_rows(1) do_rows(2) do_rows(3) do_rows(4)
#endif

#endif

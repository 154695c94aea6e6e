/* SPDX-License-Identifier: Apache-2.0
 * What both modules of kernels/cuda/ (CUDA, shim) answer alike: which table, how much scratch.
 *
 * BACKEND_WORD is the last word of their variants. Included once by each module. */
#ifndef TWINSTEP_KERNELS_CUDA_TABLES_H
#define TWINSTEP_KERNELS_CUDA_TABLES_H

#include "base/module_kit.h"
#include "kernels/backend_abi.h"
#include "kernels/cuda/kernels_cuda.h"
#include "kernels/cuda/library.h"
#include "kernels/cuda/library_variables.h"

#define TABLE_JOIN_(pair, word) op_table_##pair##_##word
#define TABLE_NAME_(pair, word) TABLE_JOIN_(pair, word)
#define TABLE(pair) TABLE_NAME_(pair, BACKEND_WORD)

extern const struct op_table TABLE(f32_f32);
extern const struct op_table TABLE(f32_f64);
extern const struct op_table TABLE(f64_f64);

/* step.cu, of its two working types. */
#define STEPS_JOIN_(pair, word) step_table_##pair##_##word
#define STEPS_NAME_(pair, word) STEPS_JOIN_(pair, word)
#define STEPS(pair) STEPS_NAME_(pair, BACKEND_WORD)
extern const struct step_table STEPS(f32_f32);
extern const struct step_table STEPS(f64_f64);
#define TABLE_STEPS                                                                                \
    { &STEPS(f32_f32), &STEPS(f64_f64) }

/* leaves.cu, moves.cu, pairs.cu, reads.cu and squares.cu, compiled with the pair whose numbers are
 * f32. */
#define PLAIN_JOIN_(name, word) name##_f32_f32_##word
#define PLAIN_NAME_(name, word) PLAIN_JOIN_(name, word)
#define TABLE_LEAVES PLAIN_NAME_(leaves, BACKEND_WORD)
#define TABLE_MOVES PLAIN_NAME_(moves, BACKEND_WORD)
#define TABLE_PAIRS PLAIN_NAME_(pairs, BACKEND_WORD)
#define TABLE_READS PLAIN_NAME_(reads, BACKEND_WORD)
#define TABLE_SQUARES PLAIN_NAME_(squares, BACKEND_WORD)
void TABLE_LEAVES(const struct leaves_args *tensors, size_t count);
void TABLE_MOVES(const struct moves_args *tensors, size_t count);
void TABLE_PAIRS(const struct pairs_args *tensors, size_t count);
void TABLE_READS(const struct reads_args *args, const struct reads_tensor *tensors, size_t count);
void TABLE_SQUARES(const struct squares_args *vectors, size_t count);

static enum status tables_ops(enum dtype compute, enum dtype accumulate,
                              const struct op_table **out) {
    const int wide = accumulate == DTYPE_F64;
    if ((!wide && accumulate != DTYPE_F32) || (compute == DTYPE_F64 && !wide))
        FAIL(STATUS_INPUT, "accumulation dtype: expected f32 or f64, and f64 for f64 compute");
    *out = compute == DTYPE_F64 ? &TABLE(f64_f64) : wide ? &TABLE(f32_f64) : &TABLE(f32_f32);
    return STATUS_OK;
}

static enum status tables_scratch(const struct op_limits *limits, size_t *out_bytes) {
    *out_bytes = cuda_scratch_bytes(limits);
    if (limits->library == 0) return STATUS_OK;
    const size_t dense = library_scratch_bytes(limits);
    if (dense > *out_bytes) *out_bytes = dense;
    TRY(variables_check());
    return library_open();
}

static const char *tables_refuse(const struct op_call *call) {
    return cuda_refuses(call);
}

#define BACKEND_STAMP MODULE_STAMP(struct backend, struct op_call, 0, 0)

#endif

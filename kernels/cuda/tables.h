/* SPDX-License-Identifier: Apache-2.0
 * What a module of kernels/cuda/ answers whoever runs its kernels, a device or the shim of the
 * tests: which table, how much scratch.
 *
 * BACKEND_WORD is the last word of the module's variants. Included once by each module. */
#ifndef TWINSTEP_KERNELS_CUDA_TABLES_H
#define TWINSTEP_KERNELS_CUDA_TABLES_H

#include "base/module_kit.h"
#include "kernels/backend_abi.h"
#include "kernels/cuda/kernels_cuda.h"
#include "kernels/cuda/library.h"
#include "kernels/cuda/library_variables.h"
#include "kernels/read_call.h"

/* The symbol `name` of the number pair's file; BACKEND_WORD is expanded first. */
#define TABLE_JOIN_(name, pair, word) name##_##pair##_##word
#define TABLE_NAME_(name, pair, word) TABLE_JOIN_(name, pair, word)
#define TABLE_OF(name, pair) TABLE_NAME_(name, pair, BACKEND_WORD)

#define TABLE(pair) TABLE_OF(op_table, pair)
extern const struct op_table TABLE(f32_f32), TABLE(f32_f64), TABLE(f64_f64);
extern const struct op_table TABLE(bf16_f32), TABLE(f16_f32);

/* The loops of step.cu, for its two working types. */
#define STEPS(pair) TABLE_OF(step_table, pair)
extern const struct step_table STEPS(f32_f32), STEPS(f64_f64);

/* Files that are compiled with one pair only, the one whose numbers are f32. */
#define PLAIN(name) TABLE_OF(name, f32_f32)
void PLAIN(leaf_hashes)(const struct leaf_hashes_args *tensors, size_t count);
void PLAIN(update_sizes)(const struct update_sizes_args *tensors, size_t count);
void PLAIN(run_distances)(const struct run_distances_args *tensors, size_t count);
void PLAIN(readback_blocks)(const struct readback_blocks_args *args,
                            const struct readback_blocks_tensor *tensors, size_t count);
void PLAIN(squares)(const struct squares_args *vectors, size_t count);

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

#if !defined(TABLES_NARROW) /* NULL in a module of the tests */
#define TABLES_NARROW tables_narrow

/* What is left to the device's library can read two bytes; of the other modes it cannot. Operands
 * of products have the dtype of bf16 and f16 calls (numerics.product). */
static const struct op_table *tables_narrow(const struct op_call *call, enum dtype accumulate) {
    const unsigned racing = call->racing == NULL ? 0 : call->racing->kinds;
    if (call->library == NULL || accumulate != DTYPE_F32 || call->order != NULL ||
        call->splits != NULL || (racing & ~(unsigned)SUM_DQ) != 0)
        return NULL;
    return call->compute == DTYPE_BF16  ? &TABLE(bf16_f32)
           : call->compute == DTYPE_F16 ? &TABLE(f16_f32)
                                        : NULL;
}
#endif

#define BACKEND_STAMP MODULE_STAMP(struct backend, struct op_call, 0, 0)

/* The members of struct backend that both modules fill in alike: the last ones, from `refuses` on.
 */
#define TABLE_MEMBERS                                                                              \
    .refuses = cuda_refuses, .ops = tables_ops, .narrow_ops = TABLES_NARROW,                       \
    .scratch = tables_scratch, .leaf_hashes = PLAIN(leaf_hashes),                                  \
    .update_sizes = PLAIN(update_sizes), .steps = {&STEPS(f32_f32), &STEPS(f64_f64)},              \
    .readback_blocks = PLAIN(readback_blocks), .squares = PLAIN(squares),                          \
    .run_distances = PLAIN(run_distances)

#endif

/* SPDX-License-Identifier: Apache-2.0
 * What the CPU ops share: rows of a list, threads worth waking, each thread's part of scratch, and
 * the two words for loops.
 *
 * Invariant: none of this moves a bit; threads only divide outputs. */
#ifndef TWINSTEP_KERNELS_CPU_CALL_H
#define TWINSTEP_KERNELS_CPU_CALL_H

#include <omp.h>
#include <stddef.h>

#include "base/rule.h"
#include "base/sum.h"
#include "kernels/cpu/kernels_cpu.h"
#include "kernels/dropout.h"
#include "kernels/read_call.h"

/* Marks a row function whose dtype is a constant at each call: inlined, so that its loop sees the
 * constant and vectorises. */
#define ROW_INLINE static inline __attribute__((always_inline))

/* Stands before a loop whose rounds each write their own element and read no other round's: outputs
 * may be the very inputs, but never overlap them shifted. */
#define EACH _Pragma("omp simd")

/* Elementary operations below which waking threads costs more than it saves (a few us). */
#define CALL_SMALL ((size_t)1 << 15)

static inline int call_threads(const struct op_call *call, size_t work) {
    return work < CALL_SMALL || call->threads < 1 ? 1 : call->threads;
}

/* This thread's part of scratch, where each thread takes `bytes` (a multiple of 64) behind `shared`
 * bytes of all. */
static inline void *call_scratch(const struct op_call *call, size_t shared, size_t bytes) {
    return (char *)call->scratch + shared + (size_t)omp_get_thread_num() * bytes;
}

/* 1 / keep in the accumulator's type, as in PyTorch's Dropout.cu: 1.0 / p. */
static inline accumulator dropout_scale(const struct dropout *dropout) {
    return ACC(1.0) / (accumulator)dropout->keep;
}

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Which operation keeps its bits when something else in the call changes: other rows, threads, a
 * repeat, where the buffers lie. A built-in ladder of ops and sizes, through the kernels' own
 * tables.
 *
 * Knows no model and no training. Row r of a call is compared with the same row alone, for every
 * number of rows up to 96 and on both sides of every boundary above: tiles of kernels/cpu (4, 6,
 * 14, 64), splits of the built-in tables of mode shaped (32, 256, 512), and where bisection finds
 * one. Sums over rows (weight gradients) are compared with the same sum made by two calls. */
#ifndef TWINSTEP_EXPERIMENT_NOISE_NOISE_OPS_H
#define TWINSTEP_EXPERIMENT_NOISE_NOISE_OPS_H

#include <stdint.h>

#include "base/arena.h"
#include "base/dtype.h"

struct backend; /* kernels/backend_abi.h */

enum noise_ops_class {
    NOISE_OPS_BATCH = 0, /* other rows in the call; of a sum over rows: another split into calls */
    NOISE_OPS_THREADS,
    NOISE_OPS_REPEAT,
    NOISE_OPS_ALIGNMENT, /* buffers one element further on */
    NOISE_OPS_CLASSES
};
extern const char *const noise_ops_classes[NOISE_OPS_CLASSES];

struct noise_ops_cell {
    int equal;
    uint32_t from;           /* of batch: smallest number of rows that moves a bit; 0: none does */
    uint32_t differing;      /* numbers of rows looked at that do */
    uint32_t looked, beyond; /* numbers looked at: all; from `from` on */
    int64_t ulp;             /* largest, in the output's dtype */
    const char *untestable;  /* NULL: there is an answer */
};

struct noise_ops_row {
    const char *op, *size; /* "linear forward", "64 x 64" */
    struct noise_ops_cell cells[NOISE_OPS_CLASSES];
};

struct noise_ops_request {
    const char *mode; /* of numerics.mode, or "shaped small-batch", "shaped large-batch" */
    enum dtype dtype; /* of activations: f32 or bf16; sums in f32 */
    int threads;      /* the most that are tried */
    const volatile int *interrupted;
    const struct backend *backend; /* NULL: the CPU's ops */
    const char *op;                /* NULL: all; else the rows of this one */
};

/* Rows in the order of a layer. STATUS_UNSUPPORTED: the mode is not here (no library, no sums of
 * this form); STATUS_INPUT: no such mode or dtype. */
TWINSTEP_MUST_USE enum status noise_ops_measure(const struct noise_ops_request *request,
                                                struct arena *arena,
                                                const struct noise_ops_row **out,
                                                uint32_t *out_count);

#endif

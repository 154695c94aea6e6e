/* SPDX-License-Identifier: Apache-2.0
 * Finds out which operation keeps its bits when something else in the call changes: other rows,
 * threads, a repeat, where the buffers lie. It runs a built-in ladder of operations and sizes
 * through the kernels' own tables and knows no model and no training.
 *
 * Row r of a call is compared with the same row alone, for every number of rows up to 96 and for
 * both sides of every boundary above: tiles of kernels/cpu (4, 6, 14, 64), splits of the built-in
 * tables of mode shaped (32, 256, 512), and wherever bisection finds one. A sum over rows (a weight
 * gradient) is compared with the same sum made by two calls. */
#ifndef TWINSTEP_EXPERIMENT_NOISE_NOISE_OPS_H
#define TWINSTEP_EXPERIMENT_NOISE_NOISE_OPS_H

#include <stdint.h>

#include "base/arena.h"
#include "base/dtype.h"

struct backend; /* kernels/backend_abi.h */
struct config;  /* scenarios/config.h */

enum noise_ops_class {
    /* other rows in the call; for a sum over rows, the sum split into two calls */
    NOISE_OPS_BATCH = 0,
    NOISE_OPS_THREADS,
    NOISE_OPS_REPEAT,
    NOISE_OPS_ALIGNMENT, /* buffers that begin one element further on */
    NOISE_OPS_CLASSES
};
extern const char *const noise_ops_classes[NOISE_OPS_CLASSES];

struct noise_ops_cell {
    int equal;
    /* for batch, the smallest number of rows that moves a bit; 0: none does */
    uint32_t from;
    uint32_t differing;      /* how many of the numbers of rows looked at move a bit */
    uint32_t looked, beyond; /* numbers of rows looked at: all, and those from `from` on */
    int64_t ulp;             /* largest difference, in ulps of the output's dtype */
    const char *untestable;  /* why there is no answer; NULL: there is one */
};

struct noise_ops_row {
    const char *op, *size; /* "linear forward", "64 x 64" */
    struct noise_ops_cell cells[NOISE_OPS_CLASSES];
};

struct noise_ops_request {
    const char *mode; /* one of numerics.mode, or "shaped small-batch", "shaped large-batch" */
    enum dtype dtype; /* of activations: f32 or bf16; sums are in f32 */
    int threads;      /* the largest number of threads that is tried */
    const volatile int *interrupted;
    const struct backend *backend; /* NULL: the CPU's ops */
    const char *op;                /* NULL: all operations; else the rows of this one */
};

/* Measures the ladder; rows come in the order in which a layer runs the operations, and live in
 * `arena`. STATUS_UNSUPPORTED: this machine has the mode not (no library, no sums of this form);
 * STATUS_INPUT: there is no such mode or dtype. */
TWINSTEP_MUST_USE enum status noise_ops_measure(const struct noise_ops_request *request,
                                                struct arena *arena,
                                                const struct noise_ops_row **out,
                                                uint32_t *out_count);

/* Whether the row keeps its bits in every class. */
int noise_ops_is_equal(const struct noise_ops_row *row);

/* One mode in one dtype of activations. */
struct noise_ops_case {
    const char *mode, *dtype; /* "f32" or "bf16" */
    const struct noise_ops_row *rows;
    uint32_t count;
    char untestable[256];  /* why there are no rows; "" when there are */
    uint32_t equal, apart; /* cells that keep their bits and that do not; untestable ones apart */
};

/* Whether there is such a mode or dtype of operations, which this machine may have not.
 * STATUS_INPUT says which there are. */
TWINSTEP_MUST_USE enum status noise_ops_check_mode(const char *mode);
TWINSTEP_MUST_USE enum status noise_ops_check_dtype(const char *dtype);

/* Measures the ops of the backend that `config` names; the caller has set mode and dtype of `one`.
 * A mode that is not here makes the case untestable. STATUS_INPUT: no such mode or dtype. */
TWINSTEP_MUST_USE enum status noise_ops_measure_case(const struct config *config, int threads,
                                                     const volatile int *interrupted,
                                                     struct arena *arena,
                                                     struct noise_ops_case *one);

#endif

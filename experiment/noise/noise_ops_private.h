/* SPDX-License-Identifier: Apache-2.0
 * The bench on which operations are probed, and the table of the operations. noise_ops.c runs the
 * bench, noise_ops_probes.c poses each operation on it. Private to the two. */
#ifndef TWINSTEP_EXPERIMENT_NOISE_NOISE_OPS_PRIVATE_H
#define TWINSTEP_EXPERIMENT_NOISE_NOISE_OPS_PRIVATE_H

#include "base/splits.h"
#include "experiment/noise/noise_ops.h"
#include "kernels/blas.h"
#include "kernels/op.h"

/* most rows of a call, past the last split at 512; a sequence of attention counts as one */
#define OPS_ROWS 520u
#define OPS_LENGTH 33u /* tokens of a sequence */
#define OPS_BUFFERS 6  /* most inputs that an operation has */

struct ops_bench {
    const struct op_table *ops;
    struct op_call call;
    struct order order;
    struct racing racing;
    struct splits splits;
    struct blas blas;
    struct library_mode library;
    enum dtype dtype;
    float *drawn; /* drawn numbers, rounded to dtype, of which all inputs are copies */
    size_t drawn_count;
    float *input[OPS_BUFFERS]; /* what an operation reads */
    float *scratch_rows[3];    /* what an operation writes beside its output */
    uint32_t *ids;
    struct sequence *sequences;
    float *output; /* what is compared */
    size_t skew;   /* elements by which every buffer is moved */
};

/* One operation at one size. `run` adds rows first .. first + count - 1 into bench->output. An
 * operation by rows writes each row to its own place; a sum over rows adds into the one
 * accumulator. */
struct ops_probe {
    const char *op, *size;
    int sums; /* the output is a sum over rows */
    /* 0: the output is one sum over all, which cannot be split */
    int splits;
    /* widths; what they are is said at the function that runs it */
    uint32_t a, b;
    uint32_t rows;                                  /* most */
    size_t (*width)(const struct ops_probe *probe); /* elements of an output row, or of the sum */
    void (*run)(struct ops_bench *bench, const struct ops_probe *probe, uint32_t first,
                uint32_t count);
};

extern const struct ops_probe ops_probes[];
extern const uint32_t ops_probe_count;
#define OPS_WIDEST 4096u

#endif

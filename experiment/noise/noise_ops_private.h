/* SPDX-License-Identifier: Apache-2.0
 * The bench on which ops are probed, and the ops that are. Private to trainer/noise_ops*.c. */
#ifndef TWINSTEP_EXPERIMENT_NOISE_NOISE_OPS_PRIVATE_H
#define TWINSTEP_EXPERIMENT_NOISE_NOISE_OPS_PRIVATE_H

#include "base/splits.h"
#include "experiment/noise/noise_ops.h"
#include "kernels/blas.h"
#include "kernels/op.h"

#define OPS_ROWS 520u  /* most rows of a call; a sequence of attention counts as one */
#define OPS_LENGTH 33u /* tokens of a sequence */
#define OPS_BUFFERS 6  /* inputs of an op at most */

struct ops_bench {
    const struct op_table *ops;
    struct op_call call;
    struct order order;
    struct racing racing;
    struct splits splits;
    struct blas blas;
    struct library_mode library;
    enum dtype dtype;
    float *drawn; /* numbers to take inputs from, rounded to dtype */
    size_t drawn_count;
    float *input[OPS_BUFFERS]; /* where an op reads */
    float *scratch_rows[3];    /* what an op writes besides */
    uint32_t *ids;
    struct sequence *sequences;
    float *output; /* what is compared */
    size_t skew;   /* elements that every buffer is moved by */
};

/* Adds rows first .. first + count - 1 into bench->output: of an op by rows each into its place, of
 * a sum over rows into the one accumulator. */
struct ops_probe {
    const char *op, *size;
    int sums;                                       /* over rows */
    int splits;                                     /* whether the question of batch can be put */
    uint32_t a, b;                                  /* its widths */
    uint32_t rows;                                  /* most */
    size_t (*width)(const struct ops_probe *probe); /* elements of an output row, or of the sum */
    void (*run)(struct ops_bench *bench, const struct ops_probe *probe, uint32_t first,
                uint32_t count);
};

extern const struct ops_probe ops_probes[];
extern const uint32_t ops_probe_count;
#define OPS_WIDEST 4096u

#endif

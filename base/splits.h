/* SPDX-License-Identifier: Apache-2.0
 * How a simulated vendor library cuts a contraction: the number of parts into which the sum over k
 * is split, as a pure function of (op, M, N, K) given by a table of rows (mode `shaped`,
 * docs/DETERMINISM.md).
 *
 *     weight m<=512 k>=256: 4; attention k>=64: 2; *: 1
 *
 * Rows are separated by semicolons. The first row that matches decides; without one there is 1
 * part. An op is forward, input or weight (of linear layers), attention (P v), dq, or * for all. M,
 * N and K are those of the call that a library would get: forward has M rows (padding included), N
 * outputs, K inputs; input has M rows, N inputs, K outputs; weight has M outputs, N inputs, K rows;
 * attention and dq have M queries, N elements of a head, K keys (padded).
 *
 * Invariant: parsing and look-up are integer work. */
#ifndef TWINSTEP_BASE_SPLITS_H
#define TWINSTEP_BASE_SPLITS_H

#include <stdint.h>

#include "base/status.h"

/* Limits of a table, chosen larger than any that a library's heuristics ask for here. */
#define SPLITS_ROWS 32
#define SPLITS_PARTS 1024

enum split_op {
    SPLIT_FORWARD = 0,
    SPLIT_INPUT,
    SPLIT_WEIGHT,
    SPLIT_ATTENTION,
    SPLIT_DQ,
    SPLIT_OPS /* also stands for any of them */
};

struct split_shape {
    uint64_t m, n, k;
};

struct split_row {
    enum split_op op;
    struct split_shape least, most;
    uint32_t parts; /* 1 .. SPLITS_PARTS */
};

struct splits {
    struct split_row row[SPLITS_ROWS];
    uint32_t count;
};

/* Parses "builtin:NAME" or rows as above. STATUS_INPUT names the row, what was expected and what
 * came. */
TWINSTEP_MUST_USE enum status splits_parse(const char *text, struct splits *out);

/* The rows behind "builtin:small-batch" or "builtin:large-batch"; `name` comes without the prefix.
 * NULL for other names. */
const char *splits_builtin(const char *name);

static inline int splits_within(const struct split_row *row, struct split_shape shape) {
    return shape.m >= row->least.m && shape.m <= row->most.m && shape.n >= row->least.n &&
           shape.n <= row->most.n && shape.k >= row->least.k && shape.k <= row->most.k;
}

/* The number of parts. It is inline because modules with kernels of their own link nothing of the
 * program. */
static inline uint32_t splits_parts(const struct splits *splits, enum split_op op,
                                    struct split_shape shape) {
    for (uint32_t i = 0; i < splits->count; i++) {
        const struct split_row *const row = &splits->row[i];
        if ((row->op == op || row->op == SPLIT_OPS) && splits_within(row, shape)) return row->parts;
    }
    return 1;
}

#endif

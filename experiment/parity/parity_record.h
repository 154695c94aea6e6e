/* SPDX-License-Identifier: Apache-2.0
 * Keeps what every operation of one run wrote, in canonical rows, and holds other runs against it.
 *
 * It hangs in a model as a watch. A run is either recorded or compared. A compared run's outputs
 * are measured and, where the level says so, overwritten with what was recorded, so that the next
 * operation reads the same input as in the recorded run. Layouts may differ, since rows are found
 * by sample, side and position. Sources: the lock-step feeding of PaDiff and of Ma et al. 2025
 * (docs/PARITY.md).
 * Invariant: recording a run moves none of its bits. */
#ifndef TWINSTEP_EXPERIMENT_PARITY_PARITY_RECORD_H
#define TWINSTEP_EXPERIMENT_PARITY_PARITY_RECORD_H

#include "experiment/parity/parity.h"
#include "model/watch.h"

/* What is overwritten, and with it what the inputs of a component are. */
enum parity_level {
    PARITY_OPS = 0, /* every output: each operation is compared alone */
    PARITY_PARTS,   /* the residual stream after attention and after the MLP */
    PARITY_BLOCKS,  /* the residual stream after a layer */
    PARITY_WHOLE,   /* nothing: a run is compared end to end */
    PARITY_LEVELS
};

/* Sums over one tensor in one pass, where t are the elements of the run, l those recorded and h
 * those of the wide run. */
struct parity_sums {
    double target, baseline; /* sums of (t - h)^2, (l - h)^2 */
    double scale;            /* sum of h^2 */
    double along;            /* sum of (t - h) h */
    /* largest |t - h| / (root mean square of l - h over the row + u |h|) */
    double sparse;
    uint64_t elements, equal; /* number of t, and of those with the bits of l */
    uint64_t broken;          /* number of t that are NaN or infinite where l and h are finite */
    uint32_t worst_row;       /* canonical row of `sparse`, its column follows */
    size_t worst_column;
};

struct parity_tensor {
    enum watch_stage stage; /* forward or backward */
    uint32_t layer;
    struct watch_name op, tensor;
    enum watch_axis axis;
    size_t rows, width;
    double *low, *high; /* (rows, width) */
    struct parity_sums sums;
    int seen; /* was written in this pass */
};

enum parity_recording { PARITY_KEEP_LOW = 0, PARITY_KEEP_HIGH, PARITY_HOLD };

struct parity_record {
    struct arena *arena; /* memory of one batch */
    enum parity_recording doing;
    enum parity_level level;
    double unit; /* epsilon of the recorded run's compute dtype */
    struct parity_tensor *tensors;
    uint32_t count, cursor;
    size_t room;
    /* first canonical row, by 2 * sample + side; UINT32_MAX: there is no such sequence */
    uint32_t *token_base, *label_base;
    uint32_t base_count;
    uint32_t token_count, label_count;
    struct watch watch;
    enum status status;
};

/* Prepares for the batch that `run` is filled with. Everything lives in `arena`. */
TWINSTEP_MUST_USE enum status parity_record_open(struct parity_record *record,
                                                 const struct run *run, struct arena *arena);
/* Runs `run` forward on the batch that it is filled with and, at levels that compare gradients,
 * backward from the mean negative log-prob. */
TWINSTEP_MUST_USE enum status parity_record_pass(struct parity_record *record, struct run *run,
                                                 enum parity_recording doing,
                                                 enum parity_level level, uint64_t order_seed);

/* Says where canonical row `row` of a tensor is: sample * 2 + side of its sequence, and its row in
 * the sequence (a position; for labels, their number). For a whole tensor they are UINT32_MAX and
 * the row. */
void parity_record_place(const struct parity_record *record, const struct parity_tensor *tensor,
                         uint32_t row, uint32_t *out_sequence, uint32_t *out_within);

/* Adds one element: t of the run, l as recorded, h of the wide run. */
void parity_sums_add(struct parity_sums *sums, double t, double l, double h);

/* R of one tensor after a pass. It is NaN where no element was seen, infinite where the baseline is
 * exact and the run is not, 0 where both are. */
double parity_sums_ratio(const struct parity_sums *sums);

#endif

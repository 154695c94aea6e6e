/* SPDX-License-Identifier: Apache-2.0
 * What every op of one run wrote, kept in canonical rows; and other runs held against it.
 *
 * Hung into a model as a watch. A run is recorded, or compared: then each output is measured and,
 * where the level says so, overwritten with what was recorded, so that the next op reads the same
 * input as in the recorded run. Layouts may differ: rows are found by sample, side and position.
 * Sources: lock-step feeding of PaDiff and of Ma et al. 2025; docs/PARITY.md.
 * Invariant: a run that is recorded moves no bit by it. */
#ifndef TWINSTEP_EXPERIMENT_PARITY_PARITY_RECORD_H
#define TWINSTEP_EXPERIMENT_PARITY_PARITY_RECORD_H

#include "experiment/parity/parity.h"
#include "model/watch.h"

/* What is overwritten, so what the inputs of a component are. */
enum parity_level {
    PARITY_OPS = 0, /* every output: each op alone */
    PARITY_PARTS,   /* the residual stream after attention and after the MLP */
    PARITY_BLOCKS,  /* the residual stream after a layer */
    PARITY_WHOLE,   /* nothing */
    PARITY_LEVELS
};

/* Of one tensor in one pass. With t the run's, l the recorded and h the wide run's elements. */
struct parity_sums {
    double target, baseline;  /* sums of (t - h)^2, (l - h)^2 */
    double scale;             /* sum of h^2 */
    double along;             /* sum of (t - h) h */
    double sparse;            /* max |t - h| / (root mean square of l - h over the row + u |h|) */
    uint64_t elements, equal; /* of t with the bits of l */
    uint64_t broken;          /* t that are NaN or infinite where l and h are finite */
    uint32_t worst_row;       /* canonical row and column of `sparse` */
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
    int seen; /* in this pass */
};

enum parity_recording { PARITY_KEEP_LOW = 0, PARITY_KEEP_HIGH, PARITY_HOLD };

struct parity_record {
    struct arena *arena; /* of one batch */
    enum parity_recording doing;
    enum parity_level level;
    double unit; /* epsilon of the recorded dtype */
    struct parity_tensor *tensors;
    uint32_t count, room, cursor;
    uint32_t *token_base, *label_base; /* by 2 * sample + side; UINT32_MAX: no such sequence */
    uint32_t base_count;
    uint32_t token_count, label_count;
    struct watch watch;
    enum status status;
};

/* For a batch as `run` has it filled. Everything lives in `arena`. */
TWINSTEP_MUST_USE enum status parity_record_open(struct parity_record *record,
                                                 const struct run *run, struct arena *arena);
/* Forward, and backward of the mean negative log-prob, of the batch that run->batch holds. */
TWINSTEP_MUST_USE enum status parity_record_pass(struct parity_record *record, struct run *run,
                                                 enum parity_recording doing,
                                                 enum parity_level level, uint64_t order_seed);

/* Where canonical row `row` of a tensor is: sample * 2 + side of its sequence, and its row in it (a
 * position; of labels, their number). Of a whole tensor: UINT32_MAX, and the row itself. */
void parity_record_place(const struct parity_record *record, const struct parity_tensor *tensor,
                         uint32_t row, uint32_t *out_sequence, uint32_t *out_within);

/* R of one tensor after a pass; NaN where no element was seen. Infinite where the baseline is exact
 * and the run is not; 0 where both are. */
double parity_sums_ratio(const struct parity_sums *sums);

#endif

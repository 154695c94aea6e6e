/* SPDX-License-Identifier: Apache-2.0
 * By which number an update divided the losses of its micro-batches, read back from one run.
 *
 * Two independent readings of one update meet: the gradient that the optimizer took in, as its
 * moments or weights tell it (trainer/optimizer_input.h), and the gradient of every micro-batch's
 * plain sum (label tokens of sft, pairs of dpo; coefficient 1), computed anew from the same
 * weights. Least squares give the weight of each sum. Its reciprocal, times what clipping did by
 * the log, is the divisor. Then those kinds of loss.divisor are named that say the same of every
 * micro-batch.
 *
 * The run is not changed. Divisors can be read where the gradients of the micro-batches are
 * linearly independent and the optimizer tells what it took in; elsewhere the reading says why not.
 */
#ifndef TWINSTEP_TRAINER_DIVISOR_H
#define TWINSTEP_TRAINER_DIVISOR_H

#include "trainer/run.h"

/* What one kind of loss.divisor says of every micro-batch. */
struct divisor_kind {
    enum loss_divisor kind;
    uint64_t ranks;   /* ranks of DIVISOR_MEAN_OF_RANKS, at least 2; 0 for all other kinds */
    double *expected; /* (micros) */
    int explains;     /* 1 where it agrees with every micro-batch's divisor within its error */
    double factor;    /* all divisors are this times the expected ones; NaN where no factor fits */
};

struct divisor_reading {
    enum task task;
    uint32_t micros;        /* micro-batches; those that leaked into the update come first */
    uint64_t *items;        /* (micros) number of label tokens (sft) or pairs (dpo) */
    double *divisor;        /* (micros) */
    double *error;          /* (micros) bound from rounding */
    double clip;            /* factor that clipping put on the gradient, by the log */
    double rest;            /* share of the gradient that no micro-batch explains: |rest| / |all| */
    const char *untestable; /* why there are no divisors; NULL where there are */
    struct divisor_kind *kinds; /* in the order of loss.divisor's names; ranks last */
    uint32_t kind_count;
};

/* Returns the name of a kind in scenarios: "update", "mean-of-means", ... */
const char *divisor_kind_name(enum loss_divisor kind);

/* What a reading keeps over one update of a run with read-back and options.apart. divisor_before is
 * called first, then the update is stepped, and then divisor_after is called. Both calls share what
 * lies between in `arena`. */
struct divisor_reader {
    struct divisor_reading reading;
    size_t elements;
    enum dtype dtype;      /* of the gradients */
    unsigned char **plain; /* (micros) gradients of the plain sums, `elements` carriers each */
    struct sampler_plan plan;
};

/* Runs every micro-batch of the run's next update forward and backward once, in a run of its own.
 * Trains nothing. */
TWINSTEP_MUST_USE enum status divisor_before(const struct run *run, struct arena *arena,
                                             struct divisor_reader *out);
/* Reads the divisors of the update that was stepped since divisor_before. */
TWINSTEP_MUST_USE enum status divisor_after(struct divisor_reader *reader, const struct run *run,
                                            struct arena *arena);

#endif

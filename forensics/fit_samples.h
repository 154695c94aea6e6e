/* SPDX-License-Identifier: Apache-2.0
 * A schedule that counts samples under a batch that grows (Megatron's --rampup-batch-size): one
 * update adds the samples of its own batch, so the counter of a row is read off the samples that
 * the log prints as consumed, less those of skipped updates. Under a batch that stays, warm-up and
 * total may be samples that are no whole number of updates (--lr-warmup-samples 3000 with 1,024 in
 * an update), which the same search finds. Private to forensics/fit*.c.
 *
 * Invariant: a counter that the log leaves open is tried with every number of samples that its
 * batches admit, and never rounded. */
#ifndef TWINSTEP_FORENSICS_FIT_SAMPLES_H
#define TWINSTEP_FORENSICS_FIT_SAMPLES_H

#include "forensics/fit.h"

struct fit_samples {
    /* Of every row that says both: the update, and the samples that were counted up to it, its own
     * included. */
    uint64_t *update;
    uint32_t *part;
    double *counter;
    size_t count;
    double batch; /* of the last row */
    /* 1: the log prints no consumed samples, and every row is taken to have that batch. */
    uint8_t assumed;
    double total; /* what the whole run consumes, if the batch grows no more */
    /* Where updates were skipped while the batch grew, `counter` takes the fewest samples; choices
     * says how many more there can be: (row, in steps of `step`). */
    size_t *choice_row;
    uint32_t *choice_most;
    size_t choices;
    double step;
    struct series series; /* whose points fits are asked about; set by the search */
};

/* Sets known->growing where the batch of the log grows. Where the log says how many samples it
 * consumed, sets known->samples if it grows, and known->steady if not; a batch that stays, printed
 * or given, is enough for that. */
TWINSTEP_MUST_USE enum status fit_samples_from_log(struct fit_known *known, const struct log *log,
                                                   struct arena *arena);
/* Tells whether a contract that counts samples (Megatron's) is asked about, or wrote the log. */
int fit_samples_are_asked(const struct fit_known *known);
/* Tells whether the contract's counter is that of the samples. */
int fit_samples_counts(const struct contract *contract);
/* Turns what is known in updates into samples. */
void fit_samples_known(struct fit_known *known);
/* Returns the samples that were counted before update k, in the part that holds point i. */
uint64_t fit_samples_before(const struct fit_samples *samples, size_t point, uint64_t update);
/* Tells whether a fit under a batch that stays ends at a number of samples that nobody said or
 * would type, beside the log's own total, and no row lies behind it: the log's own total, under
 * another contract say, is as good. `last` is the largest update of the log. */
int fit_samples_end_unseen(const struct fit *fit, const struct fit_known *known, uint64_t last);
/* Searches for all fits over counters in place of updates. */
TWINSTEP_MUST_USE enum status fit_series_by_samples(const struct series *series,
                                                    const struct fit_known *known,
                                                    struct arena *arena, struct fit_set *out);

#endif

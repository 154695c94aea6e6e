/* SPDX-License-Identifier: Apache-2.0
 * What tests of ranks/ share: the recordings of tests/golden/ranks/, and the counts that a probe of
 * a real collective gives for an order of ours. */
#ifndef TWINSTEP_TESTS_RANKS_HELPER_RECORDED_H
#define TWINSTEP_TESTS_RANKS_HELPER_RECORDED_H

#include <stdio.h>

#include "base/dtype.h"
#include "ranks/grouping.h"

#define RECORDED_RANKS 9 /* a digit holds the count */
#define RECORDED_DIGITS (RECORDED_RANKS * (RECORDED_RANKS - 1) / 2 + 1)

/* Opens a file of tests/golden/ranks/ behind its lines of comments; the test fails without it. */
FILE *recorded_open(const char *name);

/* A file gradients-*.bin: a vector for each rank, what it had alone, and those that DDP in updates
 * 1 and 2, DDP in update 2 with gradients that are views of its buckets, and FSDP2 made of them. */
enum {
    RECORDED_COUNT = 6000,
    RECORDED_DDP_1 = 3,
    RECORDED_DDP_2,
    RECORDED_DDP_VIEWS_2,
    RECORDED_FSDP2_1,
    RECORDED_VECTORS
};

/* Reads such a file; the test fails if it has another length. */
void recorded_gradients(const char *name, enum dtype dtype,
                        float out[RECORDED_VECTORS][RECORDED_COUNT]);

/* Returns how many of RECORDED_COUNT numbers differ in their bits. */
size_t recorded_differing(const float *a, const float *b);

/* For each pair of ranks i < j, the number of ranks whose term is added after those of i and j have
 * met. All pairs together say which grouping it is. */
void recorded_digits(const struct grouping_run *run, uint32_t ranks, char *digits);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * What tests of ranks/ share: the recordings of tests/golden/ranks/, and the counts that a probe of
 * a real collective gives for an order of ours. */
#ifndef TWINSTEP_TESTS_RANKS_HELPER_RECORDED_H
#define TWINSTEP_TESTS_RANKS_HELPER_RECORDED_H

#include <stdio.h>

#include "ranks/grouping.h"

#define RECORDED_RANKS 9 /* a digit holds the count */
#define RECORDED_DIGITS (RECORDED_RANKS * (RECORDED_RANKS - 1) / 2 + 1)

/* Opens a file of tests/golden/ranks/ behind its lines of comments; the test fails without it. */
FILE *recorded_open(const char *name);

/* For each pair of ranks i < j, the number of ranks whose term is added after those of i and j have
 * met. All pairs together say which grouping it is. */
void recorded_digits(const struct grouping_run *run, uint32_t ranks, char *digits);

#endif

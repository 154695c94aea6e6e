/* SPDX-License-Identifier: Apache-2.0
 * What equal runs leave to chance: numbers of runs in, probabilities out. Of results that are drawn
 * anew in each run nothing else is assumed. */
#ifndef TWINSTEP_ABLATE_ABLATE_CHANCE_H
#define TWINSTEP_ABLATE_ABLATE_CHANCE_H

#include <stdint.h>

/* The most with which runs that take one of two results by chance leave equal runs of the
 * baseline's command, equal ones of test's that differ from them, and so many pairs of equal runs
 * of others. */
double ablate_chance(uint32_t baseline, uint32_t test, uint32_t pairs);

/* A result that comes in this share of runs is missed by so many with a probability of 5 %. */
double ablate_missed_rate(uint32_t runs);

#endif

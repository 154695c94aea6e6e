/* SPDX-License-Identifier: Apache-2.0
 * Files with a planted cause, made of the pool, beside a floor of A/A sequences.
 *
 * A case is a number: it draws cause, kind, strength, floor and sequences from its own addresses,
 * so every case can be run alone. Strength is the mean |d| that the cause makes on the tokens that
 * it touches, in units of the floor's mean |d|: the floor is scaled to it, and the cause stays as
 * the model made it. */
#ifndef TWINSTEP_TESTS_ROLLOUT_HELPER_PLANT_H
#define TWINSTEP_TESTS_ROLLOUT_HELPER_PLANT_H

#include "rollout/claims.h"
#include "tests/rollout/helper_pool.h"

#define PLANT_CLEAN ROLLOUT_CAUSES
#define PLANT_FOREIGN (ROLLOUT_CAUSES + 1) /* no cause of the eight, or two at once */

enum plant_what { PLANTED_CAUSE, PLANTED_NOTHING, PLANTED_FOREIGN };

struct plant {
    int cause;       /* enum rollout_cause, or PLANT_CLEAN */
    int kind;        /* of that cause */
    double strength; /* in floors */
    int sparse;      /* 1: the floor is two runs of one engine, equal but for few tokens */
    uint32_t sequences;
    uint64_t seed;
};

struct plant plant_case(enum plant_what what, uint32_t number);
const char *plant_kind_name(const struct plant *plant);
/* Causes that may be named without being wrong, as bits. */
unsigned plant_allowed(const struct plant *plant);

/* Writes both files. */
void plant_write(const struct pool *pool, const struct plant *plant, const char *path,
                 const char *floor);

#endif

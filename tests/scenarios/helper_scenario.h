/* SPDX-License-Identifier: Apache-2.0
 * Material for the tests of scenarios: a schema with small classes that exist nowhere else, parsing
 * in few words, a random source, and random values of a row. Failures are cmocka failures. */
#ifndef TWINSTEP_TESTS_SCENARIOS_HELPER_SCENARIO_H
#define TWINSTEP_TESTS_SCENARIOS_HELPER_SCENARIO_H

#include <stddef.h>
#include <stdint.h>

#include "scenarios/scenario.h"

#define HELPER_TEXT_SIZE 512

/* The classes are: optimizers adamw (beta1, beta2, amsgrad, variant) and sgd (momentum, nesterov);
 * schedules linear (minimum), constant (no key) and steps (minimum, and every, whose cause is
 * data-order: a class's rows need not share a cause). adamw refuses amsgrad with variant apex;
 * constant refuses a total or an lr of 99. The contracts are tens (ten counter units per update;
 * linear means steps) and dreams, which is refused. */
extern const struct schema helper_schema;

struct helper_adamw {
    double beta1, beta2;
    uint8_t amsgrad;
    int32_t variant;
};

/* Parses `text` as "f.yaml" with the overrides up to the NULL. */
struct scenario *helper_parse(struct arena *arena, const char *text, const char *const *overrides);

/* Parses a scenario whose `common` is this flow map: helper_common(&arena, "seed: 3"). */
struct scenario *helper_common(struct arena *arena, const char *common);

/* Requires that parsing fails with this status and text. */
void helper_refuse(const char *text, const char *const *overrides, enum status status,
                   const char *message);

struct helper_random {
    uint64_t state;
};
uint64_t helper_draw(struct helper_random *random, uint64_t limit); /* 0 .. limit - 1 */

/* Writes a value of the row that resolves in company of other random values; returns 0 where the
 * row should be left alone. */
int helper_random_value(struct helper_random *random, const char *path, char out[HELPER_TEXT_SIZE]);

/* Returns a scenario whose two arms hold random values; NULL where these do not fit together. */
struct scenario *helper_random_scenario(struct helper_random *random, struct arena *arena);

#endif

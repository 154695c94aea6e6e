/* SPDX-License-Identifier: Apache-2.0
 * A pool of sequences that a real model of this program generated, with the log-probs that other
 * engines would give them: other orders of sums in bf16, another temperature, logits rounded to
 * bf16, weights of other updates, another MLP for single tokens, a context cut on the left.
 *
 * Every column is a forward of its own of the same model over the same tokens. Faults are planted
 * into copies of these columns (helper_plant.h), so what is planted is what an engine would do, and
 * not a formula that the code under test might share. */
#ifndef TWINSTEP_TESTS_ROLLOUT_HELPER_POOL_H
#define TWINSTEP_TESTS_ROLLOUT_HELPER_POOL_H

#include <stdint.h>

#define POOL_ENGINES 6 /* bf16, each with other orders of sums */
#define POOL_HEATS 8
#define POOL_VERSIONS 5 /* weights after 0, 1, 2, ... pieces of training */

extern const double pool_heats[POOL_HEATS];

enum pool_column {
    POOL_BASE = 0,                          /* f32, temperature 1 */
    POOL_BF16,                              /* f32, logits rounded to bf16 */
    POOL_ROUTED,                            /* the last layer's MLP is another one */
    POOL_CUT,                               /* only the last POOL_CUT_LENGTH tokens are seen */
    POOL_ENGINE,                            /* + engine */
    POOL_HEAT = POOL_ENGINE + POOL_ENGINES, /* + index of pool_heats */
    POOL_VERSION = POOL_HEAT + POOL_HEATS,  /* + version; the first is POOL_BASE again */
    POOL_COLUMNS = POOL_VERSION + POOL_VERSIONS
};
#define POOL_CUT_LENGTH 24

struct pool {
    uint32_t sequences, tokens;        /* tokens of all */
    uint32_t *first, *length, *prompt; /* (sequences) */
    uint32_t *id;                      /* (tokens) */
    double *logp[POOL_COLUMNS];        /* (tokens) */
};

/* Makes the pool: sequences of 16 to `longest` generated tokens. The same arguments give the same
 * bits. It lives until the end of the process. */
const struct pool *pool_open(uint32_t sequences, uint32_t longest);

#endif

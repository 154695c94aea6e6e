/* SPDX-License-Identifier: Apache-2.0
 * The parameter table: one row per tensor of the model, under its Hugging Face name.
 *
 * Holds shapes and roles, no values. The order of the rows is the order of every sum and report
 * that walks tensors. A tied head has a row that owns nothing (tied_to names the owner); owners
 * carry one gradient accumulator per use, in the order embedding, head (law 4). Invariant: `tensor`
 * indices below count owners only and are dense; the trace's tensor axis is it. */
#ifndef TWINSTEP_MODEL_PARAMS_H
#define TWINSTEP_MODEL_PARAMS_H

#include "base/arena.h"
#include "scenarios/config.h"

/* The numbers are part of the init addresses (law 10): they never change. */
enum param_role {
    ROLE_EMBEDDING = 0,
    ROLE_Q,
    ROLE_K,
    ROLE_V,
    ROLE_O,
    ROLE_Q_NORM, /* OLMo-2: over the whole projection; Qwen3: over each head, one weight for all */
    ROLE_K_NORM,
    ROLE_NORM_A, /* before attention, or after it (OLMo-2) */
    ROLE_NORM_B, /* before the MLP, or after it (OLMo-2) */
    ROLE_GATE,
    ROLE_UP,
    ROLE_DOWN,
    ROLE_NORM_FINAL,
    ROLE_HEAD,
    ROLE_Q_BIAS, /* biases start at 0 */
    ROLE_K_BIAS,
    ROLE_V_BIAS,
    ROLE_O_BIAS,
    ROLE_GATE_BIAS,
    ROLE_UP_BIAS,
    ROLE_DOWN_BIAS,
    ROLE_COUNT
};

#define PARAM_ABSENT UINT32_MAX

struct param_row {
    const char *name;
    uint32_t rank;
    uint64_t shape[2]; /* [out, in]; rank 1: shape[1] is 1 */
    size_t count;
    enum dtype dtype;
    enum param_role role;
    uint32_t layer;
    uint32_t group; /* 0; 1 are those that optimizer.decay leaves undecayed */
    int trainable;
    int32_t tied_to;    /* row index of the owner, -1 for owners */
    int32_t adapter_of; /* row index, -1: not an adapter */
    uint32_t uses;      /* accumulators of an owner */
};

struct param_table {
    struct param_row *rows;
    uint32_t count;
    uint32_t groups;
    size_t elements; /* of all owners */
    /* row of a role in a layer (0 for those outside layers); PARAM_ABSENT when the family has none
     */
    uint32_t *index; /* (layers, ROLE_COUNT) */
};

TWINSTEP_MUST_USE enum status params_open(const struct config *config, struct arena *arena,
                                          struct param_table *out);

/* Row that owns the storage of a role: follows tied_to. */
uint32_t params_owner(const struct param_table *table, enum param_role role, uint32_t layer);

/* The bias behind a matrix; ROLE_COUNT: it never has one. Whether a model has it: table->index. */
enum param_role params_bias(enum param_role role);
int params_is_bias(enum param_role role);

/* Initial values (law 10): norms are 1, biases 0, matrices normal(0, init.std) by inverse CDF,
 * element = row-major index, addressed by role as `op` and layer + 1, rounded to the dtype.
 * `values` is the carrier of the row's dtype. */
TWINSTEP_MUST_USE enum status params_init(const struct config *config,
                                          const struct param_table *table, uint32_t row,
                                          void *values);

#endif

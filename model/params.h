/* SPDX-License-Identifier: Apache-2.0
 * The parameter table: one row per tensor of the model, under its Hugging Face name.
 *
 * It holds shapes and roles, no values. The order of its rows is the order of every sum and report
 * that walks tensors. A tied head has a row that owns nothing, and tied_to names the owner; owners
 * have one gradient accumulator per use, in the order embedding, head (law 4). Invariant: `tensor`
 * indices count owners only and are dense; the trace's tensor axis has them. */
#ifndef TWINSTEP_MODEL_PARAMS_H
#define TWINSTEP_MODEL_PARAMS_H

#include "base/arena.h"
#include "scenarios/config.h"

/* The numbers are part of the addresses of initial values (law 10), so they never change. */
enum param_role {
    ROLE_EMBEDDING = 0,
    ROLE_Q,
    ROLE_K,
    ROLE_V,
    ROLE_O,
    /* OLMo-2 normalizes the whole projection; Qwen3 each head, with one weight for all heads */
    ROLE_Q_NORM,
    ROLE_K_NORM,
    ROLE_NORM_A, /* before attention; behind it in OLMo-2 */
    ROLE_NORM_B, /* before the MLP; behind it in OLMo-2 */
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
    uint32_t group; /* 1: optimizer.decay leaves it undecayed; else 0 */
    int trainable;
    int32_t tied_to;    /* the row that owns its values; -1: it owns them itself */
    int32_t adapter_of; /* the row that it adapts; -1: it is no adapter */
    uint32_t uses;      /* how many accumulators an owner has */
};

struct param_table {
    struct param_row *rows;
    uint32_t count;
    uint32_t groups;
    size_t elements; /* of all owners */
    /* (layers, ROLE_COUNT): the row of a role in a layer, where layer 0 also has the roles outside
     * layers; PARAM_ABSENT where the family has none. */
    uint32_t *index;
};

TWINSTEP_MUST_USE enum status params_open(const struct config *config, struct arena *arena,
                                          struct param_table *out);

/* The row that owns the storage of a role: it follows tied_to. */
uint32_t params_owner(const struct param_table *table, enum param_role role, uint32_t layer);

/* The role of the bias behind a matrix; ROLE_COUNT: it never has one. table->index says whether a
 * model has it. */
enum param_role params_bias(enum param_role role);
int params_is_bias(enum param_role role);

/* Fills initial values (law 10): norms are 1, biases 0, matrices are drawn from normal(0, init.std)
 * by inverse CDF and rounded to the dtype. An element's number is its row-major index; the role is
 * the address's `op`, and layer + 1 its layer. `values` are carriers of the row's dtype. */
TWINSTEP_MUST_USE enum status params_init(const struct config *config,
                                          const struct param_table *table, uint32_t row,
                                          void *values);

#endif

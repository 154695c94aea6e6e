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

/* The roles of parameters: EACH(ROLE, name in a ledger, name in a checkpoint, SITE of its ops,
 * width of its output, width of its input, LABEL under which a watch shows it). Names of tensors in
 * layers follow "model.layers.N.". NORM_A stands before attention and NORM_B before the MLP; in
 * OLMo-2 both stand behind, under other names. OLMo-2 normalizes the whole projection of q and k;
 * Qwen3 each head, with one weight for all heads. Biases start at 0. Nobody asks for the
 * input width of a norm, or for the widths of a bias. The place of a row is part of the addresses
 * of initial values (law 10), so it never changes. */
#define PARAM_ROLES(EACH)                                                                          \
    EACH(EMBEDDING, "embedding", "model.embed_tokens.weight", EMBEDDING, V, C, EMBED_TOKENS)       \
    EACH(Q, "q", "self_attn.q_proj.weight", Q_PROJ, Q, C, Q_PROJ)                                  \
    EACH(K, "k", "self_attn.k_proj.weight", K_PROJ, K, C, K_PROJ)                                  \
    EACH(V, "v", "self_attn.v_proj.weight", V_PROJ, K, C, V_PROJ)                                  \
    EACH(O, "o", "self_attn.o_proj.weight", O_PROJ, C, Q, O_PROJ)                                  \
    EACH(Q_NORM, "q-norm", "self_attn.q_norm.weight", Q_NORM, Q, C, Q_NORM)                        \
    EACH(K_NORM, "k-norm", "self_attn.k_norm.weight", K_NORM, K, C, K_NORM)                        \
    EACH(NORM_A, "norm-a", "input_layernorm.weight", NORM_A, C, C, INPUT_NORM)                     \
    EACH(NORM_B, "norm-b", "post_attention_layernorm.weight", NORM_B, C, C, POST_ATTENTION_NORM)   \
    EACH(GATE, "gate", "mlp.gate_proj.weight", GATE_PROJ, M, C, GATE_PROJ)                         \
    EACH(UP, "up", "mlp.up_proj.weight", UP_PROJ, M, C, UP_PROJ)                                   \
    EACH(DOWN, "down", "mlp.down_proj.weight", DOWN_PROJ, C, M, DOWN_PROJ)                         \
    EACH(NORM_FINAL, "norm", "model.norm.weight", NORM_FINAL, C, C, NORM)                          \
    EACH(HEAD, "head", "lm_head.weight", HEAD, V, C, LM_HEAD)                                      \
    EACH(Q_BIAS, "q-bias", "self_attn.q_proj.bias", Q_BIAS, C, C, Q_PROJ)                          \
    EACH(K_BIAS, "k-bias", "self_attn.k_proj.bias", K_BIAS, C, C, K_PROJ)                          \
    EACH(V_BIAS, "v-bias", "self_attn.v_proj.bias", V_BIAS, C, C, V_PROJ)                          \
    EACH(O_BIAS, "o-bias", "self_attn.o_proj.bias", O_BIAS, C, C, O_PROJ)                          \
    EACH(GATE_BIAS, "gate-bias", "mlp.gate_proj.bias", GATE_BIAS, C, C, GATE_PROJ)                 \
    EACH(UP_BIAS, "up-bias", "mlp.up_proj.bias", UP_BIAS, C, C, UP_PROJ)                           \
    EACH(DOWN_BIAS, "down-bias", "mlp.down_proj.bias", DOWN_BIAS, C, C, DOWN_PROJ)

enum param_role {
#define PARAM_ROLE(role, name, tensor, site, out, in, label) ROLE_##role,
    PARAM_ROLES(PARAM_ROLE)
#undef PARAM_ROLE
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

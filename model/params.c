/* SPDX-License-Identifier: Apache-2.0
 * Builds the table for the four families and draws initial values. Names and shapes are those of
 * transformers' state dictionaries of Llama, Olmo2, Qwen2 and Qwen3. Invariant: a row is complete
 * before the next one is added. */
#include "model/params.h"

#include <string.h>

#include "base/element.h"
#include "kernels/draws.h"

static const char *const suffix[ROLE_COUNT] = {
#define SUFFIX(role, name, tensor, site, out, in, label) [ROLE_##role] = tensor,
    PARAM_ROLES(SUFFIX)};

enum param_role params_bias(enum param_role role) {
    static const enum param_role bias[ROLE_COUNT] = {
        [ROLE_Q] = ROLE_Q_BIAS,      [ROLE_K] = ROLE_K_BIAS,       [ROLE_V] = ROLE_V_BIAS,
        [ROLE_O] = ROLE_O_BIAS,      [ROLE_GATE] = ROLE_GATE_BIAS, [ROLE_UP] = ROLE_UP_BIAS,
        [ROLE_DOWN] = ROLE_DOWN_BIAS};
    return params_is_bias(bias[role]) ? bias[role] : ROLE_COUNT;
}

int params_is_bias(enum param_role role) {
    return role >= ROLE_Q_BIAS && role <= ROLE_DOWN_BIAS;
}

struct builder {
    const struct config *config;
    struct arena *arena;
    struct param_table *table;
};

/* Whether one of the words, which spaces or commas part, occurs in the name. */
static int names_one(const char *words, const char *name) {
    while (*words != '\0') {
        const size_t length = strcspn(words, " ,");
        for (const char *at = name; length > 0 && *at != '\0'; at++)
            if (strncmp(at, words, length) == 0) return 1;
        words += length;
        words += strspn(words, " ,");
    }
    return 0;
}

/* Whether a tensor is in group 1, without decay. DECAY_HF has the patterns of Hugging Face's
 * Trainer (get_decay_parameter_names): bias, layernorm, rmsnorm, norm as a word between dots, _norm
 * before one. DECAY_OLMO_CORE does as OLMo-core's recipes, which leave embeddings.weight alone
 * undecayed. */
static int is_undecayed(const struct config *config, const struct param_row *row) {
    switch ((enum decay_rule)config->optimizer.decay) {
    case DECAY_MATRICES:
        return row->rank == 1;
    case DECAY_HF:
        return names_one("bias layernorm rmsnorm .norm. _norm.", row->name);
    case DECAY_OLMO_CORE:
        return row->role == ROLE_EMBEDDING;
    case DECAY_NAMED:
        return names_one(config->optimizer.no_decay, row->name);
    case DECAY_ALL:
        break;
    }
    return 0;
}

static enum status add_row(struct builder *build, enum param_role role, uint32_t layer,
                           uint64_t out, uint64_t in) {
    const struct config *config = build->config;
    struct param_table *table = build->table;
    struct param_row *row = &table->rows[table->count];
    int in_layer = role != ROLE_EMBEDDING && role != ROLE_NORM_FINAL && role != ROLE_HEAD;
    const char *name = suffix[role];
    char *text;
    if (config->model.family == FAMILY_OLMO2 && role == ROLE_NORM_A)
        name = "post_attention_layernorm.weight";
    if (config->model.family == FAMILY_OLMO2 && role == ROLE_NORM_B)
        name = "post_feedforward_layernorm.weight";
    if (in_layer) {
        TRY(arena_format(build->arena, &text, "model.layers.%u.%s", layer, name));
    } else {
        TRY(arena_format(build->arena, &text, "%s", name));
    }
    row->name = text;
    row->rank = in == 0 ? 1 : 2;
    row->shape[0] = out;
    row->shape[1] = in == 0 ? 1 : in;
    row->count = (size_t)(out * row->shape[1]);
    row->dtype = (enum dtype)config->numerics.param;
    row->role = role;
    row->layer = layer;
    row->group = is_undecayed(config, row) ? 1 : 0;
    row->trainable = 1;
    row->tied_to = -1;
    row->adapter_of = -1;
    row->uses = 1;
    table->index[layer * ROLE_COUNT + role] = table->count++;
    return STATUS_OK;
}

/* Adds a matrix, and its bias where the switch says so. */
static enum status add_linear(struct builder *build, enum param_role role, uint32_t layer,
                              uint64_t out, uint64_t in, int32_t has_bias) {
    TRY(add_row(build, role, layer, out, in));
    return has_bias ? add_row(build, params_bias(role), layer, out, 0) : STATUS_OK;
}

static enum status add_layer(struct builder *build, uint32_t layer) {
    const struct config *config = build->config;
    uint64_t C = config->model.hidden, M = config->model.mlp, D = config->model.head_dim;
    uint64_t Q = config->model.heads * D, K = config->model.kv_heads * D;
    int32_t qkv = config->model.qkv_bias, output = config->model.output_bias;
    int32_t mlp = config->model.mlp_bias, family = config->model.family;
    TRY(add_linear(build, ROLE_Q, layer, Q, C, qkv));
    TRY(add_linear(build, ROLE_K, layer, K, C, qkv));
    TRY(add_linear(build, ROLE_V, layer, K, C, qkv));
    TRY(add_linear(build, ROLE_O, layer, C, Q, output));
    if (family == FAMILY_OLMO2 || family == FAMILY_QWEN3) {
        const int whole = family == FAMILY_OLMO2;
        TRY(add_row(build, ROLE_Q_NORM, layer, whole ? Q : D, 0));
        TRY(add_row(build, ROLE_K_NORM, layer, whole ? K : D, 0));
    }
    TRY(add_linear(build, ROLE_GATE, layer, M, C, mlp));
    TRY(add_linear(build, ROLE_UP, layer, M, C, mlp));
    TRY(add_linear(build, ROLE_DOWN, layer, C, M, mlp));
    TRY(add_row(build, ROLE_NORM_A, layer, C, 0));
    return add_row(build, ROLE_NORM_B, layer, C, 0);
}

static void tie_head(struct param_table *table) {
    uint32_t head = table->index[ROLE_HEAD], embedding = table->index[ROLE_EMBEDDING];
    table->rows[head].tied_to = (int32_t)embedding;
    table->rows[head].uses = 0;
    table->rows[embedding].uses = 2;
}

/* Refuses a word list that names no tensor: it is a mistake. */
static enum status check_named(const struct config *config, const struct param_table *table) {
    if (config->optimizer.decay != DECAY_NAMED) return STATUS_OK;
    for (uint32_t i = 0; i < table->count; i++)
        if (table->rows[i].tied_to < 0 && table->rows[i].group == 1) return STATUS_OK;
    FAIL(STATUS_INPUT,
         "optimizer.no_decay: no tensor has one of \"%s\" in its name; expected words such as norm "
         "or embed_tokens, or optimizer.decay: all",
         config->optimizer.no_decay);
}

enum status params_open(const struct config *config, struct arena *arena, struct param_table *out) {
    uint64_t layers = config->model.layers;
    memset(out, 0, sizeof *out);
    TRY(arena_take(arena, layers * ROLE_COUNT, sizeof *out->index, "parameter index", &out->index));
    for (size_t i = 0; i < layers * ROLE_COUNT; i++)
        out->index[i] = PARAM_ABSENT;
    TRY(arena_take(arena, layers * ROLE_COUNT + 3, sizeof *out->rows, "parameter table",
                   &out->rows));
    struct builder build = {config, arena, out};
    TRY(add_row(&build, ROLE_EMBEDDING, 0, config->model.vocab, config->model.hidden));
    for (uint32_t layer = 0; layer < layers; layer++)
        TRY(add_layer(&build, layer));
    TRY(add_row(&build, ROLE_NORM_FINAL, 0, config->model.hidden, 0));
    TRY(add_row(&build, ROLE_HEAD, 0, config->model.vocab, config->model.hidden));
    if (config->model.tied) tie_head(out);
    out->groups = config->optimizer.decay == DECAY_ALL ? 1 : 2;
    for (uint32_t i = 0; i < out->count; i++)
        if (out->rows[i].tied_to < 0) out->elements += out->rows[i].count;
    return check_named(config, out);
}

uint32_t params_owner(const struct param_table *table, enum param_role role, uint32_t layer) {
    uint32_t row = table->index[layer * ROLE_COUNT + role];
    if (row != PARAM_ABSENT && table->rows[row].tied_to >= 0)
        row = (uint32_t)table->rows[row].tied_to;
    return row;
}

/* Makes the block of `draws` the slice of a matrix that rank `rank` of tensor parallelism has:
 * columns where its input is dealt (heads, the MLP), else rows. It is drawn as a tensor of its
 * own. */
static void take_slice(const struct param_row *row, uint64_t rank, uint64_t ranks,
                       struct draws_args *draws) {
    const int by_columns = row->role == ROLE_O || row->role == ROLE_DOWN;
    const uint64_t width = row->shape[by_columns];
    const size_t first = (size_t)(rank * width / ranks), end = (size_t)((rank + 1) * width / ranks);
    draws->row = draws->column = 0;
    draws->rows = (size_t)row->shape[0];
    draws->columns = draws->width = (size_t)row->shape[1];
    *(by_columns ? &draws->column : &draws->row) = first;
    *(by_columns ? &draws->columns : &draws->rows) = end - first;
}

/* Makes it the rows that data-parallel rank `rank` owns where FSDP2 shards the matrix: ceil(rows /
 * P), the last parts shorter or empty. */
static void take_rows(const struct param_row *row, uint64_t rank, uint64_t ranks,
                      struct draws_args *draws) {
    const uint64_t rows = row->shape[0], share = (rows + ranks - 1) / ranks;
    const uint64_t first = rank * share < rows ? rank * share : rows;
    draws->row = (size_t)first;
    draws->rows = (size_t)(rows - first < share ? rows - first : share);
    draws->column = 0;
    draws->columns = draws->width = (size_t)row->shape[1];
}

enum status params_init(const struct config *config, const struct param_table *table, uint32_t row,
                        void *values) {
    const struct param_row *r = &table->rows[row];
    if (r->rank == 1) {
        for (size_t i = 0; i < r->count; i++)
            element_set(values, r->dtype, i, params_is_bias(r->role) ? 0.0 : 1.0);
        return STATUS_OK;
    }
    int in_layer = r->role != ROLE_EMBEDDING && r->role != ROLE_HEAD;
    struct stream_address address = {.stream = STREAM_INIT,
                                     .layer = in_layer ? (uint64_t)r->layer + 1 : 0,
                                     .op = (uint64_t)r->role,
                                     .last_element = r->count - 1};
    const int32_t draws = config->parallel.draws;
    const int by_rows = draws == DRAWS_SAME_ROWS;
    const uint64_t ranks = draws == DRAWS_WHOLE ? 1
                           : by_rows            ? config->parallel.ranks
                                                : config->parallel.tensor;
    for (uint64_t rank = 0; rank < ranks; rank++) {
        struct draws_args slice = {.seed = config->init.seed,
                                   .std = config->init.std,
                                   .dtype = r->dtype,
                                   .values = values};
        (by_rows ? take_rows : take_slice)(r, rank, ranks, &slice);
        address.rank = draws == DRAWS_OWN ? rank : 0;
        TRY(stream_pack(&address, &slice.site));
        draws_normal((int)config->numerics.threads, &slice);
    }
    return STATUS_OK;
}

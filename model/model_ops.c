/* SPDX-License-Identifier: Apache-2.0
 * Leads from a parameter role to the arguments of an op. What differs between families (norms over
 * heads, biases) is decided here by the parameter table and by the model's switches, never by a
 * family's name. Invariant: a role has one site. */
#include "model/model_ops.h"

#include "kernels/op.h"
#include "model/watch.h"

struct pass pass_open(struct model *model, const struct model_weights *weights,
                      const struct batch *batch, uint32_t call, uint32_t side_offset) {
    const struct batch_call *part = &batch->calls[call];
    return (struct pass){
        .model = model,
        .weights = weights,
        .batch = batch,
        .part = part,
        .rows = {model_seen(model, batch, batch->token_row + part->first_token), part->token_count},
        .side = part->side + side_offset};
}

struct op_call pass_call(const struct pass *pass, enum op_site site, uint32_t layer) {
    struct op_call call = pass->model->call;
    call.site = site;
    call.layer = layer == PASS_NO_LAYER ? 0 : layer + 1;
    call.side = pass->side;
    call.rows = pass->part->row_count;
    call.first_row = pass->batch->sequences[pass->part->first_sequence].row;
    call.length = pass->part->row_length;
    return call;
}

const void *pass_weight(const struct pass *pass, enum param_role role, uint32_t layer) {
    return pass->weights->row[pass->model->table->index[layer_index(layer) * ROLE_COUNT + role]];
}

/* The widths that roles have, as places in a list of the model's sizes. */
enum width { WIDTH_C = 0, WIDTH_Q, WIDTH_K, WIDTH_M, WIDTH_V };

static const struct role {
    enum op_site site;
    enum width n, k; /* output and input */
} roles[ROLE_COUNT] = {
#define ROLE_ROW(role, name, tensor, site, out, in, label)                                         \
    [ROLE_##role] = {SITE_##site, WIDTH_##out, WIDTH_##in},
    PARAM_ROLES(ROLE_ROW)};

void pass_widths(const struct model *model, enum param_role role, uint32_t *out_n,
                 uint32_t *out_k) {
    const uint32_t width[] = {model->C, model->Q, model->K, model->M, model->V};
    *out_n = width[roles[role].n];
    *out_k = width[roles[role].k];
}

enum op_site pass_site(enum param_role role) {
    return roles[role].site;
}

/* Heads, the MLP and the vocabulary are dealt to ranks of tensor parallelism, the hidden width is
 * not. */
static uint32_t cuts_along(const struct model *model, enum width width) {
    return width == WIDTH_C ? 1 : (uint32_t)model->config->numerics.cuts;
}

uint32_t pass_cuts_of_input(const struct model *model, enum param_role role) {
    return cuts_along(model, roles[role].k);
}

uint32_t pass_cuts_of_output(const struct model *model, enum param_role role) {
    return cuts_along(model, roles[role].n);
}

/* A norm of each head sums over that head alone, which is whole. */
uint32_t pass_cuts_of_norm(const struct model *model, enum param_role role) {
    return model->head_norm ? 1 : cuts_along(model, roles[role].n);
}

/* Head h of row r in a matrix of width heads * D is row r * heads + h of width D. */
static void list_heads(const uint32_t *rows, uint32_t count, uint32_t heads, uint32_t *out) {
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t h = 0; h < heads; h++)
            *out++ = rows[i] * heads + h;
}

void pass_list_heads(struct model *model, const struct batch *batch, int canonical) {
    const uint32_t *const rows = canonical ? batch->canonical_row : batch->token_row;
    if (!model->head_norm) return;
    list_heads(rows, batch->token_count, model->H, model->head_rows[canonical].q);
    list_heads(rows, batch->token_count, model->G, model->head_rows[canonical].k);
    model_see_heads(model, batch->token_count, canonical);
}

struct row_list pass_norm_rows(const struct pass *pass, enum param_role role, int canonical,
                               uint32_t *out_c) {
    const struct model *model = pass->model;
    const struct head_rows *const heads = &model->seen_head_rows[canonical];
    const size_t first = canonical ? 0 : pass->part->first_token;
    uint32_t unused;
    pass_widths(model, role, out_c, &unused);
    if (!model->head_norm || (role != ROLE_Q_NORM && role != ROLE_K_NORM)) return pass->rows;
    *out_c = model->D;
    if (role == ROLE_Q_NORM)
        return (struct row_list){heads->q + first * model->H, pass->rows.count * model->H};
    return (struct row_list){heads->k + first * model->G, pass->rows.count * model->G};
}

const void *pass_bias(const struct pass *pass, enum param_role role, uint32_t layer) {
    const enum param_role bias = params_bias(role);
    if (bias == ROLE_COUNT) return NULL;
    const uint32_t row = pass->model->table->index[layer_index(layer) * ROLE_COUNT + bias];
    return row == PARAM_ABSENT ? NULL : pass->weights->row[row];
}

/* Before a bias is added, the chain is rounded to its carrier only, not to the compute dtype (law
 * 17). Where y has two bytes, which cannot hold that, the product adds the bias itself. */
void pass_linear(const struct pass *pass, uint32_t layer, enum param_role role, const void *x,
                 void *y) {
    struct op_call call = pass_call(pass, pass_site(role), layer);
    struct linear_forward_args args = {
        .rows = pass->rows, .x = x, .w = pass_weight(pass, role, layer), .y = y};
    struct bias_args bias = {.rows = pass->rows, .b = pass_bias(pass, role, layer), .y = y};
    pass_widths(pass->model, role, &args.N, &args.K);
    call.cuts = pass_cuts_of_input(pass->model, role);
    if (bias.b != NULL && call.narrow) {
        args.b = bias.b;
        bias.b = NULL;
    }
    if (bias.b != NULL) call.compute = pass->model->compute == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32;
    pass->model->ops->linear_forward(&call, &args);
    if (bias.b != NULL) {
        call.compute = pass->model->compute;
        bias.C = args.N;
        pass->model->ops->bias(&call, &bias);
    }
    watch_role_output(pass, layer, role, 0, y, args.N);
}

void pass_norm(const struct pass *pass, uint32_t layer, enum param_role role, const void *x,
               void *y, void *rstd) {
    const struct config *config = pass->model->config;
    struct op_call call = pass_call(pass, pass_site(role), layer);
    struct norm_forward_args args = {.eps = config->model.norm_eps,
                                     .rounding = (enum norm_rounding)config->model.norm_rounding,
                                     .x = x,
                                     .y = y,
                                     .rstd = rstd};
    uint32_t width, unused;
    pass_widths(pass->model, role, &width, &unused);
    const struct row_list all = pass_norm_rows(pass, role, 0, &args.C);
    call.cuts = pass_cuts_of_norm(pass->model, role);
    for (uint32_t rank = 0; rank < pass_ranks(pass->model, role); rank++) {
        args.rows = pass_rows_of_rank(pass, role, rank, all);
        args.w = pass_weight_of_rank(pass, role, layer, rank);
        pass->model->ops->norm_forward(&call, &args);
    }
    watch_role_output(pass, layer, role, 0, y, width);
}

void pass_rotary(const struct pass *pass, uint32_t layer, void *x, uint32_t heads, int inverse) {
    const struct model *model = pass->model;
    struct op_call call = pass_call(pass, SITE_NONE, layer);
    struct rotary_args args = {
        .rows = pass->rows,
        .heads = heads,
        .D = model->D,
        .position =
            model_seen(model, pass->batch, pass->batch->token_position + pass->part->first_token),
        .cosine = model->cosine,
        .sine = model->sine,
        .x = x,
        .inverse = inverse};
    model->ops->rotary(&call, &args);
}

void pass_copy(const struct pass *pass, const void *from, void *to) {
    const struct op_call call = pass_call(pass, SITE_NONE, PASS_NO_LAYER);
    const struct embedding_forward_args args = {pass->rows, pass->model->C, pass->rows.index, from,
                                                to};
    pass->model->ops->embedding_forward(&call, &args);
}

void pass_add(const struct pass *pass, uint32_t layer, const void *a, const void *b, void *y) {
    struct op_call call = pass_call(pass, SITE_NONE, layer);
    struct add_args args = {pass->rows, pass->model->C, a, b, y};
    pass->model->ops->add(&call, &args);
}

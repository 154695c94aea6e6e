/* SPDX-License-Identifier: Apache-2.0
 * From a parameter role to the arguments of an op. */
#include "trainer/model_ops.h"

#include "trainer/watch.h"

struct pass pass_open(struct model *model, const struct model_weights *weights,
                      const struct batch *batch, uint32_t call, uint32_t side_offset) {
    const struct batch_call *part = &batch->calls[call];
    return (struct pass){.model = model,
                         .weights = weights,
                         .batch = batch,
                         .part = part,
                         .rows = {batch->token_row + part->first_token, part->token_count},
                         .side = part->side + side_offset,
                         .olmo2 = model->config->model.family == FAMILY_OLMO2};
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

void pass_widths(const struct model *model, enum param_role role, uint32_t *out_n,
                 uint32_t *out_k) {
    uint32_t C = model->C, M = model->M, Q = model->Q, K = model->K;
    uint32_t n = C, k = C;
    switch (role) {
    case ROLE_Q:
        n = Q;
        break;
    case ROLE_K:
    case ROLE_V:
        n = K;
        break;
    case ROLE_O:
        k = Q;
        break;
    case ROLE_GATE:
    case ROLE_UP:
        n = M;
        break;
    case ROLE_DOWN:
        k = M;
        break;
    case ROLE_EMBEDDING:
    case ROLE_HEAD:
        n = model->V;
        break;
    case ROLE_Q_NORM:
        n = Q;
        break;
    case ROLE_K_NORM:
        n = K;
        break;
    default:
        break;
    }
    *out_n = n;
    *out_k = k;
}

enum op_site pass_site(enum param_role role) {
    static const enum op_site sites[ROLE_COUNT] = {
        [ROLE_EMBEDDING] = SITE_EMBEDDING,
        [ROLE_Q] = SITE_Q_PROJ,
        [ROLE_K] = SITE_K_PROJ,
        [ROLE_V] = SITE_V_PROJ,
        [ROLE_O] = SITE_O_PROJ,
        [ROLE_Q_NORM] = SITE_Q_NORM,
        [ROLE_K_NORM] = SITE_K_NORM,
        [ROLE_NORM_A] = SITE_NORM_A,
        [ROLE_NORM_B] = SITE_NORM_B,
        [ROLE_GATE] = SITE_GATE_PROJ,
        [ROLE_UP] = SITE_UP_PROJ,
        [ROLE_DOWN] = SITE_DOWN_PROJ,
        [ROLE_NORM_FINAL] = SITE_NORM_FINAL,
        [ROLE_HEAD] = SITE_HEAD,
    };
    return sites[role];
}

void pass_linear(const struct pass *pass, uint32_t layer, enum param_role role, const void *x,
                 void *y) {
    struct op_call call = pass_call(pass, pass_site(role), layer);
    struct linear_forward_args args = {
        .rows = pass->rows, .x = x, .w = pass_weight(pass, role, layer), .y = y};
    pass_widths(pass->model, role, &args.N, &args.K);
    pass->model->ops->linear_forward(&call, &args);
    watch_role_output(pass, layer, role, 0, y, args.N);
}

void pass_norm(const struct pass *pass, uint32_t layer, enum param_role role, const void *x,
               void *y, void *rstd) {
    const struct config *config = pass->model->config;
    struct op_call call = pass_call(pass, pass_site(role), layer);
    struct norm_forward_args args = {.rows = pass->rows,
                                     .eps = config->model.norm_eps,
                                     .rounding = (enum norm_rounding)config->model.norm_rounding,
                                     .x = x,
                                     .w = pass_weight(pass, role, layer),
                                     .y = y,
                                     .rstd = rstd};
    uint32_t unused;
    pass_widths(pass->model, role, &args.C, &unused);
    pass->model->ops->norm_forward(&call, &args);
    watch_role_output(pass, layer, role, 0, y, args.C);
}

void pass_rotary(const struct pass *pass, uint32_t layer, void *x, uint32_t heads, int inverse) {
    const struct model *model = pass->model;
    struct op_call call = pass_call(pass, SITE_NONE, layer);
    struct rotary_args args = {.rows = pass->rows,
                               .heads = heads,
                               .D = model->D,
                               .position = pass->batch->token_position + pass->part->first_token,
                               .cosine = model->cosine,
                               .sine = model->sine,
                               .x = x,
                               .inverse = inverse};
    model->ops->rotary(&call, &args);
}

void pass_add(const struct pass *pass, uint32_t layer, const void *a, const void *b, void *y) {
    struct op_call call = pass_call(pass, SITE_NONE, layer);
    struct add_args args = {pass->rows, pass->model->C, a, b, y};
    pass->model->ops->add(&call, &args);
}

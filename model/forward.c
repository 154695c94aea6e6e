/* SPDX-License-Identifier: Apache-2.0
 * Forward: embedding, layers, final norm and head on label rows, label log-probs. Each batch_call
 * is one forward call. Invariant: a row's result depends on its own sequence only, so that in mode
 * `invariant` the number of calls moves no bit. */
#include "model/model.h"

#include "kernels/op.h"
#include "model/model_dropout.h"
#include "model/model_ops.h"
#include "model/watch.h"

static void attend(const struct pass *pass, uint32_t i) {
    const struct model *model = pass->model;
    struct layer_buffers *layer = &model->layer[i];
    if (model->attend != NULL) {
        model->attend->run(model->attend->context, pass, i);
        return;
    }
    struct op_call call = pass_call(pass, SITE_ATTENTION, i);
    struct dropout dropout;
    model->ops->attention_forward(
        &call,
        &(struct attention_forward_args){
            pass->batch->sequences + pass->part->first_sequence, pass->part->sequence_count,
            model->H, model->G, model->D, model->scale, layer->q, layer->k, layer->v, layer->att,
            pass_dropout(pass, DROP_ATTENTION, i, 1, &dropout), layer->att_state});
}

/* A row-parallel layer: the sum over ranks of their slices' products. */
static void linear_of_slices(const struct pass *pass, uint32_t i, enum param_role role, void *x,
                             void *y) {
    uint32_t unused, width;
    pass_widths(pass->model, role, &unused, &width);
    pass_join_slices(pass, FED_TOKENS, x, width);
    pass_linear(pass, i, role, x, y);
    pass_keep_slices(pass, FED_TOKENS, x, width);
}

static void attention_block(const struct pass *pass, uint32_t i) {
    const struct model *model = pass->model;
    struct layer_buffers *layer = &model->layer[i];
    if (!model->post_norm) pass_norm(pass, i, ROLE_NORM_A, layer->x, layer->a, layer->rstd_a);
    pass_linear(pass, i, ROLE_Q, layer->a, model->qk_norm ? layer->q_line : layer->q);
    pass_linear(pass, i, ROLE_K, layer->a, model->qk_norm ? layer->k_line : layer->k);
    if (model->qk_norm) {
        pass_norm(pass, i, ROLE_Q_NORM, layer->q_line, layer->q, layer->rstd_q);
        pass_norm(pass, i, ROLE_K_NORM, layer->k_line, layer->k, layer->rstd_k);
    }
    pass_linear(pass, i, ROLE_V, layer->a, layer->v);
    pass_rotary(pass, i, layer->q, model->H, 0);
    pass_rotary(pass, i, layer->k, model->G, 0);
    watch_heads(pass, i, LABEL_ROTARY, LABEL_Q, layer->q, model->Q);
    watch_heads(pass, i, LABEL_ROTARY, LABEL_K, layer->k, model->K);
    attend(pass, i);
    watch_heads(pass, i, LABEL_ATTENTION, LABEL_OUTPUT, layer->att, model->Q);
    linear_of_slices(pass, i, ROLE_O, layer->att, layer->o);
    void *branch = layer->o;
    if (model->post_norm) {
        branch = layer->h;
        pass_norm(pass, i, ROLE_NORM_A, layer->o, branch, layer->rstd_a);
    }
    pass_drop(pass, DROP_BRANCH_A, i, 1, branch);
    pass_add(pass, i, layer->x, branch, layer->h);
    watch_tokens(pass, i, LABEL_RESIDUAL, LABEL_AFTER_ATTENTION, layer->h, model->C);
}

static void mlp_block(const struct pass *pass, uint32_t i, void *out) {
    const struct model *model = pass->model;
    struct layer_buffers *layer = &model->layer[i];
    if (!model->post_norm) pass_norm(pass, i, ROLE_NORM_B, layer->h, layer->b, layer->rstd_b);
    pass_linear(pass, i, ROLE_GATE, layer->b, layer->gate);
    pass_linear(pass, i, ROLE_UP, layer->b, layer->up);
    struct op_call call = pass_call(pass, SITE_NONE, i);
    model->ops->swiglu_forward(
        &call,
        &(struct swiglu_forward_args){pass->rows, model->M, layer->gate, layer->up, layer->act});
    watch_tokens(pass, i, LABEL_SWIGLU, LABEL_OUTPUT, layer->act, model->M);
    linear_of_slices(pass, i, ROLE_DOWN, layer->act, layer->down);
    void *branch = layer->down;
    if (model->post_norm) {
        branch = out;
        pass_norm(pass, i, ROLE_NORM_B, layer->down, branch, layer->rstd_b);
    }
    pass_drop(pass, DROP_BRANCH_B, i, 1, branch);
    pass_add(pass, i, layer->h, branch, out);
    watch_tokens(pass, i, LABEL_RESIDUAL, LABEL_AFTER_MLP, out, model->C);
}

/* The head works on gathered label rows: other positions have no final norm and no logits (law
 * 3). */
static void head_block(const struct pass *pass) {
    const struct model *model = pass->model;
    const struct batch_call *part = pass->part;
    if (part->label_count == 0) return;
    size_t first = part->first_label;
    unsigned char *x = row_of(model->label_x, first, model->C, model->form.width);
    unsigned char *h = row_of(model->label_h, first, model->C, model->form.width);
    unsigned char *logits = row_of(model->logits, first, model->V, model->form.width);
    struct row_list rows = {NULL, part->label_count};
    struct op_call call = pass_call(pass, SITE_NONE, PASS_NO_LAYER);
    model->ops->embedding_forward(
        &call, &(struct embedding_forward_args){
                   rows, model->C, model_seen(model, pass->batch, pass->batch->label_row + first),
                   model->last, x});
    struct pass labels = *pass;
    labels.rows = rows;
    pass_norm(&labels, PASS_NO_LAYER, ROLE_NORM_FINAL, x, h,
              row_of(model->label_rstd, first, 1, model->accumulator));
    watch_labels(pass, watch_role(model, ROLE_NORM_FINAL), LABEL_OUTPUT, model->label_h,
                 model->form, WATCH_HIDDEN(pass));
    pass_linear(&labels, PASS_NO_LAYER, ROLE_HEAD, h, logits);
    pass_join_slices(pass, FED_LABELS, model->logits, model->V);
    watch_labels(pass, watch_role(model, ROLE_HEAD), LABEL_LOGITS, model->logits, model->form,
                 WATCH_LOGITS(pass));
    call = pass_call(pass, SITE_LOSS, PASS_NO_LAYER);
    call.cuts = pass_cuts_of_output(model, ROLE_HEAD);
    model->ops->logprob_forward(
        &call, &(struct logprob_forward_args){
                   part->label_count, model->V, model->loss,
                   model_seen(model, pass->batch, pass->batch->label_target + first), logits,
                   row_of(model->maximum, first, 1, model->accumulator),
                   row_of(model->sum, first, 1, model->accumulator), model->logp + first});
    watch_labels(pass, LABEL_LOG_SOFTMAX, LABEL_MAXIMUM, model->maximum,
                 form_carried(model->accumulate), WATCH_ONE);
    watch_labels(pass, LABEL_LOG_SOFTMAX, LABEL_SUM, model->sum, form_carried(model->accumulate),
                 WATCH_ONE);
    watch_labels(pass, LABEL_LOG_SOFTMAX, LABEL_LOGP, model->logp, form_carried(DTYPE_F64),
                 WATCH_ONE);
}

void pass_layer(const struct pass *pass, uint32_t i) {
    const struct model *model = pass->model;
    attention_block(pass, i);
    mlp_block(pass, i, i + 1 < model->layers ? model->layer[i + 1].x : model->last);
}

/* A rank whose samples are its own looks them up in its own copy of the embedding. */
static void embed(const struct pass *pass) {
    const struct model *model = pass->model;
    const struct batch *batch = pass->batch;
    const struct op_call call = pass_call(pass, SITE_EMBEDDING, PASS_NO_LAYER);
    const uint32_t count = pass->rows.count / batch->fed_ranks;
    for (uint32_t rank = 0; rank < batch->fed_ranks; rank++) {
        const uint32_t first = pass->part->first_token + rank * count;
        model->ops->embedding_forward(
            &call, &(struct embedding_forward_args){
                       {pass->rows.index + rank * count, count},
                       model->C,
                       model_seen(model, batch, batch->token_id + first),
                       pass_weight_of_rank(pass, ROLE_EMBEDDING, PASS_NO_LAYER, rank),
                       model->layer[0].x});
    }
}

void model_forward(struct model *model, const struct model_weights *weights,
                   const struct batch *batch, uint32_t side_offset) {
    model->order.sample = batch->first_sample;
    model->redrawn = 0;
    model_see_batch(model, batch);
    pass_list_heads(model, batch, 0);
    model_deal_rows(model, batch);
    for (uint32_t c = 0; c < batch->call_count; c++) {
        struct pass pass = pass_open(model, weights, batch, c, side_offset);
        embed(&pass);
        watch_role_output(&pass, PASS_NO_LAYER, ROLE_EMBEDDING, 0, model->layer[0].x, model->C);
        pass_drop(&pass, DROP_EMBEDDING, PASS_NO_LAYER, 1, model->layer[0].x);
        for (uint32_t i = 0; i < model->layers; i++)
            pass_layer(&pass, i);
        head_block(&pass);
    }
}

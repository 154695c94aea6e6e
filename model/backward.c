/* SPDX-License-Identifier: Apache-2.0
 * Backward, written by hand: head, final norm, layers from the last to the first, embedding.
 *
 * Within a layer the gradients of activations are computed per forward call on that call's rows.
 * Then one joint pass per micro-batch continues the chain of every weight over all tokens in
 * canonical order (law 3), so that neither layout nor the number of calls moves a bit. Where
 * several linear layers have one input their gradients join as (q + k) + v and gate + up, then the
 * residual joins (law 1). */
#include "model/model.h"

#include "kernels/op.h"
#include "model/model_dropout.h"
#include "model/model_ops.h"
#include "model/watch.h"

/* dx = dy . w, or with `add` dx + dy . w. */
static void input_gradient(const struct pass *pass, uint32_t layer, enum param_role role,
                           const void *dy, void *dx, int add) {
    struct op_call call = pass_call(pass, pass_site(role), layer);
    struct linear_input_args args = {
        .rows = pass->rows, .dy = dy, .w = pass_weight(pass, role, layer), .dx = dx, .add = add};
    pass_widths(pass->model, role, &args.N, &args.K);
    call.cuts = pass_cuts_of_output(pass->model, role);
    pass->model->ops->linear_input(&call, &args);
    watch_role_output(pass, layer, role, 1, dx, args.K);
}

/* The same of a column-parallel layer: the sum over ranks of their slices' products. */
static void input_gradient_of_slices(const struct pass *pass, uint32_t layer, enum param_role role,
                                     void *dy, void *dx, int add) {
    uint32_t width, unused;
    pass_widths(pass->model, role, &width, &unused);
    const enum fed_rows rows = role == ROLE_HEAD ? FED_LABELS : FED_TOKENS;
    pass_join_slices(pass, rows, dy, width);
    input_gradient(pass, layer, role, dy, dx, add);
    pass_keep_slices(pass, rows, dy, width);
}

static enum norm_backward norm_formula(const struct config *config) {
    return (enum norm_backward)config->numerics.backward.norm;
}

static void norm_gradient(const struct pass *pass, uint32_t layer, enum param_role role,
                          const void *dy, const void *x, const void *rstd, void *dx) {
    const struct config *config = pass->model->config;
    struct op_call call = pass_call(pass, pass_site(role), layer);
    struct norm_input_args args = {.rounding = (enum norm_rounding)config->model.norm_rounding,
                                   .dy = dy,
                                   .x = x,
                                   .rstd = rstd,
                                   .dx = dx,
                                   .formula = norm_formula(config),
                                   .eps = config->model.norm_eps};
    uint32_t width, unused;
    pass_widths(pass->model, role, &width, &unused);
    const struct row_list all = pass_norm_rows(pass, role, 0, &args.C);
    call.cuts = pass_cuts_of_norm(pass->model, role);
    for (uint32_t rank = 0; rank < pass_ranks(pass->model, role); rank++) {
        args.rows = pass_rows_of_rank(pass, role, rank, all);
        args.w = pass_weight_of_rank(pass, role, layer, rank);
        pass->model->ops->norm_input(&call, &args);
    }
    watch_role_output(pass, layer, role, 1, dx, width);
}

/* The gradient of a branch is that of the sum which the branch was added to. Where the branch was
 * dropped it is a copy of that, dropped in the same way, in `room`. */
static void *branch_gradient(const struct pass *pass, enum dropout_place place, uint32_t i,
                             void *sum, void *room) {
    struct dropout dropout;
    if (pass_dropout(pass, place, i, 0, &dropout) == NULL) return sum;
    pass_copy(pass, sum, room);
    pass_drop(pass, place, i, 0, room);
    return room;
}

/* What the weight pass reads as the gradient of a branch: the copy in `room` where it was
 * dropped. */
static const void *branch_of(const struct model *model, const void *sum, const void *room) {
    int dropped = model->dropping && model->config->dropout.residual > 0.0;
    return dropped ? room : sum;
}

/* Leads from the gradient of the layer's output (gradient.stream) to that of h (gradient.h). */
static void mlp_backward(const struct pass *pass, uint32_t i) {
    const struct model *model = pass->model;
    const struct layer_buffers *layer = &model->layer[i];
    const struct layer_gradients *gradient = &model->gradient;
    void *down = branch_gradient(pass, DROP_BRANCH_B, i, gradient->stream, gradient->branch_b);
    if (model->post_norm) {
        norm_gradient(pass, i, ROLE_NORM_B, down, layer->down, layer->rstd_b, gradient->down);
        down = gradient->down;
    }
    input_gradient(pass, i, ROLE_DOWN, down, gradient->act, 0);
    struct op_call call = pass_call(pass, SITE_NONE, i);
    model->ops->swiglu_backward(
        &call, &(struct swiglu_backward_args){pass->rows, model->M, layer->gate, layer->up,
                                              gradient->act, gradient->gate, gradient->up});
    watch_tokens(pass, i, LABEL_SWIGLU, LABEL_DGATE, gradient->gate, model->M);
    watch_tokens(pass, i, LABEL_SWIGLU, LABEL_DUP, gradient->up, model->M);
    input_gradient_of_slices(pass, i, ROLE_GATE, gradient->gate, gradient->b, 0);
    input_gradient_of_slices(pass, i, ROLE_UP, gradient->up, gradient->b, 1);
    const void *branch = gradient->b;
    if (!model->post_norm) {
        norm_gradient(pass, i, ROLE_NORM_B, gradient->b, layer->h, layer->rstd_b, gradient->h);
        branch = gradient->h;
    }
    pass_add(pass, i, branch, gradient->stream, gradient->h);
    watch_tokens(pass, i, LABEL_RESIDUAL, LABEL_GRADIENT_AFTER_ATTENTION, gradient->h, model->C);
}

static void qk_backward(const struct pass *pass, uint32_t i) {
    const struct model *model = pass->model;
    const struct layer_buffers *layer = &model->layer[i];
    const struct layer_gradients *gradient = &model->gradient;
    pass_rotary(pass, i, gradient->q, model->H, 1);
    pass_rotary(pass, i, gradient->k, model->G, 1);
    watch_heads(pass, i, LABEL_ROTARY, LABEL_DQ, gradient->q, model->Q);
    watch_heads(pass, i, LABEL_ROTARY, LABEL_DK, gradient->k, model->K);
    if (!model->qk_norm) return;
    norm_gradient(pass, i, ROLE_Q_NORM, gradient->q, layer->q_line, layer->rstd_q,
                  gradient->q_line);
    norm_gradient(pass, i, ROLE_K_NORM, gradient->k, layer->k_line, layer->rstd_k,
                  gradient->k_line);
}

/* Leads from gradient.h to the gradient of the layer's input. It is kept in gradient.a until the
 * weight pass has read gradient.stream. */
static void attention_block_backward(const struct pass *pass, uint32_t i) {
    const struct model *model = pass->model;
    const struct layer_buffers *layer = &model->layer[i];
    const struct layer_gradients *gradient = &model->gradient;
    void *o = branch_gradient(pass, DROP_BRANCH_A, i, gradient->h, gradient->branch_a);
    if (model->post_norm) {
        norm_gradient(pass, i, ROLE_NORM_A, o, layer->o, layer->rstd_a, gradient->o);
        o = gradient->o;
    }
    input_gradient(pass, i, ROLE_O, o, gradient->att, 0);
    struct op_call call = pass_call(pass, SITE_ATTENTION, i);
    struct dropout dropout;
    const int flash = model->config->numerics.backward.attention == ATTENTION_FLASH;
    model->ops->attention_backward(&call, &(struct attention_backward_args){
                                              pass->batch->sequences + pass->part->first_sequence,
                                              pass->part->sequence_count, model->H, model->G,
                                              model->D, model->scale, layer->q, layer->k, layer->v,
                                              gradient->att, gradient->q, gradient->k, gradient->v,
                                              pass_dropout(pass, DROP_ATTENTION, i, 0, &dropout),
                                              flash ? layer->att : NULL, layer->att_state});
    watch_heads(pass, i, LABEL_ATTENTION, LABEL_DQ, gradient->q, model->Q);
    watch_heads(pass, i, LABEL_ATTENTION, LABEL_DK, gradient->k, model->K);
    watch_heads(pass, i, LABEL_ATTENTION, LABEL_DV, gradient->v, model->K);
    qk_backward(pass, i);
    input_gradient_of_slices(pass, i, ROLE_Q, model->qk_norm ? gradient->q_line : gradient->q,
                             gradient->a, 0);
    input_gradient_of_slices(pass, i, ROLE_K, model->qk_norm ? gradient->k_line : gradient->k,
                             gradient->a, 1);
    input_gradient_of_slices(pass, i, ROLE_V, gradient->v, gradient->a, 1);
}

static void residual_backward(const struct pass *pass, uint32_t i) {
    const struct layer_buffers *layer = &pass->model->layer[i];
    const struct layer_gradients *gradient = &pass->model->gradient;
    const void *branch = gradient->a;
    if (!pass->model->post_norm) {
        norm_gradient(pass, i, ROLE_NORM_A, gradient->a, layer->x, layer->rstd_a, gradient->stream);
        branch = gradient->stream;
    }
    pass_add(pass, i, branch, gradient->h, gradient->stream);
    watch_tokens(pass, i, LABEL_RESIDUAL, LABEL_GRADIENT_OF_INPUT, gradient->stream,
                 pass->model->C);
}

/* The joint weight pass: its lists are in canonical order, and its address has side 0. */
struct weight_pass {
    struct pass pass;
    const struct model_gradients *gradients;
    struct row_list rows;
    uint32_t use;
    int labels; /* 1: the rows are those of labels, else of tokens */
};

/* What one call of a weight's op is given: consecutive rows and the chains that they continue. */
struct weight_part {
    struct row_list rows;
    uint32_t first; /* where the rows begin in the list of the pass */
    void *acc;
    int opens; /* 1: a product begins its chains at +0, whatever acc holds */
};

static uint32_t part_count(const struct weight_pass *joint) {
    return joint->gradients->parts == NULL ? 1 : joint->gradients->parts->count;
}

/* The first sample in the chains that the pass leaves behind: those of its last part. */
static uint32_t chains_from(const struct weight_pass *joint) {
    const struct model_parts *const parts = joint->gradients->parts;
    return parts == NULL ? 0 : parts->part[parts->count - 1].from;
}

static struct weight_part part_open(const struct weight_pass *joint, uint32_t index,
                                    enum param_role role, uint32_t layer) {
    const struct param_table *table = joint->pass.model->table;
    const struct model_parts *const parts = joint->gradients->parts;
    const uint32_t row = params_owner(table, role, layer_index(layer));
    if (parts == NULL)
        return (struct weight_part){joint->rows, 0, joint->gradients->row[row][joint->use],
                                    joint->gradients->opens};
    const struct model_part *const part = &parts->part[index];
    const uint32_t first = joint->labels ? part->first_label : part->first_token;
    const uint32_t count = joint->labels ? part->labels : part->tokens;
    return (struct weight_part){{joint->rows.index + first, count},
                                first,
                                parts->begin(parts->context, index, row, joint->use),
                                0};
}

/* acc[n] += dy[r, n]: the gradient of a bias is that of a weight whose x is 1 (law 17). */
static void bias_weight(const struct weight_pass *joint, uint32_t layer, enum param_role role,
                        const void *dy, uint32_t width) {
    const struct model *model = joint->pass.model;
    struct op_call call = pass_call(&joint->pass, pass_site(role), layer);
    struct linear_weight_args args = {.N = width, .K = 1, .dy = dy, .x = model->ones};
    for (uint32_t i = 0; i < part_count(joint); i++) {
        const struct weight_part part = part_open(joint, i, role, layer);
        args.rows = part.rows;
        args.acc = part.acc;
        args.opens = part.opens;
        model->ops->linear_weight(&call, &args);
    }
    watch_weight(&joint->pass, layer, role, args.acc, joint->use, chains_from(joint));
}

static void matrix_weight(const struct weight_pass *joint, uint32_t layer, enum param_role role,
                          const void *dy, const void *x) {
    struct op_call call = pass_call(&joint->pass, pass_site(role), layer);
    struct linear_weight_args args = {.dy = dy, .x = x};
    pass_widths(joint->pass.model, role, &args.N, &args.K);
    for (uint32_t i = 0; i < part_count(joint); i++) {
        const struct weight_part part = part_open(joint, i, role, layer);
        args.rows = part.rows;
        args.acc = part.acc;
        args.opens = part.opens;
        joint->pass.model->ops->linear_weight(&call, &args);
    }
    watch_weight(&joint->pass, layer, role, args.acc, joint->use, chains_from(joint));
    if (pass_bias(&joint->pass, role, layer) != NULL)
        bias_weight(joint, layer, params_bias(role), dy, args.N);
}

/* What ranks other than 0 add to sums of their own: a rank's rows of `all`, in that order. */
static void norm_weight_apart(const struct weight_pass *joint, struct norm_weight_args args,
                              const struct op_call *call, uint32_t layer, enum param_role role,
                              struct row_list all) {
    const struct pass *const pass = &joint->pass;
    for (uint32_t rank = 1; rank < pass_ranks(pass->model, role); rank++) {
        args.rows = pass_rows_of_rank(pass, role, rank, all);
        args.w = pass_weight_of_rank(pass, role, layer, rank);
        args.acc = pass_sums_of_rank(pass, role, layer, rank);
        pass->model->ops->norm_weight(call, &args);
    }
}

static void norm_weight(const struct weight_pass *joint, uint32_t layer, enum param_role role,
                        const void *dy, const void *x, const void *rstd) {
    const struct model *model = joint->pass.model;
    struct op_call call = pass_call(&joint->pass, pass_site(role), layer);
    struct norm_weight_args args = {.rounding =
                                        (enum norm_rounding)model->config->model.norm_rounding,
                                    .dy = dy,
                                    .x = x,
                                    .rstd = rstd,
                                    .formula = norm_formula(model->config),
                                    .w = pass_weight(&joint->pass, role, layer),
                                    .eps = model->config->model.norm_eps};
    struct pass rows = joint->pass;
    rows.rows = joint->rows;
    const struct row_list all = pass_norm_rows(&rows, role, 1, &args.C);
    /* a norm over each head has as many rows for each listed one */
    const uint32_t heads = joint->rows.count == 0 ? 1 : all.count / joint->rows.count;
    for (uint32_t i = 0; i < part_count(joint); i++) {
        const struct weight_part part = part_open(joint, i, role, layer);
        args.rows =
            (struct row_list){all.index + (size_t)part.first * heads, part.rows.count * heads};
        args.rows = pass_rows_of_rank(&joint->pass, role, 0, args.rows);
        args.acc = part.acc;
        model->ops->norm_weight(&call, &args);
    }
    norm_weight_apart(joint, args, &call, layer, role, all);
    watch_weight(&joint->pass, layer, role, args.acc, joint->use, chains_from(joint));
}

static void layer_weights(const struct weight_pass *joint, uint32_t i) {
    const struct layer_buffers *layer = &joint->pass.model->layer[i];
    const struct layer_gradients *gradient = &joint->pass.model->gradient;
    const struct model *model = joint->pass.model;
    const void *branch_a = branch_of(model, gradient->h, gradient->branch_a);
    const void *branch_b = branch_of(model, gradient->stream, gradient->branch_b);
    int olmo2 = model->post_norm, qk_norm = model->qk_norm;
    matrix_weight(joint, i, ROLE_Q, qk_norm ? gradient->q_line : gradient->q, layer->a);
    matrix_weight(joint, i, ROLE_K, qk_norm ? gradient->k_line : gradient->k, layer->a);
    matrix_weight(joint, i, ROLE_V, gradient->v, layer->a);
    matrix_weight(joint, i, ROLE_O, olmo2 ? gradient->o : branch_a, layer->att);
    matrix_weight(joint, i, ROLE_GATE, gradient->gate, layer->b);
    matrix_weight(joint, i, ROLE_UP, gradient->up, layer->b);
    matrix_weight(joint, i, ROLE_DOWN, olmo2 ? gradient->down : branch_b, layer->act);
    if (qk_norm) {
        norm_weight(joint, i, ROLE_Q_NORM, gradient->q, layer->q_line, layer->rstd_q);
        norm_weight(joint, i, ROLE_K_NORM, gradient->k, layer->k_line, layer->rstd_k);
    }
    if (olmo2) {
        norm_weight(joint, i, ROLE_NORM_A, branch_a, layer->o, layer->rstd_a);
        norm_weight(joint, i, ROLE_NORM_B, branch_b, layer->down, layer->rstd_b);
    } else {
        norm_weight(joint, i, ROLE_NORM_A, gradient->a, layer->x, layer->rstd_a);
        norm_weight(joint, i, ROLE_NORM_B, gradient->b, layer->h, layer->rstd_b);
    }
}

static void head_input(const struct pass *pass, const double *coefficient) {
    const struct model *model = pass->model;
    const struct batch_call *part = pass->part;
    if (part->label_count == 0) return;
    size_t first = part->first_label;
    struct row_list rows = {NULL, part->label_count};
    unsigned char *logits = row_of(model->logits, first, model->V, model->form.width);
    unsigned char *dh = row_of(model->label_dh, first, model->C, model->form.width);
    struct op_call call = pass_call(pass, SITE_LOSS, PASS_NO_LAYER);
    model->ops->logprob_backward(
        &call, &(struct logprob_backward_args){
                   part->label_count, model->V, model->loss,
                   model_seen(model, pass->batch, pass->batch->label_target + first),
                   coefficient + first, row_of(model->maximum, first, 1, model->accumulator),
                   row_of(model->sum, first, 1, model->accumulator), logits,
                   model->config->numerics.backward.cross_entropy == CROSS_ENTROPY_TWO_STEP});
    watch_labels(pass, LABEL_LOG_SOFTMAX, LABEL_GRADIENT_OF_LOGITS, model->logits, model->form,
                 WATCH_LOGITS(pass));
    struct pass labels = *pass;
    labels.rows = rows;
    input_gradient_of_slices(&labels, PASS_NO_LAYER, ROLE_HEAD, logits, dh, 0);
    watch_labels(pass, watch_role(model, ROLE_HEAD), LABEL_INPUT_GRADIENT, model->label_dh,
                 model->form, WATCH_HIDDEN(pass));
    norm_gradient(&labels, PASS_NO_LAYER, ROLE_NORM_FINAL, dh,
                  row_of(model->label_x, first, model->C, model->form.width),
                  row_of(model->label_rstd, first, 1, model->accumulator),
                  row_of(model->label_dx, first, model->C, model->form.width));
    watch_labels(pass, watch_role(model, ROLE_NORM_FINAL), LABEL_INPUT_GRADIENT, model->label_dx,
                 model->form, WATCH_HIDDEN(pass));
}

/* Sets a matrix (R, C) to +0 on the rows of the call's tokens. Sequences that touch are filled in
 * one call. */
static void clear_rows(const struct pass *pass, void *matrix) {
    const struct model *model = pass->model;
    const struct sequence *const sequences = pass->batch->sequences + pass->part->first_sequence;
    const uint32_t count = pass->part->sequence_count;
    const size_t bytes = (size_t)model->C * model->form.width;
    for (uint32_t i = 0; i < count;) {
        const uint32_t first = sequences[i].row;
        uint32_t end = first;
        while (i < count && sequences[i].row == end)
            end += sequences[i++].length;
        model_set(model, row_of(matrix, first, 1, bytes), (end - first) * bytes, 0);
    }
}

/* Sets gradient.stream to +0 on all tokens, then puts the gradients of label rows at their
 * places. */
static void scatter_labels(const struct pass *pass) {
    const struct model *model = pass->model;
    const size_t first = pass->part->first_label;
    clear_rows(pass, model->gradient.stream);
    const struct op_call call = pass_call(pass, SITE_NONE, PASS_NO_LAYER);
    const struct embedding_forward_args labels = {
        .rows = {model_seen(model, pass->batch, pass->batch->label_row + first),
                 pass->part->label_count},
        .C = model->C,
        .ids = model->numbers,
        .table = row_of(model->label_dx, first, model->C, model->form.width),
        .x = model->gradient.stream};
    model->ops->embedding_forward(&call, &labels);
}

static void head_backward(struct weight_pass *joint, const struct pass *parts, uint32_t count,
                          const double *coefficient) {
    const struct model *model = joint->pass.model;
    for (uint32_t c = 0; c < count; c++) {
        head_input(&parts[c], coefficient);
        scatter_labels(&parts[c]);
    }
    struct weight_pass labels = *joint;
    labels.labels = 1;
    labels.rows =
        (struct row_list){model_seen(model, joint->pass.batch, joint->pass.batch->canonical_label),
                          joint->pass.batch->label_count};
    norm_weight(&labels, PASS_NO_LAYER, ROLE_NORM_FINAL, model->label_dh, model->label_x,
                model->label_rstd);
    /* an owner's uses have the order embedding, head (law 4) */
    labels.use = model->config->model.tied ? 1 : 0;
    matrix_weight(&labels, PASS_NO_LAYER, ROLE_HEAD, model->logits, model->label_h);
}

/* Ranks whose samples are their own add to the gradient of their own copy. */
static void embedding_weight_by_rank(const struct weight_pass *joint,
                                     struct embedding_weight_args args,
                                     const struct op_call *call) {
    const struct model *model = joint->pass.model;
    const uint32_t ranks = joint->pass.batch->fed_ranks;
    args.rows.count /= ranks;
    for (uint32_t rank = 0; rank < ranks; rank++) {
        if (rank > 0)
            args.acc = pass_sums_of_rank(&joint->pass, ROLE_EMBEDDING, PASS_NO_LAYER, rank);
        model->ops->embedding_weight(call, &args);
        args.rows.index += args.rows.count;
        args.ids += args.rows.count;
    }
}

static void embedding_backward(const struct weight_pass *joint) {
    const struct model *model = joint->pass.model;
    const struct batch *batch = joint->pass.batch;
    struct op_call call = pass_call(&joint->pass, SITE_EMBEDDING, PASS_NO_LAYER);
    struct embedding_weight_args args = {
        .V = model->V, .C = model->C, .dx = model->gradient.stream};
    for (uint32_t i = 0; i < part_count(joint); i++) {
        const struct weight_part part = part_open(joint, i, ROLE_EMBEDDING, PASS_NO_LAYER);
        args.rows = part.rows;
        args.ids = model_seen(model, batch, batch->canonical_id) + part.first;
        args.acc = part.acc;
        embedding_weight_by_rank(joint, args, &call);
    }
    watch_weight(&joint->pass, PASS_NO_LAYER, ROLE_EMBEDDING, args.acc, 0, chains_from(joint));
}

/* Activation checkpointing that does not restore the generator: the layer runs again from its
 * stored input with new masks, and the backward is of that run. OLMo-core did so
 * (nn/transformer/model.py, preserve_rng_state=False, until its pull request 828). */
static void recompute(struct model *model, const struct pass *parts, uint32_t count, uint32_t i) {
    if (!model->dropping || model->config->dropout.recompute != RECOMPUTE_REDRAW) return;
    model->redrawn = 1;
    for (uint32_t c = 0; c < count; c++)
        pass_layer(&parts[c], i);
}

void model_backward(struct model *model, const struct model_weights *weights,
                    const struct batch *batch, const double *coefficient,
                    const struct model_gradients *gradients) {
    struct pass parts[BATCH_CALLS_MAX] = {{0}};
    for (uint32_t c = 0; c < batch->call_count; c++)
        parts[c] = pass_open(model, weights, batch, c, 0);
    struct weight_pass joint = {
        .pass = parts[0],
        .gradients = gradients,
        .rows = {model_seen(model, batch, batch->canonical_row), batch->token_count}};
    joint.pass.side = 0;
    pass_list_heads(model, batch, 1);
    model->order.sample = batch->first_sample;
    head_backward(&joint, parts, batch->call_count,
                  model_see_coefficients(model, coefficient, batch->label_count));
    for (uint32_t i = model->layers; i-- > 0;) {
        recompute(model, parts, batch->call_count, i);
        for (uint32_t c = 0; c < batch->call_count; c++) {
            mlp_backward(&parts[c], i);
            attention_block_backward(&parts[c], i);
        }
        layer_weights(&joint, i);
        for (uint32_t c = 0; c < batch->call_count; c++)
            residual_backward(&parts[c], i);
    }
    model->redrawn = 0;
    for (uint32_t c = 0; c < batch->call_count; c++)
        pass_drop(&parts[c], DROP_EMBEDDING, PASS_NO_LAYER, 0, model->gradient.stream);
    embedding_backward(&joint);
}

/* SPDX-License-Identifier: Apache-2.0
 * Walks an update as model/forward.c, model/backward.c and the phases do, and names what each step
 * writes. */
#include "trainer/corruption_places.h"

#include <string.h>

#include "model/model.h"
#include "model/model_ops.h"
#include "trainer/loop.h"

/* The walk: who is told, and what the next place has in common with those before it. */
struct walk {
    const struct corruption_source *source;
    void (*each)(void *context, const struct corruption_place *place);
    void *context;
    struct model named; /* of which watch_role() reads the configuration */
    struct corruption_place place;
    size_t C, Q, K, M, V;
};

static void tell(struct walk *walk, const char *op, const char *tensor, size_t count) {
    struct corruption_place place = walk->place;
    place.op = op;
    place.tensor = tensor;
    place.count = count;
    walk->each(walk->context, &place);
}

static const char *text_of(enum watch_label label) {
    return watch_named(label).text;
}

static void tell_op(struct walk *walk, enum watch_label op, enum watch_label tensor, size_t width) {
    tell(walk, text_of(op), text_of(tensor), width);
}

static void tell_role(struct walk *walk, enum param_role role, enum watch_label tensor,
                      size_t width) {
    tell_op(walk, watch_role(&walk->named, role), tensor, width);
}

static int has_head_norms(const struct walk *walk) {
    return walk->source->table->index[ROLE_Q_NORM] != PARAM_ABSENT;
}

/* What dropout leaves of a branch or of the embedding, or of their gradients. */
static void tell_dropout(struct walk *walk, enum dropout_place place, enum watch_label tensor) {
    const struct config *config = walk->source->config;
    const double rate =
        place == DROP_EMBEDDING ? config->dropout.embedding : config->dropout.residual;
    if (rate > 0.0) tell_op(walk, watch_places[place], tensor, walk->C);
}

/* ---- forward ---- */

static void tell_layer_forward(struct walk *walk) {
    static const enum param_role projections[] = {ROLE_Q, ROLE_K, ROLE_V};
    const int post = walk->source->config->model.family == FAMILY_OLMO2;
    const size_t widths[] = {walk->Q, walk->K, walk->K};
    if (!post) tell_role(walk, ROLE_NORM_A, LABEL_OUTPUT, walk->C);
    for (size_t i = 0; i < COUNT_OF(projections); i++)
        tell_role(walk, projections[i], LABEL_OUTPUT, widths[i]);
    if (has_head_norms(walk)) {
        tell_role(walk, ROLE_Q_NORM, LABEL_OUTPUT, walk->Q);
        tell_role(walk, ROLE_K_NORM, LABEL_OUTPUT, walk->K);
    }
    tell_op(walk, LABEL_ROTARY, LABEL_Q, walk->Q);
    tell_op(walk, LABEL_ROTARY, LABEL_K, walk->K);
    tell_op(walk, LABEL_ATTENTION, LABEL_OUTPUT, walk->Q);
    tell_role(walk, ROLE_O, LABEL_OUTPUT, walk->C);
    if (post) tell_role(walk, ROLE_NORM_A, LABEL_OUTPUT, walk->C);
    tell_dropout(walk, DROP_BRANCH_A, LABEL_OUTPUT);
    tell_op(walk, LABEL_RESIDUAL, LABEL_AFTER_ATTENTION, walk->C);
    if (!post) tell_role(walk, ROLE_NORM_B, LABEL_OUTPUT, walk->C);
    tell_role(walk, ROLE_GATE, LABEL_OUTPUT, walk->M);
    tell_role(walk, ROLE_UP, LABEL_OUTPUT, walk->M);
    tell_op(walk, LABEL_SWIGLU, LABEL_OUTPUT, walk->M);
    tell_role(walk, ROLE_DOWN, LABEL_OUTPUT, walk->C);
    if (post) tell_role(walk, ROLE_NORM_B, LABEL_OUTPUT, walk->C);
    tell_dropout(walk, DROP_BRANCH_B, LABEL_OUTPUT);
    tell_op(walk, LABEL_RESIDUAL, LABEL_AFTER_MLP, walk->C);
}

/* Tells of a kind of tensor that each parameter with storage has one of. */
static void tell_parameters(struct walk *walk, enum watch_label tensor) {
    const struct param_table *table = walk->source->table;
    for (uint32_t i = 0; i < table->count; i++) {
        if (table->rows[i].tied_to >= 0) continue;
        walk->place.row = i;
        tell(walk, table->rows[i].name, text_of(tensor), table->rows[i].count);
    }
    walk->place.row = PARAM_ABSENT;
}

static void tell_forward(struct walk *walk) {
    const struct config *config = walk->source->config;
    const enum dtype compute = (enum dtype)config->numerics.compute;
    walk->place.phase = FAULT_AT_FORWARD;
    walk->place.dtype = compute;
    walk->place.axis = WATCH_WHOLE;
    walk->place.repeats = loop_count(config, LOOP_MICRO, PHASE_OPTIMIZE) > 0;
    if (config->numerics.param != config->numerics.compute)
        tell_parameters(walk, LABEL_COMPUTE_COPY);
    walk->place.repeats = 1;
    walk->place.axis = WATCH_TOKENS;
    tell_role(walk, ROLE_EMBEDDING, LABEL_OUTPUT, walk->C);
    tell_dropout(walk, DROP_EMBEDDING, LABEL_OUTPUT);
    for (uint32_t i = 0; i < config->model.layers; i++) {
        walk->place.layer = i;
        tell_layer_forward(walk);
    }
    walk->place.layer = PASS_NO_LAYER;
    walk->place.axis = WATCH_LABELS;
    tell_role(walk, ROLE_NORM_FINAL, LABEL_OUTPUT, walk->C);
    tell_role(walk, ROLE_HEAD, LABEL_LOGITS, walk->V);
    walk->place.dtype = (enum dtype)config->numerics.accumulate;
    tell_op(walk, LABEL_LOG_SOFTMAX, LABEL_MAXIMUM, 1);
    tell_op(walk, LABEL_LOG_SOFTMAX, LABEL_SUM, 1);
    walk->place.dtype = (enum dtype)config->numerics.loss;
    tell_op(walk, LABEL_LOG_SOFTMAX, LABEL_LOGP, 1);
    tell_op(walk, LABEL_LOSS, LABEL_COEFFICIENT, 1);
}

/* ---- backward ---- */

/* The gradient of a weight behind this micro-batch, as the accumulator holds it. Mode order-free
 * has exact sums there, whose words are no number of a dtype. */
static void tell_weight(struct walk *walk, enum param_role role, uint32_t layer) {
    const struct param_table *table = walk->source->table;
    const uint32_t row = table->index[layer * ROLE_COUNT + role];
    const struct corruption_place before = walk->place;
    if (row == PARAM_ABSENT || walk->source->config->numerics.mode == MODE_ORDER_FREE) return;
    const int tied = table->rows[row].tied_to >= 0;
    walk->place.axis = WATCH_WHOLE;
    walk->place.dtype = (enum dtype)walk->source->config->numerics.accumulate;
    walk->place.row = params_owner(table, role, layer);
    tell_role(walk, role,
              params_is_bias(role) ? LABEL_BIAS_GRADIENT
              : tied               ? LABEL_SECOND_WEIGHT_GRADIENT
                                   : LABEL_WEIGHT_GRADIENT,
              table->rows[row].count);
    walk->place = before;
}

static void tell_layer_backward(struct walk *walk, uint32_t layer) {
    static const enum param_role weights[] = {
        ROLE_Q,    ROLE_Q_BIAS,    ROLE_K,      ROLE_K_BIAS,    ROLE_V,      ROLE_V_BIAS,
        ROLE_O,    ROLE_O_BIAS,    ROLE_GATE,   ROLE_GATE_BIAS, ROLE_UP,     ROLE_UP_BIAS,
        ROLE_DOWN, ROLE_DOWN_BIAS, ROLE_Q_NORM, ROLE_K_NORM,    ROLE_NORM_A, ROLE_NORM_B};
    const int post = walk->source->config->model.family == FAMILY_OLMO2;
    tell_dropout(walk, DROP_BRANCH_B, LABEL_INPUT_GRADIENT);
    if (post) tell_role(walk, ROLE_NORM_B, LABEL_INPUT_GRADIENT, walk->C);
    tell_role(walk, ROLE_DOWN, LABEL_INPUT_GRADIENT, walk->M);
    tell_op(walk, LABEL_SWIGLU, LABEL_DGATE, walk->M);
    tell_op(walk, LABEL_SWIGLU, LABEL_DUP, walk->M);
    tell_role(walk, ROLE_GATE, LABEL_INPUT_GRADIENT, walk->C);
    tell_role(walk, ROLE_UP, LABEL_INPUT_GRADIENT, walk->C);
    if (!post) tell_role(walk, ROLE_NORM_B, LABEL_INPUT_GRADIENT, walk->C);
    tell_op(walk, LABEL_RESIDUAL, LABEL_GRADIENT_AFTER_ATTENTION, walk->C);
    tell_dropout(walk, DROP_BRANCH_A, LABEL_INPUT_GRADIENT);
    if (post) tell_role(walk, ROLE_NORM_A, LABEL_INPUT_GRADIENT, walk->C);
    tell_role(walk, ROLE_O, LABEL_INPUT_GRADIENT, walk->Q);
    tell_op(walk, LABEL_ATTENTION, LABEL_DQ, walk->Q);
    tell_op(walk, LABEL_ATTENTION, LABEL_DK, walk->K);
    tell_op(walk, LABEL_ATTENTION, LABEL_DV, walk->K);
    tell_op(walk, LABEL_ROTARY, LABEL_DQ, walk->Q);
    tell_op(walk, LABEL_ROTARY, LABEL_DK, walk->K);
    if (has_head_norms(walk)) {
        tell_role(walk, ROLE_Q_NORM, LABEL_INPUT_GRADIENT, walk->Q);
        tell_role(walk, ROLE_K_NORM, LABEL_INPUT_GRADIENT, walk->K);
    }
    tell_role(walk, ROLE_Q, LABEL_INPUT_GRADIENT, walk->C);
    tell_role(walk, ROLE_K, LABEL_INPUT_GRADIENT, walk->C);
    tell_role(walk, ROLE_V, LABEL_INPUT_GRADIENT, walk->C);
    for (size_t i = 0; i < COUNT_OF(weights); i++)
        tell_weight(walk, weights[i], layer);
    if (!post) tell_role(walk, ROLE_NORM_A, LABEL_INPUT_GRADIENT, walk->C);
    tell_op(walk, LABEL_RESIDUAL, LABEL_GRADIENT_OF_INPUT, walk->C);
}

/* Whether the gradient is closed in each micro-batch, and not once behind the last one. */
static int closes_each(const struct config *config) {
    return config->numerics.grad_accumulate == GRAD_ACCUMULATE_STORAGE ||
           loop_count(config, LOOP_MICRO, PHASE_CLIP) > 0 ||
           loop_count(config, LOOP_MICRO, PHASE_OPTIMIZE) > 0 ||
           (loop_count(config, LOOP_MICRO, PHASE_UNSCALE) > 0 &&
            config->scaler.kind != SCALER_NONE);
}

static void tell_backward(struct walk *walk) {
    const struct config *config = walk->source->config;
    walk->place.phase = FAULT_AT_BACKWARD;
    walk->place.dtype = (enum dtype)config->numerics.compute;
    walk->place.axis = WATCH_LABELS;
    tell_op(walk, LABEL_LOG_SOFTMAX, LABEL_GRADIENT_OF_LOGITS, walk->V);
    tell_role(walk, ROLE_HEAD, LABEL_INPUT_GRADIENT, walk->C);
    tell_role(walk, ROLE_NORM_FINAL, LABEL_INPUT_GRADIENT, walk->C);
    tell_weight(walk, ROLE_NORM_FINAL, 0);
    tell_weight(walk, ROLE_HEAD, 0);
    walk->place.axis = WATCH_TOKENS;
    for (uint32_t i = (uint32_t)config->model.layers; i-- > 0;) {
        walk->place.layer = i;
        tell_layer_backward(walk, i);
    }
    walk->place.layer = PASS_NO_LAYER;
    tell_dropout(walk, DROP_EMBEDDING, LABEL_INPUT_GRADIENT);
    tell_weight(walk, ROLE_EMBEDDING, 0);
    walk->place.axis = WATCH_WHOLE;
    walk->place.dtype = walk->source->layout->gradient_dtype;
    walk->place.repeats = closes_each(config);
    tell_parameters(walk, LABEL_GRADIENT);
}

/* ---- phases of the update ---- */

/* Slots, masters and parameters, tensor by tensor, as they are stored. */
static void tell_stored(struct walk *walk) {
    const struct corruption_source *source = walk->source;
    for (uint32_t i = 0; i < source->table->count; i++) {
        const struct param_row *row = &source->table->rows[i];
        if (row->tied_to >= 0) continue;
        walk->place.row = i;
        walk->place.dtype = source->layout->slots.dtype;
        for (uint32_t slot = 0; slot < source->optimizer->slot_count; slot++) {
            const size_t count = source->layout->tensor[i].slot_count[slot];
            walk->place.slot = (int)slot;
            if (count > 0) tell(walk, row->name, source->optimizer->slot_names[slot], count);
        }
        walk->place.slot = -1;
        walk->place.dtype = source->layout->master_dtype;
        if (source->layout->has_master) tell(walk, row->name, text_of(LABEL_MASTER), row->count);
        walk->place.dtype = row->dtype;
        tell(walk, row->name, text_of(LABEL_PARAMETER), row->count);
    }
    walk->place.row = PARAM_ABSENT;
}

static int runs(const struct config *config, enum phase phase) {
    return loop_count(config, LOOP_MICRO, phase) + loop_count(config, LOOP_UPDATE, phase) > 0;
}

/* A phase that stands in list `micro` runs in each micro-batch. */
static void enter(struct walk *walk, enum fault_phase fault, enum phase phase) {
    walk->place.phase = fault;
    walk->place.dtype = walk->source->layout->gradient_dtype;
    walk->place.repeats = loop_count(walk->source->config, LOOP_MICRO, phase) > 0;
}

void corruption_places(const struct corruption_source *source,
                       void (*each)(void *context, const struct corruption_place *place),
                       void *context) {
    const struct config *config = source->config;
    struct walk walk = {.source = source,
                        .each = each,
                        .context = context,
                        .named = {.config = config},
                        .place = {.layer = PASS_NO_LAYER, .row = PARAM_ABSENT, .slot = -1},
                        .C = config->model.hidden,
                        .Q = config->model.heads * config->model.head_dim,
                        .K = config->model.kv_heads * config->model.head_dim,
                        .M = config->model.mlp,
                        .V = config->model.vocab};
    walk.place.axis = WATCH_WHOLE;
    walk.place.phase = FAULT_AT_START;
    tell_stored(&walk);
    tell_forward(&walk);
    tell_backward(&walk);
    enter(&walk, FAULT_AT_UNSCALE, PHASE_UNSCALE);
    if (runs(config, PHASE_UNSCALE)) tell_parameters(&walk, LABEL_UNSCALED_GRADIENT);
    enter(&walk, FAULT_AT_CLIP, PHASE_CLIP);
    if (runs(config, PHASE_CLIP)) tell_parameters(&walk, LABEL_CLIPPED_GRADIENT);
    enter(&walk, FAULT_AT_OPTIMIZE, PHASE_OPTIMIZE);
    if (!runs(config, PHASE_OPTIMIZE)) return;
    tell_parameters(&walk, LABEL_GRADIENT_TAKEN);
    tell_stored(&walk);
}

/* SPDX-License-Identifier: Apache-2.0
 * What an order of phases means, found by value numbering: the loop is run symbolically for a few
 * updates. The value of a resource is a hash of the phase that wrote it and of the values which
 * that phase read, so two orders that compute the same things from the same things agree, however
 * their phases are arranged.
 *
 * Invariant: only what a run records or carries on (parameters, slots, log row, LR, counter) enters
 * the signature; a gradient that nobody reads does not. */
#include "tests/trainer/helper_loop.h"

#include "data/batch.h"
#include "optim/clip.h"

/* Four updates show each situation once: update 1 applies the LR of the start, update 2 is a
 * skipped one, update 3 follows a skipped one, and update 4 follows lists eval and epoch together.
 * Three micro-batches show the first, a middle and the last one of an update. */
enum { UPDATES = 4, MICRO_CAP = 3 };

/* Kinds of values that no phase wrote, and of steps that are no phases. They begin above every
 * number of a phase, so that no kind hashes like a phase. */
enum value_kind { KIND_INITIAL = 64, KIND_ZERO, KIND_CLOSE, KIND_NORM, KIND_WINDOW, KIND_START };

/* A value is two 64-bit lanes that are hashed from different seeds. Two different values collide
 * only where both lanes do, so the signature is as good as a hash of 128 bits. */
struct value {
    uint64_t lane[2];
};

struct flow {
    const struct config *config;
    struct value batch, graph, window, gradient, norm, lr, counter, params, slots, row;
    int open; /* 1 after a backward, until a phase reads the gradient */
    struct value signature;
};

/* The finalizer of splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators,
 * 2014). */
static uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

/* Returns the value of a step of `kind` that read `inputs`. The position of an input enters, so
 * that a step which reads the same values in other roles has another value. */
static struct value join(uint32_t kind, const struct value *inputs, size_t count) {
    struct value out = {
        {mix(kind + UINT64_C(0x9E3779B97F4A7C15)), mix(kind + UINT64_C(0xD1B54A32D192ED03))}};
    for (size_t i = 0; i < count; i++)
        for (int lane = 0; lane < 2; lane++)
            out.lane[lane] = mix(out.lane[lane] * 3 + inputs[i].lane[lane] + i + 1);
    return out;
}

static struct value join1(uint32_t kind, struct value a) {
    return join(kind, &a, 1);
}

static struct value constant(uint32_t kind, uint64_t number) {
    const struct value v = {{number, ~number}};
    return join1(kind, v);
}

static void flow_open(struct flow *flow, const struct config *config) {
    const struct value zero = constant(KIND_ZERO, 0);
    const struct value none = constant(KIND_NORM, 0);
    *flow = (struct flow){.config = config, .gradient = zero, .norm = none};
    flow->window = constant(KIND_WINDOW, 0);
    flow->counter = constant(KIND_INITIAL, LOOP_COUNTER);
    flow->params = constant(KIND_INITIAL, LOOP_PARAMS);
    flow->slots = constant(KIND_INITIAL, LOOP_SLOTS);
    flow->lr = constant(KIND_START, (uint64_t)config->schedule.start);
    /* f(c0) is also what a schedule phase gives before the first count, unless it shifts. */
    if (config->schedule.start == START_F0 && config->schedule.shift == 0)
        flow->lr = join1(PHASE_SCHEDULE, flow->counter);
}

/* By law 4 the first phase that reads the gradient after a backward closes it, which rounds it
 * once. */
static void flow_close(struct flow *flow) {
    if (flow->open) flow->gradient = join1(KIND_CLOSE, flow->gradient);
    flow->open = 0;
}

static void flow_forward(struct flow *flow) {
    const struct value graph[] = {flow->batch, flow->params};
    flow->graph = join(PHASE_FORWARD, graph, COUNT_OF(graph));
    const struct value window[] = {flow->window, flow->graph};
    flow->window = join(KIND_WINDOW, window, COUNT_OF(window));
}

static void flow_backward(struct flow *flow) {
    const struct value inputs[] = {flow->graph, flow->params, flow->gradient};
    flow->gradient = join(PHASE_BACKWARD, inputs, COUNT_OF(inputs));
    flow->open = 1;
}

static void flow_clip(struct flow *flow) {
    flow_close(flow);
    flow->norm = join1(KIND_NORM, flow->gradient);
    if (flow->config->clip.max_norm > 0.0 && flow->config->clip.apply != CLIP_COPY)
        flow->gradient = join1(PHASE_CLIP, flow->gradient);
}

static void flow_optimize(struct flow *flow) {
    flow_close(flow);
    const struct value inputs[] = {flow->gradient, flow->lr, flow->params, flow->slots};
    flow->params = join(PHASE_OPTIMIZE, inputs, COUNT_OF(inputs));
    flow->slots = join(PHASE_OPTIMIZE + 128, inputs, COUNT_OF(inputs));
}

static void flow_log(struct flow *flow) {
    const struct value inputs[] = {flow->window, flow->norm, flow->counter, flow->lr};
    const int recomputed = flow->config->schedule.logged == LOGGED_RECOMPUTED;
    flow->row = join(PHASE_LOG, inputs, recomputed ? 3 : 4);
    flow->window = constant(KIND_WINDOW, 0);
}

static void flow_reduce(struct flow *flow) {
    if (flow->config->parallel.ranks <= 1) return;
    flow_close(flow);
    flow->gradient = join1(PHASE_REDUCE, flow->gradient);
}

static void flow_unscale(struct flow *flow) {
    if (flow->config->scaler.kind == SCALER_NONE) return;
    flow_close(flow);
    flow->gradient = join1(PHASE_UNSCALE, flow->gradient);
}

static void flow_apply(struct flow *flow, enum phase phase, uint64_t ticket) {
    switch (phase) {
    case PHASE_FETCH:
        flow->batch = constant(PHASE_FETCH, ticket);
        break;
    case PHASE_FORWARD:
        flow_forward(flow);
        break;
    case PHASE_BACKWARD:
        flow_backward(flow);
        break;
    case PHASE_REDUCE:
        flow_reduce(flow);
        break;
    case PHASE_UNSCALE:
        flow_unscale(flow);
        break;
    case PHASE_CLIP:
        flow_clip(flow);
        break;
    case PHASE_OPTIMIZE:
        flow_optimize(flow);
        break;
    case PHASE_LOG:
        flow_log(flow);
        break;
    case PHASE_COUNT_UPDATE:
        flow->counter = join1(PHASE_COUNT_UPDATE, flow->counter);
        break;
    case PHASE_SCHEDULE:
        flow->lr = join1(PHASE_SCHEDULE, flow->counter);
        break;
    case PHASE_ZERO:
        flow->gradient = constant(KIND_ZERO, 0);
        flow->open = 0;
        break;
    default:
        break;
    }
}

static void flow_list(struct flow *flow, enum loop_list list, uint64_t ticket, int skipped) {
    const struct key_list *items = loop_list_of(flow->config, list);
    for (uint32_t i = 0; i < items->count; i++)
        if (loop_runs(flow->config, (enum phase)items->item[i], skipped))
            flow_apply(flow, (enum phase)items->item[i], ticket);
}

static void flow_record(struct flow *flow) {
    const struct value seen[] = {flow->signature, flow->params, flow->slots,
                                 flow->row,       flow->lr,     flow->counter};
    flow->signature = join(KIND_INITIAL + 64, seen, COUNT_OF(seen));
}

/* Update 2 stands for a skipped one where the configuration has a skip rule. Lists eval and epoch
 * run after different updates, and once after the same update, so that each of their meetings with
 * list `update` is seen. */
static void flow_update(struct flow *flow, uint64_t k) {
    const uint64_t batches = batch_micro_batches(flow->config);
    const uint64_t count = batches < MICRO_CAP ? batches : MICRO_CAP;
    for (uint64_t m = 0; m < count; m++)
        flow_list(flow, LOOP_MICRO, k * MICRO_CAP + m, 0);
    const int may_skip = flow->config->loop.skip != SKIP_NONE;
    const int dynamic = flow->config->scaler.kind == SCALER_DYNAMIC;
    /* Both look at the gradient before list update, which closes it. */
    if (may_skip || dynamic) flow_close(flow);
    flow_list(flow, LOOP_UPDATE, 0, may_skip && k == 2);
    flow_record(flow);
    if (k != 2) flow_list(flow, LOOP_EVAL, 0, 0);
    if (k >= 2) flow_list(flow, LOOP_EPOCH, 0, 0);
    flow_record(flow);
}

void loop_signature_of(const struct config *config, struct loop_signature *out_signature) {
    struct flow flow;
    flow_open(&flow, config);
    for (uint64_t k = 1; k <= UPDATES; k++)
        flow_update(&flow, k);
    out_signature->word[0] = flow.signature.lane[0];
    out_signature->word[1] = flow.signature.lane[1];
}

int loop_equal(const struct config *a, const struct config *b) {
    struct loop_signature left;
    struct loop_signature right;
    loop_signature_of(a, &left);
    loop_signature_of(b, &right);
    return left.word[0] == right.word[0] && left.word[1] == right.word[1];
}

/* SPDX-License-Identifier: Apache-2.0
 * Attention of one token per sequence over cached keys and values (law 6, row by row). The products
 * are linear ops of one row per query head of a group, over carriers; what is between them is
 * written out here. Invariant: each number is rounded where attention's own op rounds it. */
#include "model/generate.h"

#include <string.h>

#include "base/element.h"
#include "base/real.h"
#include "kernels/op.h"
#include "model/backends.h"

enum status generate_cache_open(const struct generator *generator, struct arena *arena,
                                struct generate_cache *out) {
    const struct model *const model = &generator->decode;
    const uint32_t sequences = generator->limits.sequences, length = generator->limits.total;
    const size_t row = (size_t)model->G * model->D;
    const uint32_t heads = model->H / model->G;
    const uint32_t widest = length > model->D ? length : model->D;
    const struct op_limits limits = {.rows = heads > widest ? heads : widest,
                                     .width = widest,
                                     .length = 1,
                                     .H = 1,
                                     .G = 1,
                                     .D = model->D,
                                     .threads = model->call.threads,
                                     .order_free = model->call.order_free};
    size_t bytes;
    memset(out, 0, sizeof *out);
    out->sequences = sequences;
    out->length = length;
    TRY(backends_scratch(model->backend, &limits, &bytes));
    TRY(arena_take(arena, bytes, 1, "scratch of decoding", &out->scratch));
    TRY(arena_take(arena, sequences, sizeof *out->filled, "cache of keys and values",
                   &out->filled));
    const size_t carrier = dtype_carrier(model->compute);
    TRY(arena_take(arena, (size_t)heads * length, carrier, "scores", &out->line));
    TRY(arena_take(arena, (size_t)heads * model->D, carrier, "scores", &out->query));
    TRY(arena_take(arena, (size_t)heads * model->D, carrier, "scores", &out->attended));
    TRY(arena_take(arena, heads, model->accumulator, "scores", &out->maximum));
    TRY(arena_take(arena, heads, model->accumulator, "scores", &out->sum));
    TRY(arena_take(arena, heads, sizeof *out->logp, "scores", &out->logp));
    TRY(arena_take(arena, heads, sizeof *out->first, "scores", &out->first));
    TRY(arena_take(arena, heads, sizeof *out->coefficient, "scores", &out->coefficient));
    TRY(arena_take(arena, heads, sizeof *out->target, "scores", &out->target));
    for (uint32_t h = 0; h < heads; h++)
        out->coefficient[h] = 1.0;
    return arena_take(arena, (size_t)model->layers * 2 * sequences * length, row * carrier,
                      "cache of keys and values", &out->values);
}

/* The address of position 0 in one head's keys (which 0) or values (which 1). */
static unsigned char *head_of(const struct generate_cache *cache, const struct model *model,
                              uint32_t layer, uint32_t which, uint32_t sequence, uint32_t head) {
    size_t at = ((size_t)layer * 2 + which) * cache->sequences + sequence;
    at = (at * model->G + head) * cache->length;
    return cache->values + at * model->D * dtype_carrier(model->compute);
}

static void keep(const struct generate_cache *cache, const struct model *model, uint32_t layer,
                 uint32_t sequence, uint32_t position, size_t row) {
    const void *const from[2] = {model->layer[layer].k, model->layer[layer].v};
    const size_t bytes = model->D * dtype_carrier(model->compute);
    for (uint32_t which = 0; which < 2; which++)
        for (uint32_t head = 0; head < model->G; head++)
            form_widen(form_at(from[which], model->form, (row * model->G + head) * model->D),
                       model->form, model->D,
                       head_of(cache, model, layer, which, sequence, head) + position * bytes);
}

void generate_cache_fill(struct generate_cache *cache, const struct model *prefill,
                         const struct batch *batch) {
    for (uint32_t s = 0; s < batch->sequence_count; s++) {
        const struct sequence *sequence = &batch->sequences[s];
        for (uint32_t layer = 0; layer < prefill->layers; layer++)
            for (uint32_t p = 0; p < sequence->length; p++)
                keep(cache, prefill, layer, s, p, (size_t)sequence->row + p);
        cache->filled[s] = sequence->length;
    }
}

/* Rounds a product or quotient of two carriers to the accumulator, then to `dtype`. Going through
 * f64 the first rounding to f32 is the one that f32 arithmetic makes, because 53 >= 2 * 24 + 2 bits
 * (Figueroa, When is double rounding innocuous?, 1995). */
static double settle(double exact, enum dtype accumulate, enum dtype dtype) {
    return dtype_round(accumulate == DTYPE_F64 ? exact : (double)(float)exact, dtype);
}

static double exponential(double shifted, enum dtype accumulate) {
    if (accumulate == DTYPE_F64) return real_exp_f64(shifted);
    return (double)real_exp_f32((float)shifted);
}

/* The op that scales gradients multiplies in the carrier. Where attention's own product is wider,
 * scores are scaled here one by one. */
static void scale_scores(const struct model *model, const struct op_call *call, void *line,
                         size_t count) {
    const enum dtype score = model->rounding.score, compute = model->compute;
    const int wide = compute == DTYPE_F64;
    const double scale = wide ? model->scale : (double)(float)model->scale;
    if (wide ? score == DTYPE_F64 : model->accumulate == DTYPE_F32) {
        model->carried->scale(call, &(struct scale_args){count, score, scale, line});
        return;
    }
    for (size_t j = 0; j < count; j++)
        element_set(line, compute, j,
                    settle(element_get(line, compute, j) * scale, model->accumulate, score));
}

/* Probabilities by the ops of the vocabulary: the gradient of a log-prob is the probability, except
 * in the target's element, from which 1 is taken away. That element is computed here. */
static void softmax(const struct generate_cache *cache, const struct model *model,
                    const struct op_call *call, uint32_t heads, uint32_t keys) {
    const enum dtype compute = model->compute, accumulate = model->accumulate;
    for (uint32_t h = 0; h < heads; h++)
        cache->first[h] = element_get(cache->line, compute, (size_t)h * keys);
    model->carried->logprob_forward(
        call, &(struct logprob_forward_args){heads, keys, model->loss, cache->target, cache->line,
                                             cache->maximum, cache->sum, cache->logp});
    model->carried->logprob_backward(
        call,
        &(struct logprob_backward_args){heads, keys, model->loss, cache->target, cache->coefficient,
                                        cache->maximum, cache->sum, cache->line, 0});
    for (uint32_t h = 0; h < heads; h++) {
        const double shifted = cache->first[h] - element_get(cache->maximum, accumulate, h);
        const double e =
            exponential(accumulate == DTYPE_F64 ? shifted : (double)(float)shifted, accumulate);
        element_set(
            cache->line, compute, (size_t)h * keys,
            settle(e / element_get(cache->sum, accumulate, h), accumulate, model->rounding.score));
    }
}

/* Attends for one sequence and one key/value head. The query heads of its group are the rows. */
static void attend_group(const struct generate_cache *cache, const struct pass *pass,
                         uint32_t layer, uint32_t sequence, uint32_t head, uint32_t keys) {
    const struct model *model = pass->model;
    const uint32_t heads = model->H / model->G;
    const size_t at = ((size_t)sequence * model->H + (size_t)head * heads) * model->D;
    const struct form form = model->form;
    struct op_call call = pass_call(pass, SITE_ATTENTION, layer);
    form_widen(form_at(model->layer[layer].q, form, at), form, (size_t)heads * model->D,
               cache->query);
    call.narrow = 0;
    call.scratch = cache->scratch;
    /* attention is no linear layer, and this scratch has no room for a library */
    call.blas = NULL;
    call.library = NULL;
    call.rows = heads;
    call.first_row = 0;
    call.length = 1;
    call.compute = model->rounding.score;
    model->carried->linear_forward(
        &call, &(struct linear_forward_args){{NULL, heads},
                                             keys,
                                             model->D,
                                             cache->query,
                                             head_of(cache, model, layer, 0, sequence, head),
                                             cache->line,
                                             NULL});
    scale_scores(model, &call, cache->line, (size_t)heads * keys);
    softmax(cache, model, &call, heads, keys);
    call.compute = model->compute;
    model->carried->linear_input(
        &call, &(struct linear_input_args){{NULL, heads},
                                           keys,
                                           model->D,
                                           cache->line,
                                           head_of(cache, model, layer, 1, sequence, head),
                                           cache->attended,
                                           0});
    form_narrow(cache->attended, form, (size_t)heads * model->D,
                form_place(model->layer[layer].att, form, at));
}

void generate_cache_attend(void *context, const struct pass *pass, uint32_t layer) {
    struct generate_cache *cache = (struct generate_cache *)context;
    const struct model *model = pass->model;
    const uint32_t count = pass->batch->sequence_count;
    for (uint32_t s = 0; s < count; s++) {
        keep(cache, model, layer, s, cache->filled[s], s);
        for (uint32_t head = 0; head < model->G; head++)
            attend_group(cache, pass, layer, s, head, cache->filled[s] + 1);
    }
    if (layer + 1 < model->layers) return;
    for (uint32_t s = 0; s < count; s++)
        cache->filled[s]++;
}

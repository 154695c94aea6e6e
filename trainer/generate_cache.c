/* SPDX-License-Identifier: Apache-2.0
 * Attention of one token per sequence over cached keys and values (law 6, row by row): the products
 * are ops of one row per query head of a group, what is between them is written out here. */
#include "trainer/generate.h"

#include <math.h>
#include <string.h>

#include "base/real.h"
#include "base/sum.h"

enum status generate_cache_open(const struct model *model, uint32_t sequences, uint32_t length,
                                struct arena *arena, struct generate_cache *out) {
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
    TRY(backend_scratch(&limits, &bytes));
    const size_t dense =
        (size_t)heads * (2 * (size_t)widest + model->D) + (size_t)widest * model->D;
    if (bytes < dense * sizeof(double) + 256) bytes = dense * sizeof(double) + 256; /* a library */
    TRY(arena_take(arena, bytes, 1, "scratch of decoding", &out->scratch));
    TRY(arena_take(arena, sequences, sizeof *out->filled, "cache of keys and values",
                   &out->filled));
    TRY(arena_take(arena, (size_t)heads * length, model->carrier, "scores", &out->line));
    TRY(arena_take(arena, length, model->accumulator, "exponentials", &out->wide));
    return arena_take(arena, (size_t)model->layers * 2 * sequences * length, row * model->carrier,
                      "cache of keys and values", &out->values);
}

/* Position 0 of one head's keys (which 0) or values (which 1). */
static unsigned char *head_of(const struct generate_cache *cache, const struct model *model,
                              uint32_t layer, uint32_t which, uint32_t sequence, uint32_t head) {
    size_t at = ((size_t)layer * 2 + which) * cache->sequences + sequence;
    at = (at * model->G + head) * cache->length;
    return cache->values + at * model->D * model->carrier;
}

static void keep(const struct generate_cache *cache, const struct model *model, uint32_t layer,
                 uint32_t sequence, uint32_t position, size_t row) {
    const void *const from[2] = {model->layer[layer].k, model->layer[layer].v};
    const size_t bytes = model->D * model->carrier;
    for (uint32_t which = 0; which < 2; which++)
        for (uint32_t head = 0; head < model->G; head++)
            memcpy(head_of(cache, model, layer, which, sequence, head) + position * bytes,
                   (const unsigned char *)from[which] + (row * model->G + head) * bytes, bytes);
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

static double read(const void *values, enum dtype dtype, size_t at) {
    return dtype == DTYPE_F64 ? ((const double *)values)[at] : (double)((const float *)values)[at];
}

static void write(void *values, enum dtype dtype, size_t at, double value) {
    if (dtype == DTYPE_F64)
        ((double *)values)[at] = value;
    else
        ((float *)values)[at] = (float)value;
}

/* A product or quotient of two carriers in the accumulator, then in `dtype`: through f64 the first
 * rounding to f32 is the one that f32 arithmetic makes (53 >= 2 * 24 + 2 bits). */
static double settle(double exact, enum dtype accumulate, enum dtype dtype) {
    return dtype_round(accumulate == DTYPE_F64 ? exact : (double)(float)exact, dtype);
}

static double exponential(double shifted, enum dtype accumulate) {
    if (accumulate == DTYPE_F64) return real_exp_f64(shifted);
    return (double)real_exp_f32((float)shifted);
}

static double sum_of(const void *wide, enum dtype accumulate, size_t n) {
    if (accumulate == DTYPE_F64) return sum_terms_f64_f64((const double *)wide, n);
    return (double)sum_terms_f32_f32((const float *)wide, n);
}

/* Scores of n keys become probabilities, in place. */
static void softmax(const struct model *model, void *wide, unsigned char *line, size_t n) {
    const enum dtype score = model->rounding.score, compute = model->compute;
    const enum dtype accumulate = model->accumulate;
    const double scale = compute == DTYPE_F64 ? model->scale : (double)(float)model->scale;
    double maximum = -(double)INFINITY;
    for (size_t j = 0; j < n; j++) {
        const double s = settle(read(line, compute, j) * scale, accumulate, score);
        write(line, compute, j, s);
        if (s > maximum) maximum = s;
    }
    maximum += 0.0;
    for (size_t j = 0; j < n; j++) {
        const double shifted = read(line, compute, j) - maximum;
        write(wide, accumulate, j,
              exponential(accumulate == DTYPE_F64 ? shifted : (double)(float)shifted, accumulate));
    }
    const double sum = sum_of(wide, accumulate, n);
    for (size_t j = 0; j < n; j++)
        write(line, compute, j, settle(read(wide, accumulate, j) / sum, accumulate, score));
}

/* One sequence, one key/value head: the query heads of its group are the rows. */
static void attend_group(const struct generate_cache *cache, const struct pass *pass,
                         uint32_t layer, uint32_t sequence, uint32_t head, uint32_t keys) {
    const struct model *model = pass->model;
    const uint32_t heads = model->H / model->G;
    const size_t line = keys * model->carrier;
    const size_t at = ((size_t)sequence * model->H + (size_t)head * heads) * model->D;
    struct op_call call = pass_call(pass, SITE_ATTENTION, layer);
    call.scratch = cache->scratch;
    call.rows = heads;
    call.first_row = 0;
    call.length = 1;
    call.compute = model->rounding.score;
    model->ops->linear_forward(
        &call, &(struct linear_forward_args){{NULL, heads},
                                             keys,
                                             model->D,
                                             (const unsigned char *)model->layer[layer].q +
                                                 at * model->carrier,
                                             head_of(cache, model, layer, 0, sequence, head),
                                             cache->line});
    for (uint32_t h = 0; h < heads; h++)
        softmax(model, cache->wide, (unsigned char *)cache->line + h * line, keys);
    call.compute = model->compute;
    model->ops->linear_input(
        &call,
        &(struct linear_input_args){{NULL, heads},
                                    keys,
                                    model->D,
                                    cache->line,
                                    head_of(cache, model, layer, 1, sequence, head),
                                    (unsigned char *)model->layer[layer].att + at * model->carrier,
                                    0});
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

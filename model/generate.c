/* SPDX-License-Identifier: Apache-2.0
 * Opens a generator, runs the prompts through the training's forward, then steps token by token. It
 * holds no arithmetic: the cache and the choice of a token are in generate_cache.c and
 * generate_sample.c. Invariant: a step's batch has one row per sequence, in the order of the
 * prompts. */
#include "model/generate.h"

#include <string.h>

#include "kernels/backend_abi.h"
#include "model/backends.h"

static enum status open_prompts(struct generator *generator, struct arena *arena) {
    const struct generate_limits *limits = &generator->limits;
    const size_t tokens = (size_t)limits->sequences * limits->prompt;
    TRY(arena_take(arena, limits->sequences, sizeof *generator->prompt, "prompts",
                   &generator->prompt));
    TRY(arena_take(arena, limits->sequences, sizeof *generator->sample, "prompts",
                   &generator->sample));
    TRY(arena_take(arena, tokens, sizeof *generator->prompt_token, "prompts",
                   &generator->prompt_token));
    TRY(arena_take(arena, tokens, sizeof *generator->prompt_target, "prompts",
                   &generator->prompt_target));
    struct dataset *prompts = &generator->prompts;
    prompts->source = "prompts";
    prompts->task = TASK_SFT;
    prompts->sides = 1;
    prompts->longest = limits->prompt;
    prompts->token = generator->prompt_token;
    prompts->target = generator->prompt_target;
    prompts->sequence = generator->prompt;
    return STATUS_OK;
}

static enum status open_prefill(struct generator *generator, const struct param_table *table,
                                const struct backend *backend, struct arena *arena) {
    struct batch_limits *limits = &generator->prefill_limits;
    TRY(batch_limits_open(&generator->config, &generator->prompts, generator->limits.sequences,
                          (enum batch_layout)generator->config.batch.layout, limits));
    limits->tokens = limits->tokens > limits->samples ? limits->tokens : limits->samples;
    TRY(batch_open(limits, arena, &generator->prefill_batch));
    return model_open(&generator->config, table, backend, limits, arena, &generator->prefill);
}

static enum status open_decode(struct generator *generator, const struct param_table *table,
                               const struct backend *backend, struct arena *arena) {
    const struct generate_limits *limits = &generator->limits;
    const uint32_t count = limits->sequences;
    const struct batch_limits step = {
        .samples = count, .sides = 1, .length = limits->total, .rows = count, .tokens = count};
    TRY(batch_open(&step, arena, &generator->step));
    TRY(model_open(&generator->config, table, backend, &step, arena, &generator->decode));
    TRY(generate_cache_open(generator, arena, &generator->cache));
    generator->attend = (struct attend){generate_cache_attend, &generator->cache};
    generator->decode.attend = &generator->attend;
    return STATUS_OK;
}

enum status generator_open(const struct config *config, const struct param_table *table,
                           const struct generate_limits *limits, struct arena *arena,
                           struct generator *out) {
    const struct backend *backend;
    memset(out, 0, sizeof *out);
    out->config = *config;
    out->limits = *limits;
    TRY(backends_open(config, &backend));
    if (backend != NULL && arena->source != &backend->memory)
        FAIL(STATUS_INTERNAL, "generation on %s: its arena has other memory", backend->name);
    TRY(open_prompts(out, arena));
    TRY(open_prefill(out, table, backend, arena));
    TRY(open_decode(out, table, backend, arena));
    const size_t V = out->decode.V;
    TRY(arena_take(arena, V, sizeof *out->keys, "sampling", &out->keys));
    TRY(arena_take(arena, V, sizeof *out->order, "sampling", &out->order));
    return arena_take(arena, V, sizeof *out->share, "sampling", &out->share);
}

/* Makes a data set of the prompts. Only a prompt's last position has a target, and with it
 * logits. */
static void set_prompts(struct generator *generator, const struct generate_prompt *prompts,
                        uint32_t count) {
    size_t first = 0;
    for (uint32_t s = 0; s < count; s++) {
        const uint32_t length = prompts[s].length;
        generator->sample[s] = s;
        generator->prompt[s] = (struct dataset_sequence){first, length, length, 1, 0};
        for (uint32_t p = 0; p < length; p++) {
            generator->prompt_token[first + p] = prompts[s].token[p];
            generator->prompt_target[first + p] = p + 1 < length ? DATASET_NO_TARGET : 0;
        }
        first += length;
    }
    generator->prompts.samples = count;
    batch_fill(&generator->prefill_batch, &generator->prefill_limits, &generator->prompts,
               generator->sample, count, 0);
}

/* Makes the batch of a step. Sequence s is row s, and its token stands at the first position that
 * the cache does not hold. */
static void set_step(struct generator *generator, const uint32_t *token, size_t stride,
                     uint32_t count) {
    struct batch *step = &generator->step;
    step->dataset_index = generator->sample;
    step->sample_count = step->sequence_count = step->token_count = step->label_count = count;
    step->rows = count;
    step->fed_ranks = 1;
    step->call_count = 1;
    step->calls[0] = (struct batch_call){.sequence_count = count,
                                         .token_count = count,
                                         .label_count = count,
                                         .row_count = count,
                                         .row_length = 1};
    for (uint32_t s = 0; s < count; s++) {
        step->sequences[s] = (struct sequence){s, 1, s, 0};
        step->token_row[s] = step->label_row[s] = s;
        step->label_first[s] = s;
        step->label_length[s] = 1;
        step->token_id[s] = token[s * stride];
        step->token_position[s] = generator->cache.filled[s];
        step->label_target[s] = 0;
    }
}

/* Log-probs of the chosen tokens, by the op that scores a training's labels. */
static void score(struct model *model, const struct model_weights *weights, struct batch *batch) {
    const struct pass pass = pass_open(model, weights, batch, 0, 0);
    struct op_call call = pass_call(&pass, SITE_LOSS, PASS_NO_LAYER);
    call.cuts = pass_cuts_of_output(model, ROLE_HEAD);
    model->ops->logprob_forward(
        &call, &(struct logprob_forward_args){batch->label_count, model->V, model->loss,
                                              batch->label_target, model->logits, model->maximum,
                                              model->sum, model->logp});
}

struct generating {
    struct generator *generator;
    const struct model_weights *weights;
    const struct generate_options *options;
    uint32_t count;
    uint32_t *token;
    double *logp;
};

static void choose(const struct generating *g, struct model *model, struct batch *batch,
                   uint32_t number) {
    for (uint32_t s = 0; s < g->count; s++)
        batch->label_target[s] = generate_choose(g->generator, model, s, s, number, g->options);
    score(model, g->weights, batch);
    for (uint32_t s = 0; s < g->count; s++) {
        const size_t at = (size_t)s * g->options->tokens + number;
        g->token[at] = batch->label_target[s];
        g->logp[at] = model->logp[s];
    }
}

static enum status check(const struct generator *generator, const struct generate_prompt *prompts,
                         uint32_t count, const struct generate_options *options) {
    const struct generate_limits *limits = &generator->limits;
    if (count == 0 || count > limits->sequences)
        FAIL(STATUS_INPUT, "expected 1 to %u prompts, got %u", limits->sequences, count);
    for (uint32_t s = 0; s < count; s++) {
        if (prompts[s].length == 0 || prompts[s].length > limits->prompt)
            FAIL(STATUS_INPUT, "prompt %u: expected 1 to %u tokens, got %u", s, limits->prompt,
                 prompts[s].length);
        if (options->tokens > limits->total - prompts[s].length)
            FAIL(STATUS_INPUT, "prompt %u: %u tokens and %u new ones are more than %u", s,
                 prompts[s].length, options->tokens, limits->total);
    }
    return STATUS_OK;
}

enum status generate(struct generator *generator, const struct model_weights *weights,
                     const struct generate_prompt *prompts, uint32_t count,
                     const struct generate_options *options, uint32_t *out_token,
                     double *out_logp) {
    const struct generating g = {generator, weights, options, count, out_token, out_logp};
    TRY(check(generator, prompts, count, options));
    set_prompts(generator, prompts, count);
    model_set_order(&generator->prefill, options->order_seed, 0);
    model_forward(&generator->prefill, weights, &generator->prefill_batch, 0);
    generate_cache_fill(&generator->cache, &generator->prefill, &generator->prefill_batch);
    choose(&g, &generator->prefill, &generator->prefill_batch, 0);
    for (uint32_t number = 1; number < options->tokens; number++) {
        if (options->interrupted != NULL && *options->interrupted)
            FAIL(STATUS_INTERRUPTED, "interrupted while tokens were generated");
        set_step(generator, out_token + number - 1, options->tokens, count);
        model_set_order(&generator->decode, options->order_seed, number);
        model_forward(&generator->decode, weights, &generator->step, 0);
        choose(&g, &generator->decode, &generator->step, number);
    }
    return model_wait(&generator->decode);
}

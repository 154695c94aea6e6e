/* SPDX-License-Identifier: Apache-2.0
 * Text from a model: one forward over the prompts, then one token of every sequence at a time, with
 * keys and values of earlier tokens from a cache. This is what an inference engine does beside a
 * training.
 *
 * The forward over the prompts is the training's own. So is a decoding step, on a batch of one
 * token per sequence, except in attention: its products are linear layers of one row per head, q by
 * the cached keys and probabilities by the cached values. Batch shape, mode, dtype and library
 * therefore act on decoding as they act on such rows. It knows no text and no end-of-sequence
 * token: every sequence gets as many tokens as are asked for, so that lengths compare.
 *
 * Invariant: in mode invariant the log-probs are those of a training forward over the same tokens,
 * to the bit (tests/model/test_generate.c), and so is every key and value in the cache. */
#ifndef TWINSTEP_MODEL_GENERATE_H
#define TWINSTEP_MODEL_GENERATE_H

#include "data/batch.h"
#include "model/model.h"
#include "model/model_ops.h"

struct generate_limits {
    uint32_t sequences; /* most sequences that are decoded together */
    uint32_t prompt;    /* tokens of the longest prompt */
    uint32_t total;     /* tokens of the longest sequence, prompt included */
};

struct generate_prompt {
    const uint32_t *token; /* below the vocabulary */
    uint32_t length;       /* at least 1 */
};

struct generate_options {
    uint32_t tokens;    /* new tokens of each sequence; at least 1 */
    double temperature; /* 0: greedy, and of equal logits the lowest id */
    double top_p;  /* above 0: the most likely tokens are drawn from, up to this share; 1: all */
    uint64_t seed; /* draws tokens, addressed by (first + sequence, new token, repeat) */
    uint32_t repeat, first;
    uint64_t order_seed;             /* of sums, in modes that draw their order */
    const volatile int *interrupted; /* nonzero: generation stops; NULL: nothing stops it */
};

/* Keys and values, (layer, key or value, sequence, kv head, position, D) in the compute carrier. */
struct generate_cache {
    unsigned char *values;      /* carriers, whatever the model's form */
    uint32_t sequences, length; /* how many of each there is room for */
    uint32_t *filled;           /* (sequences) how many tokens it holds */
    void *query, *attended;     /* (heads of a group, D) what attention reads and leaves */
    void *line;                 /* (heads of a group, length) scores, later probabilities */
    void *maximum, *sum;        /* (heads of a group) of the scores, in the accumulation dtype */
    double *logp, *first, *coefficient;
    uint32_t *target;
    void *scratch; /* of both products */
};

/* A generator points into itself (attend), so it must not be copied. */
struct generator {
    struct config config;
    struct generate_limits limits;
    struct model prefill, decode;
    struct batch_limits prefill_limits;
    struct batch prefill_batch, step;
    struct generate_cache cache;
    struct attend attend;
    struct dataset prompts; /* the prompts as batch_fill reads them */
    struct dataset_sequence *prompt;
    uint32_t *prompt_token;
    int32_t *prompt_target;
    uint32_t *sample;
    uint64_t *keys; /* (V) keys that sort the vocabulary */
    uint32_t *order;
    double *share; /* (V) */
};

/* Opens a generator; the table must outlive it. On a backend (numerics.backend) the
 * source of `arena` is the backend's memory. STATUS_MEMORY, or what model_open says. */
TWINSTEP_MUST_USE enum status generator_open(const struct config *config,
                                             const struct param_table *table,
                                             const struct generate_limits *limits,
                                             struct arena *arena, struct generator *out);

/* Continues `count` prompts, count <= limits.sequences, by options.tokens tokens each. out_token
 * and out_logp (count, tokens) get what was chosen, and its log-prob at temperature 1 among the
 * whole vocabulary, whatever it was drawn from. STATUS_INTERRUPTED between two tokens. */
TWINSTEP_MUST_USE enum status generate(struct generator *generator,
                                       const struct model_weights *weights,
                                       const struct generate_prompt *prompts, uint32_t count,
                                       const struct generate_options *options, uint32_t *out_token,
                                       double *out_logp);

/* generate_cache.c: takes memory for the cache and for one group's scores. */
TWINSTEP_MUST_USE enum status generate_cache_open(const struct generator *generator,
                                                  struct arena *arena, struct generate_cache *out);
/* Copies keys and values of the prompts from the buffers of a forward. */
void generate_cache_fill(struct generate_cache *cache, const struct model *prefill,
                         const struct batch *batch);
/* The `run` of a struct attend: appends the step's keys and values of a layer, then attends to all
 * that the cache holds. */
void generate_cache_attend(void *context, const struct pass *pass, uint32_t layer);

/* generate_sample.c: chooses the next token from row `row` of the model's logits. */
uint32_t generate_choose(struct generator *generator, const struct model *model, uint32_t row,
                         uint32_t sequence, uint32_t number,
                         const struct generate_options *options);

#endif

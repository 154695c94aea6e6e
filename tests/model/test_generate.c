/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Generation from a cache against the training's forward. In mode invariant both must have the same
 * bits, log-prob by log-prob and key by key, whatever the family, the dtypes and the batch. In
 * other modes they must differ, which shows that the test does not compare a thing with itself. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "model/generate.h"
#include "tests/trainer/helper_train.h"

#define SEQUENCES 3u
#define PROMPT 5u
#define NEW 12u
#define TOTAL (PROMPT + NEW)

#define SIZES "layers: 2, hidden: 24, heads: 4, kv_heads: 2, mlp: 40, vocab: 300"
#define BATCH "task: sft, init: {std: 0.4}, batch: {size: 4, micro: 2, pad: 1}, "

static const struct subject {
    const char *name, *words;
    int equal;
} subjects[] = {
    {"olmo2 f32", BATCH "model: {family: olmo2, " SIZES "}", 1},
    {"llama f32", BATCH "model: {family: llama, " SIZES "}", 1},
    {"llama tied bf16",
     BATCH "model: {family: llama, " SIZES ", tied: true}, numerics: {compute: bf16}", 1},
    {"olmo2 bf16 scores in f32",
     BATCH "model: {family: olmo2, " SIZES "}, numerics: {compute: bf16, softmax: f32}", 1},
    {"olmo2 f16", BATCH "model: {family: olmo2, " SIZES "}, numerics: {compute: f16}", 1},
    {"llama f32, sums in f64",
     BATCH "model: {family: llama, " SIZES "}, numerics: {accumulate: f64}", 1},
    {"llama f64",
     BATCH "model: {family: llama, " SIZES "}, numerics: {param: f64, compute: f64, "
           "accumulate: f64, loss: f64, gradient: f64, optimizer: f64, rope: f64}",
     1},
    {"llama tf32 products", BATCH "model: {family: llama, " SIZES "}, numerics: {product: tf32}",
     1},
    {"qwen2 bf16, biases", BATCH "model: {family: qwen2, " SIZES "}, numerics: {compute: bf16}", 1},
    {"qwen3 yarn",
     BATCH "model: {family: qwen3, rope_scaling: yarn, rope_factor: 4, "
           "rope_original_positions: 8, " SIZES "}",
     1},
    {"llama two threads", BATCH "model: {family: llama, " SIZES "}, numerics: {threads: 2}", 1},
    {"olmo2 shaped",
     BATCH "model: {family: olmo2, layers: 2, hidden: 256, heads: 4, kv_heads: 2, "
           "mlp: 512, vocab: 300}, numerics: {mode: shaped}",
     0},
    {"llama shuffled",
     BATCH "model: {family: llama, " SIZES "}, numerics: {mode: shuffled}, "
           "shuffle: {chunk: 4, kinds: [forward]}",
     0},
};

struct bench {
    struct arena arena;
    struct config config;
    struct param_table table;
    const void **weights;
    struct generator generator;
    struct generate_prompt prompts[SEQUENCES];
    uint32_t token[SEQUENCES * NEW];
    double logp[SEQUENCES * NEW];
};

static void expect_ok(enum status status) {
    if (status != STATUS_OK) fail_msg("status %d: %s", (int)status, status_text());
}

static void draw_weights(struct bench *bench) {
    const enum dtype param = (enum dtype)bench->config.numerics.param;
    const enum dtype compute = (enum dtype)bench->config.numerics.compute;
    struct arena *arena = &bench->arena;
    expect_ok(
        arena_take(arena, bench->table.count, sizeof *bench->weights, "weights", &bench->weights));
    for (uint32_t i = 0; i < bench->table.count; i++) {
        const struct param_row *row = &bench->table.rows[i];
        void *values;
        if (row->tied_to >= 0) {
            bench->weights[i] = bench->weights[row->tied_to];
            continue;
        }
        expect_ok(arena_take(arena, row->count, dtype_carrier(param), "weights", &values));
        expect_ok(params_init(&bench->config, &bench->table, i, values));
        bench->weights[i] = values;
        for (size_t e = 0; e < row->count && compute != DTYPE_F64; e++)
            ((float *)values)[e] = (float)dtype_round((double)((float *)values)[e], compute);
    }
}

/* The prompts have 5, 3 and 4 tokens. */
static void draw_prompts(struct bench *bench, uint64_t V) {
    static uint32_t tokens[SEQUENCES][PROMPT];
    static const uint32_t lengths[SEQUENCES] = {PROMPT, 3, 4};
    for (uint32_t s = 0; s < SEQUENCES; s++) {
        for (uint32_t p = 0; p < PROMPT; p++)
            tokens[s][p] = (uint32_t)((s * 37 + p * 101 + 11) % V);
        bench->prompts[s] = (struct generate_prompt){tokens[s], lengths[s]};
    }
}

static void open_bench(struct bench *bench, const char *words) {
    const struct generate_limits limits = {SEQUENCES, PROMPT, TOTAL};
    memset(bench, 0, sizeof *bench);
    helper_config(1, &bench->config, "%s", words);
    expect_ok(params_open(&bench->config, &bench->arena, &bench->table));
    draw_weights(bench);
    draw_prompts(bench, bench->config.model.vocab);
    expect_ok(
        generator_open(&bench->config, &bench->table, &limits, &bench->arena, &bench->generator));
}

static void run(struct bench *bench, const struct generate_options *options) {
    const struct model_weights weights = {bench->weights};
    expect_ok(generate(&bench->generator, &weights, bench->prompts, SEQUENCES, options,
                       bench->token, bench->logp));
}

/* The log-probs and keys that a training computes for the generated sequences. */
struct scored {
    struct model model;
    struct batch batch;
    uint32_t token[SEQUENCES * TOTAL];
    int32_t target[SEQUENCES * TOTAL];
    struct dataset_sequence sequence[SEQUENCES];
};

static void score(struct bench *bench, struct scored *scored) {
    static const uint32_t samples[SEQUENCES] = {0, 1, 2};
    struct dataset dataset = {.task = TASK_SFT, .sides = 1, .samples = SEQUENCES, .longest = TOTAL};
    struct batch_limits limits;
    const struct model_weights weights = {bench->weights};
    size_t first = 0;
    for (uint32_t s = 0; s < SEQUENCES; s++) {
        const uint32_t prompt = bench->prompts[s].length, length = prompt + NEW;
        for (uint32_t p = 0; p < length; p++) {
            scored->token[first + p] =
                p < prompt ? bench->prompts[s].token[p] : bench->token[s * NEW + p - prompt];
            scored->target[first + p] = p + 1 < prompt || p + 1 == length
                                            ? DATASET_NO_TARGET
                                            : (int32_t)bench->token[s * NEW + p + 1 - prompt];
        }
        scored->sequence[s] = (struct dataset_sequence){first, length, prompt, NEW, 0};
        first += length;
    }
    dataset.token = scored->token;
    dataset.target = scored->target;
    dataset.sequence = scored->sequence;
    expect_ok(batch_limits_open(&bench->config, &dataset, SEQUENCES, LAYOUT_SEPARATE, &limits));
    expect_ok(batch_open(&limits, &bench->arena, &scored->batch));
    expect_ok(
        model_open(&bench->config, &bench->table, NULL, &limits, &bench->arena, &scored->model));
    batch_fill(&scored->batch, &limits, &dataset, samples, SEQUENCES, 0);
    model_forward(&scored->model, &weights, &scored->batch, 0);
}

static size_t count_apart(const struct bench *bench, const struct scored *scored) {
    size_t apart = 0;
    for (uint32_t s = 0; s < SEQUENCES; s++) {
        assert_int_equal(scored->batch.label_length[s], NEW);
        for (uint32_t i = 0; i < NEW; i++) {
            const double trained = scored->model.logp[scored->batch.label_first[s] + i];
            const double generated = bench->logp[s * NEW + i];
            assert_true(isfinite(generated) && generated < 0.0);
            assert_true(fabs(trained - generated) < 0.2); /* the same model in any mode */
            apart += memcmp(&trained, &generated, sizeof trained) != 0;
        }
    }
    return apart;
}

/* The last generated token was never put in, so the cache has no key of it. */
static size_t count_keys_apart(const struct bench *bench, const struct scored *scored) {
    const struct generate_cache *cache = &bench->generator.cache;
    const struct model *model = &scored->model;
    const size_t bytes = model->D * model->form.width;
    size_t apart = 0;
    for (uint32_t layer = 0; layer < model->layers; layer++)
        for (uint32_t which = 0; which < 2; which++)
            for (uint32_t s = 0; s < SEQUENCES; s++)
                for (uint32_t head = 0; head < model->G; head++)
                    for (uint32_t p = 0; p + 1 < bench->prompts[s].length + NEW; p++) {
                        const size_t block =
                            (((size_t)layer * 2 + which) * SEQUENCES + s) * model->G + head;
                        const size_t row = scored->batch.sequences[s].row + p;
                        const void *trained =
                            which == 0 ? model->layer[layer].k : model->layer[layer].v;
                        apart +=
                            memcmp(cache->values + (block * TOTAL + p) * bytes,
                                   (const unsigned char *)trained + (row * model->G + head) * bytes,
                                   bytes) != 0;
                    }
    return apart;
}

static void verify_decoding_is_the_forward(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(subjects); i++) {
        static struct bench bench;
        static struct scored scored;
        const struct generate_options options = {
            .tokens = NEW, .temperature = 1.0, .top_p = 0.95, .seed = 7};
        open_bench(&bench, subjects[i].words);
        run(&bench, &options);
        score(&bench, &scored);
        const size_t apart = count_apart(&bench, &scored);
        const size_t keys = count_keys_apart(&bench, &scored);
        if (subjects[i].equal ? apart + keys > 0 : apart == 0)
            fail_msg("%s: %zu log-probs and %zu keys or values differ", subjects[i].name, apart,
                     keys);
        arena_close(&bench.arena);
    }
}

/* In mode invariant a prompt that is continued alone must get the tokens that it gets among
 * others. */
static void verify_company_moves_nothing(void **state) {
    (void)state;
    static struct bench bench;
    struct generate_options options = {.tokens = NEW, .temperature = 0.8, .top_p = 0.9, .seed = 5};
    open_bench(&bench, subjects[1].words);
    run(&bench, &options);
    for (uint32_t s = 0; s < SEQUENCES; s++) {
        const struct model_weights own = {bench.weights};
        uint32_t token[NEW];
        double logp[NEW];
        options.first = s;
        expect_ok(generate(&bench.generator, &own, &bench.prompts[s], 1, &options, token, logp));
        assert_memory_equal(token, bench.token + s * NEW, sizeof token);
        assert_memory_equal(logp, bench.logp + s * NEW, sizeof logp);
    }
    arena_close(&bench.arena);
}

static void verify_choice(void **state) {
    (void)state;
    static struct bench bench;
    uint32_t greedy[SEQUENCES * NEW], drawn[SEQUENCES * NEW];
    open_bench(&bench, subjects[1].words);
    struct generate_options options = {.tokens = NEW, .top_p = 1.0, .seed = 5};
    run(&bench, &options);
    memcpy(greedy, bench.token, sizeof greedy);
    options.temperature = 1.0;
    options.top_p = 1e-6; /* only the most likely token is left */
    run(&bench, &options);
    assert_memory_equal(greedy, bench.token, sizeof greedy);
    options.top_p = 1.0;
    run(&bench, &options);
    memcpy(drawn, bench.token, sizeof drawn);
    assert_memory_not_equal(greedy, drawn, sizeof drawn);
    run(&bench, &options); /* draws are addressed, so they repeat */
    assert_memory_equal(drawn, bench.token, sizeof drawn);
    options.repeat = 1;
    run(&bench, &options);
    assert_memory_not_equal(drawn, bench.token, sizeof drawn);
    arena_close(&bench.arena);
}

/* The shares of three logits at temperature 2, cut at 0.9, in 3000 draws. */
static void validate_shares(void **state) {
    (void)state;
    static struct bench bench;
    uint32_t counts[4] = {0};
    open_bench(&bench, subjects[1].words);
    struct model *model = &bench.generator.decode;
    float *logits = (float *)model->logits;
    for (uint32_t v = 0; v < model->V; v++)
        logits[v] = -400.0f;
    logits[17] = 2.0f;
    logits[3] = 1.0f;
    logits[250] = -2.0f;
    struct generate_options options = {.tokens = 1, .temperature = 2.0, .top_p = 0.9, .seed = 1};
    for (uint32_t i = 0; i < 3000; i++) {
        options.repeat = i;
        const uint32_t token = generate_choose(&bench.generator, model, 0, 0, 0, &options);
        counts[token == 17 ? 0 : token == 3 ? 1 : token == 250 ? 2 : 3]++;
    }
    /* e^1, e^0.5, e^-1 are 0.5738, 0.3481, 0.0777 of their sum; the first two exceed 0.9 */
    assert_int_equal(counts[2] + counts[3], 0);
    const double share = (double)counts[0] / 3000.0; /* of 0.6225, standard deviation 0.0089 */
    if (fabs(share - 0.6225) > 4 * 0.0089) fail_msg("share %f", share);
    options.top_p = 0.95;
    for (uint32_t i = 0; i < 3000; i++) {
        options.repeat = i;
        counts[3] += generate_choose(&bench.generator, model, 0, 0, 0, &options) == 250;
    }
    assert_in_range(counts[3], 174, 292); /* 233 expected, standard deviation 14.7 */
    arena_close(&bench.arena);
}

static void validate_refusals(void **state) {
    (void)state;
    static struct bench bench;
    open_bench(&bench, subjects[0].words);
    const struct model_weights weights = {bench.weights};
    struct generate_options options = {.tokens = NEW + 1, .top_p = 1.0};
    struct generate_prompt empty = {NULL, 0};
    volatile int stop = 1;
    assert_int_equal(generate(&bench.generator, &weights, bench.prompts, SEQUENCES, &options,
                              bench.token, bench.logp),
                     STATUS_INPUT);
    options.tokens = NEW;
    assert_int_equal(
        generate(&bench.generator, &weights, &empty, 1, &options, bench.token, bench.logp),
        STATUS_INPUT);
    options.interrupted = &stop;
    assert_int_equal(generate(&bench.generator, &weights, bench.prompts, SEQUENCES, &options,
                              bench.token, bench.logp),
                     STATUS_INTERRUPTED);
    arena_close(&bench.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_decoding_is_the_forward),
        cmocka_unit_test(verify_company_moves_nothing),
        cmocka_unit_test(verify_choice),
        cmocka_unit_test(validate_shares),
        cmocka_unit_test(validate_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

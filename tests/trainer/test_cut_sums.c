/* SPDX-License-Identifier: Apache-2.0
 * labels: repro short omp
 * Law 23, the sums that tensor parallelism would split, in whole trainings: which calls of ops have
 * cut sums and which have whole ones, by site; and updates whose bits depend on numerics.cuts, but
 * on no micro-batch, layout, thread, shard or rank. What a cut sum is, tests/kernels/test_cuts.c
 * holds against the law. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/trainer/helper_train.h"
#include "trainer/run_private.h"

static const char *const trainings[] = {
    /* norms over all query heads and all key heads */
    "task: dpo, model: {family: olmo2, layers: 2, hidden: 16, heads: 8, kv_heads: 4, head_dim: 4, "
    "mlp: 20, vocab: 19, tied: true}",
    "task: sft, model: {family: llama, layers: 1, hidden: 24, heads: 4, kv_heads: 4, mlp: 12, "
    "vocab: 21, tied: false}, numerics: {compute: bf16, gradient: bf16}",
    "task: sft, model: {family: qwen2, layers: 1, hidden: 16, heads: 8, kv_heads: 8, head_dim: 2, "
    "mlp: 16, vocab: 19, tied: true}, "
    "dropout: {attention: 0.1, residual: 0.1, embedding: 0.1}",
    /* norms over each head, whose one weight all heads share */
    "task: sft, model: {family: qwen3, layers: 2, hidden: 16, heads: 8, kv_heads: 4, head_dim: 4, "
    "mlp: 12, vocab: 19, tied: false}",
};

/* ---- which sums are cut ---- */

enum { FORWARD, INPUT, WEIGHT, PASSES };

static struct {
    const struct op_table *real;
    struct op_table ops;
    /* 0: not called, 1: whole sums, 2: cut ones, 3: both */
    int seen[SITE_COUNT][PASSES];
    uint32_t cuts;
} told;

static void tell(const struct op_call *call, int pass) {
    const int cut = call->cuts > 1;
    if (cut) assert_int_equal(call->cuts, told.cuts);
    told.seen[call->site][pass] |= cut ? 2 : 1;
}

#define TELL(op, pass)                                                                             \
    static void tell_##op(const struct op_call *call, const struct op##_args *args) {              \
        tell(call, pass);                                                                          \
        told.real->op(call, args);                                                                 \
    }
/* clang-format off */
TELL(linear_forward, FORWARD)
TELL(linear_input, INPUT)
TELL(linear_weight, WEIGHT)
TELL(norm_forward, FORWARD)
TELL(norm_input, INPUT)
TELL(norm_weight, WEIGHT)
TELL(embedding_forward, FORWARD)
TELL(embedding_weight, WEIGHT)
TELL(attention_forward, FORWARD)
TELL(attention_backward, INPUT)
TELL(logprob_forward, FORWARD)
TELL(logprob_backward, INPUT)
/* clang-format on */

/* What the law says of a site and pass that was called. A norm over each head is within one. */
static int is_cut(enum op_site site, int pass, int head_norm) {
    switch (site) {
    case SITE_O_PROJ:
    case SITE_DOWN_PROJ:
    case SITE_LOSS:
        return pass == FORWARD;
    case SITE_Q_PROJ:
    case SITE_K_PROJ:
    case SITE_V_PROJ:
    case SITE_GATE_PROJ:
    case SITE_UP_PROJ:
    case SITE_HEAD:
        return pass == INPUT;
    case SITE_Q_NORM:
    case SITE_K_NORM:
        return pass != WEIGHT && !head_norm;
    default:
        return 0;
    }
}

static void listen(struct run *run, uint32_t cuts) {
    memset(&told, 0, sizeof told);
    told.real = run->model.ops;
    told.ops = *told.real;
    told.cuts = cuts;
    told.ops.linear_forward = tell_linear_forward;
    told.ops.linear_input = tell_linear_input;
    told.ops.linear_weight = tell_linear_weight;
    told.ops.norm_forward = tell_norm_forward;
    told.ops.norm_input = tell_norm_input;
    told.ops.norm_weight = tell_norm_weight;
    told.ops.embedding_forward = tell_embedding_forward;
    told.ops.embedding_weight = tell_embedding_weight;
    told.ops.attention_forward = tell_attention_forward;
    told.ops.attention_backward = tell_attention_backward;
    told.ops.logprob_forward = tell_logprob_forward;
    told.ops.logprob_backward = tell_logprob_backward;
    run->model.ops = &told.ops;
}

static void check_sites(const char *words, uint32_t cuts) {
    const struct run_options options = {.steps = 1};
    struct config config;
    struct arena arena = ARENA_EMPTY;
    struct dataset dataset;
    struct run run;
    const struct record *record = NULL;
    uint32_t called = 0;
    helper_config(1, &config, "%s, batch: {size: 4}", words);
    config.numerics.cuts = cuts;
    assert_int_equal(config_validate(&config, 1), STATUS_OK);
    helper_ids_open(&config, 5, 8, 12, &arena, &dataset);
    helper_run_open(&config, &dataset, &options, &run);
    listen(&run, cuts);
    assert_int_equal(run_step(&run, &record), STATUS_OK);
    for (int site = 0; site < SITE_COUNT; site++)
        for (int pass = 0; pass < PASSES; pass++) {
            const int due =
                cuts > 1 && is_cut((enum op_site)site, pass, run.model.head_norm) ? 2 : 1;
            called += told.seen[site][pass] != 0;
            if (told.seen[site][pass] != 0 && told.seen[site][pass] != due)
                fail_msg("site %d, pass %d, %u cuts: %s", site, pass, cuts,
                         due == 2 ? "a whole sum" : "a cut sum");
        }
    assert_true(called > 20); /* the three passes of seven matrices alone are 21 */
    run_close(&run);
    arena_close(&arena);
}

static void verify_sites(void **state) {
    (void)state;
    for (size_t t = 0; t < COUNT_OF(trainings); t++) {
        check_sites(trainings[t], 4);
        check_sites(trainings[t], 1);
    }
}

/* ---- whole updates ---- */

struct shape {
    uint64_t cuts, micro, threads, shards, ranks;
    enum batch_layout layout;
    int32_t mode; /* of numerics.mode */
};

static void outcome_of(const struct config *base, const struct dataset *dataset,
                       const struct shape *shape, struct helper_outcome *out) {
    const struct run_options options = {.tensors = 1, .phases = 1, .poison = 1, .steps = 2};
    struct config config = *base;
    struct run run;
    config.numerics.cuts = shape->cuts;
    config.numerics.shards = shape->shards;
    config.parallel.ranks = shape->ranks;
    config.numerics.threads = shape->threads;
    config.numerics.mode = shape->mode;
    config.batch.micro = config.dpo.reference_batch = shape->micro;
    config.batch.layout = config.dpo.reference_layout = (int32_t)shape->layout;
    assert_int_equal(config_validate(&config, 2), STATUS_OK);
    helper_run_open(&config, dataset, &options, &run);
    helper_outcome_of(&run, 2, out);
    run_close(&run);
}

/* The gap between two shapes of one training; NULL: none. */
static const char *gap_of(const struct config *config, const struct dataset *dataset,
                          const struct shape *a, const struct shape *b) {
    static struct helper_outcome first, second;
    outcome_of(config, dataset, a, &first);
    outcome_of(config, dataset, b, &second);
    return helper_outcome_gap(&first, &second);
}

static void open_training(const char *words, struct config *config, struct arena *arena,
                          struct dataset *dataset) {
    helper_config(2, config,
                  "%s, init: {std: 0.3}, batch: {size: 8}, clip: {max_norm: 0.5}, loop: {update: "
                  "[reduce, clip, optimize, log, count, schedule, zero]}",
                  words);
    *arena = (struct arena)ARENA_EMPTY;
    helper_ids_open(config, 5, 16, 16, arena, dataset);
}

/* With equal cuts nothing else that mode invariant promises to hide may show, nor ranks; another
 * number of cuts must. */
static void verify_bits(void **state) {
    static const struct shape one_shard[] = {
        {4, 8, 1, 1, 1, LAYOUT_SEPARATE, MODE_INVARIANT},
        {4, 1, 2, 1, 1, LAYOUT_CONCATENATED, MODE_INVARIANT},
        {4, 2, 1, 1, 1, LAYOUT_SEPARATE, MODE_DETERMINISTIC},
    };
    static const struct shape eight_shards[] = {
        {4, 8, 1, 8, 1, LAYOUT_SEPARATE, MODE_INVARIANT},
        {4, 1, 2, 8, 3, LAYOUT_CONCATENATED, MODE_INVARIANT},
    };
    static const struct shape whole = {1, 8, 1, 1, 1, LAYOUT_SEPARATE, MODE_INVARIANT};
    static const struct shape halves = {2, 8, 1, 1, 1, LAYOUT_SEPARATE, MODE_INVARIANT};
    (void)state;
    for (size_t t = 0; t < COUNT_OF(trainings); t++) {
        struct config config;
        struct arena arena;
        struct dataset dataset;
        open_training(trainings[t], &config, &arena, &dataset);
        for (size_t i = 1; i < COUNT_OF(one_shard); i++) {
            const char *const gap = gap_of(&config, &dataset, &one_shard[0], &one_shard[i]);
            if (gap != NULL) fail_msg("training %zu, shape %zu: %s differs", t, i, gap);
        }
        assert_null(gap_of(&config, &dataset, &eight_shards[0], &eight_shards[1]));
        assert_non_null(gap_of(&config, &dataset, &one_shard[0], &whole));
        assert_non_null(gap_of(&config, &dataset, &one_shard[0], &halves));
        assert_non_null(gap_of(&config, &dataset, &halves, &whole));
        arena_close(&arena);
    }
}

/* An exact sum is that of its parts. */
static void verify_order_free(void **state) {
    static const struct shape shapes[] = {
        {1, 8, 1, 1, 1, LAYOUT_SEPARATE, MODE_ORDER_FREE},
        {4, 2, 1, 1, 1, LAYOUT_SEPARATE, MODE_ORDER_FREE},
    };
    (void)state;
    for (size_t t = 0; t < 2; t++) {
        struct config config;
        struct arena arena;
        struct dataset dataset;
        open_training(trainings[t], &config, &arena, &dataset);
        assert_null(gap_of(&config, &dataset, &shapes[0], &shapes[1]));
        arena_close(&arena);
    }
}

/* ---- ranks that own parts ---- */

/* The gradient that update 1 leaves, and the loss that it logged. */
static void leave_gradient(const char *words, uint64_t tensor, int32_t scale, struct arena *arena,
                           struct run *run, double *out_loss) {
    static const struct run_options options = {.steps = 1};
    const struct record *record = NULL;
    static struct config config;
    struct dataset dataset;
    helper_config(1, &config,
                  "%s, batch: {size: 4}, clip: {max_norm: 0}, "
                  "loop: {update: [optimize, log, count, schedule]}",
                  words);
    config.numerics.cuts = 4;
    config.parallel.tensor = tensor;
    config.parallel.scale = scale;
    assert_int_equal(config_validate(&config, 1), STATUS_OK);
    helper_ids_open(&config, 5, 8, 12, arena, &dataset);
    helper_run_open(&config, &dataset, &options, run);
    assert_int_equal(run_step(run, &record), STATUS_OK);
    *out_loss = record->reals[REAL_LOSS];
}

/* How many numbers of the gradients of two runs are not `factor` times each other. */
static size_t others(struct run *a, struct run *b, float factor, size_t *out_numbers) {
    size_t count = 0;
    *out_numbers = 0;
    for (uint32_t i = 0; i < a->owner_count; i++) {
        const uint32_t row = a->owner[i];
        const float *const x = (const float *)run_at(a, a->layout.tensor[row].gradient);
        const float *const y = (const float *)run_at(b, b->layout.tensor[row].gradient);
        for (size_t e = 0; e < a->table.rows[row].count; e++, (*out_numbers)++)
            count += factor * x[e] != y[e];
    }
    return count;
}

/* The number of ranks moves no bit; under parallel.scale world it multiplies the loss and every
 * number of the gradient. */
static void verify_tensor_ranks(void **state) {
    static const struct {
        uint64_t tensor;
        int32_t scale;
        float factor;
    } ranks[] = {{2, SCALE_NONE, 1.0F},
                 {4, SCALE_NONE, 1.0F},
                 {1, SCALE_WORLD, 1.0F},
                 {2, SCALE_WORLD, 2.0F},
                 {4, SCALE_WORLD, 4.0F}};
    (void)state;
    for (size_t t = 0; t < COUNT_OF(trainings); t++)
        for (size_t i = 0; i < COUNT_OF(ranks); i++) {
            struct arena arena = ARENA_EMPTY;
            struct run one, many;
            double loss, scaled;
            size_t numbers = 0;
            leave_gradient(trainings[t], 1, SCALE_NONE, &arena, &one, &loss);
            leave_gradient(trainings[t], ranks[i].tensor, ranks[i].scale, &arena, &many, &scaled);
            assert_int_equal(others(&one, &many, ranks[i].factor, &numbers), 0);
            assert_true(numbers > 1000 && loss > 0.0);
            assert_true((double)ranks[i].factor * loss == scaled);
            run_close(&one);
            run_close(&many);
            arena_close(&arena);
        }
}

/* Squares of a tensor that every rank has whole count T times under parallel.counts each, and those
 * of slices once: here with sums of long double. Gradients are scaled once, whoever counts. */
static void verify_counts(void **state) {
    static const char *const whole[] = {"input_layernorm",  "post_attention_layernorm",
                                        "post_feedforward", "model.norm",
                                        "o_proj.bias",      "down_proj.bias"};
    static const char *const words[] = {
        "task: sft, model: {family: llama, layers: 2, hidden: 16, heads: 4, kv_heads: 4, mlp: 12, "
        "vocab: 21, qkv_bias: true, output_bias: true, mlp_bias: true}",
        "task: sft, model: {family: qwen3, layers: 2, hidden: 16, heads: 4, kv_heads: 4, mlp: 12, "
        "vocab: 21}",
        "task: sft, model: {family: olmo2, layers: 2, hidden: 16, heads: 4, kv_heads: 4, mlp: 12, "
        "vocab: 21}"};
    (void)state;
    for (size_t w = 0; w < COUNT_OF(words); w++)
        for (uint64_t tensor = 1; tensor <= 4; tensor *= 2) {
            static const struct run_options options = {.steps = 1};
            struct run runs[2]; /* unclipped, clipped */
            struct arena arena = ARENA_EMPTY;
            long double squares = 0;
            for (int clips = 0; clips < 2; clips++) {
                static struct config config;
                struct dataset dataset;
                helper_config(1, &config,
                              "%s, init: {std: 0.3}, batch: {size: 4}, clip: {max_norm: %s}, loop: "
                              "{update: [clip, optimize, log, count, schedule]}, numerics: {cuts: "
                              "4}, parallel: {tensor: %u, counts: each}",
                              words[w], clips ? "0.5" : "0", (unsigned)tensor);
                helper_ids_open(&config, 5, 8, 12, &arena, &dataset);
                helper_run_open(&config, &dataset, &options, &runs[clips]);
                helper_step(&runs[clips]);
            }
            for (uint32_t i = 0; i < runs[0].owner_count; i++) {
                const struct param_row *const row = &runs[0].table.rows[runs[0].owner[i]];
                const float *const g = (const float *)run_at(
                    &runs[0], runs[0].layout.tensor[runs[0].owner[i]].gradient);
                int counts = w == 1 && strstr(row->name, "_norm.weight") != NULL;
                for (size_t k = 0; k < COUNT_OF(whole); k++)
                    counts |= strstr(row->name, whole[k]) != NULL;
                for (size_t e = 0; e < row->count; e++)
                    squares += (counts ? (long double)tensor : 1.0L) * g[e] * g[e];
            }
            const double norm = sqrt((double)squares);
            const float factor = (float)(0.5 / (norm + 1e-6));
            assert_true(norm > 0.5);
            for (int clips = 0; clips < 2; clips++)
                assert_true(fabs(runs[clips].record.reals[REAL_GRAD_NORM] - norm) < 1e-12 * norm);
            for (uint32_t i = 0; i < runs[0].owner_count; i++) {
                const uint32_t row = runs[0].owner[i];
                const float *const g =
                    (const float *)run_at(&runs[0], runs[0].layout.tensor[row].gradient);
                const float *const got =
                    (const float *)run_at(&runs[1], runs[1].layout.tensor[row].gradient);
                for (size_t e = 0; e < runs[0].table.rows[row].count; e++)
                    assert_true(got[e] == (float)((double)g[e] * (double)factor));
            }
            run_close(&runs[0]);
            run_close(&runs[1]);
            arena_close(&arena);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_sites),      cmocka_unit_test(verify_bits),
        cmocka_unit_test(verify_order_free), cmocka_unit_test(verify_tensor_ranks),
        cmocka_unit_test(verify_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Planted faults of model B. Each must be found at the operation where it is and nowhere else, by
 * figures that a B without a fault stays within, whatever its layout, mode or order of sums. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "experiment/parity/parity_components.h"
#include "experiment/parity/parity_logits.h"
#include "experiment/parity/parity_logprob.h"
#include "experiment/probe.h"
#include "tests/base/helper_size.h"
#include "tests/trainer/helper_train.h"
#include "trainer/run_private.h"

#define SIZES "layers: 2, hidden: 32, heads: 4, kv_heads: 2, mlp: 48, vocab: 300"
#define COMMON "task: sft, seed: 3, init: {std: 0.3}, data: {samples: 4, max_len: 48}, "
#define MICRO "batch: {size: 4, micro: 2}, "
#define LLAMA "model: {family: llama, " SIZES "}"
#define QWEN2                                                                                      \
    "model: {family: qwen2, layers: 2, hidden: 48, heads: 4, kv_heads: 2, mlp: 96, vocab: 300}"
#define OLMO2 "model: {family: olmo2, " SIZES "}"
#define WIDE_MLP                                                                                   \
    "model: {family: llama, layers: 2, hidden: 32, heads: 4, kv_heads: 2, mlp: 400, vocab: 300}"
#define YARN(attention)                                                                            \
    "model: {family: qwen3, rope_scaling: yarn, rope_factor: 4, rope_original_positions: 16, "     \
    "rope_attention_factor: " attention ", " SIZES "}"
#define BF16 "numerics: {compute: bf16}"

static void expect_ok(enum status status) {
    if (status != STATUS_OK) fail_msg("status %d: %s", (int)status, status_text());
}

struct bench {
    struct arena arena;
    struct parity_request request;
    struct parity parity;
};

static void open_bench(struct bench *bench, const char *a, const char *b) {
    memset(bench, 0, sizeof *bench);
    bench->request = (struct parity_request){
        .name = {"a", "b"}, .batches = 2, .replicas = 2, .steps = 2, .seed = 11};
    helper_config(2, &bench->request.config[0], "%s", a);
    helper_config(2, &bench->request.config[1], "%s", b);
    expect_ok(parity_open(&bench->request, &bench->arena, &bench->parity));
}

static void close_bench(struct bench *bench) {
    parity_close(&bench->parity);
    arena_close(&bench->arena);
}

/* ---- faults of weights and tables, planted in memory ---- */

static float *weights_of(struct run *run, enum param_role role, uint32_t layer) {
    const uint32_t row = params_owner(&run->table, role, layer);
    run->weights_fresh = 0;
    return (float *)run_at(run, run->layout.tensor[row].param);
}

static void plant_nothing(struct run *b) {
    (void)b;
}

static void plant_rope_element(struct run *b) {
    float *cosine = (float *)b->model.cosine;
    cosine[5 * (b->model.D / 2) + 1] *= 1.1f; /* position 5, frequency 1 */
}

static void plant_transposed(struct run *b) {
    float *w = weights_of(b, ROLE_Q, 1);
    const size_t n = b->model.C;
    for (size_t i = 0; i < n; i++)
        for (size_t j = i + 1; j < n; j++) {
            const float kept = w[i * n + j];
            w[i * n + j] = w[j * n + i];
            w[j * n + i] = kept;
        }
}

/* Adds a tenth of a typical weight to one element of 12800, which is next to nothing in a norm. */
static void plant_one_weight(struct run *b) {
    weights_of(b, ROLE_UP, 0)[7 * b->model.C + 3] += 0.03f;
}

static void plant_one_id(struct run *b) {
    float *w = weights_of(b, ROLE_EMBEDDING, 0);
    for (size_t c = 0; c < b->model.C; c++) /* 'e' gets the row of 'f' */
        w[(size_t)'e' * b->model.C + c] = w[(size_t)'f' * b->model.C + c];
}

static const struct planted {
    const char *name, *a, *b;
    void (*plant)(struct run *b);
    const char *op; /* the only one outside where ops are alone; NULL: none */
    int layer;      /* -1: in every one */
    int by_ratio;   /* its R is above the line; else one element shows it */
} faults[] = {
    {"none, f32", COMMON MICRO LLAMA, COMMON MICRO LLAMA, plant_nothing, NULL, -1, 0},
    {"none, bf16 beside f32", COMMON MICRO LLAMA, COMMON MICRO LLAMA ", " BF16, plant_nothing, NULL,
     -1, 0},
    {"none, another layout and micro-batch", COMMON MICRO OLMO2,
     COMMON "batch: {size: 4, micro: 4, pad: 3}, " OLMO2, plant_nothing, NULL, -1, 0},
    {"none, sums in another order", COMMON MICRO OLMO2 ", " BF16,
     COMMON MICRO OLMO2 ", numerics: {compute: bf16, mode: shuffled}, shuffle: {kinds: [forward, "
                        "weight, dq, embedding, norm], chunk: 8}",
     plant_nothing, NULL, -1, 0},
    {"none, cut sums, biases", COMMON MICRO QWEN2, COMMON MICRO QWEN2 ", numerics: {mode: shaped}",
     plant_nothing, NULL, -1, 0},
    {"one rope element", COMMON MICRO LLAMA ", " BF16, COMMON MICRO LLAMA ", " BF16,
     plant_rope_element, "rotary", -1, 1},
    {"inv_freq in bf16", COMMON MICRO LLAMA, COMMON MICRO LLAMA ", numerics: {rope: bf16}",
     plant_nothing, "rotary", -1, 1},
    {"norm eps", COMMON MICRO LLAMA,
     COMMON MICRO "model: {family: llama, norm_eps: 1e-4, " SIZES "}", plant_nothing, "norm", -1,
     1},
    {"transposed q_proj", COMMON MICRO LLAMA ", " BF16, COMMON MICRO LLAMA ", " BF16,
     plant_transposed, "q_proj", 1, 1},
    {"one weight", COMMON MICRO WIDE_MLP ", " BF16, COMMON MICRO WIDE_MLP ", " BF16,
     plant_one_weight, "up_proj", 0, 0},
    {"one row of the embedding", COMMON MICRO LLAMA ", " BF16, COMMON MICRO LLAMA ", " BF16,
     plant_one_id, "embed_tokens", -1, 1},
    {"missing YaRN factor on cosine and sine", COMMON MICRO YARN("auto"), COMMON MICRO YARN("1"),
     plant_nothing, "rotary", -1, 1},
    {"missing YaRN", COMMON MICRO YARN("auto") ", " BF16,
     COMMON MICRO "model: {family: qwen3, " SIZES "}, " BF16, plant_nothing, "rotary", -1, 1},
    {"products in tf32", COMMON MICRO LLAMA, COMMON MICRO LLAMA ", numerics: {product: tf32}",
     plant_nothing, "proj", -1, 1},
};

static int is_expected(const struct planted *fault, const struct parity_component_row *row) {
    if (fault->op == NULL) return 0;
    if (strcmp(fault->op, "proj") == 0) /* tensor cores serve attention and lm_head, too */
        return strstr(row->op, "proj") != NULL || strcmp(row->op, "lm_head") == 0 ||
               strcmp(row->op, "attention") == 0;
    if (strstr(row->op, fault->op) == NULL) return 0;
    return fault->layer < 0 || row->layer == (uint32_t)fault->layer;
}

/* The gradients of an operation may be outside where its output is. */
static void check_rows(const struct planted *fault, const struct parity_components *components) {
    uint32_t found = 0;
    int by_ratio = 0;
    for (uint32_t i = 0; i < components->count; i++) {
        const struct parity_component_row *row = &components->rows[i];
        if (row->finding != PARITY_OUTSIDE) continue;
        if (fault->op == NULL || (row->level == PARITY_OPS && !is_expected(fault, row)))
            fail_msg("%s: layer %u %s %s, level %d: R %g, element %g (%g), equal %g", fault->name,
                     row->layer, row->op, row->tensor, (int)row->level, row->median, row->sparse,
                     row->replica_sparse, row->equal);
        if (row->level != PARITY_OPS || row->side != PARITY_OUTPUT) continue;
        found++;
        by_ratio |= row->median >= PARITY_R_LINE;
    }
    if (fault->op != NULL && found == 0) fail_msg("%s: not found", fault->name);
    if (fault->op != NULL && by_ratio != fault->by_ratio)
        fail_msg("%s: R tells: %d", fault->name, by_ratio);
    assert_int_equal(components->finding, fault->op == NULL ? PARITY_WITHIN : PARITY_OUTSIDE);
}

static void verify_planted_faults(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(faults); i += helper_size(7, 1, 1)) {
        const struct planted *fault = &faults[i];
        struct bench bench;
        struct parity_components components;
        struct parity_logits logits;
        open_bench(&bench, fault->a, fault->b);
        fault->plant(bench.parity.run[PARITY_B]);
        expect_ok(parity_measure_components(&bench.parity, &components));
        expect_ok(parity_measure_logits(&bench.parity, &logits));
        check_rows(fault, &components);
        print_message("%s: KL %g, threshold %g\n", fault->name, logits.kl, logits.threshold);
        if (fault->op == NULL && logits.finding != PARITY_WITHIN)
            fail_msg("%s: logits: %s", fault->name, logits.why);
        if (fault->by_ratio && logits.finding != PARITY_OUTSIDE)
            fail_msg("%s: KL %g is within %g", fault->name, logits.kl, logits.threshold);
        close_bench(&bench);
    }
}

static void validate_rope_element(void **state) {
    (void)state;
    struct bench bench;
    struct parity_components components;
    open_bench(&bench, COMMON MICRO LLAMA, COMMON MICRO LLAMA);
    plant_rope_element(bench.parity.run[PARITY_B]);
    expect_ok(parity_measure_components(&bench.parity, &components));
    assert_int_equal(components.rope.apart, 1);
    assert_int_equal(components.rope.position, 5);
    assert_int_equal(components.rope.pair, 1);
    uint32_t told = 0;
    for (uint32_t i = 0; i < components.count; i++) {
        const struct parity_component_row *row = &components.rows[i];
        if (row->level != PARITY_OPS || !row->sparse_stands_out) continue;
        assert_string_equal(row->op, "rotary");
        assert_int_equal(row->worst_within, 5);
        assert_int_equal(row->worst_column % 4, 1); /* frequency 1 of its half of a head of 8 */
        told += row->side == PARITY_OUTPUT;
    }
    assert_int_equal(told, 4);
    close_bench(&bench);
}

/* A factor that is missing from everything must be named: 1 / (0.1 ln 4 + 1). */
static void validate_factor(void **state) {
    (void)state;
    struct bench bench;
    struct parity_components components;
    uint32_t told = 0;
    open_bench(&bench, COMMON MICRO YARN("auto"), COMMON MICRO YARN("1"));
    expect_ok(parity_measure_components(&bench.parity, &components));
    for (uint32_t i = 0; i < components.count; i++) {
        const struct parity_component_row *row = &components.rows[i];
        if (row->level != PARITY_OPS || strcmp(row->op, "rotary") != 0) continue;
        /* each output is rounded to f32, by up to 6e-8 of it; 1e-5 leaves room for the fit */
        assert_true(fabs(row->factor - 1.0 / 1.1386294361) < 1e-5 && row->explained > 0.999);
        assert_string_equal(parity_row_words(row), "a factor on the whole");
        told++;
    }
    assert_int_equal(told, 8); /* Q, K and their gradients in two layers */
    close_bench(&bench);
}

/* ---- not finite ---- */

/* Breaks the row of an id that only one of two batches reads. */
static uint32_t id_of_one_batch(const struct parity *parity) {
    uint8_t seen[2][512] = {{0}};
    const struct dataset *dataset = &parity->dataset;
    for (uint32_t i = 0; i < dataset->samples; i++) {
        const struct dataset_sequence *sequence = dataset_side(dataset, i, DATASET_CHOSEN);
        for (uint32_t t = 0; t < sequence->length; t++)
            seen[i / parity_batch_size(parity) % 2][dataset->token[sequence->first + t]] = 1;
    }
    for (uint32_t id = 0; id < 300; id++)
        if (!seen[0][id] && seen[1][id]) return id;
    fail_msg("no id is in batch 1 alone");
    return 0;
}

static void plant_at_id(const struct bench *bench, enum parity_who who, float value) {
    struct run *run = bench->parity.run[who];
    weights_of(run, ROLE_EMBEDDING, 0)[id_of_one_batch(&bench->parity) * run->model.C] = value;
}

/* A NaN in one batch of several leaves the median as it is, and must still count as outside. */
static void require_not_finite(float value) {
    struct bench bench;
    struct parity_components components;
    struct parity_weights weights;
    struct parity_logits logits;
    uint32_t told = 0;
    memset(&logits, 0, sizeof logits);
    open_bench(&bench, COMMON MICRO LLAMA, COMMON MICRO LLAMA);
    bench.request.batches = 3; /* the samples of batches 0, 1, 0 */
    plant_at_id(&bench, PARITY_B, value);
    assert_int_equal(
        parity_compare_weights(bench.parity.run[PARITY_A], bench.parity.run[PARITY_B], &weights),
        STATUS_OK);
    assert_int_equal(weights.broken[0], 0);
    assert_int_equal(weights.broken[1], 1);
    assert_string_equal(weights.first_broken[1], "model.embed_tokens.weight");
    expect_ok(parity_measure_components(&bench.parity, &components));
    assert_int_equal(components.finding, PARITY_OUTSIDE);
    for (uint32_t i = 0; i < components.count; i++) {
        const struct parity_component_row *row = &components.rows[i];
        if (row->broken == 0) continue;
        assert_int_equal(row->finding, PARITY_OUTSIDE);
        assert_string_equal(parity_row_words(row), "not finite");
        told += row->side == PARITY_OUTPUT && isfinite(row->median);
    }
    assert_int_equal(told, 4); /* the look-up; with own inputs both layers and the logits */
    assert_true(components.sums[PARITY_EMBEDDING][PARITY_OUTPUT].worst->apart > 0);
    expect_ok(parity_measure_logits(&bench.parity, &logits));
    assert_int_equal(logits.finding, PARITY_OUTSIDE);
    assert_string_equal(logits.why, "not finite");
    assert_true(isnan(logits.largest) && isnan(logits.cosine_least));
    close_bench(&bench);
}

static void validate_not_finite(void **state) {
    (void)state;
    require_not_finite((float)NAN);
    require_not_finite((float)INFINITY);
}

/* A's own NaN is no rounding error, even where B has the same bits. */
static void validate_not_finite_in_a(void **state) {
    (void)state;
    HELPER_LEAVE_SANITIZED();
    struct bench bench;
    struct parity_components components;
    struct parity_logits logits;
    open_bench(&bench, COMMON MICRO LLAMA, COMMON MICRO LLAMA);
    bench.request.batches = 3;
    for (int who = 0; who < PARITY_RUNS; who++)
        plant_at_id(&bench, (enum parity_who)who, (float)NAN);
    expect_ok(parity_measure_components(&bench.parity, &components));
    assert_int_equal(components.finding, PARITY_OUTSIDE);
    for (uint32_t i = 0; i < components.count; i++)
        if (components.rows[i].not_finite)
            assert_non_null(strstr(parity_row_words(&components.rows[i]), "not finite in A"));
    expect_ok(parity_measure_logits(&bench.parity, &logits));
    assert_string_equal(logits.why, "not finite");
    assert_true(isnan(logits.largest) && isnan(logits.replica_largest));
    close_bench(&bench);
}

/* Measuring twice must give the same figures, which shows that it leaves nothing behind. */
static void verify_measuring_is_pure(void **state) {
    (void)state;
    HELPER_LEAVE_SANITIZED();
    struct bench bench;
    struct parity_components first, second;
    struct parity_logits logits[2];
    open_bench(&bench, COMMON MICRO OLMO2, COMMON MICRO OLMO2 ", " BF16);
    expect_ok(parity_measure_logits(&bench.parity, &logits[0]));
    expect_ok(parity_measure_components(&bench.parity, &first));
    expect_ok(parity_measure_components(&bench.parity, &second));
    expect_ok(parity_measure_logits(&bench.parity, &logits[1]));
    assert_int_equal(first.count, second.count);
    for (uint32_t i = 0; i < first.count; i++)
        assert_memory_equal(&first.rows[i].median, &second.rows[i].median, sizeof(double));
    assert_memory_equal(&logits[0], &logits[1], sizeof logits[0]);
    close_bench(&bench);
}

static void validate_untestable(void **state) {
    (void)state;
    struct bench bench;
    struct parity_components components;
    struct parity_logits logits;
#define WIDE                                                                                       \
    ", numerics: {param: f64, compute: f64, accumulate: f64, loss: f64, gradient: f64, "           \
    "optimizer: f64, rope: f64}"
    open_bench(&bench, COMMON MICRO LLAMA WIDE, COMMON MICRO LLAMA WIDE);
    expect_ok(parity_measure_components(&bench.parity, &components));
    assert_int_equal(components.finding, PARITY_UNTESTABLE);
    assert_non_null(strstr(components.untestable, "f64"));
    expect_ok(parity_measure_logits(&bench.parity, &logits));
    assert_int_equal(logits.finding, PARITY_WITHIN);
    close_bench(&bench);
    open_bench(&bench, COMMON MICRO LLAMA, COMMON MICRO OLMO2);
    expect_ok(parity_measure_components(&bench.parity, &components));
    assert_int_equal(components.finding, PARITY_UNTESTABLE);
    close_bench(&bench);
}

/* The probe of a pair computes the same KL by another formula, on the same four samples: two
 * micro-batches there, one sample at a time here. */
static void corroborate_probe(void **state) {
    (void)state;
    struct bench bench;
    struct parity_logits logits;
    struct pair_record record = {.reals = {0}};
    open_bench(&bench, COMMON MICRO OLMO2, COMMON MICRO OLMO2 ", " BF16);
    bench.request.batches = 2;
    expect_ok(parity_measure_logits(&bench.parity, &logits));
    assert_int_equal(probe_measure(bench.parity.run[PARITY_A], bench.parity.run[PARITY_B], &record),
                     STATUS_OK);
    /* two formulas in f64 for one figure */
    assert_true(fabs(logits.kl_direct / record.reals[PAIR_PROBE_KL] - 1.0) < 1e-9);
    assert_true(logits.kl_direct > 1e-7);
    assert_true(logits.top == record.reals[PAIR_PROBE_TOP1]);
    close_bench(&bench);
}

/* ---- log-probs ---- */

static const struct parity_grid small = {.lengths = {16, 24},
                                         .length_count = 2,
                                         .batches = {1, 3},
                                         .batch_count = 2,
                                         .data_count = PARITY_DATA,
                                         .repeats = 2,
                                         .temperature = 0.8,
                                         .top_p = 0.9,
                                         .refit = 1};

static void verify_invariant_generation(void **state) {
    (void)state;
    struct bench bench;
    struct parity_logprob logprob;
    open_bench(&bench, COMMON MICRO OLMO2, COMMON "batch: {size: 4, micro: 1, pad: 2}, " OLMO2);
    expect_ok(parity_measure_logprob(&bench.parity, &small, &logprob));
    assert_int_equal(logprob.count, 2 * 2 * 2 * 2 * PARITY_DATA);
    assert_int_equal(logprob.updates, 2);
    assert_int_equal(logprob.weights.apart, 0);
    for (uint32_t i = 0; i < logprob.count; i++) {
        const struct parity_row *row = &logprob.rows[i];
        assert_int_equal(row->refit, i >= logprob.count / 2);
        assert_true(row->own > 0.0 && row->own < 1e-5); /* the replica is refitted, too */
        assert_true(row->error == 1.0 && row->equal == 1.0 && row->bias == 0.0);
        assert_int_equal(row->alike, row->sampled ? 1 : 2);
        assert_int_equal(row->tokens, (uint64_t)row->generated * row->batch * 2);
    }
    assert_int_equal(logprob.finding, PARITY_WITHIN);
    close_bench(&bench);
}

/* A case that would need terabytes of keys is refused. */
static void validate_memory(void **state) {
    (void)state;
    struct bench bench;
    struct parity_logprob logprob;
    struct parity_grid grid = small;
    grid.lengths[0] = 1u << 20;
    grid.batches[0] = 4096;
    open_bench(&bench, COMMON MICRO LLAMA, COMMON MICRO LLAMA);
    assert_int_equal(parity_measure_logprob(&bench.parity, &grid, &logprob), STATUS_MEMORY);
    assert_non_null(strstr(status_text(), "length 1048576, batch 4096: more than 10"));
    close_bench(&bench);
}

static void validate_stale_refit(void **state) {
    (void)state;
    struct bench bench;
    struct parity_logprob logprob;
    struct parity_grid grid = small;
    grid.stale = 1;
    open_bench(&bench, COMMON MICRO LLAMA, COMMON MICRO LLAMA);
    expect_ok(parity_measure_logprob(&bench.parity, &grid, &logprob));
    assert_int_equal(logprob.finding, PARITY_OUTSIDE);
    assert_true(logprob.weights.apart > 0);
    for (uint32_t i = 0; i < logprob.count; i++) {
        const struct parity_row *row = &logprob.rows[i];
        assert_int_equal(row->finding, row->refit ? PARITY_OUTSIDE : PARITY_WITHIN);
        assert_true(row->refit ? row->error > 1.0 : row->error == 1.0);
    }
    close_bench(&bench);
}

static void validate_wrong_model(void **state) {
    (void)state;
    struct bench bench;
    struct parity_logprob logprob;
    struct parity_grid grid = small;
    grid.refit = 0;
    open_bench(&bench, COMMON MICRO LLAMA, COMMON MICRO LLAMA);
    plant_transposed(bench.parity.run[PARITY_B]);
    expect_ok(parity_measure_logprob(&bench.parity, &grid, &logprob));
    assert_int_equal(logprob.finding, PARITY_OUTSIDE);
    assert_true(logprob.rows[0].error > PARITY_ERROR_LINE);
    close_bench(&bench);
}

#define OF_LLAMA(more) "model: {family: llama, " more ", " SIZES "}"
#define PLAIN_QWEN3 "model: {family: qwen3, " SIZES "}"

/* Faults of one key, in f32, must be detected by logits and by generation, whatever the lines that
 * other projects draw say. */
static void verify_faults_of_keys(void **state) {
    (void)state;
    static const char *const keys[][2] = {
        {COMMON MICRO OF_LLAMA("norm_eps: 1e-6"), COMMON MICRO OF_LLAMA("norm_eps: 1e-5")},
        {COMMON MICRO LLAMA, COMMON MICRO LLAMA ", numerics: {rope: bf16}"},
        {COMMON MICRO YARN("auto"), COMMON MICRO PLAIN_QWEN3},
        {COMMON MICRO YARN("auto"), COMMON MICRO YARN("1")},
    };
    struct parity_grid grid = small;
    grid.refit = 0;
    uint32_t unseen = 0;
    for (size_t f = 0; f < sizeof keys / sizeof *keys; f += helper_size(2, 1, 1)) {
        struct bench bench;
        struct parity_logits logits;
        struct parity_logprob logprob;
        open_bench(&bench, keys[f][0], keys[f][1]);
        expect_ok(parity_measure_logits(&bench.parity, &logits));
        assert_int_equal(logits.finding, PARITY_OUTSIDE);
        expect_ok(parity_measure_logprob(&bench.parity, &grid, &logprob));
        for (uint32_t i = 0; i < logprob.count; i++) {
            const struct parity_row *row = &logprob.rows[i];
            assert_int_equal(row->finding, PARITY_OUTSIDE);
            assert_true(row->own > 0.0 && row->apart > 10.0 * row->own);
            unseen += row->error <= PARITY_ERROR_LINE;
        }
        close_bench(&bench);
    }
    assert_true(unseen > 0); /* by the line of 1.05 alone */
}

/* Settings that round otherwise are no fault. */
static void verify_settings_within(void **state) {
    (void)state;
    static const char *const settings[] = {
        (", " BF16),
        ", numerics: {compute: f16}",
        ", numerics: {mode: shaped}, shaped: {table: \"forward m<=8: 4; attention: 3; *: 2\"}",
        ", numerics: {mode: shuffled}, shuffle: {chunk: 3, kinds: [forward]}",
    };
    struct parity_grid grid = small;
    grid.refit = 0;
    for (size_t s = 0; s < sizeof settings / sizeof *settings; s += helper_size(3, 1, 1)) {
        char b[512];
        struct bench bench;
        struct parity_logprob logprob;
        snprintf(b, sizeof b, "%s%s", COMMON MICRO LLAMA, settings[s]);
        open_bench(&bench, COMMON MICRO LLAMA, b);
        expect_ok(parity_measure_logprob(&bench.parity, &grid, &logprob));
        uint32_t moved = 0;
        for (uint32_t i = 0; i < logprob.count; i++) {
            if (logprob.rows[i].finding != PARITY_WITHIN)
                fail_msg("%s: %g against %g", settings[s], logprob.rows[i].apart,
                         logprob.rows[i].own);
            moved += logprob.rows[i].apart > 0.0;
        }
        if (moved == 0) fail_msg("%s moves no bit", settings[s]);
        close_bench(&bench);
    }
}

static void validate_quantiles(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct parity_sample sample;
    expect_ok(parity_sample_open(&sample, 1000, &arena));
    for (uint32_t i = 0; i < 1000; i++) /* 1 ... 1000 in some order */
        parity_sample_add(&sample, (double)(i * 617 % 1000 + 1));
    parity_sample_add(&sample, 1e9); /* no room */
    assert_true(parity_sample_mean(&sample) == 500.5);
    assert_true(parity_sample_quantile(&sample, 0.5) == 500.0);
    assert_true(parity_sample_quantile(&sample, 0.999) == 999.0);
    assert_true(parity_sample_quantile(&sample, 1.0) == 1000.0);
    assert_true(parity_sample_quantile(&sample, 0.0) == 1.0);
    sample.value[3] = (double)NAN;
    sample.sorted = 0;
    assert_true(isnan(parity_sample_quantile(&sample, 1.0)));
    arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_planted_faults),
        cmocka_unit_test(validate_rope_element),
        cmocka_unit_test(validate_factor),
        cmocka_unit_test(validate_not_finite),
        cmocka_unit_test(validate_not_finite_in_a),
        cmocka_unit_test(verify_measuring_is_pure),
        cmocka_unit_test(validate_untestable),
        cmocka_unit_test(corroborate_probe),
        cmocka_unit_test(verify_invariant_generation),
        cmocka_unit_test(validate_memory),
        cmocka_unit_test(validate_stale_refit),
        cmocka_unit_test(validate_wrong_model),
        cmocka_unit_test(verify_faults_of_keys),
        cmocka_unit_test(verify_settings_within),
        cmocka_unit_test(validate_quantiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

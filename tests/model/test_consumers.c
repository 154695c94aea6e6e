/* SPDX-License-Identifier: Apache-2.0
 * labels: unit memory threads
 * Who draws random numbers: every word of a run's ledger must have a named consumer, the recorded
 * words must give the recorded digest, and what a consumer drew must be what its place in the model
 * needs. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "determinism/ledger.h"
#include "model/consumers.h"
#include "tests/determinism/helper_ledger.h"
#include "tests/trainer/helper_train.h"

enum { UPDATES = 3, SAMPLES = 6, LAYERS = 2, HIDDEN = 16, HEADS = 4, VOCAB = 19 };

/* An epoch has 2 updates, so update 3 permutes again. */
#define COMMON                                                                                     \
    "task: sft, data: {max_len: 16, seed: 23%s}, init: {seed: 29}, batch: {size: 3, micro: 1}, "   \
    "model: {layers: 2, hidden: 16, heads: 4, kv_heads: 2, mlp: 20, vocab: 19%s}%s"

/* Further keys of the sections data and model and of other sections; each begins with a comma. */
struct words {
    const char *data, *model, *rest;
};

struct trained {
    struct arena arena;
    struct config config;
    struct dataset dataset;
    struct run run;
    struct trace_run_plan plan;
};

static void trained_open(struct trained *t, const struct words *words) {
    const struct run_options options = {.steps = UPDATES};
    memset(t, 0, sizeof *t);
    helper_config(UPDATES, &t->config, COMMON, words->data, words->model, words->rest);
    helper_ids_open(&t->config, 7, SAMPLES, 12, &t->arena, &t->dataset);
    helper_run_open(&t->config, &t->dataset, &options, &t->run);
    t->plan = (struct trace_run_plan){.shape = t->run.shape, .consumers = t->run.axes.consumers};
}

static void trained_close(struct trained *t) {
    run_close(&t->run);
    arena_close(&t->arena);
}

/* Returns the consumer's words in the record, or -1 where the run has no such consumer. */
static int64_t words_of(const struct trained *t, const struct record *record, const char *name) {
    for (uint32_t i = 0; i < t->plan.shape.consumers; i++)
        if (strcmp(t->plan.consumers[i].name, name) == 0) return record->ledger[i][LEDGER_WORDS];
    return -1;
}

static uint64_t total(const struct stream_ledger *ledger) {
    uint64_t words = 0;
    for (int stream = 0; stream < STREAM_COUNT; stream++)
        words += helper_ledger_total(ledger, (enum stream)stream);
    return words;
}

/* Nothing may be drawn that the table does not name. */
static void verify_all_are_named(void **state) {
    (void)state;
    static const struct words cases[] = {
        {"", "", ""},
        {", shuffle: false", "", ""},
        {"", "", ", dropout: {embedding: 0.1, attention: 0.2, residual: 0.3}"},
        {"", "", ", dropout: {attention: 0.2, residual: 0.3, recompute: redraw}"},
        {"", "", ", dropout: {residual: 0.3}, rng: {kind: torch}"},
        {"", "", ", numerics: {param: bf16, master: none, rounding: stochastic}"},
        {"", ", tied: true", ", dropout: {embedding: 0.1, recompute: redraw}"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct trained t;
        static struct stream_ledger ledger;
        trained_open(&t, &cases[i]);
        for (int k = 1; k <= UPDATES; k++) {
            const struct record *record = helper_step(&t.run);
            struct digest digest;
            assert_int_equal(ledger_of(&t.plan, record, &ledger), 1);
            digest_ledger(&ledger, &digest);
            assert_memory_equal(digest.byte, record->digests[DIGEST_RNG], DIGEST_BYTES);
            assert_true(total(&ledger) == total(&t.run.ledger));
        }
        trained_close(&t);
    }
}

/* The lengths of the update's sequences must be those of the run's plan. */
static void validate_numbers(void **state) {
    (void)state;
    struct trained t;
    trained_open(&t, &(struct words){
                         "", "",
                         ", dropout: {embedding: 0.1, attention: 0.2, residual: 0.3, recompute: "
                         "redraw}, numerics: {param: bf16, master: none, rounding: stochastic}"});
    for (int k = 1; k <= UPDATES; k++) {
        const struct record *record = helper_step(&t.run);
        int64_t tokens = 0, pairs = 0;
        for (uint32_t i = 0; i < t.run.plan.samples; i++) {
            const int64_t length =
                (int64_t)dataset_side(&t.dataset, t.run.plan.sample[i], 0)->length;
            tokens += length;
            pairs += length * (length + 1) / 2;
        }
        assert_int_equal(words_of(&t, record, "data/permute"), k % 2 == 1 ? 2 * SAMPLES : 0);
        assert_int_equal(words_of(&t, record, "dropout/embedding"), tokens * HIDDEN);
        assert_int_equal(words_of(&t, record, "dropout/attention"), LAYERS * pairs * HEADS);
        assert_int_equal(words_of(&t, record, "dropout/attention/recomputed"),
                         LAYERS * pairs * HEADS);
        assert_int_equal(words_of(&t, record, "dropout/branch-attention"),
                         LAYERS * tokens * HIDDEN);
        assert_int_equal(words_of(&t, record, "dropout/branch-mlp"), LAYERS * tokens * HIDDEN);
        assert_int_equal(words_of(&t, record, "dropout/embedding/recomputed"), -1);
        assert_int_equal(words_of(&t, record, "rounding/q"), LAYERS * HIDDEN * HIDDEN);
        assert_int_equal(words_of(&t, record, "rounding/norm"), HIDDEN);
        assert_int_equal(words_of(&t, record, "init/q"), 0);
    }
    trained_close(&t);
}

static void validate_initial(void **state) {
    (void)state;
    struct trained t;
    uint64_t initial = 0, matrices = 0;
    trained_open(&t, &(struct words){"", "", ""});
    for (uint32_t i = 0; i < t.plan.shape.consumers; i++) {
        const struct record_consumer *consumer = &t.plan.consumers[i];
        initial += consumer->initial;
        assert_int_equal(consumer->seed, consumer->stream == STREAM_INIT ? 29 : 23);
        if (strcmp(consumer->name, "init/embedding") == 0)
            assert_int_equal(consumer->initial, VOCAB * HIDDEN);
        if (strcmp(consumer->name, "init/up") == 0)
            assert_int_equal(consumer->initial, LAYERS * 20 * HIDDEN);
        for (uint32_t j = 0; j < i; j++) {
            assert_string_not_equal(consumer->name, t.plan.consumers[j].name);
            assert_true(consumer->stream != t.plan.consumers[j].stream ||
                        consumer->op != t.plan.consumers[j].op);
        }
    }
    for (uint32_t i = 0; i < t.run.owner_count; i++)
        if (t.run.table.rows[t.run.owner[i]].rank == 2)
            matrices += t.run.table.rows[t.run.owner[i]].count;
    assert_true(initial == matrices);
    assert_int_equal(strlen(t.run.axes.groups), t.run.owner_count);
    trained_close(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_all_are_named),
        cmocka_unit_test(validate_numbers),
        cmocka_unit_test(validate_initial),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 * labels: unit memory
 * Events of random streams, by what they do: the batches, masks, roundings and orders of a run with
 * an event must be those that a run without one has at another update, or that another seed gives.
 * No draw is computed here. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "data/datarow.h"
#include "tests/base/helper_size.h"
#include "tests/trainer/helper_train.h"
#include "trainer/schema_classes.h"

enum { UPDATES = 12, SHOWN = 8, SAMPLES = 20 };

/* The digests that tell an update's batch, its masks and its weights. */
struct trail {
    struct digest batch[UPDATES + 1], forward[UPDATES + 1], weights[UPDATES + 1];
    struct digest state[UPDATES + 1];
    uint64_t offset[UPDATES + 1];
    struct state_stream streams[STREAM_COUNT]; /* at the end */
};

static void keep_update(struct trail *trail, const struct run *run, const struct record *record) {
    const uint64_t k = record->step;
    struct digest_stream weights;
    memcpy(trail->batch[k].byte, record->digests[DIGEST_BATCH], DIGEST_BYTES);
    memcpy(trail->forward[k].byte, record->phases[run->axes.phase_slot[PHASE_FORWARD]],
           DIGEST_BYTES);
    memcpy(trail->state[k].byte, record->digests[DIGEST_STATE], DIGEST_BYTES);
    digest_stream_init(&weights, "weights");
    for (uint32_t i = 0; i < run->owner_count; i++)
        digest_stream_add(&weights, &run->piece_digest[run->owner[i]][0]);
    digest_stream_close(&weights, &trail->weights[k]);
    trail->offset[k] = state_head_of(run->state.host)->rng_offset;
}

static void train(const struct config *config, struct arena *arena, struct trail *out) {
    struct dataset dataset;
    struct run run;
    const struct run_options options = {
        .phases = 1, .steps = UPDATES, .order_seed = config->numerics.order_seed};
    helper_ids_open(config, 71, SAMPLES, 16, arena, &dataset);
    helper_run_open(config, &dataset, &options, &run);
    memset(out, 0, sizeof *out);
    for (uint64_t k = 1; k <= UPDATES; k++)
        keep_update(out, &run, helper_step(&run));
    memcpy(out->streams, state_head_of(run.state.host)->stream, sizeof out->streams);
    run_close(&run);
}

#define BASE                                                                                       \
    "model: {layers: 1, hidden: 16, heads: 2, mlp: 20, vocab: 19}, init: {std: 0.3, seed: 17}"

static void train_words(const char *fixed, const char *words, struct arena *arena,
                        struct trail *out) {
    struct config config;
    helper_config(UPDATES, &config, BASE ", %s, %s", fixed, words);
    train(&config, arena, out);
}

static int same(const struct digest *a, const struct digest *b) {
    return digest_compare(a, b) == 0;
}

/* Update k of a run with an event must equal update from[k - 1] of the run without one; where that
 * is negative, of the run with another seed. %ju stands for the words of PyTorch's offset that an
 * update uses, and then for twice that. */
struct mapping {
    const char *event;
    int from[SHOWN];
};

static void check_mapping(const struct mapping *mapping, const struct digest *got,
                          const struct digest *first, const struct digest *second) {
    for (int k = 1; k <= SHOWN; k++) {
        const int from = mapping->from[k - 1];
        if (!same(&got[k], from > 0 ? &first[from] : &second[-from]))
            fail_msg("%s: update %d is not update %d", mapping->event, k, from);
    }
}

/* Checks that these digests differ; otherwise a wrong mapping would not show. */
static void check_distinct(const struct digest *first, const struct digest *second) {
    for (int i = 1; i <= UPDATES; i++)
        for (int j = 1; j <= UPDATES; j++) {
            assert_false(same(&first[i], &second[j]));
            if (i != j) assert_false(same(&first[i], &first[j]));
        }
}

/* An epoch has three updates. */
static const struct mapping data_mappings[] = {
    {"rng: {data: advance 2 at 3}", {1, 2, 5, 6, 7, 8, 9, 10}},
    {"rng: {data: 'advance 1 at 1, advance 1 at 1, advance 1 at 4'}", {3, 4, 5, 7, 8, 9, 10, 11}},
    {"rng: {data: 'save a at 2, load a at 4, load a at 7'}", {1, 2, 3, 2, 3, 4, 2, 3}},
    {"rng: {data: 'save a at 2, save a at 3, save b at 4, load a at 5'}", {1, 2, 3, 4, 3, 4, 5, 6}},
    {"rng: {data: seed 9 at 3}", {1, 2, -3, -4, -5, -6, -7, -8}},
    {"rng: {data: 'seed 9 at 2, seed 17 at 3'}", {1, -2, 3, 4, 5, 6, 7, 8}},
    {"rng: {data: seed 9 clock 1 at 5}", {1, 2, 3, 4, -2, -3, -4, -5}},
    {"rng: {data: 'seed 9 at 2, save a at 3, seed 17 clock 0 at 3, load a at 6'}",
     {1, -2, 1, 2, 3, -3, -4, -5}},
    {"resume: {after: 4, restores: [rng]}", {1, 2, 3, 4, 1, 2, 3, 4}},
    {"resume: {after: 4, restores: [data]}", {1, 2, 3, 4, 5, 6, 7, 8}},
    /* the restart comes first, then the event */
    {"rng: {data: 'seed 9 at 2, advance 2 at 5'}, resume: {after: 4, restores: []}",
     {1, -2, -3, -4, 3, 4, 5, 6}},
    /* a slot outlives a restart */
    {"rng: {data: 'save a at 4, load a at 6'}, resume: {after: 4, restores: []}",
     {1, 2, 3, 4, 1, 4, 5, 6}},
};

#define BATCHES "task: sft, batch: {size: 6, micro: 2}, optimizer: {lr: 1e-3}"
#define PAIRS "task: dpo, batch: {size: 6, micro: 3}, optimizer: {lr: 1e-3}"

static void verify_data(void **state) {
    (void)state;
    static const char *const tasks[] = {BATCHES, PAIRS};
    static struct trail first, second, got;
    for (size_t t = 0; t < COUNT_OF(tasks); t++) {
        struct arena arena = ARENA_EMPTY;
        train_words(tasks[t], "data: {max_len: 16}", &arena, &first);
        train_words(tasks[t], "data: {max_len: 16, seed: 9}", &arena, &second);
        check_distinct(first.batch, second.batch);
        for (size_t i = 0; i < COUNT_OF(data_mappings); i += helper_size(2, 1, 1)) {
            char words[256];
            snprintf(words, sizeof words, "data: {max_len: 16}, %s", data_mappings[i].event);
            train_words(tasks[t], words, &arena, &got);
            check_mapping(&data_mappings[i], got.batch, first.batch, second.batch);
        }
        arena_close(&arena);
    }
}

/* An order is drawn when its epoch is entered, wherever that is; three updates an epoch. */
static void verify_data_words(void **state) {
    (void)state;
    static const struct {
        const char *event, *draws; /* by update */
    } cases[] = {
        {"rng: {data: none}", "1001001001"},
        {"rng: {data: advance 1 at 1}", "1010010010"},
        {"rng: {data: advance 1 at 2}", "1010010010"},
        {"rng: {data: advance 1 at 4}", "1001010010"},
        {"rng: {data: advance 3 at 2}", "1101001001"},
        {"rng: {data: seed 9 at 2}", "1101001001"},
        {"rng: {data: 'save a at 2, load a at 3'}", "1000100100"},
        {"rng: {data: 'save a at 2, load a at 6'}", "1001010100"},
        {"rng: {data: advance 1 at 2}, data: {max_len: 16, shuffle: false}", "0000000000"},
        {"resume: {after: 2, restores: [rng]}", "1010010010"},
        {"resume: {after: 2, restores: [data]}", "1001001001"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i += helper_size(2, 1, 1)) {
        struct config config;
        struct dataset dataset;
        struct run run;
        struct arena arena = ARENA_EMPTY;
        helper_config(UPDATES, &config, BASE ", %s, %s", BATCHES, cases[i].event);
        helper_ids_open(&config, 71, SAMPLES, 16, &arena, &dataset);
        helper_run_open(&config, &dataset, &(struct run_options){.steps = UPDATES}, &run);
        for (const char *draw = cases[i].draws; *draw != '\0'; draw++) {
            const uint64_t expected = *draw == '1' ? 2 * SAMPLES : 0;
            (void)helper_step(&run);
            if (run.ledger.words[STREAM_DATA][DATA_OP_PERMUTE] != expected)
                fail_msg("%s: update %d", cases[i].event, (int)(draw - cases[i].draws) + 1);
        }
        run_close(&run);
        arena_close(&arena);
    }
}

/* The first pass must score the samples that the run will use, wherever events and a restart lead:
 * the cached reference must give the losses of the live one. */
static void verify_reference(void **state) {
    (void)state;
    static const char *const events[] = {
        "rng: {data: 'advance 9 at 2, save a at 3, seed 9 at 4, load a at 6'}",
        "rng: {data: 'advance 5 at 1, seed 4 at 2'}, resume: {after: 3, restores: []}",
    };
    for (size_t i = 0; i < COUNT_OF(events); i++) {
        struct arena arena = ARENA_EMPTY;
        struct dataset dataset;
        struct run runs[2];
        for (int live = 0; live < 2; live++) {
            struct config config;
            helper_config(6, &config,
                          BASE ", task: dpo, batch: {size: 2, micro: 2}, optimizer: {lr: 1e-2}, "
                               "data: {max_len: 16}, dpo: {reference: %s}, %s",
                          live ? "live" : "cached", events[i]);
            if (live == 0) helper_ids_open(&config, 71, 60, 16, &arena, &dataset);
            helper_run_open(&config, &dataset, &(struct run_options){.steps = 6}, &runs[live]);
        }
        for (int k = 1; k <= 6; k++) {
            const double cached = helper_step(&runs[0])->reals[REAL_LOSS];
            const double live = helper_step(&runs[1])->reals[REAL_LOSS];
            assert_true(cached == live);
        }
        run_close(&runs[0]);
        run_close(&runs[1]);
        arena_close(&arena);
    }
}

/* ---- dropout: the same batch and weights in every update, so forwards differ by masks ---- */

#define MASKS                                                                                      \
    "task: sft, batch: {size: 20, micro: 10}, data: {shuffle: false, max_len: 16}, "               \
    "optimizer: {name: sgd, lr: 0}"

static const struct mapping addressed_mappings[] = {
    {"rng: {dropout: advance 2 at 3}", {1, 2, 5, 6, 7, 8, 9, 10}},
    {"rng: {dropout: 'save a at 2, load a at 4, load a at 7'}", {1, 2, 3, 2, 3, 4, 2, 3}},
    {"rng: {dropout: seed 9 at 3}", {1, 2, -3, -4, -5, -6, -7, -8}},
    {"rng: {dropout: seed 9 clock 0 at 3}", {1, 2, -1, -2, -3, -4, -5, -6}},
    {"rng: {dropout: 'seed 9 at 2, seed 17 at 3'}", {1, -2, 3, 4, 5, 6, 7, 8}},
    {"resume: {after: 4, restores: [data]}", {1, 2, 3, 4, 1, 2, 3, 4}},
    {"resume: {after: 4, restores: [rng]}", {1, 2, 3, 4, 5, 6, 7, 8}},
    {"rng: {dropout: 'seed 9 at 3'}, resume: {after: 4, restores: []}", {1, 2, -3, -4, 1, 2, 3, 4}},
};

static const struct mapping torch_mappings[] = {
    {"rng: {kind: torch, dropout: advance %ju at 3}", {1, 2, 4, 5, 6, 7, 8, 9}},
    {"rng: {kind: torch, dropout: 'save a at 2, load a at 4, load a at 7'}",
     {1, 2, 3, 2, 3, 4, 2, 3}},
    /* torch.manual_seed starts at offset 0 */
    {"rng: {kind: torch, dropout: seed 9 at 3}", {1, 2, -1, -2, -3, -4, -5, -6}},
    {"rng: {kind: torch, dropout: seed 17 at 3}", {1, 2, 1, 2, 3, 4, 5, 6}},
    {"rng: {kind: torch, dropout: 'seed 9 clock %ju at 3, advance %ju at 4'}",
     {1, 2, -2, -5, -6, -7, -8, -9}},
    {"rng: {kind: torch}, resume: {after: 4, restores: [data]}", {1, 2, 3, 4, 1, 2, 3, 4}},
    {"rng: {kind: torch}, resume: {after: 4, restores: [rng]}", {1, 2, 3, 4, 5, 6, 7, 8}},
};

/* The numbers in the format are words of the offset; a format without any ignores them. */
static void fill_words(const char *format, uint64_t words, char *out, size_t size) {
    size_t used = 0;
    uint64_t number = words;
    for (; *format != '\0' && used + 24 < size; format++) {
        if (strncmp(format, "%ju", 3) != 0) {
            out[used++] = *format;
            continue;
        }
        used += (size_t)snprintf(out + used, size - used, "%ju", (uintmax_t)number);
        number += words;
        format += 2;
    }
    out[used] = '\0';
}

static void check_masks(const char *kind, const struct mapping *mappings, size_t count) {
    static struct trail first, second, got;
    struct arena arena = ARENA_EMPTY;
    char words[256], other[256];
    snprintf(words, sizeof words, "dropout: {residual: 0.2, attention: 0.1}%s", kind);
    snprintf(other, sizeof other, "dropout: {residual: 0.2, attention: 0.1, seed: 9}%s", kind);
    train_words(MASKS, words, &arena, &first);
    train_words(MASKS, other, &arena, &second);
    check_distinct(first.forward, second.forward);
    for (size_t i = 0; i < count; i += helper_size(2, 1, 1)) {
        char event[160];
        fill_words(mappings[i].event, first.offset[1], event, sizeof event);
        snprintf(words, sizeof words, "dropout: {residual: 0.2, attention: 0.1}, %s", event);
        train_words(MASKS, words, &arena, &got);
        check_mapping(&mappings[i], got.forward, first.forward, second.forward);
    }
    arena_close(&arena);
}

static void verify_masks(void **state) {
    (void)state;
    check_masks("", addressed_mappings, COUNT_OF(addressed_mappings));
}

static void verify_torch_masks(void **state) {
    (void)state;
    check_masks(", rng: {kind: torch}", torch_mappings, COUNT_OF(torch_mappings));
}

/* ---- rounding and order: weights say which draws were made ---- */

#define ROUNDS                                                                                     \
    "task: sft, batch: {size: 20, micro: 10}, data: {shuffle: false, max_len: 16}, "               \
    "optimizer: {name: sgd, lr: 1e-2}, numerics: {param: bf16, compute: f32, rounding: "           \
    "stochastic}"
#define ORDERS                                                                                     \
    "task: sft, batch: {size: 20, micro: 10}, data: {shuffle: false, max_len: 16}, "               \
    "optimizer: {name: sgd, lr: 1e-2}, shuffle: {chunk: 2}"
#define ORDER_5 "numerics: {mode: shuffled, order_seed: 5}"

static const struct {
    const char *fixed, *a, *b;
    int first; /* update whose weights differ; 0: none */
} pairs[] = {
    {ROUNDS, "seed: 17", "rng: {rounding: advance 1 at 4}", 4},
    {ROUNDS, "seed: 17", "rng: {rounding: seed 9 at 4}", 4},
    {ROUNDS, "seed: 9", "rng: {rounding: seed 9 at 1}", 0},
    {ROUNDS, "rng: {rounding: seed 17 clock 6 at 4}", "rng: {rounding: advance 3 at 4}", 0},
    {ROUNDS, "seed: 17", "rng: {rounding: 'save a at 3, seed 5 at 3, load a at 3'}", 0},
    {ROUNDS, "rng: {rounding: seed 17 clock 0 at 4}",
     "resume: {after: 3, restores: [schedule, optimizer]}", 0},
    {ROUNDS, "seed: 17", "resume: {after: 3, restores: [schedule, optimizer, rng]}", 0},
    {ORDERS, ORDER_5, ORDER_5 ", rng: {order: advance 1 at 4}", 4},
    {ORDERS, ORDER_5, ORDER_5 ", rng: {order: seed 6 at 4}", 4},
    {ORDERS, "numerics: {mode: shuffled, order_seed: 6}", ORDER_5 ", rng: {order: seed 6 at 1}", 0},
    {ORDERS, ORDER_5 ", rng: {order: seed 5 clock 6 at 4}",
     ORDER_5 ", rng: {order: advance 3 at 4}", 0},
    {ORDERS, ORDER_5, ORDER_5 ", rng: {order: 'save a at 3, seed 5 at 3, load a at 3'}", 0},
    {ORDERS, ORDER_5 ", rng: {order: seed 5 clock 0 at 4}",
     ORDER_5 ", resume: {after: 3, restores: [schedule, optimizer]}", 0},
    {ORDERS, ORDER_5, ORDER_5 ", resume: {after: 3, restores: [schedule, optimizer, rng]}", 0},
};

static void verify_weights(void **state) {
    (void)state;
    static struct trail a, b;
    for (size_t i = 0; i < COUNT_OF(pairs); i += helper_size(2, 1, 1)) {
        struct arena arena = ARENA_EMPTY;
        int first = 0;
        train_words(pairs[i].fixed, pairs[i].a, &arena, &a);
        train_words(pairs[i].fixed, pairs[i].b, &arena, &b);
        for (int k = UPDATES; k >= 1; k--)
            if (!same(&a.weights[k], &b.weights[k])) first = k;
        if (first != pairs[i].first)
            fail_msg("%s | %s: differ from update %d on, not %d", pairs[i].a, pairs[i].b, first,
                     pairs[i].first);
        arena_close(&arena);
    }
}

/* ---- two arms ---- */

static void arms_configs(const char *common, const char *a, const char *b, struct config out[2]) {
    char text[2048];
    struct arena arena = ARENA_EMPTY;
    const struct schema *schema;
    struct scenario *scenario;
    const int length =
        snprintf(text, sizeof text,
                 "twinstep: 1\nname: test\nsteps: %d\ncommon: {%s}\narms:\n  a: {%s}\n  b: {%s}\n",
                 UPDATES, common, a, b);
    assert_true(length > 0 && (size_t)length < sizeof text);
    assert_int_equal(schema_with_classes(&arena, &schema), STATUS_OK);
    if (scenario_parse(&arena, schema, "test.yaml", text, (size_t)length, NULL, 0, &scenario) !=
        STATUS_OK)
        fail_msg("%s", status_text());
    out[0] = scenario->arms[0].config;
    out[1] = scenario->arms[1].config;
    arena_close(&arena);
}

/* A swap must give each arm the other's masks. A second swap must leave no trace, not even in the
 * state. */
static void verify_swaps(void **state) {
    (void)state;
    static struct trail alone[2], swapped[2];
    struct config configs[2];
    struct arena arena = ARENA_EMPTY;
    const char *common = BASE ", dropout: {residual: 0.2}, " MASKS;
    arms_configs(common, "seed: 17", "dropout: {seed: 9}, rng: {dropout: advance 40 at 2}",
                 configs);
    for (int arm = 0; arm < 2; arm++)
        train(&configs[arm], &arena, &alone[arm]);
    check_distinct(alone[0].forward, alone[1].forward);
    arms_configs(common, "rng: {dropout: 'take b at 3, take b at 6'}",
                 "dropout: {seed: 9}, rng: {dropout: 'advance 40 at 2, take a at 3, take a at 6'}",
                 configs);
    for (int arm = 0; arm < 2; arm++)
        train(&configs[arm], &arena, &swapped[arm]);
    for (int arm = 0; arm < 2; arm++) {
        for (int k = 1; k <= UPDATES; k++) {
            const int is_swapped = k >= 3 && k < 6;
            assert_true(same(&swapped[arm].forward[k], &alone[is_swapped ? !arm : arm].forward[k]));
            assert_int_equal(same(&swapped[arm].state[k], &alone[arm].state[k]), !is_swapped);
        }
        assert_memory_equal(swapped[arm].streams, alone[arm].streams, sizeof alone[arm].streams);
    }
    arena_close(&arena);
}

/* A `take` that no pair of arms has resolved must be refused, not ignored. */
static void verify_unresolved_take(void **state) {
    (void)state;
    struct config config;
    struct dataset dataset;
    struct run run;
    struct arena arena = ARENA_EMPTY;
    helper_config(UPDATES, &config, BASE ", %s", BATCHES);
    helper_ids_open(&config, 71, SAMPLES, 16, &arena, &dataset);
    strcpy(config.rng.data, "seed 1 at 1, take b at 2");
    assert_int_equal(run_open_at(&config, &dataset, &(struct run_options){.steps = 2}, &run),
                     STATUS_INPUT);
    assert_string_equal(status_text(), "rng.data: event 2: take needs another arm");
    arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_data),        cmocka_unit_test(verify_data_words),
        cmocka_unit_test(verify_reference),   cmocka_unit_test(verify_masks),
        cmocka_unit_test(verify_torch_masks), cmocka_unit_test(verify_weights),
        cmocka_unit_test(verify_swaps),       cmocka_unit_test(verify_unresolved_take),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

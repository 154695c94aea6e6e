/* SPDX-License-Identifier: Apache-2.0
 * labels: repro short omp
 * Ranks that own parts (parallel.zero). Every stage must have the bits of stage 0, which tests of
 * law 21 hold against the law written out, in losses, norms, gradients, slots and weights. And the
 * stages must be what they say: an optimizer that looks on sees every element once, in parts that
 * are those of DeepSpeed's cut or of FSDP2's, made here by hand; no join of ranks crosses a part.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "optim/optim.h"
#include "tests/trainer/helper_train.h"
#include "trainer/replicas.h"
#include "trainer/run_private.h"
#include "trainer/schema_classes.h"
#include "trainer/zero.h"

struct training {
    const char *words;
    uint32_t samples;
};

static const struct training trainings[] = {
    /* one tensor used twice, biases */
    {"task: sft, model: {family: qwen2, layers: 1, hidden: 16, heads: 4, kv_heads: 2, mlp: 20, "
     "vocab: 19, tied: true}",
     8},
    /* two groups, masters, bf16 on the way; shards that are absent or uneven */
    {"task: dpo, model: {family: olmo2, layers: 1, hidden: 16, heads: 4, kv_heads: 2, mlp: 20, "
     "vocab: 19}, optimizer: {decay: matrices, weight_decay: 0.1}, numerics: {param: bf16, "
     "compute: bf16, gradient: bf16, master: f32}",
     5},
    /* a loss scale, whose first one is too large, and a skipped update */
    {"task: sft, scaler: {kind: dynamic, init_scale: 1e10, backoff_factor: 1e-6}, numerics: "
     "{compute: f16}, model: {family: llama, layers: 1, hidden: 16, heads: 4, kv_heads: 2, mlp: "
     "20, vocab: 19}",
     8},
    /* roundings that are drawn by address */
    {"task: sft, numerics: {param: bf16, rounding: stochastic}, model: {family: llama, layers: 1, "
     "hidden: 16, heads: 4, kv_heads: 2, mlp: 20, vocab: 19}",
     8},
    {"task: sft, optimizer: {name: sgd, momentum: 0.9}, model: {family: llama, layers: 1, hidden: "
     "16, heads: 4, kv_heads: 2, mlp: 20, vocab: 19}",
     8},
    {"task: sft, optimizer: {name: lion}, numerics: {mode: order-free}, model: {family: llama, "
     "layers: 1, hidden: 16, heads: 4, kv_heads: 2, mlp: 20, vocab: 19}",
     8},
};

struct shape {
    uint64_t shards, ranks, micro;
};

static const struct shape shapes[] = {{8, 3, 2}, {8, 5, 1}, {8, 2, 4}, {1, 3, 2}};

static void open_config(const char *words, uint64_t samples, struct config *config,
                        struct arena *arena, struct dataset *dataset) {
    helper_config(3, config,
                  "%s, init: {std: 0.3}, batch: {size: %d}, clip: {max_norm: 0.5}, loop: {update: "
                  "[reduce, unscale, clip, optimize, log, count, schedule, zero]}",
                  words, (int)samples);
    helper_ids_open(config, 5, 16, 16, arena, dataset);
}

static void open_run(const struct config *base, const struct dataset *dataset,
                     const struct shape *shape, int32_t stage, struct run *run) {
    const struct run_options options = {
        .tensors = 1, .phases = 1, .poison = 1, .readback = 1, .steps = 3};
    struct config config = *base;
    config.numerics.shards = shape->shards;
    config.parallel.ranks = shape->ranks;
    config.parallel.zero = (uint64_t)stage;
    config.batch.micro = config.dpo.reference_batch = shape->micro;
    helper_run_open(&config, dataset, &options, run);
}

static void outcome_of(const struct config *config, const struct dataset *dataset,
                       const struct shape *shape, int32_t stage, struct helper_outcome *out) {
    struct run run;
    open_run(config, dataset, shape, stage, &run);
    assert_true((run.zero != NULL) == (stage != ZERO_NONE && shape->ranks > 1));
    helper_outcome_of(&run, 3, out);
    run_close(&run);
}

/* ---- bits ---- */

static void verify_stages(void **state) {
    (void)state;
    for (size_t t = 0; t < COUNT_OF(trainings); t++) {
        struct config config;
        struct arena arena = ARENA_EMPTY;
        struct dataset dataset;
        open_config(trainings[t].words, trainings[t].samples, &config, &arena, &dataset);
        for (size_t s = 0; s < COUNT_OF(shapes); s++) {
            if (shapes[s].ranks > trainings[t].samples) continue;
            struct helper_outcome whole, parts;
            outcome_of(&config, &dataset, &shapes[s], ZERO_NONE, &whole);
            for (int32_t stage = ZERO_SLOTS; stage <= ZERO_WEIGHTS; stage++) {
                outcome_of(&config, &dataset, &shapes[s], stage, &parts);
                const char *const gap = helper_outcome_gap(&whole, &parts);
                if (gap != NULL)
                    fail_msg("training %zu, shape %zu, stage %d: %s", t, s, (int)stage, gap);
            }
        }
        arena_close(&arena);
    }
}

/* Tensors of more than one block of law 2, so that parts end inside of blocks: a norm that each
 * rank made of its own numbers alone would have other last bits (tests/trainer/test_shards.c). */
static void verify_norms(void **state) {
    static const char words[] = "task: sft, model: {family: llama, layers: 1, hidden: 64, heads: "
                                "4, mlp: 96, vocab: 67}";
    struct config config;
    struct arena arena = ARENA_EMPTY;
    struct dataset dataset;
    (void)state;
    open_config(words, 8, &config, &arena, &dataset);
    for (int32_t norm = CLIP_SQUARES; norm <= CLIP_FLAT; norm++)
        for (int32_t dtype = CLIP_F64; dtype <= CLIP_GRADIENT; dtype++) {
            double whole = 0.0, parts;
            config.clip.norm = norm;
            config.clip.dtype = dtype;
            for (int32_t stage = ZERO_NONE; stage <= ZERO_WEIGHTS; stage++) {
                const struct shape shape = {8, norm == CLIP_NORMS ? 5 : 3, 2};
                struct run run;
                open_run(&config, &dataset, &shape, stage, &run);
                helper_step(&run);
                parts = run.record.reals[REAL_GRAD_NORM];
                if (stage == ZERO_NONE) whole = parts;
                if (!(parts == whole))
                    fail_msg("norm %d, dtype %d, stage %d: %a, expected %a", (int)norm, (int)dtype,
                             (int)stage, parts, whole);
                run_close(&run);
            }
        }
    arena_close(&arena);
}

/* ---- who does what ---- */

enum { PLACES_MAX = 8192, SEEN_MAX = 256 };

/* What an optimizer that looks on, and a join, were handed: elements by their number in the packed
 * parameters. */
static struct {
    struct run *run;
    struct optim_class class_;
    const struct optim_class *real;
    struct op_table ops;
    const struct op_table *real_ops;
    int calls;
    uint8_t rank_of[PLACES_MAX], steps[PLACES_MAX];
    int reduces;                /* phase reduce runs */
    uint8_t joined[PLACES_MAX]; /* into the sums of the state, of use 0, in that phase */
    uint32_t joins, across;     /* calls, and those of them with elements of two ranks */
    const uint8_t *owner;
} seen;

static size_t place_of(const void *param) {
    for (uint32_t i = 0; i < seen.run->owner_count; i++) {
        const uint32_t row = seen.run->owner[i];
        const unsigned char *const first = (const unsigned char *)run_param(seen.run, row);
        const size_t width = dtype_carrier(seen.run->table.rows[row].dtype);
        const unsigned char *const at = (const unsigned char *)param;
        if (at >= first && at < first + seen.run->table.rows[row].count * width)
            return seen.run->packed[row] + (size_t)(at - first) / width;
    }
    fail_msg("a step writes to no parameter");
    return 0;
}

static enum status see_step(const struct optim_call *call) {
    for (uint32_t i = 0; i < call->tensor_count; i++) {
        const size_t first = place_of(call->tensors[i].param);
        for (size_t e = first; e < first + call->tensors[i].count; e++) {
            assert_true(e < PLACES_MAX);
            seen.rank_of[e] = (uint8_t)seen.calls;
            seen.steps[e]++;
        }
    }
    seen.calls++;
    return seen.real->step(call);
}

/* Joins add two accumulators into one of them. */
static void see_close(const struct op_call *call, const struct close_args *args) {
    const struct run *const run = seen.run;
    const int looks = seen.reduces && args->gradient == args->acc[0];
    for (uint32_t i = 0; i < run->owner_count && looks; i++) {
        const uint32_t row = run->owner[i];
        const unsigned char *const first = (const unsigned char *)run->accumulators[row][0];
        const unsigned char *const at = (const unsigned char *)args->gradient;
        if (at < first || at >= first + run->table.rows[row].count * run->layout.accumulator)
            continue;
        const size_t place = run->packed[row] + (size_t)(at - first) / run->layout.accumulator;
        for (size_t e = place; e < place + args->count; e++)
            seen.joined[e]++;
        seen.across += seen.owner[place] != seen.owner[place + args->count - 1];
        seen.joins++;
    }
    seen.real_ops->close(call, args);
}

static void see_phase(void *context, enum phase phase, int done) {
    (void)context;
    seen.reduces = phase == PHASE_REDUCE && !done;
}

static void look_on(struct run *run, const uint8_t *owner) {
    memset(&seen, 0, sizeof seen);
    seen.run = run;
    seen.owner = owner;
    run->options.at_phase = see_phase;
    seen.real = run->optimizer;
    seen.class_ = *run->optimizer;
    seen.class_.step = see_step;
    run->optimizer = &seen.class_;
    seen.real_ops = run->model.ops;
    seen.ops = *run->model.ops;
    seen.ops.close = see_close;
    run->model.ops = &seen.ops;
}

/* DeepSpeed: numbers of a group, in table order, filled up to a multiple of 2 P and cut. */
static void cut_flat(const struct run *run, uint32_t ranks, uint8_t *owner) {
    for (uint32_t group = 0; group < run->table.groups; group++) {
        size_t length = 0, at = 0;
        for (uint32_t i = 0; i < run->owner_count; i++)
            if (run->table.rows[run->owner[i]].group == group)
                length += run->table.rows[run->owner[i]].count;
        while (length % (2 * (size_t)ranks) != 0)
            length++;
        for (uint32_t i = 0; i < run->owner_count; i++) {
            const uint32_t row = run->owner[i];
            for (size_t e = 0;
                 run->table.rows[row].group == group && e < run->table.rows[row].count; e++)
                owner[run->packed[row] + e] = (uint8_t)(at++ / (length / ranks));
        }
    }
}

/* FSDP2: each tensor's rows in chunks of equally many, the last ones smaller. */
static void cut_rows(const struct run *run, uint32_t ranks, uint8_t *owner) {
    for (uint32_t i = 0; i < run->owner_count; i++) {
        const struct param_row *const row = &run->table.rows[run->owner[i]];
        size_t share = 1;
        while (share * ranks < row->shape[0])
            share++;
        const size_t width = row->count / row->shape[0];
        for (size_t e = 0; e < row->count; e++)
            owner[run->packed[run->owner[i]] + e] = (uint8_t)(e / width / share);
    }
}

static void verify_owners(void **state) {
    static const struct shape shape = {8, 3, 2};
    static uint8_t owner[PLACES_MAX];
    (void)state;
    for (int32_t stage = ZERO_SLOTS; stage <= ZERO_WEIGHTS; stage++) {
        struct config config;
        struct arena arena = ARENA_EMPTY;
        struct dataset dataset;
        struct run run;
        open_config("task: sft, optimizer: {decay: matrices, weight_decay: 0.1}, model: {family: "
                    "llama, layers: 1, hidden: 16, heads: 4, kv_heads: 2, mlp: 20, vocab: 19}",
                    8, &config, &arena, &dataset);
        open_run(&config, &dataset, &shape, stage, &run);
        assert_int_equal(run.table.groups, 2);
        (stage == ZERO_WEIGHTS ? cut_rows : cut_flat)(&run, (uint32_t)shape.ranks, owner);
        look_on(&run, owner);
        helper_step(&run);
        assert_int_equal(seen.calls, shape.ranks);
        for (size_t e = 0; e < run.table.elements; e++) {
            assert_int_equal(seen.steps[e], 1);
            assert_int_equal(seen.rank_of[e], owner[e]);
        }
        assert_true(seen.joined[0] > 0);
        for (size_t e = 0; e < run.table.elements; e++)
            assert_int_equal(seen.joined[e], seen.joined[0]);
        print_message("stage %d: %u joins, %u of them across parts\n", (int)stage,
                      (unsigned)seen.joins, (unsigned)seen.across);
        assert_true((seen.across == 0) == (stage != ZERO_SLOTS));
        run_close(&run);
        arena_close(&arena);
    }
}

/* ---- the rest ---- */

/* Between updates a run of one stage is a run of any other one: the state holds everything once. */
static void verify_state(void **state) {
    static const struct shape shape = {8, 3, 2};
    struct config config;
    struct arena arena = ARENA_EMPTY;
    struct dataset dataset;
    struct run run[2];
    unsigned char *bytes;
    (void)state;
    open_config(trainings[0].words, 8, &config, &arena, &dataset);
    open_run(&config, &dataset, &shape, ZERO_WEIGHTS, &run[0]);
    open_run(&config, &dataset, &shape, ZERO_NONE, &run[1]);
    assert_true(run_same_layout(&run[0], &run[1]));
    helper_step(&run[0]);
    assert_int_equal(arena_take(&arena, run_layout(&run[0])->bytes, 1, "state", &bytes), STATUS_OK);
    assert_int_equal(run_snapshot(&run[0], bytes), STATUS_OK);
    assert_int_equal(run_restore(&run[1], bytes), STATUS_OK);
    helper_step(&run[0]);
    helper_step(&run[1]);
    assert_memory_equal(&run_head(&run[0])->root, &run_head(&run[1])->root,
                        sizeof run_head(&run[0])->root);
    /* a state that is put back is gathered anew */
    assert_int_equal(run_restore(&run[0], bytes), STATUS_OK);
    helper_step(&run[0]);
    assert_memory_equal(&run_head(&run[0])->root, &run_head(&run[1])->root,
                        sizeof run_head(&run[0])->root);
    run_close(&run[0]);
    run_close(&run[1]);
    arena_close(&arena);
}

/* Ranks whose later micro-batches are never joined have gradients of their own. Where each holds
 * all, replicas part; where each owns a part, the weights are put together of what the owners
 * stepped: of each replica the part that its rank would own. Nothing is clipped, so that a rank
 * steps by its own gradient alone. */
static void verify_unjoined(void **state) {
    static const struct shape shape = {8, 3, 1};
    struct config config;
    struct arena arena = ARENA_EMPTY;
    struct dataset dataset;
    struct run replicas, parts;
    uint32_t apart = 0;
    (void)state;
    open_config(trainings[0].words, 9, &config, &arena, &dataset);
    config.parallel.sync = SYNC_FIRST;
    config.clip.max_norm = 0.0;
    open_run(&config, &dataset, &shape, ZERO_NONE, &replicas);
    open_run(&config, &dataset, &shape, ZERO_SLOTS, &parts);
    assert_true(replicas.replicas != NULL && parts.replicas == NULL);
    helper_step(&replicas);
    helper_step(&parts);
    for (uint32_t i = 0; i < parts.owner_count; i++) {
        const uint32_t row = parts.owner[i];
        const float *const got = (const float *)run_param(&parts, row);
        for (uint32_t rank = 0; rank < shape.ranks; rank++) {
            const struct partition_range own = zero_part(&parts, rank, i);
            const float *const held = (const float *)replicas_param(&replicas, rank, row);
            const float *const first = (const float *)replicas_param(&replicas, 0, row);
            for (uint64_t e = own.first; e < own.end; e++) {
                assert_true(got[e] == held[e]);
                apart += held[e] != first[e];
            }
        }
    }
    assert_true(apart > 0);
    for (uint32_t rank = 0; rank < shape.ranks; rank++)
        assert_true(parts.record.ranks[rank][RANK_FIRST_TENSOR] < 0);
    run_close(&replicas);
    run_close(&parts);
    arena_close(&arena);
}

/* An optimizer that looks at whole tensors has none to look at. */
static void validate_refusal(void **state) {
    static const struct {
        const char *text, *said;
    } cases[] = {
        {"{name: adafactor}", "case.yaml:3:37: error: parallel.zero: expected 0 with optimizer "
                              "adafactor, which looks at whole tensors: no rank would have one"},
        {"{name: adam}", NULL},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char text[256];
        struct arena arena = ARENA_EMPTY;
        const struct schema *schema;
        struct scenario *scenario;
        const int length =
            snprintf(text, sizeof text,
                     "twinstep: 1\narms: {a: {}, b: {}}\n"
                     "common: {parallel: {ranks: 2, zero: 1}, numerics: {shards: 2}, "
                     "optimizer: %s}\n",
                     cases[i].text);
        assert_int_equal(schema_with_classes(&arena, &schema), STATUS_OK);
        const enum status status =
            scenario_parse(&arena, schema, "case.yaml", text, (size_t)length, NULL, 0, &scenario);
        assert_int_equal(status, cases[i].said == NULL ? STATUS_OK : STATUS_INPUT);
        if (cases[i].said != NULL) assert_string_equal(status_text(), cases[i].said);
        arena_close(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_stages),   cmocka_unit_test(verify_norms),
        cmocka_unit_test(verify_owners),   cmocka_unit_test(verify_state),
        cmocka_unit_test(verify_unjoined), cmocka_unit_test(validate_refusal)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

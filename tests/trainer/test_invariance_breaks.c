/* SPDX-License-Identifier: Apache-2.0
 * labels: nightlyrepro
 * The proof that test_invariance.c could fail. Each break that the laws name is made here on
 * purpose, by driving the phases of a run by hand, and must show as gradients that differ between
 * shapes which must not matter: micro-batches of 1, 2, 4 and 8, separate and concatenated, padded
 * to the longest, +7 and +64. For each break it prints how many shapes differ from the first one,
 * and into how many groups of equal bits they fall. The same driver without a break must give one
 * group, with the run's own bits.
 *
 * Thread counts are left out, since no break is about threads. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/trainer/test_invariance.h"
#include "trainer/run_private.h"

enum break_kind {
    BREAK_NONE,
    BREAK_LAYOUT_ORDER,     /* rows in layout order (law 3) */
    BREAK_PASS_PER_FORWARD, /* one weight pass per forward call (law 3) */
    BREAK_FRESH_CHAIN,      /* a new chain per micro-batch, then added (law 3) */
    BREAK_ROUND_PER_MICRO,  /* accumulators rounded to bf16 storage after each (law 3) */
    BREAK_SHARED_USE,       /* one accumulator for both uses of a tied tensor (law 4) */
    BREAKS
};

static const struct {
    const char *name;
    int dpo_only, tied_only;
} breaks[BREAKS] = {
    {"no break", 0, 0},
    {"rows in layout order", 1, 0},
    {"one weight pass per forward call", 1, 0},
    {"fresh chain per micro-batch, then added", 0, 0},
    {"rounding per micro-batch, bf16 storage", 0, 0},
    {"one accumulator for tied uses", 0, 1},
};

enum { SHAPES = 24, TENSORS = 64 };

struct driver {
    struct run run;
    enum break_kind kind;
    void *total[TENSORS][2]; /* BREAK_FRESH_CHAIN: sums of finished chains, by row */
    struct arena arena;
};

static void order_by_layout(struct batch *batch) {
    memcpy(batch->canonical_row, batch->token_row, batch->token_count * sizeof(uint32_t));
    memcpy(batch->canonical_id, batch->token_id, batch->token_count * sizeof(uint32_t));
    for (uint32_t i = 0; i < batch->label_count; i++)
        batch->canonical_label[i] = i;
}

/* Returns the batch as its call `c` alone; its lists lie within those of the call order. */
static struct batch one_call(const struct batch *batch, uint32_t c, uint32_t *labels) {
    struct batch part = *batch;
    const struct batch_call *call = &batch->calls[c];
    part.calls[0] = *call;
    part.call_count = 1;
    part.canonical_row = batch->token_row + call->first_token;
    part.canonical_id = batch->token_id + call->first_token;
    part.token_count = call->token_count;
    for (uint32_t i = 0; i < call->label_count; i++)
        labels[i] = call->first_label + i;
    part.canonical_label = labels;
    part.label_count = call->label_count;
    return part;
}

static void backward(struct run *run, const struct batch *batch) {
    struct model_weights weights = {run->weights};
    struct model_gradients gradients = {run->accumulators, NULL, 0};
    model_backward(&run->model, &weights, batch, run->coefficient, &gradients);
    run_head(run)->pending = 1;
}

static void backward_per_call(struct driver *driver) {
    struct run *run = &driver->run;
    if (run->batch.call_count == 1) {
        backward(run, &run->batch);
        return;
    }
    for (uint32_t c = 0; c < run->batch.call_count; c++) {
        uint32_t labels[4096];
        assert_true(run->batch.calls[c].label_count <= COUNT_OF(labels));
        struct batch part = one_call(&run->batch, c, labels);
        backward(run, &part);
    }
}

/* Adds the accumulator to `total` and clears it, which is what a framework does that adds finished
 * .grads. Accumulation is f32. */
static void fold_chains(struct driver *driver) {
    struct run *run = &driver->run;
    for (uint32_t i = 0; i < run->owner_count; i++) {
        const struct param_row *row = &run->table.rows[run->owner[i]];
        for (uint32_t use = 0; use < row->uses; use++) {
            float *total = (float *)driver->total[run->owner[i]][use];
            float *fresh = (float *)run->accumulators[run->owner[i]][use];
            for (size_t j = 0; j < row->count; j++) {
                total[j] += fresh[j];
                fresh[j] = 0.0f;
            }
        }
    }
}

static void unfold_chains(struct driver *driver) {
    struct run *run = &driver->run;
    for (uint32_t i = 0; i < run->owner_count; i++) {
        const struct param_row *row = &run->table.rows[run->owner[i]];
        for (uint32_t use = 0; use < row->uses; use++)
            memcpy(run->accumulators[run->owner[i]][use], driver->total[run->owner[i]][use],
                   row->count * sizeof(float));
    }
}

static void open_totals(struct driver *driver) {
    struct run *run = &driver->run;
    assert_true(run->table.count <= TENSORS);
    for (uint32_t i = 0; i < run->owner_count; i++) {
        const struct param_row *row = &run->table.rows[run->owner[i]];
        for (uint32_t use = 0; use < row->uses; use++)
            assert_int_equal(arena_take(&driver->arena, row->count, sizeof(float), "test",
                                        &driver->total[run->owner[i]][use]),
                             STATUS_OK);
    }
}

static void break_backward(struct driver *driver) {
    struct run *run = &driver->run;
    switch (driver->kind) {
    case BREAK_LAYOUT_ORDER:
        order_by_layout(&run->batch);
        backward(run, &run->batch);
        break;
    case BREAK_PASS_PER_FORWARD:
        backward_per_call(driver);
        break;
    case BREAK_FRESH_CHAIN:
        backward(run, &run->batch);
        fold_chains(driver);
        break;
    case BREAK_ROUND_PER_MICRO: /* numerics.grad_accumulate: the product's own variant */
        assert_int_equal(phase_run(run, PHASE_BACKWARD), STATUS_OK);
        break;
    default:
        backward(run, &run->batch);
    }
}

/* Lets use 2 work on the accumulator of use 1; its own stays +0, which changes no sum. */
static void share_uses(struct run *run) {
    for (uint32_t i = 0; i < run->owner_count; i++)
        if (run->table.rows[run->owner[i]].uses == 2)
            run->accumulators[run->owner[i]][1] = run->accumulators[run->owner[i]][0];
}

static void unshare_uses(struct run *run) {
    for (uint32_t i = 0; i < run->owner_count; i++) {
        uint32_t row = run->owner[i];
        if (run->table.rows[row].uses == 2)
            run->accumulators[row][1] = run_at(run, run->layout.tensor[row].accumulator[1]);
    }
}

/* Computes the gradients of update 1 with the break. */
static void broken_gradients(struct driver *driver, struct digest *out) {
    struct run *run = &driver->run;
    struct digest_stream stream;
    assert_int_equal(sampler_plan_update(&run->sampler, run_head(run)->sampler, &run->plan),
                     STATUS_OK);
    measure_begin(run);
    if (driver->kind == BREAK_FRESH_CHAIN) open_totals(driver);
    if (driver->kind == BREAK_SHARED_USE) share_uses(run);
    for (run->micro = 0; run->micro < run->plan.micros;) {
        assert_int_equal(phase_run(run, PHASE_FETCH), STATUS_OK);
        assert_int_equal(phase_run(run, PHASE_FORWARD), STATUS_OK);
        break_backward(driver);
    }
    if (driver->kind == BREAK_FRESH_CHAIN) unfold_chains(driver);
    if (driver->kind == BREAK_SHARED_USE) unshare_uses(run);
    assert_int_equal(phase_close_gradient(run), STATUS_OK);
    digest_stream_init(&stream, "gradients");
    for (uint32_t i = 0; i < run->shape.tensors; i++)
        digest_stream_add(&stream, &run->gradient_digest[i]);
    digest_stream_close(&stream, out);
}

static void shape_gradients(const struct family *family, enum break_kind kind, uint32_t number,
                            struct digest *out) {
    static struct driver driver;
    struct config config = family->config;
    struct shape shape = shape_of(number, ISA_AUTO);
    struct run_options options = {.tensors = 1, .poison = 1, .steps = 1};
    shape_apply(&shape, &config);
    if (kind == BREAK_ROUND_PER_MICRO) {
        config.numerics.gradient = DTYPE_BF16;
        config.numerics.grad_accumulate = GRAD_ACCUMULATE_STORAGE;
    }
    driver.kind = kind;
    driver.arena = (struct arena)ARENA_EMPTY;
    helper_run_open(&config, &family->dataset, &options, &driver.run);
    broken_gradients(&driver, out);
    run_close(&driver.run);
    arena_close(&driver.arena);
}

/* Computes the gradients of update 1 as run_step leaves them. */
static void own_gradients(const struct family *family, struct digest *out) {
    struct config config = family->config;
    struct shape shape = shape_of(0, ISA_AUTO);
    struct run_options options = {.tensors = 1, .poison = 1, .steps = 1};
    struct run run;
    struct digest_stream stream;
    shape_apply(&shape, &config);
    helper_run_open(&config, &family->dataset, &options, &run);
    const struct record *record = helper_step(&run);
    digest_stream_init(&stream, "gradients");
    for (uint32_t i = 0; i < run.shape.tensors; i++) {
        struct digest item;
        memcpy(item.byte, record->tensor_digests[i][TENSOR_DIGEST_GRADIENT], DIGEST_BYTES);
        digest_stream_add(&stream, &item);
    }
    digest_stream_close(&stream, out);
    run_close(&run);
}

struct tally {
    uint32_t shapes, differing, groups;
};

/* Tallies 24 shapes; SFT has only one layout, and therefore 12. */
static struct tally tally_break(const struct family *family, enum break_kind kind,
                                struct digest *out_first) {
    struct digest seen[SHAPES];
    struct tally tally = {0, 0, 0};
    for (uint32_t number = 0; number < SHAPES; number++) {
        if (family->config.task == TASK_SFT && number & 4) continue;
        struct digest *now = &seen[tally.shapes];
        uint32_t like = 0;
        shape_gradients(family, kind, number, now);
        tally.shapes++;
        tally.differing += digest_compare(now, &seen[0]) != 0;
        while (digest_compare(now, &seen[like]) != 0)
            like++;
        tally.groups += like + 1 == tally.shapes;
    }
    *out_first = seen[0];
    return tally;
}

static void check_family(uint32_t number) {
    struct family family;
    family_open(number, &family);
    for (int kind = 0; kind < BREAKS; kind++) {
        if (breaks[kind].dpo_only && family.config.task != TASK_DPO) continue;
        if (breaks[kind].tied_only && !family.config.model.tied) continue;
        struct digest first;
        struct tally tally = tally_break(&family, (enum break_kind)kind, &first);
        print_message("%-20s %-40s %2u of %2u shapes differ, %2u groups\n", family.key,
                      breaks[kind].name, tally.differing, tally.shapes, tally.groups);
        if (kind != BREAK_NONE) {
            assert_true(tally.differing > 0);
            continue;
        }
        struct digest own;
        own_gradients(&family, &own);
        assert_int_equal(tally.differing, 0);
        assert_int_equal(digest_compare(&own, &first), 0);
    }
    family_close(&family);
}

/* The model is a tied OLMo-2, trained with DPO and SFT, in f32 and bf16. */
static void verify_breaks_are_seen(void **state) {
    (void)state;
    static const uint32_t families[] = {2, 3, 10, 11};
    for (size_t i = 0; i < COUNT_OF(families); i++)
        check_family(families[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(verify_breaks_are_seen)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

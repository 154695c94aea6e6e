/* SPDX-License-Identifier: Apache-2.0
 * labels: repro unit memory threads
 * Dropout in a training: masks by address must not change with split, layout, padding or threads.
 * Three mistakes that frameworks make must do what is said of them: masks that depend on the GPU, a
 * recomputation that draws anew, and the same masks on all ranks. And the generator's offset must
 * be part of the state. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/determinism/helper_ledger.h"
#include "tests/trainer/helper_train.h"
#include "trainer/run_private.h"

#define COMMON "data: {max_len: 16}, optimizer: {lr: 1e-2}, " MODEL
#define MODEL                                                                                      \
    "init: {std: 0.3}, "                                                                           \
    "model: {layers: 2, hidden: 16, heads: 4, kv_heads: 2, mlp: 20, vocab: 19}, "
#define DROPS "dropout: {embedding: 0.1, attention: 0.2, residual: 0.3}"

enum { UPDATES = 3 };

struct outcome {
    struct digest params;
    double loss[UPDATES];
    uint64_t words, offset;
};

static void params_digest(const struct run *run, struct digest *out) {
    struct digest parts[64];
    assert_true(run->owner_count <= COUNT_OF(parts));
    for (uint32_t i = 0; i < run->owner_count; i++) {
        const struct param_row *row = &run->table.rows[run->owner[i]];
        digest_bytes("p", run_param(run, run->owner[i]), row->count * dtype_carrier(row->dtype),
                     &parts[i]);
    }
    digest_root("params", parts, run->owner_count, out);
}

static struct outcome train_with(enum task task, const char *common, const char *words) {
    struct arena arena = ARENA_EMPTY;
    struct config config;
    struct dataset dataset;
    struct run run;
    struct outcome out = {.words = 0};
    helper_config(UPDATES, &config, "task: %s, %s%s", task == TASK_SFT ? "sft" : "dpo", common,
                  words);
    helper_ids_open(&config, 7, 32, 16, &arena, &dataset);
    helper_run_open(&config, &dataset, &(struct run_options){.steps = UPDATES, .poison = 1}, &run);
    for (size_t k = 0; k < UPDATES; k++) {
        out.loss[k] = helper_step(&run)->reals[REAL_LOSS];
        out.words += helper_ledger_total(&run.ledger, STREAM_DROPOUT);
    }
    out.offset = run_head(&run)->rng_offset;
    params_digest(&run, &out.params);
    run_close(&run);
    arena_close(&arena);
    return out;
}

static struct outcome train(enum task task, const char *words) {
    return train_with(task, COMMON, words);
}

static int same(const struct outcome *a, const struct outcome *b) {
    return memcmp(&a->params, &b->params, sizeof a->params) == 0 &&
           memcmp(a->loss, b->loss, sizeof a->loss) == 0;
}

static void verify_addressed_invariance(void **state) {
    (void)state;
    static const char *const shapes[] = {
        "batch: {size: 8, micro: 8}, " DROPS,
        "batch: {size: 8, micro: 1}, " DROPS,
        "batch: {size: 8, micro: 4, pad: 5}, " DROPS,
        "batch: {size: 8, micro: 2, padding: packed}, numerics: {threads: 3}, " DROPS,
        "batch: {size: 8, micro: 4, layout: concatenated}, numerics: {isa: base}, " DROPS,
    };
    for (int task = TASK_SFT; task <= TASK_DPO; task++) {
        const struct outcome first = train((enum task)task, shapes[0]);
        assert_true(first.words > 0 && first.offset == 0);
        for (size_t i = 1; i < COUNT_OF(shapes); i++) {
            if (task == TASK_SFT && strstr(shapes[i], "layout") != NULL) continue;
            const struct outcome other = train((enum task)task, shapes[i]);
            if (!same(&first, &other)) fail_msg("task %d, %s", task, shapes[i]);
            assert_true(other.words == first.words);
        }
    }
}

static void verify_rates_and_seeds(void **state) {
    (void)state;
    const struct outcome none = train(TASK_SFT, "batch: {size: 8}");
    const struct outcome zero = train(TASK_SFT, "batch: {size: 8}, dropout: {attention: 0}");
    const struct outcome some = train(TASK_SFT, "batch: {size: 8}, dropout: {residual: 0.1}");
    const struct outcome seed =
        train(TASK_SFT, "batch: {size: 8}, dropout: {residual: 0.1, seed: 99}");
    assert_true(same(&none, &zero) && none.words == 0);
    assert_true(!same(&none, &some) && !same(&some, &seed));
}

/* Every update has all 32 samples and an LR of 0, so that only masks can change the loss from one
 * update to the next; and they must. */
static void verify_updates_draw_anew(void **state) {
    (void)state;
    static const char still[] =
        MODEL "data: {shuffle: false, max_len: 16}, optimizer: {lr: 0}, batch: {size: 32}";
    const struct outcome none = train_with(TASK_SFT, still, "");
    const struct outcome some = train_with(TASK_SFT, still, ", dropout: {attention: 0.3}");
    assert_true(none.loss[0] == none.loss[1] && none.loss[1] == none.loss[2]);
    assert_true(some.loss[0] != some.loss[1] && some.loss[1] != some.loss[2]);
}

/* A recomputation that draws anew leaves the forward as it is, but makes the gradient that of
 * another forward. */
static void verify_redrawn_recomputation(void **state) {
    (void)state;
    const struct outcome kept = train(TASK_DPO, "batch: {size: 8, micro: 4}, dropout: {residual: "
                                                "0.3}");
    const struct outcome drawn = train(TASK_DPO, "batch: {size: 8, micro: 4}, dropout: {residual: "
                                                 "0.3, recompute: redraw}");
    assert_true(kept.loss[0] == drawn.loss[0]);
    assert_true(kept.loss[1] != drawn.loss[1]);
    assert_true(drawn.words == 2 * kept.words);
    /* without dropout there is nothing to redraw */
    const struct outcome plain = train(TASK_DPO, "batch: {size: 8, micro: 4}");
    const struct outcome redraw =
        train(TASK_DPO, "batch: {size: 8, micro: 4}, dropout: {recompute: redraw}");
    assert_true(same(&plain, &redraw));
}

/* With the same masks on all ranks, the ranks' samples are dropped alike, and the training is
 * another one. */
static void verify_masks_of_ranks(void **state) {
    (void)state;
    const struct outcome one = train(TASK_SFT, "batch: {size: 8}, " DROPS);
    const struct outcome own = train(
        TASK_SFT,
        "batch: {size: 8}, dropout: {embedding: 0.1, attention: 0.2, residual: 0.3, ranks: 4}");
    const struct outcome shared =
        train(TASK_SFT, "batch: {size: 8}, dropout: {embedding: 0.1, attention: 0.2, "
                        "residual: 0.3, ranks: 4, masks: same}");
    assert_true(!same(&one, &own) && !same(&own, &shared) && !same(&one, &shared));
}

/* As long as every tensor fits the smaller GPU's threads, two GPUs agree on the masks; beyond that
 * they do not. */
static void verify_other_gpu(void **state) {
    (void)state;
#define TORCH(gpu) "batch: {size: 4, micro: 2}, rng: {kind: torch, " gpu "}, " DROPS
    const struct outcome a100 = train(TASK_SFT, TORCH("sms: 108"));
    const struct outcome h100 = train(TASK_SFT, TORCH("sms: 132"));
    const struct outcome tiny = train(TASK_SFT, TORCH("sms: 1, threads_per_sm: 256"));
    assert_true(same(&a100, &h100));
    assert_true(!same(&a100, &tiny));
    assert_true(a100.offset > 0 && tiny.offset > a100.offset);
    /* the masks belong to places: another split is another training */
    const struct outcome whole =
        train(TASK_SFT, "batch: {size: 4, micro: 4}, rng: {kind: torch}, " DROPS);
    assert_true(!same(&a100, &whole));
}

/* A run restored to update 1 must continue as it did before, the generator included. */
static void verify_state_law(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct config config;
    struct dataset dataset;
    struct run run;
    unsigned char *kept;
    struct digest first, second;
    helper_config(UPDATES, &config,
                  "task: dpo, " COMMON "batch: {size: 4, micro: 2}, rng: {kind: torch}, "
                  "dropout: {attention: 0.2, residual: 0.3, recompute: redraw}");
    helper_ids_open(&config, 7, 32, 16, &arena, &dataset);
    helper_run_open(&config, &dataset, &(struct run_options){.steps = UPDATES}, &run);
    assert_int_equal(arena_take(&arena, run.layout.bytes, 1, "test", &kept), STATUS_OK);
    helper_step(&run);
    assert_int_equal(run_snapshot(&run, kept), STATUS_OK);
    helper_step(&run);
    memcpy(first.byte, helper_step(&run)->digests[DIGEST_ROOT], DIGEST_BYTES);
    assert_int_equal(run_restore(&run, kept), STATUS_OK);
    helper_step(&run);
    memcpy(second.byte, helper_step(&run)->digests[DIGEST_ROOT], DIGEST_BYTES);
    assert_memory_equal(first.byte, second.byte, DIGEST_BYTES);
    assert_int_equal(run_restore(&run, kept), STATUS_OK);
    run_head(&run)->rng_offset += 4;
    helper_step(&run);
    memcpy(second.byte, helper_step(&run)->digests[DIGEST_ROOT], DIGEST_BYTES);
    assert_memory_not_equal(first.byte, second.byte, DIGEST_BYTES);
    run_close(&run);
    arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_addressed_invariance),
        cmocka_unit_test(verify_rates_and_seeds),
        cmocka_unit_test(verify_updates_draw_anew),
        cmocka_unit_test(verify_redrawn_recomputation),
        cmocka_unit_test(verify_masks_of_ranks),
        cmocka_unit_test(verify_other_gpu),
        cmocka_unit_test(verify_state_law),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

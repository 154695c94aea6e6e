/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * For how long two configurations are one training. For every kind of difference that begins later,
 * two runs trained from step 0 must be equal, state by state, through the updates that are called
 * inert, and must differ after the next one. A run that continues from the other's state there must
 * have the roots that it has from step 0, and one that continues an update later must not. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "experiment/inert_updates.h"
#include "tests/trainer/helper_train.h"

#define STEPS 9
#define SAMPLES 18 /* in batches of 4: four full ones and a rest of 2 */

#define SMALL                                                                                      \
    "batch: {size: 4, micro: 2%s}, model: {layers: 1, hidden: 16, heads: 2, mlp: 20, vocab: 31}, " \
    "init: {std: 0.1}, "

/* `silent` updates are inert; with `late` the states differ after update silent + 1. */
struct pair_case {
    const char *name;
    const char *tail[2]; /* of batch */
    const char *both, *words[2];
    uint64_t silent;
    int late;
};

#define WARM "optimizer: {lr: 1e-2}, schedule: {warmup: 3, total: "
#define DROP "optimizer: {lr: 1e-2}, dropout: {residual: 0.1}, "
#define BF16 "optimizer: {lr: 1e-2}, numerics: {param: bf16, rounding: stochastic}, "
#define ADAM "optimizer: {lr: 1e-2}, "
#define FP16 ADAM "scaler: {kind: dynamic, init_scale: 4, growth_interval: "
#define SKIP ADAM "loop: {skip: olmo-outlier, skip_window: 8, "

static const struct pair_case cases[] = {
    {"schedule.total", {"", ""}, "", {WARM "20}", WARM "30}"}, 3, 1},
    {"schedule.logged",
     {"", ""},
     ADAM,
     {"schedule: {logged_shift: 1, logged: recomputed}", ""},
     STEPS,
     0},
    {"schedule.shift of a constant",
     {"", ""},
     ADAM,
     {"schedule: {name: constant, shift: 1}", "schedule: {name: constant}"},
     STEPS,
     0},
    {"schedule.shift",
     {"", ""},
     ADAM,
     {"schedule: {name: linear, total: 20, shift: 1}", "schedule: {name: linear, total: 20}"},
     0,
     1},
    /* Counter 4 becomes 8, whose rates differ, although those of 1 to 5 do not. */
    {"schedule.min_lr behind a doubled counter",
     {"", ""},
     ADAM "resume: {after: 4, wrong: [counter-doubled]}, schedule: {name: veomni.linear, total: 12",
     {", min_lr: 5e-3}", "}"},
     4,
     1},
    /* The LR of update 4 becomes the peak, with which the floor comes sooner. */
    {"schedule.min_lr behind another peak",
     {"", ""},
     ADAM
     "resume: {after: 4, wrong: [peak-overwritten]}, schedule: {name: veomni.linear, total: 12",
     {", min_lr: 4e-3}", "}"},
     4,
     0},
    {"schedule.start", {"", ""}, WARM "20", {", start: zero}", ", start: base}"}, 0, 1},
    {"schedule.start that is f0", {"", ""}, WARM "20", {", start: zero}", "}"}, STEPS, 0},
    {"resume.after",
     {"", ""},
     ADAM,
     {"resume: {after: 4, restores: [schedule, data, rng, scaler]}", ""},
     4,
     1},
    {"resume.after the first",
     {"", ""},
     ADAM,
     {"resume: {after: 1, restores: [schedule, data, rng, scaler]}", ""},
     1,
     1},
    {"resume.after of both",
     {"", ""},
     ADAM,
     {"resume: {after: 6, restores: []}", "resume: {after: 5, restores: []}"},
     5,
     1},
    {"resume.restores",
     {"", ""},
     ADAM,
     {"resume: {after: 3, restores: [schedule, optimizer, data, rng]}",
      "resume: {after: 3, restores: [schedule, data, rng]}"},
     3,
     1},
    {"rng.data", {"", ""}, ADAM, {"rng: {data: advance 1 at 5}", ""}, 4, 1},
    {"rng.data, a common event",
     {"", ""},
     ADAM,
     {"rng: {data: \"advance 1 at 2, advance 1 at 7\"}", "rng: {data: advance 1 at 2}"},
     6,
     1},
    {"rng.data, other numbers",
     {"", ""},
     ADAM,
     {"rng: {data: advance 1 at 3}", "rng: {data: advance 2 at 3}"},
     2,
     1},
    {"rng.dropout", {"", ""}, DROP, {"rng: {dropout: seed 5 at 6}", ""}, 5, 1},
    {"rng.dropout, a slot",
     {"", ""},
     DROP,
     {"rng: {dropout: \"save a at 2, load a at 4\"}", "rng: {dropout: save b at 2}"},
     3,
     1},
    {"rng.dropout, another slot",
     {"", ""},
     DROP "rng: {dropout: \"save a at 2, advance 1 at 3, save b at 3, load ",
     {"a at 5\"}", "b at 5\"}"},
     4,
     1},
    {"rng.rounding", {"", ""}, BF16, {"rng: {rounding: advance 3 at 2}", ""}, 1, 1},
    {"rng.order",
     {"", ""},
     ADAM "numerics: {mode: shuffled, order_seed: 4}, shuffle: {chunk: 2}, ",
     {"rng: {order: seed 5 at 4}", ""},
     3,
     1},
    {"fault", {"", ""}, ADAM, {"fault: {update: 4, op: norm, bit: 30}", ""}, 3, 1},
    {"fault, other updates",
     {"", ""},
     ADAM,
     {"fault: {update: 4, op: norm, bit: 30}", "fault: {update: 3, op: norm, bit: 30}"},
     2,
     1},
    {"loop.eval_every",
     {"", ""},
     ADAM,
     {"loop: {eval: [schedule], eval_every: 4}", "loop: {eval: [schedule], eval_every: 6}"},
     3,
     0},
    {"loop.eval", {"", ""}, ADAM "loop: {eval_every: 4, eval: ", {"[count]}", "[]}"}, 3, 1},
    {"loop.epoch", {"", ""}, ADAM, {"loop: {epoch: [count]}", ""}, 3, 1},
    {"loop.epoch after a jump",
     {"", ""},
     ADAM "rng: {data: advance 1 at 3}, ",
     {"loop: {epoch: [count]}", ""},
     2,
     1},
    {"loop.epoch, the place restarts",
     {"", ""},
     ADAM "resume: {after: 2, restores: [optimizer, schedule, rng]}, ",
     {"loop: {epoch: [count]}", ""},
     2,
     0},
    {"batch.tail", {"", ", tail: keep"}, ADAM, {"", ""}, 3, 1},
    {"batch.tail leak", {", tail: leak", ""}, ADAM, {"", ""}, 3, 0},
    {"loop.skip_sigma", {"", ""}, "", {SKIP "skip_sigma: 6}", SKIP "skip_sigma: 0.01}"}, 3, 1},
    {"loop.on_skip",
     {"", ""},
     "",
     {SKIP "skip_sigma: 0.01}", SKIP "skip_sigma: 0.01, on_skip: [log, count, schedule, zero]}"},
     3,
     1},
    {"scaler.growth_interval", {"", ""}, "", {FP16 "3}", FP16 "5}"}, 2, 1},
    {"scaler.growth_factor", {"", ""}, "", {FP16 "4}", FP16 "4, growth_factor: 4}"}, 3, 1},
    {"two kinds",
     {"", ""},
     "",
     {WARM "20}, resume: {after: 6, restores: []}", WARM "30}, rng: {data: advance 1 at 6}"},
     3,
     1},
    {"two kinds, the other first",
     {"", ""},
     "",
     {WARM "20}, resume: {after: 2, restores: []}", WARM "30}, rng: {data: advance 1 at 6}"},
     2,
     1},
    /* These differences may all act in the first update. */
    {"clip.max_norm", {"", ""}, ADAM, {"clip: {max_norm: 0.01}", ""}, 0, 1},
    {"clip beside a restart",
     {"", ""},
     ADAM,
     {"clip: {max_norm: 0.01}, resume: {after: 3, restores: []}", ""},
     0,
     1},
    {"scaler.backoff_factor", {"", ""}, "", {FP16 "3}", FP16 "3, backoff_factor: 0.25}"}, 0, 0},
    {"loop.skip_window",
     {"", ""},
     "",
     {SKIP "skip_sigma: 6}", ADAM "loop: {skip: olmo-outlier, skip_window: 9, skip_sigma: 6}"},
     0,
     0},
    {"loop.update",
     {"", ""},
     ADAM,
     {"loop: {update: [clip, optimize, log, schedule, count, zero]}", ""},
     0,
     0},
    {"schedule.start min", {"", ""}, WARM "20", {", start: min}", "}"}, 0, 0},
    {"a counter that runs elsewhere",
     {"", ""},
     "loop: {epoch: [count]}, ",
     {WARM "20}", WARM "30}"},
     0,
     0},
    {"a counter that runs twice",
     {"", ""},
     "loop: {update: [clip, optimize, log, count, count, schedule, zero]}, ",
     {WARM "20}", WARM "30}"},
     0,
     0},
};

struct twins {
    struct arena arena;
    struct dataset data;
    struct config config[2];
    uint64_t silent;
};

static void twins_open(const struct pair_case *c, struct twins *twins) {
    memset(twins, 0, sizeof *twins);
    for (int i = 0; i < 2; i++) {
        char text[1024];
        snprintf(text, sizeof text, "task: sft, " SMALL "%s%s", c->tail[i], c->both, c->words[i]);
        helper_config(STEPS, &twins->config[i], "%s", text);
    }
    helper_ids_open(&twins->config[0], 3, SAMPLES, 12, &twins->arena, &twins->data);
    if (inert_updates(&twins->config[0], &twins->config[1], STEPS, SAMPLES, &twins->silent) !=
        STATUS_OK)
        fail_msg("%s: %s", c->name, status_text());
}

static void twins_run(const struct twins *twins, int which, struct run *out) {
    helper_run_open(&twins->config[which], &twins->data,
                    &(struct run_options){.steps = STEPS,
                                          .order_seed = twins->config[which].numerics.order_seed},
                    out);
}

static int equal_states(const struct run *a, const struct run *b) {
    return a->layout.bytes == b->layout.bytes &&
           memcmp(run_state_host(a), run_state_host(b), a->layout.bytes) == 0;
}

/* Trains both from step 0 and returns the first update after which they differ; STEPS + 1: none. */
static uint64_t first_apart(const struct twins *twins, unsigned char roots[STEPS][DIGEST_BYTES]) {
    struct run runs[2];
    uint64_t apart = STEPS + 1;
    for (int i = 0; i < 2; i++)
        twins_run(twins, i, &runs[i]);
    if (!equal_states(&runs[0], &runs[1])) apart = 0;
    for (uint64_t k = 1; k <= STEPS; k++) {
        (void)helper_step(&runs[0]);
        memcpy(roots[k - 1], helper_step(&runs[1])->digests[DIGEST_ROOT], DIGEST_BYTES);
        if (apart > STEPS && !equal_states(&runs[0], &runs[1])) apart = k;
    }
    for (int i = 0; i < 2; i++)
        run_close(&runs[i]);
    return apart;
}

/* Tells whether the second run, continuing from the first one's state after `from` updates, has
 * these roots. */
static int goes_on(const struct twins *twins, uint64_t from,
                   unsigned char roots[STEPS][DIGEST_BYTES]) {
    struct run runs[2];
    int equal = 1;
    for (int i = 0; i < 2; i++)
        twins_run(twins, i, &runs[i]);
    for (uint64_t k = 1; k <= from; k++)
        (void)helper_step(&runs[0]);
    if (from > 0) assert_int_equal(run_restore(&runs[1], run_state_host(&runs[0])), STATUS_OK);
    for (uint64_t k = from + 1; k <= STEPS; k++)
        if (memcmp(roots[k - 1], helper_step(&runs[1])->digests[DIGEST_ROOT], DIGEST_BYTES) != 0)
            equal = 0;
    for (int i = 0; i < 2; i++)
        run_close(&runs[i]);
    return equal;
}

static void corroborate_training(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct pair_case *c = &cases[i];
        struct twins twins;
        unsigned char roots[STEPS][DIGEST_BYTES];
        twins_open(c, &twins);
        const uint64_t apart = first_apart(&twins, roots);
        print_message("%-32s silent %llu, apart after %llu\n", c->name,
                      (unsigned long long)twins.silent, (unsigned long long)apart);
        assert_int_equal(twins.silent, c->silent);
        assert_true(c->silent == 0 || apart > c->silent);
        if (c->late) assert_true(apart <= c->silent + 1);
        if (c->silent > 0) assert_true(goes_on(&twins, c->silent, roots));
        if (c->late && c->silent > 0) assert_false(goes_on(&twins, c->silent + 1, roots));
        arena_close(&twins.arena);
    }
}

/* Where nothing differs, all updates are certain: exactly as many as are asked for, whichever run
 * comes first. */
static void verify_bounds(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct twins twins;
        uint64_t silent;
        twins_open(&cases[i], &twins);
        assert_int_equal(inert_updates(&twins.config[0], &twins.config[0], 7, SAMPLES, &silent),
                         STATUS_OK);
        assert_int_equal(silent, 7);
        assert_int_equal(inert_updates(&twins.config[1], &twins.config[0], STEPS, SAMPLES, &silent),
                         STATUS_OK);
        assert_int_equal(silent, twins.silent);
        assert_int_equal(inert_updates(&twins.config[0], &twins.config[1], 2, SAMPLES, &silent),
                         STATUS_OK);
        assert_int_equal(silent, twins.silent < 2 ? twins.silent : 2);
        arena_close(&twins.arena);
    }
}

/* Two tensor-parallel ranks with samples of their own use up an epoch in half as many updates: of
 * 18 samples two updates of 8, so what an epoch's end does is certain to come later than update 1.
 */
static void verify_epoch_of_fed_ranks(void **state) {
    static const char *const words[] = {"", "loop: {epoch: [count]}, "};
    struct config config[2];
    uint64_t silent;
    (void)state;
    for (int i = 0; i < 2; i++)
        helper_config(STEPS, &config[i],
                      "task: sft, batch: {size: 4, micro: 2}, model: {family: llama, kv_heads: 2, "
                      "tied: false}, %snumerics: {cuts: 2}, parallel: {tensor: 2, feeds: "
                      "own-on-tensor}",
                      words[i]);
    assert_int_equal(inert_updates(&config[0], &config[1], STEPS, SAMPLES, &silent), STATUS_OK);
    assert_int_equal(silent, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_training),
        cmocka_unit_test(verify_bounds),
        cmocka_unit_test(verify_epoch_of_fed_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

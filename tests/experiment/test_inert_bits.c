/* SPDX-License-Identifier: Apache-2.0
 * labels: unit
 * The table of inert keys (scenarios/inert.c) against the trainer itself: a value that gets past
 * resolution into an inert key must change no bit; where the key is read, the same value must. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "scenarios/inert.h"
#include "scenarios/row_value.h"
#include "scenarios/selection.h"
#include "tests/trainer/helper_train.h"

#define UPDATES 2
#define COMMON                                                                                     \
    "model: {layers: 1, hidden: 16, heads: 2, mlp: 24}, batch: {size: 8, micro: 4}, init: {std: "  \
    "0.3}, optimizer: {lr: 1e-2}"

static const struct {
    const char *key, *value, *silent, *loud; /* loud NULL: by law, its reader changes no bits */
} cases[] = {
    {"data.pairs", "nowhere.jsonl", "task: sft", NULL},
    {"data.text", "nowhere.jsonl", "task: dpo", NULL},
    {"data.seed", "5", "task: sft, data: {shuffle: false}", "task: sft"},
    {"data.seed", "5", "task: sft, data: {shuffle: false}", "task: dpo, data: {shuffle: false}"},
    {"batch.layout", "concatenated", "task: sft, numerics: {mode: shuffled}", NULL},
    {"dpo.beta", "0.7", "task: sft", "task: dpo"},
    {"dpo.label_smoothing", "0.2", "task: dpo", "dpo: {loss: cdpo}"},
    {"dpo.gamma_beta_ratio", "0.7", "task: dpo", "dpo: {loss: simpo}"},
    {"dpo.discopop_tau", "0.7", "task: dpo", "dpo: {loss: discopop}"},
    {"dpo.f_alpha", "0.7", "task: dpo", "dpo: {f_divergence: alpha}"},
    {"dpo.f_divergence", "js", "task: sft", "task: dpo"},
    {"dpo.reference", "live", "dpo: {loss: simpo}", NULL},
    {"dpo.reference_compute", "bf16", "dpo: {loss: simpo}", "task: dpo"},
    {"dpo.reference", "live", "task: sft", NULL},
    {"dpo.reference_batch", "1", "task: sft", NULL},
    {"dpo.reference_batch", "1", "dpo: {reference: live}, numerics: {mode: shuffled}", NULL},
    {"dpo.reference_compute", "bf16", "task: sft", "task: dpo"},
    {"dpo.reference_layout", "concatenated", "task: sft", NULL},
    {"clip.max_norm", "0.001", "loop: {update: [optimize, log, count, schedule, zero]}",
     "task: dpo"},
    {"clip.max_norm", "0.001",
     "loop: {update: [optimize, log, count, schedule, zero], epoch: [zero], eval: [clip]}",
     "loop: {update: [optimize, log, count, schedule], eval: [clip], eval_every: 1}"},
    {"schedule.processes", "2", "schedule: {total: 9}", NULL}, /* read while resolving */
    {"schedule.rescaled", "total", "schedule: {total: 9}", NULL},
    {"schedule.updates_per_epoch", "3", "schedule: {total: 9}", NULL},
    {"schedule.warmup_rounding", "floor", "schedule: {total: 9, warmup: 3}", NULL},
    {"schedule.logged_shift", "1", "task: dpo", "schedule: {logged: recomputed}"},
    {"loop.eval", "[count]", "task: dpo", "loop: {eval_every: 1}"},
    {"loop.on_skip", "[log, zero, count]", "task: dpo", NULL},
    {"loop.skip_window", "2", "task: dpo", "loop: {skip: olmo-outlier}"}, /* deviation of 1: NaN */
    {"loop.skip_sigma", "3", "loop: {skip: nonfinite}", NULL},
    {"loss.ranks", "2", "task: sft", "task: sft, loss: {divisor: mean-of-ranks}"},
    {"numerics.order_seed", "5", "task: dpo", "numerics: {mode: shuffled}"},
    {"shuffle.kinds", "[forward]", "task: dpo", "numerics: {mode: shuffled}"},
    {"shuffle.chunk", "3", "task: dpo", "numerics: {mode: shuffled}"},
    {"atomic.kinds", "[weight]", "task: dpo", "numerics: {mode: atomic}"},
    {"atomic.chunk", "3", "task: dpo", "numerics: {mode: atomic}"},
};

static void outcome_of(const struct config *config, struct helper_outcome *out) {
    struct arena arena = ARENA_EMPTY;
    struct dataset dataset;
    struct run run;
    const struct run_options options = {
        .tensors = 1, .phases = 1, .steps = UPDATES, .order_seed = config->numerics.order_seed};
    helper_data_open(config, &arena, &dataset);
    helper_run_open(config, &dataset, &options, &run);
    helper_outcome_of(&run, UPDATES, out);
    run_close(&run);
    arena_close(&arena);
}

/* Returns the first part of the outcome that the value changes, or NULL where it changes none. */
static const char *gap_of(const char *key, const char *value, const char *words, int inert) {
    static struct config config, plain;
    struct helper_outcome before, after;
    struct key_row row = *schema_find(key, NULL);
    helper_config(UPDATES, &config, "%s", words);
    assert_int_equal(inert_reason(&config, key) != NULL, inert);
    outcome_of(&config, &before);
    row.standard = value;
    plain = config;
    assert_int_equal(row_read_standard(&row, key, &config), STATUS_OK);
    assert_false(row_equal(&row, &plain, &config));
    outcome_of(&config, &after);
    return helper_outcome_gap(&before, &after);
}

static const char *whole(const char *words, char out[1024]) {
    snprintf(out, 1024, "%s, %s", COMMON, words);
    return out;
}

static void verify_inert_keys_move_nothing(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char text[1024];
        const char *gap = gap_of(cases[i].key, cases[i].value, whole(cases[i].silent, text), 1);
        if (gap != NULL) fail_msg("%s moves %s under %s", cases[i].key, gap, cases[i].silent);
    }
}

static void verify_read_keys_move_bits(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char text[1024];
        if (cases[i].loud == NULL) continue;
        if (gap_of(cases[i].key, cases[i].value, whole(cases[i].loud, text), 0) == NULL)
            fail_msg("%s moves nothing under %s", cases[i].key, cases[i].loud);
    }
}

/* f64 acts as f32 above sums and passes of f32, and not above wider ones: the same words, read as
 * they were written, once with f32 and once with f64. */
static void verify_wide_words(void **state) {
    (void)state;
    static const struct {
        const char *key, *words;
        int moves;
    } wide[] = {
        {"numerics.loss", "task: dpo", 0},
        {"numerics.loss", "task: sft", 0},
        {"numerics.loss", "numerics: {compute: bf16}", 0},
        {"numerics.loss", "numerics: {backward: {cross_entropy: two-step}}", 0},
        {"numerics.loss", "numerics: {accumulate: f64}", 1},
        {"numerics.rope", "task: dpo", 0},
        {"numerics.rope", "numerics: {compute: bf16}", 0},
        {"numerics.rope", "dpo: {reference_compute: f64}, numerics: {accumulate: f64}", 1},
        {"numerics.rope", "numerics: {compute: f64}", 1},
    };
    for (size_t i = 0; i < COUNT_OF(wide); i++) {
        static struct config config;
        struct helper_outcome outcomes[2];
        char text[1024];
        struct key_row row = *schema_find(wide[i].key, NULL);
        helper_config(UPDATES, &config, "%s", whole(wide[i].words, text));
        for (int is_wide = 0; is_wide < 2; is_wide++) {
            row.standard = is_wide ? "f64" : "f32";
            assert_int_equal(row_read_standard(&row, wide[i].key, &config), STATUS_OK);
            assert_int_equal(inert_reason(&config, wide[i].key) != NULL, is_wide && !wide[i].moves);
            outcome_of(&config, &outcomes[is_wide]);
        }
        const char *const gap = helper_outcome_gap(&outcomes[0], &outcomes[1]);
        if ((gap != NULL) != wide[i].moves)
            fail_msg("%s under %s: %s", wide[i].key, wide[i].words, gap == NULL ? "none" : gap);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_inert_keys_move_nothing),
        cmocka_unit_test(verify_read_keys_move_bits),
        cmocka_unit_test(verify_wide_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

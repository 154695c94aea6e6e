/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The loss scale: its course must be that of torch 2.15's GradScaler and of Megatron's rules; in a
 * training it must change nothing in f32 (it is a power of two), and decide everything in f16. An
 * optimizer that holds where a gradient is not finite is as a loop that skips the update. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "tests/trainer/helper_train.h"
#include "trainer/loop.h"
#include "trainer/scaler.h"

#define COMMON                                                                                     \
    "task: sft, batch: {size: 4, micro: 2}, optimizer: {name: sgd, lr: 1e-2}, data: {max_len: "    \
    "16}, "                                                                                        \
    "init: {std: 0.3}, model: {layers: 2, hidden: 16, heads: 4, kv_heads: 2, mlp: 20, vocab: 19}"

/* ---- the course of the scale ---- */

/* The scales that torch.amp.GradScaler('cpu', ...) of torch 2.15.0 gave, by get_scale() after each
 * update(). An x is an update whose gradient was infinite. */
static const char course[] = "..x...xx......x.";
static const struct {
    const char *words;
    double scale[sizeof course - 1];
} courses[] = {
    {"init_scale: 65536, growth_interval: 3",
     {0x1p+16, 0x1p+16, 0x1p+15, 0x1p+15, 0x1p+15, 0x1p+16, 0x1p+15, 0x1p+14, 0x1p+14, 0x1p+14,
      0x1p+15, 0x1p+15, 0x1p+15, 0x1p+16, 0x1p+15, 0x1p+15}},
    /* a scale that would become infinite stays */
    {"init_scale: 1.5e38, growth_factor: 4, growth_interval: 1",
     {0x1.c363ccp+126, 0x1.c363ccp+126, 0x1.c363ccp+125, 0x1.c363ccp+127, 0x1.c363ccp+127,
      0x1.c363ccp+127, 0x1.c363ccp+126, 0x1.c363ccp+125, 0x1.c363ccp+127, 0x1.c363ccp+127,
      0x1.c363ccp+127, 0x1.c363ccp+127, 0x1.c363ccp+127, 0x1.c363ccp+127, 0x1.c363ccp+126,
      0x1.c363ccp+126}},
    {"init_scale: 8, growth_factor: 1.5, backoff_factor: 0.3, growth_interval: 2",
     {0x1p+3, 0x1.8p+3, 0x1.ccccccp+1, 0x1.ccccccp+1, 0x1.599998p+2, 0x1.599998p+2, 0x1.9eb850p+0,
      0x1.f1a9fap-2, 0x1.f1a9fap-2, 0x1.753f7cp-1, 0x1.753f7cp-1, 0x1.17ef9cp+0, 0x1.17ef9cp+0,
      0x1.a3e76ap+0, 0x1.f7e280p-2, 0x1.f7e280p-2}},
};

static void validate_course_of_torch(void **state) {
    (void)state;
    for (size_t c = 0; c < COUNT_OF(courses); c++) {
        struct config config;
        struct state_scaler scaler;
        helper_config(1, &config, COMMON ", scaler: {kind: dynamic, %s}, loop: {skip: nonfinite}",
                      courses[c].words);
        scaler_open(&config, &scaler);
        for (size_t k = 0; k < sizeof course - 1; k++) {
            scaler_update(&config, course[k] == 'x', &scaler);
            if (scaler.scale != courses[c].scale[k])
                fail_msg("course %zu, update %zu: %a, torch has %a", c, k + 1, scaler.scale,
                         courses[c].scale[k]);
        }
    }
}

/* The rules of megatron/core/optimizer/grad_scaler.py, DynamicGradScaler.update: hysteresis 2 lets
 * one overflow pass until the scale grows again, and the minimum holds. */
static void validate_hysteresis(void **state) {
    (void)state;
    static const double expected[] = {8, 8, 4, 2, 2, 4, 4, 2, 1, 1, 1};
    static const char overflows[] = ".xxx..xxxxx";
    struct config config;
    struct state_scaler scaler;
    helper_config(1, &config,
                  COMMON ", scaler: {kind: dynamic, init_scale: 8, hysteresis: 2, "
                         "growth_interval: 2, min_scale: 1}, loop: {skip: nonfinite}");
    scaler_open(&config, &scaler);
    for (size_t k = 0; k < COUNT_OF(expected); k++) {
        scaler_update(&config, overflows[k] == 'x', &scaler);
        assert_true(scaler.scale == expected[k]);
    }
}

/* ---- in a training ---- */

struct outcome {
    struct digest params;
    double norm[4], coefficient[4], loss[4], scale[4];
    int64_t skipped[4];
};

static void train(struct outcome *out, const char *words) {
    struct arena arena = ARENA_EMPTY;
    struct config config;
    struct dataset dataset;
    struct run run;
    helper_config(4, &config, COMMON ", %s", words);
    helper_ids_open(&config, 7, 24, 16, &arena, &dataset);
    helper_run_open(&config, &dataset, &(struct run_options){.steps = 4}, &run);
    digest_bytes("none", "", 0, &out->params);
    struct digest parts[64];
    for (size_t k = 0; k < 4; k++) {
        const struct record *record = helper_step(&run);
        out->norm[k] = record->reals[REAL_GRAD_NORM];
        out->coefficient[k] = record->reals[REAL_CLIP_COEF];
        out->loss[k] = record->reals[REAL_LOSS];
        out->scale[k] = record->reals[REAL_LOSS_SCALE];
        out->skipped[k] = record->integers[INTEGER_SKIPPED];
    }
    assert_true(run.owner_count <= COUNT_OF(parts));
    for (uint32_t i = 0; i < run.owner_count; i++)
        digest_bytes("p", run_param(&run, run.owner[i]),
                     run.table.rows[run.owner[i]].count *
                         dtype_carrier(run.table.rows[run.owner[i]].dtype),
                     &parts[i]);
    digest_root("params", parts, run.owner_count, &out->params);
    run_close(&run);
    arena_close(&arena);
}

#define UPDATE(phases) "loop: {skip: nonfinite, update: [" phases "log, count, schedule, zero]}"

/* A power of two scales every f32 gradient exactly, so with unscale before clip nothing may
 * change. */
static void verify_exact_in_f32(void **state) {
    (void)state;
    struct outcome none, scaled, late;
    train(&none, "clip: {max_norm: 0.1}, loop: {skip: nonfinite}");
    train(&scaled, "clip: {max_norm: 0.1}, scaler: {kind: static, init_scale: 1024}, " UPDATE(
                       "unscale, clip, optimize, "));
    assert_memory_equal(&none.params, &scaled.params, sizeof none.params);
    assert_memory_equal(none.norm, scaled.norm, sizeof none.norm);
    assert_true(isnan(none.scale[0]) && scaled.scale[3] == 1024.0);
    /* clipped before it is unscaled: the norm is compared with the threshold while scaled */
    train(&late, "clip: {max_norm: 0.1}, scaler: {kind: static, init_scale: 1024}, " UPDATE(
                     "clip, unscale, optimize, "));
    assert_true(late.norm[0] == 1024.0 * none.norm[0]);
    assert_true(late.coefficient[0] < none.coefficient[0] / 1000.0);
}

/* An optimizer must unscale what phase `unscale` did not, as GradScaler.step() does. */
static void verify_optimizer_unscales(void **state) {
    (void)state;
    struct outcome none, scaled;
    train(&none, UPDATE("optimize, "));
    train(&scaled, "scaler: {kind: static, init_scale: 4096}, " UPDATE("optimize, "));
    assert_memory_equal(&none.params, &scaled.params, sizeof none.params);
    assert_memory_equal(none.loss, scaled.loss, sizeof none.loss);
}

/* Phase `zero` begins a gradient that nobody has unscaled: where it comes between two
 * micro-batches, the optimizer must do it for the last of them. */
static void verify_zero_begins_scaled(void **state) {
    (void)state;
#define LAST                                                                                       \
    "loop: {skip: nonfinite, micro: [zero, fetch, forward, backward], update: [optimize, log, "    \
    "count, schedule]}"
    struct outcome none, scaled;
    train(&none, LAST);
    train(&scaled, "scaler: {kind: static, init_scale: 4096}, " LAST);
    assert_memory_equal(&none.params, &scaled.params, sizeof none.params);
    assert_memory_equal(none.loss, scaled.loss, sizeof none.loss);
}

/* In f16 small gradients are lost without a scale; too large a scale overflows, skips updates and
 * backs off until it fits. */
static void verify_f16(void **state) {
    (void)state;
    static const char plain[] = "clip: {max_norm: 0}, ";
    char words[512];
    struct outcome wide, lost, kept, overflowed;
    train(&wide, "clip: {max_norm: 0}");
    snprintf(words, sizeof words, "%snumerics: {compute: f16}", plain);
    train(&lost, words);
    snprintf(words, sizeof words,
             "%snumerics: {compute: f16}, scaler: {kind: static, init_scale: 512}, %s", plain,
             UPDATE("unscale, clip, optimize, "));
    train(&kept, words);
    /* about 20 roundings of 2^-11 each on the way back */
    assert_true(fabs(kept.norm[0] - wide.norm[0]) < 20 * 0x1p-11 * wide.norm[0]);
    assert_true(fabs(kept.norm[0] - wide.norm[0]) < fabs(lost.norm[0] - wide.norm[0]));
    snprintf(words, sizeof words,
             "%snumerics: {compute: f16}, scaler: {kind: dynamic, init_scale: 1048576, "
             "backoff_factor: 0.03125}, %s",
             plain, UPDATE("unscale, clip, optimize, "));
    train(&overflowed, words);
    assert_true(overflowed.skipped[0] == 1 && overflowed.scale[0] == 1048576.0);
    assert_true(overflowed.skipped[3] == 0 && overflowed.scale[3] < 65536.0);
}

static void hazard_expect(const char *words, enum loop_hazard_kind kind, int expected) {
    struct config config;
    struct loop_hazard hazards[LOOP_HAZARD_KINDS];
    helper_config(4, &config, COMMON ", %s", words);
    const size_t count = loop_hazards(&config, hazards);
    int found = 0;
    for (size_t i = 0; i < count; i++)
        found |= hazards[i].kind == kind;
    if (found != expected) fail_msg("%s: hazard %d: %d", words, (int)kind, found);
}

static void validate_hazards(void **state) {
    (void)state;
    hazard_expect("scaler: {kind: static}, " UPDATE("clip, optimize, "), LOOP_UNSCALE_LATE, 1);
    hazard_expect("scaler: {kind: static}, " UPDATE("unscale, clip, optimize, "), LOOP_UNSCALE_LATE,
                  0);
    hazard_expect(UPDATE("clip, unscale, optimize, "), LOOP_UNSCALE_LATE, 0);
    hazard_expect("scaler: {kind: dynamic}", LOOP_OVERFLOW_APPLIED, 1);
    hazard_expect("scaler: {kind: dynamic}, loop: {skip: nonfinite}", LOOP_OVERFLOW_APPLIED, 0);
}

/* ---- an optimizer that holds ---- */

#define HELD                                                                                       \
    "task: sft, batch: {size: 4, micro: 2}, data: {max_len: 16}, init: {std: 0.3}, model: "        \
    "{layers: 2, hidden: 16, heads: 4, kv_heads: 2, mlp: 20, vocab: 19}, clip: {max_norm: 0}, "    \
    "numerics: {compute: f16}, scaler: {kind: dynamic, init_scale: 1048576, backoff_factor: "      \
    "0.03125}, optimizer: {variant: %s, lr: 1e-3}, loop: {skip: %s, update: [unscale, clip, "      \
    "optimize, log, count, schedule, zero]}"

static void train_held(const char *variant, const char *skip, struct record out[4]) {
    struct arena arena = ARENA_EMPTY;
    struct config config;
    struct dataset dataset;
    struct run run;
    helper_config(4, &config, HELD, variant, skip);
    helper_ids_open(&config, 7, 24, 16, &arena, &dataset);
    helper_run_open(&config, &dataset, &(struct run_options){.steps = 4}, &run);
    for (size_t k = 0; k < 4; k++)
        out[k] = *helper_step(&run); /* what it points at is read no more */
    run_close(&run);
    arena_close(&arena);
}

/* torch's fused AdamW is told of an overflow, and holds: such an update applied no LR, as one that
 * the loop skips, and roots are equal where both let the schedule go on. */
static void validate_held(void **state) {
    static struct record held[4], skipped[4], stepped[4];
    size_t holds = 0;
    (void)state;
    train_held("torch-fused", "none", held);
    train_held("torch-fused", "nonfinite, on_skip: [log, count, schedule, zero]", skipped);
    train_held("torch", "none", stepped);
    for (size_t k = 0; k < 4; k++) {
        holds += held[k].integers[INTEGER_SKIPPED] == 1;
        assert_int_equal(held[k].integers[INTEGER_SKIPPED], skipped[k].integers[INTEGER_SKIPPED]);
        assert_int_equal(held[k].integers[INTEGER_OPTIMIZER_T], k + 1 - holds);
        assert_memory_equal(held[k].digests[DIGEST_ROOT], skipped[k].digests[DIGEST_ROOT],
                            RECORD_DIGEST_BYTES);
    }
    assert_in_range(holds, 1, 3);
    assert_int_equal(stepped[0].integers[INTEGER_SKIPPED], 0);
    assert_memory_not_equal(held[0].digests[DIGEST_LR], stepped[0].digests[DIGEST_LR],
                            RECORD_DIGEST_BYTES);
}

/* Nor is it told of the overflow in which the update before ended: it counts two steps an update,
 * one for each micro-batch, though no gradient is finite. */
static void check_untold_of_before(void) {
    struct arena arena = ARENA_EMPTY;
    struct config config;
    struct dataset dataset;
    struct run run;
    helper_config(3, &config,
                  "task: sft, batch: {size: 4, micro: 2}, data: {max_len: 16}, init: {std: 0.3}, "
                  "model: {layers: 1, hidden: 16, heads: 4, kv_heads: 2, mlp: 20, vocab: 19}, "
                  "numerics: {compute: f16}, scaler: {kind: dynamic, init_scale: 1048576}, "
                  "optimizer: {variant: torch-fused}, loop: {skip: none, micro: [fetch, forward, "
                  "backward, optimize], update: [log, count, schedule, zero]}");
    helper_ids_open(&config, 7, 24, 16, &arena, &dataset);
    helper_run_open(&config, &dataset, &(struct run_options){.steps = 3}, &run);
    for (int64_t k = 1; k <= 3; k++) {
        const struct record *const record = helper_step(&run);
        assert_int_equal(isfinite(record->reals[REAL_GRAD_NORM]) != 0, 0);
        assert_true(record->integers[INTEGER_OPTIMIZER_T] == 2 * k);
        assert_int_equal(record->integers[INTEGER_SKIPPED], 0);
    }
    run_close(&run);
    arena_close(&arena);
}

static int has_hazard(const char *words, enum loop_hazard_kind kind, const char **out_text) {
    static struct loop_hazard hazards[LOOP_HAZARD_KINDS];
    struct config config;
    int found = 0;
    helper_config(4, &config, "task: sft, scaler: {kind: dynamic}, %s", words);
    const size_t count = loop_hazards(&config, hazards);
    for (size_t h = 0; h < count; h++)
        if (hazards[h].kind == kind) {
            found++;
            *out_text = hazards[h].text;
        }
    return found;
}

/* A step among the micro-batches is not told of an overflow. */
static void validate_untold(void **state) {
    (void)state;
    check_untold_of_before();
    const char *text;
    const char *const words = "optimizer: {variant: torch-fused}, loop: {micro: [fetch, forward, "
                              "backward, optimize], update: [log, count, schedule, zero]}";
    assert_int_equal(has_hazard(words, LOOP_OVERFLOW_APPLIED, &text), 1);
    assert_int_equal(has_hazard(words, LOOP_SKIP_ADVANCES, &text), 0);
}

/* An overflow is applied, or held while the schedule goes on, unless `count` runs in no update. */
static void validate_hazards_of_holding(void **state) {
    static const struct {
        const char *optimizer;
        int holds;
    } cases[] = {{"variant: torch", 0},
                 {"variant: torch-fused", 1},
                 {"variant: torch-fused, on_nonfinite: step", 0},
                 {"variant: apex, on_nonfinite: hold", 1},
                 {"name: lion", 0},
                 {"name: lion, on_nonfinite: hold", 1},
                 {"name: sgd", 0}};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        static const struct {
            const char *loop;
            enum loop_hazard_kind where_held, where_not;
        } loops[] = {
            {"skip: none", LOOP_SKIP_ADVANCES, LOOP_OVERFLOW_APPLIED},
            {"skip: none, update: [clip, optimize, log, zero]", LOOP_HAZARD_KINDS,
             LOOP_OVERFLOW_APPLIED},
            {"skip: nonfinite, on_skip: [optimize, log, zero]", LOOP_HAZARD_KINDS,
             LOOP_SKIP_APPLIES},
            {"skip: nonfinite, on_skip: [optimize, log, count, schedule, zero]", LOOP_SKIP_ADVANCES,
             LOOP_SKIP_APPLIES},
        };
        static const enum loop_hazard_kind kinds[] = {LOOP_OVERFLOW_APPLIED, LOOP_SKIP_APPLIES,
                                                      LOOP_SKIP_ADVANCES};
        for (size_t l = 0; l < COUNT_OF(loops); l++)
            for (size_t k = 0; k < COUNT_OF(kinds); k++) {
                const enum loop_hazard_kind want =
                    cases[i].holds ? loops[l].where_held : loops[l].where_not;
                const char *text = "";
                char words[256];
                snprintf(words, sizeof words, "optimizer: {%s}, loop: {%s}", cases[i].optimizer,
                         loops[l].loop);
                const int found = has_hazard(words, kinds[k], &text);
                if (found != (kinds[k] == want)) fail_msg("%s: hazard %d", words, (int)kinds[k]);
                if (found && l == 0 && cases[i].holds)
                    assert_string_equal(text, "the optimizer holds an update whose gradient "
                                              "overflowed, which still advances the schedule: the "
                                              "LR runs ahead of the updates made");
            }
    }
}

/* A contract's loop must take the scale out before it clips; a loop that was written must stay as
 * it is. */
static void validate_contract_unscales(void **state) {
    (void)state;
    struct config config;
    helper_config(4, &config, COMMON ", schedule: {contract: hf}, scaler: {kind: static}");
    assert_int_equal(config.loop.update.item[0], PHASE_UNSCALE);
    assert_int_equal(config.loop.update.item[1], PHASE_CLIP);
    hazard_expect("schedule: {contract: hf}, scaler: {kind: static}", LOOP_UNSCALE_LATE, 0);
    helper_config(4, &config, COMMON ", schedule: {contract: hf}");
    assert_int_equal(config.loop.update.item[0], PHASE_CLIP);
    hazard_expect("scaler: {kind: static}", LOOP_UNSCALE_LATE, 1);
}

static void validate_refused_orders(void **state) {
    (void)state;
    struct config config;
    helper_config(4, &config, COMMON ", scaler: {kind: static}");
    config.loop.update.item[0] = PHASE_UNSCALE;
    assert_int_equal(loop_check(&config, NULL), STATUS_OK);
    config.loop.update.item[1] = PHASE_UNSCALE;
    config.loop.update.item[2] = PHASE_OPTIMIZE;
    config.loop.update.item[3] = PHASE_LOG;
    assert_int_equal(loop_check(&config, NULL), STATUS_INPUT);
    assert_non_null(strstr(status_text(), "once per update"));
    config.scaler.kind = SCALER_NONE;
    assert_int_equal(loop_check(&config, NULL), STATUS_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_course_of_torch),
        cmocka_unit_test(validate_hysteresis),
        cmocka_unit_test(verify_exact_in_f32),
        cmocka_unit_test(verify_optimizer_unscales),
        cmocka_unit_test(verify_zero_begins_scaled),
        cmocka_unit_test(verify_f16),
        cmocka_unit_test(validate_hazards),
        cmocka_unit_test(validate_held),
        cmocka_unit_test(validate_hazards_of_holding),
        cmocka_unit_test(validate_untold),
        cmocka_unit_test(validate_refused_orders),
        cmocka_unit_test(validate_contract_unscales),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 * labels: unit
 * Optimizers, clipping rules and decay groups as a scenario names them, in whole trainings: each
 * key must change what it says, the LR must be read back within its printed error, and a split into
 * micro-batches must change no bit. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/trainer/helper_train.h"

enum { UPDATES = 4 };

struct bench {
    struct config config;
    struct arena arena;
    struct dataset dataset;
    struct run run;
};

static void bench_open(struct bench *bench, const char *words, const char *more) {
    bench->arena = (struct arena)ARENA_EMPTY;
    helper_config(UPDATES, &bench->config,
                  "%s%s%s, data: {max_len: 16}, init: {std: 0.1}, "
                  "model: {layers: 2, hidden: 32, heads: 4, kv_heads: 2, mlp: 48, vocab: 19}",
                  words, more[0] == '\0' ? "" : ", ", more);
    helper_ids_open(&bench->config, 8, 20, 16, &bench->arena, &bench->dataset);
    helper_run_open(&bench->config, &bench->dataset,
                    &(struct run_options){.readback = 1, .steps = UPDATES}, &bench->run);
}

static void bench_close(struct bench *bench) {
    run_close(&bench->run);
    arena_close(&bench->arena);
}

/* ---- read-back ---- */

static const struct readable {
    const char *words;
    int never; /* the LR acts through a mean alone */
} readable[] = {
    {"optimizer: {name: adam, lr: 1e-3, weight_decay: 0.1}", 0},
    {"optimizer: {lr: 1e-3, weight_decay: 0.1, amsgrad: true}", 0},
    {"optimizer: {lr: 1e-3, weight_decay: 0.1, variant: torch-cpu}", 0},
    {"optimizer: {lr: 1e-3, weight_decay: 0.1, variant: torch-capturable}", 0},
    {"optimizer: {lr: 1e-3, weight_decay: 0.1, variant: torch-fused}", 0},
    {"optimizer: {lr: 5e-7, weight_decay: 0.1, variant: torch-fused}", 0},
    {"optimizer: {lr: 1e-3, weight_decay: 0.1, variant: apex}", 0},
    {"optimizer: {lr: 5e-7, weight_decay: 0.1, variant: apex}", 0},
    {"optimizer: {lr: 1e-3, weight_decay: 0.1, variant: llm.c}", 0},
    {"optimizer: {lr: 1e-3, weight_decay: 0.1, variant: olmo-skip-step}", 0},
    {"optimizer: {lr: 1e-3, weight_decay: 0.1, variant: olmo-skip-step-foreach}", 0},
    {"optimizer: {lr: 1e-3, weight_decay: 0.1, variant: olmo-skip-step, t: frozen}", 0},
    {"optimizer: {lr: 1e-3, weight_decay: 0.1, variant: apex, t: twice}", 0},
    {"optimizer: {lr: 1e-3, weight_decay: 0.1, variant: hf-legacy}", 0},
    {"optimizer: {name: lion, lr: 1e-4, weight_decay: 0.1}", 0},
    {"optimizer: {name: lion, lr: 1e-4, weight_decay: 0.1}, numerics: {param: f64, compute: f64}",
     0},
    {"optimizer: {name: adafactor, lr: 1e-3, weight_decay: 0.1}, numerics: {param: f64, compute: "
     "f64}",
     0},
    {"optimizer: {name: adafactor, lr: 1e-2, scale_parameter: true}, numerics: {param: f64, "
     "compute: f64}",
     0},
    {"optimizer: {name: adafactor, relative_step: true}", 0},
    {"optimizer: {name: adafactor, lr: 1e-3, beta1: 0.9}", 1},
};

static void verify_readback(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(readable); i++) {
        struct bench bench;
        double relative = 0.0;
        bench_open(&bench, readable[i].words, "batch: {size: 4, micro: 2}");
        for (int k = 0; k < UPDATES; k++) {
            const double *group = helper_step(&bench.run)->groups[0];
            const double gap = fabs(group[GROUP_LR_READBACK] - group[GROUP_LR_APPLIED]);
            relative = group[GROUP_LR_ERROR] / group[GROUP_LR_APPLIED];
            if (readable[i].never) {
                assert_true(isnan(group[GROUP_LR_READBACK]));
                continue;
            }
            if (!(gap <= group[GROUP_LR_ERROR]))
                fail_msg("%s: update %d: %.9g applied, %.9g +- %.2g read back", readable[i].words,
                         k + 1, group[GROUP_LR_APPLIED], group[GROUP_LR_READBACK],
                         group[GROUP_LR_ERROR]);
        }
        if (!readable[i].never && !(relative < 0.1))
            fail_msg("%s: %g", readable[i].words, relative);
        bench_close(&bench);
    }
}

/* transformers' Adafactor._get_lr: min(1e-6 t or 1e-2, 1 / sqrt(t)). At update 2 the schedule of
 * this training says 3/4 of its LR, which is what is logged. */
static void validate_relative_lr(void **state) {
    (void)state;
    static const struct {
        const char *words;
        double lr[2]; /* of the first two updates */
    } cases[] = {
        {"relative_step: true", {1e-2, 1e-2}},
        {"relative_step: true, warmup_init: true", {1e-6, 2e-6}},
        {"relative_step: false", {0.5, 0.375}},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct bench bench;
        char words[128];
        snprintf(words, sizeof words, "optimizer: {name: adafactor, lr: 0.5, %s}", cases[i].words);
        bench_open(&bench, words, "schedule: {name: linear, total: 4}");
        for (int k = 0; k < 2; k++) {
            const double *group = helper_step(&bench.run)->groups[0];
            assert_true(group[GROUP_LR_APPLIED] == cases[i].lr[k]);
            assert_true(group[GROUP_LR_LOGGED] == (k == 0 ? 0.5 : 0.375));
        }
        bench_close(&bench);
    }
}

/* With an LR so large that rounding takes hardly a step back, as many steps are meant and not lost
 * as weights change their bits. The embedding has rows that no token of the batch asks for. */
static void validate_meant_steps(void **state) {
    (void)state;
    static const char *const cases[] = {
        "optimizer: {name: adafactor, lr: 1e-2}",
        "optimizer: {name: adafactor, relative_step: true}",
        "optimizer: {name: adafactor, lr: 1e-2, beta1: 0.9}",
        "optimizer: {name: lion, lr: 1e-2}, numerics: {optimizer: f16}, clip: {max_norm: 1e-3}",
        "optimizer: {name: lion, lr: 1e-2}, numerics: {optimizer: bf16}",
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct bench bench;
        unsigned char *before;
        bench_open(&bench, cases[i], "batch: {size: 1, micro: 1}");
        assert_int_equal(
            arena_take(&bench.arena, run_layout(&bench.run)->bytes, 1, "state", &before),
            STATUS_OK);
        for (int k = 0; k < UPDATES; k++) {
            double moved = 0.0, all = 0.0;
            assert_int_equal(run_snapshot(&bench.run, before), STATUS_OK);
            (void)helper_step(&bench.run);
            const struct run_steps steps = run_steps(&bench.run);
            for (uint32_t o = 0; o < bench.run.owner_count; o++) {
                const uint32_t row = bench.run.owner[o];
                const size_t at = run_layout(&bench.run)->tensor[row].param;
                const unsigned char *const now = run_state_host(&bench.run) + at;
                for (size_t e = 0; e < bench.run.table.rows[row].count; e++)
                    moved += memcmp(now + 4 * e, before + at + 4 * e, 4) != 0;
                all += (double)bench.run.table.rows[row].count;
            }
            if (steps.meant - steps.lost != moved || steps.lost > 1e-3 * steps.meant)
                fail_msg("%s: update %d: %.0f of %.0f weights moved, %.0f steps were meant and "
                         "%.0f lost",
                         cases[i], k + 1, moved, all, steps.meant, steps.lost);
            assert_true(k > 0 || moved < all);
        }
        bench_close(&bench);
    }
}

/* ---- each key acts ---- */

struct trace {
    double norm[UPDATES], coefficient[UPDATES], moved[UPDATES];
    int64_t t[UPDATES];
    unsigned char root[UPDATES][DIGEST_BYTES];
};

static void trace_of(const char *words, const char *more, struct trace *out) {
    struct bench bench;
    bench_open(&bench, words, more);
    for (int k = 0; k < UPDATES; k++) {
        const struct record *record = helper_step(&bench.run);
        out->norm[k] = record->reals[REAL_GRAD_NORM];
        out->coefficient[k] = record->reals[REAL_CLIP_COEF];
        out->moved[k] = record->reals[REAL_UPDATE_NORM];
        out->t[k] = record->integers[INTEGER_OPTIMIZER_T];
        memcpy(out->root[k], record->digests[DIGEST_ROOT], DIGEST_BYTES);
    }
    bench_close(&bench);
}

/* Returns the first update, counted from 1, after which the trainings are no longer equal, or 0
 * where they stay equal. */
static int first_gap(const struct trace *a, const struct trace *b) {
    for (int k = 0; k < UPDATES; k++)
        if (memcmp(a->root[k], b->root[k], DIGEST_BYTES) != 0) return k + 1;
    return 0;
}

static const char batch[] = "batch: {size: 4, micro: 2}";
static const char half_clipped[] = "optimizer: {name: sgd, lr: 0.1}, clip: {max_norm: 0.5%s}";

static const struct acting {
    const char *before, *after;
    int first; /* update whose root is the first that differs; 0: none does */
} acting[] = {
    {"optimizer: {lr: 1e-3}", "optimizer: {lr: 1e-3, variant: apex}", 1},
    {"optimizer: {lr: 1e-3}", "optimizer: {lr: 1e-3, variant: torch-cpu}", 1},
    {"optimizer: {lr: 1e-3}", "optimizer: {lr: 1e-3, variant: torch-capturable}", 1},
    {"optimizer: {lr: 1e-3}", "optimizer: {lr: 1e-3, variant: torch-fused}", 1},
    {"optimizer: {lr: 1e-3}", "optimizer: {lr: 1e-3, variant: olmo-skip-step}", 1},
    {"optimizer: {lr: 1e-3}", "optimizer: {lr: 1e-3, variant: hf-legacy}", 1},
    {"optimizer: {lr: 1e-3}", "optimizer: {lr: 1e-3, t: frozen}", 1}, /* t is in the root */
    {"optimizer: {lr: 1e-3}", "optimizer: {lr: 1e-3, t: twice}", 1},
    {"optimizer: {lr: 1e-3, variant: apex}",
     "optimizer: {lr: 1e-3, variant: apex, bias_correction: false}", 1},
    {"optimizer: {lr: 1e-3, variant: torch-fused}",
     "optimizer: {lr: 1e-3, variant: torch-fused, on_nonfinite: step}", 0}, /* nothing overflows */
    {"optimizer: {lr: 1e-3}", "optimizer: {name: adam, lr: 1e-3, variant: torch}",
     0}, /* no decay */
    {"optimizer: {lr: 1e-3, weight_decay: 0.1}",
     "optimizer: {name: adam, lr: 1e-3, weight_decay: 0.1}", 1},
    {"optimizer: {name: lion, lr: 1e-4}", "optimizer: {name: lion, lr: 1e-4, beta1: 0.5}", 2},
    {"optimizer: {name: lion, lr: 1e-4}", "optimizer: {name: lion, lr: 1e-4, beta2: 0.5}", 1},
    {"optimizer: {name: adafactor, lr: 1e-3}", "optimizer: {name: adafactor, lr: 1e-3, eps1: 1e-6}",
     1},
    {"optimizer: {name: adafactor, lr: 1e-3}",
     "optimizer: {name: adafactor, lr: 1e-3, clip_threshold: 0.5}", 1},
    {"optimizer: {name: adafactor, lr: 1e-3}",
     "optimizer: {name: adafactor, lr: 1e-3, decay_rate: -0.5}", 2},
    {"optimizer: {name: adafactor, lr: 1e-3}",
     "optimizer: {name: adafactor, lr: 1e-3, scale_parameter: true}", 1},
    {"optimizer: {name: adafactor, lr: 1e-3, scale_parameter: true}",
     "optimizer: {name: adafactor, lr: 1e-3, scale_parameter: true, eps2: 10}", 1},
    {"optimizer: {name: adafactor, lr: 1e-2}",
     "optimizer: {name: adafactor, lr: 1e-2, relative_step: true}",
     2}, /* 1e-2 at first; no decay */
    {"optimizer: {name: adafactor, lr: 1e-2, relative_step: true}",
     "optimizer: {name: adafactor, lr: 1e-2, relative_step: true, warmup_init: true}", 1},
    /* the schedule's rate is not read, so it is not recorded as applied, either */
    {"optimizer: {name: adafactor, lr: 1e-3, relative_step: true}",
     "optimizer: {name: adafactor, lr: 0.5, relative_step: true}", 0},
    {"optimizer: {lr: 1e-3, weight_decay: 0.1}",
     "optimizer: {lr: 1e-3, weight_decay: 0.1, decay: olmo-core}", 1},
    {"optimizer: {lr: 1e-3, weight_decay: 0.1, decay: matrices}",
     "optimizer: {lr: 1e-3, weight_decay: 0.1, decay: hf}", 0},
    {"optimizer: {lr: 1e-3, weight_decay: 0.1, decay: named, no_decay: norm}",
     "optimizer: {lr: 1e-3, weight_decay: 0.1, decay: hf}", 0},
    {"optimizer: {lr: 1e-3, weight_decay: 0.1, decay: named, no_decay: embed_tokens}",
     "optimizer: {lr: 1e-3, weight_decay: 0.1, decay: olmo-core}", 0},
    {"optimizer: {lr: 1e-3, weight_decay: 0.1, decay: named, no_decay: 'norm, q_proj'}",
     "optimizer: {lr: 1e-3, weight_decay: 0.1, decay: named, no_decay: norm}", 1},
};

static void verify_keys_act(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(acting); i++) {
        struct trace before, after;
        trace_of(acting[i].before, batch, &before);
        trace_of(acting[i].after, batch, &after);
        const int first = first_gap(&before, &after);
        if (first != acting[i].first)
            fail_msg("%s against %s: expected a gap at update %d, got %d", acting[i].before,
                     acting[i].after, acting[i].first, first);
    }
}

static void validate_t_in_the_record(void **state) {
    (void)state;
    static const struct {
        const char *words;
        int64_t each;
    } rows[] = {{"optimizer: {lr: 1e-3}", 1},
                {"optimizer: {lr: 1e-3, t: frozen}", 0},
                {"optimizer: {lr: 1e-3, t: twice}", 2}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct trace trace;
        trace_of(rows[i].words, batch, &trace);
        for (int k = 0; k < UPDATES; k++)
            assert_int_equal(trace.t[k], rows[i].each * (k + 1));
    }
}

/* ---- clipping ---- */

static void clipped(const char *rule, const char *more, struct trace *out) {
    char words[256];
    snprintf(words, sizeof words, half_clipped, rule);
    trace_of(words, more, out);
}

static void validate_clipping(void **state) {
    (void)state;
    struct trace plain, other;
    clipped("", batch, &plain);
    assert_true(plain.coefficient[0] < 1.0);

    clipped(", apply: above", batch, &other); /* the same multiplications: it is below 1 */
    assert_int_equal(first_gap(&plain, &other), 0);

    clipped(", replicas: 4", batch, &other);
    assert_true(other.norm[0] == 2.0 * plain.norm[0]);
    assert_int_equal(first_gap(&plain, &other), 1);

    clipped(", apply: copy", batch, &other); /* recorded, and not done */
    assert_true(other.coefficient[0] == plain.coefficient[0]);
    assert_true(other.norm[0] == plain.norm[0]);
    assert_true(fabs(other.moved[0] * plain.coefficient[0] / plain.moved[0] - 1.0) < 1e-5);

    clipped(", eps: 0", batch, &other);
    assert_true(other.coefficient[0] == (double)(float)(0.5 / plain.norm[0]));

    clipped(", form: reciprocal", batch, &other);
    assert_true(other.coefficient[0] == (double)(float)(1.0 / ((plain.norm[0] + 1e-6) / 0.5)));

    clipped(", dtype: f32", batch, &other);
    assert_true(other.norm[0] == (double)(float)other.norm[0]);
    assert_true(other.norm[0] != plain.norm[0]);
    /* f32 sums of squares: some 2^-24, or 6e-8, of the norm */
    assert_true(fabs(other.norm[0] / plain.norm[0] - 1.0) < 1e-6);

    clipped(", norm: flat", batch, &other);
    /* the same sum of squares in f64, with other blocks */
    assert_true(fabs(other.norm[0] / plain.norm[0] - 1.0) < 1e-14);
}

/* Norms of bf16 gradients are computed in bf16, as torch does. */
static void validate_bf16_norm(void **state) {
    (void)state;
    struct trace plain, other;
    static const char bf16[] =
        "batch: {size: 4, micro: 2}, numerics: {param: bf16, compute: bf16, master: f32}";
    clipped(", norm: norms", bf16, &plain);
    clipped(", norm: norms, dtype: gradient", bf16, &other);
    const double off = fabs(other.norm[0] / plain.norm[0] - 1.0);
    /* a bf16 norm is rounded by up to 2^-8 = 0.004 of itself, an f32 norm by less than 1e-6 */
    assert_true(off > 1e-6 && off < 0.005);
    assert_true(other.norm[0] * 0x1p20 == floor(other.norm[0] * 0x1p20));
    assert_int_equal(first_gap(&plain, &other), 1);
}

/* In bf16 a quotient and the reciprocal of a quotient are seldom one number. */
static void verify_form(void **state) {
    (void)state;
    static const char *const limits[] = {"0.3", "0.35", "0.7", "0.11"};
    int differ = 0;
    for (size_t i = 0; i < COUNT_OF(limits); i++) {
        struct trace forms[2];
        for (int reciprocal = 0; reciprocal < 2; reciprocal++) {
            char words[256];
            snprintf(words, sizeof words,
                     "optimizer: {name: sgd, lr: 0.1}, clip: {max_norm: %s, dtype: gradient%s}",
                     limits[i], reciprocal ? ", form: reciprocal" : "");
            trace_of(words,
                     "batch: {size: 4, micro: 2}, numerics: {param: bf16, compute: bf16, master: "
                     "f32}",
                     &forms[reciprocal]);
        }
        assert_true(forms[0].norm[0] == forms[1].norm[0]);
        differ += forms[0].coefficient[0] != forms[1].coefficient[0];
    }
    assert_true(differ > 0);
}

/* Clipping per micro-batch (accelerate issue 641) is a matter of the loop: the norm of a clipped
 * sum is not the clipped norm of a sum. */
static void validate_clip_per_micro_batch(void **state) {
    (void)state;
    struct trace plain, other;
    clipped("", batch, &plain);
    clipped("",
            "batch: {size: 4, micro: 2}, loop: {micro: [fetch, forward, backward, clip], update: "
            "[optimize, log, count, schedule, zero]}",
            &other);
    assert_int_equal(first_gap(&plain, &other), 1);
}

/* ---- invariance, refusals ---- */

static const char *const invariant[] = {
    "optimizer: {name: adam, lr: 1e-3, weight_decay: 0.1, amsgrad: true}",
    "optimizer: {name: lion, lr: 1e-4, weight_decay: 0.1}, clip: {norm: flat, dtype: f32}",
    "optimizer: {name: adafactor, lr: 1e-3, weight_decay: 0.1}, clip: {norm: norms}",
    "optimizer: {lr: 1e-3, variant: olmo-skip-step}, clip: {dtype: gradient, norm: norms}",
};

static void verify_micro_batches_and_threads(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(invariant); i++) {
        struct trace whole, split;
        trace_of(invariant[i], "batch: {size: 4, micro: 4}", &whole);
        trace_of(invariant[i], "batch: {size: 4, micro: 1}, numerics: {threads: 3}", &split);
        if (first_gap(&whole, &split) != 0) fail_msg("%s", invariant[i]);
    }
}

static void validate_unknown_names(void **state) {
    (void)state;
    struct bench bench = {.arena = ARENA_EMPTY};
    helper_config(UPDATES, &bench.config,
                  "optimizer: {decay: named, no_decay: 'gain,bais'}, data: {max_len: 16}, "
                  "model: {layers: 1, hidden: 32, heads: 4, mlp: 48, vocab: 19}");
    struct param_table table;
    assert_int_equal(params_open(&bench.config, &bench.arena, &table), STATUS_INPUT);
    assert_non_null(strstr(status_text(), "no tensor has one of \"gain,bais\" in its name"));
    arena_close(&bench.arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_readback),
        cmocka_unit_test(validate_relative_lr),
        cmocka_unit_test(validate_meant_steps),
        cmocka_unit_test(verify_keys_act),
        cmocka_unit_test(validate_t_in_the_record),
        cmocka_unit_test(validate_clipping),
        cmocka_unit_test(validate_bf16_norm),
        cmocka_unit_test(verify_form),
        cmocka_unit_test(validate_clip_per_micro_batch),
        cmocka_unit_test(verify_micro_batches_and_threads),
        cmocka_unit_test(validate_unknown_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

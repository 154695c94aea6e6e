/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Scenarios that must be accepted: the head, layers and merging, options, the arms' names, and the
 * table of derived values. Refusals are tested in test_scenario_errors.c. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/scenarios/helper_scenario.h"

static const char h17[] =
    "twinstep: 1\n"
    "name: lr-set-before-step\n"
    "about: >\n"
    "  The counter advances\n"
    "  before the optimizer.\n"
    "source: \"hypothesis 17\"\n"
    "steps: 7\n"
    "common:\n"
    "  task: dpo\n"
    "  seed: 3\n"
    "  data: {pairs: builtin:quiz, max_len: 64}\n"
    "  batch: {size: 8, micro: 2, layout: concatenated}\n"
    "  optimizer: {name: adamw, lr: 5e-7, beta1: 0.8}\n"
    "arms:\n"
    "  baseline: {}\n"
    "  test:\n"
    "    loop:\n"
    "      update: [count, clip, schedule, optimize, log, zero]\n"
    "    optimizer: {beta1: 0.5}\n"
    "record: {probe_every: 2, tensors: false}\n"
    "floor: {design: both, replicates: 6, alpha: 0.05}\n"
    "expect: {verdict: outside-floor, cause: schedule, word: oppose, first_step: 1,\n"
    "         shares: \"schedule 3 +- 0.05; optimizer -2.0 +- 1e-3\", order: "
    "[schedule, optimizer],\n"
    "         first_phase: optimize, first_tensor: lm_head.weight}\n";

static const struct helper_adamw *adamw(const struct config *config) {
    return (const struct helper_adamw *)(const void *)config->optimizer.which.values;
}

static void validate_whole_scenario(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    const struct scenario *s = helper_parse(&arena, h17, NULL);
    const struct config *a = &s->arms[0].config;
    const struct config *b = &s->arms[1].config;
    assert_string_equal(s->name, "lr-set-before-step");
    assert_string_equal(s->about, "The counter advances before the optimizer.");
    assert_string_equal(s->source, "hypothesis 17");
    assert_string_equal(s->text, h17);
    assert_int_equal(s->text_length, strlen(h17));
    assert_string_equal(s->path, "");
    assert_int_equal(s->steps, 7);
    assert_int_equal(s->record.probe_every, 2);
    assert_int_equal(s->record.readback, 1);
    assert_int_equal(s->record.tensors, 0);
    assert_int_equal(s->record.phases, 1);
    assert_int_equal(s->floor.design, FLOOR_BOTH);
    assert_int_equal(s->floor.replicates, 6);
    assert_true(s->floor.alpha == 0.05);
    assert_int_equal(s->expect.verdict, VERDICT_OUTSIDE_FLOOR);
    assert_int_equal(s->expect.cause, CAUSE_SCHEDULE);
    assert_string_equal(s->expect.word, "oppose");
    assert_string_equal(s->expect.shares, "schedule 3 +- 0.05; optimizer -2.0 +- 1e-3");
    assert_string_equal(s->expect.order, "schedule, optimizer");
    assert_int_equal(s->expect.first_step, 1);
    assert_string_equal(s->expect.first_phase, "optimize");
    assert_string_equal(s->expect.first_tensor, "lm_head.weight");
    assert_string_equal(s->arms[0].name, "baseline");
    assert_string_equal(s->arms[1].name, "test");
    assert_int_equal(a->seed, 3);
    assert_int_equal(a->data.max_len, 64);
    assert_int_equal(a->batch.micro, 2);
    assert_int_equal(a->batch.layout, LAYOUT_CONCATENATED);
    assert_true(a->optimizer.lr == 5e-7);
    assert_true(adamw(a)->beta1 == 0.8 && adamw(a)->beta2 == 0.999);
    assert_true(adamw(b)->beta1 == 0.5 && adamw(b)->beta2 == 0.999);
    static const uint8_t order[] = {PHASE_COUNT_UPDATE, PHASE_CLIP, PHASE_SCHEDULE,
                                    PHASE_OPTIMIZE,     PHASE_LOG,  PHASE_ZERO};
    assert_int_equal(b->loop.update.count, sizeof order);
    assert_memory_equal(b->loop.update.item, order, sizeof order);
    assert_int_equal(s->loop_line[0][1], 0);
    assert_int_equal(s->loop_line[1][1], 18);
    assert_int_equal(s->loop_line[1][0], 0);
    arena_close(&arena);
}

static void validate_defaults(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    const struct scenario *s = helper_parse(&arena, "twinstep: 1\n", NULL);
    assert_string_equal(s->name, "f");
    assert_string_equal(s->about, "");
    assert_int_equal(s->steps, 5);
    assert_true(s->floor.replicates == KEY_WORD_UINT);
    assert_int_equal(s->expect.verdict, VERDICT_NONE);
    assert_int_equal(s->expect.cause, -1);
    assert_null(s->expect.shares);
    assert_null(s->expect.order);
    assert_int_equal(s->expect.first_step, 0);
    assert_null(s->expect.first_phase);
    assert_null(s->expect.first_tensor);
    assert_string_equal(s->arms[0].name, "baseline");
    assert_string_equal(s->arms[1].name, "test");
    assert_memory_equal(&s->arms[0].config, &s->arms[1].config, sizeof(struct config));
    const struct config *c = &s->arms[0].config;
    assert_int_equal(c->task, TASK_DPO);
    assert_int_equal(c->seed, 17);
    assert_string_equal(c->data.pairs, "builtin:quiz");
    assert_int_equal(c->data.shuffle, 1);
    assert_true(c->optimizer.lr == 1e-6 && c->clip.max_norm == 1 && c->dpo.beta == 0.1);
    assert_int_equal(c->schedule.total, 5);
    assert_true(c->schedule.warmup_ratio == KEY_WORD_REAL);
    assert_int_equal(c->schedule.warmup, 0);
    assert_int_equal(c->numerics.master, CONFIG_MASTER_NONE);
    assert_true(c->numerics.order_seed == KEY_WORD_UINT);
    assert_int_equal(c->numerics.threads, 1);
    assert_int_equal(c->shuffle.chunk, 16);
    arena_close(&arena);
}

/* Keys of `common`, and the value that another key must get from them, as text of config_text. */
static const struct {
    const char *common;
    const char *line;
} derived[] = {
    {"seed: 9", "data.seed: 9"},
    {"seed: 9", "init.seed: 9"},
    {"seed: 9, data: {seed: 4}", "data.seed: 4"},
    {"batch: {size: 12}", "batch.micro: 12"},
    {"batch: {size: 12, micro: 3}", "dpo.reference_batch: 3"},
    {"batch: {micro: 2}, dpo: {reference_batch: 16}", "dpo.reference_batch: 16"},
    {"batch: {layout: concatenated}", "dpo.reference_layout: concatenated"},
    {"batch: {layout: concatenated}, dpo: {reference_layout: separate}",
     "dpo.reference_layout: separate"},
    {"numerics: {compute: bf16}", "dpo.reference_compute: bf16"},
    {"numerics: {compute: bf16}, dpo: {reference_compute: f32}", "dpo.reference_compute: f32"},
    {"model: {hidden: 96, heads: 6}", "model.head_dim: 16"},
    {"model: {hidden: 96, heads: 6}", "model.kv_heads: 6"},
    {"model: {hidden: 100, heads: 6, head_dim: 8}", "model.head_dim: 8"},
    {"seed: 1", "model.vocab: 259"},
    {"seed: 1", "model.norm_eps: 1e-06"},
    {"model: {norm_eps: 1e-5}", "model.norm_eps: 1e-05"},
    {"model: {family: olmo2}", "model.rope_theta: 500000"},
    {"model: {family: llama}", "model.rope_theta: 10000"},
    {"model: {family: qwen2}", "model.rope_theta: 1000000"},
    {"model: {family: qwen3}", "model.rope_theta: 1000000"},
    {"model: {family: qwen2}", "model.qkv_bias: true"},
    {"model: {family: qwen2}", "model.output_bias: false"},
    {"model: {family: qwen2, qkv_bias: false}", "model.qkv_bias: false"},
    {"model: {family: qwen3}", "model.qkv_bias: false"},
    {"model: {family: qwen3}", "model.norm_rounding: before-weight"},
    {"model: {rope_scaling: yarn, rope_factor: 1}", "model.rope_attention_factor: 1"},
    {"model: {rope_scaling: yarn, rope_attention_factor: 3}", "model.rope_attention_factor: 3"},
    {"seed: 1", "model.from_digest: none"},
    {"model: {family: olmo2}", "model.norm_rounding: after-weight"},
    {"model: {family: llama}", "model.norm_rounding: before-weight"},
    {"model: {family: llama, norm_rounding: after-weight}", "model.norm_rounding: after-weight"},
    {"seed: 1", "numerics.accumulate: f32"},
    {"numerics: {compute: bf16}", "numerics.accumulate: f32"},
    {"numerics: {compute: f64}", "numerics.accumulate: f64"},
    {"numerics: {accumulate: f64}", "numerics.accumulate: f64"},
    {"numerics: {compute: f64}", "numerics.loss: f64"},
    {"numerics: {compute: bf16}", "numerics.loss: f32"},
    {"numerics: {param: bf16}", "numerics.gradient: bf16"},
    {"numerics: {param: bf16}", "numerics.optimizer: bf16"},
    {"numerics: {param: bf16, master: f32}", "numerics.optimizer: f32"},
    {"numerics: {param: bf16, master: f32}", "numerics.gradient: bf16"},
    {"numerics: {param: f64}", "numerics.optimizer: f64"},
    {"numerics: {param: f32, master: f64}", "numerics.optimizer: f64"},
    {"numerics: {compute: f64}", "numerics.rope: f32"},
    {"numerics: {mode: shuffled}", "numerics.order_seed: free"},
    {"numerics: {mode: shuffled, order_seed: 5}", "numerics.order_seed: 5"},
    {"seed: 1", "schedule.total: 5"},
    {"schedule: {total: 100, warmup_ratio: 0.07}", "schedule.warmup: 8"}, /* 7.000000000000001 */
    {"schedule: {total: 100, warmup_ratio: 0.07, warmup_rounding: floor}", "schedule.warmup: 7"},
    {"schedule: {total: 100, warmup_ratio: 0.07, warmup_rounding: half-even}",
     "schedule.warmup: 7"},
    {"schedule: {total: 10, warmup_ratio: 0.25, warmup_rounding: half-even}", "schedule.warmup: 2"},
    {"schedule: {total: 14, warmup_ratio: 0.25, warmup_rounding: half-even}", "schedule.warmup: 4"},
    {"schedule: {total: 10, warmup_ratio: 0.25}", "schedule.warmup: 3"},
    {"schedule: {total: 10, warmup_ratio: 1}", "schedule.warmup: 10"},
    {"schedule: {total: 10, warmup_ratio: 0}", "schedule.warmup: 0"},
    {"schedule: {total: 10, warmup: 3, warmup_ratio: 0.3}", "schedule.warmup: 3"},
    {"schedule: {total: 10, warmup: 3, warmup_ratio: none}", "schedule.warmup: 3"},
    {"numerics: {mode: shuffled}, shuffle: {kinds: [norm, forward]}",
     "shuffle.kinds: [forward, norm]"},
    {"numerics: {backend: cuda, mode: fast}", "numerics.determinism.workspace: default"},
    {"numerics: {backend: cuda, mode: fast}", "numerics.determinism.order: fixed"},
    {"numerics: {backend: cuda, mode: fast}", "numerics.determinism.fill: none"},
    {"numerics: {backend: cuda, mode: fast, library: none}", "numerics.determinism.atomics: on"},
    {"numerics: {backend: cuda, mode: fast, library: none}", "numerics.determinism.split_k: off"},
    {"numerics: {backend: cuda, mode: deterministic}", "numerics.determinism.workspace: pinned"},
    {"numerics: {backend: cuda, mode: deterministic}", "numerics.determinism.atomics: off"},
    {"numerics: {backend: cuda, mode: deterministic}", "numerics.determinism.fill: torch"},
    {"numerics: {backend: cuda, mode: deterministic}", "numerics.determinism.split_k: on"},
    {"numerics: {backend: cuda, mode: deterministic, determinism: {split_k: off}}",
     "numerics.determinism.split_k: off"},
    {"numerics: {backend: cuda, mode: fast, determinism: {order: free}}",
     "numerics.determinism.order: free"},
    {"numerics: {mode: fast}", "numerics.determinism.split_k: off"},
    {"numerics: {mode: deterministic}", "numerics.determinism.split_k: off"},
    {"numerics: {mode: deterministic}", "numerics.determinism.fill: none"},
    {"numerics: {determinism: {fill: nan}}", "numerics.determinism.fill: nan"},
};

static int has_line(const char *text, const char *line) {
    size_t length = strlen(line);
    for (const char *at = text; at != NULL; at = strchr(at, '\n')) {
        if (*at == '\n') at++;
        if (strncmp(at, line, length) == 0 && at[length] == '\n') return 1;
    }
    return 0;
}

static void validate_derivation(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(derived); i++) {
        struct arena arena = ARENA_EMPTY;
        char *text = NULL;
        const struct scenario *s = helper_common(&arena, derived[i].common);
        assert_int_equal(config_text(&helper_schema, &s->arms[1].config, &arena, &text), STATUS_OK);
        if (!has_line(text, derived[i].line))
            fail_msg("{%s}: no %s in\n%s", derived[i].common, derived[i].line, text);
        arena_close(&arena);
    }
}

/* Arms whose sums race, which no seed replays. */
static void validate_races(void **state) {
    (void)state;
    static const struct {
        const char *common;
        int races;
    } cases[] = {
        {"numerics: {mode: shuffled}", 0},
        {"numerics: {mode: atomic}", 1},
        {"numerics: {mode: fast}", 0},
        {"numerics: {mode: fast, backend: cuda}", 1},
        {"numerics: {mode: fast, backend: cuda, library: none}", 1},
        {"numerics: {mode: fast, backend: cuda, determinism: {atomics: off}}", 0},
        {"numerics: {mode: fast, backend: cuda, determinism: {order: free}}", 1},
        {"numerics: {mode: fast, backend: cuda, library: none, determinism: {atomics: off}}", 0},
        {"numerics: {mode: fast, backend: cuda, determinism: {atomics: off, order: free}}", 1},
        {"numerics: {mode: deterministic, backend: cuda}", 0},
        {"numerics: {mode: deterministic, backend: cuda, determinism: {order: free}}", 1},
        {"numerics: {mode: deterministic, backend: cuda, determinism: {split_k: off}}", 0},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct arena arena = ARENA_EMPTY;
        const struct scenario *s = helper_common(&arena, cases[i].common);
        if (config_races(&s->arms[1].config) != cases[i].races)
            fail_msg("{%s}: expected %d", cases[i].common, cases[i].races);
        arena_close(&arena);
    }
}

/* Where a value is needed no word that stands for a derived one may be left; only these four words
 * are values themselves. */
static void verify_nothing_is_left_to_derive(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    char *text = NULL;
    const struct scenario *s = helper_parse(&arena, "twinstep: 1\n", NULL);
    assert_int_equal(config_text(&helper_schema, &s->arms[0].config, &arena, &text), STATUS_OK);
    assert_true(has_line(text, "numerics.order_seed: free"));
    assert_true(has_line(text, "numerics.master: none"));
    assert_true(has_line(text, "numerics.isa: auto"));
    assert_true(has_line(text, "schedule.warmup_ratio: none"));
    size_t autos = 0;
    for (const char *at = strstr(text, ": auto\n"); at != NULL; at = strstr(at + 1, ": auto\n"))
        autos++;
    assert_true(has_line(text, "numerics.library: auto"));
    assert_true(has_line(text, "rng.vector: auto"));
    assert_true(has_line(text, "numerics.backend_module: auto"));
    assert_int_equal(autos, 4);
    arena_close(&arena);
}

/* The expected line of arm 0 and of arm 1 after layers and options were applied. */
static const struct {
    const char *text;
    const char *overrides[4];
    const char *lines[2];
} layered[] = {
    {"common: {seed: 2}\narms: {a: {}, b: {seed: 5}}", {NULL}, {"seed: 2", "seed: 5"}},
    /* maps merge, */
    {"common: {batch: {size: 4, pad: 3}}\narms: {a: {}, b: {batch: {size: 8}}}",
     {NULL},
     {"batch.pad: 3", "batch.pad: 3"}},
    /* lists replace, */
    {"common: {loop: {epoch: [log, zero]}}\narms: {a: {}, b: {loop: {epoch: [schedule]}}}",
     {NULL},
     {"loop.epoch: [log, zero]", "loop.epoch: [schedule]"}},
    {"common: {loop: {epoch: [log]}}\narms: {a: {}, b: {loop: {epoch: []}}}",
     {NULL},
     {"loop.epoch: [log]", "loop.epoch: []"}},
    /* what an arm derives follows what it merged, */
    {"common: {batch: {size: 4}}\narms: {a: {}, b: {batch: {size: 8}}}",
     {NULL},
     {"batch.micro: 4", "batch.micro: 8"}},
    {"common: {numerics: {compute: f64}}\narms: {a: {}, b: {numerics: {compute: f32}}}",
     {NULL},
     {"numerics.accumulate: f64", "numerics.accumulate: f32"}},
    {"steps: 9\narms: {a: {}, b: {schedule: {total: 3}}}",
     {NULL},
     {"schedule.total: 9", "schedule.total: 3"}},
    /* options change their layer, and later ones win, */
    {"common: {seed: 2}\narms: {a: {}, b: {seed: 5}}",
     {"common.seed=7", NULL},
     {"seed: 7", "seed: 5"}},
    {"common: {seed: 2}\narms: {a: {}, b: {seed: 5}}",
     {"arms.b.seed=8", "arms.b.seed=9", "common.seed=1", NULL},
     {"seed: 1", "seed: 9"}},
    {"", {"arms.test.batch.micro=4", NULL}, {"batch.micro: 8", "batch.micro: 4"}},
    {"", {"arms.test.loop.epoch=[log, zero]", NULL}, {"loop.epoch: []", "loop.epoch: [log, zero]"}},
    /* one word for two phases, */
    {"common: {loop: {skip: nonfinite, update: [optimize, scheduler_step, log, zero]}}",
     {"arms.test.loop.on_skip=[scheduler_step, log]", NULL},
     {"loop.update: [optimize, count, schedule, log, zero]",
      "loop.on_skip: [count, schedule, log]"}},
    {"common: {loop: {micro: [fetch, forward, backward, scheduler_step], eval_every: 2}}",
     {"arms.test.loop.eval=[zero, scheduler_step]", NULL},
     {"loop.micro: [fetch, forward, backward, count, schedule]",
      "loop.eval: [zero, count, schedule]"}},
    {"",
     {"common.optimizer={lr: 1e-3, beta1: 0}", NULL},
     {"optimizer.lr: 0.001", "optimizer.beta1: 0"}},
    {"", {"steps=12", NULL}, {"schedule.total: 12", "schedule.total: 12"}},
    {"", {"common.optimizer.lr=-0.0", NULL}, {"optimizer.lr: 0", "optimizer.lr: 0"}},
    {"", {"common.data.pairs='a=b.c'", NULL}, {"data.pairs: \"a=b.c\"", "data.pairs: \"a=b.c\""}},
    /* classes, */
    {"common: {optimizer: {name: sgd, momentum: 0.5}}",
     {NULL},
     {"optimizer.momentum: 0.5", "optimizer.name: sgd"}},
    {"common: {optimizer: {beta2: 0.5}}\narms: {a: {}, b: {optimizer: {name: sgd}}}",
     {NULL},
     {"optimizer.beta2: 0.5", "optimizer.momentum: 0"}},
    {"common: {schedule: {name: constant}}",
     {NULL},
     {"schedule.name: constant", "optimizer.beta1: 0.9"}},
    /* the later word about the warm-up counts, */
    {"common: {schedule: {total: 10, warmup: 3}}\n"
     "arms: {a: {}, b: {schedule: {warmup_ratio: 0.5}}}",
     {NULL},
     {"schedule.warmup: 3", "schedule.warmup: 5"}},
    {"common: {schedule: {total: 10, warmup_ratio: 0.5}}\n"
     "arms: {a: {}, b: {schedule: {warmup: 1}}}",
     {NULL},
     {"schedule.warmup: 5", "schedule.warmup: 1"}},
    {"common: {schedule: {total: 10, warmup_ratio: 0.5}}\n"
     "arms: {a: {}, b: {schedule: {warmup: 1}}}",
     {NULL},
     {"schedule.warmup_ratio: 0.5", "schedule.warmup_ratio: none"}},
    {"common: {schedule: {total: 10, warmup: 3}}\n"
     "arms: {a: {}, b: {schedule: {warmup_ratio: none}}}",
     {NULL},
     {"schedule.warmup: 3", "schedule.warmup: 3"}},
    /* anchors and merges reach across arms, */
    {"common: {}\narms: {a: &a {seed: 6, batch: {size: 2}}, b: {<<: *a, seed: 7}}",
     {NULL},
     {"batch.size: 2", "batch.size: 2"}},
    /* and empty sections are sections. */
    {"common:\narms: {a: , b: {loop: }}\nrecord:", {NULL}, {"seed: 17", "seed: 17"}},
};

static void validate_layers(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(layered); i++) {
        struct arena arena = ARENA_EMPTY;
        char *text = NULL;
        assert_int_equal(arena_format(&arena, &text, "twinstep: 1\n%s\n", layered[i].text),
                         STATUS_OK);
        const struct scenario *s = helper_parse(&arena, text, layered[i].overrides);
        for (int a = 0; a < 2; a++) {
            char *lines = NULL;
            assert_int_equal(config_text(&helper_schema, &s->arms[a].config, &arena, &lines),
                             STATUS_OK);
            if (!has_line(lines, layered[i].lines[a]))
                fail_msg("%s arm %d: no %s in\n%s", text, a, layered[i].lines[a], lines);
        }
        arena_close(&arena);
    }
}

static void validate_head_options(void **state) {
    (void)state;
    static const char *const overrides[] = {"name=other",
                                            "record.phases=false",
                                            "floor.alpha=0.25",
                                            "floor.replicates=auto",
                                            "attribution.orders=8",
                                            "expect.verdict=none",
                                            "expect.first_phase=any",
                                            NULL};
    struct arena arena = ARENA_EMPTY;
    const struct scenario *s = helper_parse(&arena, h17, overrides);
    assert_string_equal(s->name, "other");
    assert_int_equal(s->record.phases, 0);
    assert_int_equal(s->record.probe_every, 2);
    assert_true(s->floor.alpha == 0.25);
    assert_int_equal(s->attribution.orders, 8);
    assert_true(s->floor.replicates == KEY_WORD_UINT);
    assert_int_equal(s->expect.verdict, VERDICT_NONE);
    assert_null(s->expect.first_phase);
    assert_string_equal(s->text, h17);
    arena_close(&arena);
}

static void validate_arm_names(void **state) {
    (void)state;
    static const struct {
        const char *text;
        const char *names[2];
        uint64_t seeds[2];
    } cases[] = {
        {"twinstep: 1\narms: {hf: {seed: 1}, olmo: {seed: 2}}", {"hf", "olmo"}, {1, 2}},
        {"twinstep: 1\narms: {test: {seed: 1}, baseline: {seed: 2}}", {"baseline", "test"}, {2, 1}},
        {"twinstep: 1\narms: {baseline: {seed: 1}, x_2-b: {seed: 2}}",
         {"baseline", "x_2-b"},
         {1, 2}},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct arena arena = ARENA_EMPTY;
        const struct scenario *s = helper_parse(&arena, cases[i].text, NULL);
        for (int a = 0; a < 2; a++) {
            assert_string_equal(s->arms[a].name, cases[i].names[a]);
            assert_int_equal(s->arms[a].config.seed, cases[i].seeds[a]);
        }
        arena_close(&arena);
    }
}

/* A scenario without a name takes that of its file, in characters that a file may carry. */
static void validate_name_from_path(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"scenarios/catalog/lr-x.yaml", "lr-x"},
        {"a.b.yaml", "a-b"},
        {"dir.d/plain", "plain"},
        {"<stdin>", "stdin"},
        {".yaml", "xyaml"},
        {"dir/", "scenario"},
        {"-x.yaml", "xx"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct arena arena = ARENA_EMPTY;
        struct scenario *s = NULL;
        assert_int_equal(
            scenario_parse(&arena, &helper_schema, cases[i][0], "twinstep: 1", 11, NULL, 0, &s),
            STATUS_OK);
        assert_string_equal(s->name, cases[i][1]);
        arena_close(&arena);
    }
}

static void validate_open_reads_a_file(void **state) {
    (void)state;
    char path[] = "/tmp/twinstep-scenario-XXXXXX";
    int handle = mkstemp(path);
    struct arena arena = ARENA_EMPTY;
    struct scenario *s = NULL;
    char *large = NULL;
    size_t size = 100000; /* several pieces of the reader */
    assert_true(handle >= 0);
    assert_int_equal(arena_take(&arena, size + 1, 1, "text", &large), STATUS_OK);
    memset(large, '#', size);
    memcpy(large, "twinstep: 1\nsteps: 3\n", 21);
    assert_int_equal(write(handle, large, size), (ssize_t)size);
    close(handle);
    enum status status = scenario_open(&arena, &helper_schema, path, NULL, 0, &s);
    unlink(path);
    if (status != STATUS_OK) fail_msg("%s", status_text());
    assert_int_equal(s->steps, 3);
    assert_string_equal(s->path, path);
    assert_int_equal(s->text_length, size);
    assert_memory_equal(s->text, large, size);
    arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_whole_scenario),
        cmocka_unit_test(validate_defaults),
        cmocka_unit_test(validate_derivation),
        cmocka_unit_test(verify_nothing_is_left_to_derive),
        cmocka_unit_test(validate_races),
        cmocka_unit_test(validate_layers),
        cmocka_unit_test(validate_head_options),
        cmocka_unit_test(validate_arm_names),
        cmocka_unit_test(validate_name_from_path),
        cmocka_unit_test(validate_open_reads_a_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

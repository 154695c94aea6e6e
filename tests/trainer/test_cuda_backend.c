/* SPDX-License-Identifier: Apache-2.0
 * labels: repro
 * Whole trainings through a backend in a module (kernels/cuda/ run by the shim): every digest must
 * be the CPU's, for DPO and SFT, each family, f32, bf16 and f64, dropout, masters and tied tensors,
 * and every kind of optimizer, one of a module of optimizers among them.
 * What a module says of itself and refuses is tested in test_cuda_site.c. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "experiment/backend_record.h"
#include "kernels/backend_abi.h"
#include "model/backends.h"
#include "model/generate.h"
#include "tests/kernels/helper_variables.h"
#include "tests/trainer/helper_train.h"
#include "trainer/run_tensors.h"
#include "trainer/watch_run.h"

#define SHIM TWINSTEP_BACKENDS "/twinstep_backend_shim.so"
#define UPDATES 3

/* Returns the module under test; on a device TWINSTEP_BACKEND is "auto" (label gpu). */
static const char *module_path(void) {
    const char *const path = getenv("TWINSTEP_BACKEND");
    return path == NULL ? SHIM : path;
}

static const struct {
    const char *name, *body;
} trainings[] = {
    {"dpo olmo2", "task: dpo, data: {max_len: 80}, batch: {size: 2, micro: 1}, model: {family: "
                  "olmo2, layers: 2, "
                  "hidden: 24, heads: 2, kv_heads: 1, mlp: 40}, clip: {max_norm: 0.5}, "
                  "optimizer: {lr: 1e-3, weight_decay: 0.1}"},
    {"sft llama, tied, PyTorch's masks of a small GPU",
     "task: sft, data: {max_len: 32}, batch: {size: 4, micro: 2}, model: {family: llama, layers: "
     "2, hidden: 32, heads: 4, kv_heads: 2, mlp: 48, tied: true}, clip: {max_norm: 0.5}, "
     "optimizer: {lr: 1e-3}, dropout: {attention: 0.1, residual: 0.2}, "
     "rng: {kind: torch, sms: 2, threads_per_sm: 512}"},
    {"sft qwen3, bf16 with masters, dropout",
     "task: sft, data: {max_len: 48}, batch: {size: 2, micro: 1}, model: {family: qwen3, layers: "
     "1, hidden: 24, heads: 2, kv_heads: 1, mlp: 40}, optimizer: {lr: 1e-3}, numerics: {param: "
     "bf16, compute: bf16, master: f32}, "
     "dropout: {embedding: 0.1, attention: 0.2, residual: 0.1}"},
    {"dpo qwen2, biases, live reference, packed, f64",
     "task: dpo, data: {max_len: 80}, batch: {size: 2, micro: 2, padding: packed, layout: "
     "concatenated}, "
     "dpo: {reference: live}, model: {family: qwen2, layers: 1, hidden: 24, heads: 2, kv_heads: 1, "
     "mlp: 40}, optimizer: {lr: 1e-3}, numerics: {param: f64, compute: f64}"},
    {"sft llama, weights in e4m3, gradients in e5m2",
     "task: sft, data: {max_len: 32}, batch: {size: 1}, model: {family: llama, layers: 1, hidden: "
     "8, heads: 2, mlp: 8}, init: {std: 0.5}, optimizer: {lr: 0.1}, clip: {max_norm: 0.5}, "
     "numerics: {param: e4m3, gradient: e5m2, compute: bf16}"},
};

static void train(const struct config *config, const struct dataset *dataset, uint64_t updates,
                  struct helper_outcome *out) {
    const struct run_options options = {
        .tensors = 1, .phases = 1, .poison = 1, .readback = 1, .steps = updates};
    struct run run;
    helper_run_open(config, dataset, &options, &run);
    helper_outcome_of(&run, updates, out);
    run_close(&run);
}

/* The backend steps some of these optimizers itself; others step on the host, in the backend's
 * memory. */
static const char *const optimizers[] = {
    "optimizer: {name: sgd, lr: 0.1, momentum: 0.9, nesterov: true, variant: torch-cpu}",
    "optimizer: {name: lion, lr: 1e-3, weight_decay: 0.1}, numerics: {param: bf16, rounding: "
    "stochastic}, clip: {max_norm: 0.1, norm: norms, dtype: gradient}",
    "optimizer: {name: adam, lr: 1e-2, variant: torch-fused, amsgrad: true, weight_decay: 0.1}, "
    "numerics: {param: bf16, master: f32, optimizer: bf16}, clip: {max_norm: 0.1, norm: flat, "
    "dtype: f32}",
    "optimizer: {name: adamw, lr: 1e-2, variant: olmo-skip-step, weight_decay: 0.1}, numerics: "
    "{optimizer: f64}",
    "optimizer: {name: adafactor, lr: 1e-2}, loop: {update: [optimize, log, count, schedule, "
    "zero]}",
};

/* Steps on the host, by the module of tests/plugins/template_optim.c, which a checkout ships for
 * authors. It is not packed for a device. */
static const char *const of_a_module =
    "optimizer: {name: signum, module: " TWINSTEP_PLUGINS "/signum.so, lr: 1e-2, weight_decay: "
    "0.1}, numerics: {param: bf16, master: f32}, clip: {max_norm: 0.1}";

static void small_config(const char *body, struct config *out) {
    helper_config(UPDATES, out,
                  "task: sft, batch: {size: 2}, model: {layers: 1, hidden: 8, heads: 2, mlp: 8, "
                  "vocab: 19}, init: {std: 0.3}, %s",
                  body);
}

static void on_the_shim(struct config *config) {
    config->numerics.backend = BACKEND_CUDA;
    snprintf(config->numerics.backend_module, sizeof config->numerics.backend_module, "%s",
             module_path());
}

static void corroborate_trainings(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(trainings); i++) {
        struct arena arena = ARENA_EMPTY;
        struct config config;
        struct dataset dataset;
        struct helper_outcome cpu, shim;
        helper_config(UPDATES, &config, "%s", trainings[i].body);
        helper_data_open(&config, &arena, &dataset);
        train(&config, &dataset, UPDATES, &cpu);
        on_the_shim(&config);
        train(&config, &dataset, UPDATES, &shim);
        const char *const gap = helper_outcome_gap(&cpu, &shim);
        if (gap != NULL) fail_msg("%s: %s differ", trainings[i].name, gap);
        arena_close(&arena);
    }
}

/* Both states must be equal, and each must go on in the other's memory. */
static void assert_states_move(struct run run[2], const char *body) {
    int equal = 0;
    assert_true(run_same_layout(&run[0], &run[1]));
    assert_int_equal(run_equal(&run[0], &run[1], &equal), STATUS_OK);
    if (!equal) fail_msg("%s: other states", body);
    for (int from = 0; from < 2; from++) {
        struct run_kept kept;
        assert_int_equal(run_kept_open(&run[from], &kept), STATUS_OK);
        assert_int_equal(run_keep(&run[from], &kept), STATUS_OK);
        (void)helper_step(&run[!from]);
        assert_int_equal(run_equal(&run[0], &run[1], &equal), STATUS_OK);
        assert_false(equal);
        assert_int_equal(run_take_back(&run[!from], &kept), STATUS_OK);
        run_kept_close(&kept);
        assert_int_equal(run_equal(&run[0], &run[1], &equal), STATUS_OK);
        if (!equal) fail_msg("%s: a state that was put back is another one", body);
    }
}

/* The LR must also be read back from what the backend wrote. A run without records has updates
 * between which nobody waits. Only directions of a class that are no rule of one element
 * take memory. */
static void corroborate_optimizer(const char *body, int ruled, int recorded) {
    const struct run_options options = {
        .tensors = recorded, .readback = recorded, .steps = UPDATES + 1};
    struct arena arena = ARENA_EMPTY;
    struct config config;
    struct dataset dataset;
    struct run run[2];
    struct helper_outcome outcome[2];
    small_config(body, &config);
    helper_ids_open(&config, 5, 6, 16, &arena, &dataset);
    for (int who = 0; who < 2; who++) {
        if (who == 1) on_the_shim(&config);
        helper_run_open(&config, &dataset, &options, &run[who]);
        assert_int_equal(run[who].direction != NULL, recorded && !ruled);
        for (int update = 0; update < UPDATES && !recorded; update++)
            (void)helper_step(&run[who]);
        if (recorded) helper_outcome_of(&run[who], UPDATES, &outcome[who]);
    }
    const char *const gap = recorded ? helper_outcome_gap(&outcome[0], &outcome[1]) : NULL;
    if (gap != NULL) fail_msg("%s: %s differ", body, gap);
    assert_states_move(run, body);
    for (int who = 0; who < 2; who++)
        run_close(&run[who]);
    arena_close(&arena);
}

static void corroborate_optimizers(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(optimizers); i++)
        for (int recorded = 0; recorded < 2; recorded++)
            corroborate_optimizer(optimizers[i], strstr(optimizers[i], "adafactor") == NULL,
                                  recorded);
}

static void corroborate_optimizer_of_a_module(void **state) {
    (void)state;
    for (int recorded = 0; recorded < 2; recorded++)
        corroborate_optimizer(of_a_module, 0, recorded);
}

#if defined(TWINSTEP_WATCHED)
static void watched_training(struct config *config, struct dataset *dataset) {
    struct helper_outcome cpu, watched;
    train(config, dataset, 1, &cpu);
    config->numerics.backend = BACKEND_CUDA;
    snprintf(config->numerics.backend_module, sizeof config->numerics.backend_module, "%s",
             TWINSTEP_BACKENDS "/twinstep_backend_watch.so");
    train(config, dataset, 1, &watched);
    const char *const gap = helper_outcome_gap(&cpu, &watched);
    if (gap != NULL) fail_msg("%s differ", gap);
}
#endif

/* Kernels may touch only what the run took from the backend, and no two threads may touch one place
 * without a barrier between them. That must also hold where a norm's blocks lie across tensors
 * (norm: flat). */
static void verify_watched_training(void **state) {
    (void)state;
#if defined(TWINSTEP_WATCHED)
    struct arena arena = ARENA_EMPTY;
    struct config config;
    struct dataset dataset;
    for (size_t i = 0; i < COUNT_OF(trainings); i += 2) {
        helper_config(1, &config, "%s", trainings[i].body);
        helper_data_open(&config, &arena, &dataset);
        watched_training(&config, &dataset);
        arena_close(&arena);
    }
    small_config(optimizers[2], &config);
    assert_int_equal(config.clip.norm, CLIP_FLAT);
    helper_ids_open(&config, 5, 6, 16, &arena, &dataset);
    watched_training(&config, &dataset);
    arena_close(&arena);
#else
    skip();
#endif
}

/* The backend must really have run: its memory holds the run, and its table is the model's. */
static void verify_backend_is_used(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    const struct run_options options = {.steps = 1};
    struct config config;
    struct dataset dataset;
    struct run run;
    helper_config(1, &config, "%s", trainings[0].body);
    helper_data_open(&config, &arena, &dataset);
    on_the_shim(&config);
    helper_run_open(&config, &dataset, &options, &run);
    assert_non_null(run.backend);
    assert_ptr_equal(run.arena.source, &run.backend->memory);
    assert_ptr_equal(run.hidden.source, &run.backend->hidden);
    assert_true(run.hidden.total > run.layout.bytes - run.layout.tensors);
    if (getenv("TWINSTEP_BACKEND") == NULL)
        assert_string_equal(run.model.ops->name, "f32_f32_shim");
    assert_ptr_not_equal(run.host, run.model.ops);
    const struct record *record = NULL;
    assert_int_equal(run_step(&run, &record), STATUS_OK);
    assert_ptr_equal(run.digests.backend, run.backend);
    assert_int_not_equal(run.digests.leaves[0].lane[0].first, 0); /* it made the leaf hashes */
    run_close(&run);
    arena_close(&arena);
}

/* ---- modes fast and deterministic, with the library's scalar twin ---- */

static void train_with(const char *numerics, struct helper_outcome *out) {
    struct arena arena = ARENA_EMPTY;
    struct config config;
    struct dataset dataset;
    helper_config(1, &config,
                  "task: sft, data: {max_len: 32}, batch: {size: 2, micro: 2, pad: 2}, model: "
                  "{family: llama, layers: 1, hidden: 64, heads: 2, mlp: 70}, optimizer: {lr: "
                  "1e-3}, numerics: {backend: cuda, backend_module: " SHIM "%s}",
                  numerics);
    helper_data_open(&config, &arena, &dataset);
    train(&config, &dataset, 1, out);
    arena_close(&arena);
}

/* Each switch alone is compared with mode deterministic, which must repeat itself. Switches that
 * leave something free must change bits of the library's twin, and NaN in what was not written must
 * change none. Where no library multiplies, the bits must be those of invariant. */
static void verify_determinism(void **state) {
    (void)state;
    static const struct {
        const char *numerics;
        int of; /* 0: invariant; 1: deterministic; 2: deterministic in bf16; 3: none of them */
    } cases[] = {
        {", mode: deterministic, library: none", 0},
        {", mode: deterministic, library: none, determinism: {fill: none}", 0},
        {", determinism: {fill: nan}", 0},
        {", mode: deterministic", 1},
        {", mode: deterministic, determinism: {fill: none}", 1},
        {", mode: deterministic, determinism: {fill: nan}", 1},
        {", determinism: {fill: torch}", 0},
        {", mode: fast, determinism: {workspace: pinned, order: fixed, atomics: off}", 1},
        {", mode: deterministic, determinism: {workspace: default}", 3},
        {", mode: deterministic, determinism: {order: free}", 3},
        {", mode: deterministic, determinism: {split_k: off}", 3},
        {", mode: deterministic, determinism: {atomics: on}", 3},
        {", mode: fast, library: none", 3},
        {", mode: fast", 3},
        {", compute: bf16, mode: deterministic", 2}, /* attention on tensor cores */
        {", compute: bf16, mode: deterministic, library: none", 3},
        {", compute: bf16, mode: fast", 3},
    };
    static const char *const names[] = {"invariant", "deterministic", "deterministic in bf16"};
    struct helper_outcome base[3], outcome;
    train_with("", &base[0]);
    train_with(", mode: deterministic", &base[1]);
    train_with(", compute: bf16, mode: deterministic", &base[2]);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        train_with(cases[i].numerics, &outcome);
        for (int k = 0; k < 3; k++)
            if ((helper_outcome_gap(&base[k], &outcome) == NULL) != (cases[i].of == k))
                fail_msg("{%s}: %s the bits of %s", cases[i].numerics + 2,
                         cases[i].of == k ? "not" : "has", names[k]);
    }
}

/* Generates text with a cache. The tokens and log-probs must be the CPU's, made from memory that
 * the backend sees and from no other (the watched module refuses what did not come from it). */
static void generate_on(struct config *config, const char *module, uint32_t token[2 * 3],
                        double logp[2 * 3]) {
    static const uint32_t ids[] = {7, 3, 11};
    static const struct generate_prompt prompts[] = {{ids, 3}, {ids + 1, 2}};
    static const struct generate_limits limits = {2, 3, 6};
    static const struct generate_options options = {
        .tokens = 3, .temperature = 0.7, .top_p = 0.9, .seed = 5};
    const struct run_options run_options = {.steps = 1};
    struct arena arena = ARENA_EMPTY, seen = ARENA_EMPTY;
    struct dataset dataset;
    struct run run;
    struct generator *generator;
    if (module != NULL) {
        config->numerics.backend = BACKEND_CUDA;
        snprintf(config->numerics.backend_module, sizeof config->numerics.backend_module, "%s",
                 module);
    }
    helper_data_open(config, &arena, &dataset);
    helper_run_open(config, &dataset, &run_options, &run);
    const struct model_weights weights = {run.weights};
    backends_memory(run_backend(&run), &seen, NULL);
    assert_int_equal(arena_take(&arena, 1, sizeof *generator, "generator", &generator), STATUS_OK);
    if (module != NULL) {
        assert_int_equal(generator_open(config, &run.table, &limits, &arena, generator),
                         STATUS_INTERNAL);
    }
    if (generator_open(config, &run.table, &limits, &seen, generator) != STATUS_OK ||
        generate(generator, &weights, prompts, 2, &options, token, logp) != STATUS_OK)
        fail_msg("%s", status_text());
    arena_close(&seen);
    run_close(&run);
    arena_close(&arena);
}

static void corroborate_generation(void **state) {
    (void)state;
    static const char *const modules[] = {
        SHIM,
#if defined(TWINSTEP_WATCHED)
        TWINSTEP_BACKENDS "/twinstep_backend_watch.so"
#endif
    };
    for (size_t i = 0; i < COUNT_OF(trainings); i += 3) {
        uint32_t token[2][6];
        double logp[2][6];
        struct config config;
        helper_config(1, &config, "%s", trainings[i].body);
        generate_on(&config, NULL, token[0], logp[0]);
        for (size_t m = 0; m < COUNT_OF(modules); m++) {
            generate_on(&config, modules[m], token[1], logp[1]);
            assert_memory_equal(token[0], token[1], sizeof token[0]);
            assert_memory_equal(logp[0], logp[1], sizeof logp[0]);
        }
    }
}

/* The tests that hold on every module, for the one that TWINSTEP_BACKEND names. */
static int run_on_a_device(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(corroborate_trainings),
                                       cmocka_unit_test(corroborate_optimizers),
                                       cmocka_unit_test(verify_backend_is_used)};
    struct backend_site site;
    if (backends_site(module_path(), &site) == STATUS_UNSUPPORTED) {
        fprintf(stderr, "skipped: %s\n", status_text());
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Counts the copies that a model asks its backend for. */
static const struct backend *counted;
static struct { uint32_t pulls, pushes, views; } copies;

static enum status count_pull(void *to, const void *from, size_t bytes) {
    copies.pulls++;
    return counted->pull(to, from, bytes);
}

static enum status count_push(void *to, const void *from, size_t bytes) {
    copies.pushes++;
    return counted->push(to, from, bytes);
}

static void count_view(void *context, const struct watch_view *view) {
    copies.views += view->tensor.label == LABEL_GRADIENT;
    (void)context;
}

static int is_gradient(void *context, const struct watch_view *view) {
    (void)context;
    return view->tensor.label == LABEL_GRADIENT;
}

/* A watch costs two copies of each view that it wants, or one where it only reads; none of it moves
 * a bit. */
static void verify_watch_copies(void **state) {
    struct watch watches[] = {{.see = count_view, .wants = is_gradient},
                              {.see = count_view, .wants = is_gradient, .only_reads = 1},
                              {.see = count_view, .only_reads = 1}};
    struct helper_outcome without;
    uint32_t pulls = 0, pushes = 0;
    (void)state;
    for (size_t i = 0; i <= COUNT_OF(watches); i++) {
        struct arena arena = ARENA_EMPTY;
        struct config config;
        struct dataset dataset;
        struct run run;
        struct helper_outcome outcome;
        small_config("optimizer: {lr: 1e-3}", &config);
        on_the_shim(&config);
        helper_ids_open(&config, 5, 6, 16, &arena, &dataset);
        const struct run_options options = {.tensors = 1, .phases = 1, .steps = 1};
        helper_run_open(&config, &dataset, &options, &run);
        counted = run.model.backend;
        struct backend counting = *counted;
        counting.pull = count_pull;
        counting.push = count_push;
        memset(&copies, 0, sizeof copies);
        run.model.backend = &counting;
        if (i > 0) watch_hang(&run, &watches[i - 1]);
        helper_outcome_of(&run, 1, &outcome);
        run.model.backend = counted;
        const uint32_t tensors = run.owner_count;
        run_close(&run);
        arena_close(&arena);
        if (i == 0) {
            without = outcome;
            pulls = copies.pulls;
            pushes = copies.pushes;
            continue;
        }
        assert_int_equal(watches[i - 1].status, STATUS_OK);
        assert_null(helper_outcome_gap(&without, &outcome));
        assert_int_equal(copies.views, tensors);
        assert_int_equal(copies.pushes - pushes, i == 1 ? tensors : 0);
        if (i < 3)
            assert_int_equal(copies.pulls - pulls, tensors);
        else
            assert_true(copies.pulls - pulls > 4 * tensors);
    }
}

int main(void) {
    helper_unset_variables();
    if (getenv("TWINSTEP_BACKEND") != NULL) return run_on_a_device();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_determinism),
        cmocka_unit_test(corroborate_trainings),
        cmocka_unit_test(corroborate_optimizers),
        cmocka_unit_test(verify_watched_training),
        cmocka_unit_test(verify_backend_is_used),
        cmocka_unit_test(corroborate_generation),
        cmocka_unit_test(verify_watch_copies),
        cmocka_unit_test(corroborate_optimizer_of_a_module),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

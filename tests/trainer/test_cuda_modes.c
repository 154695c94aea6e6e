/* SPDX-License-Identifier: Apache-2.0
 * labels: repro
 * Whole trainings in modes shaped, shuffled and atomic through a backend in a module (kernels/cuda/
 * run by the shim). Every digest of shaped and shuffled must be the CPU's; atomic must differ from
 * one order of threads to the next and stay near invariant; and none may touch memory that is not
 * the run's. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "kernels/backend_module.h"
#include "tests/kernels/helper_variables.h"
#include "tests/trainer/helper_train.h"

#define SHIM TWINSTEP_BACKENDS "/twinstep_backend_shim.so"
#define WATCH TWINSTEP_BACKENDS "/twinstep_backend_watch.so"
#define KINDS "[forward, weight, dq, embedding, norm, loss]"

/* The heads, widths and lengths are chosen to end inside chunks and tiles. */
#define COMMON                                                                                     \
    "data: {max_len: 24}, batch: {size: 2, micro: 1}, clip: {max_norm: 0.5}, "                     \
    "optimizer: {lr: 1e-3}, init: {std: 0.3}, "
#define DPO                                                                                        \
    COMMON "task: dpo, model: {family: olmo2, layers: 1, hidden: 24, heads: 2, kv_heads: 1, "      \
           "mlp: 70, vocab: 67}"
#define SFT                                                                                        \
    COMMON "task: sft, model: {family: qwen2, layers: 1, hidden: 16, heads: 2, kv_heads: 1, "      \
           "mlp: 40, vocab: 19, tied: true}"

static const struct {
    const char *name, *body;
} trainings[] = {
    {"shaped", DPO ", numerics: {mode: shaped}, shaped: {table: \"*: 3\"}"},
    {"shuffled",
     DPO ", numerics: {mode: shuffled, order_seed: 5}, shuffle: {kinds: " KINDS ", chunk: 7}"},
    {"shuffled, tied, biases, bf16",
     SFT ", numerics: {mode: shuffled, order_seed: 6, param: bf16, compute: "
         "bf16, master: f32}, "
         "shuffle: {kinds: " KINDS ", chunk: 3}"},
    {"shaped, tied, biases", SFT ", numerics: {mode: shaped}, shaped: {table: "
                                 "\"weight k>=20: 4; attention k>=8: 2; dq "
                                 "k>=8: 3\"}"},
    {"shuffled, default kinds", SFT ", numerics: {mode: shuffled, order_seed: 7}"},
};

#define ATOMIC SFT ", numerics: {mode: atomic}, atomic: {kinds: " KINDS ", chunk: 3}"

/* Returns the module under test; on a device TWINSTEP_BACKEND is "auto" (label gpu). */
static const char *module_path(void) {
    const char *const path = getenv("TWINSTEP_BACKEND");
    return path == NULL ? SHIM : path;
}

static void train(const char *body, const char *module, uint64_t updates,
                  struct helper_outcome *out) {
    const struct run_options options = {.tensors = 1, .phases = 1, .poison = 1, .steps = updates};
    struct arena arena = ARENA_EMPTY;
    struct config config;
    struct dataset dataset;
    struct run run;
    helper_config(updates, &config, "%s", body);
    if (module != NULL) {
        config.numerics.backend = BACKEND_CUDA;
        snprintf(config.numerics.backend_module, sizeof config.numerics.backend_module, "%s",
                 module);
    }
    helper_ids_open(&config, 7, 8, 24, &arena, &dataset);
    helper_run_open(&config, &dataset, &options, &run);
    helper_outcome_of(&run, updates, out);
    run_close(&run);
    arena_close(&arena);
}

static void corroborate_trainings(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(trainings); i++) {
        struct helper_outcome cpu, shim;
        const uint64_t updates = i == 1 ? 2 : 1; /* orders are drawn anew in each */
        train(trainings[i].body, NULL, updates, &cpu);
        train(trainings[i].body, module_path(), updates, &shim);
        const char *const gap = helper_outcome_gap(&cpu, &shim);
        if (gap != NULL) fail_msg("%s: %s differ", trainings[i].name, gap);
    }
}

/* Returns the loss and the gradient norm of the first update. */
static void first_update(const char *body, const char *module, double out[2]) {
    const struct run_options options = {.poison = 1, .steps = 1};
    struct arena arena = ARENA_EMPTY;
    struct config config;
    struct dataset dataset;
    struct run run;
    helper_config(1, &config, "%s", body);
    if (module != NULL) {
        config.numerics.backend = BACKEND_CUDA;
        snprintf(config.numerics.backend_module, sizeof config.numerics.backend_module, "%s",
                 module);
    }
    helper_ids_open(&config, 7, 8, 24, &arena, &dataset);
    helper_run_open(&config, &dataset, &options, &run);
    const struct record *const record = helper_step(&run);
    out[0] = record->reals[REAL_LOSS];
    out[1] = record->reals[REAL_GRAD_NORM];
    run_close(&run);
    arena_close(&arena);
}

/* The module's threads go in another order each time it is opened, so the results must differ. */
static void verify_atomic(void **state) {
    (void)state;
    struct helper_outcome one, other;
    double plain[2], raced[2];
    train(ATOMIC, module_path(), 1, &one);
    train(ATOMIC, module_path(), 1, &other);
    const char *const gap = helper_outcome_gap(&one, &other);
    if (gap == NULL && getenv("TWINSTEP_BACKEND") == NULL)
        fail_msg("two orders of threads, one outcome");
    first_update(SFT, NULL, plain);
    first_update(ATOMIC, module_path(), raced);
    for (size_t i = 0; i < 2; i++)
        /* f32 sums in another order; a chunk that is lost or added twice would show by far more */
        if (!(fabs(raced[i] - plain[i]) < 1e-5 * fabs(plain[i])))
            fail_msg("%s: %.9g, and %.9g in mode invariant", i == 0 ? "loss" : "gradient norm",
                     raced[i], plain[i]);
}

/* Sums of a kind on which threads do not race must keep the bits of invariant. */
static void verify_atomic_kinds(void **state) {
    (void)state;
    struct helper_outcome plain, raced;
    train(SFT, NULL, 1, &plain);
    train(SFT ", numerics: {mode: atomic}, atomic: {kinds: [weight, embedding], "
              "chunk: 3}",
          module_path(), 1, &raced);
    assert_memory_equal(&plain.forward, &raced.forward, sizeof plain.forward);
    assert_string_equal(helper_outcome_gap(&plain, &raced), "gradients");
}

/* Asks nothing of a device, and its module stays where tests were built. */
static void verify_watched(void **state) {
    (void)state;
    if (getenv("TWINSTEP_BACKEND") != NULL) skip();
#if defined(TWINSTEP_WATCHED)
    struct helper_outcome cpu, watched;
    train(trainings[2].body, NULL, 1, &cpu);
    train(trainings[2].body, WATCH, 1, &watched);
    assert_null(helper_outcome_gap(&cpu, &watched));
    train(ATOMIC, WATCH, 1, &watched);
#else
    skip();
#endif
}

int main(void) {
    helper_unset_variables();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_trainings),
        cmocka_unit_test(verify_atomic),
        cmocka_unit_test(verify_atomic_kinds),
        cmocka_unit_test(verify_watched),
    };
    const struct backend *backend;
    if (backend_module_open(module_path(), &backend) == STATUS_UNSUPPORTED) {
        fprintf(stderr, "skipped: %s\n", status_text());
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}

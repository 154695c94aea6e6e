/* SPDX-License-Identifier: Apache-2.0
 * labels: unit memory threads
 * Trainings whose threads race (mode atomic): a kind of sum must act alone, one thread must repeat
 * itself, and several threads must differ at least once. Nobody can say which thread comes first,
 * so no single repeat is expected to be equal or to be different. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/trainer/helper_train.h"

#define COMMON                                                                                     \
    "task: dpo, data: {max_len: 48}, init: {std: 0.3}, optimizer: {lr: 1e-3}, "                    \
    "batch: {size: 4, micro: 2}, clip: {max_norm: 0.01}, "                                         \
    "model: {layers: 2, hidden: 32, heads: 4, kv_heads: 2, mlp: 40, vocab: 19}, "

enum { UPDATES = 2, TRIES = 50 };

struct outcome {
    struct digest root, state; /* behind the last update; the root counts the losses in, too */
    double norm[UPDATES], loss[UPDATES];
};

static struct outcome trained(const char *words) {
    struct arena arena = ARENA_EMPTY;
    struct config config;
    struct dataset dataset;
    struct run run;
    struct outcome out;
    helper_config(UPDATES, &config, COMMON "%s", words);
    helper_ids_open(&config, 7, 16, 48, &arena, &dataset);
    const struct run_options options = {.steps = UPDATES, .poison = 1};
    helper_run_open(&config, &dataset, &options, &run);
    for (size_t k = 0; k < UPDATES; k++) {
        const struct record *record = helper_step(&run);
        out.norm[k] = record->reals[REAL_GRAD_NORM];
        out.loss[k] = record->reals[REAL_LOSS];
        memcpy(out.root.byte, record->digests[DIGEST_ROOT], DIGEST_BYTES);
        memcpy(out.state.byte, record->digests[DIGEST_STATE], DIGEST_BYTES);
    }
    run_close(&run);
    arena_close(&arena);
    return out;
}

static int same(const struct outcome *a, const struct outcome *b) {
    return memcmp(&a->root, &b->root, sizeof a->root) == 0;
}

static struct outcome atomic(unsigned threads, const char *kinds) {
    char words[128];
    snprintf(words, sizeof words, "numerics: {mode: atomic, threads: %u}, atomic: {kinds: [%s]}",
             threads, kinds);
    return trained(words);
}

static const char *const kinds[] = {"forward", "weight", "dq", "embedding", "norm"};

/* One thread adds chunks in ascending order. Their bits differ from a chain's, but are the same
 * every time. */
static void verify_kinds_alone(void **state) {
    (void)state;
    const struct outcome own = trained("numerics: {mode: invariant}");
    const struct outcome none = atomic(4, "");
    struct outcome alone[COUNT_OF(kinds)];
    assert_true(same(&own, &none));
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        alone[i] = atomic(1, kinds[i]);
        const struct outcome again = atomic(1, kinds[i]);
        if (same(&own, &alone[i]) || !same(&alone[i], &again)) fail_msg("%s", kinds[i]);
        for (size_t j = 0; j < i; j++)
            if (same(&alone[j], &alone[i])) fail_msg("%s is %s", kinds[i], kinds[j]);
    }
}

/* The loss on which threads race is printed, not trained on: the weights and the optimizer's state
 * are those of invariant. The root need not be, since the loss is a part of it. */
static void verify_loss_alone(void **state) {
    (void)state;
    const struct outcome own = trained("numerics: {mode: invariant}");
    const struct outcome raced = trained("numerics: {mode: atomic, threads: 4}, "
                                         "atomic: {kinds: [loss], chunk: 1}");
    assert_memory_equal(&own.state, &raced.state, sizeof own.state);
    for (size_t k = 0; k < UPDATES; k++)
        /* a few terms, added in f64 in another order: one rounding each */
        assert_true(fabs(own.loss[k] - raced.loss[k]) <= 8 * 0x1p-53 * fabs(own.loss[k]));
}

/* Whatever races, the result must stay near that of invariant. */
static void verify_near(void **state) {
    (void)state;
    const struct outcome own = trained("numerics: {mode: invariant}");
    const struct outcome raced = atomic(4, "forward, weight, dq, embedding, norm, loss");
    for (size_t k = 0; k < UPDATES; k++)
        /* f32 sums in another order; a chunk that is lost or added twice would show by far more */
        assert_true(fabs(own.norm[k] - raced.norm[k]) < 1e-4 * own.norm[k]);
}

/* The test is skipped where the machine's threads came in the same order in all tries. */
static void verify_races(void **state) {
    (void)state;
    const struct outcome first = atomic(4, "forward, weight, dq, embedding, norm, loss");
    for (int i = 0; i < TRIES; i++) {
        const struct outcome next = atomic(4, "forward, weight, dq, embedding, norm, loss");
        if (!same(&first, &next)) return;
    }
    skip();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_kinds_alone),
        cmocka_unit_test(verify_loss_alone),
        cmocka_unit_test(verify_near),
        cmocka_unit_test(verify_races),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

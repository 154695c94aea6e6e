/* SPDX-License-Identifier: Apache-2.0
 * labels: unit memory
 * Factors and hybrids: known differences, and over random pairs of configurations the laws on which
 * attribution by swapping rests. The texts of config_text must be equal exactly where
 * configurations are. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/base/helper_size.h"
#include "tests/scenarios/helper_scenario.h"

#define SEED 20250311
#define PAIRS 30
#define ATTEMPTS 300

/* Writes the factors as "cause: key a -> b; key a -> b\n...". */
static char *factors_text(struct arena *arena, const struct config *a, const struct config *b) {
    struct factor *factors = NULL;
    uint32_t count = 0;
    char *text = NULL;
    assert_int_equal(factors_of(&helper_schema, a, b, arena, &factors, &count), STATUS_OK);
    assert_int_equal(arena_format(arena, &text, "%s", ""), STATUS_OK);
    for (uint32_t i = 0; i < count; i++) {
        assert_true(factors[i].key_count > 0);
        assert_int_equal(arena_format(arena, &text, "%s%s:", text, cause_name(factors[i].cause)),
                         STATUS_OK);
        for (uint32_t k = 0; k < factors[i].key_count; k++)
            assert_int_equal(arena_format(arena, &text, "%s %s %s -> %s;", text, factors[i].keys[k],
                                          factors[i].values[0][k], factors[i].values[1][k]),
                             STATUS_OK);
        assert_int_equal(arena_format(arena, &text, "%s\n", text), STATUS_OK);
    }
    return text;
}

static const struct {
    const char *arms;
    const char *factors;
} known[] = {
    {"{a: {}, b: {}}", ""},
    {"{a: {}, b: {optimizer: {lr: 2e-6}}}", "schedule: optimizer.lr 1e-06 -> 2e-06;\n"},
    {"{a: {}, b: {loop: {update: [count, schedule, optimize]}}}",
     "schedule: loop.update [clip, optimize, log, count, schedule, zero] -> [count, schedule, "
     "optimize];\n"},
    {"{a: {}, b: {seed: 4}}",
     "data-order: data.seed 17 -> 4;\nrng: seed 17 -> 4;\ninit: init.seed 17 -> 4;\n"},
    {"{a: {}, b: {numerics: {compute: bf16}}}",
     "dtype: numerics.compute f32 -> bf16;\nreference: dpo.reference_compute f32 -> bf16;\n"},
    {"{a: {numerics: {mode: shuffled, order_seed: 1}}, b: {numerics: {mode: shuffled}}}",
     "nondeterminism: numerics.order_seed 1 -> free;\n"},
    {"{a: {numerics: {mode: shuffled}, shuffle: {kinds: [norm, dq]}}, "
     "b: {numerics: {mode: shuffled}, shuffle: {kinds: [dq, norm]}}}",
     ""},
    {"{a: {optimizer: {beta1: 0.5}}, b: {optimizer: {beta2: 0.5}, clip: {max_norm: 0}}}",
     "optimizer: optimizer.beta1 0.5 -> 0.9; optimizer.beta2 0.999 -> 0.5; clip.max_norm 1 -> "
     "0;\n"},
    {"{a: {}, b: {optimizer: {name: sgd, momentum: 0.9}}}",
     "optimizer: optimizer.name adamw -> sgd; optimizer.beta1 0.9 -> (none); optimizer.beta2 0.999 "
     "-> (none); optimizer.amsgrad false -> (none); optimizer.variant torch -> (none); "
     "optimizer.momentum (none) -> 0.9; optimizer.nesterov (none) -> false;\n"},
    /* schedule.every belongs to data-order, but the choice of its class does not */
    {"{a: {}, b: {schedule: {name: steps}}}",
     "schedule: schedule.name linear -> steps; schedule.every (none) -> 10;\n"},
    /* a key that both classes have is compared */
    {"{a: {schedule: {minimum: 0.5}}, b: {schedule: {name: steps}}}",
     "schedule: schedule.name linear -> steps; schedule.minimum 0.5 -> 0; schedule.every (none) -> "
     "10;\n"},
    {"{a: {schedule: {name: steps}}, b: {schedule: {name: steps, every: 3}}}",
     "data-order: schedule.every 10 -> 3;\n"},
    /* numbers behind a kind of error, and what is restored, which one arm alone reads */
    {"{a: {resume: {after: 4}}, b: {resume: {after: 4, wrong: [decay-late], weight_decay: 0.1}}}",
     "resume: resume.wrong [] -> [decay-late]; resume.weight_decay (none) -> 0.1;\n"},
    {"{a: {resume: {after: 4, wrong: [shards-by-index], ranks: 2}}, b: {resume: {after: 4}}}",
     "resume: resume.wrong [shards-by-index] -> []; resume.ranks 2 -> (none);\n"},
    {"{a: {}, b: {resume: {after: 4, restores: [rng]}}}",
     "resume: resume.after 0 -> 4; resume.restores (none) -> [rng];\n"},
    {"{a: {resume: {after: 4, wrong: [epoch-shifted]}}, b: {}}",
     "resume: resume.after 4 -> 0; resume.wrong [epoch-shifted] -> (none);\n"},
    {"{a: {}, b: {resume: {after: 4}}}", "resume: resume.after 0 -> 4;\n"},
};

static void validate_known_factors(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        struct arena arena = ARENA_EMPTY;
        char *text = NULL;
        assert_int_equal(arena_format(&arena, &text, "twinstep: 1\narms: %s\n", known[i].arms),
                         STATUS_OK);
        const struct scenario *s = helper_parse(&arena, text, NULL);
        assert_string_equal(factors_text(&arena, &s->arms[0].config, &s->arms[1].config),
                            known[i].factors);
        arena_close(&arena);
    }
}

static char *text_of(struct arena *arena, const struct config *config) {
    char *text = NULL;
    assert_int_equal(config_text(&helper_schema, config, arena, &text), STATUS_OK);
    return text;
}

typedef void (*check_pair)(struct helper_random *random, struct arena *arena,
                           const struct scenario *scenario);

static void for_random_pairs(check_pair check) {
    struct helper_random random = {SEED};
    const int wanted = (int)helper_size(PAIRS / 5, PAIRS, PAIRS);
    int pairs = 0;
    for (int attempt = 0; attempt < ATTEMPTS && pairs < wanted; attempt++) {
        struct arena arena = ARENA_EMPTY;
        const struct scenario *scenario = helper_random_scenario(&random, &arena);
        if (scenario != NULL) {
            check(&random, &arena, scenario);
            pairs++;
        }
        arena_close(&arena);
    }
    print_message("# seed %d, %d pairs\n", SEED, pairs);
    assert_int_equal(pairs, wanted);
}

/* Copying every cause of b into a, in a random order, must give b, which is closure. */
static void check_swap_all(struct helper_random *random, struct arena *arena,
                           const struct scenario *scenario) {
    static struct config hybrid;
    int order[CAUSE_COUNT];
    hybrid = scenario->arms[0].config;
    for (int i = 0; i < CAUSE_COUNT; i++)
        order[i] = i;
    for (int i = CAUSE_COUNT - 1; i > 0; i--) {
        int j = (int)helper_draw(random, (uint64_t)i + 1);
        int swap = order[i];
        order[i] = order[j];
        order[j] = swap;
    }
    for (int i = 0; i < CAUSE_COUNT; i++)
        config_swap_cause(&helper_schema, &hybrid, &scenario->arms[1].config, (enum cause)order[i]);
    if (memcmp(&hybrid, &scenario->arms[1].config, sizeof hybrid) != 0)
        fail_msg("left over:\n%s", factors_text(arena, &hybrid, &scenario->arms[1].config));
}

static void verify_swapping_all_causes(void **state) {
    (void)state;
    for_random_pairs(check_swap_all);
}

/* The causes of factors_of must be enough, and each of them must be needed. */
static void check_swap_factors(struct helper_random *random, struct arena *arena,
                               const struct scenario *scenario) {
    static struct config hybrid;
    const struct config *a = &scenario->arms[0].config;
    const struct config *b = &scenario->arms[1].config;
    struct factor *factors = NULL;
    uint32_t count = 0;
    (void)random;
    assert_int_equal(factors_of(&helper_schema, a, b, arena, &factors, &count), STATUS_OK);
    for (uint32_t left_out = 0; left_out <= count; left_out++) {
        hybrid = *a;
        for (uint32_t i = 0; i < count; i++)
            if (i != left_out) config_swap_cause(&helper_schema, &hybrid, b, factors[i].cause);
        assert_int_equal(memcmp(&hybrid, b, sizeof hybrid) == 0, left_out == count);
    }
}

static void verify_factors_are_complete_and_minimal(void **state) {
    (void)state;
    for_random_pairs(check_swap_factors);
}

/* Swapping one cause must leave exactly the others different. */
static void check_swap_one(struct helper_random *random, struct arena *arena,
                           const struct scenario *scenario) {
    static struct config hybrid;
    const struct config *b = &scenario->arms[1].config;
    enum cause cause = (enum cause)helper_draw(random, CAUSE_COUNT);
    struct factor *before = NULL;
    struct factor *after = NULL;
    uint32_t count_before = 0;
    uint32_t count_after = 0;
    hybrid = scenario->arms[0].config;
    assert_int_equal(factors_of(&helper_schema, &hybrid, b, arena, &before, &count_before),
                     STATUS_OK);
    config_swap_cause(&helper_schema, &hybrid, b, cause);
    assert_int_equal(factors_of(&helper_schema, &hybrid, b, arena, &after, &count_after),
                     STATUS_OK);
    uint32_t k = 0;
    for (uint32_t i = 0; i < count_before; i++) {
        if (before[i].cause == cause) continue;
        assert_true(k < count_after);
        assert_int_equal(after[k++].cause, before[i].cause);
    }
    assert_int_equal(k, count_after);
}

static void verify_one_swap_touches_one_cause(void **state) {
    (void)state;
    for_random_pairs(check_swap_one);
}

/* Texts must be equal if and only if the bytes are. */
static void check_text_is_faithful(struct helper_random *random, struct arena *arena,
                                   const struct scenario *scenario) {
    static struct config hybrid;
    const struct config *b = &scenario->arms[1].config;
    hybrid = scenario->arms[0].config;
    for (int i = 0; i < 4; i++) {
        enum cause cause = (enum cause)helper_draw(random, CAUSE_COUNT);
        int same_bytes = memcmp(&hybrid, b, sizeof hybrid) == 0;
        int same_text = strcmp(text_of(arena, &hybrid), text_of(arena, b)) == 0;
        assert_int_equal(same_bytes, same_text);
        config_swap_cause(&helper_schema, &hybrid, b, cause);
    }
}

static void verify_text_is_faithful(void **state) {
    (void)state;
    for_random_pairs(check_text_is_faithful);
}

static size_t options_of(struct arena *arena, const struct config *config, const char *arm,
                         const char **out) {
    char *text = text_of(arena, config);
    size_t count = 0;
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        char *option = NULL;
        char *colon = strstr(line, ": ");
        assert_non_null(colon);
        assert_int_equal(arena_format(arena, &option, "arms.%s.%.*s=%s", arm, (int)(colon - line),
                                      line, colon + 2),
                         STATUS_OK);
        out[count++] = option;
    }
    return count;
}

/* Every line of both texts, given as an option, must give the same configurations again. */
static void check_round_trip(struct helper_random *random, struct arena *arena,
                             const struct scenario *scenario) {
    const char *overrides[400];
    struct scenario *again = NULL;
    (void)random;
    size_t count = options_of(arena, &scenario->arms[0].config, "baseline", overrides);
    count += options_of(arena, &scenario->arms[1].config, "test", overrides + count);
    enum status status = scenario_parse(arena, &helper_schema, "again.yaml", "twinstep: 1", 11,
                                        overrides, count, &again);
    if (status != STATUS_OK) fail_msg("%s", status_text());
    for (int i = 0; i < 2; i++) {
        const struct config *config = &scenario->arms[i].config;
        if (memcmp(&again->arms[i].config, config, sizeof *config) != 0)
            fail_msg("%s", factors_text(arena, config, &again->arms[i].config));
    }
}

static void verify_text_round_trip(void **state) {
    (void)state;
    for_random_pairs(check_round_trip);
}

/* Exchanging the two arms must give the same factors with their values exchanged. */
static void check_symmetry(struct helper_random *random, struct arena *arena,
                           const struct scenario *scenario) {
    const struct config *a = &scenario->arms[0].config;
    const struct config *b = &scenario->arms[1].config;
    struct factor *there = NULL;
    struct factor *back = NULL;
    uint32_t count = 0;
    uint32_t count_back = 0;
    (void)random;
    assert_int_equal(factors_of(&helper_schema, a, b, arena, &there, &count), STATUS_OK);
    assert_int_equal(factors_of(&helper_schema, b, a, arena, &back, &count_back), STATUS_OK);
    assert_int_equal(count, count_back);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(there[i].cause, back[i].cause);
        assert_int_equal(there[i].key_count, back[i].key_count);
    }
}

static void verify_symmetry(void **state) {
    (void)state;
    for_random_pairs(check_symmetry);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_known_factors),
        cmocka_unit_test(verify_swapping_all_causes),
        cmocka_unit_test(verify_factors_are_complete_and_minimal),
        cmocka_unit_test(verify_one_swap_touches_one_cause),
        cmocka_unit_test(verify_text_is_faithful),
        cmocka_unit_test(verify_text_round_trip),
        cmocka_unit_test(verify_symmetry),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

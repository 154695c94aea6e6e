/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What orders of phases mean: numbers of orders and dataflows known from elsewhere, pairs that must
 * agree and pairs that must not, and random orders. Prints the numbers of orders and of
 * dataflows. */
#include "trainer/loop.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/trainer/helper_loop.h"

enum { ORDERS_MAX = 40320 };

struct census {
    struct config config;
    enum phase kept_before, kept_after; /* PHASE_TOTAL: no condition */
    uint32_t orders, legal, flows;
    struct loop_signature seen[ORDERS_MAX];
};

static int compare_signatures(const void *a, const void *b) {
    const struct loop_signature *left = (const struct loop_signature *)a;
    const struct loop_signature *right = (const struct loop_signature *)b;
    for (int i = 0; i < 2; i++)
        if (left->word[i] != right->word[i]) return left->word[i] < right->word[i] ? -1 : 1;
    return 0;
}

static uint32_t place_of(const struct key_list *list, enum phase phase) {
    uint32_t i = 0;
    while (i < list->count && list->item[i] != (uint8_t)phase)
        ++i;
    return i;
}

static void census_visit(struct census *census) {
    const struct key_list *list = &census->config.loop.update;
    census->orders++;
    if (loop_check(&census->config, NULL) != STATUS_OK) return;
    if (census->kept_before != PHASE_TOTAL &&
        place_of(list, census->kept_before) > place_of(list, census->kept_after))
        return;
    assert_true(census->legal < ORDERS_MAX);
    loop_signature_of(&census->config, &census->seen[census->legal++]);
}

/* Visits every permutation of the items from `first` on. */
static void census_permute(struct census *census, uint32_t first) {
    struct key_list *list = &census->config.loop.update;
    if (first == list->count) {
        census_visit(census);
        return;
    }
    for (uint32_t i = first; i < list->count; i++) {
        const uint8_t kept = list->item[first];
        list->item[first] = list->item[i];
        list->item[i] = kept;
        census_permute(census, first + 1);
        list->item[i] = list->item[first];
        list->item[first] = kept;
    }
}

static void census_run(struct census *census, const char *phases) {
    helper_loop_list(phases, &census->config.loop.update);
    census->orders = census->legal = census->flows = 0;
    census_permute(census, 0);
    qsort(census->seen, census->legal, sizeof census->seen[0], compare_signatures);
    for (uint32_t i = 0; i < census->legal; i++)
        census->flows += i == 0 || compare_signatures(&census->seen[i - 1], &census->seen[i]) != 0;
}

static const struct census_case {
    const char *phases;
    enum phase before, after;
    uint32_t orders, legal, flows;
} census_cases[] = {
    /* The five tail phases: log, count and schedule stand in 6 orders, optimize before or after
     * schedule. A prototype that was written independently of this program counted the same 12. */
    {"optimize log count schedule zero", PHASE_OPTIMIZE, PHASE_ZERO, 120, 60, 12},
    /* With zero before optimize too, the gradient that optimize sees doubles the meanings. */
    {"optimize log count schedule zero", PHASE_TOTAL, PHASE_TOTAL, 120, 120, 24},
    /* By hand: acyclic orientations of the conflict graph, two triangles (clip, optimize, zero) and
     * (log, count, schedule) joined by clip-log and optimize-schedule: 6 * 6 * 4 - 2 * 9. */
    {"clip optimize log count schedule zero", PHASE_TOTAL, PHASE_TOTAL, 720, 720, 126},
    /* reduce and unscale change nothing with one rank and no loss scale. */
    {"reduce unscale clip optimize log count schedule zero", PHASE_TOTAL, PHASE_TOTAL, 40320, 40320,
     126},
    {"optimize log", PHASE_TOTAL, PHASE_TOTAL, 2, 2, 1},
};

static struct census census;

static void validate_dataflow_counts(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(census_cases); i++) {
        const struct census_case *c = &census_cases[i];
        helper_loop_standard(&census.config);
        census.kept_before = c->before;
        census.kept_after = c->after;
        census_run(&census, c->phases);
        print_message("%-56s%s %5u orders, %5u legal here, %3u dataflows\n", c->phases,
                      c->before == PHASE_TOTAL ? "        " : " (o < z)", census.orders,
                      census.legal, census.flows);
        assert_int_equal(census.orders, c->orders);
        assert_int_equal(census.legal, c->legal);
        assert_int_equal(census.flows, c->flows);
    }
}

static const struct pair_case {
    const char *update[2];
    const char *micro[2];
    int equal;
} pair_cases[] = {
    {{"clip optimize log count schedule zero", "clip optimize zero log count schedule"}, {0}, 1},
    {{"clip optimize log count schedule zero", "clip log optimize count schedule zero"}, {0}, 1},
    {{"clip optimize log count schedule zero", "clip optimize log count schedule schedule zero"},
     {0},
     1},
    {{"clip optimize log count schedule zero", "zero clip optimize log count schedule"}, {0}, 0},
    {{"clip optimize log count schedule zero", "count clip schedule optimize log zero"}, {0}, 0},
    {{"clip optimize log count schedule zero", "optimize clip log count schedule zero"}, {0}, 0},
    {{"clip optimize log count schedule zero", "clip clip optimize log count schedule zero"},
     {0},
     0},
    {{"clip optimize log count schedule zero", "optimize log count schedule zero"}, {0}, 0},
    {{"clip optimize log count schedule zero", "clip optimize log count count schedule zero"},
     {0},
     0},
    {{"clip optimize log count schedule zero", "clip optimize log schedule count zero"}, {0}, 0},
    {{"clip optimize log count schedule zero", "clip optimize log count schedule"}, {0}, 0},
    /* Nothing accumulates before the first backward, so where zero stands in micro decides. */
    {{"optimize log", "optimize log"},
     {"zero fetch forward backward", "fetch zero forward backward"},
     1},
    {{"optimize log", "optimize log"},
     {"fetch forward zero backward", "zero fetch forward backward"},
     1},
    {{"optimize log", "optimize log zero"}, {"zero fetch forward backward", NULL}, 0},
    {{"optimize log zero", "optimize log"},
     {"fetch forward backward", "fetch forward backward zero"},
     0},
    {{"optimize log", "log"}, {"fetch forward backward", "fetch forward backward optimize"}, 0},
    /* A clip inside micro closes the gradient, which rounds it: not the same as none. */
    {{"clip optimize log zero", "clip optimize log zero"},
     {"fetch forward backward clip", "fetch forward backward"},
     0},
    {{"clip optimize log zero", "clip optimize log zero"},
     {"fetch forward backward reduce", "fetch forward backward"},
     1},
};

static void validate_pairs(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(pair_cases); i++) {
        const struct pair_case *c = &pair_cases[i];
        struct config arms[2];
        for (int arm = 0; arm < 2; arm++) {
            helper_loop_orders(c->micro[arm], c->update[arm], &arms[arm]);
            assert_int_equal(loop_check(&arms[arm], NULL), STATUS_OK);
        }
        if (loop_equal(&arms[0], &arms[1]) != c->equal)
            fail_msg("case %zu: expected %s dataflow", i, c->equal ? "equal" : "different");
    }
}

/* With one micro-batch, a zero before it is the same as a zero after the update, and log may stand
 * in micro. */
static void validate_single_micro_batch(void **state) {
    (void)state;
    struct config a;
    struct config b;
    helper_loop_orders(NULL, "clip optimize log count schedule zero", &a);
    helper_loop_orders("zero fetch forward backward", "clip optimize log count schedule", &b);
    assert_false(loop_equal(&a, &b));
    a.batch.micro = b.batch.micro = 4;
    assert_true(loop_equal(&a, &b));
    helper_loop_orders("zero fetch forward backward clip log optimize", "count schedule", &b);
    b.batch.micro = 4;
    assert_true(loop_equal(&a, &b));
}

/* These settings change the meaning of one and the same order. */
static void validate_settings(void **state) {
    (void)state;
    struct config a;
    struct config b;
    helper_loop_standard(&a);
    b = a;
    b.schedule.start = START_BASE;
    assert_false(loop_equal(&a, &b));
    helper_loop_list("schedule clip optimize log count zero", &a.loop.update);
    b = a;
    b.schedule.start = START_ZERO; /* never read: schedule runs first */
    assert_true(loop_equal(&a, &b));
    b.schedule.logged = LOGGED_RECOMPUTED;
    assert_false(loop_equal(&a, &b));
    helper_loop_orders(NULL, "optimize clip log zero", &a);
    helper_loop_orders(NULL, "clip optimize log zero", &b);
    assert_false(loop_equal(&a, &b));
    a.clip.max_norm = b.clip.max_norm = 0.0; /* clip only measures */
    assert_true(loop_equal(&a, &b));
    /* Measuring closes the gradient, which rounds it before the next micro-batch is added. */
    helper_loop_orders("fetch forward backward clip", "clip optimize log zero", &a);
    helper_loop_orders("fetch forward backward", "clip optimize log zero", &b);
    a.clip.max_norm = b.clip.max_norm = 0.0;
    assert_false(loop_equal(&a, &b));
    /* f0 is what schedule sets before the first count, unless it shifts. */
    helper_loop_orders(NULL, "clip optimize log zero", &a);
    helper_loop_orders(NULL, "schedule clip optimize log zero", &b);
    assert_true(loop_equal(&a, &b));
    a.schedule.shift = b.schedule.shift = 1;
    assert_false(loop_equal(&a, &b));
    a.schedule.shift = b.schedule.shift = 0;
    a.schedule.start = b.schedule.start = START_BASE;
    assert_false(loop_equal(&a, &b));
    helper_loop_standard(&a);
    a.loop.skip = SKIP_NONFINITE;
    helper_loop_list("log zero", &a.loop.on_skip);
    b = a;
    helper_loop_list("schedule count log zero", &b.loop.on_skip);
    assert_false(loop_equal(&a, &b));
    helper_loop_list("zero log schedule", &b.loop.on_skip); /* the same n gives the same LR */
    assert_true(loop_equal(&a, &b));
    helper_loop_list("log", &b.loop.on_skip);
    assert_false(loop_equal(&a, &b));
    helper_loop_standard(&a);
    b = a;
    helper_loop_list("schedule", &b.loop.eval);
    assert_true(loop_equal(&a, &b));
    helper_loop_list("count", &b.loop.eval);
    assert_false(loop_equal(&a, &b));
    b = a;
    helper_loop_list("zero", &b.loop.epoch);
    assert_true(loop_equal(&a, &b));
    helper_loop_list("count", &b.loop.epoch);
    assert_false(loop_equal(&a, &b));
}

static void verify_random_orders_are_legal(void **state) {
    (void)state;
    struct config config;
    helper_loop_standard(&config);
    uint32_t count = 0;
    for (uint64_t seed = 0; seed < 2000; seed++) {
        helper_loop_random(seed, &config);
        assert_int_equal(loop_check(&config, NULL), STATUS_OK);
        loop_signature_of(&config, &census.seen[count++]);
    }
    qsort(census.seen, count, sizeof census.seen[0], compare_signatures);
    uint32_t flows = 1;
    for (uint32_t i = 1; i < count; i++)
        flows += compare_signatures(&census.seen[i - 1], &census.seen[i]) != 0;
    print_message("2000 random orders: %u dataflows\n", flows);
    assert_true(flows > 300 && flows < 2000);
}

static void verify_random_is_a_function_of_the_seed(void **state) {
    (void)state;
    struct config a;
    struct config b;
    helper_loop_standard(&a);
    helper_loop_orders("zero fetch forward backward", "optimize log", &b);
    uint32_t differing = 0;
    for (uint64_t seed = 0; seed < 50; seed++) {
        helper_loop_random(seed, &a);
        helper_loop_random(seed, &b);
        assert_memory_equal(&a.loop, &b.loop, sizeof a.loop);
        helper_loop_random(seed + 1000, &b);
        differing += memcmp(&a.loop, &b.loop, sizeof a.loop) != 0;
    }
    assert_true(differing > 45);
}

static void verify_equal_orders_are_equal_and_new(void **state) {
    (void)state;
    uint32_t moved = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct config a;
        helper_loop_standard(&a);
        if (seed > 0) helper_loop_random(seed, &a);
        struct config b = a;
        const uint32_t swaps = helper_loop_random_equal(seed, &b);
        assert_int_equal(loop_check(&b, NULL), STATUS_OK);
        assert_true(loop_equal(&a, &b));
        moved += swaps > 0 && memcmp(&a.loop, &b.loop, sizeof a.loop) != 0;
    }
    assert_true(moved > 150);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_dataflow_counts),
        cmocka_unit_test(validate_pairs),
        cmocka_unit_test(validate_single_micro_batch),
        cmocka_unit_test(validate_settings),
        cmocka_unit_test(verify_random_orders_are_legal),
        cmocka_unit_test(verify_random_is_a_function_of_the_seed),
        cmocka_unit_test(verify_equal_orders_are_equal_and_new),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

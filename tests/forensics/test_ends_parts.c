/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Which explanations leave their end, their floor or their plateau open, condition by condition:
 * for random fits whose numbers stand at each threshold or beside it, told once more from lists of
 * the test's own. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "forensics/fit_search.h"
#define fit_logged given_logged
static double given_logged(const struct fit *fit, size_t point, uint64_t update);
#include "forensics/fit_rivals.c" /* for the conditions, which no other file asks for */
#undef fit_logged
#include "tests/base/helper_draws.h"

enum { CASES = 12000 };

static struct draws draws;
static struct fit fit;
static struct contract contract;
static struct fit_known known;
static struct series_point point;
static const struct series series = {&point, 1};
static uint64_t last;
static double logged;

/* Each update but the one behind the last that was logged has another LR. */
static double given_logged(const struct fit *of, size_t at, uint64_t update) {
    assert_true(of == &fit && at == 0);
    const uint64_t wanted = contract.logged == CONTRACT_LOGGED_NEXT ? last : last + 1;
    return update == wanted ? logged : 0.123456;
}

static double one_of(const double *from, size_t size) {
    return from[draws_pick(&draws, (uint32_t)size)];
}
#define ONE_OF(...) one_of((const double[]){__VA_ARGS__}, COUNT_OF(((const double[]){__VA_ARGS__})))

static int seldom(uint32_t n) {
    return draws_pick(&draws, n) == 0;
}

static const char *const names[] = {"linear",         "polynomial",          "cosine",
                                    "megatron.wsd",   "torchtitan.sqrt",     "torchtitan.linear",
                                    "veomni.linear",  "warmup_stable_decay", "olmo-core.wsd",
                                    "megatron.linear"};
static const char *const parameters[] = {"",
                                         "power=2",
                                         "decay_ratio=0.1",
                                         "decay_ratio=0.15",
                                         "decay=50, decay_type=linear",
                                         "decay=50, decay_style=linear",
                                         "decay_type=1-sqrt",
                                         "decay_style=minus_sqrt",
                                         "decay_type=cosine",
                                         "decay_ratio=0.123"};

static void draw_case(uint32_t number) {
    draws = (struct draws){.key = UINT64_C(0xe4d5), .number = number};
    contract = (struct contract){.name = "made", .family = "hf"};
    contract.logged = seldom(2) ? CONTRACT_LOGGED_NEXT : CONTRACT_LOGGED_USED;
    memset(&fit, 0, sizeof fit);
    fit.contract = &contract;
    fit.schedule = sched_find(names[draws_pick(&draws, COUNT_OF(names))]);
    assert_non_null(fit.schedule);
    fit.parameters = parameters[draws_pick(&draws, COUNT_OF(parameters))];
    fit.lr = 2e-4;
    fit.stride = seldom(12) ? ONE_OF(2, 0.5) : 1.0;
    fit.epoch_updates = seldom(12) ? 1 + draws_pick(&draws, 2) : 0;
    fit.segment_count = seldom(12) ? 2 : 1;
    fit.total_hidden = seldom(12) ? 1 : 0;
    fit.in_samples = seldom(12) ? 1 : 0;
    fit.steps = (uint64_t)ONE_OF(0, 1, 3, 5, 100, 120, 200, 1000);
    fit.floor_ratio = ONE_OF(0.1, 0.123, 0.0123, 0.35, 0.05, 0.125, 0.0, 0.0, (double)NAN, 0.615);
    if (seldom(4)) fit.floor_ratio *= 1.0 + ONE_OF(0x1p-45, 0x1p-43, -0x1p-45, -0x1p-43, 0x1.2p-44);
    last = fit.steps + draws_pick(&draws, 7);
    last = last > 4 ? last - 4 : last;
    logged =
        ONE_OF(0.0, -1e-5, 1e-5, 2.5e-5, 1.23e-5, 2.46e-5, 2e-4, 3e-4, 1.9e-4, 3.3e-5, 1.04e-5);
    point = (struct series_point){.update = 1, .value = 1e-4};
    point.quantum = ONE_OF(0.0, 0.0, 1e-9 * 2e-4, 1.5e-13, 1.9e-13, 2.1e-13, 3e-13, 1e-6);
    fit_known_init(&known);
    const uint64_t most = fit_skips_most(last);
    const uint64_t away = (uint64_t)ONE_OF(0, 1, (double)most - 1, (double)most, (double)most + 1);
    const uint64_t said = fit.steps > away ? fit.steps - away : fit.steps + away;
    const uint32_t who = draws_pick(&draws, 5);
    if (who == 0 || who == 1) known.request.steps = said;
    if (who == 1 || who == 2) known.run_steps = who == 1 ? said + 17 : said;
    if (who == 3) known.request.steps = 1;
    if (who == 4 && seldom(2)) known.run_steps = 1;
}

/* ---- what is wanted ---- */

static const char *bare(void) {
    const char *const dot = strrchr(fit.schedule->name, '.');
    return dot == NULL ? fit.schedule->name : dot + 1;
}

static int has(const char *text) {
    return strstr(fit.parameters, text) != NULL;
}

static int has_decay(void) {
    for (size_t k = 0; k < fit.schedule->key_count; k++)
        if (strcmp(fit.schedule->keys[k].path, "decay") == 0) return 1;
    return 0;
}

static int want_line(void) {
    if (strcmp(bare(), "linear") == 0 || strcmp(bare(), "polynomial") == 0)
        if (strlen(fit.parameters) == 0) return 1;
    return has_decay() && (has("decay_type=linear") || has("decay_style=linear"));
}

static int want_power(void) {
    if (want_line() || strcmp(bare(), "sqrt") == 0) return 1;
    if (strcmp(bare(), "linear") == 0 && has("decay_ratio=")) return 1;
    return has("decay_type=1-sqrt") || has("decay_style=minus_sqrt");
}

/* Whether somebody may have typed it, with two digits at most. */
static int typed(double x) {
    char text[40];
    for (int behind = 0; behind < 2; behind++) {
        snprintf(text, sizeof text, "%.*e", behind, x);
        if (x > 0.0 && fabs(strtod(text, NULL) - x) <= 0x1p-44 * x) return 1;
    }
    return 0;
}

static int want_far(void) {
    if (!want_power() || strncmp(fit.schedule->name, "veomni.", 7) == 0) return 0;
    if (fit.stride != 1.0 || fit.epoch_updates != 0 || fit.segment_count != 1) return 0;
    if (fit.total_hidden || fit.in_samples || fit.steps < last + 2) return 0;
    if (fit.floor_ratio > 0.0) return 1;
    return logged > 0.0 && logged < fit.lr && (typed(logged) || typed(logged / fit.lr));
}

static int want_on_way(void) {
    return want_power() && fit.stride == 1.0 && fit.epoch_updates == 0 && fit.steps != 0 &&
           fit.floor_ratio > 0.0 && last <= fit.steps + 1 && !typed(fit.floor_ratio) &&
           !typed(fit.floor_ratio * 2e-4);
}

static int want_long(void) {
    const uint64_t said = known.request.steps == 0 ? known.run_steps : known.request.steps;
    if (said == 0 || fit.steps <= said || fit.steps > said + fit_skips_most(last)) return 0;
    return has_decay() && fit.segment_count == 1 && fit.stride == 1.0 && fit.total_hidden == 0 &&
           fit.in_samples == 0;
}

static int want_share(void) {
    const double share = has("=0.15") ? 0.15 : has("=0.123") ? 0.123 : 0.1;
    if (!has("decay_ratio=") || fit.steps == 0 || fit.segment_count != 1 || fit.stride != 1.0)
        return 0;
    const double length = share * (double)fit.steps;
    return fabs(length - rint(length)) < 1e-6 || point.quantum > 1e-9 * 2e-4;
}

static void corroborate_open_ends(void **state) {
    (void)state;
    size_t lines = 0, powers = 0, ways = 0, far = 0, held = 0, shares = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        draw_case(number);
#define REQUIRE(is, as, count)                                                                     \
    do {                                                                                           \
        const int wanted = as;                                                                     \
        if ((is != 0) != wanted)                                                                   \
            fail_msg("case %u, %s %s: " #is " is %d", number, fit.schedule->name, fit.parameters,  \
                     !wanted);                                                                     \
        count += wanted != 0;                                                                      \
    } while (0)
        REQUIRE(fit_falls_as_line(&fit), want_line(), lines);
        REQUIRE(falls_as_power(&fit), want_power(), powers);
        REQUIRE(fit_ends_on_its_way(&fit, last), want_on_way(), ways);
        REQUIRE(fit_floor_is_far(&fit, last), want_far(), far);
        REQUIRE(fit_plateau_is_long(&fit, &known, last), want_long(), held);
        REQUIRE(fit_is_by_share(&fit, &series), want_share(), shares);
    }
    assert_true(lines > 500 && powers > 1000 && ways > 100 && far > 100 && held > 100 &&
                shares > 100);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_open_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

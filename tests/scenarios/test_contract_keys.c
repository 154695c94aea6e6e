/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * schedule.contract: what follows from it, whose schedules a name means, the units of warm-up and
 * total, layers, factors, and every way to contradict it. The contracts here exist nowhere else. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "tests/scenarios/helper_scenario.h"

#define UPDATE "loop.update: [count, clip, schedule, optimize, log, zero]\n"

/* The body of an arm, and lines that its resolved configuration must hold. */
static const struct {
    const char *common;
    const char *lines[6];
} resolved[] = {
    {"schedule: {contract: tens, warmup: 3, total: 20}",
     {"schedule.contract: tens\n", "schedule.name: steps\n", "schedule.warmup: 30\n",
      "schedule.total: 200\n", "schedule.increment: 10\n", UPDATE}},
    {"schedule: {contract: tens, warmup_ratio: 0.125, total: 20}",
     {"schedule.warmup: 25\n", "schedule.warmup_rounding: none\n", "schedule.start: zero\n"}},
    {"schedule: {contract: tens, name: constant, total: 20}", {"schedule.name: constant\n"}},
    {"schedule: {contract: tens, total: 20, every: 7, minimum: 0.5}",
     {"schedule.every: 7\n", "schedule.minimum: 0.5\n", "schedule.origin: 2\n"}},
    {"schedule: {contract: none, total: 20}",
     {"schedule.contract: none\n", "schedule.name: linear\n", "schedule.total: 20\n",
      "loop.update: [clip, optimize, log, count, schedule, zero]\n"}},
    {"schedule: {contract: decimal}", {"schedule.contract: tens\n"}},
    {"schedule: {contract: tens}", {"schedule.total: 50\n"}}, /* auto: steps */
};

static char *text_of(struct arena *arena, const struct config *config) {
    char *text = NULL;
    assert_int_equal(config_text(&helper_schema, config, arena, &text), STATUS_OK);
    return text;
}

static void validate_resolution(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(resolved); i++) {
        static const char *const steps[] = {"steps=5", NULL};
        struct arena arena = ARENA_EMPTY;
        char *text = NULL;
        assert_int_equal(
            arena_format(&arena, &text, "twinstep: 1\ncommon: {%s}\n", resolved[i].common),
            STATUS_OK);
        struct scenario *scenario = helper_parse(&arena, text, steps);
        text = text_of(&arena, &scenario->arms[0].config);
        for (size_t k = 0; k < COUNT_OF(resolved[i].lines) && resolved[i].lines[k] != NULL; k++)
            if (strstr(text, resolved[i].lines[k]) == NULL)
                fail_msg("%s: no line %sin\n%s", resolved[i].common, resolved[i].lines[k], text);
        arena_close(&arena);
    }
}

/* The arms name the same schedule in words and differ in the contract: one factor, cause
 * schedule. */
static void validate_layers_and_factor(void **state) {
    (void)state;
    static const char text[] = "twinstep: 1\nsteps: 5\n"
                               "common: {schedule: {name: linear, total: 8, minimum: 0.5}}\n"
                               "arms: {baseline: {}, test: {schedule: {contract: tens}}}\n";
    struct arena arena = ARENA_EMPTY;
    struct scenario *scenario = helper_parse(&arena, text, NULL);
    struct factor *factors = NULL;
    uint32_t count = 0;
    int seen = 0;
    assert_int_equal(factors_of(&helper_schema, &scenario->arms[0].config,
                                &scenario->arms[1].config, &arena, &factors, &count),
                     STATUS_OK);
    assert_int_equal(count, 1);
    assert_int_equal(factors[0].cause, CAUSE_SCHEDULE);
    for (uint32_t k = 0; k < factors[0].key_count; k++)
        seen += strcmp(factors[0].keys[k], "schedule.contract") == 0 &&
                strcmp(factors[0].values[0][k], "none") == 0 &&
                strcmp(factors[0].values[1][k], "tens") == 0;
    assert_int_equal(seen, 1);
    struct config mixed = scenario->arms[0].config;
    config_swap_cause(&helper_schema, &mixed, &scenario->arms[1].config, CAUSE_SCHEDULE);
    config_swap_cause(&helper_schema, &mixed, &scenario->arms[1].config, CAUSE_DATA_ORDER);
    assert_memory_equal(&mixed, &scenario->arms[1].config, sizeof mixed);
    arena_close(&arena);
}

/* A contract in a later layer must remove the schedule's own keys of an earlier one. */
static void validate_replaced_keys(void **state) {
    (void)state;
    static const char text[] = "twinstep: 1\nsteps: 5\n"
                               "common: {schedule: {name: constant, total: 8}}\n"
                               "arms: {baseline: {schedule: {name: steps, every: 9}}, test: {}}\n";
    static const char *const swap[] = {"arms.baseline.schedule.name=constant",
                                       "arms.baseline.schedule.contract=tens", NULL};
    struct arena arena = ARENA_EMPTY;
    struct scenario *scenario = helper_parse(&arena, text, swap);
    assert_string_equal(scenario->arms[0].config.schedule.which.name, "constant");
    arena_close(&arena);
}

static const struct {
    const char *text;
    enum status status;
    const char *message;
} refused[] = {
    {"twinstep: 1\ncommon:\n  schedule: {contract: tens, total: 20}\n"
     "  loop: {update: [optimize, log]}\n",
     STATUS_INPUT,
     "f.yaml:4:10: error: loop.update: schedule.contract tens (line 3) sets it to [count, clip, "
     "schedule, optimize, log, zero]; give a contract or a loop, not both"},
    {"twinstep: 1\ncommon: {loop: {update: [optimize, log]}}\n"
     "arms: {baseline: {}, test: {schedule: {contract: tens}}}\n",
     STATUS_INPUT,
     "f.yaml:2:17: error: loop.update: schedule.contract tens (line 3) sets it to [count, clip, "
     "schedule, optimize, log, zero]; give a contract or a loop, not both"},
    {"twinstep: 1\ncommon: {schedule: {start: zero, contract: tens}}\n", STATUS_INPUT,
     "f.yaml:2:21: error: schedule.start: schedule.contract tens (line 2) sets it to zero; give a "
     "contract or a loop, not both"},
    {"twinstep: 1\ncommon: {schedule: {contract: tens, increment: 3}}\n", STATUS_INPUT,
     "f.yaml:2:37: error: schedule.increment: schedule.contract tens (line 2) sets it to 10; give "
     "a contract or a loop, not both"},
    {"twinstep: 1\ncommon: {schedule: {contract: ten}}\n", STATUS_INPUT,
     "f.yaml:2:31: error: schedule.contract: expected none or a contract that `twinstep list "
     "contracts` lists, got \"ten\"; did you mean tens?"},
    {"twinstep: 1\ncommon: {schedule: {contract: zzzzzzzz}}\n", STATUS_INPUT,
     "f.yaml:2:31: error: schedule.contract: expected none or a contract that `twinstep list "
     "contracts` lists, got \"zzzzzzzz\""},
    {"twinstep: 1\ncommon: {schedule: {contract: dreams}}\n", STATUS_UNSUPPORTED,
     "f.yaml:2:31: error: schedule.contract: no training here obeys contract dreams: it dreams"},
    {"twinstep: 1\ncommon: {schedule: {contract: tens, name: cosine}}\n", STATUS_INPUT,
     "f.yaml:2:43: error: schedule.name: contract tens has no schedule \"cosine\"; it has linear, "
     "constant"},
    {"twinstep: 1\ncommon: {schedule: {contract: tens, name: linear, momentum: 1}}\n", STATUS_INPUT,
     "f.yaml:2:51: error: schedule: unknown key \"momentum\""},
    {"twinstep: 1\nsteps: 5\ncommon: {schedule: {contract: tens, total: 4}}\n", STATUS_INPUT,
     "f.yaml:3:44: error: schedule.total: expected at least 5 updates"},
    {"twinstep: 1\ncommon: {schedule: {contract: tens, warmup: 1, warmup_ratio: 0.5}}\n",
     STATUS_INPUT,
     "f.yaml:2:45: error: schedule.warmup: with a contract, expected schedule.warmup or "
     "schedule.warmup_ratio, not both"},
};

static void validate_refusals(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(refused); i++)
        helper_refuse(refused[i].text, NULL, refused[i].status, refused[i].message);
    static const char *const set[] = {"common.schedule.contract=tens", NULL};
    helper_refuse("twinstep: 1\ncommon: {loop: {update: [optimize, log]}}\n", set, STATUS_INPUT,
                  "f.yaml:2:17: error: loop.update: schedule.contract tens (--set "
                  "common.schedule.contract=tens) sets it to [count, clip, schedule, optimize, "
                  "log, zero]; give a contract or a loop, not both");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_resolution),
        cmocka_unit_test(validate_layers_and_factor),
        cmocka_unit_test(validate_replaced_keys),
        cmocka_unit_test(validate_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

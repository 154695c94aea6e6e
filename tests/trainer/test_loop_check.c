/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The legality of loop orders: which are refused, at which phase, and with which reason. */
#include "data/batch.h"
#include "trainer/loop.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "tests/trainer/helper_loop.h"

#define STANDARD "clip optimize log count schedule zero"

static const struct legal_case {
    const char *micro, *update;
} legal_cases[] = {
    {NULL, STANDARD},
    {NULL, "optimize log"},
    {NULL, "count clip schedule optimize log zero"},
    {NULL, "zero log optimize"},
    {NULL,
     "reduce unscale clip clip optimize optimize log count count schedule schedule zero zero"},
    {"zero fetch forward backward", "optimize log"},
    {"zero clip fetch forward backward", "optimize log"},
    {"fetch forward backward optimize zero", "log"},
    {"schedule fetch count forward zero backward", "optimize log"},
};

static void validate_legal_orders(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(legal_cases); i++) {
        struct config config;
        helper_loop_orders(legal_cases[i].micro, legal_cases[i].update, &config);
        if (loop_check(&config, NULL) != STATUS_OK) fail_msg("case %zu: %s", i, status_text());
    }
}

static const struct illegal_case {
    const char *micro, *update;
    enum loop_list list;
    uint32_t position;
    enum phase phase;
    const char *text;
} illegal_cases[] = {
    {"forward fetch backward", STANDARD, LOOP_MICRO, 0, PHASE_FORWARD,
     "loop.micro[0] (forward): reads the micro-batch"},
    {"fetch backward forward", STANDARD, LOOP_MICRO, 1, PHASE_BACKWARD,
     "loop.micro[1] (backward): reads the activations"},
    {"fetch forward", STANDARD, LOOP_MICRO, LOOP_NO_POSITION, PHASE_BACKWARD,
     "loop.micro: expected fetch, forward and backward, once each; backward is missing"},
    {"", STANDARD, LOOP_MICRO, LOOP_NO_POSITION, PHASE_FETCH, "fetch is missing"},
    {"fetch forward forward backward", STANDARD, LOOP_MICRO, 2, PHASE_FORWARD,
     "loop.micro[2] (forward): runs once per micro-batch"},
    {"clip fetch forward backward", STANDARD, LOOP_MICRO, 0, PHASE_CLIP,
     "loop.micro[0] (clip): reads gradients before any backward or zero"},
    {"fetch optimize forward backward", STANDARD, LOOP_MICRO, 1, PHASE_OPTIMIZE,
     "loop.micro[1] (optimize): reads gradients before"},
    {"unscale fetch forward backward", STANDARD, LOOP_MICRO, 0, PHASE_UNSCALE, "reads gradients"},
    {"fetch reduce forward backward", STANDARD, LOOP_MICRO, 1, PHASE_REDUCE, "reads gradients"},
    {NULL, "clip log count schedule zero", LOOP_UPDATE, LOOP_NO_POSITION, PHASE_OPTIMIZE,
     "loop.update: expected optimize at least once"},
    {NULL, "", LOOP_UPDATE, LOOP_NO_POSITION, PHASE_OPTIMIZE, "expected optimize"},
    {NULL, "clip optimize count", LOOP_UPDATE, LOOP_NO_POSITION, PHASE_LOG,
     "loop.update: expected log exactly once per update; it is missing"},
    {NULL, "optimize log zero log", LOOP_UPDATE, 3, PHASE_LOG, "loop.update[3] (log): would write"},
    {"fetch forward backward log", "optimize", LOOP_MICRO, 3, PHASE_LOG, "more than one row"},
    {"fetch forward backward log", "optimize log", LOOP_MICRO, 3, PHASE_LOG, "more than one row"},
    {NULL, "forward optimize log", LOOP_UPDATE, 0, PHASE_FORWARD,
     "loop.update[0] (forward): handles one micro-batch"},
};

static void validate_illegal_orders(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(illegal_cases); i++) {
        const struct illegal_case *c = &illegal_cases[i];
        struct config config;
        struct loop_fault fault = {LOOP_LISTS, 99, PHASE_TOTAL};
        helper_loop_orders(c->micro, c->update, &config);
        assert_int_equal(loop_check(&config, &fault), STATUS_INPUT);
        if (strstr(status_text(), c->text) == NULL)
            fail_msg("case %zu: expected \"%s\", got \"%s\"", i, c->text, status_text());
        assert_int_equal(fault.list, c->list);
        assert_int_equal(fault.position, c->position);
        assert_int_equal(fault.phase, c->phase);
    }
}

/* A loss scale is taken out once, behind the last backward: within the micro-batches only where
 * there is one of them and the update does not take it out again. */
static void validate_places_of_unscale(void **state) {
    (void)state;
    static const struct {
        const char *micro, *update, *epoch, *eval;
        uint64_t batch, list; /* samples in a micro-batch of 4; LOOP_LISTS: legal */
        uint32_t position;
    } places[] = {
        {"fetch forward backward", "unscale " STANDARD, "", "", 2, LOOP_LISTS, 0},
        {"fetch forward backward unscale", STANDARD, "", "", 4, LOOP_LISTS, 0},
        {"fetch forward backward unscale", STANDARD, "", "", 2, LOOP_MICRO, 3},
        {"fetch forward backward unscale", "unscale " STANDARD, "", "", 4, LOOP_MICRO, 3},
        {"fetch forward backward unscale unscale", STANDARD, "", "", 4, LOOP_MICRO, 3},
        {"fetch forward backward", "unscale clip unscale optimize log", "", "", 4, LOOP_UPDATE, 2},
        {"fetch forward backward", "unscale " STANDARD, "count unscale", "", 4, LOOP_EPOCH, 1},
        {"fetch forward backward", "unscale " STANDARD, "", "unscale", 4, LOOP_EVAL, 0},
    };
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        struct config config;
        struct loop_fault fault = {LOOP_LISTS, 99, PHASE_TOTAL};
        helper_loop_orders(places[i].micro, places[i].update, &config);
        helper_loop_list(places[i].epoch, &config.loop.epoch);
        helper_loop_list(places[i].eval, &config.loop.eval);
        config.batch.micro = places[i].batch;
        assert_int_equal(loop_check(&config, NULL),
                         STATUS_OK); /* without a scale it does nothing */
        config.scaler.kind = SCALER_DYNAMIC;
        const enum status status = loop_check(&config, &fault);
        if ((status == STATUS_OK) != (places[i].list == LOOP_LISTS)) fail_msg("case %zu", i);
        if (status == STATUS_OK) continue;
        assert_non_null(strstr(status_text(), "a loss scale is taken out once per update"));
        if (fault.list != (enum loop_list)places[i].list || fault.position != places[i].position ||
            fault.phase != PHASE_UNSCALE)
            fail_msg("case %zu: list %d, position %u", i, (int)fault.list, fault.position);
    }
}

static void validate_other_lists(void **state) {
    (void)state;
    struct config config;
    struct loop_fault fault;
    helper_loop_standard(&config);
    helper_loop_list("schedule count zero clip optimize reduce", &config.loop.epoch);
    helper_loop_list("schedule", &config.loop.eval);
    helper_loop_list("optimize schedule count", &config.loop.on_skip);
    assert_int_equal(loop_check(&config, &fault), STATUS_OK);
    helper_loop_list("count log", &config.loop.epoch);
    assert_int_equal(loop_check(&config, &fault), STATUS_INPUT);
    assert_true(fault.list == LOOP_EPOCH && fault.position == 1 && fault.phase == PHASE_LOG);
    helper_loop_list("", &config.loop.epoch);
    helper_loop_list("backward", &config.loop.eval);
    assert_int_equal(loop_check(&config, &fault), STATUS_INPUT);
    assert_true(fault.list == LOOP_EVAL && fault.phase == PHASE_BACKWARD);
    helper_loop_list("", &config.loop.eval);
    helper_loop_list("zero fetch log", &config.loop.on_skip);
    assert_int_equal(loop_check(&config, &fault), STATUS_INPUT);
    assert_true(fault.list == LOOP_ON_SKIP && fault.position == 1 && fault.phase == PHASE_FETCH);
    config.loop.skip = SKIP_NONFINITE;
    helper_loop_list("zero", &config.loop.on_skip);
    assert_int_equal(loop_check(&config, &fault), STATUS_INPUT);
    assert_true(fault.list == LOOP_ON_SKIP && fault.position == LOOP_NO_POSITION);
    assert_int_equal(fault.phase, PHASE_LOG);
    helper_loop_list("log", &config.loop.on_skip);
    assert_int_equal(loop_check(&config, &fault), STATUS_OK);
}

/* Between two micro-batches the shards of an update are not joined (law 21). */
static void validate_shards(void **state) {
    static const char *const met[] = {"fetch forward backward clip", "zero fetch forward backward",
                                      "fetch forward backward reduce",
                                      "fetch forward backward optimize"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(met); i++) {
        struct config config;
        struct loop_fault fault;
        helper_loop_orders(met[i], "optimize log zero", &config);
        assert_int_equal(loop_check(&config, &fault), STATUS_OK);
        config.numerics.shards = 2;
        assert_int_equal(loop_check(&config, &fault), STATUS_INPUT);
        assert_non_null(strstr(status_text(), "before the shards of the update are joined"));
        assert_int_equal(fault.list, LOOP_MICRO);
        assert_int_equal(fault.position, i == 1 ? 0 : 3);
        /* With shards it is they that are told, whoever holds them; without, the ranks. */
        config.parallel.ranks = 2;
        assert_int_equal(loop_check(&config, &fault), STATUS_INPUT);
        assert_non_null(strstr(status_text(), "before the shards of the update are joined"));
        config.numerics.shards = 1;
        assert_int_equal(loop_check(&config, &fault), STATUS_INPUT);
        assert_non_null(strstr(status_text(), "(parallel.ranks above 1)"));
        config.numerics.shards = 2;
        config.parallel.ranks = 1;
        helper_loop_list("count fetch forward schedule backward", &config.loop.micro);
        assert_int_equal(loop_check(&config, &fault), STATUS_OK);
    }
}

/* With ranks, list `update` begins with phase reduce. */
static void validate_reduce(void **state) {
    static const struct {
        const char *update;
        uint32_t position;
    } cases[] = {{"reduce clip optimize log zero", 0},
                 {"reduce clip reduce optimize log zero", 0},
                 {"clip reduce optimize log zero", 1},
                 {"clip optimize log zero", LOOP_NO_POSITION}};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct config config;
        struct loop_fault fault;
        helper_loop_orders(NULL, cases[i].update, &config);
        assert_int_equal(loop_check(&config, &fault), STATUS_OK);
        config.numerics.shards = config.parallel.ranks = 2;
        const enum status status = loop_check(&config, &fault);
        assert_int_equal(status, cases[i].position == 0 ? STATUS_OK : STATUS_INPUT);
        if (status == STATUS_OK) continue;
        assert_non_null(strstr(status_text(), "reduce as its first phase"));
        assert_true(fault.list == LOOP_UPDATE && fault.phase == PHASE_REDUCE);
        assert_true(fault.position == cases[i].position);
    }
}

static void validate_log_in_single_micro_batch(void **state) {
    (void)state;
    struct config config;
    helper_loop_orders("fetch forward backward log", "optimize", &config);
    config.batch.micro = 4;
    assert_int_equal(loop_check(&config, NULL), STATUS_OK);
    config.loop.skip = SKIP_OLMO_OUTLIER; /* it looks at a loss that is logged by then */
    struct loop_fault fault;
    assert_int_equal(loop_check(&config, &fault), STATUS_INPUT);
    assert_true(fault.list == LOOP_MICRO && fault.position == 3 && fault.phase == PHASE_LOG);
}

static void validate_broken_lists(void **state) {
    (void)state;
    struct config config;
    helper_loop_standard(&config);
    config.loop.update.item[1] = PHASE_TOTAL;
    assert_int_equal(loop_check(&config, NULL), STATUS_INPUT);
    helper_loop_standard(&config);
    config.loop.update.count = KEY_LIST_MAX + 1;
    assert_int_equal(loop_check(&config, NULL), STATUS_INPUT);
}

static const struct micro_case {
    uint64_t size, micro, expected;
} micro_cases[] = {
    {4, 2, 2}, {4, 4, 1}, {5, 2, 3}, {4, 0, 1}, {2, 7, 1}, {0, 0, 1}, {UINT64_MAX, 1, UINT64_MAX}};

static void validate_counts(void **state) {
    (void)state;
    struct config config;
    helper_loop_orders("fetch count forward backward count", "optimize log count", &config);
    for (size_t i = 0; i < COUNT_OF(micro_cases); i++) {
        config.batch.size = micro_cases[i].size;
        config.batch.micro = micro_cases[i].micro;
        assert_true(batch_micro_batches(&config) == micro_cases[i].expected);
    }
    config.batch.size = 6;
    config.batch.micro = 2;
    assert_int_equal(loop_runs_per_update(&config, PHASE_COUNT_UPDATE), 7);
    assert_int_equal(loop_runs_per_update(&config, PHASE_OPTIMIZE), 1);
    assert_int_equal(loop_runs_per_update(&config, PHASE_CLIP), 0);
}

static void validate_counters_and_skips(void **state) {
    (void)state;
    struct config config;
    helper_loop_standard(&config);
    config.schedule.origin = 100;
    config.schedule.increment = 8;
    config.schedule.shift = -3;
    config.schedule.logged_shift = 5;
    assert_true(loop_schedule_counter(&config, 2) == 113.0);
    assert_true(loop_logged_counter(&config, 2) == 121.0);
    assert_true(loop_start_counter(&config) == 100.0);
    helper_loop_list("count", &config.loop.on_skip);
    assert_true(loop_runs(&config, PHASE_OPTIMIZE, 0));
    assert_false(loop_runs(&config, PHASE_OPTIMIZE, 1));
    assert_false(loop_runs(&config, PHASE_SCHEDULE, 1));
    assert_true(loop_runs(&config, PHASE_COUNT_UPDATE, 1));
    assert_false(loop_runs(&config, PHASE_ZERO, 1));
    assert_true(loop_runs(&config, PHASE_ZERO, 0));
}

/* The schema and this table must name the phases alike; otherwise a scenario would mean something
 * else. */
static void validate_names(void **state) {
    (void)state;
    static const char *const names[PHASE_TOTAL] = {"fetch",   "forward",  "backward", "reduce",
                                                   "unscale", "clip",     "optimize", "log",
                                                   "count",   "schedule", "zero"};
    for (int p = 0; p < PHASE_TOTAL; p++) {
        assert_string_equal(loop_phases()[p].name, names[p]);
        assert_int_equal(loop_phases()[p].needs & ~loop_phases()[p].reads, 0);
        assert_true(loop_phases()[p].writes != 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_legal_orders),
        cmocka_unit_test(validate_illegal_orders),
        cmocka_unit_test(validate_places_of_unscale),
        cmocka_unit_test(validate_other_lists),
        cmocka_unit_test(validate_shards),
        cmocka_unit_test(validate_reduce),
        cmocka_unit_test(validate_log_in_single_micro_batch),
        cmocka_unit_test(validate_broken_lists),
        cmocka_unit_test(validate_counts),
        cmocka_unit_test(validate_counters_and_skips),
        cmocka_unit_test(validate_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Random streams of two arms: what `take` is resolved to, which events and restarts are refused and
 * where, that equal lists are equal bytes, and what a key holds that no arm reads. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "scenarios/inert.h"
#include "scenarios/stream_course.h"
#include "tests/scenarios/helper_scenario.h"

static const char *scenario_text(struct arena *arena, const char *common, const char *a,
                                 const char *b) {
    char *text = NULL;
    assert_int_equal(
        arena_format(arena, &text,
                     "twinstep: 1\nsteps: 10\ncommon: {%s}\narms:\n  a: {%s}\n  b: {%s}\n", common,
                     a, b),
        STATUS_OK);
    return text;
}

#define DROPS "dropout: {residual: 0.1}"
#define SHUFFLES "numerics: {mode: shuffled, order_seed: 4}"
#define NARROW "numerics: {param: bf16, rounding: stochastic}"

/* The rng.KEY of both arms after `take` has been resolved to numbers. */
static const struct {
    const char *common, *a, *b;
    enum stream stream;
    const char *settled[2];
} takes[] = {
    {DROPS,
     "rng: {dropout: take b at 3}",
     "dropout: {seed: 9}",
     STREAM_DROPOUT,
     {"seed 9 clock 2 at 3", "none"}},
    /* a swap: each gets what the other had, not what it has just been given */
    {DROPS,
     "rng: {dropout: take b at 3}",
     "dropout: {seed: 9}, rng: {dropout: take a at 3}",
     STREAM_DROPOUT,
     {"seed 9 clock 2 at 3", "seed 17 clock 2 at 3"}},
    /* events of earlier updates count, those of the same update do not */
    {DROPS,
     "rng: {dropout: 'advance 5 at 2, take b at 4, advance 100 at 4'}",
     "rng: {dropout: 'take a at 4, seed 8 at 3, advance 50 at 4'}",
     STREAM_DROPOUT,
     {"advance 5 at 2, seed 8 clock 3 at 4, advance 100 at 4",
      "seed 8 at 3, seed 17 clock 8 at 4, advance 50 at 4"}},
    /* what was taken is taken again */
    {DROPS,
     "rng: {dropout: take b at 2}",
     "dropout: {seed: 9}, rng: {dropout: 'take a at 2, take a at 5'}",
     STREAM_DROPOUT,
     {"seed 9 clock 1 at 2", "seed 17 clock 1 at 2, seed 9 clock 4 at 5"}},
    {DROPS,
     "rng: {dropout: take b at 9}",
     "rng: {dropout: 'save x at 2, advance 30 at 3, load x at 5'}",
     STREAM_DROPOUT,
     {"seed 17 clock 5 at 9", "save x at 2, advance 30 at 3, load x at 5"}},
    /* a restart before that update, and without what it throws away */
    {DROPS,
     "rng: {dropout: take b at 7}",
     "resume: {after: 4, restores: [data]}",
     STREAM_DROPOUT,
     {"seed 17 clock 2 at 7", "none"}},
    {DROPS,
     "rng: {dropout: take b at 5}",
     "resume: {after: 4, restores: [data]}",
     STREAM_DROPOUT,
     {"seed 17 clock 0 at 5", "none"}},
    {DROPS,
     "rng: {dropout: take b at 5}",
     "resume: {after: 4, restores: [rng]}",
     STREAM_DROPOUT,
     {"seed 17 clock 4 at 5", "none"}},
    {DROPS,
     "rng: {data: take b at 7}",
     "data: {seed: 3}, resume: {after: 4, restores: [rng]}",
     STREAM_DATA,
     {"seed 3 clock 2 at 7", "none"}},
    {NARROW,
     "rng: {rounding: take b at 7}",
     "seed: 3",
     STREAM_ROUNDING,
     {"seed 3 clock 6 at 7", "none"}},
    {SHUFFLES,
     "rng: {order: take b at 7}",
     "numerics: {order_seed: 6}",
     STREAM_ORDER,
     {"seed 6 clock 6 at 7", "none"}},
    /* a free seed that an event has replaced is known */
    {"numerics: {mode: shuffled}",
     "rng: {order: take b at 7}",
     "rng: {order: seed 5 at 2}",
     STREAM_ORDER,
     {"seed 5 clock 6 at 7", "seed 5 at 2"}},
    {"seed: 17", "rng: {dropout: take nobody at 3}", DROPS, STREAM_DROPOUT, {"none", "none"}},
    /* an arm that does not drop reads no events, so it takes none; it holds the other's */
    {"seed: 17",
     "rng: {dropout: take b at 3}",
     DROPS ", rng: {dropout: seed 3 at 4}",
     STREAM_DROPOUT,
     {"seed 3 at 4", "seed 3 at 4"}},
};

static void validate_takes(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(takes); i++) {
        struct arena arena = ARENA_EMPTY;
        const struct scenario *s = helper_parse(
            &arena, scenario_text(&arena, takes[i].common, takes[i].a, takes[i].b), NULL);
        for (int arm = 0; arm < 2; arm++)
            assert_string_equal(stream_text(&s->arms[arm].config, takes[i].stream),
                                takes[i].settled[arm]);
        arena_close(&arena);
    }
}

static const struct {
    const char *common, *a, *b, *message;
} refusals[] = {
    {DROPS, "seed: 17", "rng: {dropout: advence 1 at 3}",
     "f.yaml:6:22: error: rng.dropout: event 1: expected advance, save, load, seed or take, got "
     "\"advence\""},
    /* the grammar holds where nothing reads the events, too */
    {"seed: 17", "seed: 17", "rng: {dropout: advence 1 at 3}",
     "f.yaml:6:22: error: rng.dropout: event 1: expected advance, save, load, seed or take, got "
     "\"advence\""},
    {"rng: {data: seed 1 at 11}", "seed: 17", "seed: 17",
     "f.yaml:3:22: error: rng.data: expected updates from 1 to 10 (steps), got 11"},
    {"seed: 17", "rng: {data: 'load x at 2, save x at 3'}", "seed: 17",
     "f.yaml:5:19: error: rng.data: event 1: expected a slot that was saved before, got x"},
    {"seed: 17", "rng: {data: 'load x at 2, save x at 2'}", "seed: 17",
     "f.yaml:5:19: error: rng.data: event 1: expected a slot that was saved before, got x"},
    {"seed: 17", "rng: {data: take a at 2}", "seed: 17",
     "f.yaml:5:19: error: rng.data: event 1: take: expected the other arm, b, got a"},
    {"seed: 17", "seed: 17", "rng: {data: 'advance 1 at 1, take test at 2'}",
     "f.yaml:6:19: error: rng.data: event 2: take: expected the other arm, a, got test"},
    {"seed: 17", "rng: {dropout: take b at 2}, " DROPS, "seed: 17",
     "f.yaml:5:22: error: rng.dropout: event 1: take: the other arm has no such stream: dropout is "
     "0 everywhere"},
    {DROPS, "rng: {dropout: take b at 2}", "rng: {kind: torch}",
     "f.yaml:5:22: error: rng.dropout: event 1: take: the other arm's is PyTorch's generator"},
    {DROPS, "rng: {kind: torch, dropout: take b at 2}", "seed: 17",
     "f.yaml:5:35: error: rng.dropout: event 1: expected advance, save, load or seed, got take: "
     "how far PyTorch's generator is depends on what the other arm has trained"},
    {DROPS, "rng: {kind: torch, dropout: advance 6 at 2}", "seed: 17",
     "f.yaml:5:35: error: rng.dropout: event 1: expected words of PyTorch's offset, a multiple of "
     "4, got 6"},
    {DROPS, "rng: {kind: torch, dropout: seed 1 clock 2 at 2}", "seed: 17",
     "f.yaml:5:35: error: rng.dropout: event 1: expected words of PyTorch's offset, a multiple of "
     "4, got 2"},
    {"numerics: {mode: shuffled}", "rng: {order: take b at 2}", "seed: 17",
     "f.yaml:5:20: error: rng.order: event 1: take: the other arm's numerics.order_seed is free; "
     "expected a number"},
    {"seed: 17", "rng: {data: advance 2147483638 at 1}", "seed: 17",
     "f.yaml:5:19: error: rng.data: expected clocks up to 2147483647, got 2147483648 at update 10"},
    {"seed: 17", "rng: {data: 'seed 1 clock 2147483642 at 2, seed 1 clock 0 at 8'}", "seed: 17",
     "f.yaml:5:19: error: rng.data: expected clocks up to 2147483647, got 2147483648 at update 7"},
    {"seed: 17", "rng: {data: take b at 3}", "rng: {data: advance 2147483642 at 2}",
     "f.yaml:6:19: error: rng.data: expected clocks up to 2147483647, got 2147483652 at update 10"},
    {"resume: {after: 10}", "seed: 17", "seed: 17",
     "f.yaml:3:26: error: resume.after: expected an update before the last of 10, or 0, got 10"},
    {"resume: {after: 3, restores: [rng, data, rng]}", "seed: 17", "seed: 17",
     "f.yaml:3:39: error: resume.restores: an entry is given twice"},
    {"resume: {after: 3, wrong: [batch-peeked, batch-peeked]}", "seed: 17", "seed: 17",
     "f.yaml:3:36: error: resume.wrong: an entry is given twice"},
    {"resume: {after: 3, wrong: [counter-doubled], restores: [data]}", "seed: 17", "seed: 17",
     "f.yaml:3:36: error: resume.wrong: counter-doubled is wrong of what is restored, and "
     "resume.restores has no schedule"},
    {"resume: {after: 3, wrong: [masters-bf16]}", "seed: 17", "seed: 17",
     "f.yaml:3:36: error: resume.wrong: masters-bf16 needs masters, and numerics.master is none"},
    {"resume: {after: 3, wrong: [shards-by-index]}", "seed: 17", "seed: 17",
     "f.yaml: error: arm a: resume.ranks: expected another number of ranks than the 1 "
     "that read the shards (parallel.ranks), with shards-by-index: as many ranks read what they "
     "wrote"},
    {"resume: {after: 3, ranks: 2, wrong: [shards-by-index, padded-offsets]}", "seed: 17",
     "seed: 17",
     "f.yaml:3:46: error: resume.wrong: shards-by-index and padded-offsets are of two layouts of "
     "the same numbers: give one"},
    {"resume: {after: 3, ranks: 2, wrong: [shards-by-index], restores: [data]}", "seed: 17",
     "seed: 17",
     "f.yaml:3:46: error: resume.wrong: shards-by-index is wrong of what is restored, and "
     "resume.restores has no optimizer"},
    {"resume: {after: 3, wrong: [decay-late]}", "seed: 17", "seed: 17",
     "f.yaml: error: arm a: resume.weight_decay: expected another decay than the checkpoint's, 0 "
     "(optimizer.weight_decay), with decay-late"},
    {"resume: {after: 3, wrong: [skip-every-epoch]}", "rng: {data: seed 3 at 2}", "seed: 17",
     "f.yaml:3:36: error: resume.wrong: skip-every-epoch moves the place in the data, and so does "
     "rng.data: give one"},
    {"dropout: {residual: 0.1}, resume: {after: 3, wrong: [rng-before-skip]}",
     "rng: {dropout: seed 3 at 2}", "seed: 17",
     "f.yaml:3:62: error: resume.wrong: rng-before-skip moves streams, and so do rng.dropout and "
     "rng.rounding: give one"},
    {"seed: 17", "rng: {data: take b at 4}", "resume: {after: 3, wrong: [batch-peeked]}",
     "f.yaml:5:19: error: rng.data: event 1: take: where the other arm stands is not known "
     "beforehand (resume.wrong)"},
};

static void validate_refusals(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(refusals); i++) {
        struct arena arena = ARENA_EMPTY;
        helper_refuse(scenario_text(&arena, refusals[i].common, refusals[i].a, refusals[i].b), NULL,
                      STATUS_INPUT, refusals[i].message);
        arena_close(&arena);
    }
}

/* The events that take stands for may be longer than what was written. */
static void validate_room(void **state) {
    (void)state;
    char events[CONFIG_EVENTS_SIZE + 64] = "", arm[CONFIG_EVENTS_SIZE + 128];
    size_t used = 0;
    struct arena arena = ARENA_EMPTY;
    for (int i = 0; i < STREAM_EVENTS_MAX; i++)
        used += (size_t)snprintf(events + used, sizeof events - used, "%stake b at %d",
                                 i == 0 ? "" : ", ", i % 10 + 1);
    snprintf(arm, sizeof arm, "rng: {data: '%s'}", events);
    const char *b = "data: {seed: 18446744073709551614}";
    helper_refuse(scenario_text(&arena, "seed: 17", arm, b), NULL, STATUS_INPUT,
                  "f.yaml:5:19: error: rng.data: with what take stands for: expected events of at "
                  "most 511 characters");
    snprintf(arm, sizeof arm, "rng: {data: '%.*s'}", (int)(strrchr(events, ',') - events), events);
    (void)helper_parse(&arena, scenario_text(&arena, "seed: 17", arm, "data: {seed: 7}"), NULL);
    arena_close(&arena);
}

static void verify_equal_lists_are_equal_bytes(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    const struct scenario *s = helper_parse(
        &arena,
        scenario_text(&arena, DROPS,
                      "rng: {dropout: 'seed 3 at 9,advance 1 at 2'}, resume: {after: 2, restores: "
                      "[scaler, rng, data]}",
                      "rng: {dropout: '  advance 01 at 2 , seed 3 at 9 '}, resume: {after: 2, "
                      "restores: [data, rng, scaler]}"),
        NULL);
    assert_memory_equal(&s->arms[0].config, &s->arms[1].config, sizeof(struct config));
    arena_close(&arena);
}

/* A key that no arm reads must hold its default in both. */
static void validate_inert(void **state) {
    (void)state;
    static const struct {
        const char *common, *key, *why;
    } cases[] = {
        {"rng: {dropout: seed 1 at 1}", "rng.dropout", "dropout is 0 everywhere"},
        {"rng: {rounding: seed 1 at 1}", "rng.rounding", "numerics.rounding is nearest"},
        {"rng: {order: seed 1 at 99}", "rng.order", "numerics.mode is not shuffled"},
        {"resume: {restores: [rng]}", "resume.restores", "resume.after is 0"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct arena arena = ARENA_EMPTY;
        const struct scenario *s =
            helper_parse(&arena, scenario_text(&arena, cases[i].common, "", ""), NULL);
        const struct scenario *empty =
            helper_parse(&arena, scenario_text(&arena, "seed: 17", "", ""), NULL);
        assert_int_equal(s->inert_count, 1);
        assert_string_equal(s->inert[0].key, cases[i].key);
        assert_string_equal(s->inert[0].why, cases[i].why);
        assert_memory_equal(&s->arms[0].config, &empty->arms[0].config, sizeof(struct config));
        arena_close(&arena);
    }
}

static void validate_orders_differ(void **state) {
    (void)state;
    static const struct {
        const char *b;
        int differ;
    } cases[] = {
        {"seed: 18", 0},
        {"numerics: {order_seed: 5}", 1},
        {"rng: {order: advance 1 at 2}", 1},
        {"resume: {after: 4}", 0},
        {"resume: {after: 4, restores: [data]}", 1},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct arena arena = ARENA_EMPTY;
        const struct scenario *s =
            helper_parse(&arena, scenario_text(&arena, SHUFFLES, "", cases[i].b), NULL);
        assert_int_equal(stream_orders_differ(&s->arms[0].config, &s->arms[1].config) != 0,
                         cases[i].differ);
        arena_close(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_takes), cmocka_unit_test(validate_refusals),
        cmocka_unit_test(validate_room),  cmocka_unit_test(verify_equal_lists_are_equal_bytes),
        cmocka_unit_test(validate_inert), cmocka_unit_test(validate_orders_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The comparison of two ledgers: the first consumer and update that differ, consumers that only one
 * run has, seeds, runs that begin later, and traces without a ledger. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/arena.h"
#include "determinism/ledger.h"
#include "determinism/trace.h"

#define CONSUMERS 4
#define UPDATES 3

#define STREAMS 2

static const char *const streams[STREAMS] = {"dropout", "order"};

struct fake {
    int64_t places[UPDATES][STREAMS][RECORD_PLACES];
    struct record_consumer consumers[CONSUMERS];
    struct record records[UPDATES];
    int64_t words[UPDATES][CONSUMERS][RECORD_LEDGERS];
    struct trace_run run;
};

static const struct record_consumer usual[CONSUMERS] = {
    {.name = "init/q", .stream = STREAM_INIT, .op = 1, .seed = 17, .initial = 640},
    {.name = "data/permute", .stream = STREAM_DATA, .op = 0, .seed = 17},
    {.name = "dropout/attention", .stream = STREAM_DROPOUT, .op = 60, .seed = 5},
    {.name = "dropout/branch-mlp", .stream = STREAM_DROPOUT, .op = 32, .seed = 5},
};

static void fake_open(struct fake *fake) {
    memset(fake, 0, sizeof *fake);
    memcpy(fake->consumers, usual, sizeof usual);
    for (uint64_t i = 0; i < UPDATES; i++) {
        for (int64_t c = 1; c < CONSUMERS; c++)
            fake->words[i][c][LEDGER_WORDS] = 100 * c + (int64_t)i;
        fake->records[i].step = i + 1;
        fake->records[i].ledger = fake->words[i];
        fake->records[i].places = fake->places[i];
        for (int st = 0; st < STREAMS; st++) {
            fake->places[i][st][PLACE_SEED] = 5 + st;
            fake->places[i][st][PLACE_CLOCK] = (int64_t)i;
        }
    }
    fake->run.plan.consumers = fake->consumers;
    fake->run.plan.shape.consumers = CONSUMERS;
    fake->run.plan.streams = streams;
    fake->run.plan.shape.streams = STREAMS;
    fake->run.records = fake->records;
    fake->run.updates = UPDATES;
}

static void check_text(const struct fake *a, const struct fake *b, const char *wanted) {
    static const char *const names[2] = {"A", "B"};
    struct ledger_difference difference;
    struct arena arena = ARENA_EMPTY;
    char *text;
    ledger_compare(&a->run, &b->run, &difference);
    assert_int_equal(ledger_words(&difference, names, &arena, &text), STATUS_OK);
    assert_string_equal(text, wanted);
    arena_close(&arena);
}

static void validate_equal(void **state) {
    (void)state;
    struct fake a, b;
    fake_open(&a);
    fake_open(&b);
    check_text(&a, &b, "");
}

static void validate_first_update(void **state) {
    (void)state;
    struct fake a, b;
    struct ledger_difference difference;
    fake_open(&a);
    fake_open(&b);
    b.words[2][1][LEDGER_WORDS] = 7;
    b.words[1][3][LEDGER_WORDS] += 1;
    check_text(&a, &b, "update 2: dropout/branch-mlp drew 301 words in A, 302 in B");
    b.words[1][2][LEDGER_WORDS] = 0;
    check_text(&a, &b,
               "update 2: dropout/attention drew 201 words in A, 0 in B (and 1 other consumer)");
    ledger_compare(&a.run, &b.run, &difference);
    assert_int_equal(difference.update, 2);
    assert_string_equal(difference.consumer, "dropout/attention");
    assert_int_equal(difference.others, 1);
    b.run.updates = 1; /* what is not in both is not compared */
    check_text(&a, &b, "");
}

static void validate_initial(void **state) {
    (void)state;
    struct fake a, b;
    fake_open(&a);
    fake_open(&b);
    b.consumers[0].initial = 1280;
    b.words[0][1][LEDGER_WORDS] = 0;
    check_text(&a, &b, "before update 1: init/q drew 640 words in A, 1280 in B");
}

static void validate_only_one_has_it(void **state) {
    (void)state;
    struct fake a, b;
    fake_open(&a);
    fake_open(&b);
    a.consumers[2].name = "rounding/q";
    check_text(&a, &b, "update 1: rounding/q drew 200 words in A, 0 in B (and 1 other consumer)");
    check_text(&b, &a,
               "update 1: dropout/attention drew 200 words in A, 0 in B (and 1 other consumer)");
    for (int i = 0; i < UPDATES; i++)
        a.words[i][2][LEDGER_WORDS] = b.words[i][2][LEDGER_WORDS] = 0;
    check_text(&a, &b, ""); /* it could draw, and did not */
}

static void validate_seeds(void **state) {
    (void)state;
    struct fake a, b;
    fake_open(&a);
    fake_open(&b);
    b.consumers[2].seed = b.consumers[3].seed = UINT64_MAX;
    check_text(&a, &b,
               "every consumer drew equally many words; seed of dropout: 5 in A, "
               "18446744073709551615 in B");
    b.consumers[0].seed = 18;
    check_text(&a, &b,
               "every consumer drew equally many words; seed of init: 17 in A, 18 in B; of "
               "dropout: 5 in A, 18446744073709551615 in B");
    for (int i = 0; i < UPDATES; i++)
        for (int c = 2; c < 4; c++)
            a.words[i][c][LEDGER_WORDS] = b.words[i][c][LEDGER_WORDS] = 0;
    check_text(&a, &b, "every consumer drew equally many words; seed of init: 17 in A, 18 in B");
}

/* A restart has put a stream back, or an event has moved it. */
static void validate_places(void **state) {
    (void)state;
    struct fake a, b;
    fake_open(&a);
    fake_open(&b);
    b.places[1][0][PLACE_CLOCK] = 0;
    b.places[2][0][PLACE_CLOCK] = 1;
    check_text(
        &a, &b,
        "every consumer drew equally many words; stream dropout stands at seed 5, clock 1 in "
        "A and at seed 5, clock 0 in B before update 2");
    b.words[2][1][LEDGER_WORDS] = 7;
    check_text(&a, &b,
               "update 3: data/permute drew 102 words in A, 7 in B; stream dropout stands at seed "
               "5, clock 1 in A and at seed 5, clock 0 in B before update 2");
    fake_open(&b);
    b.places[2][0][PLACE_SEED] = -1;
    check_text(
        &a, &b,
        "every consumer drew equally many words; stream dropout stands at seed 5, clock 2 in "
        "A and at seed 18446744073709551615, clock 2 in B before update 3");
    fake_open(&b);
    for (int i = 0; i < UPDATES; i++)
        b.places[i][1][PLACE_SEED] = 77; /* orders of repeats: each has its own seed */
    check_text(&a, &b, "");
    b.places[0][1][PLACE_CLOCK] = 3;
    check_text(
        &a, &b,
        "every consumer drew equally many words; stream order stands at seed 6, clock 0 in A "
        "and at seed 77, clock 3 in B before update 1");
    fake_open(&b);
    b.consumers[2].seed = b.consumers[3].seed = 6; /* told once */
    for (int i = 0; i < UPDATES; i++)
        b.places[i][0][PLACE_SEED] = 6;
    check_text(&a, &b, "every consumer drew equally many words; seed of dropout: 5 in A, 6 in B");
}

/* A hybrid that forked has only the updates from its fork on; the others must not count as a
 * difference. */
static void validate_later_start(void **state) {
    (void)state;
    struct fake a, b;
    fake_open(&a);
    fake_open(&b);
    b.run.records = b.records + 1;
    b.run.updates = 2;
    b.words[0][1][LEDGER_WORDS] = 1;
    check_text(&a, &b, "");
    b.words[2][1][LEDGER_WORDS] = 1;
    check_text(&a, &b, "update 3: data/permute drew 102 words in A, 1 in B");
}

static void validate_not_recorded(void **state) {
    (void)state;
    struct fake a, b;
    struct ledger_difference difference;
    fake_open(&a);
    fake_open(&b);
    b.run.plan.shape.consumers = 0;
    b.run.plan.consumers = NULL;
    ledger_compare(&a.run, &b.run, &difference);
    assert_int_equal(difference.recorded, 0);
    check_text(&a, &b, "");
    for (uint32_t of_a = 0; of_a < 3; of_a++)
        for (uint32_t of_b = 0; of_b < 3; of_b++) { /* one consumer is enough, in both */
            fake_open(&a);
            fake_open(&b);
            a.run.plan.shape.consumers = of_a;
            b.run.plan.shape.consumers = of_b;
            ledger_compare(&a.run, &b.run, &difference);
            assert_int_equal(difference.recorded, of_a > 0 && of_b > 0);
        }
}

/* Each consumer adds to its own operation of its stream; a number that no stream has is refused. */
static void validate_sums(void **state) {
    (void)state;
    static struct stream_ledger sums;
    struct fake a;
    for (int how = 0; how < 9; how++) {
        fake_open(&a);
        a.words[1][0][LEDGER_WORDS] = 9;
        a.consumers[1].op = STREAM_OPS - 1;
        a.consumers[3].stream = STREAM_COUNT - 1;
        if (how == 1) a.consumers[3].op = a.consumers[2].op;
        if (how == 2) a.consumers[2].stream = STREAM_COUNT;
        if (how == 3) a.consumers[2].op = STREAM_OPS;
        if (how == 4) a.words[1][2][LEDGER_WORDS] = -1;
        if (how == 5) a.words[1][2][LEDGER_WORDS] = 0;
        if (how == 6) a.run.plan.shape.consumers = 0;
        if (how == 7) a.run.plan.shape.consumers = 1;
        if (how == 8) a.consumers[3].stream = STREAM_DROPOUT, a.consumers[3].op = 60;
        memset(&sums, 1, sizeof sums);
        const int is = ledger_of(&a.run.plan, &a.records[1], &sums);
        assert_int_equal(is, how < 2 || how == 5 || how > 6);
        if (!is) continue;
        uint64_t all = 0;
        for (int s = 0; s < STREAM_COUNT; s++)
            for (int o = 0; o < STREAM_OPS; o++)
                all += sums.words[s][o];
        assert_int_equal(all, how == 5 ? 9 + 101 + 301 : how == 7 ? 9 : 9 + 101 + 201 + 301);
        assert_int_equal(sums.words[STREAM_INIT][1], 9);
        if (how == 7) continue;
        assert_int_equal(sums.words[STREAM_DATA][STREAM_OPS - 1], 101);
        assert_int_equal(sums.words[STREAM_DROPOUT][60], how == 5 ? 0 : how == 8 ? 502 : 201);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_equal),       cmocka_unit_test(validate_first_update),
        cmocka_unit_test(validate_initial),     cmocka_unit_test(validate_only_one_has_it),
        cmocka_unit_test(validate_seeds),       cmocka_unit_test(validate_places),
        cmocka_unit_test(validate_later_start), cmocka_unit_test(validate_not_recorded),
        cmocka_unit_test(validate_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

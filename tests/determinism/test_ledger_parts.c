/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Ledgers of random runs, told a second time: consumers that either run may lack, words before the
 * first update and in each, streams with seeds and clocks, updates that only one run has, and the
 * sentence about all of it, whole. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "determinism/ledger.h"
#include "determinism/trace.h"
#include "tests/base/helper_draws.h"

enum { CONSUMERS = 6, STREAMS = 3, UPDATES = 3, CASES = 20000, TEXT = 2048 };

static const char *const names[CONSUMERS] = {
    "data/permute", "dropout/a", "dropout/b", "order/x", "a-stream-of-17-letters/y", "dropout/c"};
static const char *const streams[STREAMS] = {"dropout", "order", "data"};

static struct draws draws;

static uint32_t pick(uint32_t most) {
    return draws_pick(&draws, most);
}

struct side {
    struct trace_run run;
    struct record rows[UPDATES];
    struct record_consumer consumers[CONSUMERS];
    const char *streams[STREAMS];
    int64_t ledger[UPDATES][CONSUMERS][RECORD_LEDGERS];
    int64_t places[UPDATES][STREAMS][RECORD_PLACES];
    int which[CONSUMERS], stream[STREAMS]; /* of all names */
};

/* Puts what is common to most runs, with some numbers of its own. */
static void make_side(struct side *of, uint32_t odd) {
    uint64_t step = pick(3) == 0 ? 1 : 0;
    memset(of, 0, sizeof *of);
    of->run.records = of->rows;
    of->run.plan.consumers = of->consumers;
    of->run.plan.streams = of->streams;
    const uint32_t turn = pick(4) == 0 ? pick(CONSUMERS) : 0;
    for (uint32_t i = 0; i < CONSUMERS; i++) {
        const uint32_t name = (i + turn) % CONSUMERS;
        if (pick(8) == 0) continue;
        const uint32_t at = of->run.plan.shape.consumers++;
        of->which[at] = (int)name;
        of->consumers[at] =
            (struct record_consumer){.name = names[name],
                                     .stream = name % 3,
                                     .op = name,
                                     .seed = 17 + (pick(odd) == 0 ? pick(3) : 0),
                                     .initial = pick(odd) == 0 ? pick(3) : name % 2};
    }
    for (uint32_t i = 0; i < STREAMS; i++) {
        if (pick(8) == 0) continue;
        const uint32_t at = of->run.plan.shape.streams++;
        of->stream[at] = (int)i;
        of->streams[at] = streams[i];
    }
    const uint32_t rows = pick(UPDATES + 1);
    for (uint32_t u = 0; u < rows; u++) {
        struct record *const row = &of->rows[of->run.updates];
        step += pick(6) == 0 ? 2 : 1;
        row->step = step;
        row->ledger = of->ledger[of->run.updates];
        row->places = of->places[of->run.updates];
        for (uint32_t i = 0; i < of->run.plan.shape.consumers; i++)
            row->ledger[i][LEDGER_WORDS] = pick(odd) == 0          ? (int64_t)pick(4) - 1
                                           : of->which[i] % 2 == 0 ? 0
                                                                   : 4;
        for (uint32_t i = 0; i < of->run.plan.shape.streams; i++) {
            row->places[i][PLACE_SEED] = 17 + (pick(odd) == 0);
            row->places[i][PLACE_CLOCK] = (int64_t)step + (pick(odd) == 0);
        }
        of->run.updates++;
    }
}

static int place_of(const struct side *of, uint32_t name) {
    for (uint32_t i = 0; i < of->run.plan.shape.consumers; i++)
        if (of->which[i] == (int)name) return (int)i;
    return -1;
}

static int stream_of(const struct side *of, int stream) {
    for (uint32_t i = 0; i < of->run.plan.shape.streams; i++)
        if (of->stream[i] == stream) return (int)i;
    return -1;
}

/* What consumer `name` drew; row -1: before the first update. What was not noted is nothing. */
static uint64_t drawn(const struct side *of, uint32_t name, int row) {
    const int at = place_of(of, name);
    if (at < 0) return 0;
    const int64_t words =
        row < 0 ? (int64_t)of->consumers[at].initial : of->ledger[row][at][LEDGER_WORDS];
    return words > 0 ? (uint64_t)words : 0;
}

static int ever_drew(const struct side *of, uint32_t name) {
    uint64_t all = 0;
    for (int row = -1; row < (int)of->run.updates; row++)
        all += drawn(of, name, row);
    return all > 0;
}

/* The names in the order in which they are told: those of A, then those that B has alone. */
static size_t order_of(const struct side *a, const struct side *b, uint32_t *out) {
    size_t count = 0;
    for (uint32_t i = 0; i < a->run.plan.shape.consumers; i++)
        out[count++] = (uint32_t)a->which[i];
    for (uint32_t i = 0; i < b->run.plan.shape.consumers; i++)
        if (place_of(a, (uint32_t)b->which[i]) < 0) out[count++] = (uint32_t)b->which[i];
    return count;
}

static struct ledger_difference expected_of(const struct side *a, const struct side *b) {
    struct ledger_difference out;
    uint32_t order[2 * CONSUMERS];
    memset(&out, 0, sizeof out);
    out.consumer = "";
    out.recorded = a->run.plan.shape.consumers > 0 && b->run.plan.shape.consumers > 0;
    if (!out.recorded) return out;
    const size_t count = order_of(a, b, order);
    for (int i = -1; i < (int)a->run.updates && !out.found; i++)
        for (int j = -1; j < (int)b->run.updates && !out.found; j++) {
            if ((i < 0) != (j < 0) || (i >= 0 && a->rows[i].step != b->rows[j].step)) continue;
            for (size_t c = 0; c < count; c++) {
                const uint64_t here = drawn(a, order[c], i), there = drawn(b, order[c], j);
                if (here == there) continue;
                if (out.found) out.others++;
                if (out.found) continue;
                out.found = 1;
                out.consumer = names[order[c]];
                out.words[0] = here;
                out.words[1] = there;
                out.update = i < 0 ? 0 : a->rows[i].step;
            }
        }
    for (uint32_t i = 0; i < a->run.plan.shape.consumers; i++) {
        const uint32_t name = (uint32_t)a->which[i];
        const int other = place_of(b, name);
        char stream[16];
        if (other < 0 || a->consumers[i].seed == b->consumers[other].seed) continue;
        if (!ever_drew(a, name) || !ever_drew(b, name)) continue;
        snprintf(stream, sizeof stream, "%.*s", (int)(strchr(names[name], '/') - names[name]),
                 names[name]);
        /* Consumers of one stream stand together, and the first of them tells its seed. */
        if (out.seed_count > 0 && strcmp(out.seeds[out.seed_count - 1].stream, stream) == 0)
            continue;
        struct ledger_seed *const seed = &out.seeds[out.seed_count++];
        strcpy(seed->stream, stream);
        seed->seed[0] = a->consumers[i].seed;
        seed->seed[1] = b->consumers[other].seed;
    }
    for (size_t i = 0; i < a->run.updates; i++)
        for (size_t j = 0; j < b->run.updates; j++) {
            if (a->rows[i].step != b->rows[j].step) continue;
            for (uint32_t s = 0; s < a->run.plan.shape.streams && out.place.stream == NULL; s++) {
                const int other = stream_of(b, a->stream[s]);
                if (other < 0) continue;
                const int64_t *const p = a->places[i][s], *const q = b->places[j][other];
                int told = a->stream[s] == 1; /* orders are given seeds of their own */
                for (uint32_t k = 0; k < out.seed_count; k++)
                    told |= strcmp(out.seeds[k].stream, a->streams[s]) == 0;
                const int seeds = p[PLACE_SEED] != q[PLACE_SEED] && !told;
                if (p[PLACE_CLOCK] == q[PLACE_CLOCK] && !seeds) continue;
                out.place =
                    (struct ledger_place){a->streams[s],
                                          a->rows[i].step,
                                          {(uint64_t)p[PLACE_SEED], (uint64_t)q[PLACE_SEED]},
                                          {(uint64_t)p[PLACE_CLOCK], (uint64_t)q[PLACE_CLOCK]}};
            }
        }
    return out;
}

static char expected_words[TEXT];
static size_t used;

static void say(const char *format, ...) TWINSTEP_PRINTF(1, 2);
static void say(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(expected_words + used, TEXT - used, format, arguments);
    va_end(arguments);
    assert_true(length >= 0 && used + (size_t)length < TEXT);
    used += (size_t)length;
}

static void say_all(const struct ledger_difference *of) {
    used = 0;
    say("%s", "");
    if (!of->recorded || (!of->found && of->seed_count == 0 && of->place.stream == NULL)) return;
    if (!of->found)
        say("every consumer drew equally many words");
    else {
        if (of->update == 0)
            say("before update 1: ");
        else
            say("update %d: ", (int)of->update);
        say("%s drew %d words in left, %d in right", of->consumer, (int)of->words[0],
            (int)of->words[1]);
        if (of->others > 0)
            say(" (and %u other consumer%s)", of->others, of->others > 1 ? "s" : "");
    }
    for (uint32_t i = 0; i < of->seed_count; i++)
        say("; %sof %s: %d in left, %d in right", i == 0 ? "seed " : "", of->seeds[i].stream,
            (int)of->seeds[i].seed[0], (int)of->seeds[i].seed[1]);
    if (of->place.stream != NULL)
        say("; stream %s stands at seed %d, clock %d in left and at seed %d, clock %d in right "
            "before update %d",
            of->place.stream, (int)of->place.seed[0], (int)of->place.clock[0],
            (int)of->place.seed[1], (int)of->place.clock[1], (int)of->place.update);
}

static void corroborate_ledgers(void **state) {
    (void)state;
    static struct side a, b;
    static const char *const sides[2] = {"left", "right"};
    size_t found[2] = {0, 0}, seeds = 0, places = 0, quiet = 0;
    struct arena arena = ARENA_EMPTY;
    for (uint32_t number = 0; number < CASES; number++) {
        struct ledger_difference out;
        char *words;
        draws = (struct draws){.key = UINT64_C(0x1ed6), .number = number};
        const uint32_t odd = 2 + pick(60);
        make_side(&a, odd);
        make_side(&b, odd);
        if (pick(20) == 0) a.run.plan.shape.consumers = 0;
        if (pick(20) == 0) b.run.plan.shape.consumers = 0;
        const struct ledger_difference expected = expected_of(&a, &b);
        ledger_compare(&a.run, &b.run, &out);
        if (!!out.recorded != expected.recorded || !!out.found != expected.found)
            fail_msg("case %u: found %d", number, out.found);
        if (expected.found &&
            (out.update != expected.update || out.others != expected.others ||
             out.words[0] != expected.words[0] || out.words[1] != expected.words[1]))
            fail_msg("case %u: words", number);
        assert_string_equal(out.consumer, expected.consumer);
        assert_int_equal(out.seed_count, expected.seed_count);
        assert_memory_equal(&out.place, &expected.place, sizeof out.place);
        say_all(&expected);
        assert_int_equal(ledger_words(&out, sides, &arena, &words), STATUS_OK);
        if (strcmp(words, expected_words) != 0)
            fail_msg("case %u: %s\nnot\n%s", number, words, expected_words);
        if (expected.found) found[expected.update > 0]++;
        seeds += expected.seed_count > 1;
        places += expected.place.stream != NULL;
        quiet += words[0] == '\0';
        arena_close(&arena);
        arena = (struct arena)ARENA_EMPTY;
    }
    assert_true(found[0] > 1000 && found[1] > 500 && seeds > 200 && places > 1000 && quiet > 500);
}

/* As many streams as there are tell their seeds, and no more. */
static void validate_many_seeds(void **state) {
    (void)state;
    enum { MORE = STREAM_COUNT + 2 };
    static struct record_consumer consumers[2][MORE];
    static char texts[MORE][16];
    struct trace_run runs[2] = {{.updates = 0}, {.updates = 0}};
    struct ledger_difference out;
    for (int s = 0; s < 2; s++) {
        for (uint32_t i = 0; i < MORE; i++) {
            snprintf(texts[i], sizeof texts[i], "s%u/x", i);
            consumers[s][i] = (struct record_consumer){
                .name = texts[i], .seed = 10 * i + (uint64_t)s, .initial = 1};
        }
        runs[s].plan.consumers = consumers[s];
        runs[s].plan.shape.consumers = MORE;
    }
    ledger_compare(&runs[0], &runs[1], &out);
    assert_int_equal(out.seed_count, STREAM_COUNT);
    for (uint32_t i = 0; i < STREAM_COUNT; i++)
        assert_true(out.seeds[i].seed[0] == 10 * i && out.seeds[i].seed[1] == 10 * i + 1);
}

/* Sums by stream and op; numbers that no stream has, and what was not noted, leave no ledger. */
static void corroborate_sums(void **state) {
    (void)state;
    static struct stream_ledger out;
    static const uint64_t of_streams[] = {0, 1, STREAM_COUNT - 1, STREAM_COUNT};
    static const uint64_t ops[] = {0, 1, STREAM_OPS - 1, STREAM_OPS};
    struct record_consumer consumers[2] = {{.name = "a"}, {.name = "b"}};
    int64_t ledger[2][RECORD_LEDGERS];
    struct trace_run_plan plan = {.consumers = consumers};
    struct record record = {.ledger = ledger};
    for (int number = 0; number < 256 * 9; number++)
        for (uint32_t count = 0; count < 3; count++) {
            int left = number, expected = count > 0;
            for (size_t i = 0; i < 2; i++, left /= 48) {
                consumers[i].stream = of_streams[left % 4];
                consumers[i].op = ops[left / 4 % 4];
                ledger[i][LEDGER_WORDS] = left / 16 % 3 - 1;
                if (i >= count) continue;
                if (left % 4 == 3 || left / 4 % 4 == 3 || left / 16 % 3 == 0) expected = 0;
            }
            plan.shape.consumers = count;
            memset(&out, 7, sizeof out);
            if (!!ledger_of(&plan, &record, &out) != expected) fail_msg("case %d", number);
            if (!expected) continue;
            uint64_t all = 0;
            for (size_t s = 0; s < STREAM_COUNT; s++)
                for (size_t op = 0; op < STREAM_OPS; op++)
                    all += out.words[s][op];
            uint64_t sum = 0;
            for (uint32_t i = 0; i < count; i++) {
                uint64_t of_pair = 0;
                for (uint32_t j = 0; j < count; j++)
                    if (consumers[i].stream == consumers[j].stream &&
                        consumers[i].op == consumers[j].op)
                        of_pair += (uint64_t)ledger[j][LEDGER_WORDS];
                assert_int_equal(out.words[consumers[i].stream][consumers[i].op], of_pair);
                sum += (uint64_t)ledger[i][LEDGER_WORDS];
            }
            assert_int_equal(all, sum);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_ledgers),
        cmocka_unit_test(validate_many_seeds),
        cmocka_unit_test(corroborate_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

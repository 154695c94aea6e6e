/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The grammar of rng.data and its like: the canonical texts, and what every refusal says. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "scenarios/stream_events.h"
#include "tests/scenarios/helper_scenario.h"

static const struct {
    const char *text, *canonical;
} good[] = {
    {"none", "none"},
    {"  none ", "none"},
    {"advance 1 at 1", "advance 1 at 1"},
    {" advance\t007   at 09 ,seed 5 at 2", "seed 5 at 2, advance 7 at 9"},
    {"save a at 3, load a at 3, advance 4 at 2", "advance 4 at 2, save a at 3, load a at 3"},
    {"load a at 4,save a at 4", "load a at 4, save a at 4"},
    {"seed 18446744073709551615 clock 0 at 1", "seed 18446744073709551615 clock 0 at 1"},
    {"advance 9007199254740992 at 18446744073709551615",
     "advance 9007199254740992 at 18446744073709551615"},
    {"take other-arm_2 at 6", "take other-arm_2 at 6"},
    {"save at at 1, load at at 2", "save at at 1, load at at 2"},
    {"save none at 1, save clock at 1", "save none at 1, save clock at 1"},
    {"save a at 1, save b at 2, save c at 3, save d at 4, load b at 5",
     "save a at 1, save b at 2, save c at 3, save d at 4, load b at 5"},
    {"save abcdefghijklmnopqrstuvwxyz01234 at 1", "save abcdefghijklmnopqrstuvwxyz01234 at 1"},
    {"seed 1 at 1,seed 2 at 1,seed 3 at 1", "seed 1 at 1, seed 2 at 1, seed 3 at 1"},
};

static void validate_canonical(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        struct stream_events events, again;
        char text[CONFIG_EVENTS_SIZE];
        if (stream_events_parse(good[i].text, &events) != STATUS_OK)
            fail_msg("%s: %s", good[i].text, status_text());
        memset(text, 'x', sizeof text);
        assert_int_equal(stream_events_print(&events, text, sizeof text), STATUS_OK);
        assert_string_equal(text, good[i].canonical);
        for (size_t at = strlen(text); at < sizeof text; at++)
            assert_int_equal(text[at], 0);
        assert_int_equal(stream_events_parse(text, &again), STATUS_OK);
        assert_int_equal(stream_events_print(&again, text, sizeof text), STATUS_OK);
        assert_string_equal(text, good[i].canonical);
    }
}

static const struct {
    const char *text, *message;
} bad[] = {
    {"", "event 1: expected advance, save, load, seed or take, got the end"},
    {"  ", "event 1: expected advance, save, load, seed or take, got the end"},
    {"none, seed 1 at 1", "event 1: expected nothing after none, got a comma"},
    {"none seed", "event 1: expected nothing after none, got \"seed\""},
    {"advence 1 at 3", "event 1: expected advance, save, load, seed or take, got \"advence\""},
    {"seed 1 at 1, ", "event 2: expected advance, save, load, seed or take, got the end"},
    {"seed 1 at 1,,seed 2 at 2",
     "event 2: expected advance, save, load, seed or take, got a comma"},
    {"seed 1 at 1 seed 2 at 2", "event 1: expected a comma or the end, got \"seed\""},
    {"seed 1 at 1; seed 2 at 2", "event 1: expected an update, counted from 1, got \"1;\""},
    {"advance 0 at 1", "event 1: expected a number from 1 to 2^53, got \"0\""},
    {"advance -1 at 1", "event 1: expected a number from 1 to 2^53, got \"-1\""},
    {"advance 9007199254740993 at 1",
     "event 1: expected a number from 1 to 2^53, got \"9007199254740993\""},
    {"advance 1.5 at 1", "event 1: expected a number from 1 to 2^53, got \"1.5\""},
    {"advance", "event 1: expected a number from 1 to 2^53, got the end"},
    {"advance 1", "event 1: expected at, got the end"},
    {"advance 1 by 2", "event 1: expected at, got \"by\""},
    {"advance 1 at", "event 1: expected an update, counted from 1, got the end"},
    {"advance 1 at 0", "event 1: expected an update, counted from 1, got \"0\""},
    {"seed 18446744073709551616 at 1",
     "event 1: expected a seed from 0 to 18446744073709551615, got \"18446744073709551616\""},
    {"seed 11111111111111111111111111 at 1",
     "event 1: expected a seed from 0 to 18446744073709551615, got "
     "\"11111111111111111111111111\""},
    {"seed 1 offset 2 at 1", "event 1: expected at or clock, got \"offset\""},
    {"seed 1 clock at 1", "event 1: expected a clock from 0 to 2^53, got \"at\""},
    {"seed 1 clock 1 clock 2 at 1", "event 1: expected at, got \"clock\""},
    {"save a.b at 1",
     "event 1: expected the name of a slot: up to 31 letters, digits, - or _, got \"a.b\""},
    {"save abcdefghijklmnopqrstuvwxyz012345 at 1",
     "event 1: expected the name of a slot: up to 31 letters, digits, - or _, got "
     "\"abcdefghijklmnopqrstuvwxyz012345\""},
    {"save a at 1, save b at 1, save c at 1, save d at 1, save e at 1",
     "event 5: expected at most 4 names of slots, got \"e\" too"},
    {"take at 1", "event 1: expected at, got \"1\""},
    {"take", "event 1: expected the name of the other arm, got the end"},
    {"seed 1 at 1,seed 1 at 1,seed 1 at 1,seed 1 at 1,seed 1 at 1,seed 1 at 1,seed 1 at 1,"
     "seed 1 at 1,seed 1 at 1,seed 1 at 1,seed 1 at 1,seed 1 at 1,seed 1 at 1,seed 1 at 1,"
     "seed 1 at 1,seed 1 at 1,seed 1 at 1",
     "expected at most 16 events"},
};

static void validate_refusals(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct stream_events events;
        if (stream_events_parse(bad[i].text, &events) != STATUS_INPUT)
            fail_msg("accepted: %s", bad[i].text);
        assert_string_equal(status_text(), bad[i].message);
    }
}

static void validate_size(void **state) {
    (void)state;
    struct stream_events events;
    char text[16];
    assert_int_equal(stream_events_parse("seed 10 at 3456", &events), STATUS_OK);
    assert_int_equal(stream_events_print(&events, text, 16), STATUS_OK);
    assert_string_equal(text, "seed 10 at 3456");
    assert_int_equal(stream_events_print(&events, text, 15), STATUS_INPUT);
    assert_string_equal(status_text(), "expected events of at most 14 characters");
    assert_string_equal(text, "");
}

/* Words, numbers and commas in random order must be refused, or their text must read back. */
static void verify_random_texts(void **state) {
    (void)state;
    static const char *const words[] = {"advance", "save", "load", "seed", "take", "at",   "clock",
                                        "none",    "a",    "b",    "0",    "1",    "4294", ",",
                                        ",",       "at",   "1",    "seed", "\t",   "~"};
    struct helper_random random = {23};
    int accepted = 0;
    for (int i = 0; i < 200000; i++) {
        char text[256] = "", printed[CONFIG_EVENTS_SIZE], again[CONFIG_EVENTS_SIZE];
        struct stream_events events;
        const uint64_t count = 1 + helper_draw(&random, 8);
        for (uint64_t w = 0; w < count; w++) {
            strcat(text, words[helper_draw(&random, COUNT_OF(words))]);
            strcat(text, " ");
        }
        if (stream_events_parse(text, &events) != STATUS_OK) continue;
        accepted++;
        assert_int_equal(stream_events_print(&events, printed, sizeof printed), STATUS_OK);
        assert_int_equal(stream_events_parse(printed, &events), STATUS_OK);
        assert_int_equal(stream_events_print(&events, again, sizeof again), STATUS_OK);
        assert_string_equal(again, printed);
    }
    assert_true(accepted > 100);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_canonical),
        cmocka_unit_test(validate_refusals),
        cmocka_unit_test(validate_size),
        cmocka_unit_test(verify_random_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

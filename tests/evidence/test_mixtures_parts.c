/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What mixtures of causes do inside the floor, in words: every choice of the mixtures that go
 * farther than repeats, with the list of names made a second time; and the row of figures. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "evidence/judge_rows_mixtures.c" /* for the parts, which no other file asks for */

enum { CAUSES = 3, CHOICES = 1 << CAUSES };

static const char *const names[CAUSES] = {"schedule", "dtype", "optimizer"};
static struct judgement judgement;
static struct arena arena;

/* Bit i of `alone`, and of `without`: the mixture of cause i is beyond the floor. */
static void open_mixtures(unsigned alone, unsigned without) {
    memset(&judgement, 0, sizeof judgement);
    judgement.cause_count = CAUSES;
    judgement.alpha = 0.01;
    judgement.arms[0] = "left";
    struct judged_mixtures *const of = &judgement.mixtures;
    of->unasked = "";
    of->runs = 8;
    of->count = 7;
    of->level = 0.00125;
    of->confidence = 0.99;
    of->bound = 0.0125;
    of->farthest = 6;
    of->farthest_low = 0.75;
    for (unsigned i = 0; i < CAUSES; i++) {
        snprintf(judgement.causes[i].name, sizeof judgement.causes[i].name, "%s", names[i]);
        of->alone[i].is_beyond = (int)(alone >> i & 1u);
        of->alone[i].size.low = 1.0 + i;
        of->without[i].is_beyond = (int)(without >> i & 1u);
        of->without[i].size.low = 0.25 * (1.0 + i);
        of->beyond += (alone >> i & 1u) + (without >> i & 1u);
    }
}

static const char *put(void) {
    static struct judged_row rows[2];
    struct row_pen pen = {.arena = &arena, .rows = rows};
    row_add(&pen, ROW_HEADLINE, "INSIDE");
    judge_put_mixtures(&judgement, &pen);
    assert_int_equal(pen.status, STATUS_OK);
    assert_int_equal(pen.count, 1);
    return rows[0].text;
}

/* "schedule 1, optimizer 3", which no code under test makes. */
static size_t list(unsigned mask, double unit, char *out, size_t room) {
    size_t length = 0;
    for (unsigned i = 0; i < CAUSES; i++)
        if ((mask & 1u << i) != 0)
            length += (size_t)snprintf(out + length, room - length, "%s%s %g",
                                       length == 0 ? "" : ", ", names[i], unit * (1.0 + i));
    return length;
}

static void validate_words(void **state) {
    (void)state;
    static const struct {
        enum attribution_word word;
        const char *begin;
    } words[] = {{WORD_NEARLY, "The causes cancel, or nearly: "},
                 {WORD_OPPOSE, "Causes oppose each other: "},
                 {WORD_SEVERAL, "Causes act all the same: "}};
    for (size_t w = 0; w < COUNT_OF(words); w++)
        for (unsigned alone = 0; alone < CHOICES; alone++)
            for (unsigned without = 0; without < CHOICES; without++)
                for (int bound = 0; bound < 2; bound++) {
                    char names_of[200] = "", expected[600];
                    const int repaired = words[w].word == WORD_OPPOSE || alone == 0;
                    open_mixtures(alone, without);
                    judgement.word = words[w].word;
                    judgement.mixtures.beyond++; /* one of two causes of three is, too */
                    if (!bound) judgement.mixtures.bound = 0.0;
                    list(repaired ? without : alone, repaired ? 0.25 : 1.0, names_of,
                         sizeof names_of);
                    snprintf(expected, sizeof expected, "INSIDE. %s%s, but %s%s.", words[w].begin,
                             bound ? "the arms are at most 0.0125 apart"
                                   : "8 runs of each arm ended in the same weights",
                             words[w].word != WORD_OPPOSE && alone == 0 && without == 0
                                 ? "one mixture moves the weights by at least 0.75: dtype + "
                                   "optimizer"
                             : repaired
                                 ? "with one cause repaired they would be apart by at least: "
                                 : "alone a cause moves the weights by at least: ",
                             names_of);
                    assert_string_equal(put(), expected);
                    arena_close(&arena);
                }
    open_mixtures(0, 0);
    assert_string_equal(put(), "INSIDE; no cause is named.");
    arena_close(&arena);
}

static void validate_names_of_a_mixture(void **state) {
    (void)state;
    static const char *const texts[CHOICES] = {"",
                                               "schedule",
                                               "dtype",
                                               "schedule + dtype",
                                               "optimizer",
                                               "schedule + optimizer",
                                               "dtype + optimizer",
                                               "schedule + dtype + optimizer"};
    for (unsigned mask = 0; mask < CHOICES; mask++) {
        char expected[200];
        open_mixtures(0, 0);
        judgement.mixtures.beyond = 1;
        judgement.mixtures.farthest = mask;
        snprintf(expected, sizeof expected,
                 "INSIDE. Causes act all the same: the arms are at most 0.0125 apart, but one "
                 "mixture moves the weights by at least 0.75: %s.",
                 texts[mask]);
        assert_string_equal(put(), expected);
        arena_close(&arena);
    }
}

static const char *row(void) {
    static struct judged_row rows[2];
    struct row_pen pen = {.arena = &arena, .rows = rows};
    judge_row_mixtures(&judgement, &pen);
    assert_int_equal(pen.status, STATUS_OK);
    assert_true(pen.count <= 1);
    if (pen.count == 1) assert_int_equal(rows[0].kind, ROW_MIXTURES);
    return pen.count == 1 ? rows[0].text : "";
}

static void validate_row(void **state) {
    (void)state;
    open_mixtures(1, 2);
    judgement.cause_count = 2;
    for (uint32_t i = 0; i < 2; i++)
        for (int without = 0; without < 2; without++) {
            struct judged_mixture *const of =
                without ? &judgement.mixtures.without[i] : &judgement.mixtures.alone[i];
            of->size.value = of->size.low + 0.5;
            of->size.high = of->size.low + 1.0;
            of->p = 0.5 / (1.0 + i);
        }
    assert_string_equal(row(),
                        "2 of 7 go farther from left than repeats do: 8 runs of each, labels "
                        "permuted, p <= 0.00125, which holds alpha = 0.01 for all together\n"
                        "the arms are at most 0.0125 apart; noise of runs taken out, intervals at "
                        "99 %\n"
                        "schedule alone 1.5 [1, 2], p = 0.5, beyond repeats; repaired 0.75 [0.25, "
                        "1.25], p = 0.5\n"
                        "dtype alone 2.5 [2, 3], p = 0.25; repaired 1 [0.5, 1.5], p = 0.25, beyond "
                        "repeats");
    judgement.mixtures.runs = 1;
    assert_true(row()[0] != '\0');
    judgement.mixtures.runs = 0;
    assert_string_equal(row(), "");
    judgement.mixtures.unasked = "no repeats";
    assert_string_equal(row(), "whether causes cancel was not asked: no repeats");
    judgement.mixtures.runs = 8;
    assert_string_equal(row(), "whether causes cancel was not asked: no repeats");
    arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_words),
        cmocka_unit_test(validate_names_of_a_mixture),
        cmocka_unit_test(validate_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

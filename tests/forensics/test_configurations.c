/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What two runs of other programs say of themselves, once more: random configurations with groups
 * of keys, causes of either writer, empty values and lines without a colon, and random places of
 * phases in updates of which either run may lack some. The expected texts are put together from
 * lists, by the words of forensics/compare_foreign.h. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "forensics/compare_foreign.h"
#include "tests/base/helper_draws.h"

enum { CASES = 6000, KEYS = 16, TEXT = 4096, UPDATES = 4, PHASES = 4 };

static const char *const names[] = {
    "lr",    "seed",  "args.a", "args.b", "args.c", "args.d", "args.e", "argsx.a",
    "m.a.b", "m.a.c", "m.b",    "m.c",    ".x",     "l",      "lrs",    "optimizer.betas"};
static const char *const values[] = {"1", "0.1", "12", "", "one two", "a: b"};
static const char *const causes[] = {"schedule", "data order", ""};

struct side {
    int has[KEYS], order[KEYS];
    const char *value[KEYS], *cause[KEYS];
    char text[TEXT], cause_text[TEXT];
    struct trace_foreign foreign;
    struct trace_run_plan plan;
};

static size_t add(char *to, size_t at, const char *format, ...) TWINSTEP_PRINTF(3, 4);
static size_t add(char *to, size_t at, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(to + at, TEXT - at, format, arguments);
    va_end(arguments);
    assert_true(length >= 0 && at + (size_t)length < TEXT);
    return at + (size_t)length;
}

static void make_side(struct side *of, struct draws *draws, const struct side *like) {
    size_t at = 0, cause_at = 0;
    const uint32_t share = 1 + draws_pick(draws, 4);
    memset(of, 0, sizeof *of);
    for (int k = 0; k < KEYS; k++) { /* keys in an order of their own */
        const uint32_t place = draws_pick(draws, (uint32_t)k + 1);
        for (uint32_t i = (uint32_t)k; i > place; i--)
            of->order[i] = of->order[i - 1];
        of->order[place] = k;
    }
    for (int i = 0; i < KEYS; i++) {
        const int k = of->order[i];
        of->has[k] = draws_pick(draws, 5) < share;
        of->value[k] = values[draws_pick(draws, COUNT_OF(values))];
        if (like != NULL && like->has[k] && draws_pick(draws, 2) == 0)
            of->value[k] = like->value[k];
        if (draws_pick(draws, 8) == 0) at = add(of->text, at, "no colon here\n");
        if (of->has[k])
            at = add(of->text, at, "%s:%s%s\n", names[k],
                     of->value[k][0] == '\0'     ? ""
                     : draws_pick(draws, 3) == 0 ? " \t"
                                                 : " ",
                     of->value[k]);
        if (draws_pick(draws, 4) > 0) continue;
        of->cause[k] = causes[draws_pick(draws, COUNT_OF(causes))];
        cause_at = add(of->cause_text, cause_at, "%s: %s\n", names[k], of->cause[k]);
    }
    if (at > 0 && draws_pick(draws, 3) == 0)
        of->text[at - 1] = '\0'; /* no end of line at the end */
    of->foreign.causes = of->cause_text;
    of->plan.foreign = &of->foreign;
    of->plan.configuration = of->text;
}

/* The length of the group's name, 0 for a key of none. */
static size_t group_of(int k) {
    const char *const dot = strchr(names[k], '.');
    return dot == NULL ? 0 : (size_t)(dot - names[k]);
}

static unsigned count_of(const struct side *of, int k) {
    unsigned count = 0;
    for (int i = 0; i < KEYS; i++)
        count += of->has[i] && group_of(i) == group_of(k) && group_of(k) > 0 &&
                 strncmp(names[i], names[k], group_of(k)) == 0;
    return count;
}

/* Whether a key is told with its group: one of four or more, of which the other run has none. */
static int is_grouped(const struct side *own, const struct side *other, int k) {
    return own->has[k] && count_of(own, k) >= 4 && count_of(other, k) == 0;
}

static size_t add_key(char *to, size_t at, const struct side *a, const struct side *b, int k) {
    const char *const cause = a->cause[k] != NULL ? a->cause[k] : b->cause[k];
    at = add(to, at, "%s%s: %s | %s", at > 0 ? "; " : "", names[k],
             a->has[k] ? a->value[k] : "not there", b->has[k] ? b->value[k] : "not there");
    return cause == NULL ? at : add(to, at, " (%s)", cause);
}

static size_t add_groups(char *to, size_t at, const struct side *own, const struct side *other,
                         int in_a) {
    for (int i = 0; i < KEYS; i++) {
        const int k = own->order[i];
        int first = is_grouped(own, other, k);
        for (int before = 0; before < i; before++) {
            const int j = own->order[before];
            first &= !(own->has[j] && group_of(j) == group_of(k) &&
                       strncmp(names[j], names[k], group_of(k)) == 0);
        }
        if (!first) continue;
        at = add(to, at, "%s%.*s.*: ", at > 0 ? "; " : "", (int)group_of(k), names[k]);
        at = in_a ? add(to, at, "%u keys | not there", count_of(own, k))
                  : add(to, at, "not there | %u keys", count_of(own, k));
    }
    return at;
}

/* Leaves so many entries of a list and counts the others; returns whether there are any. No value
 * here holds what stands between entries. */
static size_t shorten(char *list, size_t most) {
    size_t count = list[0] != '\0';
    char *end = NULL;
    for (char *at = strstr(list, "; "); at != NULL; at = strstr(at + 2, "; "))
        if (count++ == most) end = at;
    if (end != NULL) snprintf(end, TEXT - (size_t)(end - list), "; and %zu more", count - most);
    return end != NULL;
}

static void corroborate_configurations(void **state) {
    (void)state;
    static struct side a, b;
    size_t groups = 0, equal = 0, cut = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        struct draws draws = {.key = UINT64_C(0xc0f1), .number = number};
        struct arena arena = ARENA_EMPTY;
        static char expected[TEXT];
        const char *found;
        size_t at = 0;
        make_side(&a, &draws, NULL);
        make_side(&b, &draws, &a);
        if (number % 50 == 0) b = a;
        if (number % 50 == 0) b.plan.configuration = b.text;
        if (number % 50 == 0) b.plan.foreign = &b.foreign;
        expected[0] = '\0';
        for (int i = 0; i < KEYS; i++) {
            const int k = a.order[i];
            if (!a.has[k] || (b.has[k] && strcmp(a.value[k], b.value[k]) == 0)) continue;
            if (b.has[k] || !is_grouped(&a, &b, k)) at = add_key(expected, at, &a, &b, k);
        }
        for (int i = 0; i < KEYS; i++) {
            const int k = b.order[i];
            if (b.has[k] && !a.has[k] && !is_grouped(&b, &a, k))
                at = add_key(expected, at, &a, &b, k);
        }
        const size_t before = at;
        at = add_groups(expected, at, &a, &b, 1);
        at = add_groups(expected, at, &b, &a, 0);
        groups += at > before;
        equal += at == 0;
        assert_int_equal(compare_configurations(&a.plan, &b.plan, 0, &arena, &found), STATUS_OK);
        if (strcmp(found, expected) != 0)
            fail_msg("pair %u:\n%s\nnot\n%s\nof\n%s\nand\n%s", number, found, expected, a.text,
                     b.text);
        const size_t most = 1 + number % 5;
        cut += shorten(expected, most);
        assert_int_equal(compare_configurations(&a.plan, &b.plan, most, &arena, &found), STATUS_OK);
        assert_string_equal(found, expected);
        arena_close(&arena);
    }
    assert_true(cut > CASES / 5 && cut < CASES);
    assert_true(groups > CASES / 20 && equal >= CASES / 50);
}

/* ---- orders ---- */

static const char *const phases[PHASES] = {"fetch", "forward", "optimize", "zero"};

struct loop {
    struct trace_run run;
    struct record records[UPDATES + 1];
    int64_t places[UPDATES + 1][PHASES][RECORD_PHASES];
};

static void make_loop(struct loop *of, struct draws *draws, const struct loop *like) {
    uint64_t step = draws_pick(draws, 2);
    memset(of, 0, sizeof *of);
    of->run.plan.phases = (const char **)(uintptr_t)phases;
    of->run.plan.shape.phases = draws_pick(draws, 6) == 0 ? draws_pick(draws, PHASES) : PHASES;
    of->run.records = of->records;
    of->run.updates = draws_pick(draws, UPDATES + 1);
    for (size_t i = 0; i <= UPDATES; i++) {
        step += draws_pick(draws, 6) == 0 ? 2 : 1;
        of->records[i].step = step;
        of->records[i].phase_places = of->places[i];
        const int same = like != NULL && draws_pick(draws, 3) > 0;
        const int empty = draws_pick(draws, 8) == 0;
        for (size_t p = 0; p < PHASES; p++) {
            of->places[i][p][PHASE_PLACE] = same    ? like->places[i][p][PHASE_PLACE]
                                            : empty ? -1
                                                    : (int64_t)(4 * draws_pick(draws, 5) + p) - 4;
            if (of->places[i][p][PHASE_PLACE] < 0) of->places[i][p][PHASE_PLACE] = -1;
        }
    }
}

/* The phases that were seen, by their places, all of which differ. */
static void order_of(const struct loop *of, size_t row, char *to) {
    size_t at = 0;
    to[0] = '\0';
    for (int64_t place = 0; place < 4 * 6; place++)
        for (uint32_t p = 0; p < of->run.plan.shape.phases; p++)
            if (of->places[row][p][PHASE_PLACE] == place)
                at = add(to, at, "%s%s", at > 0 ? ", " : "", phases[p]);
}

static void corroborate_orders(void **state) {
    (void)state;
    static struct loop a, b;
    static char expected[TEXT], here[TEXT], there[TEXT];
    size_t differ = 0;
    for (uint32_t number = 0; number < 4 * CASES; number++) {
        struct draws draws = {.key = UINT64_C(0xc0f2), .number = number};
        struct arena arena = ARENA_EMPTY;
        const char *found;
        int done = 0;
        make_loop(&a, &draws, NULL);
        make_loop(&b, &draws, &a);
        expected[0] = '\0';
        for (size_t i = 0; i < a.run.updates; i++)
            for (size_t j = 0; j < b.run.updates && !done; j++) {
                if (a.records[i].step != b.records[j].step) continue;
                order_of(&a, i, here);
                order_of(&b, j, there);
                if (here[0] == '\0' || there[0] == '\0' || strcmp(here, there) == 0) continue;
                (void)add(expected, 0, "update %d: A %s; B %s", (int)a.records[i].step, here,
                          there);
                done = 1;
            }
        assert_int_equal(compare_orders(&a.run, &b.run, &arena, &found), STATUS_OK);
        if (strcmp(found, expected) != 0) fail_msg("pair %u: %s, not %s", number, found, expected);
        order_of(&a, 0, here);
        assert_int_equal(compare_order_of(&a.run.plan, &a.records[0], &arena, &found), STATUS_OK);
        assert_string_equal(found, here);
        differ += done != 0;
        arena_close(&arena);
    }
    assert_true(differ > CASES && differ < 3 * CASES);
}

/* Which keys are settings: not what was found in the machine, nor what was not recorded, nor seeds.
 * Both runs have one setting in common, before or behind the key. */
static void validate_settings(void **state) {
    (void)state;
    static const struct {
        const char *key;
        int is_setting;
    } keys[] = {{"lr", 1},
                {"frozen", 0},
                {"not_recorded", 0},
                {"env.CUDA", 0},
                {"env.", 0},
                {"env", 1},
                {"seed", 0},
                {"args.seed", 0},
                {"args.data_seed", 0},
                {"seeds", 1},
                {"frozen.a", 1},
                {"froze", 1},
                {"not_recorded_", 1},
                {"a.frozen", 1},
                {"args.env.x", 1},
                {"not", 1}};
    for (size_t k = 0; k < COUNT_OF(keys); k++)
        for (int how = 0; how < 6; how++) {
            char text[2][128];
            struct trace_run_plan plans[2] = {{0}, {0}};
            for (int s = 0; s < 2; s++) { /* another value, or in one of them alone */
                const int has = how / 2 == 0 || how / 2 - 1 == s;
                snprintf(text[s], sizeof text[s], "%s%s%s%s%s", how % 2 == 0 ? "eps: 1\n" : "",
                         has ? keys[k].key : "", has ? (s == 0 ? ": 12" : ": 13") : "",
                         has ? "\n" : "", how % 2 == 1 ? "eps: 1\n" : "");
                plans[s].configuration = text[s];
            }
            if (compare_settings_apart(&plans[0], &plans[1]) != keys[k].is_setting)
                fail_msg("%s, %d", keys[k].key, how);
            assert_int_equal(compare_settings_apart(&plans[0], &plans[0]), 0);
            plans[1].configuration = "";
            assert_int_equal(compare_settings_apart(&plans[0], &plans[1]), 1); /* eps */
        }
}

/* Keys of a parameter group that one run alone has are told as one, however many there are. */
static void validate_parameter_groups(void **state) {
    (void)state;
    static const struct {
        const char *a, *b, *words, *turned;
    } cases[] = {
        {"optimizer.0.0.eps: 1\noptimizer.0.1.weight_decay: 0.1\noptimizer.0.1.eps: 1\n",
         "optimizer.0.0.eps: 1\n",
         "optimizer.0.1: this parameter group is in A alone (weight decay 0.1)",
         "optimizer.0.1: this parameter group is in B alone (weight decay 0.1)"},
        {"optimizer.0.0.eps: 1\noptimizer.0.1.eps: 1\noptimizer.0.2.eps: 1\nlr: 1\n",
         "optimizer.0.0.eps: 2\nlr: 2\n",
         "optimizer.0.0.eps: 1 | 2; optimizer.0.1: this parameter group is in A alone; "
         "optimizer.0.2: this parameter group is in A alone; lr: 1 | 2",
         "optimizer.0.0.eps: 2 | 1; lr: 2 | 1; optimizer.0.1: this parameter group is in B alone; "
         "optimizer.0.2: this parameter group is in B alone"},
        /* group 1 is not group 10, and a key that is missing in a group of both is told by itself
         */
        {"optimizer.0.1.eps: 1\noptimizer.0.1.fused: 1\n",
         "optimizer.0.1.eps: 1\noptimizer.0.10.eps: 1\n",
         "optimizer.0.1.fused: 1 | not there; optimizer.0.10: this parameter group is in B alone",
         "optimizer.0.10: this parameter group is in A alone; optimizer.0.1.fused: not there | 1"},
        {"optimizer.0.1.eps: 1\n", "optimizer.0.10.eps: 1\n",
         "optimizer.0.1: this parameter group is in A alone; optimizer.0.10: this parameter group "
         "is in B alone",
         "optimizer.0.10: this parameter group is in A alone; optimizer.0.1: this parameter group "
         "is in B alone"},
        {"optimizer.0: Adam\noptimizer.0.x.eps: 1\n", "optimizer.0: Adam\n",
         "optimizer.0.x.eps: 1 | not there", "optimizer.0.x.eps: not there | 1"},
    };
    static const struct trace_foreign foreign = {.causes = ""};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct arena arena = ARENA_EMPTY;
        const struct trace_run_plan a = {.configuration = cases[i].a, .foreign = &foreign},
                                    b = {.configuration = cases[i].b, .foreign = &foreign};
        const char *text;
        assert_int_equal(compare_configurations(&a, &b, 0, &arena, &text), STATUS_OK);
        assert_string_equal(text, cases[i].words);
        assert_int_equal(compare_configurations(&b, &a, 0, &arena, &text), STATUS_OK);
        assert_string_equal(text, cases[i].turned);
        arena_close(&arena);
    }
}

/* Which kernel steps is a key of an optimizer that both have. */
static void validate_kernels(void **state) {
    (void)state;
    static const struct {
        const char *a, *b;
        int apart;
    } cases[] = {
        {"optimizer.0.0.fused: None\n", "optimizer.0.0.fused: True\n", 1},
        {"optimizer.0.0.foreach: None\n", "optimizer.0.0.foreach: False\n", 1},
        {"optimizer.0.1.capturable: True\n", "optimizer.0.1.capturable: False\n", 1},
        {"optimizer.0.0.fused: None\n", "optimizer.0.0.fused: None\n", 0},
        {"optimizer.0.0.fused: None\n", "optimizer.0.0.foreach: True\n", 0},
        {"optimizer.0.0.betas: 1\n", "optimizer.0.0.betas: 2\n", 0},
        {"args.fused: None\n", "args.fused: True\n", 0},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct trace_run_plan a = {.configuration = cases[i].a},
                                    b = {.configuration = cases[i].b};
        assert_int_equal(compare_kernels_apart(&a, &b), cases[i].apart);
        assert_int_equal(compare_kernels_apart(&b, &a), cases[i].apart);
    }
}

/* Settings that change the labels of a model, each by itself; one that a run does not have tells
 * nothing. */
static void validate_labels(void **state) {
    (void)state;
    static const struct {
        const char *a, *b, *key;
    } cases[] = {
        {"args.completion_only_loss: True\n", "args.completion_only_loss: False\n",
         "args.completion_only_loss"},
        {"args.assistant_only_loss: True\n", "args.assistant_only_loss: False\n",
         "args.assistant_only_loss"},
        {"args.label_smoothing_factor: 0.0\n", "args.label_smoothing_factor: 0.1\n",
         "args.label_smoothing_factor"},
        {"args.label_smoothing_factor: 0.0\n", "args.seed: 1\n", NULL},
        {"args.seed: 2\n", "args.seed: 1\n", NULL},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct trace_run_plan a = {.configuration = cases[i].a},
                                    b = {.configuration = cases[i].b};
        const char *const found[] = {compare_labels_key(&a, &b), compare_labels_key(&b, &a)};
        for (size_t s = 0; s < 2; s++)
            if (cases[i].key == NULL)
                assert_null(found[s]);
            else
                assert_string_equal(found[s], cases[i].key);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_parameter_groups), cmocka_unit_test(validate_kernels),
        cmocka_unit_test(validate_labels),           cmocka_unit_test(corroborate_configurations),
        cmocka_unit_test(corroborate_orders),        cmocka_unit_test(validate_settings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

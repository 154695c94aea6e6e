/* SPDX-License-Identifier: Apache-2.0
 * labels: unit memory
 * Mutated scenarios and options must never crash, hang, or fail without a text; what is accepted
 * must validate and print. A fixed number of cases runs from a fixed seed; TWINSTEP_FUZZ_CASES=N
 * runs N of them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/scenarios/helper_scenario.h"

#define SEED 4711
#define CASES 8000
#define SIZE 1500

static const char *const sources[] = {
    "twinstep: 1\nname: x\nsteps: 7\ncommon: &c\n  seed: 3\n  batch: {size: 8, micro: 2}\n"
    "  optimizer: {name: adamw, lr: 5e-7, beta1: 0.8}\narms:\n  baseline: {}\n  test:\n"
    "    <<: *c\n    loop:\n      update: [count, clip, schedule, optimize, log, zero]\n"
    "expect: {verdict: outside-floor, cause: schedule, first_step: 1}\n",
    "twinstep: 1\nabout: |\n  two\n  lines\ncommon:\n  numerics: {mode: shuffled, order_seed: 4,\n"
    "    param: bf16, master: f32}\n  shuffle: {kinds: [loss, norm], chunk: 8}\n"
    "  schedule: {name: linear, total: 10, warmup_ratio: 0.25, minimum: 0.5}\n"
    "arms: {a: {}, b: {data: {seed: 9, pairs: \"a b\"}}}\nfloor: {alpha: 0.1}\n",
};

/* Pieces that mean something to YAML or to this program. */
static const char *const pieces[] = {
    "{",
    "}",
    "[",
    "]",
    ": ",
    ", ",
    "\n",
    "  ",
    "&a ",
    "*a",
    "<<: ",
    "- ",
    "? ",
    "|\n",
    ">\n",
    "%",
    "\n%\xff",
    "---\n",
    "\"",
    "'",
    "!!x ",
    "#",
    "\t",
    "~",
    "auto",
    "1e400",
    "-1",
    "18446744073709551616",
    "\xf0\x9f",
    "\xe2\x82\xac",
    "\\x00",
    "...\n",
    "@",
    "common",
    "arms",
    "test",
    "optimizer: {name: sgd}",
    "\r\n",
    "free",
    "0.5",
    "null",
};

static size_t mutate(struct helper_random *random, char *text, size_t length) {
    size_t at = (size_t)helper_draw(random, length + 1);
    size_t left = length - at;
    switch (helper_draw(random, 4)) {
    case 0: /* another byte */
        if (left != 0) text[at] = (char)helper_draw(random, 256);
        return length;
    case 1: { /* a piece put in */
        const char *piece = pieces[helper_draw(random, COUNT_OF(pieces))];
        size_t size = strlen(piece);
        if (length + size > SIZE) return length;
        memmove(text + at + size, text + at, left);
        memcpy(text + at, piece, size);
        return length + size;
    }
    case 2: { /* a stretch taken out */
        size_t size = (size_t)helper_draw(random, 12);
        if (size > left) size = left;
        memmove(text + at, text + at + size, left - size);
        return length - size;
    }
    default: { /* a stretch given twice */
        size_t size = (size_t)helper_draw(random, 40);
        if (size > left || length + size > SIZE) return length;
        memmove(text + at + size, text + at, left);
        return length + size;
    }
    }
}

static size_t mutant(struct helper_random *random, char text[SIZE]) {
    const char *source = sources[helper_draw(random, COUNT_OF(sources))];
    size_t length = strlen(source);
    memcpy(text, source, length);
    for (uint64_t i = helper_draw(random, 3) + 1; i > 0; i--)
        length = mutate(random, text, length);
    return length;
}

/* Makes an option of a line of a mutant, with its first colon turned into an equals sign. */
static void option_of(const char *text, size_t length, char out[64]) {
    static const char prefix[] = "common.batch.";
    size_t used = sizeof prefix - 1;
    memcpy(out, prefix, used);
    for (size_t i = 0; i < length && used < 63 && text[i] != '\0'; i++)
        out[used++] = text[i] == ':' ? '=' : text[i];
    out[used] = '\0';
}

static void check_accepted(struct arena *arena, const struct scenario *s) {
    for (int a = 0; a < 2; a++) {
        char *text = NULL;
        assert_int_equal(config_validate(&s->arms[a].config, s->steps), STATUS_OK);
        assert_int_equal(config_text(&helper_schema, &s->arms[a].config, arena, &text), STATUS_OK);
        assert_true(s->arms[a].name[0] != '\0');
    }
}

static void validate_sources(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(sources); i++) {
        struct arena arena = ARENA_EMPTY;
        check_accepted(&arena, helper_parse(&arena, sources[i], NULL));
        arena_close(&arena);
    }
}

static void verify_mutants(void **state) {
    (void)state;
    struct helper_random random = {SEED};
    const char *wish = getenv("TWINSTEP_FUZZ_CASES");
    long cases = wish == NULL ? CASES : strtol(wish, NULL, 10);
    long accepted = 0;
    char text[SIZE];
    for (long i = 0; i < cases; i++) {
        struct arena arena = ARENA_EMPTY;
        struct scenario *s = NULL;
        size_t length = mutant(&random, text);
        char option[64];
        const char *overrides[1] = {option};
        option_of(text + helper_draw(&random, length + 1) / 2, length / 2, option);
        size_t options = helper_draw(&random, 8) == 0;
        enum status status = scenario_parse(&arena, &helper_schema, "fuzz.yaml", text, length,
                                            overrides, options, &s);
        if (status == STATUS_OK)
            check_accepted(&arena, s);
        else if (strstr(status_text(), "error: ") == NULL)
            fail_msg("case %ld: no error text: %s", i, status_text());
        if (status != STATUS_OK && status != STATUS_INPUT && status != STATUS_UNSUPPORTED)
            fail_msg("case %ld: status %d: %s", i, (int)status, status_text());
        accepted += status == STATUS_OK;
        arena_close(&arena);
    }
    print_message("# seed %d, %ld cases, %ld accepted\n", SEED, cases, accepted);
    assert_true(accepted > cases / 100 && accepted < cases);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_sources),
        cmocka_unit_test(verify_mutants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

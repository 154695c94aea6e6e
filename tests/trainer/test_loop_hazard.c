/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What `twinstep check` says of an order of phases: which f(.) update k applies and logs, and which
 * hazards the order has. */
#include "trainer/loop.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/trainer/helper_loop.h"

#define HF "clip optimize log count schedule zero"
#define H17 "count clip schedule optimize log zero"

static const struct word_case {
    const char *update;
    uint64_t origin, increment;
    int64_t shift, logged_shift;
    int32_t start, logged;
    const char *applied, *shown;
} word_cases[] = {
    {HF, 0, 1, 0, 0, START_F0, LOGGED_CURRENT, "f(k-1)", "f(k-1)"},
    {H17, 0, 1, 0, 0, START_F0, LOGGED_CURRENT, "f(k)", "f(k)"},
    /* open-instruct's dpo_tune_cache logs after schedule, so its logged column is that of H17. */
    {"clip optimize count schedule log zero", 0, 1, 0, 0, START_F0, LOGGED_CURRENT, "f(k-1)",
     "f(k)"},
    {HF, 0, 1, 0, 0, START_BASE, LOGGED_CURRENT, "base at k=1, then f(k-1)",
     "base at k=1, then f(k-1)"},
    {HF, 0, 1, 0, 0, START_ZERO, LOGGED_CURRENT, "zero at k=1, then f(k-1)",
     "zero at k=1, then f(k-1)"},
    {HF, 0, 1, 0, 0, START_MIN, LOGGED_CURRENT, "min at k=1, then f(k-1)",
     "min at k=1, then f(k-1)"},
    {H17, 0, 1, 0, 0, START_ZERO, LOGGED_CURRENT, "f(k)", "f(k)"},
    {"clip optimize log schedule count zero", 0, 1, 0, 0, START_F0, LOGGED_CURRENT,
     "f(0) at k=1, then f(k-2)", "f(0) at k=1, then f(k-2)"},
    {"schedule clip optimize log count zero", 0, 1, 0, 0, START_BASE, LOGGED_CURRENT, "f(k-1)",
     "f(k-1)"},
    {HF, 0, 1, 1, 0, START_F0, LOGGED_CURRENT, "f(0) at k=1, then f(k)", "f(0) at k=1, then f(k)"},
    {HF, 0, 8, 0, 0, START_F0, LOGGED_CURRENT, "f(8(k-1))", "f(8(k-1))"},
    {HF, 0, 8, -3, 0, START_ZERO, LOGGED_CURRENT, "zero at k=1, then f(8k-11)",
     "zero at k=1, then f(8k-11)"},
    {H17, 0, 8, 0, 0, START_F0, LOGGED_CURRENT, "f(8k)", "f(8k)"},
    {HF, 100, 1, 0, 0, START_F0, LOGGED_CURRENT, "f(k+99)", "f(k+99)"},
    {HF, 0, 1, 0, 1, START_F0, LOGGED_RECOMPUTED, "f(k-1)", "f(k)"},
    {HF, 0, 0, 0, 0, START_F0, LOGGED_CURRENT, "f(0)", "f(0)"},
    {"clip optimize log count zero", 0, 1, 0, 0, START_BASE, LOGGED_CURRENT, "base at every update",
     "base at every update"},
    {"clip optimize log schedule zero", 0, 1, 0, 0, START_BASE, LOGGED_CURRENT,
     "base at k=1, then f(0)", "base at k=1, then f(0)"},
    {"clip optimize log count count schedule zero", 0, 1, 0, 0, START_F0, LOGGED_CURRENT,
     "f(2(k-1))", "f(2(k-1))"},
};

static void set_schedule(struct config *config, const struct word_case *c) {
    helper_loop_orders(NULL, c->update, config);
    config->schedule.origin = c->origin;
    config->schedule.increment = c->increment;
    config->schedule.shift = c->shift;
    config->schedule.logged_shift = c->logged_shift;
    config->schedule.start = c->start;
    config->schedule.logged = c->logged;
}

static void validate_words(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(word_cases); i++) {
        const struct word_case *c = &word_cases[i];
        struct config config;
        struct loop_words words;
        set_schedule(&config, c);
        loop_words_of(&config, &words);
        if (strcmp(words.applied, c->applied) != 0 || strcmp(words.logged, c->shown) != 0)
            fail_msg("case %zu: expected \"%s\" and \"%s\", got \"%s\" and \"%s\"", i, c->applied,
                     c->shown, words.applied, words.logged);
    }
}

/* Compares the phrase with numbers that come from the definition of the phases: only count advances
 * n, and only schedule sets the LR. 2000 random orders, 6 updates, 1 to 9 micro-batches. */
#define NO_COUNTER (-1e9)

struct shadow {
    const struct config *config;
    uint64_t n;
    double lr, applied; /* counters; NO_COUNTER: the start */
};

static void shadow_list(struct shadow *shadow, const struct key_list *items) {
    for (uint32_t i = 0; i < items->count; i++) {
        if (items->item[i] == PHASE_COUNT_UPDATE) shadow->n++;
        if (items->item[i] == PHASE_OPTIMIZE) shadow->applied = shadow->lr;
        if (items->item[i] == PHASE_SCHEDULE)
            shadow->lr = loop_schedule_counter(shadow->config, shadow->n);
    }
}

static void expect_phrase(const char *phrase, uint64_t k, double counter) {
    long long slope = 0;
    long long offset = 0;
    const char *f = strstr(phrase, "then ");
    if (counter == NO_COUNTER) {
        assert_true(strncmp(phrase, "base", 4) == 0);
        assert_true(k == 1 || strstr(phrase, "every update") != NULL);
        return;
    }
    f = f != NULL ? f + 5 : phrase;
    if (sscanf(f, "f(%lld(k%lld))", &slope, &offset) == 2)
        offset *= slope;
    else if (sscanf(f, "f(%lldk%lld)", &slope, &offset) == 2 ||
             (sscanf(f, "f(%lldk)", &slope) == 1 && strchr(f, 'k') != NULL))
        slope += 0;
    else if (f[2] == 'k')
        slope = 1 + 0 * sscanf(f, "f(k%lld)", &offset);
    else {
        slope = 0;
        assert_int_equal(sscanf(f, "f(%lld)", &offset), 1);
    }
    if ((double)(slope * (long long)k + offset) != counter)
        fail_msg("\"%s\" at k=%u: counter %g", phrase, (unsigned)k, counter);
}

static void verify_words_on_random_orders(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 2000; seed++) {
        struct config config;
        struct loop_words words;
        helper_loop_standard(&config);
        helper_loop_random(seed, &config);
        config.schedule.start = START_BASE;
        config.schedule.increment = 1 + seed % 3;
        config.schedule.shift = (int64_t)(seed % 5) - 2;
        config.batch.size = 1 + seed % 9;
        config.batch.micro = 1;
        loop_words_of(&config, &words);
        struct shadow shadow = {&config, 0, NO_COUNTER, NO_COUNTER};
        for (uint64_t k = 1; k <= 6; k++) {
            for (uint64_t m = 0; m < config.batch.size; m++)
                shadow_list(&shadow, &config.loop.micro);
            shadow_list(&shadow, &config.loop.update);
            expect_phrase(words.applied, k, shadow.applied);
        }
    }
}

#define BIT(kind) (1u << (kind))

static const struct hazard_case {
    const char *micro, *update;
    uint32_t notes, warnings;
    const char *text; /* occurs in a sentence; NULL: not checked */
} hazard_cases[] = {
    {NULL, HF, BIT(LOOP_LR_OLDER), 0,
     "optimize reads an LR that schedule wrote one update earlier"},
    {NULL, "schedule clip optimize log count zero", BIT(LOOP_SCHEDULE_ALONE), 0,
     "schedule runs before optimize and count after it: update k still applies f(k-1)"},
    {NULL, "clip schedule optimize log count zero", BIT(LOOP_SCHEDULE_ALONE), 0, "scheduler_step"},
    {"fetch forward backward schedule", "clip optimize log count zero",
     BIT(LOOP_SCHEDULE_ALONE) | BIT(LOOP_SCHEDULE_OFTEN), 0, "scheduler_step"},
    {NULL, H17, 0, BIT(LOOP_LR_OFFSET),
     "count and schedule run before optimize: update k applies f(k), 1 "
     "update ahead of f(k-1)"},
    {NULL, "clip optimize log schedule count zero", BIT(LOOP_LR_OLDER), BIT(LOOP_LR_OFFSET),
     "schedule runs before count: update k applies f(0) at k=1, then f(k-2), 1 update behind"},
    {NULL, "clip optimize count schedule log zero", BIT(LOOP_LR_OLDER) | BIT(LOOP_LOGGED_DIFFERS),
     0, "log prints a later LR than is applied: update k applies f(k-1), logs f(k)"},
    {NULL, "log count schedule clip optimize zero", BIT(LOOP_LOGGED_DIFFERS), BIT(LOOP_LR_OFFSET),
     "log prints an earlier LR than is applied"},
    {NULL, "clip optimize log count schedule", BIT(LOOP_LR_OLDER), BIT(LOOP_GRADIENT_CARRIES),
     "zero never runs in an update"},
    {NULL, "zero clip optimize log count schedule", BIT(LOOP_LR_OLDER), BIT(LOOP_GRADIENT_EMPTY),
     "no gradient of this update reaches optimize"},
    {NULL, "optimize clip log count schedule zero", BIT(LOOP_LR_OLDER), BIT(LOOP_CLIP_LATE),
     "clip runs after optimize and has no effect on this update"},
    {NULL, "optimize log count schedule zero", BIT(LOOP_LR_OLDER), BIT(LOOP_CLIP_NEVER),
     "clip.max_norm has no effect"},
    {NULL, "clip optimize log count zero", 0, BIT(LOOP_LR_FROZEN), "schedule never runs"},
    {NULL, "clip optimize log schedule zero", BIT(LOOP_LR_OLDER), BIT(LOOP_LR_FROZEN),
     "count never runs"},
    {NULL, "clip optimize optimize log count schedule zero", BIT(LOOP_LR_OLDER),
     BIT(LOOP_OPTIMIZE_OFTEN), "optimize runs 2 times per update"},
    {NULL, "clip optimize log count schedule schedule zero",
     BIT(LOOP_LR_OLDER) | BIT(LOOP_SCHEDULE_OFTEN), 0, "schedule runs 2 times per update"},
    {"zero fetch forward backward", HF, BIT(LOOP_LR_OLDER), BIT(LOOP_GRADIENT_PARTIAL),
     "zero runs in every micro-batch: only the last one reaches optimize"},
    {"fetch forward backward clip", "optimize log count schedule zero", BIT(LOOP_LR_OLDER),
     BIT(LOOP_CLIP_MICRO), "partial sums are clipped"},
    {"fetch forward backward count schedule", "clip optimize log zero", 0,
     BIT(LOOP_COUNT_OFTEN) | BIT(LOOP_SCHEDULE_OFTEN), "count runs 2 times per update"},
    {"fetch forward backward optimize zero", "clip log count schedule", BIT(LOOP_LR_OLDER),
     BIT(LOOP_GRADIENT_PARTIAL) | BIT(LOOP_CLIP_LATE) | BIT(LOOP_OPTIMIZE_OFTEN),
     "optimize runs before all micro-batches"},
    {"zero fetch forward optimize backward", "clip log count schedule", BIT(LOOP_LR_OLDER),
     BIT(LOOP_GRADIENT_EMPTY) | BIT(LOOP_OPTIMIZE_OFTEN) | BIT(LOOP_OPTIMIZE_IN_GRAPH),
     "optimize runs between forward and backward"},
};

static void check_hazards(size_t i, const struct config *config, uint32_t notes, uint32_t warnings,
                          const char *text) {
    struct loop_hazard found[LOOP_HAZARD_KINDS];
    const size_t count = loop_hazards(config, found);
    uint32_t seen[2] = {0, 0};
    int has_text = text == NULL;
    for (size_t h = 0; h < count; h++) {
        assert_int_equal(seen[0] & BIT(found[h].kind), 0);
        assert_int_equal(seen[1] & BIT(found[h].kind), 0);
        seen[found[h].severity] |= BIT(found[h].kind);
        if (text != NULL && strstr(found[h].text, text) != NULL) has_text = 1;
    }
    if (seen[LOOP_NOTE] == notes && seen[LOOP_WARNING] == warnings && has_text) return;
    for (size_t h = 0; h < count; h++)
        print_message("%s: %s\n", found[h].severity == LOOP_NOTE ? "note" : "warning",
                      found[h].text);
    fail_msg("case %zu: expected notes %x and warnings %x, got %x and %x", i, notes, warnings,
             seen[LOOP_NOTE], seen[LOOP_WARNING]);
}

static void validate_hazards(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(hazard_cases); i++) {
        const struct hazard_case *c = &hazard_cases[i];
        struct config config;
        helper_loop_orders(c->micro, c->update, &config);
        assert_int_equal(loop_check(&config, NULL), STATUS_OK);
        check_hazards(i, &config, c->notes, c->warnings, c->text);
    }
}

static void validate_start(void **state) {
    (void)state;
    struct config config;
    helper_loop_standard(&config);
    config.schedule.start = START_BASE;
    check_hazards(0, &config, BIT(LOOP_LR_OLDER), BIT(LOOP_LR_START), "schedule.start: base");
    config.schedule.start = START_ZERO;
    check_hazards(1, &config, BIT(LOOP_LR_OLDER), BIT(LOOP_LR_START),
                  "schedule.start: zero; it changes no parameter");
    helper_loop_orders(NULL, "schedule clip optimize log count zero", &config);
    config.schedule.start = START_ZERO; /* nobody reads it */
    check_hazards(2, &config, BIT(LOOP_SCHEDULE_ALONE), 0, NULL);
    snprintf(config.schedule.contract, sizeof config.schedule.contract, "llmc"); /* its own order */
    check_hazards(3, &config, 0, 0, NULL);
}

/* d = -1 undoes an early schedule; d = +1 is an offset by itself. */
static void validate_shift(void **state) {
    (void)state;
    struct config config;
    helper_loop_orders(NULL, H17, &config);
    config.schedule.shift = -1;
    check_hazards(0, &config, 0, 0, NULL);
    helper_loop_standard(&config);
    config.schedule.shift = 2;
    check_hazards(1, &config, BIT(LOOP_LR_OLDER), BIT(LOOP_LR_OFFSET), "2 updates ahead");
    helper_loop_standard(&config);
    config.schedule.increment = 8;
    check_hazards(2, &config, BIT(LOOP_LR_OLDER), 0, NULL);
    config.schedule.increment = 0;
    check_hazards(3, &config, BIT(LOOP_LR_OLDER), BIT(LOOP_LR_FROZEN),
                  "schedule.increment is 0: schedule sees the same counter in every update");
}

static void validate_other_lists(void **state) {
    (void)state;
    struct config config;
    helper_loop_standard(&config);
    helper_loop_list("schedule", &config.loop.eval);
    check_hazards(0, &config, BIT(LOOP_LR_OLDER), 0, NULL); /* eval never runs */
    config.loop.eval_every = 10;
    check_hazards(1, &config, BIT(LOOP_LR_OLDER), BIT(LOOP_OUTSIDE_UPDATE),
                  "schedule runs after each evaluation");
    helper_loop_orders(NULL, "clip optimize log zero", &config);
    helper_loop_list("count schedule", &config.loop.epoch);
    check_hazards(2, &config, 0, BIT(LOOP_OUTSIDE_UPDATE) | BIT(LOOP_LR_FROZEN),
                  "the LR is a staircase");
    struct loop_words words;
    loop_words_of(&config, &words);
    assert_string_equal(words.applied, "f(0) at every update, until list epoch or eval moves it");
}

static void validate_skip(void **state) {
    (void)state;
    struct config config;
    helper_loop_standard(&config);
    helper_loop_list("log count schedule zero", &config.loop.on_skip);
    check_hazards(0, &config, BIT(LOOP_LR_OLDER), 0, NULL);
    config.loop.skip = SKIP_NONFINITE;
    check_hazards(1, &config, BIT(LOOP_LR_OLDER), BIT(LOOP_SKIP_ADVANCES),
                  "still advances the schedule");
    helper_loop_list("log zero", &config.loop.on_skip);
    check_hazards(2, &config, BIT(LOOP_LR_OLDER), 0, NULL);
    helper_loop_list("optimize log", &config.loop.on_skip);
    check_hazards(3, &config, BIT(LOOP_LR_OLDER), BIT(LOOP_SKIP_APPLIES) | BIT(LOOP_SKIP_CARRIES),
                  "still changes parameters");
}

static void validate_clip_off(void **state) {
    (void)state;
    struct config config;
    helper_loop_orders(NULL, "optimize log count schedule zero", &config);
    config.clip.max_norm = 0.0;
    check_hazards(0, &config, BIT(LOOP_LR_OLDER) | BIT(LOOP_CLIP_NEVER), 0,
                  "no gradient norm is recorded");
}

/* Every sentence must be complete and fit, whatever the numbers are. */
static void verify_sentences(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 500; seed++) {
        struct config config;
        struct loop_hazard found[LOOP_HAZARD_KINDS];
        helper_loop_standard(&config);
        helper_loop_random(seed, &config);
        config.schedule.origin = (uint64_t)1 << 53;
        config.schedule.increment = ((uint64_t)1 << 53) - seed;
        config.schedule.shift = -((int64_t)1 << 53);
        config.schedule.start = (int32_t)(seed % 4);
        config.batch.size = UINT32_MAX;
        config.batch.micro = 1;
        const size_t count = loop_hazards(&config, found);
        assert_true(count <= LOOP_HAZARD_KINDS);
        for (size_t h = 0; h < count; h++) {
            const size_t length = strlen(found[h].text);
            assert_true(length > 20 && length < LOOP_TEXT - 1);
            assert_true(found[h].text[length - 1] != '.');
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_words),   cmocka_unit_test(verify_words_on_random_orders),
        cmocka_unit_test(validate_hazards), cmocka_unit_test(validate_start),
        cmocka_unit_test(validate_shift),   cmocka_unit_test(validate_other_lists),
        cmocka_unit_test(validate_skip),    cmocka_unit_test(validate_clip_off),
        cmocka_unit_test(verify_sentences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

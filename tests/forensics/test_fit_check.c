/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * In which order a check tries to agree, and what each outcome leads to: everything that a check
 * asks answers here as a script says, and notes by a letter that it was asked. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/macro.h"
#define fit_check_settle asked_settle
#define fit_check_lacks_metric asked_lacks_metric
#define fit_check_match asked_match
#define fit_check_match_unseen asked_match_unseen
#define fit_check_match_among asked_match_among
#define fit_check_match_floors asked_match_floors
#define fit_check_match_borrowed asked_match_borrowed
#define fit_check_match_skips asked_match_skips
#define fit_check_doubt_rising asked_rising
#define fit_check_match_late asked_match_late
#define fit_check_mismatch asked_mismatch
#define fit_check_judge_skips asked_judge_skips
#define fit_check_doubt_shown asked_doubt_shown
#define fit_check_doubt_beside asked_doubt_beside
#define fit_check_doubt_floor asked_doubt_floor
#define fit_check_doubt_drop asked_doubt_drop
#define fit_check_doubt_numbers asked_doubt_numbers
#define fit_check_doubt_few asked_doubt_few
#define fit_check_untested asked_untested
#define fit_find_rivals asked_rivals
#define fit_judge_rivals asked_judge_rivals
#define fit_judge_plainer asked_plainer
#define fit_find_stop asked_stop
#define fit_counts_refute asked_counts
#define fit_series asked_series
#include "forensics/fit_check.c" /* whose order of questions this is */

enum { ROWS = 5 };
static struct arena arena;
static struct series_point points[ROWS];
static struct series series;
static struct fit_known known;
static struct fit fits[2];
static struct fit_segment plain;
static struct fit_skip skip;
static struct fit_check out;

/* The script: the letter of what agrees, or 0; the verdicts that are given; and whether the counts
 * of skipped updates refute a match. `again` takes the place of `agrees` from the second check on.
 */
static struct {
    char agrees, again, counted;
    int32_t judged, rivals, steady;
    int lacks, refutes, stops, rises;
    uint32_t open; /* which numbers nobody gave, as bits of enum fit_number */
    int bad;       /* bit n: what agrees in check n + 1 has rows that do not */
    struct fit_refuted refuted;
} script;
static char asked[128];
static int checks; /* how many times numbers were settled: once for each check */

static int untested; /* how many answers were asked what they do not show */

static void note(char letter) {
    const size_t used = strlen(asked);
    assert_true(used + 1 < sizeof asked);
    asked[used] = letter;
    asked[used + 1] = '\0';
}
static enum status agree(char letter, struct fit_check *check) {
    const char wanted = checks == 1 ? script.agrees : checks == 2 ? script.again : script.counted;
    note(letter);
    if (wanted != letter) return STATUS_OK;
    check->expected = &fits[0];
    check->bad_points = (size_t)(script.bad >> (checks - 1) & 1);
    return STATUS_OK;
}

enum status asked_untested(const struct series *s, struct arena *a, struct fit_check *o) {
    (void)s, (void)a;
    assert_non_null(o->words); /* the answer is complete */
    untested++;
    return STATUS_OK;
}
enum status asked_settle(const struct series *s, struct fit_known *k, struct arena *a,
                         struct fit_check *o) {
    (void)s, (void)a;
    o->fitted = script.open;
    checks++;
    if (k->counts_hold && k->request.schedule == NULL) { /* any numbers of the contract */
        assert_true(isnan(k->request.lr) && isnan(k->request.warmup));
        assert_true(isnan(k->request.warmup_ratio) && isnan(k->request.min_lr_ratio));
        assert_int_equal(k->request.value_count, 0);
    }
    assert_int_equal(k->counts_hold != 0, checks > 1 && k->samples == NULL);
    note('s');
    return STATUS_OK;
}
int asked_lacks_metric(const struct fit_known *k) {
    (void)k;
    return script.lacks;
}
enum status asked_match(const struct series *s, const struct fit_known *k, struct arena *a,
                        struct fit_check *o) {
    (void)s, (void)k, (void)a;
    return agree('m', o);
}
enum status asked_match_unseen(const struct series *s, const struct fit_known *k, struct arena *a,
                               struct fit_check *o) {
    (void)s, (void)k, (void)a;
    return agree('u', o);
}
enum status asked_match_among(const struct series *s, const struct fit_known *k,
                              const struct fit_set *all, struct arena *a, struct fit_check *o) {
    (void)s, (void)k, (void)a;
    assert_int_equal(all->count, 2);
    return agree('a', o);
}
enum status asked_match_floors(const struct series *s, const struct fit_known *k, struct arena *a,
                               struct fit_check *o) {
    (void)s, (void)k, (void)a;
    return agree('f', o);
}
enum status asked_match_skips(const struct series *s, const struct fit_known *k, struct arena *a,
                              struct fit_check *o) {
    (void)s, (void)k, (void)a;
    return agree('k', o);
}
enum status asked_match_late(const struct series *s, const struct fit_known *k,
                             const struct fit_set *all, struct arena *a, struct fit_check *o) {
    (void)s, (void)k, (void)a;
    assert_int_equal(all->count, 2);
    return agree('l', o);
}
/* Asked behind a mismatch alone, so it has a letter only where it agrees. */
enum status asked_match_borrowed(const struct series *s, const struct fit_known *k,
                                 const struct fit_set *all, struct arena *a, struct fit_check *o) {
    (void)s, (void)k, (void)a;
    assert_int_equal(all->count, 2);
    assert_null(o->expected);
    return script.agrees == 'y' ? agree('y', o) : STATUS_OK;
}
enum status asked_mismatch(const struct series *s, const struct fit_known *k,
                           const struct contract_request *r, const struct fit_set *all,
                           struct arena *a, struct fit_check *o) {
    (void)s, (void)k, (void)a;
    note('x');
    if (checks == 1) assert_ptr_equal(r, &known.request);
    assert_int_equal(all->count, 2);
    assert_null(o->expected); /* what was tried with skipped updates is taken back */
    o->verdict = FIT_FAIL;
    o->bad_points = 3;
    o->words = "mismatch";
    o->found = *all;
    return STATUS_OK;
}
enum status asked_rising(const struct series *s, const struct fit_known *k, struct arena *a,
                         struct fit_check *o) {
    (void)s, (void)k, (void)a;
    note('i');
    if (script.rises) o->verdict = FIT_UNDECIDED;
    return STATUS_OK;
}
enum status asked_judge_skips(const struct series *s, const struct fit_known *k, struct arena *a,
                              struct fit_check *o) {
    (void)s, (void)k, (void)a;
    note('j');
    o->verdict = script.judged;
    return STATUS_OK;
}
void asked_doubt_shown(const struct series *s, const struct fit_known *k, struct fit_check *o) {
    (void)s, (void)k, (void)o;
    note('h');
}
enum status asked_doubt_beside(const struct series *s, const struct fit_known *k, struct arena *a,
                               struct fit_check *o) {
    (void)s, (void)k, (void)a, (void)o;
    note('b');
    return STATUS_OK;
}
enum status asked_doubt_floor(const struct fit_known *k, struct arena *a, struct fit_check *o) {
    (void)k, (void)a, (void)o;
    note('o');
    return STATUS_OK;
}
void asked_doubt_drop(const struct fit_known *k, struct fit_check *o) {
    (void)k, (void)o;
    note('d');
}
enum status asked_doubt_numbers(const struct fit_known *k, struct arena *a, struct fit_check *o) {
    (void)k, (void)a, (void)o;
    note('n');
    return STATUS_OK;
}
void asked_doubt_few(const struct series *s, struct fit_check *o) {
    (void)s, (void)o;
    note('w');
}
enum status asked_rivals(const struct series *s, const struct fit_known *k, const struct fit *e,
                         struct arena *a, struct fit_set *o) {
    (void)s, (void)k, (void)a, (void)o;
    assert_ptr_equal(e, &fits[0]);
    note('r');
    return STATUS_OK;
}
enum status asked_judge_rivals(const struct fit_known *k, int applied, struct arena *a,
                               struct fit_check *o) {
    (void)a, (void)applied;
    note('R');
    o->verdict = k->samples != NULL ? script.steady : script.rivals;
    return STATUS_OK;
}
enum status asked_plainer(const struct series *s, const struct fit_known *k, struct arena *a,
                          struct fit_check *o) {
    (void)s, (void)k, (void)a, (void)o;
    note('p');
    return STATUS_OK;
}
enum status asked_stop(const struct series *s, const struct fit_known *k, const struct fit_set *set,
                       struct arena *a, struct fit_stop *o) {
    (void)s, (void)k, (void)a;
    assert_int_equal(set->count, 2);
    note('t');
    *o = (struct fit_stop){.fit = script.stops ? &fits[1] : NULL};
    return STATUS_OK;
}
int asked_counts(const struct fit *fit, const struct fit_known *k, const struct series *s,
                 double scale, struct fit_refuted *o) {
    (void)k, (void)s;
    assert_ptr_equal(fit, &fits[0]);
    assert_true(scale == 5e-5);
    note('c');
    *o = script.refuted;
    return script.refutes;
}
enum status asked_series(const struct series *s, const struct fit_known *k, struct arena *a,
                         struct fit_set *o) {
    (void)a;
    note('S');
    assert_ptr_equal(k->expected, known.request.contract);
    assert_null(k->request.contract);
    assert_null(k->request.schedule);
    assert_null(k->possible);
    assert_int_equal(k->request.value_count, 0);
    assert_non_null(k->believed);
    *o = (struct fit_set){.series = s, .fits = fits, .count = 2, .last = ROWS};
    return STATUS_OK;
}

static void open_script(void) {
    static const char *const possible[] = {"hf", NULL};
    arena_close(&arena);
    memset(&script, 0, sizeof script);
    memset(fits, 0, sizeof fits);
    for (size_t i = 0; i < ROWS; i++)
        points[i] =
            (struct series_point){.update = i + 1, .row = i, .value = 1e-5 * (double)(5 - i)};
    series = (struct series){points, ROWS};
    plain = (struct fit_segment){.scale = 1.0};
    for (size_t f = 0; f < 2; f++) {
        fits[f].contract = contract_find(f == 0 ? "hf" : "olmo-core");
        fits[f].segments = &plain;
        fits[f].segment_count = 1;
        fits[f].text = f == 0 ? "FIRST" : "SECOND";
        fits[f].parameters = "";
        fits[f].lr = 5e-5;
        fits[f].stride = 1.0;
        assert_non_null(fits[f].contract);
    }
    fit_known_init(&known);
    known.request.contract = contract_find("hf");
    known.request.schedule = "linear";
    known.request.lr = 5e-5;
    known.request.warmup = 1.0;
    known.request.warmup_ratio = 0.2;
    known.request.min_lr_ratio = 0.1;
    known.request.value_count = 1;
    known.request.values[0].key = "num_cycles";
    known.request.values[0].text = "2";
    known.possible = possible;
    script.judged = script.rivals = script.steady = FIT_PASS;
}

static void check(const char *expected, int applied, int line) {
    asked[0] = '\0';
    checks = 0;
    untested = 0;
    assert_int_equal(fit_check(&series, &known, applied, &arena, &out), STATUS_OK);
    assert_true(untested > 0);
    if (strcmp(asked, expected) != 0) fail_msg("line %d: %s", line, asked);
}
#define CHECK(expected, applied) check(expected, applied, __LINE__)

static void validate_order(void **state) {
    (void)state;
    static const struct {
        char agrees;
        const char *asked;
    } cases[] = {
        {'m', "smurRpodnw"},  {'u', "smurRpodnw"},   {'a', "smuSarRpodnw"}, {'f', "smuSafrRpodnw"},
        {'k', "smuSafkjhbw"}, {'l', "smuSafkljhbw"}, {'-', "smuSafklxi"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        open_script();
        script.agrees = cases[i].agrees;
        CHECK(cases[i].asked, 1);
        assert_int_equal(out.verdict, cases[i].agrees == '-' ? FIT_FAIL : FIT_PASS);
    }
    open_script(); /* a question about the printed column alone needs no plainer one */
    script.agrees = 'm';
    CHECK("smurRodnw", 0);
    /* Numbers of another contract's fit: no failure, and no pass either. */
    open_script();
    script.agrees = 'y';
    CHECK("smuSafklxi", 1); /* all numbers were given: nothing is borrowed */
    assert_int_equal(out.verdict, FIT_FAIL);
    open_script();
    script.agrees = 'y';
    script.open = FIT_OF_WARMUP;
    CHECK("smuSafklxiyrR", 1);
    assert_int_equal(out.verdict, FIT_UNDECIDED);
    assert_ptr_equal(out.expected, &fits[0]);
    assert_string_equal(out.needs, "--schedule, --lr, --warmup, --steps and --min-lr-ratio: these "
                                   "numbers were taken from another explanation of the column");
    /* Where the total was fitted, the explanation must have numbers that somebody would type. */
    for (int odd = 0; odd < 2; odd++) {
        open_script();
        script.open = FIT_OF_STEPS | FIT_OF_WARMUP;
        fits[0].warmup = odd ? 17.0 : 20.0;
        fits[0].steps = 600;
        CHECK("smuSafklxi", 1);
        assert_int_equal(out.verdict, odd ? FIT_UNDECIDED : FIT_FAIL);
        assert_string_equal(out.words, odd ? "mismatch; nobody gave all of these numbers, and "
                                             "nobody would type them"
                                           : "mismatch");
    }
    /* Rows that lie in a warm-up: nothing is borrowed behind that. */
    open_script();
    script.rises = 1;
    script.agrees = 'y';
    script.open = FIT_OF_WARMUP;
    CHECK("smuSafklxi", 1);
    assert_int_equal(out.verdict, FIT_UNDECIDED);
    assert_string_equal(out.words, "mismatch");
    /* A rival stands, and a quiet log shows that nothing was skipped. */
    for (int how = 0; how < 4; how++) {
        open_script();
        script.agrees = 'k';
        known.skips.quiet = how & 1;
        script.judged = how & 2 ? FIT_UNDECIDED : FIT_PASS;
        CHECK(how == 3 ? "smuSafkjxi" : "smuSafkjhbw", 1);
        assert_int_equal(out.verdict, how == 3 ? FIT_FAIL : script.judged);
    }
}

static void validate_what_cannot_be_checked(void **state) {
    (void)state;
    static const struct fit_samples *const none = NULL;
    open_script();
    series.count = 0;
    CHECK("s", 1);
    assert_int_equal(out.verdict, FIT_UNDECIDED);
    assert_int_equal(out.why, FIT_WHY_NO_COLUMN);
    assert_ptr_equal(out.found.series, &series);
    assert_int_equal(out.found.why, FIT_WHY_NO_COLUMN);
    assert_string_equal(out.words, "the log has no learning rate");
    assert_string_equal(out.needs, "a learning-rate column (--map lr_logged=NAME)");
    open_script();
    script.lacks = 1;
    points[2].update = 9;
    CHECK("s", 1);
    assert_int_equal(out.verdict, FIT_UNDECIDED);
    assert_int_equal(out.why, 0);
    assert_int_equal(out.found.last, 9);
    assert_string_equal(out.words, "the log has no metric that the schedule could have followed");
    assert_string_equal(out.needs, "--metric, or a log with eval_loss or loss and update numbers");
    points[0].update = 12;
    CHECK("s", 1);
    assert_int_equal(out.found.last, 12);
    /* A batch that grows, and a schedule that counts samples. */
    size_t count;
    const struct contract *const all = contract_list(&count);
    for (size_t c = 0; c < count; c++)
        for (int growing = 0; growing < 2; growing++) {
            open_script();
            known.request.contract = &all[c];
            known.growing = growing;
            known.samples = none;
            script.agrees = 'm';
            const int open = growing && all[c].unit == CONTRACT_UNIT_SAMPLE;
            CHECK(open ? "s" : "smurRpodnw", 1);
            if (!open) continue;
            assert_int_equal(out.verdict, FIT_UNDECIDED);
            assert_int_equal(out.why, FIT_WHY_BATCH);
            assert_ptr_equal(out.found.series, &series);
            assert_int_equal(out.found.last, ROWS);
            assert_string_equal(out.words, "the batch grows, and the schedule counts samples");
            assert_string_equal(out.needs, "the samples that every update consumed, and a log of "
                                           "the next LR");
        }
}

static void validate_words_of_a_match(void **state) {
    (void)state;
    open_script();
    script.agrees = 'm';
    CHECK("smurRpodnw", 1);
    assert_string_equal(out.words, "every printed LR is the one that hf logs (FIRST)");
    script.rivals = FIT_UNDECIDED;
    CHECK("smurRpodnw", 1);
    assert_string_equal(out.words, "every printed LR agrees with hf, but the log cannot say more");
    struct fit_check say = {.verdict = FIT_UNDECIDED, .rival = "olmo-core", .expected = &fits[0]};
    assert_int_equal(say_match(&known, &arena, &say), STATUS_OK);
    assert_string_equal(say.words, "every printed LR agrees with hf, and just as well with "
                                   "olmo-core, which applies other LRs");
    skip = (struct fit_skip){.first = 2, .last = 2, .count = 1};
    fits[0].skips = &skip;
    fits[0].skip_count = 1;
    assert_int_equal(say_match(&known, &arena, &say), STATUS_OK);
    assert_string_equal(say.words, "every printed LR agrees with FIRST, and just as well with "
                                   "olmo-core, which skipped nothing and applies other LRs");
    say.rival = NULL;
    assert_int_equal(say_match(&known, &arena, &say), STATUS_OK);
    assert_string_equal(say.words, "every printed LR agrees with hf, but the log cannot say more");
    say.verdict = FIT_PASS;
    say.rival = "olmo-core";
    assert_int_equal(say_match(&known, &arena, &say), STATUS_OK);
    assert_string_equal(say.words, "every printed LR is the one that hf logs (FIRST)");
}

/* Samples that are no whole number of updates, where the batch stays. */
static void open_steady(void) {
    static uint64_t update[ROWS] = {1, 2, 3, 4, ROWS};
    static struct fit_samples steady;
    open_script();
    memset(&steady, 0, sizeof steady);
    steady.update = update;
    steady.count = ROWS;
    known.request.contract = contract_find("megatron");
    fits[0].contract = known.request.contract;
    assert_true(fit_samples_counts(known.request.contract));
    known.steady = &steady;
    script.agrees = '-';
    script.again = 'm';
}
#define STEADY(expected)                                                                           \
    do {                                                                                           \
        CHECK(expected, 1);                                                                        \
        open_steady();                                                                             \
    } while (0)

static void validate_samples(void **state) {
    (void)state;
    static const char tried[] = "smuSafkltsmurRpodnwn", left[] = "smuSafklxi";
    open_steady();
    CHECK(tried, 1);
    assert_int_equal(out.verdict, FIT_PASS);
    open_steady();
    script.steady = FIT_UNDECIDED; /* a pass alone counts */
    CHECK("smuSafkltsmurRpodnwxi", 1);
    assert_int_equal(out.verdict, FIT_FAIL);
    open_steady();
    known.steady = NULL;
    STEADY(left);
    known.request.contract = fits[0].contract = contract_find("hf");
    STEADY(left);
    known.request.skipped_count = 1;
    STEADY(left);
    script.stops = 1;
    STEADY("smuSafkltxi");
    known.request.steps = 12;
    STEADY(tried);
    known.request.steps = known.run_steps = 12; /* the run's own number of updates */
    STEADY(left);
    known.run_steps = 12;
    STEADY(tried);
}

/* ---- counts of skipped updates ---- */

static void open_counts(void) {
    open_script();
    script.agrees = 'm';
    script.again = script.counted = '-';
    script.refutes = 1;
    script.refuted = (struct fit_refuted){.point = 2, .skipped = 1, .expected = 4e-5};
    known.skips.counted = FIT_COUNTED_EXACTLY;
    known.skips.shown = 1;
}
#define FIRST "smurRpodnw"

static void validate_counts(void **state) {
    (void)state;
    open_counts();
    script.refutes = 0;
    CHECK(FIRST "c", 1);
    assert_int_equal(out.verdict, FIT_PASS);
    open_counts();
    known.skips.counted = FIT_COUNTED_NOT;
    CHECK(FIRST, 1);
    open_counts();
    script.again = 'k'; /* the expectation agrees with skipped updates */
    CHECK(FIRST "csmuSafkjhbw", 1);
    assert_int_equal(out.verdict, FIT_PASS);
    open_counts();
    script.counted = 'm'; /* other numbers of the expected contract do */
    skip = (struct fit_skip){.first = 2, .last = 2, .count = 1};
    fits[0].skips = &skip;
    fits[0].skip_count = 1;
    CHECK(FIRST "csmuSafklxis"
                "murRpodnw",
          1);
    assert_int_equal(out.verdict, FIT_FAIL);
    assert_int_equal(out.bad_points, 1);
    assert_int_equal(out.first, 2);
    assert_true(out.first_expected == 4e-5);
    assert_int_equal(out.found.count, 1);
    assert_ptr_equal(out.found.fits, &fits[0]);
    assert_int_equal(out.found.last, ROWS);
    assert_null(out.needs);
    assert_string_equal(out.words,
                        "the log counts 1 skipped update up to update 3, where FIRST would then "
                        "print 4e-05 and not 3.0000000000000004e-05; with them the log fits FIRST");
    open_counts();
    known.skips.counted = FIT_COUNTED_LINES; /* a line for each, which several ranks may print */
    script.refuted.skipped = 2;
    CHECK(FIRST "csmuSafklxi", 1);
    assert_int_equal(out.verdict, FIT_UNDECIDED);
    assert_string_equal(out.words,
                        "the log counts 2 skipped updates up to update 3, where FIRST would then "
                        "print 4e-05 and not 3.0000000000000004e-05");
    assert_string_equal(out.needs, "--skipped with the updates that were skipped, or whether the "
                                   "scheduler of the training goes on at them");
    open_counts();
    script.bad = 1; /* a match of some rows is none */
    CHECK(FIRST, 1);
    open_counts();
    script.again = 'm';
    script.bad = 2;
    CHECK(FIRST "csmurRpodnwsmuSafklxi", 1);
    assert_int_equal(out.verdict, FIT_UNDECIDED);
    open_counts();
    script.counted = 'm';
    script.bad = 4;
    CHECK(FIRST "csmuSafklxismurRpodnw", 1);
    assert_int_equal(out.verdict, FIT_UNDECIDED);
    open_counts(); /* nothing agrees with them */
    CHECK(FIRST "csmuSafklxismuSafklxi", 1);
    assert_int_equal(out.verdict, FIT_UNDECIDED);
}

/* A log that fails and counts skipped updates. */
static void open_named(void) {
    open_counts();
    script.agrees = '-';
    script.again = 'm';
    known.request.contract = contract_find("olmo-core");
}
#define NAMED(named)                                                                               \
    do {                                                                                           \
        CHECK((named) ? "smuSafklxismurRpodnw" : "smuSafklxi", 1);                                 \
        assert_int_equal(out.verdict, FIT_FAIL);                                                   \
        assert_string_equal(out.words, (named) ? "fits FIRST" : "mismatch");                       \
        assert_int_equal(out.found.count, (named) ? 1 : 2);                                        \
        open_named();                                                                              \
    } while (0)

static void validate_names_of_counted(void **state) {
    (void)state;
    open_named();
    NAMED(1);
    known.skips.counted = FIT_COUNTED_LINES;
    NAMED(0);
    known.skips.shown = 0;
    NAMED(0);
    known.request.contract = contract_find("hf"); /* the first one is of it, without skips */
    NAMED(1);
    known.request.contract = contract_find("hf");
    skip = (struct fit_skip){.first = 2, .last = 2, .count = 1};
    fits[0].skips = &skip;
    fits[0].skip_count = 1;
    NAMED(0);
    fits[0].skips = &skip;
    fits[0].skip_count = 1;
    NAMED(1);
    script.again = '-';
    CHECK("smuSafklxismuSafklxi", 1);
    assert_string_equal(out.words, "mismatch");
    open_named();
    script.bad = 2;
    CHECK("smuSafklxismurRpodnw", 1);
    assert_string_equal(out.words, "mismatch");
}

static int close_arena(void **state) {
    (void)state;
    arena_close(&arena);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_order),
        cmocka_unit_test(validate_what_cannot_be_checked),
        cmocka_unit_test(validate_words_of_a_match),
        cmocka_unit_test(validate_samples),
        cmocka_unit_test(validate_counts),
        cmocka_unit_test(validate_names_of_counted),
    };
    return cmocka_run_group_tests(tests, NULL, close_arena);
}

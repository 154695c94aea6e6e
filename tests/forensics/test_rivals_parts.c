/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Rivals of an explanation, part by part: which other contracts stand beside one that agrees, what
 * they leave open and in which words, and which courses a line, a step, a skipped first update or a
 * floor may stand for. What searches and evaluates is replaced; each condition is changed alone, or
 * told once more for random fits. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "forensics/fit_search.h"
#define contract_logged given_plan
#define fit_applied_apart given_apart
#define fit_is_native given_native
#define fit_logged given_logged
#define fit_series given_series
#define fit_tell_apart given_tell
static double given_plan(const struct contract_plan *plan, uint64_t k);
static uint64_t given_apart(const struct fit *a, const struct fit *b, const struct fit_set *in);
static int given_native(const struct fit_known *k, const struct contract *contract);
static double given_logged(const struct fit *fit, size_t point, uint64_t update);
static enum status given_series(const struct series *of, const struct fit_known *k, struct arena *a,
                                struct fit_set *out);
static enum status given_tell(const struct fit *a, const struct fit *b, const struct fit_set *in,
                              struct arena *arena, const char **out);
#include "forensics/fit_rivals.c" /* for the conditions, which no other file asks for */
#include "tests/base/helper_draws.h"

enum { ROWS = 12, FITS = 4, CASES = 8000 };

static struct draws draws;
static struct arena arena;
static struct series_point points[ROWS];
static struct series series;
static struct fit_known known;
static struct fit fits[FITS], expected;
static struct fit_segment segments[FITS][3];
static struct fit_skip skip;
static struct fit_set set;
static struct fit_check check;

static uint32_t pick(uint32_t most) {
    return draws_pick(&draws, most);
}

static double one_of(const double *from, size_t size) {
    return from[pick((uint32_t)size)];
}
#define ONE_OF(...) one_of((const double[]){__VA_ARGS__}, COUNT_OF(((const double[]){__VA_ARGS__})))

/* ---- what is replaced ---- */

static size_t place_of(const struct fit *fit) {
    return (size_t)(fit - fits) < FITS ? (size_t)(fit - fits) : FITS;
}

static uint32_t prints;  /* bits of contracts that print the column with update 1 skipped */
static uint32_t natives; /* bits of contracts for which the log's format speaks */
static int bad_row;      /* the row that the others do not print */
static double logged[FITS + 1][ROWS + 2];
static uint64_t apart[FITS];
static size_t searched, told;

static uint32_t bit_of(const struct contract *contract) {
    size_t count;
    const struct contract *const list = contract_list(&count);
    assert_true(contract >= list && contract < list + count && count < 32);
    return 1u << (contract - list);
}

static double given_plan(const struct contract_plan *plan, uint64_t k) {
    assert_true(plan->skipped_count == 1 && plan->skipped[0] == 1);
    size_t row = 0;
    while (points[row].update != k)
        row++;
    const int differs = (prints & bit_of(plan->contract)) == 0 && (int)row == bad_row;
    return points[row].value + (differs ? 1e-9 : 0.0);
}

static uint64_t given_apart(const struct fit *a, const struct fit *b, const struct fit_set *in) {
    assert_true(b == &expected && in != NULL);
    return apart[place_of(a) % FITS];
}

static int given_native(const struct fit_known *k, const struct contract *contract) {
    assert_ptr_equal(k, &known);
    return (natives & bit_of(contract)) != 0;
}

static double given_logged(const struct fit *fit, size_t point, uint64_t update) {
    assert_true(point < series.count && update == points[point].update);
    /* A twin is a copy of the expectation under another contract. */
    if (place_of(fit) == FITS && fit != &expected && fit->contract != expected.contract) {
        const int differs = (prints & bit_of(fit->contract)) == 0 && (int)point == bad_row;
        assert_int_equal(fit->plan.skipped_count, 0);
        assert_ptr_equal(fit->plan.contract, fit->contract);
        return points[point].value + (differs ? 1e-9 : 0.0);
    }
    return logged[place_of(fit)][point];
}

static size_t given_count;
static enum status given_series(const struct series *of, const struct fit_known *k, struct arena *a,
                                struct fit_set *out) {
    assert_true(of == &series && a == &arena && k != &known);
    assert_true(k->request.contract == NULL && k->plain == 1 && k->limit == 64);
    assert_true(k->run_steps == known.run_steps && k->skips.shown == known.skips.shown);
    searched++;
    *out = (struct fit_set){.series = of, .fits = fits, .count = given_count};
    if (check.expected != NULL) return STATUS_OK; /* the request keeps its numbers */
    assert_null(k->request.schedule);
    assert_true(k->request.lr == expected.lr && k->request.warmup == expected.warmup);
    assert_true(k->request.steps == expected.steps);
    assert_true(k->request.warmup_ratio != k->request.warmup_ratio);
    return STATUS_OK;
}

static enum status given_tell(const struct fit *a, const struct fit *b, const struct fit_set *in,
                              struct arena *in_arena, const char **out) {
    assert_true(a == &expected && in == &check.found && in_arena == &arena);
    told = place_of(b);
    *out = "told apart";
    return STATUS_OK;
}

static const struct sched_class *class_of(const char *family, const char *name) {
    const struct sched_class *const schedule = sched_find_in(family, name);
    assert_non_null(schedule);
    return schedule;
}

/* Plain lines of hf over rows that fall from 2e-4 in steps of 5e-6. */
static void open_scene(void) {
    arena_close(&arena);
    fit_known_init(&known);
    memset(fits, 0, sizeof fits);
    memset(segments, 0, sizeof segments);
    memset(&check, 0, sizeof check);
    for (size_t f = 0; f < FITS; f++) {
        fits[f].contract = fits[f].plan.contract = contract_find("hf");
        fits[f].schedule = class_of("hf", "linear");
        fits[f].parameters = "";
        fits[f].lr = 2e-4;
        fits[f].warmup = 3.0;
        fits[f].steps = 40;
        fits[f].stride = 1.0;
        fits[f].floor_ratio = real_nan_f64();
        fits[f].segments = segments[f];
        fits[f].segment_count = 1;
        fits[f].same_applied = (uint32_t)f;
        fits[f].simplicity = 0.25;
        fits[f].text = "hf linear";
        for (size_t s = 0; s < 3; s++)
            segments[f][s] = (struct fit_segment){.point = 4 * s, .scale = 1.0};
    }
    expected = fits[0];
    for (size_t i = 0; i < ROWS; i++) {
        points[i] =
            (struct series_point){.update = i + 1, .row = i, .value = 2e-4 - 5e-6 * (double)i};
        for (size_t f = 0; f <= FITS; f++)
            logged[f][i] = points[i].value;
    }
    series = (struct series){points, ROWS};
    set = (struct fit_set){.series = &series, .fits = fits, .count = 2, .last = ROWS};
    skip = (struct fit_skip){.first = 3, .last = 4, .count = 2};
    natives = prints = UINT32_MAX;
    bad_row = -1;
    given_count = FITS;
    searched = 0;
    told = SIZE_MAX;
    for (size_t f = 0; f < FITS; f++)
        apart[f] = 1;
}

static void skips(struct fit *fit, uint64_t count) {
    skip.count = count;
    fit->skips = &skip;
    fit->skip_count = 1;
}

#define HOLDS(condition, wanted, again)                                                            \
    do {                                                                                           \
        if ((condition) != (wanted)) fail_msg("line %d: %s", __LINE__, #condition);                \
        again();                                                                                   \
    } while (0)

/* ---- rivals of what agrees ---- */

/* Schedules of one kind stand in one row. */
static const char *const kinds[][3] = {{"hf.cosine", "hf.cosine_with_min_lr", NULL},
                                       {"hf.linear", "deepspeed.warmup_decay", NULL},
                                       {"hf.constant_with_warmup", "deepspeed.warmup", NULL},
                                       {"hf.cosine", "deepspeed.warmup_cosine", NULL},
                                       {"hf.polynomial", NULL, NULL}};

static void corroborate_rivals(void **state) {
    (void)state;
    size_t kept_all = 0, left = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        draws = (struct draws){.key = UINT64_C(0x41a15), .number = number};
        int wanted[FITS];
        struct fit_set found;
        open_scene();
        const size_t own = pick(5), form = pick(2);
        expected.schedule =
            sched_find_in("hf", kinds[own][form] != NULL ? kinds[own][form] : kinds[own][0]);
        assert_non_null(expected.schedule);
        expected.floor_ratio = ONE_OF((double)NAN, 0.0, 0.1);
        size_t size;
        const struct contract *const list = contract_list(&size);
        natives = bit_of(contract_find("hf")) | 1u << pick((uint32_t)size);
        given_count = pick(FITS + 1);
        for (size_t f = 0; f < FITS; f++) {
            struct fit *const fit = &fits[f];
            const size_t kind = pick(3) == 0 ? pick(5) : own, other = pick(2);
            const char *const name =
                kinds[kind][other] != NULL ? kinds[kind][other] : kinds[kind][0];
            fit->schedule = sched_find_in("hf", name);
            fit->contract = pick(3) == 0 ? &list[pick((uint32_t)size)] : contract_find("hf");
            fit->lr *= pick(4) == 0 ? ONE_OF(1.0 + 0.9e-9, 1.0 + 1.1e-9) : 1.0;
            fit->warmup *= pick(4) == 0 ? ONE_OF(1.0 + 0.9e-9, 1.0 + 1.1e-9) : 1.0;
            fit->steps += pick(6) == 0;
            const double floor = isnan(expected.floor_ratio) ? 0.0 : expected.floor_ratio;
            const double beside =
                pick(4) == 0 ? ONE_OF(0.9e-9, 1.1e-9, -0.9e-9, -1.1e-9, 0.1) : 0.0;
            fit->floor_ratio = floor == 0.0 && pick(3) == 0 ? (double)NAN : floor + beside;
            const double off = isnan(fit->floor_ratio) ? 0.0 : beside;
            /* Cosine stands in two rows of the table. */
            const int same_kind_is = kind == own || (kind % 3 == 0 && own % 3 == 0);
            wanted[f] = fabs(fit->lr / 2e-4 - 1.0) < 1e-9 && fit->steps == 40 &&
                        fabs(fit->warmup / 3.0 - 1.0) < 1e-9 && fabs(off) < 1e-9 && same_kind_is &&
                        ((natives & bit_of(fit->contract)) != 0 ||
                         (natives & bit_of(expected.contract)) == 0);
            fit->max_error = (double)f;
        }
        assert_int_equal(fit_find_rivals(&series, &known, &expected, &arena, &found), STATUS_OK);
        assert_int_equal(searched, 1);
        size_t kept = 0;
        for (size_t f = 0; f < given_count; f++) {
            if (!wanted[f]) continue;
            if (kept == found.count || found.fits[kept].max_error != (double)f)
                fail_msg("case %u: fit %zu", number, f);
            kept++;
        }
        if (found.count != kept) fail_msg("case %u: %zu for %zu", number, found.count, kept);
        kept_all += kept;
        left += given_count - kept;
    }
    assert_true(kept_all > 2000 && left > 4000);
}

static void corroborate_what_rivals_leave_open(void **state) {
    (void)state;
    size_t passes = 0, rivals = 0, constants = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        draws = (struct draws){.key = UINT64_C(0x7611), .number = number};
        open_scene();
        const int applied = (int)pick(2);
        series.count = 1 + pick(3);
        known.request.contract = contract_find("accelerate");
        const uint32_t why = (pick(4) == 0 ? FIT_WHY_CONSTANT : 0) |
                             (pick(4) == 0 ? FIT_WHY_FEW : 0) |
                             (pick(4) == 0 ? FIT_WHY_NOTHING : 0);
        check.found =
            (struct fit_set){.series = &series, .fits = fits, .count = pick(FITS + 1), .why = why};
        check.expected = &expected;
        check.verdict = FIT_FAIL;
        uint32_t wanted_why = why & (FIT_WHY_CONSTANT | FIT_WHY_FEW);
        size_t rival = FITS;
        for (size_t f = 0; f < check.found.count; f++) {
            int same = 1;
            fits[f].contract = contract_find(pick(3) == 0 ? "accelerate" : "lag1");
            apart[f] = pick(3) == 0 ? 0 : 7;
            for (size_t i = 0; i < series.count; i++) {
                const double off = pick(3) == 0 ? ONE_OF(0.99, -0.99, 1.01, -1.01) : 0.0;
                logged[f][i] = logged[FITS][i] + off * 0x1p-44 * 2e-4;
                if (fabs(off) > 1.0) same = 0;
            }
            if (rival < FITS || apart[f] == 0 || fits[f].contract == known.request.contract)
                continue;
            wanted_why |= same ? FIT_WHY_APPLIED : FIT_WHY_COARSE;
            if (!same || applied) rival = f;
        }
        assert_int_equal(fit_judge_rivals(&known, applied, &arena, &check), STATUS_OK);
        assert_int_equal(check.why, wanted_why);
        assert_int_equal(told, rival < FITS ? rival : SIZE_MAX);
        if (rival < FITS) {
            assert_int_equal(check.verdict, FIT_UNDECIDED);
            assert_string_equal(check.rival, "lag1");
            assert_string_equal(check.needs, "told apart");
            rivals++;
            continue;
        }
        assert_null(check.rival);
        if (series.count < 2) {
            assert_int_equal(check.verdict, FIT_UNDECIDED);
            assert_string_equal(check.needs,
                                "more rows: one LR fits any schedule that passes through it");
        } else if ((why & FIT_WHY_CONSTANT) != 0) {
            assert_int_equal(check.verdict, FIT_UNDECIDED);
            assert_string_equal(check.needs,
                                "rows where the schedule moves (warm-up or decay), or more digits: "
                                "every LR of this log is the same");
            constants++;
        } else {
            assert_int_equal(check.verdict, FIT_PASS);
            assert_null(check.needs);
            passes++;
        }
    }
    assert_true(passes > 300 && rivals > 300 && constants > 100);
}

/* ---- breaks ---- */

static void validate_skips_that_are_contradicted(void **state) {
    (void)state;
    for (int32_t event = FIT_PLAIN; event <= FIT_BACK; event++)
        for (size_t s = 0; s < 3; s++)
            for (size_t count = 1; count < 4; count++) {
                open_scene();
                fits[0].segment_count = count;
                segments[0][s].event = event;
                assert_false(fit_contradicts_skipped(&fits[0], &known));
                known.request.skipped_count = 1;
                const int is = s < count && (event == FIT_SKIP || event == FIT_JUMP);
                assert_int_equal(fit_contradicts_skipped(&fits[0], &known), is);
                struct contract other = *fits[0].contract;
                other.on_skip = CONTRACT_SKIP_ADVANCE;
                fits[0].contract = &other;
                assert_false(fit_contradicts_skipped(&fits[0], &known));
            }
}

/* What stands behind the last segment is none of the fit's. */
static void validate_segments_behind_the_last(void **state) {
    (void)state;
    for (size_t count = 1; count < 3; count++)
        for (int32_t event = FIT_PLAIN; event <= FIT_BACK; event++) {
            open_scene();
            fits[0].segment_count = count;
            segments[0][count].event = event;
            segments[0][count].steps = 80;
            assert_false(fit_changes_total(&fits[0]));
            assert_true(fit_total_is_said(&fits[0], &known));
            assert_false(has_free_event(&fits[0], &known));
            assert_false(fit_goes_back(&fits[0]));
            assert_false(runs_ahead(&fits[0], &set));
        }
    assert_false(fit_total_is_said(&fits[0], NULL));
    /* A break in the second row: another total may begin one row before it is seen, but there is no
     * row before the first. */
    for (int total = 0; total < 2; total++)
        for (size_t point = 0; point < 4; point++)
            for (size_t resume = 0; resume < 4; resume++) {
                open_scene();
                segments[0][1].point = point;
                segments[0][1].event = total ? FIT_TOTAL : FIT_SKIP;
                for (size_t i = resume; i < ROWS && resume > 0; i++)
                    points[i].part = 1;
                const int shown = resume > 0 && (resume == point || (total && resume + 1 == point));
                assert_int_equal(fit_break_is_hidden(&segments[0][1], &set), point > 0 && !shown);
            }
}

/* A first fit with one skipped update where the log shows no resume, and another fit with as many
 * events that applies other LRs. */
static void open_break(void) {
    open_scene();
    fits[0].segment_count = fits[1].segment_count = 2;
    segments[0][1].event = segments[1][1].event = FIT_SKIP;
    segments[0][1].shift = segments[0][1].moved = -1;
    fits[1].steps = 41;
    known.run_steps = 60;
}

static void require_break(int line, const struct fit_known *k, const char *text, size_t place) {
    size_t at = SIZE_MAX;
    const char *const is = fit_break_doubt(k, &set, &at);
    if ((is == NULL) != (text == NULL) || (is != NULL && strcmp(is, text) != 0) || at != place)
        fail_msg("line %d: %s, fit %zu", line, is != NULL ? is : "no doubt", at);
    if (k == &known) assert_int_equal(fit_break_is_doubtful(k, &set), text != NULL);
    open_break();
}
#define BREAK(text, place) require_break(__LINE__, &known, text, place)

static void validate_breaks_that_raise_doubts(void **state) {
    (void)state;
    static const char others[] =
        "explains the rows with no more events than the first and applies other LRs";
    static const char unsaid[] = "goes on towards a total that neither the log nor an option says";
    static const char bug[] = "goes on towards another total and needs a known bug as well";
    static const char ahead[] = "runs ahead of the updates once, where the log shows no resume";
    static const char elsewhere[] =
        "stands still or moves on elsewhere than at the updates that are said to be skipped";
    static const char again[] = "begins again with another peak, where the log shows no resume";
    static const char many[] = "stands still for more updates than are skipped without a word";
    static const char goes_on[] =
        "stands still under a contract whose schedule goes on at a skipped update";
    static const char more[] =
        "needs another peak and one more event, where the log shows no resume";
    open_break();
    BREAK(others, 1);
    set.count = 1;
    BREAK(NULL, 0);
    points[4].part = 1;
    for (size_t i = 5; i < ROWS; i++)
        points[i].part = 1;
    BREAK(NULL, 0); /* a resume is no wonder */
    segments[0][1].event = FIT_TOTAL;
    segments[0][1].steps = 80;
    BREAK(unsaid, 0);
    segments[0][1].event = FIT_TOTAL;
    segments[0][1].steps = 80;
    fits[0].unsound = 1;
    BREAK(bug, 0);
    segments[0][1].event = FIT_TOTAL;
    segments[0][1].steps = 60;
    fits[0].contract = contract_find("lag1");
    BREAK(bug, 0);
    segments[0][1].event = FIT_JUMP;
    segments[0][1].shift = 1;
    BREAK(ahead, 0);
    known.request.skipped_count = 1;
    BREAK(elsewhere, 0);
    segments[0][1].event = FIT_RESTARTED;
    BREAK(again, 0);
    const int64_t most = (int64_t)fit_skips_most(ROWS);
    segments[0][1].moved = -most;
    BREAK(others, 1);
    segments[0][1].moved = -most - 1;
    BREAK(many, 0);
    segments[0][1].moved = -most - 1;
    segments[0][1].event = FIT_RESET;
    BREAK(others, 1);
    struct contract advances = *fits[0].contract;
    advances.on_skip = CONTRACT_SKIP_ADVANCE;
    fits[0].contract = &advances;
    BREAK(goes_on, 0);
    fits[0].contract = &advances;
    require_break(__LINE__, NULL, others,
                  1); /* where nothing is known of the log, no contract is */
    segments[0][1].event = FIT_RESCALED;
    BREAK(others, 1);
    segments[0][1].event = FIT_RESCALED;
    fits[0].segment_count = 3;
    BREAK(more, 0);
    segments[0][1].event = FIT_RESET;
    fits[0].segment_count = 3;
    BREAK(others, 1);
    /* The other fit has no more events, applies other LRs, and is another training. */
    fits[1].segment_count = 3;
    BREAK(NULL, 0);
    fits[1].segment_count = 1;
    BREAK(others, 1);
    fits[1].same_applied = 0;
    BREAK(NULL, 0);
    fits[1].steps = 40;
    BREAK(NULL, 0);
    fits[1].steps = 40;
    fits[1].warmup = 4.0;
    BREAK(others, 1);
    fits[1].steps = 40;
    fits[1].bug = "lr_jump";
    BREAK(others, 1);
    fits[1].steps = 40;
    fits[0].bug = fits[1].bug = "lr_jump";
    BREAK(NULL, 0);
    fits[1].steps = 40;
    fits[1].unsound = 1;
    BREAK(others, 1);
    set.count = 4;
    fits[1].same_applied = 0;
    fits[2].same_applied = 0;
    fits[3].steps = 50;
    BREAK(others, 3);
    /* A resume comes first, and the break behind it is hidden. */
    fits[0].segment_count = fits[1].segment_count = 3;
    segments[0][1].event = FIT_RESET;
    segments[0][2].event = FIT_SKIP;
    for (size_t i = 4; i < ROWS; i++)
        points[i].part = 1;
    BREAK(others, 1);
    /* The first of two others counts for nothing, the second does. */
    segments[0][1].event = FIT_TOTAL;
    segments[0][1].steps = 60;
    fits[1].contract = contract_find("accelerate");
    natives = bit_of(fits[0].contract);
    fits[2] = fits[1];
    fits[2].contract = fits[0].contract;
    set.count = 3;
    BREAK(others, 2);
    natives = UINT32_MAX;
    /* Behind a total that was said, fits of other frameworks count for nothing, nor does a later
     * peak or total that nobody said behind a peak that is no rounder. */
    for (int native = 0; native < 4; native++)
        for (int free_number = 0; free_number < 2; free_number++)
            for (int round = 0; round < 3; round++)
                for (int other_too = 0; other_too < 2; other_too++) {
                    open_break();
                    segments[0][1].event = FIT_TOTAL;
                    segments[0][1].steps = 60;
                    segments[0][2].event = FIT_RESET;
                    fits[0].segment_count = 2 + (size_t)other_too;
                    fits[1].contract = contract_find("accelerate");
                    natives = (native & 1 ? bit_of(fits[0].contract) : 0) |
                              (native & 2 ? bit_of(fits[1].contract) : 0);
                    if (free_number) segments[1][1].event = FIT_RESCALED;
                    fits[0].lr = 2.5e-4;
                    fits[1].lr = round == 0 ? 2e-4 : round == 1 ? 3.5e-4 : 3.55e-4;
                    const int counts = other_too || (native & 1) == 0 ||
                                       ((native & 2) != 0 && (!free_number || round == 0));
                    require_break(__LINE__, &known, counts ? others : NULL, counts ? 1 : 0);
                }
}

/* ---- lines that float ---- */

/* A line from above the rows to a floor below them: no row shows either. */
static void open_float(void) {
    open_scene();
    fits[0].floor_ratio = fits[1].floor_ratio = 0.1;
    fits[0].lr = 3e-4;
    fits[1].lr = 2e-4;
    skips(&fits[1], 1);
}
#define FLOATS(wanted) HOLDS(fit_line_floats(&fits[0], &known, &series), wanted, open_float)
#define END(wanted) HOLDS(other_end(&known, &set, &fits[1]), wanted, open_float)

static void validate_lines_that_float(void **state) {
    (void)state;
    open_float();
    FLOATS(1);
    fits[0].floor_ratio = 0.0;
    FLOATS(0);
    fits[0].floor_ratio = real_nan_f64();
    FLOATS(0);
    known.request.lr = 3e-4;
    FLOATS(0);
    known.request.min_lr_ratio = 0.1;
    FLOATS(0);
    fits[0].schedule = class_of("hf", "cosine");
    FLOATS(0);
    fits[0].stride = 2.0;
    FLOATS(0);
    fits[0].epoch_updates = 1;
    FLOATS(0);
    fits[0].segment_count = 2;
    FLOATS(0);
    fits[0].in_samples = 1;
    FLOATS(0);
    for (size_t i = 1; i < ROWS; i++) { /* a rise between two rows */
        points[i - 1].value = points[i].value * (1.0 - 0x1p-50);
        FLOATS(0);
        points[i - 1].value = points[i].value; /* a level is none */
        FLOATS(1);
    }
    fits[0].lr = 2e-4;
    FLOATS(0);
    fits[0].lr = 2e-4 * (1.0 + 0x1.8p-40);
    FLOATS(1);
    fits[0].lr = 2e-4 * (1.0 + 0x1p-41);
    FLOATS(0);
    series.count = 5; /* what stands behind the last row is none */
    points[5].value = 1.0;
    FLOATS(1);
    series.count = 2;
    FLOATS(0);
    series.count = 3;
    FLOATS(1);
    /* The last row may stand at the floor, and the one before it not. */
    logged[0][ROWS - 1] = 3e-5;
    FLOATS(1);
    logged[0][ROWS - 2] = 3e-5;
    FLOATS(0);
    logged[0][ROWS - 2] = 3e-5 * (1.0 + 0x1.8p-40);
    FLOATS(1);
    logged[0][ROWS - 2] = 3e-5 * (1.0 + 0x1p-41);
    FLOATS(0);

    END(1);
    skips(&fits[0], 1);
    END(0);
    fits[1].skip_count = 0;
    END(0);
    fits[1].skip_count = 0;
    fits[1].contract = contract_find("lag1");
    END(1);
    fits[1].bug = "lr_jump";
    END(0);
    fits[1].schedule = class_of("hf", "cosine");
    END(0);
    fits[1].lr = 2.5e-4; /* of two digits, where the first has one */
    END(0);
    fits[0].lr = 3.5e-4;
    fits[1].lr = 2.5e-4;
    END(1);
    fits[1].floor_ratio = 0.15; /* the same floor, as an LR */
    END(0);
    fits[1].floor_ratio = 0.15 * (1.0 + 1.1e-9);
    END(1);
    fits[1].floor_ratio = 0.15 * (1.0 + 0.5e-9);
    END(0);
    fits[1].floor_ratio = real_nan_f64();
    END(1);
    fits[1].contract = contract_find("accelerate");
    natives = bit_of(fits[0].contract);
    END(0);
    fits[1].contract = contract_find("accelerate");
    natives = 0;
    END(1);
    known.request.lr = 3e-4;
    END(0);
}

/* ---- a scheduler that is late ---- */

static void open_late(void) {
    open_scene();
    skips(&fits[0], 1);
    fits[1].contract = contract_find("lag1");
}
#define LATE(wanted) HOLDS(other_is_late(&known, &fits[0], &fits[1]), wanted, open_late)

static void validate_schedulers_that_are_late(void **state) {
    (void)state;
    open_late();
    LATE(1);
    fits[0].skip_count = 0;
    LATE(0);
    fits[0].part_count = 1;
    LATE(0);
    known.skips.shown = 1;
    LATE(0);
    known.request.skipped_count = 1;
    LATE(0);
    size_t count;
    const struct contract *const list = contract_list(&count);
    for (size_t c = 0; c < count; c++) { /* a bug, and that one */
        fits[1].contract = &list[c];
        LATE(list[c].bug && fit_contract_is_late(&list[c]));
    }
    fits[1].contract = contract_find("hf");
    LATE(0);
    fits[1].skips = &skip;
    fits[1].skip_count = 1;
    LATE(0);
    fits[1].part_count = 1;
    LATE(0);
    fits[1].segment_count = 2;
    LATE(0);
    fits[1].stride = 2.0;
    LATE(0);
    fits[1].first_differs = 1;
    LATE(0);
    fits[1].simplicity = 0.25 + 0.49;
    LATE(1);
    fits[1].simplicity = 0.25 + 0.5;
    LATE(0);
}

static void validate_decays_beside_one_skip(void **state) {
    (void)state;
    for (uint64_t count = 0; count < 3; count++)
        for (int text = 0; text < 3; text++) {
            open_scene();
            skips(&fits[0], count);
            fits[0].parameters = text == 0 ? "" : "decay=12";
            fits[1].parameters = text == 2 ? "decay=12" : "decay=14";
            assert_int_equal(other_decay(&known, &fits[0], &fits[1]), count > 0 && text == 1);
        }
}

static void require_doubt(int line, const char *text) {
    const char *const is = fit_doubt(&known, &set, &fits[1]);
    if ((is == NULL) != (text == NULL) || (is != NULL && strcmp(is, text) != 0))
        fail_msg("line %d: %s", line, is != NULL ? is : "no doubt");
    assert_int_equal(fit_raises_doubt(&known, &set, &fits[1]), text != NULL);
    open_scene();
}
#define DOUBT_IS(text) require_doubt(__LINE__, text)

static void validate_doubts_in_words(void **state) {
    (void)state;
    static const char simple[] =
        "explains the rows about as simply as the first and applies other LRs";
    open_scene();
    DOUBT_IS(simple);
    open_float();
    DOUBT_IS("needs another floor or none, with updates skipped in front of the rows, which show "
             "neither the peak nor a floor");
    open_late();
    DOUBT_IS("is a scheduler that is one update late, and prints the same without a skipped "
             "update");
    fits[1].same_applied = 0;
    DOUBT_IS(NULL);
    fits[1].contract = contract_find("accelerate");
    natives = bit_of(fits[0].contract);
    DOUBT_IS(NULL);
    fits[1].contract = contract_find("accelerate");
    natives = 0;
    DOUBT_IS(simple);
    skips(&fits[1], 1); /* it needs one more, and is simpler or not */
    DOUBT_IS(NULL);
    skips(&fits[1], 1);
    fits[1].simplicity = 0.2499;
    DOUBT_IS(simple);
    skips(&fits[1], 1);
    skips(&fits[0], 1);
    DOUBT_IS(simple);
    known.run_steps = 40; /* the total of the first was said */
    fits[1].steps = 41;
    DOUBT_IS(NULL);
    known.run_steps = 40;
    fits[1].steps = 0;
    DOUBT_IS(simple);
    known.run_steps = 40;
    DOUBT_IS(simple);
    known.run_steps = 42;
    fits[1].steps = 41;
    DOUBT_IS(simple);
    fits[1].simplicity = 0.25 + 0.499;
    DOUBT_IS(simple);
    fits[1].simplicity = 0.25 + 0.5;
    DOUBT_IS(NULL);
    skips(&fits[0], 1); /* beside skipped updates that the log does not show, half of that */
    fits[1].simplicity = 0.25 + 0.249;
    DOUBT_IS(simple);
    skips(&fits[0], 1);
    fits[1].simplicity = 0.25 + 0.25;
    DOUBT_IS(NULL);
    skips(&fits[0], 1);
    known.skips.shown = 1;
    fits[1].simplicity = 0.25 + 0.499;
    DOUBT_IS(simple);
}

/* ---- steps ---- */

static void corroborate_falls_row_by_row(void **state) {
    (void)state;
    size_t yes = 0, at_end = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        draws = (struct draws){.key = UINT64_C(0xfa11), .number = number};
        open_scene();
        series.count = 1 + pick(8);
        double value = 1.0;
        for (size_t i = 0; i < series.count; i++) {
            if (i > 0 && pick(3) == 0) value *= 0.5;
            points[i].value = value;
        }
        fits[0].drops_taken = pick(6) > 0;
        fits[0].floor_ratio = ONE_OF((double)NAN, 0.0, 0.1);
        /* A level of one row between two moves; the first level may have begun before the log, and
         * the last one goes on, unless it is a floor. */
        int alone = 0, last = 0;
        for (size_t i = 1; i < series.count; i++) {
            const int begins = points[i].value != points[i - 1].value;
            const int ends = i + 1 < series.count && points[i + 1].value != points[i].value;
            alone |= begins && ends;
            last = begins && i + 1 == series.count;
        }
        const int wanted = fits[0].drops_taken && (alone || (last && fits[0].floor_ratio > 0.0));
        assert_int_equal(fit_falls_row_by_row(&fits[0], &series), wanted);
        yes += (size_t)wanted;
        at_end += (size_t)(wanted && !alone);
    }
    assert_true(yes > 1000 && at_end > 50);
}

/* A line to a tenth of 2e-4 that the last row reaches, from LRs of one digit or two. */
static void open_step(void) {
    open_scene();
    fits[0].floor_ratio = 0.1;
    for (size_t i = 0; i < ROWS; i++)
        logged[0][i] = 2e-5 + 1e-5 * (double)(ROWS - 1 - i);
}
#define STEP_IS(wanted) HOLDS(fit_ends_at_a_step(&fits[0], &series), wanted, open_step)

static void validate_ends_at_steps(void **state) {
    (void)state;
    open_step();
    STEP_IS(1);
    series.count = 1;
    logged[0][0] = 2e-5;
    STEP_IS(0);
    series.count = 2;
    logged[0][1] = 2e-5;
    STEP_IS(1);
    fits[0].schedule = class_of("hf", "cosine");
    STEP_IS(0);
    fits[0].stride = 2.0;
    STEP_IS(0);
    fits[0].epoch_updates = 1;
    STEP_IS(0);
    fits[0].segment_count = 2;
    STEP_IS(0);
    fits[0].in_samples = 1;
    STEP_IS(0);
    fits[0].floor_ratio = real_nan_f64();
    STEP_IS(0);
    fits[0].floor_ratio = 0.0;
    STEP_IS(0);
    fits[0].steps = 0;
    STEP_IS(0);
    fits[0].steps = ROWS; /* the end, at a share that somebody typed */
    STEP_IS(0);
    fits[0].steps = ROWS;
    fits[0].floor_ratio = 0.1001; /* that nobody did */
    STEP_IS(1);
    fits[0].steps = ROWS - 1;
    STEP_IS(1);
    /* The last row stands at the floor, up to the rounding, and the one before it does not. */
    logged[0][ROWS - 1] = 2e-5 + 0.99 * 0x1p-44 * 2e-4;
    STEP_IS(1);
    logged[0][ROWS - 1] = 2e-5 + 1.01 * 0x1p-44 * 2e-4;
    STEP_IS(0);
    logged[0][ROWS - 1] = 2e-5 + 1.01 * 0x1p-44 * 2e-4;
    fits[0].steps = ROWS; /* which the end of the line does not have to */
    fits[0].floor_ratio = 0.1001;
    logged[0][ROWS - 2] = 0.1001 * 2e-4 + 1.01 * 0x1p-44 * 2e-4;
    STEP_IS(1);
    logged[0][ROWS - 2] = 2e-5 + 0.99 * 0x1p-44 * 2e-4;
    STEP_IS(0);
    logged[0][3] = 2e-5;
    STEP_IS(0);
    /* It is by chance where one in eight rows is typed, of those in front of it up to the peak. */
    for (size_t typed = 0; typed < 4; typed++)
        for (size_t seen = 1; seen < ROWS; seen++) {
            for (size_t i = 0; i + 1 < ROWS; i++) {
                const size_t before = ROWS - 1 - i; /* rows up to the last one */
                logged[0][i] = 2e-5 + 1.2345678e-6 * (double)before;
                if (before > seen) logged[0][i] = 2e-4;
                if (before <= typed) logged[0][i] = before % 2 == 0 ? 3e-5 : 2e-4 * 0.25;
            }
            if (typed <= seen)
                STEP_IS(8 * typed >= seen);
            else
                open_step();
        }
    for (int round = 0; round < 4; round++) { /* an LR, a share of the peak, both or neither */
        fits[0].lr = round & 1 ? 3e-4 : 3.0123e-4;
        fits[0].floor_ratio = 0.01;
        for (size_t i = 0; i + 1 < ROWS; i++)
            logged[0][i] =
                round & 2 ? 1e-5 * (double)(ROWS - i) : 0.02 * (double)(ROWS - i) * 3.0123e-4;
        logged[0][ROWS - 1] = 0.01 * fits[0].lr;
        STEP_IS(round != 1);
    }
    for (size_t i = 0; i + 1 < ROWS; i++) /* nothing but the peak */
        logged[0][i] = 2e-4 * (1.0 - 0x1p-46);
    STEP_IS(0);
    logged[0][ROWS - 2] = 2e-4 * (1.0 - 0x1p-42);
    for (size_t i = 0; i + 2 < ROWS; i++)
        logged[0][i] = 2e-4;
    STEP_IS(0); /* a row of no round LR is no step that was typed */
}

/* Lengths of a decay that somebody may have typed: of one digit, or such a share of the total, to
 * less than an update. */
static void validate_lengths_of_decays(void **state) {
    (void)state;
    static const int shares[] = {5, 10, 15, 20, 25, 30, 50};
    for (uint64_t decay = 1; decay < 700; decay++) {
        char text[40];
        int digits = 0, typed = 0;
        open_scene();
        fits[0].steps = 1237;
        snprintf(text, sizeof text, "decay=%ju", (uintmax_t)decay);
        fits[0].parameters = text;
        for (uint64_t rest = decay; rest > 0; rest /= 10)
            if (digits > 0 || rest % 10 > 0) digits++;
        for (size_t n = 0; n < COUNT_OF(shares); n++)
            typed |= fabs((double)decay * 100.0 - (double)shares[n] * 1237.0) < 100.0;
        assert_int_equal(decay_is_typed(&fits[0]), digits == 1 || typed);
    }
    fits[0].parameters = "power=2"; /* without a plateau the total says all */
    assert_true(decay_is_typed(&fits[0]));
}

/* ---- an update that was skipped in front of all rows ---- */

static void corroborate_first_updates(void **state) {
    (void)state;
    size_t size, named = 0, twins = 0, late = 0;
    const struct contract *const list = contract_list(&size);
    for (uint32_t number = 0; number < 2000; number++) {
        draws = (struct draws){.key = UINT64_C(0xf1457), .number = number};
        char wanted[600] = "";
        const char *text = "unset";
        open_scene();
        prints = pick(3) == 0 ? UINT32_MAX : (pick(1u << 16) << 16) | pick(1u << 16);
        natives = pick(3) == 0 ? UINT32_MAX : (pick(1u << 16) << 16) | pick(1u << 16);
        bad_row = (int)pick(ROWS);
        const struct contract *const own = &list[pick((uint32_t)size)];
        static const char *const names[] = {"hf.linear", "hf.cosine", "megatron.linear",
                                            "hf.polynomial", "olmo-core.linear"};
        const struct sched_class *const schedule =
            sched_find_in("hf", names[pick(COUNT_OF(names))]);
        assert_non_null(schedule);
        fits[0].contract = own;
        fits[0].schedule = fits[0].plan.schedule = schedule;
        static struct fit_samples *const some = (struct fit_samples *)&arena;
        int open = 1;
        switch (pick(14)) {
        case 0:
            set.count = 0;
            open = 0;
            break;
        case 1:
            fits[0].samples = some;
            open = 0;
            break;
        case 2:
            fits[0].segment_count = 2;
            open = 0;
            break;
        case 3:
            fits[0].first_differs = 1;
            open = 0;
            break;
        case 4:
            fits[0].plan.skipped_count = 1;
            open = 0;
            break;
        case 5:
            known.skips.shown = 1;
            open = 0;
            break;
        case 6: {
            static const uint32_t least[ROWS] = {0};
            known.skips.least = least;
            open = 0;
            break;
        }
        case 7:
            known.skips.quiet = 1;
            open = 0;
            break;
        case 8:
            set.why = pick(2) == 0 ? FIT_WHY_CONSTANT : FIT_WHY_FEW;
            open = 0;
            break;
        case 9:
            set.why = FIT_WHY_COARSE;
            break;
        default:
            break;
        }
        for (size_t c = 0; c < size && open; c++) {
            if (list[c].on_skip != CONTRACT_SKIP_HOLD || list[c].unit != own->unit || list[c].bug)
                continue;
            if (!sched_in_family(schedule, list[c].family) || (natives & 1u << c) == 0 ||
                (prints & 1u << c) == 0)
                continue;
            if (wanted[0] != '\0') strcat(wanted, ", ");
            strcat(wanted, list[c].name);
        }
        assert_int_equal(fit_early_skip(&set, &known, &arena, &text), STATUS_OK);
        if (wanted[0] == '\0')
            assert_null(text);
        else
            assert_string_equal(text, wanted);
        named += wanted[0] != '\0';

        /* A contract that is late by itself prints the same without it. */
        expected = fits[0];
        expected.samples = NULL;
        expected.plan.skipped_count = pick(2);
        skip.count = 1 + pick(2);
        expected.skips = &skip;
        expected.skip_count = pick(4) > 0;
        expected.part_count = pick(8) == 0;
        if (pick(8) == 0) expected.samples = some;
        expected.segment_count = pick(5) == 0 ? 2 : 1;
        expected.stride = pick(5) == 0 ? 2.0 : 1.0;
        expected.first_differs = pick(5) == 0;
        for (size_t i = 0; i < ROWS; i++)
            logged[FITS][i] = points[i].value + (i == (size_t)bad_row ? 1e-9 : 0.0);
        const struct contract *twin = NULL;
        const int asks = expected.part_count == 0 && expected.samples == NULL;
        for (size_t c = size; c-- > 0 && asks;) {
            /* Under its own contract the fit is what it is. */
            const int same = &list[c] == own ? 0 : (prints & 1u << c) != 0;
            if (fit_contract_is_late(&list[c]) && list[c].unit == own->unit && same &&
                sched_in_family(schedule, list[c].family) &&
                (list[c].bug || (natives & 1u << c) != 0))
                twin = &list[c];
        }
        const int alone = expected.skip_count > 0 && skip.count == 1 &&
                          expected.segment_count == 1 && !expected.first_differs &&
                          expected.stride == 1.0 && own->on_skip == CONTRACT_SKIP_HOLD &&
                          (prints & bit_of(own)) != 0;
        if (asks && twin == NULL && alone) {
            twin = contract_find("lag1");
            late++;
        }
        const struct contract *const is = fit_late_twin(&series, &known, &expected);
        if (is != twin)
            fail_msg("case %u: %s for %s", number, is != NULL ? is->name : "none",
                     twin != NULL ? twin->name : "none");
        twins += twin != NULL;
    }
    assert_true(named > 200 && twins > 200 && late > 20);
}

/* ---- what is plainer ---- */

static void corroborate_plainer(void **state) {
    (void)state;
    size_t by_lrs = 0, by_lateness = 0, none = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        draws = (struct draws){.key = UINT64_C(0x91a1), .number = number};
        open_scene();
        static const char *const names[] = {"hf", "accelerate", "lag1", "megatron", "olmo-core"};
        known.request.contract = contract_find("hf");
        natives = pick(1u << 16) | pick(1u << 16) << 16;
        expected.simplicity = 1.0;
        check.expected = &expected;
        check.verdict = pick(8) == 0 ? FIT_UNDECIDED : FIT_PASS;
        check.fitted = pick(3) == 0 ? FIT_OF_FLOOR : FIT_OF_LR;
        const int gave_schedule = (int)pick(2), gave_lr = (int)pick(2);
        if (gave_schedule) known.request.schedule = "linear";
        if (gave_lr) known.request.lr = 2e-4;
        known.request.steps = 40;
        given_count = pick(FITS + 1);
        size_t best = FITS;
        int best_apart = 0;
        for (size_t f = 0; f < FITS; f++) {
            struct fit *const fit = &fits[f];
            fit->contract = contract_find(names[pick(COUNT_OF(names))]);
            fit->segment_count = pick(6) == 0 ? 2 : 1;
            fit->stride = pick(6) == 0 ? 2.0 : 1.0;
            fit->first_differs = pick(6) == 0;
            fit->simplicity = ONE_OF(0.5, 0.75, 0.7501, 1.3499, 1.3501);
            apart[f] = pick(2) == 0 ? 0 : 5;
            const int late = fit->contract == contract_find("lag1");
            const int beside = fit->contract != known.request.contract && fit->segment_count == 1 &&
                               fit->stride == 1.0 && !fit->first_differs &&
                               ((natives & bit_of(fit->contract)) != 0 || late ||
                                strcmp(fit->contract->family, "hf") == 0);
            assert_int_equal(fit_is_beside(&known, fit), beside);
            const double limit = late ? 1.35 : 0.75; /* a quarter less, and a bug's price */
            if (f < given_count && best == FITS && beside && fit->simplicity <= limit &&
                (late || apart[f] != 0)) {
                best = f;
                best_apart = apart[f] != 0;
            }
        }
        const int asks =
            check.verdict == FIT_PASS && (!gave_schedule || check.fitted == FIT_OF_FLOOR);
        const int32_t before = check.verdict;
        assert_int_equal(fit_judge_plainer(&series, &known, &arena, &check), STATUS_OK);
        assert_int_equal(searched, asks);
        if (!asks || best == FITS) {
            assert_true(check.verdict == before && check.needs == NULL && check.why == 0);
            none++;
            continue;
        }
        char wanted[200];
        snprintf(wanted, sizeof wanted, "%s: hf linear explains the log more simply%s",
                 gave_lr ? "--schedule, with its floor where it has one" : "--schedule and --lr",
                 best_apart ? " and applies other LRs"
                            : ", as a scheduler that is one update late");
        assert_string_equal(check.needs, wanted);
        assert_int_equal(check.verdict, FIT_UNDECIDED);
        assert_int_equal(check.why, best_apart ? FIT_WHY_APPLIED : 0);
        if (best_apart)
            assert_string_equal(check.rival, fits[best].contract->name);
        else
            assert_null(check.rival);
        by_lrs += (size_t)best_apart;
        by_lateness += (size_t)!best_apart;
    }
    assert_true(by_lrs > 200 && by_lateness > 100 && none > 1000);
}

/* ---- a line that is held ---- */

/* A line towards 0 at update 60 that is held at a quarter of its peak, which a line from 4 to 46
 * with that floor prints: 4 + 42 / 0.75 = 60. */
static void open_held(void) {
    open_scene();
    fits[0].floor_ratio = 0.25;
    fits[0].plan.call.warmup = 4.0;
    fits[0].plan.call.total = 46.0;
    fits[0].plan.increment = 1.0;
    known.run_steps = 60;
}
#define HELD(wanted) HOLDS(fit_line_is_held(&fits[0], &known), wanted, open_held)

static void validate_lines_that_are_held(void **state) {
    (void)state;
    open_held();
    HELD(1);
    fits[0].schedule = class_of("hf", "cosine");
    HELD(0);
    fits[0].schedule = class_of("hf", "polynomial");
    HELD(1);
    fits[0].parameters = "power=2";
    HELD(0);
    fits[0].floor_ratio = 0.0;
    HELD(0);
    fits[0].floor_ratio = 1.0;
    HELD(0);
    fits[0].floor_ratio = real_nan_f64();
    HELD(0);
    known.request.min_lr_ratio = 0.25;
    HELD(0);
    known.run_steps = 0;
    HELD(0);
    known.run_steps = 59;
    HELD(0);
    known.request.steps = 1;
    HELD(0);
    fits[0].segment_count = 2;
    HELD(0);
    fits[0].stride = 2.0;
    HELD(0);
    fits[0].epoch_updates = 1;
    HELD(0);
    fits[0].plan.call.total = 46.0 * (1.0 + 0.9e-9);
    HELD(1);
    fits[0].plan.call.total = 46.0 * (1.0 + 1.6e-9);
    HELD(0);
    /* In samples an update has a whole number of them, one at least. */
    for (int samples = 0; samples < 2; samples++)
        for (double unit = 0.0; unit < 4.0; unit += 0.5) {
            fits[0].in_samples = (uint8_t)samples;
            fits[0].plan.increment = unit;
            fits[0].plan.call.warmup = 4.0 * unit;
            fits[0].plan.call.total = 46.0 * unit;
            HELD(unit >= 1.0 && (!samples || unit == floor(unit)));
        }
    /* Where the line itself ends at the total that the log says, none is held. */
    fits[0].floor_ratio = 1e-12;
    fits[0].plan.call.total = 60.0;
    HELD(0);
}

static int close_arena(void **state) {
    (void)state;
    arena_close(&arena);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_rivals),
        cmocka_unit_test(corroborate_what_rivals_leave_open),
        cmocka_unit_test(validate_skips_that_are_contradicted),
        cmocka_unit_test(validate_segments_behind_the_last),
        cmocka_unit_test(validate_breaks_that_raise_doubts),
        cmocka_unit_test(validate_lines_that_float),
        cmocka_unit_test(validate_schedulers_that_are_late),
        cmocka_unit_test(validate_decays_beside_one_skip),
        cmocka_unit_test(validate_doubts_in_words),
        cmocka_unit_test(corroborate_falls_row_by_row),
        cmocka_unit_test(validate_ends_at_steps),
        cmocka_unit_test(validate_lengths_of_decays),
        cmocka_unit_test(corroborate_first_updates),
        cmocka_unit_test(corroborate_plainer),
        cmocka_unit_test(validate_lines_that_are_held),
    };
    return cmocka_run_group_tests(tests, NULL, close_arena);
}

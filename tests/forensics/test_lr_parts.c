/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * How applied LRs of two explanations are held against each other: skipped updates at both ends of
 * their ranges, each update up to the last common row, shifts, every pair of explanations, and the
 * sentences whole. What would search for more explanations is replaced. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#define compare_one_for_both given_one_for_both
#define compare_skips given_skips
#define fit_break_is_hidden given_hidden
#include "forensics/compare_lr.c" /* for the parts, which no other file asks for */
#include "tests/base/helper_draws.h"
#include "tests/forensics/helper_fit.h"

enum { ROWS = 12, FITS = 3, LONG = 5000 };

static struct arena arena;
static struct series_point points[2][LONG];
static struct series series[2];
static struct fit fits[2][FITS];
static struct fit_segment segments[2][FITS][3];
static struct fit_skip skips[2][2];
static struct fit_set sets[2];
static struct compare_input input[2];
static struct compare_column column;
static struct compare_lr lr;
static int searches, for_both;
static uint64_t skips_part;
static const struct fit_segment *hidden; /* the break that no resume explains */

enum status given_one_for_both(const struct compare_input *of, struct arena *in,
                               struct compare_lr *out) {
    (void)in;
    assert_ptr_equal(of, input);
    searches++;
    out->agree = (size_t)for_both;
    return STATUS_OK;
}

int given_hidden(const struct fit_segment *segment, const struct fit_set *set) {
    assert_true(set == &sets[0] || set == &sets[1]);
    return segment == hidden;
}

enum status given_skips(const struct compare_input *of, struct arena *in, struct compare_lr *out) {
    (void)in;
    assert_ptr_equal(of, input);
    out->skips_part = skips_part;
    if (skips_part > 0) out->skips_words = "Other updates were skipped.";
    return STATUS_OK;
}

/* Two logs of so many rows, one at each update, which both follow a line from 1 to 0. */
static void open_rows(size_t rows) {
    arena_close(&arena);
    memset(&column, 0, sizeof column);
    searches = for_both = 0;
    hidden = NULL;
    skips_part = 0;
    const struct contract_request request = helper_fit_request("hf", "linear", 1.0, 0.0, 2 * rows);
    for (size_t s = 0; s < 2; s++) {
        for (size_t i = 0; i < rows; i++)
            points[s][i] = (struct series_point){
                .update = i + 1, .row = i, .value = 1.0 - (double)i / (2.0 * (double)rows)};
        series[s] = (struct series){points[s], rows};
        for (size_t f = 0; f < FITS; f++) {
            for (size_t g = 0; g < 3; g++)
                segments[s][f][g] = (struct fit_segment){.point = 4 * g, .scale = 1.0};
            helper_fit_make(&fits[s][f], &arena, &request, segments[s][f]);
        }
        sets[s] = (struct fit_set){.series = &series[s], .fits = fits[s], .count = 1};
        input[s] = (struct compare_input){.fits = &sets[s]};
        column.side[s] = (struct compare_side){.points = points[s], .count = rows};
    }
    column.pairs = rows;
    column.to = rows;
    column.class_of = COMPARE_EQUAL;
}

static void validate_two_lrs(void **state) {
    (void)state;
    static const struct {
        double a, b, quantum;
        int apart;
    } cases[] = {{1.0, 1.0, 0.0, 0},
                 {1.0 + 0.9e-9, 1.0, 0.0, 0},
                 {1.0, 1.0 + 0.9e-9, 0.0, 0},
                 {1.0 + 1.1e-9, 1.0, 0.0, 1},
                 {1.0, 1.0 + 1.1e-9, 0.0, 1},
                 {-1e-3, -1e-3 * (1.0 + 1.1e-9), 0.0, 1},
                 {-1e-3, -1e-3 * (1.0 + 0.9e-9), 0.0, 0},
                 {0.5, 0.75, 0.25, 0},
                 {0.5, 0.7500001, 0.25, 1},
                 {1000.0, 0.0, 1000.0, 0}, /* of the larger of the two */
                 {0.0, 1000.0000005, 1000.0, 0},
                 {1000.0000005, 0.0, 1000.0, 0}};
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        if (apart(cases[i].a, cases[i].b, cases[i].quantum) != cases[i].apart)
            fail_msg("case %zu", i);
}

/* Each skipped update as soon as its range lets it, behind the one before. */
static void corroborate_places(void **state) {
    (void)state;
    for (uint32_t number = 0; number < 2000; number++) {
        struct draws draws = {.key = UINT64_C(0x91ace5), .number = number};
        struct placed out;
        uint64_t wanted[8], at = 0;
        size_t count = 0;
        open_rows(ROWS);
        struct fit *const fit = &fits[0][0];
        fit->skips = skips[0];
        fit->skip_count = draws_pick(&draws, 3);
        for (size_t i = 0; i < fit->skip_count; i++) {
            const uint64_t first = 2 + draws_pick(&draws, 3) + 3 * i;
            skips[0][i] = (struct fit_skip){
                .first = first, .last = first + 6, .count = 1 + draws_pick(&draws, 3)};
            for (uint64_t n = 0; n < skips[0][i].count; n++) {
                if (at < first) at = first;
                wanted[count++] = at++;
            }
        }
        fit->part_count = draws_pick(&draws, 4) == 0;
        assert_int_equal(place(fit, &arena, &out), STATUS_OK);
        assert_ptr_equal(out.fit, fit);
        if (count == 0 || fit->part_count > 0) {
            assert_ptr_equal(out.soonest.plan.skipped, fit->plan.skipped);
            assert_int_equal(out.soonest.plan.skipped_count, fit->plan.skipped_count);
            continue;
        }
        assert_int_equal(out.soonest.plan.skipped_count, count);
        for (size_t i = 0; i < count; i++)
            assert_int_equal(out.soonest.plan.skipped[i], wanted[i]);
    }
}

static uint64_t first_of(struct pairing *pairing, double values[2]) {
    static struct placed placed[2];
    for (size_t s = 0; s < 2; s++) {
        assert_int_equal(place(&fits[s][0], &arena, &placed[s]), STATUS_OK);
        pairing->placed[s] = &placed[s];
    }
    return first_apart(pairing, values);
}

/* A scale of one explanation from one row on, for so many rows, is seen there and nowhere else. */
static void validate_first_updates(void **state) {
    (void)state;
    for (size_t side = 0; side < 2; side++)
        for (size_t begin = 0; begin < ROWS; begin++)
            for (uint64_t last = 1; last <= ROWS; last++) {
                struct pairing pairing = {.column = &column, .input = input};
                double values[2];
                open_rows(ROWS);
                column.to = last;
                fits[side][0].segment_count = begin > 0 ? 3 : 2;
                segments[side][0][begin > 0].point = begin;
                segments[side][0][begin > 0].scale = 0.5;
                segments[side][0][(begin > 0) + 1].point = begin + 1;
                if (begin == ROWS - 1) fits[side][0].segment_count = 2;
                const uint64_t first = first_of(&pairing, values);
                assert_int_equal(first, begin + 1 <= last ? begin + 1 : 0);
                if (first == 0) continue;
                const double at = points[0][begin].value;
                assert_true(fabs(values[side] - 0.5 * at) < 1e-12);
                assert_true(fabs(values[1 - side] - at) < 1e-12);
                /* What is printed coarsely may be one. */
                points[side][begin].quantum = 1.01 * at;
                assert_int_equal(first_of(&pairing, values), 0);
                points[side][begin].quantum = 0.99 * at;
                assert_int_equal(first_of(&pairing, values), begin + 1);
                points[1 - side][begin].quantum = 0.02 * at;
                assert_int_equal(first_of(&pairing, values), 0);
            }
}

/* Of a long log the first and the last half of 4096 updates are looked at. */
static void validate_long_logs(void **state) {
    (void)state;
    static const struct {
        size_t row; /* update - 1 */
        int seen;
    } cases[] = {{0, 1},    {2046, 1}, {2047, 0}, {2500, 0},
                 {2950, 0}, {2951, 1}, {4998, 1}, {4999, 1}};
    for (size_t long_log = 0; long_log < 2; long_log++)
        for (size_t c = 0; c < COUNT_OF(cases); c++) {
            struct pairing pairing = {.column = &column, .input = input};
            double values[2];
            const size_t row = cases[c].row;
            open_rows(LONG);
            if (!long_log && row >= 4096) continue;
            if (!long_log) column.to = 4096;
            fits[1][0].segment_count = 3;
            segments[1][0][1] = (struct fit_segment){.point = row, .scale = 0.5};
            segments[1][0][2] = (struct fit_segment){.point = row + 1, .scale = 1.0};
            if (row == 0) {
                segments[1][0][0].scale = 0.5;
                segments[1][0][1] = segments[1][0][2];
                fits[1][0].segment_count = 2;
            }
            assert_int_equal(first_of(&pairing, values), cases[c].seen || !long_log ? row + 1 : 0);
        }
}

/* Between two places of a skipped update what was applied is open: what lies outside is apart. */
static void validate_ranges(void **state) {
    (void)state;
    static const uint64_t latest[] = {7};
    for (uint64_t other = 2; other < ROWS; other++) {
        struct pairing pairing = {.column = &column, .input = input};
        static uint64_t known_skip[1];
        double values[2];
        open_rows(ROWS);
        fits[0][0].skips = skips[0];
        fits[0][0].skip_count = 1;
        skips[0][0] = (struct fit_skip){.first = 4, .last = 7, .count = 1};
        fits[0][0].plan.skipped = latest;
        fits[0][0].plan.skipped_count = 1;
        known_skip[0] = other; /* of the other side it is known */
        fits[1][0].plan.skipped = known_skip;
        fits[1][0].plan.skipped_count = 1;
        const uint64_t first = first_of(&pairing, values);
        /* The LR is held behind the skipped update: sooner than 4 or later than 7 is apart. */
        if ((other >= 4 && other <= 7) != (first == 0)) fail_msg("%d: %d", (int)other, (int)first);
        if (first > 0) assert_int_equal(first, (other < 4 ? other : 7) + 1);
    }
}

static void validate_shifts(void **state) {
    (void)state;
    for (int shift = -3; shift <= 3; shift++) {
        struct pairing pairing = {.column = &column, .input = input};
        double values[2];
        open_rows(ROWS);
        segments[1][0][0].shift = -shift;
        const uint64_t first = first_of(&pairing, values);
        /* Under update 1 the counter is that of update 1. */
        assert_int_equal(first, shift == 0 ? 0 : shift < 0 ? 1 : 2);
        assert_int_equal(find_shift(pairing), shift >= -2 && shift <= 2 ? shift : 0);
    }
}

/* ---- what is said ---- */

static void require(int32_t kind, size_t agree, size_t differ, const char *words) {
    assert_int_equal(compare_applied(input, &column, &arena, &lr), STATUS_OK);
    assert_string_equal(lr.words, words);
    assert_int_equal(lr.state, kind);
    assert_int_equal(lr.agree, agree);
    assert_int_equal(lr.differ, differ);
    open_rows(ROWS);
}

/* Lets explanation `f` of a side apply half from row 4 on. */
static void halve(size_t side, size_t f) {
    fits[side][f].segment_count = 2;
    segments[side][f][1].scale = 0.5;
}

static void state_both(void) {
    input[0].contract = input[1].contract = "hf";
}

static void skip_somewhere(size_t side, uint64_t last) {
    static const uint64_t at[] = {5};
    fits[side][0].skips = skips[side];
    fits[side][0].skip_count = 1;
    skips[side][0] = (struct fit_skip){.first = 5, .last = last, .count = 1};
    fits[side][0].plan.skipped = at;
    fits[side][0].plan.skipped_count = 1;
}

#define APART_FROM_5 "under hf for A and hf for B the applied LRs differ from update 5 on "
#define CONTRACTS                                                                                  \
    "The logs cannot say which contracts ran: state them with --contract-a and --contract-b."

static void validate_sentences(void **state) {
    (void)state;
    open_rows(ROWS);
    require(COMPARE_LR_SAME, 1, 0,
            "The applied LRs agree under hf for A and hf for B and under every other explanation "
            "of the two columns.");
    state_both();
    require(COMPARE_LR_SAME, 1, 0,
            "The applied LRs agree under hf for A and hf for B, with all numbers that fit.");
    state_both();
    sets[1].count = 2;
    halve(1, 1);
    require(COMPARE_LR_SAME, 1, 1,
            "The applied LRs agree under hf for A and hf for B with the simplest numbers that "
            "fit.");
    state_both();
    sets[1].count = 2;
    halve(1, 0);
    require(COMPARE_LR_DIFFERENT, 1, 1,
            "The logged LR columns agree, but " APART_FROM_5
            "(0.8333 against 0.4167) (with the simplest numbers that fit).");
    state_both();
    halve(0, 0);
    column.class_of = COMPARE_DIFFERENT;
    require(COMPARE_LR_DIFFERENT, 0, 1,
            "The logged LR columns differ, and " APART_FROM_5 "(0.4167 against 0.8333).");
    halve(1, 0);
    require(COMPARE_LR_DIFFERENT, 0, 1,
            "The logged LR columns agree, but " APART_FROM_5 "(0.8333 against 0.4167).");
    halve(1, 0); /* one explanation of both makes that open */
    for_both = 1;
    require(COMPARE_LR_UNTESTABLE, 1, 1,
            "The logged LR columns agree, but " APART_FROM_5
            "(0.8333 against 0.4167); other explanations of the same two columns make them "
            "agree. " CONTRACTS);
    sets[0].count = 2;
    halve(1, 0);
    halve(0, 1);
    require(COMPARE_LR_UNTESTABLE, 1, 1,
            "The logged LR columns agree, but " APART_FROM_5
            "(0.8333 against 0.4167); other explanations of the same two columns make them "
            "agree. " CONTRACTS);
    for (size_t side = 0; side < 2; side++) { /* or more explanations than were tried */
        halve(1, 0);
        sets[side].left_out = 1;
        require(COMPARE_LR_UNTESTABLE, 0, 1,
                "The logged LR columns agree, but " APART_FROM_5
                "(0.8333 against 0.4167); the two columns may have other explanations than were "
                "tried. " CONTRACTS);
        halve(1, 0); /* where those of other frameworks were left out, the log's own are there */
        sets[side].left_out = sets[side].foreign = 1;
        require(COMPARE_LR_DIFFERENT, 0, 1,
                "The logged LR columns agree, but " APART_FROM_5 "(0.8333 against 0.4167).");
        for (size_t s = 0; s < 3; s++) { /* a break of the simplest one that no resume explains */
            halve(1, 0);
            fits[side][0].segment_count = 3;
            segments[side][0][2].scale = 0.125;
            if (side == 0) segments[0][0][2].point = 1000, segments[0][0][1].point = 999;
            hidden = &segments[side][0][s];
            require(s > 0 ? COMPARE_LR_UNTESTABLE : COMPARE_LR_DIFFERENT, 0, 1,
                    s > 0 ? "The logged LR columns agree, but " APART_FROM_5
                            "(0.8333 against 0.4167); the two columns may have other explanations "
                            "than were tried. " CONTRACTS
                          : "The logged LR columns agree, but " APART_FROM_5
                            "(0.8333 against 0.4167).");
        }
        halve(1, 0); /* where the columns differ, that is no matter */
        sets[side].left_out = 1;
        column.class_of = COMPARE_DIFFERENT;
        require(COMPARE_LR_DIFFERENT, 0, 1,
                "The logged LR columns differ, and " APART_FROM_5 "(0.8333 against 0.4167).");
        skip_somewhere(side, 6);
        skip_somewhere(1 - side, 5);
        require(COMPARE_LR_SAME, 1, 0,
                "The applied LRs agree under hf for A and hf for B and under every other "
                "explanation of the two columns. Which updates of a range were skipped, the rows "
                "leave open.");
        skip_somewhere(side, 5);
        skip_somewhere(1 - side, 5);
        require(COMPARE_LR_SAME, 1, 0,
                "The applied LRs agree under hf for A and hf for B and under every other "
                "explanation of the two columns.");
    }
    static const char *const shifts[] = {
        "two updates: update k of A applies what update k-2 of B applies.",
        "one update: update k of A applies what update k-1 of B applies.", "",
        "one update: update k of A applies what update k+1 of B applies.",
        "two updates: update k of A applies what update k+2 of B applies."};
    for (int shift = -2; shift <= 2; shift++) {
        if (shift == 0) continue;
        for (int stated = 0; stated < 2; stated++) {
            char text[256] = "The logged LR columns agree, but under hf for A and hf for B the "
                             "applied LRs differ by ";
            memcpy(strchr(text, '\0'), shifts[shift + 2], strlen(shifts[shift + 2]) + 1);
            if (stated) state_both();
            segments[1][0][0].shift = -shift;
            require(COMPARE_LR_DIFFERENT, 0, 1, text);
        }
    }
}

static void validate_what_is_not_compared(void **state) {
    (void)state;
    struct log logs[2];
    memset(logs, 0, sizeof logs);
    open_rows(ROWS);
    input[0].log = &logs[0];
    input[1].log = &logs[1];
    assert_int_equal(compare_applied(input, NULL, &arena, &lr), STATUS_OK);
    assert_string_equal(lr.words, "There is no LR column in both logs.");
    struct log_column applied = {.name = LOG_LR_APPLIED},
                      printed[2] = {{.name = LOG_LR_LOGGED}, {.name = LOG_LR_APPLIED}};
    for (size_t a = 0; a < 2; a++) { /* one has the applied LR, and the other the printed one */
        logs[a] = (struct log){.columns = &applied, .column_count = 1};
        for (size_t has = 0; has < 3; has++) {
            logs[1 - a] = (struct log){.columns = printed, .column_count = has};
            assert_int_equal(compare_applied(input, NULL, &arena, &lr), STATUS_OK);
            assert_int_equal(lr.words[0], has == 1 ? "AB"[a] : 'T'); /* T: there is none in both */
            assert_int_equal(strstr(lr.words, "A has the LR that was applied") != NULL,
                             has == 1 && a == 0);
        }
    }
    memset(logs, 0, sizeof logs);
    assert_int_equal(lr.logged, COMPARE_ABSENT);
    column.pairs = 0;
    assert_int_equal(compare_applied(input, &column, &arena, &lr), STATUS_OK);
    assert_string_equal(lr.words, "There is no LR column in both logs.");
    open_rows(ROWS);
    for (size_t side = 0; side < 2; side++)
        for (int how = 0; how < 4; how++) {
            char text[160];
            if (how & 1) input[side].contract = "olmo-core";
            input[1 - side].contract = "hf";
            if (how & 2)
                input[side].fits = NULL;
            else
                sets[side].count = 0;
            snprintf(text, sizeof text,
                     how & 1 ? "The LR column of %s does not fit olmo-core: the applied LRs cannot "
                               "be compared."
                             : "No shipped contract explains the LR column of %s: what was applied "
                               "there cannot be said.",
                     side ? "B" : "A");
            require(COMPARE_LR_UNFITTED, 0, 0, text);
        }
}

/* Of all pairs the first that agrees and the first that differs are kept, and one search is made
 * where none agrees, nothing was stated and the printed columns do. */
static void corroborate_pairs(void **state) {
    (void)state;
    for (uint32_t number = 0; number < 512; number++) {
        struct draws draws = {.key = UINT64_C(0x9a125), .number = number};
        int kind[2][FITS];
        size_t agree = 0, differ = 0;
        const struct fit *alike[2] = {NULL, NULL}, *other[2] = {NULL, NULL};
        open_rows(ROWS);
        for (size_t s = 0; s < 2; s++) {
            sets[s].count = 1 + draws_pick(&draws, FITS);
            for (size_t f = 0; f < FITS; f++) {
                kind[s][f] = (int)draws_pick(&draws, 3);
                fits[s][f].segment_count = kind[s][f] > 0 ? 2 : 1;
                segments[s][f][1].scale = kind[s][f] == 1 ? 0.5 : 0.25;
            }
        }
        if (draws_pick(&draws, 4) == 0) column.class_of = COMPARE_DIFFERENT;
        for (size_t s = 0; s < 2; s++)
            if (draws_pick(&draws, 2) == 0) input[s].contract = "hf";
        for (size_t i = 0; i < sets[0].count; i++)
            for (size_t j = 0; j < sets[1].count; j++) {
                const int same = kind[0][i] == kind[1][j];
                const struct fit **const keep = same ? alike : other;
                if ((same ? agree++ : differ++) > 0) continue;
                keep[0] = &fits[0][i];
                keep[1] = &fits[1][j];
            }
        assert_int_equal(compare_applied(input, &column, &arena, &lr), STATUS_OK);
        assert_int_equal(lr.agree, agree);
        assert_int_equal(lr.differ, differ);
        assert_ptr_equal(lr.alike[0], alike[0]);
        assert_ptr_equal(lr.alike[1], alike[1]);
        assert_int_equal(lr.fits[0], sets[0].count);
        assert_int_equal(lr.fits[1], sets[1].count);
        const int stated = input[0].contract != NULL && input[1].contract != NULL;
        assert_int_equal(lr.stated, stated);
        assert_int_equal(searches, !stated && agree == 0 && column.class_of != COMPARE_DIFFERENT);
        if (stated) {
            assert_int_equal(lr.state,
                             kind[0][0] == kind[1][0] ? COMPARE_LR_SAME : COMPARE_LR_DIFFERENT);
            assert_ptr_equal(lr.fit[0], &fits[0][0]);
            assert_ptr_equal(lr.fit[1], &fits[1][0]);
            assert_int_equal(lr.first_update, kind[0][0] == kind[1][0] ? 0 : 5);
            continue;
        }
        assert_int_equal(lr.state, differ == 0  ? COMPARE_LR_SAME
                                   : agree == 0 ? COMPARE_LR_DIFFERENT
                                                : COMPARE_LR_UNTESTABLE);
        assert_ptr_equal(lr.fit[0], differ > 0 ? other[0] : &fits[0][0]);
        assert_ptr_equal(lr.fit[1], differ > 0 ? other[1] : &fits[1][0]);
        assert_int_equal(lr.first_update, differ > 0 ? 5 : 0);
    }
}

static void validate_skips(void **state) {
    (void)state;
    open_rows(ROWS);
    skips_part = 7;
    require(COMPARE_LR_SAME, 1, 0,
            "The applied LRs agree under hf for A and hf for B and under every other explanation "
            "of the two columns. Other updates were skipped.");
    halve(1, 0);
    skips_part = 7;
    require(COMPARE_LR_DIFFERENT, 0, 1,
            "The logged LR columns agree, but " APART_FROM_5
            "(0.8333 against 0.4167). Other updates were skipped.");
    segments[1][0][0].shift = 1;
    skips_part = 7;
    assert_int_equal(compare_applied(input, &column, &arena, &lr), STATUS_OK);
    assert_int_equal(lr.shift, -1);
    assert_int_equal(lr.first_update, 1);
    open_rows(ROWS);
    skips_part = 7; /* the pair that the example is now is asked once more */
    assert_int_equal(compare_applied(input, &column, &arena, &lr), STATUS_OK);
    assert_int_equal(lr.shift, 0);
    assert_int_equal(lr.first_update, 0);
}

static int close_arena(void **state) {
    (void)state;
    arena_close(&arena);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_two_lrs),       cmocka_unit_test(corroborate_places),
        cmocka_unit_test(validate_first_updates), cmocka_unit_test(validate_long_logs),
        cmocka_unit_test(validate_ranges),        cmocka_unit_test(validate_shifts),
        cmocka_unit_test(validate_sentences),     cmocka_unit_test(validate_what_is_not_compared),
        cmocka_unit_test(corroborate_pairs),      cmocka_unit_test(validate_skips),
    };
    return cmocka_run_group_tests(tests, NULL, close_arena);
}

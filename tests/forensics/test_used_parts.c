/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What a log says beside its printed LRs, part by part: which fits the LRs that were recorded as
 * applied leave, and what they make of a check, by the whole text; which fits the skipped updates
 * that a log counts refute, against every staircase of lags there is; and which rows stand at one
 * LR while a schedule is on its way. Searches and applied LRs are replaced by what a test names. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#define fit_applied given_applied
#define fit_logged given_logged
#define fit_series given_series
#include "forensics/fit_clamp.c"
#include "forensics/fit_counts.c"
#include "forensics/fit_used.c" /* for the parts, which no other file asks for */
#include "tests/base/helper_draws.h"
#include "tests/forensics/helper_fit.h"
#include "tests/forensics/helper_log.h"

enum { ROWS = 24, FITS = 3, CASES = 4000 };

static struct arena arena;
/* In front of the rows stands one of another part, behind those that were recorded one of a huge
 * LR, and behind the fits one that applies what was recorded: nobody is to read these. */
static struct series_point guarded[1 + ROWS], others[ROWS + 1];
static struct series_point *const points = guarded + 1;
static struct series printed;
static struct fit fits[FITS + 1];
static struct contract contracts[FITS];
static struct fit_segment segments[2];
static struct fit_known known;

/* ---- what was recorded as applied ---- */

static uint64_t peaks; /* a bit for each update at the peak */

/* A fit applies its peak in some updates, and little in the others. It is asked with the last
 * printed row that is not behind the update, or with the first row. */
double given_applied(const struct fit *fit, size_t point, uint64_t update) {
    size_t at = 0;
    for (size_t i = 1; i < printed.count; i++)
        if (printed.points[i].update <= update) at = i;
    assert_int_equal(point, at);
    return (peaks >> update & 1u) != 0 ? fit->lr : 0x1p-16 * fit->lr;
}

static void open_scene(void) {
    arena_close(&arena);
    fit_known_init(&known);
    peaks = UINT64_MAX;
    guarded[0] = (struct series_point){.update = 1000, .part = 9};
    for (size_t i = 0; i < ROWS; i++)
        points[i] = (struct series_point){.update = 2 + 2 * i, .row = i, .value = 1e-4};
    printed = (struct series){points, ROWS};
    segments[0] = segments[1] = (struct fit_segment){.update = 1, .scale = 1.0};
    const struct contract_request request = helper_fit_request("hf", "linear", 1e-3, 0.0, 100);
    for (size_t f = 0; f < FITS; f++) {
        helper_fit_make(&fits[f], &arena, &request, segments);
        contracts[f] = *fits[f].contract;
        fits[f].contract = &contracts[f];
        fits[f].lr = 1e-3 * (double)(f + 1);
    }
    contracts[0].name = "first";
    contracts[1].name = "second";
    contracts[2].name = "third";
}

/* Fills the recorded LRs with what a fit applies, and returns how far off one may be. */
static struct fit_used recorded(const struct fit *fit, size_t count) {
    for (size_t i = 0; i < count; i++) {
        others[i] = (struct series_point){.update = 1 + i, .row = i};
        others[i].value = (peaks >> (1 + i) & 1u) != 0 ? fit->lr : 0x1p-16 * fit->lr;
    }
    others[count] = (struct series_point){.update = 1, .value = 1e9};
    return (struct fit_used){.series = {others, count}, .left_out = 7, .update = 9};
}

static void corroborate_recorded(void **state) {
    (void)state;
    size_t apart = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        struct draws draws = {.key = UINT64_C(0x05ed), .number = number};
        open_scene();
        fits[0].lr *= draws_pick(&draws, 2) == 0 ? 1.0 : -1.0; /* which no LR is, but a number */
        printed.count = 1 + draws_pick(&draws, ROWS);
        const size_t count = 1 + draws_pick(&draws, ROWS);
        peaks = UINT64_C(2) << draws_pick(&draws, (uint32_t)count);
        struct fit_used used = recorded(&fits[0], count);
        const double peak = fabs(fits[0].lr);
        uint64_t first = 0;
        double was = 0.0;
        for (size_t i = 0; i < count; i++) {
            if ((peaks >> others[i].update & 1u) != 0) continue; /* which has the peak */
            static const double shares[] = {0.0, 0.5, 1.0 - 0x1p-20, 1.0 + 0x1p-20, 2.0};
            const uint32_t how = draws_pick(&draws, 8);
            if (how >= COUNT_OF(shares)) continue;
            const double room = 0x1p-23 * fabs(others[i].value) + 0x1p-40 * peak;
            others[i].value -= (fits[0].lr < 0.0 ? -room : room) * shares[how];
            if (how > 2 && first == 0) first = others[i].update, was = others[i].value;
        }
        hold(&fits[0], &printed, &used);
        if (used.update != first) fail_msg("case %u: %ju", number, (uintmax_t)used.update);
        apart += first > 0;
        if (first == 0) continue;
        assert_true(used.applied == was);
        assert_true(used.expected == given_applied(&fits[0], point_before(&printed, first), first));
    }
    assert_true(apart > CASES / 3 && apart < CASES);
    for (int off = 0; off < 2; off++) { /* the room itself is allowed */
        open_scene();
        fits[0].lr = 1.0;
        struct fit_used used = recorded(&fits[0], 5);
        others[3].value = 1.0 - 0x1p-23 - 0x1p-40 - (off ? 0x1p-53 : 0.0);
        hold(&fits[0], &printed, &used);
        assert_int_equal(used.update, off ? 4 : 0);
    }
    open_scene(); /* the column itself */
    struct fit_used used;
    struct log *const log = helper_log(&arena, 4);
    assert_int_equal(fit_used_open(log, &arena, &used), STATUS_OK);
    assert_int_equal(used.series.count, 0);
    helper_put(&arena, log, LOG_LR_APPLIED, 2, 0.5, PRINT_EXACT);
    assert_int_equal(fit_used_open(log, &arena, &used), STATUS_OK);
    assert_int_equal(used.series.count, 1);
    assert_true(used.series.points[0].update == 3 && used.series.points[0].value == 0.5);
    assert_true(used.update == 0 && used.left_out == 0);
}

/* Each subset of three fits that may apply what was recorded. */
static void validate_fits_left(void **state) {
    (void)state;
    for (unsigned right = 0; right < 8; right++)
        for (size_t count = 0; count <= FITS; count++)
            for (size_t rows = 0; rows < 3; rows += 2) {
                struct fit_set set = {.series = &printed, .fits = fits, .count = count};
                open_scene();
                set.why = FIT_WHY_APPLIED | FIT_WHY_FEW;
                for (size_t f = 0; f < FITS; f++)
                    fits[f].lr = (right >> f & 1u) != 0 ? 1e-3 : 2e-3, fits[f].steps = f;
                struct fit_used used = recorded(&(struct fit){.lr = 1e-3}, rows);
                size_t left = 0;
                for (size_t f = 0; f < count; f++)
                    left += right >> f & 1u;
                struct fit_used first = used;
                const struct fit *const found = fit_used_by(&set, &first);
                for (size_t f = 0; f < count && left > 0 && rows > 0; f++)
                    if ((right >> f & 1u) != 0) {
                        assert_ptr_equal(found, &fits[f]);
                        break;
                    }
                if (rows == 0) assert_ptr_equal(found, count > 0 ? &fits[0] : NULL);
                if (rows > 0 && left == 0) assert_null(found);
                assert_int_equal(first.update, count == 0 ? 9 : found == NULL);
                assert_int_equal(fit_keep_used(&set, &arena, &used), STATUS_OK);
                const int asked = rows > 0 && count > 0;
                assert_int_equal(set.count, asked && left > 0 ? left : count);
                assert_int_equal(used.update, !asked ? 9 : left > 0 ? 0 : 1);
                assert_int_equal(used.left_out, asked && left > 0 ? count - left : 7);
                assert_int_equal(set.why,
                                 asked && left > 0 ? FIT_WHY_FEW : FIT_WHY_APPLIED | FIT_WHY_FEW);
                for (size_t f = 0, k = 0; f < count && asked && left > 0; f++)
                    if ((right >> f & 1u) != 0) assert_int_equal(set.fits[k++].steps, f);
            }
}

static struct fit_check check;
static struct fit_used used_now;

static void open_check(void) {
    open_scene();
    used_now = recorded(&fits[0], 5);
    memset(&check, 0, sizeof check);
    check.expected = &fits[0];
    check.found = (struct fit_set){.series = &printed, .fits = fits, .count = FITS};
    check.verdict = FIT_UNDECIDED;
    check.rival = "second";
    check.needs = "more";
    check.words = "as before";
    check.why = FIT_WHY_APPLIED | FIT_WHY_FEW;
}

static void validate_checks(void **state) {
    (void)state;
    static const char agrees[] = "every printed LR agrees with first, and so does every one of the "
                                 "5 that the log records as applied";
    for (int how = 0; how < 8; how++) {
        open_check();
        if (how == 1) check.verdict = FIT_PASS, check.rival = NULL;
        if (how == 2) check.expected = NULL;
        if (how == 3) check.bad_points = 1;
        if (how == 4) check.verdict = FIT_FAIL;
        if (how == 5) used_now.series.count = 0;
        if (how == 6) check.rival = NULL; /* something else was in doubt */
        if (how == 7) check.verdict = FIT_PASS;
        const int32_t before = check.verdict;
        assert_int_equal(fit_check_used(&check, &arena, &used_now), STATUS_OK);
        const int passes = how < 2 || how == 7;
        assert_int_equal(check.verdict, passes ? FIT_PASS : before);
        assert_string_equal(check.words, passes ? agrees : "as before");
        assert_int_equal(check.why, passes ? FIT_WHY_FEW : FIT_WHY_APPLIED | FIT_WHY_FEW);
        if (passes) assert_true(check.rival == NULL && check.needs == NULL);
        if (!passes) assert_string_equal(check.needs, "more");
    }
    /* Another LR was applied, which none, or the first fit that does, applies. */
    for (unsigned right = 0; right < 8; right++)
        for (int how = 0; how < 6; how++) {
            open_check();
            contracts[1].name = "other";
            for (size_t f = 0; f < FITS; f++) {
                fits[f].lr = (right >> f & 1u) != 0 ? 0.5 : 0.25;
                fits[f].bug = f == 1 ? "lag1" : NULL;
            }
            fits[FITS].lr = 0.5;
            used_now = recorded(&fits[FITS], 5);
            struct fit expected = fits[2];
            expected.lr = 0.25;
            check.expected = &expected;
            check.bug = "before";
            if (how == 1) check.verdict = FIT_PASS;
            if (how == 2) check.expected = NULL;
            if (how == 3) check.bad_points = 1;
            if (how == 4) check.verdict = FIT_FAIL;
            if (how == 5) used_now.series.count = 0;
            assert_int_equal(fit_check_used(&check, &arena, &used_now), STATUS_OK);
            if (how > 1) {
                assert_string_equal(check.words, "as before");
                assert_string_equal(check.bug, "before");
                continue;
            }
            static const char *const so[] = {"", "; so applies first", "; so applies other",
                                             "; so applies third"};
            const size_t first = (right & 1u) != 0   ? 1
                                 : (right & 2u) != 0 ? 2
                                 : (right & 4u) != 0 ? 3
                                                     : 0;
            char wanted[200];
            snprintf(wanted, sizeof wanted,
                     "every printed LR agrees with third, but update 1 applied 0.5, where "
                     "third applies 0.25%s",
                     so[first]);
            assert_string_equal(check.words, wanted);
            assert_int_equal(check.verdict, FIT_FAIL);
            if (first == 2)
                assert_string_equal(check.bug, "lag1");
            else
                assert_null(check.bug);
            assert_true(check.needs == NULL && check.rival == NULL);
            assert_int_equal(check.why, FIT_WHY_APPLIED | FIT_WHY_FEW);
        }
}

/* ---- what a log counts ---- */

static uint32_t least[ROWS], most[ROWS];

static void open_counts(void) {
    open_scene();
    for (size_t i = 0; i < ROWS; i++)
        least[i] = most[i] = 0;
    known.skips.least = least;
    known.skips.most = most;
    known.skips.shown = 1;
}

static void validate_what_may_lag(void **state) {
    (void)state;
#define LAG(expected)                                                                              \
    do {                                                                                           \
        if (may_lag(&fits[0], &known) != (expected)) fail_msg("line %d", __LINE__);                \
        open_counts();                                                                             \
    } while (0)
    static struct sched_class feedback, recursive;
    const uint64_t skipped[1] = {3};
    open_counts();
    LAG(1);
    known.skips.least = NULL;
    LAG(0);
    known.skips.shown = 0;
    LAG(0);
    known.steps_guessed = 1;
    LAG(0);
    known.request.skipped = skipped;
    known.request.skipped_count = 1;
    LAG(0);
    contracts[0].on_skip = CONTRACT_SKIP_ADVANCE;
    LAG(0);
    contracts[0].unit = CONTRACT_UNIT_EPOCH;
    LAG(0);
    contracts[0].unit = CONTRACT_UNIT_SAMPLE;
    LAG(1);
    feedback = recursive = *fits[0].schedule;
    feedback.feedback = 1;
    fits[0].schedule = &feedback;
    LAG(0);
    recursive.state_size = 1;
    fits[0].schedule = &recursive;
    LAG(0);
    fits[0].stride = 2.0;
    LAG(0);
    fits[0].segment_count = 2;
    LAG(0);
    fits[0].first_differs = 1;
    LAG(0);
    fits[0].samples = (const struct fit_samples *)(const void *)&known;
    LAG(0);
    fits[0].plan.skipped_count = 1;
    LAG(0);
    fits[0].part_count = 1;
    LAG(0);
    /* Rows that contradict, and what is asked first: such a fit is never refuted. */
    struct fit_refuted refuted;
    for (int how = 0; how < 2; how++) {
        open_counts();
        least[0] = most[0] = 1;
        for (size_t i = 0; i < ROWS; i++)
            points[i].value = contract_applied(&fits[0].plan, points[i].update);
        if (how == 1) fits[0].stride = 2.0;
        assert_int_equal(fit_counts_refute(&fits[0], &known, &printed, 1e-3, &refuted), how == 0);
    }
}

/* Lags once more: of each row, every number of skipped updates that there can be by then. */
enum { MOST = 2 * ROWS + 4 };

static int refuted_by_all(const struct fit *fit, size_t count, double scale, int own,
                          struct fit_refuted *out) {
    int before[MOST] = {1}; /* how many were skipped by the row before */
    uint64_t last = 0;
    for (size_t i = 0; i < count; i++) {
        int now[MOST] = {0}, any = 0;
        const struct series_point *const point = &points[i];
        uint64_t low = 0, high = 0, fewest = 0;
        if (i > 0 && (point->part != points[i - 1].part || point->update <= last)) return 0;
        for (size_t row = i > 0 ? points[i - 1].row + 1 : 0; row <= point->row; row++)
            low += least[row], high += most[row];
        while (!before[fewest])
            fewest++;
        for (uint64_t was = 0; was < MOST; was++)
            for (uint64_t seen = was; before[was] && seen < MOST; seen++) {
                /* The last update of the way is not seen where its own LR is printed. */
                if (seen - was > point->update - last - (own ? 1 : 0)) continue;
                if (seen > point->update - (own ? 1 : 0)) continue;
                if (!fit_matches(point, contract_applied(&fit->plan, point->update + !own - seen),
                                 scale, NULL))
                    continue;
                for (uint64_t is = seen; is <= seen + (own ? 1 : 0) && is < MOST; is++)
                    if (is - was >= low && is - was <= high) now[is] = any = 1;
            }
        if (!any) {
            if (fewest + low == 0) return 0;
            uint64_t lag = fewest + (low > 0 && own ? low - 1 : low);
            if (lag > point->update - (own ? 1 : 0)) lag = point->update - (own ? 1 : 0);
            *out = (struct fit_refuted){i, fewest + low,
                                        contract_applied(&fit->plan, point->update + !own - lag)};
            return 1;
        }
        memcpy(before, now, sizeof before);
        last = point->update;
    }
    return 0;
}

static void corroborate_counts(void **state) {
    (void)state;
    size_t refuted = 0, whole = 0;
    for (uint32_t number = 0; number < 2 * CASES; number++) {
        struct draws draws = {.key = UINT64_C(0xc0c0), .number = number};
        struct fit_refuted mine, theirs;
        open_counts();
        const int own = draws_pick(&draws, 2) == 0;
        contracts[0].logged = own ? CONTRACT_LOGGED_USED : CONTRACT_LOGGED_NEXT;
        const size_t count = 1 + draws_pick(&draws, 8);
        const uint32_t odd = draws_pick(&draws, 3), coarse = draws_pick(&draws, 3);
        uint64_t update = 0, skipped = 0, row = 0;
        const uint32_t first_part = draws_pick(&draws, 2), resumed = draws_pick(&draws, 8);
        size_t parts = 100; /* the row at which another one begins, or that shows an update again */
        if (resumed < 2) parts = 1 + draws_pick(&draws, 8) + (resumed == 1 ? 100 : 0);
        for (size_t i = 0; i < count; i++) {
            const uint64_t way = 1 + draws_pick(&draws, 3);
            uint64_t seen = skipped;
            for (uint64_t k = 0; k < way; k++) {
                const uint64_t is = draws_pick(&draws, 3) == 0;
                if (!own || k + 1 < way) seen += is;
                skipped += is;
                const uint32_t rest = draws_pick(&draws, 4);
                least[row] = (uint32_t)(is > 0 && rest != 1);
                most[row] = (uint32_t)(is > 0 || rest == 2);
                row += k + 1 < way; /* a row without an LR, or the row itself */
            }
            update += way;
            if (odd == 1 && draws_pick(&draws, 3) == 0) seen += 1;
            if (odd == 2 && draws_pick(&draws, 3) == 0 && seen > 0) seen -= 1;
            if (seen > update - (own ? 1 : 0)) seen = update - (own ? 1 : 0);
            points[i] = (struct series_point){
                .update = update,
                .row = row++,
                .value = contract_applied(&fits[0].plan, update + !own - seen),
                .quantum = coarse == 1   ? 3e-5
                           : coarse == 2 ? 5e-5
                                         : 0.0};
            points[i].part = first_part + (uint32_t)(i >= parts);
            if (parts == i + 100) points[i].update = points[i - 1].update;
        }
        printed.count = count;
        const int is = refuted_by_all(&fits[0], count, 1e-3, own, &mine);
        if (fit_counts_refute(&fits[0], &known, &printed, 1e-3, &theirs) != is)
            fail_msg("case %u: refuted: %d", number, is);
        whole += !is;
        refuted += is != 0;
        if (!is) continue;
        if (mine.point != theirs.point || mine.skipped != theirs.skipped ||
            mine.expected != theirs.expected)
            fail_msg("case %u: point %zu, skipped %ju, expected %g", number, theirs.point,
                     (uintmax_t)theirs.skipped, theirs.expected);
    }
    assert_true(refuted > 500 && whole > 1000);
}

/* ---- rows that are held ---- */

#define LOW 5e-4  /* at which the rows stand that are held from below */
#define HIGH 8e-4 /* and from above */
enum { TOP = 26 };

static size_t searches, answers; /* how many there were; a bit for each that finds the fits */
static uint64_t asked[4];        /* a bit for each row that a search got */

/* A schedule that rises to its peak, and falls as fast. */
double given_logged(const struct fit *fit, size_t point, uint64_t update) {
    assert_int_equal(point, 0);
    return fit->lr - 3e-5 * fabs((double)update - (double)TOP);
}

enum status given_series(const struct series *s, const struct fit_known *k, struct arena *a,
                         struct fit_set *set) {
    (void)a;
    assert_int_equal(k->plain, 1);
    assert_int_equal(k->run_steps, 77); /* all else as it was */
    assert_true(searches < COUNT_OF(asked));
    asked[searches] = 0;
    for (size_t i = 0; i < s->count; i++) {
        assert_true(s->points[i].value == points[s->points[i].row].value);
        asked[searches] |= UINT64_C(1) << s->points[i].row;
    }
    *set = (struct fit_set){.series = s, .fits = fits};
    set->count = (answers >> searches++ & 1u) != 0 ? 2 : 0;
    return STATUS_OK;
}

static void corroborate_free_rows(void **state) {
    (void)state;
    static const double level = 0x1p-11;
    size_t counted = 0;
    for (uint32_t number = 0; number < 8 * CASES; number++) {
        struct draws draws = {.key = UINT64_C(0xf4ee), .number = number};
        int stand[ROWS] = {0};
        open_scene();
        printed.count = 14 + draws_pick(&draws, ROWS - 13);
        const size_t stretches = 1 + draws_pick(&draws, 2);
        size_t free_count = printed.count;
        for (size_t s = 0; s < stretches; s++) {
            const uint32_t place = draws_pick(&draws, 3);
            const size_t length = 1 + draws_pick(&draws, 7);
            const size_t first = place == 0   ? 0
                                 : place == 1 ? printed.count - length
                                              : draws_pick(&draws, (uint32_t)printed.count);
            for (size_t i = first; i < first + length && i < printed.count; i++)
                stand[i] = 1;
        }
        for (size_t i = 0; i < printed.count; i++) {
            const double off = draws_pick(&draws, 2) == 0 ? 0x1p-51 : -0x1p-51;
            points[i].value = stand[i] ? level * (1.0 + off) : 1e-4;
            free_count -= stand[i] != 0;
        }
        const uint32_t odd = draws_pick(&draws, 8);
        for (size_t i = 0; i < printed.count; i++)
            points[i].part = odd % 2 + (odd == 0 && i + 1 == printed.count);
        if (odd == 1) points[1].update = points[0].update;
        size_t runs = 0;
        for (size_t i = 0; i < printed.count; i++)
            runs += stand[i] != 0 && (i == 0 || !stand[i - 1]);
        for (int above = 0; above < 2; above++) {
            const int first = stand[0], last = stand[printed.count - 1];
            const int one = above ? runs == 1 && !first && !last : first && runs == (last ? 2 : 1);
            const int enough = printed.count - free_count >= 4 && free_count >= 12;
            const size_t want = odd > 1 && one && enough ? free_count : 0;
            if (free_rows(&printed, level, above) != want)
                fail_msg("case %u: %zu, %s", number, want, above ? "above" : "below");
            counted += want > 0;
        }
    }
    assert_true(counted > 2000);
    const struct series_point near = {.value = level * (1.0 + 0x1p-50)},
                              far = {.value = level * (1.0 + 0x1p-49)};
    assert_true(stands(&near, level));
    assert_false(stands(&far, level));
}

static void validate_prints_held(void **state) {
    (void)state;
    for (size_t row = 0; row < ROWS; row++)
        for (int above = 0; above < 2; above++) {
            open_scene();
            const double level = given_logged(&fits[0], 0, points[9].update);
            for (size_t i = 0; i < ROWS; i++) {
                points[i].value = given_logged(&fits[0], 0, points[i].update);
                if (above ? points[i].value > level : points[i].value < level)
                    points[i].value = level;
            }
            assert_true(prints_held(&fits[0], &printed, level, above));
            assert_int_equal(prints_held(&fits[0], &printed, level, !above), 0);
            points[row].value *= 1.001;
            assert_false(prints_held(&fits[0], &printed, level, above));
        }
}

/* What that schedule prints, held from below, from above, or both. */
static void open_held(int below, int above) {
    open_scene();
    known.run_steps = 77;
    fits[1].lr = fits[0].lr;
    for (size_t i = 0; i < ROWS; i++) {
        points[i].value = given_logged(&fits[0], 0, points[i].update);
        if (below && points[i].value < LOW) points[i].value = LOW;
        if (above && points[i].value > HIGH) points[i].value = HIGH;
    }
    searches = 0;
    answers = 3;
}

/* The rows that stand at a level, as bits. */
static uint64_t standing(double level) {
    uint64_t rows = 0;
    for (size_t i = 0; i < ROWS; i++)
        rows |= points[i].value == level ? UINT64_C(1) << i : 0;
    return rows;
}

static size_t bits_of(uint64_t rows) {
    size_t count = 0;
    for (; rows != 0; rows &= rows - 1)
        count++;
    return count;
}

/* The lowest level is asked first, and the highest one where that is no answer. */
static void validate_levels(void **state) {
    (void)state;
    const uint64_t all = (UINT64_C(1) << ROWS) - 1;
    for (int held = 0; held < 4; held++)
        for (size_t right = 0; right < 4; right++) {
            const int below = held & 1, above = held >> 1;
            struct fit_clamp clamp;
            struct fit_set none = {.series = &printed};
            open_held(below, above);
            answers = right;
            const uint64_t low = standing(LOW), high = standing(HIGH);
            assert_int_equal(bits_of(low) >= 4, below);
            assert_int_equal(bits_of(high) >= 4, above);
            /* The schedule itself is one of neither level, so both at once are no answer. */
            if (held == 3)
                for (size_t i = 0; i < ROWS; i++)
                    if (points[i].value == HIGH) points[i].value = HIGH - 1e-6 * (double)i;
            if (held == 3) points[12].value = points[13].value = HIGH;
            assert_int_equal(fit_find_clamp(&printed, &known, &none, &arena, &clamp), STATUS_OK);
            const int found = held == 1 || held == 2 ? (int)(right & 1u) : 0;
            assert_int_equal(clamp.fit != NULL, found);
            assert_int_equal(searches, held == 0 ? 0 : 1);
            if (held > 0) assert_int_equal(asked[0], all & ~(held == 2 ? high : low));
            if (!found) continue;
            assert_ptr_equal(clamp.fit, &fits[0]);
            assert_true(clamp.level == (below ? LOW : HIGH));
            assert_int_equal(clamp.above, above);
            assert_int_equal(clamp.rows, bits_of(below ? low : high));
        }
    /* Both: each is asked, and the first that prints all rows is taken. */
    struct fit_clamp clamp;
    struct fit_set none = {.series = &printed};
    open_held(1, 1);
    assert_int_equal(fit_find_clamp(&printed, &known, &none, &arena, &clamp), STATUS_OK);
    assert_null(clamp.fit);
    assert_int_equal(searches, 2);
    assert_int_equal(asked[0], all & ~standing(LOW));
    assert_int_equal(asked[1], all & ~standing(HIGH));
    /* Rows that stand at 0 are held by nothing. */
    open_held(1, 0);
    for (size_t i = 0; i < ROWS; i++)
        points[i].value -= LOW;
    assert_int_equal(fit_find_clamp(&printed, &known, &none, &arena, &clamp), STATUS_OK);
    assert_int_equal(searches, 0);
}

/* What is no answer, of the first of two fits, and where nothing is asked. */
static void validate_what_is_held(void **state) {
    (void)state;
    static const char *const strangers[] = {"megatron", NULL};
    struct sched_class feedback;
    for (int how = 0; how < 15; how++) {
        struct fit_clamp clamp;
        struct fit_set set = {.series = &printed};
        open_held(how % 2, 1 - how % 2);
        feedback = *fits[0].schedule;
        feedback.feedback = 1;
        if (how == 1) fits[0].bug = "lag1";
        if (how == 2) fits[0].unsound = 1;
        if (how == 3) fits[0].schedule = &feedback;
        if (how == 4) fits[0].samples = (const struct fit_samples *)(const void *)&known;
        if (how == 5) fits[0].lr *= 1.001; /* which prints other rows */
        if (how == 6) known.possible = strangers;
        if (how == 7) known.possible = strangers, contracts[1].name = "megatron";
        if (how == 8) set.count = 1;
        if (how == 9) printed.count = 15;
        if (how == 10) set.why = FIT_WHY_NOT_FINITE | FIT_WHY_FEW;
        if (how == 11) known.steps_guessed = 1;
        if (how == 12) known.growing = 1;
        if (how == 13) known.samples = (const struct fit_samples *)(const void *)&known;
        if (how == 14) set.why = FIT_WHY_NOTHING;
        assert_int_equal(fit_find_clamp(&printed, &known, &set, &arena, &clamp), STATUS_OK);
        const struct fit *const first = &fits[0], *const second = &fits[1];
        const struct fit *const want = how == 0 || how == 14 ? first
                                       : how < 6 || how == 7 ? second
                                                             : NULL;
        if (clamp.fit != want) fail_msg("case %d", how);
        assert_int_equal(searches, how < 8 || how == 14);
    }
    for (size_t count = 15; count < 18; count++) { /* 4 rows that are held and 12 that are not */
        struct fit_clamp clamp;
        struct fit_set none = {.series = &printed};
        open_held(0, 0);
        printed.count = count;
        for (size_t i = 0; i < count; i++)
            points[i].value = i < 4 ? 2e-4 : given_logged(&fits[0], 0, points[i].update);
        assert_int_equal(fit_find_clamp(&printed, &known, &none, &arena, &clamp), STATUS_OK);
        assert_int_equal(searches, count >= 16);
    }
}

static int close_arena(void **state) {
    (void)state;
    arena_close(&arena);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_recorded),  cmocka_unit_test(validate_fits_left),
        cmocka_unit_test(validate_checks),       cmocka_unit_test(validate_what_may_lag),
        cmocka_unit_test(corroborate_counts),    cmocka_unit_test(corroborate_free_rows),
        cmocka_unit_test(validate_prints_held),  cmocka_unit_test(validate_levels),
        cmocka_unit_test(validate_what_is_held),
    };
    return cmocka_run_group_tests(tests, NULL, close_arena);
}

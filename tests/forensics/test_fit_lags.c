/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * How many updates can have been skipped before each row, against a count of every way: of random
 * columns of a schedule that only falls, and of one that comes back, where lags between the least
 * and the greatest are not admitted; and which updates these were, once more for the parts of
 * random resumed logs. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/macro.h"
/* The schedule is a table of this test. */
#define contract_applied given_applied
#define fit_verify given_verify
#include "forensics/fit_lags.c" /* for the parts, which no other file asks for */
#include "tests/base/helper_draws.h"

enum { ROWS = 5, MANY = 10, TABLE = 40, WIDE = 160, MOST = 9, LOGS = 20000 };

static double table[WIDE];

double given_applied(const struct contract_plan *plan, uint64_t k) {
    (void)plan;
    assert_true(k < WIDE);
    return table[k];
}

static struct series_point points[MANY];
static struct fit_known known;
static struct fit_search search;
static struct fit_window window;
static struct fit_model model;
static struct fit_lags lags;
static struct arena arena;

/* Which parts were verified, with which plan; the part `refused` does not hold. */
static struct fit_window verified_at[3];
static struct contract_plan verified_with[3];
static double errors[3][2]; /* the largest, and the root of their mean square */
static size_t verified, refused;

int given_verify(const struct fit_model *of, const struct fit_window *in, double *max_error,
                 double *rms_error) {
    assert_true(of == &model && verified < 3);
    verified_at[verified] = *in;
    verified_with[verified] = of->plan;
    *max_error = errors[verified][0];
    *rms_error = errors[verified][1];
    return verified++ != refused;
}

static void open_lags(size_t rows, const char *contract) {
    arena_close(&arena);
    fit_known_init(&known);
    search = (struct fit_search){.known = &known, .budget = 1000000};
    window = (struct fit_window){.points = points, .count = rows, .scale = 1.0};
    model = (struct fit_model){.contract = contract_find(contract)};
    assert_non_null(model.contract);
    assert_int_equal(fit_lags_open(&search, &window, &arena, &lags), STATUS_OK);
    lags.model = &model;
    lags.most = MOST;
}

/* Which lags of each row belong to some way from the first row to the last: a lag never falls, it
 * grows by no more than the updates between two rows, and the row's LR is that of its counter. */
struct ways {
    int reached[ROWS][MOST + 1];
};

static int is_printed(size_t i, uint64_t lag, uint64_t own) {
    const uint64_t seen = points[i].update - own; /* updates that the row's LR has seen */
    return lag <= seen && table[seen + 1 - lag] == points[i].value;
}

/* Ways that end with `last`, or with any lag where it is negative. */
static struct ways all_ways(size_t rows, uint64_t own, int64_t last) {
    struct ways to, from;
    memset(&to, 0, sizeof to);
    memset(&from, 0, sizeof from);
    for (size_t i = 0; i < rows; i++)
        for (uint64_t lag = 0; lag <= MOST; lag++) {
            if (!is_printed(i, lag, own)) continue;
            if (i == 0) to.reached[i][lag] = 1;
            for (uint64_t had = 0; had <= lag && i > 0; had++)
                if (to.reached[i - 1][had] && lag - had <= points[i].update - points[i - 1].update)
                    to.reached[i][lag] = 1;
        }
    for (size_t i = rows; i-- > 0;)
        for (uint64_t lag = 0; lag <= MOST; lag++) {
            if (!to.reached[i][lag]) continue;
            if (i + 1 == rows) from.reached[i][lag] = last < 0 || (uint64_t)last == lag;
            for (uint64_t next = lag; next <= MOST && i + 1 < rows; next++)
                if (from.reached[i + 1][next] &&
                    next - lag <= points[i + 1].update - points[i].update)
                    from.reached[i][lag] = 1;
        }
    return from;
}

static int64_t least(const struct ways *of, size_t i) {
    for (int64_t lag = 0; lag <= MOST; lag++)
        if (of->reached[i][lag]) return lag;
    return -1;
}

static int64_t greatest(const struct ways *of, size_t i) {
    for (int64_t lag = MOST; lag >= 0; lag--)
        if (of->reached[i][lag]) return lag;
    return -1;
}

/* Rows at random updates that print the table at random counters, most of them of some way. */
static size_t make_rows(struct draws *draws, int falls) {
    const size_t rows = 1 + draws_pick(draws, ROWS);
    const uint32_t values = 2 + draws_pick(draws, 5);
    double level = 1000.0;
    for (size_t k = 0; k < TABLE; k++) {
        level -= draws_pick(draws, 2);
        table[k] = falls ? level : 1.0 + draws_pick(draws, values);
    }
    uint64_t update = 0, lag = 0;
    for (size_t i = 0; i < rows; i++) {
        const uint64_t step = 1 + draws_pick(draws, 6);
        update += step;
        lag += draws_pick(draws, (uint32_t)(step < 3 ? step + 1 : 3));
        if (lag >= update) lag = update - 1;
        points[i] = (struct series_point){.update = update, .row = i, .value = table[update - lag]};
        if (draws_pick(draws, 20) == 0) points[i].value = 7000.0; /* nothing prints it */
    }
    return rows;
}

static void corroborate_lags(int falls) {
    static const char *const contracts[] = {"hf", "torchtune"};
    uint32_t found = 0, none = 0;
    for (uint32_t number = 0; number < LOGS; number++) {
        struct draws draws = {.key = UINT64_C(0x1a65), .number = 2 * number + (uint32_t)falls};
        const size_t rows = make_rows(&draws, falls);
        open_lags(rows, contracts[draws_pick(&draws, 2)]);
        const uint64_t own = model.contract->logged == CONTRACT_LOGGED_NEXT ? 0 : 1;
        model.needs_total = falls ? 0 : 1;
        model.unit = 1.0;
        model.scale = 1.0;
        model.now.total = 0.5; /* every row lies behind it */
        const struct ways any = all_ways(rows, own, -1);
        const int64_t last = least(&any, rows - 1);
        const int follows = fit_lags_follow(&lags);
        assert_int_equal(follows, last >= 0);
        none += !follows;
        if (!follows) continue;
        found++;
        const struct ways fewest = all_ways(rows, own, last);
        for (size_t i = 0; i < rows; i++) {
            assert_int_equal(lags.seen[i].low, least(&fewest, i));
            assert_int_equal(lags.seen[i].high, greatest(&fewest, i));
        }
    }
    assert_true(found > LOGS / 4 && none > LOGS / 20);
}

static void corroborate_lags_of_what_falls(void **state) {
    (void)state;
    corroborate_lags(1);
}

static void corroborate_lags_of_what_comes_back(void **state) {
    (void)state;
    corroborate_lags(0);
}

/* A schedule may turn where it needs a total, and its last row lies behind it. */
static void validate_what_comes_back(void **state) {
    (void)state;
    for (size_t i = 0; i < ROWS; i++)
        points[i] = (struct series_point){.update = 10 * (i + 1), .row = i, .value = 1.0};
    for (size_t rows = 1; rows <= ROWS; rows++)
        for (int needs = 0; needs < 2; needs++)
            for (uint64_t total = 10 * rows - 2; total < 10 * rows + 3; total++) {
                open_lags(rows, "hf");
                model.needs_total = needs != 0;
                model.unit = model.scale = 1.0;
                model.now.total = (double)total;
                assert_int_equal(comes_back(&lags), needs && 10 * rows > total);
                model.unit = 2.0; /* a counter of two per update, a total of twice as many */
                model.scale = 2.0;
                assert_int_equal(comes_back(&lags), needs && 10 * rows > total);
                model.scale = 1.0;
                model.now.total = 2.0 * (double)total;
                assert_int_equal(comes_back(&lags), needs && 10 * rows > total);
                model.now.total = 2.0 * (double)(10 * rows) * (1.0 - 0x1p-21);
                assert_int_equal(comes_back(&lags), 0); /* but for rounding it is the end */
            }
    for (uint64_t more = 0; more < 4; more++) { /* which is a millionth, and not a bit more */
        points[0].update = (UINT64_C(1) << 20) + more;
        open_lags(1, "hf");
        model.needs_total = 1;
        model.unit = model.scale = 1.0;
        model.now.total = 0x1p20;
        assert_int_equal(comes_back(&lags), more > 1);
    }
}

/* Two rows of neighbouring updates, each of which admits every third lag: the first 0, 3, 6 .., and
 * the second 2, 5, 8 .. and `also`. Lags of a way are alike there, or the second has one more. */
static void open_stairs(size_t rows, uint32_t steps, uint32_t also) {
    const size_t first = 3 * (size_t)steps + 2;
    for (size_t k = 0; k < WIDE; k++)
        table[k] = k > first ? 5.0 : (first - k) % 3 == 0 ? 1.0 : (first - k) % 3 == 1 ? 2.0 : 4.0;
    table[first + 1 - also] = 2.0;
    table[first + 4] = 3.0; /* which the third row alone shows, behind 3 `steps` skipped updates */
    points[0] = (struct series_point){.update = first, .row = 0, .value = 1.0};
    points[1] = (struct series_point){.update = first + 1, .row = 1, .value = 2.0};
    points[2] =
        (struct series_point){.update = first + 4 + 3 * (size_t)steps, .row = 2, .value = 3.0};
    open_lags(rows, "hf");
    lags.most = 3 * steps;
    lags.seen[0] = lags.seen[1] = (struct fit_lag){0, 3 * steps};
}

/* Each round takes the lowest lags of both rows one step up, and a quiet one ends it; those of 16
 * rounds are found, and what takes longer is given up. The same of the highest, one step down. */
static void validate_rounds(void **state) {
    (void)state;
    size_t settled = 0, given_up = 0;
    for (uint32_t steps = 1; steps < 20; steps++) {
        open_stairs(2, steps, 3 * steps); /* as many rounds, one for the end, and a quiet one */
        const int up = settle(&lags);
        assert_int_equal(up, steps + 2 <= 16);
        for (size_t i = 0; i < 2 && up; i++)
            assert_true(lags.seen[i].low == 3 * steps && lags.seen[i].high == 3 * steps);
        open_stairs(3, steps, 0); /* as many rounds, and a quiet one */
        lags.seen[1].high = 3 * steps - 1;
        lags.seen[2] = (struct fit_lag){3 * steps, 3 * steps};
        const int down = settle(&lags);
        assert_int_equal(down, steps + 1 <= 16);
        for (size_t i = 0; i < 2 && down; i++)
            assert_true(lags.seen[i].low == 0 && lags.seen[i].high == 0);
        settled += (size_t)(up + down);
        given_up += (size_t)(!up + !down);
    }
    assert_int_equal(settled, 14 + 15);
    assert_int_equal(given_up, 5 + 4);
}

/* What a row may print with a peak that is off by a share: 1/16 of the value, exactly. */
static void validate_blur(void **state) {
    (void)state;
    static const struct {
        double value;
        int admitted;
    } cases[] = {{1.0, 1}, {1.0625, 1}, {0.9375, 1}, {1.0625 + 0x1p-40, 0}, {0.9375 - 0x1p-40, 0},
                 {-1.0, 0}};
    points[0] = (struct series_point){.update = 5, .row = 0};
    open_lags(1, "hf");
    for (size_t k = 0; k < TABLE; k++)
        table[k] = 1.0;
    lags.blur = 0.0625;
    const double half = fit_half(&points[0], window.scale);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        points[0].value = cases[i].value + (cases[i].value > 1.0 ? half : -half);
        if (cases[i].value == 1.0) points[0].value = 1.0;
        assert_int_equal(admits(&lags, &points[0], 0), cases[i].admitted);
    }
}

/* ---- what the log says of skipped updates ---- */

enum { LINES = 12 };

/* A sum that stops at the largest number: it stands for "any number". */
static uint32_t capped(uint64_t sum) {
    return sum < UINT32_MAX ? (uint32_t)sum : UINT32_MAX;
}

static void corroborate_what_is_shown(void **state) {
    (void)state;
    for (uint32_t number = 0; number < LOGS; number++) {
        struct draws draws = {.key = UINT64_C(0x5405), .number = number};
        uint32_t less[LINES], more[LINES], room[LINES], fell[LINES], part[LINES];
        const uint32_t how = draws_pick(&draws, 8);
        size_t rows = 0;
        for (uint32_t line = 0; line < LINES; line++) {
            less[line] = draws_pick(&draws, 3);
            more[line] = less[line] + draws_pick(&draws, 3);
            room[line] = draws_pick(&draws, 6);
            if (draws_pick(&draws, 8) == 0) room[line] = UINT32_MAX;
            if (draws_pick(&draws, 8) == 0) more[line] = UINT32_MAX;
            fell[line] = draws_pick(&draws, 2);
            part[line] = line / (3 + number % 9);
            if (rows < ROWS && draws_pick(&draws, 2) == 0)
                points[rows++] = (struct series_point){
                    .update = line + 1, .row = line, .part = part[line], .value = 1.0};
        }
        if (rows == 0) continue;
        open_lags(rows, "hf");
        known.skips = (struct fit_evidence){.part = part};
        if ((how & 1u) != 0) known.skips.least = less, known.skips.most = more;
        if ((how & 2u) != 0) known.skips.room = room;
        if ((how & 4u) != 0) known.skips.fell = fell;
        for (size_t i = 0; i < rows; i++) {
            uint64_t low = 0, high = 0, wide = 0, falls = 0;
            for (size_t line = 0; line < LINES; line++) {
                if (line > points[i].row || part[line] != points[i].part) continue;
                if (i > 0 && line <= points[i - 1].row) continue;
                low += (how & 1u) != 0 ? less[line] : 0;
                high += (how & 1u) != 0 ? more[line] : UINT32_MAX;
                wide += (how & 2u) != 0 ? room[line] : UINT32_MAX;
                falls += (how & 4u) != 0 ? fell[line] : 0;
            }
            const struct fit_lag shown = shown_since(&lags, i);
            const int silent = (how & 3u) == 0;
            assert_int_equal(shown.low, silent ? 0 : low);
            assert_int_equal(shown.high, silent ? UINT32_MAX : capped(high < wide ? high : wide));
            assert_int_equal(falls_since(&lags, i), falls);
        }
    }
}

/* ---- parts of a resumed log ---- */

/* Where a part begins, and behind which row it went on: found once more by looking at each pair. */
static void corroborate_parts(void **state) {
    (void)state;
    for (uint32_t number = 0; number < LOGS; number++) {
        struct draws draws = {.key = UINT64_C(0x9a47), .number = number};
        const size_t rows = 1 + draws_pick(&draws, ROWS);
        uint32_t part = 0;
        for (size_t i = 0; i < rows; i++) {
            part += draws_pick(&draws, 4) == 0;
            points[i] = (struct series_point){
                .update = 1 + draws_pick(&draws, 9), .row = i, .part = part, .value = 1.0};
        }
        open_lags(rows, "hf");
        size_t p = 0;
        for (size_t i = 0; i < rows; i++) {
            if (i > 0 && points[i].part == points[i - 1].part &&
                points[i].update > points[i - 1].update) {
                assert_true(p > 0 && lags.parts[p - 1].end > i);
                continue;
            }
            assert_true(p < lags.part_count);
            assert_int_equal(lags.parts[p].first, i);
            if (p > 0) assert_int_equal(lags.parts[p - 1].end, i);
            size_t before = FIT_NO_POINT;
            for (size_t j = 0; j < i; j++)
                if (points[j].update < points[i].update) before = j;
            assert_true(lags.parts[p].before == before);
            assert_int_equal(since(&lags, &lags.parts[p]),
                             before == FIT_NO_POINT ? 0 : points[before].update);
            p++;
        }
        assert_int_equal(lags.part_count, p);
        assert_int_equal(lags.parts[p - 1].end, rows);
        uint32_t last = 0; /* any part whose last row has seen a skipped update */
        for (size_t k = 0; k < rows; k++)
            lags.seen[k].low = draws_pick(&draws, 3) == 0;
        for (size_t k = 0; k < p; k++)
            last += lags.seen[lags.parts[k].end - 1].low;
        assert_int_equal(fit_lags_none(&lags), last == 0);
    }
}

/* With how many skipped updates a second part goes on: those of the row that it goes on from and of
 * that row's own update, none, or another number of at most half of the updates up to there. A log
 * of the next LR has seen one update more. */
static void validate_how_a_part_begins(void **state) {
    (void)state;
    static const char *const contracts[] = {"hf", "torchtune"}; /* the LR that was used; the next */
    for (size_t k = 0; k < TABLE; k++)
        table[k] = 1000.0 - (double)k;
    for (uint64_t next = 0; next < 2; next++)
        for (uint64_t lag = 0; lag < MOST; lag++) {
            const int32_t begins = lag == 3 || lag == 4 ? FIT_PART_GOES_ON
                                   : lag <= next        ? FIT_PART_COUNTS_ANEW
                                   : lag <= 5 + next    ? FIT_PART_OTHER
                                                        : -1;
            /* Rows of update 10 with lag 3 and, behind a resume from there, 11. */
            points[0] = (struct series_point){.update = 10, .row = 0, .value = table[7 + next]};
            points[1] = (struct series_point){
                .update = 11, .row = 1, .part = 1, .value = table[11 + next - lag]};
            open_lags(2, contracts[next]);
            assert_int_equal(model.contract->logged,
                             next ? CONTRACT_LOGGED_NEXT : CONTRACT_LOGGED_USED);
            assert_int_equal(lags.part_count, 2);
            const int follows = fit_lags_follow(&lags);
            assert_int_equal(follows, begins >= 0);
            if (!follows) continue;
            assert_int_equal(lags.parts[1].begins, begins);
            assert_int_equal(lags.seen[0].low, 3);
            assert_int_equal(lags.seen[1].low, lag);
            assert_int_equal(lags.seen[1].high, lag);
        }
}

/* The lags that one part may have by what the log says as well: of each row the least and the
 * greatest of all ways, with the row's own update and without. Of that one, which its LR has not
 * seen where the LR that was used is logged, the log speaks at this row. */
static void corroborate_lags_with_evidence(void **state) {
    (void)state;
    size_t found = 0, none = 0, wider = 0;
    for (uint32_t number = 0; number < LOGS; number++) {
        struct draws draws = {.key = UINT64_C(0xe71de), .number = number};
        uint32_t less[ROWS], more[ROWS], room[ROWS], fell[ROWS], part[ROWS] = {0};
        const size_t rows = 1 + draws_pick(&draws, ROWS);
        const uint32_t how = draws_pick(&draws, 8);
        double level = 1000.0;
        for (size_t k = 0; k < TABLE; k++, level -= draws_pick(&draws, 3) == 0)
            table[k] = level;
        uint64_t update = 0, lag = 0;
        const int next = draws_pick(&draws, 2) == 0;
        const uint64_t own = next ? 0 : 1;
        for (size_t i = 0; i < rows; i++) {
            const uint32_t gap = 1 + draws_pick(&draws, 4);
            const uint32_t skipped = draws_pick(&draws, gap < 3 ? gap + 1 : 3);
            update += gap;
            /* The row has seen all of them, or all but its own update. */
            uint64_t seen = lag + skipped;
            if (!next && skipped > 0 && (skipped == gap || draws_pick(&draws, 2) == 0)) seen--;
            lag += skipped;
            points[i] = (struct series_point){
                .update = update, .row = i, .value = table[update - own + 1 - seen]};
            if (draws_pick(&draws, 30) == 0) points[i].value = 7000.0;
            less[i] = draws_pick(&draws, 4) == 0 ? draws_pick(&draws, 3) : skipped;
            more[i] = less[i] + (draws_pick(&draws, 3) == 0 ? draws_pick(&draws, 3) : 0);
            room[i] = draws_pick(&draws, 2) == 0 ? gap : skipped;
            fell[i] = draws_pick(&draws, 12) == 0 ? 1 : skipped > 0;
        }
        open_lags(rows, next ? "torchtune" : "hf");
        lags.most = 1 + draws_pick(&draws, MOST);
        known.skips = (struct fit_evidence){.part = part};
        if ((how & 1u) != 0) known.skips.least = less, known.skips.most = more;
        if ((how & 2u) != 0) known.skips.room = room;
        if ((how & 4u) != 0) known.skips.fell = fell;
        int had[MOST + 2] = {1}, all = 1;
        int64_t ends[ROWS][4];
        uint64_t before = 0, falls = 0;
        for (size_t i = 0; i < rows && all; i++) {
            int has[MOST + 2] = {0};
            const uint64_t low = (how & 1u) != 0 ? less[i] : 0;
            uint64_t high = (how & 1u) != 0 ? more[i] : UINT32_MAX;
            if ((how & 2u) != 0 && room[i] < high) high = room[i];
            falls += (how & 4u) != 0 ? fell[i] : 0;
            all = 0;
            for (int e = 0; e < 4; e++)
                ends[i][e] = e % 2 == 0 ? MOST + 2 : -1;
            for (uint64_t from = 0; from <= lags.most; from++)
                for (uint64_t seen = from; had[from] && seen <= lags.most; seen++)
                    for (uint64_t to = seen; to <= seen + own && to <= lags.most; to++) {
                        if (seen - from > points[i].update - before - own) continue;
                        if (to - from < low || to - from > high || to < falls) continue;
                        if (!is_printed(i, seen, own)) continue;
                        has[to] = all = 1;
                        if ((int64_t)seen < ends[i][0]) ends[i][0] = (int64_t)seen;
                        if ((int64_t)seen > ends[i][1]) ends[i][1] = (int64_t)seen;
                        if ((int64_t)to < ends[i][2]) ends[i][2] = (int64_t)to;
                        if ((int64_t)to > ends[i][3]) ends[i][3] = (int64_t)to;
                    }
            memcpy(had, has, sizeof had);
            before = points[i].update;
        }
        const struct fit_lag start = {0, 0};
        const int follows = forward(&lags, &lags.parts[0], start);
        if (follows < all || (how == 0 && follows > all))
            fail_msg("log %u: %d for %d", number, follows, all);
        wider += follows > all;
        none += !all;
        if (!all) continue;
        found++;
        int exact = 1;
        for (size_t i = 0; i < rows; i++) {
            const struct fit_lag *const seen = &lags.seen[i], *const whole = &lags.all[i];
            exact &= seen->low == ends[i][0] && seen->high == ends[i][1] &&
                     whole->low == ends[i][2] && whole->high == ends[i][3];
            if (seen->low > ends[i][0] || seen->high < ends[i][1] || whole->low > ends[i][2] ||
                whole->high < ends[i][3] || (how == 0 && !exact))
                fail_msg("log %u, row %zu: %u to %u of %u to %u, for %d to %d of %d to %d", number,
                         i, seen->low, seen->high, whole->low, whole->high, (int)ends[i][0],
                         (int)ends[i][1], (int)ends[i][2], (int)ends[i][3]);
        }
        wider += !exact;
    }
    assert_true(found > LOGS / 4 && none > LOGS / 20);
    /* Beside evidence an interval may say too little, as which lag goes with which is not in it,
     * and never too much: of 20000 logs it does in 442. */
    assert_true(wider <= 450);
}

/* What a row wants of the one before it: no more than itself has, and no fewer than it has less the
 * updates between them. */
static void validate_what_is_handed_back(void **state) {
    (void)state;
    for (uint64_t gap = 1; gap < 5; gap++)
        for (uint32_t low = 0; low < 7; low++)
            for (uint32_t high = low; high < 8; high++)
                for (uint32_t wants = 0; wants < 5; wants++)
                    for (uint32_t most = wants; most < 9; most++) {
                        points[0] = (struct series_point){.update = 10, .row = 0};
                        points[1] = (struct series_point){.update = 12, .row = 1};
                        points[2] = (struct series_point){.update = 10 + gap, .row = 2, .part = 1};
                        open_lags(3, "hf");
                        lags.seen[2] = (struct fit_lag){low, high};
                        lags.want[0] = lags.want[1] = (struct fit_lag){wants, most};
                        hand_back(&lags, 2, 0);
                        const int64_t least = (int64_t)low - (int64_t)gap;
                        const uint32_t from = least > wants ? (uint32_t)least : wants;
                        assert_int_equal(lags.want[0].low, from);
                        assert_int_equal(lags.want[0].high, high < most ? high : most);
                        assert_true(lags.want[1].low == wants && lags.want[1].high == most);
                    }
}

/* ---- from lags to skipped updates ---- */

/* Lags of each row that some training may have: they never fall along the way of a part, and grow
 * by no more than the updates that the rows have seen since. */
static void draw_lags(struct draws *draws, size_t rows, uint64_t own) {
    for (size_t p = 0; p < lags.part_count; p++) {
        struct fit_lag_part *const part = &lags.parts[p];
        const uint64_t start = since(&lags, part);
        uint64_t seen = 0, low = 0;
        part->begins = FIT_PART_GOES_ON;
        if (part->before != FIT_NO_POINT) {
            part->begins = (int32_t)draws_pick(draws, 3);
            seen = part->begins == FIT_PART_GOES_ON ? start - own : start;
            if (part->begins == FIT_PART_GOES_ON) low = lags.seen[part->before].low;
            if (part->begins == FIT_PART_OTHER) low = draws_pick(draws, (uint32_t)start + 1);
        }
        for (size_t i = part->first; i < part->end; i++) {
            const uint64_t now = points[i].update - own, room = now > seen ? now - seen : 0;
            const int fixed = part->begins == FIT_PART_OTHER && i == part->first;
            if (!fixed) low += draws_pick(draws, (uint32_t)(room < 3 ? room : 3) + 1);
            lags.seen[i] = (struct fit_lag){(uint32_t)low, (uint32_t)low + draws_pick(draws, 3)};
            seen = now > seen ? now : seen;
        }
    }
    assert_true(rows > 0);
}

static size_t part_at(size_t row) {
    size_t p = lags.part_count - 1;
    while (lags.parts[p].first > row)
        p--;
    return p;
}

/* Lists the rows on the way to part p and through it, from where its counter last began; returns
 * how many there are. */
static size_t way_of(size_t p, size_t *rows) {
    const struct fit_lag_part *const part = &lags.parts[p];
    size_t count = 0;
    if (part->begins == FIT_PART_GOES_ON && part->before != FIT_NO_POINT) {
        size_t others[MANY];
        const size_t all = way_of(part_at(part->before), others);
        for (size_t i = 0; i < all && others[i] <= part->before; i++)
            rows[count++] = others[i];
    }
    for (size_t i = part->first; i < part->end; i++)
        rows[count++] = i;
    return count;
}

static void corroborate_lists(void **state) {
    (void)state;
    size_t ranges_seen = 0, shared = 0, in_front = 0, far = 0, followed = 0, open = 0;
    for (uint32_t number = 0; number < LOGS; number++) {
        struct draws draws = {.key = UINT64_C(0x11575), .number = number};
        const size_t rows = 1 + draws_pick(&draws, MANY);
        const uint32_t odd = draws_pick(&draws, 6);
        uint64_t update = 0, lists[MANY][4 * MANY];
        uint32_t part = 0;
        for (size_t i = 0; i < rows; i++) {
            update += 1 + draws_pick(&draws, 4);
            if (i > 0 && draws_pick(&draws, 4) < (odd == 0 ? 0 : 1)) {
                part++;
                const uint64_t back = draws_pick(&draws, 6);
                update = back < update ? update - back : 1;
            }
            points[i] = (struct series_point){.update = update, .row = i, .part = part};
        }
        open_lags(rows, draws_pick(&draws, 2) == 0 ? "hf" : "torchtune");
        search.arena = &arena;
        const uint64_t own = model.contract->logged == CONTRACT_LOGGED_NEXT ? 0 : 1;
        if (number % 2 == 0) {
            draw_lags(&draws, rows, own);
        } else { /* those of a column that stands for some updates, and then falls */
            double level = 1000.0;
            uint64_t lag = 0;
            for (size_t k = 0; k < TABLE; k++, level -= draws_pick(&draws, 4) == 0)
                table[k] = level;
            for (size_t i = 0; i < rows; i++) {
                if (i > 0 && points[i].part != points[i - 1].part) lag = draws_pick(&draws, 3);
                lag += draws_pick(&draws, 3) == 0;
                if (lag >= points[i].update) lag = points[i].update - 1;
                points[i].value = table[points[i].update - lag];
            }
            if (points[rows - 1].update >= TABLE - 1 || !fit_lags_follow(&lags)) continue;
            followed++;
            /* No row has more than the one behind it on a way, nor fewer by more than updates lie
             * between the two, also where the way goes on behind a resume. */
            for (size_t p = 0; p < lags.part_count; p++)
                for (size_t i = lags.parts[p].first; i < lags.parts[p].end; i++) {
                    const int begins = i == lags.parts[p].first;
                    if (begins && (lags.parts[p].begins != FIT_PART_GOES_ON ||
                                   lags.parts[p].before == FIT_NO_POINT))
                        continue;
                    const size_t last = begins ? lags.parts[p].before : i - 1;
                    const uint64_t room = points[i].update - points[last].update;
                    assert_true(lags.seen[last].high <= lags.seen[i].high);
                    assert_true(lags.seen[last].low + room >= lags.seen[i].low);
                }
            /* And where nothing goes on from a last row, it has as few as there can be. */
            for (size_t p = 0; p < lags.part_count; p++) {
                const size_t end = lags.parts[p].end - 1;
                int goes_on = 0;
                for (size_t q = 0; q < lags.part_count; q++)
                    goes_on |=
                        lags.parts[q].begins == FIT_PART_GOES_ON && lags.parts[q].before == end;
                assert_true(goes_on || lags.seen[end].high == lags.seen[end].low);
                open += lags.seen[end].high > lags.seen[end].low;
            }
        }
        struct fit_skip wanted[8 * MANY];
        size_t ranges = 0, sizes[MANY];
        for (size_t p = 0; p < lags.part_count; p++) {
            const struct fit_lag_part *const me = &lags.parts[p];
            const int goes_on = me->begins == FIT_PART_GOES_ON && me->before != FIT_NO_POINT;
            const uint64_t start = since(&lags, me);
            size_t way[MANY], base = 0;
            const size_t length = way_of(p, way);
            if (goes_on) {
                base = lags.seen[me->before].low;
                memcpy(lists[p], lists[part_at(me->before)], sizeof lists[p]);
            } else if (me->begins == FIT_PART_OTHER) { /* the last updates in front of it */
                base = lags.seen[me->first].low;
                for (size_t s = 0; s < base; s++)
                    lists[p][s] = start + 1 + s - base;
            }
            const size_t total = lags.seen[me->end - 1].low;
            for (size_t s = base + 1; s <= total; s++) {
                size_t by = length;
                for (size_t n = length; n-- > 0 && way[n] >= me->first;)
                    if (lags.seen[way[n]].low >= s) by = n;
                const uint64_t last = points[way[by]].update - own;
                /* Behind the last row in front of it that has not seen it, or where the counter
                 * began. */
                const struct fit_lag_part *const root = &lags.parts[part_at(way[0])];
                uint64_t first = root->begins == FIT_PART_GOES_ON ? 1 : since(&lags, root) + 1;
                for (size_t n = 0; n < by; n++)
                    if (lags.seen[way[n]].high < s) first = points[way[n]].update - own + 1;
                lists[p][s - 1] = last;
                size_t in = p;
                if (goes_on && first <= start) {
                    const size_t from = part_at(me->before);
                    if (lags.seen[lags.parts[from].end - 1].low >= s) {
                        shared++;
                        continue; /* the part that it goes on from has counted it */
                    }
                    if (last <= start) in = from;
                    in_front += in == from;
                }
                far += root != me && root->begins != FIT_PART_GOES_ON &&
                       first == since(&lags, root) + 1;
                struct fit_skip *const before = &wanted[ranges - (ranges > 0)];
                if (ranges > 0 && before->first == first && before->last == last &&
                    before->part == in)
                    before->count++;
                else
                    wanted[ranges++] = (struct fit_skip){first, last, 1, in};
            }
            for (size_t s = total > base ? total : base; s > 1; s--)
                if (lists[p][s - 2] >= lists[p][s - 1]) lists[p][s - 2] = lists[p][s - 1] - 1;
            sizes[p] = total > base ? total : base;
        }
        struct fit_found found = {.skip_count = 77};
        assert_int_equal(fit_lags_list(&lags, &found), STATUS_OK);
        if (found.skip_count != ranges)
            fail_msg("log %u: %zu ranges for %zu", number, found.skip_count, ranges);
        for (size_t n = 0; n < ranges; n++)
            if (found.skips[n].first != wanted[n].first || found.skips[n].last != wanted[n].last ||
                found.skips[n].count != wanted[n].count || found.skips[n].part != wanted[n].part)
                fail_msg("log %u: range %zu: %ju to %ju, part %zu, for %ju to %ju, part %zu",
                         number, n, (uintmax_t)found.skips[n].first, (uintmax_t)found.skips[n].last,
                         found.skips[n].part, (uintmax_t)wanted[n].first, (uintmax_t)wanted[n].last,
                         wanted[n].part);
        const size_t end = lags.part_count - 1;
        assert_int_equal(found.skipped_count, sizes[end]);
        assert_memory_equal(found.skipped, lists[end], sizes[end] * sizeof *found.skipped);
        assert_int_equal(found.part_count, end > 0 ? end + 1 : 0);
        for (size_t p = 0; p < found.part_count; p++) {
            assert_int_equal(found.parts[p].point, lags.parts[p].first);
            assert_int_equal(found.parts[p].begins, lags.parts[p].begins);
            assert_int_equal(found.parts[p].lag, lags.seen[lags.parts[p].first].low);
            assert_int_equal(found.parts[p].skipped_count, sizes[p]);
            assert_memory_equal(found.parts[p].skipped, lists[p], sizes[p] * sizeof *found.skipped);
        }
        ranges_seen += ranges;
    }
    assert_true(ranges_seen > LOGS && shared > 500 && in_front > 100 && far > 100);
    assert_true(followed > LOGS / 4 && open > 20);
}

/* Each part is verified with its own skipped updates; the errors are those of all rows. */
static void corroborate_verified_parts(void **state) {
    (void)state;
    static const uint64_t skipped[3][2] = {{1, 2}, {3, 4}, {5, 6}};
    for (uint32_t number = 0; number < 2000; number++) {
        struct draws draws = {.key = UINT64_C(0x7e41f), .number = number};
        struct fit_part parts[3];
        struct fit_found found = {.skipped = skipped[2], .skipped_count = 2, .parts = parts};
        open_lags(MANY, "hf");
        found.part_count = draws_pick(&draws, 4);
        size_t at = 0;
        for (size_t p = 0; p < found.part_count; p++) {
            parts[p] = (struct fit_part){
                .point = at, .skipped = skipped[p], .skipped_count = 1 + draws_pick(&draws, 2)};
            at += 1 + draws_pick(&draws, 3);
        }
        const size_t count = found.part_count > 0 ? found.part_count : 1;
        verified = 0;
        refused = draws_pick(&draws, 5);
        long double squares = 0.0L;
        double largest = 0.0;
        for (size_t p = 0; p < count; p++) {
            errors[p][0] = (double)(1 + draws_pick(&draws, 9)) / 16.0;
            errors[p][1] = (double)(1 + draws_pick(&draws, 9)) / 32.0;
        }
        const size_t ends = refused < count ? refused : count;
        for (size_t p = 0; p < ends; p++) {
            const size_t first = found.part_count > 0 ? parts[p].point : 0;
            const size_t end = p + 1 < found.part_count ? parts[p + 1].point : MANY;
            squares +=
                (long double)errors[p][1] * (long double)errors[p][1] * (long double)(end - first);
            largest = errors[p][0] > largest ? errors[p][0] : largest;
        }
        assert_int_equal(fit_lags_verify(&model, &window, &found), refused >= count);
        assert_int_equal(verified, refused < count ? refused + 1 : count);
        for (size_t p = 0; p < verified; p++) {
            const int whole = found.part_count == 0;
            const size_t first = whole ? 0 : parts[p].point;
            const size_t end = p + 1 < found.part_count ? parts[p + 1].point : MANY;
            assert_ptr_equal(verified_at[p].points, points + first);
            assert_int_equal(verified_at[p].count, end - first);
            assert_ptr_equal(verified_with[p].skipped, whole ? skipped[2] : skipped[p]);
            assert_int_equal(verified_with[p].skipped_count, whole ? 2 : parts[p].skipped_count);
        }
        assert_true(model.plan.skipped == NULL && model.plan.skipped_count == 0);
        assert_true(found.solution.max_error == largest);
        const double rms = sqrt((double)(squares / MANY));
        assert_true(fabs(found.solution.rms_error - rms) <= 0x1p-50 * rms);
    }
}

/* ---- what one row admits ---- */

/* Of the lags between two bounds the admitted ones at either end, and never more than updates that
 * the row has seen. */
static void corroborate_narrowed_lags(void **state) {
    (void)state;
    size_t some = 0, none = 0;
    for (uint32_t number = 0; number < LOGS; number++) {
        struct draws draws = {.key = UINT64_C(0x4a44), .number = number};
        for (size_t k = 0; k < TABLE; k++)
            table[k] = draws_pick(&draws, 3);
        const uint64_t update = 1 + draws_pick(&draws, 12);
        points[0] = (struct series_point){.update = update, .value = draws_pick(&draws, 3)};
        open_lags(1, draws_pick(&draws, 2) == 0 ? "hf" : "torchtune");
        const uint64_t own = model.contract->logged == CONTRACT_LOGGED_NEXT ? 0 : 1;
        struct fit_lag range = {draws_pick(&draws, 6), draws_pick(&draws, 14)};
        int64_t low = -1, high = -1;
        for (int64_t lag = range.low; lag <= range.high && lag <= (int64_t)(update - own); lag++)
            if (is_printed(0, (uint64_t)lag, own)) {
                if (low < 0) low = lag;
                high = lag;
            }
        assert_int_equal(fit_lags_narrow(&lags, &points[0], &range), low >= 0);
        none += low < 0;
        if (low < 0) continue;
        assert_true(range.low == low && range.high == high);
        some++;
    }
    assert_true(some > LOGS / 4 && none > LOGS / 8);
    for (size_t had = 0; had < 3; had++) { /* each look costs an evaluation, if there is one */
        open_lags(1, "hf");
        search.budget = had;
        table[points[0].update] = 0.25;
        assert_true(fit_lagged(&lags, &points[0], 0) == 0.25);
        assert_int_equal(search.budget, had > 0 ? had - 1 : 0);
    }
    static const uint32_t ends[] = {0, 1, 2, 8, 9, 10, UINT32_MAX - 1, UINT32_MAX};
    for (size_t a = 0; a < COUNT_OF(ends); a++)
        for (size_t b = 0; b < COUNT_OF(ends); b++)
            for (size_t m = 0; m < COUNT_OF(ends); m++) {
                const uint64_t sum = (uint64_t)ends[a] + ends[b], most = ends[m];
                assert_int_equal(plus(ends[a], ends[b], ends[m]), sum < most ? sum : most);
            }
    open_lags(1, "hf"); /* the blur is a share of what the schedule gives */
    table[points[0].update] = 4.0;
    lags.blur = 0.0625;
    points[0].value = 4.25;
    assert_int_equal(admits(&lags, &points[0], 0), 1);
    points[0].value = 4.26;
    assert_int_equal(admits(&lags, &points[0], 0), 0);
}

/* The first row must admit a lag that the log says; where it says nothing that bounds it, any. */
static void validate_first_rows(void **state) {
    (void)state;
    for (uint64_t next = 0; next < 2; next++)
        for (uint32_t low = 0; low < 4; low++)
            for (uint32_t wide = 0; wide < 4; wide++)
                for (uint64_t lag = 0; lag < 9; lag++) {
                    for (size_t k = 0; k < TABLE; k++)
                        table[k] = 1000.0 - (double)k;
                    const uint64_t own = next ? 0 : 1;
                    points[0] = (struct series_point){.update = 12, .value = table[13 - own - lag]};
                    open_lags(1, next ? "torchtune" : "hf");
                    const uint32_t high = wide == 3 ? UINT32_MAX : low + wide;
                    known.skips = (struct fit_evidence){.least = &low, .most = &high};
                    /* The row has not seen its own update, which may be one of them. */
                    const int64_t from = (int64_t)low - (int64_t)own;
                    const int is = (int64_t)lag >= from && lag <= high;
                    assert_int_equal(fit_lags_admit_first(&lags), wide == 3 || is);
                }
}

static int close_arena(void **state) {
    (void)state;
    arena_close(&arena);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_lags_of_what_falls),
        cmocka_unit_test(corroborate_lags_of_what_comes_back),
        cmocka_unit_test(validate_what_comes_back),
        cmocka_unit_test(validate_rounds),
        cmocka_unit_test(validate_blur),
        cmocka_unit_test(corroborate_what_is_shown),
        cmocka_unit_test(corroborate_parts),
        cmocka_unit_test(validate_how_a_part_begins),
        cmocka_unit_test(corroborate_lags_with_evidence),
        cmocka_unit_test(validate_what_is_handed_back),
        cmocka_unit_test(corroborate_lists),
        cmocka_unit_test(corroborate_verified_parts),
        cmocka_unit_test(corroborate_narrowed_lags),
        cmocka_unit_test(validate_first_rows),
    };
    return cmocka_run_group_tests(tests, NULL, close_arena);
}

/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * How many updates can have been skipped before each row, against a count of every way: of random
 * columns of a schedule that only falls, and of one that comes back, where lags between the least
 * and the greatest are not admitted. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/macro.h"
/* The schedule is a table of this test. */
#define contract_applied given_applied
#include "forensics/fit_lags.c" /* for the parts, which no other file asks for */
#include "tests/base/helper_draws.h"

enum { ROWS = 5, TABLE = 40, MOST = 9, LOGS = 20000 };

static double table[TABLE];

double given_applied(const struct contract_plan *plan, uint64_t k) {
    (void)plan;
    assert_true(k < TABLE);
    return table[k];
}

static struct series_point points[ROWS];
static struct fit_known known;
static struct fit_search search;
static struct fit_window window;
static struct fit_model model;
static struct fit_lags lags;
static struct arena arena;

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
        cmocka_unit_test(validate_blur),
        cmocka_unit_test(corroborate_what_is_shown),
        cmocka_unit_test(corroborate_parts),
        cmocka_unit_test(validate_how_a_part_begins),
    };
    return cmocka_run_group_tests(tests, NULL, close_arena);
}

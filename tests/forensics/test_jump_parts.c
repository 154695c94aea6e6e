/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What the LRs behind a restart say of the scheduler, once more for random logs of three parameter
 * groups: the state, the bug and the whole text, for LRs that go on, begin anew, are scaled, are
 * those of another counter or of other rows, and the bound of the search for rows that were
 * numbered anew, from both sides. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "forensics/trajectory_lr.c" /* for its search, which no other file asks for */
#include "tests/base/helper_draws.h"

enum { ROWS = 40, LAST = 24, COLUMNS = 3, CASES = 15000, LONG = 5000 };

static struct draws draws;
static struct arena arena;
static struct log logs[2];
static struct trajectory_side sides[2];
static struct log_column columns[2][COLUMNS], listed[2][COLUMNS + 1];
static int has[2][COLUMNS]; /* a log has the column of a group */
static double values[2][COLUMNS][LONG];
static float quanta[2][COLUMNS][LONG];
static int64_t step[2][LONG];
static uint32_t line[2][LONG], part[2][LONG];
static struct trajectory out;
static struct trajectory_judging judging;

static int seldom(uint32_t n) {
    return draws_pick(&draws, n) == 0;
}

static void open_logs(void) {
    static const char *const sources[COLUMNS] = {"lr", "lr_logged[1]", "lr_logged[3]"};
    arena_close(&arena);
    memset(logs, 0, sizeof logs);
    for (size_t s = 0; s < 2; s++) {
        for (size_t c = 0; c < COLUMNS; c++)
            columns[s][c] = (struct log_column){.name = c == 0 ? LOG_LR_LOGGED : LOG_OTHER,
                                                .source = sources[c],
                                                .value = values[s][c],
                                                .quantum = quanta[s][c]};
        logs[s] = (struct log){.step = step[s],
                               .line = line[s],
                               .part = part[s],
                               .format = "csv",
                               .columns = columns[s],
                               .column_count = 1};
        sides[s] = (struct trajectory_side){.log = &logs[s]};
    }
    out = (struct trajectory){.restart = TRAJECTORY_UNKNOWN};
    judging = (struct trajectory_judging){
        .before = &sides[0], .after = &sides[1], .arena = &arena, .out = &out};
}

/* ---- random logs ---- */

enum how { SAME, ANEW, ADDED, SCALED, DECAYED, AHEAD, BEHIND, OTHER, HOWS };

static double table[2 * LAST + 1]; /* of a schedule without any rule */

static double lr_of(uint32_t shape, int64_t update) {
    const double k = update < 1 ? 1.0 : (double)update;
    switch (shape) {
    case 0: /* falls by the same in each update */
        return 1.0 - k / 64.0;
    case 1: /* stands for some updates */
        return k < 4.0 ? k / 4.0 : k < 12.0 ? 1.0 : 1.0 - (k - 11.0) / 64.0;
    case 2:
        return 0.5;
    case 3: /* comes again */
        return (fmod(k, 5.0) + 1.0) / 8.0;
    case 4:
        return ldexp(1.0, -(int)k);
    default:
        return table[(int)k % (2 * LAST + 1)];
    }
}

static double odd_value(double value) {
    static const double odd[] = {(double)NAN, (double)INFINITY, 0.0, -0.25};
    const uint32_t which = draws_pick(&draws, 8);
    return which < COUNT_OF(odd) ? odd[which] : 1.25 * value;
}

/* Draws the rows of one column; the steps are there. */
static void draw_column(size_t c, uint64_t done) {
    const uint32_t shape = draws_pick(&draws, 6), other = draws_pick(&draws, 6);
    const enum how how = seldom(3) ? SAME : (enum how)draws_pick(&draws, HOWS);
    const int64_t gap = 1 + draws_pick(&draws, 4), behind = (int64_t)done;
    const uint64_t late = done + (seldom(3) ? 1 + draws_pick(&draws, 2) : 0);
    const double factor = 0.25 * (double)(1 + draws_pick(&draws, 8));
    const uint32_t digits = draws_pick(&draws, 5), odd = draws_pick(&draws, 3) * 10;
    const uint32_t misses = draws_pick(&draws, 3) * 8, breaks = draws_pick(&draws, 20);
    const double noise = seldom(2) ? 0.0 : ldexp(0.45, -20); /* 2^-20 of a factor is none */
    double peak = 0.0;
    for (size_t s = 0; s < 2; s++)
        for (size_t i = 0; i < logs[s].rows; i++) {
            const int64_t k = step[s][i];
            double value = lr_of(shape, k);
            if (s == 0) {
                peak = fmax(peak, value);
            } else if ((uint64_t)k > late) {
                value = how == ANEW      ? lr_of(shape, k - behind)
                        : how == ADDED   ? lr_of(shape, k + behind)
                        : how == SCALED  ? factor * value * (1.0 + noise * draws_pick(&draws, 4))
                        : how == DECAYED ? value * lr_of(shape, behind + (seldom(3) ? 1 : 0)) / peak
                        : how == AHEAD   ? lr_of(shape, k + gap)
                        : how == BEHIND  ? lr_of(shape, k - gap)
                        : how == OTHER   ? lr_of(other, k)
                                         : value;
            }
            if (breaks == 0 && (uint64_t)k > done) value = (double)NAN; /* in both */
            values[s][c][i] = odd > 0 && seldom(odd) ? odd_value(value) : value;
            quanta[s][c][i] = digits == 0 ? 0x1p-9f : digits == 1 && s == 1 ? 0x1p-6f : 0.0f;
            if (misses > 0 && seldom(misses)) quanta[s][c][i] = (float)NAN; /* no value there */
        }
}

static void draw_steps(size_t s, uint64_t first, uint64_t last) {
    const uint32_t leaves_out = draws_pick(&draws, 3) * 5, repeats = draws_pick(&draws, 3) * 6;
    const int turned = seldom(5);
    size_t rows = 0;
    for (uint64_t update = first; update <= last; update++) {
        if (leaves_out > 0 && seldom(leaves_out)) continue;
        step[s][rows] = (int64_t)update;
        line[s][rows] = (uint32_t)rows + 2;
        part[s][rows] = 0;
        if (repeats > 0 && rows + 1 < ROWS && seldom(repeats)) {
            step[s][rows + 1] = step[s][rows];
            rows++;
        }
        rows++;
    }
    logs[s].rows = rows;
    for (size_t i = 1; i < rows && turned; i++) { /* the first row is moved to the end */
        const int64_t moved = step[s][i - 1];
        step[s][i - 1] = step[s][i];
        step[s][i] = moved;
    }
}

static void draw_case(uint32_t number) {
    draws = (struct draws){.key = UINT64_C(0x1a5e), .number = number};
    open_logs();
    for (size_t i = 0; i < COUNT_OF(table); i++)
        table[i] = 0.25 * (double)(1 + draws_pick(&draws, 3));
    const uint64_t done = draws_pick(&draws, 8), end = 4 + draws_pick(&draws, LAST - 4);
    const uint64_t far = seldom(2) ? end : LAST;
    draw_steps(0, 1, far);
    draw_steps(1, seldom(6) ? 1 : done + 1, end);
    out.restart = seldom(3) ? TRAJECTORY_UNKNOWN : done;
    for (size_t s = 0; s < 2; s++) {
        logs[s].columns = listed[s];
        logs[s].column_count = 0;
        if (seldom(3)) { /* what was applied stands beside what was logged, and says nothing */
            listed[s][0] = columns[s][1];
            listed[s][0].source = "lr_applied[1]";
            logs[s].column_count = 1;
        }
        for (size_t c = 0; c < COLUMNS; c++) {
            has[s][c] = c == 0 || seldom(2);
            if (has[s][c]) listed[s][logs[s].column_count++] = columns[s][c];
        }
        logs[s].format = seldom(2) ? "trace" : "csv";
        logs[s].max_steps = seldom(3) ? 30 : seldom(2) ? 40 : seldom(2) ? 1 : 0;
    }
    for (size_t c = 0; c < COLUMNS; c++)
        draw_column(c, done);
    out.differs = seldom(2) ? draws_pick(&draws, 12) : 0;
    out.column = out.differs > 0 ? "loss" : NULL;
}

/* ---- what is to be said ---- */

static struct trajectory_item want;
static char want_text[1024], want_column[64];
static uint64_t want_differs;
static int want_unnumbered;

static void say(enum trajectory_state state, const char *bug, const char *format, ...)
    TWINSTEP_PRINTF(3, 4);
static void say(enum trajectory_state state, const char *bug, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(want_text, sizeof want_text, format, arguments);
    va_end(arguments);
    want = (struct trajectory_item){state, want_text, bug};
}

struct number {
    int is; /* the log has it */
    double value, quantum;
};

/* The last row of an update that has a value. */
static struct number at(size_t s, size_t c, int64_t update) {
    struct number found = {0};
    for (size_t i = 0; i < logs[s].rows && has[s][c]; i++)
        if (step[s][i] == update && !isnan(quanta[s][c][i]))
            found = (struct number){1, values[s][c][i], (double)quanta[s][c][i]};
    return found;
}

static int is_one(struct number a, struct number b) {
    if (isnan(a.value) || isnan(b.value)) return isnan(a.value) && isnan(b.value);
    if (a.value == b.value) return 1;
    if (isinf(a.value) || isinf(b.value)) return 0;
    return 2.0 * fabs(a.value - b.value) <= a.quantum + b.quantum;
}

/* The updates behind the restart that both logs have. */
struct both {
    size_t column, count;
    int64_t update[ROWS];
};

static struct both both_of(size_t c) {
    struct both both = {.column = c};
    for (int64_t update = 1; update <= LAST; update++)
        if (at(0, c, update).is && at(1, c, update).is &&
            (out.restart == TRAJECTORY_UNKNOWN || update > (int64_t)out.restart))
            both.update[both.count++] = update;
    return both;
}

static int agrees(const struct both *both, size_t i) {
    return is_one(at(0, both->column, both->update[i]), at(1, both->column, both->update[i]));
}

/* In how many updates AFTER has the LR that BEFORE has so many later; 0 where one is another. */
static size_t alike(const struct both *both, int64_t later) {
    size_t same = 0, other = 0;
    for (size_t i = 0; i < both->count; i++) {
        const struct number there = at(0, both->column, both->update[i] + later);
        if (!there.is || both->update[i] + later < 1) continue;
        if (is_one(there, at(1, both->column, both->update[i])))
            same++;
        else
            other++;
    }
    return other > 0 ? 0 : same;
}

/* The factor, 0 where there is none; -1 where rounding of this test might decide. */
static double factor_of(const struct both *both) {
    size_t largest = 0;
    for (size_t i = 0; i < both->count; i++)
        if (at(0, both->column, both->update[i]).value >
            at(0, both->column, both->update[largest]).value)
            largest = i;
    const struct number top = at(0, both->column, both->update[largest]),
                        now = at(1, both->column, both->update[largest]);
    if (both->count < 2 || !(top.value > 0.0)) return 0.0;
    const double factor = now.value / top.value;
    for (size_t i = 0; i < both->count; i++) {
        const struct number was = at(0, both->column, both->update[i]),
                            is = at(1, both->column, both->update[i]);
        const double gap = fabs(is.value - factor * was.value);
        const double digits = is.quantum / 2.0 + factor * was.quantum / 2.0;
        const double of_factor =
            now.quantum / now.value / 2.0 + top.quantum / top.value / 2.0 + ldexp(1.0, -20);
        const double room = digits + of_factor * fabs(is.value);
        if (isnan(gap) || isnan(room) || gap > room * (1.0 + 1e-9)) return 0.0;
        if (gap > room * (1.0 - 1e-9) && gap > 0.0) return -1.0;
    }
    return factor;
}

static int is_near(double value, struct number number) {
    return number.is &&
           fabs(value - number.value) <= number.quantum / 2.0 + 0.001 * fabs(number.value);
}

static int is_of_no_update(const struct both *both) {
    return out.restart == TRAJECTORY_UNKNOWN && both->count > 0 && !agrees(both, 0);
}

/* Returns 0 where rounding of this test might decide. */
static int want_jump(const struct both *all) {
    struct both both = {.column = all->column};
    const size_t c = all->column;
    const int64_t done = all->update[0] - 1;
    if (is_of_no_update(all)) {
        const struct number was = at(0, c, all->update[0]), is = at(1, c, all->update[0]);
        want_unnumbered = 1;
        for (size_t i = 0; i < logs[0].rows; i++) {
            const int64_t later = step[0][i] - all->update[0];
            const struct number there = {1, values[0][c][i], (double)quanta[0][c][i]};
            if (isnan(quanta[0][c][i]) || later < 1 || !is_one(there, is)) continue;
            const size_t same = alike(all, later);
            if (same < 2 || 2 * same < all->count) continue;
            const int first = (int)all->update[0], from = (int)step[0][i];
            say(TRAJECTORY_UNTOLD, NULL,
                "the LRs from update %d of AFTER on are those of BEFORE from update %d on: its "
                "rows were numbered anew at the restart, or its counter is %d ahead; number them "
                "from %d on (twinstep.Recorder: first=%d)",
                first, from, from - first, from, from);
            return 1;
        }
        say(TRAJECTORY_UNTOLD, NULL,
            "update %d has LR %s, and had %s: both logs begin at the same update, so none says "
            "which updates AFTER's rows stand for",
            (int)all->update[0], word_value(is.value, is.quantum).text,
            word_value(was.value, was.quantum).text);
        return 1;
    }
    size_t first = 0;
    while (agrees(all, first))
        first++;
    for (size_t i = first; i < all->count; i++)
        both.update[both.count++] = all->update[i];
    const int update = (int)both.update[0];
    const struct number was = at(0, c, update), is = at(1, c, update);
    const struct word was_text = word_value(was.value, was.quantum),
                      is_text = word_value(is.value, is.quantum);
    if (alike(&both, -done) >= 2 && both.count >= 2) {
        say(TRAJECTORY_LOST, "scheduler_not_restored",
            "the LRs begin anew: update %d has %s, as update 1 had, and had %s", update,
            is_text.text, was_text.text);
        return 1;
    }
    if (alike(&both, done) >= 2 && both.count >= 2) {
        say(TRAJECTORY_LOST, "double_counter",
            "the counter was added to itself: update %d has %s, which was that of update %d, and "
            "had %s",
            update, is_text.text, (int)(2 * done + 1), was_text.text);
        return 1;
    }
    const double factor = factor_of(&both);
    if (factor == -1.0) return 0;
    if (factor != 0.0) {
        double peak = 0.0;
        for (size_t i = 0; i < logs[0].rows; i++)
            if (!isnan(quanta[0][c][i])) peak = fmax(peak, values[0][c][i]);
        const int decayed =
            is_near(factor * peak, at(0, c, done)) || is_near(factor * peak, at(0, c, done + 1));
        say(TRAJECTORY_LOST, decayed ? "initial_lr_overwritten" : NULL,
            "every LR is %s of what it was: %s", word_about(factor).text,
            decayed ? "the LR at the restart was taken for the peak"
                    : "another peak, which is not the LR of the checkpoint");
        return 1;
    }
    const int to[2] = {(int)logs[0].max_steps, (int)logs[1].max_steps};
    if (to[0] != 0 && to[1] != 0 && to[0] != to[1]) {
        say(TRAJECTORY_UNTOLD, NULL,
            "the logs say other totals, %d and %d, so their LRs are not to be equal: update %d has "
            "%s, and had %s; twinstep lr fit tells whether the counter went on",
            to[0], to[1], update, is_text.text, was_text.text);
        return 1;
    }
    for (int64_t by = 1; by <= done; by++)
        for (int ahead = 0; ahead < 2; ahead++)
            if (alike(&both, ahead ? by : -by) >= 2) {
                say(TRAJECTORY_LOST, "lr_jump_at_resume",
                    "the counter is %d %s: update %d has %s, and had %s", (int)by,
                    ahead ? "ahead" : "behind", update, is_text.text, was_text.text);
                return 1;
            }
    size_t behind = 0;
    while (first + 1 + behind < all->count && agrees(all, first + 1 + behind))
        behind++;
    if (first == 0 && behind + 1 == both.count && behind >= 2) {
        say(TRAJECTORY_UNTOLD, NULL,
            "update %d has LR %s, and had %s, and the %d behind it are those of before: as where "
            "the scheduler was restored and the optimizer was not, which keeps its own LR until "
            "the scheduler sets the next",
            update, is_text.text, was_text.text, (int)behind);
        return 1;
    }
    say(TRAJECTORY_LOST, "lr_jump_at_resume",
        "update %d has LR %s, and had %s; neither a count nor a factor explains the rows behind it",
        update, is_text.text, was_text.text);
    return 1;
}

/* Counts the updates that agree; of those that are numbers in both. */
static size_t count_of(const struct both *both, int of_numbers) {
    size_t count = 0;
    for (size_t i = 0; i < both->count; i++) {
        const int numbers = isfinite(at(0, both->column, both->update[i]).value) &&
                            isfinite(at(1, both->column, both->update[i]).value);
        count += (of_numbers ? numbers : agrees(both, i)) ? 1 : 0;
    }
    return count;
}

static int stands_still(void) {
    struct number first = {0};
    int still = 1;
    for (size_t i = 0; i < logs[0].rows; i++) {
        const struct number here = {1, values[0][0][i], (double)quanta[0][0][i]};
        if (isnan(here.quantum)) continue;
        if (!first.is) first = here;
        still = still && is_one(here, first);
    }
    return still;
}

static int want_first(const struct both *both) {
    const size_t numbers = count_of(both, 1);
    if (both->count == 0)
        say(TRAJECTORY_UNTOLD, NULL, "no update after the restart has an LR in both");
    else if (count_of(both, 0) < both->count)
        return want_jump(both);
    else if (numbers == 0)
        say(TRAJECTORY_UNTOLD, NULL, "no LR after the restart is a finite number");
    else if (stands_still())
        say(TRAJECTORY_UNTOLD, NULL, "the LR is constant: one that begins anew would be the same");
    else if (numbers == 1)
        say(TRAJECTORY_RESTORED, NULL, "the LR of one update after the restart is that of before");
    else
        say(TRAJECTORY_RESTORED, NULL,
            "the LRs of %d updates after the restart are those of before", (int)numbers);
    return 1;
}

static int want_groups(const struct both *first) {
    static const int numbers[COLUMNS] = {0, 1, 3};
    const int traces = strcmp(logs[0].format, "trace") == 0 && strcmp(logs[1].format, "trace") == 0;
    char text[512];
    if (is_of_no_update(first)) return 1;
    for (size_t c = 1; c < COLUMNS && want.state != TRAJECTORY_LOST; c++) {
        if (!has[0][c] || !has[1][c]) continue;
        const struct both both = both_of(c);
        int64_t alone = 0;
        for (size_t i = first->count; traces && i-- > 0;)
            if (at(0, c, first->update[i]).is != at(1, c, first->update[i]).is)
                alone = first->update[i];
        if (count_of(&both, 0) < both.count) {
            if (!want_jump(&both)) return 0;
            memcpy(text, want_text, sizeof text);
            say(want.state, want.bug, "group %d (%s): %s", numbers[c], columns[0][c].source, text);
        } else if (alone > 0) {
            say(TRAJECTORY_LOST, NULL, "group %d (%s): update %d has a number in one alone",
                numbers[c], columns[0][c].source, (int)alone);
            if (want_differs == 0 || (uint64_t)alone < want_differs) {
                want_differs = (uint64_t)alone;
                snprintf(want_column, sizeof want_column, "%s", columns[0][c].source);
            }
        }
    }
    const char *alone = NULL; /* of BEFORE first */
    for (size_t s = 2; s-- > 0;)
        for (size_t c = COLUMNS; c-- > 1;)
            if (has[s][c] && !has[1 - s][c]) alone = columns[s][c].source;
    if (want.state != TRAJECTORY_RESTORED || alone == NULL) return 1;
    memcpy(text, want_text, sizeof text);
    say(TRAJECTORY_RESTORED, NULL, "in group 0 %s; one log alone has %s, of which nothing is said",
        text, alone);
    return 1;
}

static void corroborate_schedulers(void **state) {
    (void)state;
    static const char *const kinds[] = {"begin anew",   "added to",   "taken for the peak",
                                        "another peak", "other tot",  "ahead",
                                        "behind",       "neither",    "numbered anew",
                                        "none says",    "constant",   "of one update",
                                        "in one alone", "log alone",  "no update",
                                        "finite",       "(lr_logged", "updates after",
                                        "keeps its own"};
    size_t seen[COUNT_OF(kinds)] = {0}, close = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        draw_case(number);
        want_differs = out.differs;
        want_unnumbered = 0;
        snprintf(want_column, sizeof want_column, "%s", out.differs > 0 ? "loss" : "");
        const struct both first = both_of(0);
        if (!want_first(&first) || !want_groups(&first)) {
            close++;
            continue;
        }
        assert_int_equal(trajectory_open(&judging), STATUS_OK);
        assert_int_equal(trajectory_judge_lr(&judging), STATUS_OK);
        const struct trajectory_item *const item = &out.items[TRAJECTORY_SCHEDULER];
        if (item->state != want.state || strcmp(item->text, want.text) != 0 ||
            (item->bug == NULL) != (want.bug == NULL) ||
            (want.bug != NULL && strcmp(item->bug, want.bug) != 0))
            fail_msg("case %u: %d \"%s\", expected %d \"%s\"", number, (int)item->state, item->text,
                     (int)want.state, want.text);
        assert_int_equal(judging.unnumbered, want_unnumbered);
        assert_int_equal(out.differs, want_differs);
        assert_string_equal(out.column != NULL ? out.column : "", want_column);
        for (size_t i = 0; i < COUNT_OF(kinds); i++)
            seen[i] += strstr(want.text, kinds[i]) != NULL;
    }
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        if (seen[i] < 20) fail_msg("%s: %zu", kinds[i], seen[i]);
    assert_true(close < CASES / 100);
}

/* Half a printed digit, and a thousandth besides. */
static void validate_what_is_about_an_lr(void **state) {
    (void)state;
    static const struct {
        double value, of, quantum;
        int is;
    } cases[] = {{1.0, 1.0, 0.0, 1},        {1.00099, 1.0, 0.0, 1},    {1.00101, 1.0, 0.0, 0},
                 {0.99901, 1.0, 0.0, 1},    {0.99899, 1.0, 0.0, 0},    {1.0509, 1.0, 0.1, 1},
                 {1.0511, 1.0, 0.1, 0},     {0.9491, 1.0, 0.1, 1},     {0.9489, 1.0, 0.1, 0},
                 {-0.25024, -0.25, 0.0, 1}, {-0.25026, -0.25, 0.0, 0}, {0.0, 0.0, 0.0, 1},
                 {0.05, 0.0, 0.1, 1},       {(double)NAN, 1.0, 0.1, 0}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct series_point point = {.value = cases[i].of, .quantum = cases[i].quantum};
        if (is_about(cases[i].value, &point) != cases[i].is) fail_msg("case %zu", i);
    }
    assert_int_equal(is_about(1.0, NULL), 0);
}

/* AFTER's 2000 rows have LR 1 first, and then LRs that fall. BEFORE stands at 1 for as many rows as
 * are looked at, or one more, and then falls so for half of them, or for one less. Four million
 * rows are looked at: 2000 times 2000, and one turn more. */
static void validate_where_the_search_ends(void **state) {
    (void)state;
    enum { SHORT = 2000, LOOKED = 2001 };
    for (size_t longer = 0; longer < 2; longer++)
        for (size_t fewer = 0; fewer < 2; fewer++) {
            open_logs();
            const size_t stands = LOOKED + longer; /* the last of them is followed by the fall */
            logs[1].rows = SHORT;
            logs[0].rows = 1 + stands + SHORT / 2 - 1 - fewer;
            memset(quanta, 0, sizeof quanta);
            for (size_t s = 0; s < 2; s++)
                for (size_t i = 0; i < logs[s].rows; i++) {
                    const size_t falls = s == 1 ? i : i > stands ? i - stands : 0;
                    step[s][i] = (int64_t)i + 1;
                    values[s][0][i] = 1.0 - (double)falls / 8192.0;
                }
            values[0][0][0] = 2.0;
            assert_int_equal(trajectory_open(&judging), STATUS_OK);
            assert_int_equal(judging.lr.count, SHORT);
            assert_int_equal(numbered_anew(&judging.lr), longer || fewer ? 0 : stands);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_schedulers),
        cmocka_unit_test(validate_what_is_about_an_lr),
        cmocka_unit_test(validate_where_the_search_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

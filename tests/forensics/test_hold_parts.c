/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Logs against a floor, once more for random logs and floors of few pairs: which updates count,
 * each gap over the median of all others, ranks, the worst update, runs that broke, and the
 * sentences whole. The power of a design is not computed here: what is asked of it is compared. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "determinism/power.h"
#define power_distance asked_power
static enum status asked_power(size_t pairs, double alpha, double shift, struct power *out);
#include "forensics/compare_floor.c" /* for its call of the power, which takes long */
#include "tests/base/helper_draws.h"

enum { PAIRS = 6, STEPS = 6, LAST = STEPS + 2, CASES = 20000 };

static struct draws draws;
static struct arena arena;
static struct compare_column compared[3];
static struct compare_report report;
static struct floor_file file;
static struct log_column log_columns[2][2];
static struct series_point points[2][2][LAST];
static double gaps[FLOOR_COLUMNS][PAIRS * STEPS];
static double alpha;

static enum status asked_power(size_t pairs, double of_alpha, double shift, struct power *out) {
    assert_true(pairs == file.pairs && of_alpha == alpha && shift == 3.0);
    *out = (struct power){.power = 0.25 + (double)pairs};
    return STATUS_OK;
}

static int seldom(uint32_t n) {
    return draws_pick(&draws, n) == 0;
}

/* ---- random logs and floors ---- */

static double draw_value(void) {
    static const double values[] = {0.0, 1.0, 1.0,  1.25, 1.5, 2.0,
                                    4.0, 8.0, 1e-3, -1.0, 3.0, 1.0 + 0x1p-20};
    if (!seldom(40)) return values[draws_pick(&draws, COUNT_OF(values))];
    return seldom(2) ? (double)NAN : seldom(2) ? (double)INFINITY : -(double)INFINITY;
}

/* Rows of some of the updates 0 to LAST - 1, in order; most are of every update. */
static size_t draw_rows(struct series_point *rows, uint32_t leaves_out, double quantum) {
    size_t count = 0;
    for (uint64_t update = 0; update < LAST; update++)
        if (leaves_out == 0 || !seldom(leaves_out)) {
            rows[count] = (struct series_point){.update = update, .row = count};
            rows[count].value = draw_value();
            rows[count++].quantum = quantum;
        }
    return count;
}

/* The names stand in any order among others; either column may be missing, in the logs or in the
 * floor. */
static void draw_case(uint32_t number) {
    static const int32_t names[2] = {LOG_LOSS, LOG_GRAD_NORM};
    draws = (struct draws){.key = UINT64_C(0xf1008), .number = number};
    memset(&report, 0, sizeof report);
    memset(&file, 0, sizeof file);
    const uint32_t still = draws_pick(&draws, 5), breaks = draws_pick(&draws, 6);
    file.pairs = 1 + draws_pick(&draws, PAIRS);
    file.steps = 1 + draws_pick(&draws, STEPS);
    for (int c = 0; c < FLOOR_COLUMNS; c++) {
        file.columns[c] = seldom(c == FLOOR_DISTANCE ? 3 : 12) ? NULL : gaps[c];
        for (size_t i = 0; i < COUNT_OF(gaps[c]); i++) {
            gaps[c][i] = 0.25 * (double)draws_pick(&draws, 12);
            if (still > 0 && draws_pick(&draws, 5) < still) gaps[c][i] = 0.0;
            if (breaks == 0 && seldom(30)) gaps[c][i] = (double)INFINITY;
        }
    }
    compared[0] = (struct compare_column){.name = LOG_TOKENS, .pairs = 1};
    report.columns = compared;
    report.column_count = 1;
    const uint32_t first = draws_pick(&draws, 2);
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t c = i ^ first;
        struct compare_column *const column = &compared[report.column_count];
        const int alike = seldom(3);
        const uint32_t leaves_out = draws_pick(&draws, 3) * 4;
        if (seldom(8)) continue;
        *column = (struct compare_column){.name = names[c], .pairs = seldom(12) ? 0 : 1};
        report.column_count++;
        for (int s = 0; s < 2; s++) {
            const double quantum = seldom(2) ? 0.0 : seldom(2) ? 0.5 : 0x1p-10;
            log_columns[c][s] = (struct log_column){.windowed = seldom(4) ? 1 : 0};
            column->side[s] =
                (struct compare_side){.column = &log_columns[c][s], .points = points[c][s]};
            column->side[s].count = draw_rows(points[c][s], leaves_out, quantum);
        }
        if (alike) { /* both logs agree in most rows */
            column->side[1].count = column->side[0].count;
            for (size_t row = 0; row < column->side[0].count; row++) {
                points[c][1][row] = points[c][0][row];
                if (seldom(5)) points[c][1][row].value = draw_value();
            }
        }
    }
    static const double alphas[] = {0.125, 1.0 / 7.0, 0.2, 1.0 / 3.0, 0.5, 0.9};
    alpha = alphas[draws_pick(&draws, COUNT_OF(alphas))];
    file.exact = seldom(8);
    report.root_update = draws_pick(&draws, 3);
}

/* ---- what is to come of it ---- */

/* A gap of the logs: of each of 0 and 1, the least and the largest that the digits allow. */
struct cell {
    uint64_t update;
    double gap[2];
    int one_broke;
    double pairs[PAIRS]; /* of the floor */
};

static const struct series_point *row_at(const struct compare_side *side, uint64_t update) {
    const struct series_point *found = NULL;
    for (size_t i = 0; i < side->count; i++) {
        const uint64_t before = i > 0 ? side->points[i - 1].update : 0;
        if (side->points[i].update == update &&
            (side->column->windowed == 0 || before == update - 1))
            found = &side->points[i];
    }
    return found;
}

static size_t find_cells(const struct compare_column *column, int c, struct cell *out) {
    size_t count = 0;
    for (uint64_t update = 1; update <= file.steps; update++) {
        const struct series_point *const a = row_at(&column->side[0], update), *const b = row_at(
                                                                                   &column->side[1],
                                                                                   update);
        if (a == NULL || b == NULL) continue;
        struct cell *const cell = &out[count++];
        const double size = fabs(a->value - b->value), room = 0.5 * (a->quantum + b->quantum);
        cell->update = update;
        cell->gap[0] = fmax(size - room, 0.0);
        cell->gap[1] = size + room;
        for (int i = 0; i < 2 && c == 1; i++) /* relative; nothing is nothing of 0, too */
            if (cell->gap[i] > 0.0) cell->gap[i] /= fabs(a->value);
        const int broke[2] = {!isfinite(a->value), !isfinite(b->value)};
        cell->one_broke = broke[0] != broke[1];
        if (broke[0] || broke[1]) {
            const int same = a->value == b->value || (isnan(a->value) && isnan(b->value));
            cell->gap[0] = cell->gap[1] = same ? 0.0 : (double)INFINITY;
        }
        for (uint64_t p = 0; p < file.pairs; p++)
            cell->pairs[p] = gaps[c][p * file.steps + update - 1];
    }
    return count;
}

static double gap_of_run(const struct cell *cell, size_t run, int high) {
    return run < file.pairs ? cell->pairs[run] : cell->gap[high];
}

/* The upper median: as many are below it as above, or one more. */
static double middle_of(double *values, size_t count) {
    for (size_t i = 1; i < count; i++)
        for (size_t k = i; k > 0 && values[k - 1] > values[k]; k--) {
            const double other = values[k];
            values[k] = values[k - 1];
            values[k - 1] = other;
        }
    return count == 0 ? 0.0 : values[(count - count % 2) / 2];
}

/* How many medians of the others the gap of a run is long at a cell. */
static double length_of(const struct cell *cells, size_t count, size_t at, size_t run, int high) {
    const double gap = gap_of_run(&cells[at], run, high);
    double others[(PAIRS + 1) * STEPS];
    size_t left = 0;
    for (size_t r = 0; r <= file.pairs; r++)
        if (r != run) others[left++] = gap_of_run(&cells[at], r, high);
    double usual = middle_of(others, left);
    if (usual == 0.0) {
        left = 0;
        for (size_t i = 0; i < count; i++)
            for (size_t r = 0; r <= file.pairs; r++) {
                const double other = gap_of_run(&cells[i], r, high);
                if (r != run && other > 0.0 && isfinite(other)) others[left++] = other;
            }
        usual = middle_of(others, left);
    }
    if (gap == 0.0) return 0.0;
    return usual == 0.0 || isinf(gap) ? (double)INFINITY : gap / usual;
}

/* What is said of one column. */
static struct compare_floor_column tell_of(int32_t name, const struct cell *cells, size_t count) {
    struct compare_floor_column told = {.name = name, .updates = count};
    double worst = -1.0;
    for (size_t i = 0; i < count; i++) {
        double bound = 0.0;
        for (size_t p = 0; p < file.pairs; p++)
            bound = fmax(bound, cells[i].pairs[p]);
        const double gap = cells[i].gap[0];
        const double times = gap == 0.0                   ? 0.0
                             : bound == 0.0 || isinf(gap) ? (double)INFINITY
                                                          : gap / bound;
        if (gap > bound) {
            if (told.above == 0) told.first_above = cells[i].update;
            told.above++;
        }
        if (times > worst) {
            worst = times;
            told.worst = cells[i].update;
            told.gap = gap;
            told.bound = bound;
        }
    }
    return told;
}

static struct compare_floor expected(char words[512]) {
    static const int32_t names[2] = {LOG_LOSS, LOG_GRAD_NORM};
    struct compare_floor want = {.pairs = file.pairs, .alpha = alpha, .exact = file.exact};
    double length[2][PAIRS + 1] = {{0.0}};
    size_t above = report.root_update > 0;
    int floor_broke = 0;
    for (int c = 0; c < 2; c++) {
        struct cell cells[STEPS];
        const struct compare_column *column = NULL;
        for (size_t i = 0; i < report.column_count; i++)
            if (compared[i].name == names[c] && compared[i].pairs > 0) column = &compared[i];
        if (column == NULL || file.columns[c] == NULL) continue;
        const size_t count = find_cells(column, c, cells);
        if (count == 0) continue;
        for (int high = 0; high < 2; high++)
            for (size_t run = 0; run <= file.pairs; run++)
                for (size_t i = 0; i < count; i++)
                    length[high][run] =
                        fmax(length[high][run], length_of(cells, count, i, run, high));
        for (size_t i = count; i-- > 0;)
            if (cells[i].one_broke && (want.broken == 0 || cells[i].update < want.broken))
                want.broken = cells[i].update;
        want.columns[want.column_count++] = tell_of(names[c], cells, count);
        above += want.columns[want.column_count - 1].above;
        if (count > want.updates) want.updates = count;
    }
    for (int c = 0; c < FLOOR_COLUMNS; c++)
        for (size_t i = 0; i < file.pairs * file.steps; i++)
            floor_broke |= file.columns[c] != NULL && isinf(gaps[c][i]);
    if (floor_broke) want.broken = 0;
    const double runs = (double)file.pairs + 1.0;
    want.smallest_p = 1.0 / runs;
    want.power = 0.25 + (double)file.pairs;
    static const char none[] =
        "neither loss nor gradient norm of one update is in both logs and in the floor's updates";
    if (want.exact) {
        static const char both[] = "the runs of the floor are equal to the last bit, and these are";
        want.verdict = above > 0               ? COMPARE_FLOOR_OUTSIDE
                       : want.column_count > 0 ? COMPARE_FLOOR_INSIDE
                                               : COMPARE_FLOOR_UNTESTABLE;
        if (above == 0 && want.column_count == 0)
            snprintf(words, 512, "%s", none);
        else
            snprintf(words, 512, "%s%s", both, above > 0 ? " not" : ", too");
        return want;
    }
    for (int high = 0; high < 2; high++) {
        size_t as_long = 0;
        for (size_t run = 0; run <= file.pairs; run++)
            as_long += length[high][run] >= length[high][file.pairs];
        want.p[high] = want.broken > 0 ? want.smallest_p : (double)as_long / runs;
    }
    const double least = fmin(want.p[0], want.p[1]), most = fmax(want.p[0], want.p[1]);
    size_t needed = 1; /* pairs, of which one more run is to be the farthest of all */
    while (1.0 > alpha * ((double)needed + 1.0) && 1.0 / ((double)needed + 1.0) > alpha)
        needed++;
    want.verdict = COMPARE_FLOOR_UNTESTABLE;
    if (want.column_count == 0) {
        snprintf(words, 512, "%s", none);
    } else if (want.smallest_p > alpha && want.broken > 0) {
        snprintf(words, 512,
                 "at update %d one log has NaN or infinity and the other one a number, as in none "
                 "of the %d A/A pairs: that is no gap of rounding, and the logs differ; whether "
                 "noise breaks a run as rarely as p <= %g (least %.3g), twinstep noise --pairs %d "
                 "would say",
                 (int)want.broken, (int)file.pairs, alpha, want.smallest_p, (int)needed);
    } else if (want.smallest_p > alpha) {
        snprintf(words, 512,
                 "%d A/A pairs cannot give p <= %g (least %.3g): twinstep noise --pairs %d would",
                 (int)file.pairs, alpha, want.smallest_p, (int)needed);
    } else if (most <= alpha) {
        want.verdict = COMPARE_FLOOR_OUTSIDE;
        snprintf(words, 512, "p = %.4g is not above alpha = %g", most, alpha);
    } else if (least > alpha) {
        want.verdict = COMPARE_FLOOR_INSIDE;
        snprintf(words, 512, "p = %.4g is above alpha = %g", least, alpha);
    } else {
        snprintf(words, 512, "the printed digits leave p between %.4g and %.4g, alpha = %g", least,
                 most, alpha);
    }
    return want;
}

static int same_column(const struct compare_floor_column *a, const struct compare_floor_column *b) {
    return a->name == b->name && a->updates == b->updates && a->above == b->above &&
           a->first_above == b->first_above && a->worst == b->worst && a->gap == b->gap &&
           a->bound == b->bound;
}

static void corroborate_floors(void **state) {
    (void)state;
    size_t verdicts[2][3] = {{0}}, broken[2] = {0}, open = 0, falls = 0, still = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        struct compare_floor held;
        char words[512];
        draw_case(number);
        const struct compare_floor want = expected(words);
        if (compare_hold(&report, &file, alpha, &arena, &held) != STATUS_OK)
            fail_msg("case %u: %s", number, status_text());
        if (strcmp(held.words, words) != 0 || held.verdict != want.verdict)
            fail_msg("case %u: %d \"%s\", expected %d \"%s\"", number, (int)held.verdict,
                     held.words, (int)want.verdict, words);
        if (held.exact != want.exact || held.pairs != want.pairs || held.alpha != want.alpha ||
            held.updates != want.updates || held.broken != want.broken ||
            held.smallest_p != want.smallest_p || held.p[0] != want.p[0] ||
            held.p[1] != want.p[1] || held.power != want.power ||
            held.column_count != want.column_count)
            fail_msg("case %u: p %g and %g, broken %d, %d updates", number, held.p[0], held.p[1],
                     (int)held.broken, (int)held.updates);
        /* A pair at random is below the bound with this chance: all of them are with 1 in 20. */
        assert_true(fabs(pow(held.content, (double)file.pairs) - 0.05) < 1e-12);
        for (size_t c = 0; c < want.column_count; c++) {
            if (!same_column(&held.columns[c], &want.columns[c]))
                fail_msg("case %u: column %zu", number, c);
            still += held.columns[c].worst > 0 && held.columns[c].gap == 0.0;
        }
        verdicts[want.exact][want.verdict]++;
        if (want.broken > 0 && !want.exact) broken[want.smallest_p > alpha]++;
        open += !want.exact && want.verdict == COMPARE_FLOOR_UNTESTABLE && want.p[0] != want.p[1];
        falls += want.p[0] < want.p[1];
        arena_close(&arena);
    }
    for (size_t v = 0; v < 3; v++)
        assert_true(verdicts[0][v] > 500 && verdicts[1][v] > 10);
    assert_true(broken[0] > 100 && broken[1] > 100 && open > 100 && falls > 10 && still > 100);
}

/* What the floor makes of a verdict: every mixture of what it looks at. A first update counts as
 * any other does. */
static void corroborate_verdicts(void **state) {
    (void)state;
    static const int32_t names[] = {
        LOG_LOSS,      LOG_LOGP_CHOSEN,   LOG_LOGP_REJECTED, LOG_LOGITS_REJECTED,
        LOG_GRAD_NORM, LOG_PARAM_NORM,    LOG_EVAL_LOSS,     LOG_TOKENS,
        LOG_LR_LOGGED, LOG_REWARD_CHOSEN, LOG_LOGITS_CHOSEN};
    for (uint32_t number = 0; number < CASES; number++) {
        uint32_t order[2] = {1, 0};
        draws = (struct draws){.key = UINT64_C(0x4e4d), .number = number};
        struct compare_floor held = {.broken = draws_pick(&draws, 3)};
        int given = 0;
        memset(&report, 0, sizeof report);
        memset(compared, 0, sizeof compared);
        held.verdict = (int32_t)draws_pick(&draws, 3);
        if (!seldom(3)) held.broken = 0;
        report.columns = compared;
        report.column_count = 2;
        report.order = order;
        report.order_count = draws_pick(&draws, 3);
        report.verdict = seldom(4) ? (int32_t)draws_pick(&draws, 3) : COMPARE_VERDICT_DIFFERS;
        report.rng.found = seldom(6);
        report.lr.state = seldom(4) ? COMPARE_LR_DIFFERENT : COMPARE_LR_SAME;
        report.undecided = seldom(3);
        for (size_t i = 0; i < 2; i++) {
            const uint32_t which = draws_pick(&draws, COUNT_OF(names));
            compared[i].name = seldom(3) ? names[which] : LOG_LOSS;
            const int is_given =
                compared[i].name == LOG_TOKENS || compared[i].name == LOG_LR_LOGGED;
            if (order[0] == i ? report.order_count > 0 : report.order_count > 1) given |= is_given;
        }
        const int noise =
            report.lr.state == COMPARE_LR_SAME && !report.rng.found && !given && held.broken == 0;
        const int want = report.verdict != COMPARE_VERDICT_DIFFERS         ? report.verdict
                         : !noise || held.verdict == COMPARE_FLOOR_OUTSIDE ? COMPARE_VERDICT_DIFFERS
                         : held.verdict == COMPARE_FLOOR_UNTESTABLE || report.undecided
                             ? COMPARE_VERDICT_UNTESTABLE
                             : COMPARE_VERDICT_EQUAL;
        assert_int_equal(compare_floor_verdict_of(&report, &held), want);
    }
}

static void validate_no_pairs(void **state) {
    (void)state;
    struct compare_floor held;
    draw_case(0);
    file.pairs = 0;
    assert_int_equal(compare_hold(&report, &file, alpha, &arena, &held), STATUS_UNTESTABLE);
    assert_string_equal(status_text(), "the floor file holds no A/A pair");
    assert_string_equal(compare_floor_name(COMPARE_FLOOR_INSIDE), "inside-floor");
    assert_string_equal(compare_floor_name(COMPARE_FLOOR_OUTSIDE), "outside-floor");
    assert_string_equal(compare_floor_name(COMPARE_FLOOR_UNTESTABLE), "untestable");
    arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_floors),
        cmocka_unit_test(corroborate_verdicts),
        cmocka_unit_test(validate_no_pairs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

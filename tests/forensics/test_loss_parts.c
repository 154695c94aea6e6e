/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * How rows of two logs are paired behind a restart, once more for random rows, and what their
 * losses, norms and counts of tokens say, by the whole text: in logs in which everything goes on as
 * before one thing is changed at a time, and each threshold is met from both sides. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
/* For the parts, which no other file asks for. */
#include "forensics/trajectory_columns.c"
#include "forensics/trajectory_loss.c"
#include "tests/base/helper_draws.h"

enum { ROWS = 12, RESTART = 6, COLUMNS = 4, CASES = 5000 };
enum { LR, LOSS, NORM, TOKENS };

static struct arena arena;
static struct log logs[2];
static struct trajectory_side sides[2];
static struct log_column columns[2][COLUMNS];
static double values[2][COLUMNS][ROWS];
static float quanta[2][COLUMNS][ROWS];
static int64_t step[2][ROWS];
static uint32_t line[2][ROWS], part[2][ROWS];
static struct trajectory out;
static struct trajectory_judging judging;

/* BEFORE has updates 1 to 12, and AFTER those from 7 on, with the same numbers: a loss that rises
 * and falls by 1 from row to row. */
static void open_logs(void) {
    static const int32_t names[COLUMNS] = {LOG_LR_LOGGED, LOG_LOSS, LOG_GRAD_NORM, LOG_TOKENS};
    static const char *const sources[COLUMNS] = {"lr", "loss", "norm", "num_tokens"};
    arena_close(&arena);
    memset(logs, 0, sizeof logs);
    memset(quanta, 0, sizeof quanta);
    memset(part, 0, sizeof part);
    for (size_t s = 0; s < 2; s++) {
        for (size_t i = 0; i < ROWS; i++) {
            step[s][i] = (int64_t)(i + 1 + (s == 0 ? 0 : RESTART));
            line[s][i] = (uint32_t)i + 2;
            const double k = (double)step[s][i];
            values[s][LR][i] = 1.0 / k;
            values[s][LOSS][i] = 5.0 + fmod(k, 2.0);
            values[s][NORM][i] = k;
            values[s][TOKENS][i] = 100.0 + fmod(k, 3.0);
        }
        for (size_t c = 0; c < COLUMNS; c++)
            columns[s][c] = (struct log_column){.name = names[c],
                                                .source = sources[c],
                                                .value = values[s][c],
                                                .quantum = quanta[s][c]};
        logs[s].rows = s == 0 ? ROWS : ROWS - RESTART;
        logs[s].step = step[s];
        logs[s].line = line[s];
        logs[s].part = part[s];
        logs[s].format = "csv";
        logs[s].columns = columns[s];
        logs[s].column_count = COLUMNS;
        sides[s] = (struct trajectory_side){.log = &logs[s]};
    }
    memset(&out, 0, sizeof out);
    for (int p = 0; p < TRAJECTORY_PARTS; p++)
        out.items[p] = (struct trajectory_item){.state = TRAJECTORY_UNTOLD, .text = ""};
    out.restart = RESTART;
    judging = (struct trajectory_judging){
        .before = &sides[0], .after = &sides[1], .arena = &arena, .out = &out};
}

static double *value_at(size_t side, size_t of, int64_t update) {
    for (size_t i = 0; i < logs[side].rows; i++)
        if (step[side][i] == update) return &values[side][of][i];
    fail_msg("no update %d", (int)update);
    return NULL;
}

static void judge(void) {
    judging = (struct trajectory_judging){
        .before = &sides[0], .after = &sides[1], .arena = &arena, .out = &out};
    assert_int_equal(trajectory_open(&judging), STATUS_OK);
    assert_int_equal(trajectory_judge_loss(&judging), STATUS_OK);
}

static void require(enum trajectory_part of, enum trajectory_state state, const char *text) {
    const struct trajectory_item *const item = &out.items[of];
    if (item->state != state || strcmp(item->text, text) != 0)
        fail_msg("%s: %d, \"%s\"", trajectory_part_names[of], (int)item->state, item->text);
}

static void require_all(const char *text) {
    for (int p = TRAJECTORY_DATA; p <= TRAJECTORY_OPTIMIZER; p++)
        require((enum trajectory_part)p, TRAJECTORY_UNTOLD, text);
}

/* ---- pairs ---- */

static void corroborate_pairs(void **state) {
    (void)state;
    for (uint32_t number = 0; number < CASES; number++) {
        struct draws draws = {.key = UINT64_C(0x9a12), .number = number};
        size_t last[2][40], wanted = 0;
        open_logs();
        memset(last, 0xff, sizeof last);
        for (size_t s = 0; s < 2; s++) {
            logs[s].rows = draws_pick(&draws, ROWS + 1);
            for (size_t i = 0; i < logs[s].rows; i++) {
                step[s][i] = (int64_t)(1 + draws_pick(&draws, 15)); /* in any order, and twice */
                last[s][step[s][i]] = i;
            }
        }
        out.restart = draws_pick(&draws, 4) == 0 ? TRAJECTORY_UNKNOWN : draws_pick(&draws, 10);
        assert_int_equal(trajectory_open(&judging), STATUS_OK);
        for (uint64_t update = 1; update < 17; update++) {
            const struct trajectory_pairing *const found =
                trajectory_pair_at(&judging.loss, update);
            const int is = update < 16 && last[0][update] < ROWS && last[1][update] < ROWS &&
                           (out.restart == TRAJECTORY_UNKNOWN || update > out.restart);
            assert_int_equal(found != NULL, is);
            const struct series_point *const row =
                trajectory_last_at(&judging.loss.before_rows, update);
            assert_int_equal(row != NULL, update < 16 && last[0][update] < ROWS);
            if (row != NULL) assert_int_equal(row->row, last[0][update]);
            if (!is) continue;
            assert_ptr_equal(found, &judging.loss.pairs[wanted++]);
            assert_int_equal(found->before->row, last[0][update]);
            assert_int_equal(found->after->row, last[1][update]);
        }
        assert_int_equal(judging.loss.count, wanted);
    }
}

static int is_less(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The upper median of the changes that are numbers, of four or more. */
static void corroborate_variation(void **state) {
    (void)state;
    for (uint32_t number = 0; number < CASES; number++) {
        struct draws draws = {.key = UINT64_C(0x7a2), .number = number};
        double changes[ROWS];
        size_t count = 0;
        open_logs();
        logs[0].rows = draws_pick(&draws, ROWS + 1);
        for (size_t i = 0; i < logs[0].rows; i++)
            values[0][LOSS][i] =
                draws_pick(&draws, 8) == 0 ? (double)INFINITY : draws_pick(&draws, 100);
        for (size_t i = 1; i < logs[0].rows; i++) {
            const double change = fabs(values[0][LOSS][i] - values[0][LOSS][i - 1]);
            if (isfinite(change)) changes[count++] = change;
        }
        qsort(changes, count, sizeof *changes, is_less);
        assert_int_equal(trajectory_open(&judging), STATUS_OK);
        assert_true(judging.variation == (count < 4 ? 0.0 : changes[count / 2]));
    }
}

static void validate_columns(void **state) {
    (void)state;
    open_logs();
    judge();
    assert_string_equal(judging.loss.name, "loss");
    assert_string_equal(judging.tokens.name, "num_tokens");
    assert_string_equal(judging.lr.name, "lr");
    columns[1][TOKENS].source = "tokens/all"; /* as AFTER spells it */
    judge();
    assert_string_equal(judging.tokens.name, "tokens/all");
    open_logs();
    logs[1].column_count = 3;
    judge();
    assert_string_equal(judging.tokens.name, log_names[LOG_TOKENS].name);
    assert_int_equal(judging.tokens.count, 0);
    /* The applied LR where both have it. */
    for (int has = 0; has < 4; has++) {
        open_logs();
        for (size_t s = 0; s < 2; s++) {
            columns[s][NORM].source = "applied";
            if (has >> s & 1) columns[s][NORM].name = LOG_LR_APPLIED;
        }
        assert_int_equal(trajectory_open(&judging), STATUS_OK);
        assert_string_equal(judging.lr.name, has == 3 ? "applied" : "lr");
    }
    /* A mean over several updates is one in either log, with rows some updates apart. */
    for (size_t s = 0; s < 2; s++)
        for (int how = 0; how < 4; how++) {
            open_logs();
            columns[s][LOSS].windowed = (uint8_t)(how & 1);
            for (size_t i = logs[s].rows - 1; how & 2 && i < logs[s].rows; i++)
                step[s][i]++;
            assert_int_equal(trajectory_open(&judging), STATUS_OK);
            assert_int_equal(judging.windowed, how == 3);
        }
}

static void validate_two_that_are_one(void **state) {
    (void)state;
    struct series_point a = {.value = 5.0}, b = {.value = 5.0};
    const struct trajectory_pairing pairing = {1, &a, &b};
    static const struct {
        double a, b, of_a, of_b;
        int counts, alike; /* of a usual change of 2 */
    } cases[] = {{5, 5, 0, 0, 1, 1},      {5, 5.1999, 0, 0, 1, 1},
                 {5, 5.2001, 0, 0, 1, 0}, {5.2001, 5, 0, 0, 1, 0},
                 {5, 5.9999, 1, 1, 1, 1}, {5, 6, 0, 0, 0, 0},
                 {6, 5, 1, 0, 0, 0},      {50, 60, 10, 10, 1, 1},
                 {50, 61, 10, 10, 0, 0},  {50, 54, 0, 10, 1, 1},
                 {50, 54, 10, 0, 1, 1},   {50, 56, 0, 10, 0, 0},
                 {5, 5.9, 1, 1, 1, 1},    {(double)NAN, (double)NAN, 0, 0, -1, -1},
                 {5, 4.8001, 0, 0, 1, 1}};
    judging.variation = 2.0;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        a = (struct series_point){.value = cases[i].a, .quantum = cases[i].of_a};
        b = (struct series_point){.value = cases[i].b, .quantum = cases[i].of_b};
        if (cases[i].counts >= 0 && trajectory_agree_counts(&pairing) != cases[i].counts)
            fail_msg("case %zu: counts", i);
        if (cases[i].alike >= 0 && trajectory_is_alike(&judging, &pairing) != cases[i].alike)
            fail_msg("case %zu: losses", i);
    }
    for (int how = 0; how < 4; how++) {
        a.value = how & 1 ? (double)NAN : 1.0;
        b.value = how & 2 ? (double)INFINITY : 1.0;
        assert_int_equal(trajectory_are_numbers(&pairing), how == 0);
    }
    for (size_t i = 1; i < 5; i++) {
        struct series_point points[5] = {
            {.value = 2}, {.value = 2}, {.value = 2}, {.value = 2}, {.value = 2}};
        const struct series of = {points, 4};
        points[i].value = 3.0;
        assert_int_equal(trajectory_is_constant(&of), i == 4);
    }
    for (int64_t update = 7; update < 9;
         update++) { /* every group's LR counts, where both have it */
        open_logs();
        *value_at(1, LR, update) *= 2.0;
        assert_int_equal(trajectory_open(&judging), STATUS_OK);
        assert_int_equal(trajectory_same_lrs(&judging, 7), update != 7);
        assert_int_equal(trajectory_same_lrs(&judging, 40), 1);
        struct trajectory_group groups[2] = {{.number = 1}, {.number = 2}};
        judging.lr.count = 0;
        for (size_t g = 0; g < 2; g++) {
            groups[0].lr = groups[1].lr = judging.norm;
            groups[g].lr = judging.lr;
            groups[g].lr.count = 6;
            judging.groups = groups;
            judging.group_count = 2;
            assert_int_equal(trajectory_same_lrs(&judging, 7), update != 7);
            judging.group_count = g;
            assert_int_equal(trajectory_same_lrs(&judging, 7), 1);
        }
    }
}

/* ---- what is said ---- */

#define SAME_LOSS "the loss of update 7 is 6, and was 6: the batch is that of before"
#define DREW "as the data: what update 7 drew is what it drew before, if it drew anything"
#define WEIGHTS "as the data: other weights would give another loss"
#define STEPPED "the loss of update 8 is 5, and was 5: the first step was that of before"

static void validate_what_goes_on(void **state) {
    (void)state;
    open_logs();
    judge();
    require(TRAJECTORY_DATA, TRAJECTORY_RESTORED, SAME_LOSS);
    require(TRAJECTORY_GENERATORS, TRAJECTORY_RESTORED, DREW);
    require(TRAJECTORY_WEIGHTS, TRAJECTORY_RESTORED, WEIGHTS);
    require(TRAJECTORY_OPTIMIZER, TRAJECTORY_RESTORED, STEPPED ", and so is its gradient norm");
    for (int how = 0; how < 3; how++) { /* the norm of that update, where it is a number */
        open_logs();
        if (how == 0) logs[0].column_count = 2;
        if (how == 1) *value_at(1, NORM, 8) = 9.0;
        if (how == 2) *value_at(0, NORM, 8) = *value_at(1, NORM, 8) = (double)INFINITY;
        judge();
        require(TRAJECTORY_OPTIMIZER, TRAJECTORY_RESTORED, STEPPED);
    }
}

static void validate_what_cannot_be_said(void **state) {
    (void)state;
    for (uint64_t differs = 0; differs < 2; differs++) {
        open_logs();
        out.restart = TRAJECTORY_UNKNOWN;
        out.differs = differs;
        judge();
        require_all(differs == 0
                        ? "all rows agree, and neither log says where the restart was: say "
                          "--restart UPDATE"
                        : "both logs begin at the same update, so none says where the restart "
                          "was: say --restart UPDATE");
    }
    open_logs();
    step[1][0] = 30;
    judge();
    require_all("the first update after the restart has no loss in both");
    open_logs();
    for (size_t i = 0; i < ROWS; i++)
        values[0][LOSS][i] = 6.0; /* it does not change at all */
    judge();
    require_all("too few rows before to know how much a loss changes from row to row");
    open_logs();
    columns[1][LOSS].windowed = 1;
    step[1][5] = 30;
    judge();
    require_all("a row of the loss is a mean over several updates: log every update "
                "(logging_steps 1)");
    open_logs();
    *value_at(1, LOSS, 7) = (double)INFINITY;
    judge();
    require_all("the loss of update 7 is inf, and was 6: one that is not finite tells nothing of "
                "what was restored");
    *value_at(1, TOKENS, 9) = 150.0;
    judge();
    require(TRAJECTORY_DATA, TRAJECTORY_LOST,
            "column num_tokens has 150 at update 9, and had 100: another batch");
}

#define APART                                                                                      \
    "the loss of update 7 is 7, and was 6, 1 times the usual change from row to row: batch, "      \
    "random "                                                                                      \
    "draws or weights are not those of before; "

static void validate_other_losses(void **state) {
    (void)state;
    for (int how = 0; how < 8; how++) {
        open_logs();
        *value_at(1, LOSS, 7) = 7.0;
        if (how == 1) logs[1].column_count = 3; /* no tokens in both */
        if (how == 2) *value_at(1, TOKENS, 7) = 150.0;
        if (how == 3) *value_at(1, TOKENS, 8) = 150.0;
        for (size_t s = 0; s < 2; s++)
            for (size_t i = 0; i < ROWS; i++) {
                if (how == 4) values[s][TOKENS][i] = 100.0; /* equal sizes say nothing then */
                if (how >= 5) values[s][TOKENS][i] = 100.0 * (double)step[s][i];
                if (how == 6 && step[s][i] >= 12) values[s][TOKENS][i] += 1.0;
                if (how == 7 && step[s][i] >= 3) values[s][TOKENS][i] += 1.0;
                if (how >= 5) columns[s][TOKENS].cumulative = 1;
            }
        judge();
        require(TRAJECTORY_WEIGHTS, TRAJECTORY_UNTOLD,
                APART "twinstep readback on the two checkpoints tells");
        require(TRAJECTORY_OPTIMIZER, TRAJECTORY_UNTOLD,
                "its first step is not that of before, whatever it restored");
        if (how == 2) {
            require(TRAJECTORY_DATA, TRAJECTORY_LOST,
                    "column num_tokens has 150 at update 7, and had 101: another batch");
            require(TRAJECTORY_GENERATORS, TRAJECTORY_UNTOLD, "the batch is another one already");
        } else if (how == 0 || how == 3 || how >= 6) {
            require(TRAJECTORY_DATA, TRAJECTORY_RESTORED,
                    "as many tokens in every update after the restart");
            require(TRAJECTORY_GENERATORS, TRAJECTORY_UNTOLD,
                    APART "the batch has as many tokens, so other masks of dropout, or other "
                          "weights");
        } else {
            require(TRAJECTORY_DATA, TRAJECTORY_UNTOLD,
                    APART "a column of tokens, or traces of both, would tell");
            require(TRAJECTORY_GENERATORS, TRAJECTORY_UNTOLD,
                    APART "a column of tokens, or traces of both, would tell");
        }
    }
}

/* Where BEFORE has no row of the update in front, the restart may be some updates before that. */
static void validate_rows_apart(void **state) {
    (void)state;
    for (int how = 0; how < 3; how++) {
        open_logs();
        *value_at(1, LOSS, 7) = 7.0;
        quanta[0][LOSS][5] = -(float)NAN; /* update 6 has no loss */
        if (how > 0) *value_at(1, TOKENS, how == 1 ? 7 : 8) = 150.0;
        judge();
        if (how == 1)
            require(TRAJECTORY_DATA, TRAJECTORY_LOST,
                    "column num_tokens has 150 at update 7, and had 101: another batch");
        for (int p = how == 1 ? TRAJECTORY_GENERATORS : TRAJECTORY_DATA; p <= TRAJECTORY_OPTIMIZER;
             p++)
            require((enum trajectory_part)p, TRAJECTORY_UNTOLD,
                    "the loss of update 7 is another one, and rows stand some updates apart: the "
                    "restart may be some updates before it, and so may what differs; log every "
                    "update (logging_steps 1), or say --restart UPDATE");
    }
}

#define FITS_STEP                                                                                  \
    "another first step fits (moments, their count, masters or a setting), and so do other "       \
    "random draws in update 8; twinstep readback on two checkpoints, or traces of both, would "    \
    "tell"

/* Another loss in the second update alone may come of the first step, and of another batch or other
 * masks of dropout in the second: real resumed trainings of each kind print it. */
static void validate_second_updates(void **state) {
    (void)state;
#define SECOND                                                                                     \
    "the loss of update 8 is 4, and was 5, 1 times the usual change from row to row, behind an "   \
    "update 7 that is that of before: "
    for (int counted = 0; counted < 2; counted++) {
        open_logs();
        for (size_t s = 0; s < 2; s++)
            for (size_t i = 0; i < ROWS && !counted; i++)
                values[s][TOKENS][i] = 100.0; /* equal sizes say nothing */
        *value_at(1, LOSS, 8) = 4.0;
        judge();
        if (counted)
            require(TRAJECTORY_DATA, TRAJECTORY_RESTORED, SAME_LOSS);
        else
            require(TRAJECTORY_DATA, TRAJECTORY_UNTOLD,
                    SECOND "another batch in update 8 fits, and so do other random draws or "
                           "another first step");
        require(TRAJECTORY_WEIGHTS, TRAJECTORY_RESTORED, WEIGHTS);
        require(TRAJECTORY_GENERATORS, TRAJECTORY_UNTOLD,
                counted ? SECOND "other random draws in update 8 fit (dropout), and so does "
                                 "another first step"
                        : SECOND "other random draws in update 8 fit (dropout), and so does "
                                 "another batch or another first step");
        require(TRAJECTORY_OPTIMIZER, TRAJECTORY_UNTOLD,
                counted ? SECOND FITS_STEP
                        : SECOND "another first step fits (moments, their count, masters or a "
                                 "setting), and so do another batch or other random draws in "
                                 "update 8; twinstep readback on two checkpoints, or traces of "
                                 "both, would tell");
    }
}

static void validate_noise(void **state) {
    (void)state;
    for (int noise = 0; noise < 2; noise++) { /* of losses that change by 4 from row to row */
        open_logs();
        for (size_t s = 0; s < 2; s++)
            for (size_t i = 0; i < ROWS; i++)
                values[s][LOSS][i] *= 4.0;
        *value_at(1, LOSS, noise ? 8 : 7) += noise ? 2.0 : 0.25;
        judge();
        if (!noise)
            require(TRAJECTORY_GENERATORS, TRAJECTORY_UNTOLD,
                    "the losses of update 7 are 0.0625 times the usual change apart: noise of "
                    "kernels, or other masks of dropout");
        else
            require(TRAJECTORY_OPTIMIZER, TRAJECTORY_UNTOLD,
                    "the loss of update 8 is 22, and was 20, 0.5 times the usual change from row "
                    "to row, behind an update 7 that is that of before: " FITS_STEP);
        if (noise) continue;
        *value_at(1, LOSS, 7) += 1.75;
        judge();
        assert_non_null(strstr(out.items[TRAJECTORY_WEIGHTS].text, "26, and was 24, 0.5 times"));
    }
    open_logs();
    *value_at(1, LOSS, 7) = 6.0625;
    judge();
    require(TRAJECTORY_DATA, TRAJECTORY_RESTORED,
            "the loss of update 7 is 6.0625, and was 6: the batch is that of before");
    require(TRAJECTORY_GENERATORS, TRAJECTORY_UNTOLD,
            "the losses of update 7 are 0.0625 times the usual change apart: noise of kernels, or "
            "other masks of dropout");
    require(TRAJECTORY_WEIGHTS, TRAJECTORY_UNTOLD,
            "weights that were rounded on the way would show as little: twinstep readback on the "
            "two checkpoints tells");
    require(TRAJECTORY_OPTIMIZER, TRAJECTORY_RESTORED, STEPPED ", and so is its gradient norm");
    *value_at(1, LOSS, 8) = 7.0; /* then masks of dropout may be others there, too */
    judge();
    require(TRAJECTORY_OPTIMIZER, TRAJECTORY_UNTOLD,
            "the loss of update 8 is another one: moments, their count or masters, or other masks "
            "of dropout in update 7");
    open_logs();
    *value_at(1, TOKENS, 10) = 150.0;
    judge();
    require(TRAJECTORY_DATA, TRAJECTORY_LOST,
            "column num_tokens has 150 at update 10, and had 101: another batch");
    require(TRAJECTORY_OPTIMIZER, TRAJECTORY_RESTORED, STEPPED ", and so is its gradient norm");
}

static void validate_optimizers(void **state) {
    (void)state;
    for (int how = 0; how < 8; how++) {
        static const char *const texts[] = {
            "update 8, which would show what the first step did, is not in both",
            "its first step would show in update 8, but for the LR that it was made at",
            "its first step would show in update 8, but for the batch there, which is another one",
            "its first step would show in update 8, but for the batch there, which is another one",
            "the loss of update 8, which would show what the first step did, is nan, and was 5",
            "the losses of update 8 are 0.0625 times the usual change apart: noise of kernels, or "
            "a step that was too small to show in a loss; twinstep readback on two checkpoints "
            "tells",
            "the loss of update 8 is 4, and was 5, 1 times the usual change from row to row, "
            "behind an update 7 that is that of before: " FITS_STEP,
            "its first step would show in update 8, but for the LR that it was made at"};
        open_logs();
        if (how == 0) step[1][1] = 30;
        if (how == 1 || how == 7) *value_at(1, LR, 7) = 3.0;
        if (how == 2 || how == 7) *value_at(1, TOKENS, 8) = 150.0;
        if (how == 3) *value_at(1, TOKENS, 7) = 150.0;
        if (how == 4) *value_at(1, LOSS, 8) = (double)NAN;
        if (how == 5) *value_at(1, LOSS, 8) = 5.0625;
        if (how == 6) *value_at(1, LOSS, 8) = 4.0;
        judge();
        require(TRAJECTORY_OPTIMIZER, TRAJECTORY_UNTOLD, texts[how]);
    }
    open_logs(); /* the LR of the update behind it says nothing of the first step */
    *value_at(1, LR, 8) = 3.0;
    *value_at(1, TOKENS, 9) = 150.0;
    judge();
    require(TRAJECTORY_OPTIMIZER, TRAJECTORY_RESTORED, STEPPED ", and so is its gradient norm");
}

static int close_arena(void **state) {
    (void)state;
    arena_close(&arena);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_pairs),       cmocka_unit_test(corroborate_variation),
        cmocka_unit_test(validate_columns),        cmocka_unit_test(validate_two_that_are_one),
        cmocka_unit_test(validate_what_goes_on),   cmocka_unit_test(validate_what_cannot_be_said),
        cmocka_unit_test(validate_other_losses),   cmocka_unit_test(validate_rows_apart),
        cmocka_unit_test(validate_second_updates), cmocka_unit_test(validate_noise),
        cmocka_unit_test(validate_optimizers),
    };
    return cmocka_run_group_tests(tests, NULL, close_arena);
}

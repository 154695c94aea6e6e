/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What the doctor says of applied LRs beside printed ones: which two are one, what each row counts
 * for, once more for random columns, the thresholds of each answer from both sides, and what the
 * order of the phases says where nothing is printed. Columns and records are made by hand. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "forensics/doctor/doctor_applied.c" /* for the counts, which no other file asks for */
#include "tests/base/helper_draws.h"

enum { ROWS = 12, CASES = 20000, PHASES = 2 };

static struct arena arena;
static struct series_point applied[ROWS], printed[ROWS];
static struct doctor doctor;
static struct doctor_options options;
static struct fit_set set;
static int64_t step[ROWS];
static uint32_t line[ROWS], part[ROWS];
static struct log logged;
static struct log_column group;
static double cells[ROWS];
static float grains[ROWS];

/* An LR that halves from row to row, from 1 on, and is printed as it is applied. */
static double lr_at(size_t i) {
    return ldexp(1.0, -(int)i);
}

static void open_rows(void) {
    arena_close(&arena);
    memset(&doctor, 0, sizeof doctor);
    memset(&logged, 0, sizeof logged);
    for (size_t i = 0; i < ROWS; i++) {
        step[i] = (int64_t)i + 1;
        line[i] = (uint32_t)i + 2;
        part[i] = 0;
        applied[i] = printed[i] =
            (struct series_point){.update = i + 1, .row = i, .value = lr_at(i)};
    }
    logged.rows = ROWS;
    logged.step = step;
    logged.line = line;
    logged.part = part;
    logged.format = "csv";
    set = (struct fit_set){.fits = NULL};
    doctor_options_init(&options);
    doctor.log = &logged;
    doctor.options = &options;
    doctor.fits = &set;
    doctor.arena = &arena;
    doctor.series[LOG_LR_APPLIED] = (struct series){applied, ROWS};
    doctor.series[LOG_LR_LOGGED] = (struct series){printed, ROWS};
}

/* What the check says: the name of the finding, how sure it is, its row, and the first words. */
static const char *answer(void) {
    static char text[512];
    assert_int_equal(applied_as_printed(&doctor), STATUS_OK);
    snprintf(text, sizeof text, "%s", "");
    if (doctor.result == DOCTOR_UNTESTABLE) snprintf(text, sizeof text, "%s", doctor.why);
    for (size_t i = 0; i < doctor.count; i++) {
        const struct doctor_finding *const found = &doctor.findings[i];
        snprintf(text, sizeof text, "%s%s %s %llu: %s", found->remark ? "r " : "", found->id,
                 doctor_confidence_name((enum doctor_confidence)found->confidence),
                 (unsigned long long)found->update, found->words);
    }
    return text;
}

#define SAYS(words)                                                                                \
    do {                                                                                           \
        const char *const got = answer();                                                          \
        if (strcmp(got, words) != 0) fail_msg("line %d: %s", __LINE__, got);                       \
        open_rows();                                                                               \
    } while (0)

static void validate_two_that_are_one(void **state) {
    (void)state;
    static const struct {
        double applied, of_applied, printed, of_printed, peak;
        int unlike;
    } cases[] = {
        {1.0, 0.0, 1.0, 0.0, 0.0, 0},
        {1.0 + 0x1p-23, 0.0, 1.0, 0.0, 0.0, 0}, /* binary32 */
        {1.0 - 0x1p-23, 0.0, 1.0, 0.0, 0.0, 0},
        {1.0 + 0x1.1p-23, 0.0, 1.0, 0.0, 0.0, 1},
        {1.0 - 0x1.1p-23, 0.0, 1.0, 0.0, 0.0, 1},
        {-1.0 - 0x1p-23, 0.0, -1.0, 0.0, 0.0, 0},
        {0x1p-30, 0.0, 0.0, 0.0, 1024.0, 0}, /* what a decay leaves of the peak */
        {0x1.1p-30, 0.0, 0.0, 0.0, 1024.0, 1},
        {0.5, 0.5, 0.0, 0.5, 0.0, 0}, /* half of both printed steps */
        {0.5, 1.0, 0.0, 0.0, 0.0, 0},
        {0.5, 0.0, 0.0, 1.0, 0.0, 0},
        {0.5001, 0.5, 0.0, 0.5, 0.0, 1},
        {(double)NAN, 0.0, 1.0, 0.0, 0.0, 1},
        {1.0, 0.0, (double)NAN, 0.0, 0.0, 1},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct series_point a = {.value = cases[i].applied, .quantum = cases[i].of_applied},
                                  b = {.value = cases[i].printed, .quantum = cases[i].of_printed};
        if (unlike(&a, &b, cases[i].peak) != cases[i].unlike) fail_msg("case %zu", i);
    }
    open_rows();
    const struct series *const series = &doctor.series[LOG_LR_APPLIED];
    assert_null(neighbour(series, 0, -1));
    assert_ptr_equal(neighbour(series, 0, 1), &applied[1]);
    assert_null(neighbour(series, ROWS - 1, 1));
    assert_ptr_equal(neighbour(series, ROWS - 1, -1), &applied[ROWS - 2]);
    assert_ptr_equal(neighbour(series, 5, -1), &applied[4]);
    for (int by = -1; by <= 1; by += 2) {
        struct series_point *const other = &applied[5 + by];
        other->part = 1; /* a resume lies between them */
        assert_null(neighbour(series, 5, by));
        open_rows();
        for (int away = -1; away <= 1; away++) {
            other->update = (uint64_t)(6 + by + away);
            assert_int_equal(neighbour(series, 5, by) != NULL, away == 0);
        }
        open_rows();
    }
}

/* Columns of few values, with rows that either lacks, against a count row by row. */
static void corroborate_counts(void **state) {
    (void)state;
    size_t kept = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        struct draws draws = {.key = UINT64_C(0xa9911ed), .number = number};
        double value[2][ROWS] = {{0}}, peak = 0.0;
        int has[2][ROWS];
        struct series series[2] = {{applied, 0}, {printed, 0}};
        struct held wanted = {.rows = 0};
        open_rows();
        const uint32_t rare = 3 + draws_pick(&draws, 12);
        for (size_t r = 0; r < ROWS; r++) {
            if (draws_pick(&draws, 12) == 0) step[r] += 7; /* an update that stands alone */
            part[r] = r > 0 ? part[r - 1] + (draws_pick(&draws, 12) == 0) : 0;
            for (size_t s = 0; s < 2; s++) {
                has[s][r] = draws_pick(&draws, rare) != 0;
                value[s][r] = 1.0 + draws_pick(&draws, 2);
                if (!has[s][r]) continue;
                if (value[s][r] > peak) peak = value[s][r];
                (s == 0 ? applied : printed)[series[s].count++] = (struct series_point){
                    .update = (uint64_t)step[r], .row = r, .value = value[s][r], .part = part[r]};
            }
        }
        for (size_t s = 0; s < 2; s++)
            for (size_t r = 0, last = ROWS; r < ROWS; r++) {
                if (!has[s][r]) continue;
                if (last < ROWS && value[s][r] != value[s][last])
                    ++*(s == 0 ? &wanted.moves : &wanted.printed_moves);
                last = r;
            }
        for (size_t r = 0; r < ROWS; r++) {
            size_t before = r, after = r + 1;
            if (!has[0][r] || !has[1][r]) continue;
            while (before > 0 && !has[0][before - 1])
                before--;
            while (after < ROWS && !has[0][after])
                after++;
            wanted.rows++;
            const int differs = value[0][r] != value[1][r];
            if (differs && wanted.differ++ == 0) wanted.first = r;
            const int next = after < ROWS && part[after] == part[r] && step[after] == step[r] + 1;
            if (next) ++*(value[0][after] == value[1][r] ? &wanted.next : &wanted.next_not);
            if (before > 0 && part[before - 1] == part[r] && step[before - 1] == step[r] - 1)
                ++*(value[0][before - 1] == value[1][r] ? &wanted.ahead : &wanted.ahead_not);
            if (step[r] == 1 && next && !differs)
                wanted.first_kept = value[0][r] != value[0][after];
        }
        const struct held found = hold(&series[0], &series[1]);
        assert_int_equal(found.rows, wanted.rows);
        assert_int_equal(found.differ, wanted.differ);
        assert_int_equal(found.first, wanted.first);
        assert_int_equal(found.next, wanted.next);
        assert_int_equal(found.next_not, wanted.next_not);
        assert_int_equal(found.ahead, wanted.ahead);
        assert_int_equal(found.ahead_not, wanted.ahead_not);
        assert_int_equal(found.printed_moves, wanted.printed_moves);
        assert_int_equal(found.moves, wanted.moves);
        assert_int_equal(found.first_kept, wanted.first_kept);
        kept += (size_t)found.first_kept;
    }
    assert_true(kept > CASES / 20 && kept < CASES / 2);
    /* The slack is of the larger column, whichever that is. */
    for (int which = 0; which < 2; which++) {
        open_rows();
        (which == 0 ? applied : printed)[0].value = 1024.0;
        applied[11].value = 0x1p-30;
        printed[11].value = 0.0;
        const struct held found =
            hold(&doctor.series[LOG_LR_APPLIED], &doctor.series[LOG_LR_LOGGED]);
        assert_int_equal(found.differ, 1);
    }
}

static void validate_thresholds(void **state) {
    (void)state;
    for (size_t differ = 0; differ < 5; differ++)
        for (size_t with = 0; with < 5; with++)
            for (size_t against = 0; against < 3; against++) {
                const struct held of_next = {.differ = differ, .next = with, .next_not = against};
                const struct held of_last = {.differ = differ, .ahead = with, .ahead_not = against};
                assert_int_equal(is_next(&of_next), differ >= 1 && with >= 1 && against == 0);
                assert_int_equal(is_ahead(&of_last), differ >= 3 && with >= 3 && against == 0);
            }
}

/* Applies in row i what row i + `by` prints, from row `from` up to row `to`. */
static void shift(size_t from, size_t to, int by) {
    for (size_t i = from; i < to; i++)
        applied[i].value = lr_at((size_t)((int)i + by));
}

static void validate_answers(void **state) {
    (void)state;
    open_rows();
    SAYS("");
    doctor.series[LOG_LR_LOGGED].count = 0;
    SAYS("no column lr_logged");
    doctor.series[LOG_LR_LOGGED].count = 1;
    SAYS("fewer than 2 updates have both LRs");
    doctor.series[LOG_LR_LOGGED].count = 2;
    SAYS("");
    static struct doctor_finding writers = {.id = "interleaved_writers"};
    doctor.findings = &writers;
    doctor.count = 1;
    assert_int_equal(applied_as_printed(&doctor), STATUS_OK);
    assert_string_equal(doctor.why, "rows of two runs alternate");
    open_rows();
    for (size_t i = 1; i < ROWS; i++) /* each row prints the next one's */
        printed[i - 1].value = lr_at(i);
    SAYS("r lr_printed_is_next certain 1: Each row prints the LR of the next update, as loops do "
         "that log after scheduler.step(): 11 of 12 updates applied another LR than they print.");
    shift(0, ROWS, 1);
    SAYS("lr_applied_ahead likely 1: Each update applied the LR that the log prints for the next "
         "one: 12 of 12 updates applied another LR than they print.");
    shift(1, ROWS, 1);
    applied[1].value = applied[0].value;
    for (size_t i = 1; i < ROWS; i++) /* each row prints the last one's, and update 1 its own */
        applied[i].value = lr_at(i), printed[i].value = lr_at(i - 1);
    SAYS("lr_applied_ahead possible 2: Each update applied the LR that the log prints for the next "
         "one: 11 of 12 updates applied another LR than they print.");
    for (size_t rows = 2; rows < 5; rows++) { /* three updates that are ahead accuse the loop */
        doctor.series[LOG_LR_APPLIED].count = doctor.series[LOG_LR_LOGGED].count = rows;
        shift(0, rows, 1);
        const char *const got = answer();
        assert_int_equal(strncmp(got, "lr_applied_ahead", 16) == 0, rows == 4);
        assert_int_equal(strncmp(got, "r lr_applied_differs", 20) == 0, rows < 4);
        open_rows();
    }
    for (size_t i = 0; i < ROWS; i++)
        applied[i].value = 3.0;
    SAYS("schedule_not_applied likely 1: The LR that updates applied is 3 throughout, while the "
         "printed one changes 11 times.");
    for (size_t i = 0; i < ROWS; i++) {
        applied[i].value = 3.0;
        printed[i].value = i < 9 ? 1.0 : lr_at(i);
    }
    SAYS("schedule_not_applied likely 1: The LR that updates applied is 3 throughout, while the "
         "printed one changes 3 times.");
    for (size_t i = 0; i < ROWS; i++) {
        applied[i].value = 3.0;
        printed[i].value = i < 10 ? 1.0 : lr_at(i);
    }
    SAYS("r lr_applied_differs certain 1: 12 of 12 updates applied another LR than they print, and "
         "the printed ones are not those of the next or the last update throughout.");
    for (size_t differ = 2; differ < 4; differ++) { /* of three updates, too */
        for (size_t i = 0; i < ROWS; i++) {
            applied[i].value = 3.0;
            printed[i].value = i < differ ? lr_at(i) : i == differ ? 3.0 : (double)NAN;
        }
        doctor.series[LOG_LR_LOGGED].count = differ + 1;
        const char *const got = answer();
        assert_int_equal(strncmp(got, "schedule_not_applied", 20) == 0, differ == 3);
        open_rows();
    }
    for (size_t i = 0; i < ROWS; i++)
        applied[i].value = i == 5 ? 3.5 : 3.0; /* it moves */
    SAYS("r lr_applied_differs certain 1: 12 of 12 updates applied another LR than they print, and "
         "the printed ones are not those of the next or the last update throughout.");
}

/* The printed LR is that of another group. */
static void validate_groups(void **state) {
    (void)state;
    for (int how = 0; how < 9; how++) {
        char text[160];
        open_rows();
        for (size_t i = 0; i < ROWS; i++) {
            applied[i].value = 3.0 + (double)(i % 2);
            cells[i] = lr_at(i) * (how == 3 && i == 6 ? 1.5 : 1.0);
            grains[i] = 0.0F;
            if (how == 1) printed[i].value = lr_at(i + 1); /* one update later */
            /* A row without a value, and one of no number. */
            if ((how == 4 && i > 0) || (how == 7 && i > 1)) grains[i] = NAN;
            if (how == 8 && i == 7) cells[i] = (double)NAN;
        }
        group = (struct log_column){.source = how == 2 ? "lr_applied_2" : "lr_applied[2]",
                                    .name = LOG_OTHER,
                                    .value = cells,
                                    .quantum = grains};
        logged.columns = &group;
        logged.column_count = how == 5 ? 0 : 1;
        if (how == 6) group.source = "lr_applied[";
        snprintf(text, sizeof text, "%.150s", answer());
        const int names = strncmp(text,
                                  "r lr_applied_differs certain 1: The printed LR is not that of "
                                  "the first parameter group; it fits lr_applied[",
                                  107) == 0;
        const int rest = strstr(text, "12 of 12") != NULL || strstr(text, "11 of 12") != NULL;
        if (names != (how < 2 || how == 6 || how == 7) || names == rest)
            fail_msg("%d: %s", how, text);
    }
}

static size_t count_evidence(const char *what) {
    size_t count = 0;
    for (size_t e = 0; e < doctor.findings[0].evidence_count; e++)
        count += strstr(doctor.findings[0].evidence[e], what) != NULL;
    return count;
}

static void validate_evidence(void **state) {
    (void)state;
    open_rows();
    shift(0, ROWS, 1);
    answer();
    assert_int_equal(doctor.findings[0].evidence_count, 4); /* both LRs of two rows */
    assert_int_equal(count_evidence("update 1"), 2);
    assert_int_equal(count_evidence("update 2"), 2);
    open_rows();
    applied[ROWS - 1].value = 7.0; /* behind the last row there is none */
    answer();
    assert_int_equal(doctor.findings[0].evidence_count, 2);
    open_rows();
    for (size_t i = 0; i < ROWS; i++)
        applied[i].value = 3.0;
    answer();
    assert_int_equal(doctor.findings[0].evidence_count, 5); /* and the last printed one */
    assert_int_equal(count_evidence("update 12"), 1);
}

/* ---- where nothing is printed ---- */

static void validate_moves_before_the_step(void **state) {
    (void)state;
    for (uint64_t ahead = 0; ahead < 6; ahead++)
        for (uint64_t placed = ahead; placed < 6; placed++)
            for (size_t rows = 0; rows < 2; rows++) {
                char text[160] = "no column lr_logged";
                open_rows();
                doctor.series[LOG_LR_LOGGED].count = 0;
                doctor.series[LOG_LR_APPLIED].count = rows * ROWS;
                options.ahead = ahead;
                options.placed = placed;
                options.ahead_first = 5;
                if (ahead >= 3 && ahead == placed)
                    snprintf(text, sizeof text,
                             "r schedule_before_step possible %d: The LR was moved before the "
                             "optimizer stepped in %d of %d updates.",
                             rows > 0 ? 5 : 0, (int)ahead, (int)placed);
                assert_string_equal(answer(), text);
                if (doctor.count > 0) assert_int_equal(doctor.findings[0].evidence_count, rows);
            }
    open_rows(); /* with a printed LR it is no matter */
    options.ahead = options.placed = 5;
    SAYS("");
}

static void validate_places_of_phases(void **state) {
    (void)state;
    static const char *const names[PHASES] = {"schedule", "optimize"};
    static struct record records[ROWS];
    static int64_t places[ROWS][PHASES][RECORD_PHASES];
    struct trace_foreign foreign = {.digest = ""};
    struct trace_run run = {.records = records, .updates = ROWS};
    run.plan.phases = names;
    run.plan.shape.phases = PHASES;
    run.plan.foreign = &foreign;
    for (uint32_t number = 0; number < 500; number++) {
        struct draws draws = {.key = UINT64_C(0x91ace), .number = number};
        uint64_t placed = 0, ahead = 0, first = 0;
        for (size_t i = 0; i < ROWS; i++) {
            records[i].step = 10 + i;
            records[i].phase_places = places[i];
            const int64_t schedule = (int64_t)draws_pick(&draws, 4) - 1,
                          optimize = (int64_t)draws_pick(&draws, 4) - 1;
            places[i][0][PHASE_PLACE] = schedule;
            places[i][1][PHASE_PLACE] = optimize;
            if (schedule < 0 || optimize < 0) continue;
            placed++;
            if (schedule <= optimize && ahead++ == 0) first = 10 + i;
        }
        doctor_options_init(&options);
        doctor_options_place(&options, &run);
        assert_int_equal(options.placed, placed);
        assert_int_equal(options.ahead, ahead);
        assert_int_equal(options.ahead_first, first);
    }
    run.plan.foreign = NULL; /* a run of ours has the order of its scenario */
    doctor_options_init(&options);
    doctor_options_place(&options, &run);
    assert_int_equal(options.placed, 0);
}

static int close_arena(void **state) {
    (void)state;
    arena_close(&arena);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_two_that_are_one),
        cmocka_unit_test(corroborate_counts),
        cmocka_unit_test(validate_thresholds),
        cmocka_unit_test(validate_answers),
        cmocka_unit_test(validate_groups),
        cmocka_unit_test(validate_evidence),
        cmocka_unit_test(validate_moves_before_the_step),
        cmocka_unit_test(validate_places_of_phases),
    };
    return cmocka_run_group_tests(tests, NULL, close_arena);
}

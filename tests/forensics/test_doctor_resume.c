/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What the doctor says of resumes: where they are, what repeats, how far an LR jumps, which losses
 * and counters go on, once more for random rows, and each threshold from both sides. Columns are
 * made by hand. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "forensics/doctor/doctor_resume.c" /* for the conditions, which no other file asks for */
#include "tests/base/helper_draws.h"

enum { ROWS = 24, CASES = 5000, MANY = 3 * RESUMES };

static struct arena arena;
static struct series_point points[MANY];
static struct doctor doctor;
static struct doctor_options options;
static struct fit_set set;
static int64_t step[ROWS];
static uint32_t line[ROWS], part[ROWS];
static struct log logged;
static struct log_column column;
static double cells[ROWS];
static float grains[ROWS];

/* Rows of updates 1 to 24, which fall by 1 from 100 on, in a log that says nothing else. */
static void open_rows(void) {
    arena_close(&arena);
    memset(&doctor, 0, sizeof doctor);
    memset(&logged, 0, sizeof logged);
    for (size_t i = 0; i < ROWS; i++) {
        step[i] = (int64_t)i + 1;
        line[i] = (uint32_t)i + 2;
        part[i] = 0;
        grains[i] = 0.0F;
        cells[i] = 100.0 - (double)i;
    }
    for (size_t i = 0; i < MANY; i++)
        points[i] =
            (struct series_point){.update = i + 1, .row = i % ROWS, .value = 100.0 - (double)i};
    column =
        (struct log_column){.name = LOG_LOSS, .source = "loss", .value = cells, .quantum = grains};
    logged.rows = ROWS;
    logged.step = step;
    logged.line = line;
    logged.part = part;
    logged.format = "csv";
    logged.columns = &column;
    logged.column_count = 1;
    set = (struct fit_set){.fits = NULL};
    doctor_options_init(&options);
    doctor.log = &logged;
    doctor.options = &options;
    doctor.fits = &set;
    doctor.arena = &arena;
    doctor.lr = doctor.series[LOG_LR_LOGGED] = doctor.series[LOG_LOSS] =
        (struct series){points, ROWS};
}

/* What a check says: each finding with how sure it is, where, and its words. */
static const char *say(enum status (*check)(struct doctor *doctor)) {
    static char text[8192];
    size_t used = 0;
    doctor.count = 0;
    doctor.result = DOCTOR_QUIET;
    assert_int_equal(check(&doctor), STATUS_OK);
    text[0] = '\0';
    if (doctor.result == DOCTOR_UNTESTABLE)
        used = (size_t)snprintf(text, sizeof text, "%s", doctor.why);
    for (size_t i = 0; i < doctor.count && used < sizeof text - 400; i++) {
        const struct doctor_finding *const found = &doctor.findings[i];
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s%s %s %d, %zu: %s",
                                 i > 0 ? "\n" : "", found->remark ? "r " : "", found->id,
                                 doctor_confidence_name((enum doctor_confidence)found->confidence),
                                 (int)found->update, found->evidence_count, found->words);
    }
    return text;
}

#define SAYS(check, expected)                                                                      \
    do {                                                                                           \
        const char *const got = say(check);                                                        \
        if (strcmp(got, expected) != 0) fail_msg("line %d: %s", __LINE__, got);                    \
        open_rows();                                                                               \
    } while (0)

/* Lets the rows from `at` on be those of update `update` on, with the values of before. */
static void resume(size_t at, uint64_t update) {
    for (size_t i = at; i < ROWS; i++) {
        points[i].update = update + (i - at);
        points[i].value = 100.0 - (double)(points[i].update - 1);
        step[i] = (int64_t)points[i].update;
    }
}

static int resumes(size_t i) {
    return i > 0 &&
           (points[i].part != points[i - 1].part || points[i].update < points[i - 1].update);
}

static void corroborate_rows(void **state) {
    (void)state;
    for (uint32_t number = 0; number < CASES; number++) {
        struct draws draws = {.key = UINT64_C(0x5e5), .number = number};
        open_rows();
        for (size_t i = 0; i < ROWS; i++) {
            const uint64_t before = i > 0 ? points[i - 1].update : 1;
            points[i].update = draws_pick(&draws, 8) == 0 ? 1 + draws_pick(&draws, 12)
                                                          : before + draws_pick(&draws, 3);
            points[i].part = i > 0 ? points[i - 1].part + (draws_pick(&draws, 12) == 0) : 0;
            points[i].value = draws_pick(&draws, 2);
        }
        const struct series *const of = &doctor.lr;
        for (size_t from = 0; from < ROWS; from++) {
            size_t wanted = from;
            while (wanted < ROWS && !resumes(wanted))
                wanted++;
            assert_int_equal(next_resume(of, from), wanted);
            const struct series_point *last = NULL;
            for (size_t j = 0; j < from; j++)
                if (points[j].update == points[from].update) last = &points[j];
            assert_ptr_equal(earlier(of, from), last);
            size_t count = 0; /* as many as stand at the start, and up to the next resume */
            while (from + count < ROWS && count < from &&
                   points[from + count].value == points[count].value &&
                   (count == 0 || !resumes(from + count)))
                count++;
            assert_int_equal(series_replayed(of, from), count);
            if (from == 0) continue;
            double largest = 0.0; /* of the three steps on either side */
            for (size_t i = 1; i < ROWS; i++) {
                const double steps = (double)points[i].update - (double)points[i - 1].update;
                const double change = fabs(points[i].value - points[i - 1].value) / steps;
                const int near = i + 4 >= from && i < from + 4 && i != from;
                if (near && steps > 0.0 && change > largest) largest = change;
            }
            assert_true(usual_change(of, from) == largest);
        }
        /* Rows that repeat what the log has reached by the resume. */
        size_t repeats = 0, first = ROWS, twice = 0;
        uint64_t reached = 0;
        int behind = 1;
        for (size_t i = 1; i < ROWS; i++) {
            if (resumes(i)) reached = points[i - 1].update, behind = 0;
            if (points[i].update > reached) behind = 1;
            if (!behind && repeats++ == 0) first = i;
        }
        for (size_t i = 0; i + 1 < ROWS; i++)
            twice += points[i].update == points[i + 1].update;
        char wanted[512] = "";
        if (repeats > 0)
            snprintf(wanted, sizeof wanted,
                     "r repeated_rows certain %d, 1: %zu rows repeat updates that the log already "
                     "has: %s",
                     (int)step[first], repeats,
                     points[first].update == points[0].update
                         ? "another run in the same file, or this one begun anew."
                         : "a resume from an older checkpoint. The later rows are those that "
                           "count.");
        const char *const got = say(repeated_rows);
        if (strncmp(got, wanted, strlen(wanted)) != 0) fail_msg("case %u: %s", number, got);
        assert_int_equal(strstr(got, "rows_of_several_processes") != NULL, 3 * twice >= ROWS);
    }
}

static void validate_rows_of_processes(void **state) {
    (void)state;
    for (size_t count = 4; count < 13; count++)
        for (size_t twice = 0; 2 * twice <= count; twice++) {
            char wanted[256] = "";
            open_rows();
            doctor.series[LOG_LOSS].count = count;
            for (size_t n = 0; n < count; n++) /* the last ones stand there two times */
                points[n].update = n < count - 2 * twice ? n + 1 : 100 + (n - count % 2) / 2;
            if (twice >= 3 && 3 * twice >= count)
                snprintf(wanted, sizeof wanted,
                         "rows_of_several_processes possible %d, 2: %zu rows have the update of "
                         "the row before: several processes write one file, or each micro-batch "
                         "of an update has a row.",
                         (int)(count - 2 * twice + 1), twice);
            SAYS(repeated_in_a_row, wanted);
        }
}

/* Two rows of one update that are equal in every column are a copy, which two processes seldom
 * write. One number that only one of them has, or another one, makes processes of all of them. */
static void validate_rows_logged_twice(void **state) {
    (void)state;
    for (int other = 0; other < 4; other++) {
        open_rows();
        doctor.series[LOG_LOSS].count = 8;
        for (size_t n = 0; n < 8; n++) {
            points[n].update = 1 + n / 2;
            cells[n] = 100.0 - (double)(n / 2);
        }
        cells[4] = cells[5] = NAN; /* printed, and not missing: its quantum is 0 */
        if (other == 1) cells[7] += 0.5;
        if (other == 2) grains[7] = NAN;
        if (other == 3) cells[5] = 1.0;
        SAYS(repeated_in_a_row,
             other == 0
                 ? "r rows_logged_twice certain 1, 2: 4 updates stand in the log several times "
                   "in a row, each with equal numbers in all columns."
                 : "rows_of_several_processes possible 1, 2: 4 rows have the update of the row "
                   "before: several processes write one file, or each micro-batch of an update "
                   "has a row.");
    }
}

static void validate_jumps(void **state) {
    (void)state;
    open_rows();
    SAYS(lr_at_resume, "no resume in the LR column");
    /* An update that was run twice has one LR. */
    resume(12, 9);
    SAYS(lr_at_resume, "");
    resume(12, 9);
    points[12].value = 92.5;
    SAYS(lr_at_resume, "r lr_jump_at_resume certain 9, 3: The LR jumps at the resume, by a factor "
                       "of 1.005.");
    resume(12, 9);
    for (size_t i = 12; i < ROWS; i++)
        points[i].value -= 32.0; /* more updates than a training skips */
    SAYS(lr_at_resume, "lr_jump_at_resume certain 9, 2: The LR jumps at the resume, by a factor of "
                       "0.6522.");
    /* Where it goes on, four times the usual change, 2 % and the printed steps are no jump. */
    for (int how = 0; how < 6; how++) {
        open_rows();
        for (size_t i = 12; i < ROWS; i++)
            points[i].part = 1;
        const double room = 4.0 * (how == 4 ? 2.0 : 1.0) + 0.02 * points[11].value +
                            (how == 2 || how == 3 ? 0.25 : 0.0) + (how == 5 ? 4.0 : 0.0);
        if (how == 2) points[12].quantum = 0.25;
        if (how == 3) points[11].quantum = 0.25;
        if (how == 4) /* a change of 2 in the neighbourhood */
            for (size_t i = 15; i < ROWS; i++)
                points[i].value -= 1.0;
        if (how == 5) /* two updates later */
            for (size_t i = 12; i < ROWS; i++)
                points[i].update++;
        points[12].value = points[11].value - 0.999 * room;
        points[13].value = points[12].value - 1.0;
        points[14].value = points[13].value - 1.0;
        if (how == 4) points[15].value = points[14].value - 2.0;
        if (how != 4) points[15].value = points[14].value - 1.0;
        assert_null(jumped_from(&doctor.lr, 12));
        for (size_t i = 12; i < 16; i++)
            points[i].value -= 0.002 * room;
        assert_ptr_equal(jumped_from(&doctor.lr, 12), &points[11]);
        for (size_t i = 12; i < 16; i++)
            points[i].value += 2.003 * room;
        assert_int_equal(jumped_from(&doctor.lr, 12) == NULL, 0);
    }
    /* A fall back to an update that the log has no row of counts as one update. */
    open_rows();
    for (size_t i = 0; i < 12; i++)
        points[i].update = 2 * i + 2;
    for (size_t i = 12; i < ROWS; i++)
        points[i].update = 2 * i - 3;
    const double change = usual_change(&doctor.lr, 12);
    assert_true(change == 0.5);
    points[12].value = points[11].value - 0.999 * (2.0 + 0.02 * points[11].value);
    points[13].value = points[12].value - 1.0;
    points[14].value = points[13].value - 1.0;
    points[15].value = points[14].value - 1.0;
    assert_null(jumped_from(&doctor.lr, 12));
    for (size_t i = 12; i < 16; i++)
        points[i].value -= 0.1;
    assert_ptr_equal(jumped_from(&doctor.lr, 12), &points[11]);
}

/* By how many updates a schedule would be behind, up to what is believed of a scaler and to half of
 * the counter. */
static void validate_updates_that_were_held(void **state) {
    (void)state;
    for (uint64_t update = 4; update < 22; update++)
        for (int gap = 0; gap < 12; gap++)
            for (int sign = -1; sign <= 1; sign += 2)
                for (int half = 0; half < 4; half++) { /* of an LR that falls by 1 or 4 */
                    const double slope = half > 1 ? 4.0 : 1.0, apart = gap + 0.5 * (half % 2);
                    open_rows();
                    for (size_t i = 0; i < ROWS; i++)
                        points[i].value *= slope;
                    const uint64_t most = fit_skips_most(ROWS);
                    const struct series_point before = {
                        .update = update, .value = points[12].value + sign * slope * apart};
                    const int up = gap + half % 2;
                    const uint64_t updates = (uint64_t)(up > 0 ? up : 1);
                    const int is = apart <= (double)most && 2 * updates <= update;
                    assert_int_equal(held_updates(&doctor, 12, &before), is ? updates : 0);
                }
    open_rows();
    for (size_t i = 0; i < ROWS; i++)
        points[i].value = 5.0; /* an LR that stands */
    const struct series_point before = {.update = 12, .value = 6.0};
    assert_int_equal(held_updates(&doctor, 12, &before), 0);
}

static void validate_answers_to_jumps(void **state) {
    (void)state;
    open_rows();
    for (size_t i = 12; i < ROWS; i++)
        points[i].part = 1, points[i].value -= 40.0;
    SAYS(lr_at_resume, "lr_jump_at_resume likely 13, 2: The LR jumps at the resume, by a factor of "
                       "0.5393.");
    for (size_t i = 12; i < ROWS; i++)
        points[i].part = 1, points[i].value += 5.5;
    SAYS(lr_at_resume, "");
    for (size_t i = 0; i < ROWS; i++)
        points[i].value -= 80.0; /* 2 % are less here, and 5 updates may have been skipped */
    for (size_t i = 12; i < ROWS; i++)
        points[i].part = 1, points[i].value += 5.9;
    SAYS(lr_at_resume, fit_skips_most(ROWS) >= 5
                           ? "lr_jump_at_resume possible 13, 3: The LR jumps at the resume, by a "
                             "factor of 1.544."
                           : "lr_jump_at_resume likely 13, 2: The LR jumps at the resume, by a "
                             "factor of 1.544.");
    points[11].value = 0.0;
    for (size_t i = 12; i < ROWS; i++)
        points[i].part = 1;
    for (size_t i = 7; i < 12; i++)
        points[i].value = 0.0;
    SAYS(lr_at_resume, "lr_jump_at_resume likely 13, 2: The LR jumps at the resume, by a factor of "
                       "infinity.");
    /* It begins anew: two rows or more are those of the start. */
    for (size_t count = 1; count < 4; count++) {
        open_rows();
        for (size_t i = 12; i < ROWS; i++)
            points[i].part = 1, points[i].value = i < 12 + count ? points[i - 12].value
                                                                 : 100.0 - 0.9 * (double)(i - 12);
        const char *const got = say(lr_at_resume);
        if (count == 1)
            assert_int_equal(strncmp(got, "lr_jump_at_resume", 17), 0);
        else
            assert_string_equal(got, count == 2 ? "scheduler_not_restored likely 13, 4: After the "
                                                  "resume the LR begins anew: 2 rows repeat the "
                                                  "LRs from the start of the log."
                                                : "scheduler_not_restored likely 13, 4: After the "
                                                  "resume the LR begins anew: 3 rows repeat the "
                                                  "LRs from the start of the log.");
    }
    open_rows();
    resume(12, 9);
    for (size_t i = 12; i < ROWS; i++)
        points[i].value = points[i - 12].value;
    SAYS(lr_at_resume, "scheduler_not_restored certain 9, 4: After the resume the LR begins anew: "
                       "12 rows repeat the LRs from the start of the log.");
    for (uint64_t update = 1; update < 3; update++) { /* a run that begins anew is no resume */
        resume(12, update);
        points[12].value = points[13].value = 7.0;
        const char *const got = say(lr_at_resume);
        assert_int_equal(got[0] != '\0', update > 1);
        open_rows();
    }
    /* A schedule that gives every LR gives the jump; of applied LRs it says nothing. */
    static struct fit fits[1];
    static struct fit_segment segments[1];
    for (int applied = 0; applied < 2; applied++) {
        memset(fits, 0, sizeof fits);
        segments[0].scale = 1.0;
        fits[0].segments = segments;
        fits[0].segment_count = 1;
        fits[0].contract = contract_find("hf");
        fits[0].parameters = "";
        set = (struct fit_set){.series = &doctor.lr, .fits = fits, .count = 1};
        if (doctor_plain_fit(&doctor) == NULL) break;
        doctor.lr_applied = applied;
        for (size_t i = 12; i < ROWS; i++)
            points[i].part = 1, points[i].value -= 40.0;
        assert_int_equal(say(lr_at_resume)[0] != '\0', applied);
        open_rows();
    }
    /* Of a log that is out of order 64 resumes are looked at. */
    doctor.lr.count = MANY;
    for (size_t i = 0; i < MANY; i++)
        points[i].part = (uint32_t)i, points[i].update = i > 0 ? 5 : 1;
    say(lr_at_resume);
    assert_int_equal(doctor.count,
                     RESUMES - 1); /* the first of them has no row to be held against */
    open_rows();
}

static void validate_losses(void **state) {
    (void)state;
    open_rows();
    SAYS(data_at_resume, "no update stands on both sides of a resume");
    resume(12, 9);
    SAYS(data_at_resume, "");
    for (int how = 0; how < 3; how++)
        for (int sign = -1; sign <= 1; sign += 2)
            for (int over = 0; over < 2; over++) { /* 2 %, and both printed steps */
                open_rows();
                resume(12, 9);
                if (how == 1) points[12].quantum = 0.5;
                if (how == 2) points[8].quantum = 0.5;
                const double room = 0.02 * points[8].value + (how > 0 ? 0.5 : 0.0);
                points[12].value = points[8].value + sign * room * (over ? 1.001 : 0.999);
                const char *const got = say(data_at_resume);
                assert_string_equal(got, over ? "resume_sees_other_data possible 9, 2: Update 9 "
                                                "was run twice, before and after a resume, with "
                                                "another loss."
                                              : "");
            }
    for (int how = 0; how < 5; how++) { /* what is no number, or a mean, says nothing */
        open_rows();
        resume(12, 9);
        points[12].value = 7.0;
        if (how == 0) points[12].value = (double)NAN;
        if (how == 1) points[8].value = (double)INFINITY;
        if (how == 2) column.windowed = 1;
        if (how == 2 || how == 3) points[13].update = 11;
        if (how == 4) column.windowed = 1;
        const char *const got = say(data_at_resume);
        if (how < 3)
            assert_string_equal(got, "no update stands on both sides of a resume");
        else
            assert_int_equal(strncmp(got, "resume_sees_other_data possible 9", 33), 0);
    }
    open_rows(); /* what stands behind the last row is no row: 5 is no second time there */
    points[ROWS] = (struct series_point){.update = 5, .row = 5, .value = 7.0};
    SAYS(data_at_resume, "no update stands on both sides of a resume");
    resume(ROWS - 2, 9); /* a mean up to the last row */
    column.windowed = 1;
    points[ROWS - 1].update = 11;
    points[ROWS - 2].value = 7.0;
    SAYS(data_at_resume, "no update stands on both sides of a resume");
    resume(10, 1); /* behind a beginning anew there may be a resume */
    resume(16, 5);
    points[16].value = 7.0;
    SAYS(data_at_resume, "resume_sees_other_data possible 5, 2: Update 5 was run twice, before and "
                         "after a resume, with another loss.");
    for (int sign = -1; sign <= 1; sign += 2) /* 2 % of 50 is 1, to the last bit */
        for (int beyond = 0; beyond < 2; beyond++) {
            resume(12, 9);
            points[8].value = 50.0;
            points[12].value = 50.0 + sign * (1.0 + beyond * 0x1p-40);
            SAYS(data_at_resume, beyond ? "resume_sees_other_data possible 9, 2: Update 9 was run "
                                          "twice, before and after a resume, with another loss."
                                        : "");
        }
    for (int which = 0; which < 2; which++) { /* two resumes behind each other: each is looked at */
        open_rows();
        resume(12, 9);
        for (size_t i = 13; i < ROWS; i++) {
            points[i].update = i - 8;
            step[i] = (int64_t)i - 8;
            points[i].value = 100.0 - (double)(points[i].update - 1);
        }
        points[which == 0 ? 12 : 13].value = 7.0;
        assert_string_equal(say(data_at_resume),
                            which == 0
                                ? "resume_sees_other_data possible 9, 2: Update 9 was run twice, "
                                  "before and after a resume, with another loss."
                                : "resume_sees_other_data possible 5, 2: Update 5 was run twice, "
                                  "before and after a resume, with another loss.");
    }
    open_rows();
    resume(ROWS - 1, 9); /* the last row may be a mean, and nothing says so */
    column.windowed = 1;
    points[ROWS - 1].value = 7.0;
    assert_int_equal(strncmp(say(data_at_resume), "resume_sees_other_data", 22), 0);
    open_rows(); /* two resumes, of which the second follows the first at once */
    resume(12, 9);
    resume(13, 8);
    points[13].value = 7.0;
    assert_string_equal(say(data_at_resume),
                        "resume_sees_other_data possible 8, 2: Update 8 was run twice, before and "
                        "after a resume, with another loss.");
    open_rows();
    doctor.series[LOG_LOSS].count = MANY;
    for (size_t i = 0; i < MANY; i++)
        points[i].part = (uint32_t)i, points[i].update = 5, points[i].value = i % 2 ? 1.0 : 9.0;
    points[0].update = 4; /* so the first resume has no row to be held against */
    say(data_at_resume);
    assert_int_equal(doctor.count, RESUMES - 1);
    /* Rows that begin where the log began are another run's, or those of one begun anew. */
    for (uint64_t from = 1; from < 3; from++) {
        open_rows();
        resume(12, from);
        points[12].value = 7.0;
        const char *const got = say(data_at_resume);
        assert_string_equal(got, from == 1 ? "no update stands on both sides of a resume"
                                           : "resume_sees_other_data possible 2, 2: Update 2 was "
                                             "run twice, before and after a resume, with another "
                                             "loss.");
    }
    open_rows();
}

static void corroborate_counters(void **state) {
    (void)state;
    for (uint32_t number = 0; number < CASES; number++) {
        struct draws draws = {.key = UINT64_C(0xc047), .number = number};
        open_rows();
        column.name = draws_pick(&draws, 3) == 0 ? LOG_EPOCH : LOG_TOKENS;
        column.cumulative = draws_pick(&draws, 4) > 0;
        column.source = "seen";
        logged.rows = draws_pick(&draws, 8) == 0 ? draws_pick(&draws, 4) : ROWS;
        logged.step_guessed = draws_pick(&draws, 12) == 0;
        for (size_t i = 0; i < ROWS; i++) {
            step[i] = i > 0 ? step[i - 1] + draws_pick(&draws, 3) : 1;
            if (draws_pick(&draws, 20) == 0) step[i] = 1;
            part[i] = i > 0 ? part[i - 1] + (draws_pick(&draws, 12) == 0) : 0;
            cells[i] = i > 0 ? cells[i - 1] + 1.0 : 10.0;
            if (draws_pick(&draws, 16) == 0) cells[i] -= draws_pick(&draws, 5);
            grains[i] = (float)draws_pick(&draws, 3);
        }
        char wanted[400] = "";
        if (logged.step_guessed)
            snprintf(wanted, sizeof wanted,
                     "the log prints no update numbers: a counter that falls may be a resume");
        else if ((column.name != LOG_EPOCH && !column.cumulative) || logged.rows < 2)
            snprintf(wanted, sizeof wanted, "no running counter, no epoch");
        else
            for (size_t i = 1; i < logged.rows; i++) {
                const double room = 0.5 * ((double)grains[i] + (double)grains[i - 1]);
                if (step[i] <= step[i - 1] || !(cells[i] < cells[i - 1] - room)) continue;
                if (part[i] != part[i - 1])
                    snprintf(wanted, sizeof wanted,
                             "counter_not_restored certain %d, 2: The running counter seen falls "
                             "at the resume although updates go on.",
                             (int)step[i]);
                else
                    snprintf(wanted, sizeof wanted,
                             "counter_falls certain %d, 2: The running counter seen falls between "
                             "update %d and update %d. If the run was resumed there, which the "
                             "update numbers do not show, the counter was not restored; else it "
                             "was set back.",
                             (int)step[i], (int)step[i - 1], (int)step[i]);
                break;
            }
        const char *const got = say(counters);
        if (strcmp(got, wanted) != 0) fail_msg("case %u: %s, expected %s", number, got, wanted);
    }
}

static int close_arena(void **state) {
    (void)state;
    arena_close(&arena);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_rows),
        cmocka_unit_test(validate_rows_of_processes),
        cmocka_unit_test(validate_rows_logged_twice),
        cmocka_unit_test(validate_jumps),
        cmocka_unit_test(validate_updates_that_were_held),
        cmocka_unit_test(validate_answers_to_jumps),
        cmocka_unit_test(validate_losses),
        cmocka_unit_test(corroborate_counters),
    };
    return cmocka_run_group_tests(tests, NULL, close_arena);
}

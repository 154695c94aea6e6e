/* SPDX-License-Identifier: Apache-2.0
 * labels: unit whole
 * A scheduler that is no longer stepped, beside floors, ends and stairs that are none. The columns
 * are computed here from the formulas of transformers/optimization.py and of Megatron's linear
 * decay, with the count of scheduler steps held at one number. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "forensics/doctor/doctor.h"
#include "forensics/fit.h"
#include "tests/base/helper_size.h"
#include "tests/forensics/helper_log.h"

#define PEAK 5e-5
#define PI 3.14159265358979323846

enum shape {
    LINEAR,
    COSINE,
    STAIRS,
    NEXT, /* linear, and a row shows the LR of the next update */
    ROOT  /* inverse_sqrt */
};

/* The default run takes the first CHEAP of them: where nothing fits, a search takes long. */
#define CHEAP 7
static const struct column {
    const char *name;
    enum shape shape;
    int rows, every, warmup, total; /* every: updates per row */
    int stops;                      /* the scheduler's last step; 0: it goes on */
    double floor;                   /* of the schedule itself, as a share of the peak */
    double told_floor;              /* --min-lr-ratio; 0: nobody says it */
    int run;                        /* the total that the log says; 0: none */
    int print;
    /* What is expected: the update at which it stops, or 0; what the doctor says, or NULL. */
    int found;
    const char *confidence;
    double held;        /* the loop sets lr = max(lr, held) behind the warm-up; 0: it does not */
    const char *format; /* of the log; NULL: none that speaks for a framework */
} columns[] = {
    {"linear", LINEAR, 500, 1, 20, 500, 262, 0, 0, 500, PRINT_EXACT, 264, "likely", 0, NULL},
    /* For 13 updates, as many as a scaler skips: but at a skip the LR is one of the schedule. */
    {"held at its end", LINEAR, 300, 1, 30, 300, 0, 0, 0, 300, PRINT_EXACT, 288, "held", 2.5e-6,
     "hf-trainer-state"},
    {"held from below", LINEAR, 400, 1, 20, 400, 0, 0, 0, 400, PRINT_EXACT, 348, "held", 7e-6,
     "hf-trainer-state"},
    /* 0.05 of the peak, which step 476 of the schedule has: a line to that floor prints it, too. */
    {"held at a step", LINEAR, 500, 1, 20, 500, 0, 0, 0, 500, PRINT_EXACT, 478, "remark", 2.5e-6,
     "hf-trainer-state"},
    /* The rows in front give the log's own last update for the total, which nobody said; those of a
     * log that ends sooner, or few of three digits, do not. */
    {"cosine without a total", COSINE, 500, 1, 0, 500, 262, 0, 0, 0, PRINT_E6, 264, "likely", 0,
     NULL},
    {"cosine that ends sooner", COSINE, 450, 1, 0, 500, 262, 0, 0, 0, PRINT_E6, 264, "possible", 0,
     NULL},
    {"cosine in three digits", COSINE, 500, 1, 0, 500, 50, 0, 0, 0, PRINT_E2, 52, "possible", 0,
     NULL},
    {"the floor is said", LINEAR, 500, 1, 20, 262, 0, 0.4958333333333333, 0.4958333333333333, 0,
     PRINT_EXACT, 0, NULL, 0, NULL},
    /* Other bugs explain the whole column, with a floor that nobody chose. */
    {"a break explains it", LINEAR, 100, 10, 30, 1000, 503, 0, 0, 1000, PRINT_EXACT, 510, "likely",
     0, NULL},
    {"a stride explains it", LINEAR, 100, 10, 0, 1000, 500, 0, 0, 1000, PRINT_EXACT, 510,
     "possible", 0, NULL},
    {"a cosine's floor", COSINE, 500, 1, 20, 300, 0, 0.1, 0, 0, PRINT_EXACT, 0, NULL, 0, NULL},
    {"at its end", LINEAR, 500, 1, 20, 400, 0, 0, 0, 0, PRINT_EXACT, 0, NULL, 0, NULL},
    {"it goes on", LINEAR, 500, 1, 20, 500, 0, 0, 0, 500, PRINT_EXACT, 0, NULL, 0, NULL},
    /* One step further than 0.05 of the peak, at which a loop may hold the LR as well. */
    {"as many as a scaler skips", LINEAR, 500, 1, 20, 500, 477, 0, 0, 500, PRINT_EXACT, 0, NULL, 0,
     NULL},
    /* polynomial of transformers, whose lr_end no row shows. */
    {"on the way to lr_end", LINEAR, 400, 1, 20, 400, 205, 0.02, 0, 400, PRINT_EXACT, 207, "likely",
     0, "hf-trainer-state"},
    {"at an LR of two digits", LINEAR, 400, 1, 0, 400, 340, 0, 0, 400, PRINT_EXACT, 342, "remark",
     0, NULL},
    {"at a third", LINEAR, 300, 1, 0, 300, 200, 0, 0, 300, PRINT_EXACT, 202, "remark", 0, NULL},
    {"cosine", COSINE, 500, 1, 20, 500, 262, 0, 0, 500, PRINT_EXACT, 264, "likely", 0, NULL},
    /* A contract of another framework prints it with a floor, and excuses nothing. */
    {"of the next LR", NEXT, 500, 1, 20, 500, 250, 0, 0, 500, PRINT_EXACT, 251, "likely", 0,
     "hf-trainer-state"},
    {"a cosine held from below", COSINE, 400, 1, 20, 400, 0, 0, 0, 400, PRINT_EXACT, 309, "held",
     7e-6, NULL},
    {"a cosine on the way to its floor", COSINE, 500, 1, 20, 500, 233, 0.04, 0, 500, PRINT_E6, 235,
     "likely", 0, NULL},
    /* The same where nobody says the total either: the run's own, and an lr_end that is typed. */
    {"on the way to lr_end of the run", LINEAR, 400, 1, 20, 400, 205, 0.02, 0, 0, PRINT_EXACT, 207,
     "possible", 0, NULL},
    {"without a total", LINEAR, 500, 1, 20, 500, 262, 0, 0, 0, PRINT_EXACT, 264, "possible", 0,
     NULL},
    {"three digits", LINEAR, 500, 1, 0, 500, 262, 0, 0, 0, PRINT_E2, 264, "possible", 0, NULL},
    {"between two rows", LINEAR, 50, 10, 20, 500, 262, 0, 0, 500, PRINT_EXACT, 270, "likely", 0,
     NULL},
    {"at a round share", COSINE, 500, 1, 0, 500, 250, 0, 0, 500, PRINT_EXACT, 252, "possible", 0,
     NULL},
    {"stairs of 40 updates", STAIRS, 500, 1, 0, 500, 0, 0, 0, 500, PRINT_EXACT, 0, NULL, 0, NULL}};

static double lr_of(const struct column *c, int update) {
    double step = update - 1 + (c->shape == NEXT);
    if (c->stops > 0) step = fmin(step, c->stops);
    if (c->shape == STAIRS) step = 40.0 * floor(step / 40.0);
    if (step < c->warmup) return PEAK * (step / c->warmup);
    if (c->shape == ROOT) return PEAK * sqrt(c->warmup / step);
    const double progress = fmin((step - c->warmup) / (c->total - c->warmup), 1.0);
    const double share = c->shape == COSINE ? 0.5 * (1.0 + cos(PI * progress)) : 1.0 - progress;
    return fmax(PEAK * (share * (1.0 - c->floor) + c->floor), c->held);
}

static struct log *log_of(const struct column *c, struct arena *arena) {
    struct log *log = helper_log(arena, (size_t)c->rows);
    log->max_steps = (uint64_t)c->run;
    if (c->format != NULL) log->format = c->format;
    for (int row = 0; row < c->rows; row++) {
        const int update = (row + 1) * c->every;
        log->step[row] = update;
        helper_put(arena, log, LOG_LR_LOGGED, (size_t)row, lr_of(c, update), c->print);
        helper_put(arena, log, LOG_LOSS, (size_t)row, 3.0 / (1.0 + 0.01 * update), 4);
    }
    return log;
}

static const char *said_by_doctor(const struct log *log, const struct fit_set *set,
                                  struct arena *arena) {
    struct doctor_options options;
    struct doctor_report report;
    doctor_options_init(&options);
    assert_int_equal(doctor_examine(log, &options, set, arena, &report), STATUS_OK);
    for (size_t i = 0; i < report.finding_count + report.remark_count; i++)
        if (strcmp(report.findings[i].id, "lr_held_from_below") == 0) return "held";
    for (size_t i = 0; i < report.finding_count + report.remark_count; i++)
        if (strcmp(report.findings[i].id, "schedule_stands_still") == 0) {
            if (i < report.finding_count)
                return doctor_confidence_name(
                    (enum doctor_confidence)report.findings[i].confidence);
            assert_int_equal(report.findings[i].confidence, DOCTOR_POSSIBLE);
            return "remark";
        }
    return NULL;
}

static void ask(const struct column *c, size_t skipped_row, struct fit_stop *out,
                const char **doctor) {
    struct arena arena = ARENA_EMPTY;
    struct log *log = log_of(c, &arena);
    struct fit_known known;
    struct fit_set set;
    struct series series;
    if (skipped_row > 0)
        for (size_t row = 0; row < log->rows; row++)
            helper_put(&arena, log, LOG_GRAD_NORM, row,
                       row < skipped_row ? 1.0 + 0.01 * (double)row : (double)NAN, PRINT_EXACT);
    fit_known_init(&known);
    assert_int_equal(fit_known_from_log(&known, log, &arena), STATUS_OK);
    if (c->told_floor > 0.0) known.request.min_lr_ratio = c->told_floor;
    assert_int_equal(series_of(log, log_column_of(log, LOG_LR_LOGGED), &arena, &series), STATUS_OK);
    assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
    assert_int_equal(fit_find_stop(&series, &known, &set, &arena, out), STATUS_OK);
    /* One number behind the break is no evidence of another peak. */
    for (size_t i = 0; c->held > 0.0 && i < set.count; i++)
        for (size_t s = 1; s < set.fits[i].segment_count; s++)
            if (set.fits[i].segments[s].scale != 1.0) fail_msg("%s: %s", c->name, set.fits[i].text);
    const uint64_t update = out->fit != NULL ? series.points[out->point].update : 0;
    if (skipped_row == 0 && update != (uint64_t)c->found)
        fail_msg("%s: stops at %llu, expected %d", c->name, (unsigned long long)update, c->found);
    if (out->fit != NULL && !out->open &&
        (out->fit->lr != PEAK || out->fit->steps != (uint64_t)c->total ||
         out->of_known_total != (c->run == c->total)))
        fail_msg("%s: in front it is %s", c->name, out->fit->text);
    *doctor = c->told_floor > 0.0 ? NULL : said_by_doctor(log, &set, &arena);
    arena_close(&arena);
}

static void validate_every_column(void **state) {
    (void)state;
    for (size_t i = 0; i < helper_size(1, CHEAP, COUNT_OF(columns)); i++) {
        const struct column *c = &columns[i];
        struct fit_stop stop;
        const char *doctor;
        ask(c, 0, &stop, &doctor);
        if ((doctor == NULL) != (c->confidence == NULL) ||
            (doctor != NULL && strcmp(doctor, c->confidence) != 0))
            fail_msg("%s: the doctor says %s", c->name, doctor != NULL ? doctor : "nothing");
    }
}

/* Where the norms say that every update behind row 263 was skipped, a scaler held the schedule. */
static void validate_updates_that_were_skipped(void **state) {
    (void)state;
    struct fit_stop stop;
    const char *doctor;
    ask(&columns[0], 263, &stop, &doctor);
    assert_null(stop.fit);
    assert_null(doctor);
}

/* A line whose total is not the run's, or whose floor nobody typed: no reading in front of the rows
 * that stand can be told from the line to the LR at which they stand. Where that LR, or the floor,
 * is one that somebody typed, or said, it is believed. */
static void validate_lines_that_stand_at_an_odd_floor(void **state) {
    (void)state;
    static const struct {
        struct column column;
        int open;
    } cases[] = {
        {{"a total of 470", LINEAR, 400, 1, 20, 470, 205, 0.02, 0, 0, PRINT_EXACT, 207, "remark", 0,
          NULL},
         1},
        {{"a total of 611", LINEAR, 500, 1, 0, 611, 255, 0.05, 0, 0, PRINT_EXACT, 257, "remark", 0,
          NULL},
         1},
        {{"a floor of 0.137", LINEAR, 400, 1, 20, 270, 0, 0.137, 0, 0, PRINT_EXACT, 272, "remark",
          0, NULL},
         1},
        {{"a floor of 0.137 that is said", LINEAR, 400, 1, 20, 270, 0, 0.137, 0.137, 0, PRINT_EXACT,
          0, NULL, 0, NULL},
         0},
        {{"a floor of 0.14", LINEAR, 400, 1, 20, 270, 0, 0.14, 0, 0, PRINT_EXACT, 0, NULL, 0, NULL},
         0},
        {{"a cosine to 0.137", COSINE, 400, 1, 20, 270, 0, 0.137, 0, 0, PRINT_EXACT, 0, NULL, 0,
          NULL},
         0}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct column *const c = &cases[i].column;
        struct fit_stop stop;
        const char *doctor;
        ask(c, 0, &stop, &doctor);
        if ((stop.fit != NULL && stop.open) != cases[i].open) fail_msg("%s", c->name);
        if ((doctor == NULL) != (c->confidence == NULL) ||
            (doctor != NULL && strcmp(doctor, c->confidence) != 0))
            fail_msg("%s: the doctor says %s", c->name, doctor != NULL ? doctor : "nothing");
    }
}

static const struct column *column_named(const char *name) {
    size_t i = 0;
    while (strcmp(columns[i].name, name) != 0)
        i++;
    return &columns[i];
}

/* What is said of the first rows, where nothing explains all of them, has the floor of that fit. */
static void verify_partial_names_its_floor(void **state) {
    (void)state;
    static const struct column column = {"stops", COSINE, 300,         1, 20,   300, 200, 0.1,
                                         0,       300,    PRINT_EXACT, 0, NULL, 0,   NULL};
    struct arena arena = ARENA_EMPTY;
    const struct log *log = log_of(&column, &arena);
    struct fit_known known;
    struct fit_set set;
    struct series series;
    fit_known_init(&known);
    assert_int_equal(fit_known_from_log(&known, log, &arena), STATUS_OK);
    assert_int_equal(series_of(log, log_column_of(log, LOG_LR_LOGGED), &arena, &series), STATUS_OK);
    assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
    assert_int_equal(set.count, 0);
    assert_non_null(set.partial);
    if (strstr(set.partial, "total 300, floor 0.1 of the peak") == NULL)
        fail_msg("%s", set.partial);
    arena_close(&arena);
}

/* Nothing says a total, and a counter at another pace explains all rows by a floor that nobody
 * chose. What stands in front of the rows at which the LR stands explains them by fewer numbers. */
static void validate_names_without_a_total(void **state) {
    (void)state;
    static const struct {
        struct column column;
        int verdict;
        const char *bug, *words;
    } cases[] = {
        {{.rows = 30, .shape = ROOT, .every = 10, .warmup = 10, .stops = 101, .print = PRINT_EXACT},
         FIT_FAIL,
         "schedule_stands_still or xP_scheduler or per_microbatch_stepping",
         "in front of update 110 it fits hf inverse_sqrt, peak 5e-05, warm-up 10"},
        {{.rows = 60,
          .shape = LINEAR,
          .every = 5,
          .warmup = 10,
          .total = 300,
          .held = 6.25e-6,
          .print = PRINT_EXACT},
         FIT_UNDECIDED,
         NULL,
         "from there on the LR is held from below at 6.25e-06"}};
    for (size_t i = 0; i < helper_size(1, 1, COUNT_OF(cases)); i++) {
        struct arena arena = ARENA_EMPTY;
        const struct log *log = log_of(&cases[i].column, &arena);
        struct fit_known known;
        struct fit_check check;
        struct series series;
        fit_known_init(&known);
        assert_int_equal(fit_known_from_log(&known, log, &arena), STATUS_OK);
        known.request.contract = contract_find("hf");
        assert_int_equal(series_of(log, log_column_of(log, LOG_LR_LOGGED), &arena, &series),
                         STATUS_OK);
        assert_int_equal(fit_check(&series, &known, 0, &arena, &check), STATUS_OK);
        if (check.verdict != cases[i].verdict || strstr(check.words, cases[i].words) == NULL ||
            (check.bug == NULL) != (cases[i].bug == NULL) ||
            (check.bug != NULL && strcmp(check.bug, cases[i].bug) != 0))
            fail_msg("%zu: verdict %d, %s, %s", i, check.verdict,
                     check.bug != NULL ? check.bug : "-", check.words);
        arena_close(&arena);
    }
}

/* A loop that holds its LR from above while the schedule passes by, or from below from its first
 * update on. The rows that are not held tell peak, warm-up and total; where two are held, where a
 * row between them is off, or where the schedule does not lie beyond the LR at which they stand,
 * nothing is said. */
static void validate_an_lr_that_is_held_on_its_way(void **state) {
    (void)state;
    enum { LOWEST, HIGHEST, TWO, OFF, WITHIN };
    static const struct {
        enum shape shape;
        int every, how;
        double level; /* share of the peak */
    } rows[] = {{COSINE, 1, HIGHEST, 0.75}, {COSINE, 1, LOWEST, 0.125}, {LINEAR, 1, TWO, 0.996},
                {COSINE, 1, OFF, 0.75},     {COSINE, 1, WITHIN, 0.75},  {LINEAR, 5, LOWEST, 0.125},
                {COSINE, 5, HIGHEST, 0.75}, {LINEAR, 1, LOWEST, 0.125}};
    for (size_t i = 0; i < helper_size(1, 5, COUNT_OF(rows)); i++) {
        const struct column free = {.rows = 400 / rows[i].every,
                                    .shape = rows[i].shape,
                                    .every = rows[i].every,
                                    .warmup = 40,
                                    .total = 400,
                                    .print = PRINT_EXACT};
        const double level = PEAK * rows[i].level;
        struct arena arena = ARENA_EMPTY;
        struct fit_set none = {.count = 0};
        struct fit_known known;
        struct fit_clamp clamp;
        struct log *log = log_of(&free, &arena);
        struct series series;
        size_t held = 0;
        for (size_t row = 0; row < log->rows; row++) {
            const double value = lr_of(&free, (int)log->step[row]);
            const int holds = rows[i].how == LOWEST ? value < level : value > level;
            double now = holds ? level : value;
            if (rows[i].how == OFF && row == 100) now = 0.9 * level;
            if (rows[i].how == WITHIN && !holds && row > 200) now = 0.999 * value;
            held += (size_t)(now == level);
            helper_put(&arena, log, LOG_LR_LOGGED, row, now, PRINT_EXACT);
        }
        fit_known_init(&known);
        assert_int_equal(series_of(log, log_column_of(log, LOG_LR_LOGGED), &arena, &series),
                         STATUS_OK);
        none.series = &series;
        assert_int_equal(fit_find_clamp(&series, &known, &none, &arena, &clamp), STATUS_OK);
        if ((clamp.fit != NULL) != (rows[i].how <= HIGHEST))
            fail_msg("%zu: %zu held, %s", i, held, clamp.fit != NULL ? clamp.fit->text : "-");
        if (clamp.fit == NULL) {
            assert_true(rows[i].how != TWO || held < 4);
            arena_close(&arena);
            continue;
        }
        if (clamp.fit->lr != PEAK || clamp.fit->warmup != 40.0 || clamp.fit->steps != 400 ||
            clamp.level != level || clamp.above != (rows[i].how == HIGHEST) || clamp.rows != held)
            fail_msg("%zu: %zu rows at %g, %s", i, clamp.rows, clamp.level, clamp.fit->text);
        /* What a fit explains is not held. */
        none.count = 1;
        assert_int_equal(fit_find_clamp(&series, &known, &none, &arena, &clamp), STATUS_OK);
        assert_null(clamp.fit);
        arena_close(&arena);
    }
}

/* What a check says: that the LR stands still, and no pass on a floor that nobody gave. */
static void validate_checks(void **state) {
    (void)state;
    static const struct {
        const char *column, *contract;
        double floor;
        int verdict;
        const char *bug, *words;
    } cases[] = {
        {"linear", "hf", 0, FIT_FAIL, "schedule_stands_still or schedule_too_short",
         "in front of update 264 it fits hf linear, peak 5e-05, warm-up 20, total 500"},
        {"without a total", "nemo-rl-megatron", 0, FIT_UNDECIDED, NULL,
         "every printed LR agrees with"},
        {"the floor is said", "nemo-rl-megatron", 0.4958333333333333, FIT_PASS, NULL,
         "every printed LR is"},
        {"cosine", "hf", 0, FIT_UNDECIDED, NULL, "in front of update 264 it fits hf cosine"},
        {"held from below", "hf", 0, FIT_UNDECIDED, NULL,
         "from there on the LR is held from below at 7e-06"},
        {"held at a step", "hf", 0, FIT_UNDECIDED, NULL, "every printed LR agrees with hf"},
        {"at a third", "hf", 0, FIT_UNDECIDED, NULL, "in front of update 202 it fits"}};
    for (size_t i = 0; i < helper_size(1, 3, COUNT_OF(cases)); i++) {
        struct arena arena = ARENA_EMPTY;
        const struct log *log = log_of(column_named(cases[i].column), &arena);
        struct fit_known known;
        struct fit_check check;
        struct series series;
        fit_known_init(&known);
        assert_int_equal(fit_known_from_log(&known, log, &arena), STATUS_OK);
        known.request.contract = contract_find(cases[i].contract);
        if (cases[i].floor > 0.0) known.request.min_lr_ratio = cases[i].floor;
        assert_int_equal(series_of(log, log_column_of(log, LOG_LR_LOGGED), &arena, &series),
                         STATUS_OK);
        assert_int_equal(fit_check(&series, &known, 0, &arena, &check), STATUS_OK);
        if (check.verdict != cases[i].verdict || strstr(check.words, cases[i].words) == NULL ||
            (check.bug == NULL) != (cases[i].bug == NULL) ||
            (check.bug != NULL && strcmp(check.bug, cases[i].bug) != 0))
            fail_msg("%zu: verdict %d, %s, %s; %s", i, check.verdict,
                     check.bug != NULL ? check.bug : "-", check.words,
                     check.needs != NULL ? check.needs : "-");
        arena_close(&arena);
    }
}

/* get_polynomial_decay_schedule_with_warmup to an lr_end that no row reaches: of a run that was
 * stopped early, and of one that began anew in the middle. The line to the last LR of a stretch
 * prints it, too, and is no schedule that was made too short. */
/* A plateau and a line of `decay` updates to 0 (WSD), rows of every fifth update: the last row is
 * held from below at a twentieth of the peak, or the last two at a tenth, or the last one shows
 * four updates that were skipped, whose LR is no number that somebody typed. */
static void validate_skips_of_a_last_lr_alone(void **state) {
    (void)state;
    static const struct {
        int decay, percent; /* of the peak, at which the loop holds its LR */
    } rows[] = {{100, 5}, {60, 0}, {100, 10}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct series_point points[100];
        struct series series = {points, COUNT_OF(points)};
        struct arena arena = ARENA_EMPTY;
        struct fit_known known;
        struct fit_set set;
        for (size_t p = 0; p < COUNT_OF(points); p++) {
            const int k = 5 * (int)(p + 1), s = k - (rows[i].percent == 0 && k == 500 ? 5 : 1);
            const double left = (500 - s) / (double)rows[i].decay;
            const double share = s < 15 ? s / 15.0 : left < 1.0 ? left : 1.0;
            points[p] = (struct series_point){.update = (uint64_t)k,
                                              .row = p,
                                              .value = PEAK * fmax(share, rows[i].percent * 0.01)};
        }
        fit_known_init(&known);
        assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
        assert_true(set.count > 0 && set.fits[0].skip_count > 0);
        assert_int_equal(fit_skips_to_a_floor(&set.fits[0], &known, &series), rows[i].percent > 0);
        struct fit_check check;
        known.request.contract = contract_find("hf");
        assert_int_equal(fit_check(&series, &known, 0, &arena, &check), STATUS_OK);
        /* Any LR of the last row would show some number of skipped updates. */
        assert_int_equal(check.verdict, FIT_UNDECIDED);
        assert_int_equal(strstr(check.needs, "the last row is all that shows") != NULL,
                         rows[i].percent == 0);
        known.skips.shown = 1;
        assert_int_equal(fit_skips_to_a_floor(&set.fits[0], &known, &series), 0);
        arena_close(&arena);
    }
}

/* max(step, 1) / warmup: the counter of the loop begins at 1, and its column is that of a log of
 * the next LR in which update 2 was skipped. Where the log names a framework, none of its schedules
 * does that; where update 3 was skipped, no such loop prints it. */
static void validate_a_skip_of_update_2(void **state) {
    (void)state;
    static const char *const eras[] = {"hf", "hf-4.50", NULL};
    for (int skipped = 2; skipped <= 3; skipped++) {
        struct series_point points[200];
        struct series series = {points, COUNT_OF(points)};
        struct arena arena = ARENA_EMPTY;
        struct fit_known known;
        struct fit_set set;
        for (size_t p = 0; p < COUNT_OF(points); p++) {
            const int k = (int)p + 1, s = k >= skipped ? k - 1 : k;
            points[p] =
                (struct series_point){.update = (uint64_t)k,
                                      .row = p,
                                      .value = PEAK * (s < 20 ? s / 20.0 : (201 - s) / 181.0)};
        }
        fit_known_init(&known);
        known.request.steps = 201;
        assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
        assert_true(set.count > 0);
        assert_int_equal(fit_skipped(&set.fits[0]), 1);
        assert_int_equal(set.fits[0].skips[0].last, skipped);
        assert_int_equal(fit_skips_second_alone(&set.fits[0], &known, &series), skipped == 2);
        known.possible = eras;
        assert_false(fit_skips_second_alone(&set.fits[0], &known, &series));
        known.possible = NULL;
        known.skips.shown = 1;
        assert_false(fit_skips_second_alone(&set.fits[0], &known, &series));
        known.skips.shown = 0;
        known.request.skipped_count = 1; /* somebody says which updates were skipped */
        assert_false(fit_skips_second_alone(&set.fits[0], &known, &series));
        known.request.skipped_count = 0;
        struct fit used = set.fits[0]; /* as if the log had the LR that was used */
        used.contract = contract_find("hf");
        assert_false(fit_skips_second_alone(&used, &known, &series));
        series.points++; /* a log that begins at update 2 does not show the first LR */
        series.count--;
        assert_false(fit_skips_second_alone(&set.fits[0], &known, &series));
        arena_close(&arena);
    }
}

static void validate_lines_that_end_on_their_way(void **state) {
    (void)state;
    const double end = 3.3e-6, warmup = 20.0, total = 777.0;
    static const struct {
        /* Rows of the log, updates per row, and the update behind which it begins anew. */
        int rows, every, restart;
        const char *finding;
        int says; /* the total that the log says; 0: none */
    } logs[] = {{529, 1, 0, NULL, 777},
                {70, 10, 477, "scheduler_not_restored", 777},
                {529, 1, 0, NULL, 0},
                {700, 1, 477, "scheduler_not_restored", 777}};
    for (size_t i = 0; i < helper_size(1, 3, COUNT_OF(logs)); i++) {
        struct arena arena = ARENA_EMPTY;
        struct log *log = helper_log(&arena, (size_t)logs[i].rows);
        struct doctor_options options;
        struct doctor_report report;
        struct fit_known known;
        struct fit_check check;
        struct fit_set set;
        struct series series;
        log->format = "hf-trainer-state";
        log->max_steps = (uint64_t)logs[i].says;
        for (int row = 0; row < logs[i].rows; row++) {
            const int update = (row + 1) * logs[i].every;
            const int began = logs[i].restart > 0 && update > logs[i].restart ? logs[i].restart : 0;
            const double step = update - 1 - began;
            helper_put(&arena, log, LOG_LR_LOGGED, (size_t)row,
                       step < warmup
                           ? PEAK * step / warmup
                           : (PEAK - end) * (1.0 - (step - warmup) / (total - warmup)) + end,
                       PRINT_EXACT);
            helper_put(&arena, log, LOG_LOSS, (size_t)row, 3.0 / (1.0 + 0.01 * row), 4);
            log->step[row] = update;
        }
        fit_known_init(&known);
        assert_int_equal(fit_known_from_log(&known, log, &arena), STATUS_OK);
        assert_int_equal(series_of(log, log_column_of(log, LOG_LR_LOGGED), &arena, &series),
                         STATUS_OK);
        assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
        assert_true(set.count > 0);
        doctor_options_init(&options);
        assert_int_equal(doctor_examine(log, &options, &set, &arena, &report), STATUS_OK);
        assert_int_equal(report.finding_count, logs[i].finding != NULL);
        if (logs[i].finding != NULL)
            assert_string_equal(report.findings[0].id, logs[i].finding);
        else if (logs[i].says == 0)
            assert_true(fit_ends_on_its_way(&set.fits[0], set.last));
        else /* with the total the line tells the floor */
            assert_true(set.fits[0].steps == 777 &&
                        fabs(set.fits[0].floor_ratio * set.fits[0].lr - end) < 1e-15);
        known.request.contract = contract_find("hf");
        assert_int_equal(fit_check(&series, &known, 0, &arena, &check), STATUS_OK);
        assert_int_equal(check.verdict, logs[i].finding != NULL ? FIT_FAIL
                                        : logs[i].says > 0      ? FIT_PASS
                                                                : FIT_UNDECIDED);
        if (logs[i].finding == NULL)
            assert_null(check.bug);
        else
            assert_string_equal(check.bug, logs[i].finding);
        arena_close(&arena);
    }
}

/* Decays behind a plateau of whose floor the last row alone tells, or more than that. Each update
 * of the first takes 1e-7 off, so every LR of it is one that somebody may have typed, and a log
 * that was cut off there tells nothing of a floor. Megatron's formula of WSD, of f(k - 1) or f(k).
 */
static void validate_floors_that_the_last_row_alone_shows(void **state) {
    (void)state;
    static const struct {
        const char *contract;
        double peak, floor; /* the floor as an LR */
        int rows, plateau, decay;
        int says; /* 1: the floor says nothing */
    } logs[] = {{"nemo-rl-megatron", 6e-6, 0.0, 600, 543, 60, 1},
                /* A share of the peak, which the run's last update comes to. */
                {"megatron", 1e-5, 1e-6, 600, 510, 90, 0},
                /* The same, one update behind the end of the schedule. */
                {"nemo-rl-megatron", 1e-5, 1e-6, 601, 510, 90, 1},
                /* It stands there. */
                {"nemo-rl-megatron", 1e-5, 1e-6, 602, 510, 90, 0},
                /* No LR in front of it is typed. */
                {"nemo-rl-megatron", 6e-6, 4e-7, 601, 527, 73, 0},
                /* The run's last update is one step above it. */
                {"nemo-rl-megatron", 1e-5, 1e-6, 600, 510, 90, 0},
                /* VeOmni's floor of 1e-7 lies far behind the last row. */
                {"veomni", 1e-5, 0.0, 80, 20, 100, 0}};
    for (size_t i = 0; i < COUNT_OF(logs); i++) {
        enum { ROWS = 602 };
        struct series_point points[ROWS];
        const struct series series = {points, (size_t)logs[i].rows};
        struct arena arena = ARENA_EMPTY;
        struct fit_known known;
        struct fit_check check;
        struct fit_set set;
        fit_known_init(&known);
        known.request.contract = contract_find(logs[i].contract);
        for (int row = 0; row < logs[i].rows; row++) {
            const double step = row + (known.request.contract->logged == CONTRACT_LOGGED_NEXT);
            const double left = 1.0 - (step - logs[i].plateau) / logs[i].decay;
            points[row] = (struct series_point){.update = (uint64_t)row + 1, .row = (size_t)row};
            points[row].value = step < 20.0 ? logs[i].peak * step / 20.0
                                            : logs[i].floor + (logs[i].peak - logs[i].floor) *
                                                                  fmax(fmin(left, 1.0), 0.0);
        }
        assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
        assert_true(set.count > 0);
        if (fit_ends_at_a_step(&set.fits[0], &series) != logs[i].says)
            fail_msg("%zu: %s", i, set.fits[0].text);
        assert_int_equal(fit_check(&series, &known, 0, &arena, &check), STATUS_OK);
        if (check.verdict != (logs[i].says ? FIT_UNDECIDED : FIT_PASS))
            fail_msg("%zu: %d, %s; %s", i, check.verdict, check.words, check.needs);
        arena_close(&arena);
    }
}

/* A row of a training that does well at this LR. */
static void put_row(struct arena *arena, struct log *log, size_t row, double lr) {
    helper_put(arena, log, LOG_LR_LOGGED, row, lr, PRINT_EXACT);
    helper_put(arena, log, LOG_LOSS, row, 3.0 / (1.0 + 0.01 * (double)row), 4);
    helper_put(arena, log, LOG_GRAD_NORM, row, 1.0 + 0.01 * (double)row, 6);
}

/* What lr fit says of the log under the contracts of the Hugging Face Trainer. */
static void explain(struct log *log, struct arena *arena, struct fit_known *known,
                    struct series *series, struct fit_set *set) {
    static const char *const eras[] = {"hf", "hf-4.50", "hf-4.51", NULL};
    log->format = "hf-trainer-state";
    fit_known_init(known);
    assert_int_equal(fit_known_from_log(known, log, arena), STATUS_OK);
    known->possible = eras;
    assert_int_equal(series_of(log, log_column_of(log, LOG_LR_LOGGED), arena, series), STATUS_OK);
    assert_int_equal(fit_series(series, known, arena, set), STATUS_OK);
}

/* A line whose last two rows stand at a twentieth of the peak. Behind a plateau, with the log's own
 * total, the line would come to 0, so a loop holds the LR there or a schedule of another framework
 * is two updates short: neither is claimed. A polynomial to that share whose total is two updates
 * short has no other reading, and keeps its name. */
static void validate_last_rows_of_a_line(void **state) {
    (void)state;
    for (int short_total = 0; short_total < 2; short_total++) {
        enum { ROWS = 200 };
        const double peak = 6e-6, least = 0.05 * peak;
        struct doctor_options options;
        struct doctor_report report;
        struct arena arena = ARENA_EMPTY;
        struct log *log = helper_log(&arena, ROWS);
        struct fit_known known;
        struct fit_check check;
        struct fit_set set;
        struct series series;
        log->max_steps = ROWS;
        for (int row = 0; row < ROWS; row++) {
            const double left = short_total ? 1.0 - (row - 10) / 188.0 : 1.0 - (row - 160) / 40.0;
            const double lr = short_total ? (peak - least) * fmax(left, 0.0) + least
                                          : peak * fmin(1.0, fmax(left, 0.05));
            put_row(&arena, log, (size_t)row, row < 10 ? peak * row / 10.0 : lr);
        }
        explain(log, &arena, &known, &series, &set);
        doctor_options_init(&options);
        assert_int_equal(doctor_examine(log, &options, &set, &arena, &report), STATUS_OK);
        assert_int_equal(report.finding_count, 1);
        known.request.contract = contract_find("hf");
        assert_int_equal(fit_check(&series, &known, 1, &arena, &check), STATUS_OK);
        if (short_total) {
            assert_string_equal(report.findings[0].id, "floor_vs_ceil_steps");
            assert_int_equal(check.verdict, FIT_FAIL);
            assert_string_equal(check.bug, "floor_vs_ceil_steps");
        } else {
            assert_string_equal(report.findings[0].id, "schedule_stands_still");
            assert_int_equal(report.findings[0].confidence, DOCTOR_POSSIBLE);
            assert_int_equal(check.verdict, FIT_UNDECIDED);
            assert_null(check.bug);
        }
        arena_close(&arena);
    }
}

/* Numbers 17, 20 and 25 of seed 3307, and 16 of 3308, of tests/bench/altered_logs.py. A line that
 * was cut off on its way to a floor of a tenth is also one to a hundredth with a larger total, and
 * one to 1e-6 at the log's last update is also one to 0, until somebody says the total. A scheduler
 * that was not stepped once on its plateau decays one update late, as one with a larger total does;
 * one that is two updates short has no other reading. And max(lr, floor) from the first update on
 * holds update 1 and ends a line early: none of these is a wrong total. */
static void validate_totals_that_are_no_bugs(void **state) {
    (void)state;
    enum { CUT, CUT_AND_SAID, ENDS, HELD, SHORT, FROM_BELOW, CASES };
    for (int c = 0; c < CASES; c++) {
        const int rows = c <= CUT_AND_SAID ? 284 : c == ENDS ? 300 : c == FROM_BELOW ? 200 : 500;
        struct doctor_options options;
        struct doctor_report report;
        struct arena arena = ARENA_EMPTY;
        struct log *log = helper_log(&arena, (size_t)rows);
        struct fit_known known;
        struct fit_check check;
        struct fit_set set;
        struct series series;
        log->max_steps = c == CUT || c == ENDS ? 0 : c == CUT_AND_SAID ? 400 : (uint64_t)rows;
        for (int row = 0; row < rows; row++) {
            double lr;
            if (c <= CUT_AND_SAID)
                lr = 9e-6 * (1.0 - row / 400.0) + 1e-6;
            else if (c == ENDS)
                lr = row < 50 ? 6e-6 * row / 50.0 : 5e-6 * (1.0 - (row - 50) / 250.0) + 1e-6;
            else if (c == FROM_BELOW)
                lr = fmax(1.5e-4 * (row < 20 ? row / 20.0 : (200.0 - row) / 180.0), 0.05 * 1.5e-4);
            else {
                const double counter = c == SHORT ? row + 2.0 : row - (row > 149);
                lr = 1e-5 * fmin(row / 50.0, fmin(1.0, fmax(0.0, 1.0 - (counter - 450) / 50.0)));
            }
            put_row(&arena, log, (size_t)row, lr);
        }
        explain(log, &arena, &known, &series, &set);
        assert_true(set.count > 0);
        const struct fit *const fit = &set.fits[0];
        if ((fit->bug != NULL) != (c == SHORT)) fail_msg("%d: %s [%s]", c, fit->text, fit->bug);
        assert_int_equal(fit_plateau_is_long(fit, &known, set.last), c == HELD);
        assert_int_equal(fit_floor_is_far(fit, set.last), c <= ENDS);
        doctor_options_init(&options);
        assert_int_equal(doctor_examine(log, &options, &set, &arena, &report), STATUS_OK);
        assert_int_equal(report.finding_count, c == SHORT);
        int held = 0;
        for (size_t i = 0; i < report.remark_count; i++)
            held |= strcmp(report.findings[report.finding_count + i].id, "schedule_held") == 0;
        assert_int_equal(held, c == HELD);
        known.request.contract = contract_find("hf");
        assert_int_equal(fit_check(&series, &known, 1, &arena, &check), STATUS_OK);
        if (c == CUT || c == ENDS) assert_int_equal(check.verdict, FIT_UNDECIDED);
        if (c == CUT_AND_SAID) assert_int_equal(check.verdict, FIT_PASS);
        if (c >= HELD) assert_int_equal(check.bug != NULL, c == SHORT);
        arena_close(&arena);
    }
}

/* A scheduler that is stepped once per two updates behind an even start, and one that stopped at
 * update 19 of a warm-up of 30: a pass would rest on skipped updates at one distance, or on a peak
 * that nobody would type and that the rows reached. */
static void validate_passes_that_numbers_would_rest_on(void **state) {
    (void)state;
    for (int stops = 1; stops >= 0; stops--) {
        enum { ROWS = 120 };
        struct series_point points[ROWS];
        const struct series series = {points, ROWS};
        struct arena arena = ARENA_EMPTY;
        struct fit_known known;
        struct fit_check check;
        for (size_t i = 0; i < ROWS; i++) {
            const double step = stops ? fmin((double)i + 1.0, 19.0) : floor((double)i / 2.0);
            points[i] = (struct series_point){.update = i + 1, .row = i};
            points[i].value = 1e-5 * fmin(step / (stops ? 30.0 : 6.0), 1.0);
            if (!stops) continue;
            points[i].quantum = 1e-12;
            points[i].value = 1e-12 * rint(points[i].value / 1e-12);
        }
        fit_known_init(&known);
        known.request.contract = contract_find(stops ? "megatron" : "hf");
        assert_int_equal(fit_check(&series, &known, 0, &arena, &check), STATUS_OK);
        if (check.verdict != FIT_UNDECIDED || check.expected == NULL)
            fail_msg("%d: verdict %d, %s", stops, check.verdict, check.words);
        if (stops)
            assert_true(check.expected->reached == 0.0 && check.expected->warmup == 19.0);
        else
            assert_int_equal(check.expected->skip_count, 6);
        arena_close(&arena);
    }
}

/* A cosine whose scheduler moved twice per update: of 200 rows the last hundred rise again, and
 * with a total of 100 that nobody gave every LR is printed. With the total of the run it is no
 * pass. */
static void validate_a_total_behind_which_the_lr_rises(void **state) {
    (void)state;
    for (int given = 0; given < 2; given++) {
        enum { ROWS = 200 };
        struct series_point points[ROWS];
        const struct series series = {points, ROWS};
        struct arena arena = ARENA_EMPTY;
        struct fit_known known;
        struct fit_check check;
        for (size_t i = 0; i < ROWS; i++) {
            const double at = ((double)i + 1.0 - 10.0) / 90.0;
            points[i] = (struct series_point){.update = i + 1, .row = i};
            points[i].value = at < 0.0
                                  ? 2e-4 * (at * 90.0 + 10.0) / 10.0
                                  : 2e-4 * fmax(0.5 * (1.0 + cos(3.14159265358979312 * at)), 0);
            points[i].quantum = 1e-12;
            points[i].value = 1e-12 * rint(points[i].value / 1e-12);
        }
        fit_known_init(&known);
        known.request.contract = contract_find("hf");
        if (given) known.request.steps = ROWS;
        assert_int_equal(fit_check(&series, &known, 0, &arena, &check), STATUS_OK);
        if (given) {
            assert_int_equal(check.verdict, FIT_FAIL);
        } else {
            assert_int_equal(check.verdict, FIT_UNDECIDED);
            assert_int_equal(check.expected->steps, ROWS / 2);
            assert_non_null(strstr(check.needs, "--steps of the training: the log goes on behind "
                                                "update 100"));
        }
        arena_close(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_a_total_behind_which_the_lr_rises),
        cmocka_unit_test(validate_every_column),
        cmocka_unit_test(validate_updates_that_were_skipped),
        cmocka_unit_test(validate_lines_that_stand_at_an_odd_floor),
        cmocka_unit_test(verify_partial_names_its_floor),
        cmocka_unit_test(validate_checks),
        cmocka_unit_test(validate_names_without_a_total),
        cmocka_unit_test(validate_an_lr_that_is_held_on_its_way),
        cmocka_unit_test(validate_skips_of_a_last_lr_alone),
        cmocka_unit_test(validate_a_skip_of_update_2),
        cmocka_unit_test(validate_lines_that_end_on_their_way),
        cmocka_unit_test(validate_last_rows_of_a_line),
        cmocka_unit_test(validate_totals_that_are_no_bugs),
        cmocka_unit_test(validate_floors_that_the_last_row_alone_shows),
        cmocka_unit_test(validate_passes_that_numbers_would_rest_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

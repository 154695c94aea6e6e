/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The search for the numbers of one model, over every function that a contract can be and over
 * windows of its column: whole, sparse, cut off, begun late, printed in few digits, with a peak or
 * a warm-up that is known, skipped updates, and numbers taken from elsewhere. What the column was
 * made with must be found where all of it is shown.
 *
 * tests/golden/forensics/fit_windows.txt holds, for each model and window, how many solutions there
 * are, how many evaluations they cost, and one number made of all members of all of them (FNV-1a):
 * a search that tries more, less or in another order is seen though it finds the same. With
 * TWINSTEP_SHOW=MODEL the solutions of that line are printed. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/real.h"
#include "forensics/fit_search.h"
#include "tests/base/helper_draws.h"
#include "tests/forensics/helper_golden.h"
#include "tests/forensics/helper_lr.h"

#define PEAK 3e-4
#define WARMUP 27.0
#define TOTAL 180.0
enum { MODELS = 512, ROWS = 240, BUDGET = 40000 };

/* Which rows of the column are logged, how, and what is known of the numbers. */
struct cut {
    const char *name;
    uint64_t first, every, last;
    int print;
    int64_t shift;
    int knows_total, knows_lr, knows_warmup, knows_epoch, deep, typed, no_scan, whole;
    int turn;
    uint32_t lag;
    double stride; /* 0: only 1 is tried */
    double floor;  /* share of the peak; 0: the schedule's own */
    int knows_ratio, knows_floor;
};

static const struct cut cuts[] = {
    {.name = "whole", .first = 1, .every = 1, .last = 180, .knows_total = 1, .whole = 1},
    {.name = "no total", .first = 1, .every = 3, .last = 180, .whole = 1},
    {.name = "cut", .first = 1, .every = 1, .last = 97, .whole = 1},
    {.name = "sparse", .first = 10, .every = 10, .last = 180, .knows_total = 1, .whole = 1},
    {.name = "apart", .first = 40, .every = 40, .last = 160, .knows_total = 1, .whole = 1},
    {.name = "late",
     .first = 60,
     .every = 2,
     .last = 150,
     .print = LR_E5,
     .knows_total = 1,
     .knows_lr = 1,
     .whole = 1},
    {.name = "e2",
     .first = 2,
     .every = 2,
     .last = 180,
     .print = LR_E2,
     .knows_total = 1,
     .knows_warmup = 1,
     .whole = 1},
    {.name = "f32", .first = 5, .every = 5, .last = 150, .print = LR_F32, .deep = 1},
    {.name = "skips", .first = 1, .every = 2, .last = 180, .knows_total = 1, .lag = 2, .whole = 1},
    {.name = "typed", .first = 1, .every = 4, .last = 120, .typed = 1, .no_scan = 1, .whole = 1},
    {.name = "moved", .first = 3, .every = 1, .last = 60, .shift = 2, .knows_total = 1},
    {.name = "seeds", .first = 1, .every = 4, .last = 180, .turn = FIT_TURN_SEEDS},
    {.name = "listed", .first = 1, .every = 4, .last = 180, .turn = FIT_TURN_LISTED},
    {.name = "past", .first = 2, .every = 2, .last = 230, .floor = 0.05, .whole = 1},
    {.name = "floor",
     .first = 1,
     .every = 3,
     .last = 180,
     .floor = 0.1,
     .knows_total = 1,
     .knows_floor = 1,
     .whole = 1},
    {.name = "ratio",
     .first = 7,
     .every = 7,
     .last = 140,
     .floor = 0.2,
     .knows_ratio = 1,
     .knows_total = 1,
     .whole = 1},
    {.name = "rise", .first = 1, .every = 1, .last = 25, .knows_total = 1, .whole = 1},
    {.name = "falls", .first = 150, .every = 1, .last = 180, .deep = 1, .whole = 1},
    {.name = "twice", .first = 1, .every = 4, .last = 90, .knows_total = 1, .stride = 2.0},
};

static struct fit_numbers numbers_of(const struct fit_model *model, const struct cut *cut) {
    return (struct fit_numbers){
        .lr = PEAK,
        .warmup = model->needs_warmup ? WARMUP : 0.0,
        .total = TOTAL,
        .floor = model->floor == NULL ? 0.0
                 : cut->floor > 0.0   ? cut->floor
                                      : model->floor_default,
        .absolute = model->floor_kind == FIT_FLOOR_ABSOLUTE && !(cut->floor > 0.0),
        .stride = 1.0,
        .epoch = model->contract->unit == CONTRACT_UNIT_EPOCH ? 9 : 0,
    };
}

struct asked {
    struct series_point points[ROWS];
    struct fit_window window;
    struct fit_solutions solutions;
    double strides[2];
    size_t count, budget, suspect;
    uint64_t walk;
};

static void ask(struct fit_model *model, const struct cut *cut, struct asked *asked) {
    struct fit_numbers numbers = numbers_of(model, cut);
    struct fit_window *const window = &asked->window;
    memset(asked, 0, sizeof *asked);
    if (cut->stride > 0.0) numbers.stride = cut->stride;
    fit_model_set(model, &numbers);
    for (uint64_t k = cut->first; k <= cut->last; k += cut->every, asked->count++) {
        asked->points[asked->count] = (struct series_point){.update = k, .row = asked->count};
        lr_print_point(&asked->points[asked->count], fit_model_logged(model, k, cut->shift),
                       cut->print);
    }
    asked->budget = BUDGET;
    asked->walk = 20000;
    asked->strides[0] = 1.0;
    asked->strides[1] = cut->stride;
    if (cut->knows_total) window->known_total[window->known_totals++] = (uint64_t)TOTAL;
    window->said_totals = window->known_totals;
    window->known_total[window->known_totals++] = cut->last;
    window->known_lr = cut->knows_lr ? PEAK : real_nan_f64();
    window->known_warmup = cut->knows_warmup ? WARMUP : real_nan_f64();
    window->known_ratio = cut->knows_ratio ? WARMUP / TOTAL : real_nan_f64();
    window->known_floor = cut->knows_floor ? cut->floor : real_nan_f64();
    window->strides = asked->strides;
    window->stride_count = cut->stride > 0.0 ? 2 : 1;
    window->budget = &asked->budget;
    window->walk = &asked->walk;
    window->suspect = &asked->suspect;
    window->deep = cut->deep;
    window->typed_floors = cut->typed;
    window->only_floor = real_nan_f64();
    window->no_scan = cut->no_scan;
    window->whole = cut->whole;
    window->turn = cut->turn;
    window->shift = cut->shift;
    window->lag = cut->lag;
    window->seeds[0] = numbers;
    window->seeds[1] = numbers;
    window->seeds[1].warmup += 1.0;
    window->seeds[1].total -= 1.0;
    window->seed_count = cut->turn != FIT_TURN_FULL ? 2 : 0;
    fit_window_open(window, asked->points, asked->count);
    fit_solve(model, window, &asked->solutions);
}

/* Tells whether the numbers that made the column are among the solutions. */
static int finds(const struct fit_model *model, const struct fit_solutions *solutions) {
    const struct fit_numbers made = numbers_of(model, &cuts[0]);
    for (size_t i = 0; i < solutions->count; i++) {
        const struct fit_numbers *const n = &solutions->at[i].numbers;
        if (fabs(n->lr - made.lr) <= 1e-9 * made.lr && n->warmup == made.warmup &&
            (n->total == made.total || !model->needs_total) && n->stride == made.stride)
            return 1;
    }
    return 0;
}

static void write(FILE *out, const char *name, const struct cut *cut, const struct asked *asked) {
    const char *const shown = getenv("TWINSTEP_SHOW");
    uint64_t hash = DRAWS_HASH;
    for (size_t i = 0; i < asked->solutions.count; i++) {
        const struct fit_solution *const s = &asked->solutions.at[i];
        const double members[] = {s->numbers.lr,
                                  s->numbers.warmup,
                                  s->numbers.total,
                                  s->numbers.floor,
                                  s->numbers.stride,
                                  (double)s->numbers.epoch,
                                  (double)s->numbers.absolute,
                                  (double)s->shift,
                                  s->max_error,
                                  s->rms_error};
        for (size_t m = 0; m < COUNT_OF(members); m++) {
            const uint64_t bits = real_bits_f64(members[m]);
            hash = draws_hash(hash, &bits, sizeof bits);
        }
        if (shown != NULL && strcmp(shown, name) == 0)
            print_message("%s: L %.9g W %g T %g floor %g stride %g\n", cut->name, members[0],
                          members[1], members[2], members[3], members[4]);
    }
    fprintf(out, "  %s: %zu, %zu", cut->name, asked->solutions.count, BUDGET - asked->budget);
    if (asked->walk != 20000) fprintf(out, " and %llu", 20000 - (unsigned long long)asked->walk);
    fprintf(out, ", %08x\n", (unsigned)(hash ^ hash >> 32));
}

/* Returns the models that are one function each, with lengths in whole updates. */
static size_t functions(struct arena *arena, struct fit_known *known, struct fit_model *out) {
    static const struct fit_decays decays = {.text = {"40"}, .count = 1};
    struct fit_model *models;
    size_t count, taken = 0;
    fit_known_init(known);
    assert_int_equal(fit_models(&known->request, known, &decays, arena, &models, &count),
                     STATUS_OK);
    for (size_t m = 0; m < count; m++) {
        size_t same = 0;
        while (same < taken && out[same].function != models[m].function)
            same++;
        if (same < taken || models[m].plan.schedule->feedback) continue;
        assert_true(taken < MODELS);
        models[m].is_elder = 0; /* as if it were asked for by name: without a floor, too */
        out[taken++] = models[m];
    }
    return taken;
}

static void validate_every_function(void **state) {
    (void)state;
    static struct fit_model models[MODELS];
    static struct asked asked;
    struct arena arena = ARENA_EMPTY;
    struct fit_known known;
    const size_t count = functions(&arena, &known, models);
    size_t missed = 0;
    for (size_t m = 0; m < count; m++) {
        char name[160];
        snprintf(name, sizeof name, "%s %s %s", models[m].contract->name, models[m].schedule_name,
                 models[m].parameters);
        FILE *out = golden_begin("fit_windows.txt", "%s", name);
        for (size_t c = 0; c < COUNT_OF(cuts); c++) {
            ask(&models[m], &cuts[c], &asked);
            write(out, name, &cuts[c], &asked);
            const int shows = models[m].contract->unit != CONTRACT_UNIT_EPOCH ||
                              asked.window.epoch > 0; /* a column without stairs shows no epoch */
            if (c == 0 && shows && !finds(&models[m], &asked.solutions)) {
                print_message("%s: %s\n", name, cuts[c].name);
                missed++;
            }
        }
        golden_end();
    }
    assert_int_equal(missed, 0);
    arena_close(&arena);
}

/* Zeros at either end of a number are no digits of it, and 0 has none. */
static void validate_how_many_digits(void **state) {
    (void)state;
    static const struct {
        double x;
        int digits;
    } cases[] = {{0.0, 0},    {1.0, 1},     {-1.0, 1},      {10.0, 1},    {1000.0, 1}, {0.1, 1},
                 {2.5e-5, 2}, {-2.5e-5, 2}, {1.05, 3},      {105.0, 3},   {1050.0, 3}, {0.00105, 3},
                 {1e-300, 1}, {1e22, 1},    {1.2345e-7, 5}, {100.001, 6}, {0.5, 1},    {30.0, 1}};
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        if (fit_digits(cases[i].x) != cases[i].digits)
            fail_msg("%g: %d", cases[i].x, fit_digits(cases[i].x));
}

/* Decimals of 1 to 15 digits have as many, and a number that none of them is has those that printf
 * needs for it to read back as itself. */
static void verify_how_many_digits(void **state) {
    (void)state;
    struct draws draws = {.key = 61};
    for (int i = 0; i < 300000; i++) {
        char text[64];
        const int count = 1 + i % 15;
        uint64_t whole = 0;
        for (int d = 0; d < count; d++)
            whole = 10 * whole + 1 + draws_pick(&draws, 9) - (d > 0 && d + 1 < count);
        snprintf(text, sizeof text, "%llue%d", (unsigned long long)whole,
                 (int)draws_pick(&draws, 40) - 35);
        if (fit_digits(strtod(text, NULL)) != count)
            fail_msg("%s: %d", text, fit_digits(strtod(text, NULL)));
        const double beside = nextafter(strtod(text, NULL), i % 2 == 0 ? 0.0 : 1e300);
        int needed = 16;
        snprintf(text, sizeof text, "%.15e", beside);
        if (strtod(text, NULL) != beside) needed = 17;
        if (fit_digits(beside) != needed)
            fail_msg("%.17g: %d digits and not %d", beside, fit_digits(beside), needed);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_every_function),
        cmocka_unit_test(validate_how_many_digits),
        cmocka_unit_test(verify_how_many_digits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Corners of the search of fits that a change of one token once passed unseen
 * (docs/measurements/mutation.md). The columns are computed here from the formulas of
 * transformers/optimization.py, and what must be found is what they were computed with. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/macro.h"
#include "base/real.h"
#include "forensics/fit.h"
#include "forensics/fit_search.h"
#include "tests/forensics/helper_log.h"

static void put(struct series_point *points, size_t i, uint64_t update, double value) {
    points[i] = (struct series_point){.update = update, .row = i, .value = value};
}

/* get_polynomial_decay_schedule_with_warmup with power 1: from L to lr_end, and lr_end from then
 * on. Only the first row depends on L, and two updates were skipped before it. The row that gives
 * the peak stands at lr_end whatever L is, so the peak of four digits must be the one that is
 * known. */
static void validate_a_known_peak_where_no_row_tells_it(void **state) {
    (void)state;
    const double peak = 1.2345e-4, end = 1e-7, total = 60.0;
    struct arena arena = ARENA_EMPTY;
    struct series_point points[4];
    struct fit_known known;
    struct fit_set set;
    put(points, 0, 50, (peak - end) * (1.0 - 47.0 / total) + end);
    for (size_t i = 1; i < COUNT_OF(points); i++)
        put(points, i, 50 * (i + 1), end);
    const struct series series = {points, COUNT_OF(points)};
    fit_known_init(&known);
    known.request.contract = contract_find("hf");
    known.request.schedule = "polynomial";
    known.request.lr = peak;
    known.request.warmup = 0.0;
    known.request.steps = 60;
    assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
    assert_true(set.count > 0);
    const struct fit *fit = &set.fits[0];
    assert_true(fit->lr == peak);
    assert_int_equal(fit->skip_count, 1);
    assert_int_equal(fit->skips[0].first, 1);
    assert_int_equal(fit->skips[0].last, 49);
    assert_int_equal(fit->skips[0].count, 2);
    arena_close(&arena);
}

/* Power 2 of the same schedule, whose total nobody says: cut off, run to its end, rows far apart,
 * and as the next LR is printed. A scan of totals with the floors that configurations have came to
 * few of these. */
static void validate_a_polynomial_of_power_2_without_a_total(void **state) {
    (void)state;
    static const struct {
        double peak, end;
        int warmup, total, rows, every, next;
    } logs[] = {{2e-4, 1e-8, 10, 200, 139, 1, 0},   {1e-4, 1e-8, 20, 1234, 1136, 1, 0},
                {2e-5, 3e-8, 20, 300, 24, 10, 0},   {1.5e-4, 1e-8, 20, 777, 155, 5, 1},
                {2e-4, 1e-6, 20, 1234, 1234, 1, 0}, {1e-4, 1e-6, 0, 600, 356, 1, 1}};
    for (size_t l = 0; l < COUNT_OF(logs); l++) {
        static struct series_point points[1234];
        const struct series series = {points, (size_t)logs[l].rows};
        struct arena arena = ARENA_EMPTY;
        struct fit_known known;
        struct fit_set set;
        for (int i = 0; i < logs[l].rows; i++) {
            const int update = (i + 1) * logs[l].every, step = update - 1 + logs[l].next;
            const double left =
                1.0 - (double)(step - logs[l].warmup) / (logs[l].total - logs[l].warmup);
            put(points, (size_t)i, (uint64_t)update,
                step < logs[l].warmup ? logs[l].peak * ((double)step / logs[l].warmup)
                                      : (logs[l].peak - logs[l].end) * (left * left) + logs[l].end);
        }
        fit_known_init(&known);
        assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
        if (set.count == 0 || set.fits[0].lr != logs[l].peak ||
            set.fits[0].warmup != logs[l].warmup || set.fits[0].steps != (uint64_t)logs[l].total ||
            !fit_near(set.fits[0].floor_ratio, logs[l].end / logs[l].peak))
            fail_msg("%zu: %s", l, set.count > 0 ? set.fits[0].text : "nothing");
        arena_close(&arena);
    }
}

/* A peak of 1, as Adadelta has it, of a constant rate behind a warm-up of 20 updates, of which
 * update 8 was skipped: 1 is a peak like any other. */
static void validate_a_peak_of_one_beside_a_skip(void **state) {
    (void)state;
    struct series_point points[60];
    const struct series series = {points, COUNT_OF(points)};
    struct arena arena = ARENA_EMPTY;
    struct fit_known known;
    struct fit_set set;
    for (size_t i = 0; i < COUNT_OF(points); i++)
        put(points, i, i + 1, fmin((double)i - (i + 1 > 8), 20.0) / 20.0);
    fit_known_init(&known);
    known.request.contract = contract_find("hf");
    assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
    if (set.count == 0 || set.fits[0].lr != 1.0 || fit_skipped(&set.fits[0]) != 1 ||
        set.fits[0].warmup != 20.0)
        fail_msg("%s", set.count > 0 ? set.fits[0].text : "nothing");
    arena_close(&arena);
}

/* A line over 950 updates, printed in four digits every 5, stands still from row 8 on, on a level
 * that no event explains. The row of the break is the first of a level behind rows that fall: what
 * fits in front of it are seven rows, and a search that does not stop there names no line at all.
 */
static void validate_a_fall_that_ends_on_a_level(void **state) {
    (void)state;
    const double peak = 3e-5, total = 950.0, quantum = 1e-8; /* 2.987e-05 */
    struct arena arena = ARENA_EMPTY;
    struct series_point points[19];
    struct fit_known known;
    struct fit_set set;
    for (size_t i = 0; i < COUNT_OF(points); i++) {
        const double counter = i < 7 ? 5.0 * (double)(i + 1) - 1.0 : 50.0;
        put(points, i, 5 * (i + 1), quantum * rint(peak * (1.0 - counter / total) / quantum));
        points[i].quantum = quantum;
    }
    const struct series series = {points, COUNT_OF(points)};
    fit_known_init(&known);
    known.request.contract = contract_find("hf");
    known.request.lr = peak;
    assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
    assert_int_equal(set.count, 0);
    assert_int_equal(set.first_bad, 7);
    assert_non_null(set.partial);
    assert_string_equal(set.partial, "hf linear, peak 3e-05, no warm-up, total 950");
    arena_close(&arena);
}

/* The one model of hf's linear schedule whose peak and total are known. */
static struct fit_model *linear_model(double peak, uint64_t total, struct fit_known *known,
                                      struct arena *arena) {
    static const struct fit_decays none = {.count = 0};
    struct fit_model *models;
    size_t count;
    fit_known_init(known);
    known->request.contract = contract_find("hf");
    known->request.schedule = "linear";
    known->request.lr = peak;
    known->request.steps = total;
    assert_int_equal(fit_models(&known->request, known, &none, arena, &models, &count), STATUS_OK);
    assert_int_equal(count, 1);
    return models;
}

/* A line without warm-up, logged from update 100 on in three digits. The peak of 1 goes with a
 * warm-up of 400 - 301 / 0.753 = 0.27, so 0 and 1 are the whole warm-ups around it that there are.
 * Behind them come warm-ups that people type, each with a peak of its own; 2 is none of them. */
static void validate_the_warmups_around_a_known_peak(void **state) {
    (void)state;
    const double peak = 1.0, total = 400.0;
    struct series_point points[12];
    struct arena arena = ARENA_EMPTY;
    struct fit_known known;
    struct fit_solutions solutions;
    struct fit_model *model = linear_model(peak, 400, &known, &arena);
    static const double strides[] = {1.0};
    uint64_t walk = 100000;
    size_t budget = 100000;
    struct fit_window window;
    memset(&window, 0, sizeof window);
    for (size_t i = 0; i < COUNT_OF(points); i++) {
        put(points, i, 100 + i,
            1e-3 * floor(1e3 * peak * (1.0 - (99.0 + (double)i) / total) + 0.5));
        points[i].quantum = 1e-3;
    }
    window.known_warmup = window.known_ratio = window.known_floor = real_nan_f64();
    window.known_lr = peak;
    window.known_total[0] = 400;
    window.known_totals = window.said_totals = 1;
    window.strides = strides;
    window.stride_count = 1;
    window.budget = &budget;
    window.walk = &walk;
    window.whole = 1;
    fit_window_open(&window, points, COUNT_OF(points));
    fit_solve(model, &window, &solutions);
    assert_true(solutions.count > 2);
    assert_true(solutions.at[0].numbers.warmup == 0.0 && solutions.at[0].numbers.lr == peak);
    assert_true(solutions.at[1].numbers.warmup == 1.0);
    for (size_t i = 2; i < solutions.count; i++)
        assert_true(solutions.at[i].numbers.warmup != 2.0);
    arena_close(&arena);
}

/* A line over 16 epochs of 25 updates, logged every second update: no row stands where an epoch
 * ends, and of the distances between two moves (24 and 26) neither is the epoch. */
static void validate_epochs_that_end_between_rows(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct series_point points[200];
    struct fit_known known;
    struct fit_set set;
    for (size_t i = 0; i < COUNT_OF(points); i++) {
        const uint64_t update = 2 * (i + 1);
        put(points, i, update, 1e-4 * ((16.0 - floor((double)(update - 1) / 25.0)) / 16.0));
    }
    const struct series series = {points, COUNT_OF(points)};
    fit_known_init(&known);
    assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
    assert_true(set.count > 0);
    assert_string_equal(set.fits[0].contract->name, "lightning-epoch");
    assert_int_equal(set.fits[0].epoch_updates, 25);
    assert_int_equal(set.fits[0].steps, 400);
    assert_true(set.fits[0].lr == 1e-4);
    arena_close(&arena);
}

/* An expectation of epochs whose length nobody said: a line that moves at every update refutes it
 * for no length that is known. With one that is said, as a number or by the rows of the data set,
 * it does. */
static void validate_epochs_of_unknown_length(void **state) {
    (void)state;
    for (int said = 0; said < 3; said++) {
        struct arena arena = ARENA_EMPTY;
        struct series_point points[60];
        struct fit_known known;
        struct fit_check check;
        for (size_t i = 0; i < COUNT_OF(points); i++)
            put(points, i, i + 1, 1e-4 * ((60.0 - (double)i) / 60.0));
        const struct series series = {points, COUNT_OF(points)};
        fit_known_init(&known);
        known.request.contract = contract_find("lightning-epoch");
        known.request.schedule = "linear";
        known.request.lr = 1e-4;
        known.request.warmup = 12.0;
        known.request.steps = 60;
        if (said == 1) known.request.updates_per_epoch = 6;
        if (said == 2) known.request.dataset = 24;
        if (said == 2) known.request.batch = 4;
        assert_int_equal(fit_check(&series, &known, 1, &arena, &check), STATUS_OK);
        assert_int_equal(check.verdict, said > 0 ? FIT_FAIL : FIT_UNDECIDED);
        if (said == 0) assert_non_null(strstr(check.needs, "--updates-per-epoch"));
        if (said == 2) assert_int_equal(check.expected->plan.updates_per_epoch, 6);
        arena_close(&arena);
    }
}

/* Megatron's cosine to a twentieth of its peak, every fifth row in seven digits. A search among
 * Megatron's schedules alone tries no such floor, and another framework prints the same rows. */
static void verify_a_sound_log_of_the_expected_contract_passes(void **state) {
    (void)state;
    const double peak = 2e-5, least = 1e-6, warmup = 37.0, total = 1234.0, pi = 3.14159265358979;
    struct arena arena = ARENA_EMPTY;
    struct log *log = helper_log(&arena, 246);
    struct series series;
    struct fit_known known;
    struct fit_check check;
    log->format = "megatron";
    log->max_steps = 1234;
    for (size_t row = 0; row < log->rows; row++) {
        const double done = 5.0 * (double)(row + 1), share = (done - warmup) / (total - warmup);
        log->step[row] = (int64_t)done;
        helper_put(&arena, log, LOG_LR_LOGGED, row,
                   done <= warmup ? peak * done / warmup
                                  : least + 0.5 * (cos(pi * share) + 1.0) * (peak - least),
                   PRINT_E6);
    }
    fit_known_init(&known);
    assert_int_equal(fit_known_from_log(&known, log, &arena), STATUS_OK);
    known.request.contract = contract_find("megatron");
    assert_int_equal(series_of(log, log_column_of(log, LOG_LR_LOGGED), &arena, &series), STATUS_OK);
    assert_int_equal(fit_check(&series, &known, 1, &arena, &check), STATUS_OK);
    if (check.verdict != FIT_PASS) fail_msg("%s", check.words);
    assert_true(fabs(check.expected->lr - peak) < 1e-12);
    assert_true(check.expected->warmup == warmup);
    arena_close(&arena);
}

/* get_polynomial_decay_schedule_with_warmup to an lr_end that is not its default, whose last row is
 * one step above it: lr_end and the slope stand for each other until one is named. */
static void verify_a_polynomial_to_its_own_end_passes(void **state) {
    (void)state;
    const double peak = 2e-4, end = 1e-8, total = 500.0;
    struct arena arena = ARENA_EMPTY;
    struct log *log = helper_log(&arena, 500);
    struct series series;
    struct fit_known known;
    struct fit_check check;
    log->format = "hf-trainer-state";
    log->max_steps = 500;
    for (size_t row = 0; row < log->rows; row++) {
        log->step[row] = (int64_t)row + 1;
        helper_put(&arena, log, LOG_LR_LOGGED, row,
                   (peak - end) * (1.0 - (double)row / total) + end, PRINT_EXACT);
    }
    fit_known_init(&known);
    assert_int_equal(fit_known_from_log(&known, log, &arena), STATUS_OK);
    known.request.contract = contract_find("hf");
    assert_int_equal(series_of(log, log_column_of(log, LOG_LR_LOGGED), &arena, &series), STATUS_OK);
    assert_int_equal(fit_check(&series, &known, 1, &arena, &check), STATUS_OK);
    if (check.verdict != FIT_PASS) fail_msg("%s", check.words);
    assert_true(check.expected->lr == peak && check.expected->steps == 500);
    assert_true(fabs(check.expected->floor_ratio * peak - end) < 1e-12 * end);
    arena_close(&arena);
}

/* Schedules of transformers' (get_wsd_schedule with a decay that is a line or a cosine,
 * get_polynomial_decay_schedule_with_warmup with a power), of Megatron (a line to min_lr, of which
 * rows show the LR of the next update) and of DeepSpeed (WarmupDecayLR from warmup_min_lr up and
 * down to it, with its logarithmic warm-up). */
enum shape { WSD_LINE, WSD_WAVE, POLYNOMIAL, MEGATRON, DEEPSPEED };

struct cut {
    enum shape shape;
    double peak, end, power; /* `end`: the LR at the end; of a WSD, the length of the decay */
    double warmup, total;
    uint64_t first, every, last, told; /* rows that are logged, and the total that the log says */
    const char *contract, *text;
};

static double rate(const struct cut *cut, double s) {
    const double left = 1.0 - (s - cut->warmup) / (cut->total - cut->warmup);
    const double wsd = fmax(0.0, (s - (cut->total - cut->end)) / cut->end);
    if (cut->shape == DEEPSPEED) {
        const double gamma = s < cut->warmup ? log(s + 1.0) / log(cut->warmup) : fmax(0.0, left);
        return cut->end + (cut->peak - cut->end) * gamma;
    }
    if (s < cut->warmup) return cut->peak * (s / cut->warmup);
    if (cut->shape == WSD_LINE) return cut->peak * fmax(0.0, 1.0 - wsd);
    if (cut->shape == WSD_WAVE)
        return cut->peak * 0.5 * (1.0 + cos(3.14159265358979323846 * fmin(1.0, wsd)));
    return cut->end + (cut->peak - cut->end) * pow(left, cut->power);
}

static void fit_cut(const struct cut *cut, struct arena *arena, struct fit_set *set) {
    static struct series_point points[512];
    static struct series series;
    struct fit_known known;
    series = (struct series){points, 0};
    for (uint64_t k = cut->first; k <= cut->last; k += cut->every, series.count++)
        put(points, series.count, k, rate(cut, (double)(cut->shape == MEGATRON ? k : k - 1)));
    fit_known_init(&known);
    known.request.contract = contract_find(cut->contract);
    known.run_steps = cut->told;
    assert_int_equal(fit_series(&series, &known, arena, set), STATUS_OK);
    if (set->count == 0) fail_msg("nothing fits: expected %s", cut->text);
}

/* A log that was cut off ends above the floor of its schedule, and where it says no total, nothing
 * in it says where a decay behind a plateau ends. A line of Megatron to a twentieth of its peak is,
 * of the rows that are left, also a line of another total to 0. */
static void validate_decays_that_a_log_cuts_off(void **state) {
    (void)state;
    static const struct cut cuts[] = {
        {WSD_LINE, 2e-4, 100, 1, 20, 500, 1, 1, 460, 0, "hf",
         "hf warmup_stable_decay (decay=100, decay_type=linear), peak 0.0002, warm-up 20, total "
         "500"},
        {WSD_LINE, 2e-4, 100, 1, 20, 500, 10, 10, 530, 0, "hf",
         "hf warmup_stable_decay (decay=100, decay_type=linear), peak 0.0002, warm-up 20, total "
         "500"},
        {WSD_WAVE, 2e-4, 100, 1, 20, 500, 10, 10, 460, 0, "hf",
         "hf warmup_stable_decay (decay=100), peak 0.0002, warm-up 20, total 500"},
        {POLYNOMIAL, 2e-4, 1e-8, 1, 20, 600, 10, 10, 360, 600, "hf",
         "hf polynomial, peak 0.0002, warm-up 20, total 600, floor 5e-05 of the peak"},
        {POLYNOMIAL, 2e-4, 1e-8, 2, 37, 777, 10, 10, 777, 777, "hf",
         "hf polynomial (power=2), peak 0.0002, warm-up 37, total 777, floor 5e-05 of the peak"},
        {MEGATRON, 1e-5, 5e-7, 1, 10, 200, 1, 1, 112, 200, "megatron",
         "megatron linear, peak 1e-05, warm-up 10, total 200, floor 0.05 of the peak"},
        {DEEPSPEED, 1.5e-4, 1e-6, 1, 10, 300, 1, 1, 145, 0, "deepspeed-warmup",
         "deepspeed-warmup warmup_decay, peak 0.00015, warm-up 10, total 300, floor 0.006667 of "
         "the peak"}};
    for (size_t i = 0; i < COUNT_OF(cuts); i++) {
        struct arena arena = ARENA_EMPTY;
        struct fit_set set;
        fit_cut(&cuts[i], &arena, &set);
        if (strcmp(set.fits[0].text, cuts[i].text) != 0 || set.fits[0].bug != NULL)
            fail_msg("case %zu: %s", i, set.fits[0].text);
        arena_close(&arena);
    }
}

/* Rows of the decay alone: a warm-up up to its begin and a plateau up to there print the same. One
 * of the length that trainings have hides none. */
static void verify_a_decay_alone_may_follow_a_plateau(void **state) {
    (void)state;
    static const struct {
        struct cut cut;
        int hides;
    } cases[] = {{{WSD_WAVE, 2e-4, 100, 1, 20, 500, 405, 1, 500, 500, "hf", NULL}, 1},
                 {{WSD_LINE, 2e-4, 100, 1, 20, 500, 410, 10, 470, 500, "hf", NULL}, 1},
                 {{WSD_WAVE, 2e-4, 450, 1, 50, 500, 405, 1, 500, 500, "hf", NULL}, 0}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct arena arena = ARENA_EMPTY;
        struct fit_set set;
        fit_cut(&cases[i].cut, &arena, &set);
        assert_int_equal(fit_hides_plateau(&set.fits[0]), cases[i].hides);
        arena_close(&arena);
    }
}

/* A scheduler that is not stepped behind the 37th of 100 updates of a warm-up to 3e-5 stands at
 * 1.11e-5, which nobody typed; at the 50th it stands at 1.5e-5, as a constant LR might. A column
 * that falls, or that still rises at its last rows, stands nowhere. */
static void verify_a_stopped_warmup_is_no_constant(void **state) {
    (void)state;
    static const struct {
        uint64_t stop, last;
        int stands, odd;
    } cases[] = {{37, 200, 1, 1}, {50, 200, 1, 0}, {200, 200, 0, 0}, {37, 40, 0, 1}};
    for (size_t c = 0; c < COUNT_OF(cases); c++) {
        struct series_point points[200];
        const struct series series = {points, cases[c].last};
        struct arena arena = ARENA_EMPTY;
        struct fit_known known;
        struct fit_set set;
        for (uint64_t k = 1; k <= cases[c].last; k++) {
            const double s = fmin((double)(k - 1), (double)cases[c].stop);
            put(points, k - 1, k, 3e-5 * (s < 100.0 ? s / 100.0 : 1.0 - (s - 100.0) / 100.0));
        }
        fit_known_init(&known);
        known.request.contract = contract_find("hf");
        assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
        assert_true(set.count > 0);
        assert_int_equal(fit_stands_at_top(&set.fits[0], &series), cases[c].stands);
        assert_int_equal(fit_peak_is_odd(&set.fits[0]), cases[c].odd);
        arena_close(&arena);
    }
}

/* A line to half of its peak is also that of a decay to 0 that moves at every second update; one to
 * a quarter is not. */
static void verify_half_a_peak_is_half_the_speed(void **state) {
    (void)state;
    static const struct cut lines[] = {
        {POLYNOMIAL, 2e-4, 1e-4, 1, 0, 100, 10, 10, 100, 100, "hf", NULL},
        {POLYNOMIAL, 2e-4, 5e-5, 1, 0, 100, 10, 10, 100, 100, "hf", NULL}};
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        struct arena arena = ARENA_EMPTY;
        struct fit_set set;
        fit_cut(&lines[i], &arena, &set);
        assert_int_equal(fit_is_half_speed(&set.fits[0]), i == 0);
        arena_close(&arena);
    }
}

/* A warm-up that the second resume left as the first one had made it is not told once more. */
static void validate_the_words_of_three_totals(void **state) {
    (void)state;
    static const struct fit_segment segments[] = {
        {.update = 1, .scale = 1.0},
        {.update = 31, .scale = 1.0, .event = FIT_TOTAL, .steps = 90, .warmup = 9.0},
        {.update = 61, .scale = 1.0, .event = FIT_TOTAL, .steps = 120, .warmup = 9.0}};
    struct arena arena = ARENA_EMPTY;
    struct fit fit = {.contract = contract_find("hf"),
                      .schedule_name = "linear",
                      .parameters = "",
                      .lr = 2e-5,
                      .warmup = 6.0,
                      .takes_warmup = 1,
                      .steps = 60,
                      .floor_ratio = real_nan_f64(),
                      .stride = 1.0,
                      .segments = segments,
                      .segment_count = COUNT_OF(segments)};
    const char *text;
    assert_int_equal(fit_describe(&fit, &arena, &text), STATUS_OK);
    assert_string_equal(text, "hf linear, peak 2e-05, warm-up 6, total 60; total 90 and warm-up 9 "
                              "from update 31; total 120 from update 61");
    arena_close(&arena);
}

/* Megatron counts samples, but its line depends on none: without a batch, a column that is one
 * update late fails the check, where the log shows that none was skipped. */
static void verify_a_line_needs_no_batch(void **state) {
    (void)state;
    static const struct cut cut = {POLYNOMIAL, 2e-5, 0.0, 1, 10, 100, 1, 1, 100, 100, "hf", NULL};
    static struct series_point points[95];
    const struct series series = {points, COUNT_OF(points)};
    struct arena arena = ARENA_EMPTY;
    struct fit_known known;
    struct fit_check check;
    for (size_t i = 0; i < COUNT_OF(points); i++)
        put(points, i, i + 1, rate(&cut, (double)i));
    fit_known_init(&known);
    known.request.contract = contract_find("megatron");
    known.run_steps = known.request.steps = 100;
    known.skips.quiet = 1;
    assert_int_equal(fit_check(&series, &known, 0, &arena, &check), STATUS_OK);
    if (check.verdict != FIT_FAIL) fail_msg("%d %s; %s", check.verdict, check.words, check.needs);
    arena_close(&arena);
}

/* Stairs of 30 updates: a column of three of them is a staircase of any schedule, one of four is
 * that of a scheduler which is stepped too seldom. */
static void verify_few_stairs_have_no_name(void **state) {
    (void)state;
    for (uint64_t moves = 3; moves <= 5; moves++) {
        static struct series_point points[150];
        const uint64_t count = 30 * moves;
        const struct series series = {points, count};
        struct arena arena = ARENA_EMPTY;
        struct fit_known known;
        struct fit_check check;
        for (uint64_t k = 1; k <= count; k++)
            put(points, k - 1, k, 2e-5 * (1.0 - (double)((k - 1) / 30) / (double)moves));
        fit_known_init(&known);
        known.request.contract = contract_find("hf");
        known.run_steps = count;
        assert_int_equal(fit_check(&series, &known, 0, &arena, &check), STATUS_OK);
        assert_int_equal(check.verdict, FIT_FAIL);
        assert_int_equal(check.bug != NULL && strcmp(check.bug, FIT_SELDOM) == 0, moves >= 4);
        arena_close(&arena);
    }
}

/* Lightning's log of 60 updates in two epochs, of which no second one ends: 20 moves of 3 updates
 * are no epochs, as the first of these has 30 updates. With a column that has a new epoch at every
 * move they are. */
static void validate_stairs_beside_the_epochs_of_a_log(void **state) {
    (void)state;
    for (int moves = 0; moves < 2; moves++) {
        struct arena arena = ARENA_EMPTY;
        struct log *log = helper_log(&arena, 60);
        struct fit_known known;
        struct fit_set set;
        struct series series;
        log->format = "lightning";
        for (size_t row = 0; row < log->rows; row++) {
            const double step = (double)(row / 3);
            helper_put(&arena, log, LOG_LR_LOGGED, row, 2e-4 * ((20.0 - step) / 20.0), PRINT_EXACT);
            helper_put(&arena, log, LOG_EPOCH, row, moves ? step : (double)(row / 30), PRINT_EXACT);
            log->step[row] = (int64_t)row + 1;
        }
        fit_known_init(&known);
        assert_int_equal(fit_known_from_log(&known, log, &arena), STATUS_OK);
        assert_true(known.possible != NULL);
        assert_int_equal(series_of(log, log_column_of(log, LOG_LR_LOGGED), &arena, &series),
                         STATUS_OK);
        assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
        assert_true(set.count > 0);
        assert_int_equal(set.fits[0].epoch_updates, 3);
        assert_int_equal(set.fits[0].stairs_open, !moves);
        arena_close(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_a_known_peak_where_no_row_tells_it),
        cmocka_unit_test(validate_a_polynomial_of_power_2_without_a_total),
        cmocka_unit_test(validate_a_peak_of_one_beside_a_skip),
        cmocka_unit_test(validate_a_fall_that_ends_on_a_level),
        cmocka_unit_test(validate_the_warmups_around_a_known_peak),
        cmocka_unit_test(validate_epochs_that_end_between_rows),
        cmocka_unit_test(validate_epochs_of_unknown_length),
        cmocka_unit_test(verify_a_sound_log_of_the_expected_contract_passes),
        cmocka_unit_test(verify_a_polynomial_to_its_own_end_passes),
        cmocka_unit_test(validate_decays_that_a_log_cuts_off),
        cmocka_unit_test(verify_a_decay_alone_may_follow_a_plateau),
        cmocka_unit_test(verify_a_stopped_warmup_is_no_constant),
        cmocka_unit_test(verify_half_a_peak_is_half_the_speed),
        cmocka_unit_test(validate_the_words_of_three_totals),
        cmocka_unit_test(verify_a_line_needs_no_batch),
        cmocka_unit_test(verify_few_stairs_have_no_name),
        cmocka_unit_test(validate_stairs_beside_the_epochs_of_a_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

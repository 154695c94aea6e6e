/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Cosines of which nobody says the total: with restarts, from the middle of a run, with a rise in
 * front, or with one row of a cycle, and without any behind a long warm-up. `lr fit` must list the
 * training that made the column, doctor must accuse nothing, and no bug may stand first. The
 * columns are computed here, with the formulas of transformers'
 * get_cosine_with_hard_restarts_schedule_with_warmup. Columns beside it are none: cycles that grow,
 * and one that begins anew on its way down. One column is torch's own. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/macro.h"
#include "forensics/doctor/doctor.h"
#include "forensics/fit.h"
#include "logs/import.h"

enum { TEXT = 1 << 16 };

enum twist { SOUND, GROWING, ON_ITS_WAY };

struct column {
    double peak;
    int warmup, total, cycles;
    int next; /* 1: the row of update k shows the LR of the next one */
    int first, last, every;
    const char *print;
    enum twist twist;
};

static double rate_of(const struct column *c, int update) {
    const double n = update - 1 + c->next;
    if (n < c->warmup) return c->peak * n / c->warmup;
    double progress = (n - c->warmup) / (double)(c->total - c->warmup);
    if (progress >= 1.0) return 0.0;
    if (c->twist == GROWING) progress *= 0.7 + 0.3 * progress;
    double place = fmod(c->cycles * progress, 1.0);
    if (c->twist == ON_ITS_WAY) place *= 0.75;
    return c->peak * fmax(0.0, 0.5 * (1.0 + cos(acos(-1.0) * place)));
}

static const struct log *log_of(const struct column *c, struct arena *arena) {
    static char text[TEXT];
    struct log_options options;
    struct log *log;
    size_t length = (size_t)snprintf(text, sizeof text, "step,loss,lr\n");
    for (int k = c->first; k <= c->last; k += c->every) {
        length +=
            (size_t)snprintf(text + length, sizeof text - length, "%d,%.4f,", k, 2.0 + 1.0 / k);
        length += (size_t)snprintf(text + length, sizeof text - length, c->print, rate_of(c, k));
        length += (size_t)snprintf(text + length, sizeof text - length, "\n");
    }
    assert_true(length < sizeof text);
    log_options_init(&options);
    assert_int_equal(log_import_bytes("log.csv", text, length, &options, arena, &log), STATUS_OK);
    return log;
}

static void fit_of(const struct log *log, struct arena *arena, struct fit_set *out) {
    static struct series series; /* the set points to it */
    struct fit_known known;
    fit_known_init(&known);
    known.limit = 64;
    assert_int_equal(fit_known_from_log(&known, log, arena), STATUS_OK);
    assert_int_equal(series_of(log, log_column_of(log, LOG_LR_LOGGED), arena, &series), STATUS_OK);
    assert_int_equal(fit_series(&series, &known, arena, out), STATUS_OK);
}

static int is_truth(const struct fit *fit, const struct column *c) {
    char cycles[32] = "";
    if (c->cycles > 1) snprintf(cycles, sizeof cycles, "num_cycles=%d", c->cycles);
    return strcmp(sched_bare_name(fit->schedule),
                  c->cycles > 1 ? "cosine_with_restarts" : "cosine") == 0 &&
           strcmp(fit->parameters, cycles) == 0 && fit->lr == c->peak && fit->warmup == c->warmup &&
           fit->steps == (uint64_t)c->total && fit->segment_count == 1 && fit->skip_count == 0 &&
           strcmp(fit->contract->name, c->next ? "hf-4.50" : "hf") == 0;
}

static const struct column sound[] = {
    /* from the second cycle to the fourth, in full and in three digits */
    {3e-4, 50, 4646, 4, 1, 1450, 3783, 10, "%.17g", SOUND},
    {5e-4, 400, 1998, 4, 1, 450, 1998, 50, "%.2e", SOUND},
    /* the last row of a cycle, and then the next one */
    {1.5e-5, 0, 3084, 2, 1, 1500, 3084, 100, "%.3e", SOUND},
    /* from the warm-up on */
    {6e-3, 490, 4900, 2, 1, 50, 4563, 50, "%.3e", SOUND},
    /* one row of the warm-up, below a cycle's second row */
    {2e-5, 40, 1240, 3, 0, 21, 1240, 20, "%.5e", SOUND},
    {1.25e-4, 0, 901, 3, 0, 1, 901, 20, "%.17g", SOUND},
    /* one cycle, the middle of it, behind a warm-up of a third and coarse rows */
    {1e-6, 500, 1700, 1, 1, 523, 1374, 1, "%.5e", SOUND},
    {1e-6, 50, 3966, 1, 1, 1700, 3966, 20, "%.2e", SOUND},
    /* with a peak that no row comes near */
    {2e-4, 7, 1500, 3, 0, 120, 1490, 90, "%.5e", SOUND},
};

static void verify_restarts_are_found(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(sound); i++) {
        struct arena arena = ARENA_EMPTY;
        struct doctor_options options;
        struct doctor_report report;
        struct fit_set set;
        size_t listed = 0;
        const struct log *const log = log_of(&sound[i], &arena);
        fit_of(log, &arena, &set);
        while (listed < set.count && !is_truth(&set.fits[listed], &sound[i]))
            listed++;
        if (listed == set.count)
            fail_msg("%zu: %s", i, set.count > 0 ? set.fits[0].text : "nothing fits");
        if (set.fits[0].bug != NULL) fail_msg("%zu: %s", i, set.fits[0].text);
        doctor_options_init(&options);
        assert_int_equal(doctor_examine(log, &options, &set, &arena, &report), STATUS_OK);
        if (report.finding_count > 0)
            fail_msg("%zu: %s: %s", i, report.findings[0].id, report.findings[0].words);
        arena_close(&arena);
    }
}

/* A row that is off by more than it is printed with, cycles that grow, and a scheduler that began
 * anew before its cosine had come down are no restarts of one length. */
static void verify_others_are_none(void **state) {
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct arena arena = ARENA_EMPTY;
        struct column column = {3e-4, 50, 4646, 4, 1, 1450, 3783, 10, "%.9e", SOUND};
        struct fit_set set;
        column.twist = i == 0 ? GROWING : ON_ITS_WAY;
        fit_of(log_of(&column, &arena), &arena, &set);
        for (size_t f = 0; f < set.count; f++)
            if (set.fits[f].segment_count == 1 && set.fits[f].skip_count == 0)
                fail_msg("%zu: %s", i, set.fits[f].text);
        arena_close(&arena);
    }
}

/* Of a peak that was given there is one to try, whatever comes of it: here no schedule that is
 * asked about is a cosine. */
static void verify_a_given_peak_is_tried_once(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    const struct log *const log = log_of(&sound[COUNT_OF(sound) - 2], &arena);
    struct series series;
    struct fit_known known;
    struct fit_set set;
    fit_known_init(&known);
    known.request.contract = contract_find("hf");
    known.request.schedule = "linear";
    known.request.lr = sound[COUNT_OF(sound) - 2].peak;
    assert_int_equal(series_of(log, log_column_of(log, LOG_LR_LOGGED), &arena, &series), STATUS_OK);
    alarm(60);
    assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
    alarm(0);
    arena_close(&arena);
}

/* torch 2.15.0, CosineAnnealingLR(optimizer, 500, eta_min=1.7e-5) on SGD with lr=3e-4: the LR that
 * update k used. Each LR is computed from the one before, so the closed form is off by more than it
 * is printed, and the floor is of no list. */
static const struct {
    int update;
    double lr;
} torch_rows[] = {{1, 0.0003},
                  {25, 0.00029839422188041487},
                  {50, 0.0002933465768246865},
                  {75, 0.0002849785615174038},
                  {100, 0.00027349622426728267},
                  {125, 0.00025918229832511364},
                  {150, 0.00024238924005278936},
                  {175, 0.0002235305502779401},
                  {200, 0.00020307059253122522},
                  {225, 0.00018151315887507576},
                  {250, 0.00015938906487112628},
                  {275, 0.00013724307913941255},
                  {300, 0.00011562050934696205},
                  {325, 9.505377492325992e-05},
                  {350, 7.604929712689597e-05},
                  {375, 5.907502927346244e-05},
                  {400, 4.454893417187601e-05},
                  {425, 3.282869249288331e-05},
                  {450, 2.4202895483873234e-05},
                  {475, 1.8883938894586655e-05},
                  {500, 1.70027930888566e-05}};

static void validate_a_floor_of_torch(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct log_options options;
    struct log *log;
    struct fit_set set;
    char text[2048];
    size_t length = (size_t)snprintf(text, sizeof text, "step,lr\n");
    for (size_t i = 0; i < COUNT_OF(torch_rows); i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "%d,%.17g\n",
                                   torch_rows[i].update, torch_rows[i].lr);
    assert_true(length < sizeof text);
    log_options_init(&options);
    assert_int_equal(log_import_bytes("log.csv", text, length, &options, &arena, &log), STATUS_OK);
    fit_of(log, &arena, &set);
    assert_true(set.count > 0);
    const struct fit *const fit = &set.fits[0];
    assert_null(fit->bug);
    if (strcmp(fit->schedule->name, "torch.cosine_annealing") != 0 || fit->lr != 3e-4 ||
        fit->steps != 500 || fabs(fit->floor_ratio * fit->lr - 1.7e-5) > 1e-17)
        fail_msg("%s", fit->text);
    arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_restarts_are_found),
        cmocka_unit_test(verify_others_are_none),
        cmocka_unit_test(verify_a_given_peak_is_tried_once),
        cmocka_unit_test(validate_a_floor_of_torch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

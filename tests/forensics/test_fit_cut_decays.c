/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Decays behind a plateau (Megatron's WSD) whose rows end on the way down, above their floor. A
 * bent decay shows its length and its floor: `lr fit` must find them, with the total told and
 * without, and where the first updates were skipped. One of 1 - sqrt shows neither, as to each
 * floor belongs a length: no total may be claimed. The columns are computed here, with the formulas
 * of Megatron-LM's core/optimizer_param_scheduler.py (get_lr, lr_decay_style 'WSD'). */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "forensics/fit.h"
#include "logs/import.h"

enum { TEXT = 1 << 17 };

enum style { EXPONENTIAL, COSINE, MINUS_SQRT };

struct column {
    double peak, floor; /* the floor as a share of the peak */
    int warmup, total, decay;
    enum style style;
    int first, last, every;
    const char *print;
    uint64_t told; /* the total; 0: nobody says it */
    int skipped;   /* the first so many updates, at which the scheduler is held */
};

static const uint64_t first_updates[] = {1, 2, 3, 4, 5, 6, 7};

static double rate_of(const struct column *c, int update) {
    update = update > c->skipped ? update - c->skipped : 0;
    if (update <= c->warmup) return c->peak * update / c->warmup;
    if (update <= c->total - c->decay) return c->peak;
    const double done = (double)(update - (c->total - c->decay)) / c->decay;
    const double left = c->style == EXPONENTIAL ? 2.0 * pow(0.5, done) - 1.0
                        : c->style == COSINE    ? 0.5 * (cos(acos(-1.0) * done) + 1.0)
                                                : 1.0 - sqrt(done);
    const double low = c->peak * c->floor;
    return low + left * (c->peak - low);
}

static void read_column(const struct column *c, struct fit_known *known, struct series *series,
                        struct arena *arena) {
    static char text[TEXT];
    struct log_options options;
    struct log *log;
    size_t length = (size_t)snprintf(text, sizeof text, "step,lr\n");
    for (int k = c->first; k <= c->last; k += c->every) {
        length += (size_t)snprintf(text + length, sizeof text - length, "%d,", k);
        length += (size_t)snprintf(text + length, sizeof text - length, c->print, rate_of(c, k));
        length += (size_t)snprintf(text + length, sizeof text - length, "\n");
    }
    assert_true(length < sizeof text);
    log_options_init(&options);
    assert_int_equal(log_import_bytes("log.csv", text, length, &options, arena, &log), STATUS_OK);
    fit_known_init(known);
    known->request.steps = c->told;
    known->request.skipped = first_updates;
    known->request.skipped_count = (size_t)c->skipped;
    assert_int_equal(fit_known_from_log(known, log, arena), STATUS_OK);
    assert_int_equal(series_of(log, log_column_of(log, LOG_LR_LOGGED), arena, series), STATUS_OK);
}

static const struct column bent[] = {
    {1e-3, 0.05, 500, 1500, 150, EXPONENTIAL, 10, 1480, 10, "%.3e", 1500, 0},
    {1e-3, 0.05, 500, 1500, 150, EXPONENTIAL, 10, 1480, 10, "%.3e", 0, 0},
    {8e-5, 0.1, 99, 198, 39, EXPONENTIAL, 60, 190, 10, "%.17g", 0, 0},
    {5e-3, 0.05, 100, 2637, 320, COSINE, 430, 2590, 10, "%.17g", 0, 0},
    {2e-3, 0.2, 10, 1200, 300, COSINE, 10, 1100, 10, "%.5e", 0, 0}, /* a floor of 4e-4 */
    /* A middle row that the inverse of the decay comes to up to the last digit alone. */
    {1e-3, 0.05, 100, 1500, 210, EXPONENTIAL, 10, 1455, 5, "%.17g", 0, 0},
    /* A peak of more digits than are printed, in a column that begins with 0. */
    {6.500625743223924e-06, 0.0, 850, 4265, 426, EXPONENTIAL, 1, 4265, 1, "%.6E", 4265, 4},
    /* A decay that nobody types, of which seven updates less are seen. */
    {3e-5, 0.0, 853, 4265, 333, EXPONENTIAL, 1, 4265, 1, "%.6E", 4265, 7},
};

/* HF's warmup_stable_decay prints Megatron's cosine, with a total that its convention moves by
 * one. */
static int is_truth(const struct fit *fit, const struct column *c) {
    char decay[64];
    snprintf(decay, sizeof decay, "decay=%d", c->decay);
    return (strcmp(fit->schedule->name, "megatron.wsd") == 0 ||
            (c->style == COSINE &&
             strcmp(sched_bare_name(fit->schedule), "warmup_stable_decay") == 0)) &&
           fabs(fit->lr - c->peak) <= 1e-8 * c->peak &&
           (fit->warmup == c->warmup || fit->unseen_warmup > 0.0 || fit->warmup_hidden) &&
           fabs((double)fit->steps - c->total) <= (c->style == COSINE ? 1.0 : 0.0) &&
           fabs(fit->floor_ratio - c->floor) < 1e-12 &&
           strncmp(fit->parameters, decay, strlen(decay)) == 0 && fit->segment_count == 1 &&
           fit_skipped(fit) == (uint64_t)c->skipped;
}

static void verify_bent_decays_are_found(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(bent); i++) {
        struct arena arena = ARENA_EMPTY;
        struct series series;
        struct fit_known known;
        struct fit_set set;
        int found = 0;
        read_column(&bent[i], &known, &series, &arena);
        known.limit = 64;
        assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
        for (size_t f = 0; f < set.count; f++)
            found |= is_truth(&set.fits[f], &bent[i]);
        if (!found)
            fail_msg("column %zu: %s", i, set.count > 0 ? set.fits[0].text : "nothing fits");
        arena_close(&arena);
    }
}

static const struct column roots[] = {
    {2e-4, 0.1, 100, 4042, 808, MINUS_SQRT, 2, 3620, 2, "%.17g", 0, 0},
    {2e-3, 0.24, 100, 2066, 619, MINUS_SQRT, 50, 1850, 50, "%.2e", 0, 0},
};

static void verify_no_end_of_a_root_is_claimed(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(roots); i++) {
        struct arena arena = ARENA_EMPTY;
        struct series series;
        struct fit_known known;
        struct fit_set set;
        struct fit_check check;
        read_column(&roots[i], &known, &series, &arena);
        assert_int_equal(fit_series(&series, &known, &arena, &set), STATUS_OK);
        for (size_t f = 0; f < set.count; f++)
            if (set.fits[f].steps != (uint64_t)roots[i].total &&
                !fit_ends_on_its_way(&set.fits[f], set.last) &&
                !fit_floor_is_far(&set.fits[f], set.last))
                fail_msg("column %zu: %s", i, set.fits[f].text);
        known.request.contract = contract_find("megatron");
        assert_int_equal(fit_check(&series, &known, 0, &arena, &check), STATUS_OK);
        assert_int_equal(check.verdict, FIT_UNDECIDED);
        arena_close(&arena);
    }
}

/* Each schedule that falls by a power of the way, and some that bend: of the first ones rows that
 * end before update 900 of 1,000 show no end. */
static void verify_which_ends_are_open(void **state) {
    static const struct {
        const char *schedule, *parameters;
        int open;
    } cases[] = {
        {"linear", "", 1},
        {"warmup_stable_decay", "decay=200, decay_type=1-sqrt", 1},
        {"warmup_stable_decay", "decay=200, decay_type=linear", 1},
        {"warmup_stable_decay", "decay=200", 0},
        {"megatron.wsd", "decay=200, decay_style=minus_sqrt", 1},
        {"megatron.wsd", "decay=200, decay_style=cosine", 0},
        {"megatron.wsd", "decay=200", 0},
        {"torchtitan.sqrt", "decay_ratio=0.2", 1},
        {"torchtitan.linear", "decay_ratio=0.2", 1},
        {"torchtitan.cosine", "decay_ratio=0.2", 0},
        {"megatron.cosine", "", 0},
    };
    static const struct fit_segment plain = {.scale = 1.0};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct fit fit = {.schedule = sched_find(cases[i].schedule),
                          .parameters = cases[i].parameters,
                          .lr = 1e-3,
                          .steps = 1000,
                          .floor_ratio = 0.1,
                          .stride = 1.0,
                          .segments = &plain,
                          .segment_count = 1};
        if (fit.schedule == NULL) fail_msg("no schedule %s", cases[i].schedule);
        if (fit_floor_is_far(&fit, 900) != cases[i].open || fit_floor_is_far(&fit, 999))
            fail_msg("%s (%s), a floor behind the rows", cases[i].schedule, cases[i].parameters);
        if (fit_ends_on_its_way(&fit, 1000))
            fail_msg("%s (%s), a typed floor", cases[i].schedule, cases[i].parameters);
        fit.floor_ratio = 0.3779;
        if (fit_ends_on_its_way(&fit, 1000) != cases[i].open || fit_ends_on_its_way(&fit, 1002))
            fail_msg("%s (%s), an odd floor", cases[i].schedule, cases[i].parameters);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_bent_decays_are_found),
        cmocka_unit_test(verify_no_end_of_a_root_is_claimed),
        cmocka_unit_test(verify_which_ends_are_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

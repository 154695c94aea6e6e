/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The comparison of two logs: fixed ratios of columns, and applied LRs that differ under equal
 * columns. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/real.h"
#include "tests/forensics/helper_golden.h"
#include "tests/forensics/helper_pair.h"

static void pin(const char *name, size_t number, const struct compare_report *report) {
    golden_comparison(golden_begin("compare_lr.txt", "%s %zu", name, number), report);
    golden_end();
}

/* ---- ratios ---- */

struct ratio_scene {
    int name; /* enum log_name */
    double factor;
    int kind;
    uint64_t n;
    const char *bug;
};

static void validate_ratios(void **state) {
    (void)state;
    static const struct ratio_scene ratios[] = {
        {LOG_LOSS, 2.0, COMPARE_FACTOR_WHOLE, 2, "loss_summed_over_ranks"},
        {LOG_LOSS, 1.0 / 16.0, COMPARE_FACTOR_INVERSE, 16, "num_items_double_scale"},
        {LOG_GRAD_NORM, 8.0, COMPARE_FACTOR_WHOLE, 8, "dpo_loss_not_divided"},
        {LOG_GRAD_NORM, 2.8284271247461903, COMPARE_FACTOR_ROOT, 8, "hsdp_double_count"},
        {LOG_GRAD_NORM, 0.70710678118654752, COMPARE_FACTOR_ROOT_INVERSE, 2, "hsdp_double_count"},
        {LOG_TOKENS, 3.0, COMPARE_FACTOR_WHOLE, 3, "tokens_per_rank_only"},
        {LOG_REWARD_CHOSEN, 0.3, COMPARE_FACTOR_CONSTANT, 0, ""},
        {LOG_LR_LOGGED, 1.25, COMPARE_FACTOR_CONSTANT, 0, "default_lr_overrides"}};
    for (size_t i = 0; i < sizeof ratios / sizeof ratios[0]; i++) {
        struct pair p;
        pair_open(&p);
        pair_scale(&p, 0, (enum log_name)ratios[i].name, 0, ratios[i].factor);
        const struct compare_ratio *ratio =
            pair_ratio(pair_compare(&p), (enum log_name)ratios[i].name);
        pin("ratio", i, &p.report);
        if (ratio == NULL) fail_msg("no ratio %g", ratios[i].factor);
        assert_int_equal(ratio->kind, ratios[i].kind);
        assert_int_equal(ratio->n, ratios[i].n);
        assert_true(fabs(ratio->factor - ratios[i].factor) < 1e-3 * ratios[i].factor);
        assert_true(ratio->held >= ratio->pairs - 1);
        assert_non_null(strstr(ratio->bug, ratios[i].bug));
        arena_close(&p.arena);
    }
}

/* A fixed number between two columns is no factor, though values of one size make it look like one;
 * and of columns that do not vary nobody can tell which it is. */
struct offset_scene {
    int name;                     /* enum log_name */
    double level, slope;          /* B is level + slope times its row, but for a wave of 7 rows */
    double factor, offset, noise; /* A is factor times B + offset, and noise in every second row */
    int kind;
};

static void validate_offsets(void **state) {
    static const struct offset_scene scenes[] = {
        {LOG_LOGP_CHOSEN, -300.0, 0.25, 1.0, 10.0, 0.0, COMPARE_FACTOR_OFFSET},
        {LOG_LOGP_CHOSEN, -300.0, 0.25, 1.0, -10.0, 0.125, COMPARE_FACTOR_OFFSET},
        {LOG_LOGP_REJECTED, -300.0, 0.25, 1.03125, 0.0, 0.0, COMPARE_FACTOR_CONSTANT},
        {LOG_LOGP_REJECTED, -300.0, 0.25, 2.0, 0.0, 0.0, COMPARE_FACTOR_WHOLE},
        {LOG_LOGP_REJECTED, -300.0, 0.0, 1.03125, 0.0, 0.0, COMPARE_FACTOR_EITHER},
        {LOG_LOGP_REJECTED, -300.0, 0.0, 2.0, 0.0, 0.0, COMPARE_FACTOR_WHOLE},
        {LOG_LOGITS_CHOSEN, 1.0, -0.125, 1.0, 4.0, 0.0,
         COMPARE_FACTOR_OFFSET}, /* changes its sign */
        {LOG_LOSS, 2.0, 0.015625, 1.0, 0.25, 0.0, COMPARE_FACTOR_OFFSET},
        {LOG_GRAD_NORM, 2.0, 0.015625, 1.0, 0.25, 0.0, COMPARE_FACTOR_NONE},
        {LOG_LOSS, 2.0, 0.015625, 1.0, 0.25, 0.5, COMPARE_FACTOR_NONE},
    };
    (void)state;
    for (size_t i = 0; i < sizeof scenes / sizeof scenes[0]; i++) {
        const struct offset_scene *s = &scenes[i];
        struct pair p;
        pair_open(&p);
        for (size_t row = 0; row < 60; row++) {
            const double wave = s->slope == 0.0 ? 0.0 : 4.0 * s->slope * (double)(row % 7);
            const double b = s->level + s->slope * (double)row + wave;
            const double noise = row % 2 == 1 ? s->noise : 0.0;
            pair_put(&p, 1, (enum log_name)s->name, row, b);
            pair_put(&p, 0, (enum log_name)s->name, row, s->factor * b + s->offset + noise);
        }
        const struct compare_ratio *ratio = pair_ratio(pair_compare(&p), (enum log_name)s->name);
        if ((ratio == NULL ? COMPARE_FACTOR_NONE : ratio->kind) != s->kind)
            fail_msg("scene %zu: kind %d", i, ratio == NULL ? 0 : ratio->kind);
        if (s->kind == COMPARE_FACTOR_OFFSET) {
            assert_true(fabs(ratio->offset - s->offset) <= s->noise);
            assert_true(ratio->scatter <= s->noise && ratio->scatter >= 0.5 * s->noise);
            assert_int_equal(ratio->held, 60);
            assert_true(p.report.cause != CAUSE_NORMALISATION);
        }
        if (s->kind == COMPARE_FACTOR_EITHER) {
            assert_true(fabs(ratio->factor - s->factor) < 1e-6);
            assert_true(fabs(ratio->offset - (s->factor - 1.0) * s->level) < 1e-3);
        }
        arena_close(&p.arena);
    }
}

static void validate_ratio_of_tokens(void **state) {
    (void)state;
    struct pair p;
    pair_open(&p);
    for (size_t row = 0; row < 60; row++)
        pair_put(&p, 0, LOG_GRAD_NORM, row,
                 helper_value(p.log[1], LOG_GRAD_NORM, row) *
                     helper_value(p.log[0], LOG_TOKENS, row));
    const struct compare_ratio *ratio = pair_ratio(pair_compare(&p), LOG_GRAD_NORM);
    assert_non_null(ratio);
    assert_int_equal(ratio->kind, COMPARE_FACTOR_TOKENS);
    assert_int_equal(ratio->held, 60);
    pin("ratio of tokens", 0, &p.report);
    arena_close(&p.arena);
}

/* A ratio that begins in the middle of a run must not be named as one of these. */
static void validate_ratio_from_the_start(void **state) {
    (void)state;
    struct pair p;
    pair_open(&p);
    for (size_t row = 1; row < 60; row++)
        pair_put(&p, 0, LOG_GRAD_NORM, row,
                 helper_value(p.log[1], LOG_GRAD_NORM, row) *
                     helper_value(p.log[0], LOG_TOKENS, row));
    pair_scale(&p, 0, LOG_LOSS, 1, 2.0);
    assert_null(pair_ratio(pair_compare(&p), LOG_GRAD_NORM));
    assert_null(pair_ratio(&p.report, LOG_LOSS));
    pin("ratio from the start", 0, &p.report);
    arena_close(&p.arena);
}

/* A linear decay without warm-up and one with a warm-up of one update are in a fixed ratio behind
 * the first update, where the one has its peak and the other one 0: the peaks are equal. */
static void validate_no_ratio_to_zero(void **state) {
    (void)state;
    for (int from_zero = 0; from_zero < 2; from_zero++) {
        struct pair p;
        pair_open(&p);
        for (size_t row = 0; row < 60; row++) {
            const double rate = 1e-3 * (60.0 - (double)row);
            pair_put(&p, 0, LOG_LR_LOGGED, row, rate / 60.0);
            pair_put(&p, 1, LOG_LR_LOGGED, row, row == 0 && from_zero ? 0.0 : rate / 40.0);
        }
        const struct compare_ratio *ratio = pair_ratio(pair_compare(&p), LOG_LR_LOGGED);
        if ((ratio != NULL) == from_zero) fail_msg("from zero %d", from_zero);
        arena_close(&p.arena);
    }
}

/* Two digits admit many factors: 20 and 21 cannot be told apart, so none may be named. */
static void validate_coarse_ratio(void **state) {
    (void)state;
    struct pair p;
    pair_open(&p);
    for (size_t row = 0; row < 60; row++) {
        helper_put(&p.arena, p.log[0], LOG_GRAD_NORM, row, 8.0, 1);
        helper_put(&p.arena, p.log[1], LOG_GRAD_NORM, row, 0.4, 1);
    }
    assert_null(pair_ratio(pair_compare(&p), LOG_GRAD_NORM));
    pin("coarse ratio", 0, &p.report);
    arena_close(&p.arena);
}

static void verify_no_ratio_of_strangers(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct pair p;
        pair_open(&p);
        const struct helper_training training = {60,          seed * 31, 1, 8,    4,
                                                 PRINT_EXACT, 1.5,       0, NULL, NULL};
        p.log[1] = helper_trained(&p.arena, &training);
        const struct compare_report *report = pair_compare(&p);
        for (size_t i = 0; i < report->ratio_count; i++)
            fail_msg("seed %llu: ratio %g of %s", (unsigned long long)seed,
                     report->ratios[i].factor, log_names[report->ratios[i].name].name);
        arena_close(&p.arena);
    }
}

/* ---- the trap: equal columns, different trainings ---- */

/* A applies f(k-1) and prints the LR of the next update; B applies f(k) and prints it. T = 60. */
static void make_trap(struct pair *p) {
    pair_open(p);
    for (size_t s = 0; s < 2; s++)
        for (size_t row = 0; row < 60; row++)
            pair_put(p, s, LOG_LR_LOGGED, row, 5e-7 * (59.0 - (double)row) / 60.0);
    pair_part(p, 1, 0.999);
}

static void validate_trap(void **state) {
    (void)state;
    struct pair p;
    make_trap(&p);
    pair_fit(&p, 0, "hf-4.50");
    pair_fit(&p, 1, "olmo-core");
    const struct compare_report *report = pair_compare(&p);
    assert_int_equal(pair_column(report, LOG_LR_LOGGED)->class_of, COMPARE_EQUAL);
    assert_int_equal(report->lr.state, COMPARE_LR_DIFFERENT);
    assert_true(report->lr.stated);
    assert_int_equal(report->lr.shift, -1);
    assert_int_equal(report->lr.first_update, 1);
    assert_non_null(strstr(report->lr.words, "The logged LR columns agree, but under hf-4.50 for A "
                                             "and olmo-core for B the applied LRs differ by one "
                                             "update: update k of A applies what update k-1 of B "
                                             "applies"));
    assert_int_equal(report->verdict, COMPARE_VERDICT_DIFFERS);
    assert_int_equal(report->cause, CAUSE_SCHEDULE);
    assert_non_null(strstr(report->meaning, "another LR: the schedule"));
    pin("trap", 0, &p.report);
    arena_close(&p.arena);
}

static void validate_trap_without_contracts(void **state) {
    (void)state;
    struct pair p;
    make_trap(&p);
    pair_fit(&p, 0, NULL);
    pair_fit(&p, 1, NULL);
    const struct compare_report *report = pair_compare(&p);
    assert_int_equal(report->lr.state, COMPARE_LR_UNTESTABLE);
    assert_true(report->lr.agree > 0);
    assert_true(report->lr.differ > 0);
    assert_false(report->lr.stated);
    assert_non_null(strstr(report->lr.words, "--contract-a"));
    assert_int_equal(report->cause, -1);
    assert_non_null(strstr(report->meaning, "even when the printed columns agree"));
    pin("trap without contracts", 0, &p.report);
    arena_close(&p.arena);
}

static void keep_lr_only(struct pair *p) {
    for (size_t s = 0; s < 2; s++) {
        const struct log_column lr = *log_column_of(p->log[s], LOG_LR_LOGGED);
        p->log[s]->columns[0] = lr;
        p->log[s]->column_count = 1;
    }
}

/* Equal LR columns alone decide nothing, unless the contracts are known. */
static void validate_lr_alone(void **state) {
    (void)state;
    static const struct {
        const char *a, *b;
        int verdict;
    } cases[] = {{NULL, NULL, COMPARE_VERDICT_UNTESTABLE},
                 {"hf-4.50", "olmo-core", COMPARE_VERDICT_DIFFERS},
                 {"olmo-core", "olmo-core", COMPARE_VERDICT_EQUAL},
                 {"hf-4.50", "hf-4.50", COMPARE_VERDICT_EQUAL}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pair p;
        make_trap(&p);
        keep_lr_only(&p);
        pair_fit(&p, 0, cases[i].a);
        pair_fit(&p, 1, cases[i].b);
        if (pair_compare(&p)->verdict != cases[i].verdict)
            fail_msg("case %zu: %s", i, p.report.lr.words);
        pin("LR alone", i, &p.report);
        arena_close(&p.arena);
    }
}

/* One training printed by an old and a new release: only the print differs. */
static void validate_log_next(void **state) {
    (void)state;
    struct pair p;
    pair_open(&p);
    for (size_t row = 0; row < 60; row++) {
        pair_put(&p, 0, LOG_LR_LOGGED, row, 5e-7 * (60.0 - (double)row) / 60.0);
        pair_put(&p, 1, LOG_LR_LOGGED, row, 5e-7 * (59.0 - (double)row) / 60.0);
    }
    pair_fit(&p, 0, "hf");
    pair_fit(&p, 1, "hf-4.50");
    const struct compare_report *report = pair_compare(&p);
    assert_int_equal(report->lr.state, COMPARE_LR_SAME);
    assert_int_equal(report->order_count, 1);
    assert_non_null(strstr(report->meaning, "log_next_lr"));
    pin("log next", 0, &p.report);
    arena_close(&p.arena);
}

/* No explanation of one column applies the LRs that one of the other does, so the trainings differ
 * for certain and no contract needs to be given. */
static void validate_sure_difference(void **state) {
    (void)state;
    struct pair p;
    pair_open(&p);
    pair_scale(&p, 1, LOG_LR_LOGGED, 0, 4.0);
    pair_fit(&p, 0, NULL);
    pair_fit(&p, 1, NULL);
    const struct compare_report *report = pair_compare(&p);
    assert_int_equal(report->lr.state, COMPARE_LR_DIFFERENT);
    assert_int_equal(report->lr.agree, 0);
    assert_null(strstr(report->lr.words, "--contract-a"));
    pin("sure difference", 0, &p.report);
    arena_close(&p.arena);
}

static void validate_unfitted(void **state) {
    (void)state;
    struct pair p;
    pair_open(&p);
    for (size_t row = 0; row < 60; row++)
        pair_put(&p, 1, LOG_LR_LOGGED, row, 1e-6 * (1.5 + sin((double)(row * row))));
    pair_fit(&p, 0, "hf");
    pair_fit(&p, 1, "olmo-core");
    const struct compare_report *report = pair_compare(&p);
    assert_int_equal(report->lr.state, COMPARE_LR_UNFITTED);
    assert_string_equal(report->lr.words, "The LR column of B does not fit olmo-core: the applied "
                                          "LRs cannot be compared.");
    pin("unfitted", 0, &p.report);
    arena_close(&p.arena);
}

/* ---- skipped updates ---- */

/* B is A, but for updates that a loss scaler skipped, where its schedule held: update k applies
 * what A applies `lag` updates before. The losses part behind the first skip. */
static void make_skips(struct pair *p, size_t first, size_t count, double peak) {
    pair_open(p);
    for (size_t row = 0; row < 60; row++) {
        const size_t k = row + 1;
        const size_t lag = k <= first ? 0 : k - first < count ? k - first : count;
        pair_put(p, 0, LOG_LR_LOGGED, row, 5e-7 * (60.0 - (double)row) / 60.0);
        pair_put(p, 1, LOG_LR_LOGGED, row, peak * (60.0 - (double)(row - lag)) / 60.0);
    }
    pair_part(p, first, 0.999);
}

static void record_skips(struct pair *p, size_t first, size_t count) {
    for (size_t s = 0; s < 2; s++)
        for (size_t row = 0; row < 60; row++)
            pair_put(p, s, LOG_SKIPPED, row,
                     s == 1 && row + 1 >= first && row + 1 < first + count ? 1.0 : 0.0);
}

/* One schedule and other skipped updates are no other schedule, with the contract stated, with
 * every contract tried, and where nothing was fitted but the log counts its skips. */
static void validate_skips(void **state) {
    (void)state;
    static const struct {
        const char *contract;
        int fitted, recorded;
        size_t first, count;
    } cases[] = {{"hf", 1, 0, 1, 3},
                 {"hf", 1, 0, 20, 1},
                 {NULL, 1, 0, 20, 2},
                 {NULL, 1, 1, 20, 2},
                 {NULL, 0, 1, 20, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pair p;
        make_skips(&p, cases[i].first, cases[i].count, 5e-7);
        if (cases[i].recorded) record_skips(&p, cases[i].first, cases[i].count);
        for (size_t s = 0; s < 2 && cases[i].fitted; s++)
            pair_fit(&p, s, cases[i].contract);
        const struct compare_report *report = pair_compare(&p);
        if (report->cause != -1) fail_msg("case %zu: %s", i, report->meaning);
        assert_non_null(strstr(report->meaning, !cases[i].fitted    ? "Other updates were"
                                                : cases[i].recorded ? "The schedules agree"
                                                                    : "By the simplest"));
        assert_int_equal(report->lr.skips_part > 0, cases[i].fitted);
        if (cases[i].fitted &&
            strstr(report->lr.words, "only the skipped updates differ: none in A, update") == NULL)
            fail_msg("case %zu: %s", i, report->lr.words);
        pin("skips", i, &p.report);
        arena_close(&p.arena);
    }
}

/* Gradient norms that are not finite in both logs say that both skipped these updates, so that one
 * schedule went on where the other held; in one log alone they agree with its explanation. */
static void validate_skips_against_norms(void **state) {
    (void)state;
    for (int both = 0; both < 2; both++) {
        struct pair p;
        make_skips(&p, 20, 2, 5e-7);
        for (size_t row = 19; row < 21; row++)
            for (size_t s = both ? 0 : 1; s < 2; s++)
                pair_put(&p, s, LOG_GRAD_NORM, row, real_nan_f64());
        for (size_t s = 0; s < 2; s++)
            pair_fit(&p, s, "hf");
        const struct compare_report *report = pair_compare(&p);
        assert_int_equal(report->lr.skips_part > 0, !both);
        assert_int_equal(report->cause, both ? CAUSE_SCHEDULE : -1);
        arena_close(&p.arena);
    }
}

static size_t lag_at(size_t k, size_t first) {
    return k <= first ? 0 : k - first < 2 ? k - first : 2;
}

/* Where the scheduler moves on at a skip, or its LR stands still, no LR differs: the count says it
 * all the same, however late the loss shows it. */
static void validate_skips_at_equal_lr(void **state) {
    (void)state;
    for (size_t i = 0; i < 6; i++) {
        static const size_t firsts[] = {1, 2, 30};
        const size_t first = firsts[i % 3];
        struct pair p;
        pair_open(&p);
        for (size_t row = 0; row < 60; row++)
            for (size_t s = 0; s < 2 && i < 3; s++)
                pair_put(&p, s, LOG_LR_LOGGED, row, 1e-3);
        pair_scale(&p, 1, LOG_LOSS, first, 1.01);
        record_skips(&p, first, 1);
        for (size_t s = 0; s < 2; s++)
            pair_fit(&p, s, NULL);
        const struct compare_report *report = pair_compare(&p);
        assert_int_equal(report->cause, -1);
        assert_non_null(strstr(report->meaning, "Other updates were skipped, and nothing differs"));
        assert_non_null(strstr(report->meaning, "No LR in both logs differs"));
        arena_close(&p.arena);
    }
}

/* Skips that are counted behind the first other loss explain nothing, and those of two logs whose
 * losses and norms agree are not what differs. */
static void validate_skips_too_late(void **state) {
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct pair p;
        pair_open(&p);
        if (i == 0) pair_scale(&p, 1, LOG_LOSS, 10, 1.01);
        record_skips(&p, 30, 1);
        const struct compare_report *report = pair_compare(&p);
        assert_null(strstr(report->meaning, "Other updates were skipped"));
        arena_close(&p.arena);
    }
}

/* A skipped updates 10 and 11, B as many, but 40 and 41: they part at A's. */
static void validate_skips_of_both(void **state) {
    (void)state;
    struct pair p;
    pair_open(&p);
    for (size_t row = 0; row < 60; row++)
        for (size_t s = 0; s < 2; s++) {
            const size_t lag = lag_at(row + 1, s == 0 ? 10 : 40);
            pair_put(&p, s, LOG_LR_LOGGED, row, 5e-7 * (60.0 - (double)(row - lag)) / 60.0);
        }
    pair_scale(&p, 1, LOG_LOSS, 10, 0.999);
    for (size_t s = 0; s < 2; s++)
        pair_fit(&p, s, "hf");
    const struct compare_report *report = pair_compare(&p);
    assert_in_range(report->lr.skips_part, 10, 12);
    assert_non_null(strstr(report->lr.words, "only the skipped updates differ: "));
    arena_close(&p.arena);
}

/* An LR that comes one update late, as if update 1 had been skipped, is what another contract of 61
 * updates prints. Where that is simpler, and nothing counts skips, nobody says that the schedules
 * agree. */
static void validate_skip_or_contract(void **state) {
    (void)state;
    struct pair p;
    struct fit_known known;
    make_skips(&p, 1, 1, 5e-7);
    for (size_t s = 0; s < 2; s++)
        pair_fit(&p, s, NULL);
    fit_known_init(&known);
    known.run_steps = 61;
    assert_int_equal(fit_series(&p.series[1], &known, &p.arena, &p.fits[1]), STATUS_OK);
    const struct compare_report *report = pair_compare(&p);
    assert_false(report->lr.skips_simplest);
    assert_int_equal(report->cause, CAUSE_SCHEDULE);
    pin("skip or contract", 0, &p.report);
    arena_close(&p.arena);
}

/* Another peak is another schedule, whatever was skipped, and so is an LR that parts before the
 * first skip. */
static void validate_skips_and_schedule(void **state) {
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct pair p;
        make_skips(&p, 20, 2, i == 0 ? 6e-7 : 5e-7);
        if (i == 0)
            pair_scale(&p, 1, LOG_LOSS, 1, 0.999);
        else
            pair_put(&p, 1, LOG_LR_LOGGED, 4, 4e-7);
        record_skips(&p, 20, 2);
        if (i == 0)
            for (size_t s = 0; s < 2; s++)
                pair_fit(&p, s, "hf");
        const struct compare_report *report = pair_compare(&p);
        if (report->cause != CAUSE_SCHEDULE) fail_msg("case %zu: %s", i, report->meaning);
        assert_int_equal(report->lr.skips_part, 0);
        arena_close(&p.arena);
    }
}

/* LRs that differ behind their fourth digit are not shown as one number. */
static void validate_close_numbers(void **state) {
    (void)state;
    for (int is_applied = 0; is_applied < 2; is_applied++) {
        struct pair p;
        pair_open(&p);
        for (size_t s = 0; s < 2; s++) {
            const double factor = s == 0 ? 1.0 : 1.0 + 0x1p-20;
            if (is_applied)
                for (size_t row = 0; row < 60; row++)
                    pair_put(&p, s, LOG_LR_APPLIED, row, 1e-3 * factor);
            pair_scale(&p, s, LOG_LR_LOGGED, 0, factor);
            pair_fit(&p, s, "hf");
        }
        const struct compare_report *report = pair_compare(&p);
        const char *const numbers = strchr(report->lr.words, '(');
        char a[64], b[64];
        assert_int_equal(report->lr.state, COMPARE_LR_DIFFERENT);
        assert_non_null(numbers);
        assert_int_equal(sscanf(numbers, "(%63s against %63[^)]", a, b), 2);
        assert_string_not_equal(a, b);
        arena_close(&p.arena);
    }
}

/* ---- further parameter groups ---- */

/* Gives both logs the applied LR of the first group, and side `s` that of group 1: `factor` times
 * it from row `from` on. */
static void put_first(struct pair *p) {
    for (size_t s = 0; s < 2; s++)
        for (size_t row = 0; row < 60; row++)
            pair_put(p, s, LOG_LR_APPLIED, row, 1e-3);
}
static struct log_column *put_further(struct pair *p, size_t s, const char *source, size_t from,
                                      double factor) {
    struct log_column *column = helper_column(&p->arena, p->log[s], LOG_OTHER);
    column->source = source;
    for (size_t row = 0; row < 60; row++) {
        column->value[row] = row >= from ? factor * 1e-3 : 1e-3;
        column->quantum[row] = 0.0f;
    }
    return column;
}

/* Another LR of a further group alone makes the two differ, and points to the schedule. */
static void validate_further_group(void **state) {
    (void)state;
    static const char *const sources[] = {"lr_applied[1]", "lr_logged[1]"};
    for (size_t i = 0; i < 2; i++) {
        struct pair p;
        pair_open(&p);
        put_first(&p);
        put_further(&p, 0, sources[i], 0, 1.0);
        put_further(&p, 1, sources[i], 2, 0.5);
        const struct compare_report *report = pair_compare(&p);
        assert_int_equal(report->verdict, COMPARE_VERDICT_DIFFERS);
        assert_int_equal(report->cause, CAUSE_SCHEDULE);
        assert_int_equal(report->lr.state, i == 0 ? COMPARE_LR_DIFFERENT : COMPARE_LR_UNTESTABLE);
        assert_non_null(strstr(report->lr.words, "that of group 0 agrees"));
        assert_non_null(strstr(report->lr.words, "LR of group 1 ("));
        assert_non_null(
            strstr(report->lr.words, "differs from update 3 on (0.001 against 0.0005)"));
        assert_int_equal(report->lr.first_update, i == 0 ? 3 : 0);
        arena_close(&p.arena);
    }
}

/* Where the LR of the first group differs no later, nothing is added: one cause is told once. */
static void validate_all_groups(void **state) {
    (void)state;
    struct pair p;
    pair_open(&p);
    put_first(&p);
    pair_scale(&p, 1, LOG_LR_APPLIED, 2, 0.5);
    for (size_t s = 0; s < 2; s++)
        put_further(&p, s, "lr_applied[1]", 2, s == 0 ? 1.0 : 0.5);
    const struct compare_report *report = pair_compare(&p);
    assert_int_equal(report->lr.group, 0);
    assert_int_equal(report->lr.groups_differ, 1);
    assert_string_equal(report->lr.words, "Both logs record the LR that was applied; it differs "
                                          "from update 3 on (0.001 against 0.0005).");
    arena_close(&p.arena);
}

/* The earliest of several groups is named; NaN against a number differs, and where a trace has no
 * number it was NaN. */
static void validate_further_groups(void **state) {
    (void)state;
    for (int nan_is_left_out = 0; nan_is_left_out < 2; nan_is_left_out++) {
        struct pair p;
        pair_open(&p);
        put_first(&p);
        for (size_t s = 0; s < 2; s++) {
            if (nan_is_left_out) p.log[s]->format = "trace";
            put_further(&p, s, "lr_applied[1]", 20, s == 0 ? 1.0 : 2.0);
            struct log_column *const second = put_further(&p, s, "lr_applied[2]", 0, 1.0);
            if (s == 0) continue;
            second->value[4] = (double)NAN;
            if (nan_is_left_out) second->quantum[4] = NAN;
        }
        const struct compare_report *report = pair_compare(&p);
        assert_int_equal(report->verdict, COMPARE_VERDICT_DIFFERS);
        assert_int_equal(report->lr.group, 2);
        assert_int_equal(report->lr.first_update, 5);
        assert_non_null(strstr(report->lr.words, "group 2 (lr_applied[2]) differs from update 5"));
        assert_non_null(strstr(report->lr.words, "2 further groups in both, 2 differ"));
        arena_close(&p.arena);
    }
}

/* A group that one log alone has leaves the agreement to group 0, and "at equal applied LRs"
 * unsaid; so does one that differs later. */
static void validate_group_of_one_log(void **state) {
    (void)state;
    for (int is_in_both = 0; is_in_both < 2; is_in_both++) {
        struct pair p;
        pair_open(&p);
        put_first(&p);
        put_further(&p, 1, "lr_applied[1]", 30, 0.5);
        if (is_in_both) put_further(&p, 0, "lr_applied[1]", 30, 1.0);
        const struct compare_report *report = pair_compare(&p);
        assert_int_equal(report->verdict,
                         is_in_both ? COMPARE_VERDICT_DIFFERS : COMPARE_VERDICT_EQUAL);
        assert_null(strstr(report->lr.words, "it agrees"));
        assert_non_null(strstr(report->lr.words, "that of group 0 agrees"));
        assert_int_equal(strstr(report->lr.words, "Only B has the LR of group 1") != NULL,
                         !is_in_both);
        pair_part(&p, 1, 1.001);
        report = pair_compare(&p);
        assert_int_equal(report->order_count, 1);
        if (report->cause >= 0) fail_msg("%s", report->meaning);
        assert_null(strstr(report->meaning, "at equal applied LRs"));
        arena_close(&p.arena);
    }
}

/* Five LRs on a straight line have explanations that apply them one update apart. Where both logs
 * record what was applied, and it agrees, the example of the report is a pair that agrees, too. */
static void validate_example_of_recorded(void **state) {
    (void)state;
    struct pair p;
    pair_open(&p);
    for (size_t s = 0; s < 2; s++) {
        p.log[s]->rows = 5;
        for (size_t row = 0; row < 5; row++) {
            pair_put(&p, s, LOG_LR_LOGGED, row, 1e-3 * (1.0 - 0.2 * (double)row));
            pair_put(&p, s, LOG_LR_APPLIED, row, 1e-3 * (1.0 - 0.2 * (double)row));
        }
        pair_fit(&p, s, NULL);
    }
    const struct compare_lr *const lr = &pair_compare(&p)->lr;
    assert_true(lr->agree > 0 && lr->differ > 0);
    assert_int_equal(lr->state, COMPARE_LR_SAME);
    for (uint64_t k = 1; k <= 5; k++)
        assert_true(fit_applied(lr->fit[0], 0, k) == fit_applied(lr->fit[1], 0, k));
    assert_int_equal(lr->first_update, 0);
    arena_close(&p.arena);
}

/* Where both record what was applied, the explanation that is shown of each side applies that at
 * every update; where none does, it is the simplest one of what was printed, and the update at
 * which it fails is told. What is recorded: the LR that was printed, that of the row before, that
 * of the row behind, or half of it from row 4 on. */
static void validate_explanations_of_recorded(void **state) {
    (void)state;
    enum { ROWS = 12, KINDS = 4 };
    for (int kind = 0; kind < KINDS * KINDS; kind++) {
        struct pair p;
        pair_open(&p);
        for (size_t s = 0; s < 2; s++) {
            const int of = s == 0 ? kind / KINDS : kind % KINDS;
            p.log[s]->rows = ROWS;
            for (size_t row = 0; row < ROWS; row++) {
                const double at = (double)row + (of == 1 ? -1.0 : of == 2 ? 1.0 : 0.0);
                pair_put(&p, s, LOG_LR_LOGGED, row, 1e-3 * (1.0 - (double)(row + 1) / 16.0));
                pair_put(&p, s, LOG_LR_APPLIED, row,
                         1e-3 * (1.0 - (at + 1.0) / 16.0) * (of == 3 && row >= 3 ? 0.5 : 1.0));
            }
            pair_fit(&p, s, NULL);
        }
        const struct compare_lr *const lr = &pair_compare(&p)->lr;
        for (size_t s = 0; s < 2; s++) {
            const int of = s == 0 ? kind / KINDS : kind % KINDS;
            uint64_t apart = 0;
            for (size_t row = 0; row < ROWS && apart == 0; row++)
                if (fabs(fit_applied(lr->fit[s], row, row + 1) -
                         helper_value(p.log[s], LOG_LR_APPLIED, row)) > 1e-9)
                    apart = row + 1;
            assert_true(lr->applied_update[s] == apart);
            assert_int_equal(apart > 0, of > 1);
            if (apart == 0) continue;
            assert_ptr_equal(lr->fit[s], &p.fits[s].fits[0]);
            assert_true(lr->applied_there[s] == helper_value(p.log[s], LOG_LR_APPLIED, apart - 1));
            assert_true(lr->expected_there[s] == fit_applied(lr->fit[s], apart - 1, apart));
        }
        arena_close(&p.arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(validate_ratios),
                                       cmocka_unit_test(validate_offsets),
                                       cmocka_unit_test(validate_ratio_of_tokens),
                                       cmocka_unit_test(validate_ratio_from_the_start),
                                       cmocka_unit_test(validate_no_ratio_to_zero),
                                       cmocka_unit_test(validate_coarse_ratio),
                                       cmocka_unit_test(verify_no_ratio_of_strangers),
                                       cmocka_unit_test(validate_trap),
                                       cmocka_unit_test(validate_trap_without_contracts),
                                       cmocka_unit_test(validate_lr_alone),
                                       cmocka_unit_test(validate_log_next),
                                       cmocka_unit_test(validate_sure_difference),
                                       cmocka_unit_test(validate_unfitted),
                                       cmocka_unit_test(validate_skips),
                                       cmocka_unit_test(validate_skips_at_equal_lr),
                                       cmocka_unit_test(validate_skips_too_late),
                                       cmocka_unit_test(validate_skips_of_both),
                                       cmocka_unit_test(validate_skips_against_norms),
                                       cmocka_unit_test(validate_skip_or_contract),
                                       cmocka_unit_test(validate_skips_and_schedule),
                                       cmocka_unit_test(validate_close_numbers),
                                       cmocka_unit_test(validate_further_group),
                                       cmocka_unit_test(validate_further_groups),
                                       cmocka_unit_test(validate_all_groups),
                                       cmocka_unit_test(validate_group_of_one_log),
                                       cmocka_unit_test(validate_example_of_recorded),
                                       cmocka_unit_test(validate_explanations_of_recorded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

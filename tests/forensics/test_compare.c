/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Comparison of two logs: classes and precision, alignment over resumes, order of first differences
 * and what it means, ratios, and applied LRs that differ under equal columns. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "forensics/compare.h"
#include "tests/forensics/helper_log.h"

struct pair {
    struct arena arena;
    struct log *log[2];
    struct series series[2];
    struct fit_set fits[2];
    struct compare_input input[2];
    struct compare_report report;
};

static struct log *trained(struct arena *arena, int print) {
    const struct helper_training training = {60, 7, 1, 8, print, PRINT_EXACT, 1.5, NULL, NULL};
    return helper_trained(arena, &training);
}

static struct pair *open_pair(struct pair *p) {
    memset(p, 0, sizeof *p);
    for (size_t s = 0; s < 2; s++)
        p->log[s] = trained(&p->arena, PRINT_FLOAT);
    return p;
}

static void put(struct pair *p, size_t side, enum log_name name, size_t row, double value) {
    helper_put(&p->arena, p->log[side], name, row, value, PRINT_EXACT);
}

/* Multiplies rows from `from` on. */
static void scale(struct pair *p, size_t side, enum log_name name, size_t from, double factor) {
    for (size_t row = from; row < p->log[side]->rows; row++)
        put(p, side, name, row, factor * helper_value(p->log[side], name, row));
}

static const struct compare_report *compare(struct pair *p) {
    for (size_t s = 0; s < 2; s++)
        p->input[s].log = p->log[s];
    assert_int_equal(compare_logs(p->input, &p->arena, &p->report), STATUS_OK);
    return &p->report;
}

static void fit_side(struct pair *p, size_t s, const char *contract) {
    struct fit_known known;
    fit_known_init(&known);
    known.run_steps = p->log[s]->rows;
    if (contract != NULL) known.request.contract = contract_find(contract);
    assert_true(contract == NULL || known.request.contract != NULL);
    assert_int_equal(
        series_of(p->log[s], log_column_of(p->log[s], LOG_LR_LOGGED), &p->arena, &p->series[s]),
        STATUS_OK);
    assert_int_equal(fit_series(&p->series[s], &known, &p->arena, &p->fits[s]), STATUS_OK);
    p->input[s].fits = &p->fits[s];
    p->input[s].contract = contract;
}

static const struct compare_column *column_of(const struct compare_report *report,
                                              enum log_name name) {
    for (size_t i = 0; i < report->column_count; i++)
        if (report->columns[i].name == (int32_t)name) return &report->columns[i];
    fail_msg("no column %s", log_names[name].name);
    return NULL;
}

static const struct compare_ratio *ratio_of(const struct compare_report *report,
                                            enum log_name name) {
    for (size_t i = 0; i < report->ratio_count; i++)
        if (report->ratios[i].name == (int32_t)name) return &report->ratios[i];
    return NULL;
}

/* ---- classes ---- */

static void validate_equal(void **state) {
    (void)state;
    struct pair p;
    const struct compare_report *report = compare(open_pair(&p));
    assert_int_equal(report->verdict, COMPARE_VERDICT_EQUAL);
    assert_int_equal(column_of(report, LOG_LOSS)->class_of, COMPARE_EQUAL);
    assert_int_equal(column_of(report, LOG_LOSS)->equal, 60);
    assert_int_equal(column_of(report, LOG_EPOCH)->class_of, COMPARE_WITHIN); /* two decimals */
    assert_int_equal(report->order_count, 0);
    assert_int_equal(report->ratio_count, 0);
    assert_int_equal(report->from, 1);
    assert_int_equal(report->to, 60);
    arena_close(&p.arena);
}

static void validate_within(void **state) {
    (void)state;
    struct pair p;
    open_pair(&p);
    p.log[1] = trained(&p.arena, 4);
    const struct compare_report *report = compare(&p);
    assert_int_equal(report->verdict, COMPARE_VERDICT_EQUAL);
    assert_int_equal(column_of(report, LOG_LOSS)->class_of, COMPARE_WITHIN);
    arena_close(&p.arena);
}

static void validate_one_unit_more(void **state) {
    (void)state;
    struct pair p;
    open_pair(&p);
    p.log[1] = trained(&p.arena, 4);
    const double value = helper_value(p.log[1], LOG_LOSS, 30);
    helper_put(&p.arena, p.log[1], LOG_LOSS, 30, value + 0.0002, 4);
    const struct compare_report *report = compare(&p);
    assert_int_equal(report->verdict, COMPARE_VERDICT_DIFFERS);
    assert_int_equal(column_of(report, LOG_LOSS)->different, 1);
    assert_int_equal(column_of(report, LOG_LOSS)->first_update, 31);
    assert_int_equal(column_of(report, LOG_LOSS)->first[1].row, 30);
    assert_int_equal(report->order_count, 1);
    arena_close(&p.arena);
}

static void validate_not_in_both(void **state) {
    (void)state;
    struct pair p;
    open_pair(&p);
    helper_drop(p.log[1], LOG_LOSS);
    helper_drop(p.log[0], LOG_GRAD_NORM);
    p.log[0]->columns[0].cumulative = 0;
    for (size_t c = 0; c < p.log[0]->column_count; c++)
        if (p.log[0]->columns[c].name == LOG_TOKENS) p.log[0]->columns[c].cumulative = 1;
    const struct compare_report *report = compare(&p);
    assert_string_equal(column_of(report, LOG_LOSS)->why, "only A has it");
    assert_string_equal(column_of(report, LOG_GRAD_NORM)->why, "only B has it");
    assert_string_equal(column_of(report, LOG_TOKENS)->why,
                        "one is a running total, the other is of each update");
    arena_close(&p.arena);
}

static void validate_nothing_in_common(void **state) {
    (void)state;
    struct pair p;
    open_pair(&p);
    for (size_t row = 0; row < 60; row++)
        p.log[1]->step[row] += 100;
    const struct compare_report *report = compare(&p);
    assert_int_equal(report->verdict, COMPARE_VERDICT_UNTESTABLE);
    assert_string_equal(column_of(report, LOG_LOSS)->why, "no update is in both");
    arena_close(&p.arena);
}

/* A mean over ten updates and the value of the tenth are two things. */
static void validate_windows(void **state) {
    (void)state;
    struct pair p;
    open_pair(&p);
    for (size_t row = 0; row < 6; row++)
        p.log[1]->step[row] = (int64_t)row * 10 + 10;
    p.log[1]->rows = 6;
    for (size_t c = 0; c < p.log[1]->column_count; c++)
        p.log[1]->columns[c].windowed = p.log[1]->columns[c].name == LOG_LOSS;
    const struct compare_report *report = compare(&p);
    assert_int_equal(column_of(report, LOG_LOSS)->class_of, COMPARE_ABSENT);
    assert_string_equal(column_of(report, LOG_LOSS)->why, "means over different windows");
    assert_int_equal(column_of(report, LOG_LOSS)->unlike, 6);
    assert_int_equal(column_of(report, LOG_GRAD_NORM)->pairs, 6);
    arena_close(&p.arena);
}

/* ---- alignment ---- */

/* B stopped after update 40 and went on from 31: its first rows 31 to 40 are another training. */
static void validate_later_rows_win(void **state) {
    (void)state;
    struct pair p;
    open_pair(&p);
    struct log *log = helper_log(&p.arena, 70);
    for (size_t row = 0; row < 70; row++) {
        const size_t source = row < 40 ? row : row - 10;
        const double wrong = row >= 30 && row < 40 ? 0.5 : 0.0;
        helper_put(&p.arena, log, LOG_LOSS, row, helper_value(p.log[0], LOG_LOSS, source) + wrong,
                   PRINT_EXACT);
    }
    helper_resume(log, 40, 31);
    p.log[1] = log;
    const struct compare_report *report = compare(&p);
    assert_int_equal(report->verdict, COMPARE_VERDICT_EQUAL);
    assert_int_equal(report->repeated[1], 10);
    assert_int_equal(report->repeated[0], 0);
    assert_int_equal(column_of(report, LOG_LOSS)->pairs, 60);
    arena_close(&p.arena);
}

static void verify_order_of_rows_is_free(void **state) {
    (void)state;
    struct pair p;
    open_pair(&p);
    for (size_t row = 0; row < 60; row++) { /* a permutation: 7 and 60 have no common factor */
        const size_t source = row * 7 % 60;
        p.log[1]->step[row] = (int64_t)source + 1;
        for (size_t c = 0; c < p.log[1]->column_count; c++) {
            p.log[1]->columns[c].value[row] = p.log[0]->columns[c].value[source];
            p.log[1]->columns[c].quantum[row] = p.log[0]->columns[c].quantum[source];
        }
    }
    const struct compare_report *report = compare(&p);
    assert_int_equal(report->verdict, COMPARE_VERDICT_EQUAL);
    assert_int_equal(column_of(report, LOG_LOSS)->equal, 60);
    arena_close(&p.arena);
}

/* ---- order and meaning ---- */

struct scene {
    const char *name;
    void (*make)(struct pair *pair);
    int first; /* enum log_name that differs first */
    int32_t cause;
    const char *meaning;
};

static void other_tokens(struct pair *p) {
    scale(p, 1, LOG_TOKENS, 0, 0.9);
    scale(p, 1, LOG_LOSS, 0, 1.1);
    scale(p, 1, LOG_GRAD_NORM, 0, 0.7);
}
static void forward_noise(struct pair *p) {
    scale(p, 1, LOG_LOSS, 0, 1.0001);
    scale(p, 1, LOG_GRAD_NORM, 0, 1.0002);
}
static void other_reference(struct pair *p) {
    for (size_t row = 0; row < 60; row++)
        put(p, 1, LOG_LOSS, row, helper_value(p->log[1], LOG_LOSS, row) + 0.1);
}
static void summed(struct pair *p) {
    scale(p, 1, LOG_LOSS, 0, 4.0);
}
static void other_backward(struct pair *p) {
    for (size_t row = 0; row < 60; row++)
        put(p, 1, LOG_GRAD_NORM, row,
            helper_value(p->log[1], LOG_GRAD_NORM, row) * (1.0 + 0.001 * (double)(row % 7 + 1)));
    for (size_t row = 1; row < 60; row++)
        put(p, 1, LOG_LOSS, row,
            helper_value(p->log[1], LOG_LOSS, row) * (1.0 + 0.0001 * (double)(row % 5 + 1)));
}
static void divided(struct pair *p) {
    scale(p, 1, LOG_GRAD_NORM, 0, 2.0);
}
static void other_lr(struct pair *p) {
    scale(p, 1, LOG_LR_LOGGED, 0, 1.25);
    scale(p, 1, LOG_LOSS, 1, 0.97);
    scale(p, 1, LOG_GRAD_NORM, 1, 0.97);
}
static void second_update(struct pair *p) {
    helper_drop(p->log[0], LOG_LR_LOGGED);
    scale(p, 1, LOG_LOSS, 1, 0.97);
}
static void later(struct pair *p) {
    for (size_t s = 0; s < 2; s++)
        for (size_t row = 0; row < 60; row++)
            put(p, s, LOG_LR_APPLIED, row, 1e-6);
    scale(p, 1, LOG_LOSS, 30, 1.01);
}
static void other_step(struct pair *p) {
    for (size_t s = 0; s < 2; s++)
        for (size_t row = 0; row < 60; row++)
            put(p, s, LOG_LR_APPLIED, row, 1e-6);
    scale(p, 1, LOG_LOSS, 1, 1.01);
}
static void middle(struct pair *p) {
    for (size_t s = 0; s < 2; s++)
        for (size_t row = 0; row < 60; row++)
            p->log[s]->step[row] += 500;
    scale(p, 1, LOG_LOSS, 0, 1.1);
}

static const struct scene scenes[] = {
    {"other_tokens", other_tokens, LOG_TOKENS, CAUSE_DATA_ORDER, "Counts of tokens"},
    {"forward_noise", forward_noise, LOG_LOSS, CAUSE_DTYPE, "A small gap is already"},
    {"other_reference", other_reference, LOG_LOSS, CAUSE_REFERENCE, "differs by more than"},
    {"summed", summed, LOG_LOSS, CAUSE_NORMALISATION, "divided by another number"},
    {"other_backward", other_backward, LOG_GRAD_NORM, CAUSE_NONDETERMINISM, "its gradient does"},
    {"divided", divided, LOG_GRAD_NORM, CAUSE_NORMALISATION, "fixed ratio"},
    {"other_lr", other_lr, LOG_LR_LOGGED, CAUSE_SCHEDULE, "another LR: the schedule"},
    {"second_update", second_update, LOG_LOSS, CAUSE_SCHEDULE, "one update earlier or later"},
    {"other_step", other_step, LOG_LOSS, CAUSE_OPTIMIZER, "at equal applied LRs"},
    {"later", later, LOG_LOSS, -1, "a gap opens later"},
    {"middle", middle, LOG_LOSS, -1, "no early update in common"}};

static void validate_order(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof scenes / sizeof scenes[0]; i++) {
        struct pair p;
        scenes[i].make(open_pair(&p));
        const struct compare_report *report = compare(&p);
        assert_int_equal(report->verdict, COMPARE_VERDICT_DIFFERS);
        const int first = report->columns[report->order[0]].name;
        if (first != scenes[i].first || report->cause != scenes[i].cause ||
            strstr(report->meaning, scenes[i].meaning) == NULL)
            fail_msg("%s: %s, cause %d: %s", scenes[i].name, log_names[first].name, report->cause,
                     report->meaning);
        assert_true(strlen(report->next) > 10);
        arena_close(&p.arena);
    }
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
        open_pair(&p);
        scale(&p, 0, (enum log_name)ratios[i].name, 0, ratios[i].factor);
        const struct compare_ratio *ratio = ratio_of(compare(&p), (enum log_name)ratios[i].name);
        if (ratio == NULL) fail_msg("no ratio %g", ratios[i].factor);
        assert_int_equal(ratio->kind, ratios[i].kind);
        assert_int_equal(ratio->n, ratios[i].n);
        assert_true(fabs(ratio->factor - ratios[i].factor) < 1e-3 * ratios[i].factor);
        assert_true(ratio->held >= ratio->pairs - 1);
        assert_non_null(strstr(ratio->bug, ratios[i].bug));
        arena_close(&p.arena);
    }
}

static void validate_ratio_of_tokens(void **state) {
    (void)state;
    struct pair p;
    open_pair(&p);
    for (size_t row = 0; row < 60; row++)
        put(&p, 0, LOG_GRAD_NORM, row,
            helper_value(p.log[1], LOG_GRAD_NORM, row) * helper_value(p.log[0], LOG_TOKENS, row));
    const struct compare_ratio *ratio = ratio_of(compare(&p), LOG_GRAD_NORM);
    assert_non_null(ratio);
    assert_int_equal(ratio->kind, COMPARE_FACTOR_TOKENS);
    assert_int_equal(ratio->held, 60);
    arena_close(&p.arena);
}

/* A ratio that begins in mid-run is none of these. */
static void validate_ratio_from_the_start(void **state) {
    (void)state;
    struct pair p;
    open_pair(&p);
    for (size_t row = 1; row < 60; row++)
        put(&p, 0, LOG_GRAD_NORM, row,
            helper_value(p.log[1], LOG_GRAD_NORM, row) * helper_value(p.log[0], LOG_TOKENS, row));
    scale(&p, 0, LOG_LOSS, 1, 2.0);
    assert_null(ratio_of(compare(&p), LOG_GRAD_NORM));
    assert_null(ratio_of(&p.report, LOG_LOSS));
    arena_close(&p.arena);
}

/* Two digits admit many factors: 20 and 21 cannot be told apart, so none is named. */
static void validate_coarse_ratio(void **state) {
    (void)state;
    struct pair p;
    open_pair(&p);
    for (size_t row = 0; row < 60; row++) {
        helper_put(&p.arena, p.log[0], LOG_GRAD_NORM, row, 8.0, 1);
        helper_put(&p.arena, p.log[1], LOG_GRAD_NORM, row, 0.4, 1);
    }
    assert_null(ratio_of(compare(&p), LOG_GRAD_NORM));
    arena_close(&p.arena);
}

static void verify_no_ratio_of_strangers(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct pair p;
        open_pair(&p);
        const struct helper_training training = {60,          seed * 31, 1,    8,   4,
                                                 PRINT_EXACT, 1.5,       NULL, NULL};
        p.log[1] = helper_trained(&p.arena, &training);
        const struct compare_report *report = compare(&p);
        for (size_t i = 0; i < report->ratio_count; i++)
            fail_msg("seed %llu: ratio %g of %s", (unsigned long long)seed,
                     report->ratios[i].factor, log_names[report->ratios[i].name].name);
        arena_close(&p.arena);
    }
}

/* ---- the trap ---- */

/* A: f(k-1) applied, LR of the next update printed. B: f(k) applied and printed. T = 60. */
static void make_trap(struct pair *p) {
    open_pair(p);
    for (size_t s = 0; s < 2; s++)
        for (size_t row = 0; row < 60; row++)
            put(p, s, LOG_LR_LOGGED, row, 5e-7 * (59.0 - (double)row) / 60.0);
    scale(p, 1, LOG_LOSS, 1, 0.999);
}

static void validate_trap(void **state) {
    (void)state;
    struct pair p;
    make_trap(&p);
    fit_side(&p, 0, "hf-4.50");
    fit_side(&p, 1, "olmo-core");
    const struct compare_report *report = compare(&p);
    assert_int_equal(column_of(report, LOG_LR_LOGGED)->class_of, COMPARE_EQUAL);
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
    arena_close(&p.arena);
}

static void validate_trap_without_contracts(void **state) {
    (void)state;
    struct pair p;
    make_trap(&p);
    fit_side(&p, 0, NULL);
    fit_side(&p, 1, NULL);
    const struct compare_report *report = compare(&p);
    assert_int_equal(report->lr.state, COMPARE_LR_UNTESTABLE);
    assert_true(report->lr.agree > 0);
    assert_true(report->lr.differ > 0);
    assert_false(report->lr.stated);
    assert_non_null(strstr(report->lr.words, "--contract-a"));
    assert_int_equal(report->cause, CAUSE_SCHEDULE);
    assert_non_null(strstr(report->meaning, "even when the printed columns agree"));
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
        fit_side(&p, 0, cases[i].a);
        fit_side(&p, 1, cases[i].b);
        if (compare(&p)->verdict != cases[i].verdict)
            fail_msg("case %zu: %s", i, p.report.lr.words);
        arena_close(&p.arena);
    }
}

/* One training, printed by an old and a new release: only the print differs. */
static void validate_log_next(void **state) {
    (void)state;
    struct pair p;
    open_pair(&p);
    for (size_t row = 0; row < 60; row++) {
        put(&p, 0, LOG_LR_LOGGED, row, 5e-7 * (60.0 - (double)row) / 60.0);
        put(&p, 1, LOG_LR_LOGGED, row, 5e-7 * (59.0 - (double)row) / 60.0);
    }
    fit_side(&p, 0, "hf");
    fit_side(&p, 1, "hf-4.50");
    const struct compare_report *report = compare(&p);
    assert_int_equal(report->lr.state, COMPARE_LR_SAME);
    assert_int_equal(report->order_count, 1);
    assert_non_null(strstr(report->meaning, "log_next_lr"));
    arena_close(&p.arena);
}

/* No explanation of one column applies what one of the other does: nothing needs to be stated. */
static void validate_sure_difference(void **state) {
    (void)state;
    struct pair p;
    open_pair(&p);
    scale(&p, 1, LOG_LR_LOGGED, 0, 4.0);
    fit_side(&p, 0, NULL);
    fit_side(&p, 1, NULL);
    const struct compare_report *report = compare(&p);
    assert_int_equal(report->lr.state, COMPARE_LR_DIFFERENT);
    assert_int_equal(report->lr.agree, 0);
    assert_null(strstr(report->lr.words, "--contract-a"));
    arena_close(&p.arena);
}

static void validate_unfitted(void **state) {
    (void)state;
    struct pair p;
    open_pair(&p);
    for (size_t row = 0; row < 60; row++)
        put(&p, 1, LOG_LR_LOGGED, row, 1e-6 * (1.5 + sin((double)(row * row))));
    fit_side(&p, 0, "hf");
    fit_side(&p, 1, "olmo-core");
    const struct compare_report *report = compare(&p);
    assert_int_equal(report->lr.state, COMPARE_LR_UNFITTED);
    assert_string_equal(report->lr.words, "The LR column of B does not fit olmo-core: the applied "
                                          "LRs cannot be compared.");
    arena_close(&p.arena);
}

/* ---- one training through two printers is equal ---- */

static void verify_printers_agree(void **state) {
    (void)state;
    static const int prints[] = {PRINT_FLOAT, PRINT_BINARY32, 4, PRINT_E6, PRINT_E2, 2};
    for (uint64_t seed = 1; seed <= 36; seed++) {
        struct pair p;
        memset(&p, 0, sizeof p);
        for (size_t s = 0; s < 2; s++) {
            const struct helper_training training = {
                .rows = 50 + seed,
                .seed = seed,
                .preference = seed % 3 != 0,
                .pairs = 4,
                .print = prints[s == 0 ? (seed - 1) / 6 : (seed - 1) % 6],
                .print_lr = s == 0 ? PRINT_EXACT : PRINT_E2,
                .drift = 1.0};
            p.log[s] = helper_trained(&p.arena, &training);
        }
        const struct compare_report *report = compare(&p);
        if (report->verdict != COMPARE_VERDICT_EQUAL)
            fail_msg("seed %llu: %s", (unsigned long long)seed,
                     log_names[report->columns[report->order[0]].name].name);
        arena_close(&p.arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_equal),
        cmocka_unit_test(validate_within),
        cmocka_unit_test(validate_one_unit_more),
        cmocka_unit_test(validate_not_in_both),
        cmocka_unit_test(validate_nothing_in_common),
        cmocka_unit_test(validate_windows),
        cmocka_unit_test(validate_later_rows_win),
        cmocka_unit_test(verify_order_of_rows_is_free),
        cmocka_unit_test(validate_order),
        cmocka_unit_test(validate_ratios),
        cmocka_unit_test(validate_ratio_of_tokens),
        cmocka_unit_test(validate_coarse_ratio),
        cmocka_unit_test(verify_no_ratio_of_strangers),
        cmocka_unit_test(validate_trap),
        cmocka_unit_test(validate_trap_without_contracts),
        cmocka_unit_test(validate_lr_alone),
        cmocka_unit_test(validate_log_next),
        cmocka_unit_test(validate_unfitted),
        cmocka_unit_test(validate_sure_difference),
        cmocka_unit_test(validate_ratio_from_the_start),
        cmocka_unit_test(verify_printers_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

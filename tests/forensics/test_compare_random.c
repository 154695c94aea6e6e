/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short whole
 * Comparisons of random pairs of logs: up to eight columns each, of which some are apart from some
 * update on, by a factor, a root, the tokens, an offset, a row, noise or NaN; printed in few digits
 * or many, some of them hardly larger than their last digit; with rows that are missing, repeated,
 * out of order, of other updates, or means; with the LRs of further groups; with explanations of
 * the LR columns that nobody searched for; and held against the gaps of a floor.
 *
 * A log is equal to itself, whatever it holds, no cause is named where nothing differs, a verdict
 * rests on a pair, and exchanging the logs changes neither the verdict nor where they part.
 * tests/golden/forensics/compare_random.txt holds, for each kind of difference, how many pairs have
 * which answer, and one number made of all that is said of them (FNV-1a). With TWINSTEP_SHOW=CASE
 * all that is said of one is printed. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "base/real.h"
#include "forensics/compare_floor.h"
#include "forensics/fit_search.h"
#include "tests/base/helper_draws.h"
#include "tests/forensics/helper_answers.h"
#include "tests/forensics/helper_golden.h"
#include "tests/forensics/helper_log.h"

enum { CASES = 12000, ROWS = 14, COLUMNS = 8, FITS = 3, PAIRS = 24 };

enum change {
    EQUAL,
    WHOLE,
    ROOT,
    TOKENS,
    CONSTANT,
    OFFSET,
    DRIFTS,
    ONE_ROW,
    LAST_DIGIT,
    NO_NUMBER,
    ZERO,
    ENDS,
    GROUPS,
    LRS,
    CHANGES
};
static const char *const changes[] = {"equal",  "whole factor", "root",    "tokens", "constant",
                                      "offset", "drifts",       "one row", "digit",  "no number",
                                      "zero",   "ends",         "groups",  "LRs"};

static const enum log_name names[] = {
    LOG_LOSS,          LOG_GRAD_NORM,       LOG_LOGP_CHOSEN,     LOG_LOGP_REJECTED,
    LOG_REWARD_CHOSEN, LOG_REWARD_REJECTED, LOG_REWARD_MARGIN,   LOG_REWARD_ACCURACY,
    LOG_LOGITS_CHOSEN, LOG_LOGITS_REJECTED, LOG_TOKENS,          LOG_SAMPLES,
    LOG_EPOCH,         LOG_LOSS_SCALE,      LOG_SKIPPED,         LOG_PARAM_NORM,
    LOG_GLOBAL_BATCH,  LOG_EVAL_LOSS,       LOG_LOGITS_REJECTED, LOG_LR_APPLIED};

static const struct {
    const char *contract, *schedule;
} kinds[] = {{"hf", "linear"},        {"hf", "cosine"},
             {"olmo-core", "linear"}, {"lag1", "linear"},
             {"hf", "constant"},      {"hf-4.50", "linear"},
             {"megatron", "linear"},  {"hf-x-processes", "linear"}};

struct drawn {
    struct arena arena;
    struct draws draws;
    struct log *log[2];
    struct series series[2];
    struct fit_set fits[2];
    struct fit fit[2][FITS];
    struct fit_segment segment;
    struct fit_skip skips[2][FITS][2];
    uint64_t skipped[2][FITS][2];
    struct compare_input input[2];
    enum change change;
    uint64_t from, every[2];
    int print[2];
    double level, factor, offset;
};

static uint32_t pick(struct drawn *d, uint32_t most) {
    return draws_pick(&d->draws, most);
}

/* Returns what log B has where A has `value`. */
static double other(struct drawn *d, enum log_name name, uint64_t update, double value) {
    const double late = (double)(update - d->from);
    if (update < d->from) return value;
    switch (d->change) {
    case WHOLE:
    case ROOT:
    case CONSTANT:
        return value * d->factor;
    case TOKENS:
        return name == LOG_TOKENS ? value : value / (double)(40 + update % 5);
    case OFFSET:
        return value + d->offset * (1.0 + 0.01 * (double)(update % 3));
    case DRIFTS:
        return value * (1.0 + d->factor * 1e-4 * late * (update % 2 == 0 ? 1.0 : -0.5));
    case ONE_ROW:
        return update == d->from ? value * d->factor : value;
    case NO_NUMBER:
        return update % 3 == 0 ? real_nan_f64() : update % 3 == 1 ? (double)INFINITY : value;
    case ZERO:
        return update % 4 == 0 ? 0.0 : -value;
    default:
        return value;
    }
}

static double value_of(struct drawn *d, enum log_name name, uint64_t update) {
    const double wave = (double)(update % 5) / 8.0;
    if (name == LOG_TOKENS) return (double)(40 + update % 5);
    if (name == LOG_GLOBAL_BATCH || name == LOG_LOSS_SCALE) return 32.0;
    if (name == LOG_SAMPLES) return 32.0 * (double)update;
    if (name == LOG_SKIPPED) return update == d->from ? 1.0 : 0.0;
    if (name == LOG_EPOCH) return (double)update / 4.0;
    if (name == LOG_LR_APPLIED) return 1e-3 * (double)(update > 2 ? update - 2 : 0);
    return d->level * (1.0 + wave) - (name == LOG_LOGP_CHOSEN ? 2.0 * d->level : 0.0);
}

/* Moves a value by one of its last digits. */
static void nudge(struct log *log, enum log_name name, size_t row) {
    for (size_t c = 0; c < log->column_count; c++)
        if (log->columns[c].name == (int32_t)name)
            log->columns[c].value[row] += (double)log->columns[c].quantum[row];
}

static void put_column(struct drawn *d, enum log_name name) {
    const int changed = pick(d, 3) > 0, alone = pick(d, 12) == 0, skips = pick(d, 5) == 0;
    const int mean = pick(d, 6) == 0, total = pick(d, 8) == 0;
    for (size_t s = alone ? 1 : 0; s < 2; s++) {
        for (size_t row = 0; row < d->log[s]->rows; row++) {
            const uint64_t update = (uint64_t)d->log[s]->step[row];
            double value = value_of(d, name, update);
            if (skips && (row + s) % 4 == 1) continue;
            if (d->change == ENDS && s == 1 && changed && update >= d->from) continue;
            if (s == 1 && changed) value = other(d, name, update, value);
            helper_put(&d->arena, d->log[s], name, row, value,
                       isfinite(value) ? d->print[s] : PRINT_EXACT);
            if (s == 1 && changed && d->change == LAST_DIGIT && update == d->from)
                nudge(d->log[1], name, row);
        }
        for (size_t c = 0; c < d->log[s]->column_count; c++) {
            struct log_column *const column = &d->log[s]->columns[c];
            if (column->name != (int32_t)name) continue;
            column->windowed = mean != 0 && (s == 0 || pick(d, 2) == 0);
            column->cumulative =
                name == LOG_SAMPLES || (total && name == LOG_TOKENS && (s == 0 || pick(d, 2) == 0));
        }
    }
}

/* Adds the LRs of further groups: of both logs, or of one. */
static void put_groups(struct drawn *d) {
    static const char *const sources[] = {"lr_applied[1]", "lr_applied[2]", "lr_logged[1]",
                                          "lr_logged[12]"};
    const uint32_t count = 1 + pick(d, 3), begin = pick(d, 2);
    for (uint32_t g = begin; g < begin + count; g++) {
        const uint32_t side = pick(d, 6), first = pick(d, 3), changed = pick(d, 3);
        for (size_t s = 0; s < 2; s++) {
            if (side == s || d->log[s]->column_count + 1 >= LOG_NAMES) continue;
            struct log_column *const column = helper_column(&d->arena, d->log[s], LOG_OTHER);
            column->source = sources[g];
            for (size_t row = s == 0 ? first : 0; row < d->log[s]->rows; row++) {
                const uint64_t update = (uint64_t)d->log[s]->step[row];
                column->value[row] =
                    1e-4 * (double)(1 + update) *
                    (s == 1 && changed == 0 && update >= d->from ? d->factor : 1.0);
                column->quantum[row] = 0.0f;
            }
        }
    }
}

/* Lets one or two updates of an explanation be skipped, each somewhere in a range. */
static void skip_updates(struct drawn *d, size_t s, size_t f) {
    struct fit *const fit = &d->fit[s][f];
    fit->skips = d->skips[s][f];
    fit->skip_count = 1 + pick(d, 2);
    for (size_t i = 0; i < fit->skip_count; i++) {
        const uint64_t first = 1 + 6 * i + pick(d, 4), last = first + pick(d, 3);
        d->skips[s][f][i] = (struct fit_skip){.first = first, .last = last, .count = 1};
        d->skipped[s][f][i] = last;
    }
    fit->plan.skipped = d->skipped[s][f];
    fit->plan.skipped_count = fit->skip_count;
}

static void put_lrs(struct drawn *d) {
    const uint32_t kind = pick(d, COUNT_OF(kinds)), other_kind = pick(d, 2);
    for (size_t s = 0; s < 2; s++) {
        struct contract_request request;
        size_t kept = 0;
        const uint32_t own = s == 1 && other_kind == 0 ? pick(d, COUNT_OF(kinds)) : kind;
        contract_request_init(&request);
        request.lr = s == 1 && d->change == LRS && pick(d, 3) == 0 ? 3e-4 : 2e-4;
        request.warmup = (double)pick(d, 4);
        request.steps = 16 + 2 * pick(d, 2);
        request.processes = 2;
        request.global_batch = 8;
        for (size_t f = 0; f < FITS; f++) {
            struct fit *const fit = &d->fit[s][kept];
            const uint32_t which = f == 0 ? own : pick(d, COUNT_OF(kinds));
            request.contract = contract_find(kinds[which].contract);
            request.schedule = kinds[which].schedule;
            if (f > 0 && pick(d, 3) == 0) request.warmup += 1.0;
            memset(fit, 0, sizeof *fit);
            if (contract_resolve(&request, &d->arena, &fit->plan) != STATUS_OK) continue;
            fit->contract = request.contract;
            fit->schedule = fit->plan.schedule;
            fit->schedule_name = request.schedule;
            fit->parameters = "";
            fit->lr = request.lr;
            fit->warmup = request.warmup;
            fit->takes_warmup = 1;
            fit->steps = request.steps;
            fit->floor_ratio = real_nan_f64();
            fit->stride = 1.0;
            fit->segments = &d->segment;
            fit->segment_count = 1;
            fit->simplicity = 0.25 * (double)f;
            if (pick(d, 3) == 0) skip_updates(d, s, kept);
            assert_int_equal(fit_describe(fit, &d->arena, &fit->text), STATUS_OK);
            for (size_t row = 0; f == 0 && row < d->log[s]->rows; row++) {
                const uint64_t update = (uint64_t)d->log[s]->step[row];
                const double lr = contract_logged(&fit->plan, update);
                helper_put(&d->arena, d->log[s], LOG_LR_LOGGED, row, lr,
                           lr > 0.0 && d->print[s] < 0 ? d->print[s] : PRINT_EXACT);
            }
            kept++;
        }
        const struct log_column *const column = log_column_of(d->log[s], LOG_LR_LOGGED);
        assert_int_equal(series_of(d->log[s], column, &d->arena, &d->series[s]), STATUS_OK);
        const size_t count = pick(d, 5) == 0 ? 0 : 1 + pick(d, FITS);
        d->fits[s] = (struct fit_set){.series = &d->series[s],
                                      .fits = d->fit[s],
                                      .count = count < kept ? count : kept,
                                      .last = d->log[s]->rows};
        d->input[s].fits = column != NULL && pick(d, 8) > 0 ? &d->fits[s] : NULL;
        if (pick(d, 6) == 0 && kept > 0) d->input[s].contract = d->fit[s][0].contract->name;
    }
}

/* Lets the rows of a log be those of other updates, repeated, or out of order. */
static void number_rows(struct drawn *d, size_t s) {
    const uint32_t kind = pick(d, 8);
    for (size_t row = 0; row < d->log[s]->rows; row++)
        d->log[s]->step[row] = (int64_t)(d->every[s] * (row + 1));
    if (kind == 0) { /* a resume from an older checkpoint */
        for (size_t row = d->log[s]->rows / 2; row < d->log[s]->rows; row++) {
            d->log[s]->step[row] -= (int64_t)(2 * d->every[s]);
            d->log[s]->part[row] = 1;
        }
    }
    if (kind == 1 && d->log[s]->rows > 1) { /* the last row first */
        d->log[s]->step[0] = (int64_t)(d->every[s] * d->log[s]->rows);
        for (size_t row = 1; row < d->log[s]->rows; row++)
            d->log[s]->step[row] = (int64_t)(d->every[s] * row);
    }
    if (kind == 2) d->log[s]->step[d->log[s]->rows / 2] = 0; /* a row without an update */
}

static void draw_pair(uint32_t number, struct drawn *d) {
    static const int prints[] = {PRINT_EXACT,    PRINT_EXACT, PRINT_E6, PRINT_E2,
                                 PRINT_BINARY32, 3,           1};
    static const double levels[] = {0.4, 2.5, 3.0, 0.05, 120.0};
    static const double constants[] = {1.137, 1.004, 1.011, 0.99, 1.3, 0.5001, 1.0099};
    static const char *const formats[] = {"test", "trace", "hf-trainer-state"};
    memset(d, 0, sizeof *d);
    d->draws = (struct draws){.key = UINT64_C(0xc03a), .number = number};
    d->change = (enum change)(number % CHANGES);
    d->segment = (struct fit_segment){.scale = 1.0};
    d->from = 1 + pick(d, pick(d, 2) == 0 ? 1 : ROWS);
    d->level = levels[pick(d, COUNT_OF(levels))];
    const double n = 2.0 + (double)pick(d, pick(d, 2) == 0 ? 6 : 1100);
    d->factor = d->change == ROOT ? sqrt(n) : n;
    if (pick(d, 2) == 0) d->factor = 1.0 / d->factor;
    if (d->change == CONSTANT) d->factor = constants[pick(d, COUNT_OF(constants))];
    d->offset = d->level * (pick(d, 2) == 0 ? 0.1 : 0.002);
    if (pick(d, 2) == 0) d->offset = -d->offset;
    const uint32_t format = pick(d, COUNT_OF(formats)), same = pick(d, 4);
    d->print[0] = prints[pick(d, COUNT_OF(prints))];
    d->print[1] = same > 0 ? d->print[0] : prints[pick(d, COUNT_OF(prints))];
    const uint32_t rows = pick(d, 6) == 0 ? 1 + pick(d, 4) : ROWS - pick(d, 4);
    d->every[0] = 1 + (pick(d, 8) == 0);
    d->every[1] = pick(d, 8) == 0 ? 2 : d->every[0];
    for (size_t s = 0; s < 2; s++) {
        const uint32_t fewer = pick(d, 6) == 0 && rows > 2 ? pick(d, 3) : 0;
        d->log[s] = helper_log(&d->arena, rows - fewer);
        d->log[s]->format = formats[s == 1 && pick(d, 4) == 0 ? 0 : format];
        d->input[s] = (struct compare_input){.log = d->log[s], .may_end = pick(d, 4) == 0};
        number_rows(d, s);
    }
    for (uint32_t i = 1 + pick(d, COLUMNS); i > 0; i--) {
        const enum log_name name = names[pick(d, COUNT_OF(names))];
        if (log_column_of(d->log[1], name) == NULL) put_column(d, name);
    }
    if (pick(d, 2) == 0 || d->change == LRS) put_lrs(d);
    if (d->change == GROUPS || pick(d, 8) == 0) put_groups(d);
}

/* ---- what is said ---- */

/* A NaN has a sign, which compilers make as they like. */
static double unsigned_nan(double x) {
    return isnan(x) ? (double)NAN : x;
}

static void print_point(FILE *out, const struct series_point *point) {
    fprintf(out, " [%llu %.9g %.9g %zu %u]", (unsigned long long)point->update,
            unsigned_nan(point->value), point->quantum, point->row, point->part);
}

/* Writes what golden_comparison leaves out. */
static void print_rest(FILE *out, const struct compare_report *report) {
    for (size_t i = 0; i < report->column_count; i++) {
        const struct compare_column *const c = &report->columns[i];
        fprintf(out, "%s: %zu %zu equal, %zu not finite, number %llu, moves %d, ends %d %llu;",
                log_names[c->name].name, c->side[0].count, c->equal, c->not_finite,
                (unsigned long long)c->last_number, c->moves, c->ends_in,
                (unsigned long long)c->ends_before);
        for (size_t s = 0; s < 2; s++) {
            print_point(out, &c->start[s]);
            if (c->different > 0) print_point(out, &c->first[s]);
        }
        fprintf(out, " %.17g\n", unsigned_nan(c->largest));
    }
    for (size_t i = 0; i < report->ratio_count; i++)
        fprintf(out, "ratio %.15g %.15g %.9g, first %d\n", report->ratios[i].factor,
                report->ratios[i].offset, report->ratios[i].scatter, report->ratios[i].first_exact);
    const struct compare_lr *const lr = &report->lr;
    fprintf(out,
            "groups %zu: %zu differ, %zu alone, %u; skips %llu %d; %s; starts %llx, ended %s, "
            "undecided %d\n",
            lr->group_count, lr->groups_differ, lr->groups_alone, lr->group,
            (unsigned long long)lr->skips_part, lr->skips_simplest, lr->groups_words,
            (unsigned long long)report->starts, report->ended, report->undecided);
    for (size_t g = 0; g < lr->group_count; g++)
        fprintf(out, "group %u: class %d, %zu of %zu differ from %llu on, %.9g %.9g\n",
                lr->groups[g].group, lr->groups[g].column.class_of, lr->groups[g].column.different,
                lr->groups[g].column.pairs, (unsigned long long)lr->groups[g].column.first_update,
                lr->groups[g].column.first[0].value, lr->groups[g].column.first[1].value);
    for (size_t s = 0; s < 2; s++)
        if (lr->alike[s] != NULL) fprintf(out, "alike %s\n", lr->alike[s]->text);
}

/* Holds the comparison against a floor of random gaps. */
static void hold_floor(struct drawn *d, const struct compare_report *report, FILE *out) {
    static const double shares[] = {0.0, 0.01, 0.02, 0.02, 0.03, 0.1};
    static double gaps[FLOOR_COLUMNS][PAIRS * 2 * ROWS];
    struct floor_file file = {.scenario = "s",
                              .arm = "baseline",
                              .steps = 2 * ROWS - pick(d, 6),
                              .pairs = 3 + pick(d, PAIRS - 2),
                              .exact = pick(d, 12) == 0,
                              .writer = pick(d, 3) == 0 ? "torch" : NULL};
    struct compare_floor held;
    const uint32_t flat = pick(d, 5), whole = pick(d, 4);
    if (file.exact && file.writer == NULL) file.exact = 0;
    for (size_t c = 0; c < FLOOR_COLUMNS; c++)
        for (size_t i = 0; i < file.pairs * file.steps; i++)
            gaps[c][i] = flat == 0 || file.exact ? 0.0
                                                 : shares[pick(d, COUNT_OF(shares))] *
                                                       (c == FLOOR_LOSS ? d->level : 1.0);
    file.columns[FLOOR_LOSS] = whole == 0 ? NULL : gaps[FLOOR_LOSS];
    file.columns[FLOOR_GRAD_NORM] = whole == 1 ? NULL : gaps[FLOOR_GRAD_NORM];
    file.columns[FLOOR_DISTANCE] = gaps[FLOOR_DISTANCE];
    if (compare_hold(report, &file, pick(d, 3) == 0 ? 0.2 : 0.05, &d->arena, &held) != STATUS_OK) {
        fprintf(out, "floor: %s\n", status_text());
        return;
    }
    fprintf(out,
            "floor: %s, %d, %s; p %.9g %.9g of %.9g, content %.9g, power %.9g, %llu updates; "
            "verdict %d\n",
            compare_floor_name((enum compare_floor_verdict)held.verdict), held.exact, held.words,
            held.p[0], held.p[1], held.smallest_p, held.content, held.power,
            (unsigned long long)held.updates, (int)compare_floor_verdict_of(report, &held));
    for (size_t c = 0; c < held.column_count; c++)
        fprintf(out, "  %s: %zu of %zu above from %llu on, worst %llu: %.9g beside %.9g\n",
                log_names[held.columns[c].name].name, held.columns[c].above,
                held.columns[c].updates, (unsigned long long)held.columns[c].first_above,
                (unsigned long long)held.columns[c].worst, held.columns[c].gap,
                held.columns[c].bound);
    const int low = held.p[0] <= held.alpha, high = held.p[1] <= held.alpha;
    if (!held.exact && low != high && held.verdict != COMPARE_FLOOR_UNTESTABLE)
        fail_msg("p is %g or %g, alpha %g: %s", held.p[0], held.p[1], held.alpha, held.words);
}

static void hold_rules(uint32_t number, struct drawn *d, const struct compare_report *report) {
    const struct compare_input turned[] = {d->input[1], d->input[0]};
    const struct compare_input same[] = {d->input[0], d->input[0]};
    struct compare_report other_way, itself;
    size_t pairs = 0;
    for (size_t i = 0; i < report->column_count; i++)
        pairs += report->columns[i].pairs;
    if (report->verdict != COMPARE_VERDICT_UNTESTABLE && pairs == 0 && report->lr.group_count == 0)
        fail_msg("pair %u has a verdict without a pair: %s", number, report->why);
    if (report->verdict == COMPARE_VERDICT_EQUAL && report->cause >= 0)
        fail_msg("pair %u is equal and has a cause: %s", number, report->meaning);
    assert_int_equal(compare_logs(turned, &d->arena, &other_way), STATUS_OK);
    if (other_way.verdict != report->verdict || other_way.order_count != report->order_count ||
        other_way.from != report->from || other_way.to != report->to)
        fail_msg("pair %u is another one the other way: %s", number, report->why);
    for (size_t i = 0; i < report->order_count; i++)
        if (other_way.columns[other_way.order[i]].first_update !=
            report->columns[report->order[i]].first_update)
            fail_msg("pair %u parts elsewhere the other way", number);
    assert_int_equal(compare_logs(same, &d->arena, &itself), STATUS_OK);
    if (itself.order_count > 0 || itself.verdict == COMPARE_VERDICT_DIFFERS)
        fail_msg("log A of pair %u is another one than itself: %s", number, itself.why);
}

static void answer(uint32_t number, struct answers *answers) {
    static struct drawn d;
    struct compare_report report;
    char line[96];
    FILE *const text = answers_begin();
    draw_pair(number, &d);
    assert_int_equal(compare_logs(d.input, &d.arena, &report), STATUS_OK);
    golden_comparison(text, &report);
    print_rest(text, &report);
    if (number % 12 == number / CHANGES % 12) hold_floor(&d, &report, text); /* it takes longest */
    answers_end(answers, number);
    snprintf(line, sizeof line, "%s, LR state %d, cause %d",
             compare_verdict_name((enum compare_verdict)report.verdict), report.lr.state,
             report.cause);
    answers_count(answers, line);
    hold_rules(number, &d, &report);
    arena_close(&d.arena);
}

static void validate_random_pairs(void **state) {
    (void)state;
    answers_ask("compare_random.txt", changes, CHANGES, CASES, answer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_random_pairs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

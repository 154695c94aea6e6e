/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short whole
 * What the doctor says of random logs: up to twelve columns, each healthy or with something of its
 * own from some row on (it stands, is 0, negative, NaN, infinite, falls, jumps, is printed in few
 * digits, goes on a second time), in logs with a resume, two writers, rows that are missing, and
 * options that are given or not; with explanations of the LR column that nobody searched for.
 *
 * A finding has words, evidence, and a row of the log; a check that could not look says why.
 * tests/golden/forensics/doctor_random.txt holds, for each kind of log, how often which finding is
 * made, and one number made of all that is said (FNV-1a). With TWINSTEP_SHOW=CASE all that is said
 * of one log is printed. */
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
#include "forensics/doctor/doctor.h"
#include "forensics/fit_search.h"
#include "tests/base/helper_draws.h"
#include "tests/forensics/helper_answers.h"
#include "tests/forensics/helper_golden.h"
#include "tests/forensics/helper_log.h"

enum { CASES = 20000, ROWS = 60, FITS = 3 };

enum shape { WHOLE, RESUMED, FORGETFUL, TWO_WRITERS, SPARSE, SHORT, UNSAID, SHAPES };
static const char *const shapes[] = {"whole",  "resumed", "resumed anew", "two writers",
                                     "sparse", "short",   "without steps"};

static const enum log_name names[] = {LOG_LOSS,
                                      LOG_LOSS,
                                      LOG_GRAD_NORM,
                                      LOG_GRAD_NORM,
                                      LOG_LR_LOGGED,
                                      LOG_LR_LOGGED,
                                      LOG_LR_APPLIED,
                                      LOG_LOGP_CHOSEN,
                                      LOG_LOGP_REJECTED,
                                      LOG_REWARD_CHOSEN,
                                      LOG_REWARD_REJECTED,
                                      LOG_REWARD_MARGIN,
                                      LOG_REWARD_MARGIN,
                                      LOG_REWARD_ACCURACY,
                                      LOG_LOGITS_CHOSEN,
                                      LOG_TOKENS,
                                      LOG_SAMPLES,
                                      LOG_EPOCH,
                                      LOG_LOSS_SCALE,
                                      LOG_SKIPPED,
                                      LOG_PARAM_NORM,
                                      LOG_GLOBAL_BATCH,
                                      LOG_TOTAL_STEPS,
                                      LOG_EVAL_LOSS};

struct patient {
    struct arena arena;
    struct draws draws;
    struct log *log;
    struct series series;
    struct fit fits[FITS];
    struct fit_segment segment;
    struct fit_set set;
    struct doctor_options options;
    enum shape shape;
    uint64_t rows, from, every;
    double level, beta;
};

static uint32_t pick(struct patient *p, uint32_t most) {
    return draws_pick(&p->draws, most);
}

/* What a training that goes well prints at an update. */
static double healthy(const struct patient *p, enum log_name name, uint64_t update) {
    const double k = (double)update, wave = (double)(update * 7 % 11) / 11.0;
    const double chosen = p->beta * (0.05 * k + wave), rejected = -p->beta * (0.03 * k - wave);
    switch (name) {
    case LOG_LOSS:
        return p->level * (0.5 + 20.0 / (40.0 + k)) + 0.01 * wave;
    case LOG_GRAD_NORM:
        return 1.0 + wave;
    case LOG_LR_LOGGED:
    case LOG_LR_APPLIED:
        return 2e-4 * (1.0 - k / (double)(p->every * (ROWS + 4)));
    case LOG_LOGP_CHOSEN:
    case LOG_LOGP_REJECTED:
        return -100.0 + 10.0 * wave;
    case LOG_REWARD_CHOSEN:
        return chosen;
    case LOG_REWARD_REJECTED:
        return rejected;
    case LOG_REWARD_MARGIN:
        return chosen - rejected;
    case LOG_REWARD_ACCURACY:
        return 0.5 + 0.125 * (double)(update % 4);
    case LOG_TOKENS:
        return 1000.0 + 10.0 * (double)(update % 5);
    case LOG_SAMPLES:
        return 32.0 * k;
    case LOG_EPOCH:
        return k / 20.0;
    case LOG_LOSS_SCALE:
        return 1024.0;
    case LOG_SKIPPED:
        return 0.0;
    case LOG_GLOBAL_BATCH:
        return 32.0;
    case LOG_TOTAL_STEPS:
        return (double)(p->every * (ROWS + 4));
    case LOG_PARAM_NORM:
        return 50.0 + 0.01 * k;
    default:
        return 2.0 + wave;
    }
}

/* The same with what is the matter with the column. */
static double sick(struct patient *p, enum log_name name, uint64_t update, uint32_t kind,
                   double size) {
    const double value = healthy(p, name, update);
    const uint64_t row = update / p->every;
    if (row < p->from && kind < 14) return value;
    switch (kind) {
    case 0:
        return 0.0;
    case 1:
        return row % 4 == 0 ? real_nan_f64() : value;
    case 2:
        return row == p->from ? (double)INFINITY : value;
    case 3:
        return healthy(p, name, p->every * p->from);
    case 4:
        return -value;
    case 5:
        return value * size;
    case 6:
        return row % 2 == 0 ? value : healthy(p, name, update - p->every);
    case 7:
        return real_nan_f64();
    case 8:
        return healthy(p, name, update - p->every * (p->from - 1));
    case 9:
        return row == p->from ? size * value : value;
    case 10:
        return value / (1.0 + (double)((row - p->from) / 8));
    case 11:
        return row % 8 == 0 ? 0.0 : value;
    case 12:
        return name == LOG_LOSS_SCALE ? value / (double)(1u << (row % 5)) : value + size;
    case 13:
        return row == p->from ? 1.0 : value;
    case 14: /* ln 2, or a multiple */
        return 0x1.62e42fefa39efp-1 * (size > 1.5 ? 1.0 : size);
    case 15:
        return value * size;
    case 16: /* stairs */
        return healthy(p, name, p->every * (1 + 6 * (row / 6)));
    case 17:
        return row % 2 == 0 ? value : -value;
    default:
        return log(32000.0) + 0.01 * (double)(update % 3);
    }
}

static void put_column(struct patient *p, enum log_name name) {
    static const int prints[] = {PRINT_EXACT,    PRINT_EXACT, PRINT_E6, PRINT_E2,
                                 PRINT_BINARY32, 4,           1};
    static const double sizes[] = {2.0, 0.5, 8.0, 1.01, 0.125, 1000.0, 3.0, 1e-3};
    const int is_sick = pick(p, 3) == 0;
    const uint32_t kind = pick(p, 19), missing = pick(p, 10), total = pick(p, 4);
    const int print = prints[pick(p, COUNT_OF(prints))];
    const double size = sizes[pick(p, COUNT_OF(sizes))];
    double sum = 0.0;
    for (size_t row = 0; row < p->rows; row++) {
        const uint64_t update = p->every * (row + 1);
        double value = is_sick ? sick(p, name, update, kind, size) : healthy(p, name, update);
        if (missing == 0 && row % 3 == 1) continue;
        if (missing == 1 && row > p->rows / 2) continue;
        if (name == LOG_TOKENS && total == 0) value = sum += value;
        helper_put(&p->arena, p->log, name, row, value, isfinite(value) ? print : PRINT_EXACT);
    }
    for (size_t c = 0; c < p->log->column_count; c++) {
        struct log_column *const column = &p->log->columns[c];
        if (column->name != (int32_t)name) continue;
        column->cumulative = name == LOG_SAMPLES || (name == LOG_TOKENS && total == 0) ||
                             (name == LOG_SKIPPED && total == 1);
        column->windowed = name == LOG_LOSS && total == 2;
    }
}

static void number_rows(struct patient *p) {
    const size_t rows = p->rows, half = (size_t)p->from;
    for (size_t row = 0; row < rows; row++)
        p->log->step[row] = (int64_t)(p->every * (row + 1));
    if (p->shape == RESUMED || p->shape == FORGETFUL) {
        const int64_t back = (int64_t)(p->every * pick(p, 6));
        for (size_t row = half; row < rows; row++) {
            p->log->part[row] = 1;
            if (p->log->step[row] > back) p->log->step[row] -= back;
        }
    }
    if (p->shape == TWO_WRITERS)
        for (size_t row = half; row < rows; row++)
            p->log->step[row] = (int64_t)(p->every * (half + (row - half) / 2 + 1));
    if (p->shape == UNSAID) p->log->step_guessed = 1;
}

/* Explanations: what was printed, and others beside it. */
static void draw_fits(struct patient *p) {
    static const struct {
        const char *contract, *schedule;
    } kinds[] = {{"hf", "linear"},      {"olmo-core", "linear"}, {"lag1", "linear"},
                 {"hf", "cosine"},      {"hf", "constant"},      {"hf-x-processes", "linear"},
                 {"hf-4.50", "linear"}, {"megatron", "linear"}};
    const struct log_column *const column = log_column_of(p->log, LOG_LR_LOGGED);
    struct fit_known known;
    size_t count = 0;
    fit_known_init(&known);
    assert_int_equal(fit_known_from_log(&known, p->log, &p->arena), STATUS_OK);
    assert_int_equal(series_of(p->log, column, &p->arena, &p->series), STATUS_OK);
    p->set = (struct fit_set){.series = &p->series, .fits = p->fits, .last = p->every * p->rows};
    const struct fit_search search = {
        .series = &p->series, .known = &known, .arena = &p->arena, .last = p->set.last};
    for (uint32_t f = pick(p, FITS + 1); f > 0 && p->series.count > 0; f--) {
        const uint32_t kind = pick(p, COUNT_OF(kinds));
        struct fit *const fit = &p->fits[count];
        struct contract_request request;
        contract_request_init(&request);
        request.contract = contract_find(kinds[kind].contract);
        request.schedule = kinds[kind].schedule;
        request.lr = 2e-4;
        request.warmup = (double)pick(p, 3);
        request.steps = p->every * (pick(p, 3) == 0 ? ROWS - 16u : ROWS + 4u);
        request.processes = 2;
        request.global_batch = 8;
        memset(fit, 0, sizeof *fit);
        if (contract_resolve(&request, &p->arena, &fit->plan) != STATUS_OK) continue;
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
        fit->segments = &p->segment;
        fit->segment_count = 1;
        fit->same_applied = (uint32_t)count % 2;
        assert_int_equal(fit_words(&search, fit), STATUS_OK);
        count++;
    }
    p->set.count = count;
}

static void draw_options(struct patient *p) {
    doctor_options_init(&p->options);
    if (pick(p, 3) == 0) p->options.processes = 2 + 2 * pick(p, 4);
    if (pick(p, 3) == 0) p->options.accumulate = 1 + pick(p, 8);
    if (pick(p, 3) == 0) p->options.pairs = 4 + 4 * pick(p, 2);
    if (pick(p, 3) == 0) p->options.vocab = 32000;
    if (pick(p, 3) == 0) {
        p->options.dtype_given = 1;
        p->options.dtype = pick(p, 2) == 0 ? DTYPE_BF16 : DTYPE_F32;
        p->options.master_none = pick(p, 2) == 0;
    }
    if (pick(p, 4) == 0) p->options.weight_decay = pick(p, 2) == 0 ? 0.1 : 1e-4;
}

static void draw_patient(uint32_t number, struct patient *p) {
    static const double levels[] = {2.5, 0.6931471805599453, 10.0, 0.05};
    static const char *const formats[] = {"test", "hf-trainer-state", "megatron", "trace"};
    memset(p, 0, sizeof *p);
    p->draws = (struct draws){.key = UINT64_C(0xd0c4), .number = number};
    p->shape = (enum shape)(number % SHAPES);
    p->segment = (struct fit_segment){.scale = 1.0};
    p->rows = p->shape == SHORT ? 1 + pick(p, 12) : ROWS - pick(p, 30);
    p->from = 1 + pick(p, pick(p, 2) == 0 ? 4 : (uint32_t)p->rows);
    p->every = p->shape == SPARSE ? 5 + 5 * pick(p, 2) : 1;
    p->level = levels[pick(p, COUNT_OF(levels))];
    p->beta = pick(p, 2) == 0 ? 0.1 : 0.01;
    p->log = helper_log(&p->arena, p->rows);
    p->log->format = formats[pick(p, COUNT_OF(formats))];
    p->log->bf16 = pick(p, 6) == 0;
    const uint32_t said = pick(p, 4);
    p->log->max_steps = said == 0 ? 0 : p->every * (said == 1 ? p->rows : ROWS + 4);
    number_rows(p);
    for (uint32_t i = 2 + pick(p, 11); i > 0; i--) {
        const enum log_name name = names[pick(p, COUNT_OF(names))];
        if (log_column_of(p->log, name) == NULL) put_column(p, name);
    }
    if (p->shape == FORGETFUL) { /* from there on rows are those of a training that begins */
        for (size_t c = 0; c < p->log->column_count && pick(p, 2) == 0; c++)
            for (size_t row = (size_t)p->from; row < p->rows; row++)
                p->log->columns[c].value[row] = p->log->columns[c].value[row - (size_t)p->from];
    }
    draw_fits(p);
    draw_options(p);
}

static void hold_rules(uint32_t number, const struct patient *p,
                       const struct doctor_report *report) {
    for (size_t i = 0; i < report->finding_count + report->remark_count; i++) {
        const struct doctor_finding *const finding = &report->findings[i];
        if (finding->words[0] == '\0' || finding->evidence_count == 0)
            fail_msg("log %u: %s has no words or no evidence", number, finding->id);
        if (finding->line > 0 && (finding->line < 11 || finding->line >= 11 + p->rows))
            fail_msg("log %u: %s stands in line %u", number, finding->id, finding->line);
        if ((finding->remark != 0) != (i >= report->finding_count))
            fail_msg("log %u: %s stands among others", number, finding->id);
    }
    for (size_t i = 0; i < report->line_count; i++)
        if ((report->lines[i].result == DOCTOR_UNTESTABLE) && report->lines[i].why == NULL)
            fail_msg("log %u: %s does not say why it could not look", number, report->lines[i].id);
}

static void print_rest(FILE *out, const struct doctor_report *report) {
    for (size_t i = 0; i < report->finding_count + report->remark_count; i++)
        fprintf(out, "%s; %s; %s\n", report->findings[i].check, report->findings[i].reason,
                report->findings[i].next);
    for (size_t i = 0; i < report->line_count; i++)
        fprintf(out, "%s %d %s %s\n", report->lines[i].id, report->lines[i].result,
                report->lines[i].why != NULL ? report->lines[i].why : "",
                report->lines[i].lacks != NULL ? report->lines[i].lacks : "");
    for (size_t i = 0; i < report->column_count; i++)
        fprintf(out, "%s ", report->columns[i]);
}

static void examine(uint32_t number, struct answers *answers) {
    static struct patient p;
    struct doctor_report report;
    FILE *const text = answers_begin();
    draw_patient(number, &p);
    const struct fit_set *const set = pick(&p, 6) == 0 ? NULL : &p.set;
    assert_int_equal(doctor_examine(p.log, &p.options, set, &p.arena, &report), STATUS_OK);
    golden_findings(text, &report);
    print_rest(text, &report);
    answers_end(answers, number);
    for (size_t i = 0; i < report.finding_count + report.remark_count; i++)
        answers_count(answers, report.findings[i].id);
    if (report.finding_count + report.remark_count == 0) answers_count(answers, "nothing");
    hold_rules(number, &p, &report);
    arena_close(&p.arena);
}

/* No search: fit_series is wrapped (tests/CMakeLists.txt), where the doctor asks for what stands in
 * front of an LR that stands still or is held. */
enum status __wrap_fit_series(const struct series *series, const struct fit_known *known,
                              struct arena *arena, struct fit_set *out);
enum status __wrap_fit_series(const struct series *series, const struct fit_known *known,
                              struct arena *arena, struct fit_set *out) {
    (void)known;
    (void)arena;
    *out = (struct fit_set){.series = series, .why = FIT_WHY_NOTHING};
    return STATUS_OK;
}

static void validate_random_logs(void **state) {
    (void)state;
    answers_ask("doctor_random.txt", shapes, SHAPES, CASES, examine);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_random_logs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

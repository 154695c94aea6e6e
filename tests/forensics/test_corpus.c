/* SPDX-License-Identifier: Apache-2.0
 * labels: unit whole
 * Small logs with a planted truth (tests/golden/forensics/corpus.logs, made by corpus.py from the
 * frameworks' formulas): what was planted must be in the answer, and the whole answer of `lr fit`,
 * `lr check`, `doctor` and `compare` is held against tests/golden/forensics/corpus.txt, with how
 * many rates each search evaluated. The latter is there because a search that grows slower gives
 * the same answer. */
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
#include "forensics/compare.h"
#include "forensics/doctor/doctor.h"
#include "forensics/fit_model.h"
#include "forensics/fit_rows.h"
#include "forensics/fit_solve.h"
#include "forensics/fit_used.h"
#include "logs/import.h"
#include "tests/base/helper_size.h"
#include "tests/forensics/helper_golden.h"

#define LOGS TWINSTEP_SOURCE_DIR "/tests/golden/forensics/corpus.logs"
#define GOLDEN "corpus.txt"

/* ---- how much a search works ---- */

static struct { uint64_t evaluated, set; } work;

double __real_fit_model_logged(const struct fit_model *model, uint64_t k, int64_t shift);
double __wrap_fit_model_logged(const struct fit_model *model, uint64_t k, int64_t shift);
void __real_fit_model_set(struct fit_model *model, const struct fit_numbers *numbers);
void __wrap_fit_model_set(struct fit_model *model, const struct fit_numbers *numbers);
void __real_fit_model_set_lr(struct fit_model *model, double lr);
void __wrap_fit_model_set_lr(struct fit_model *model, double lr);
void __real_fit_model_set_total(struct fit_model *model, double total);
void __wrap_fit_model_set_total(struct fit_model *model, double total);

double __wrap_fit_model_logged(const struct fit_model *model, uint64_t k, int64_t shift) {
    work.evaluated++;
    return __real_fit_model_logged(model, k, shift);
}

void __wrap_fit_model_set(struct fit_model *model, const struct fit_numbers *numbers) {
    work.set++;
    __real_fit_model_set(model, numbers);
}

void __wrap_fit_model_set_lr(struct fit_model *model, double lr) {
    work.set++;
    __real_fit_model_set_lr(model, lr);
}

void __wrap_fit_model_set_total(struct fit_model *model, double total) {
    work.set++;
    __real_fit_model_set_total(model, total);
}

static void work_print(FILE *out) {
    fprintf(out, "work: %llu evaluated, %llu set\n", (unsigned long long)work.evaluated,
            (unsigned long long)work.set);
    work.evaluated = work.set = 0;
}

/* ---- one block of the file ---- */

#define KEYS 16

struct block {
    char name[48];
    struct {
        char key[24], value[64];
    } keys[KEYS];
    size_t key_count;
    const char *text; /* the log */
    size_t length;
};

struct corpus_case {
    struct arena arena;
    struct log *log;
    struct series series;
    struct fit_known known;
    struct fit_set fits;
    uint64_t skipped[8];
};

static const char *value_of(const struct block *block, const char *key) {
    for (size_t i = 0; i < block->key_count; i++)
        if (strcmp(block->keys[i].key, key) == 0) return block->keys[i].value;
    return NULL;
}

static double number_of(const struct block *block, const char *key, double none) {
    const char *text = value_of(block, key);
    return text != NULL ? strtod(text, NULL) : none;
}

static uint64_t count_of(const struct block *block, const char *key) {
    return (uint64_t)number_of(block, key, 0.0);
}

/* Reads the block at *at and goes on to the next one. Returns 0 at the end of the file. */
static int next_block(const char **at, struct block *block) {
    if (strncmp(*at, "== ", 3) != 0) return 0;
    memset(block, 0, sizeof *block);
    const char *line = *at;
    int used = 0;
    assert_int_equal(sscanf(line, "== %47[^\n]%n", block->name, &used), 1);
    line += used + 1;
    while (strncmp(line, "= ", 2) == 0) {
        assert_true(block->key_count < KEYS);
        assert_int_equal(sscanf(line, "= %23s %63[^\n]%n", block->keys[block->key_count].key,
                                block->keys[block->key_count].value, &used),
                         2);
        block->key_count++;
        line += used + 1;
    }
    const char *end = strstr(line, "\n== ");
    block->text = line;
    block->length = strncmp(line, "== ", 3) == 0 ? 0
                    : end != NULL                ? (size_t)(end - line) + 1
                                                 : strlen(line);
    *at = line + block->length;
    return 1;
}

static char *read_file(const char *path) {
    FILE *in = fopen(path, "rb");
    if (in == NULL) fail_msg("cannot open %s", path);
    assert_int_equal(fseek(in, 0, SEEK_END), 0);
    const long size = ftell(in);
    assert_true(size > 0);
    rewind(in);
    char *text = (char *)malloc((size_t)size + 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, (size_t)size, in), (size_t)size);
    text[size] = '\0';
    assert_int_equal(fclose(in), 0);
    return text;
}

static void must(enum status status, const struct block *block) {
    if (status != STATUS_OK) fail_msg("%s: %s", block->name, status_text());
}

/* Puts what the block asks into the request, as the options of the command line do. */
static void ask(struct corpus_case *c, const struct block *block) {
    struct contract_request *r = &c->known.request;
    const char *contract = value_of(block, "ask.contract"), *skips = value_of(block, "ask.skipped");
    char *value = (char *)(uintptr_t)value_of(block, "ask.value");
    if (contract != NULL) {
        r->contract = contract_find(contract);
        assert_non_null(r->contract);
    }
    r->schedule = value_of(block, "ask.schedule");
    r->steps = count_of(block, "ask.steps");
    r->processes = count_of(block, "ask.processes");
    r->accumulate = count_of(block, "ask.accumulate");
    r->global_batch = count_of(block, "ask.batch");
    r->updates_per_epoch = count_of(block, "ask.epoch");
    r->lr = number_of(block, "ask.lr", NAN);
    r->warmup = number_of(block, "ask.warmup", NAN);
    r->warmup_ratio = number_of(block, "ask.ratio", NAN);
    r->min_lr_ratio = number_of(block, "ask.floor", NAN);
    c->known.limit = count_of(block, "ask.limit");
    if (value != NULL) {
        char *text;
        must(arena_format(&c->arena, &text, "%s", value), block);
        char *equals = strchr(text, '=');
        assert_non_null(equals);
        *equals = '\0';
        r->values[r->value_count].key = text;
        r->values[r->value_count++].text = equals + 1;
    }
    for (char *end; skips != NULL && *skips != '\0'; skips = *end == ',' ? end + 1 : end) {
        assert_true(r->skipped_count < COUNT_OF(c->skipped));
        c->skipped[r->skipped_count++] = strtoull(skips, &end, 10);
        r->skipped = c->skipped;
    }
}

/* Opens a block as `lr fit` opens a log. */
static void case_open(struct corpus_case *c, const struct block *block) {
    struct log_options options;
    size_t counted;
    memset(c, 0, sizeof *c);
    log_options_init(&options);
    fit_known_init(&c->known);
    must(log_import_bytes(block->name, block->text, block->length, &options, &c->arena, &c->log),
         block);
    ask(c, block);
    must(fit_check_request(&c->known.request, &c->arena), block);
    must(fit_known_from_log(&c->known, c->log, &c->arena), block);
    must(fit_skipped_from_log(&c->known, c->log, &c->arena, &counted), block);
    must(series_of(c->log, log_column_of(c->log, LOG_LR_LOGGED), &c->arena, &c->series), block);
}

static void number_rows(struct corpus_case *c, const struct block *block, FILE *out) {
    struct fit_rows rows;
    const char *words;
    if (!c->log->step_guessed) return;
    must(fit_rows_number(c->log, &c->series, &c->known, count_of(block, "ask.every"), &c->arena,
                         &rows),
         block);
    c->series = rows.series;
    c->known.steps_guessed = rows.decided_by == FIT_ROWS_OPEN;
    must(fit_rows_words(&rows, &c->arena, &words), block);
    fprintf(out, "rows: by %d, %zu of %zu, most %llu, best %zu: %s\n", rows.decided_by, rows.count,
            rows.tried, (unsigned long long)rows.most, rows.best, words);
    for (size_t i = 0; i < rows.count; i++)
        fprintf(out, "  every %llu %d, last %llu, total %llu, %.4f\n",
                (unsigned long long)rows.at[i].every, rows.at[i].first_at_one,
                (unsigned long long)rows.at[i].last, (unsigned long long)rows.at[i].steps,
                rows.at[i].cost);
}

/* ---- the truth ---- */

/* Tells whether a fit is what was planted. */
static int is_truth(const struct fit *fit, const struct block *block) {
    const char *contract = value_of(block, "truth.contract");
    const char *schedule = value_of(block, "truth.schedule");
    const char *bug = value_of(block, "truth.bug"), *text = value_of(block, "truth.text");
    const double peak = number_of(block, "truth.peak", fit->lr);
    const double floor = number_of(block, "truth.floor", fit->floor_ratio);
    const double total = number_of(block, "truth.total", (double)fit->steps);
    const double warmup = number_of(block, "truth.warmup", fit->warmup);
    if (contract != NULL && strcmp(fit->contract->name, contract) != 0) return 0;
    if (schedule != NULL && strcmp(fit->schedule->name, schedule) != 0) return 0;
    if (!fit_near(fit->lr, peak) || (double)fit->steps != total) return 0;
    if (fit->takes_warmup && fabs(fit->warmup - warmup) > 1e-9 * (1.0 + warmup)) return 0;
    if (floor == floor && !fit_near(fit->floor_ratio, floor)) return 0;
    if (fit->stride != number_of(block, "truth.stride", fit->stride)) return 0;
    if ((double)fit_skipped(fit) != number_of(block, "truth.skips", (double)fit_skipped(fit)))
        return 0;
    if ((double)fit->first_differs !=
        number_of(block, "truth.firstdiffers", (double)fit->first_differs))
        return 0;
    if (bug != NULL && strcmp(fit->bug != NULL ? fit->bug : "none", bug) != 0) return 0;
    return text == NULL || strstr(fit->text, text) != NULL;
}

static void verify_truth(const struct corpus_case *c, const struct block *block) {
    const size_t most = value_of(block, "truth.first") != NULL ? 1 : c->fits.count;
    const char *nothing = value_of(block, "truth.nothing");
    if (nothing != NULL) {
        if ((c->fits.count == 0) != (strcmp(nothing, "1") == 0))
            fail_msg("%s: %zu fits", block->name, c->fits.count);
        return;
    }
    for (size_t i = 0; i < most && i < c->fits.count; i++)
        if (is_truth(&c->fits.fits[i], block)) return;
    fail_msg("%s: what was planted is not %s; the first of %zu is: %s", block->name,
             most == 1 ? "the first fit" : "among the fits", c->fits.count,
             c->fits.count > 0 ? c->fits.fits[0].text : "none");
}

/* ---- the answers ---- */

static void fit_block(struct corpus_case *c, const struct block *block, FILE *out) {
    const char *early, *apart;
    struct fit_used used;
    number_rows(c, block, out);
    must(fit_series(&c->series, &c->known, &c->arena, &c->fits), block);
    work_print(out);
    must(fit_used_open(c->log, &c->arena, &used), block);
    must(fit_keep_used(&c->fits, &c->arena, &used), block);
    golden_fits_whole(out, &c->fits, &c->known);
    if (used.series.count > 0)
        fprintf(out, "used: %zu values, %zu left out, update %llu, %.9g for %.9g\n",
                used.series.count, used.left_out, (unsigned long long)used.update, used.applied,
                used.expected);
    must(fit_early_skip(&c->fits, &c->known, &c->arena, &early), block);
    if (early != NULL) fprintf(out, "early skip: %s\n", early);
    for (size_t i = 1; i < c->fits.count && i < 4; i++) {
        must(fit_tell_apart(&c->fits.fits[0], &c->fits.fits[i], &c->fits, &c->arena, &apart),
             block);
        fprintf(out, "apart from %zu: %s\n", i + 1, apart != NULL ? apart : "-");
    }
}

struct question {
    const char *name, *contract; /* NULL: the block's own */
    double lr, warmup, total;    /* factor of the peak, and what is added to the others */
    int given, applied;
    int dear; /* 1: what explains the column instead is searched for, which takes long */
};

/* What is believed of the training is right, then wrong in one thing. */
static const struct question questions[] = {
    {"right", NULL, 1.0, 0.0, 0.0, 1, 1, 0},    {"right, as printed", NULL, 1.0, 0.0, 0.0, 1, 0, 0},
    {"contract", NULL, 1.0, 0.0, 0.0, 0, 1, 1}, {"peak", NULL, 1.25, 0.0, 0.0, 1, 0, 1},
    {"warm-up", NULL, 1.0, 1.0, 0.0, 1, 0, 1},  {"total", NULL, 1.0, 0.0, -2.0, 1, 0, 1},
    {"hf", "hf", 1.0, 0.0, 0.0, 1, 1, 1},       {"olmo-core", "olmo-core", 1.0, 0.0, 0.0, 1, 1, 1},
};

static void check_block(const struct corpus_case *c, const struct block *block, FILE *out) {
    const char *own = value_of(block, "truth.contract"), *dear = value_of(block, "check.dear");
    const double peak = number_of(block, "check.peak", NAN);
    for (size_t i = 0; i < COUNT_OF(questions); i++) {
        const struct question *q = &questions[i];
        struct fit_known known = c->known;
        struct fit_check check;
        struct fit_used used;
        struct arena arena = ARENA_EMPTY;
        if (peak != peak || own == NULL) continue;
        if (q->contract != NULL && strcmp(q->contract, own) == 0) continue;
        if (q->dear && (dear == NULL || strstr(dear, q->name) == NULL)) continue;
        known.request.contract = contract_find(q->contract != NULL ? q->contract : own);
        if (q->contract != NULL) known.request.value_count = 0;
        if (q->contract != NULL) known.request.schedule = NULL;
        if (q->given) {
            known.request.lr = peak * q->lr;
            known.request.warmup = number_of(block, "check.warmup", 0.0) + q->warmup;
            known.request.steps = (uint64_t)(number_of(block, "check.total", 0.0) + q->total);
        }
        fprintf(out, "-- check: %s\n", q->name);
        must(fit_used_open(c->log, &arena, &used), block);
        if (fit_check(&c->series, &known, q->applied, &arena, &check) != STATUS_OK) {
            fprintf(out, "refused: %s\n", status_text());
            arena_close(&arena);
            continue;
        }
        if (q->applied) must(fit_check_used(&check, &arena, &used), block);
        golden_check(out, &check, 1);
        if (used.update > 0)
            fprintf(out, "  used: update %llu, %.9g for %.9g\n", (unsigned long long)used.update,
                    used.applied, used.expected);
        work_print(out);
        if (i < 2 && value_of(block, "check.sound") != NULL && check.verdict == FIT_FAIL)
            fail_msg("%s: fails what it was made with: %s", block->name, check.words);
        if (strcmp(q->name, "peak") == 0 && check.verdict == FIT_PASS)
            fail_msg("%s: passes another peak: %s", block->name, check.words);
        arena_close(&arena);
    }
}

/* Asks for several contracts with some numbers given and the others left to the log: right ones,
 * then one of them wrong. */
static void grid_block(const struct corpus_case *c, const struct block *block, FILE *out) {
    static const char *const contracts[] = {"hf",       "hf-4.50",          "olmo-core",
                                            "megatron", "olmo-core-tokens", "lightning-epoch"};
    enum { LR = 1, WARMUP = 2, STEPS = 4, SCHEDULE = 8, RATIO = 16, WRONG = 32 };
    static const int given[] = {0,
                                LR,
                                LR | WARMUP,
                                WARMUP | STEPS,
                                LR | STEPS | RATIO,
                                LR | WARMUP | STEPS,
                                LR | WARMUP | STEPS | SCHEDULE,
                                SCHEDULE | STEPS,
                                LR | WARMUP | WRONG};
    const double peak = number_of(block, "check.peak", NAN);
    const double warmup = number_of(block, "check.warmup", NAN);
    const double total = number_of(block, "check.total", NAN);
    const char *own = value_of(block, "truth.contract");
    for (size_t i = 0; value_of(block, "check.grid") != NULL && i < COUNT_OF(contracts); i++)
        for (size_t g = 0; g < COUNT_OF(given); g++) {
            struct fit_known known = c->known;
            struct contract_request *r = &known.request;
            struct fit_check check;
            struct arena arena = ARENA_EMPTY;
            /* Where the total is open the search is long: two contracts show what is said. */
            if ((given[g] & STEPS) == 0 && i != 0 && i != 2) continue;
            r->contract = contract_find(contracts[i]);
            r->steps = (given[g] & STEPS) != 0 ? (uint64_t)total : 0;
            if ((given[g] & LR) != 0) r->lr = peak;
            if ((given[g] & WARMUP) != 0) r->warmup = warmup + (double)((given[g] & WRONG) != 0);
            if ((given[g] & RATIO) != 0) r->warmup_ratio = warmup / total;
            if ((given[g] & SCHEDULE) != 0) r->schedule = value_of(block, "check.grid");
            fprintf(out, "-- %s, given %d\n", contracts[i], given[g]);
            const enum status status = fit_check(&c->series, &known, 1, &arena, &check);
            if (status != STATUS_OK) fprintf(out, "refused: %s\n", status_text());
            if (status == STATUS_OK) golden_check(out, &check, 1);
            work_print(out);
            if (status == STATUS_OK && own != NULL && strcmp(own, contracts[i]) == 0 &&
                (given[g] & WRONG) == 0 && check.verdict == FIT_FAIL)
                fail_msg("%s: %s fails with %d given: %s", block->name, own, given[g], check.words);
            if (status == STATUS_OK && (given[g] & WRONG) != 0 && check.verdict == FIT_PASS)
                fail_msg("%s: %s passes another warm-up: %s", block->name, contracts[i],
                         check.words);
            arena_close(&arena);
        }
}

/* Of a training that was resumed with another total no expectation of one total holds throughout:
 * what is asked is right but for that, or wrong in one more thing. */
static void broken_block(const struct corpus_case *c, const struct block *block, FILE *out) {
    static const struct {
        double lr, warmup, ratio; /* factor of the peak; one more than is added; of the share */
        const char *schedule;
        int wrong;
    } asked[] = {
        {1.0, 0.0, 0.0, NULL, 0},
        {1.0, 3.0, 0.0, NULL, 1},
        {1.0, 0.0, 2.0, NULL, 1},
        {1.0, 1.0, 0.0, "linear", 0},
    };
    const double peak = number_of(block, "broken.peak", NAN);
    const double warmup = number_of(block, "broken.warmup", NAN);
    const double total = number_of(block, "broken.total", NAN);
    for (size_t i = 0; peak == peak && i < COUNT_OF(asked); i++) {
        struct fit_known known = c->known;
        struct contract_request *r = &known.request;
        struct fit_check check;
        struct arena arena = ARENA_EMPTY;
        r->contract = contract_find("hf");
        r->lr = peak * asked[i].lr;
        if (asked[i].warmup > 0.0) r->warmup = warmup + asked[i].warmup - 1.0;
        if (asked[i].ratio > 0.0) r->warmup_ratio = asked[i].ratio * warmup / total;
        r->schedule = asked[i].schedule;
        fprintf(out, "-- broken %zu\n", i);
        must(fit_check(&c->series, &known, 1, &arena, &check), block);
        golden_check(out, &check, 1);
        work_print(out);
        if (asked[i].wrong ? check.verdict == FIT_PASS : check.verdict == FIT_FAIL)
            fail_msg("%s: question %zu: %s", block->name, i, check.words);
        arena_close(&arena);
    }
}

static void doctor_block(const struct corpus_case *c, const struct block *block, FILE *out) {
    struct doctor_options options;
    struct doctor_report report;
    struct arena arena = ARENA_EMPTY;
    doctor_options_init(&options);
    must(doctor_examine(c->log, &options, &c->fits, &arena, &report), block);
    golden_findings(out, &report);
    arena_close(&arena);
}

static void compare_block(struct corpus_case *a, struct corpus_case *b, const struct block *block,
                          FILE *out) {
    struct compare_input input[2] = {{.log = a->log, .fits = &a->fits},
                                     {.log = b->log, .fits = &b->fits}};
    struct compare_report report;
    struct arena arena = ARENA_EMPTY;
    must(compare_logs(input, &arena, &report), block);
    golden_comparison(out, &report);
    arena_close(&arena);
}

static void verify_answers(void **state) {
    (void)state;
    char *text = read_file(LOGS);
    const char *at = text;
    struct block block;
    struct corpus_case cases[2], extra;
    size_t count = 0;
    const int whole = helper_size(0, 0, 1) != 0;
    while (next_block(&at, &block)) {
        /* A case of the night stands between no two others: their comparison is committed. */
        const int nightly = value_of(&block, "whole") != NULL;
        struct corpus_case *c = nightly ? &extra : &cases[count % 2];
        if (!whole && nightly) continue;
        if (!nightly && count > 1) arena_close(&c->arena);
        FILE *out = golden_begin(GOLDEN, "%s", block.name);
        case_open(c, &block);
        fit_block(c, &block, out);
        verify_truth(c, &block);
        check_block(c, &block, out);
        grid_block(c, &block, out);
        broken_block(c, &block, out);
        doctor_block(c, &block, out);
        if (!nightly && count > 0) compare_block(&cases[(count + 1) % 2], c, &block, out);
        if (nightly) arena_close(&c->arena);
        count += !nightly;
        golden_end();
    }
    assert_int_equal(*at, '\0');
    assert_true(count > 90);
    for (size_t i = 0; i < 2 && i < count; i++)
        arena_close(&cases[i].arena);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

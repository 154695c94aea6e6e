/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What is said of random trainings of which one thing went otherwise from some update on: the
 * counter jumps, is held, falls back, begins anew or is doubled, the peak or the total is another
 * one, the LR stands still, is held from below or moves at every n-th update only, rows lose their
 * last digit, or updates were skipped; with and without a resume that the log shows. Whatever is
 * said to fit must print every row, and a column in which nothing happened must pass.
 *
 * tests/golden/forensics/fit_events.txt holds what `lr fit`, `lr check` and the doctor say of each
 * in short, and one number made of all of it (FNV-1a). With TWINSTEP_SHOW=CASE all is printed. */
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
#include "forensics/doctor/doctor.h"
#include "forensics/fit.h"
#include "tests/base/helper_draws.h"
#include "tests/forensics/helper_golden.h"
#include "tests/forensics/helper_log.h"

enum { ROWS = 72 };

/* Of the numbers below 420 those whose trainings walk lines or branches that no short test did on
 * 2026-11-28, and those whose searches end soon: all of them would take a minute. */
static const uint32_t cases[] = {
    0,   8,   12,  21,  28,  30,  32,  42,  45,  54,  55,  60,  65,  74,  75,  78,  80,
    85,  87,  88,  90,  94,  102, 105, 106, 120, 123, 126, 127, 128, 132, 135, 145, 149,
    150, 164, 165, 177, 179, 180, 192, 210, 217, 222, 225, 230, 231, 235, 240, 245, 252,
    255, 264, 267, 270, 299, 306, 307, 313, 314, 315, 321, 379, 382, 395, 399};

enum event {
    NOTHING,
    JUMPS,       /* the counter is some updates ahead from then on */
    HELD,        /* and some behind */
    FALLS_BACK,  /* a resume from an older scheduler */
    ANEW,        /* the counter begins at 0 */
    DOUBLED,     /* the counter is added to itself */
    OTHER_PEAK,  /* a factor nobody has a name for */
    OVERWRITTEN, /* the decayed LR becomes the peak */
    OTHER_TOTAL,
    STANDS,
    FROM_BELOW, /* lr = max(lr, floor) */
    SELDOM,     /* one move every n updates */
    FIRST_APART,
    LAST_DIGIT, /* rows are one quantum off */
    SKIPPED,
    EVENTS
};
static const char *const events[] = {"nothing", "jumps",      "held",       "falls back",
                                     "anew",    "doubled",    "other peak", "overwritten",
                                     "total",   "stands",     "from below", "seldom",
                                     "first",   "last digit", "skipped"};

static const struct kind {
    const char *contract, *schedule, *format;
} kinds[] = {
    {"hf", "linear", "hf-trainer-state"},
    {"hf", "cosine", NULL},
    {"hf", "polynomial", "hf-trainer-state"},
    {"hf", "constant_with_warmup", NULL},
    {"hf-4.50", "linear", NULL},
    {"olmo-core", "linear", NULL},
    {"megatron", "cosine", "megatron"},
    {"megatron", "linear", "megatron"},
    {"hf-x-processes", "linear", NULL},
    {"deepspeed-warmup", NULL, NULL},
    {"lightning-epoch", "linear", "lightning"},
    {"hf", "cosine_with_min_lr", NULL},
    {"hf", "warmup_stable_decay", NULL},
    {"hf", "inverse_sqrt", NULL},
    {"hf", "cosine_with_restarts", "hf-trainer-state"},
    {"olmo-core", NULL, NULL},
};

struct trial {
    struct arena arena;
    struct log *log;
    struct contract_request request; /* what the training was made with */
    struct contract_plan plan, other;
    const struct kind *kind;
    int event, print, tells_total, knows, shows_resume;
    uint64_t at, by; /* the update of the event, and its size */
    uint64_t every;  /* updates of a row */
    uint64_t again;  /* where the counter jumps once more; 0: nowhere */
    int counts;      /* what else the log has: 1 skipped updates, 2 a loss scale, 3 epochs */
    double scale;
};

static void draw_trial(uint32_t number, struct trial *trial) {
    static const double peaks[] = {5e-7, 2e-5, 1e-4, 3e-4};
    static const int prints[] = {PRINT_EXACT, PRINT_E6, PRINT_E2, PRINT_BINARY32};
    struct draws draws = {.key = UINT64_C(0xe7e9), .number = number};
    struct contract_request *const request = &trial->request;
    memset(trial, 0, sizeof *trial);
    trial->event = (int)(number % EVENTS);
    trial->kind = &kinds[draws_pick(&draws, COUNT_OF(kinds))];
    trial->print = prints[draws_pick(&draws, COUNT_OF(prints))];
    trial->tells_total = draws_pick(&draws, 3) > 0;
    trial->knows = (int)draws_pick(&draws, 4); /* 0: contract and schedule alone */
    trial->shows_resume =
        trial->event >= JUMPS && trial->event <= STANDS && draws_pick(&draws, 2) == 0;
    trial->at = 4 + draws_pick(&draws, ROWS - 12);
    trial->by = 1 + draws_pick(&draws, 12);
    trial->every = draws_pick(&draws, 3) > 0 ? 1 : 2 + draws_pick(&draws, 9);
    trial->at *= trial->every;
    trial->again =
        draws_pick(&draws, 4) == 0 ? trial->at + trial->every * (4 + draws_pick(&draws, 10)) : 0;
    if (trial->event == NOTHING) trial->again = 0;
    trial->counts = (int)draws_pick(&draws, 6);
    trial->scale = 0.25 + (double)(1 + draws_pick(&draws, 6)) / 4.0;
    contract_request_init(request);
    request->contract = contract_find(trial->kind->contract);
    assert_non_null(request->contract);
    request->schedule = trial->kind->schedule;
    request->lr = peaks[draws_pick(&draws, COUNT_OF(peaks))];
    request->warmup = (double)(trial->every * (2 + draws_pick(&draws, 12)));
    request->steps = trial->every * (ROWS - 6 + 3 * draws_pick(&draws, 12));
    request->updates_per_epoch = 4 * trial->every;
    request->processes = 2;
    request->global_batch = 8;
    assert_int_equal(contract_resolve(request, &trial->arena, &trial->plan), STATUS_OK);
    struct contract_request longer = *request;
    longer.steps += trial->every * (10 + 10 * draws_pick(&draws, 5));
    assert_int_equal(contract_resolve(&longer, &trial->arena, &trial->other), STATUS_OK);
}

/* The LR that the training logs at an update, but for a second jump. */
static double logged_once(const struct trial *t, uint64_t k) {
    const struct contract_plan *const plan = &t->plan;
    if (t->event == SELDOM) return contract_logged(plan, 1 + (k - 1) / (t->by + 1));
    if (t->event == FIRST_APART && k == 1) return t->by % 2 == 0 ? plan->call.base_lr : 0.0;
    if (t->event == FROM_BELOW)
        return fmax(contract_logged(plan, k), contract_logged(plan, t->at + 6));
    if (k < t->at) return contract_logged(plan, k);
    const uint64_t since = k - t->at + 1;
    switch (t->event) {
    case JUMPS:
        return contract_logged(plan, k + t->by);
    case HELD:
    case SKIPPED:
        return contract_logged(plan, t->event == HELD && t->by < k ? k - t->by : k - 1);
    case FALLS_BACK:
        return contract_logged(plan, since + t->at / 2);
    case ANEW:
        return contract_logged(plan, since);
    case DOUBLED:
        return contract_logged(plan, k + t->at - 1);
    case OTHER_PEAK:
        return contract_logged(plan, k) * t->scale;
    case OVERWRITTEN:
        return contract_logged(plan, k) * contract_logged(plan, t->at - 1) / plan->call.base_lr;
    case OTHER_TOTAL:
        return contract_logged(&t->other, k);
    case STANDS:
        return contract_logged(plan, t->at);
    default:
        return contract_logged(plan, k);
    }
}

static double logged(const struct trial *t, uint64_t k) {
    return logged_once(t, t->again > 0 && k >= t->again ? k + t->every : k);
}

static void make_log(struct trial *t) {
    t->log = helper_log(&t->arena, ROWS);
    if (t->kind->format != NULL) t->log->format = t->kind->format;
    t->log->max_steps = t->tells_total ? t->request.steps : 0;
    for (size_t row = 0; row < ROWS; row++) {
        const double lr = logged(t, t->every * (row + 1));
        helper_put(&t->arena, t->log, LOG_LR_LOGGED, row, lr, lr > 0.0 ? t->print : PRINT_EXACT);
        t->log->step[row] = (int64_t)(t->every * (row + 1));
        if (t->counts == 1)
            helper_put(&t->arena, t->log, LOG_SKIPPED, row,
                       t->event == SKIPPED && t->every * (row + 1) + 1 >= t->at ? 1.0 : 0.0, 0);
        if (t->counts == 2)
            helper_put(&t->arena, t->log, LOG_LOSS_SCALE, row,
                       t->event == SKIPPED && t->every * (row + 1) + 1 >= t->at ? 512.0 : 1024.0,
                       0);
        if (t->counts == 3)
            helper_put(&t->arena, t->log, LOG_EPOCH, row, (double)(row + 1) / 4.0, 2);
        helper_put(&t->arena, t->log, LOG_GRAD_NORM, row, 1.0 + 0.125 * (double)(row % 7),
                   PRINT_EXACT);
    }
    if (t->event == SKIPPED)
        helper_put(&t->arena, t->log, LOG_GRAD_NORM, t->at / t->every - 2, (double)INFINITY,
                   PRINT_EXACT);
    const size_t first = (size_t)(t->at / t->every);
    for (size_t row = first; t->event == LAST_DIGIT && row < first + t->by && row < ROWS; row++)
        for (size_t c = 0; c < t->log->column_count; c++)
            if (t->log->columns[c].name == LOG_LR_LOGGED)
                helper_put(&t->arena, t->log, LOG_LR_LOGGED, row,
                           t->log->columns[c].value[row] + (double)t->log->columns[c].quantum[row],
                           t->print);
    if (t->shows_resume) {
        for (size_t row = first - 1; row < ROWS; row++)
            t->log->part[row] = 1;
    }
}

static void know(const struct trial *t, struct fit_known *known, struct arena *arena) {
    fit_known_init(known);
    assert_int_equal(fit_known_from_log(known, t->log, arena), STATUS_OK);
    known->request.contract = t->request.contract;
    known->request.schedule = t->request.schedule;
    known->request.processes = 2;
    known->request.global_batch = 8;
    known->request.steps = t->request.steps;
    if (t->knows == 0) return;
    known->request.lr = t->request.lr;
    if (t->knows > 1) known->request.warmup = t->request.warmup;
}

/* Every fit that is listed must print every row. */
static void hold_rows(const char *name, const struct fit_set *set) {
    double scale = 0.0;
    for (size_t i = 0; i < set->series->count; i++)
        scale = fmax(scale, fabs(set->series->points[i].value));
    for (size_t f = 0; f < set->count; f++)
        for (size_t i = 0; i < set->series->count; i++) {
            const struct series_point *const point = &set->series->points[i];
            if (i == 0 && set->fits[f].first_differs) continue;
            const double value = fit_logged(&set->fits[f], i, point->update);
            if (!(fabs(value - point->value) <= 0.5 * point->quantum + 1e-12 * scale))
                fail_msg("%s: %s logs %.17g at update %llu, the log %.17g", name, set->fits[f].text,
                         value, (unsigned long long)point->update, point->value);
        }
}

static void finish(FILE *out, FILE *text, char **bytes, size_t *size, const char *name) {
    const char *const shown = getenv("TWINSTEP_SHOW");
    assert_int_equal(fclose(text), 0);
    const uint64_t hash = draws_hash(DRAWS_HASH, *bytes, *size);
    if (shown != NULL && strcmp(shown, name) == 0) print_message("%s", *bytes);
    free(*bytes);
    fprintf(out, "; %016llx\n", (unsigned long long)hash);
}

static void examine(FILE *out, uint32_t number, size_t *named) {
    static const char *const verdicts[] = {"pass", "fail", "undecided"};
    struct trial t;
    struct series series;
    struct fit_known known;
    struct fit_set fits;
    struct fit_check check;
    struct doctor_options options;
    struct doctor_report report;
    char name[96], *bytes = NULL;
    size_t size = 0;
    draw_trial(number, &t);
    make_log(&t);
    know(&t, &known, &t.arena);
    snprintf(name, sizeof name, "%u %s %s %s", number, t.kind->contract, events[t.event],
             t.shows_resume ? "at a resume" : "");
    assert_int_equal(series_of(t.log, log_column_of(t.log, LOG_LR_LOGGED), &t.arena, &series),
                     STATUS_OK);
    FILE *text = open_memstream(&bytes, &size);
    assert_non_null(text);
    assert_int_equal(fit_series(&series, &known, &t.arena, &fits), STATUS_OK);
    hold_rows(name, &fits);
    golden_fits_whole(text, &fits, &known);
    assert_int_equal(fit_check(&series, &known, (int)(number % 2), &t.arena, &check), STATUS_OK);
    golden_check(text, &check, 2);
    doctor_options_init(&options);
    assert_int_equal(doctor_examine(t.log, &options, &fits, &t.arena, &report), STATUS_OK);
    golden_findings(text, &report);
    fprintf(out, "%s: %zu fits%s%s, %s%s%s", name, fits.count,
            fits.count > 0 && fits.fits[0].bug != NULL ? ", " : "",
            fits.count > 0 && fits.fits[0].bug != NULL ? fits.fits[0].bug : "",
            verdicts[check.verdict], check.bug != NULL ? " " : "",
            check.bug != NULL ? check.bug : "");
    for (size_t i = 0; i < report.finding_count; i++)
        fprintf(out, ", %s", report.findings[i].id);
    finish(out, text, &bytes, &size, name);
    if (t.event == NOTHING && check.verdict == FIT_FAIL) fail_msg("%s: %s", name, check.words);
    named[t.event] += check.verdict == FIT_FAIL;
    arena_close(&t.arena);
}

static void validate_random_events(void **state) {
    (void)state;
    size_t failed[EVENTS] = {0};
    FILE *out = golden_begin("fit_events.txt", "%zu trainings", COUNT_OF(cases));
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        examine(out, cases[i], failed);
    golden_end();
    assert_int_equal(failed[NOTHING], 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_random_events),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 * Draws the trainings with splitmix64, so that they are the same on every machine, and checks their
 * logs. */
#include "tests/forensics/helper_healthy.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <cmocka.h>

#include "forensics/fit.h"
#include "tests/forensics/helper_golden.h"
#include "tests/forensics/helper_lr.h"

#define ROWS 1400 /* as many updates, each twice where the run was resumed */
#define SKIPPED 8
#define RESUMED 2 /* value of `skips`: with a resume, too */

struct training {
    struct contract_request request;
    struct contract_plan plan;
    uint64_t skipped[SKIPPED];
    struct lr_log log;
    struct series_point points[ROWS];
    struct series series;
};

static uint64_t draw(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint64_t below(uint64_t *state, uint64_t end) {
    return draw(state) % end;
}

/* One of the schedules of releases that are current; tests/cli/test_cli_lr_wsd.c has the elder form
 * of WSD. */
static const char *draw_schedule(uint64_t *state, const struct contract *contract) {
    const struct sched_class *const *classes = sched_classes();
    const char *names[32];
    size_t count = 0;
    for (size_t i = 0; classes[i] != NULL; i++)
        if (sched_in_family(classes[i], contract->family) &&
            strstr(classes[i]->name, "decay_old") == NULL)
            names[count++] = sched_bare_name(classes[i]);
    return names[below(state, count)];
}

static double draw_lr(uint64_t *state) {
    char text[32];
    const unsigned digit = (unsigned)below(state, 9) + 1, exponent = (unsigned)below(state, 5) + 3;
    snprintf(text, sizeof text, below(state, 4) == 0 ? "%u.5e-%u" : "%ue-%u", digit, exponent);
    return strtod(text, NULL);
}

static void draw_numbers(uint64_t *state, struct contract_request *r) {
    static const double ratios[] = {0.03, 0.1, 0.05, 0.06, 0.2};
    r->lr = draw_lr(state);
    r->steps = below(state, 3) == 0 ? 5 + below(state, 20) : 25 + below(state, 600);
    if (r->steps > 60 && below(state, 2) == 0) r->steps -= r->steps % 50;
    switch (below(state, 4)) {
    case 0:
        r->warmup = 0.0;
        break;
    case 1:
        r->warmup = (double)below(state, r->steps / 2);
        break;
    default:
        r->warmup_ratio = ratios[below(state, 5)];
    }
    r->processes = 1 + below(state, 8);
    r->accumulate = 1 + below(state, 8);
    r->global_batch = 8 * (1 + below(state, 16));
    r->tokens = 4096;
    r->updates_per_epoch = 2 + below(state, 11);
}

static void draw_log(uint64_t *state, struct training *t) {
    struct lr_log *log = &t->log;
    *log = (struct lr_log){.plan = &t->plan, .first = 1, .every = 1, .last = t->plan.steps};
    log->print = (int)below(state, 4);
    if (t->plan.steps > 60 && below(state, 2) == 0) {
        log->every = below(state, 2) == 0 ? 5 : 10;
        log->first = below(state, 2) == 0 ? log->every : 1;
    }
    if (t->plan.steps > 40 && below(state, 4) == 0) log->first += below(state, t->plan.steps / 2);
    if (t->plan.steps > 40 && below(state, 4) == 0) log->last -= below(state, t->plan.steps / 4);
    if (t->plan.contract->unit == CONTRACT_UNIT_EPOCH) log->first = log->every = 1; /* all stairs */
    if (strcmp(t->plan.schedule->name, "deepspeed.one_cycle") == 0) log->first = 1;
    if (t->plan.contract->past_end == CONTRACT_PAST_ABORT) log->last = t->plan.steps;
    t->series = (struct series){t->points, lr_log_points(log, t->points)};
}

/* Draws up to six skipped updates: the first ones, one after another, or anywhere. */
static void draw_skips(uint64_t *state, struct training *t) {
    const uint64_t last = t->request.steps;
    const size_t count = 1 + (size_t)below(state, last < 60 ? 2 : 6);
    uint64_t update = 0;
    const uint64_t kind = below(state, 3);
    if (kind == 1) update = below(state, last - count);
    t->request.skipped = t->skipped;
    for (size_t i = 0; i < count && update < last; i++) {
        update += kind == 2 ? 1 + below(state, last / count) : 1;
        if (update <= last) t->skipped[t->request.skipped_count++] = update;
    }
}

/* Makes the log that of a run which stopped and went on from a checkpoint before: updates from
 * there on stand twice in it, and the scaler, which began anew, skipped other updates the second
 * time, the first ones as a rule. Returns 0 where the run is too short for it. */
static int resume(uint64_t *state, struct training *t) {
    const uint64_t last = t->request.steps;
    uint64_t again[2 * SKIPPED], before = 0;
    struct series_point points[ROWS];
    size_t kept = 0, count = 0;
    if (last < 60 || t->plan.contract->unit == CONTRACT_UNIT_EPOCH) return 0;
    const uint64_t from = last / 4 + below(state, last / 4);
    const uint64_t stop = from + below(state, last / 4), first = 1 + below(state, 3);
    while (kept < t->request.skipped_count && t->skipped[kept] <= from) {
        again[kept] = t->skipped[kept];
        kept++;
    }
    before = from;
    for (uint64_t n = below(state, 4), i = 0; i < n && before < last; i++) {
        before += i == 0 ? first : 1 + (below(state, 4) == 0 ? below(state, last / 4) : 0);
        if (before <= last) again[kept++] = before;
    }
    while (count < t->series.count && t->points[count].update <= stop)
        count++;
    t->plan.skipped = again;
    t->plan.skipped_count = kept;
    const size_t all = lr_log_points(&t->log, points);
    for (size_t i = 0; i < all; i++) {
        if (points[i].update <= from) continue;
        points[i].part = 1;
        points[i].row = count;
        t->points[count++] = points[i];
    }
    t->series.count = count;
    t->plan.skipped = t->skipped;
    t->plan.skipped_count = t->request.skipped_count;
    return t->series.points[0].update <= from;
}

/* Draws a training; returns 0 where the contract refuses the numbers. */
static int draw_training(uint64_t *state, const struct contract *contract, int skips,
                         struct arena *arena, struct training *t) {
    contract_request_init(&t->request);
    t->request.contract = contract;
    t->request.schedule = draw_schedule(state, contract);
    draw_numbers(state, &t->request);
    if (skips) draw_skips(state, t);
    if (contract_resolve(&t->request, arena, &t->plan) != STATUS_OK) return 0;
    draw_log(state, t);
    if (skips == RESUMED && !resume(state, t)) return 0;
    for (size_t i = 0; i < t->series.count; i++)
        if (!isfinite(t->points[i].value) || t->points[i].value < 0.0) return 0;
    return 1;
}

static void complain(const char *what, const struct training *t, const char *why) {
    print_message("%s: %s %s lr %g warm-up %g (ratio %g) steps %llu P %llu a %llu U %llu; rows "
                  "%llu..%llu every %llu, print %d: %s\n",
                  what, t->request.contract->name, t->request.schedule, t->request.lr,
                  t->request.warmup, t->request.warmup_ratio, (unsigned long long)t->request.steps,
                  (unsigned long long)t->request.processes,
                  (unsigned long long)t->request.accumulate,
                  (unsigned long long)t->request.updates_per_epoch,
                  (unsigned long long)t->log.first, (unsigned long long)t->log.last,
                  (unsigned long long)t->log.every, t->log.print, why == NULL ? "" : why);
}

/* `block` names the case in tests/golden/forensics/fit_healthy.txt; "": there is none. */
static void judge(const struct training *t, const struct fit_known *known, int applied,
                  const char *what, const char *block, struct healthy_count *out) {
    struct arena arena = ARENA_EMPTY;
    struct fit_check check;
    const enum status status = fit_check(&t->series, known, applied, &arena, &check);
    out->logs++;
    if (status == STATUS_OK && block[0] != '\0') {
        golden_check(golden_begin("fit_healthy.txt", "%s, %s", block, what), &check, 0);
        golden_end();
    }
    if (status != STATUS_OK) {
        complain(what, t, status_text());
        out->failed++;
    } else if (check.verdict == FIT_FAIL) {
        complain(what, t, check.words);
        out->failed++;
    } else if (check.verdict == FIT_PASS) {
        out->passed++;
    } else {
        assert_non_null(check.needs);
        out->undecided++;
    }
    arena_close(&arena);
}

static void check_all(size_t cases, uint64_t seed, int applied, int skips, int pinned,
                      struct healthy_count *out) {
    size_t contracts;
    const struct contract *list = contract_list(&contracts);
    struct training *t = (struct training *)malloc(sizeof *t);
    assert_non_null(t);
    for (size_t c = 0; c < contracts; c++) {
        uint64_t state = seed * 1000 + c;
        size_t i = 0; /* trainings that the contract accepts */
        if (skips && (list[c].on_skip != CONTRACT_SKIP_HOLD || list[c].bug)) continue;
        for (size_t drawn = 0; i < cases && drawn < 40 * cases; drawn++) {
            struct arena arena = ARENA_EMPTY;
            struct fit_known known;
            fit_known_init(&known);
            if (draw_training(&state, &list[c], skips, &arena, t)) {
                char block[96] = "";
                if (pinned)
                    snprintf(block, sizeof block, "%s, seed %llu, case %zu", list[c].name,
                             (unsigned long long)seed, i);
                known.request = t->request;
                known.request.skipped_count = 0; /* nobody tells of them */
                judge(t, &known, applied, "given", block, out);
                fit_known_init(&known);
                known.request.contract = &list[c];
                known.request.processes = t->request.processes;
                known.request.accumulate = t->request.accumulate;
                known.request.tokens = t->request.tokens;
                known.run_steps = t->request.steps;
                if (!applied && t->log.first == 1 && t->log.every == 1 && i % 20 == 0)
                    judge(t, &known, applied, "fitted", block, out);
                i++;
            }
            arena_close(&arena);
        }
        if (i < cases) fail_msg("%s: only %zu trainings of %zu", list[c].name, i, cases);
    }
    free(t);
}

void healthy_check(size_t cases, uint64_t seed, int pinned, struct healthy_count *out) {
    check_all(cases, seed, 0, 0, pinned, out);
}

void healthy_check_applied(size_t cases, uint64_t seed, int pinned, struct healthy_count *out) {
    check_all(cases, seed, 1, 0, pinned, out);
}

void healthy_check_skips(size_t cases, uint64_t seed, int pinned, struct healthy_count *out) {
    check_all(cases, seed, 0, 1, pinned, out);
}

void healthy_check_resumed(size_t cases, uint64_t seed, int pinned, struct healthy_count *out) {
    check_all(cases, seed, 0, RESUMED, pinned, out);
}

static int near(double a, double b) {
    return fabs(a - b) <= 1e-3 * fabs(b);
}

/* Tells whether a fit has the training's contract and schedule, and its numbers as far as the log
 * shows them. */
static int is_truth(const struct fit *fit, const struct training *t) {
    if (fit->contract != t->request.contract) return 0;
    if (fit->schedule != t->plan.schedule) return 0;
    if (fit->warmup_hidden || fit->total_hidden) return 1;
    return near(fit->lr, t->request.lr);
}

/* Tells whether the log cannot show the contract: with a stride of one process, with one LR
 * everywhere, or with a schedule of many parameters that a fit leaves at their defaults. */
static int is_mute(const struct training *t) {
    const struct contract *contract = t->request.contract;
    if (strcmp(t->plan.schedule->name, "deepspeed.one_cycle") == 0) return 1;
    if (contract->unit == CONTRACT_UNIT_PROCESS && !contract->scaled && t->request.processes < 2)
        return 1;
    if (contract->unit == CONTRACT_UNIT_MICRO && t->request.accumulate < 2) return 1;
    for (size_t i = 1; i < t->series.count; i++)
        if (t->points[i].value != t->points[0].value) return 0;
    return 1;
}

void healthy_fit(size_t cases, uint64_t seed, int pinned, struct healthy_count *out) {
    size_t contracts;
    const struct contract *list = contract_list(&contracts);
    struct training *t = (struct training *)malloc(sizeof *t);
    assert_non_null(t);
    for (size_t c = 0; c < contracts; c++) {
        uint64_t state = seed * 1000 + c;
        for (size_t i = 0; i < cases; i++) {
            struct arena arena = ARENA_EMPTY;
            struct fit_known known;
            struct fit_set set;
            int listed = 0;
            fit_known_init(&known);
            if (draw_training(&state, &list[c], 0, &arena, t) && !is_mute(t)) {
                known.run_steps = t->request.steps;
                known.request.processes = t->request.processes;
                known.request.accumulate = t->request.accumulate;
                known.request.tokens = t->request.tokens;
                known.request.global_batch = t->request.global_batch;
                if (t->log.first > 1) { /* the warm-up may be over: it cannot be read off */
                    known.request.warmup = t->request.warmup;
                    known.request.warmup_ratio = t->request.warmup_ratio;
                }
                known.limit = 4096; /* all */
                assert_int_equal(fit_series(&t->series, &known, &arena, &set), STATUS_OK);
                if (pinned) {
                    golden_fits(golden_begin("fit_healthy.txt", "%s, seed %llu, fit %zu",
                                             list[c].name, (unsigned long long)seed, i),
                                &set, 3);
                    golden_end();
                }
                for (size_t f = 0; f < set.count; f++)
                    listed |= is_truth(&set.fits[f], t);
                out->logs++;
                out->failed += !listed;
                if (!listed) complain("truth", t, set.count > 0 ? set.fits[0].text : "no fit");
            }
            arena_close(&arena);
        }
    }
    free(t);
}

/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short whole
 * What `lr check` and the doctor conclude where every search is answered at once: fit_series is
 * wrapped (tests/CMakeLists.txt), and its stand-in picks, of some thirty explanations that a case
 * has, those that a search with these questions could find: of the contract, schedule and numbers
 * that are asked for, plain where plain ones are wanted, and printing every row. So thousands of
 * columns meet each rule of an expectation, its rivals, a schedule that stands still and an LR that
 * is held, in the time of one search. One case in four is answered with explanations that do not
 * print the rows, for rules that a search seldom reaches.
 *
 * A pass agrees with every row, a verdict that is no pass names the first row that differs or says
 * what is needed, and what was made as it is asked for is not refused.
 * tests/golden/forensics/fit_given.txt holds, for each kind of column, how many cases have which
 * answer, and one number made of all that is said of them (FNV-1a). With TWINSTEP_SHOW=CASE all
 * that is said of one is printed. */
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
#include "forensics/fit_samples.h"
#include "forensics/fit_search.h"
#include "tests/base/helper_draws.h"
#include "tests/forensics/helper_answers.h"
#include "tests/forensics/helper_golden.h"
#include "tests/forensics/helper_log.h"

enum { CASES = 15000, POOL = 36, SEGMENTS = 3 };

enum event {
    NOTHING,
    PEAK,
    WARMUP,
    TOTAL,
    FLOOR,
    AHEAD,
    BEHIND,
    TWO_AHEAD,
    TWO_BEHIND,
    STANDS,
    HELD_BELOW,
    HELD_ABOVE,
    LAST_ROW,
    SKIPPED,
    JUMPS,
    ANEW,
    OTHER_PEAK,
    NUDGED,
    OTHER_TOTAL,
    HALF,
    TWICE,
    FIRST,
    RISES,
    NO_NUMBER,
    EVENTS
};
static const char *const events[] = {
    "nothing",     "peak",       "warm-up",    "total",  "floor",           "ahead",
    "behind",      "two ahead",  "two behind", "stands", "held from below", "held from above",
    "last row",    "skipped",    "jumps",      "anew",   "other peak",      "nudged",
    "other total", "half speed", "twice",      "first",  "rises",           "no number"};

static const struct kind {
    const char *contract, *schedule, *format;
    int has_floor;
} kinds[] = {
    {"hf", "linear", "hf-trainer-state", 0},
    {"hf", "cosine", NULL, 0},
    {"hf", "cosine_with_min_lr", NULL, 1},
    {"hf", "polynomial", "hf-trainer-state", 0},
    {"hf", "constant_with_warmup", NULL, 0},
    {"hf", "constant", NULL, 0},
    {"hf", "inverse_sqrt", NULL, 0},
    {"hf", "torch.one_cycle", NULL, 0},
    {"hf-4.50", "linear", NULL, 0},
    {"hf-4.51", "linear", NULL, 0},
    {"accelerate", "linear", NULL, 0},
    {"lag1", "linear", NULL, 0},
    {"per-micro-batch", "linear", NULL, 0},
    {"deepspeed-torch", "linear", NULL, 0},
    {"olmo-core", "linear", "olmo-core", 0},
    {"olmo-core", "cosine", NULL, 0},
    {"megatron", "cosine", "megatron", 1},
    {"megatron", "linear", "megatron", 1},
    {"megatron", "inverse-square-root", NULL, 1},
    {"hf-x-processes", "linear", NULL, 0},
    {"open-instruct-tune-cache", "linear", NULL, 0},
    {"deepspeed-warmup", NULL, NULL, 0},
    {"lightning-epoch", "linear", NULL, 0},
    {"torchtitan", NULL, NULL, 0},
};

struct trial {
    struct arena arena;
    struct draws draws;
    struct log *log;
    struct series series;
    struct contract_request made, asked;
    struct contract_plan plan, other_plan;
    const struct kind *kind;
    enum event event;
    int strict; /* the explanations must print the rows */
    int same;   /* what is asked for is what was made */
    int in_samples;
    uint64_t first, every, rows, at, by;
    double level;
    struct fit pool[POOL];
    struct fit_segment segments[POOL][SEGMENTS];
    struct fit_skip skips[POOL][1];
    size_t count;
    uint64_t skipped[1], steps_in_log;
    struct fit_known known;
    size_t searches;
};
static struct trial trial;

static uint32_t pick(uint32_t most) {
    return draws_pick(&trial.draws, most);
}

/* ---- the stand-in of a search ---- */

static int is_asked(const struct fit_known *known, const struct fit *fit) {
    const struct contract_request *const r = &known->request;
    const int plain = fit->stride == 1.0 && fit->segment_count == 1 && !fit->first_differs;
    const double floor = fit->floor_ratio == fit->floor_ratio ? fit->floor_ratio : 0.0;
    if (r->contract != NULL && fit->contract != r->contract) return 0;
    if (r->schedule != NULL && strcmp(sched_bare_name(fit->schedule), r->schedule) != 0) return 0;
    if (r->lr == r->lr && !fit_near(fit->lr, r->lr)) return 0;
    if (r->warmup == r->warmup && !fit_near(fit->warmup, r->warmup)) return 0;
    if (r->steps > 0 && fit->steps > 0 && fit->steps != r->steps && known->plain) return 0;
    if (r->min_lr_ratio == r->min_lr_ratio && fabs(floor - r->min_lr_ratio) > 1e-9) return 0;
    if (known->plain && !plain) return 0;
    if (known->plain && !known->with_skips && fit_skips_any(fit)) return 0;
    return !known->own_only || fit_is_native(known, fit->contract);
}

static int prints(const struct series *series, const struct fit *fit, double scale) {
    for (size_t i = 0; i < series->count; i++) {
        const struct series_point *const point = &series->points[i];
        if (i == 0 && fit->first_differs && point->value == fit->first_value) continue;
        if (!fit_matches(point, fit_logged(fit, i, point->update), scale, NULL)) return 0;
    }
    return 1;
}

enum status __wrap_fit_series(const struct series *series, const struct fit_known *known,
                              struct arena *arena, struct fit_set *out);
enum status __wrap_fit_series(const struct series *series, const struct fit_known *known,
                              struct arena *arena, struct fit_set *out) {
    struct fit *fits;
    int constant = 1, finite = 1;
    const double scale = fit_scale(series->points, series->count);
    TRY(arena_take(arena, POOL, sizeof *fits, "fits", &fits));
    *out = (struct fit_set){.series = series, .fits = fits, .groups = 1};
    for (size_t i = 0; i < series->count; i++) {
        if (series->points[i].update > out->last) out->last = series->points[i].update;
        constant &= series->points[i].value == series->points[0].value;
        finite &= isfinite(series->points[i].value) != 0;
    }
    const struct fit_search search = {
        .series = series, .known = known, .arena = arena, .last = out->last};
    for (size_t i = 0; i < trial.count && finite; i++) {
        if (!is_asked(known, &trial.pool[i])) continue;
        if (trial.strict && !prints(series, &trial.pool[i], scale)) continue;
        fits[out->count] = trial.pool[i];
        TRY(fit_words(&search, &fits[out->count++]));
    }
    if (series->count < 3) out->why |= FIT_WHY_FEW;
    if (constant) out->why |= FIT_WHY_CONSTANT;
    if (!finite) out->why |= FIT_WHY_NOT_FINITE;
    if (out->count == 0) {
        out->why |= FIT_WHY_NOTHING;
        out->partial = trial.by % 2 == 0 ? "hf linear, in front" : NULL;
        out->first_bad = series->count / 2;
    }
    trial.searches++;
    return STATUS_OK;
}

/* ---- explanations ---- */

/* Makes the plain explanation of a request. Returns 0 where there is none, as of a floor for a
 * schedule that has none. */
static int resolve(struct fit *fit, const struct contract_request *request) {
    memset(fit, 0, sizeof *fit);
    if (contract_resolve(request, &trial.arena, &fit->plan) != STATUS_OK) return 0;
    fit->contract = request->contract;
    fit->schedule = fit->plan.schedule;
    fit->schedule_name = request->schedule != NULL ? request->schedule : "default";
    fit->parameters = "";
    fit->lr = request->lr;
    fit->warmup = request->warmup;
    fit->takes_warmup = strcmp(sched_bare_name(fit->schedule), "constant") != 0;
    fit->steps = request->steps;
    fit->floor_ratio = request->min_lr_ratio;
    fit->stride = 1.0;
    fit->epoch_updates =
        request->contract->unit == CONTRACT_UNIT_EPOCH ? request->updates_per_epoch : 0;
    return 1;
}

static void add_segments(size_t f) {
    struct fit *const fit = &trial.pool[f];
    struct fit_segment *const segments = trial.segments[f];
    segments[0] = (struct fit_segment){.update = trial.first, .scale = 1.0};
    fit->segments = segments;
    fit->segment_count = 1;
}

static const int32_t breaks[] = {FIT_JUMP,  FIT_SKIP,     FIT_RESET,    FIT_BACK,
                                 FIT_TOTAL, FIT_RESCALED, FIT_RESTARTED};

/* Lets a fit depart as the column did, or in another way at the same row. */
static void add_break(size_t f, int32_t event) {
    struct fit *const fit = &trial.pool[f];
    const size_t point = (size_t)((trial.at - trial.first) / trial.every);
    struct fit_segment *segment = &trial.segments[f][1];
    if (point == 0 || point >= trial.rows) return;
    *segment = (struct fit_segment){
        .point = point, .update = trial.first + trial.every * point, .scale = 1.0, .event = event};
    if (event == FIT_JUMP) segment->moved = (int64_t)trial.by;
    if (event == FIT_SKIP || event == FIT_BACK) segment->moved = -(int64_t)trial.by;
    if (event == FIT_RESET) segment->moved = 1 - (int64_t)segment->update;
    if (event == FIT_RESCALED) segment->scale = trial.level;
    segment->shift = segment->moved;
    if (event == FIT_TOTAL) {
        segment->steps = trial.made.steps + trial.every * (2 + trial.by);
        segment->warmup = fit->warmup;
        segment->call_total = (double)segment->steps * fit->plan.increment;
        segment->call_warmup = fit->warmup * fit->plan.increment;
    }
    fit->segment_count = 2;
    if (point + 2 >= trial.rows || (trial.event != NUDGED && (f == 1 || pick(3) > 0))) return;
    trial.segments[f][2] = *segment;
    trial.segments[f][2].point = point + 2;
    trial.segments[f][2].update = segment->update + 2 * trial.every;
    trial.segments[f][2].scale = trial.event == NUDGED || pick(2) == 0 ? 1.0 : 0.5;
    if (trial.event != NUDGED) trial.segments[f][2].event = breaks[pick(COUNT_OF(breaks))];
    fit->segment_count = 3;
}

static int same_fit(const struct fit *a, const struct fit *b) {
    return a->contract == b->contract && a->schedule == b->schedule && a->lr == b->lr &&
           a->warmup == b->warmup && a->steps == b->steps && a->stride == b->stride &&
           a->segment_count == b->segment_count && a->skip_count == b->skip_count &&
           a->first_differs == b->first_differs &&
           (a->floor_ratio == b->floor_ratio ||
            (a->floor_ratio != a->floor_ratio && b->floor_ratio != b->floor_ratio));
}

static void keep(size_t f) {
    for (size_t i = 0; i < f; i++)
        if (same_fit(&trial.pool[i], &trial.pool[f])) return;
    trial.count++;
}

static void draw_extra(size_t f) {
    struct fit *const fit = &trial.pool[f];
    const uint32_t kind = pick(9);
    if (kind == 0) fit->stride = pick(2) == 0 ? 2.0 : 0.5;
    if (kind == 0) fit->plan.increment *= fit->stride;
    if (kind == 1) {
        fit->first_differs = 1;
        fit->first_value = pick(2) == 0 ? 0.0 : fit->lr;
    }
    if (kind == 2 || kind == 3) add_break(f, breaks[pick(COUNT_OF(breaks))]);
    if (kind == 4 && fit->contract->on_skip == CONTRACT_SKIP_HOLD) {
        trial.skipped[0] = trial.at;
        fit->plan.skipped = trial.skipped;
        fit->plan.skipped_count = 1;
        trial.skips[f][0] = (struct fit_skip){.first = trial.at, .last = trial.at, .count = 1};
        fit->skips = trial.skips[f];
        fit->skip_count = 1;
    }
    if (kind == 5) fit->warmup_hidden = 1;
    if (kind == 6) fit->total_hidden = 1;
    if (kind == 7) fit->drops_taken = 1;
}

static const int32_t break_of[EVENTS] = {
    [SKIPPED] = FIT_SKIP,        [JUMPS] = FIT_JUMP,      [ANEW] = FIT_RESET,
    [OTHER_PEAK] = FIT_RESCALED, [NUDGED] = FIT_RESCALED, [OTHER_TOTAL] = FIT_TOTAL};

/* Draws explanations: of every contract with the numbers of the training, of its own contract with
 * other numbers, and such as the event calls for. */
static void draw_pool(void) {
    static const double peaks[] = {1.0, 1.0, 1.0, 2.0, 0.5, 1.2137};
    static const double floors[] = {0.1, 0.1, 0.2, 0.5, 0.01, 0.0, 0.1237};
    double cost = 0.0;
    trial.count = 0;
    for (size_t n = 0; n < POOL; n++) {
        const size_t f = trial.count;
        const int every_kind = n >= 6 && n < 6 + COUNT_OF(kinds);
        const struct kind *const kind = n < 6          ? trial.kind
                                        : every_kind   ? &kinds[n - 6]
                                        : pick(2) == 0 ? trial.kind
                                                       : &kinds[pick(COUNT_OF(kinds))];
        struct contract_request request = trial.made;
        request.contract = contract_find(kind->contract);
        request.schedule = kind->schedule;
        request.skipped_count = 0;
        request.min_lr_ratio = kind->has_floor ? floors[pick(2)] : real_nan_f64();
        if (n == 0) request.min_lr_ratio = trial.made.min_lr_ratio;
        if (n > 1 && !every_kind) {
            request.lr *= peaks[pick(COUNT_OF(peaks))];
            if (pick(3) == 0) request.warmup = (double)(trial.every * pick(6));
            if (pick(3) == 0) request.steps += trial.every * pick(6);
            if (kind->has_floor || pick(4) == 0)
                request.min_lr_ratio = floors[pick(COUNT_OF(floors))];
        }
        if (!resolve(&trial.pool[f], &request)) continue;
        add_segments(f);
        if (n == 1 && break_of[trial.event] != FIT_PLAIN) add_break(f, break_of[trial.event]);
        if (n > 1 && !every_kind) draw_extra(f);
        if (!trial.strict && pick(4) == 0) draw_extra(f);
        struct fit *const fit = &trial.pool[f];
        cost += 0.0625 * (double)(pick(3));
        fit->simplicity = cost + (fit->contract->bug ? 0.25 : 0.0);
        fit->same_applied = pick(2);
        fit->max_error = 0.25;
        keep(f);
    }
    for (size_t i = 1; i < trial.count; i++) /* the simplest first; their segments stay in place */
        for (size_t k = i; k > 0 && trial.pool[k].simplicity < trial.pool[k - 1].simplicity; k--) {
            const struct fit kept = trial.pool[k];
            trial.pool[k] = trial.pool[k - 1];
            trial.pool[k - 1] = kept;
        }
}

/* ---- columns ---- */

static double logged(size_t row) {
    const struct contract_plan *const plan = &trial.plan;
    const uint64_t k = trial.first + trial.every * row, n = trial.every;
    const int behind = k >= trial.at;
    const double value = contract_logged(plan, k);
    switch (trial.event) {
    case AHEAD:
        return contract_logged(plan, k + 1);
    case BEHIND:
        return contract_logged(plan, k > 1 ? k - 1 : 1);
    case TWO_AHEAD:
        return contract_logged(plan, k + 2);
    case TWO_BEHIND:
        return contract_logged(plan, k > 2 ? k - 2 : 1);
    case STANDS:
        return contract_logged(plan, behind ? trial.at + (trial.by % 2) * n : k);
    case HELD_BELOW:
        return fmax(value, trial.level);
    case HELD_ABOVE:
        return fmin(value, trial.level);
    case LAST_ROW:
        return row + 1 == trial.rows ? 0.75 * value : value;
    case SKIPPED:
        return contract_logged(plan, behind && k > trial.by ? k - trial.by : k);
    case JUMPS:
        return contract_logged(plan, behind ? k + trial.by : k);
    case ANEW:
        return contract_logged(plan, behind ? k - trial.at + 1 : k);
    case OTHER_PEAK:
        return behind ? trial.level * value : value;
    case NUDGED:
        return behind && k < trial.at + 2 * n ? trial.level * value : value;
    case OTHER_TOTAL:
        return contract_logged(behind ? &trial.other_plan : plan, k);
    case HALF:
        return contract_logged(plan, 1 + (k - 1) / 2);
    case TWICE:
        return contract_logged(plan, 2 * k - 1);
    case FIRST:
        return row == 0 ? (trial.by % 2 == 0 ? 0.0 : plan->call.base_lr) : value;
    case RISES:
        return k > plan->steps ? contract_logged(plan, 2 * plan->steps - k + 1) : value;
    case NO_NUMBER:
        return behind ? real_nan_f64() : value;
    default:
        return value;
    }
}

static void draw_level(void) {
    static const double shares[] = {0.5, 0.1, 0.3333333333333333, 0.123457, 1.0};
    const struct contract_plan *const plan = &trial.plan;
    if (trial.event == OTHER_PEAK) {
        trial.level = 0.25 + (double)(1 + pick(6)) / 4.0;
    } else if (trial.event == NUDGED) {
        trial.level = 1.0 + 1e-3 * (double)(1 + pick(4));
    } else {
        trial.level = contract_logged(plan, trial.at);
        if (pick(2) == 0) trial.level = plan->call.base_lr * shares[pick(COUNT_OF(shares))];
        if (pick(3) == 0) trial.level *= 1.01;
    }
}

static void draw_made(uint32_t number) {
    static const uint64_t gaps[] = {1, 1, 1, 1, 7};
    static const double peaks[] = {2e-5, 2e-5, 3e-4, 2.137e-5};
    trial.event = (enum event)(number % EVENTS);
    trial.strict = pick(4) > 0;
    trial.kind = &kinds[pick(COUNT_OF(kinds))];
    trial.every = gaps[pick(COUNT_OF(gaps))];
    trial.first = pick(4) > 0 ? 1 : trial.every * (1 + pick(5));
    trial.rows = pick(5) == 0 ? 1 + pick(6) : 14 + pick(20);
    if (trial.event >= STANDS && trial.event <= HELD_ABOVE && trial.rows > 6)
        trial.rows += 10; /* so many must move and stand */
    trial.at = trial.first + trial.every * (1 + pick((uint32_t)trial.rows));
    if (trial.rows > 24 && pick(2) == 0) trial.at = trial.first + trial.every * (10 + pick(8));
    trial.by = 1 + pick(4);
    struct contract_request *const made = &trial.made;
    contract_request_init(made);
    made->contract = contract_find(trial.kind->contract);
    if (made->contract == NULL) fail_msg("no contract %s", trial.kind->contract);
    made->schedule = trial.kind->schedule;
    made->lr = peaks[pick(COUNT_OF(peaks))];
    made->warmup = (double)(trial.every * pick(5));
    made->steps = trial.every * ((trial.rows < 6 ? 6 : trial.rows) + pick(14));
    if (trial.event == RISES) made->steps = 1 + trial.every * (trial.rows / 2 + 6);
    made->processes = 2;
    made->global_batch = 8;
    made->tokens = 1024;
    made->updates_per_epoch = 3 * trial.every;
    made->min_lr_ratio = trial.kind->has_floor ? 0.1 : real_nan_f64();
    trial.asked = *made;
    if (trial.event == PEAK) made->lr *= 1.5;
    if (trial.event == WARMUP) made->warmup += (double)trial.every;
    if (trial.event == TOTAL) made->steps += trial.every;
    if (trial.event == FLOOR && trial.kind->has_floor) made->min_lr_ratio = 0.2;
    if (contract_resolve(made, &trial.arena, &trial.plan) != STATUS_OK)
        fail_msg("case %u: %s", number, status_text());
    struct contract_request longer = *made;
    longer.steps += trial.every * (2 + trial.by);
    assert_int_equal(contract_resolve(&longer, &trial.arena, &trial.other_plan), STATUS_OK);
    draw_level();
    trial.in_samples = made->contract->unit == CONTRACT_UNIT_SAMPLE && pick(2) == 0;
}

/* Takes from the question what is not given, and asks for another contract at times. */
static void draw_asked(void) {
    struct contract_request *const asked = &trial.asked;
    const uint32_t given = pick(3) == 0 ? 31 : pick(32);
    const struct kind *const kind = &kinds[pick(COUNT_OF(kinds))];
    if (pick(3) == 0) {
        asked->contract = contract_find(kind->contract);
        asked->schedule = kind->schedule;
        if (!kind->has_floor) asked->min_lr_ratio = real_nan_f64();
    }
    trial.same = asked->contract == trial.made.contract && asked->schedule == trial.made.schedule;
    if ((given & FIT_OF_FLOOR) == 0 && trial.kind->has_floor) trial.same = 0; /* asks for none */
    if ((given & FIT_OF_LR) == 0) asked->lr = real_nan_f64();
    if ((given & FIT_OF_WARMUP) == 0) asked->warmup = real_nan_f64();
    if ((given & FIT_OF_STEPS) == 0) asked->steps = 0;
    if ((given & FIT_OF_FLOOR) == 0) asked->min_lr_ratio = real_nan_f64();
    if ((given & FIT_OF_SCHEDULE) == 0) asked->schedule = NULL;
    if (pick(4) == 0) asked->tokens = 0;
    if (pick(4) == 0) asked->updates_per_epoch = 0;
    if (pick(8) == 0) asked->global_batch = 0;
    if (asked->warmup != asked->warmup && pick(4) == 0) {
        static const double shares[] = {0.1, 0.05, 0.25};
        asked->warmup_ratio = shares[pick(COUNT_OF(shares))];
        trial.same = 0;
    }
    if (asked->steps == 0 && pick(4) == 0) {
        asked->epochs = (double)(1 + pick(3));
        asked->dataset = 8 * (trial.rows + pick(3));
        asked->batch = 4;
        trial.same = 0;
    }
    if (pick(12) == 0) {
        trial.skipped[0] = trial.at;
        asked->skipped = trial.skipped;
        asked->skipped_count = 1;
        trial.same = 0;
    }
}

static void make_log(void) {
    static const int formats[] = {PRINT_EXACT, PRINT_EXACT, PRINT_E6, PRINT_E2, PRINT_BINARY32};
    const int print = formats[pick(COUNT_OF(formats))];
    const uint32_t counts = pick(8), resumes = pick(3);
    trial.log = helper_log(&trial.arena, trial.rows);
    if (trial.kind->format != NULL && pick(3) > 0) trial.log->format = trial.kind->format;
    const uint32_t total = pick(4);
    trial.log->max_steps = total == 0   ? 0
                           : total == 1 ? trial.made.steps + trial.every * (2 + trial.by)
                                        : trial.made.steps;
    if (total == 1 && trial.asked.steps == 0) trial.same = 0; /* the log says another total */
    if (pick(16) == 0) trial.log->step_guessed = 1;
    for (size_t row = 0; row < trial.rows; row++) {
        const double lr = logged(row);
        const int64_t step = (int64_t)(trial.first + trial.every * row);
        const int after = (uint64_t)step >= trial.at;
        trial.log->step[row] = step;
        helper_put(&trial.arena, trial.log, LOG_LR_LOGGED, row, lr, lr > 0.0 ? print : PRINT_EXACT);
        trial.log->part[row] = resumes == 0 && after;
        if (counts == 1)
            helper_put(&trial.arena, trial.log, LOG_SKIPPED, row,
                       trial.event == SKIPPED && after ? 1.0 : 0.0, 0);
        if (counts == 2)
            helper_put(&trial.arena, trial.log, LOG_LOSS_SCALE, row,
                       trial.event == SKIPPED && after ? 512.0 : 1024.0, 0);
        if (trial.in_samples) {
            helper_put(&trial.arena, trial.log, LOG_SAMPLES, row, 8.0 * (double)step, 0);
            helper_put(&trial.arena, trial.log, LOG_GLOBAL_BATCH, row, 8.0, 0);
        }
        if (counts >= 4)
            helper_put(&trial.arena, trial.log, LOG_GRAD_NORM, row,
                       counts == 4 && trial.event == SKIPPED && (uint64_t)step == trial.at
                           ? (double)INFINITY
                           : 1.0 + 0.125 * (double)(row % 7),
                       PRINT_EXACT);
    }
}

static void draw_trial(uint32_t number) {
    memset(&trial, 0, sizeof trial);
    trial.draws = (struct draws){.key = UINT64_C(0x61e4), .number = number};
    draw_made(number);
    draw_asked();
    make_log();
    draw_pool();
    assert_int_equal(
        series_of(trial.log, log_column_of(trial.log, LOG_LR_LOGGED), &trial.arena, &trial.series),
        STATUS_OK);
    fit_known_init(&trial.known);
    assert_int_equal(fit_known_from_log(&trial.known, trial.log, &trial.arena), STATUS_OK);
    for (size_t c = 0; c < trial.log->column_count; c++)
        if (trial.log->columns[c].name == LOG_SAMPLES) trial.log->columns[c].cumulative = 1;
    trial.known.request = trial.asked;
    if (trial.in_samples)
        assert_int_equal(fit_samples_from_log(&trial.known, trial.log, &trial.arena), STATUS_OK);
    if (pick(24) == 0) trial.known.growing = 1;
}

/* ---- answers ---- */

static void hold_rules(uint32_t number, const struct fit_check *check) {
    const struct fit *const expected = check->expected;
    if (check->verdict == FIT_FAIL && check->bad_points == 0)
        fail_msg("case %u fails and names no row: %s", number, check->words);
    if (check->verdict == FIT_UNDECIDED && check->needs == NULL)
        fail_msg("case %u does not say what it needs: %s", number, check->words);
    if (check->verdict != FIT_PASS) return;
    if (expected == NULL || check->bad_points > 0) fail_msg("case %u passes beside rows", number);
    if (trial.strict &&
        !prints(&trial.series, expected, fit_scale(trial.series.points, trial.rows)))
        fail_msg("case %u passes with %s", number, expected->text);
}

static void check_one(uint32_t number, int applied, FILE *text, struct answers *answers) {
    static const char *const verdicts[] = {"pass", "fail", "undecided"};
    struct fit_check check;
    char line[96];
    if (fit_check(&trial.series, &trial.known, applied, &trial.arena, &check) != STATUS_OK) {
        fprintf(text, "refused: %s\n", status_text());
        answers_count(answers, "refused");
        return;
    }
    golden_check(text, &check, 3);
    snprintf(line, sizeof line, "%s %s", verdicts[check.verdict],
             check.bug != NULL ? check.bug : "");
    answers_count(answers, line);
    hold_rules(number, &check);
    if (trial.strict && trial.event == NOTHING && trial.same && check.verdict == FIT_FAIL)
        fail_msg("case %u is what was asked for: %s", number, check.words);
}

static void examine(FILE *text, struct answers *answers) {
    struct doctor_options options;
    struct doctor_report report;
    struct fit_set fits;
    struct fit_known any;
    char line[96];
    fit_known_init(&any);
    assert_int_equal(fit_known_from_log(&any, trial.log, &trial.arena), STATUS_OK);
    assert_int_equal(fit_series(&trial.series, &any, &trial.arena, &fits), STATUS_OK);
    doctor_options_init(&options);
    assert_int_equal(doctor_examine(trial.log, &options, &fits, &trial.arena, &report), STATUS_OK);
    golden_findings(text, &report);
    golden_fits_whole(text, &fits, &trial.known);
    for (size_t i = 0; i < report.finding_count; i++) {
        snprintf(line, sizeof line, "doctor %s", report.findings[i].id);
        answers_count(answers, line);
    }
}

static void answer(uint32_t number, struct answers *answers) {
    FILE *const text = answers_begin();
    draw_trial(number);
    check_one(number, (int)(number / EVENTS % 2), text, answers);
    examine(text, answers);
    fprintf(text, "%zu searches\n", trial.searches);
    answers_end(answers, number);
    arena_close(&trial.arena);
}

static void validate_given_answers(void **state) {
    (void)state;
    answers_ask("fit_given.txt", events, EVENTS, CASES, answer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_given_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

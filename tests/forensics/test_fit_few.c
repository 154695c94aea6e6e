/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short whole
 * Whole searches among few models: fit_models is wrapped (tests/CMakeLists.txt), and returns those
 * of some five contracts and three schedules where a search has a thousand. So a column with two or
 * three events, which a whole search explains in seconds, takes milliseconds, and hundreds of them
 * meet the passes for skipped updates, resumes, strides and a first update apart, what these leave
 * to each other, and what is said of their finds.
 *
 * Columns are made by the contracts themselves: some updates are skipped, a resume drops, doubles
 * or takes back the counter, or goes on with another peak or another total, where the log shows it
 * and where it does not; the counter moves twice per update or at every second one; the first row
 * is another, the last ones stand. What is found prints every row, by a second computation of
 * what a segment prints, and a column without an event is explained. Skipped updates that a log
 * counts are never more than it counts.
 * tests/golden/forensics/fit_few.txt holds, for each kind of column, how many cases have which
 * first explanation, and one number made of all that is said (FNV-1a). How many LRs a search
 * evaluates is part of what is said. With TWINSTEP_SHOW=CASE all of one case is printed. */
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

enum { CASES = 3000, ROWS = 44, EVENTS = 3, CONTRACTS = 5, SCHEDULES = 3 };

/* A case is asked where its bit is set, the lowest of a digit first: the first forty of each kind
 * whose searches evaluate at most 220,000 LRs, of 3,000 that were tried. The others take most of
 * the time, on totals that are scanned in vain. */
static const char asked[] =
    "33346a6eb88ecef76330cfddf47ce3f9677cf4ec625bff3e03b55a235425bc3e1cd5f0075f2c95fe8a7ce349f3"
    "f838b8f9d4c516b75ca28cfdf275f155b951a67f1eccf3afe587fae14869fd785a7fd8d7862f9b5edffcb360be"
    "5c2c3c9c17e41a4153cccdb5b1d0f77adeec7fca282bffe699e9f70d01b937703a55e73517fb1f3287f7f7103b"
    "12b48ccbf9321fb740b0df2b7060e7ddf34fcd993eae953ef03eef607157397010e2dd19a0b643471f1bc208cb"
    "23e8b6906a2468e41f880215e368de450c3798e73330a6d1f323bd30d954689d262960d929ca00c9308069310c"
    "4c01703225151d80a572623a41695c84881001833011c8ac8e6008031010800a0000811a1008c00e0008151110"
    "06050500230031088848000a0420108401640021000008400c20020009000004e20000284000080c0000061100"
    "0000430000a18000002810000080000002230000402000000210000c00000000830000e0000008120000028800"
    "000082000048000000080000000c00";

enum event {
    NONE,
    SKIP,
    AHEAD,
    ANEW,
    DOUBLED,
    PEAK,
    ANEW_PEAK,
    TOTAL,
    BACK,
    AGAIN,  /* rows are run again from an older checkpoint, and nothing is lost */
    FORGETS /* the same, and the counter that is saved left out what was skipped */
};

static const struct kind {
    const char *name;
    enum event events[EVENTS];
    uint32_t early;  /* updates that are skipped in front of the first row, at most */
    int shown;       /* 1: the log shows its resumes */
    double stride;   /* 0: 1 */
    int first, ends; /* the first row, or the last ones, are others */
} kinds[] = {
    {"plain", {NONE}, 0, 1, 0, 0, 0},
    {"a skip", {SKIP}, 0, 0, 0, 0, 0},
    {"two skips", {SKIP, SKIP}, 0, 0, 0, 0, 0},
    {"three skips", {SKIP, SKIP, SKIP}, 0, 0, 0, 0, 0},
    {"early skips", {NONE}, 3, 0, 0, 0, 0},
    {"anew", {ANEW}, 0, 1, 0, 0, 0},
    {"anew, hidden", {ANEW}, 0, 0, 0, 0, 0},
    {"doubled", {DOUBLED}, 0, 1, 0, 0, 0},
    {"other peak", {PEAK}, 0, 1, 0, 0, 0},
    {"other peak, hidden", {PEAK}, 0, 0, 0, 0, 0},
    {"anew, other peak", {ANEW_PEAK}, 0, 1, 0, 0, 0},
    {"other total", {TOTAL}, 0, 1, 0, 0, 0},
    {"other total, hidden", {TOTAL}, 0, 0, 0, 0, 0},
    {"a skip, other total", {SKIP, TOTAL}, 0, 1, 0, 0, 0},
    {"early skips, other total", {TOTAL}, 3, 1, 0, 0, 0},
    {"early skips, anew", {ANEW}, 3, 1, 0, 0, 0},
    {"a skip, anew", {SKIP, ANEW}, 0, 1, 0, 0, 0},
    {"anew, a skip", {ANEW, SKIP}, 0, 1, 0, 0, 0},
    {"anew twice", {ANEW, ANEW}, 0, 1, 0, 0, 0},
    {"two totals", {TOTAL, TOTAL}, 0, 1, 0, 0, 0},
    {"anew, other peak, a skip", {ANEW, PEAK, SKIP}, 0, 1, 0, 0, 0},
    {"ahead", {AHEAD}, 0, 0, 0, 0, 0},
    {"back", {BACK}, 0, 0, 0, 0, 0},
    {"run again", {AGAIN}, 0, 1, 0, 0, 0},
    {"a skip, run again", {SKIP, AGAIN, SKIP}, 0, 1, 0, 0, 0},
    {"forgets", {SKIP, FORGETS}, 0, 1, 0, 0, 0},
    {"twice as fast", {NONE}, 0, 0, 2.0, 0, 0},
    {"half as fast", {NONE}, 0, 0, 0.5, 0, 0},
    {"other first row", {NONE}, 0, 0, 0, 1, 0},
    {"stands", {NONE}, 0, 0, 0, 0, 1},
};

static const struct made {
    const char *contract, *schedule;
    int floor;
} mades[] = {{"hf", "linear", 0},
             {"hf", "cosine", 0},
             {"hf", "linear", 0},
             {"megatron", "cosine", 1},
             {"megatron", "linear", 1},
             {"olmo-core", "linear", 0},
             {"hf", "constant_with_warmup", 0},
             {"accelerate", "linear", 0},
             {"hf", "cosine_with_min_lr", 1},
             {"lag1", "linear", 0},
             {"deepspeed-torch", "linear", 0},
             {"hf", "polynomial", 0},
             {"hf-x-processes", "linear", 0},
             {"lightning-epoch", "linear", 0},
             {"megatron", "inverse-square-root", 1},
             {"hf", "torch.one_cycle", 0}};

static struct trial {
    struct arena arena;
    struct draws draws;
    const struct kind *kind;
    const struct made *made;
    struct contract_plan plan;
    struct log *log;
    struct series series;
    uint64_t first, every, skipped, total_skipped;
    size_t rows, at[EVENTS];
    struct contract_request request;
    const char *contract[CONTRACTS], *schedule[SCHEDULES];
    int narrow;
    uint64_t evaluations;
} trial;

static int is_asked(uint32_t number) {
    const char digit = asked[number / 4];
    const int value = digit <= '9' ? digit - '0' : digit - 'a' + 10;
    return (value >> (number % 4)) & 1;
}

static uint32_t pick(uint32_t most) {
    return draws_pick(&trial.draws, most);
}

/* ---- few models ---- */

const struct sched_class *const *__real_sched_classes(void);
const struct sched_class *const *__wrap_sched_classes(void);
enum status __real_fit_models(const struct contract_request *request, const struct fit_known *known,
                              const struct fit_decays *decays, struct arena *arena,
                              struct fit_model **out, size_t *count);
enum status __wrap_fit_models(const struct contract_request *request, const struct fit_known *known,
                              const struct fit_decays *decays, struct arena *arena,
                              struct fit_model **out, size_t *count);
double __real_fit_model_logged(const struct fit_model *model, uint64_t k, int64_t shift);
double __wrap_fit_model_logged(const struct fit_model *model, uint64_t k, int64_t shift);

double __wrap_fit_model_logged(const struct fit_model *model, uint64_t k, int64_t shift) {
    trial.evaluations++;
    return __real_fit_model_logged(model, k, shift);
}

const struct sched_class *const *__wrap_sched_classes(void) {
    static const struct sched_class *few[16 + 1];
    const struct sched_class *const *const all = __real_sched_classes();
    size_t count = 0;
    if (!trial.narrow) return all;
    for (size_t i = 0; all[i] != NULL; i++)
        for (size_t s = 0; s < SCHEDULES; s++)
            if (strcmp(sched_bare_name(all[i]), trial.schedule[s]) == 0 && count < 16) {
                few[count++] = all[i];
                break;
            }
    few[count] = NULL;
    return few;
}

enum status __wrap_fit_models(const struct contract_request *request, const struct fit_known *known,
                              const struct fit_decays *decays, struct arena *arena,
                              struct fit_model **out, size_t *count) {
    struct fit_model *list, *part;
    size_t more;
    *count = 0;
    TRY(arena_take(arena, 1024, sizeof *list, "models", &list));
    for (size_t c = 0; c < CONTRACTS; c++) {
        struct contract_request one = *request;
        one.contract = contract_find(trial.contract[c]);
        if (request->contract != NULL && request->contract != one.contract) continue;
        if (known->own_only && !fit_is_native(known, one.contract) &&
            known->expected != one.contract)
            continue;
        trial.narrow = request->schedule == NULL;
        const enum status status = __real_fit_models(&one, known, decays, arena, &part, &more);
        trial.narrow = 0;
        if (status != STATUS_OK) return status;
        for (size_t m = 0; m < more; m++)
            list[(*count)++] = part[m];
    }
    fit_models_number(list, *count);
    *out = list;
    return STATUS_OK;
}

/* ---- columns ---- */

static void draw_models(void) {
    static const char *const contracts[] = {"hf",        "hf-4.50",    "megatron",
                                            "olmo-core", "lag1",       "accelerate",
                                            "lag1",      "torchtitan", "deepspeed-torch"};
    static const char *const schedules[] = {"linear", "cosine", "constant_with_warmup", "constant",
                                            "wsd",    "linear", "inverse_sqrt"};
    trial.contract[0] = trial.made->contract;
    trial.schedule[0] = trial.made->schedule;
    if (strncmp(trial.schedule[0], "torch.", 6) == 0) trial.schedule[0] += 6;
    for (size_t c = 1; c < CONTRACTS; c++) {
        trial.contract[c] = contracts[pick(COUNT_OF(contracts))];
        for (size_t before = 0; before < c; before++)
            if (strcmp(trial.contract[before], trial.contract[c]) == 0) {
                trial.contract[c] = contracts[pick(COUNT_OF(contracts))];
                before = (size_t)-1;
            }
    }
    for (size_t s = 1; s < SCHEDULES; s++)
        trial.schedule[s] = schedules[pick(COUNT_OF(schedules))];
}

static void draw_made(void) {
    static const double peaks[] = {2e-5, 3e-4, 5e-7, 1e-3, 2.137e-5};
    struct contract_request *const r = &trial.request;
    trial.made = &mades[pick(COUNT_OF(mades))];
    trial.rows = 10 + pick(ROWS - 10);
    trial.every = pick(4) == 0 ? 5 : 1;
    trial.first = pick(4) > 0 ? trial.every : trial.every * (1 + pick(5));
    if (trial.every > 1 && pick(2) == 0) trial.first = 1;
    contract_request_init(r);
    r->contract = contract_find(trial.made->contract);
    assert_non_null(r->contract);
    r->schedule = trial.made->schedule;
    r->lr = peaks[pick(COUNT_OF(peaks))];
    const uint32_t late = pick(3), warm = pick(8);
    r->warmup = (double)(trial.every * (late == 0 ? 0 : warm));
    r->steps = trial.first + trial.every * (trial.rows + pick(late == 1 ? 40 : 4)) - pick(2);
    r->processes = 2;
    r->global_batch = 8;
    r->tokens = 1024;
    r->updates_per_epoch = 4 * trial.every;
    r->min_lr_ratio = trial.made->floor ? 0.1 : real_nan_f64();
    assert_int_equal(contract_resolve(r, &trial.arena, &trial.plan), STATUS_OK);
    if (trial.kind->stride > 0.0) trial.plan.increment *= trial.kind->stride;
    for (size_t e = 0; e < EVENTS; e++) {
        const size_t from = e > 0 ? trial.at[e - 1] : 3, left = trial.rows - from;
        trial.at[e] = from + 1 + pick(left > 6 ? (uint32_t)left / 2 : 3);
    }
}

static double put_row(size_t row, uint64_t *update, uint32_t *part) {
    static int64_t shift;
    static double scale;
    static struct contract_plan plan;
    if (row == 0) {
        shift = trial.kind->early > 0 ? -(int64_t)(1 + pick(trial.kind->early)) : 0;
        scale = 1.0;
        plan = trial.plan;
        *update = trial.first;
        *part = 0;
        trial.skipped = trial.total_skipped = (uint64_t)-shift;
    } else {
        *update += trial.every;
    }
    for (size_t e = 0; e < EVENTS; e++) {
        const enum event event = trial.kind->events[e];
        const uint64_t by = 1 + pick(3), peak = pick(4), far = pick(12);
        struct contract_request other = trial.request;
        if (event == NONE || trial.at[e] != row) continue;
        *part += event != SKIP && event != AHEAD && trial.kind->shown;
        if (event == SKIP) {
            const uint64_t n = trial.every > 1 && by == 3 ? 2 : 1;
            shift -= (int64_t)n;
            trial.skipped += n;
            trial.total_skipped += n;
        }
        if (event == AHEAD) shift += (int64_t)by;
        if (event == ANEW || event == ANEW_PEAK) shift = 1 - (int64_t)*update;
        if (event == DOUBLED) shift += (int64_t)*update - 1;
        if (event == PEAK || event == ANEW_PEAK)
            scale *= peak == 0 ? 0.5 : peak == 1 ? 2.0 : peak == 2 ? 0.1 : 1.5;
        if (event == TOTAL) {
            other.steps += trial.every * (3 + far);
            assert_int_equal(contract_resolve(&other, &trial.arena, &plan), STATUS_OK);
        }
        if (event == BACK) shift -= (int64_t)(trial.every * (by + 1));
        if (event == AGAIN || event == FORGETS) {
            const uint64_t back = trial.every * (by + 1);
            *update -= back < *update ? back : 0;
            if (event == FORGETS) shift = 0;
        }
    }
    const int64_t k = (int64_t)*update + shift;
    double value = scale * contract_logged(&plan, k < 1 ? 1 : (uint64_t)k);
    if (trial.kind->first && row == 0) value = pick(2) == 0 ? 0.0 : trial.request.lr;
    return value;
}

static void make_log(void) {
    static const int formats[] = {PRINT_EXACT, PRINT_EXACT, PRINT_EXACT,
                                  PRINT_E6,    PRINT_E2,    PRINT_BINARY32};
    static const char *const wrote[] = {"test", "test", "hf-trainer-state", "megatron",
                                        "olmo-core"};
    const int print = formats[pick(COUNT_OF(formats))];
    const uint32_t counts = pick(5), said = pick(4);
    uint64_t update = 0;
    uint32_t part = 0;
    double stood = 0.0;
    const size_t stands = trial.kind->ends ? trial.rows - 1 - pick((uint32_t)trial.rows / 2) : ROWS;
    trial.log = helper_log(&trial.arena, trial.rows);
    trial.log->format = wrote[pick(COUNT_OF(wrote))];
    trial.log->max_steps = said == 0 ? 0 : trial.request.steps;
    for (size_t row = 0; row < trial.rows; row++) {
        trial.skipped = 0;
        double value = put_row(row, &update, &part);
        if (row >= stands) value = row == stands ? (stood = value) : stood;
        trial.log->step[row] = (int64_t)update;
        trial.log->part[row] = part;
        helper_put(&trial.arena, trial.log, LOG_LR_LOGGED, row, value,
                   value > 0.0 ? print : PRINT_EXACT);
        if (counts == 1)
            helper_put(&trial.arena, trial.log, LOG_SKIPPED, row, (double)trial.skipped, 0);
        if (counts == 2)
            helper_put(&trial.arena, trial.log, LOG_LOSS_SCALE, row,
                       1024.0 / (double)(1u << (trial.total_skipped % 8)), PRINT_EXACT);
        if (counts == 3)
            helper_put(&trial.arena, trial.log, LOG_GRAD_NORM, row,
                       trial.skipped > 0 ? (double)INFINITY : 1.0 + 0.125 * (double)(row % 7),
                       PRINT_EXACT);
    }
}

/* ---- answers ---- */

/* What a fit prints at a row, once more: the counter is k and the shift, the parts of a resumed log
 * have lists of their own. */
static int prints(const struct fit *fit) {
    const double scale = fit_scale(trial.series.points, trial.series.count);
    size_t s = 0, p = 0;
    for (size_t i = 0; i < trial.series.count; i++) {
        const struct series_point *const point = &trial.series.points[i];
        struct contract_plan plan = fit->plan;
        while (s + 1 < fit->segment_count && fit->segments[s + 1].point <= i)
            s++;
        while (p + 1 < fit->part_count && fit->parts[p + 1].point <= i)
            p++;
        if (i == 0 && fit->first_differs) continue;
        if (fit->drops_taken || fit->in_samples) return 1;
        const struct fit_segment *const segment = &fit->segments[s];
        int64_t k = (int64_t)point->update + segment->shift;
        if (segment->steps > 0) {
            plan.steps = segment->steps;
            plan.call.total = segment->call_total;
            plan.call.warmup = segment->call_warmup;
        }
        if (fit->part_count > 0) {
            plan.skipped = fit->parts[p].skipped;
            plan.skipped_count = fit->parts[p].skipped_count;
            if (fit->parts[p].begins == FIT_PART_COUNTS_ANEW) return 1;
        }
        k = k < 1 ? 1 : k;
        if (!fit_matches(point, segment->scale * contract_logged(&plan, (uint64_t)k), scale, NULL))
            return 0;
    }
    return 1;
}

static void hold_rules(uint32_t number, const struct fit_set *set, const struct fit_known *known) {
    int found = 0;
    for (size_t f = 0; f < set->count; f++) {
        const struct fit *const fit = &set->fits[f];
        if (!prints(fit)) fail_msg("case %u: not what %s prints", number, fit->text);
        found |= fit->contract == trial.request.contract && fit_skipped(fit) == 0 &&
                 fit->segment_count == 1;
        if (known->skips.counted == FIT_COUNTED_EXACTLY && fit->skip_count > 0 &&
            fit->part_count == 0 && fit_skipped(fit) > trial.total_skipped + 1)
            fail_msg("case %u: %s, of %llu", number, fit->text,
                     (unsigned long long)trial.total_skipped);
    }
    if (number % COUNT_OF(kinds) == 0 && !found && trial.rows > 11)
        fail_msg("case %u: a column of %s %s is not explained", number, trial.made->contract,
                 trial.made->schedule);
}

static void count_first(struct answers *answers, const struct fit_set *set) {
    char line[96];
    if (set->count == 0) {
        answers_count(answers, "nothing");
        return;
    }
    const struct fit *const fit = &set->fits[0];
    const struct fit_segment *const last = &fit->segments[fit->segment_count - 1];
    snprintf(line, sizeof line, "%zu segments, event %d, %llu skipped, %s%s", fit->segment_count,
             last->event, (unsigned long long)fit_skipped(fit),
             fit->bug != NULL ? fit->bug : "no bug", fit->first_differs ? ", first" : "");
    answers_count(answers, line);
}

static void answer(uint32_t number, struct answers *answers) {
    static const char *const verdicts[] = {"pass", "fail", "undecided"};
    struct fit_known known;
    struct fit_set set;
    if (!is_asked(number)) return;
    FILE *const text = answers_begin();
    memset(&trial, 0, sizeof trial);
    trial.draws = (struct draws){.key = UINT64_C(0xfe3), .number = number};
    trial.kind = &kinds[number % COUNT_OF(kinds)];
    draw_made();
    draw_models();
    make_log();
    const struct log_column *const column = log_column_of(trial.log, LOG_LR_LOGGED);
    assert_int_equal(series_of(trial.log, column, &trial.arena, &trial.series), STATUS_OK);
    fit_known_init(&known);
    assert_int_equal(fit_known_from_log(&known, trial.log, &trial.arena), STATUS_OK);
    const uint32_t given = pick(4);
    if (given == 1) known.request.lr = trial.request.lr;
    if (given == 2) known.request.warmup = trial.request.warmup;
    if (given == 3) known.request.updates_per_epoch = trial.request.updates_per_epoch;
    assert_int_equal(fit_series(&trial.series, &known, &trial.arena, &set), STATUS_OK);
    fprintf(text, "%llu evaluations\n", (unsigned long long)trial.evaluations);
    golden_fits_whole(text, &set, &known);
    count_first(answers, &set);
    if (pick(3) == 0) {
        struct doctor_options options;
        struct doctor_report report;
        doctor_options_init(&options);
        assert_int_equal(doctor_examine(trial.log, &options, &set, &trial.arena, &report),
                         STATUS_OK);
        golden_findings(text, &report);
    }
    if (pick(3) == 0) {
        struct fit_check check;
        known.request = trial.request;
        if (pick(2) == 0) known.request.warmup = real_nan_f64();
        if (pick(2) == 0) known.request.steps = 0;
        if (pick(3) == 0) known.request.lr = real_nan_f64();
        if (pick(3) == 0) known.request.schedule = NULL;
        if (fit_check(&trial.series, &known, (int)(number % 2), &trial.arena, &check) ==
            STATUS_OK) {
            golden_check(text, &check, 3);
            answers_count(answers, verdicts[check.verdict]);
            if (check.verdict == FIT_FAIL && number % COUNT_OF(kinds) == 0)
                fail_msg("case %u is what was asked for: %s", number, check.words);
        } else
            fprintf(text, "refused: %s\n", status_text());
        fprintf(text, "%llu evaluations\n", (unsigned long long)trial.evaluations);
    }
    answers_end(answers, number);
    hold_rules(number, &set, &known);
    arena_close(&trial.arena);
}

static void validate_searches(void **state) {
    (void)state;
    const char *names[COUNT_OF(kinds)];
    for (size_t k = 0; k < COUNT_OF(kinds); k++)
        names[k] = kinds[k].name;
    answers_ask("fit_few.txt", names, COUNT_OF(kinds), CASES, answer);
}

/* ---- by hand ---- */

/* Makes a log of an exact column of hf under one of these schedules. */
static void open_log(const char *schedule, double lr, double warmup, uint64_t steps) {
    memset(&trial, 0, sizeof trial);
    trial.contract[0] = "hf";
    trial.contract[1] = "hf-4.50";
    trial.contract[2] = "accelerate";
    trial.contract[3] = "megatron";
    trial.contract[4] = "lag1";
    trial.schedule[0] = schedule;
    trial.schedule[1] = "linear";
    trial.schedule[2] = "constant";
    contract_request_init(&trial.request);
    trial.request.contract = contract_find("hf");
    trial.request.schedule = schedule;
    trial.request.lr = lr;
    trial.request.warmup = warmup;
    trial.request.steps = steps;
    assert_int_equal(contract_resolve(&trial.request, &trial.arena, &trial.plan), STATUS_OK);
}

/* A schedule that is left before the end that the log says: whether that is likely depends on how
 * many rows stand from the first one on at which it would have gone on. */
static void validate_rows_of_a_stop(void **state) {
    (void)state;
    for (size_t behind = 5; behind < 12; behind++) {
        struct doctor_options options;
        struct doctor_report report;
        struct fit_known known;
        struct fit_set set;
        const size_t last = 20; /* the row at which it stops */
        int found = 0;
        open_log("cosine", 2.137e-5, 20.0, 450);
        trial.log = helper_log(&trial.arena, last + 1 + behind);
        trial.log->format = "hf-trainer-state";
        trial.log->max_steps = 450;
        for (size_t row = 0; row < trial.log->rows; row++) {
            const uint64_t update = 5 * ((row < last ? row : last) + 1);
            trial.log->step[row] = (int64_t)(5 * (row + 1));
            helper_put(&trial.arena, trial.log, LOG_LR_LOGGED, row,
                       contract_logged(&trial.plan, update), PRINT_EXACT);
        }
        assert_int_equal(series_of(trial.log, log_column_of(trial.log, LOG_LR_LOGGED), &trial.arena,
                                   &trial.series),
                         STATUS_OK);
        fit_known_init(&known);
        assert_int_equal(fit_known_from_log(&known, trial.log, &trial.arena), STATUS_OK);
        assert_int_equal(fit_series(&trial.series, &known, &trial.arena, &set), STATUS_OK);
        doctor_options_init(&options);
        assert_int_equal(doctor_examine(trial.log, &options, &set, &trial.arena, &report),
                         STATUS_OK);
        for (size_t i = 0; i < report.finding_count; i++) {
            if (strcmp(report.findings[i].id, "schedule_stands_still") != 0) continue;
            found = 1;
            assert_int_equal(report.findings[i].confidence,
                             behind >= 8 ? DOCTOR_LIKELY : DOCTOR_POSSIBLE);
        }
        if (!found) fail_msg("%zu rows that stand are not found", behind);
        arena_close(&trial.arena);
    }
}

/* Rows of every fifth update, of which one lies within the warm-up: a longer warm-up prints what
 * two skipped updates do. The log counts the two, so the fit that needs them is the first, however
 * typed the numbers of the other are. */
static void validate_counted_skips(void **state) {
    (void)state;
    struct fit_known known;
    struct fit_set set;
    open_log("constant_with_warmup", 2e-4, 5.0, 60);
    trial.log = helper_log(&trial.arena, 8);
    for (size_t row = 0; row < 8; row++) {
        trial.log->step[row] = (int64_t)(5 * (row + 1));
        helper_put(&trial.arena, trial.log, LOG_LR_LOGGED, row, row == 0 ? 8e-5 : 2e-4,
                   PRINT_EXACT);
        helper_put(&trial.arena, trial.log, LOG_SKIPPED, row, row == 0 ? 2.0 : 0.0, 0);
    }
    for (size_t c = 0; c < trial.log->column_count; c++)
        if (trial.log->columns[c].name == LOG_SKIPPED) trial.log->columns[c].windowed = 1;
    assert_int_equal(
        series_of(trial.log, log_column_of(trial.log, LOG_LR_LOGGED), &trial.arena, &trial.series),
        STATUS_OK);
    fit_known_init(&known);
    known.request.contract = contract_find("hf");
    assert_int_equal(fit_known_from_log(&known, trial.log, &trial.arena), STATUS_OK);
    assert_int_equal(known.skips.shown, 2);
    assert_int_equal(fit_series(&trial.series, &known, &trial.arena, &set), STATUS_OK);
    assert_true(set.count > 0);
    assert_int_equal(fit_skipped(&set.fits[0]), 2);
    arena_close(&trial.arena);
}

/* A column that is below 0 and never above it is no schedule's, and costs no evaluation; one that
 * only ends below 0 is searched. */
static void validate_negative_columns(void **state) {
    (void)state;
    static const struct {
        double first, step;
        int searched;
    } columns[] = {
        {-1e-4, -1e-5, 0}, {0.0, -1e-5, 0}, {1e-5, -1e-5, 1}, {2.0, -0.5, 1}, {0.0, 1e-5, 1}};
    for (size_t c = 0; c < COUNT_OF(columns); c++) {
        struct series_point points[9];
        struct fit_known known;
        struct fit_set set;
        open_log("cosine", 2e-4, 0.0, 40);
        for (size_t i = 0; i < COUNT_OF(points); i++)
            points[i] = (struct series_point){
                .update = i + 1, .row = i, .value = columns[c].first + columns[c].step * (double)i};
        trial.series = (struct series){points, COUNT_OF(points)};
        fit_known_init(&known);
        assert_int_equal(fit_series(&trial.series, &known, &trial.arena, &set), STATUS_OK);
        if ((trial.evaluations > 0) != columns[c].searched)
            fail_msg("column %zu: %llu evaluations", c, (unsigned long long)trial.evaluations);
        if (!columns[c].searched) assert_int_equal(set.why & FIT_WHY_NOTHING, FIT_WHY_NOTHING);
        arena_close(&trial.arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_searches),
        cmocka_unit_test(validate_rows_of_a_stop),
        cmocka_unit_test(validate_counted_skips),
        cmocka_unit_test(validate_negative_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

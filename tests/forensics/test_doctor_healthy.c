/* SPDX-License-Identifier: Apache-2.0
 * labels: unit whole
 * The doctor must find nothing in healthy logs: random trainings under every shipped contract and
 * schedule, language models and preferences, several printers, logs of every n-th update, and
 * resumes that go well. False alarms of fits of the LR column are tested in test_fit_healthy; here
 * are a few of them.
 *
 * `test_doctor_healthy --table N [SEED]` counts, for each check, the healthy logs in which it could
 * look and those in which it has a finding: N logs of each contract without fits, a tenth as many
 * with them, and as many with skipped updates. docs/measurements/forensics.md has the table. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "forensics/compare.h"
#include "forensics/doctor/doctor.h"
#include "sched/contract.h"
#include "tests/base/helper_size.h"
#include "tests/forensics/helper_log.h"

#define CASES 25
#define FIRST 77 /* the seed of the first contract */
#define FITTED helper_size(2, 2, 6)
#define SKIPPED 950 /* trainings of each contract that holds, in the nightly run */

static uint64_t draw(uint64_t *state, uint64_t end) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 31)) % end;
}

#define CHECKS 64

struct tally {
    size_t logs, checked, accused;
    struct {
        const char *id;
        size_t looked, accused;
    } checks[CHECKS];
};

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
    return names[draw(state, count)];
}

/* Draws up to three skipped updates, of which the log does not tell. */
static enum status draw_skips(uint64_t *state, struct arena *arena,
                              struct contract_request *request) {
    const size_t count = (size_t)draw(state, 4);
    uint64_t *skipped, update = 0;
    TRY(arena_take(arena, 4, sizeof *skipped, "skipped updates", &skipped));
    request->skipped = skipped;
    for (size_t i = 0; i < count; i++) {
        update += 1 + (draw(state, 2) == 0 ? 0 : draw(state, request->steps / 4));
        if (update <= request->steps) skipped[request->skipped_count++] = update;
    }
    return STATUS_OK;
}

static int resolve(uint64_t *state, const struct contract *contract, int skips, uint64_t steps,
                   struct arena *arena, struct contract_request *out, struct contract_plan *plan) {
    struct contract_request request;
    contract_request_init(&request);
    request.contract = contract;
    request.schedule = draw_schedule(state, contract);
    request.lr = (double)(1 + draw(state, 9)) * (draw(state, 2) == 0 ? 1e-7 : 1e-4);
    request.steps = steps;
    request.warmup = draw(state, 2) == 0 ? 0.0 : (double)draw(state, steps / 3);
    request.processes = 1 + draw(state, 8);
    request.accumulate = 1 + draw(state, 8);
    request.global_batch = 8 * (1 + draw(state, 16));
    request.tokens = 4096;
    request.updates_per_epoch = 1 + steps / 12; /* fewer epochs, and the first is all warm-up */
    if (skips) assert_int_equal(draw_skips(state, arena, &request), STATUS_OK);
    *out = request;
    /* Its first phase has 2,000 updates by default: a warm-up that never ends in these runs. */
    if (strcmp(request.schedule, "one_cycle") == 0 && strcmp(contract->family, "deepspeed") == 0)
        return 0;
    return contract_resolve(&request, arena, plan) == STATUS_OK;
}

/* Keeps every n-th row. Its loss is then that of one update, as most frameworks print it. */
static void thin(struct log *log, size_t every) {
    size_t rows = 0;
    for (size_t row = every - 1; row < log->rows; row += every, rows++) {
        log->step[rows] = log->step[row];
        for (size_t c = 0; c < log->column_count; c++) {
            log->columns[c].value[rows] = log->columns[c].value[row];
            log->columns[c].quantum[rows] = log->columns[c].quantum[row];
        }
    }
    log->rows = rows;
}

/* Makes the run stop after row `stop` and continue from row `from`, so that these rows' numbers
 * repeat. */
static void repeat(struct log *log, size_t from, size_t stop) {
    for (size_t row = log->rows - 1; row >= stop; row--) {
        const size_t source = row - stop + from;
        log->part[row] = 1;
        log->step[row] = (int64_t)source + 1;
    }
    for (size_t c = 0; c < log->column_count; c++)
        for (size_t row = log->rows - 1; row >= stop; row--) {
            log->columns[c].value[row] = log->columns[c].value[row - stop + from];
            log->columns[c].quantum[row] = log->columns[c].quantum[row - stop + from];
        }
}

/* Adds what many logs have beside these columns, from a stream of its own: losses of evaluations,
 * which follow the training loss at a distance that drifts, samples, a loss scale, and the LR that
 * was applied. */
static void put_more(struct arena *arena, struct log *log, double batch, const double *applied,
                     uint64_t seed) {
    uint64_t state = seed ^ 0x5bd1e995u;
    const uint64_t what = draw(&state, 16);
    const double from = 0.6 + 0.001 * (double)draw(&state, 1000);
    const double to = 0.6 + 0.001 * (double)draw(&state, 1000);
    const size_t every = 4 + (size_t)draw(&state, 20);
    for (size_t i = 0; i < log->rows; i++) {
        const double at = (double)i / (double)log->rows;
        const double noise = 0.98 + 0.0004 * (double)draw(&state, 101);
        if ((what & 1u) != 0 && i % every == every - 1)
            helper_put(arena, log, LOG_EVAL_LOSS, i,
                       noise * helper_value(log, LOG_LOSS, i) / (from + at * (to - from)), 4);
        if ((what & 2u) != 0) {
            helper_put(arena, log, LOG_SAMPLES, i, batch * (double)(i + 1), 0);
            helper_put(arena, log, LOG_GLOBAL_BATCH, i, batch, 0);
        }
        if ((what & 4u) != 0) helper_put(arena, log, LOG_LOSS_SCALE, i, 65536.0, 0);
        if ((what & 8u) != 0) helper_put(arena, log, LOG_LR_APPLIED, i, applied[i], PRINT_EXACT);
    }
    if ((what & 2u) != 0) ((struct log_column *)log_column_of(log, LOG_SAMPLES))->cumulative = 1;
}

/* Adds up which checks looked, and which of them found something. */
static void count_checks(struct tally *tally, const struct doctor_report *report) {
    assert_true(report->line_count <= CHECKS);
    for (size_t l = 0; l < report->line_count; l++) {
        const struct doctor_line *line = &report->lines[l];
        tally->checks[l].id = line->id;
        tally->checks[l].looked += line->result == DOCTOR_QUIET || line->result == DOCTOR_FOUND;
        tally->checks[l].accused += line->result == DOCTOR_FOUND;
    }
}

/* The same log twice: nothing may differ, and no pair of explanations may be called different. */
static void verify_equal_to_itself(const struct log *log, const struct fit_set *fits,
                                   struct arena *arena) {
    const struct compare_input input[2] = {{.log = log, .fits = fits}, {.log = log, .fits = fits}};
    struct compare_report report;
    assert_int_equal(compare_logs(input, arena, &report), STATUS_OK);
    assert_int_not_equal(report.verdict, COMPARE_VERDICT_DIFFERS);
    assert_int_not_equal(report.lr.state, COMPARE_LR_DIFFERENT);
}

static void judge(const struct log *log, const struct contract_request *request,
                  const struct contract_plan *plan, int fit, struct arena *arena,
                  struct tally *tally) {
    struct doctor_options options;
    struct doctor_report report;
    struct series series;
    struct fit_known known;
    struct fit_set fits;
    doctor_options_init(&options);
    options.vocab = 32000;
    fit_known_init(&known);
    known.run_steps = plan->steps;
    known.request.processes = request->processes; /* what --processes and --accumulate say */
    known.request.accumulate = request->accumulate;
    if (fit) {
        assert_int_equal(series_of(log, log_column_of(log, LOG_LR_LOGGED), arena, &series),
                         STATUS_OK);
        assert_int_equal(fit_series(&series, &known, arena, &fits), STATUS_OK);
    }
    assert_int_equal(doctor_examine(log, &options, fit ? &fits : NULL, arena, &report), STATUS_OK);
    tally->logs++;
    tally->checked += report.checked;
    count_checks(tally, &report);
    for (size_t i = 0; i < report.finding_count; i++) {
        const struct doctor_finding *finding = &report.findings[i];
        print_message("%s %s, %zu rows, T %llu, W %g: %s: %s\n", plan->contract->name,
                      plan->schedule->name, log->rows, (unsigned long long)plan->steps,
                      plan->warmup_updates, finding->id, finding->words);
        for (size_t e = 0; e < finding->evidence_count; e++)
            print_message("  %s\n", finding->evidence[e]);
    }
    tally->accused += report.finding_count > 0;
    if (fit) verify_equal_to_itself(log, &fits, arena);
}

static void try_training(uint64_t *state, const struct contract *contract, int fit, int skips,
                         struct tally *tally) {
    static const int prints[] = {PRINT_FLOAT, PRINT_BINARY32, 4, PRINT_E6};
    static const int lr_prints[] = {PRINT_EXACT, PRINT_BINARY32, PRINT_E2, PRINT_E6};
    struct arena arena = ARENA_EMPTY;
    struct contract_request request;
    struct contract_plan plan;
    double *columns[2];
    const uint64_t steps = fit ? 20 + draw(state, 20) : 20 + draw(state, 400);
    if (!resolve(state, contract, skips, steps, &arena, &request, &plan)) {
        arena_close(&arena);
        return;
    }
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(arena_take(&arena, steps, sizeof(double), "LRs", &columns[i]), STATUS_OK);
    contract_columns(&plan, steps, columns[0], columns[1]);
    const struct helper_training training = {.rows = (size_t)steps,
                                             .seed = draw(state, 1000000),
                                             .preference = (int)draw(state, 3) > 0,
                                             .pairs = 1 + (int)draw(state, 16),
                                             .print = prints[draw(state, 4)],
                                             .print_lr = lr_prints[draw(state, 4)],
                                             .drift = 0.2 + 0.5 * (double)draw(state, 10),
                                             .epoch = request.updates_per_epoch,
                                             .logged = columns[1],
                                             .applied = columns[0]};
    struct log *log = helper_trained(&arena, &training);
    put_more(&arena, log, training.preference ? training.pairs : (double)request.global_batch,
             columns[0], training.seed);
    if (draw(state, 2) == 0) log->max_steps = steps;
    const uint64_t shape = draw(state, 4);
    if (shape == 0) thin(log, 1 + (size_t)draw(state, 10));
    if (shape == 1 && steps > 40) repeat(log, (size_t)steps / 2, (size_t)steps / 2 + 8);
    judge(log, &request, &plan, fit, &arena, tally);
    arena_close(&arena);
}

/* Draws a run that stopped and went on from a checkpoint before, and skipped the updates behind it
 * as a scaler does that begins anew. */
static void try_resumed(uint64_t *state, const struct contract *contract, struct tally *tally) {
    static const int lr_prints[] = {PRINT_EXACT, PRINT_BINARY32, PRINT_E6};
    struct arena arena = ARENA_EMPTY;
    struct contract_request request;
    struct contract_plan plan;
    double *columns[2], *again;
    uint64_t skipped[8];
    const uint64_t steps = 80 + draw(state, 120);
    if (contract->unit == CONTRACT_UNIT_EPOCH ||
        !resolve(state, contract, 1, steps, &arena, &request, &plan)) {
        arena_close(&arena);
        return;
    }
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(arena_take(&arena, steps, sizeof(double), "LRs", &columns[i]), STATUS_OK);
    assert_int_equal(arena_take(&arena, steps, sizeof(double), "LRs", &again), STATUS_OK);
    contract_columns(&plan, steps, columns[0], columns[1]);
    const int print = lr_prints[draw(state, 3)];
    const struct helper_training training = {.rows = (size_t)steps,
                                             .seed = draw(state, 1000000),
                                             .print = PRINT_FLOAT,
                                             .print_lr = print,
                                             .epoch = request.updates_per_epoch,
                                             .logged = columns[1],
                                             .applied = columns[0]};
    struct log *log = helper_trained(&arena, &training);
    log->max_steps = steps;
    const uint64_t from = steps / 4 + draw(state, steps / 4), stop = from + 1 + draw(state, 20);
    repeat(log, (size_t)from, (size_t)stop);
    size_t count = 0;
    while (count < request.skipped_count && request.skipped[count] <= from) {
        skipped[count] = request.skipped[count];
        count++;
    }
    for (uint64_t n = draw(state, 4), i = 0; i < n; i++)
        skipped[count++] = from + 1 + i;
    plan.skipped = skipped;
    plan.skipped_count = count;
    contract_columns(&plan, steps, NULL, again);
    for (size_t row = (size_t)stop; row < log->rows; row++)
        helper_put(&arena, log, LOG_LR_LOGGED, row, again[log->step[row] - 1], print);
    judge(log, &request, &plan, 1, &arena, tally);
    arena_close(&arena);
}

static void verify_quiet(int fit, int skips, size_t cases, uint64_t first, struct tally *tally) {
    size_t count;
    const struct contract *list = contract_list(&count);
    for (size_t c = 0; c < count; c++) {
        uint64_t state = first + c;
        if (list[c].bug || (skips && list[c].on_skip != CONTRACT_SKIP_HOLD)) continue;
        for (size_t i = 0; i < cases; i++)
            try_training(&state, &list[c], fit, skips, tally);
    }
}

/* Every log is judged before the test fails, so that one run lists all false alarms. */
static void verify_nobody_accused(const struct tally *tally) {
    if (tally->accused > 0)
        fail_msg("a finding in %zu of %zu healthy logs", tally->accused, tally->logs);
}

static void verify_no_finding(void **state) {
    (void)state;
    struct tally tally = {.logs = 0};
    verify_quiet(0, 0, CASES, FIRST, &tally);
    print_message("%zu healthy logs, %zu checks\n", tally.logs, tally.checked);
    verify_nobody_accused(&tally);
    assert_true(tally.logs >= 300);
    assert_true(tally.checked > 12 * tally.logs);
}

static void verify_no_finding_of_fits(void **state) {
    (void)state;
    struct tally tally = {.logs = 0};
    verify_quiet(1, 0, FITTED, FIRST, &tally);
    verify_nobody_accused(&tally);
    assert_true(tally.logs >= 10);
}

static void verify_no_finding_where_updates_were_skipped(void **state) {
    (void)state;
    struct tally tally = {.logs = 0};
    verify_quiet(1, 1, helper_size(6, 1, SKIPPED), FIRST, &tally);
    print_message("%zu healthy logs with skipped updates\n", tally.logs);
    verify_nobody_accused(&tally);
    assert_true(tally.logs >= helper_size(10, 10, 3000));
}

static void verify_no_finding_in_resumed_logs(void **state) {
    (void)state;
    struct tally tally = {.logs = 0};
    size_t count;
    const struct contract *list = contract_list(&count);
    for (size_t c = 0; c < count; c++) {
        uint64_t draws = 177 + c;
        if (list[c].bug || list[c].on_skip != CONTRACT_SKIP_HOLD) continue;
        for (size_t i = 0; i < helper_size(6, 1, 100); i++)
            try_resumed(&draws, &list[c], &tally);
    }
    print_message("%zu healthy resumed logs with skipped updates\n", tally.logs);
    verify_nobody_accused(&tally);
    assert_true(tally.logs >= helper_size(20, 5, 500));
}

/* Draws of the nightly run in which something was once found: what an early skip prints, a known
 * bug prints too, under a contract or a schedule that is searched late. */
static void verify_no_finding_where_there_was_one(void **state) {
    (void)state;
    static const struct {
        const char *contract;
        uint64_t draw;
    } rows[] = {{"accelerate-split-batches", 2122404162977368101u},  /* zero_lr_first_step */
                {"megatron-bridge", 7651882402216176421u},           /* the same, a warm-up of 1 */
                {"open-instruct-tune-cache", 16008410108989279585u}, /* xP_scheduler */
                {"megatron", 11940921098713928725u},                 /* floor_vs_ceil_steps */
                {"megatron-bridge", 14975242587206573837u},          /* xP_scheduler, no scale */
                {"nemo-rl-megatron", 11539901055447344844u},         /* lag1, no scale */
                {"deepspeed-warmup", 15460599205382902952u},         /* step_then_set */
                {"deepspeed-cosine", 13127264646854518269u},         /* other_stride */
                {"deepspeed-cosine", 2373440762895113735u}};         /* zero_init_patch */
    struct tally tally = {.logs = 0};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        uint64_t draws = rows[i].draw;
        try_training(&draws, contract_find(rows[i].contract), 1, 1, &tally);
    }
    verify_nobody_accused(&tally);
    assert_int_equal(tally.logs, COUNT_OF(rows));
}

/* The table of docs/measurements/forensics.md. */
static int print_table(size_t cases, uint64_t first) {
    struct tally tally = {.logs = 0};
    verify_quiet(0, 0, cases, first, &tally);
    verify_quiet(1, 0, 1 + cases / 10, first, &tally);
    verify_quiet(1, 1, 1 + cases / 10, first, &tally);
    printf("%zu logs, a finding in %zu\n", tally.logs, tally.accused);
    for (size_t c = 0; c < CHECKS && tally.checks[c].id != NULL; c++)
        printf("%-24s %6zu %6zu\n", tally.checks[c].id, tally.checks[c].looked,
               tally.checks[c].accused);
    return tally.accused > 0;
}

int main(int argc, char **argv) {
    if (argc >= 3 && strcmp(argv[1], "--table") == 0)
        return print_table((size_t)strtoul(argv[2], NULL, 10),
                           argc > 3 ? strtoul(argv[3], NULL, 10) : FIRST);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_no_finding), cmocka_unit_test(verify_no_finding_of_fits),
        cmocka_unit_test(verify_no_finding_where_updates_were_skipped),
        cmocka_unit_test(verify_no_finding_in_resumed_logs),
        cmocka_unit_test(verify_no_finding_where_there_was_one)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Judgements of random restarts: pairs of logs, and of recorded runs, whose LRs, losses, tokens,
 * batches, draws, decays and steps go on as before or do not, in logs of every and of some updates,
 * printed to many digits and to few. Two logs of one training are told as that, and where a column
 * was changed by much, no part that follows from it alone is called restored.
 *
 * tests/golden/forensics/trajectory_random.txt holds how many of the pairs have which answer, part
 * by part, and one number made of all texts (FNV-1a). With TWINSTEP_SHOW=PAIR its texts are
 * printed. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "base/real.h"
#include "forensics/trajectory.h"
#include "tests/base/helper_draws.h"
#include "tests/forensics/helper_golden.h"
#include "tests/forensics/helper_log.h"

enum { PAIRS = 4000, LAST = 24, TENSORS = 4, GROUPS = 2, STREAMS = 3 };

#define PEAK 1e-3

enum change { SAME, ANEW, DOUBLED, DECAYED, HALVED, BEHIND, AHEAD, LONGER, ODD, LATER, CHANGES };

struct pair {
    struct draws draws;
    struct arena arena;
    struct log *log[2];
    struct trace_run run[2];
    uint64_t restart, every;
    enum change lr;
    double loss;         /* by how much the losses behind the restart are larger */
    uint64_t loss_from;  /* from this update on */
    int tokens, records; /* 1: another batch; 1: both are runs */
    uint64_t tokens_from;
    uint32_t streams;
    int is_same, repeats;
};

static uint32_t pick(struct pair *p, uint32_t most) {
    return draws_pick(&p->draws, most);
}

static double lr_of(double update) {
    return update <= 3.0 ? PEAK * update / 3.0 : PEAK * (40.0 - update) / 37.0;
}

static double changed_lr(const struct pair *p, uint64_t update) {
    const double k = (double)update, done = (double)p->restart;
    if (update <= p->restart) return lr_of(k);
    switch (p->lr) {
    case ANEW:
        return lr_of(k - done);
    case DOUBLED:
        return lr_of(k + done);
    case DECAYED:
        return lr_of(k) * lr_of(done) / PEAK;
    case HALVED:
        return 0.5 * lr_of(k);
    case BEHIND:
        return lr_of(k - 2.0);
    case AHEAD:
        return lr_of(k + 3.0);
    case LONGER:
        return PEAK * (60.0 - k) / 57.0;
    case ODD:
        return 1e-5 * (k * k + 1.0);
    case LATER: /* the first update behind the restart has the LR of before */
        return update == p->restart + 1 ? lr_of(k) : lr_of(k) * lr_of(done) / PEAK;
    default:
        return lr_of(k);
    }
}

static double loss_of(uint64_t update) {
    static const double values[] = {2.0, 2.5, 1.9, 2.4, 2.8, 2.2, 1.7};
    return values[update % COUNT_OF(values)];
}

static void make_log(struct pair *p, int side, uint64_t first, uint64_t last, int few_digits) {
    struct log *const log = helper_log(&p->arena, (size_t)((last - first) / p->every + 1));
    p->log[side] = log;
    for (size_t i = 0; i < log->rows; i++) {
        const uint64_t k = first + p->every * i;
        const int behind = side == 1;
        log->step[i] = (int64_t)k;
        helper_put(&p->arena, log, LOG_LOSS, i,
                   loss_of(k) + (behind && k >= p->loss_from ? p->loss : 0.0), few_digits ? 1 : 4);
        const double lr = behind ? changed_lr(p, k) : lr_of((double)k);
        helper_put(&p->arena, log, LOG_LR_LOGGED, i, lr,
                   few_digits && lr > 0.0 ? PRINT_E2 : PRINT_EXACT); /* 0.00e+00 is exact */
        helper_put(&p->arena, log, LOG_GRAD_NORM, i, 1.0, 4);
    }
}

static void add_tokens(struct pair *p, uint8_t cumulative, int constant) {
    for (int side = 0; side < 2; side++) {
        struct log *const log = p->log[side];
        for (size_t i = 0; i < log->rows; i++) {
            const uint64_t k = (uint64_t)log->step[i];
            const double size = constant ? 512.0 : (double)(500 + k * 37 % 23);
            helper_put(&p->arena, log, LOG_TOKENS, i,
                       (cumulative ? 512.0 * (double)k : 0.0) + size +
                           (side == 1 && p->tokens && k >= p->tokens_from ? 1.0 : 0.0),
                       0);
        }
        for (size_t c = 0; c < log->column_count; c++)
            if (log->columns[c].name == LOG_TOKENS) log->columns[c].cumulative = cumulative;
    }
}

static void add_group(struct pair *p, int side, double factor, uint64_t from) {
    struct log *const log = p->log[side];
    struct log_column *const column = helper_column(&p->arena, log, LOG_OTHER);
    column->source = "lr_logged[1]";
    for (size_t i = 0; i < log->rows; i++) {
        const uint64_t k = (uint64_t)log->step[i];
        column->value[i] = 0.5 * lr_of((double)k) * (k >= from ? factor : 1.0);
        column->quantum[i] = 0.0f;
    }
}

/* ---- runs ---- */

static void put(uint8_t *digest, uint64_t what, uint64_t update) {
    const uint64_t words[] = {what, update};
    const uint64_t hash = draws_hash(DRAWS_HASH, words, sizeof words);
    memcpy(digest, &hash, sizeof hash);
}

/* Records what the logs say, and digests that part where one thing is drawn to part. */
static void make_run(struct pair *p, int side) {
    static const char *const configurations[] = {
        "optimizer.name: adamw\noptimizer.bias_correction: true\noptimizer.t: "
        "counted\nnumerics.param: f32\nnumerics.master: none\n",
        "optimizer.name: adamw\noptimizer.bias_correction: true\noptimizer.t: "
        "counted\nnumerics.param: f64\nnumerics.master: none",
        "optimizer.name: adamw\nnumerics.param: bf16\nnumerics.master: f32\n",
        "about: optimizer.name: adamw\noptimizer.bias_correction: true\noptimizer.t: "
        "counted\nnumerics.param: f32\nnumerics.master: none\n",
        "optimizer.name: adamw\noptimizer.bias_correction: true\noptimizer.t: "
        "counted\nnumerics.param: f32\nnumerics.master: none of f32\n"};
    static const char *const streams[] = {"data", "dropout", "rounding"};
    struct trace_run *const run = &p->run[side];
    const struct log *const log = p->log[side];
    const struct record_shape shape = {.tensors = TENSORS, .groups = GROUPS, .streams = p->streams};
    run->plan.shape = shape;
    run->plan.groups = "0011";
    run->plan.configuration = configurations[p->draws.number / 7 % COUNT_OF(configurations)];
    run->plan.streams = streams;
    run->updates = log->rows;
    assert_int_equal(
        arena_take(&p->arena, log->rows, sizeof *run->records, "records", &run->records),
        STATUS_OK);
    assert_int_equal(record_take(&p->arena, &shape, log->rows, run->records), STATUS_OK);
    for (size_t i = 0; i < log->rows; i++) {
        struct record *const record = &run->records[i];
        const uint64_t k = (uint64_t)log->step[i];
        record->step = k;
        record->reals[REAL_LOSS] = helper_value(log, LOG_LOSS, i);
        record->reals[REAL_PARAM_NORM] = 8.0;
        put(record->digests[DIGEST_BATCH], 1, k);
        put(record->digests[DIGEST_WEIGHTS], 2, k);
        for (uint32_t g = 0; g < GROUPS; g++) {
            record->groups[g][GROUP_LR_APPLIED] = helper_value(log, LOG_LR_LOGGED, i);
            record->groups[g][GROUP_WD_APPLIED] = 0.1;
        }
        for (uint32_t t = 0; t < TENSORS; t++) {
            put(record->tensor_digests[t][TENSOR_DIGEST_PARAMETER], 3 + t, k);
            record->tensors[t][TENSOR_UPDATE_NORM] = 0.5;
        }
        for (uint32_t s = 0; s < p->streams; s++)
            record->places[s][0] = (int64_t)(k * (s + 1));
    }
}

/* Lets the second run part from the first in some of what only runs record. */
static void part_runs(struct pair *p) {
    struct trace_run *const run = &p->run[1];
    const uint32_t batch = pick(p, 6), stream = pick(p, 9), decay = pick(p, 8);
    const uint32_t weights = pick(p, 3), moved = pick(p, 16), still = pick(p, 32);
    const uint64_t first = p->restart + 1;
    for (uint64_t i = 0; i < run->updates; i++) {
        struct record *const record = &run->records[i];
        const uint64_t k = record->step;
        if (k < first) continue;
        if (batch < 2 && k >= first + batch) put(record->digests[DIGEST_BATCH], 91, k);
        if (batch == 2) memset(record->digests[DIGEST_BATCH], 0, RECORD_DIGEST_BYTES);
        if (stream < p->streams) record->places[stream][0]++;
        if (decay < 2 && (decay == 0 || k == first))
            record->groups[pick(p, GROUPS)][GROUP_WD_APPLIED] = 0.2;
        if (weights == 0) continue;
        if (weights == 1) {
            put(record->digests[DIGEST_WEIGHTS], 92, k);
            for (uint32_t t = 0; t < TENSORS; t++) {
                if (moved >> t & 1u)
                    put(record->tensor_digests[t][TENSOR_DIGEST_PARAMETER], 93 + t, k);
                if (still >> t & 1u) record->tensors[t][TENSOR_UPDATE_NORM] = 0.0;
                if (still >> 4 & 1u) record->tensors[t][TENSOR_UPDATE_NORM] = 1e-6;
            }
        } else if (moved % 2 == 0) {
            memset(record->digests[DIGEST_WEIGHTS], 0, RECORD_DIGEST_BYTES);
        }
    }
    p->is_same = p->is_same && batch > 2 && stream >= p->streams && decay > 1 && weights == 0;
}

/* ---- one pair ---- */

/* A row that a later one of the same update replaces, and a row before update 1. */
static void repeat_rows(struct pair *p) {
    struct log *const log = p->log[pick(p, 2)];
    const size_t row = pick(p, (uint32_t)log->rows);
    if (pick(p, 3) == 0 && row + 1 < log->rows) log->step[row] = log->step[row + 1];
    if (pick(p, 6) == 0) p->log[0]->step[0] = 0;
}

static void draw_pair(uint32_t number, struct pair *p) {
    static const double gaps[] = {0.0, 0.0, 0.0, 0.03, 0.04, 0.3, 2.0};
    memset(p, 0, sizeof *p);
    p->draws = (struct draws){.key = UINT64_C(0x7e57a47), .number = number};
    p->restart = 1 + pick(p, 13);
    p->every = pick(p, 6) == 0 ? 2 : 1;
    if (p->every == 2) p->restart |= 1; /* rows of updates 1, 3, .. */
    p->lr = pick(p, 2) == 0 ? SAME : (enum change)pick(p, CHANGES);
    p->loss = gaps[pick(p, COUNT_OF(gaps))];
    p->loss_from = p->restart + 1 + (pick(p, 2) == 0 ? 0 : pick(p, 4));
    p->tokens = pick(p, 4) == 0;
    p->tokens_from = p->restart + 1 + pick(p, 4);
    p->records = pick(p, 2) == 0;
    const int few_digits = pick(p, 5) == 0, says_restart = pick(p, 4) == 0;
    const uint64_t first = says_restart ? 1 : p->restart + (p->every == 2 ? 2 : 1);
    make_log(p, 0, 1, pick(p, 8) == 0 ? p->restart + 1 : LAST, few_digits);
    make_log(p, 1, first, first + pick(p, 3) * 4 + 1, few_digits);
    const uint8_t cumulative = pick(p, 3) == 0, constant = pick(p, 5) == 0;
    if (pick(p, 3) > 0)
        add_tokens(p, cumulative, constant);
    else
        p->tokens = 0;
    if (p->lr == LONGER && pick(p, 2) == 0) {
        p->log[0]->max_steps = 40;
        p->log[1]->max_steps = 60;
    }
    const uint32_t grouped = pick(p, 10);
    if (grouped < 4) add_group(p, 0, 1.0, 0);
    if (grouped < 3 || grouped == 4) add_group(p, 1, grouped == 1 ? 4.0 : 1.0, p->restart + 2);
    if (pick(p, 12) == 0) helper_put(&p->arena, p->log[1], LOG_LOSS, 0, (double)NAN, PRINT_EXACT);
    if (pick(p, 12) == 0) helper_drop(p->log[pick(p, 2)], LOG_LOSS);
    if (pick(p, 16) == 0) helper_drop(p->log[1], LOG_LR_LOGGED);
    p->is_same = p->lr == SAME && p->loss == 0.0 && !p->tokens && grouped != 1;
    if (p->records && log_column_of(p->log[0], LOG_LOSS) != NULL &&
        log_column_of(p->log[1], LOG_LOSS) != NULL &&
        log_column_of(p->log[1], LOG_LR_LOGGED) != NULL) {
        p->streams = 1 + pick(p, STREAMS);
        make_run(p, 0);
        make_run(p, 1);
        part_runs(p);
    } else {
        p->records = 0;
        repeat_rows(p);
        p->repeats = 1;
    }
    if (!says_restart) p->restart = TRAJECTORY_UNKNOWN;
}

static void hold_rules(const struct pair *p, const struct trajectory *of) {
    for (int part = 0; part < TRAJECTORY_PARTS && p->is_same; part++)
        if (of->items[part].state == TRAJECTORY_LOST && !(of->differs > 0))
            fail_msg("pair %u: %s is lost: %s", p->draws.number, trajectory_part_names[part],
                     of->items[part].text);
    /* What was computed from another LR says nothing of the optimizer, nor of a scheduler. */
    if (p->lr != SAME && p->lr != LATER && !p->repeats &&
        of->items[TRAJECTORY_SCHEDULER].state == TRAJECTORY_RESTORED &&
        log_column_of(p->log[1], LOG_LR_LOGGED) != NULL)
        for (size_t i = 0; i < p->log[1]->rows; i++) {
            const uint64_t k = (uint64_t)p->log[1]->step[i];
            if (k <= of->restart || k > (uint64_t)p->log[0]->step[p->log[0]->rows - 1]) continue;
            if (fabs(helper_value(p->log[1], LOG_LR_LOGGED, i) - lr_of((double)k)) > 1e-4)
                fail_msg("pair %u: the scheduler is restored: %s", p->draws.number,
                         of->items[TRAJECTORY_SCHEDULER].text);
        }
}

struct answer {
    char text[72];
    size_t count;
};

static void count_answer(struct answer *answers, size_t most, int part,
                         const struct trajectory_item *item) {
    char text[sizeof answers->text];
    snprintf(text, sizeof text, "%s %s%s%s", trajectory_part_names[part],
             trajectory_state_names[item->state], item->bug != NULL ? " " : "",
             item->bug != NULL ? item->bug : "");
    for (size_t i = 0; i < most; i++) {
        if (answers[i].count > 0 && strcmp(answers[i].text, text) != 0) continue;
        memcpy(answers[i].text, text, sizeof text);
        answers[i].count++;
        return;
    }
    fail_msg("too many answers");
}

static void validate_random_restarts(void **state) {
    (void)state;
    static struct answer answers[64];
    const char *const shown = getenv("TWINSTEP_SHOW");
    uint64_t hash = DRAWS_HASH;
    memset(answers, 0, sizeof answers);
    FILE *const out = golden_begin("trajectory_random.txt", "%d pairs", PAIRS);
    for (uint32_t number = 0; number < PAIRS; number++) {
        struct pair p;
        struct trajectory of;
        draw_pair(number, &p);
        const struct trajectory_side sides[2] = {{p.log[0], p.records ? &p.run[0] : NULL},
                                                 {p.log[1], p.records ? &p.run[1] : NULL}};
        assert_int_equal(trajectory_judge(&sides[0], &sides[1], p.restart, &p.arena, &of),
                         STATUS_OK);
        hold_rules(&p, &of);
        const uint64_t found[] = {of.restart, of.rows, of.differs};
        hash = draws_hash(hash, found, sizeof found);
        for (int part = 0; part < TRAJECTORY_PARTS; part++) {
            const char *const text = of.items[part].text;
            count_answer(answers, COUNT_OF(answers), part, &of.items[part]);
            hash = draws_hash(hash, text, strlen(text));
            if (shown != NULL && number == (uint32_t)strtoul(shown, NULL, 10))
                print_message("%s: %s\n", trajectory_part_names[part], text);
        }
        if (of.column != NULL) hash = draws_hash(hash, of.column, strlen(of.column));
        arena_close(&p.arena);
    }
    for (size_t i = 0; i < COUNT_OF(answers) && answers[i].count > 0; i++)
        fprintf(out, "%5zu %s\n", answers[i].count, answers[i].text);
    fprintf(out, "texts %016" PRIx64 "\n", hash);
    golden_end();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_random_restarts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

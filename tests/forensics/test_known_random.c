/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What random logs say beside their LRs: the total, skipped updates row by row, the metric that a
 * feedback schedule followed, how long an epoch is, and which contracts the format speaks for. All
 * of it is worked out a second time here, from the words of forensics/fit.h and logs/log.h, over
 * rows that are missing, repeated, out of order or of a second part, and columns that count,
 * accumulate, or hold no number. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/macro.h"
#include "forensics/fit.h"
#include "forensics/fit_solve.h"
#include "tests/base/helper_draws.h"
#include "tests/forensics/helper_log.h"

enum { CASES = 12000, ROWS = 12 };

static struct arena arena;
static struct draws draws;
static struct log *made;

static uint32_t pick(uint32_t most) {
    return draws_pick(&draws, most);
}

static int has(enum log_name name, size_t row, double *out) {
    const struct log_column *const column = log_column_of(made, name);
    if (column == NULL || isnan(column->quantum[row])) return 0;
    *out = column->value[row];
    return 1;
}

/* ---- the log ---- */

static void number_rows(void) {
    const uint32_t kind = pick(6);
    int64_t step = kind == 5 ? (int64_t)pick(3) : 0;
    for (size_t row = 0; row < made->rows; row++) {
        step += kind == 1 || (kind == 2 && pick(4) == 0) ? 2 : 1;
        if (kind == 3 && row == made->rows / 2 && row > 0) step -= (int64_t)pick(4);
        if (step < 0) step = 0;
        made->step[row] = kind == 4 && row > 0 && pick(6) == 0 ? made->step[row - 1] : step;
        made->part[row] = (kind == 3 || kind == 2) && row >= made->rows / 2 ? 1 : 0;
        if (kind == 2 && pick(24) == 0) made->part[row] = 65;
    }
    if (kind == 5 && pick(2) == 0) made->step[pick((uint32_t)made->rows)] = 0;
}

static void put_skips(void) {
    const int sums = (int)pick(2), lines = pick(4) == 0, zeros = pick(4) == 0;
    const uint32_t odd = pick(8);
    double total = 0.0;
    struct log_column *const column = helper_column(&arena, made, LOG_SKIPPED);
    column->cumulative = (uint8_t)sums;
    column->source = lines ? LOG_SKIP_LINES : "skipped";
    for (size_t row = 0; row < made->rows; row++) {
        const double skipped = zeros ? 0.0 : (double)(pick(4) == 0 ? 1 + pick(2) : 0);
        total = row > 0 && made->part[row] != made->part[row - 1] && pick(2) == 0 ? 0.0
                                                                                  : total + skipped;
        double value = sums ? total : skipped;
        if (odd == 0 && pick(5) == 0) value = pick(2) == 0 ? -1.0 : 0x1p31;
        if (odd == 1 && pick(5) == 0) continue;
        helper_put(&arena, made, LOG_SKIPPED, row, value, PRINT_EXACT);
    }
}

static void put_scales_and_norms(void) {
    const uint32_t scale = pick(6), norm = pick(5);
    double now = 8.0, last = 1.0;
    if (scale > 1) helper_column(&arena, made, LOG_LOSS_SCALE);
    if (norm > 1) helper_column(&arena, made, LOG_GRAD_NORM);
    for (size_t row = 0; row < made->rows; row++) {
        if (scale > 2 && pick(4) == 0) now = pick(2) == 0 ? now / 2.0 : now * 2.0;
        if (scale == 3 && pick(6) == 0) continue;
        if (scale > 1)
            helper_put(&arena, made, LOG_LOSS_SCALE, row, scale == 2 ? 1.0 : now, PRINT_EXACT);
        if (norm == 3 && pick(6) == 0) continue;
        if (pick(3) > 0) last = 0.5 + (double)row;
        if (norm > 1)
            helper_put(&arena, made, LOG_GRAD_NORM, row,
                       norm == 4 && pick(5) == 0 ? (pick(2) == 0 ? (double)INFINITY : (double)NAN)
                                                 : last,
                       PRINT_EXACT);
    }
}

static void put_epochs(void) {
    const uint32_t kind = pick(5), length = 2 + pick(5);
    if (kind == 0) return;
    for (size_t row = 0; row < made->rows; row++) {
        const double part = (double)made->step[row] / (double)length;
        double epoch = kind == 1 ? part : floor(part);
        if (kind == 3 && pick(4) == 0) epoch = -1.0;
        if (kind == 4 && pick(5) == 0) epoch = part;
        if (pick(8) == 0) continue;
        helper_put(&arena, made, LOG_EPOCH, row, epoch, pick(2) == 0 ? 2 : PRINT_EXACT);
    }
}

static void put_metrics(void) {
    const uint32_t kind = pick(4);
    for (size_t row = 0; row < made->rows; row++) {
        if ((kind & 1) != 0 && pick(3) == 0)
            helper_put(&arena, made, LOG_EVAL_LOSS, row, 3.0 - 0.125 * (double)row, PRINT_EXACT);
        if ((kind & 2) != 0 && pick(5) > 0)
            helper_put(&arena, made, LOG_LOSS, row, 2.0 - 0.0625 * (double)row, PRINT_EXACT);
    }
}

static void put_total(void) {
    const uint32_t kind = pick(4);
    if (kind == 0) made->max_steps = 1 + pick(40);
    if (kind > 1) return;
    static const double values[] = {0.0, 0.5, 1.0, 20.0, 0x1p53, 0x1p52};
    for (size_t row = 0; row < made->rows; row++)
        if (pick(2) == 0)
            helper_put(&arena, made, LOG_TOTAL_STEPS, row, values[pick(COUNT_OF(values))],
                       PRINT_EXACT);
}

static const struct {
    const char *format, *prefix; /* NULL: contracts of any framework */
} formats[] = {
    {"hf-trainer-state", "hf"},
    {"hf-console", "hf"},
    {"llama-factory", "hf"},
    {"megatron", "megatron"},
    {"torchtitan", "torchtitan"},
    {"torchtitan-golden", NULL},
    {"torchtune", "torchtune"},
    {"torchtune-jsonl", "torchtune"},
    {"olmo-core", "olmo-core"},
    {"olmo-core-metrics", "olmo-core"},
    {"open-instruct", "open-instruct"},
    {"llmc", "llmc"},
    {"nemo-rl-console", "nemo-rl"},
    {"llmc-console", "llmc"},
    {"lightning", "lightning"},
    {"deepspeed", "deepspeed"},
    {"wandb", NULL},
    {"test", NULL},
};

static void make(uint32_t number) {
    draws = (struct draws){.key = UINT64_C(0x5e3f), .number = number};
    made = helper_log(&arena, 2 + pick(ROWS));
    made->format = formats[number % COUNT_OF(formats)].format;
    made->step_guessed = pick(12) == 0;
    made->bf16 = pick(8) == 0;
    number_rows();
    put_total();
    if (pick(2) == 0) put_skips();
    put_scales_and_norms();
    put_epochs();
    put_metrics();
    made->rows--; /* what stands behind the last row is none of the log's */
}

/* ---- the second reading ---- */

static uint64_t total_said(void) {
    double value;
    if (made->max_steps > 0) return made->max_steps;
    for (size_t row = 0; row < made->rows; row++)
        if (has(LOG_TOTAL_STEPS, row, &value) && value >= 1.0 && value < 9007199254740992.0)
            return (uint64_t)value;
    return 0;
}

/* How many updates a row's own column says were skipped since the row before it; -1: it does not
 * say. Of a running count the row before is that with the largest place of those whose update comes
 * before, where a new part begins, and beyond 64 parts no row is looked up. */
static double skipped_since(size_t row) {
    double here, there;
    const struct log_column *const column = log_column_of(made, LOG_SKIPPED);
    if (!has(LOG_SKIPPED, row, &here)) return 0.0;
    if (!column->cumulative) return here;
    size_t before = row;
    int found = 0;
    if (row > 0 && made->part[row] <= 64) {
        if (made->part[row] == made->part[row - 1]) {
            before = row - 1;
            found = 1;
        } else {
            for (size_t r = 0; r < row; r++)
                if (made->step[r] < made->step[row]) {
                    before = r;
                    found = 1;
                }
        }
    }
    if (found && has(LOG_SKIPPED, before, &there)) here -= there;
    return here < 0.0 ? -1.0 : here;
}

struct reading {
    uint32_t least[ROWS], most[ROWS], fell[ROWS], room[ROWS];
    uint64_t shown;
    int counted, quiet, has_counts, has_falls, has_room;
};

static void read_counts(struct reading *r) {
    const int lines = strcmp(log_column_of(made, LOG_SKIPPED)->source, LOG_SKIP_LINES) == 0;
    r->counted = lines ? FIT_COUNTED_LINES : FIT_COUNTED_EXACTLY;
    for (size_t row = 0; row < made->rows; row++) {
        double said;
        const double count = skipped_since(row);
        if (!has(LOG_SKIPPED, row, &said) || count < 0.0 || count >= 2147483648.0) continue;
        r->least[row] = lines ? count > 0.0 : (uint32_t)count;
        if (!lines) r->most[row] = (uint32_t)count;
    }
}

static void read_norms(struct reading *r) {
    int all_ones = 1;
    for (size_t row = 0; row < made->rows; row++) {
        double norm, scale;
        r->least[row] = has(LOG_GRAD_NORM, row, &norm) && !isfinite(norm);
        all_ones &= has(LOG_LOSS_SCALE, row, &scale) && scale == 1.0;
    }
    for (size_t row = 0; row < made->rows && (all_ones || made->bf16); row++)
        r->most[row] = r->least[row];
}

static uint32_t span_of(size_t row) {
    if (row == 0) return (uint32_t)made->step[0];
    if (made->part[row] != made->part[row - 1] || made->step[row] < made->step[row - 1])
        return UINT32_MAX;
    return (uint32_t)(made->step[row] - made->step[row - 1]);
}

static void read_skips(struct reading *r) {
    const struct log_column *const column = log_column_of(made, LOG_SKIPPED);
    const int has_norm = log_column_of(made, LOG_GRAD_NORM) != NULL;
    const struct log_column *const scale = log_column_of(made, LOG_LOSS_SCALE);
    int limited = 0;
    memset(r, 0, sizeof *r);
    if (made->step_guessed) return;
    if (column == NULL && !has_norm && scale == NULL && !made->bf16) return;
    r->quiet = has_norm;
    for (size_t row = 0; row < made->rows; row++) {
        double norm;
        r->most[row] = UINT32_MAX;
        if (!has(LOG_GRAD_NORM, row, &norm) || !isfinite(norm) ||
            made->step[row] != (int64_t)(row + 1))
            r->quiet = 0;
    }
    if (column != NULL) read_counts(r);
    if (column == NULL) read_norms(r);
    for (size_t row = 0; row < made->rows; row++) {
        r->shown += r->least[row];
        limited |= r->most[row] != UINT32_MAX;
    }
    r->has_counts = r->shown > 0 || limited;
    if (column != NULL) return;
    if (r->shown == 0 && scale != NULL) {
        for (size_t row = 1; row < made->rows; row++)
            r->fell[row] =
                made->part[row] == made->part[row - 1] && scale->value[row] < scale->value[row - 1];
        for (size_t row = 0; row < made->rows; row++)
            r->shown += r->fell[row];
        if (r->shown > 0) {
            r->has_falls = 1;
            return;
        }
    }
    double last = 0.0;
    for (size_t row = 0; has_norm && row < made->rows; row++) {
        double norm;
        r->room[row] = span_of(row);
        if (!has(LOG_GRAD_NORM, row, &norm) || !isfinite(norm)) continue;
        if (norm != last && r->room[row] > 0 && r->room[row] != UINT32_MAX) {
            r->room[row]--;
            r->has_room = 1;
        }
        last = norm;
    }
}

/* No epoch is negative, so what is does not count as a whole one. */
static int is_whole(double x) {
    return x >= 0.0 && x == floor(x);
}

/* Updates of an epoch: of the last row with a part of one; else what lies between the first two
 * beginnings of epochs that follow each other. */
static double epoch_updates(void) {
    double parts = 0.0, whole = 0.0, before = (double)NAN, began = 0.0;
    int known = 0;
    for (size_t row = 0; row < made->rows; row++) {
        double at;
        if (!has(LOG_EPOCH, row, &at) || at < 0.0 || made->step[row] < 1) continue;
        if (!is_whole(at)) {
            parts = (double)made->step[row] / at;
            known = 1;
            continue;
        }
        if (at == before + 1.0) {
            if (began > 0.0 && whole == 0.0 && !known) whole = (double)made->step[row] - began;
            began = (double)made->step[row];
        }
        before = at;
    }
    return known ? parts : whole;
}

static double epoch_least(void) {
    double before = (double)NAN, first = 0.0, last = 0.0, most = 0.0;
    for (size_t row = 0; row < made->rows; row++) {
        double at;
        const double update = (double)made->step[row];
        if (!has(LOG_EPOCH, row, &at) || update < 1.0) continue;
        if (!is_whole(at)) return 0.0;
        if (at != before || update < last) first = update;
        most = fmax(most, update - first + 1.0);
        before = at;
        last = update;
    }
    return most;
}

static int evaluates_within(void) {
    for (size_t row = 0; row < made->rows; row++) {
        double at, loss;
        if (!has(LOG_EVAL_LOSS, row, &loss) || !has(LOG_EPOCH, row, &at)) continue;
        if (fabs(at - fmax(floor(at + 0.5), 0.0)) > 0.01) return 1;
    }
    return 0;
}

/* The last value of each update, of the rows behind which no earlier update comes again. */
static size_t metric(uint64_t *updates, double *values) {
    size_t count = 0;
    const enum log_name name =
        log_column_of(made, LOG_EVAL_LOSS) != NULL ? LOG_EVAL_LOSS : LOG_LOSS;
    if (made->step_guessed) return 0;
    for (size_t row = 0; row < made->rows; row++) {
        double value;
        int again = 0;
        if (!has(name, row, &value) || made->step[row] < 1) continue;
        for (size_t later = row + 1; later < made->rows; later++) {
            double other;
            again |= has(name, later, &other) && made->step[later] >= 1 &&
                     made->step[later] <= made->step[row];
        }
        if (again) continue;
        updates[count] = (uint64_t)made->step[row];
        values[count++] = value;
    }
    return count;
}

/* The latest update of all rows, also of those without an LR. */
static uint64_t last_update(void) {
    int64_t last = 0;
    for (size_t row = 0; row < made->rows && !made->step_guessed; row++)
        last = made->step[row] > last ? made->step[row] : last;
    return (uint64_t)last;
}

static void hold_skips(uint32_t number, const struct fit_known *known) {
    static struct reading r;
    const struct fit_evidence *const of = &known->skips;
    read_skips(&r);
    if (of->shown != r.shown || of->counted != r.counted || of->quiet != r.quiet)
        fail_msg("log %u: shown %d, counted %d, quiet %d: %d, %d, %d", number, (int)of->shown,
                 of->counted, of->quiet, (int)r.shown, r.counted, r.quiet);
    if ((of->least != NULL) != r.has_counts || (of->most != NULL) != r.has_counts ||
        (of->fell != NULL) != r.has_falls || (of->room != NULL) != r.has_room)
        fail_msg("log %u: what tells of skips: %d, %d, %d", number, r.has_counts, r.has_falls,
                 r.has_room);
    if (r.has_counts || r.has_falls || r.has_room) assert_ptr_equal(of->part, made->part);
    for (size_t row = 0; row < made->rows; row++) {
        if (r.has_counts && (of->least[row] != r.least[row] || of->most[row] != r.most[row]))
            fail_msg("log %u, row %zu: %u to %u, not %u to %u", number, row, of->least[row],
                     of->most[row], r.least[row], r.most[row]);
        if (r.has_falls) assert_int_equal(of->fell[row], r.fell[row]);
        if (r.has_room && of->room[row] != r.room[row])
            fail_msg("log %u, row %zu: room for %u, not %u", number, row, of->room[row],
                     r.room[row]);
    }
}

static void hold_contracts(const struct fit_known *known, const char *prefix) {
    size_t count, at = 0;
    const struct contract *const list = contract_list(&count);
    assert_int_equal(known->possible != NULL, prefix != NULL);
    for (size_t i = 0; i < count; i++) {
        const int is = prefix == NULL || strncmp(list[i].name, prefix, strlen(prefix)) == 0;
        assert_int_equal(fit_is_native(known, &list[i]), is);
        if (prefix != NULL && is) assert_string_equal(known->possible[at++], list[i].name);
    }
    if (prefix != NULL) assert_true(at > 0 && known->possible[at] == NULL);
}

static void hold_metric(uint32_t number, const struct contract_request *request) {
    uint64_t updates[ROWS];
    double values[ROWS];
    const size_t count = metric(updates, values);
    if (request->metric_count != count)
        fail_msg("log %u: %zu values of the metric, not %zu", number, request->metric_count, count);
    for (size_t i = 0; i < count; i++)
        if (request->metric_update[i] != updates[i] || request->metric_value[i] != values[i])
            fail_msg("log %u: metric %zu", number, i);
}

/* Which updates were skipped, where every update has a row. */
static void hold_updates(uint32_t number, uint64_t steps, const struct fit_known *from) {
    struct fit_known known = *from;
    size_t count = 77, expected = 0;
    uint64_t updates[ROWS];
    int follows = 1, over = 0;
    known.request.steps = steps;
    assert_int_equal(fit_skipped_from_log(&known, made, &arena, &count), STATUS_OK);
    if (log_column_of(made, LOG_SKIPPED) == NULL || made->step_guessed) {
        assert_true(count == 0 && known.request.skipped_count == 0);
        return;
    }
    const uint64_t last = steps > 0 ? steps : from->run_steps;
    for (size_t row = 0; row < made->rows && !over; row++) {
        follows &= made->step[row] == (row > 0 ? made->step[row - 1] : 0) + 1;
        if (!follows) break;
        over = last > 0 && (uint64_t)made->step[row] > last;
        if (!over && skipped_since(row) == 1.0) updates[expected++] = (uint64_t)made->step[row];
    }
    if (!follows) expected = 0;
    if (count != expected) fail_msg("log %u: %zu skipped, not %zu", number, count, expected);
    assert_int_equal(known.request.skipped_count, expected);
    for (size_t i = 0; i < expected; i++)
        assert_true(known.request.skipped[i] == updates[i]);
}

static void corroborate_what_is_known(void **state) {
    (void)state;
    size_t counts = 0, falls = 0, rooms = 0, within = 0;
    for (uint32_t number = 0; number < CASES; number++) {
        struct fit_known known;
        make(number);
        fit_known_init(&known);
        assert_int_equal(fit_known_from_log(&known, made, &arena), STATUS_OK);
        assert_true(known.run_steps == total_said());
        assert_int_equal(known.steps_guessed, made->step_guessed);
        assert_int_equal(known.end, last_update());
        hold_skips(number, &known);
        hold_metric(number, &known.request);
        if (known.epoch_updates != epoch_updates())
            fail_msg("log %u: %g updates in an epoch, not %g", number, known.epoch_updates,
                     epoch_updates());
        if (known.epoch_least != epoch_least())
            fail_msg("log %u: at least %g, not %g", number, known.epoch_least, epoch_least());
        assert_int_equal(known.evals_within_epoch, evaluates_within());
        hold_contracts(&known, formats[number % COUNT_OF(formats)].prefix);
        hold_updates(number, 0, &known);
        hold_updates(number, 1 + number % 7, &known);
        counts += known.skips.least != NULL;
        falls += known.skips.fell != NULL;
        rooms += known.skips.room != NULL;
        within += known.evals_within_epoch != 0;
        arena_close(&arena);
    }
    assert_true(counts > CASES / 10 && falls > CASES / 20 && rooms > CASES / 20 && within > 100);
}

/* What is given stays: a metric, and updates that are called skipped. A column is found by our name
 * or by the log's. */
static void validate_what_is_given(void **state) {
    (void)state;
    static const double values[] = {1.0};
    static const uint64_t updates[] = {5};
    struct fit_known known;
    size_t count = 9;
    draws = (struct draws){.key = 1, .number = 1};
    made = helper_log(&arena, 4);
    for (size_t row = 0; row < 4; row++) {
        helper_put(&arena, made, LOG_LOSS, row, 2.0 + (double)row, PRINT_EXACT);
        helper_put(&arena, made, LOG_EVAL_LOSS, row, 3.0 + (double)row, PRINT_EXACT);
        helper_put(&arena, made, LOG_SKIPPED, row, 1.0, PRINT_EXACT);
        helper_put(&arena, made, LOG_EPOCH, row, 0.5, PRINT_EXACT);
    }
    for (size_t c = 0; c < made->column_count; c++)
        if (made->columns[c].name == LOG_LOSS) made->columns[c].source = "train/loss";
    fit_known_init(&known);
    known.request.metric_update = updates;
    known.request.metric_value = values;
    known.request.metric_count = 1;
    assert_int_equal(fit_known_from_log(&known, made, &arena), STATUS_OK);
    assert_true(known.request.metric_value == values && known.request.metric_count == 1);
    assert_int_equal(known.evals_within_epoch, 0); /* the metric is not the log's */
    known.request.skipped = updates;
    known.request.skipped_count = 1;
    assert_int_equal(fit_skipped_from_log(&known, made, &arena, &count), STATUS_OK);
    assert_true(count == 0 && known.request.skipped == updates);
    static const struct {
        const char *column;
        size_t count;
        double first;
    } columns[] = {{NULL, 4, 3.0},        {"loss", 4, 2.0},      {"train/loss", 4, 2.0},
                   {"eval_loss", 4, 3.0}, {"grad_norm", 0, 0.0}, {"train/los", 0, 0.0}};
    for (size_t i = 0; i < COUNT_OF(columns); i++) {
        struct contract_request request;
        contract_request_init(&request);
        assert_int_equal(fit_metric_from_log(made, columns[i].column, &arena, &request), STATUS_OK);
        if (request.metric_count != columns[i].count) fail_msg("case %zu", i);
        if (columns[i].count > 0) assert_true(request.metric_value[0] == columns[i].first);
    }
    arena_close(&arena);
}

static int are_epochs(double stair, double updates, double least, const char *expected,
                      const char *const *possible, const char *asked) {
    struct fit fit = {.contract = contract_find("lightning-step")};
    struct fit_known known;
    fit_known_init(&known);
    fit.epoch_updates = (uint64_t)stair;
    known.epoch_updates = updates;
    known.epoch_least = least;
    known.possible = possible;
    known.expected = expected == NULL ? NULL : contract_find(expected);
    known.request.contract = asked == NULL ? NULL : contract_find(asked);
    assert_true(fit.contract != NULL && (expected == NULL || known.expected != NULL));
    return fit_stairs_are_epochs(&fit, &known);
}

/* Stairs of a schedule are epochs where the log's epochs are as long, to a fiftieth and half an
 * update, or no shorter than it shows, and the contract steps once an epoch. */
static void validate_stairs(void **state) {
    (void)state;
    static const char *const native[] = {"lightning-step", NULL}, *const other[] = {"hf", NULL};
    struct fit fit = {.contract = contract_find("hf"), .epoch_updates = 10};
    struct fit_known known;
    for (uint64_t stair = 90; stair < 110; stair++)
        assert_int_equal(are_epochs((double)stair, 100.0, 0.0, NULL, other, NULL),
                         stair > 97 && stair < 103);
    for (uint64_t stair = 45; stair < 55; stair++)
        assert_int_equal(are_epochs((double)stair, 0.0, 50.0, "lightning-step", NULL, NULL),
                         stair >= 49);
    assert_int_equal(are_epochs(20.0, 0.0, 0.0, "hf", native, "hf"), 0);
    assert_int_equal(are_epochs(20.0, 0.0, 0.0, NULL, NULL, "hf"), 1);
    assert_int_equal(are_epochs(20.0, 0.0, 0.0, NULL, NULL, NULL), 0);
    assert_int_equal(are_epochs(20.0, 0.0, 0.0, NULL, native, NULL), 1);
    assert_int_equal(are_epochs(20.0, 0.0, 0.0, NULL, other, NULL), 0);
    fit_known_init(&known);
    known.epoch_updates = 100.0;
    assert_int_equal(fit_stairs_are_epochs(&fit, &known), 0);
    known.request.updates_per_epoch = 1;
    assert_int_equal(fit_stairs_are_epochs(&fit, &known), 1);
    known.request.updates_per_epoch = 0;
    known.request.dataset = 1;
    assert_int_equal(fit_stairs_are_epochs(&fit, &known), 1);
}

/* Fits of contracts that the format does not speak for are kept aside behind one that it does. */
static void validate_native_fits(void **state) {
    (void)state;
    static const char *const native[] = {"hf", NULL};
    static struct fit fits[3];
    for (size_t natives = 0; natives <= 3; natives++) {
        struct fit_set set = {.fits = fits, .count = 3};
        struct fit_known known;
        fit_known_init(&known);
        known.possible = native;
        for (size_t i = 0; i < 3; i++)
            fits[i].contract = contract_find(i < natives ? "hf" : "megatron");
        fit_keep_native(&known, &set);
        const int parts = natives > 0 && natives < 3;
        assert_int_equal(set.count, parts ? natives : 3);
        assert_int_equal(set.foreign, parts ? 3 - natives : 0);
    }
}

/* Where the log's own fields say that it logs the next LR, a contract that logs the one that was
 * used is none of it, unless somebody named it. */
static void validate_later_releases(void **state) {
    (void)state;
    static const char *const names[] = {"hf", "torchtune", "megatron", NULL};
    static const char *const native[] = {"hf", "torchtune", NULL};
    for (size_t n = 0; names[n] != NULL; n++)
        for (int next = 0; next < 2; next++)
            for (int named = 0; named < 4; named++)
                for (int any = 0; any < 2; any++) {
                    const struct contract *const contract = contract_find(names[n]);
                    const int is_next = contract->logged == CONTRACT_LOGGED_NEXT;
                    struct fit_known known;
                    fit_known_init(&known);
                    known.logs_next = next;
                    known.possible = any ? NULL : native;
                    known.request.contract = contract_find(named == 1 ? names[n] : "lag1");
                    known.expected = contract_find(named == 2 ? names[n] : "lag1");
                    if (named == 3) known.request.contract = known.expected = NULL;
                    assert_int_equal(fit_is_of_later_release(&known, contract), next && !is_next);
                    const int kept = !next || is_next || named == 1 || named == 2;
                    assert_int_equal(fit_is_native(&known, contract), any || (kept && n < 2));
                }
}

/* Where its numbers say that it logs the LR that was used, the other contracts are none of it. */
static void validate_earlier_releases(void **state) {
    (void)state;
    static const char *const native[] = {"hf", "hf-4.50", NULL};
    struct fit_known known;
    fit_known_init(&known);
    known.possible = native;
    for (size_t n = 0; n < 2; n++) {
        const struct contract *const contract = contract_find(native[n]);
        known.logs_used = 0;
        assert_int_equal(fit_is_of_earlier_release(&known, contract), 0);
        assert_int_equal(fit_is_native(&known, contract), 1);
        known.logs_used = 1;
        assert_int_equal(fit_is_of_earlier_release(&known, contract), n == 1);
        assert_int_equal(fit_is_native(&known, contract), n == 0);
        known.expected = contract;
        assert_int_equal(fit_is_native(&known, contract), 1);
        known.expected = NULL;
        known.request.contract = contract;
        assert_int_equal(fit_is_native(&known, contract), 1);
        known.request.contract = NULL;
    }
}

/* An evaluation stands within an epoch where it is more than a hundredth of one from its end. */
static void validate_evaluations_within_epochs(void **state) {
    (void)state;
    static const struct {
        double epoch;
        int within;
    } cases[] = {{1.0, 0},   {1.0099, 0}, {1.0101, 1}, {1.5, 1},
                 {1.985, 1}, {1.9899, 1}, {1.9901, 0}, {0.0, 0}};
    for (size_t c = 0; c < COUNT_OF(cases); c++)
        for (size_t row = 0; row < 3; row++) {
            struct fit_known known;
            made = helper_log(&arena, 3);
            for (size_t r = 0; r < 3; r++) {
                made->step[r] = (int64_t)r + 1;
                helper_put(&arena, made, LOG_EPOCH, r, r == row ? cases[c].epoch : 2.0,
                           PRINT_EXACT);
                helper_put(&arena, made, LOG_EVAL_LOSS, r, 1.0, PRINT_EXACT);
            }
            fit_known_init(&known);
            assert_int_equal(fit_known_from_log(&known, made, &arena), STATUS_OK);
            assert_int_equal(known.evals_within_epoch, cases[c].within);
            arena_close(&arena);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_what_is_known),
        cmocka_unit_test(validate_what_is_given),
        cmocka_unit_test(validate_stairs),
        cmocka_unit_test(validate_native_fits),
        cmocka_unit_test(validate_later_releases),
        cmocka_unit_test(validate_earlier_releases),
        cmocka_unit_test(validate_evaluations_within_epochs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

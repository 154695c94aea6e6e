/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What the order of first differences means, over random orders of them: which of tokens, loss,
 * gradient norm, LRs and recorded draws differs first in which update, by how much, and what else
 * is known of the two logs. The rules of docs/FORENSICS.md must hold for each: no difference that
 * comes before a step is blamed on what a step does, and no cause is named where nothing differs.
 *
 * tests/golden/forensics/compare_meaning.txt holds how many of the orders have which answer, and
 * one number made of which order has which (FNV-1a): a rule that looks one update earlier or later
 * moves some of them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "forensics/compare_parts.h"
#include "tests/base/helper_draws.h"
#include "tests/forensics/helper_golden.h"

enum { UPDATES = 12, ORDERS = 30000, ANSWERS = 128, COLUMNS = 6 };
#define NEVER 0

struct order {
    struct compare_report report;
    struct series_point points[COLUMNS][2][UPDATES];
    struct compare_column columns[COLUMNS];
    uint32_t by_first[COLUMNS];
    struct compare_ratio ratios[2];
    struct compare_group group;
    uint64_t loss, margin, gradient, data, lr, draws; /* where each differs first; NEVER: nowhere */
    int fixed; /* loss or gradient norm is a fixed factor off */
};

static uint64_t earlier(uint64_t a, uint64_t b) {
    return a == NEVER ? b : b == NEVER || a < b ? a : b;
}

/* An update at or behind the first that moves a weight, or none. */
static uint64_t update_of(struct draws *draws, uint64_t start) {
    static const uint64_t behind[] = {0, 0, 1, 1, 2, 3, 5};
    const uint32_t n = draws_pick(draws, COUNT_OF(behind) + 4);
    if (n >= COUNT_OF(behind)) return n % 2 == 0 ? NEVER : n % 4 == 1 ? start : NEVER;
    return start + behind[n];
}

/* Adds a column whose sides differ by `gap` from an update on. */
static struct compare_column *add(struct order *order, enum log_name name, uint64_t first,
                                  double level, double wave, double gap, uint64_t from) {
    const size_t c = order->report.column_count++;
    struct compare_column *const column = &order->columns[c];
    *column =
        (struct compare_column){.name = (int32_t)name,
                                .class_of = first == NEVER ? COMPARE_EQUAL : COMPARE_DIFFERENT,
                                .pairs = UPDATES + 1 - from,
                                .different = first == NEVER ? 0 : 1,
                                .first_update = first,
                                .from = from,
                                .to = UPDATES};
    for (size_t s = 0; s < 2; s++) {
        for (uint64_t k = from; k <= UPDATES; k++)
            order->points[c][s][k - from] = (struct series_point){
                .update = k,
                .value = level + (k % 2 == 0 ? wave : 0.0) +
                         (s == 1 && first != NEVER && k >= first ? gap : 0.0)};
        column->side[s] =
            (struct compare_side){.points = order->points[c][s], .count = column->pairs};
        if (first >= from) column->first[s] = order->points[c][s][first - from];
    }
    return column;
}

/* Takes the rows between the first update that moves a weight and the first difference from a
 * column. */
static void thin(struct compare_column *column, uint64_t start, uint64_t first) {
    for (size_t s = 0; s < 2; s++) {
        struct series_point *const points = (struct series_point *)column->side[s].points;
        size_t kept = 0;
        for (size_t i = 0; i < column->side[s].count; i++)
            if (points[i].update <= start || points[i].update >= first) points[kept++] = points[i];
        column->side[s].count = kept;
    }
    column->pairs = column->side[0].count;
}

/* Leaves a column in one log only. */
static void drop(struct compare_column *column) {
    column->class_of = COMPARE_ABSENT;
    column->pairs = column->different = 0;
    column->first_update = NEVER;
    column->side[1] = (struct compare_side){.count = 0};
}

static void sort_columns(struct order *order) {
    for (uint32_t c = 0; c < order->report.column_count; c++) {
        if (order->columns[c].class_of != COMPARE_DIFFERENT) continue;
        size_t at = order->report.order_count++;
        for (; at > 0 && order->columns[order->by_first[at - 1]].first_update >
                             order->columns[c].first_update;
             at--)
            order->by_first[at] = order->by_first[at - 1];
        order->by_first[at] = c;
    }
}

static void add_draws(struct order *order, struct draws *draws, uint64_t start) {
    static const char *const streams[] = {"init", "data", "rounding", "dropout"};
    struct ledger_difference *const rng = &order->report.rng;
    const char *const stream = streams[draws_pick(draws, COUNT_OF(streams))];
    const uint64_t update = start + draws_pick(draws, 4);
    const uint32_t kind = draws_pick(draws, 3);
    rng->recorded = 1;
    order->draws = kind == 2 ? 1 : update;
    if (kind == 0) {
        rng->found = 1;
        rng->update = update;
        rng->consumer = stream;
    } else if (kind == 1) {
        rng->place.stream = stream;
        rng->place.update = update;
    } else {
        rng->seed_count = 1 + draws_pick(draws, 2);
        snprintf(rng->seeds[0].stream, sizeof rng->seeds[0].stream, "%s", stream);
    }
}

static void draw_order(uint32_t number, struct order *order) {
    static const double gaps[] = {1e-6, 0.01, 0.04, 0.3, 3.0};
    struct draws draws = {.key = UINT64_C(0x0de4), .number = number};
    struct compare_report *const report = &order->report;
    memset(order, 0, sizeof *order);
    report->cause = -1;
    report->columns = order->columns;
    report->order = order->by_first;
    report->ratios = order->ratios;
    report->configurations = draws_pick(&draws, 3) == 0 ? "seed" : "";
    report->start = 1 + 2 * (draws_pick(&draws, 3) == 0);
    const uint64_t start = report->start;
    report->starts =
        draws_pick(&draws, 4) == 0 ? UINT64_C(1) << (start + draws_pick(&draws, 3)) : 0;
    const uint64_t from = draws_pick(&draws, 8) == 0 ? start + 1 : 1;
    order->loss = update_of(&draws, start > from ? start : from);
    order->gradient = update_of(&draws, start > from ? start : from);
    order->data = draws_pick(&draws, 5) == 0 ? update_of(&draws, start) : NEVER;
    order->lr = draws_pick(&draws, 2) == 0 ? update_of(&draws, start) : NEVER;
    const double gap = gaps[draws_pick(&draws, COUNT_OF(gaps))];
    add(order, LOG_LOSS, order->loss, 2.0, 0.25, gap, from);
    add(order, LOG_GRAD_NORM, order->gradient, 4.0, 0.5, gap * (double)(1 + draws_pick(&draws, 3)),
        from);
    add(order, LOG_TOKENS, order->data, 512.0, 0.0, 8.0, 1);
    const int applied = draws_pick(&draws, 3) == 0;
    add(order, applied ? LOG_LR_APPLIED : LOG_LR_LOGGED, order->lr, 1e-4, 0.0,
        draws_pick(&draws, 2) == 0 ? 1e-5 : 1e-12, 1);
    if (draws_pick(&draws, 4) == 0) {
        order->margin = update_of(&draws, start + 1);
        add(order, LOG_REWARD_MARGIN, order->margin, 0.5, 0.25, gap, 1);
    }
    if (draws_pick(&draws, 4) == 0) add(order, LOG_LOSS_SCALE, NEVER, 8.0, 4.0, 0.0, 1);
    const uint64_t first = earlier(earlier(order->loss, order->margin), order->gradient);
    if (first > start && draws_pick(&draws, 5) == 0)
        for (size_t c = 0; c < 2; c++)
            thin(&order->columns[c], start, first);
    if (draws_pick(&draws, 8) == 0) {
        drop(&order->columns[0]);
        order->loss = NEVER;
    }
    if (draws_pick(&draws, 5) == 0) { /* one log prints one of them to few digits */
        const uint32_t c = draws_pick(&draws, 2), side = draws_pick(&draws, 2);
        for (size_t i = 0; i < UPDATES; i++)
            order->points[c][side][i].quantum = 1e-3;
    }
    sort_columns(order);
    report->lr.state = (int32_t)draws_pick(&draws, 5);
    if (draws_pick(&draws, 5) == 0) {
        report->lr.groups_differ = 1;
        report->lr.group = draws_pick(&draws, 2);
        report->lr.group_first = &order->group;
        order->group.column.first_update = start + draws_pick(&draws, 4);
        order->group.column.largest = draws_pick(&draws, 2) == 0 ? 1e-3 : 1e-9;
    } else if (draws_pick(&draws, 6) == 0) {
        report->lr.groups_alone = 1;
    }
    if (draws_pick(&draws, 6) == 0) {
        order->fixed = 1;
        report->ratio_count = 1;
        order->ratios[0].name = draws_pick(&draws, 2) == 0 ? LOG_LOSS : LOG_GRAD_NORM;
        order->ratios[0].kind =
            draws_pick(&draws, 2) == 0 ? COMPARE_FACTOR_WHOLE : COMPARE_FACTOR_OFFSET;
        order->ratios[0].factor = draws_pick(&draws, 2) == 0 ? 8.0 : 1.0 / 8.0;
    }
    if (draws_pick(&draws, 5) == 0) report->gradient_update = order->gradient;
    if (draws_pick(&draws, 5) == 0) report->root_update = report->gradient_update;
    if (draws_pick(&draws, 6) == 0) add_draws(order, &draws, start);
}

/* What docs/FORENSICS.md says of every order. */
static void hold_rules(uint32_t number, const struct order *order) {
    const struct compare_report *const report = &order->report;
    const uint64_t first = earlier(earlier(order->loss, order->margin), order->gradient);
    const int drawn = order->draws != NEVER && strstr(report->next, "draws") != NULL;
    /* Beside rounding that comes first, what no rounding makes is named wherever it comes. */
    const int beyond = strstr(report->meaning, "neither kernels nor rounding make") != NULL;
    const int anything = report->order_count + report->lr.groups_differ > 0;
    if (!anything && order->draws == NEVER && report->meaning[0] != '\0')
        fail_msg("order %u: nothing differs: %s", number, report->meaning);
    if (report->meaning[0] == '\0' || order->draws != NEVER) return;
    assert_false(drawn);
    /* Counts of data that differ no later than losses and gradients are why these do. */
    const int by_data = order->data != NEVER && (first == NEVER || order->data <= first);
    if (beyond ? report->cause == CAUSE_DATA_ORDER && order->data == NEVER
               : by_data != (report->cause == CAUSE_DATA_ORDER))
        fail_msg("order %u: data %llu, first %llu: cause %d: %s", number,
                 (unsigned long long)order->data, (unsigned long long)first, report->cause,
                 report->meaning);
    /* What differs before the first step is no optimizer, and by the LR alone where it is clipped
     * before it is unscaled, or where a printed LR of 0 is in doubt. */
    if (first != NEVER && first <= report->start && !by_data) {
        assert_int_not_equal(report->cause, CAUSE_OPTIMIZER);
        if (report->cause == CAUSE_SCHEDULE && !beyond &&
            strstr(report->meaning, "unscaled") == NULL &&
            strstr(report->meaning, "the weights had moved") == NULL)
            fail_msg("order %u: %s", number, report->meaning);
    }
    /* And behind it neither a divisor nor a dtype begins. */
    if (first == NEVER || first > report->start)
        assert_true(report->cause != CAUSE_NORMALISATION && report->cause != CAUSE_DTYPE);
}

struct answer {
    char text[80];
    size_t count;
};

static void count_answer(const struct compare_report *report, struct answer *answers) {
    char text[80];
    snprintf(text, sizeof text, "%2d %.70s", report->cause, report->meaning);
    for (size_t i = 0; i < ANSWERS; i++) {
        if (answers[i].count > 0 && strcmp(answers[i].text, text) != 0) continue;
        memcpy(answers[i].text, text, sizeof text);
        answers[i].count++;
        return;
    }
    fail_msg("more than %d answers", ANSWERS);
}

static void validate_random_orders(void **state) {
    (void)state;
    static struct answer answers[ANSWERS];
    static struct order order;
    uint64_t hash = DRAWS_HASH;
    memset(answers, 0, sizeof answers);
    FILE *out = golden_begin("compare_meaning.txt", "%d orders", ORDERS);
    for (uint32_t number = 0; number < ORDERS; number++) {
        struct arena arena = ARENA_EMPTY;
        draw_order(number, &order);
        assert_int_equal(compare_explain(&order.report, &arena), STATUS_OK);
        hold_rules(number, &order);
        count_answer(&order.report, answers);
        hash = draws_hash(hash, order.report.meaning, strlen(order.report.meaning));
        hash = draws_hash(hash, order.report.next, strlen(order.report.next));
        arena_close(&arena);
    }
    for (size_t i = 0; i < ANSWERS && answers[i].count > 0; i++)
        fprintf(out, "%5zu of cause %s\n", answers[i].count, answers[i].text);
    fprintf(out, "texts %016llx\n", (unsigned long long)hash);
    golden_end();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_random_orders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

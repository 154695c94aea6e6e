/* SPDX-License-Identifier: Apache-2.0
 * Makes a comparison by hand. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "tests/forensics/helper_hand.h"

struct arena hand_arena;
struct series_point hand_points[HAND_COLUMNS][2][HAND_ROWS];
struct compare_column hand_columns[HAND_COLUMNS];
struct compare_report hand_report;
struct compare_group hand_group;
static uint32_t order[1];

struct compare_column *hand_column(enum log_name name) {
    for (size_t c = 0; c < hand_report.column_count; c++)
        if (hand_columns[c].name == (int32_t)name) return &hand_columns[c];
    fail();
    return NULL;
}

struct compare_column *hand_add(enum log_name name, double value) {
    const size_t c = hand_report.column_count++;
    struct compare_column *const column = &hand_columns[c];
    memset(column, 0, sizeof *column);
    column->name = (int32_t)name;
    column->pairs = HAND_ROWS;
    column->from = 1;
    column->to = HAND_ROWS;
    column->class_of = COMPARE_EQUAL;
    for (size_t s = 0; s < 2; s++) {
        for (size_t i = 0; i < HAND_ROWS; i++)
            hand_points[c][s][i] = (struct series_point){
                .update = i + 1, .row = i, .value = value + (i % 2 == 0 ? 0.0 : 0.1)};
        column->side[s].points = hand_points[c][s];
        column->side[s].count = HAND_ROWS;
    }
    hand_report.columns = hand_columns;
    return column;
}

void hand_part(struct compare_column *column, uint64_t update, double gap) {
    struct series_point(*const both)[HAND_ROWS] = hand_points[column - hand_columns];
    column->class_of = COMPARE_DIFFERENT;
    column->first_update = update;
    column->different = 1;
    for (uint64_t k = update; k <= HAND_ROWS; k++)
        both[1][k - 1].value += gap;
    for (size_t s = 0; s < 2; s++)
        column->first[s] = both[s][update - 1];
}

void hand_open(void) {
    arena_close(&hand_arena);
    memset(&hand_report, 0, sizeof hand_report);
    memset(&hand_group, 0, sizeof hand_group);
    hand_report.start = HAND_START;
    hand_report.configurations = "";
    hand_report.cause = -7;
    hand_report.meaning = hand_report.next = "";
    hand_report.order_count = 1; /* something differs */
    hand_report.order = order;
}

int hand_close(void **state) {
    (void)state;
    arena_close(&hand_arena);
    return 0;
}

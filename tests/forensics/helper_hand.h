/* SPDX-License-Identifier: Apache-2.0
 * A comparison whose columns are made by hand, without logs: twelve rows each, and a first step in
 * update 3. */
#ifndef TWINSTEP_TESTS_FORENSICS_HELPER_HAND_H
#define TWINSTEP_TESTS_FORENSICS_HELPER_HAND_H

#include "forensics/compare_parts.h"

enum { HAND_ROWS = 12, HAND_START = 3, HAND_COLUMNS = 12 };

extern struct arena hand_arena;
extern struct series_point hand_points[HAND_COLUMNS][2][HAND_ROWS]; /* of column and side */
extern struct compare_column hand_columns[HAND_COLUMNS];
extern struct compare_report hand_report;
extern struct compare_group hand_group;

/* Begins a report without columns, in which something differs. */
void hand_open(void);
/* Adds a column that changes by 0.1 from row to row, around `value`, and is equal in both logs. */
struct compare_column *hand_add(enum log_name name, double value);
/* Returns a column that was added. */
struct compare_column *hand_column(enum log_name name);
/* Lets a column differ from an update on, by so much. */
void hand_part(struct compare_column *column, uint64_t update, double gap);
/* Ends a group of tests. */
int hand_close(void **state);

/* Holds a condition, and makes the case again for the next one. */
#define IS(condition, expected, again)                                                             \
    do {                                                                                           \
        if ((condition) != (expected)) fail_msg("line %d", __LINE__);                              \
        again();                                                                                   \
    } while (0)

#endif

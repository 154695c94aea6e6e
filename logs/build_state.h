/* SPDX-License-Identifier: Apache-2.0
 * What a log is while it grows. Private to logs/build*.c and logs/read_trace.c. */
#ifndef TWINSTEP_LOGS_BUILD_STATE_H
#define TWINSTEP_LOGS_BUILD_STATE_H

#include "logs/build.h"
#include "logs/names.h"

#define BUILD_BLOCK 256 /* rows */
#define BUILD_NAME_MAX 255
#define BUILD_NOTES_MAX 32

struct build_cells {
    double value[BUILD_BLOCK];
    float quantum[BUILD_BLOCK]; /* NaN: absent */
};

struct build_column {
    const char *source;
    size_t length;
    int32_t name, rank, print, decimals;
    uint8_t cumulative, windowed;
    int is_repr;    /* a text with a fraction had 15 significant digits */
    int is_printed; /* a text that no repr writes */
    int has_power;  /* a text other than 0 had an exponent */
    int most;       /* significant digits of the longest text with a fraction or an exponent */
    double finest;  /* quantum of the texts with a fraction or an exponent */
    size_t count;
    struct build_cells **blocks; /* NULL: none of its rows has a value */
    size_t block_room;
};

struct build_row {
    int64_t step; /* INT64_MIN: unknown */
    uint32_t line, part;
    uint32_t values;
};
struct build_rows {
    struct build_row rows[BUILD_BLOCK];
};

struct log_build {
    struct arena *arena;  /* of the log */
    struct arena scratch; /* of the building */
    const char *path, *format;
    const struct log_options *options;
    uint8_t map_used[LOG_MAP_MAX];

    struct build_column *columns;
    size_t column_count, column_room;
    size_t last_column;
    int columns_left;
    uint16_t slots[4 * LOG_COLUMNS_MAX]; /* by hash of the name: index + 1 */
    size_t holder[LOG_NAMES];

    struct build_rows **row_blocks;
    size_t row_count, row_room, row;
    size_t value_count;
    int by_step;
    uint32_t *step_slots; /* by hash of step and part: row + 1 */
    size_t step_room;

    const char *notes[BUILD_NOTES_MAX + 1];
    size_t note_count, notes_left;
    uint64_t max_steps;
    struct log *adopted;
};

/* The log is this one: columns and rows were not built here but before. Path and title are set by
 * log_build_finish. */
void log_build_adopt(struct log_build *build, struct log *log);

/* Room for `wanted` elements behind *pointer, doubling; old ones are copied. */
TWINSTEP_MUST_USE enum status log_build_grow(struct log_build *build, void *pointer, size_t *room,
                                             size_t wanted, size_t size);
/* To float, never smaller. */
float log_build_round_up(double quantum);
struct build_row *log_build_row_at(const struct log_build *build, size_t row);

#endif

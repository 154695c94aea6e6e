/* SPDX-License-Identifier: Apache-2.0
 * What a log is while it grows. Private to logs/build*.c and logs/readers/read_trace.c.
 *
 * Cells lie in blocks of BUILD_BLOCK rows per column, and a block is made when a value first falls
 * into it. So a column that appears late, or a sparse one, costs memory only where it has values.
 */
#ifndef TWINSTEP_LOGS_BUILD_STATE_H
#define TWINSTEP_LOGS_BUILD_STATE_H

#include "logs/build.h"
#include "logs/names.h"

/* Rows of a block: 3 KiB of cells. Chosen so that a column with a single value costs little, and
 * the table of blocks of a million rows stays short. */
#define BUILD_BLOCK 256
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
    int is_repr;    /* a text with a fraction had 15 significant digits or more */
    int is_double;  /* a text with a fraction was no binary32 */
    int no_float;   /* a text with a fraction is not how any binary32 prints in its digits */
    int is_printed; /* a text that no repr writes */
    int has_power;  /* a text other than 0 had an exponent */
    int most;       /* significant digits of the longest text that has a fraction or an exponent */
    size_t rounded; /* whole numbers above 2^53 that no binary64 is */
    double finest;  /* smallest quantum of the texts that have a fraction or an exponent */
    size_t count;
    struct build_cells **blocks; /* a block is NULL while none of its rows has a value */
    size_t block_room;
};

struct build_row {
    int64_t step; /* INT64_MIN: unknown */
    uint32_t line, part;
    uint32_t values;
    uint32_t skips; /* lines since the row before that say that an update was skipped */
};
struct build_rows {
    struct build_row rows[BUILD_BLOCK];
};

struct log_build {
    struct arena *arena;  /* lives as long as the log */
    struct arena scratch; /* returned by log_build_close */
    const char *path, *format;
    const struct log_options *options;
    uint8_t map_used[LOG_MAP_MAX];

    struct build_column *columns;
    size_t column_count, column_room;
    size_t last_column;
    int columns_left;
    uint16_t slots[4 * LOG_COLUMNS_MAX]; /* by hash of the name: index + 1, 0 is free. Four slots
                                            for each possible column, so that probes stay short */
    size_t holder[LOG_NAMES];

    struct build_rows **row_blocks;
    size_t row_count, row_room, row;
    size_t value_count;
    uint32_t skips;    /* lines that say so, since the last row */
    size_t skip_count; /* and in all */
    int blank_loss;    /* 1: a row names the loss and has null there */
    int bf16;          /* 1: a line says that the training was in bf16 */
    int logs_next;     /* 1: the source is of a release that logs the LR of the next update */
    int logs_used;     /* 1: the source is of a release that logs the LR that was used */
    int by_step;
    const char *odd_step; /* NULL, or what says a step that is no whole number, for a note */
    uint32_t *step_slots; /* by hash of step and part: row + 1 */
    size_t step_room;

    const char *notes[BUILD_NOTES_MAX + 1];
    size_t note_count, notes_left;
    uint64_t max_steps;
    struct log *adopted;
};

/* Makes `log` the result: its columns and rows were built elsewhere. log_build_finish sets its path
 * and title alone. */
void log_build_adopt(struct log_build *build, struct log *log);

/* Numbers on the steps of a finished log that begin anew in each epoch; of another log it changes
 * nothing (logs/build_epochs.c). */
TWINSTEP_MUST_USE enum status log_build_number_epochs(struct log_build *build, struct log *log);

/* Makes room for `wanted` elements of `size` bytes in the array that *pointer points to, by
 * doubling, and copies the old ones. */
TWINSTEP_MUST_USE enum status log_build_grow(struct log_build *build, void *pointer, size_t *room,
                                             size_t wanted, size_t size);
/* Converts a quantum to float without ever making it smaller. */
float log_build_round_up(double quantum);
struct build_row *log_build_row_at(const struct log_build *build, size_t row);

#endif

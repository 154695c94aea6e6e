/* SPDX-License-Identifier: Apache-2.0
 * Tables of bars, wherever they stand in a text: Markdown, as model cards have it ("| Training Loss
 * | Epoch | Step |"), tables of databases ("+----+" above and below), and the box characters of a
 * terminal.
 *
 * A table is a header of names, of which one is that of the step, over rows that have as many
 * cells; lines between them that hold nothing but rules ("|---|:---:|", "+----+") are passed over.
 * What stands outside of such a table is no row. A cell that is no number ("No log") is no value.
 */
#include "logs/lines.h"
#include "logs/pairs.h"

#include <inttypes.h>
#include <string.h>

#define CELLS 64

/* A training loss that the Trainer printed had been rounded to four decimals, whatever zeros a
 * table shows behind them. */
static const struct log_rule rules[] = {
    {.source = "Training Loss",
     .name = LOG_LOSS,
     .print = LOG_PRINT_DECIMALS,
     .decimals = 4,
     .windowed = 1},
    LOG_RULES_END(LOG_PRINT_TEXT),
};

struct cells {
    struct log_span cell[CELLS];
    size_t count;
};

/* Returns the length of the bar at the start of the span: '|', or a vertical line of U+2500 to
 * U+257F; 0: there is none. */
static size_t bar_at(struct log_span span) {
    static const char *const bars[] = {"|", "\xe2\x94\x82", "\xe2\x94\x83", "\xe2\x95\x91"};
    for (size_t i = 0; i < COUNT_OF(bars); i++)
        if (log_span_starts(span, bars[i])) return strlen(bars[i]);
    return 0;
}

/* Takes the marks of Markdown off a cell: authors show their best row as "**0.374**". */
static struct log_span without_marks(struct log_span cell) {
    while (cell.length > 2 && memchr("*_`", cell.text[0], 3) != NULL &&
           cell.text[cell.length - 1] == cell.text[0]) {
        cell.text++;
        cell.length -= 2;
    }
    return log_span_trim(cell);
}

/* Cuts a line of cells between bars, the first and the last of which are bars. Returns 0 when it is
 * none. */
static int read_cells(struct log_span line, struct cells *out) {
    struct log_span rest = log_span_trim(line);
    size_t bar = bar_at(rest);
    out->count = 0;
    if (bar == 0) return 0;
    while (rest.length > bar) {
        rest.text += bar;
        rest.length -= bar;
        struct log_span cell = {rest.text, 0};
        while (rest.length > 0 && (bar = bar_at(rest)) == 0)
            cell.length++, rest.text++, rest.length--;
        if (rest.length == 0 || out->count == CELLS) return 0;
        out->cell[out->count++] = without_marks(log_span_trim(cell));
    }
    return out->count >= 2;
}

static int is_step(struct log_span name) {
    static const char many[] = "steps";
    return pairs_is_step(name) || pairs_same_step(name, (struct log_span){many, sizeof many - 1});
}

/* Sets *step to the place of the step's name. Returns 0 when the cells are no header. */
static int read_header(const struct cells *cells, const char *wanted, size_t *step) {
    *step = CELLS;
    for (size_t i = 0; i < cells->count; i++) {
        const struct log_span name = cells->cell[i];
        if (log_span_is_number(name)) return 0;
        const int names = wanted != NULL ? log_span_is(name, wanted) : is_step(name);
        if (names && *step == CELLS) *step = i;
    }
    return *step < CELLS;
}

/* Reads "500", "1,500" or "500.0". */
static int read_step(struct log_span cell, int64_t *step) {
    struct log_number number;
    if (!log_number_read(cell.text, cell.length, &number)) return 0;
    if (!(number.value >= 0.0) || !(number.value < 0x1p62)) return 0;
    *step = (int64_t)number.value;
    return (double)*step == number.value;
}

static int has_value(const struct cells *cells, size_t step) {
    for (size_t i = 0; i < cells->count; i++)
        if (i != step && log_span_is_number(cells->cell[i])) return 1;
    return 0;
}

/* Returns the length of the box character at the start of the span, U+2500 to U+257F; 0: there is
 * none. */
static size_t box_at(struct log_span span) {
    if (!log_span_starts(span, "\xe2\x94") && !log_span_starts(span, "\xe2\x95")) return 0;
    return span.length > 2 && ((unsigned char)span.text[2] & 0xc0) == 0x80 ? 3 : 0;
}

/* Tells whether a line draws the table and holds nothing. */
static int is_rule(struct log_span line) {
    struct log_span rest = log_span_trim(line);
    if (rest.length == 0) return 0;
    while (rest.length > 0) {
        const size_t length = memchr("|+-:= ", rest.text[0], 6) != NULL ? 1 : box_at(rest);
        if (length == 0) return 0;
        rest.text += length;
        rest.length -= length;
    }
    return 1;
}

static int claim(const struct log_source *source) {
    struct log_lines lines;
    struct log_line line;
    struct cells cells;
    size_t step = CELLS, columns = 0;
    int64_t number;
    log_lines_open_head(&lines, source);
    while (log_lines_next(&lines, &line)) {
        if (is_rule(line.span)) continue;
        if (!read_cells(line.span, &cells)) {
            step = CELLS;
        } else if (step < CELLS && cells.count == columns) {
            if (read_step(cells.cell[step], &number) && has_value(&cells, step)) return 1;
        } else if (read_header(&cells, NULL, &step)) {
            columns = cells.count;
        }
    }
    return 0;
}

struct table {
    const struct log_source *source;
    struct log_build *build;
    size_t column[CELLS], columns; /* columns 0: no table is open */
    size_t step;
    size_t tables, left_out;
    uint32_t first_left_out;
};

static enum status open_table(struct table *t, const struct cells *cells, size_t step,
                              uint32_t line) {
    t->columns = cells->count;
    t->step = step;
    t->tables++;
    for (size_t i = 0; i < cells->count; i++) {
        t->column[i] = LOG_COLUMN_IGNORED;
        if (i == step || cells->cell[i].length == 0) continue;
        TRY(log_build_column(t->build, cells->cell[i].text, cells->cell[i].length, rules,
                             &t->column[i]));
        for (size_t j = 0; t->column[i] != LOG_COLUMN_IGNORED && j < i; j++)
            if (t->column[j] == t->column[i])
                FAIL(STATUS_INPUT,
                     "%s:%" PRIu32
                     ": expected each name once in the header, got \"%.*s\" in columns %zu and "
                     "%zu; rename one of them",
                     t->source->name, line,
                     (int)(cells->cell[i].length < 40 ? cells->cell[i].length : 40),
                     cells->cell[i].text, j + 1, i + 1);
    }
    return STATUS_OK;
}

static enum status put_row(struct table *t, const struct cells *cells, uint32_t line) {
    int64_t step;
    if (cells->count != t->columns || !read_step(cells->cell[t->step], &step) ||
        !has_value(cells, t->step)) {
        if (t->left_out++ == 0) t->first_left_out = line;
        return STATUS_OK;
    }
    TRY(log_build_row(t->build, step, line, t->source->part));
    for (size_t i = 0; i < cells->count; i++)
        if (t->column[i] != LOG_COLUMN_IGNORED && log_span_is_number(cells->cell[i]))
            TRY(log_build_text(t->build, t->column[i], cells->cell[i].text, cells->cell[i].length));
    return STATUS_OK;
}

static enum status read(const struct log_source *source, struct log_build *build) {
    struct log_lines lines;
    struct log_line line;
    struct cells cells;
    struct table t = {.source = source, .build = build};
    size_t step;
    log_lines_open(&lines, source, build);
    while (log_lines_next(&lines, &line)) {
        if (is_rule(line.span)) continue;
        if (!read_cells(line.span, &cells)) {
            t.columns = 0;
        } else if (read_header(&cells, log_build_step_source(build), &step)) {
            TRY(open_table(&t, &cells, step, line.number));
        } else if (t.columns > 0 && log_lines_take(&lines, &line)) {
            TRY(put_row(&t, &cells, line.number));
        }
    }
    if (t.left_out > 0)
        TRY(log_build_note(build,
                           "rows without a whole step or any number beside it, or with another "
                           "number of cells than their header, that were left out: %zu, the first "
                           "is line %" PRIu32,
                           t.left_out, t.first_left_out));
    if (t.tables > 1)
        TRY(log_build_note(build,
                           "it holds %zu tables with a column of steps, which are read one "
                           "behind the other",
                           t.tables));
    return log_lines_close(&lines, build);
}

const struct log_reader log_reader_table = {
    .step_base = INT64_MIN,
    .claim = claim,
    .read = read,
    .lines = 1,
    .sign = "|-",
    .shape =
        "a rule below | Step | NAME | .. (--format table --map step=NAME takes another column)"};

/* SPDX-License-Identifier: Apache-2.0
 * The state machine of RFC 4180, and a table of numbers under a header.
 *
 * A record that consists of names only is a new header: Lightning writes one when keys appear while
 * it runs. Invariants: a field is handed out whole or not at all. A record has as many fields as
 * its header, or it is an error that names its line; the last record may be cut where it has no
 * line end and is then left out. */
#include "logs/csv.h"

#include <inttypes.h>
#include <string.h>

#include "logs/names.h"

#define STEP_NONE SIZE_MAX

/* ---- fields ---- */

static char find_separator(const char *at, const char *end) {
    int inside = 0;
    for (; at < end && (inside || *at != '\n'); at++) {
        if (*at == '"') inside = !inside;
        if (!inside && (*at == ',' || *at == '\t' || *at == ';')) return *at;
    }
    return ',';
}

static void count_line(struct log_csv *csv) {
    csv->line += csv->line < UINT32_MAX;
}

static void skip_empty_lines(struct log_csv *csv) {
    while (csv->at < csv->end && (*csv->at == '\n' || *csv->at == '\r'))
        if (*csv->at++ == '\n') count_line(csv);
}

/* Moves behind the bar that a notebook shows above the Trainer's table, and that is copied with it:
 * " [60/60 02:00, Epoch 1/1]". */
static void skip_notebook_bar(struct log_csv *csv) {
    const char *at = csv->at;
    while (at < csv->end && (*at == ' ' || *at == '\n' || *at == '\r'))
        at++;
    const char *const line_end = (const char *)memchr(at, '\n', (size_t)(csv->end - at));
    if (at == csv->end || *at != '[' || line_end == NULL) return;
    const char *const text_end = line_end > at && line_end[-1] == '\r' ? line_end - 1 : line_end;
    const struct log_span line = log_span_trim((struct log_span){at, (size_t)(text_end - at)});
    struct log_span rest = {line.text + 1, line.length - 1};
    int64_t count;
    log_span_blanks(&rest);
    if (!log_span_integer(&rest, &count) || !log_span_take(&rest, "/") ||
        !log_span_integer(&rest, &count) || log_span_after(rest, ", Epoch ").text == NULL ||
        !log_span_ends(line, "]"))
        return;
    for (; csv->at <= line_end; csv->at++)
        if (*csv->at == '\n') count_line(csv);
    skip_empty_lines(csv);
}

void log_csv_open(struct log_csv *csv, const struct log_source *source, size_t length) {
    csv->start = csv->at = (const char *)source->bytes;
    csv->end = csv->at + (length < source->length ? length : source->length);
    csv->line = 1;
    csv->cut = 0;
    skip_notebook_bar(csv);
    csv->separator = find_separator(csv->at, csv->end);
}

/* Reads a quoted field. csv->at stands behind the opening quote before, and behind the closing one
 * after. */
static int read_quoted(struct log_csv *csv, struct log_span *out) {
    const char *start = csv->at;
    int doubled = 0;
    for (; csv->at < csv->end; csv->at++) {
        if (*csv->at == '\n') count_line(csv);
        if (*csv->at != '"') continue;
        if (csv->at + 1 == csv->end || csv->at[1] != '"') break;
        doubled = 1;
        csv->at++;
    }
    if (csv->at == csv->end) {
        csv->cut = 1;
        return 0;
    }
    *out = (struct log_span){start, (size_t)(csv->at++ - start)};
    if (!doubled || out->length > LOG_CSV_FIELD_MAX) return 1;
    size_t kept = 0;
    for (size_t i = 0; i < out->length; i++) {
        csv->unquoted[kept++] = start[i];
        i += start[i] == '"';
    }
    *out = (struct log_span){csv->unquoted, kept};
    return 1;
}

int log_csv_next(struct log_csv *csv, int starts_record, struct log_csv_field *out) {
    if (starts_record) {
        skip_empty_lines(csv);
        if (csv->at == csv->end) return 0;
    }
    struct log_span quoted = {NULL, 0};
    if (csv->at < csv->end && *csv->at == '"') {
        csv->at++;
        if (!read_quoted(csv, &quoted)) return 0;
    }
    const char *start = csv->at;
    while (csv->at < csv->end && *csv->at != csv->separator && *csv->at != '\n')
        csv->at++;
    size_t length = (size_t)(csv->at - start);
    if (length > 0 && start[length - 1] == '\r') length--;
    out->text = quoted.text != NULL ? quoted : log_span_trim((struct log_span){start, length});
    out->open = csv->at == csv->end;
    out->last = out->open || *csv->at == '\n';
    if (!out->open && *csv->at++ == '\n') count_line(csv);
    return 1;
}

/* Columns that may say that a record is of an evaluation, at most; their names are short. */
#define PARTS 4
#define PART_NAME 16

struct table {
    const struct log_source *source;
    struct log_build *build;
    const struct csv_habit *habit;
    struct log_csv csv;
    size_t *columns;        /* (LOG_COLUMNS_MAX) the log's column of each field */
    struct log_span *cells; /* (LOG_COLUMNS_MAX) the fields of the record at hand; "" where a field
                               had doubled quotes */
    size_t fields, step_field;
    char step_name[256];
    int64_t row_step;
    uint8_t *in_row;    /* (LOG_COLUMNS_MAX) 1: the row at hand has a value of that column */
    double *row_values; /* (LOG_COLUMNS_MAX) the value of each column whose in_row is 1 */
    uint8_t *measured;  /* (LOG_COLUMNS_MAX) 1: the field is a loss, a rate or the like */
    uint32_t record_line;
    int has_row;
    size_t part_fields[PARTS], part_count;
    char part_names[PARTS][PART_NAME];
};

/* ---- claims ---- */

int log_csv_claim_header(struct log_csv *csv, size_t *columns,
                         void (*see)(void *self, struct log_span name, size_t index), void *self) {
    struct log_csv_field field;
    *columns = 0;
    do {
        if (!log_csv_next(csv, *columns == 0, &field)) return 0;
        if (log_span_is_number(field.text)) return 0;
        if (see != NULL) see(self, field.text, *columns);
        ++*columns;
    } while (!field.last);
    return *columns >= 2 && !field.open;
}

int log_csv_claim_record(struct log_csv *csv, size_t columns, int *most) {
    struct log_csv_field field;
    size_t count = 0, texts = 0, numbers = 0;
    do {
        if (!log_csv_next(csv, count == 0, &field)) return 0;
        if (log_span_is_number(field.text))
            numbers++;
        else
            texts += field.text.length > 0;
        count++;
    } while (!field.last);
    *most = numbers > texts;
    return numbers > 0 && (count == columns || (count < columns && field.open));
}

/* ---- header ---- */

/* Returns the place of a name among the names of the step, where the lowest is the best; STEP_NONE
 * when it is none of them. */
static size_t step_rank(const struct table *t, struct log_span name) {
    const char *asked = log_build_step_source(t->build);
    if (asked != NULL) return log_span_is(name, asked) ? 0 : STEP_NONE;
    for (size_t i = 0; t->habit->steps[i] != NULL; i++)
        if (log_span_is(name, t->habit->steps[i])) return i;
    return STEP_NONE;
}

static enum status read_name(struct table *t, struct log_span name, size_t *best) {
    const size_t index = t->fields;
    const enum csv_role role =
        t->habit->role == NULL ? CSV_VALUE : t->habit->role(t->habit->self, &name, index);
    if (t->part_count < PARTS && log_may_say_evaluation(name.text, name.length)) {
        memcpy(t->part_names[t->part_count], name.text, name.length);
        t->part_names[t->part_count][name.length] = '\0';
        t->part_fields[t->part_count++] = index;
    }
    const size_t rank = role == CSV_SKIP ? STEP_NONE : step_rank(t, name);
    const struct log_known *known = log_known_name(name.text, name.length);
    t->columns[index] = LOG_COLUMN_IGNORED;
    t->measured[index] = role == CSV_VALUE && known != NULL && !log_name_counts(known->name);
    if (rank < *best || (role == CSV_STEP && *best == STEP_NONE)) {
        *best = rank;
        t->step_field = index;
        t->step_name[0] = '\0';
        if (name.length < sizeof t->step_name) {
            memcpy(t->step_name, name.text, name.length);
            t->step_name[name.length] = '\0';
        }
    }
    if (role == CSV_VALUE && name.length > 0)
        TRY(log_build_column(t->build, name.text, name.length, t->habit->rules,
                             &t->columns[index]));
    return STATUS_OK;
}

/* Two columns of one name would be read as one, and nobody knows which of the two is meant. */
static enum status check_name(const struct table *t, struct log_span name, uint32_t line) {
    for (size_t i = 0; i < t->fields; i++)
        if (t->columns[i] == t->columns[t->fields] && t->columns[i] != LOG_COLUMN_IGNORED)
            FAIL(STATUS_INPUT,
                 "%s:%" PRIu32
                 ": expected each name once in the header, got \"%.*s\" in fields %zu and %zu; "
                 "rename one of them",
                 t->source->name, line, (int)(name.length < 40 ? name.length : 40), name.text,
                 i + 1, t->fields + 1);
    return STATUS_OK;
}

static enum status read_header(struct table *t) {
    struct log_csv_field field;
    size_t best = STEP_NONE;
    const uint32_t line = t->csv.line;
    t->fields = t->part_count = 0;
    t->step_field = STEP_NONE;
    do {
        if (!log_csv_next(&t->csv, t->fields == 0, &field))
            FAIL(STATUS_INPUT, "%s: expected a header of names, got nothing", t->source->name);
        if (t->fields == LOG_COLUMNS_MAX)
            FAIL(STATUS_INPUT, "%s:%" PRIu32 ": expected at most %d columns, got more",
                 t->source->name, t->csv.line, LOG_COLUMNS_MAX);
        TRY(read_name(t, field.text, &best));
        TRY(check_name(t, field.text, line));
        t->fields++;
    } while (!field.last);
    if (t->step_field != STEP_NONE) t->columns[t->step_field] = LOG_COLUMN_IGNORED;
    if (t->step_field == STEP_NONE && log_build_step_source(t->build) != NULL)
        FAIL(STATUS_INPUT, "%s: --map step=%s: expected a column of the header, got none of it",
             t->source->name, log_build_step_source(t->build));
    return STATUS_OK;
}

/* ---- records ---- */

static enum status read_step(const struct table *t, int64_t *out) {
    struct log_number number;
    *out = INT64_MIN;
    if (t->step_field == STEP_NONE) return STATUS_OK;
    const struct log_span cell = t->cells[t->step_field];
    if (cell.length == 0) return STATUS_OK;
    if (!log_number_read(cell.text, cell.length, &number) || !(number.value > -0x1p62) ||
        !(number.value < 0x1p62) || number.value != (double)(int64_t)number.value)
        FAIL(STATUS_INPUT, "%s:%" PRIu32 ": column \"%s\": expected a whole step, got \"%.*s\"",
             t->source->name, t->record_line, t->step_name,
             (int)(cell.length < 40 ? cell.length : 40), cell.text);
    *out = (int64_t)number.value;
    return STATUS_OK;
}

static size_t digits_at(const struct log_span *text, size_t at) {
    size_t count = 0;
    while (at + count < text->length && text->text[at + count] >= '0' &&
           text->text[at + count] <= '9')
        count++;
    return count;
}

/* Tells whether a cell is "2,5051" or "1,00E-05": one comma between digits. */
static int has_decimal_comma(struct log_span cell) {
    const size_t sign = cell.length > 0 && (cell.text[0] == '-' || cell.text[0] == '+');
    const size_t whole = digits_at(&cell, sign), comma = sign + whole;
    if (whole == 0 || comma >= cell.length || cell.text[comma] != ',') return 0;
    const size_t part = digits_at(&cell, comma + 1), end = comma + 1 + part;
    return part > 0 && (end == cell.length || (cell.text[end] | 0x20) == 'e');
}

/* A comma parts thousands in "1,234", which quotes hold together. Between semicolons it parts
 * decimals, and so it does where no three digits stand behind it; then neither "1,904" of the same
 * column is a thousand and more. */
static enum status check_comma(const struct table *t, size_t field) {
    const struct log_span cell = t->cells[field];
    if (!t->measured[field] || !has_decimal_comma(cell)) return STATUS_OK;
    if (t->csv.separator != ';' && log_span_is_number(cell)) return STATUS_OK;
    FAIL(STATUS_INPUT,
         "%s:%" PRIu32
         ": expected a number with a decimal point in field %zu, got \"%.*s\"; export "
         "the table with decimal points and commas or tabs between the fields",
         t->source->name, t->record_line, field + 1, (int)(cell.length < 40 ? cell.length : 40),
         cell.text);
}

/* Reads the value that a field of the record gives its column. Returns 0 where it gives none. */
static int value_of(const struct table *t, size_t field, struct log_number *out) {
    return t->columns[field] != LOG_COLUMN_IGNORED &&
           log_number_read(t->cells[field].text, t->cells[field].length, out);
}

static int same_value(double a, double b) {
    return a == b || (a != a && b != b);
}

/* Tells whether a value of the record differs from what the row at hand already has. An equal value
 * may come again, as an epoch does in every record of Lightning. */
static int contradicts(const struct table *t) {
    struct log_number number;
    for (size_t i = 0; i < t->fields; i++) {
        if (!value_of(t, i, &number) || !t->in_row[t->columns[i]]) continue;
        if (!same_value(number.value, t->row_values[t->columns[i]])) return 1;
    }
    return 0;
}

/* Tells whether a field of the record says that its numbers are of an evaluation. */
static int is_evaluation(const struct table *t) {
    for (size_t i = 0; i < t->part_count; i++) {
        const struct log_span cell = t->cells[t->part_fields[i]];
        const char *const name = t->part_names[i];
        if (log_says_evaluation(name, strlen(name), cell.text, cell.length)) return 1;
    }
    return 0;
}

static enum status put_record(struct table *t) {
    struct log_number number;
    int64_t step;
    const int evaluates = is_evaluation(t);
    TRY(read_step(t, &step));
    for (size_t i = 0; i < t->fields; i++)
        TRY(check_comma(t, i));
    if (!t->habit->merges || !t->has_row || step == INT64_MIN || step != t->row_step ||
        contradicts(t)) {
        TRY(log_build_row(t->build, step, t->record_line, t->source->part));
        if (t->habit->merges) memset(t->in_row, 0, LOG_COLUMNS_MAX);
        t->row_step = step;
        t->has_row = 1;
    }
    for (size_t i = 0; i < t->fields; i++) {
        if (!value_of(t, i, &number)) continue;
        size_t column = t->columns[i];
        if (evaluates) TRY(log_build_evaluation(t->build, column, t->habit->rules, &column));
        if (t->habit->merges) { /* else no record looks at the one before */
            t->in_row[column] = 1;
            t->row_values[column] = number.value;
        }
        TRY(log_build_number(t->build, column, t->cells[i].text, t->cells[i].length, &number));
    }
    return STATUS_OK;
}

/* Reads the fields of one record into t->cells. *out_open says that the last field ends with the
 * text. */
static enum status read_record(struct table *t, size_t *out_count, int *out_open) {
    struct log_csv_field field = {.last = 0};
    size_t count = 0;
    *out_open = 0;
    while (!field.last && log_csv_next(&t->csv, count == 0, &field)) {
        if (count == 0) t->record_line = t->csv.line - (field.last && !field.open);
        if (count < LOG_COLUMNS_MAX) /* a field with doubled quotes is no number */
            t->cells[count] = field.text.text == t->csv.unquoted
                                  ? (struct log_span){field.text.text, 0}
                                  : field.text;
        count++;
        *out_open = field.open;
    }
    *out_count = count;
    return STATUS_OK;
}

static int is_header(const struct table *t, size_t count) {
    if (count == 0 || count > LOG_COLUMNS_MAX || t->step_field == STEP_NONE) return 0;
    int names_step = 0;
    for (size_t i = 0; i < count; i++)
        names_step |= log_span_is(t->cells[i], t->step_name);
    if (!names_step) return 0;
    for (size_t i = 0; i < count; i++)
        if (t->cells[i].length == 0 || log_span_is_number(t->cells[i])) return 0;
    return 1;
}

enum record { RECORD_END = 0, RECORD_CUT, RECORD_HEADER, RECORD_ROW };

/* Reads one record and says what it is. A header is put back, so that read_header finds it. */
static enum status next_record(struct table *t, enum record *out, int *out_open) {
    const struct log_csv before = t->csv;
    size_t count;
    TRY(read_record(t, &count, out_open));
    *out = t->csv.cut || (*out_open && count < t->fields) ? RECORD_CUT
           : count == 0                                   ? RECORD_END
           : is_header(t, count)                          ? RECORD_HEADER
                                                          : RECORD_ROW;
    if (*out == RECORD_HEADER) t->csv = before;
    if (*out == RECORD_ROW && count != t->fields)
        FAIL(STATUS_INPUT, "%s:%" PRIu32 ": expected %zu fields as in the header, got %zu",
             t->source->name, t->record_line, t->fields, count);
    return STATUS_OK;
}

/* Reads the records up to the next header or the end. */
static enum status read_records(struct table *t, enum record *out_last) {
    int open = 0;
    for (;;) {
        TRY(next_record(t, out_last, &open));
        if (*out_last != RECORD_ROW) break;
        TRY(put_record(t));
        log_source_release(t->source, (size_t)(t->csv.at - t->csv.start));
        if (open)
            TRY(log_build_note(
                t->build, "line %" PRIu32 ", the last, has no line end: its last value may be cut",
                t->record_line));
    }
    if (*out_last == RECORD_CUT)
        TRY(log_build_note(t->build, "line %" PRIu32 ", the last, is cut: left out",
                           t->record_line));
    return STATUS_OK;
}

static enum status open_table(const struct log_source *source, struct log_build *build,
                              const struct csv_habit *habit, struct table **out) {
    struct arena *scratch = log_build_scratch(build);
    struct table *t;
    TRY(arena_take(scratch, 1, sizeof *t, "CSV", &t));
    TRY(arena_take(scratch, LOG_COLUMNS_MAX, sizeof *t->columns, "CSV", &t->columns));
    TRY(arena_take(scratch, LOG_COLUMNS_MAX, sizeof *t->cells, "CSV", &t->cells));
    TRY(arena_take(scratch, LOG_COLUMNS_MAX, sizeof *t->in_row, "CSV", &t->in_row));
    TRY(arena_take(scratch, LOG_COLUMNS_MAX, sizeof *t->row_values, "CSV", &t->row_values));
    TRY(arena_take(scratch, LOG_COLUMNS_MAX, sizeof *t->measured, "CSV", &t->measured));
    t->source = source;
    t->build = build;
    t->habit = habit;
    log_csv_open(&t->csv, source, source->length);
    *out = t;
    return STATUS_OK;
}

enum status log_csv_read(const struct log_source *source, struct log_build *build,
                         const struct csv_habit *habit) {
    struct table *t;
    enum record last = RECORD_HEADER;
    TRY(open_table(source, build, habit, &t));
    while (last == RECORD_HEADER) {
        TRY(read_header(t));
        TRY(read_records(t, &last));
    }
    if (t->step_field != STEP_NONE) TRY(log_build_note_step(build, t->step_name));
    return STATUS_OK;
}

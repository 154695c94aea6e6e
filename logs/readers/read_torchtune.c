/* SPDX-License-Identifier: Apache-2.0
 * Text log of torchtune (log_<time>.txt and its standard output): "Step 1 | loss:0.69 lr:2e-05
 * tokens_per_second_per_gpu:1234.5 ".
 *
 * Source of the shape: torchtune/training/metric_logging.py (DiskLogger, StdoutLogger). Numbers are
 * Python's shortest repr. Versions before 0.1 count from 0. log() writes a line of one value and
 * log_dict() a line of many: neighbouring lines of one step are one row, until a name comes again.
 */
#include "logs/lines.h"

#define FIELDS_MAX 128

struct field {
    struct log_span name, value;
};
struct fields {
    struct field field[FIELDS_MAX];
    size_t count;
};

/* Reads "Step 1 | a:1 b:2"; the last colon of a word parts name and value. */
static int read_line(struct log_span line, int64_t *step, struct fields *fields) {
    struct log_span rest = log_span_after(line, "Step ");
    fields->count = 0;
    if (rest.text == NULL || !log_span_integer(&rest, step)) return 0;
    if (!log_span_take(&rest, " | ")) return 0;
    while (rest.length > 0 && fields->count < FIELDS_MAX) {
        const struct log_span word = log_span_word(&rest);
        size_t colon = word.length;
        while (colon > 0 && word.text[colon - 1] != ':')
            colon--;
        const struct field field = {{word.text, colon == 0 ? 0 : colon - 1},
                                    {word.text + colon, word.length - colon}};
        if (field.name.length > 0 && log_span_is_number(field.value))
            fields->field[fields->count++] = field;
    }
    return fields->count > 0;
}

static int claim_line(struct log_span line) {
    struct fields fields;
    int64_t step;
    return read_line(line, &step, &fields) ? 3 : 0;
}

struct row {
    int64_t step;
    size_t columns[FIELDS_MAX];
    size_t count;
};

static int row_has(const struct row *row, const size_t *columns, size_t count) {
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < row->count; j++)
            if (row->columns[j] == columns[i]) return 1;
    return 0;
}

static enum status put_line(struct log_build *build, struct row *row, int64_t step,
                            const struct fields *fields, uint32_t line, uint32_t part) {
    size_t columns[FIELDS_MAX];
    for (size_t i = 0; i < fields->count; i++)
        TRY(log_build_column(build, fields->field[i].name.text, fields->field[i].name.length,
                             log_rules_exact, &columns[i]));
    if (row->step != step || row->count + fields->count > FIELDS_MAX ||
        row_has(row, columns, fields->count)) {
        row->step = step;
        row->count = 0;
        TRY(log_build_row(build, step, line, part));
    }
    for (size_t i = 0; i < fields->count; i++) {
        const struct log_span value = fields->field[i].value;
        row->columns[row->count++] = columns[i];
        TRY(log_build_text(build, columns[i], value.text, value.length));
    }
    return STATUS_OK;
}

static enum status read(const struct log_source *source, struct log_build *build) {
    struct log_lines lines;
    struct log_line line;
    struct fields fields;
    struct row row = {INT64_MIN, {0}, 0};
    int64_t step;
    log_lines_open(&lines, source, build);
    while (log_lines_next(&lines, &line)) {
        if (!read_line(line.span, &step, &fields) || !log_lines_take(&lines, &line)) continue;
        TRY(put_line(build, &row, step, &fields, line.number, source->part));
    }
    return log_lines_close(&lines, build);
}

static const struct log_grammar grammar = {.claim_line = claim_line};
const struct log_reader log_reader_torchtune = {.step_base = INT64_MIN,
                                                .grammar = &grammar,
                                                .read = read,
                                                .sign = "Step ",
                                                .shape = "Step N | NAME:VALUE NAME:VALUE .."};

/* SPDX-License-Identifier: Apache-2.0
 * Console of OLMo-core: a marker "[step=1/5,epoch=1,eta=0:00:12]", then one indented line per
 * metric, " train/CE loss=2.345", until a line that is no metric.
 *
 * Source of the shape: olmo_core/train/callbacks/console_logger.py, utils.py::format_float. Above
 * 1000 it prints the integer part with commas: the number lies in [v, v + 1), so a quantum of 2
 * covers it. Version 3 prints 1e9 and more as 1.234B (T, P, E). Below 1e-4 it prints 1.23E-05. Very
 * old versions print str(), which has a lower-case e and is exact. A 0 is printed as such only when
 * it is one. */
#include "logs/lines.h"

#include <string.h>

static int read_marker(struct log_span line, int64_t *step, int64_t *total) {
    struct log_span rest = log_span_after(line, "[step=");
    *total = 0;
    if (rest.text == NULL || !log_span_integer(&rest, step)) return 0;
    if (!log_span_take(&rest, "/")) return 0;
    if (!log_span_integer(&rest, total)) *total = 0; /* "???" */
    return log_span_starts(log_span_after(rest, ","), "epoch=");
}

/* Reads " group/name with spaces=1,234". */
static int read_metric(struct log_span line, struct log_span *name, struct log_span *value) {
    if (line.length == 0 || (line.text[0] != ' ' && line.text[0] != '\t')) return 0;
    line = log_span_trim(line);
    *name = log_span_until(&line, '=');
    *value = line;
    return name->length > 0 && value->length > 0 && memchr(name->text, '/', name->length) != NULL;
}

static int claim(const struct log_source *source) {
    struct log_lines lines;
    struct log_line line;
    struct log_span name, value;
    int64_t step, total;
    int marked = 0, seen = 0;
    log_lines_open_head(&lines, source);
    while (log_lines_next(&lines, &line)) {
        if (marked && read_metric(line.span, &name, &value)) return 3;
        marked = read_marker(line.span, &step, &total);
        seen |= marked;
    }
    return seen ? 2 : 0;
}

/* Takes the suffix of a number off and returns its factor; 1 when there is none. */
static double take_suffix(struct log_span *text) {
    const char last = text->text[text->length - 1];
    const double factor = last == 'B'   ? 1e9
                          : last == 'T' ? 1e12
                          : last == 'P' ? 1e15
                          : last == 'E' ? 1e18
                                        : 1.0;
    text->length -= factor != 1.0;
    return factor;
}

static double quantum_of(struct log_span text, const struct log_number *number) {
    if (number->value == 0.0 || number->digits >= 15 || memchr(text.text, 'e', text.length) != NULL)
        return 0.0;
    const int whole =
        memchr(text.text, '.', text.length) == NULL && memchr(text.text, 'E', text.length) == NULL;
    return whole ? 2.0 : number->quantum;
}

static enum status put(struct log_build *build, struct log_span name, struct log_span value) {
    const double factor = take_suffix(&value);
    struct log_number number;
    size_t column;
    if (!log_number_read(value.text, value.length, &number)) return STATUS_OK;
    TRY(log_build_column(build, name.text, name.length, log_rules_exact, &column));
    return log_build_value(build, column, factor * number.value,
                           factor * quantum_of(value, &number));
}

static enum status read(const struct log_source *source, struct log_build *build) {
    struct log_lines lines;
    struct log_line line;
    struct log_span name, value;
    int64_t step, total;
    int in_block = 0;
    log_lines_open(&lines, source, build);
    while (log_lines_next(&lines, &line)) {
        if (read_marker(line.span, &step, &total)) {
            in_block = log_lines_take(&lines, &line);
            if (!in_block) continue;
            TRY(log_build_row(build, step, line.number, source->part));
            log_build_max_steps(build, (uint64_t)total);
        } else if (in_block && read_metric(line.span, &name, &value)) {
            if (log_lines_take(&lines, &line)) TRY(put(build, name, value));
        } else {
            in_block = 0;
        }
    }
    return log_lines_close(&lines, build);
}

const struct log_reader log_reader_olmo_core = {
    .step_base = 1,
    .claim = claim,
    .read = read,
    .lines = 1,
    .sign = "[step=",
    .shape = "[step=N/TOTAL,epoch=N,..], then indented lines NAME=VALUE"};

/* SPDX-License-Identifier: Apache-2.0
 * MLflow's file store: one file per metric, RUN/metrics/train/loss, of lines "1795417707633 2.5 5":
 * milliseconds, value, step.
 *
 * Source of the shape: mlflow/store/tracking/file_store.py. Values are Python's repr. A program
 * that gives no step logs all values at step 0, and then there is no row to put them into: an
 * error. */
#include <inttypes.h>
#include <string.h>

#include "logs/lines.h"

/* Milliseconds since 1970 of the year 2001 and later: no step is so large. */
#define TIME_LEAST ((int64_t)1000000000000)

/* Reads a line. Returns 0 when it is none of a metric. */
static int read_line(struct log_span line, struct log_span *value, int64_t *step) {
    struct log_span time = log_span_word(&line);
    int64_t at;
    if (!log_span_integer(&time, &at) || time.length > 0 || at < TIME_LEAST) return 0;
    *value = log_span_word(&line);
    struct log_span last = log_span_word(&line);
    const int negative = log_span_take(&last, "-");
    if (!log_span_is_number(*value) || !log_span_integer(&last, step) || last.length > 0) return 0;
    if (negative) *step = -*step;
    log_span_blanks(&line);
    return line.length == 0;
}

static int claim(const struct log_source *source) {
    struct log_lines lines;
    struct log_line line;
    struct log_span value;
    int64_t step;
    int rows = 0;
    log_lines_open_head(&lines, source);
    while (log_lines_next(&lines, &line)) {
        if (!read_line(line.span, &value, &step)) return 0;
        rows++;
    }
    return rows > 0 ? 3 : 0;
}

/* The metric's name: what the folder said it is, else the end of the path. */
static struct log_span name_of(const struct log_source *source) {
    static const char folder[] = "/metrics/";
    const char *name = source->series != NULL ? source->series : source->name;
    const char *found = source->series != NULL ? NULL : strstr(name, folder);
    const char *slash = strrchr(name, '/');
    if (found != NULL)
        name = found + sizeof folder - 1;
    else if (source->series == NULL && slash != NULL)
        name = slash + 1;
    return (struct log_span){name, strlen(name)};
}

static enum status read(const struct log_source *source, struct log_build *build) {
    const struct log_span name = name_of(source);
    struct log_lines lines;
    struct log_line line;
    size_t column, count = 0, again = 0;
    int64_t last = 0;
    TRY(log_build_column(build, name.text, name.length, log_rules_json, &column));
    log_lines_open(&lines, source, build);
    while (log_lines_next(&lines, &line)) {
        struct log_span value;
        int64_t step;
        if (line.open && count > 0) { /* its step may be cut, and would be another row */
            TRY(log_build_note(build, "%s: the last line has no line end: left out", source->name));
            break;
        }
        if (!read_line(line.span, &value, &step))
            FAIL(STATUS_INPUT,
                 "%s:%" PRIu32 ": expected \"MILLISECONDS VALUE STEP\" of an MLflow metric, got "
                 "other text",
                 source->name, line.number);
        again += count++ > 0 && step == last;
        last = step;
        TRY(log_build_row_of(build, step, line.number, 0));
        TRY(log_build_text(build, column, value.text, value.length));
    }
    if (again > 0 && again + 1 == count && last == 0)
        FAIL(STATUS_INPUT,
             "%s: expected steps, got %zu values at step 0: the program gave MLflow no step",
             source->name, count);
    if (again == 0) return STATUS_OK;
    return log_build_note(build,
                          "%s: %zu values have the step of the value before: the last counts",
                          source->name, again);
}

const struct log_reader log_reader_mlflow = {.step_base = INT64_MIN, .claim = claim, .read = read};

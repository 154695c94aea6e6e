/* SPDX-License-Identifier: Apache-2.0
 * Console lines of torchtitan: "step:  1  loss:  8.04910  grad_norm:  1.2345 memory:  1.11GiB(1.2%)
 *  tps: 1,234  tflops: 1.23  mfu: 0.39%", with or without colours.
 *
 * Source of the shape: torchtitan/components/metrics.py. The step counts from 1. Lines of a
 * validation ("validate step:") are no rows. The learning rate is not printed. */
#include "logs/lines.h"

/* "step:  1  " with "loss:" next; *rest at "loss:". */
static int read_head(struct log_span line, int64_t *step, struct log_span *rest) {
    *rest = log_span_after(line, "step:");
    if (rest->text == NULL) return 0;
    const struct log_span before = {line.text, (size_t)(rest->text - line.text) - 5};
    if (log_span_after(before, "validate").text != NULL) return 0;
    log_span_blanks(rest);
    if (!log_span_integer(rest, step) || !log_span_starts(*rest, "  ")) return 0;
    log_span_blanks(rest);
    return log_span_starts(*rest, "loss:");
}

static int claim(const struct log_source *source) {
    struct log_lines lines;
    struct log_line line;
    struct log_span rest;
    int64_t step;
    log_lines_open_head(&lines, source);
    while (log_lines_next(&lines, &line))
        if (read_head(line.span, &step, &rest))
            return log_span_after(rest, "tps:").text != NULL ||
                           log_span_after(rest, "memory:").text != NULL ||
                           log_span_after(rest, "grad_norm:").text != NULL
                       ? 3
                       : 2;
    return 0;
}

static enum status read_fields(struct log_build *build, struct log_span rest) {
    while (rest.length > 0) {
        struct log_span name = log_span_word(&rest);
        if (name.length < 2 || name.text[name.length - 1] != ':') continue;
        name.length--;
        struct log_span value = log_span_word(&rest);
        if (value.length > 1 && value.text[value.length - 1] == '%') value.length--;
        TRY(log_put_text(build, NULL, name, value));
    }
    return STATUS_OK;
}

static enum status read(const struct log_source *source, struct log_build *build) {
    struct log_lines lines;
    struct log_line line;
    struct log_span rest;
    int64_t step;
    log_lines_open(&lines, source);
    while (log_lines_next(&lines, &line)) {
        if (!read_head(line.span, &step, &rest) || !log_lines_take(&lines, &line)) continue;
        TRY(log_build_row(build, step, line.number, source->part));
        TRY(read_fields(build, rest));
    }
    return log_lines_close(&lines, build);
}

const struct log_reader log_reader_torchtitan = {"torchtitan", "torchtitan console", claim, read,
                                                 1};

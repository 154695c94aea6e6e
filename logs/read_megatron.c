/* SPDX-License-Identifier: Apache-2.0
 * Console lines of Megatron-LM, Megatron-Bridge and Megatron-DeepSpeed:
 * " [time] iteration        1/     100 | consumed samples:            8 | learning rate: 3.9E-07 |
 * global batch size:     8 | lm loss: 1.219037E+01 | loss scale: 1.0 | grad norm: 18.417 | .."
 *
 * Source of the shape: megatron/training/training.py::training_log. A loss average of 0 or less is
 * not printed, losses are means since the last line, skipped and nan iterations count since then,
 * too. Lines of a validation have no "/" behind the iteration and are no rows. */
#include "logs/lines.h"

static const struct log_rule rules[] = {
    {"lm loss", LOG_LOSS, LOG_PRINT_TEXT, 0, 0, 1},
    {NULL, 0, 0, 0, 0, 0},
};

/* "iteration   1/   100 |": *rest behind the bar. */
static int read_head(struct log_span line, int64_t *step, int64_t *total, struct log_span *rest) {
    *rest = log_span_after(line, "iteration ");
    if (rest->text == NULL) return 0;
    log_span_blanks(rest);
    if (!log_span_integer(rest, step)) return 0;
    log_span_blanks(rest);
    if (!log_span_starts(*rest, "/")) return 0;
    rest->text++, rest->length--;
    log_span_blanks(rest);
    if (!log_span_integer(rest, total)) return 0;
    log_span_blanks(rest);
    if (!log_span_starts(*rest, "|")) return 0;
    rest->text++, rest->length--;
    return 1;
}

static int claim(const struct log_source *source) {
    struct log_lines lines;
    struct log_line line;
    struct log_span rest;
    int64_t step, total;
    log_lines_open_head(&lines, source);
    while (log_lines_next(&lines, &line))
        if (read_head(line.span, &step, &total, &rest) &&
            (log_span_after(rest, "elapsed time per iteration").text != NULL ||
             log_span_after(rest, "learning rate:").text != NULL ||
             log_span_after(rest, "consumed samples:").text != NULL))
            return 3;
    return 0;
}

/* A field ends with its bar: one without is cut, unless the line is whole. */
static enum status read_fields(struct log_build *build, struct log_span rest, int open) {
    while (rest.length > 0) {
        const struct log_span before = rest;
        struct log_span value = log_span_until(&rest, '|');
        if (open && value.length == before.length) break;
        const struct log_span name = log_span_trim(log_span_until(&value, ':'));
        TRY(log_put_text(build, rules, name, log_span_trim(value)));
    }
    return STATUS_OK;
}

static enum status read(const struct log_source *source, struct log_build *build) {
    struct log_lines lines;
    struct log_line line;
    struct log_span rest;
    int64_t step, total;
    log_lines_open(&lines, source);
    while (log_lines_next(&lines, &line)) {
        if (!read_head(line.span, &step, &total, &rest) || !log_lines_take(&lines, &line)) continue;
        TRY(log_build_row(build, step, line.number, source->part));
        log_build_max_steps(build, (uint64_t)total);
        TRY(read_fields(build, rest, line.open));
    }
    lines.open_row = 0; /* read_fields left the cut one out */
    return log_lines_close(&lines, build);
}

const struct log_reader log_reader_megatron = {"megatron", "Megatron-LM console", claim, read, 1};

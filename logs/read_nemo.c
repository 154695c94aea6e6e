/* SPDX-License-Identifier: Apache-2.0
 * Console lines of NeMo 2 on Lightning: "Training epoch 0, iteration 1/99 | lr: 3.922e-06 |
 * global_batch_size: 64 | global_step: 1 | reduced_train_loss: 2.008 | consumed_samples: 128".
 *
 * The iteration counts from 0 and "/99" is the last one. Numbers are printed with four significant
 * digits and drop zeros at the end, so 2e-05 stands for 2.000e-05. */
#include "logs/lines.h"

static const struct log_rule rules[] = {
    {"reduced_train_loss", LOG_LOSS, LOG_PRINT_EXACT, 0, 0, 0}, /* EXACT: quanta are set below */
    {"consumed_samples", LOG_SAMPLES, LOG_PRINT_EXACT, 0, 1, 0},
    {"*", LOG_NAMES, LOG_PRINT_EXACT, 0, 0, 0},
    {NULL, 0, 0, 0, 0, 0},
};

static int read_head(struct log_span line, int64_t *step, int64_t *total, struct log_span *rest) {
    *rest = log_span_after(line, "Training epoch ");
    if (rest->text == NULL) return 0;
    *rest = log_span_after(*rest, ", iteration ");
    if (rest->text == NULL || !log_span_integer(rest, step)) return 0;
    *total = -1;
    if (log_span_starts(*rest, "/")) {
        rest->text++, rest->length--;
        if (!log_span_integer(rest, total)) *total = -1;
    }
    *rest = log_span_after(*rest, "| ");
    return rest->text != NULL;
}

static int claim(const struct log_source *source) {
    struct log_lines lines;
    struct log_line line;
    struct log_span rest;
    int64_t step, total;
    log_lines_open_head(&lines, source);
    while (log_lines_next(&lines, &line))
        if (read_head(line.span, &step, &total, &rest)) return 3;
    return 0;
}

static int is_counter(struct log_span name) {
    return log_span_is(name, "global_batch_size") || log_span_is(name, "global_step") ||
           log_span_is(name, "consumed_samples");
}

/* Counters are whole; a whole number of another column may stand for 12.00. */
static enum status put(struct log_build *build, struct log_span name, struct log_span value) {
    struct log_number number;
    size_t column;
    if (is_counter(name)) return log_put_text(build, rules, name, value);
    if (name.length == 0 || !log_number_read(value.text, value.length, &number)) return STATUS_OK;
    TRY(log_build_column(build, name.text, name.length, rules, &column));
    return log_build_digits(build, column, value.text, value.length, 4);
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
        log_build_max_steps(build, (uint64_t)(total + 1));
        while (rest.length > 0) {
            struct log_span value = log_span_until(&rest, '|');
            const struct log_span name = log_span_trim(log_span_until(&value, ':'));
            TRY(put(build, name, log_span_trim(value)));
        }
    }
    return log_lines_close(&lines, build);
}

const struct log_reader log_reader_nemo = {"nemo", "NeMo 2 console", claim, read, 0};

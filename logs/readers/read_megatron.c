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
    {.source = "lm loss", .name = LOG_LOSS, .print = LOG_PRINT_TEXT, .windowed = 1},
    {.source = NULL},
};

/* Reads "iteration 1/ 100 |"; the rest stands behind the bar. */
static int read_head(struct log_span line, struct log_row *out) {
    struct log_span *rest = &out->rest;
    int64_t total;
    *rest = log_span_after(line, "iteration ");
    if (rest->text == NULL) return 0;
    log_span_blanks(rest);
    if (!log_span_integer(rest, &out->step)) return 0;
    log_span_blanks(rest);
    if (!log_span_take(rest, "/")) return 0;
    log_span_blanks(rest);
    if (!log_span_integer(rest, &total)) return 0;
    log_span_blanks(rest);
    out->max_steps = (uint64_t)total;
    return log_span_take(rest, "|");
}

static int claim_line(struct log_span line) {
    struct log_row row;
    return read_head(line, &row) &&
                   (log_span_after(row.rest, "elapsed time per iteration").text != NULL ||
                    log_span_after(row.rest, "learning rate:").text != NULL ||
                    log_span_after(row.rest, "consumed samples:").text != NULL)
               ? 3
               : 0;
}

/* Reads the fields. A field ends with its bar: one without a bar is cut, unless the line is whole.
 */
static enum status read_fields(struct log_build *build, const struct log_row *row) {
    struct log_span rest = row->rest;
    while (rest.length > 0) {
        const struct log_span before = rest;
        struct log_span value = log_span_until(&rest, '|');
        if (row->open && value.length == before.length) break;
        const struct log_span name = log_span_trim(log_span_until(&value, ':'));
        TRY(log_put_text(build, rules, name, log_span_trim(value)));
    }
    return STATUS_OK;
}

static const struct log_grammar grammar = {
    .claim_line = claim_line, .head = read_head, .fields = read_fields, .marked = 1};
const struct log_reader log_reader_megatron = {.step_base = 1,
                                               .grammar = &grammar,
                                               .sign = "iteration ",
                                               .shape = "iteration N/ TOTAL | NAME: VALUE | .."};

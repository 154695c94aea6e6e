/* SPDX-License-Identifier: Apache-2.0
 * Console lines of torchtitan: "step:  1  loss:  8.04910  grad_norm:  1.2345 memory:  1.11GiB(1.2%)
 *  tps: 1,234  tflops: 1.23  mfu: 0.39%", with or without colours.
 *
 * Source of the shape: torchtitan/components/metrics.py. The step counts from 1. Lines of a
 * validation ("validate step:") are no rows. The learning rate is not printed. */
#include "logs/lines.h"

/* Reads "step: 1 " where "loss:" comes next; the rest stands at "loss:". */
static int read_head(struct log_span line, struct log_row *out) {
    struct log_span *rest = &out->rest;
    *rest = log_span_after(line, "step:");
    if (rest->text == NULL) return 0;
    const struct log_span before = {line.text, (size_t)(rest->text - line.text) - 5};
    if (log_span_after(before, "validate").text != NULL) return 0;
    log_span_blanks(rest);
    if (!log_span_integer(rest, &out->step) || !log_span_starts(*rest, "  ")) return 0;
    log_span_blanks(rest);
    return log_span_starts(*rest, "loss:");
}

static int claim_line(struct log_span line) {
    struct log_row row;
    if (!read_head(line, &row)) return 0;
    return log_span_after(row.rest, "tps:").text != NULL ||
                   log_span_after(row.rest, "memory:").text != NULL ||
                   log_span_after(row.rest, "grad_norm:").text != NULL
               ? 3
               : 2;
}

static enum status read_fields(struct log_build *build, const struct log_row *row) {
    struct log_span rest = row->rest;
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

static const struct log_grammar grammar = {
    .claim_line = claim_line, .head = read_head, .fields = read_fields};
const struct log_reader log_reader_torchtitan = {.step_base = 1,
                                                 .grammar = &grammar,
                                                 .sign = "  loss:",
                                                 .shape =
                                                     "step: N  loss: VALUE  grad_norm: VALUE .."};

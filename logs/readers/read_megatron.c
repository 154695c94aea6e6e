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

/* Reads "1/ 100 |", which stands behind the word "iteration"; *rest moves behind it. */
static int read_count(struct log_span *rest, int64_t *step, int64_t *total) {
    log_span_blanks(rest);
    if (!log_span_integer(rest, step)) return 0;
    log_span_blanks(rest);
    if (!log_span_take(rest, "/")) return 0;
    log_span_blanks(rest);
    if (!log_span_integer(rest, total)) return 0;
    log_span_blanks(rest);
    return log_span_take(rest, "|");
}

/* Finds the first "iteration 1/ 100 |" of a line and says how much stands in front of it: perhaps a
 * time, or a head that was torn ("iteration 1[time] iteration 1/ 100 |"). */
static int find_head(struct log_span line, struct log_row *out, size_t *before) {
    static const char word[] = "iteration ";
    int64_t total;
    out->rest = line;
    while ((out->rest = log_span_after(out->rest, word)).text != NULL) {
        *before = (size_t)(out->rest.text - line.text) - (sizeof word - 1);
        if (!read_count(&out->rest, &out->step, &total)) continue;
        out->max_steps = (uint64_t)total;
        return 1;
    }
    return 0;
}

static int read_head(struct log_span line, struct log_row *out) {
    size_t before;
    return find_head(line, out, &before);
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

/* Reads the fields, up to the head of the next row where two stand in one line. Megatron ends each
 * field with a bar, so one without a bar is cut: of "learning rate: 3.9E-07 |" a part reads as 3.9.
 */
static enum status read_fields(struct log_build *build, const struct log_row *row) {
    struct log_span rest = row->rest;
    struct log_row next = {.step = 0};
    size_t before;
    if (find_head(rest, &next, &before)) rest.length = before;
    while (rest.length > 0) {
        const size_t length = rest.length;
        struct log_span value = log_span_until(&rest, '|');
        if (value.length == length) break;
        const struct log_span name = log_span_trim(log_span_until(&value, ':'));
        TRY(log_put_text(build, rules, name, log_span_trim(value)));
    }
    return STATUS_OK;
}

/* A line is torn where it ends before its last bar, holds the heads of two rows, or begins in the
 * middle of a row: the log was cut there, or several processes wrote into one line. */
static int is_torn(struct log_span line) {
    static const char *const fields[] = {
        "consumed samples:", "learning rate:", "lm loss:",
        "loss scale:",       "grad norm:",     "number of skipped iterations:"};
    struct log_row row = {.step = 0}, next = {.step = 0};
    size_t before = 0;
    line = log_span_trim(line);
    if (find_head(line, &row, &before))
        return !log_span_ends(line, "|") || read_head(row.rest, &next) ||
               log_span_after((struct log_span){line.text, before}, "iteration ").text != NULL;
    for (size_t i = 0; i < COUNT_OF(fields); i++) {
        struct log_span rest = log_span_after(line, fields[i]);
        if (rest.text == NULL) continue;
        const size_t length = rest.length;
        const struct log_span value = log_span_until(&rest, '|');
        if (value.length < length && log_span_is_number(log_span_trim(value))) return 1;
    }
    return 0;
}

static const struct log_grammar grammar = {.claim_line = claim_line,
                                           .head = read_head,
                                           .fields = read_fields,
                                           .torn = is_torn,
                                           .marked = 1};
const struct log_reader log_reader_megatron = {.step_base = 1,
                                               .grammar = &grammar,
                                               .sign = "iteration ",
                                               .shape = "iteration N/ TOTAL | NAME: VALUE | .."};

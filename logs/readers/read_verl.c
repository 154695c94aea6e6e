/* SPDX-License-Identifier: Apache-2.0
 * Console lines of verl and of what grew from it (PRIME, verl-agent, DAPO): "step:3 -
 * actor/pg_loss: 0.001 - actor/grad_norm:0.020 - actor/lr:0.000 - critic/score/mean:0.558", with
 * Ray's
 * "(TaskRunner pid=123) " in front.
 *
 * Source of the shape: verl/utils/logger/aggregate_logger.py::concat_dict_to_str. Versions of 2024
 * and early 2025 print %.3f, so an LR is 0.000; later ones print Python's repr, also
 * "np.float64(0.5)". Old names hold a unit: "actor/lr(1e-4):0.005" is an LR of 5e-7. One step is
 * one update of the schedule. A row of a validation ("val-core/..") has the step of the update
 * before; the first trainers for SFT counted updates from 0. */
#include "logs/pairs.h"

#include <string.h>

static const struct log_rule rules_digits[] = {
    {.source = "actor/pg_loss", .name = LOG_LOSS, .print = LOG_PRINT_TEXT},
    {.source = "actor/grad_norm", .name = LOG_GRAD_NORM, .print = LOG_PRINT_TEXT},
    {.source = "actor/lr", .name = LOG_LR_LOGGED, .print = LOG_PRINT_TEXT},
    LOG_RULES_END(LOG_PRINT_TEXT),
};
/* A log with one number of 15 digits prints every number whole. */
static const struct log_rule rules_whole[] = {
    {.source = "actor/pg_loss", .name = LOG_LOSS, .print = LOG_PRINT_EXACT},
    {.source = "actor/grad_norm", .name = LOG_GRAD_NORM, .print = LOG_PRINT_EXACT},
    {.source = "actor/lr", .name = LOG_LR_LOGGED, .print = LOG_PRINT_EXACT},
    LOG_RULES_END(LOG_PRINT_EXACT),
};

/* Takes the next field, up to " - ", off *rest; 0 at the end. *last: it ends with the line. */
static int next_field(struct log_span *rest, struct log_span *name, struct log_span *value,
                      int *last) {
    if (rest->length == 0) return 0;
    const struct log_span behind = log_span_after(*rest, " - ");
    struct log_span field = *rest;
    *last = behind.text == NULL;
    if (!*last) field.length = (size_t)(behind.text - field.text) - 3;
    *rest = behind.text == NULL ? (struct log_span){field.text, 0} : behind;
    size_t colon = field.length;
    while (colon > 0 && field.text[colon - 1] != ':')
        colon--;
    *name = (struct log_span){field.text, colon == 0 ? 0 : colon - 1};
    *value =
        pairs_argument(log_span_trim((struct log_span){field.text + colon, field.length - colon}));
    return 1;
}

/* Reads "step:3 - "; the rest stands behind it. */
static int read_head(struct log_span line, struct log_row *out) {
    struct log_span *rest = &out->rest;
    *rest = log_span_after(line, "step:");
    if (rest->text == NULL) return 0;
    const char *start = rest->text - strlen("step:");
    if (start > line.text && start[-1] != ' ' && start[-1] != '\t') return 0;
    return log_span_integer(rest, &out->step) && log_span_take(rest, " - ");
}

static int claim_line(struct log_span line) {
    struct log_row row;
    struct log_span name, value;
    int last;
    if (!read_head(line, &row) || !next_field(&row.rest, &name, &value, &last)) return 0;
    return name.length > 0 && memchr(name.text, '/', name.length) != NULL &&
                   log_span_is_number(value)
               ? 3
               : 0;
}

/* Returns the unit in brackets at the end of a name, 1e-4 of "actor/lr(1e-4)"; 1 when it has none.
 */
static double unit_of(struct log_span name) {
    struct log_number unit;
    struct log_span rest = name;
    log_span_until(&rest, '(');
    if (rest.length < 2 || name.text[name.length - 1] != ')') return 1.0;
    return log_number_read(rest.text, rest.length - 1, &unit) && unit.value > 0.0 ? unit.value
                                                                                  : 1.0;
}

/* Puts a value whose name holds a unit: the product is rounded once more, so it is not exact. */
static enum status put_scaled(struct log_build *build, struct log_span name, struct log_span value,
                              double unit) {
    static const struct log_rule rates[] = {
        {.source = "actor/lr(1e-4)", .name = LOG_LR_LOGGED, .print = LOG_PRINT_EXACT},
        {.source = "train/lr(1e-3)", .name = LOG_LR_LOGGED, .print = LOG_PRINT_EXACT},
        LOG_RULES_END(LOG_PRINT_EXACT),
    };
    struct log_number number;
    size_t column;
    if (!log_number_read(value.text, value.length, &number)) return STATUS_OK;
    TRY(log_build_column(build, name.text, name.length, rates, &column));
    const double size = number.value < 0.0 ? -number.value : number.value;
    const double rounding = 0x1p-51 * size, quantum = number.digits >= 15 ? 0.0 : number.quantum;
    return log_build_value(build, column, unit * number.value,
                           unit * (quantum > rounding ? quantum : rounding));
}

static enum status put_line(struct log_build *build, const struct log_rule *rules,
                            struct log_span rest) {
    struct log_span name, value;
    int last;
    while (next_field(&rest, &name, &value, &last)) {
        const double unit = unit_of(name);
        if (unit != 1.0)
            TRY(put_scaled(build, name, value, unit));
        else
            TRY(log_put_text(build, rules, name, value));
    }
    return STATUS_OK;
}

static const struct log_rule *choose_rules(struct log_lines *lines,
                                           const struct log_source *source) {
    struct log_line line;
    struct log_row row;
    struct log_span name, value;
    int last;
    log_lines_open(lines, source, NULL);
    for (size_t rows = 0; rows < 16 && log_lines_next(lines, &line);) {
        struct log_number number;
        if (!read_head(line.span, &row)) continue;
        rows++;
        while (next_field(&row.rest, &name, &value, &last))
            if (log_number_read(value.text, value.length, &number) && number.digits >= 15)
                return rules_whole;
    }
    return rules_digits;
}

static enum status read(const struct log_source *source, struct log_build *build) {
    struct log_lines lines;
    struct log_line line;
    struct log_row row;
    const struct log_rule *rules = choose_rules(&lines, source);
    log_lines_open(&lines, source, build);
    while (log_lines_next(&lines, &line)) {
        if (!read_head(line.span, &row) || !log_lines_take(&lines, &line)) continue;
        TRY(log_build_row(build, row.step, line.number, source->part));
        TRY(put_line(build, rules, row.rest));
    }
    return log_lines_close(&lines, build);
}

static const struct log_grammar grammar = {.claim_line = claim_line};
const struct log_reader log_reader_verl = {.step_base = LOG_BASE_OF_UPDATES,
                                           .grammar = &grammar,
                                           .read = read,
                                           .sign = "step:",
                                           .shape = "step:N - GROUP/NAME:VALUE - .."};

/* SPDX-License-Identifier: Apache-2.0
 * Console lines of open-instruct's accelerate scripts (finetune, dpo_tune_cache):
 * "  Step: 3, LR: 5e-07, Loss: 0.69 Aux Loss: 0.01, TPS: 123.4".
 *
 * Source of the shape: open_instruct/dpo_tune_cache.py and finetune.py. Numbers are Python's
 * shortest repr; the loss is a mean since the last line. */
#include "logs/lines.h"

static const struct log_rule rules[] = {
    {.source = "LR", .name = LOG_LR_LOGGED, .print = LOG_PRINT_EXACT},
    {.source = "Loss", .name = LOG_LOSS, .print = LOG_PRINT_EXACT, .windowed = 1},
    {.source = "Train Loss", .name = LOG_LOSS, .print = LOG_PRINT_EXACT, .windowed = 1},
    {.source = "Val Loss", .name = LOG_EVAL_LOSS, .print = LOG_PRINT_EXACT},
    LOG_RULES_END(LOG_PRINT_EXACT),
};

/* Reads "Step: 3, LR:"; the rest stands at "LR:". */
static int read_head(struct log_span line, struct log_row *out) {
    out->rest = log_span_after(line, "Step: ");
    return out->rest.text != NULL && log_span_integer(&out->rest, &out->step) &&
           log_span_take(&out->rest, ", ") && log_span_starts(out->rest, "LR: ");
}

static int claim_line(struct log_span line) {
    struct log_row row;
    return read_head(line, &row) && log_span_after(row.rest, "Loss:").text != NULL ? 3 : 0;
}

/* Returns the name of a field: what stands between the value before it (with its comma and units)
 * and the colon. */
static struct log_span name_of(struct log_span text) {
    while (text.length > 0) {
        struct log_span rest = text;
        log_span_until(&rest, ',');
        if (rest.length == 0) break;
        text = rest;
    }
    return log_span_trim(text);
}

static enum status read_fields(struct log_build *build, const struct log_row *row) {
    struct log_span rest = row->rest;
    while (rest.length > 0) {
        const struct log_span name = name_of(log_span_until(&rest, ':'));
        struct log_span value = log_span_word(&rest);
        if (value.length > 0 && value.text[value.length - 1] == ',') value.length--;
        TRY(log_put_text(build, rules, name, value));
    }
    return STATUS_OK;
}

static const struct log_grammar grammar = {
    .claim_line = claim_line, .head = read_head, .fields = read_fields};
const struct log_reader log_reader_open_instruct = {.step_base = 1,
                                                    .grammar = &grammar,
                                                    .sign = "Step: ",
                                                    .shape = "Step: N, LR: VALUE, Loss: VALUE"};

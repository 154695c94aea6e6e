/* SPDX-License-Identifier: Apache-2.0
 * Console lines of NeMo 2 on Lightning: "Training epoch 0, iteration 1/99 | lr: 3.922e-06 |
 * global_batch_size: 64 | global_step: 1 | reduced_train_loss: 2.008 | consumed_samples: 128".
 *
 * The iteration counts from 0 and "/99" is the last one. Numbers are printed with four significant
 * digits and drop zeros at the end, so 2e-05 stands for 2.000e-05. */
#include "logs/lines.h"

static const struct log_rule rules[] = {
    /* EXACT, because the quanta are set below. */
    {"reduced_train_loss", LOG_LOSS, LOG_PRINT_EXACT, 0, 0, 0},
    {.source = "consumed_samples", .name = LOG_SAMPLES, .print = LOG_PRINT_EXACT, .cumulative = 1},
    LOG_RULES_END(LOG_PRINT_EXACT),
};

static int read_head(struct log_span line, struct log_row *out) {
    struct log_span *rest = &out->rest;
    int64_t last;
    *rest = log_span_after(line, "Training epoch ");
    if (rest->text == NULL) return 0;
    *rest = log_span_after(*rest, ", iteration ");
    if (rest->text == NULL || !log_span_integer(rest, &out->step)) return 0;
    if (log_span_take(rest, "/") && log_span_integer(rest, &last))
        out->max_steps = (uint64_t)last + 1;
    *rest = log_span_after(*rest, "| ");
    return rest->text != NULL;
}

static int is_counter(struct log_span name) {
    return log_span_is(name, "global_batch_size") || log_span_is(name, "global_step") ||
           log_span_is(name, "consumed_samples");
}

/* Puts one value. Counters are whole numbers; a whole number in any other column may stand for
 * 12.00. */
static enum status put(struct log_build *build, struct log_span name, struct log_span value) {
    struct log_number number;
    size_t column;
    if (is_counter(name)) return log_put_text(build, rules, name, value);
    if (name.length == 0 || !log_number_read(value.text, value.length, &number)) return STATUS_OK;
    TRY(log_build_column(build, name.text, name.length, rules, &column));
    return log_build_digits(build, column, value.text, value.length, 4);
}

static enum status read_fields(struct log_build *build, const struct log_row *row) {
    struct log_span rest = row->rest;
    while (rest.length > 0) {
        struct log_span value = log_span_until(&rest, '|');
        const struct log_span name = log_span_trim(log_span_until(&value, ':'));
        TRY(put(build, name, log_span_trim(value)));
    }
    return STATUS_OK;
}

static const struct log_grammar grammar = {.sure = 3, .head = read_head, .fields = read_fields};
const struct log_reader log_reader_nemo = {
    .step_base = 0,
    .grammar = &grammar,
    .sign = "Training epoch ",
    .shape = "Training epoch E, iteration N/LAST | NAME: VALUE | .."};

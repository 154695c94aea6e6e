/* SPDX-License-Identifier: Apache-2.0
 * Console of llm.c: "step 1/18865 | loss 11.009 (+nanz)| norm 15.2 (+nanz)| lr 4.29e-07 | 2000.10
 * ms | 61.1% bf16 MFU | 262144 tok/s", and of its train_gpt2.py ("train loss 5.27").
 *
 * Source of the shape: train_gpt2.cu, train_gpt2.py. The step counts from 1 (that of main.log
 * counts from 0). Fields that start with their number (times, rates) are left out. Many programs
 * print such a step and loss, so a line makes the claim only with what llm.c prints in each: the
 * norm, the LR, the time and the tokens per second. */
#include "logs/lines.h"

static const struct log_rule rules[] = {
    {.source = "loss", .name = LOG_LOSS, .print = LOG_PRINT_TEXT},
    {.source = "train loss", .name = LOG_LOSS, .print = LOG_PRINT_TEXT},
    {.source = "norm", .name = LOG_GRAD_NORM, .print = LOG_PRINT_TEXT},
    {.source = "lr", .name = LOG_LR_LOGGED, .print = LOG_PRINT_TEXT},
    {.source = NULL},
};

static int read_head(struct log_span line, struct log_row *out) {
    struct log_span *rest = &out->rest;
    int64_t total;
    *rest = line;
    if (!log_span_take(rest, "step ")) return 0;
    log_span_blanks(rest);
    if (!log_span_integer(rest, &out->step) || !log_span_take(rest, "/")) return 0;
    if (!log_span_integer(rest, &total) || !log_span_take(rest, " | ")) return 0;
    out->max_steps = (uint64_t)total;
    return log_span_starts(*rest, "loss ") || log_span_starts(*rest, "train loss ");
}

/* Says how sure a line makes the claim. Lines behind the first may lack what the claim asks for. */
static int claim_line(struct log_span line) {
    struct log_row row = {.step = 0};
    const int whole = read_head(line, &row) && log_span_after(line, "| norm ").text != NULL &&
                      log_span_after(line, "| lr ").text != NULL &&
                      log_span_after(line, " ms ").text != NULL &&
                      log_span_after(line, " tok/s").text != NULL;
    return whole ? 3 : 0;
}

/* Reads one field, "train loss 5.27 (+nanz)": the words before the first number are its name. */
static enum status read_field(struct log_build *build, struct log_span field) {
    struct log_number number;
    field = log_span_trim(field);
    struct log_span rest = field;
    for (;;) {
        const struct log_span word = log_span_word(&rest);
        if (word.length == 0) return STATUS_OK;
        if (!log_number_read(word.text, word.length, &number)) continue;
        const struct log_span name = {field.text, (size_t)(word.text - field.text)};
        return log_put_text(build, rules, log_span_trim(name), word);
    }
}

static enum status read_fields(struct log_build *build, const struct log_row *row) {
    struct log_span rest = row->rest;
    while (rest.length > 0)
        TRY(read_field(build, log_span_until(&rest, '|')));
    return STATUS_OK;
}

static const struct log_grammar grammar = {
    .claim_line = claim_line, .head = read_head, .fields = read_fields};
const struct log_reader log_reader_llmc_console = {
    .step_base = 1,
    .grammar = &grammar,
    .sign = " tok/s",
    .shape = "step N/TOTAL | loss VALUE | norm VALUE | lr VALUE | N ms | .. | N tok/s"};

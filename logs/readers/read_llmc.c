/* SPDX-License-Identifier: Apache-2.0
 * main.log of llm.c: "s:0 trl:4.3677 lr:0.000300 norm:1.23", "s:0 tel:4.4", "s:0 eval:0.25".
 *
 * Source of the shape: llmc/logger.h. s counts from 0. An evaluation comes before the update of the
 * same s and joins its row; an evaluation without an update (the last one) is no row. */
#include <string.h>

#include "logs/lines.h"

static const struct log_rule rules[] = {
    {.source = "trl", .name = LOG_LOSS, .print = LOG_PRINT_TEXT},
    {.source = "lr", .name = LOG_LR_LOGGED, .print = LOG_PRINT_TEXT},
    {.source = "norm", .name = LOG_GRAD_NORM, .print = LOG_PRINT_TEXT},
    {.source = "tel", .name = LOG_EVAL_LOSS, .print = LOG_PRINT_TEXT},
    {.source = "eval", .name = LOG_OTHER, .print = LOG_PRINT_TEXT},
    {.source = NULL},
};

enum part { TRL, LR, NORM, TEL, EVAL, PARTS };
static const struct log_span names[PARTS] = {[TRL] = {"trl", 3},
                                             [LR] = {"lr", 2},
                                             [NORM] = {"norm", 4},
                                             [TEL] = {"tel", 3},
                                             [EVAL] = {"eval", 4}};

struct cells {
    struct log_number number[PARTS];
    int has[PARTS];
};

/* Reads "trl:4.3677". Returns 0 for another key, or when it is no number. */
static int read_word(struct log_span word, struct cells *cells) {
    const struct log_span key = log_span_until(&word, ':');
    for (int part = 0; part < PARTS; part++) {
        if (!log_span_is(key, names[part].text)) continue;
        cells->has[part] = log_number_read(word.text, word.length, &cells->number[part]);
        return cells->has[part];
    }
    return 0;
}

/* Reads "s:12 key:value ..". */
static int read_line(struct log_span line, int64_t *step, struct cells *cells) {
    struct log_span rest = line;
    memset(cells, 0, sizeof *cells);
    if (!log_span_take(&rest, "s:")) return 0;
    if (!log_span_integer(&rest, step) || !log_span_starts(rest, " ")) return 0;
    for (;;) {
        const struct log_span word = log_span_word(&rest);
        if (word.length == 0) break;
        if (!read_word(word, cells)) return 0;
    }
    return cells->has[TRL] || cells->has[TEL] || cells->has[EVAL];
}

static int claim_line(struct log_span line) {
    struct cells cells;
    int64_t step;
    return read_line(line, &step, &cells) ? 3 : 0;
}

/* Keeps evaluations until the update of their step comes. */
static void keep_evaluations(struct cells *waiting, int64_t *waiting_step, int64_t step,
                             const struct cells *cells) {
    if (*waiting_step != step) memset(waiting, 0, sizeof *waiting);
    *waiting_step = step;
    for (int part = TEL; part < PARTS; part++) {
        if (!cells->has[part]) continue;
        waiting->has[part] = 1;
        waiting->number[part] = cells->number[part];
    }
}

static enum status put(struct log_build *build, const struct cells *cells) {
    for (int part = 0; part < PARTS; part++) {
        size_t column;
        if (!cells->has[part]) continue;
        TRY(log_build_column(build, names[part].text, names[part].length, rules, &column));
        TRY(log_build_value(build, column, cells->number[part].value, cells->number[part].quantum));
    }
    return STATUS_OK;
}

static enum status read(const struct log_source *source, struct log_build *build) {
    struct log_lines lines;
    struct log_line line;
    struct cells cells, waiting;
    int64_t step, waiting_step = INT64_MIN;
    log_lines_open(&lines, source, build);
    memset(&waiting, 0, sizeof waiting);
    while (log_lines_next(&lines, &line)) {
        if (!read_line(line.span, &step, &cells)) continue;
        keep_evaluations(&waiting, &waiting_step, step, &cells);
        if (!cells.has[TRL] || !log_lines_take(&lines, &line)) continue;
        TRY(log_build_row(build, step, line.number, source->part));
        TRY(put(build, &cells));
        TRY(put(build, &waiting));
        waiting_step = INT64_MIN;
    }
    return log_lines_close(&lines, build);
}

static const struct log_grammar grammar = {.claim_line = claim_line};
const struct log_reader log_reader_llmc = {.step_base = 0,
                                           .grammar = &grammar,
                                           .read = read,
                                           .sign = " trl:",
                                           .shape = "s:N trl:VALUE lr:VALUE norm:VALUE"};

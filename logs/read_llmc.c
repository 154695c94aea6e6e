/* SPDX-License-Identifier: Apache-2.0
 * main.log of llm.c: "s:0 trl:4.3677 lr:0.000300 norm:1.23", "s:0 tel:4.4", "s:0 eval:0.25".
 *
 * Source of the shape: llmc/logger.h. s counts from 0. Evaluations come before the update of the
 * same s: they join its row, and one without an update (the last) is no row. */
#include "logs/lines.h"

static const struct log_rule rules[] = {
    {"trl", LOG_LOSS, LOG_PRINT_TEXT, 0, 0, 0},
    {"lr", LOG_LR_LOGGED, LOG_PRINT_TEXT, 0, 0, 0},
    {"norm", LOG_GRAD_NORM, LOG_PRINT_TEXT, 0, 0, 0},
    {"tel", LOG_EVAL_LOSS, LOG_PRINT_TEXT, 0, 0, 0},
    {"eval", LOG_OTHER, LOG_PRINT_TEXT, 0, 0, 0},
    {NULL, 0, 0, 0, 0, 0},
};

struct parts {
    struct log_span trl, lr, norm, tel, eval;
};

/* "s:12 key:value .."; 0 when a word has another key. */
static int read_line(struct log_span line, int64_t *step, struct parts *parts) {
    struct log_span rest = line;
    *parts = (struct parts){{NULL, 0}, {NULL, 0}, {NULL, 0}, {NULL, 0}, {NULL, 0}};
    if (!log_span_starts(rest, "s:")) return 0;
    rest.text += 2, rest.length -= 2;
    if (!log_span_integer(&rest, step) || !log_span_starts(rest, " ")) return 0;
    for (struct log_span word = log_span_word(&rest); word.length > 0;
         word = log_span_word(&rest)) {
        const struct log_span key = log_span_until(&word, ':');
        struct log_span *value = log_span_is(key, "trl")    ? &parts->trl
                                 : log_span_is(key, "lr")   ? &parts->lr
                                 : log_span_is(key, "norm") ? &parts->norm
                                 : log_span_is(key, "tel")  ? &parts->tel
                                 : log_span_is(key, "eval") ? &parts->eval
                                                            : NULL;
        if (value == NULL) return 0;
        *value = word;
    }
    return parts->trl.length > 0 || parts->tel.length > 0 || parts->eval.length > 0;
}

static int claim(const struct log_source *source) {
    struct log_lines lines;
    struct log_line line;
    struct parts parts;
    int64_t step;
    log_lines_open_head(&lines, source);
    while (log_lines_next(&lines, &line))
        if (read_line(line.span, &step, &parts)) return 3;
    return 0;
}

struct waiting { /* evaluations that wait for the update of their step */
    struct log_span tel, eval;
    int64_t tel_step, eval_step;
};

static enum status put(struct log_build *build, const char *name, size_t length,
                       struct log_span value) {
    const struct log_span column = {name, length};
    if (value.length == 0) return STATUS_OK;
    return log_put_text(build, rules, column, value);
}

static enum status put_row(struct log_build *build, int64_t step, const struct parts *parts,
                           const struct waiting *waiting) {
    TRY(put(build, "trl", 3, parts->trl));
    TRY(put(build, "lr", 2, parts->lr));
    TRY(put(build, "norm", 4, parts->norm));
    if (waiting->tel_step == step) TRY(put(build, "tel", 3, waiting->tel));
    if (waiting->eval_step == step) TRY(put(build, "eval", 4, waiting->eval));
    return STATUS_OK;
}

static enum status read(const struct log_source *source, struct log_build *build) {
    struct log_lines lines;
    struct log_line line;
    struct parts parts;
    struct waiting waiting = {{NULL, 0}, {NULL, 0}, INT64_MIN, INT64_MIN};
    int64_t step;
    log_lines_open(&lines, source);
    while (log_lines_next(&lines, &line)) {
        if (!read_line(line.span, &step, &parts)) continue;
        /* Spans point into the source, not into lines.clean: main.log has no escapes, and a line
         * with escapes is dropped from waiting by the next one. */
        const int stays = line.span.text != lines.clean;
        if (parts.tel.length > 0 && stays) waiting.tel = parts.tel, waiting.tel_step = step;
        if (parts.eval.length > 0 && stays) waiting.eval = parts.eval, waiting.eval_step = step;
        if (parts.trl.length == 0 || !log_lines_take(&lines, &line)) continue;
        TRY(log_build_row(build, step, line.number, source->part));
        TRY(put_row(build, step, &parts, &waiting));
        waiting.tel_step = waiting.eval_step = INT64_MIN;
    }
    return log_lines_close(&lines, build);
}

const struct log_reader log_reader_llmc = {"llmc", "llm.c main.log", claim, read, 0};

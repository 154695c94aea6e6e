/* SPDX-License-Identifier: Apache-2.0
 * Rows as CSV and JSONL; series as torchtitan's golden text, Megatron's golden values and NeMo-RL's
 * tags. Steps are written 1-based.
 *
 * Invariant: what a format cannot hold is refused and never dropped silently. Which columns there
 * are is the caller's choice. */
#include "logs/export.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "logs/export_number.h"

struct tag { /* what a tool calls a quantity of ours */
    int32_t name;
    const char *tag;
};

static const struct tag megatron_tags[] = {
    {LOG_LOSS, "lm loss"},
    {LOG_LR_LOGGED, "learning-rate"},
    {LOG_GRAD_NORM, "grad-norm"},
    {LOG_PARAM_NORM, "params-norm"},
    {LOG_LOSS_SCALE, "loss-scale"},
    {LOG_GLOBAL_BATCH, "batch-size"},
    {LOG_SAMPLES, "consumed-samples"},
    {0, NULL},
};
static const struct tag nemo_rl_tags[] = {
    {LOG_LOSS, "train/loss"},
    {LOG_LR_LOGGED, "train/lr"},
    {LOG_GRAD_NORM, "train/grad_norm"},
    {LOG_REWARD_CHOSEN, "train/rewards_chosen_mean"},
    {LOG_REWARD_REJECTED, "train/rewards_rejected_mean"},
    {LOG_REWARD_ACCURACY, "train/accuracy"},
    {LOG_TOKENS, "train/global_valid_toks"},
    {0, NULL},
};

static const char *tag_of(const struct tag *tags, const struct log_column *column) {
    for (; tags->tag != NULL; tags++)
        if (tags->name == column->name) return tags->tag;
    return column->source;
}

/* ---- texts ---- */

static void write_csv_name(const char *name, FILE *out) {
    if (strpbrk(name, ",\"\r\n;\t") == NULL) {
        fputs(name, out);
        return;
    }
    putc('"', out);
    for (; *name != '\0'; name++) {
        if (*name == '"') putc('"', out);
        putc(*name, out);
    }
    putc('"', out);
}

/* Quotes and backslashes are all that needs an escape: names hold no control characters (clean_name
 * in logs/build.c). */
static void write_json_name(const char *name, FILE *out) {
    putc('"', out);
    for (; *name != '\0'; name++) {
        if (*name == '"' || *name == '\\') putc('\\', out);
        putc(*name, out);
    }
    putc('"', out);
}

/* ---- rows ---- */

static const char *step_name(const struct log *log) {
    return log->step_name == NULL ? "step" : log->step_name;
}

static void write_csv_head(const struct log *log, FILE *out) {
    fputs(step_name(log), out);
    for (size_t c = 0; c < log->column_count; c++) {
        putc(',', out);
        write_csv_name(log->columns[c].source, out);
    }
    putc('\n', out);
}

static void write_csv_row(const struct log *log, const struct export_style *styles, size_t row,
                          FILE *out) {
    char text[EXPORT_TEXT];
    if (log->step[row] > 0) fprintf(out, "%" PRId64, log->step[row]);
    for (size_t c = 0; c < log->column_count; c++) {
        putc(',', out);
        if (!log_has(&log->columns[c], row)) continue;
        export_number(&log->columns[c], row, &styles[c], text);
        fputs(text, out);
    }
    putc('\n', out);
}

static void write_jsonl_row(const struct log *log, const struct export_style *styles, size_t row,
                            FILE *out) {
    char text[EXPORT_TEXT];
    const char *comma = "{";
    if (log->step[row] > 0) {
        fprintf(out, "{\"%s\": %" PRId64, step_name(log), log->step[row]);
        comma = ", ";
    }
    for (size_t c = 0; c < log->column_count; c++) {
        if (!log_has(&log->columns[c], row)) continue;
        export_number(&log->columns[c], row, &styles[c], text);
        fputs(comma, out);
        write_json_name(log->columns[c].source, out);
        fprintf(out, ": %s", text);
        comma = ", ";
    }
    fputs("}\n", out);
}

static enum status check_names(const struct log *log) {
    for (size_t c = 0; c < log->column_count; c++)
        if (strcmp(log->columns[c].source, step_name(log)) == 0)
            FAIL(STATUS_INPUT,
                 "%s: expected no column \"%s\" beside the steps, got one: map it "
                 "with --map step=%s",
                 log->path, step_name(log), step_name(log));
    return STATUS_OK;
}

static enum status write_rows(const struct log *log, const char *format, FILE *out) {
    const int json = strcmp(format, "jsonl") == 0;
    struct arena arena = ARENA_EMPTY;
    struct export_style *styles;
    TRY(check_names(log));
    TRY(arena_take(&arena, log->column_count, sizeof *styles, "styles", &styles));
    for (size_t c = 0; c < log->column_count; c++)
        styles[c] = export_style_of(log, &log->columns[c], json);
    if (!json) write_csv_head(log, out);
    for (size_t row = 0; row < log->rows; row++)
        if (json)
            write_jsonl_row(log, styles, row, out);
        else
            write_csv_row(log, styles, row, out);
    arena_close(&arena);
    return STATUS_OK;
}

/* ---- series ---- */

/* Checks that the steps of a column rise: a form that names values by step cannot hold one step
 * twice. */
static enum status check_series(const struct log *log, const struct log_column *column,
                                const char *format, size_t *out_count) {
    int64_t last = 0;
    *out_count = 0;
    for (size_t i = 0; i < log->rows; i++) {
        if (!log_has(column, i)) continue;
        if (log->step[i] <= last)
            FAIL(STATUS_INPUT,
                 "%s: expected rising steps in column \"%s\", got %" PRId64 " behind %" PRId64
                 ": %s holds one value per step; export it as csv or jsonl",
                 log->path, column->source, log->step[i], last, format);
        last = log->step[i];
        ++*out_count;
    }
    return STATUS_OK;
}

static enum status write_golden(const struct log *log, const char *format, FILE *out) {
    const struct log_column *loss = log_column_of(log, LOG_LOSS);
    size_t count;
    if (loss == NULL)
        FAIL(STATUS_INPUT, "%s: expected a loss for torchtitan's golden text, got a log without",
             log->path);
    TRY(check_series(log, loss, format, &count));
    const struct export_style style = export_style_of(log, loss, 0);
    for (size_t i = 0; i < log->rows; i++) {
        char text[EXPORT_TEXT];
        if (!log_has(loss, i)) continue;
        export_number(loss, i, &style, text);
        fprintf(out, "%" PRId64 " %s\n", log->step[i], text);
    }
    return STATUS_OK;
}

/* Writes {"1": x, "2": y}. NaN and infinity stand in quotes, as Megatron writes NaN. */
static void write_steps(const struct log *log, const struct log_column *column, FILE *out) {
    const struct export_style style = export_style_of(log, column, 1);
    const char *comma = "";
    putc('{', out);
    for (size_t i = 0; i < log->rows; i++) {
        char text[EXPORT_TEXT];
        if (!log_has(column, i)) continue;
        export_number(column, i, &style, text);
        const char *quote = column->value[i] - column->value[i] == 0.0 ? "" : "\"";
        fprintf(out, "%s\"%" PRId64 "\": %s%s%s", comma, log->step[i], quote, text, quote);
        comma = ", ";
    }
    putc('}', out);
}

static int64_t least_stride(const struct log *log, const struct log_column *column,
                            int64_t *out_first, int64_t *out_last) {
    int64_t stride = 0;
    *out_first = *out_last = 0;
    for (size_t i = 0; i < log->rows; i++) {
        if (!log_has(column, i)) continue;
        const int64_t gap = log->step[i] - *out_last;
        if (*out_first == 0)
            *out_first = log->step[i];
        else if (stride == 0 || gap < stride)
            stride = gap;
        *out_last = log->step[i];
    }
    return stride == 0 ? 1 : stride;
}

static enum status write_series(const struct log *log, const char *format, FILE *out) {
    const int golden = strcmp(format, "megatron") == 0;
    const struct tag *tags = golden ? megatron_tags : nemo_rl_tags;
    const char *comma = "{";
    for (size_t c = 0; c < log->column_count; c++) {
        const struct log_column *column = &log->columns[c];
        size_t count;
        int64_t first, last;
        TRY(check_series(log, column, format, &count));
        fprintf(out, "%s\n    ", comma);
        write_json_name(tag_of(tags, column), out);
        fputs(": ", out);
        if (golden) {
            const int64_t stride = least_stride(log, column, &first, &last);
            fprintf(out,
                    "{\"start_step\": %" PRId64 ", \"end_step\": %" PRId64
                    ", \"step_interval\": %" PRId64 ", \"values\": ",
                    first, last, stride);
        }
        write_steps(log, column, out);
        if (golden) putc('}', out);
        comma = ",";
    }
    fputs("\n}\n", out);
    return STATUS_OK;
}

/* ---- the table ---- */

static const struct log_export_format formats[] = {
    {"csv", "a header, then one row per update", write_rows},
    {"jsonl", "one object per update", write_rows},
    {"torchtitan", "torchtitan's golden text: step and loss", write_golden},
    {"megatron", "Megatron's golden values, JSON", write_series},
    {"nemo-rl", "NeMo-RL's JSON of tags and steps", write_series},
    {.name = NULL},
};

const struct log_export_format *log_export_formats(void) {
    return formats;
}

enum status log_export(const struct log *log, const char *format, FILE *out) {
    for (const struct log_export_format *f = formats; f->name != NULL; f++) {
        if (strcmp(f->name, format) != 0) continue;
        TRY(f->write(log, format, out));
        if (fflush(out) != 0 || ferror(out)) FAIL(STATUS_IO, "cannot write: %s", strerror(errno));
        return STATUS_OK;
    }
    FAIL(STATUS_INPUT, "expected csv, jsonl, torchtitan, megatron or nemo-rl, got \"%s\"", format);
}

/* SPDX-License-Identifier: Apache-2.0
 * Console of MosaicML's Composer (llm-foundry): a marker, "[batch=3/20]:" or
 * "[epoch=1][batch=3/5]:", and under it one line per metric, " Train loss/train/total: 8.4213".
 *
 * Source of the shape: composer/loggers/console_logger.py at 02c872e4. Numbers are printed with
 * four decimals, LRs as well. The marker counts batches, those of an epoch, samples or tokens, by
 * the unit of max_duration. Where it counts no batches, the update is "Train time/batch", the
 * number of batches in front of this one, and 1. Results of an evaluation ("[Eval batch=..", " Eval
 * NAME: VALUE") are no rows. */
#include "logs/lines.h"

static const struct log_rule rules[] = {
    {.source = "loss/train/total", .name = LOG_LOSS, .print = LOG_PRINT_TEXT},
    {.source = "l2_norm/grad/global", .name = LOG_GRAD_NORM, .print = LOG_PRINT_TEXT},
    LOG_RULES_END(LOG_PRINT_TEXT),
};

struct marker {
    int64_t step, total; /* of updates; INT64_MIN and 0: it does not say */
};

/* Reads "[batch=3/20]:", "[epoch=1][batch=3/5]:", "[token=4096/1000000]:". */
static int read_marker(struct log_span line, struct marker *out) {
    static const char *const units[] = {"[batch=", "[sample=", "[token=", "[iteration="};
    struct log_span rest = log_span_trim(line);
    int64_t epoch = 0, count, total = 0;
    *out = (struct marker){INT64_MIN, 0};
    if (log_span_take(&rest, "[epoch=") &&
        (!log_span_integer(&rest, &epoch) || !log_span_take(&rest, "]")))
        return 0;
    for (size_t i = 0; i < COUNT_OF(units); i++) {
        if (!log_span_take(&rest, units[i])) continue;
        if (!log_span_integer(&rest, &count)) return 0;
        if (log_span_take(&rest, "/") && !log_span_integer(&rest, &total)) return 0;
        if (!log_span_is(log_span_trim(rest), "]:")) return 0;
        if (i > 0 || epoch > (int64_t)1 << 30 || total > (int64_t)1 << 30) return 1;
        if (epoch == 0) *out = (struct marker){count, total};
        if (epoch > 0 && (epoch == 1 || total > 0)) out->step = (epoch - 1) * total + count;
        return 1;
    }
    return 0;
}

/* Reads " Train NAME: VALUE". */
static int read_metric(struct log_span line, struct log_span *name, struct log_span *value) {
    struct log_span rest = log_span_trim(line);
    if (!log_span_take(&rest, "Train ")) return 0;
    *name = log_span_until(&rest, ':');
    *value = log_span_trim(rest);
    return name->length > 0 && value->length > 0;
}

static int claim(const struct log_source *source) {
    struct log_lines lines;
    struct log_line line;
    struct log_span name, value;
    struct marker marker;
    int marked = 0;
    log_lines_open_head(&lines, source);
    while (log_lines_next(&lines, &line)) {
        if (marked && read_metric(line.span, &name, &value)) return 3;
        marked = read_marker(line.span, &marker);
    }
    return 0;
}

struct block { /* of one marker */
    struct marker marker;
    int open, has_row;
    uint32_t line;
};

static enum status put_metric(struct log_build *build, struct block *block, uint32_t part,
                              struct log_span name, struct log_span value) {
    int64_t before;
    struct log_span count = value;
    if (!block->has_row && block->marker.step == INT64_MIN && log_span_is(name, "time/batch") &&
        log_span_integer(&count, &before) && count.length == 0)
        block->marker.step = before + 1;
    if (!block->has_row) { /* "time/epoch" may stand in front of "time/batch" */
        if (block->marker.step == INT64_MIN) return STATUS_OK;
        TRY(log_build_row(build, block->marker.step, block->line, part));
        log_build_max_steps(build, (uint64_t)block->marker.total);
        block->has_row = 1;
    }
    return log_put_text(build, rules, name, value);
}

static enum status read(const struct log_source *source, struct log_build *build) {
    struct log_lines lines;
    struct log_line line;
    struct log_span name, value;
    struct block block = {.open = 0};
    size_t unknown = 0;
    log_lines_open(&lines, source, build);
    while (log_lines_next(&lines, &line)) {
        struct marker marker;
        if (read_marker(line.span, &marker)) {
            unknown += block.open && !block.has_row;
            block = (struct block){.marker = marker, .line = line.number};
            block.open = log_lines_take(&lines, &line);
        } else if (block.open && read_metric(line.span, &name, &value)) {
            if (log_lines_take(&lines, &line))
                TRY(put_metric(build, &block, source->part, name, value));
        } else if (block.open) {
            unknown += !block.has_row;
            block.open = 0;
        }
    }
    unknown += block.open && !block.has_row;
    if (unknown > 0)
        TRY(log_build_note(build, "blocks that do not say their update were left out: %zu",
                           unknown));
    return log_lines_close(&lines, build);
}

const struct log_reader log_reader_composer = {
    .step_base = 1,
    .claim = claim,
    .read = read,
    .lines = 1,
    .sign = "[batch=",
    .shape = "[batch=N/TOTAL]:, then indented lines Train NAME: VALUE"};

/* SPDX-License-Identifier: Apache-2.0
 * The progress lines of DeepSpeed: "[time] [INFO] [logging.py:96:log_dist] [Rank 0] step=10,
 * skipped=0, lr=[1e-05, 1e-05], mom=[(0.9, 0.999)]".
 *
 * Source of the shape: deepspeed/runtime/engine.py::_report_progress. No loss; numbers are Python's
 * repr; the learning rates of further groups are left out. Other frameworks print these lines
 * among their own, so the claim is no more than "likely". */
#include "logs/lines.h"

static const struct log_rule rules[] = {
    {"lr", LOG_LR_LOGGED, LOG_PRINT_EXACT, 0, 0, 0},
    {"skipped", LOG_SKIPPED, LOG_PRINT_EXACT, 0, 1, 0},
    {NULL, 0, 0, 0, 0, 0},
};

struct progress {
    int64_t step;
    struct log_span skipped, lr;
};

static int read_line(struct log_span line, struct progress *out) {
    struct log_span rest = log_span_after(line, "step=");
    if (rest.text == NULL || !log_span_integer(&rest, &out->step)) return 0;
    if (!log_span_starts(rest, ", skipped=")) return 0;
    rest.text += 10, rest.length -= 10;
    out->skipped = log_span_until(&rest, ',');
    if (!log_span_starts(rest, " lr=")) return 0;
    rest.text += 4, rest.length -= 4;
    if (log_span_starts(rest, "[")) rest.text++, rest.length--;
    out->lr = (struct log_span){rest.text, 0};
    while (out->lr.length < rest.length && rest.text[out->lr.length] != ',' &&
           rest.text[out->lr.length] != ']')
        out->lr.length++;
    return out->lr.length > 0 && out->lr.length < rest.length;
}

static int claim(const struct log_source *source) {
    struct log_lines lines;
    struct log_line line;
    struct progress progress;
    log_lines_open_head(&lines, source);
    while (log_lines_next(&lines, &line))
        if (read_line(line.span, &progress)) return 2;
    return 0;
}

static enum status read(const struct log_source *source, struct log_build *build) {
    static const struct log_span lr = {"lr", 2}, skipped = {"skipped", 7};
    struct log_lines lines;
    struct log_line line;
    struct progress progress;
    log_lines_open(&lines, source);
    while (log_lines_next(&lines, &line)) {
        if (!read_line(line.span, &progress) || !log_lines_take(&lines, &line)) continue;
        TRY(log_build_row(build, progress.step, line.number, source->part));
        TRY(log_put_text(build, rules, lr, log_span_trim(progress.lr)));
        TRY(log_put_text(build, rules, skipped, log_span_trim(progress.skipped)));
    }
    lines.open_row = 0; /* a rate counts only with the mark behind it */
    return log_lines_close(&lines, build);
}

const struct log_reader log_reader_deepspeed = {"deepspeed", "DeepSpeed progress lines", claim,
                                                read, 1};

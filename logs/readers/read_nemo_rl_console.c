/* SPDX-License-Identifier: Apache-2.0
 * Console of NeMo-RL: a marker "========== Step 3/96 ==========", and under "Training Results:" one
 * line per metric, "  * Loss: 0.6931" with a bullet for the star.
 *
 * Source of the shape: nemo_rl/algorithms/dpo.py, sft.py, rm.py, grpo.py. Numbers are printed with
 * four decimals; the LR is not printed. Inside an epoch the step starts anew at 1, and "/96" is the
 * number of batches of an epoch, but for a run that ends before its first epoch does: so update =
 * 96 (epoch - 1) + step. Results of a validation, and times, are no values. */
#include "logs/lines.h"

#include <string.h>

#define BULLET "\xe2\x80\xa2 "

static const struct log_rule rules[] = {
    {.source = "Loss", .name = LOG_LOSS, .print = LOG_PRINT_TEXT},
    {.source = "loss", .name = LOG_LOSS, .print = LOG_PRINT_TEXT},
    {.source = "accuracy", .name = LOG_REWARD_ACCURACY, .print = LOG_PRINT_TEXT},
    {.source = "rewards_chosen_mean", .name = LOG_REWARD_CHOSEN, .print = LOG_PRINT_TEXT},
    {.source = "rewards_rejected_mean", .name = LOG_REWARD_REJECTED, .print = LOG_PRINT_TEXT},
    LOG_RULES_END(LOG_PRINT_TEXT),
};

/* Reads "===== WORD 3/96 =====". */
static int read_marker(struct log_span line, const char *word, int64_t *number, int64_t *total) {
    struct log_span rest = log_span_after(line, "===== ");
    return rest.text != NULL && log_span_take(&rest, word) && log_span_integer(&rest, number) &&
           log_span_take(&rest, "/") && log_span_integer(&rest, total) &&
           log_span_starts(rest, " =====");
}

/* Reads a metric, "  * NAME: VALUE". A value with a unit behind it is none. */
static int read_metric(struct log_span line, struct log_span *name, struct log_span *value) {
    struct log_span rest = log_span_trim(line);
    if (!log_span_take(&rest, BULLET)) return 0;
    *name = log_span_until(&rest, ':');
    *value = log_span_trim(rest);
    return name->length > 0 && value->length > 0;
}

static int is_results(struct log_span line) {
    return log_span_after(line, "Training Results:").text != NULL;
}

static int claim(const struct log_source *source) {
    struct log_lines lines;
    struct log_line line;
    struct log_span name, value;
    int64_t step, total;
    int marked = 0, results = 0;
    log_lines_open_head(&lines, source);
    while (log_lines_next(&lines, &line)) {
        if (marked && results && read_metric(line.span, &name, &value)) return 3;
        marked |= read_marker(line.span, "Step ", &step, &total);
        results = is_results(line.span);
    }
    return 0;
}

struct place {
    int64_t epoch, step, total; /* epoch 0: the log has none */
};

/* Starts the row of the step at hand. Where a later epoch shows that "/96" counts its batches, the
 * step goes on from epoch to epoch. */
static enum status begin_row(struct log_build *build, const struct place *at, uint32_t line,
                             uint32_t part) {
    int64_t step = at->step;
    if (at->epoch > 1 && at->total > 0 && at->epoch < ((int64_t)1 << 31) &&
        at->total < ((int64_t)1 << 31))
        step += (at->epoch - 1) * at->total;
    if (at->epoch == 0) log_build_max_steps(build, (uint64_t)at->total);
    return log_build_row(build, step, line, part);
}

static enum status read(const struct log_source *source, struct log_build *build) {
    struct log_lines lines;
    struct log_line line;
    struct log_span name, value;
    struct place at = {0, INT64_MIN, 0};
    int64_t epochs;
    int in_block = 0;
    log_lines_open(&lines, source, build);
    while (log_lines_next(&lines, &line)) {
        if (read_marker(line.span, "Epoch ", &at.epoch, &epochs) ||
            read_marker(line.span, "Step ", &at.step, &at.total)) {
            in_block = 0;
        } else if (is_results(line.span) && at.step != INT64_MIN) {
            in_block = log_lines_take(&lines, &line);
            if (in_block) TRY(begin_row(build, &at, line.number, source->part));
        } else if (in_block && read_metric(line.span, &name, &value)) {
            if (log_lines_take(&lines, &line)) TRY(log_put_text(build, rules, name, value));
        } else {
            in_block = 0;
        }
    }
    return log_lines_close(&lines, build);
}

const struct log_reader log_reader_nemo_rl_console = {
    .step_base = 1,
    .claim = claim,
    .read = read,
    .lines = 1,
    .sign = "Training Results",
    .shape = "==== Step N/TOTAL ====, then Training Results: and lines NAME: VALUE with a bullet"};

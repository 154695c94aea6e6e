/* SPDX-License-Identifier: Apache-2.0
 * The progress lines of DeepSpeed: "[time] [INFO] [logging.py:96:log_dist] [Rank 0] step=10,
 * skipped=0, lr=[1e-05, 1e-05], mom=[(0.9, 0.999)]".
 *
 * Source of the shape: deepspeed/runtime/engine.py::_report_progress. The lines hold no loss.
 * Numbers are Python's repr, and the learning rates of further groups are left out. Other
 * frameworks print these lines among their own, so the claim is no more than "likely". */
#include "logs/lines.h"

static const struct log_rule rules[] = {
    {.source = "lr", .name = LOG_LR_LOGGED, .print = LOG_PRINT_EXACT},
    {.source = "skipped", .name = LOG_SKIPPED, .print = LOG_PRINT_EXACT, .cumulative = 1},
    {.source = NULL},
};

/* Parts "0, lr=[1e-05, 1e-05], ..". Returns 0 when the first rate does not end. */
static int part_fields(struct log_span rest, struct log_span *skipped, struct log_span *lr) {
    *skipped = log_span_until(&rest, ',');
    if (!log_span_take(&rest, " lr=")) return 0;
    log_span_take(&rest, "[");
    *lr = (struct log_span){rest.text, 0};
    while (lr->length < rest.length && rest.text[lr->length] != ',' && rest.text[lr->length] != ']')
        lr->length++;
    return lr->length > 0 && lr->length < rest.length;
}

/* Reads "step=10, skipped="; the rest stands behind it. */
static int read_head(struct log_span line, struct log_row *out) {
    struct log_span skipped, lr;
    out->rest = log_span_after(line, "step=");
    return out->rest.text != NULL && log_span_integer(&out->rest, &out->step) &&
           log_span_take(&out->rest, ", skipped=") && part_fields(out->rest, &skipped, &lr);
}

static enum status read_fields(struct log_build *build, const struct log_row *row) {
    static const struct log_span lr_name = {"lr", 2}, skipped_name = {"skipped", 7};
    struct log_span skipped, lr;
    part_fields(row->rest, &skipped, &lr);
    TRY(log_put_text(build, rules, lr_name, log_span_trim(lr)));
    return log_put_text(build, rules, skipped_name, log_span_trim(skipped));
}

static const struct log_grammar grammar = {
    .sure = 2, .head = read_head, .fields = read_fields, .marked = 1};
const struct log_reader log_reader_deepspeed = {.step_base = 1,
                                                .grammar = &grammar,
                                                .sign = "skipped=",
                                                .shape = "step=N, skipped=N, lr=[VALUE], .."};

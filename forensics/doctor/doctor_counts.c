/* SPDX-License-Identifier: Apache-2.0
 * Checks of numbers of updates, samples and tokens. docs/FORENSICS.md lists them.
 *
 * Invariant: a counter is compared only within one part of the log. */
#include "base/real.h"
#include "forensics/doctor/doctor_check.h"

static enum status past_max_steps(struct doctor *doctor) {
    const uint64_t last = doctor_last_update(doctor), most = doctor->log->max_steps;
    if (most == 0) return doctor_untestable(doctor, "the log does not say its total of updates");
    if (last <= most) return STATUS_OK;
    size_t row = 0;
    while (doctor->log->step[row] != (int64_t)last)
        row++;
    TRY(doctor_found(doctor, "floor_vs_ceil_steps", DOCTOR_CERTAIN, row,
                     "The log has update %llu, but its own total is %llu.",
                     (unsigned long long)last, (unsigned long long)most));
    TRY(doctor_evidence(doctor, "%s", word_place(doctor->log, row).text));
    return doctor_explain(doctor, "both numbers stand in the log",
                          "The schedule was made for the total: see what LR it gives past its end "
                          "(a cosine rises again). The roundings of updates per epoch differ.");
}

/* Counts the updates that are missing to the next whole epoch at the end of a complete run. */
static enum status short_epochs(struct doctor *doctor) {
    const struct series *epoch = &doctor->series[LOG_EPOCH];
    if (epoch->count < 2) return doctor_untestable(doctor, "fewer than 2 epochs printed");
    const struct series_point *last = &epoch->points[epoch->count - 1];
    if (doctor->log->max_steps == 0 || last->update != doctor->log->max_steps)
        return doctor_untestable(doctor, "the log does not say that the run is complete");
    if (!(last->value > 0.0)) return doctor_untestable(doctor, "the last epoch is not above 0");
    const double per_epoch = (double)last->update / last->value;
    const double whole = (double)(uint64_t)(last->value + 0.5);
    const double missing = (whole - last->value) * per_epoch;
    const double slack = 0.5 * last->quantum * per_epoch;
    /* A run with few updates per epoch ends anywhere by chance; 50 was chosen so that one missing
     * update is at most 2 % of an epoch. */
    if (per_epoch < 50.0 || whole < 1.0) return STATUS_OK;
    if (missing - slack < 0.5 || missing + slack > whole + 0.5) return STATUS_OK;
    TRY(doctor_found(doctor, "floor_vs_ceil_steps", DOCTOR_POSSIBLE, last->row,
                     "The run ends about %s updates before %s whole epochs: the last micro-batches "
                     "of each epoch make no update.",
                     word_about(missing).text, word_about(whole).text));
    TRY(doctor_evidence_column(doctor, LOG_EPOCH, last));
    TRY(doctor_evidence(doctor, "updates per epoch: %s", word_about(per_epoch).text));
    return doctor_explain(doctor, "a total that was set by hand may end there by chance",
                          "Compare ceil(batches / accumulation) with floor: older transformers and "
                          "torchtune round down.");
}

static enum status samples(struct doctor *doctor) {
    const struct series *total = &doctor->series[LOG_SAMPLES];
    size_t checked = 0;
    for (size_t i = 1; i < total->count; i++) {
        const struct series_point *point = &total->points[i];
        const struct series_point *batch =
            series_in_row(&doctor->series[LOG_GLOBAL_BATCH], point->row);
        if (batch == NULL || point->update != point[-1].update + 1 || point->part != point[-1].part)
            continue;
        const double gap = point->value - point[-1].value - batch->value;
        if (!real_finite_f64(gap)) continue;
        checked++;
        if (real_abs_f64(gap) < 0.5 || point->quantum > 1.0) continue;
        TRY(doctor_found(doctor, "samples_inconsistent", DOCTOR_CERTAIN, point->row,
                         "The counter of samples does not grow by the batch size."));
        TRY(doctor_evidence_column(doctor, LOG_SAMPLES, point - 1));
        TRY(doctor_evidence_column(doctor, LOG_SAMPLES, point));
        TRY(doctor_evidence_column(doctor, LOG_GLOBAL_BATCH, batch));
        return doctor_explain(
            doctor, "all three numbers stand in the log",
            "A schedule that counts samples advances by the counter, not by the batch.");
    }
    return checked > 0 ? STATUS_OK : doctor_untestable(doctor, "no two neighbouring updates");
}

/* ---- tokens ---- */

struct tokens {
    size_t count;
    double low, high;
    const struct series_point *least;
};

static struct tokens tokens_per_update(const struct doctor *doctor) {
    const struct log_column *column = log_column_of(doctor->log, LOG_TOKENS);
    const struct series *series = &doctor->series[LOG_TOKENS];
    struct tokens tokens = {0, 0.0, 0.0, NULL};
    for (size_t i = column->cumulative ? 1 : 0; i < series->count; i++) {
        const struct series_point *point = &series->points[i];
        double value = point->value;
        if (column->cumulative) {
            if (point->update != point[-1].update + 1 || point->part != point[-1].part) continue;
            value -= point[-1].value;
        }
        if (tokens.count == 0 || value < tokens.low) {
            tokens.low = value;
            tokens.least = point;
        }
        if (tokens.count == 0 || value > tokens.high) tokens.high = value;
        tokens.count++;
    }
    return tokens;
}

static enum status token_counts(struct doctor *doctor) {
    const struct tokens tokens = tokens_per_update(doctor);
    if (tokens.count < 3) return doctor_untestable(doctor, "fewer than 3 updates with tokens");
    if (tokens.low < 0.5 && tokens.high > 0.5) {
        TRY(doctor_found(doctor, "update_without_tokens", DOCTOR_LIKELY, tokens.least->row,
                         "An update has no token while others have up to %s.",
                         word_number(tokens.high).text));
        TRY(doctor_evidence_column(doctor, LOG_TOKENS, tokens.least));
        return doctor_explain(
            doctor, "a counter that is not updated would show the same",
            "Look at the labels of this batch: truncation or masking may leave none, "
            "and a mean over none is NaN or 0.");
    }
    if (!(tokens.high > tokens.low)) return STATUS_OK;
    TRY(doctor_remark(doctor, "tokens_vary", tokens.least->row,
                      "Tokens per update vary from %s to %s: with several micro-batches or "
                      "processes a mean of means differs from the mean over tokens.",
                      word_number(tokens.low).text, word_number(tokens.high).text));
    TRY(doctor_evidence_column(doctor, LOG_TOKENS, tokens.least));
    return doctor_explain(doctor, "", "See by which number the loss is divided (mean_of_means).");
}

const struct doctor_check doctor_count_checks[] = {
    {"past_max_steps", "updates do not exceed the log's own total", {LOG_OTHER}, past_max_steps},
    {"floor_vs_ceil_steps", "a complete run ends with a whole epoch", {LOG_EPOCH}, short_epochs},
    {"samples_inconsistent",
     "samples grow by the batch size",
     {LOG_SAMPLES, LOG_GLOBAL_BATCH},
     samples},
    {"token_counts", "every update has tokens", {LOG_TOKENS}, token_counts},
    {NULL, NULL, {LOG_OTHER}, NULL}};

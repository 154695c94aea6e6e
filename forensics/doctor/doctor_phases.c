/* SPDX-License-Identifier: Apache-2.0
 * Checks of the order in which a recording saw the phases of each update: a gradient that is
 * clipped before it is unscaled, and one that is not cleared. Only a recording is asked.
 *
 * Invariant: a phase that no update shows is none that could be missing. */
#include "determinism/trace.h"
#include "forensics/doctor/doctor_check.h"

void doctor_options_order(struct doctor_options *options, const struct trace_run *run) {
    uint64_t open = 0; /* the update that stepped, and whose gradient nobody has cleared yet */
    for (uint64_t i = 0; i < run->updates && run->plan.foreign != NULL; i++) {
        const struct record *record = trace_row(run, i);
        const uint64_t update = record->step;
        const int64_t step = trace_phase_place(run, record, "optimize"),
                      zero = trace_phase_place(run, record, "zero"),
                      clip = trace_phase_place(run, record, "clip"),
                      unscale = trace_phase_place(run, record, "unscale"),
                      backward = trace_phase_place(run, record, "backward");
        if (clip >= 0 && unscale >= 0) {
            options->scaled++;
            if (clip < unscale && options->clipped_early++ == 0) options->clipped_first = update;
        }
        options->recorded |= step >= 0;
        options->cleared += zero >= 0;
        /* What a loop clears before its backward it clears in the next update. */
        if (zero >= 0 && (backward < 0 || zero < backward)) open = 0;
        if (backward < 0) continue;
        if (open != 0 && options->kept++ == 0) options->kept_first = open;
        open = step >= 0 && zero <= backward ? update : 0;
    }
}

static size_t row_of_update(const struct doctor *doctor, uint64_t update) {
    for (size_t i = 0; i < doctor->log->rows; i++)
        if (doctor->log->step[i] == (int64_t)update) return i;
    return SIZE_MAX;
}

static enum status clip_order(struct doctor *doctor) {
    const struct doctor_options *const seen = doctor->options;
    if (seen->scaled == 0)
        return doctor_untestable(doctor, "no update both unscales and clips its gradient");
    if (seen->clipped_early == 0) return STATUS_OK;
    TRY(doctor_found(doctor, "clip_before_unscale", DOCTOR_LIKELY,
                     row_of_update(doctor, seen->clipped_first),
                     "The gradient was clipped before it was unscaled in %llu of %llu updates, so "
                     "the clip saw the loss scale times the norm.",
                     (unsigned long long)seen->clipped_early, (unsigned long long)seen->scaled));
    TRY(doctor_evidence(doctor, "update %llu: phase clip comes before phase unscale",
                        (unsigned long long)seen->clipped_first));
    return doctor_explain(doctor, "a loss scale of 1 makes no difference",
                          "Call scaler.unscale_(optimizer) before clip_grad_norm_: else max_norm "
                          "is held against a norm that is some ten thousand times too large, and "
                          "what is left after unscaling is as many times too small.");
}

static enum status gradient_cleared(struct doctor *doctor) {
    const struct doctor_options *const seen = doctor->options;
    if (seen->cleared == 0) return doctor_untestable(doctor, "no update shows that it clears");
    if (seen->kept == 0) return STATUS_OK;
    TRY(doctor_found(doctor, "gradient_not_cleared", DOCTOR_LIKELY,
                     row_of_update(doctor, seen->kept_first),
                     "Behind %llu update%s the gradient was not cleared, so the next update's has "
                     "it added.",
                     (unsigned long long)seen->kept, seen->kept == 1 ? "" : "s"));
    TRY(doctor_evidence(doctor,
                        "update %llu steps, and no zero_grad comes before the next backward",
                        (unsigned long long)seen->kept_first));
    TRY(doctor_evidence(doctor, "updates that clear: %llu", (unsigned long long)seen->cleared));
    return doctor_explain(doctor, "gradients that are set to None by hand are not seen",
                          "Call optimizer.zero_grad() once for each optimizer.step().");
}

const struct doctor_check doctor_phase_checks[] = {
    {"clip_order", "gradients are unscaled before they are clipped", {LOG_OTHER}, clip_order},
    {"gradient_cleared", "gradients are cleared behind each step", {LOG_OTHER}, gradient_cleared},
    {NULL, NULL, {LOG_OTHER}, NULL}};

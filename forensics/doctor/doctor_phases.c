/* SPDX-License-Identifier: Apache-2.0
 * Checks of the order in which a recording saw the phases of each update: a gradient that is
 * clipped before it is unscaled, and one that is not cleared; and of how often its optimizer
 * counted. Only a recording is asked.
 *
 * Invariant: a phase that no update shows is none that could be missing. */
#include "determinism/trace.h"
#include "forensics/doctor/doctor_check.h"

/* Counts the pairs of updates one behind the other between which the optimizer's count is known,
 * and those in which it moved by two or more. */
static void count_steps(struct doctor_options *options, const struct trace_run *run) {
    uint64_t update = 0;
    int64_t count = -1;
    for (uint64_t i = 0; i < run->updates; i++) {
        const struct record *const record = trace_row(run, i);
        const int64_t now = record->integers[INTEGER_OPTIMIZER_T], moved = now - count;
        if (count >= 0 && now >= 0 && record->step == update + 1) {
            options->counted++;
            if (moved >= 2 && options->stepped_often++ == 0) {
                options->stepped_first = record->step;
                options->stepped_by = (uint64_t)moved;
                options->stepped_to = (uint64_t)now;
            }
        }
        update = record->step;
        count = now;
    }
}

void doctor_options_order(struct doctor_options *options, const struct trace_run *run) {
    if (run->plan.foreign != NULL) count_steps(options, run);
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

static enum status steps_counted(struct doctor *doctor) {
    const struct doctor_options *const seen = doctor->options;
    if (seen->counted == 0) return doctor_untestable(doctor, "no count of the optimizer's steps");
    if (seen->stepped_often == 0) return STATUS_OK;
    TRY(doctor_found(doctor, "optimizer_steps_often", DOCTOR_POSSIBLE,
                     row_of_update(doctor, seen->stepped_first),
                     "In %llu of %llu updates the optimizer counted two steps or more.",
                     (unsigned long long)seen->stepped_often, (unsigned long long)seen->counted));
    TRY(doctor_evidence(doctor,
                        "its count (optimizer_t) is %llu at update %llu, and was %llu at the "
                        "update before",
                        (unsigned long long)seen->stepped_to,
                        (unsigned long long)seen->stepped_first,
                        (unsigned long long)(seen->stepped_to - seen->stepped_by)));
    return doctor_explain(doctor,
                          "a loop that calls update() of the recorder once for several steps, and "
                          "one that steps twice on purpose (SAM), count so, too",
                          "Call optimizer.step() once for each update: another step takes the same "
                          "gradient once more.");
}

const struct doctor_check doctor_phase_checks[] = {
    {"clip_order", "gradients are unscaled before they are clipped", {LOG_OTHER}, clip_order},
    {"gradient_cleared", "gradients are cleared behind each step", {LOG_OTHER}, gradient_cleared},
    {"steps_counted", "the optimizer counts one step for each update", {LOG_OTHER}, steps_counted},
    {NULL, NULL, {LOG_OTHER}, NULL}};

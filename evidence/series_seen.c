/* SPDX-License-Identifier: Apache-2.0
 * Compares how far arrays have numbers with how far runs have rows. NaN stands for a number that
 * was not written, and for one that there cannot be; rows tell the two apart. */
#include "evidence/series_seen.h"

#include <math.h>

#include "evidence/judge.h"

/* The last update, up to `updates`, of which any row of the array has a number; 0: none. */
static uint64_t last_number(const struct trace_array *array, uint64_t updates) {
    const int flat = array->plan.rank == 1;
    const uint64_t columns = array->plan.shape[flat ? 0 : 1],
                   rows = flat ? 1 : array->plan.shape[0];
    for (uint64_t step = updates < columns ? updates : columns; step > 0; step--)
        for (uint64_t row = 0; row < rows; row++)
            if (!isnan(trace_value(array, row * columns + step - 1))) return step;
    return 0;
}

static void note(const struct trace_image *image, const char *path, uint64_t updates,
                 struct series_lack *out, uint32_t *count) {
    const struct trace_array *const array = trace_array_of(image, path);
    if (array == NULL) return;
    const uint64_t last = last_number(array, updates);
    if (last < updates) out[(*count)++] = (struct series_lack){path, last + 1, updates};
}

/* Whether the LR of some update of the run was read back. Where it is read, steps are counted. */
static int reads_back(const struct trace_run *run) {
    for (uint64_t i = run->updates; i > 0; i--) {
        const struct record *const record = trace_row(run, i - 1);
        for (uint32_t g = 0; g < run->plan.shape.groups; g++)
            if (!isnan(record->groups[g][GROUP_LR_READBACK])) return 1;
    }
    return 0;
}

/* The arrays have a row for each arm, which are trained side by side. */
static void note_steps(const struct trace_image *image, struct series_lack *out, uint32_t *count) {
    static const char *const arms[] = {"baseline", "test"};
    uint64_t updates = 0;
    int counted = 0;
    for (size_t i = 0; i < COUNT_OF(arms); i++) {
        const char *const id = trace_attribute_of(image, "", arms[i]);
        const struct trace_run *const run = id == NULL ? NULL : trace_run_of(image, id);
        if (run == NULL) continue;
        if (run->updates > updates) updates = run->updates;
        counted |= reads_back(run);
    }
    if (!counted) return;
    note(image, STEPS_MEANT_PATH, updates, out, count);
    note(image, STEPS_LOST_PATH, updates, out, count);
}

/* The distance of weights that are no numbers any more is none, either. */
static void note_response(const struct trace_image *image, struct series_lack *out,
                          uint32_t *count) {
    const char *const baseline = trace_attribute_of(image, "", "baseline");
    const struct trace_pair *const pair =
        baseline == NULL ? NULL : judge_pair(image, baseline, "twin");
    if (pair == NULL || pair->updates == 0) return;
    if (isnan(trace_pair_row(pair, pair->updates - 1)->reals[PAIR_DISTANCE])) return;
    note(image, RESPONSE_PATH, pair->updates, out, count);
}

enum status series_lacking(const struct trace_image *image, struct series_lack out[SERIES_LACKS],
                           uint32_t *out_count) {
    *out_count = 0;
    if (image->complete || image->writer != NULL) return STATUS_OK;
    note_steps(image, out, out_count);
    note_response(image, out, out_count);
    return trace_rows_status(image);
}

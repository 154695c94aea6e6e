/* SPDX-License-Identifier: Apache-2.0
 * Reads the row of counts of one run, and refuses a row that no run can have written. */
#include "evidence/products_seen.h"

#include <math.h>
#include <string.h>

#include "scenarios/scenario.h"

enum status products_text(const double row[PRODUCTS_COLUMNS], const char *mode, struct arena *arena,
                          const char **out) {
    char *text;
    *out = "";
    if (!(row[PRODUCTS_OURS] > 0.0)) return STATUS_OK;
    TRY(arena_format(arena, &text,
                     "%.0f of %.0f products of mode %s were computed by the kernel of invariant: "
                     "cublasLt has no algorithm without a split of k for %.0f x %.0f with %.0f "
                     "terms%s",
                     row[PRODUCTS_OURS], row[PRODUCTS_ALL], mode, row[PRODUCTS_M], row[PRODUCTS_N],
                     row[PRODUCTS_K], row[PRODUCTS_OURS] > 1.0 ? " (the first of them)" : ""));
    *out = text;
    return STATUS_OK;
}

/* The mode of a run's numerics, "deterministic" for instance, from its configuration. */
static enum status mode_of(const struct trace_run *run, struct arena *arena, char **out) {
    size_t length;
    const char *const word = config_text_value(run->plan.configuration, "numerics.mode", &length);
    return arena_text(arena, word == NULL ? "" : word, length, out);
}

static int is_sound(const double *row) {
    for (int i = 0; i < PRODUCTS_COLUMNS; i++)
        if (!(row[i] >= 0.0 && row[i] <= 0x1p53) || row[i] != (double)(uint64_t)row[i]) return 0;
    return row[PRODUCTS_OURS] <= row[PRODUCTS_ALL];
}

enum status products_line(const struct trace_image *image, const char *run, struct arena *arena,
                          const char **out) {
    const struct trace_array *const array = trace_array_of(image, PRODUCTS_PATH);
    char *mode;
    *out = "";
    if (array == NULL) return STATUS_OK;
    if (array->plan.rank != 2 || array->plan.shape[0] != image->run_count ||
        array->plan.shape[1] != PRODUCTS_COLUMNS)
        FAIL(STATUS_INPUT, "trace: /" PRODUCTS_PATH ": expected %u x %u values", image->run_count,
             (unsigned)PRODUCTS_COLUMNS);
    for (uint32_t i = 0; i < image->run_count; i++) {
        const double *const row = array->values + (size_t)i * PRODUCTS_COLUMNS;
        if (strcmp(image->runs[i].plan.id, run) != 0 || isnan(row[PRODUCTS_ALL])) continue;
        if (!is_sound(row))
            FAIL(STATUS_INPUT,
                 "trace: /" PRODUCTS_PATH ": expected counts in the row of %s, got %.17g of %.17g",
                 run, row[PRODUCTS_OURS], row[PRODUCTS_ALL]);
        TRY(mode_of(&image->runs[i], arena, &mode));
        return products_text(row, mode, arena, out);
    }
    return STATUS_OK;
}

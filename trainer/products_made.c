/* SPDX-License-Identifier: Apache-2.0
 * Adds up what a run's models counted, and says it. */
#include "trainer/products_made.h"

#include <math.h>
#include <string.h>

#define MODE_KEY "\nnumerics.mode: "

static void add(struct library_count *to, const struct library_count *from) {
    if (to->ours == 0) memcpy(to->first, from->first, sizeof to->first);
    to->products += from->products;
    to->ours += from->ours;
}

void products_of_run(const struct run *run, double out[PRODUCTS_COLUMNS]) {
    const struct run_reference *const reference = run->reference;
    struct library_count sum = run->model.products;
    int counted = run->model.call.library != NULL;
    if (reference != NULL) {
        add(&sum, &reference->model.products);
        counted = counted || reference->model.call.library != NULL;
    }
    for (int i = 0; i < PRODUCTS_COLUMNS; i++)
        out[i] = (double)NAN;
    if (!counted) return;
    out[PRODUCTS_ALL] = (double)sum.products;
    out[PRODUCTS_OURS] = (double)sum.ours;
    for (int i = 0; i < 3; i++)
        out[PRODUCTS_M + i] = (double)sum.first[i];
}

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

/* "deterministic" of a resolved configuration's text. */
static enum status mode_of(const struct trace_run *run, struct arena *arena, char **out) {
    const char *const text = run->plan.configuration;
    const char *const at = text == NULL ? NULL : strstr(text, MODE_KEY);
    const char *const word = at == NULL ? "" : at + strlen(MODE_KEY);
    return arena_format(arena, out, "%.*s", (int)strcspn(word, "\n"), word);
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

/* SPDX-License-Identifier: Apache-2.0
 * Compares phases by name, then the activations or tensors that the differing phase writes. */
#include "determinism/first.h"

#include <string.h>

#include "determinism/trace.h"

static int digest_differs(const uint8_t *a, const uint8_t *b) {
    return memcmp(a, b, RECORD_DIGEST_BYTES) != 0;
}

/* Two digests that were both taken, and differ. */
static int taken_differ(const uint8_t *a, const uint8_t *b) {
    return record_has_digest(a) && record_has_digest(b) && digest_differs(a, b);
}

static int find_name(const char *const *names, uint32_t count, const char *name) {
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0) return (int)i;
    return -1;
}

/* The first phase, in the order of run a, that both ran and whose digests differ. */
static const char *find_phase(const struct trace_run_plan *a, const struct record *x,
                              const struct trace_run_plan *b, const struct record *y) {
    for (uint32_t i = 0; i < a->shape.phases; i++) {
        const int other = find_name(b->phases, b->shape.phases, a->phases[i]);
        if (other < 0 || !record_has_digest(x->phases[i]) || !record_has_digest(y->phases[other]))
            continue;
        if (digest_differs(x->phases[i], y->phases[other])) return a->phases[i];
    }
    return "";
}

static const char *find_site(const struct trace_run_plan *a, const struct record *x,
                             const struct trace_run_plan *b, const struct record *y) {
    for (uint32_t i = 0; i < a->shape.sites && i < b->shape.sites; i++)
        if (digest_differs(x->sites[i], y->sites[i])) return a->sites[i];
    return "";
}

/* Backward runs from the head to the embedding, so for gradients the last tensor of the table comes
 * first. */
static const char *find_tensor(const struct trace_run_plan *a, const struct record *x,
                               const struct trace_run_plan *b, const struct record *y,
                               enum record_tensor_digest which) {
    const uint32_t count =
        a->shape.tensors < b->shape.tensors ? a->shape.tensors : b->shape.tensors;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t t = which == TENSOR_DIGEST_GRADIENT ? count - 1 - i : i;
        if (taken_differ(x->tensor_digests[t][which], y->tensor_digests[t][which]))
            return a->tensors[t];
    }
    return "";
}

/* Finds the phase of a foreign run by what it must have written, where nobody took its digest. */
static void find_written(const struct trace_run_plan *a, const struct record *x,
                         const struct trace_run_plan *b, const struct record *y,
                         struct first_difference *out) {
    if (taken_differ(x->digests[DIGEST_BATCH], y->digests[DIGEST_BATCH])) {
        out->phase = "fetch";
        return;
    }
    const double loss[2] = {x->reals[REAL_LOSS], y->reals[REAL_LOSS]};
    if (loss[0] < loss[1] || loss[0] > loss[1]) { /* one that is no number may not be recorded */
        out->phase = "forward";
        return;
    }
    out->tensor = find_tensor(a, x, b, y, TENSOR_DIGEST_GRADIENT);
    out->phase = "backward";
    if (out->tensor[0] != '\0') return;
    out->tensor = find_tensor(a, x, b, y, TENSOR_DIGEST_PARAMETER);
    out->phase =
        out->tensor[0] != '\0' || digest_differs(x->digests[DIGEST_LR], y->digests[DIGEST_LR])
            ? "optimize"
            : "";
}

void first_find(const struct trace_run_plan *a, const struct record *x,
                const struct trace_run_plan *b, const struct record *y,
                struct first_difference *out) {
    out->phase = find_phase(a, x, b, y);
    out->tensor = "";
    if (strcmp(out->phase, "forward") == 0) out->tensor = find_site(a, x, b, y);
    if (strcmp(out->phase, "backward") == 0 || strcmp(out->phase, "reduce") == 0)
        out->tensor = find_tensor(a, x, b, y, TENSOR_DIGEST_GRADIENT);
    if (strcmp(out->phase, "optimize") == 0)
        out->tensor = find_tensor(a, x, b, y, TENSOR_DIGEST_PARAMETER);
    if (out->phase[0] == '\0' && a->foreign != NULL && b->foreign != NULL)
        find_written(a, x, b, y, out);
}

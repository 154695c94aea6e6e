/* SPDX-License-Identifier: Apache-2.0
 * Gathers the figures of tensors into parts. Parts come in the order in which their first tensor is
 * met, walking from the last tensor to the first as the backward pass does. So layers come in that
 * order, too, and what rises along their list grows towards layer 0. */
#include "experiment/noise/noise_parts.h"

#include <stdio.h>
#include <string.h>

#define LAYERS "model.layers."
#define LAYER "layer "

/* Splits "model.layers.3.self_attn.q_proj.weight" into layer "layer 3" and op "self_attn.q_proj".
 */
static void name_parts(const char *tensor, char layer[64], char op[64]) {
    static const char end[] = ".weight";
    const int inside = strncmp(tensor, LAYERS, strlen(LAYERS)) == 0;
    const char *at = tensor + (inside ? strlen(LAYERS) : 0);
    const size_t digits = inside ? strspn(at, "0123456789") : 0;
    if (digits > 0) snprintf(layer, 64, LAYER "%.*s", (int)digits, at);
    at += digits + (at[digits] == '.' && digits > 0);
    size_t length = strlen(at);
    if (length > strlen(end) && strcmp(at + length - strlen(end), end) == 0) length -= strlen(end);
    snprintf(op, 64, "%.*s", (int)(length < 63 ? length : 63), at);
    if (digits == 0) snprintf(layer, 64, "%s", op);
}

static void add(const char *name, const struct noise_tensor *tensor, struct noise_part *list,
                uint32_t *count) {
    uint32_t at = 0;
    while (at < *count && strcmp(list[at].name, name) != 0)
        at++;
    struct noise_part *const part = &list[at];
    if (at == *count) {
        ++*count;
        snprintf(part->name, sizeof part->name, "%s", name);
    }
    part->tensors++;
    part->equal += tensor->differs == 0;
    if (tensor->relative > part->relative) part->relative = tensor->relative;
    if (tensor->ulp > part->ulp) part->ulp = tensor->ulp;
}

static enum status find_growth(struct arena *arena, struct noise_parts *out) {
    double *values;
    size_t count = 0;
    TRY(arena_take(arena, out->layer_count, sizeof *values, "parts", &values));
    for (uint32_t i = 0; i < out->layer_count; i++)
        if (strncmp(out->layers[i].name, LAYER, strlen(LAYER)) == 0)
            values[count++] = out->layers[i].relative;
    const enum status status = trend_test(values, count, arena, &out->growth);
    if (status != STATUS_UNTESTABLE && status != STATUS_UNSUPPORTED) return status;
    char *text;
    TRY(arena_text(arena, status_text(), strlen(status_text()), &text));
    out->no_growth = text;
    return STATUS_OK;
}

enum status noise_parts_of(const struct noise_layout *layout, const struct noise_figures *figures,
                           struct arena *arena, struct noise_parts *out) {
    char layer[64], op[64];
    memset(out, 0, sizeof *out);
    TRY(arena_take(arena, layout->tensors, sizeof *out->layers, "parts", &out->layers));
    TRY(arena_take(arena, layout->tensors, sizeof *out->ops, "parts", &out->ops));
    for (uint32_t i = layout->tensors; i-- > 0;) {
        name_parts(layout->tensor_names[i], layer, op);
        add(layer, &figures->tensor[i], out->layers, &out->layer_count);
        add(op, &figures->tensor[i], out->ops, &out->op_count);
    }
    return find_growth(arena, out);
}

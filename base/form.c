/* SPDX-License-Identifier: Apache-2.0
 * Copies between forms, for who moves whole tensors. Loops that compute with the numbers convert
 * them in blocks of their own. */
#include "base/form.h"

#include <string.h>

void form_widen(const void *values, struct form form, size_t count, void *out_carriers) {
    const uint16_t *const halves = (const uint16_t *)values;
    float *const out = (float *)out_carriers;
    if (count == 0) return;
    if (!form_is_narrow(form))
        memcpy(out_carriers, values, count * form.width);
    else if (form.dtype == DTYPE_BF16)
        for (size_t i = 0; i < count; i++)
            out[i] = form_load_bf16(halves[i]);
    else
        for (size_t i = 0; i < count; i++)
            out[i] = form_load_f16(halves[i]);
}

void form_narrow(const void *carriers, struct form form, size_t count, void *out_values) {
    const float *const numbers = (const float *)carriers;
    uint16_t *const out = (uint16_t *)out_values;
    if (count == 0) return;
    if (!form_is_narrow(form))
        memcpy(out_values, carriers, count * form.width);
    else if (form.dtype == DTYPE_BF16)
        for (size_t i = 0; i < count; i++)
            out[i] = form_store_bf16(numbers[i]);
    else
        for (size_t i = 0; i < count; i++)
            out[i] = form_store_f16(numbers[i]);
}

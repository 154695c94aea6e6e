/* SPDX-License-Identifier: Apache-2.0
 * Reads attributes and arrays of a trace image, and refuses those whose form is not the expected
 * one: a trace may be damaged or forged. */
#include "evidence/judge_parts.h"

#include <string.h>

#include "base/number.h"

const char *judging_text(const struct judging *judging, const char *path, const char *name) {
    const char *text = trace_attribute_of(judging->image, path, name);
    return text == NULL ? "" : text;
}

enum status judging_number(const struct judging *judging, const char *path, const char *name,
                           double *out) {
    const char *text = trace_attribute_of(judging->image, path, name);
    if (text == NULL)
        FAIL(STATUS_INPUT, "trace: attribute %s of \"/%s\" is missing: not written by run", name,
             path);
    return number_parse_real(text, NUMBER_SPECIAL, out);
}

enum status judging_array(const struct judging *judging, const char *path, uint64_t rows,
                          uint64_t columns, const struct trace_array **out) {
    const struct trace_array *array = trace_array_of(judging->image, path);
    *out = array;
    if (array == NULL) return STATUS_OK;
    uint64_t width = array->plan.rank == 1 ? 1 : array->plan.shape[1];
    if (array->plan.shape[0] != rows || width != columns)
        FAIL(STATUS_INPUT, "trace: /%s: expected %llu x %llu values, got %llu x %llu", path,
             (unsigned long long)rows, (unsigned long long)columns,
             (unsigned long long)array->plan.shape[0], (unsigned long long)width);
    return STATUS_OK;
}

enum status judging_count(const struct judging *judging, const char *path, const char *name,
                          uint32_t most, uint32_t *out) {
    double value;
    TRY(judging_number(judging, path, name, &value));
    if (!(value >= 0.0 && value <= (double)most) || value != (double)(uint32_t)value)
        FAIL(STATUS_INPUT, "trace: attribute %s of \"/%s\": expected an integer from 0 to %u", name,
             path, most);
    *out = (uint32_t)value;
    return STATUS_OK;
}

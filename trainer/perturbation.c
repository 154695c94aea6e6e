/* SPDX-License-Identifier: Apache-2.0
 * Finds the weight by its name and element, and moves it to the next value of its grid. */
#include "trainer/perturbation.h"

#include <stdio.h>
#include <string.h>

#include "base/element.h"
#include "base/number.h"
#include "base/real.h"
#include "trainer/run_private.h"
#include "trainer/run_tensors.h"

static enum dtype coarser(const struct config *config) {
    const enum dtype param = (enum dtype)config->numerics.param;
    const enum dtype compute = (enum dtype)config->numerics.compute;
    return dtype_epsilon(param) > dtype_epsilon(compute) ? param : compute;
}

/* Reads what stands behind the name: "NAME" is the tensor's first element, "NAME[I]" is element I,
 * row-major from 0. */
static enum status find_element(const struct param_row *row, const char *rest, uint64_t *out) {
    char digits[32] = "0";
    const size_t length = strlen(rest);
    if (length > 0 && (rest[0] != '[' || rest[length - 1] != ']' || length > sizeof digits))
        FAIL(STATUS_INPUT, "init.nudge: expected TENSOR or TENSOR[ELEMENT], got \"%s%s\"",
             row->name, rest);
    if (length > 0) snprintf(digits, sizeof digits, "%.*s", (int)length - 2, rest + 1);
    if (number_parse_uint(digits, out) != STATUS_OK || *out >= row->count)
        FAIL(STATUS_INPUT, "init.nudge: %s has elements 0 to %zu, got \"%s\"", row->name,
             row->count - 1, digits);
    return STATUS_OK;
}

enum status perturbation_find(const struct run *run, struct perturbation *out) {
    const char *text = run->config.init.nudge;
    for (uint32_t i = 0; i < run->owner_count; i++) {
        const struct param_row *row = &run->table.rows[run->owner[i]];
        const size_t length = strlen(row->name);
        if (strncmp(text, row->name, length) != 0) continue;
        if (text[length] != '\0' && text[length] != '[') continue;
        out->row = run->owner[i];
        return find_element(row, text + length, &out->element);
    }
    FAIL(STATUS_INPUT, "init.nudge: expected none or the name of a tensor (such as %s), got \"%s\"",
         run->table.rows[run->owner[0]].name, text);
}

/* An element of the tensor at this offset of the state. */
static enum status get(const struct run *run, size_t offset, enum dtype dtype, uint64_t element,
                       double *out) {
    const size_t carrier = dtype_carrier(dtype);
    const void *value;
    TRY(run_read(run, WINDOW_NOW, (unsigned char *)run_at(run, offset) + element * carrier, carrier,
                 &value));
    *out = element_get(value, dtype, 0);
    return STATUS_OK;
}

static enum status set(const struct run *run, size_t offset, enum dtype dtype, uint64_t element,
                       double value) {
    const size_t carrier = dtype_carrier(dtype);
    unsigned char *const tensor = (unsigned char *)run_at(run, offset) + element * carrier;
    void *room;
    TRY(run_room(run, WINDOW_NOW, tensor, carrier, &room));
    element_set(room, dtype, 0, value);
    return run_store(run, WINDOW_NOW, tensor, carrier);
}

enum status perturbation_apply(struct run *run) {
    if (strcmp(run->config.init.nudge, CONFIG_NO_NUDGE) == 0) return STATUS_OK;
    struct perturbation target;
    TRY(perturbation_find(run, &target));
    const struct state_tensor *tensor = &run->layout.tensor[target.row];
    const enum dtype dtype = run->table.rows[target.row].dtype;
    double old, far;
    TRY(get(run, tensor->param, dtype, target.element, &old));
    const double unit = dtype_spacing(old, coarser(&run->config));
    const double moved = old + real_copysign_f64(unit, old);
    TRY(set(run, tensor->param, dtype, target.element, dtype_round(moved, dtype)));
    if (run->layout.has_master) {
        const enum dtype wide = run->layout.master_dtype;
        TRY(get(run, tensor->master, wide, target.element, &far));
        far += moved - old;
        TRY(set(run, tensor->master, wide, target.element, dtype_round(far, wide)));
    }
    run->weights_fresh = 0;
    return STATUS_OK;
}

const char *perturbation_tensor(const struct run_axes *axes) {
    for (uint32_t i = 0; i < axes->shape.tensors; i++)
        if (strstr(axes->tensors[i], "layers.0.") != NULL &&
            strstr(axes->tensors[i], "norm") != NULL)
            return axes->tensors[i];
    return axes->shape.tensors > 0 ? axes->tensors[0] : CONFIG_NO_NUDGE;
}

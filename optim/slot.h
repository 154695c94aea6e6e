/* SPDX-License-Identifier: Apache-2.0
 * How the numbers in the slots of a tensor lie (base/form.h), for this program alone: a module is
 * handed carriers. */
#ifndef TWINSTEP_OPTIM_SLOT_H
#define TWINSTEP_OPTIM_SLOT_H

#include "base/form.h"
#include "optim/optim.h"

/* Modules were compiled against this place; the width beside it takes what was padding. */
_Static_assert(offsetof(struct optim_tensor, param) == 64, "a module's tensors lie otherwise");

static inline struct form optim_slot_form(const struct optim_tensor *tensor) {
    struct form form = form_carried(tensor->slot_dtype);
    if (tensor->slot_width != 0) form.width = tensor->slot_width;
    return form;
}

/* Number `index` of a slot. */
static inline double optim_slot_value(const struct optim_tensor *tensor, uint32_t slot,
                                      size_t index) {
    return form_get(tensor->slots[slot], optim_slot_form(tensor), index);
}

#endif

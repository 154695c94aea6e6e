/* SPDX-License-Identifier: Apache-2.0
 * Words for places, addresses, values and signatures. A text that is too long is cut; nothing is
 * allocated, and nothing is decided here. */
#include "experiment/locate/locate_words.h"

#include <float.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "scenarios/scenario.h"

static void add(struct locate_text *text, const char *format, ...) TWINSTEP_PRINTF(2, 3);

static void add(struct locate_text *text, const char *format, ...) {
    const size_t used = strlen(text->text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text->text + used, sizeof text->text - used, format, arguments);
    va_end(arguments);
}

struct locate_text locate_place(const struct locate_key *key, uint32_t micro) {
    struct locate_text text = {""};
    add(&text, "%s", stage_name((uint32_t)key->stage));
    if (micro > 0) add(&text, ", micro-batch %u", micro);
    if (key->layer != PASS_NO_LAYER) add(&text, ", layer %u", key->layer);
    add(&text, ", %s %s", key->op.text, key->tensor.text);
    return text;
}

static void add_columns(struct locate_text *text, const struct locate_result *result) {
    const struct watch_view *view = &result->view;
    const size_t column = result->element.column;
    switch (view->columns) {
    case WATCH_HEADS:
        add(text, ", head %zu, channel %zu", column / view->inner, column % view->inner);
        break;
    case WATCH_KEYS:
        add(text, ", head %zu, key %zu", column / view->inner, column % view->inner);
        break;
    case WATCH_VOCABULARY:
        add(text, ", vocabulary entry %zu", column);
        break;
    case WATCH_PAIRS:
        add(text, ", frequency %zu", column);
        break;
    case WATCH_CHANNELS:
        if (view->width > 1) add(text, ", channel %zu", column);
        break;
    default:
        if (view->width > 1) add(text, ", number %zu", column);
        break;
    }
}

struct locate_text locate_address(const struct locate_result *result) {
    const struct locate_element *element = &result->element;
    const struct watch_view *view = &result->view;
    struct locate_text text = {""};
    if (view->axis == WATCH_WHOLE) {
        if (view->count > view->width) add(&text, "%u", element->row);
        if (view->count > view->width && view->width > 1) add(&text, ", ");
        if (view->width > 1) add(&text, "%zu", element->column);
        return text;
    }
    if (view->axis == WATCH_POSITIONS) {
        add(&text, "position %u", element->position);
    } else {
        add(&text, "sample %u", element->sample);
        if (result->sides == 2 && view->axis != WATCH_SAMPLES)
            add(&text, element->side == 0 ? " chosen" : " rejected");
        if (view->axis != WATCH_SAMPLES && view->axis != WATCH_SEQUENCES)
            add(&text, ", position %u", element->position);
    }
    add_columns(&text, result);
    return text;
}

static void add_number(struct locate_text *text, enum watch_kind kind, enum dtype dtype,
                       uint64_t bits) {
    if (kind != WATCH_REALS) {
        add(text, "%ju", (uintmax_t)bits);
        return;
    }
    const double value = locate_value(kind, bits);
    const struct number_text decimal =
        dtype == DTYPE_F64 ? number_text_f64(value) : number_text_f32((float)value);
    add(text, "%s (%s)", number_hex_f64(value).text, decimal.text);
}

static void add_ulp(struct locate_text *text, int64_t ulp) {
    if (ulp == INT64_MAX)
        add(text, "not a number");
    else
        add(text, "%jd ulp", (intmax_t)ulp);
}

struct locate_text locate_values(const struct locate_result *result) {
    const struct locate_element *element = &result->element;
    const enum watch_kind kind = result->view.kind;
    struct locate_text text = {""};
    add_number(&text, kind, result->dtype[0], element->a);
    add(&text, " against ");
    add_number(&text, kind, result->dtype[1], element->b);
    if (kind == WATCH_REALS) {
        add(&text, ", ");
        add_ulp(&text, element->ulp);
        add(&text, " of %s%s", dtype_name(element->grid),
            element->ulp == 0 ? " (the sign of a zero)" : "");
    }
    if (element->elements == 1) return text;
    add(&text, "; %ju of %ju elements differ", (uintmax_t)element->differing,
        (uintmax_t)element->elements);
    if (kind != WATCH_REALS) return text;
    add(&text, element->differing == 1 ? ", " : ", at most ");
    add_ulp(&text, element->ulp_most);
    return text;
}

struct locate_text locate_structure_words(const struct locate_request *request,
                                          const struct locate_result *result) {
    const struct locate_first *first = &result->first;
    struct locate_text text = {""};
    if (first->structure == LOCATE_SAME) return text;
    if (first->structure == LOCATE_SHAPE) {
        const char *const unit = first->only->axis == WATCH_WHOLE ? "elements" : "columns";
        add(&text, "%s has %zu %s in %s, %zu in %s", locate_place(first->only, 0).text,
            first->only->extent, unit, request->sides[0].name, first->other->extent,
            request->sides[1].name);
        return text;
    }
    const int side = first->structure == LOCATE_ONLY_B;
    add(&text, "only %s has %s", request->sides[side].name, locate_place(first->only, 0).text);
    const int by_sample = first->only->axis != WATCH_WHOLE && first->only->axis != WATCH_POSITIONS;
    if (by_sample && first->only_index > 0)
        add(&text, " of sample %u%s", first->only_index / 2,
            first->only_index % 2 == 1 ? " rejected" : "");
    return text;
}

static const struct key_list *list_of(const struct locate_request *request, int side,
                                      enum loop_list list) {
    return loop_list_of(request->sides[side].config, list);
}

int locate_loops_differ(const struct locate_request *request, enum loop_list list) {
    const struct key_list *a = list_of(request, 0, list), *b = list_of(request, 1, list);
    return a->count != b->count || memcmp(a->item, b->item, a->count * sizeof a->item[0]) != 0;
}

struct locate_text locate_loop_words(const struct locate_request *request, enum loop_list list) {
    struct locate_text text = {""};
    for (int side = 0; side < 2; side++) {
        const struct key_list *phases = list_of(request, side, list);
        add(&text, "%s%s: %s [", side == 0 ? "" : "; ", request->sides[side].name,
            loop_list_name(list));
        for (uint8_t i = 0; i < phases->count; i++)
            add(&text, "%s%s", i == 0 ? "" : ", ", loop_phases()[phases->item[i]].name);
        add(&text, "]");
    }
    return text;
}

static void add_ratio(struct locate_text *text, const struct signature *signature) {
    if (signature->kind == SIGNATURE_CONSTANT_RATIO) {
        add(text,
            ": all %s are in the ratio %.9g; clipping, a loss divisor or a loss scale do that",
            signature->where, signature->ratio);
        return;
    }
    if (signature->ratio > DBL_MAX) {
        add(text, ": gradients and slots are equal; the first does not move, and its LR is 0");
        return;
    }
    add(text,
        ": gradients and slots are equal, the updates are parallel in the ratio %.9g; the LRs are "
        "in the ratio %.9g, which %s",
        signature->ratio, signature->lr_ratio,
        signature->by_lr ? "is the same but for rounding"
                         : "is another one: a factor beside the LR, as a step count or a scale is");
}

struct locate_text locate_signature_words(const struct locate_result *result) {
    const struct signature *signature = &result->signature;
    struct locate_text text = {""};
    add(&text, "%s", signature_name(signature->kind));
    switch (signature->kind) {
    case SIGNATURE_BACKWARD_ORDER:
        add(&text,
            ": the forward is equal, the gradient of the last layer's output is exact, and the "
            "difference grows towards the first layer, to %.2g of the gradient; another order of "
            "sums in the backward can do up to %.2g",
            signature->residual, signature->threshold);
        break;
    case SIGNATURE_ROPE_TABLE:
        add(&text, ": position 0 is exact, and the difference grows with the position");
        break;
    case SIGNATURE_ONE_TENSOR:
        if (signature->where != NULL)
            add(&text, ": equal gradients, and only %s is updated apart", signature->where);
        else
            add(&text, ": equal gradients, and only the %s group is updated apart",
                signature->group == 0 ? "decayed" : "undecayed");
        break;
    case SIGNATURE_CONSTANT_RATIO:
    case SIGNATURE_LR_RATIO:
        add_ratio(&text, signature);
        break;
    default:
        break;
    }
    return text;
}

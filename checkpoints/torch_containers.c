/* SPDX-License-Identifier: Apache-2.0
 * Lists, tuples and dicts of a pickle, and the order of a dict's keys.
 *
 * Whoever walks the result must come to an end, so no value may hold itself. A container is sealed
 * when it becomes a member, and a sealed one does not grow: what it holds was complete before, and
 * by then it could not hold what holds it. torch.save completes every container before it stores
 * it, so this refuses none of its files. */
#include "checkpoints/torch_private.h"

#include "checkpoints/order.h"

#include <string.h>

#define HEIGHT 64u

static int is_container(enum torch_kind kind) {
    return kind == TORCH_LIST || kind == TORCH_TUPLE || kind == TORCH_DICT;
}

int torch_compare_keys(const void *a, const void *b) {
    const struct torch_value *left = (const struct torch_value *)a;
    const struct torch_value *right = (const struct torch_value *)b;
    if (left->kind != right->kind) return left->kind < right->kind ? -1 : 1;
    if (left->kind == TORCH_TEXT) {
        const struct torch_text *x = left->as.text, *y = right->as.text;
        const size_t shorter = x->length < y->length ? x->length : y->length;
        const int side = memcmp(x->bytes, y->bytes, shorter);
        if (side != 0) return side;
        return x->length < y->length ? -1 : x->length > y->length;
    }
    if (left->kind != TORCH_INT) return 0;
    return left->as.integer < right->as.integer ? -1 : left->as.integer > right->as.integer;
}

static enum status sort_keys(const struct torch_machine *machine, struct torch_members *members) {
    const void **sorted;
    if (members->count == 0) return STATUS_OK;
    TRY(arena_take(machine->arena, members->count, sizeof *members->sorted, "keys",
                   &members->sorted));
    members->sorted[0] = members->keys;
    if (members->count == 1) return STATUS_OK;
    TRY(arena_take(machine->arena, members->count, sizeof *sorted, "keys", &sorted));
    for (size_t i = 0; i < members->count; i++)
        sorted[i] = &members->keys[i];
    TRY(order_pointers(sorted, members->count, torch_compare_keys, machine->arena));
    for (size_t i = 0; i < members->count; i++) {
        members->sorted[i] = (const struct torch_value *)sorted[i];
        const enum torch_kind kind = members->sorted[i]->kind;
        if (i > 0 && (kind == TORCH_TEXT || kind == TORCH_INT) &&
            torch_compare_keys(sorted[i - 1], sorted[i]) == 0) {
            char key[TORCH_SHOWN_SIZE];
            torch_show(members->sorted[i], key);
            MACHINE_FAIL(machine, "expected each key of a dict once, got %s twice", key);
        }
    }
    return STATUS_OK;
}

enum status torch_seal(const struct torch_machine *machine, const struct torch_value *value,
                       unsigned *out_height) {
    *out_height = 0;
    if (value->kind == TORCH_OPAQUE) {
        value->as.opaque->sealed = 1;
        *out_height = value->as.opaque->height;
    }
    if (!is_container(value->kind)) return STATUS_OK;
    struct torch_members *members = value->as.members;
    *out_height = members->height;
    if (members->sealed) return STATUS_OK;
    members->sealed = 1;
    return value->kind == TORCH_DICT ? sort_keys(machine, members) : STATUS_OK;
}

enum status torch_raise(const struct torch_machine *machine, const struct torch_value *value,
                        unsigned *height) {
    unsigned inner;
    TRY(torch_seal(machine, value, &inner));
    if (inner + 1 >= HEIGHT)
        MACHINE_FAIL(machine, "expected at most %u containers in each other, got more", HEIGHT);
    if (inner + 1 > *height) *height = inner + 1;
    return STATUS_OK;
}

enum status torch_push_container(struct torch_machine *machine, enum torch_kind kind,
                                 const struct torch_value *values, size_t count) {
    struct torch_members *members;
    TRY(arena_take(machine->arena, 1, sizeof *members, "containers", &members));
    if (count > 0) {
        TRY(arena_take(machine->arena, count, sizeof *values, "members", &members->values));
        memcpy(members->values, values, count * sizeof *values);
        members->count = members->room = count;
    }
    for (size_t i = 0; i < count; i++)
        TRY(torch_raise(machine, &values[i], &members->height));
    return torch_push(machine, (struct torch_value){.kind = kind, .as.members = members});
}

/* Makes room for `more` members. */
static enum status widen(const struct torch_machine *machine, struct torch_members *members,
                         size_t more, int with_keys) {
    const size_t wanted = members->count + more;
    size_t room = members->room;
    if (with_keys)
        TRY(arena_grow(machine->arena, wanted, &room, sizeof *members->keys, "keys",
                       &members->keys));
    return arena_grow(machine->arena, wanted, &members->room, sizeof *members->values, "members",
                      &members->values);
}

static enum status check_open(const struct torch_machine *machine, const struct torch_value *at) {
    if (at->as.members->sealed)
        MACHINE_FAIL(machine, "expected a container that is complete before it is stored in "
                              "another, got one that grows: it could hold itself");
    return STATUS_OK;
}

/* Adds the values to the list on top, or the pairs to the dict on top. What a user's own class
 * would take in is dropped, as all of its inside is. */
enum status torch_extend(struct torch_machine *machine, enum torch_kind kind,
                         const struct torch_value *values, size_t count) {
    struct torch_value top;
    char shown[TORCH_SHOWN_SIZE];
    TRY(torch_peek(machine, &top));
    if (top.kind == TORCH_OPAQUE && top.as.opaque->callee == CALLEE_NONE && !top.as.opaque->is_data)
        return STATUS_OK;
    torch_show(&top, shown);
    if (top.kind != kind)
        MACHINE_FAIL(machine, "expected a %s below its members, got %s",
                     kind == TORCH_DICT ? "dict" : "list", shown);
    if (kind == TORCH_DICT && count % 2 != 0)
        MACHINE_FAIL(machine, "expected pairs of key and value, got %zu values", count);
    const size_t step = kind == TORCH_DICT ? 2 : 1;
    struct torch_members *members = top.as.members;
    for (size_t i = 0; i < count; i++)
        TRY(torch_raise(machine, &values[i], &members->height));
    TRY(check_open(machine, &top));
    TRY(widen(machine, members, count / step, step == 2));
    for (size_t i = 0; i < count; i += step) {
        if (step == 2) members->keys[members->count] = values[i];
        members->values[members->count++] = values[i + step - 1];
    }
    return STATUS_OK;
}

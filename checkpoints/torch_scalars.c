/* SPDX-License-Identifier: Apache-2.0
 * The bytes and the stack of the machine that reads a pickle, and the opcodes that push one plain
 * value: None, True, False, whole numbers, floats, texts. */
#include "checkpoints/torch_private.h"

#include <string.h>

/* Stores the next `count` bytes. */
enum status torch_take(struct torch_machine *machine, size_t count, const unsigned char **out) {
    *out = machine->bytes;
    if (count > machine->length - machine->at)
        MACHINE_FAIL(machine, "expected %zu more bytes, got %zu: the pickle is cut short", count,
                     machine->length - machine->at);
    *out = machine->bytes + machine->at;
    machine->at += count;
    return STATUS_OK;
}

enum status torch_take_number(struct torch_machine *machine, size_t width, uint64_t *out) {
    const unsigned char *bytes;
    TRY(torch_take(machine, width, &bytes));
    *out = 0;
    for (size_t i = width; i-- > 0;)
        *out = *out << 8 | bytes[i];
    return STATUS_OK;
}

enum status torch_push(struct torch_machine *machine, struct torch_value value) {
    TRY(arena_grow(machine->arena, machine->count + 1, &machine->room, sizeof *machine->stack,
                   "values", &machine->stack));
    machine->stack[machine->count++] = value;
    return STATUS_OK;
}

size_t torch_floor(const struct torch_machine *machine) {
    return machine->mark_count == 0 ? 0 : machine->marks[machine->mark_count - 1];
}

enum status torch_pop(struct torch_machine *machine, struct torch_value *out) {
    if (machine->count <= torch_floor(machine))
        MACHINE_FAIL(machine, "expected a value on the stack, got none");
    *out = machine->stack[--machine->count];
    return STATUS_OK;
}

enum status torch_peek(const struct torch_machine *machine, struct torch_value *out) {
    if (machine->count <= torch_floor(machine))
        MACHINE_FAIL(machine, "expected a value on the stack, got none");
    *out = machine->stack[machine->count - 1];
    return STATUS_OK;
}

static enum status push_integer(struct torch_machine *machine, enum torch_kind kind,
                                int64_t value) {
    return torch_push(machine, (struct torch_value){.kind = kind, .as.integer = value});
}

static enum status push_unsigned(struct torch_machine *machine, size_t width) {
    uint64_t value;
    TRY(torch_take_number(machine, width, &value));
    return push_integer(machine, TORCH_INT, (int64_t)value);
}

static enum status push_signed(struct torch_machine *machine) {
    uint64_t value;
    TRY(torch_take_number(machine, 4, &value));
    return push_integer(machine, TORCH_INT,
                        (int64_t)value - (value > INT32_MAX ? (int64_t)1 << 32 : 0));
}

static enum status push_text(struct torch_machine *machine, enum torch_kind kind,
                             const unsigned char *bytes, size_t length) {
    struct torch_text *text;
    char *copy;
    TRY(arena_take(machine->arena, 1, sizeof *text, "texts", &text));
    TRY(arena_text(machine->arena, (const char *)bytes, length, &copy));
    *text = (struct torch_text){copy, length};
    return torch_push(machine, (struct torch_value){.kind = kind, .as.text = text});
}

/* A whole number of up to 255 bytes, two's complement. */
static enum status push_long(struct torch_machine *machine) {
    const unsigned char *bytes;
    uint64_t length;
    TRY(torch_take_number(machine, 1, &length));
    TRY(torch_take(machine, (size_t)length, &bytes));
    if (length > 8) return push_text(machine, TORCH_BIG, bytes, (size_t)length);
    uint64_t value = length > 0 && bytes[length - 1] >= 0x80 ? UINT64_MAX : 0;
    for (size_t i = (size_t)length; i-- > 0;)
        value = value << 8 | bytes[i];
    int64_t number;
    memcpy(&number, &value, sizeof number);
    return push_integer(machine, TORCH_INT, number);
}

static enum status push_real(struct torch_machine *machine) {
    const unsigned char *bytes;
    uint64_t bits = 0;
    double value;
    TRY(torch_take(machine, 8, &bytes));
    for (size_t i = 0; i < 8; i++)
        bits = bits << 8 | bytes[i];
    memcpy(&value, &bits, sizeof value);
    return torch_push(machine, (struct torch_value){.kind = TORCH_REAL, .as.real = value});
}

/* How many bytes the UTF-8 character at `bytes` has; 0 if it is none. */
static size_t utf8_width(const unsigned char *bytes, size_t room) {
    const unsigned char first = bytes[0];
    const size_t width = first < 0x80   ? 1
                         : first < 0xC2 ? 0
                         : first < 0xE0 ? 2
                         : first < 0xF0 ? 3
                         : first < 0xF5 ? 4
                                        : 0;
    if (width > room) return 0;
    for (size_t i = 1; i < width; i++)
        if ((bytes[i] & 0xC0u) != 0x80) return 0;
    const unsigned char second = width > 2 ? bytes[1] : 0x90;
    if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second >= 0xA0) ||
        (first == 0xF0 && second < 0x90) || (first == 0xF4 && second >= 0x90))
        return 0;
    return width;
}

static enum status push_unicode(struct torch_machine *machine) {
    const unsigned char *bytes;
    uint64_t length;
    TRY(torch_take_number(machine, 4, &length));
    TRY(torch_take(machine, (size_t)length, &bytes));
    for (size_t i = 0, width; i < length; i += width) {
        width = utf8_width(bytes + i, (size_t)length - i);
        if (width == 0) MACHINE_FAIL(machine, "expected UTF-8, got other bytes at %zu", i);
    }
    return push_text(machine, TORCH_TEXT, bytes, (size_t)length);
}

enum status torch_push_scalar(struct torch_machine *machine, unsigned char opcode,
                              int *out_is_scalar) {
    *out_is_scalar = 1;
    switch (opcode) {
    case 'N':
        return push_integer(machine, TORCH_NONE, 0);
    case 0x88:
    case 0x89:
        return push_integer(machine, TORCH_BOOL, opcode == 0x88);
    case 'K':
        return push_unsigned(machine, 1);
    case 'M':
        return push_unsigned(machine, 2);
    case 'J':
        return push_signed(machine);
    case 0x8A:
        return push_long(machine);
    case 'G':
        return push_real(machine);
    case 'X':
        return push_unicode(machine);
    default:
        *out_is_scalar = 0;
        return STATUS_OK;
    }
}

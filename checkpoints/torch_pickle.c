/* SPDX-License-Identifier: Apache-2.0
 * The machine that reads a pickle of protocol 2 as data: a stack, a memo, and the opcodes that
 * torch.save writes. Containers stand in torch_containers.c, plain values in torch_scalars.c.
 *
 * Invariant: every opcode makes at most one value, so memory is bounded by the pickle's length and
 * by STEPS. */
#include "checkpoints/torch_private.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A tensor takes some 25 opcodes and a parameter three tensors, so this is enough for 50,000
 * parameters (a mixture of 128 experts over 48 layers has 18,000). A hostile file of that many
 * makes 0.85 GB of values. */
#define STEPS ((size_t)4 << 20)

enum status torch_machine_fail(const struct torch_machine *machine, const char *format, ...) {
    char text[1200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    const int inside = machine->opcode_at < machine->length;
    const char *name = inside ? torch_opcode_name(machine->bytes[machine->opcode_at]) : NULL;
    FAIL(STATUS_INPUT, "%s: data.pkl: offset %zu%s%s%s: %s", machine->zip->path, machine->opcode_at,
         name != NULL ? " (" : "", name != NULL ? name : "", name != NULL ? ")" : "", text);
}

/* Takes the values above the last MARK; they stay readable until the next push. */
static enum status pop_mark(struct torch_machine *machine, struct torch_value **out,
                            size_t *out_count) {
    *out = machine->stack;
    *out_count = 0;
    if (machine->mark_count == 0) MACHINE_FAIL(machine, "expected a MARK before it, got none");
    const size_t first = machine->marks[--machine->mark_count];
    *out = machine->stack + first;
    *out_count = machine->count - first;
    machine->count = first;
    return STATUS_OK;
}

static enum status extend_marked(struct torch_machine *machine, enum torch_kind kind) {
    struct torch_value *values;
    size_t count;
    TRY(pop_mark(machine, &values, &count));
    return torch_extend(machine, kind, values, count);
}

static enum status extend_one(struct torch_machine *machine, enum torch_kind kind) {
    struct torch_value values[2];
    if (kind == TORCH_LIST) {
        TRY(torch_pop(machine, &values[0]));
        return torch_extend(machine, kind, values, 1);
    }
    TRY(torch_pop(machine, &values[1]));
    TRY(torch_pop(machine, &values[0]));
    return torch_extend(machine, kind, values, 2);
}

static enum status remember(struct torch_machine *machine, size_t width) {
    struct torch_value value;
    uint64_t number;
    TRY(torch_take_number(machine, width, &number));
    TRY(torch_peek(machine, &value));
    if (number >= machine->steps)
        MACHINE_FAIL(machine, "expected a memo number below the %zu opcodes so far, got %" PRIu64,
                     machine->steps, number);
    TRY(arena_grow(machine->arena, (size_t)number + 1, &machine->memo_room, sizeof *machine->memo,
                   "memo", &machine->memo));
    TRY(arena_grow(machine->arena, (size_t)number + 1, &machine->memo_known_room, 1, "memo",
                   &machine->memo_known));
    machine->memo[number] = value;
    machine->memo_known[number] = 1;
    return STATUS_OK;
}

static enum status recall(struct torch_machine *machine, size_t width) {
    uint64_t number;
    TRY(torch_take_number(machine, width, &number));
    if (number >= machine->memo_room || !machine->memo_known[number])
        MACHINE_FAIL(machine, "expected a memo number that was stored before, got %" PRIu64,
                     number);
    return torch_push(machine, machine->memo[number]);
}

/* A line of a GLOBAL, without its end. */
static enum status take_line(struct torch_machine *machine, char *out, size_t size) {
    const unsigned char *line = machine->bytes + machine->at;
    const unsigned char *end =
        (const unsigned char *)memchr(line, '\n', machine->length - machine->at);
    if (end == NULL) MACHINE_FAIL(machine, "expected the end of a name, got that of the pickle");
    const size_t length = (size_t)(end - line);
    if (length >= size || length == 0 || memchr(line, '\0', length) != NULL)
        MACHINE_FAIL(machine, "expected a name of 1 to %zu bytes, got %zu", size - 1, length);
    memcpy(out, line, length);
    out[length] = '\0';
    machine->at += length + 1;
    return STATUS_OK;
}

static enum status push_global(struct torch_machine *machine) {
    char module[256], name[256];
    struct torch_value value;
    TRY(take_line(machine, module, sizeof module));
    TRY(take_line(machine, name, sizeof name));
    TRY(torch_global(machine, module, name, &value));
    return torch_push(machine, value);
}

static enum status push_tuple(struct torch_machine *machine, size_t count) {
    if (machine->count - torch_floor(machine) < count)
        MACHINE_FAIL(machine, "expected %zu values on the stack, got %zu", count,
                     machine->count - torch_floor(machine));
    machine->count -= count;
    return torch_push_container(machine, TORCH_TUPLE, machine->stack + machine->count, count);
}

static enum status push_marked_tuple(struct torch_machine *machine) {
    struct torch_value *values;
    size_t count;
    TRY(pop_mark(machine, &values, &count));
    return torch_push_container(machine, TORCH_TUPLE, values, count);
}

/* Executes REDUCE and, with `is_new`, NEWOBJ: a tuple of arguments on top, and below it the name of
 * what is made of them. No code of that name is run (torch_reduce). NEWOBJ makes objects of the
 * user's classes alone: torch makes what is known here by REDUCE. */
static enum status reduce(struct torch_machine *machine, int is_new) {
    struct torch_value arguments, callee, made;
    char shown[TORCH_SHOWN_SIZE];
    unsigned height;
    TRY(torch_pop(machine, &arguments));
    TRY(torch_pop(machine, &callee));
    torch_show(&callee, shown);
    if (callee.kind != TORCH_OPAQUE || callee.as.opaque->callee == CALLEE_NONE)
        MACHINE_FAIL(machine, "expected the name of what is made, got %s", shown);
    if (is_new && callee.as.opaque->callee != CALLEE_USER)
        MACHINE_FAIL(machine, "expected a class of the user's for NEWOBJ, got %s", shown);
    if (arguments.kind != TORCH_TUPLE)
        MACHINE_FAIL(machine, "expected a tuple of arguments for %s", shown);
    TRY(torch_seal(machine, &arguments, &height));
    TRY(torch_reduce(machine, callee.as.opaque, arguments.as.members, &made));
    return torch_push(machine, made);
}

/* What Python would write into an object. An OrderedDict may have attributes (a state dict's
 * _metadata): nothing here needs them. */
static enum status build(struct torch_machine *machine) {
    struct torch_value state, object;
    char shown[TORCH_SHOWN_SIZE];
    TRY(torch_pop(machine, &state));
    TRY(torch_peek(machine, &object));
    torch_show(&object, shown);
    if (object.kind == TORCH_DICT) return STATUS_OK;
    if (object.kind != TORCH_OPAQUE || object.as.opaque->callee != CALLEE_NONE)
        MACHINE_FAIL(machine, "expected an object that has a state, got %s", shown);
    struct torch_opaque *opaque = object.as.opaque;
    if (!opaque->is_data) return STATUS_OK;
    TRY(torch_raise(machine, &state, &opaque->height));
    if (opaque->sealed)
        MACHINE_FAIL(machine, "expected the state of %s before it is stored, got it behind", shown);
    opaque->state = state;
    return STATUS_OK;
}

static enum status persistent(struct torch_machine *machine) {
    struct torch_value id, storage;
    TRY(torch_pop(machine, &id));
    TRY(torch_persistent(machine, &id, &storage));
    return torch_push(machine, storage);
}

static enum status mark(struct torch_machine *machine) {
    TRY(arena_grow(machine->arena, machine->mark_count + 1, &machine->mark_room,
                   sizeof *machine->marks, "marks", &machine->marks));
    machine->marks[machine->mark_count++] = machine->count;
    return STATUS_OK;
}

static enum status unknown(const struct torch_machine *machine, unsigned char opcode) {
    if (torch_opcode_name(opcode) == NULL)
        MACHINE_FAIL(machine, "expected an opcode, got the byte 0x%02x", (unsigned)opcode);
    MACHINE_FAIL(machine, "expected an opcode that torch.save writes for state dicts with its "
                          "default protocol 2: load the file with torch.load and save it again");
}

static enum status execute_value(struct torch_machine *machine, unsigned char opcode) {
    int is_scalar;
    TRY(torch_push_scalar(machine, opcode, &is_scalar));
    if (is_scalar) return STATUS_OK;
    switch (opcode) {
    case '}':
        return torch_push_container(machine, TORCH_DICT, NULL, 0);
    case ']':
        return torch_push_container(machine, TORCH_LIST, NULL, 0);
    case ')':
        return torch_push_container(machine, TORCH_TUPLE, NULL, 0);
    case 0x85:
    case 0x86:
    case 0x87:
        return push_tuple(machine, opcode - 0x84u);
    case 't':
        return push_marked_tuple(machine);
    default:
        return unknown(machine, opcode);
    }
}

static enum status execute(struct torch_machine *machine, unsigned char opcode) {
    switch (opcode) {
    case '(':
        return mark(machine);
    case 'q':
        return remember(machine, 1);
    case 'r':
        return remember(machine, 4);
    case 'h':
        return recall(machine, 1);
    case 'j':
        return recall(machine, 4);
    case 'a':
        return extend_one(machine, TORCH_LIST);
    case 'e':
        return extend_marked(machine, TORCH_LIST);
    case 's':
        return extend_one(machine, TORCH_DICT);
    case 'u':
        return extend_marked(machine, TORCH_DICT);
    case 'c':
        return push_global(machine);
    case 'R':
        return reduce(machine, 0);
    case 0x81:
        return reduce(machine, 1);
    case 'b':
        return build(machine);
    case 'Q':
        return persistent(machine);
    default:
        return execute_value(machine, opcode);
    }
}

static enum status stop(struct torch_machine *machine, struct torch_value *out) {
    unsigned height;
    if (machine->count != 1 || machine->mark_count != 0)
        MACHINE_FAIL(machine, "expected one value at the end, got %zu", machine->count);
    if (machine->at != machine->length)
        MACHINE_FAIL(machine, "expected the end of the pickle, got %zu bytes more",
                     machine->length - machine->at);
    *out = machine->stack[0];
    return torch_seal(machine, out, &height);
}

static enum status check_protocol(struct torch_machine *machine) {
    const unsigned char *head;
    TRY(torch_take(machine, 2, &head));
    if (head[0] != 0x80) MACHINE_FAIL(machine, "expected the opcode PROTO first");
    if (head[1] != 2)
        MACHINE_FAIL(machine,
                     "expected protocol 2, torch.save's default, got %u: load the file with "
                     "torch.load and save it again",
                     (unsigned)head[1]);
    return STATUS_OK;
}

enum status torch_pickle_read(const struct torch_zip *zip, enum torch_names names,
                              struct arena *arena, struct torch_value *out) {
    const struct torch_member *pickle = torch_zip_find(zip, "data.pkl");
    struct torch_machine machine = {.zip = zip,
                                    .arena = arena,
                                    .names = names,
                                    .bytes = pickle->bytes,
                                    .length = (size_t)pickle->length};
    TRY(arena_grow(arena, 1, &machine.room, sizeof *machine.stack, "values", &machine.stack));
    TRY(check_protocol(&machine));
    while (machine.at < machine.length) {
        machine.opcode_at = machine.at;
        const unsigned char opcode = machine.bytes[machine.at++];
        if (opcode == '.') return stop(&machine, out);
        if (++machine.steps > STEPS)
            MACHINE_FAIL(&machine, "expected at most %zu opcodes, got more", STEPS);
        TRY(execute(&machine, opcode));
    }
    machine.opcode_at = machine.at;
    MACHINE_FAIL(&machine, "expected the opcode STOP, got the end of the pickle");
}

/* SPDX-License-Identifier: Apache-2.0
 * The machine that reads a pickle of protocol 2 as data: a stack, a memo, and the opcodes that
 * torch.save writes.
 *
 * Whoever walks the result must come to an end, so no value may hold itself. A container is sealed
 * when it becomes a member, and a sealed one does not grow: what it holds was complete before, and
 * by then it could not hold what holds it. torch.save completes every container before it stores
 * it, so this refuses none of its files.
 *
 * Invariant: every opcode makes at most one value, so memory is bounded by the pickle's length and
 * by STEPS. */
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "checkpoints/order.h"
#include "checkpoints/strict_json.h"
#include "checkpoints/torch_private.h"

/* A tensor takes some 25 opcodes and a parameter three tensors, so this is enough for 50,000
 * parameters (a mixture of 128 experts over 48 layers has 18,000); a hostile
 * file of that many makes half a gigabyte of values. */
#define STEPS ((size_t)4 << 20)
#define HEIGHT 64u

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

/* Stores the next `count` bytes. */
static enum status take(struct torch_machine *machine, size_t count, const unsigned char **out) {
    *out = machine->bytes;
    if (count > machine->length - machine->at)
        MACHINE_FAIL(machine, "expected %zu more bytes, got %zu: the pickle is cut short", count,
                     machine->length - machine->at);
    *out = machine->bytes + machine->at;
    machine->at += count;
    return STATUS_OK;
}

static enum status take_number(struct torch_machine *machine, size_t width, uint64_t *out) {
    const unsigned char *bytes;
    TRY(take(machine, width, &bytes));
    *out = 0;
    for (size_t i = width; i-- > 0;)
        *out = *out << 8 | bytes[i];
    return STATUS_OK;
}

static enum status push(struct torch_machine *machine, struct torch_value value) {
    TRY(arena_grow(machine->arena, machine->count + 1, &machine->room, sizeof *machine->stack,
                   "values", &machine->stack));
    machine->stack[machine->count++] = value;
    return STATUS_OK;
}

/* Where the values above the last open MARK begin: none below may be taken. */
static size_t floor_of(const struct torch_machine *machine) {
    return machine->mark_count == 0 ? 0 : machine->marks[machine->mark_count - 1];
}

static enum status pop(struct torch_machine *machine, struct torch_value *out) {
    if (machine->count <= floor_of(machine))
        MACHINE_FAIL(machine, "expected a value on the stack, got none");
    *out = machine->stack[--machine->count];
    return STATUS_OK;
}

/* The value on top, which stays. */
static enum status peek(const struct torch_machine *machine, struct torch_value *out) {
    if (machine->count <= floor_of(machine))
        MACHINE_FAIL(machine, "expected a value on the stack, got none");
    *out = machine->stack[machine->count - 1];
    return STATUS_OK;
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
    TRY(arena_take(machine->arena, members->count, sizeof *sorted, "keys", &sorted));
    TRY(arena_take(machine->arena, members->count, sizeof *members->sorted, "keys",
                   &members->sorted));
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

/* Seals a value that `height`'s owner takes in, and raises that height. */
static enum status raise(const struct torch_machine *machine, const struct torch_value *value,
                         unsigned *height) {
    unsigned inner;
    TRY(torch_seal(machine, value, &inner));
    if (inner + 1 >= HEIGHT)
        MACHINE_FAIL(machine, "expected at most %u containers in each other, got more", HEIGHT);
    if (inner + 1 > *height) *height = inner + 1;
    return STATUS_OK;
}

static enum status push_container(struct torch_machine *machine, enum torch_kind kind,
                                  const struct torch_value *values, size_t count) {
    struct torch_members *members;
    TRY(arena_take(machine->arena, 1, sizeof *members, "containers", &members));
    if (count > 0) {
        TRY(arena_take(machine->arena, count, sizeof *values, "members", &members->values));
        memcpy(members->values, values, count * sizeof *values);
        members->count = members->room = count;
    }
    for (size_t i = 0; i < count; i++)
        TRY(raise(machine, &values[i], &members->height));
    return push(machine, (struct torch_value){.kind = kind, .as.members = members});
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
static enum status extend(struct torch_machine *machine, enum torch_kind kind,
                          const struct torch_value *values, size_t count) {
    struct torch_value top;
    char shown[TORCH_SHOWN_SIZE];
    TRY(peek(machine, &top));
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
        TRY(raise(machine, &values[i], &members->height));
    TRY(check_open(machine, &top));
    TRY(widen(machine, members, count / step, step == 2));
    for (size_t i = 0; i < count; i += step) {
        if (step == 2) members->keys[members->count] = values[i];
        members->values[members->count++] = values[i + step - 1];
    }
    return STATUS_OK;
}

static enum status extend_marked(struct torch_machine *machine, enum torch_kind kind) {
    struct torch_value *values;
    size_t count;
    TRY(pop_mark(machine, &values, &count));
    return extend(machine, kind, values, count);
}

static enum status extend_one(struct torch_machine *machine, enum torch_kind kind) {
    struct torch_value values[2];
    if (kind == TORCH_LIST) {
        TRY(pop(machine, &values[0]));
        return extend(machine, kind, values, 1);
    }
    TRY(pop(machine, &values[1]));
    TRY(pop(machine, &values[0]));
    return extend(machine, kind, values, 2);
}

static enum status push_integer(struct torch_machine *machine, enum torch_kind kind,
                                int64_t value) {
    return push(machine, (struct torch_value){.kind = kind, .as.integer = value});
}

static enum status push_unsigned(struct torch_machine *machine, size_t width) {
    uint64_t value;
    TRY(take_number(machine, width, &value));
    return push_integer(machine, TORCH_INT, (int64_t)value);
}

static enum status push_signed(struct torch_machine *machine) {
    uint64_t value;
    TRY(take_number(machine, 4, &value));
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
    return push(machine, (struct torch_value){.kind = kind, .as.text = text});
}

/* A whole number of up to 255 bytes, two's complement. */
static enum status push_long(struct torch_machine *machine) {
    const unsigned char *bytes;
    uint64_t length;
    TRY(take_number(machine, 1, &length));
    TRY(take(machine, (size_t)length, &bytes));
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
    TRY(take(machine, 8, &bytes));
    for (size_t i = 0; i < 8; i++)
        bits = bits << 8 | bytes[i];
    memcpy(&value, &bits, sizeof value);
    return push(machine, (struct torch_value){.kind = TORCH_REAL, .as.real = value});
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
    TRY(take_number(machine, 4, &length));
    TRY(take(machine, (size_t)length, &bytes));
    for (size_t i = 0, width; i < length; i += width) {
        width = utf8_width(bytes + i, (size_t)length - i);
        if (width == 0) MACHINE_FAIL(machine, "expected UTF-8, got other bytes at %zu", i);
    }
    return push_text(machine, TORCH_TEXT, bytes, (size_t)length);
}

static enum status remember(struct torch_machine *machine, size_t width) {
    struct torch_value value;
    uint64_t number;
    TRY(take_number(machine, width, &number));
    TRY(peek(machine, &value));
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
    TRY(take_number(machine, width, &number));
    if (number >= machine->memo_room || !machine->memo_known[number])
        MACHINE_FAIL(machine, "expected a memo number that was stored before, got %" PRIu64,
                     number);
    return push(machine, machine->memo[number]);
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
    return push(machine, value);
}

static enum status push_tuple(struct torch_machine *machine, size_t count) {
    if (machine->count - floor_of(machine) < count)
        MACHINE_FAIL(machine, "expected %zu values on the stack, got %zu", count,
                     machine->count - floor_of(machine));
    machine->count -= count;
    return push_container(machine, TORCH_TUPLE, machine->stack + machine->count, count);
}

static enum status push_marked_tuple(struct torch_machine *machine) {
    struct torch_value *values;
    size_t count;
    TRY(pop_mark(machine, &values, &count));
    return push_container(machine, TORCH_TUPLE, values, count);
}

/* REDUCE and NEWOBJ: a name below a tuple of arguments. */
static enum status reduce(struct torch_machine *machine, int is_new) {
    struct torch_value arguments, callee, made;
    char shown[TORCH_SHOWN_SIZE];
    unsigned height;
    TRY(pop(machine, &arguments));
    TRY(pop(machine, &callee));
    torch_show(&callee, shown);
    if (callee.kind != TORCH_OPAQUE || callee.as.opaque->callee == CALLEE_NONE ||
        (is_new && callee.as.opaque->callee != CALLEE_USER))
        MACHINE_FAIL(machine, "expected the name of what is made, got %s", shown);
    if (arguments.kind != TORCH_TUPLE)
        MACHINE_FAIL(machine, "expected a tuple of arguments for %s", shown);
    TRY(torch_seal(machine, &arguments, &height));
    TRY(torch_reduce(machine, callee.as.opaque, arguments.as.members, &made));
    return push(machine, made);
}

/* What Python would write into an object. An OrderedDict may have attributes (a state dict's
 * _metadata): nothing here needs them. */
static enum status build(struct torch_machine *machine) {
    struct torch_value state, object;
    char shown[TORCH_SHOWN_SIZE];
    TRY(pop(machine, &state));
    TRY(peek(machine, &object));
    torch_show(&object, shown);
    if (object.kind == TORCH_DICT) return STATUS_OK;
    if (object.kind != TORCH_OPAQUE || object.as.opaque->callee != CALLEE_NONE)
        MACHINE_FAIL(machine, "expected an object that has a state, got %s", shown);
    struct torch_opaque *opaque = object.as.opaque;
    if (!opaque->is_data) return STATUS_OK;
    TRY(raise(machine, &state, &opaque->height));
    if (opaque->sealed)
        MACHINE_FAIL(machine, "expected the state of %s before it is stored, got it behind", shown);
    opaque->state = state;
    return STATUS_OK;
}

static enum status persistent(struct torch_machine *machine) {
    struct torch_value id, storage;
    TRY(pop(machine, &id));
    TRY(torch_persistent(machine, &id, &storage));
    return push(machine, storage);
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
    case '}':
        return push_container(machine, TORCH_DICT, NULL, 0);
    case ']':
        return push_container(machine, TORCH_LIST, NULL, 0);
    case ')':
        return push_container(machine, TORCH_TUPLE, NULL, 0);
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
    TRY(take(machine, 2, &head));
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

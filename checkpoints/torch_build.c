/* SPDX-License-Identifier: Apache-2.0
 * What the names in a pickle make of their arguments: tensors, ordered dicts, sizes, bytes. Every
 * tensor is checked against its storage here, once, so that nobody who reads it later can leave
 * the file.
 *
 * Invariant: every element of a tensor lies in its storage, and every storage in its member. */
#include "checkpoints/torch_private.h"

#include "checkpoints/strict_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define RANK 64u

static enum status argument_fail(const struct torch_machine *machine, const char *callee, size_t at,
                                 const char *wanted, const struct torch_members *arguments) {
    char shown[TORCH_SHOWN_SIZE] = "nothing";
    if (at < arguments->count) torch_show(&arguments->values[at], shown);
    MACHINE_FAIL(machine, "%s: expected %s as argument %zu, got %s", callee, wanted, at + 1, shown);
}

static int is_kind(const struct torch_members *arguments, size_t at, enum torch_kind kind) {
    return at < arguments->count && arguments->values[at].kind == kind;
}

/* Reads a tuple of whole numbers from 0 on. */
static enum status read_sizes(const struct torch_machine *machine, const char *callee,
                              const struct torch_members *arguments, size_t at, size_t *out_rank,
                              const uint64_t **out) {
    uint64_t *sizes;
    if (!is_kind(arguments, at, TORCH_TUPLE))
        return argument_fail(machine, callee, at, "a tuple of sizes", arguments);
    const struct torch_members *tuple = arguments->values[at].as.members;
    if (tuple->count > RANK)
        MACHINE_FAIL(machine, "%s: expected at most %u dimensions, got %zu", callee, RANK,
                     tuple->count);
    TRY(arena_take(machine->arena, tuple->count, sizeof *sizes, "shape", &sizes));
    for (size_t i = 0; i < tuple->count; i++) {
        if (tuple->values[i].kind != TORCH_INT || tuple->values[i].as.integer < 0)
            return argument_fail(machine, callee, at, "sizes that are whole numbers from 0 on",
                                 arguments);
        sizes[i] = (uint64_t)tuple->values[i].as.integer;
    }
    *out_rank = tuple->count;
    *out = sizes;
    return STATUS_OK;
}

/* Stores the number of the last element that a tensor reaches. Returns 0 if it overflows. */
static int last_element(const struct torch_tensor *tensor, uint64_t *out) {
    uint64_t last = tensor->offset;
    for (size_t i = 0; i < tensor->rank; i++) {
        const uint64_t steps = tensor->shape[i] - 1, stride = tensor->strides[i];
        if (steps != 0 && stride > (UINT64_MAX - last) / steps) return 0;
        last += steps * stride;
    }
    *out = last;
    return 1;
}

static int lies_in_rows(const struct torch_tensor *tensor) {
    uint64_t stride = 1;
    for (size_t i = tensor->rank; i-- > 0;) {
        if (tensor->shape[i] != 1 && tensor->strides[i] != stride) return 0;
        stride *= tensor->shape[i];
    }
    return 1;
}

static enum status check_tensor(const struct torch_machine *machine, struct torch_tensor *tensor) {
    const uint64_t width = safetensors_dtype_bits(tensor->dtype) / 8;
    uint64_t bytes, last;
    if (!safetensors_size(tensor->dtype, tensor->shape, tensor->rank, &tensor->count, &bytes))
        MACHINE_FAIL(machine, "expected a tensor of fewer than 2^64 bytes, got more");
    if (tensor->count == 0) {
        tensor->is_contiguous = 1;
        tensor->offset = 0;
        return STATUS_OK;
    }
    if (!last_element(tensor, &last) || last >= tensor->storage.length / width)
        MACHINE_FAIL(machine,
                     "expected a tensor inside its storage (%s, %" PRIu64 " elements), got one "
                     "that leaves it",
                     strict_quote(tensor->storage.key).text, tensor->storage.length / width);
    tensor->is_contiguous = lies_in_rows(tensor);
    return STATUS_OK;
}

/* conj and neg bits stand in the seventh argument: values that the bytes do not show. */
static int has_bits(const struct torch_members *arguments, size_t at) {
    if (at >= arguments->count || is_kind(arguments, at, TORCH_NONE)) return 0;
    return !is_kind(arguments, at, TORCH_DICT) || arguments->values[at].as.members->count > 0;
}

/* (storage, offset, size, stride, requires_grad, hooks); version 3 has the dtype behind these. */
static enum status make_tensor(const struct torch_machine *machine,
                               const struct torch_opaque *callee,
                               const struct torch_members *arguments, struct torch_value *out) {
    const int is_third = callee->callee == CALLEE_TENSOR_V3;
    struct torch_tensor *tensor;
    size_t ranks[2];
    if (!is_kind(arguments, 0, TORCH_STORAGE))
        return argument_fail(machine, callee->name, 0, "a storage", arguments);
    if (!is_kind(arguments, 1, TORCH_INT) || arguments->values[1].as.integer < 0)
        return argument_fail(machine, callee->name, 1, "an offset from 0 on", arguments);
    TRY(arena_take(machine->arena, 1, sizeof *tensor, "tensors", &tensor));
    tensor->storage = *arguments->values[0].as.storage;
    tensor->dtype = tensor->storage.dtype;
    tensor->offset = (uint64_t)arguments->values[1].as.integer;
    if (is_third) {
        if (!is_kind(arguments, 6, TORCH_OPAQUE) ||
            arguments->values[6].as.opaque->callee != CALLEE_DTYPE)
            return argument_fail(machine, callee->name, 6, "a dtype", arguments);
        tensor->dtype = arguments->values[6].as.opaque->dtype;
    }
    if (tensor->storage.is_typed == is_third)
        return argument_fail(machine, callee->name, 0,
                             is_third ? "an untyped storage" : "a storage with a dtype", arguments);
    if (has_bits(arguments, is_third ? 7 : 6))
        return argument_fail(machine, callee->name, is_third ? 7 : 6,
                             "no conjugate or negative bit", arguments);
    TRY(read_sizes(machine, callee->name, arguments, 2, &ranks[0], &tensor->shape));
    TRY(read_sizes(machine, callee->name, arguments, 3, &ranks[1], &tensor->strides));
    if (ranks[0] != ranks[1])
        MACHINE_FAIL(machine, "%s: expected a stride for each of %zu dimensions, got %zu",
                     callee->name, ranks[0], ranks[1]);
    tensor->rank = ranks[0];
    TRY(check_tensor(machine, tensor));
    *out = (struct torch_value){.kind = TORCH_TENSOR, .as.tensor = tensor};
    return STATUS_OK;
}

static enum status make_text(const struct torch_machine *machine, const char *bytes, size_t length,
                             struct torch_value *out) {
    struct torch_text *text;
    TRY(arena_take(machine->arena, 1, sizeof *text, "bytes", &text));
    *text = (struct torch_text){bytes, length};
    *out = (struct torch_value){.kind = TORCH_BYTES, .as.text = text};
    return STATUS_OK;
}

/* _codecs.encode(text, "latin1"): each character is a byte. The text is valid UTF-8, so what has no
 * byte begins with more than 0xC3. */
static enum status make_bytes(const struct torch_machine *machine,
                              const struct torch_members *arguments, struct torch_value *out) {
    if (!is_kind(arguments, 0, TORCH_TEXT))
        return argument_fail(machine, "_codecs.encode", 0, "a text", arguments);
    if (!is_kind(arguments, 1, TORCH_TEXT) ||
        strcmp(arguments->values[1].as.text->bytes, "latin1") != 0)
        return argument_fail(machine, "_codecs.encode", 1, "the codec latin1", arguments);
    const struct torch_text *text = arguments->values[0].as.text;
    size_t count = 0;
    char *bytes;
    TRY(arena_text(machine->arena, text->bytes, text->length, &bytes));
    for (size_t i = 0; i < text->length; i++) {
        unsigned char byte = (unsigned char)text->bytes[i];
        if (byte > 0xC3)
            MACHINE_FAIL(machine, "_codecs.encode: expected characters of one byte in latin1");
        if (byte >= 0xC2) {
            i++;
            byte = (unsigned char)((unsigned)byte << 6 | ((unsigned char)text->bytes[i] & 0x3Fu));
        }
        memcpy(bytes + count++, &byte, 1);
    }
    bytes[count] = '\0';
    return make_text(machine, bytes, count, out);
}

static enum status make_ordered_dict(const struct torch_machine *machine,
                                     const struct torch_members *arguments,
                                     struct torch_value *out) {
    struct torch_members *members;
    if (arguments->count > 0)
        return argument_fail(machine, "collections.OrderedDict", 0, "nothing", arguments);
    TRY(arena_take(machine->arena, 1, sizeof *members, "containers", &members));
    *out = (struct torch_value){.kind = TORCH_DICT, .as.members = members};
    return STATUS_OK;
}

/* The arguments are sealed, so what is made of them cannot hold itself. */
static enum status make_opaque(const struct torch_machine *machine,
                               const struct torch_opaque *callee,
                               const struct torch_members *arguments, struct torch_value *out) {
    struct torch_opaque *made;
    TRY(arena_take(machine->arena, 1, sizeof *made, "objects", &made));
    made->name = callee->name;
    made->is_data = callee->callee == CALLEE_DATA;
    if (made->is_data) {
        made->arguments = arguments;
        made->height = arguments->height;
    }
    *out = (struct torch_value){.kind = TORCH_OPAQUE, .as.opaque = made};
    return STATUS_OK;
}

static int is_name(const struct torch_members *arguments, size_t at) {
    return is_kind(arguments, at, TORCH_OPAQUE);
}

/* (function, class, its arguments, attributes): a tensor to which Python has given attributes, as
 * FSDP does. Attributes change no value. Of a class of its own nobody knows what its bytes are. */
static enum status make_from_type(const struct torch_machine *machine,
                                  const struct torch_opaque *callee,
                                  const struct torch_members *arguments, struct torch_value *out) {
    if (!is_name(arguments, 0))
        return argument_fail(machine, callee->name, 0, "a function", arguments);
    if (!is_name(arguments, 1))
        return argument_fail(machine, callee->name, 1, "a class", arguments);
    if (!is_kind(arguments, 2, TORCH_TUPLE))
        return argument_fail(machine, callee->name, 2, "a tuple of arguments", arguments);
    const struct torch_opaque *function = arguments->values[0].as.opaque;
    const struct torch_opaque *type = arguments->values[1].as.opaque;
    if (type->callee == CALLEE_TENSOR_TYPE &&
        (function->callee == CALLEE_TENSOR || function->callee == CALLEE_TENSOR_V3))
        return make_tensor(machine, function, arguments->values[2].as.members, out);
    struct torch_opaque *made;
    TRY(arena_take(machine->arena, 1, sizeof *made, "objects", &made));
    made->name = type->name;
    made->is_tensor = 1;
    *out = (struct torch_value){.kind = TORCH_OPAQUE, .as.opaque = made};
    return STATUS_OK;
}

enum status torch_reduce(const struct torch_machine *machine, const struct torch_opaque *callee,
                         const struct torch_members *arguments, struct torch_value *out) {
    switch ((enum torch_callee)callee->callee) {
    case CALLEE_TENSOR:
    case CALLEE_TENSOR_V3:
        return make_tensor(machine, callee, arguments, out);
    case CALLEE_PARAMETER:
        if (!is_kind(arguments, 0, TORCH_TENSOR))
            return argument_fail(machine, callee->name, 0, "a tensor", arguments);
        *out = arguments->values[0];
        return STATUS_OK;
    case CALLEE_FROM_TYPE:
        return make_from_type(machine, callee, arguments, out);
    case CALLEE_ORDERED_DICT:
        return make_ordered_dict(machine, arguments, out);
    case CALLEE_SIZE:
    case CALLEE_COUNTER:
        if (!is_kind(arguments, 0, callee->callee == CALLEE_SIZE ? TORCH_TUPLE : TORCH_DICT))
            return argument_fail(machine, callee->name, 0, "a container", arguments);
        *out = arguments->values[0];
        return STATUS_OK;
    case CALLEE_ENCODE:
        return make_bytes(machine, arguments, out);
    case CALLEE_BYTES:
        if (arguments->count > 0)
            return argument_fail(machine, callee->name, 0, "nothing", arguments);
        return make_text(machine, "", 0, out);
    case CALLEE_DATA:
    case CALLEE_USER:
        return make_opaque(machine, callee, arguments, out);
    default:
        MACHINE_FAIL(machine, "expected the name of a function or a class, got %s", callee->name);
    }
}

static const struct torch_member *storage_member(const struct torch_zip *zip, const char *key) {
    char name[64];
    const int length = snprintf(name, sizeof name, "data/%s", key);
    return length < 0 || (size_t)length >= sizeof name ? NULL : torch_zip_find(zip, name);
}

/* ('storage', type, key, location, count). */
enum status torch_persistent(const struct torch_machine *machine, const struct torch_value *id,
                             struct torch_value *out) {
    const struct torch_members none = {0};
    const struct torch_members *parts = id->kind == TORCH_TUPLE ? id->as.members : &none;
    struct torch_storage *storage;
    if (!is_kind(parts, 0, TORCH_TEXT) || !is_kind(parts, 1, TORCH_OPAQUE) ||
        !is_kind(parts, 2, TORCH_TEXT) || !is_kind(parts, 3, TORCH_TEXT) ||
        !is_kind(parts, 4, TORCH_INT) || parts->values[4].as.integer < 0 ||
        strcmp(parts->values[0].as.text->bytes, "storage") != 0)
        MACHINE_FAIL(machine, "expected ('storage', type, key, location, number of elements)");
    const struct torch_opaque *type = parts->values[1].as.opaque;
    if (type->callee != CALLEE_STORAGE && type->callee != CALLEE_UNTYPED_STORAGE)
        MACHINE_FAIL(machine, "expected a type of storage, got %s", strict_quote(type->name).text);
    TRY(arena_take(machine->arena, 1, sizeof *storage, "storages", &storage));
    storage->is_typed = type->callee == CALLEE_STORAGE;
    storage->dtype = type->dtype;
    storage->key = parts->values[2].as.text->bytes;
    storage->location = parts->values[3].as.text->bytes;
    const struct torch_member *member = storage_member(machine->zip, storage->key);
    if (member == NULL)
        MACHINE_FAIL(machine, "expected the member data/%s, which the file has not",
                     strict_quote(storage->key).text);
    const uint64_t width = storage->is_typed ? safetensors_dtype_bits(storage->dtype) / 8 : 1;
    const uint64_t count = (uint64_t)parts->values[4].as.integer;
    if (member->length / width != count || member->length % width != 0)
        MACHINE_FAIL(machine,
                     "member data/%s: expected %" PRIu64 " elements of %" PRIu64
                     " bytes, got %" PRIu64 " bytes",
                     storage->key, count, width, member->length);
    storage->bytes = member->bytes;
    storage->length = member->length;
    *out = (struct torch_value){.kind = TORCH_STORAGE, .as.storage = storage};
    return STATUS_OK;
}

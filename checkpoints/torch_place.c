/* SPDX-License-Identifier: Apache-2.0
 * Walks what a file of torch.save holds. Errors name the file and the way to the value, as Python
 * would spell it. */
#include "checkpoints/torch_private.h"

#include "base/number.h"
#include "checkpoints/strict_json.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct torch_place torch_root(const struct torch_file *file) {
    return (struct torch_place){.file = file, .value = file->root};
}

static int is_word(const char *key) {
    for (size_t i = 0; key[i] != '\0'; i++) {
        const char c = key[i];
        const int is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!is_letter && (i == 0 || c < '0' || c > '9')) return 0;
    }
    return key[0] != '\0';
}

void torch_way(const struct torch_place *at, char out[TORCH_SHOWN_SIZE]) {
    char before[TORCH_SHOWN_SIZE];
    if (at->parent == NULL) {
        out[0] = '\0';
        return;
    }
    torch_way(at->parent, before);
    if (at->key == NULL)
        snprintf(out, TORCH_SHOWN_SIZE, "%.150s[%" PRId64 "]", before, at->index);
    else if (is_word(at->key))
        snprintf(out, TORCH_SHOWN_SIZE, "%.150s%s%.80s", before, before[0] == '\0' ? "" : ".",
                 at->key);
    else
        snprintf(out, TORCH_SHOWN_SIZE, "%.150s[%.80s]", before, strict_quote(at->key).text);
}

/* A tensor's dtype and shape, as those of safetensors are written. */
static void show_tensor(const struct torch_tensor *tensor, char out[TORCH_SHOWN_SIZE]) {
    char shape[SAFETENSORS_SHAPE_TEXT];
    const struct safetensors_tensor as = {
        .dtype = tensor->dtype, .rank = tensor->rank, .shape = tensor->shape};
    safetensors_shape_text(&as, shape);
    snprintf(out, TORCH_SHOWN_SIZE, "a tensor %s", shape);
}

void torch_show(const struct torch_value *value, char out[TORCH_SHOWN_SIZE]) {
    static const char *const kinds[TORCH_KINDS] = {
        [TORCH_NONE] = "None",        [TORCH_BIG] = "a whole number beyond 64 bits",
        [TORCH_LIST] = "a list",      [TORCH_TUPLE] = "a tuple",
        [TORCH_DICT] = "a dict",      [TORCH_BYTES] = "bytes",
        [TORCH_STORAGE] = "a storage"};
    switch (value->kind) {
    case TORCH_BOOL:
        snprintf(out, TORCH_SHOWN_SIZE, "%s", value->as.integer ? "True" : "False");
        return;
    case TORCH_INT:
        snprintf(out, TORCH_SHOWN_SIZE, "the whole number %" PRId64, value->as.integer);
        return;
    case TORCH_REAL:
        snprintf(out, TORCH_SHOWN_SIZE, "the number %s", number_text_f64(value->as.real).text);
        return;
    case TORCH_TEXT:
        snprintf(out, TORCH_SHOWN_SIZE, "the text %s", strict_quote(value->as.text->bytes).text);
        return;
    case TORCH_TENSOR:
        show_tensor(value->as.tensor, out);
        return;
    case TORCH_OPAQUE:
        snprintf(out, TORCH_SHOWN_SIZE, "opaque %s", strict_quote(value->as.opaque->name).text);
        return;
    default:
        snprintf(out, TORCH_SHOWN_SIZE, "%s", kinds[value->kind]);
    }
}

enum status torch_refuse(const struct torch_place *at, const char *format, ...) {
    char way[TORCH_SHOWN_SIZE], text[700];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    torch_way(at, way);
    FAIL(STATUS_INPUT, "%s: %s%s%s", at->file->path, way, way[0] == '\0' ? "" : ": ", text);
}

enum status torch_unexpected(const struct torch_place *at, const char *wanted) {
    char shown[TORCH_SHOWN_SIZE];
    torch_show(&at->value, shown);
    const char *advice =
        at->value.kind == TORCH_OPAQUE ? torch_class_advice(at->value.as.opaque->name) : NULL;
    return torch_refuse(at, "expected %s, got %s%s%s", wanted, shown, advice == NULL ? "" : ": ",
                        advice == NULL ? "" : advice);
}

int torch_is_other_tensor(const struct torch_value *value) {
    return value->kind == TORCH_OPAQUE &&
           (value->as.opaque->is_tensor || torch_class_advice(value->as.opaque->name) != NULL);
}

/* The place of a key among the sorted ones of a dict, or `count`. */
static size_t place_of(const struct torch_members *members, const struct torch_value *key) {
    size_t low = 0, high = members->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const struct torch_value *at = members->sorted[middle];
        const int side = torch_compare_keys(key, at);
        if (side == 0) return (size_t)(at - members->keys);
        if (side < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return members->count;
}

int torch_find(const struct torch_place *in, const char *key, struct torch_place *out) {
    const struct torch_text text = {key, strlen(key)};
    const struct torch_value wanted = {.kind = TORCH_TEXT, .as.text = &text};
    if (in->value.kind != TORCH_DICT) return 0;
    const struct torch_members *members = in->value.as.members;
    const size_t at = place_of(members, &wanted);
    if (at == members->count) return 0;
    *out = (struct torch_place){
        .file = in->file, .parent = in, .key = key, .value = members->values[at]};
    return 1;
}

int torch_find_number(const struct torch_place *in, int64_t key, struct torch_place *out) {
    const struct torch_value wanted = {.kind = TORCH_INT, .as.integer = key};
    if (in->value.kind != TORCH_DICT) return 0;
    const struct torch_members *members = in->value.as.members;
    const size_t at = place_of(members, &wanted);
    if (at == members->count) return 0;
    *out = (struct torch_place){
        .file = in->file, .parent = in, .index = key, .value = members->values[at]};
    return 1;
}

enum status torch_key(const struct torch_place *in, const char *key, struct torch_place *out) {
    if (in->value.kind != TORCH_DICT) return torch_unexpected(in, "a dict");
    if (!torch_find(in, key, out))
        return torch_refuse(in, "expected the key %s, which is missing", strict_quote(key).text);
    return STATUS_OK;
}

enum status torch_count(const struct torch_place *in, const char *what, size_t *out) {
    const enum torch_kind kind = in->value.kind;
    if (kind != TORCH_LIST && kind != TORCH_TUPLE && kind != TORCH_DICT)
        return torch_unexpected(in, what);
    *out = in->value.as.members->count;
    return STATUS_OK;
}

enum status torch_item(const struct torch_place *in, size_t at, struct torch_place *out) {
    if (in->value.kind != TORCH_LIST && in->value.kind != TORCH_TUPLE)
        return torch_unexpected(in, "a list");
    const struct torch_members *members = in->value.as.members;
    if (at >= members->count)
        return torch_refuse(in, "expected at least %zu members, got %zu", at + 1, members->count);
    *out = (struct torch_place){
        .file = in->file, .parent = in, .index = (int64_t)at, .value = members->values[at]};
    return STATUS_OK;
}

enum status torch_entry(const struct torch_place *in, size_t at, struct torch_place *out) {
    if (in->value.kind != TORCH_DICT) return torch_unexpected(in, "a dict");
    const struct torch_members *members = in->value.as.members;
    if (at >= members->count)
        return torch_refuse(in, "expected at least %zu entries, got %zu", at + 1, members->count);
    const struct torch_value *key = &members->keys[at];
    *out = (struct torch_place){.file = in->file, .parent = in, .value = members->values[at]};
    if (key->kind == TORCH_TEXT && strlen(key->as.text->bytes) == key->as.text->length) {
        out->key = key->as.text->bytes;
        return STATUS_OK;
    }
    if (key->kind != TORCH_INT) {
        char shown[TORCH_SHOWN_SIZE];
        torch_show(key, shown);
        return torch_refuse(in, "expected keys that are texts or whole numbers, got %s", shown);
    }
    out->index = key->as.integer;
    return STATUS_OK;
}

/* Reads the one element of a tensor of whole numbers. */
static int tensor_integer(const struct torch_tensor *tensor, int64_t *out) {
    int32_t narrow;
    if (tensor->count != 1) return 0;
    if (tensor->dtype == SAFETENSORS_I64) {
        memcpy(out, tensor->storage.bytes + tensor->offset * sizeof *out, sizeof *out);
        return 1;
    }
    if (tensor->dtype != SAFETENSORS_I32) return 0;
    memcpy(&narrow, tensor->storage.bytes + tensor->offset * sizeof narrow, sizeof narrow);
    *out = narrow;
    return 1;
}

/* Reads the one element of a tensor of numbers. */
static int tensor_real(const struct torch_tensor *tensor, double *out) {
    enum dtype dtype;
    float narrow;
    if (tensor->count != 1 || !safetensors_dtype_number(tensor->dtype, &dtype)) return 0;
    const struct safetensors_tensor one = {.name = "",
                                           .path = "",
                                           .dtype = tensor->dtype,
                                           .count = 1,
                                           .data = tensor->storage.bytes +
                                                   tensor->offset * dtype_width(dtype)};
    if (safetensors_numbers(&one, 0, 1, dtype == DTYPE_F64 ? (void *)out : (void *)&narrow) !=
        STATUS_OK)
        return 0;
    if (dtype != DTYPE_F64) *out = (double)narrow;
    return 1;
}

static int number_of(const struct torch_value *value, double *out) {
    int64_t whole;
    if (value->kind == TORCH_INT)
        *out = (double)value->as.integer;
    else if (value->kind == TORCH_REAL)
        *out = value->as.real;
    else if (value->kind != TORCH_TENSOR)
        return 0;
    else if (tensor_integer(value->as.tensor, &whole))
        *out = (double)whole;
    else
        return tensor_real(value->as.tensor, out);
    return 1;
}

int torch_is_number(const struct torch_value *value) {
    double number;
    return number_of(value, &number);
}

enum status torch_number(const struct torch_place *at, double *out) {
    if (!number_of(&at->value, out)) return torch_unexpected(at, "a number");
    return STATUS_OK;
}

enum status torch_integer(const struct torch_place *at, int64_t *out) {
    double number;
    if (at->value.kind == TORCH_INT) {
        *out = at->value.as.integer;
        return STATUS_OK;
    }
    if (at->value.kind == TORCH_TENSOR && tensor_integer(at->value.as.tensor, out))
        return STATUS_OK;
    if (!number_of(&at->value, &number) || !(number > -0x1p53 && number < 0x1p53) ||
        number != (double)(int64_t)number)
        return torch_unexpected(at, "a whole number");
    *out = (int64_t)number;
    return STATUS_OK;
}

enum status torch_flag(const struct torch_place *at, int *out) {
    if (at->value.kind != TORCH_BOOL) return torch_unexpected(at, "True or False");
    *out = at->value.as.integer != 0;
    return STATUS_OK;
}

enum status torch_text_of(const struct torch_place *at, const char **out) {
    if (at->value.kind != TORCH_TEXT ||
        strlen(at->value.as.text->bytes) != at->value.as.text->length)
        return torch_unexpected(at, "a text");
    *out = at->value.as.text->bytes;
    return STATUS_OK;
}

enum status torch_tensor_of(const struct torch_place *at, const struct torch_tensor **out) {
    if (at->value.kind != TORCH_TENSOR) return torch_unexpected(at, "a tensor");
    *out = at->value.as.tensor;
    return STATUS_OK;
}

/* Copies the elements row by row; `at` counts through the dimensions. */
static void copy_rows(const struct torch_tensor *tensor, uint64_t width, uint64_t *at,
                      unsigned char *out) {
    uint64_t element = tensor->offset;
    for (uint64_t i = 0; i < tensor->count; i++) {
        memcpy(out + i * width, tensor->storage.bytes + element * width, (size_t)width);
        for (size_t k = tensor->rank; k-- > 0;) {
            element += tensor->strides[k];
            if (++at[k] < tensor->shape[k]) break;
            element -= tensor->strides[k] * tensor->shape[k];
            at[k] = 0;
        }
    }
}

#define REPEATED ((uint64_t)1 << 20)

enum status torch_tensor_rows(const struct torch_file *file, const struct torch_tensor *tensor,
                              const char *name, struct arena *arena,
                              struct safetensors_tensor *out) {
    const uint64_t width = safetensors_dtype_bits(tensor->dtype) / 8;
    *out = (struct safetensors_tensor){.name = name,
                                       .path = file->path,
                                       .dtype = tensor->dtype,
                                       .rank = tensor->rank,
                                       .shape = tensor->shape,
                                       .count = tensor->count,
                                       .end = tensor->count * width};
    if (tensor->is_contiguous) {
        out->data = tensor->storage.bytes + tensor->offset * width;
        return STATUS_OK;
    }
    unsigned char *copy;
    uint64_t *at;
    if (tensor->count > tensor->storage.length / width && tensor->count > REPEATED)
        FAIL(STATUS_INPUT,
             "%s: tensor %s: expected no more elements than its storage has (%" PRIu64
             "), got a view that repeats them to %" PRIu64 ": save a contiguous() copy",
             file->path, strict_quote(name).text, tensor->storage.length / width, tensor->count);
    TRY(arena_take(arena, (size_t)tensor->count, (size_t)width, "a view's elements", &copy));
    TRY(arena_take(arena, tensor->rank, sizeof *at, "a view's shape", &at));
    copy_rows(tensor, width, at, copy);
    out->data = copy;
    return STATUS_OK;
}

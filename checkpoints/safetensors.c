/* SPDX-License-Identifier: Apache-2.0
 * Opens a file: checks sizes first, then the header entry by entry, then the tiling. Nothing is
 * believed that the file's length does not bear out, and no memory is taken before that.
 *
 * Invariant: every tensor of an open file lies inside the mapping. */
#include "checkpoints/safetensors.h"

#include <inttypes.h>
#include <string.h>

#include "checkpoints/order.h"
#include "checkpoints/strict_json.h"

struct opening {
    const char *path;
    struct arena *arena;
    struct safetensors_file *file;
    struct mapped whole;
    struct safetensors_tensor *tensors; /* in the order of the header */
    const unsigned char *data;
    uint64_t data_length;
};

#define TENSOR_FAIL(opening, name, ...)                                                            \
    return status_prefix(status_fail(STATUS_INPUT, __VA_ARGS__), "%s: tensor %s", (opening)->path, \
                         strict_quote(name).text)

static uint64_t load_u64(const unsigned char *bytes) {
    uint64_t value = 0;
    for (size_t i = 8; i-- > 0;)
        value = value << 8 | bytes[i];
    return value;
}

/* Finds the header and checks its length before it is parsed. */
static enum status find_header(const char *path, const struct mapped *mapped, size_t *out_length) {
    if (mapped->length < 8)
        FAIL(STATUS_INPUT,
             "%s: expected a safetensors file, got %zu bytes: the length of its header takes 8",
             path, mapped->length);
    const uint64_t length = load_u64(mapped->bytes);
    if (length > SAFETENSORS_HEADER_LIMIT)
        FAIL(STATUS_INPUT,
             "%s: expected a header of at most %u bytes, got a length of %" PRIu64
             "; is this a safetensors file?",
             path, SAFETENSORS_HEADER_LIMIT, length);
    if (length > mapped->length - 8)
        FAIL(STATUS_INPUT,
             "%s: expected a header of %" PRIu64
             " bytes, but only %zu follow its length: the file is cut short",
             path, length, mapped->length - 8);
    if (length == 0 || mapped->bytes[8] != '{')
        FAIL(STATUS_INPUT, "%s: expected the header to begin with {%s", path,
             length == 0 ? ", got a header of 0 bytes" : "");
    *out_length = (size_t)length;
    return STATUS_OK;
}

static enum status read_metadata(struct opening *opening, json_t *value) {
    struct safetensors_pair *pairs;
    const char *key;
    json_t *text;
    size_t at = 0;
    if (!json_is_object(value))
        FAIL(STATUS_INPUT, "%s: __metadata__: expected an object of strings, got %s", opening->path,
             strict_json_kind(value));
    TRY(arena_take(opening->arena, json_object_size(value), sizeof *pairs, "metadata", &pairs));
    json_object_foreach(value, key, text) {
        char *copy[2];
        if (!json_is_string(text))
            FAIL(STATUS_INPUT, "%s: __metadata__: %s: expected a string, got %s", opening->path,
                 strict_quote(key).text, strict_json_kind(text));
        TRY(arena_text(opening->arena, key, strlen(key), &copy[0]));
        TRY(arena_text(opening->arena, json_string_value(text), json_string_length(text),
                       &copy[1]));
        pairs[at].key = copy[0];
        pairs[at++].value = copy[1];
    }
    opening->file->metadata = pairs;
    opening->file->metadata_count = at;
    return STATUS_OK;
}

static enum status check_keys(const struct opening *opening, const char *name, json_t *entry) {
    static const char *const known[] = {"dtype", "shape", "data_offsets"};
    const char *key;
    json_t *value;
    if (!json_is_object(entry))
        TENSOR_FAIL(opening, name, "expected an object of dtype, shape and data_offsets, got %s",
                    strict_json_kind(entry));
    for (size_t i = 0; i < COUNT_OF(known); i++)
        if (json_object_get(entry, known[i]) == NULL)
            TENSOR_FAIL(opening, name, "expected the key %s, which is missing", known[i]);
    json_object_foreach(entry, key, value) {
        size_t i = 0;
        while (i < COUNT_OF(known) && strcmp(key, known[i]) != 0)
            i++;
        if (i == COUNT_OF(known))
            TENSOR_FAIL(opening, name, "expected dtype, shape and data_offsets only, got %s",
                        strict_quote(key).text);
    }
    return STATUS_OK;
}

static enum status read_dtype(const struct opening *opening, json_t *entry,
                              struct safetensors_tensor *tensor) {
    json_t *value = json_object_get(entry, "dtype");
    if (!json_is_string(value))
        TENSOR_FAIL(opening, tensor->name, "dtype: expected a string, got %s",
                    strict_json_kind(value));
    tensor->dtype = safetensors_dtype_of(json_string_value(value));
    if (tensor->dtype == SAFETENSORS_DTYPES)
        TENSOR_FAIL(opening, tensor->name, "dtype: expected one of the format's, got %s",
                    strict_quote(json_string_value(value)).text);
    return STATUS_OK;
}

static enum status read_shape(const struct opening *opening, json_t *entry,
                              struct safetensors_tensor *tensor) {
    json_t *value = json_object_get(entry, "shape");
    uint64_t *shape;
    if (!json_is_array(value))
        TENSOR_FAIL(opening, tensor->name, "shape: expected an array, got %s",
                    strict_json_kind(value));
    tensor->rank = json_array_size(value);
    TRY(arena_take(opening->arena, tensor->rank, sizeof *shape, "shape", &shape));
    for (size_t i = 0; i < tensor->rank; i++) {
        const json_t *size = json_array_get(value, i);
        if (!strict_json_count(size, &shape[i]))
            TENSOR_FAIL(opening, tensor->name,
                        "shape: expected whole numbers from 0 on, got %s at place %zu",
                        json_is_integer(size) ? "a negative integer" : strict_json_kind(size),
                        i + 1);
    }
    tensor->shape = shape;
    return STATUS_OK;
}

static enum status read_offsets(const struct opening *opening, json_t *entry,
                                struct safetensors_tensor *tensor) {
    json_t *value = json_object_get(entry, "data_offsets");
    if (json_array_size(value) != 2 ||
        !strict_json_count(json_array_get(value, 0), &tensor->begin) ||
        !strict_json_count(json_array_get(value, 1), &tensor->end))
        TENSOR_FAIL(opening, tensor->name,
                    "data_offsets: expected two whole numbers from 0 on, got %s%s",
                    strict_json_kind(value), json_is_array(value) ? " of something else" : "");
    if (tensor->begin > tensor->end)
        TENSOR_FAIL(opening, tensor->name,
                    "data_offsets: expected begin before end, got %" PRIu64 " and %" PRIu64,
                    tensor->begin, tensor->end);
    if (tensor->end > opening->data_length)
        TENSOR_FAIL(opening, tensor->name,
                    "data_offsets: expected an end inside the %" PRIu64
                    " bytes of data, got %" PRIu64 ": is the file cut short?",
                    opening->data_length, tensor->end);
    return STATUS_OK;
}

static enum status check_size(const struct opening *opening, struct safetensors_tensor *tensor) {
    char text[SAFETENSORS_SHAPE_TEXT];
    uint64_t bytes;
    safetensors_shape_text(tensor, text);
    if (!safetensors_size(tensor->dtype, tensor->shape, tensor->rank, &tensor->count, &bytes))
        TENSOR_FAIL(opening, tensor->name,
                    "expected a shape whose size is a whole number of bytes below 2^64, got %s",
                    text);
    if (bytes != tensor->end - tensor->begin)
        TENSOR_FAIL(opening, tensor->name,
                    "expected %" PRIu64 " bytes for %s, got %" PRIu64 " from data_offsets", bytes,
                    text, tensor->end - tensor->begin);
    tensor->data = opening->data + tensor->begin;
    return STATUS_OK;
}

static enum status read_tensor(struct opening *opening, const char *name, json_t *entry,
                               struct safetensors_tensor *tensor) {
    char *copy;
    TRY(arena_text(opening->arena, name, strlen(name), &copy));
    tensor->name = copy;
    tensor->path = opening->path;
    TRY(check_keys(opening, name, entry));
    TRY(read_dtype(opening, entry, tensor));
    TRY(read_shape(opening, entry, tensor));
    TRY(read_offsets(opening, entry, tensor));
    return check_size(opening, tensor);
}

static enum status read_entries(struct opening *opening, json_t *header) {
    struct safetensors_file *file = opening->file;
    const size_t most = json_object_size(header);
    const char *key;
    json_t *value;
    TRY(arena_take(opening->arena, most, sizeof *opening->tensors, "tensors", &opening->tensors));
    json_object_foreach(header, key, value) {
        if (strcmp(key, "__metadata__") == 0)
            TRY(read_metadata(opening, value));
        else
            TRY(read_tensor(opening, key, value, &opening->tensors[file->count++]));
    }
    return STATUS_OK;
}

static int compare_places(const void *a, const void *b) {
    const struct safetensors_tensor *left = (const struct safetensors_tensor *)a;
    const struct safetensors_tensor *right = (const struct safetensors_tensor *)b;
    if (left->begin != right->begin) return left->begin < right->begin ? -1 : 1;
    return left->end == right->end ? 0 : left->end < right->end ? -1 : 1;
}

static int compare_names(const void *a, const void *b) {
    return strcmp(((const struct safetensors_tensor *)a)->name,
                  ((const struct safetensors_tensor *)b)->name);
}

/* Checks that the tensors tile the data; they are sorted by place. */
static enum status check_tiling(const struct opening *opening, const void *const *sorted) {
    uint64_t at = 0;
    for (size_t i = 0; i < opening->file->count; i++) {
        const struct safetensors_tensor *tensor = (const struct safetensors_tensor *)sorted[i];
        if (tensor->begin > at)
            TENSOR_FAIL(opening, tensor->name,
                        "data_offsets: expected a begin of %" PRIu64 ", got %" PRIu64
                        ": the bytes between belong to no tensor",
                        at, tensor->begin);
        if (tensor->begin < at)
            TENSOR_FAIL(
                opening, tensor->name,
                "data_offsets: expected a begin of %" PRIu64 ", got %" PRIu64
                ": it overlaps tensor %s",
                at, tensor->begin,
                strict_quote(((const struct safetensors_tensor *)sorted[i - 1])->name).text);
        at = tensor->end;
    }
    if (at != opening->data_length)
        FAIL(STATUS_INPUT,
             "%s: expected %" PRIu64 " bytes of data, got %" PRIu64
             ": the rest belongs to no tensor",
             opening->path, at, opening->data_length);
    return STATUS_OK;
}

static enum status arrange(struct opening *opening) {
    struct safetensors_file *file = opening->file;
    const void **sorted;
    TRY(arena_take(opening->arena, file->count, sizeof *sorted, "tensors", &sorted));
    for (size_t i = 0; i < file->count; i++)
        sorted[i] = &opening->tensors[i];
    TRY(order_pointers(sorted, file->count, compare_places, opening->arena));
    TRY(check_tiling(opening, sorted));
    TRY(order_pointers(sorted, file->count, compare_names, opening->arena));
    TRY(arena_take(opening->arena, file->count, sizeof *file->tensors, "tensors", &file->tensors));
    for (size_t i = 0; i < file->count; i++)
        file->tensors[i] = (const struct safetensors_tensor *)sorted[i];
    return STATUS_OK;
}

static enum status read_header(struct opening *opening) {
    const struct mapped *mapped = &opening->whole;
    size_t length = 0;
    json_t *header;
    TRY(find_header(opening->path, mapped, &length));
    opening->data = mapped->bytes + 8 + length;
    opening->data_length = mapped->length - 8 - length;
    TRY(strict_json_object(opening->path, mapped->bytes + 8, length, &header));
    const enum status status = read_entries(opening, header);
    json_decref(header);
    TRY(status);
    return arrange(opening);
}

static enum status begin(struct opening *opening, const char *path) {
    char *copy;
    memset(opening->file, 0, sizeof *opening->file);
    TRY(arena_text(opening->arena, path, strlen(path), &copy));
    opening->file->path = opening->path = copy;
    return STATUS_OK;
}

enum status safetensors_open(const char *path, struct arena *arena, struct safetensors_file *out) {
    struct opening opening = {.arena = arena, .file = out};
    TRY(begin(&opening, path));
    TRY(mapped_open(path, &out->mapped));
    opening.whole = out->mapped;
    const enum status status = read_header(&opening);
    if (status != STATUS_OK) safetensors_close(out);
    return status;
}

enum status safetensors_open_bytes(const char *name, const unsigned char *bytes, size_t length,
                                   struct arena *arena, struct safetensors_file *out) {
    struct opening opening = {.arena = arena, .file = out, .whole = {bytes, length, 0}};
    TRY(begin(&opening, name));
    return read_header(&opening);
}

void safetensors_close(struct safetensors_file *file) {
    mapped_close(&file->mapped);
    file->count = 0;
}

size_t safetensors_place(const struct safetensors_tensor *const *tensors, size_t count,
                         const char *name) {
    size_t low = 0, high = count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int side = strcmp(name, tensors[middle]->name);
        if (side == 0) return middle;
        if (side < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return count;
}

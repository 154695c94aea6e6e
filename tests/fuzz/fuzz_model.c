/* SPDX-License-Identifier: Apache-2.0
 * libFuzzer target: any bytes must give a checkpoint's header, a model's configuration or what a
 * file of torch.save holds, or an error with a text, never a crash.
 *
 * TWINSTEP_FUZZ_FORMAT is safetensors, config or torch; without it all are tried. No fuzzer guesses
 * the length of a header or a checksum, so each input is also tried with the right one: as the
 * pickle in a zip that is well made. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "checkpoints/hf_tensors.h"
#include "checkpoints/torch_file.h"
#include "determinism/digest.h"
#include "tests/checkpoints/helper_find.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "fuzz_model: broken: %s\n", what);
    abort();
}

static void look_at(const struct safetensors_file *file, const uint8_t *data, size_t size) {
    uint64_t total = 0;
    double carriers[8];
    enum dtype dtype;
    for (size_t i = 0; i < file->count; i++) {
        const struct safetensors_tensor *tensor = file->tensors[i];
        const size_t few = tensor->count < 8 ? (size_t)tensor->count : 8;
        char text[SAFETENSORS_SHAPE_TEXT];
        require(tensor->data >= data && tensor->data + (tensor->end - tensor->begin) <= data + size,
                "tensors lie in the file");
        require(helper_find(file, tensor->name) == tensor, "tensors are found by name");
        total += tensor->end - tensor->begin;
        safetensors_shape_text(tensor, text);
        require(safetensors_numbers(tensor, tensor->count - few, few, carriers) == STATUS_OK ||
                    !safetensors_dtype_number(tensor->dtype, &dtype),
                "numbers can be read");
    }
    require(total + 10 <= size && (file->count > 0 || total == 0), "tensors tile the data");
}

static void open_bytes(const uint8_t *data, size_t size) {
    struct arena arena = ARENA_EMPTY;
    struct safetensors_file file;
    if (safetensors_open_bytes("fuzz", data, size, &arena, &file) == STATUS_OK)
        look_at(&file, data, size);
    else
        require(strlen(status_text()) > 0, "an error has a text");
    arena_close(&arena);
}

/* Takes what follows 8 bytes, up to the last brace, for the header. */
static void open_mended(const uint8_t *data, size_t size) {
    struct arena arena = ARENA_EMPTY;
    size_t end = size;
    uint8_t *copy;
    while (end > 8 && data[end - 1] != '}')
        end--;
    if (end <= 8) return;
    require(arena_take(&arena, size, 1, "copy", &copy) == STATUS_OK, "memory");
    memcpy(copy, data, size);
    for (int i = 0; i < 8; i++)
        copy[i] = (uint8_t)((uint64_t)(end - 8) >> (8 * i));
    open_bytes(copy, size);
    arena_close(&arena);
}

static void read_config(const uint8_t *data, size_t size) {
    struct arena arena = ARENA_EMPTY;
    struct hf_config config;
    struct hf_tensor *tensors;
    size_t count;
    if (hf_config_parse("fuzz", data, size, &config) != STATUS_OK) {
        require(strlen(status_text()) > 0, "an error has a text");
        return;
    }
    require(config.heads % config.kv_heads == 0 && config.head_dim % 2 == 0, "sizes fit");
    require(config.rope.theta > 0.0 && config.eps > 0.0, "numbers are positive");
    if (config.layers > 8) config.layers = 8;
    require(hf_tensors_list(&config, &arena, &tensors, &count) == STATUS_OK, "tensors are listed");
    for (size_t i = 0; i < count; i++)
        require(tensors[i].shape[0] > 0 && (tensors[i].rank == 1) == (tensors[i].shape[1] == 0),
                "shapes have sizes");
    arena_close(&arena);
}

/* Walks what was read; values may stand in many places, so that the walk is cut. */
static size_t walk(const struct torch_file *file, const struct torch_value *value, size_t left,
                   const uint8_t *data, size_t size) {
    struct arena arena = ARENA_EMPTY;
    struct safetensors_tensor rows;
    struct digest digest;
    char shown[TORCH_SHOWN_SIZE];
    torch_show(value, shown);
    require(strlen(shown) > 0, "a value is shown");
    if (value->kind == TORCH_TENSOR) {
        const struct torch_storage *storage = &value->as.tensor->storage;
        require(storage->bytes >= data && storage->bytes + storage->length <= data + size,
                "storages lie in the file");
        if (torch_tensor_rows(file, value->as.tensor, "t", &arena, &rows) == STATUS_OK)
            digest_sha256(rows.data, (size_t)(rows.end - rows.begin), &digest); /* reads all */
        arena_close(&arena);
    }
    if (value->kind != TORCH_LIST && value->kind != TORCH_TUPLE && value->kind != TORCH_DICT)
        return left;
    const struct torch_members *members = value->as.members;
    for (size_t i = 0; i < members->count && left > 0; i++) {
        if (members->keys != NULL) left = walk(file, &members->keys[i], left - 1, data, size);
        if (left > 0) left = walk(file, &members->values[i], left - 1, data, size);
    }
    return left;
}

static void open_torch(const uint8_t *data, size_t size) {
    for (int names = TORCH_STRICT; names <= TORCH_OPAQUE_NAMES; names++) {
        struct arena arena = ARENA_EMPTY;
        struct torch_file file;
        if (torch_file_open_bytes("fuzz", data, size, (enum torch_names)names, &arena, &file) ==
            STATUS_OK)
            walk(&file, &file.root, 10000, data, size);
        else
            require(strncmp(status_text(), "fuzz: ", 6) == 0, "an error has a text");
        arena_close(&arena);
    }
}

static uint8_t *put(uint8_t *at, size_t width, uint64_t value) {
    for (size_t i = 0; i < width; i++)
        *at++ = (uint8_t)(i < 8 ? value >> (8 * i) : 0);
    return at;
}

/* A header of a stored member, in front of it or in the directory. */
static uint8_t *put_header(uint8_t *at, uint64_t mark, const char *name, const uint8_t *bytes,
                           size_t size) {
    at = put(at, mark == 0x02014B50 ? 12 : 10, 0);
    at = put(at, 4, crc32_z(0, bytes, size));
    at = put(put(at, 4, size), 4, size);
    return put(put(at, 2, strlen(name)), 2, 0);
}

/* Takes the input for the pickle of a file with four storages. */
static void open_pickle(const uint8_t *data, size_t size) {
    static const uint8_t zeros[96] = {0};
    static const struct {
        const char *name;
        size_t size;
    } members[] = {
        {"a/data.pkl", 0}, {"a/data/0", 96}, {"a/data/1", 4}, {"a/data/2", 24}, {"a/data/3", 16}};
    struct arena arena = ARENA_EMPTY;
    size_t headers[5];
    uint8_t *zip;
    require(arena_take(&arena, size + 2048, 1, "zip", &zip) == STATUS_OK, "memory");
    uint8_t *at = zip;
    for (int inside = 0; inside < 2; inside++) {
        const size_t begin = (size_t)(at - zip);
        for (size_t i = 0; i < 5; i++) {
            const uint8_t *bytes = i == 0 ? data : zeros;
            const size_t length = i == 0 ? size : members[i].size;
            if (!inside) headers[i] = (size_t)(at - zip);
            at = put(at, 4, inside ? 0x02014B50 : 0x04034B50);
            at = put_header(at, inside ? 0x02014B50 : 0, members[i].name, bytes, length);
            if (inside) at = put(put(at, 10, 0), 4, headers[i]);
            memcpy(at, members[i].name, strlen(members[i].name));
            at += strlen(members[i].name);
            if (inside) continue;
            if (length > 0) memcpy(at, bytes, length);
            at += length;
        }
        if (!inside) continue;
        const size_t end = (size_t)(at - zip);
        at = put(put(at, 4, 0x06054B50), 4, 0);
        at = put(put(put(put(at, 2, 5), 2, 5), 4, end - begin), 4, begin);
        at = put(at, 2, 0);
    }
    open_torch(zip, (size_t)(at - zip));
    arena_close(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *format = getenv("TWINSTEP_FUZZ_FORMAT");
    if (format == NULL || strcmp(format, "safetensors") == 0) {
        open_bytes(data, size);
        open_mended(data, size);
    }
    if (format == NULL || strcmp(format, "config") == 0) read_config(data, size);
    if (format == NULL || strcmp(format, "torch") == 0) {
        open_torch(data, size);
        open_pickle(data, size);
    }
    return 0;
}

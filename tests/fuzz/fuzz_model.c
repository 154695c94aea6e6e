/* SPDX-License-Identifier: Apache-2.0
 * libFuzzer target: any bytes must give a checkpoint's header or a model's configuration, or an
 * error with a text, never a crash.
 *
 * TWINSTEP_FUZZ_FORMAT is safetensors or config; without it both are tried. No fuzzer guesses the
 * length of a header, so each input is also tried with the right one. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoints/hf_tensors.h"

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
        require(safetensors_find(file, tensor->name) == tensor, "tensors are found by name");
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *format = getenv("TWINSTEP_FUZZ_FORMAT");
    if (format == NULL || strcmp(format, "safetensors") == 0) {
        open_bytes(data, size);
        open_mended(data, size);
    }
    if (format == NULL || strcmp(format, "config") == 0) read_config(data, size);
    return 0;
}

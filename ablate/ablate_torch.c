/* SPDX-License-Identifier: Apache-2.0
 * Walks dicts, lists and tuples of a torch file and keeps their tensors, sorted by name. */
#include "ablate/ablate_torch.h"

#include <string.h>
#include <unistd.h>

#include "base/input.h"
#include "base/sort.h"

int ablate_torch_is(const char *path) {
    unsigned char head[16];
    struct input input;
    if (input_open(path, INPUT_FILE, path, "weights", &input) != STATUS_OK) return 0;
    const ssize_t length = read(input.descriptor, head, sizeof head);
    close(input.descriptor);
    return length > 0 && torch_file_is_zip(head, (size_t)length);
}

struct walk {
    struct arena *arena;
    struct checkpoint *out;
    size_t room;
};

static enum status add_tensor(struct walk *walk, const struct torch_place *at) {
    struct safetensors_tensor *tensor;
    char way[TORCH_SHOWN_SIZE], *name;
    torch_way(at, way);
    TRY(arena_format(walk->arena, &name, "%s", way));
    TRY(arena_take(walk->arena, 1, sizeof *tensor, "a tensor", &tensor));
    TRY(torch_tensor_rows(at->file, at->value.as.tensor, name, walk->arena, tensor));
    TRY(arena_grow(walk->arena, walk->out->count + 1, &walk->room, sizeof *walk->out->tensors,
                   "tensors", &walk->out->tensors));
    walk->out->tensors[walk->out->count++] = tensor;
    walk->out->bytes += tensor->end - tensor->begin;
    return STATUS_OK;
}

static enum status walk_place(struct walk *walk, const struct torch_place *at) {
    const enum torch_kind kind = at->value.kind;
    if (kind == TORCH_TENSOR) return add_tensor(walk, at);
    if (torch_is_other_tensor(&at->value))
        return torch_refuse(at, "expected a plain tensor, got one of another class");
    if (kind != TORCH_DICT && kind != TORCH_LIST && kind != TORCH_TUPLE) return STATUS_OK;
    for (size_t i = 0; i < at->value.as.members->count; i++) {
        struct torch_place child;
        TRY(kind == TORCH_DICT ? torch_entry(at, i, &child) : torch_item(at, i, &child));
        TRY(walk_place(walk, &child));
    }
    return STATUS_OK;
}

static int stands_before(const void *a, const void *b, const void *context) {
    const struct safetensors_tensor *const *x = (const struct safetensors_tensor *const *)a;
    const struct safetensors_tensor *const *y = (const struct safetensors_tensor *const *)b;
    (void)context;
    return strcmp((*x)->name, (*y)->name) < 0;
}

static enum status list_tensors(const struct torch_file *file, struct arena *arena,
                                struct checkpoint *out) {
    struct walk walk = {arena, out, 0};
    const struct torch_place root = torch_root(file);
    const struct safetensors_tensor **spare;
    TRY(walk_place(&walk, &root));
    if (out->count == 0) FAIL(STATUS_INPUT, "%s: expected tensors, got none", file->path);
    TRY(arena_take(arena, out->count, sizeof *spare, "tensors", &spare));
    out->tensors = (const struct safetensors_tensor **)sort_stable(
        out->tensors, spare, out->count, sizeof *spare, stands_before, NULL);
    for (size_t i = 1; i < out->count; i++)
        if (strcmp(out->tensors[i - 1]->name, out->tensors[i]->name) == 0)
            FAIL(STATUS_INPUT, "%s: two tensors are called %.200s", file->path,
                 out->tensors[i]->name);
    return STATUS_OK;
}

enum status ablate_torch_open(const char *path, struct arena *arena, struct torch_file *out_file,
                              struct checkpoint *out) {
    memset(out, 0, sizeof *out);
    out->path = path;
    TRY(torch_file_open(path, TORCH_OPAQUE_NAMES, arena, out_file));
    const enum status status = list_tensors(out_file, arena, out);
    if (status != STATUS_OK) torch_file_close(out_file);
    return status;
}

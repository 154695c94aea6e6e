/* SPDX-License-Identifier: Apache-2.0
 * Walks dicts, lists and tuples of a torch file and keeps their tensors, sorted by name. Wrappers
 * are taken out of each key, before a way is made of the keys, which puts some of them in quotes.
 */
#include "ablate/ablate_torch.h"

#include <string.h>
#include <unistd.h>

#include "base/input.h"
#include "base/sort.h"
#include "checkpoints/layers.h"

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
    int bare;          /* keys are to be without wrappers */
    unsigned wrappers; /* that keys had, bit by bit */
};

static enum status take_out_wrappers(struct walk *walk, struct torch_place *at) {
    char *bare;
    if (!walk->bare || at->key == NULL) return STATUS_OK;
    TRY(arena_take(walk->arena, strlen(at->key) + 1, 1, "a name", &bare));
    const unsigned wrappers = layer_bare_name(at->key, bare);
    if (wrappers == 0 || bare[0] == '\0') return STATUS_OK;
    walk->wrappers |= wrappers;
    at->key = bare;
    return STATUS_OK;
}

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
        TRY(take_out_wrappers(walk, &child));
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

/* Finds a name that two tensors have; NULL: there is none. */
static const char *find_twice(const struct checkpoint *sorted) {
    for (size_t i = 1; i < sorted->count; i++)
        if (strcmp(sorted->tensors[i - 1]->name, sorted->tensors[i]->name) == 0)
            return sorted->tensors[i]->name;
    return NULL;
}

static enum status list_named(const struct torch_file *file, int bare, struct arena *arena,
                              struct checkpoint *out, unsigned *out_wrappers) {
    struct walk walk = {.arena = arena, .out = out, .bare = bare};
    const struct torch_place root = torch_root(file);
    const struct safetensors_tensor **spare;
    out->count = 0;
    out->bytes = 0;
    out->tensors = NULL;
    TRY(walk_place(&walk, &root));
    if (out->count == 0) FAIL(STATUS_INPUT, "%s: expected tensors, got none", file->path);
    TRY(arena_take(arena, out->count, sizeof *spare, "tensors", &spare));
    out->tensors = (const struct safetensors_tensor **)sort_stable(
        out->tensors, spare, out->count, sizeof *spare, stands_before, NULL);
    *out_wrappers = walk.wrappers;
    return STATUS_OK;
}

static enum status list_tensors(const struct torch_file *file, struct arena *arena,
                                struct checkpoint *out, unsigned *out_wrappers) {
    TRY(list_named(file, 1, arena, out, out_wrappers));
    if (*out_wrappers != 0 && find_twice(out) != NULL)
        TRY(list_named(file, 0, arena, out, out_wrappers));
    const char *const twice = find_twice(out);
    if (twice != NULL) FAIL(STATUS_INPUT, "%s: two tensors are called %.200s", file->path, twice);
    return STATUS_OK;
}

enum status ablate_torch_as_named(const struct torch_file *file, struct arena *arena,
                                  struct checkpoint *out) {
    unsigned none;
    memset(out, 0, sizeof *out);
    out->path = file->path;
    return list_named(file, 0, arena, out, &none);
}

enum status ablate_torch_open(const char *path, struct arena *arena, struct torch_file *out_file,
                              struct checkpoint *out, unsigned *out_wrappers) {
    memset(out, 0, sizeof *out);
    out->path = path;
    TRY(torch_file_open(path, TORCH_OPAQUE_NAMES, arena, out_file));
    const enum status status = list_tensors(out_file, arena, out, out_wrappers);
    if (status != STATUS_OK) torch_file_close(out_file);
    return status;
}

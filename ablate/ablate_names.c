/* SPDX-License-Identifier: Apache-2.0
 * Names without wrappers are those of copies of the tensors, which point at the same bytes. */
#include "ablate/ablate_names.h"

#include <string.h>

#include "base/sort.h"
#include "checkpoints/layers.h"

static int stands_before(const void *a, const void *b, const void *context) {
    const struct safetensors_tensor *const *x = (const struct safetensors_tensor *const *)a;
    const struct safetensors_tensor *const *y = (const struct safetensors_tensor *const *)b;
    (void)context;
    return strcmp((*x)->name, (*y)->name) < 0;
}

static enum status copy_bare(const struct safetensors_tensor *tensor, struct arena *arena,
                             const struct safetensors_tensor **out, unsigned *wrappers) {
    struct safetensors_tensor *copy;
    char *name;
    TRY(arena_take(arena, strlen(tensor->name) + 1, 1, "a name", &name));
    TRY(arena_take(arena, 1, sizeof *copy, "a tensor", &copy));
    *wrappers |= layer_bare_name(tensor->name, name);
    *copy = *tensor;
    copy->name = name;
    *out = copy;
    return STATUS_OK;
}

enum status ablate_names_unwrap(struct checkpoint *weights, struct arena *arena,
                                unsigned *out_wrappers) {
    const struct safetensors_tensor **bare, **spare;
    unsigned wrappers = 0;
    *out_wrappers = 0;
    TRY(arena_take(arena, weights->count, sizeof *bare, "tensors", &bare));
    TRY(arena_take(arena, weights->count, sizeof *spare, "tensors", &spare));
    for (size_t i = 0; i < weights->count; i++)
        TRY(copy_bare(weights->tensors[i], arena, &bare[i], &wrappers));
    if (wrappers == 0) return STATUS_OK;
    bare = (const struct safetensors_tensor **)sort_stable(bare, spare, weights->count,
                                                           sizeof *spare, stands_before, NULL);
    for (size_t i = 1; i < weights->count; i++)
        if (strcmp(bare[i - 1]->name, bare[i]->name) == 0) return STATUS_OK;
    weights->tensors = bare;
    *out_wrappers = wrappers;
    return STATUS_OK;
}

enum status ablate_names_common(const struct checkpoint *a, const struct checkpoint *b,
                                struct arena *arena, struct ablate_common *out) {
    const char **names;
    TRY(arena_take(arena, a->count, sizeof *names, "names", &names));
    *out = (struct ablate_common){.names = names, .only = {"", ""}};
    for (size_t i = 0, j = 0; i < a->count || j < b->count;) {
        const int order = i == a->count   ? 1
                          : j == b->count ? -1
                                          : strcmp(a->tensors[i]->name, b->tensors[j]->name);
        const int side = order > 0;
        if (order == 0)
            names[out->count++] = a->tensors[i]->name;
        else if (out->only_count[side]++ == 0)
            out->only[side] = side == 0 ? a->tensors[i]->name : b->tensors[j]->name;
        i += order <= 0;
        j += order >= 0;
    }
    return STATUS_OK;
}

int ablate_names_same(const struct checkpoint *a, const struct checkpoint *b) {
    if (a->count != b->count) return 0;
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(a->tensors[i]->name, b->tensors[i]->name) != 0) return 0;
    return 1;
}

static int same_tensor(const struct safetensors_tensor *a, const struct safetensors_tensor *b) {
    return a != NULL && b != NULL && a->dtype == b->dtype && a->rank == b->rank &&
           (a->rank == 0 || memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) == 0) &&
           a->end - a->begin == b->end - b->begin &&
           (a->end == a->begin || memcmp(a->data, b->data, (size_t)(a->end - a->begin)) == 0);
}

int ablate_names_equal(const struct checkpoint *a, const struct checkpoint *b,
                       const struct ablate_common *common) {
    for (size_t i = 0; i < common->count; i++)
        if (!same_tensor(checkpoint_find(a, common->names[i]),
                         checkpoint_find(b, common->names[i])))
            return 0;
    return 1;
}

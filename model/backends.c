/* SPDX-License-Identifier: Apache-2.0
 * Opens backends by numerics.backend. A module that is open already is found again by dlopen, so
 * nothing is kept here between calls. */
#include "model/backends.h"

#include <string.h>

#include "kernels/backend_module.h"
#include "kernels/evidence.h"

enum status backends_open(const struct config *config, const struct backend **out) {
    *out = NULL;
    if (config->numerics.backend == BACKEND_CPU) return STATUS_OK;
    const enum status status = backend_module_open(config->numerics.backend_module, out);
    return status == STATUS_OK ? STATUS_OK : status_prefix(status, "numerics.backend");
}

void backends_memory(const struct backend *backend, struct arena *arena, struct arena *hidden) {
    if (backend == NULL) return;
    arena->source = &backend->memory;
    if (hidden == NULL) return;
    hidden->source = &backend->hidden;
    arena->hidden = hidden;
}

static enum status copy_here(void *to, const void *from, size_t bytes) {
    if (bytes > 0) memcpy(to, from, bytes);
    return STATUS_OK;
}

enum status backends_pull(const struct backend *backend, void *to, const void *from, size_t bytes) {
    return backend == NULL ? copy_here(to, from, bytes) : backend->pull(to, from, bytes);
}

enum status backends_push(const struct backend *backend, void *to, const void *from, size_t bytes) {
    return backend == NULL ? copy_here(to, from, bytes) : backend->push(to, from, bytes);
}

enum status backends_copy(const struct backend *backend, void *to, const void *from, size_t bytes) {
    return backend == NULL ? copy_here(to, from, bytes) : backend->copy(to, from, bytes);
}

enum status host_window_room(struct host_window *window, const struct backend *backend,
                             void *tensor, size_t bytes, void *out_pointer) {
    void *at = tensor;
    if (backend != NULL && bytes > window->bytes) {
        arena_close(&window->arena);
        window->bytes = 0;
        TRY(arena_take(&window->arena, bytes, 1, "copy of a tensor", &window->memory));
        window->bytes = bytes;
    }
    if (backend != NULL) at = window->memory;
    memcpy(out_pointer, &at, sizeof at);
    return STATUS_OK;
}

enum status host_window_read(struct host_window *window, const struct backend *backend,
                             const void *tensor, size_t bytes, void *out_pointer) {
    if (backend == NULL) {
        memcpy(out_pointer, &tensor, sizeof tensor);
        return STATUS_OK;
    }
    TRY(host_window_room(window, backend, NULL, bytes, out_pointer));
    return backend->pull(window->memory, tensor, bytes);
}

enum status host_window_store(const struct host_window *window, const struct backend *backend,
                              void *tensor, size_t bytes) {
    return backend == NULL ? STATUS_OK : backend->push(tensor, window->memory, bytes);
}

void host_window_close(struct host_window *window) {
    arena_close(&window->arena);
    window->bytes = 0;
}

int backends_takes_narrow(const struct backend *backend) {
    return backend == NULL || backend->takes_narrow;
}

enum status backends_scratch(const struct backend *backend, const struct op_limits *limits,
                             size_t *out_bytes) {
    return backend == NULL ? backend_scratch(limits, out_bytes)
                           : backend->scratch(limits, out_bytes);
}

enum status backends_wait(const struct backend *backend) {
    return backend == NULL ? STATUS_OK : backend->wait();
}

void backends_leaf_hashes(const struct backend *backend, int threads,
                          const struct leaf_hashes_args *tensors, size_t count) {
    if (backend == NULL)
        evidence_leaf_hashes(threads, tensors, count);
    else
        backend->leaf_hashes(tensors, count);
}

void backends_update_sizes(const struct backend *backend, int threads,
                           const struct update_sizes_args *tensors, size_t count) {
    if (backend == NULL)
        evidence_update_sizes(threads, tensors, count);
    else
        backend->update_sizes(tensors, count);
}

void backends_squares(const struct backend *backend, int threads,
                      const struct squares_args *tensors, size_t count) {
    if (backend == NULL)
        evidence_squares(threads, tensors, count);
    else
        backend->squares(tensors, count);
}

void backends_readback_blocks(const struct backend *backend, int threads,
                              const struct readback_blocks_args *args,
                              const struct readback_blocks_tensor *tensors, size_t count) {
    if (backend == NULL)
        evidence_readback_blocks(threads, args, tensors, count);
    else
        backend->readback_blocks(args, tensors, count);
}

void backends_run_distances(const struct backend *backend, int threads,
                            const struct run_distances_args *tensors, size_t count) {
    if (backend == NULL)
        evidence_run_distances(threads, tensors, count);
    else
        backend->run_distances(tensors, count);
}

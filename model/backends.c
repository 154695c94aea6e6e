/* SPDX-License-Identifier: Apache-2.0
 * Opens backends by numerics.backend. A module that is open already is found again by dlopen, so
 * nothing is kept here between calls. */
#include "model/backends.h"

#include "kernels/backend_module.h"
#include "kernels/evidence.h"

enum status backends_open(const struct config *config, const struct backend **out) {
    *out = NULL;
    if (config->numerics.backend == BACKEND_CPU) return STATUS_OK;
    const enum status status = backend_module_open(config->numerics.backend_module, out);
    return status == STATUS_OK ? STATUS_OK : status_prefix(status, "numerics.backend");
}

void backends_memory(const struct backend *backend, struct arena *arena) {
    if (backend != NULL) arena->source = &backend->memory;
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

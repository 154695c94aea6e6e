/* SPDX-License-Identifier: Apache-2.0
 * Opens backends by numerics.backend. A module that is open already is found again by dlopen, so
 * nothing is kept here between calls. */
#include "model/backends.h"

#include "kernels/backend_module.h"

enum status backends_open(const struct config *config, const struct backend **out) {
    *out = NULL;
    if (config->numerics.backend == BACKEND_CPU) return STATUS_OK;
    const enum status status = backend_module_open(config->numerics.backend_module, out);
    return status == STATUS_OK ? STATUS_OK : status_prefix(status, "numerics.backend");
}

enum status backends_scratch(const struct backend *backend, const struct op_limits *limits,
                             size_t *out_bytes) {
    return backend == NULL ? backend_scratch(limits, out_bytes)
                           : backend->scratch(limits, out_bytes);
}

enum status backends_wait(const struct backend *backend) {
    return backend == NULL ? STATUS_OK : backend->wait();
}

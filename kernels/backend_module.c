/* SPDX-License-Identifier: Apache-2.0
 * Finds, checks and opens a module that holds a backend. The stamp is checked by base/module.c;
 * here, that the module was built from the same headers and that every function of its tables is
 * there. */
#include "kernels/backend_module.h"

#include <string.h>

#include "base/module.h"
#include "determinism/digest.h"
#include "kernels/backend_layout.h"

#define PATH_SIZE 4096

int backend_module_find(char *out, size_t size) {
    return module_find_ours("twinstep_cuda.so", out, size);
}

static enum status check(const char *path, const struct backend *backend) {
    if (backend->layout != BACKEND_LAYOUT)
        FAIL(STATUS_INPUT,
             "%s: built with other headers than this program (their hash is %016llx, expected "
             "%016llx); rebuild it from the same sources",
             path, (unsigned long long)backend->layout, (unsigned long long)BACKEND_LAYOUT);
    if (backend->name == NULL || backend->open == NULL || backend->describe == NULL ||
        backend->memory.take == NULL || backend->memory.give == NULL ||
        backend->hidden.take == NULL || backend->hidden.give == NULL || backend->pull == NULL ||
        backend->push == NULL || backend->copy == NULL || backend->wait == NULL ||
        backend->refuses == NULL || backend->ops == NULL || backend->scratch == NULL ||
        backend->leaf_hashes == NULL || backend->update_sizes == NULL ||
        backend->readback_blocks == NULL || backend->squares == NULL ||
        backend->run_distances == NULL || backend->steps[0] == NULL || backend->steps[1] == NULL)
        FAIL(STATUS_INPUT, "%s: its backend is not filled in", path);
    for (size_t wide = 0; wide < COUNT_OF(backend->steps); wide++) {
        const char *const lacks = step_table_lacks(backend->steps[wide]);
        if (lacks != NULL)
            FAIL(STATUS_INPUT, "%s: its backend has no %s loop of optimizers for %s", path,
                 wide ? "f64" : "f32", lacks);
    }
    return STATUS_OK;
}

enum status backend_module_open(const char *path, const struct backend **out) {
    const struct module_sizes sizes = {.stamp = sizeof(struct module_stamp),
                                       .row = sizeof(struct key_row),
                                       .class_ = sizeof(struct backend),
                                       .call = sizeof(struct op_call)};
    char found[PATH_SIZE];
    char sha256[DIGEST_HEX] = MODULE_OURS;
    struct module module;
    const struct module_stamp *stamp = NULL;
    if (strcmp(path, BACKEND_MODULE_AUTO) == 0) {
        if (!backend_module_find(found, sizeof found))
            FAIL(STATUS_UNSUPPORTED, "expected twinstep_cuda.so beside the program, in .. or in "
                                     "../lib/twinstep, found none; "
                                     "cmake --preset cuda builds it (docs/CUDA.md)");
        path = found;
    } else {
        TRY(digest_file(path, sha256));
    }
    TRY(module_open(path, sha256, &module));
    enum status status = module_entry(&module, "backend", &sizes, &stamp);
    const struct backend *const backend = (const struct backend *)(const void *)stamp;
    if (status == STATUS_OK) status = check(path, backend);
    if (status == STATUS_OK) status = backend->open();
    if (status != STATUS_OK) {
        module_close(&module);
        return status;
    }
    *out = backend;
    return STATUS_OK;
}

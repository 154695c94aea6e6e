/* SPDX-License-Identifier: Apache-2.0
 * Opens libraries with dlopen, by soname. C has no conversion from an object pointer to a function
 * pointer, so the bytes are copied, which POSIX allows. */
#include "base/soname.h"

#include <dlfcn.h>
#include <string.h>

enum status soname_open(const char *name, void **out) {
    *out = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (*out == NULL) {
        const char *reason = dlerror();
        FAIL(STATUS_UNSUPPORTED, "%s: %s", name, reason == NULL ? "not found" : reason);
    }
    return STATUS_OK;
}

enum status soname_function(void *library, const char *name, size_t size, void *out) {
    void *const symbol = dlsym(library, name);
    if (symbol == NULL || size != sizeof symbol)
        FAIL(STATUS_UNSUPPORTED, "%s: the library has no such function", name);
    memcpy(out, &symbol, size);
    return STATUS_OK;
}

/* SPDX-License-Identifier: Apache-2.0
 * dlopen by soname. C has no conversion from object to function pointers: the bytes are copied, as
 * POSIX allows. */
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

/* SPDX-License-Identifier: Apache-2.0
 * Libraries of the system that may be there or not, opened by name at run time (module.h opens
 * files of users). Invariant: what was opened stays open until the process ends. */
#ifndef TWINSTEP_BASE_SONAME_H
#define TWINSTEP_BASE_SONAME_H

#include <stddef.h>

#include "base/status.h"

/* "libopenblas.so.0". STATUS_UNSUPPORTED when it cannot be opened, with the loader's reason. */
TWINSTEP_MUST_USE enum status soname_open(const char *name, void **out);

/* A function of it, stored into the function pointer at `out` (size bytes). STATUS_UNSUPPORTED when
 * the library has none of that name. */
TWINSTEP_MUST_USE enum status soname_function(void *library, const char *name, size_t size,
                                              void *out);

#endif

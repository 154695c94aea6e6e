/* SPDX-License-Identifier: Apache-2.0
 * Libraries of the system that may or may not be there, opened by name at run time (module.h opens
 * files of users).
 *
 * Invariant: a library that was opened stays open until the process ends. */
#ifndef TWINSTEP_BASE_SONAME_H
#define TWINSTEP_BASE_SONAME_H

#include <stddef.h>

#include "base/status.h"

/* Opens a library such as "libopenblas.so.0". STATUS_UNSUPPORTED, with the loader's reason, if it
 * cannot be opened. */
TWINSTEP_MUST_USE enum status soname_open(const char *name, void **out);

/* Stores the address of one of its functions into the function pointer at `out`, which has `size`
 * bytes. STATUS_UNSUPPORTED if the library has no function of that name. */
TWINSTEP_MUST_USE enum status soname_function(void *library, const char *name, size_t size,
                                              void *out);

#endif

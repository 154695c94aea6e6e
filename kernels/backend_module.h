/* SPDX-License-Identifier: Apache-2.0
 * A backend from a module: found, checked, opened.
 *
 * Invariant: what is returned can run mode invariant; everything else was told by name. */
#ifndef TWINSTEP_KERNELS_BACKEND_MODULE_H
#define TWINSTEP_KERNELS_BACKEND_MODULE_H

#include "kernels/backend_abi.h"

#define BACKEND_MODULE_AUTO "auto" /* twinstep_cuda.so beside the program, or in ../lib/twinstep   \
                                    */

/* `path`: a file, or BACKEND_MODULE_AUTO. STATUS_INPUT for a file that is no such module,
 * STATUS_UNSUPPORTED where the module or its device is missing. The module stays loaded. */
TWINSTEP_MUST_USE enum status backend_module_open(const char *path, const struct backend **out);

/* The module that BACKEND_MODULE_AUTO means; 0: there is none. */
int backend_module_find(char *out, size_t size);

#endif

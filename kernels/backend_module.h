/* SPDX-License-Identifier: Apache-2.0
 * Opens a backend that comes in a module: finds the file, checks it, opens the device.
 *
 * Invariant: what is returned can run mode invariant; everything else was refused by name. */
#ifndef TWINSTEP_KERNELS_BACKEND_MODULE_H
#define TWINSTEP_KERNELS_BACKEND_MODULE_H

#include "kernels/backend_abi.h"

/* The path that stands for twinstep_cuda.so beside the program, or in ../lib/twinstep. */
#define BACKEND_MODULE_AUTO "auto"

/* Opens the module in the file `path`, or the one that BACKEND_MODULE_AUTO means. STATUS_INPUT: the
 * file is no such module. STATUS_UNSUPPORTED: the module or its device is missing. The module stays
 * loaded until the process ends. */
TWINSTEP_MUST_USE enum status backend_module_open(const char *path, const struct backend **out);

/* Writes the file that BACKEND_MODULE_AUTO means to `out`; returns 0 where there is none. */
int backend_module_find(char *out, size_t size);

#endif

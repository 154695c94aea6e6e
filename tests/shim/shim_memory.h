/* SPDX-License-Identifier: Apache-2.0
 * Memory that only kernels touch, as a device's own: each piece has pages of its own, and nobody
 * may read or write them but while kernels run (shim_memory_open to shim_memory_close), so that a
 * touch by the host ends the process with SIGSEGV at the line that made it.
 *
 * The pieces belong to the process. Invariant: outside of an opened stretch every byte is
 * protected. */
#ifndef TWINSTEP_TESTS_SHIM_SHIM_MEMORY_H
#define TWINSTEP_TESTS_SHIM_SHIM_MEMORY_H

#include <stddef.h>

#include "base/status.h"

/* Maps a zeroed piece. STATUS_MEMORY where the system refuses. */
TWINSTEP_MUST_USE enum status shim_memory_take(size_t bytes, void **out);
void shim_memory_give(void *memory);

/* Lets kernels (and who copies in their place) at all pieces, and takes them away again. Stretches
 * may stand inside one another. */
void shim_memory_open(void);
void shim_memory_close(void);

#endif

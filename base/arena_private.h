/* SPDX-License-Identifier: Apache-2.0
 * What base/confined.c asks of arenas, and nobody else. The file is private to base/. */
#ifndef TWINSTEP_BASE_ARENA_PRIVATE_H
#define TWINSTEP_BASE_ARENA_PRIVATE_H

#include "base/arena.h"

/* Takes over memory that mmap() gave: arena_close unmaps it, and nothing is handed out of it. */
TWINSTEP_MUST_USE enum status arena_adopt(struct arena *arena, void *memory, size_t length);

#endif

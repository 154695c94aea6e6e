/* SPDX-License-Identifier: Apache-2.0
 * A text that grows at its end. Private to ablate/. */
#ifndef TWINSTEP_ABLATE_ABLATE_PEN_H
#define TWINSTEP_ABLATE_ABLATE_PEN_H

#include <stddef.h>

#include "base/arena.h"

/* Begins as {.arena = ...}; `text` is NULL until something is put, and then ends with a NUL. */
struct ablate_pen {
    struct arena *arena;
    char *text;
    size_t used, room;
};

TWINSTEP_MUST_USE enum status ablate_put(struct ablate_pen *pen, const char *bytes, size_t length);
TWINSTEP_MUST_USE enum status ablate_put_text(struct ablate_pen *pen, const char *text);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Placeholders in the texts of an ablation: finding them, and checking that they are known.
 * ablate_file.h has what puts values in their place. */
#ifndef TWINSTEP_ABLATE_ABLATE_WORDS_H
#define TWINSTEP_ABLATE_ABLATE_WORDS_H

#include "ablate/ablate_file.h"

enum ablate_place {
    PLACE_TEXT = 0, /* a piece of plain text, or a brace */
    PLACE_NAME,     /* a placeholder */
    PLACE_END,
    PLACE_BROKEN /* a single brace */
};

/* Takes the next piece off *text: `length` bytes from *piece on, without the braces of a
 * placeholder. */
enum ablate_place ablate_place_next(const char **text, const char **piece, size_t *length);

/* The factor of that name, or factor_count. */
uint32_t ablate_factor_of(const struct ablate_file *file, const char *name, size_t length);
/* The composed file of that name, or composed_count. */
uint32_t ablate_composed_of(const struct ablate_file *file, const char *name, size_t length);
/* Says whether it is {version}, of bisect-command. */
int ablate_is_version(const struct ablate_file *file, const char *name, size_t length);
/* Says whether it is one of {dir}, {seed}, {gpu}, {port}, {run}. */
int ablate_is_built_in(const char *name, size_t length);

#endif

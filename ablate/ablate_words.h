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

/* What stands before a factor's name in its placeholder where the name is a built-in one: {dir} is
 * the folder, {factor:dir} the words of a factor that is called dir. */
#define ABLATE_FACTOR_MARK "factor:"

/* That mark, or "" where the name needs none. */
const char *ablate_factor_mark(const char *name);

/* The factor that a placeholder stands for, or factor_count. */
uint32_t ablate_factor_of(const struct ablate_file *file, const char *name, size_t length);
/* The composed file of that name, or composed_count. */
uint32_t ablate_composed_of(const struct ablate_file *file, const char *name, size_t length);
/* Says whether it is {version}, of bisect-command. */
int ablate_is_version(const struct ablate_file *file, const char *name, size_t length);
/* Says whether it is one of {dir}, {seed}, {gpu}, {port}, {run}. */
int ablate_is_built_in(const char *name, size_t length);

/* The words with "{{" and "}}" as one brace, as a person reads them. */
TWINSTEP_MUST_USE enum status ablate_shown(const struct ablate_words *words, struct arena *arena,
                                           struct ablate_words *out);

#endif

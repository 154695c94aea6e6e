/* SPDX-License-Identifier: Apache-2.0
 * A whole text file in memory, up to a limit. */
#ifndef TWINSTEP_SCENARIOS_TEXTFILE_H
#define TWINSTEP_SCENARIOS_TEXTFILE_H

#include "base/arena.h"

/* `path` "-" reads standard input. A NUL stands behind the bytes. STATUS_IO when the file cannot be
 * read or is a directory, STATUS_INPUT when it has more than `limit` bytes; both with "PATH: error:
 * ...". */
TWINSTEP_MUST_USE enum status textfile_read(struct arena *arena, const char *path, size_t limit,
                                            char **out_text, size_t *out_length);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Reads a whole text file into memory, up to a limit. */
#ifndef TWINSTEP_SCENARIOS_TEXTFILE_H
#define TWINSTEP_SCENARIOS_TEXTFILE_H

#include "base/arena.h"

/* `path` "-" reads standard input. The text is in `arena`, and a NUL stands behind its bytes.
 * STATUS_IO when the file cannot be read or is a folder, STATUS_INPUT when it has more than `limit`
 * bytes; both with "PATH: error: ...". */
TWINSTEP_MUST_USE enum status textfile_read(struct arena *arena, const char *path, size_t limit,
                                            char **out_text, size_t *out_length);

#endif

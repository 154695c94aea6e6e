/* SPDX-License-Identifier: Apache-2.0
 * Reads a whole text file into memory, up to a limit, and checks that bytes are the text of which a
 * scenario may consist: UTF-8 without control characters. */
#ifndef TWINSTEP_SCENARIOS_TEXTFILE_H
#define TWINSTEP_SCENARIOS_TEXTFILE_H

#include "base/arena.h"

/* `path` "-" reads standard input. The text is in `arena`, and a NUL stands behind its bytes.
 * STATUS_IO when the file cannot be read or is a folder, STATUS_INPUT when it has more than `limit`
 * bytes; both with "PATH: error: ...". */
TWINSTEP_MUST_USE enum status textfile_read(struct arena *arena, const char *path, size_t limit,
                                            char **out_text, size_t *out_length);

/* STATUS_INPUT names the line, the column (both from 1, in bytes) and the byte or character that is
 * no text. */
TWINSTEP_MUST_USE enum status plaintext_check(const char *source, const char *text, size_t length);

#endif

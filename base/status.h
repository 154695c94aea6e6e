/* SPDX-License-Identifier: Apache-2.0
 * Errors: a must-use status code and one text per thread.
 *
 * A function that can fail returns enum status; STATUS_OK is 0. The text belongs to the last FAIL
 * on this thread and is complete: file, line, column, key, what was expected, what came.
 * Only cli/main.c turns a status into an exit code. Nothing here allocates or exits. */
#ifndef TWINSTEP_BASE_STATUS_H
#define TWINSTEP_BASE_STATUS_H

#include "base/macro.h"

enum status {
    STATUS_OK = 0,
    STATUS_INPUT,       /* the user's file, key, option or data is wrong            -> exit 2 */
    STATUS_IO,          /* open, read, write, rename, full disk                      -> exit 2 */
    STATUS_MEMORY,      /* an allocation failed or a size overflowed                 -> exit 2 */
    STATUS_UNSUPPORTED, /* asked for by name, known, not available in this build     -> exit 2 */
    STATUS_UNTESTABLE,  /* the evidence cannot decide                                -> exit 3 */
    STATUS_INTERRUPTED, /* SIGINT or SIGTERM                                         -> exit 130 */
    STATUS_INTERNAL     /* a broken promise of ours; the text says which             -> exit 2 */
};

/* Stores the text (truncated at 2047 bytes) and returns `code`. */
enum status status_fail(enum status code, const char *format, ...) TWINSTEP_PRINTF(2, 3);

/* Puts "PREFIX: " before the stored text; returns `code`. For callers that know the file's name. */
enum status status_prefix(enum status code, const char *format, ...) TWINSTEP_PRINTF(2, 3);

/* Text of this thread's last failure; "" when there was none. Valid until the next FAIL. */
const char *status_text(void);

#define FAIL(code, ...) return status_fail((code), __VA_ARGS__)
#define TRY(expression)                                                                            \
    do {                                                                                           \
        enum status try_status_ = (expression);                                                    \
        if (try_status_ != STATUS_OK) return try_status_;                                          \
    } while (0)
/* For functions that hold a resource: keeps the first failure in `status` and jumps. */
#define TRY_OR(status, expression, label)                                                          \
    do {                                                                                           \
        (status) = (expression);                                                                   \
        if ((status) != STATUS_OK) goto label;                                                     \
    } while (0)

#endif

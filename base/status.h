/* SPDX-License-Identifier: Apache-2.0
 * Errors: a status code that must be used, and one text per thread.
 *
 * A function that can fail returns enum status; STATUS_OK is 0. The text belongs to the last FAIL
 * on this thread and is complete: file, line, column, key, what was expected, what came. Only
 * cli/main.c turns a status into an exit code. Nothing here allocates or exits. */
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

/* Stores the text, cut off after 2047 bytes, and returns `code`. */
enum status status_fail(enum status code, const char *format, ...) TWINSTEP_PRINTF(2, 3);

/* Puts "PREFIX: " before the stored text and returns `code`. It serves callers that know the file's
 * name when the failing function did not. */
enum status status_prefix(enum status code, const char *format, ...) TWINSTEP_PRINTF(2, 3);

/* The text of this thread's last failure, or "" if there was none. It is valid until the next
 * FAIL. */
const char *status_text(void);

/* FAIL stores a text and returns its status from the calling function; TRY returns a failure
 * unchanged. */
#define FAIL(code, ...) return status_fail((code), __VA_ARGS__)
#define TRY(expression)                                                                            \
    do {                                                                                           \
        enum status try_status_ = (expression);                                                    \
        if (try_status_ != STATUS_OK) return try_status_;                                          \
    } while (0)
/* For functions that hold a resource: stores the status of `expression`, and jumps to the label if
 * it is a failure. */
#define TRY_OR(status, expression, label)                                                          \
    do {                                                                                           \
        (status) = (expression);                                                                   \
        if ((status) != STATUS_OK) goto label;                                                     \
    } while (0)

#endif

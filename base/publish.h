/* SPDX-License-Identifier: Apache-2.0
 * Files that appear under their name whole or not at all: a file is written under a live name in
 * the same folder, made durable, and then linked or renamed.
 *
 * An existing file is replaced only where the caller says so, and
 * then atomically: whoever opens the name finds the old bytes or the new ones. */
#ifndef TWINSTEP_BASE_PUBLISH_H
#define TWINSTEP_BASE_PUBLISH_H

#include <stddef.h>

#include "base/status.h"

/* Waits until the contents of `live` are on the disk. File systems with delayed allocation report a
 * full disk only here. STATUS_IO names `live`. */
TWINSTEP_MUST_USE enum status publish_settle(const char *live);

/* Gives the finished file `live` the name `target`. STATUS_IO if that cannot be done, or if
 * `overwrite` is 0 and `target` exists; then `live` stays, and the text says so. */
TWINSTEP_MUST_USE enum status publish_name(const char *live, const char *target, int overwrite);

/* Does all of it for `length` bytes: writes them to `live`, which may be there and is no link,
 * makes them durable and names them `target`. A failed write leaves no `live`. */
TWINSTEP_MUST_USE enum status publish_bytes(const char *live, const char *target, int overwrite,
                                            const void *bytes, size_t length);

/* Does the same for a file that nobody but its owner may write, whatever the umask is. */
TWINSTEP_MUST_USE enum status publish_own_bytes(const char *live, const char *target, int overwrite,
                                                const void *bytes, size_t length);

#endif

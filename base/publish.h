/* SPDX-License-Identifier: Apache-2.0
 * Files that appear under their name whole or not at all: written under a live name in the same
 * folder, made durable, then linked or renamed.
 *
 * Writes nothing itself. A file that is there is replaced only where the caller says so, at once:
 * who opens the name finds the old bytes or the new ones. */
#ifndef TWINSTEP_BASE_PUBLISH_H
#define TWINSTEP_BASE_PUBLISH_H

#include "base/status.h"

/* Delayed allocation can report a full disk only here. STATUS_IO names `live`. */
TWINSTEP_MUST_USE enum status publish_settle(const char *live);

/* Gives the finished file `live` the name `target`. STATUS_IO: it could not be done, or `overwrite`
 * is 0 and `target` is there; `live` stays, and the text says so. */
TWINSTEP_MUST_USE enum status publish_name(const char *live, const char *target, int overwrite);

#endif

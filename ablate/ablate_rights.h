/* SPDX-License-Identifier: Apache-2.0
 * Who could have written a file that decides what is run or what was found. */
#ifndef TWINSTEP_ABLATE_ABLATE_RIGHTS_H
#define TWINSTEP_ABLATE_ABLATE_RIGHTS_H

#include "base/status.h"

/* Fails with STATUS_INPUT unless only this user and root can write to the file or folder PATH. A
 * group counts as this user where it has no other member. `harm` ends the text: what others could
 * do ("so they could ..."). STATUS_IO: PATH cannot be looked at. */
TWINSTEP_MUST_USE enum status ablate_rights_check(const char *path, const char *harm);

/* The same for what this program made: of this user, no link, and of no group's. */
TWINSTEP_MUST_USE enum status ablate_rights_check_own(const char *path, const char *harm);

#endif

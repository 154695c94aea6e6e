/* SPDX-License-Identifier: Apache-2.0
 * Opens the module that moves bytes between processes: twinstep_NAME.so of the program's own
 * folder, which needs no consent of the user's, because whoever can replace it can replace the
 * program.
 *
 * Invariant: the process rounds after a group was joined as it did before. */
#ifndef TWINSTEP_RANKS_RANKS_MODULE_H
#define TWINSTEP_RANKS_RANKS_MODULE_H

#include "ranks/ranks.h"

/* Opens twinstep_NAME.so and joins the group; out->wait becomes `wait`. STATUS_UNSUPPORTED: there
 * is no such module. STATUS_INPUT: the file is no such module of this version. The module stays
 * loaded until the process ends. */
TWINSTEP_MUST_USE enum status ranks_module_open(const char *name, double wait, struct ranks *out);

#endif

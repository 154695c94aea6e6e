/* SPDX-License-Identifier: Apache-2.0
 * A log in the names of a training tool, for export.
 *
 * Only what means the same is renamed; every other column keeps its name, and no value is rescaled.
 */
#ifndef TWINSTEP_LOGS_RENAME_H
#define TWINSTEP_LOGS_RENAME_H

#include "logs/log.h"

struct log_naming {
    const char *name, *about;
};
/* The namings: trl, open-instruct, torchtune. Ends with a row whose name is NULL. */
const struct log_naming *log_namings(void);

/* Makes `out` share rows and cells with `log`; what is new lives in `arena`. In the names of
 * open-instruct there is a column rewards/average besides, where both rewards are exact.
 * STATUS_INPUT: an unknown naming, or a name that another column already has. */
TWINSTEP_MUST_USE enum status log_rename(const struct log *log, const char *naming,
                                         struct arena *arena, struct log *out);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Which reader reads a file: the one that --format names, or the one whose claim is the surest.
 * Private to logs/. */
#ifndef TWINSTEP_LOGS_CHOOSE_H
#define TWINSTEP_LOGS_CHOOSE_H

#include "logs/readers.h"

/* Sets *out to a row of the table of readers. Where nobody claims the file, STATUS_INPUT names
 * --format and the readers whose rows come closest, with the line that spoils them. */
TWINSTEP_MUST_USE enum status log_choose_reader(const struct log_source *source,
                                                const struct log_options *options,
                                                const struct log_reader_row **out);

#endif

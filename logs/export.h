/* SPDX-License-Identifier: Apache-2.0
 * A log written in a form that others read, or as a trace of ours.
 *
 * A text can carry a quantum that is a power of ten, and exactness: a rounded value is printed to
 * its quantum, and a column of exact values is given one text of 17 significant digits where its
 * shorter texts would not show that it is exact. A trace carries everything. Texts number updates
 * from 1, so an import of the export gives the same log. */
#ifndef TWINSTEP_LOGS_EXPORT_H
#define TWINSTEP_LOGS_EXPORT_H

#include <stdio.h>

#include "logs/log.h"

struct log_export_format {
    const char *name, *about;
    enum status (*write)(const struct log *log, const char *name, FILE *out);
};
/* The formats that log_export writes. Ends with a row whose name is NULL. */
const struct log_export_format *log_export_formats(void);

/* Writes the log. STATUS_INPUT: an unknown format, or one that cannot hold this log (torchtitan's
 * needs a loss, and series need rising steps). STATUS_IO: a write failed; the text does not name
 * the file. */
TWINSTEP_MUST_USE enum status log_export(const struct log *log, const char *format, FILE *out);

/* Writes the log as a trace without runs: the arrays log/step, log/line, log/part, log/<name>/value
 * and log/<name>/quantum, the attributes of log and log/<name>, and the texts log/source and
 * log/notes (docs/TRACE.md). Errors are those of trace_create. `arena` holds the plan. */
TWINSTEP_MUST_USE enum status log_write_trace(const struct log *log, const char *path,
                                              int overwrite, struct arena *arena);

#endif

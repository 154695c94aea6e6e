/* SPDX-License-Identifier: Apache-2.0
 * A log written in a form that others read, or as a trace of ours.
 *
 * Texts carry quanta that are powers of ten, and exactness: a rounded value is printed to its
 * quantum, an exact column with 17 significant digits where shorter texts would not say so. A trace
 * carries everything. Steps are written as the source counted them, so that import gives the same.
 */
#ifndef TWINSTEP_LOGS_EXPORT_H
#define TWINSTEP_LOGS_EXPORT_H

#include <stdio.h>

#include "logs/log.h"

struct log_export_format {
    const char *name, *about;
};
/* csv, jsonl, torchtitan, megatron, nemo-rl. Ends with a row whose name is NULL. */
const struct log_export_format *log_export_formats(void);

/* STATUS_INPUT: an unknown format, or one that cannot hold this log (torchtitan: without a loss).
 * STATUS_IO: a write failed; the text does not name the file. */
TWINSTEP_MUST_USE enum status log_export(const struct log *log, const char *format, FILE *out);

/* Writes the log as a trace without runs: arrays log/step, log/line, log/part, log/<name>/value,
 * log/<name>/quantum; attributes of log and log/<name>; texts log/source, log/notes
 * (docs/TRACE.md). Errors as trace_create. `arena` is for the plan. */
TWINSTEP_MUST_USE enum status log_write_trace(const struct log *log, const char *path,
                                              int overwrite, struct arena *arena);

#endif

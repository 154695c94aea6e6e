/* SPDX-License-Identifier: Apache-2.0
 * From a file of any kind that we know to a log: the one entrance to logs/.
 *
 * The kind is told by content, never by the suffix. Reading streams: memory grows with the values
 * that are kept, not with the lines that are read. Invariant: any bytes give a log, or an error
 * that names file, line and column, what was expected and what came; never a crash. */
#ifndef TWINSTEP_LOGS_IMPORT_H
#define TWINSTEP_LOGS_IMPORT_H

#include "logs/log.h"

#define LOG_MAP_MAX 32

struct log_options {
    const char *format; /* NULL: told by content; otherwise a name of log_formats() */
    struct {
        /* Of --map OURS=THEIRS; `ours` is a name of log_names or "step". */
        const char *ours, *theirs;
    } map[LOG_MAP_MAX];
    size_t map_count;
    int64_t step_base; /* what the source calls update 1; INT64_MIN: what the format says */
    const char *run;   /* which run of a trace, or of a W&B export; NULL: the first */
};
void log_options_init(struct log_options *options);

/* Imports a log. `path` is a file, a folder (a TensorBoard run with its event files, a checkpoint
 * with trainer_state.json), or "-" for standard input. The log lives in `arena`. */
TWINSTEP_MUST_USE enum status log_import(const char *path, const struct log_options *options,
                                         struct arena *arena, struct log **out);

/* Does the same as log_import from bytes in memory; errors call them `name`. Fuzzers and tests use
 * it. */
TWINSTEP_MUST_USE enum status log_import_bytes(const char *name, const void *bytes, size_t length,
                                               const struct log_options *options,
                                               struct arena *arena, struct log **out);

struct trace_run;
struct trace_image;
/* Opens the trace `path` (trace_open_long) and sets *out to the run that log_import would read from
 * it, with all of its columns, or to NULL when the trace holds an imported log. Errors are those of
 * log_import; the caller closes the image, where there is one, in any case. */
TWINSTEP_MUST_USE enum status log_import_run(const char *path, const struct log_options *options,
                                             struct arena *arena, struct trace_image **out_image,
                                             const struct trace_run **out);

struct log_format {
    const char *name, *title;
};
/* The formats that can be read. Ends with a row whose name is NULL. */
const struct log_format *log_formats(void);

#endif

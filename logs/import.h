/* SPDX-License-Identifier: Apache-2.0
 * From a file of any kind that we know to a log: the one door.
 *
 * The kind is told by content, never by the suffix. Reading streams: memory grows with the values
 * kept, not with the lines read. Invariant: any bytes give a log or an error that names file, line,
 * column, what was expected and what came; never a crash. */
#ifndef TWINSTEP_LOGS_IMPORT_H
#define TWINSTEP_LOGS_IMPORT_H

#include "logs/log.h"

#define LOG_MAP_MAX 32

struct log_options {
    const char *format; /* NULL: by content; else a name of log_formats() */
    struct {
        const char *ours, *theirs; /* --map ours=theirs; ours: a log_names name, or "step" */
    } map[LOG_MAP_MAX];
    size_t map_count;
    int64_t step_base; /* INT64_MIN: what the format says */
    const char *run;   /* which run of a trace; NULL: the first arm */
};
void log_options_init(struct log_options *options);

/* PATH: a file, a folder (a TensorBoard run with its event files, a checkpoint with
 * trainer_state.json), or "-" for standard input. */
TWINSTEP_MUST_USE enum status log_import(const char *path, const struct log_options *options,
                                         struct arena *arena, struct log **out);

/* The files that log_import of `path` would read, in order: those of a folder, else `path` itself.
 */
TWINSTEP_MUST_USE enum status log_import_files(const char *path, struct arena *arena,
                                               const char *const **out_paths, size_t *out_count);

/* As log_import, from memory; `name` stands in errors. What fuzzers and tests call. */
TWINSTEP_MUST_USE enum status log_import_bytes(const char *name, const void *bytes, size_t length,
                                               const struct log_options *options,
                                               struct arena *arena, struct log **out);

struct trace_run;
/* The run of trace PATH that log_import reads as a log, with all its columns; NULL for a log that
 * was imported. The same errors. */
TWINSTEP_MUST_USE enum status log_import_run(const char *path, const struct log_options *options,
                                             struct arena *arena, const struct trace_run **out);

struct log_format {
    const char *name, *title;
};
/* Ends with a row whose name is NULL. */
const struct log_format *log_formats(void);

#endif

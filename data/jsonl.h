/* SPDX-License-Identifier: Apache-2.0
 * Reads the user's data: JSONL, one JSON object per line, in the text forms of TRL and in the token
 * ids of TRL and open-instruct (docs/DATA.md lists them). It knows nothing of truncation or
 * batches.
 *
 * Keys beyond those of a form are ignored and counted, as TRL ignores extra columns. Blank lines
 * are skipped. Everything else that is not exactly a row is an error that reads `file:line: reason`
 * (for JSON syntax `file:line:column:`, where the column is the one at which the parser stopped).
 * Invariant: no row is dropped or repaired silently. */
#ifndef TWINSTEP_DATA_JSONL_H
#define TWINSTEP_DATA_JSONL_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "data/datarow.h"
#include "scenarios/config.h"

/* The file, its text and its ids lie in memory together and take up to four times these bytes. The
 * bound was chosen, not measured. */
#define JSONL_MAX_BYTES ((size_t)1 << 30)

struct jsonl_options {
    enum task task; /* decides which forms are looked for */
    uint64_t vocab; /* ids must be below it; it is at most 2^31 */
    int reference;  /* 1: pairs must carry ref_chosen_logps and ref_rejected_logps */
    enum chat chat; /* renders conversations, and text rows that are not plain `text` */
};

/* Reads a regular file of at most JSONL_MAX_BYTES. The rows live in `arena`. STATUS_IO: it cannot
 * be opened or read. STATUS_INPUT: it is empty, too large or not text, or it has a bad row. */
TWINSTEP_MUST_USE enum status jsonl_read(const char *path, const struct jsonl_options *options,
                                         struct arena *arena, struct datarow_table *out_table);

/* Reads bytes in memory in the same way; `source` stands in errors where the path would. */
TWINSTEP_MUST_USE enum status jsonl_parse(const char *source, const char *bytes, size_t length,
                                          const struct jsonl_options *options, struct arena *arena,
                                          struct datarow_table *out_table);

/* Says which task the file's first row is for. Where the row fits neither, it says TASK_DPO, so
 * that reading the file then says what is wrong. STATUS_IO, STATUS_INPUT: the file cannot be read
 * at all. */
TWINSTEP_MUST_USE enum status jsonl_task_of(const char *path, struct arena *arena, int *out_task);

#endif

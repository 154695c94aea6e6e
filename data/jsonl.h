/* SPDX-License-Identifier: Apache-2.0
 * The user's JSONL, one JSON object per line, in the text forms of TRL and in the token ids of TRL
 * and open-instruct (docs/DATA.md lists them). Knows nothing of truncation or batches.
 *
 * Keys beyond the form's are ignored and counted, as TRL does with extra columns. Blank lines are
 * skipped. Everything else that is not exactly a row is an error that reads `file:line: reason`
 * (`file:line:column:` for JSON syntax, the column being where the parser stopped): no row is
 * dropped or repaired silently. */
#ifndef TWINSTEP_DATA_JSONL_H
#define TWINSTEP_DATA_JSONL_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "data/datarow.h"
#include "scenarios/config.h"

#define JSONL_MAX_BYTES ((size_t)1 << 30)

struct jsonl_options {
    enum task task; /* decides which forms are looked for */
    uint64_t vocab; /* ids are below it; at most 2^31 */
    int reference;  /* pairs must carry ref_chosen_logps and ref_rejected_logps */
    enum chat chat; /* the template of conversations and of text rows that are no plain `text` */
};

/* Reads a regular file of at most JSONL_MAX_BYTES. STATUS_IO: it cannot be opened or read.
 * STATUS_INPUT: empty, too large, not text, or a bad row. Rows live in `arena`. */
TWINSTEP_MUST_USE enum status jsonl_read(const char *path, const struct jsonl_options *options,
                                         struct arena *arena, struct datarow_table *out_table);

/* The same for bytes in memory; `source` stands where the path does in errors. */
TWINSTEP_MUST_USE enum status jsonl_parse(const char *source, const char *bytes, size_t length,
                                          const struct jsonl_options *options, struct arena *arena,
                                          struct datarow_table *out_table);

/* The enum task that the file's first row is for; TASK_DPO where that does not say, so that reading
 * the file says what is wrong. STATUS_IO, STATUS_INPUT: it cannot be read at all. */
TWINSTEP_MUST_USE enum status jsonl_task_of(const char *path, struct arena *arena, int *out_task);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * The text that comes with twinstep, embedded in the binary: builtin:quiz and builtin:devil.
 * Origin, licences and checksums: scenarios/data/PROVENANCE.md.
 *
 * A file's rows are table, question, answer. For DPO the answer is chosen, and the rejected one is
 * drawn from the rows of the same table whose answer has another text. A table is a run of
 * neighbouring lines with the same first field. */
#ifndef TWINSTEP_DATA_BUILTIN_H
#define TWINSTEP_DATA_BUILTIN_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "data/datarow.h"
#include "scenarios/config.h"

/* Written at build time by cmake/builtin_data.cmake. */
extern const unsigned char builtin_quiz_bytes[];
extern const size_t builtin_quiz_length;
extern const unsigned char builtin_devil_bytes[];
extern const size_t builtin_devil_length;

struct builtin_file {
    const char *name; /* behind "builtin:" */
    const char *file; /* under scenarios/data/ */
    const char *about;
    const unsigned char *bytes;
    size_t length;
};

/* File number `index`; all NULL behind the last. */
struct builtin_file builtin_at(size_t index);
#define BUILTIN_COUNT 2

/* Rows of the file called `name`, as pairs for TASK_DPO and as completions for TASK_SFT. The prompt
 * is the question and one space. Row i's rejected answer is candidate
 * stream_bounded(stream_word64(seed, {STREAM_DATA, op DATA_OP_REJECT}, i), candidates), candidates
 * counted in file order. STATUS_INPUT: no such name. */
TWINSTEP_MUST_USE enum status builtin_rows(const char *name, enum task task, uint64_t seed,
                                           struct arena *arena, struct datarow_table *out_table);

/* The same for any text of that format; `source` names it in errors, which are STATUS_INPUT: a line
 * without three fields, an empty field, an unknown escape, a row without a candidate. */
TWINSTEP_MUST_USE enum status builtin_parse(const char *source, const char *bytes, size_t length,
                                            enum task task, uint64_t seed, struct arena *arena,
                                            struct datarow_table *out_table);

#endif

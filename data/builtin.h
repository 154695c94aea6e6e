/* SPDX-License-Identifier: Apache-2.0
 * The texts that come with twinstep and are embedded in the binary: builtin:quiz and builtin:devil.
 * scenarios/data/PROVENANCE.md says where they are from, under which licences, and their checksums.
 *
 * Each line of a file is a row of three fields: table, question, answer. Rows of one table are
 * neighbours. For DPO the row's answer is the chosen one, and the rejected one is drawn from those
 * rows of the same table whose answer has another text: so it is an answer of the right kind to
 * another question. */
#ifndef TWINSTEP_DATA_BUILTIN_H
#define TWINSTEP_DATA_BUILTIN_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "data/datarow.h"
#include "scenarios/config.h"

/* cmake/builtin_data.cmake writes these four at build time. */
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

/* File number `index`; behind the last one all members are NULL. */
struct builtin_file builtin_at(size_t index);
#define BUILTIN_COUNT 2

/* Gives the rows of the file called `name`, as pairs for TASK_DPO and as completions for TASK_SFT;
 * devil-text are those completions with their prompts, as plain texts that have a loss everywhere.
 * A prompt is the question and one space. The rejected answer of row i is number
 * stream_bounded(stream_word64(seed, {STREAM_DATA, op DATA_OP_REJECT}, i), candidates) of its
 * candidates in the order of the file. STATUS_INPUT: there is no such name. */
TWINSTEP_MUST_USE enum status builtin_rows(const char *name, enum task task, uint64_t seed,
                                           struct arena *arena, struct datarow_table *out_table);

/* Reads any text of that format; `source` names it in errors. STATUS_INPUT: a line without three
 * fields, an empty field, an unknown escape, or a row without a candidate. */
TWINSTEP_MUST_USE enum status builtin_parse(const char *source, const char *bytes, size_t length,
                                            enum task task, uint64_t seed, struct arena *arena,
                                            struct datarow_table *out_table);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * How `twinstep ops` says what it found: as text, and as JSON (docs/OPS.md). */
#ifndef TWINSTEP_CLI_OPS_PRINT_H
#define TWINSTEP_CLI_OPS_PRINT_H

#include <jansson.h>

#include "dumps/births.h"

/* The first line, without a line end, in the arena. */
TWINSTEP_MUST_USE enum status ops_first_line(const struct dump_judgement *judgement,
                                             struct arena *arena, char **out);
void ops_print(const struct dump_judgement *judgement, const char *first_line);
/* NULL where memory is lacking. */
json_t *ops_json(const struct dump_judgement *judgement, const char *first_line);

/* The relative difference of the first hashes of what two aligned ops made, where both are real
 * numbers; below 0 where they are not. */
double ops_relative(const struct dump_judgement *judgement, const struct dump_event *event);
/* What the hashes of these dumps cannot see; NULL: they are the user's own. */
const char *ops_blind(const struct dump_judgement *judgement);
/* The text of a word. */
const char *ops_word(const struct dump_judgement *judgement, uint32_t word);
/* The module of an op, or "no module". */
const char *ops_module(const struct dump_judgement *judgement, const struct dump_op *op);
extern const char *const ops_verdicts[];

#endif

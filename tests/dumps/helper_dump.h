/* SPDX-License-Identifier: Apache-2.0
 * Writes dumps as DebugMode.save_logs() does, from rows of a few words. */
#ifndef TWINSTEP_TESTS_DUMPS_HELPER_DUMP_H
#define TWINSTEP_TESTS_DUMPS_HELPER_DUMP_H

#include <stddef.h>

#include "dumps/births.h"

/* One op. Hashes are the norm of each tensor in order, with blanks between them ("1.5 2"); the xor
 * is made of the norm. `module` is "" outside of all modules. */
struct helper_op {
    const char *module, *op, *args, *in, *output, *out;
};

/* Returns the JSON; the caller frees it. */
char *helper_json(const struct helper_op *ops, size_t count);
/* Judges two such dumps; the judgement lives in `arena`. */
void helper_judge(struct arena *arena, const struct helper_op *a, size_t a_count,
                  const struct helper_op *b, size_t b_count, struct dump_judgement *out);
/* The same with one floor. */
void helper_judge_floor(struct arena *arena, const struct helper_op *a, size_t a_count,
                        const struct helper_op *b, size_t b_count, const struct helper_op *floor,
                        size_t floor_count, struct dump_judgement *out);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * What the verbs `ranks order`, `ranks buckets` and `ranks deal` read of the command line in the
 * same way. */
#ifndef TWINSTEP_CLI_RANKS_RANKS_ASKING_H
#define TWINSTEP_CLI_RANKS_RANKS_ASKING_H

#include <stdint.h>

#include "base/dtype.h"
#include "cli/options.h"

/* A whole number from `least` to `most`. An option that was not given leaves *out as it is, or is
 * an error where it is needed. STATUS_INPUT names the option. */
TWINSTEP_MUST_USE enum status ranks_ask_number(const struct options *options, int key,
                                               const char *name, uint64_t least, uint64_t most,
                                               uint64_t *out);
TWINSTEP_MUST_USE enum status ranks_need_number(const struct options *options, int key,
                                                const char *name, uint64_t least, uint64_t most,
                                                uint64_t *out);

/* Whole numbers between commas; NULL and 0 of them if the option was not given. */
TWINSTEP_MUST_USE enum status ranks_ask_list(const struct options *options, int key,
                                             const char *name, struct arena *arena, uint64_t **out,
                                             size_t *out_count);

/* Shapes between commas, as 59x59,59: the first extent of each, and the product of the others. None
 * is larger than 2^48 elements. */
TWINSTEP_MUST_USE enum status ranks_ask_shapes(const struct options *options, int key,
                                               const char *name, struct arena *arena,
                                               uint64_t **out_rows, uint64_t **out_row_lengths,
                                               size_t *out_count);

/* One of the words at `names`, `count` of them. *out stays if it was not given. */
TWINSTEP_MUST_USE enum status ranks_ask_word(const struct options *options, int key,
                                             const char *name, const char *const *words,
                                             size_t count, int *out);

/* f32, bf16 or f16 and so on, of whole bytes: "f32" if it was not given. */
TWINSTEP_MUST_USE enum status ranks_ask_dtype(const struct options *options, int key,
                                              enum dtype *out);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * The names of the tensors that runs left: without what wrappers put into them, and which of them
 * two arms share. Looks at no value but where it compares those of the same name. */
#ifndef TWINSTEP_ABLATE_ABLATE_NAMES_H
#define TWINSTEP_ABLATE_ABLATE_NAMES_H

#include "base/arena.h"
#include "checkpoints/checkpoint.h"

/* The tensors that two checkpoints have both, and those that only one of them has. */
struct ablate_common {
    size_t count;
    const char *const *names; /* (count) sorted */
    size_t only_count[2];
    const char *only[2]; /* the first of them; "": none */
};

/* Takes what wrappers put before names and into them out of the names (checkpoints/layers.h), and
 * sorts the tensors by what is left; not where two names would be one. *out_wrappers: which
 * wrappers these names had, bit by bit. */
TWINSTEP_MUST_USE enum status ablate_names_unwrap(struct checkpoint *weights, struct arena *arena,
                                                  unsigned *out_wrappers);

TWINSTEP_MUST_USE enum status ablate_names_common(const struct checkpoint *a,
                                                  const struct checkpoint *b, struct arena *arena,
                                                  struct ablate_common *out);

/* Says whether two checkpoints have tensors of the same names. */
int ablate_names_same(const struct checkpoint *a, const struct checkpoint *b);

/* Says whether all common tensors are there in both and equal, to the byte. */
int ablate_names_equal(const struct checkpoint *a, const struct checkpoint *b,
                       const struct ablate_common *common);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Whether the digests of two runs speak of the same things, so that unlike ones mean another
 * training and not another way to hash it. */
#ifndef TWINSTEP_DETERMINISM_COMPARABLE_H
#define TWINSTEP_DETERMINISM_COMPARABLE_H

#include <stdint.h>

#include "base/status.h"

struct trace_run;

/* How many of the updates that both runs have also have a root in both, in *out. 0 where the roots
 * cannot be held against each other: there are none, or one run is ours and the other is foreign,
 * whose roots are made of other parts. STATUS_INPUT for two foreign runs whose digests are of
 * unlike kinds, of unlike tensors, or of unlike shards: the text names what differs. The runs are
 * called A and B. */
TWINSTEP_MUST_USE enum status runs_comparable(const struct trace_run *a, const struct trace_run *b,
                                              uint64_t *out);

/* Tells whether two foreign runs with digests trained unlike tensors: other names, dtypes or shapes
 * at one place, or more of them. `out_text` says which, the first one, and is "" where they did
 * not; a longer text is cut. */
#define COMPARABLE_WHY 1024
int runs_unlike(const struct trace_run *a, const struct trace_run *b,
                char out_text[COMPARABLE_WHY]);

#endif

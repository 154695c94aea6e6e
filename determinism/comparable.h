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

/* The updates of two foreign runs of which one alone has a digest of its batch. */
struct batch_gap {
    uint64_t updates; /* how many there are; 0: none */
    uint64_t first;   /* the first of them */
    int side;         /* which run lacks it there: 0 for a, 1 for b */
};

/* Returns the first update of both whose roots differ, or 0, and fills `gap`. A batch without a
 * digest (32 zero bytes) was not recorded, so in updates of the gap no batch counts: the roots of
 * both are made anew there, as if neither had recorded it. Runs without roots have none that
 * differ. */
uint64_t runs_first_apart(const struct trace_run *a, const struct trace_run *b,
                          struct batch_gap *gap);

/* Says of a gap which batches were not compared, as a clause: "8 updates, the first of them update
 * 5, where B recorded none"; "" for no gap. */
void batch_gap_words(const struct batch_gap *gap, char out_text[COMPARABLE_WHY]);

#endif

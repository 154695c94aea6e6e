/* SPDX-License-Identifier: Apache-2.0
 * The random streams of a run as data (docs/decisions/streams-as-data.md): where each of them
 * stands, and what the events of rng.* and a restart do to it before an update. Private to the run.
 *
 * Invariant: for a stream that nothing has changed the state holds zeros only, and its addresses
 * are those of a run without events. */
#ifndef TWINSTEP_TRAINER_STREAMS_H
#define TWINSTEP_TRAINER_STREAMS_H

#include "trainer/run.h"

/* Reads the events of rng.*. Fails with STATUS_INPUT for a `take`, which only a pair of arms can
 * resolve. */
TWINSTEP_MUST_USE enum status streams_open(struct run *run);

/* To be called before the update that comes next: does what a restart that loses streams does, and
 * then the events. */
void streams_begin(struct run *run);

/* Returns where the stream stands now. */
struct stream_place streams_at(const struct run *run, enum stream stream);

/* Returns field `update` of the addresses (law 10) that the running update draws at: the stream's
 * clock + 1. */
uint32_t streams_update(const struct run *run, enum stream stream);

/* Returns the same field for the micro-batch that was fetched last. What leaked into an update from
 * the epoch before numbers its own samples 0, 1, ..., so its addresses have the highest bit set. */
uint32_t streams_address(const struct run *run, enum stream stream);

/* Returns how many words the planned update draws to order its data. That includes an order of the
 * epoch which was not drawn yet because an event or a restart led into the middle of it. */
uint64_t streams_data_words(const struct run *run);

/* For walking the batches of a run without stepping it: turns what this function left before update
 * - 1, its clock moved on by 1, into where stream data stands before `update`. */
void streams_data_before(const struct run *run, uint64_t update, struct stream_course *course);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * The random streams of a run as data (docs/decisions/streams-as-data.md): where each one stands,
 * and what the events of rng.* and a restart do to it before an update.
 *
 * Private to the run. Invariant: of a stream that nothing has changed, the state holds zeros only,
 * and its addresses are those of a run without events. */
#ifndef TWINSTEP_TRAINER_STREAMS_H
#define TWINSTEP_TRAINER_STREAMS_H

#include "trainer/run.h"

/* Reads the events. STATUS_INPUT: a `take`, which only a pair of arms can resolve. */
TWINSTEP_MUST_USE enum status streams_open(struct run *run);

/* Before the update that comes next: a restart that loses streams, then the events. */
void streams_begin(struct run *run);

/* Where the stream stands now. */
struct stream_place streams_at(const struct run *run, enum stream stream);

/* Field `update` of the addresses of the running update (law 10): clock + 1. */
uint32_t streams_update(const struct run *run, enum stream stream);

/* That of the fetched micro-batch. What leaked into an update has samples 0, 1, ... of its own: it
 * is the update's number with the highest bit set. */
uint32_t streams_address(const struct run *run, enum stream stream);

/* Words that the planned update's batches draw: also where an event or a restart leads into the
 * middle of an epoch whose order was not drawn yet. */
uint64_t streams_data_words(const struct run *run);

/* The batches of a whole run without stepping it: course->now of stream data before `update`,
 * when `course` is what this left before the last one, its clock moved on by 1. */
void streams_data_before(const struct run *run, uint64_t update, struct stream_course *course);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Training states as a trace stores them: what their bytes are, and which run may continue them.
 *
 * A stored state is the state's memory, byte for byte, but for numbers of bf16 and f16, which have
 * two bytes (trainer/state_file.h). Its layout digest covers all that gives the bytes a place and a
 * kind: members of struct state_head, pieces of each tensor with dtype and width, optimizer,
 * schedule. A run takes a stored state only if its own digest is the same, so a build that lays a
 * state out differently refuses it. The format covers what no offset shows: the meaning of a member
 * that stays where it was, and the form of the numbers.
 *
 * Invariant: a state that is taken is the one that was stored, of that update. */
#ifndef TWINSTEP_TRAINER_SNAPSHOT_H
#define TWINSTEP_TRAINER_SNAPSHOT_H

#include "determinism/trace.h"
#include "trainer/run.h"

#define SNAPSHOT_FORMAT 2        /* the memory itself, where no number is narrow */
#define SNAPSHOT_FORMAT_NARROW 3 /* with numbers in two bytes */

/* Describes the states that a run of `config` would store, without opening it. `every` is the
 * number of updates from one state to the next. */
TWINSTEP_MUST_USE enum status snapshot_plan(const struct config *config,
                                            const struct dataset *dataset, uint64_t every,
                                            struct trace_snapshot_plan *out);

/* Stores the state of `run`, an index of the trace's, after `step`. */
TWINSTEP_MUST_USE enum status snapshot_put(struct trace *trace, uint32_t index,
                                           const struct run *run, uint64_t step);

/* Bytes of memory that snapshot_put takes while it stores one. */
size_t snapshot_room(const struct run *run);

/* Puts stored state `index` of `recorded`, which is of the trace at `path`, into an open run. Fails
 * with STATUS_INPUT when the state is damaged, of another version or layout, or not the one that
 * the record of its update names; the run is then as it was. */
TWINSTEP_MUST_USE enum status snapshot_take(const char *path, const struct trace_run *recorded,
                                            uint64_t index, struct run *run);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * What becomes of a random stream over a run: its seed and clock before every update, from the
 * events of its rng.* key and from resume.*.
 *
 * The clock counts the updates that the stream was drawn for: an address has update clock + 1. Of
 * PyTorch's generator (rng.kind torch) it is the offset in words, which training moves. Invariant:
 * pure functions of configurations; a stream without events has the clock done, done updates in. */
#ifndef TWINSTEP_SCENARIOS_STREAM_COURSE_H
#define TWINSTEP_SCENARIOS_STREAM_COURSE_H

#include "determinism/stream.h"
#include "scenarios/fault.h"
#include "scenarios/stream_events.h"

/* Largest clock: an address has 32 bits for the update, one of them marks what leaked into it. */
#define STREAM_CLOCK_MAX (((uint64_t)1 << 31) - 1)

struct stream_place {
    uint64_t seed, clock;
};

struct stream_course {
    struct stream_place now, slot[STREAM_SLOTS];
};

/* The streams that have a key: data, dropout, rounding, order. */
#define STREAM_KEYS 4
enum stream stream_of_key(uint32_t index);
const char *stream_key(enum stream stream);                               /* "rng.data" */
const char *stream_text(const struct config *config, enum stream stream); /* its value */

/* The seed that the configuration gives; clock 0. */
struct stream_place stream_start(const struct config *config, enum stream stream);

/* Whether it is PyTorch's generator. */
int stream_is_torch(const struct config *config, enum stream stream);

/* Whether a restart just before `update` throws the stream away. */
int stream_restarts(const struct config *config, enum stream stream, uint64_t update);

/* Whether a restart just before `update` keeps what enum resume_item `item` names; true when there
 * is no restart then. */
int resume_restores(const struct config *config, enum resume_item item, uint64_t update);

/* Whether two arms that both draw the order of their sums draw it differently at some update. */
int stream_orders_differ(const struct config *a, const struct config *b);

/* `event` is none of EVENT_TAKE, which no resolved pair of arms holds. seed of PyTorch's generator
 * sets its offset to 0, as torch.manual_seed does. */
void stream_apply(const struct stream_event *event, int is_torch, struct stream_course *course);

/* A restart just before `update` that loses the stream, then its events of that update. */
void stream_before(const struct config *config, enum stream stream,
                   const struct stream_events *events, uint64_t update,
                   struct stream_course *course);

/* Canonical text of every rng.* key; restores sorted. */
TWINSTEP_MUST_USE enum status stream_derive(struct config *config, struct fault *fault);

/* What a single arm can tell: updates within 1 ... steps, slots loaded after they were saved,
 * clocks that fit an address, PyTorch's offsets. */
TWINSTEP_MUST_USE enum status stream_check(const struct config *config, uint64_t steps,
                                           struct fault *fault);

/* Replaces every `take` of both arms by the literal seed and clock that the other arm has just
 * before that update. `out_arm`: the arm that the fault is in. */
TWINSTEP_MUST_USE enum status stream_settle(struct config *const arms[2],
                                            const char *const names[2], struct fault *fault,
                                            int *out_arm);

#endif

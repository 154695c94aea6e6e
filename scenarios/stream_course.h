/* SPDX-License-Identifier: Apache-2.0
 * What becomes of a random stream over a run: its seed and its clock before every update, from the
 * events of its rng.* key and from resume.*.
 *
 * The clock counts the updates that the stream was drawn for; the numbers of an update have the
 * address clock + 1. For PyTorch's generator (rng.kind torch) it is the offset in words, which
 * training moves. Invariant: these are pure functions of configurations, and a stream without
 * events has clock n after n updates. */
#ifndef TWINSTEP_SCENARIOS_STREAM_COURSE_H
#define TWINSTEP_SCENARIOS_STREAM_COURSE_H

#include "determinism/stream.h"
#include "scenarios/fault.h"
#include "scenarios/stream_events.h"

/* The largest clock: an address has 32 bits for the update, and one of them marks what leaked into
 * it from the epoch before. */
#define STREAM_CLOCK_MAX (((uint64_t)1 << 31) - 1)

struct stream_place {
    uint64_t seed, clock;
};

struct stream_course {
    struct stream_place now, slot[STREAM_SLOTS];
};

/* The streams that have a key: data, dropout, rounding and order. */
#define STREAM_KEYS 4
enum stream stream_of_key(uint32_t index);
const char *stream_key(enum stream stream); /* for instance "rng.data" */
const char *stream_text(const struct config *config,
                        enum stream stream); /* the value of that key */

/* Where a stream starts: the seed that the configuration gives, and clock 0. */
struct stream_place stream_start(const struct config *config, enum stream stream);

/* Whether the stream is PyTorch's generator. */
int stream_is_torch(const struct config *config, enum stream stream);

/* Whether a restart just before `update` throws the stream away, so that it starts anew. */
int stream_restarts(const struct config *config, enum stream stream, uint64_t update);

/* Whether a restart just before `update` keeps what enum resume_item `item` names; true when there
 * is no restart then. */
int resume_restores(const struct config *config, enum resume_item item, uint64_t update);

/* Whether there is a restart that gets this wrong (resume.wrong). */
int resume_errs(const struct config *config, enum resume_error error);

/* Whether two arms that both draw the order of their sums draw it differently at some update. */
int stream_orders_differ(const struct config *a, const struct config *b);

/* Applies what happens just before `update`: first a restart that loses the stream, then its
 * events. */
void stream_before(const struct config *config, enum stream stream,
                   const struct stream_events *events, uint64_t update,
                   struct stream_course *course);

/* Replaces every rng.* key by its canonical text. */
TWINSTEP_MUST_USE enum status stream_derive(struct config *config, struct fault *fault);

/* Checks what a single arm can tell: updates lie within 1 .. steps, slots are loaded after they
 * were saved, clocks fit an address, and PyTorch's offsets are whole draws. */
TWINSTEP_MUST_USE enum status stream_check(const struct config *config, uint64_t steps,
                                           struct fault *fault);

/* Replaces every `take` of both arms by the literal seed and clock that the other arm has just
 * before that update. *out_arm becomes the arm that a fault is in. */
TWINSTEP_MUST_USE enum status stream_settle(struct config *const arms[2],
                                            const char *const names[2], struct fault *fault,
                                            int *out_arm);

#endif

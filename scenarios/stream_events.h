/* SPDX-License-Identifier: Apache-2.0
 * The text of rng.data, rng.dropout, rng.rounding and rng.order: what happens to a random stream,
 * each event before the update that it names.
 *
 * advance 4 at 3, save a at 5, load a at 6, seed 7 at 8, seed 7 clock 2 at 9, take test at 10
 *
 * Only the grammar is known here; scenarios/stream_course.h says what an event does. Invariant:
 * events are sorted by update, those of one update stay in the order of the text, and the text that
 * is written reads back as the same events. */
#ifndef TWINSTEP_SCENARIOS_STREAM_EVENTS_H
#define TWINSTEP_SCENARIOS_STREAM_EVENTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "scenarios/config.h"

#define STREAM_EVENTS_MAX 16
#define STREAM_SLOTS 4
#define STREAM_SLOT_NAME_SIZE 32
#define STREAM_ADVANCE_MAX ((uint64_t)1 << 53)

enum stream_event_kind { EVENT_ADVANCE = 0, EVENT_SAVE, EVENT_LOAD, EVENT_SEED, EVENT_TAKE };

struct stream_event {
    enum stream_event_kind kind;
    uint32_t slot;   /* of save and load */
    uint64_t update; /* the update before which it happens, from 1 */
    uint64_t number; /* advance: how far, from 1 to STREAM_ADVANCE_MAX; seed: the seed */
    uint64_t clock;  /* seed: the clock to go on from, where `placed` */
    int placed;
    char arm[CONFIG_NAME_SIZE]; /* of take */
};

struct stream_events {
    struct stream_event event[STREAM_EVENTS_MAX];
    uint32_t count, slots;
    char slot[STREAM_SLOTS][STREAM_SLOT_NAME_SIZE];
};

/* Reads "none" or a list of events. STATUS_INPUT: "event 2: expected ..., got ...". */
TWINSTEP_MUST_USE enum status stream_events_parse(const char *text, struct stream_events *out);

/* Writes the canonical text into `size` bytes and zeroes the rest of them. STATUS_INPUT when it
 * does not fit. */
TWINSTEP_MUST_USE enum status stream_events_print(const struct stream_events *events, char *out,
                                                  size_t size);

#endif

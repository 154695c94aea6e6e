/* SPDX-License-Identifier: Apache-2.0
 * Translates between the state, which holds how far each stream is off its course, and the absolute
 * place of the stream, which scenarios/stream_course.h computes with. */
#include "trainer/streams.h"

#include <string.h>

#include "trainer/run_private.h"

enum status streams_open(struct run *run) {
    TRY(arena_take(&run->arena, STREAM_COUNT, sizeof *run->events, "events", &run->events));
    for (uint32_t i = 0; i < STREAM_KEYS; i++) {
        const enum stream stream = stream_of_key(i);
        struct stream_events *events = &run->events[stream];
        enum status status = stream_events_parse(stream_text(&run->config, stream), events);
        if (status != STATUS_OK) return status_prefix(status, "%s", stream_key(stream));
        for (uint32_t e = 0; e < events->count; e++)
            if (events->event[e].kind == EVENT_TAKE)
                FAIL(STATUS_INPUT, "%s: event %u: take needs another arm", stream_key(stream),
                     (unsigned)e + 1);
    }
    return STATUS_OK;
}

struct stream_place streams_at(const struct run *run, enum stream stream) {
    const struct state_head *head = state_head_of(run->state.host);
    const struct state_stream *held = &head->stream[stream];
    struct stream_place place = stream_start(&run->config, stream);
    if (held->reseeded) place.seed = held->seed;
    place.clock =
        stream_is_torch(&run->config, stream) ? head->rng_offset : head->done + held->skew;
    return place;
}

uint32_t streams_update(const struct run *run, enum stream stream) {
    const struct state_head *head = state_head_of(run->state.host);
    return (uint32_t)(head->done + head->stream[stream].skew + 1);
}

uint32_t streams_address(const struct run *run, enum stream stream) {
    const uint32_t update = streams_update(run, stream);
    return run->micro <= run->plan.leaked.micros ? update | (uint32_t)1 << 31 : update;
}

static void read_course(const struct run *run, enum stream stream, struct stream_course *out) {
    const struct state_stream *held = &state_head_of(run->state.host)->stream[stream];
    *out = (struct stream_course){.now = streams_at(run, stream)};
    for (uint32_t s = 0; s < STREAM_SLOTS; s++)
        out->slot[s] = (struct stream_place){held->slot[s].seed, held->slot[s].clock};
}

/* What agrees with the configuration and with `done` is written as zero, so two events that undo
 * each other leave no trace in the state. */
static void write_course(struct run *run, enum stream stream, const struct stream_course *course) {
    struct state_head *head = run_head(run);
    struct state_stream *held = &head->stream[stream];
    held->reseeded = course->now.seed != stream_start(&run->config, stream).seed;
    held->seed = held->reseeded ? course->now.seed : 0;
    if (stream_is_torch(&run->config, stream))
        head->rng_offset = course->now.clock;
    else
        held->skew = course->now.clock - head->done;
    for (uint32_t s = 0; s < STREAM_SLOTS; s++)
        held->slot[s] = (struct state_place){course->slot[s].seed, course->slot[s].clock};
}

/* How many batches of its epoch the restart has behind it, over which a loader skips. */
static uint64_t skipped(const struct run *run) {
    return run->config.resume.after % run->sampler.epoch_updates;
}

/* The words by which one draw moves PyTorch's generator. */
#define TORCH_DRAW 4

/* How far a restart that errs moves a stream before `update`. */
static uint64_t astray(const struct run *run, enum stream stream, uint64_t update, uint64_t clock) {
    const struct config *config = &run->config;
    const uint64_t after = config->resume.after;
    uint64_t by = 0;
    if (after == 0 || update <= after) return 0;
    if (stream == STREAM_DATA && update == after + 1) {
        if (resume_errs(config, RESUME_BATCH_PEEKED)) by += 1;
        if (resume_errs(config, RESUME_EPOCH_SHIFTED)) by += run->sampler.epoch_updates;
    } else if (stream == STREAM_DATA && clock % run->sampler.epoch_updates == 0) {
        if (resume_errs(config, RESUME_SKIP_EVERY_EPOCH)) by += skipped(run);
    } else if ((stream == STREAM_DROPOUT || stream == STREAM_ROUNDING) && update == after + 1) {
        if (resume_errs(config, RESUME_RNG_BEFORE_SKIP))
            by += skipped(run) * (stream_is_torch(config, stream) ? TORCH_DRAW : 1);
    }
    return by;
}

static int is_touched(const struct run *run, enum stream stream, uint64_t update) {
    const struct stream_events *events = &run->events[stream];
    if (stream_restarts(&run->config, stream, update)) return 1;
    if (astray(run, stream, update, streams_at(run, stream).clock) != 0) return 1;
    for (uint32_t i = 0; i < events->count; i++)
        if (events->event[i].update == update) return 1;
    return 0;
}

/* The order of an epoch has not been drawn yet at the start of an epoch, after a restart, and where
 * the place or the seed leads into another order. Then the update draws it, and `jumped` says so.
 */
static void move_data(struct run *run, struct stream_place from, struct stream_place to) {
    struct state_head *head = run_head(run);
    const struct sampler_state left = head->sampler;
    head->sampler = sampler_seek(&run->sampler, to.clock);
    run->jumped = left.position == 0 || head->sampler.epoch != left.epoch || to.seed != from.seed ||
                  stream_restarts(&run->config, STREAM_DATA, head->done + 1);
}

uint64_t streams_data_words(const struct run *run) {
    if (!run->jumped || !run->sampler.options.shuffle) return run->plan.words;
    return 2 * (uint64_t)run->dataset->samples;
}

void streams_begin(struct run *run) {
    struct state_head *head = run_head(run);
    const uint64_t update = head->done + 1;
    run->jumped = 0;
    for (uint32_t i = 0; i < STREAM_KEYS; i++) {
        const enum stream stream = stream_of_key(i);
        struct stream_course course;
        if (!is_touched(run, stream, update)) continue;
        read_course(run, stream, &course);
        stream_before(&run->config, stream, &run->events[stream], update, &course);
        course.now.clock += astray(run, stream, update, course.now.clock);
        const struct stream_place before = streams_at(run, stream);
        write_course(run, stream, &course);
        if (stream == STREAM_DATA) move_data(run, before, course.now);
    }
    sampler_reseed(&run->sampler, streams_at(run, STREAM_DATA).seed);
}

void streams_data_before(const struct run *run, uint64_t update, struct stream_course *course) {
    if (update == 1)
        *course = (struct stream_course){.now = stream_start(&run->config, STREAM_DATA)};
    stream_before(&run->config, STREAM_DATA, &run->events[STREAM_DATA], update, course);
    course->now.clock += astray(run, STREAM_DATA, update, course->now.clock);
}

/* SPDX-License-Identifier: Apache-2.0
 * Walks the events of one stream, or of both arms' streams side by side, update by update. Only
 * updates where something happens are visited; the clock jumps over the others. */
#include "scenarios/stream_course.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "scenarios/inert.h"

static const enum stream streams[STREAM_KEYS] = {STREAM_DATA, STREAM_DROPOUT, STREAM_ROUNDING,
                                                 STREAM_ORDER};

/* By enum stream; other streams have no key. */
static const struct {
    const char *key;
    size_t offset; /* of its value in struct config */
} keys[] = {[STREAM_DATA] = {"rng.data", offsetof(struct config, rng.data)},
            [STREAM_DROPOUT] = {"rng.dropout", offsetof(struct config, rng.dropout)},
            [STREAM_ROUNDING] = {"rng.rounding", offsetof(struct config, rng.rounding)},
            [STREAM_ORDER] = {"rng.order", offsetof(struct config, rng.order)}};

enum stream stream_of_key(uint32_t index) {
    return streams[index];
}

const char *stream_key(enum stream stream) {
    return keys[stream].key;
}

const char *stream_text(const struct config *config, enum stream stream) {
    return (const char *)config + keys[stream].offset;
}

static char *text_of(struct config *config, enum stream stream) {
    return (char *)config + keys[stream].offset;
}

struct stream_place stream_start(const struct config *config, enum stream stream) {
    struct stream_place place = {config->seed, 0};
    if (stream == STREAM_DATA) place.seed = config->data.seed;
    if (stream == STREAM_DROPOUT) place.seed = config->dropout.seed;
    if (stream == STREAM_ORDER) place.seed = config->numerics.order_seed;
    return place;
}

int stream_is_torch(const struct config *config, enum stream stream) {
    return stream == STREAM_DROPOUT && config->rng.kind == RNG_TORCH;
}

int resume_restores(const struct config *config, enum resume_item item, uint64_t update) {
    const struct key_list *list = &config->resume.restores;
    if (config->resume.after == 0 || update != config->resume.after + 1) return 1;
    return memchr(list->item, (int)item, list->count) != NULL;
}

int resume_errs(const struct config *config, enum resume_error error) {
    const struct key_list *list = &config->resume.wrong;
    return config->resume.after != 0 && memchr(list->item, (int)error, list->count) != NULL;
}

int stream_restarts(const struct config *config, enum stream stream, uint64_t update) {
    return !resume_restores(config, stream == STREAM_DATA ? RESUME_DATA : RESUME_RNG, update);
}

/* The update from which the order starts again; 0 when it never does. */
static uint64_t order_restart(const struct config *config) {
    const uint64_t update = config->resume.after + 1;
    return stream_restarts(config, STREAM_ORDER, update) ? update : 0;
}

int stream_orders_differ(const struct config *a, const struct config *b) {
    return a->numerics.order_seed != b->numerics.order_seed ||
           strcmp(a->rng.order, b->rng.order) != 0 || order_restart(a) != order_restart(b);
}

/* Applies one event to a stream's place and slots. EVENT_TAKE does nothing: no resolved pair of
 * arms holds one. A new seed of PyTorch's generator sets its offset to 0, as torch.manual_seed
 * does. */
static void stream_apply(const struct stream_event *event, int is_torch,
                         struct stream_course *course) {
    switch (event->kind) {
    case EVENT_ADVANCE:
        course->now.clock += event->number;
        break;
    case EVENT_SAVE:
        course->slot[event->slot] = course->now;
        break;
    case EVENT_LOAD:
        course->now = course->slot[event->slot];
        break;
    case EVENT_SEED:
        course->now.seed = event->number;
        if (event->placed || is_torch) course->now.clock = event->clock;
        break;
    case EVENT_TAKE:
        break;
    }
}

void stream_before(const struct config *config, enum stream stream,
                   const struct stream_events *events, uint64_t update,
                   struct stream_course *course) {
    if (stream_restarts(config, stream, update)) course->now = stream_start(config, stream);
    for (uint32_t i = 0; i < events->count; i++)
        if (events->event[i].update == update)
            stream_apply(&events->event[i], stream_is_torch(config, stream), course);
}

enum status stream_derive(struct config *config, struct fault *fault) {
    for (uint32_t i = 0; i < STREAM_KEYS; i++) {
        struct stream_events events;
        char *const text = text_of(config, streams[i]);
        if (stream_events_parse(text, &events) != STATUS_OK ||
            stream_events_print(&events, text, CONFIG_EVENTS_SIZE) != STATUS_OK)
            return fault_set(fault, STATUS_INPUT, stream_key(streams[i]), "%s", status_text());
    }
    return STATUS_OK;
}

/* What is not restored at all cannot be restored wrongly. Where streams jump by events, too, the
 * place that an epoch has behind it is no longer what resume.after says. */
static enum status check_wrong(const struct config *config, struct fault *fault) {
    static const struct {
        const char *name, *item;
        enum resume_item of;
    } rows[] = {[RESUME_PEAK_OVERWRITTEN] = {"peak-overwritten", "schedule", RESUME_SCHEDULE},
                [RESUME_COUNTER_DOUBLED] = {"counter-doubled", "schedule", RESUME_SCHEDULE},
                [RESUME_MASTERS_BF16] = {"masters-bf16", "optimizer", RESUME_OPTIMIZER},
                [RESUME_BATCH_PEEKED] = {"batch-peeked", "data", RESUME_DATA},
                [RESUME_EPOCH_SHIFTED] = {"epoch-shifted", "data", RESUME_DATA},
                [RESUME_SKIP_EVERY_EPOCH] = {"skip-every-epoch", "data", RESUME_DATA},
                [RESUME_RNG_BEFORE_SKIP] = {"rng-before-skip", "rng", RESUME_RNG},
                [RESUME_SHARDS_BY_INDEX] = {"shards-by-index", "optimizer", RESUME_OPTIMIZER},
                [RESUME_DECAY_LATE] = {"decay-late", "schedule", RESUME_SCHEDULE},
                [RESUME_PADDED_OFFSETS] = {"padded-offsets", "optimizer", RESUME_OPTIMIZER}};
    const struct key_list *list = &config->resume.wrong;
    for (uint8_t i = 0; i < list->count; i++) {
        const uint8_t error = list->item[i];
        if (i > 0 && error == list->item[i - 1])
            return fault_set(fault, STATUS_INPUT, "resume.wrong", "an entry is given twice");
        if (!resume_restores(config, rows[error].of, config->resume.after + 1))
            return fault_set(fault, STATUS_INPUT, "resume.wrong",
                             "%s is wrong of what is restored, and resume.restores has no %s",
                             rows[error].name, rows[error].item);
        if (error == RESUME_MASTERS_BF16 && config->numerics.master == CONFIG_MASTER_NONE)
            return fault_set(fault, STATUS_INPUT, "resume.wrong",
                             "masters-bf16 needs masters, and numerics.master is none");
        if (error == RESUME_SHARDS_BY_INDEX && config->resume.ranks == config->parallel.ranks)
            return fault_set(fault, STATUS_INPUT, "resume.ranks",
                             "expected another number of ranks than the %" PRIu64
                             " that read the shards (parallel.ranks), with shards-by-index: as "
                             "many ranks read what they wrote",
                             config->parallel.ranks);
        if (error == RESUME_PADDED_OFFSETS && resume_errs(config, RESUME_SHARDS_BY_INDEX))
            return fault_set(fault, STATUS_INPUT, "resume.wrong",
                             "shards-by-index and padded-offsets are of two layouts of the same "
                             "numbers: give one");
        if (error == RESUME_DECAY_LATE &&
            config->resume.weight_decay == config->optimizer.weight_decay)
            return fault_set(fault, STATUS_INPUT, "resume.weight_decay",
                             "expected another decay than the checkpoint's, %g "
                             "(optimizer.weight_decay), with decay-late",
                             config->optimizer.weight_decay);
        if (rows[error].of == RESUME_DATA && strcmp(config->rng.data, "none") != 0)
            return fault_set(fault, STATUS_INPUT, "resume.wrong",
                             "%s moves the place in the data, and so does rng.data: give one",
                             rows[error].name);
        if (rows[error].of == RESUME_RNG &&
            (strcmp(config->rng.dropout, "none") != 0 || strcmp(config->rng.rounding, "none") != 0))
            return fault_set(fault, STATUS_INPUT, "resume.wrong",
                             "%s moves streams, and so do rng.dropout and rng.rounding: give one",
                             rows[error].name);
    }
    return STATUS_OK;
}

static enum status check_resume(const struct config *config, uint64_t steps, struct fault *fault) {
    const struct key_list *list = &config->resume.restores;
    if (config->resume.after == 0) return STATUS_OK;
    if (config->resume.after >= steps)
        return fault_set(fault, STATUS_INPUT, "resume.after",
                         "expected an update before the last of %" PRIu64 ", or 0, got %" PRIu64,
                         steps, config->resume.after);
    for (uint8_t i = 1; i < list->count; i++)
        if (list->item[i] == list->item[i - 1])
            return fault_set(fault, STATUS_INPUT, "resume.restores", "an entry is given twice");
    return check_wrong(config, fault);
}

/* One stream on its way through the updates. */
struct walker {
    const struct config *config;
    enum stream stream;
    int is_torch;
    struct stream_events events;
    uint32_t next;   /* index of the next event */
    uint64_t update; /* the update that `course` stands before */
    struct stream_course course;
    uint32_t saved; /* one bit for each slot that was saved */
};

static enum status walker_open(struct walker *walker, const struct config *config,
                               enum stream stream, struct fault *fault) {
    *walker = (struct walker){.config = config,
                              .stream = stream,
                              .is_torch = stream_is_torch(config, stream),
                              .update = 1,
                              .course = {.now = stream_start(config, stream)}};
    if (stream_events_parse(stream_text(config, stream), &walker->events) == STATUS_OK)
        return STATUS_OK;
    return fault_set(fault, STATUS_INPUT, stream_key(stream), "%s", status_text());
}

/* Moves to just before `update`, including a restart there; no event lies in between. */
static void walk_to(struct walker *walker, uint64_t update) {
    if (!walker->is_torch) walker->course.now.clock += update - walker->update;
    if (update != walker->update && stream_restarts(walker->config, walker->stream, update))
        walker->course.now = stream_start(walker->config, walker->stream);
    walker->update = update;
}

/* The next update with an event or a restart; UINT64_MAX when there is none. */
static uint64_t next_stop(const struct walker *walker) {
    const uint64_t restart = walker->config->resume.after + 1;
    uint64_t stop = UINT64_MAX;
    if (walker->next < walker->events.count) stop = walker->events.event[walker->next].update;
    return restart > walker->update && restart < stop ? restart : stop;
}

static const struct stream_event *event_here(const struct walker *walker) {
    const struct stream_event *event = &walker->events.event[walker->next];
    return walker->next < walker->events.count && event->update == walker->update ? event : NULL;
}

static enum status check_updates(const struct walker *walker, uint64_t steps, struct fault *fault) {
    for (uint32_t i = 0; i < walker->events.count; i++)
        if (walker->events.event[i].update > steps)
            return fault_set(fault, STATUS_INPUT, stream_key(walker->stream),
                             "expected updates from 1 to %" PRIu64 " (steps), got %" PRIu64, steps,
                             walker->events.event[i].update);
    return STATUS_OK;
}

static enum status check_torch(const struct walker *walker, const struct stream_event *event,
                               struct fault *fault) {
    const uint64_t words = event->kind == EVENT_ADVANCE ? event->number : event->clock;
    if (!walker->is_torch) return STATUS_OK;
    if (event->kind == EVENT_TAKE)
        return fault_set(fault, STATUS_INPUT, stream_key(walker->stream),
                         "event %" PRIu32 ": expected advance, save, load or seed, got take: how "
                         "far PyTorch's generator is depends on what the other arm has trained",
                         walker->next + 1);
    if (words % 4 != 0)
        return fault_set(fault, STATUS_INPUT, stream_key(walker->stream),
                         "event %" PRIu32 ": expected words of PyTorch's offset, a multiple of 4, "
                         "got %" PRIu64,
                         walker->next + 1, words);
    return STATUS_OK;
}

static enum status check_slot(struct walker *walker, const struct stream_event *event,
                              struct fault *fault) {
    if (event->kind == EVENT_SAVE) walker->saved |= 1u << event->slot;
    if (event->kind != EVENT_LOAD || (walker->saved >> event->slot & 1u) != 0) return STATUS_OK;
    return fault_set(fault, STATUS_INPUT, stream_key(walker->stream),
                     "event %" PRIu32 ": expected a slot that was saved before, got %s",
                     walker->next + 1, walker->events.slot[event->slot]);
}

/* Checks the largest address in use. The walker stands before an update, and all earlier ones are
 * drawn. */
static enum status check_clock(const struct walker *walker, struct fault *fault) {
    if (walker->is_torch || walker->course.now.clock <= STREAM_CLOCK_MAX) return STATUS_OK;
    return fault_set(fault, STATUS_INPUT, stream_key(walker->stream),
                     "expected clocks up to %" PRIu64 ", got %" PRIu64 " at update %" PRIu64,
                     STREAM_CLOCK_MAX, walker->course.now.clock, walker->update - 1);
}

static enum status check_stream(const struct config *config, enum stream stream, uint64_t steps,
                                struct fault *fault) {
    struct walker walker;
    TRY(walker_open(&walker, config, stream, fault));
    TRY(check_updates(&walker, steps, fault));
    for (uint64_t stop = next_stop(&walker); stop != UINT64_MAX; stop = next_stop(&walker)) {
        const struct stream_event *event;
        walk_to(&walker, stop);
        TRY(check_clock(&walker, fault));
        for (; (event = event_here(&walker)) != NULL; walker.next++) {
            TRY(check_torch(&walker, event, fault));
            TRY(check_slot(&walker, event, fault));
            stream_apply(event, walker.is_torch, &walker.course);
        }
    }
    walk_to(&walker, steps + 1);
    return check_clock(&walker, fault);
}

enum status stream_check(const struct config *config, uint64_t steps, struct fault *fault) {
    TRY(check_resume(config, steps, fault));
    for (uint32_t i = 0; i < STREAM_KEYS; i++)
        if (inert_reason(config, stream_key(streams[i])) == NULL)
            TRY(check_stream(config, streams[i], steps, fault));
    return STATUS_OK;
}

/* The walkers of one stream in both arms. */
struct exchange {
    const char *const *names;
    struct walker walker[2];
    struct fault *fault;
};

static enum status refuse(const struct exchange *exchange, int arm, const char *format,
                          const char *detail) {
    const struct walker *walker = &exchange->walker[arm];
    char text[256];
    snprintf(text, sizeof text, format, detail);
    return fault_set(exchange->fault, STATUS_INPUT, stream_key(walker->stream),
                     "event %" PRIu32 ": take: %s", walker->next + 1, text);
}

static enum status check_take(const struct exchange *exchange, int arm,
                              const struct stream_event *event, struct stream_place other) {
    const struct walker *giver = &exchange->walker[!arm];
    const char *idle = inert_reason(giver->config, stream_key(giver->stream));
    if (strcmp(event->arm, exchange->names[!arm]) != 0)
        return fault_set(exchange->fault, STATUS_INPUT, stream_key(giver->stream),
                         "event %" PRIu32 ": take: expected the other arm, %s, got %s",
                         exchange->walker[arm].next + 1, exchange->names[!arm], event->arm);
    if (idle != NULL) return refuse(exchange, arm, "the other arm has no such stream: %s", idle);
    if (giver->is_torch)
        return refuse(exchange, arm, "the other arm's is PyTorch's generator%s", "");
    if (giver->config->resume.after != 0 && giver->config->resume.wrong.count > 0)
        return refuse(exchange, arm, "where the other arm stands is not known beforehand%s",
                      " (resume.wrong)");
    if (giver->stream == STREAM_ORDER && other.seed == KEY_WORD_UINT)
        return refuse(exchange, arm,
                      "the other arm's numerics.order_seed is free; expected a number%s", "");
    return STATUS_OK;
}

static enum status apply_here(struct exchange *exchange, int arm, struct stream_place other) {
    struct walker *walker = &exchange->walker[arm];
    for (; event_here(walker) != NULL; walker->next++) {
        struct stream_event *event = &walker->events.event[walker->next];
        if (event->kind == EVENT_TAKE) {
            TRY(check_take(exchange, arm, event, other));
            event->kind = EVENT_SEED;
            event->number = other.seed;
            event->clock = other.clock;
            event->placed = 1;
        }
        stream_apply(event, walker->is_torch, &walker->course);
    }
    return STATUS_OK;
}

static int has_take(const struct stream_events *events) {
    for (uint32_t i = 0; i < events->count; i++)
        if (events->event[i].kind == EVENT_TAKE) return 1;
    return 0;
}

/* Opens both walkers. The events of an arm that does not read them are dropped: nothing is settled
 * for it. */
static enum status exchange_open(struct exchange *exchange, enum stream stream,
                                 struct config *const arms[2], int takes[2], int *out_arm) {
    for (int arm = 0; arm < 2; arm++) {
        struct walker *walker = &exchange->walker[arm];
        *out_arm = arm;
        TRY(walker_open(walker, arms[arm], stream, exchange->fault));
        if (inert_reason(arms[arm], stream_key(stream)) != NULL) walker->events.count = 0;
        takes[arm] = has_take(&walker->events);
    }
    return STATUS_OK;
}

/* Both arms are read before either moves on, so that two arms which take from each other at the
 * same update swap places. */
static enum status exchange_walk(struct exchange *exchange, int *out_arm) {
    struct walker *const walker = exchange->walker;
    for (;;) {
        const uint64_t a = next_stop(&walker[0]), b = next_stop(&walker[1]);
        const uint64_t stop = a < b ? a : b;
        if (stop == UINT64_MAX) return STATUS_OK;
        walk_to(&walker[0], stop);
        walk_to(&walker[1], stop);
        const struct stream_place before[2] = {walker[0].course.now, walker[1].course.now};
        for (*out_arm = 0; *out_arm < 2; ++*out_arm)
            TRY(apply_here(exchange, *out_arm, before[!*out_arm]));
    }
}

static enum status write_back(struct exchange *exchange, int arm, struct config *config) {
    const struct walker *walker = &exchange->walker[arm];
    char text[CONFIG_EVENTS_SIZE];
    if (stream_events_print(&walker->events, text, sizeof text) != STATUS_OK)
        return fault_set(exchange->fault, STATUS_INPUT, stream_key(walker->stream),
                         "with what take stands for: %s", status_text());
    memcpy(text_of(config, walker->stream), text, sizeof text);
    return STATUS_OK;
}

enum status stream_settle(struct config *const arms[2], const char *const names[2],
                          struct fault *fault, int *out_arm) {
    for (uint32_t i = 0; i < STREAM_KEYS; i++) {
        struct exchange exchange = {.names = names, .fault = fault};
        int takes[2];
        TRY(exchange_open(&exchange, streams[i], arms, takes, out_arm));
        if (!takes[0] && !takes[1]) continue;
        TRY(exchange_walk(&exchange, out_arm));
        for (*out_arm = 0; *out_arm < 2; ++*out_arm)
            if (takes[*out_arm]) TRY(write_back(&exchange, *out_arm, arms[*out_arm]));
    }
    return STATUS_OK;
}

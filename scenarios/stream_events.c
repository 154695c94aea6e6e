/* SPDX-License-Identifier: Apache-2.0
 * Reads events with a cursor over the text; each event is the words up to the next comma. Prints
 * them back in one canonical form. */
#include "scenarios/stream_events.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "base/number.h"

#define SPACES " \t\r\n"

static const char none[] = "none";

static const char *const kind_names[] = {"advance", "save", "load", "seed", "take"};

struct cursor {
    const char *at;
    uint32_t event; /* its number for messages, from 1 */
};

struct word {
    const char *text;
    size_t length;
};

static struct word next_word(const struct cursor *cursor) {
    const char *at = cursor->at + strspn(cursor->at, SPACES);
    return (struct word){at, strcspn(at, SPACES ",")};
}

static int is_word(struct word word, const char *name) {
    return strlen(name) == word.length && memcmp(word.text, name, word.length) == 0;
}

static void pass_word(struct cursor *cursor, struct word word) {
    cursor->at = word.text + word.length;
}

static enum status expected(const struct cursor *cursor, const char *what) {
    const struct word word = next_word(cursor);
    if (word.length == 0)
        FAIL(STATUS_INPUT, "event %" PRIu32 ": expected %s, got %s", cursor->event, what,
             *word.text == ',' ? "a comma" : "the end");
    FAIL(STATUS_INPUT, "event %" PRIu32 ": expected %s, got \"%.*s\"", cursor->event, what,
         word.length > 40 ? 40 : (int)word.length, word.text);
}

static enum status read_uint(struct cursor *cursor, const char *what, uint64_t least, uint64_t most,
                             uint64_t *out) {
    const struct word word = next_word(cursor);
    char digits[24] = "";
    if (word.length == 0 || word.length >= sizeof digits) return expected(cursor, what);
    memcpy(digits, word.text, word.length);
    if (strspn(digits, "0123456789") != word.length ||
        number_parse_uint(digits, out) != STATUS_OK || *out < least || *out > most)
        return expected(cursor, what);
    pass_word(cursor, word);
    return STATUS_OK;
}

static int is_name(struct word word) {
    static const char inside[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    return word.length != 0 && strspn(word.text, inside) >= word.length;
}

static enum status read_name(struct cursor *cursor, const char *what, char *out, size_t size) {
    const struct word word = next_word(cursor);
    if (!is_name(word) || word.length >= size) return expected(cursor, what);
    memcpy(out, word.text, word.length);
    out[word.length] = '\0';
    pass_word(cursor, word);
    return STATUS_OK;
}

static enum status read_slot(struct cursor *cursor, struct stream_events *events, uint32_t *out) {
    char name[STREAM_SLOT_NAME_SIZE];
    TRY(read_name(cursor, "the name of a slot: up to 31 letters, digits, - or _", name,
                  sizeof name));
    for (*out = 0; *out < events->slots; ++*out)
        if (strcmp(events->slot[*out], name) == 0) return STATUS_OK;
    if (events->slots == STREAM_SLOTS)
        FAIL(STATUS_INPUT, "event %" PRIu32 ": expected at most %d names of slots, got \"%s\" too",
             cursor->event, STREAM_SLOTS, name);
    snprintf(events->slot[events->slots++], STREAM_SLOT_NAME_SIZE, "%s", name);
    return STATUS_OK;
}

static enum status read_kind(struct cursor *cursor, enum stream_event_kind *out) {
    const struct word word = next_word(cursor);
    for (size_t i = 0; i < COUNT_OF(kind_names); i++) {
        if (!is_word(word, kind_names[i])) continue;
        *out = (enum stream_event_kind)i;
        pass_word(cursor, word);
        return STATUS_OK;
    }
    return expected(cursor, "advance, save, load, seed or take");
}

static enum status read_seed(struct cursor *cursor, struct stream_event *out) {
    TRY(read_uint(cursor, "a seed from 0 to 18446744073709551615", 0, UINT64_MAX, &out->number));
    const struct word word = next_word(cursor);
    if (!is_word(word, "clock")) return STATUS_OK;
    pass_word(cursor, word);
    out->placed = 1;
    return read_uint(cursor, "a clock from 0 to 2^53", 0, STREAM_ADVANCE_MAX, &out->clock);
}

static enum status read_object(struct cursor *cursor, struct stream_events *events,
                               struct stream_event *out) {
    switch (out->kind) {
    case EVENT_ADVANCE:
        return read_uint(cursor, "a number from 1 to 2^53", 1, STREAM_ADVANCE_MAX, &out->number);
    case EVENT_SAVE:
    case EVENT_LOAD:
        return read_slot(cursor, events, &out->slot);
    case EVENT_SEED:
        return read_seed(cursor, out);
    case EVENT_TAKE:
        break;
    }
    return read_name(cursor, "the name of the other arm", out->arm, sizeof out->arm);
}

static enum status read_event(struct cursor *cursor, struct stream_events *events,
                              struct stream_event *out) {
    memset(out, 0, sizeof *out);
    TRY(read_kind(cursor, &out->kind));
    TRY(read_object(cursor, events, out));
    const struct word at = next_word(cursor);
    if (!is_word(at, "at"))
        return expected(cursor, out->kind == EVENT_SEED && !out->placed ? "at or clock" : "at");
    pass_word(cursor, at);
    return read_uint(cursor, "an update, counted from 1", 1, UINT64_MAX, &out->update);
}

/* A stable insertion sort: events of one update keep the order of the text, which is the order in
 * which they happen. */
static void sort_events(struct stream_events *events) {
    for (uint32_t i = 1; i < events->count; i++) {
        const struct stream_event moving = events->event[i];
        uint32_t at = i;
        for (; at > 0 && events->event[at - 1].update > moving.update; at--)
            events->event[at] = events->event[at - 1];
        events->event[at] = moving;
    }
}

enum status stream_events_parse(const char *text, struct stream_events *out) {
    struct cursor cursor = {text, 1};
    memset(out, 0, sizeof *out);
    const struct word first = next_word(&cursor);
    if (is_word(first, none)) {
        pass_word(&cursor, first);
        if (*next_word(&cursor).text == '\0') return STATUS_OK;
        return expected(&cursor, "nothing after none");
    }
    for (;; cursor.event++) {
        if (out->count == STREAM_EVENTS_MAX)
            FAIL(STATUS_INPUT, "expected at most %d events", STREAM_EVENTS_MAX);
        TRY(read_event(&cursor, out, &out->event[out->count]));
        out->count++;
        const struct word end = next_word(&cursor);
        if (end.length != 0) return expected(&cursor, "a comma or the end");
        if (*end.text == '\0') break;
        cursor.at = end.text + 1;
    }
    sort_events(out);
    return STATUS_OK;
}

static int print_event(const struct stream_events *events, const struct stream_event *event,
                       char *out, size_t size) {
    const char *const kind = kind_names[event->kind];
    switch (event->kind) {
    case EVENT_SAVE:
    case EVENT_LOAD:
        return snprintf(out, size, "%s %s at %" PRIu64, kind, events->slot[event->slot],
                        event->update);
    case EVENT_TAKE:
        return snprintf(out, size, "%s %s at %" PRIu64, kind, event->arm, event->update);
    case EVENT_SEED:
        if (event->placed)
            return snprintf(out, size, "%s %" PRIu64 " clock %" PRIu64 " at %" PRIu64, kind,
                            event->number, event->clock, event->update);
        break;
    case EVENT_ADVANCE:
        break;
    }
    return snprintf(out, size, "%s %" PRIu64 " at %" PRIu64, kind, event->number, event->update);
}

enum status stream_events_print(const struct stream_events *events, char *out, size_t size) {
    char one[2 * CONFIG_NAME_SIZE + 64];
    size_t used = 0;
    memset(out, 0, size);
    if (events->count == 0) used = (size_t)snprintf(out, size, "%s", none);
    for (uint32_t i = 0; i < events->count && used < size; i++) {
        (void)print_event(events, &events->event[i], one, sizeof one);
        used += (size_t)snprintf(out + used, size - used, "%s%s", i == 0 ? "" : ", ", one);
    }
    if (used < size) return STATUS_OK;
    memset(out, 0, size);
    FAIL(STATUS_INPUT, "expected events of at most %zu characters", size - 1);
}

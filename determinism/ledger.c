/* SPDX-License-Identifier: Apache-2.0
 * Compares ledgers by walking both lists of consumers, first for the time before the first update,
 * then update by update. */
#include "determinism/ledger.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "determinism/trace.h"

/* The index of the consumer of that name, or shape.consumers if the run has none. */
static uint32_t find(const struct trace_run *run, const char *name) {
    uint32_t i = 0;
    while (i < run->plan.shape.consumers && strcmp(run->plan.consumers[i].name, name) != 0)
        i++;
    return i;
}

/* The words that consumer `index` drew in one update; before the first one if record is NULL. */
static uint64_t words_of(const struct trace_run *run, const struct record *record, uint32_t index) {
    if (index >= run->plan.shape.consumers) return 0;
    if (record == NULL) return run->plan.consumers[index].initial;
    const int64_t words = record->ledger[index][LEDGER_WORDS];
    return words < 0 ? 0 : (uint64_t)words;
}

int ledger_of(const struct trace_run_plan *plan, const struct record *record,
              struct stream_ledger *out) {
    memset(out, 0, sizeof *out);
    for (uint32_t i = 0; i < plan->shape.consumers; i++) {
        const struct record_consumer *consumer = &plan->consumers[i];
        const int64_t words = record->ledger[i][LEDGER_WORDS];
        if (consumer->stream >= STREAM_COUNT || consumer->op >= STREAM_OPS || words < 0) return 0;
        out->words[consumer->stream][consumer->op] += (uint64_t)words;
    }
    return plan->shape.consumers > 0;
}

static void note(struct ledger_difference *out, const char *consumer, uint64_t a, uint64_t b) {
    if (a == b) return;
    if (out->found) {
        out->others++;
        return;
    }
    out->found = 1;
    out->consumer = consumer;
    out->words[0] = a;
    out->words[1] = b;
}

static void compare_words(const struct trace_run *a, const struct record *x,
                          const struct trace_run *b, const struct record *y,
                          struct ledger_difference *out) {
    for (uint32_t i = 0; i < a->plan.shape.consumers; i++) {
        const char *const name = a->plan.consumers[i].name;
        note(out, name, words_of(a, x, i), words_of(b, y, find(b, name)));
    }
    for (uint32_t i = 0; i < b->plan.shape.consumers; i++) {
        const char *const name = b->plan.consumers[i].name;
        if (find(a, name) == a->plan.shape.consumers) note(out, name, 0, words_of(b, y, i));
    }
    out->update = x == NULL ? 0 : x->step;
}

/* Whether the consumer drew any word in the whole run. */
static int drew(const struct trace_run *run, uint32_t index) {
    if (run->plan.consumers[index].initial > 0) return 1;
    for (uint64_t i = 0; i < run->updates; i++)
        if (words_of(run, trace_row(run, i), index) > 0) return 1;
    return 0;
}

static void compare_seeds(const struct trace_run *a, const struct trace_run *b,
                          struct ledger_difference *out) {
    for (uint32_t i = 0; i < a->plan.shape.consumers; i++) {
        const struct record_consumer *x = &a->plan.consumers[i];
        const uint32_t other = find(b, x->name);
        if (other == b->plan.shape.consumers || x->seed == b->plan.consumers[other].seed) continue;
        if (!drew(a, i) || !drew(b, other) || out->seed_count == STREAM_COUNT) continue;
        struct ledger_seed seed = {.seed = {x->seed, b->plan.consumers[other].seed}};
        snprintf(seed.stream, sizeof seed.stream, "%.*s", (int)strcspn(x->name, "/"), x->name);
        const uint32_t last = out->seed_count;
        if (last > 0 && strcmp(out->seeds[last - 1].stream, seed.stream) == 0) continue;
        out->seeds[out->seed_count++] = seed;
    }
}

/* The index of the stream of that name, or shape.streams if the run has none. */
static uint32_t find_stream(const struct trace_run *run, const char *name) {
    uint32_t i = 0;
    while (i < run->plan.shape.streams && strcmp(run->plan.streams[i], name) != 0)
        i++;
    return i;
}

/* Whether a difference of this stream's seed has been told already with the seeds at the start. */
static int is_told(const struct ledger_difference *out, const char *stream) {
    for (uint32_t i = 0; i < out->seed_count; i++)
        if (strcmp(out->seeds[i].stream, stream) == 0) return 1;
    return strcmp(stream, "order") == 0;
}

static void compare_places(const struct trace_run *a, const struct record *x,
                           const struct trace_run *b, const struct record *y,
                           struct ledger_difference *out) {
    for (uint32_t i = 0; i < a->plan.shape.streams; i++) {
        const uint32_t other = find_stream(b, a->plan.streams[i]);
        if (other == b->plan.shape.streams) continue;
        const int64_t *p = x->places[i], *q = y->places[other];
        if (p[PLACE_CLOCK] == q[PLACE_CLOCK] &&
            (p[PLACE_SEED] == q[PLACE_SEED] || is_told(out, a->plan.streams[i])))
            continue;
        out->place = (struct ledger_place){a->plan.streams[i],
                                           x->step,
                                           {(uint64_t)p[PLACE_SEED], (uint64_t)q[PLACE_SEED]},
                                           {(uint64_t)p[PLACE_CLOCK], (uint64_t)q[PLACE_CLOCK]}};
        return;
    }
}

static void find_place(const struct trace_run *a, const struct trace_run *b,
                       struct ledger_difference *out) {
    for (uint64_t i = 0, j = 0; i < a->updates && j < b->updates && out->place.stream == NULL;) {
        const struct record *x = trace_row(a, i), *y = trace_row(b, j);
        if (x->step == y->step) compare_places(a, x, b, y, out);
        i += x->step <= y->step;
        j += y->step <= x->step;
    }
}

void ledger_compare(const struct trace_run *a, const struct trace_run *b,
                    struct ledger_difference *out) {
    *out = (struct ledger_difference){.consumer = ""};
    out->recorded = a->plan.shape.consumers > 0 && b->plan.shape.consumers > 0;
    if (!out->recorded) return;
    compare_words(a, NULL, b, NULL, out);
    for (uint64_t i = 0, j = 0; i < a->updates && j < b->updates && !out->found;) {
        const struct record *x = trace_row(a, i), *y = trace_row(b, j);
        if (x->step == y->step) compare_words(a, x, b, y, out);
        i += x->step <= y->step;
        j += y->step <= x->step;
    }
    compare_seeds(a, b, out);
    find_place(a, b, out);
}

static enum status word_part(const struct ledger_difference *difference, const char *const names[2],
                             struct arena *arena, char **out) {
    char when[32], more[48];
    if (!difference->found)
        return arena_format(arena, out, "%s", "every consumer drew equally many words");
    snprintf(when, sizeof when, "update %" PRIu64, difference->update);
    snprintf(more, sizeof more, " (and %" PRIu32 " other consumer%s)", difference->others,
             difference->others == 1 ? "" : "s");
    return arena_format(arena, out, "%s: %s drew %" PRIu64 " words in %s, %" PRIu64 " in %s%s",
                        difference->update == 0 ? "before update 1" : when, difference->consumer,
                        difference->words[0], names[0], difference->words[1], names[1],
                        difference->others == 0 ? "" : more);
}

enum status ledger_words(const struct ledger_difference *difference, const char *const names[2],
                         struct arena *arena, char **out) {
    const struct ledger_place *place = &difference->place;
    if (!difference->recorded ||
        (!difference->found && difference->seed_count == 0 && place->stream == NULL))
        return arena_format(arena, out, "%s", "");
    TRY(word_part(difference, names, arena, out));
    for (uint32_t i = 0; i < difference->seed_count; i++) {
        const struct ledger_seed *seed = &difference->seeds[i];
        TRY(arena_format(arena, out,
                         i == 0 ? "%s; seed of %s: %" PRIu64 " in %s, %" PRIu64 " in %s"
                                : "%s; of %s: %" PRIu64 " in %s, %" PRIu64 " in %s",
                         *out, seed->stream, seed->seed[0], names[0], seed->seed[1], names[1]));
    }
    if (place->stream == NULL) return STATUS_OK;
    return arena_format(arena, out,
                        "%s; stream %s stands at seed %" PRIu64 ", clock %" PRIu64
                        " in %s and at seed %" PRIu64 ", clock %" PRIu64 " in %s before update "
                        "%" PRIu64,
                        *out, place->stream, place->seed[0], place->clock[0], names[0],
                        place->seed[1], place->clock[1], names[1], place->update);
}

/* SPDX-License-Identifier: Apache-2.0
 * Opens traces in a confined child (base/confined.h), so that a file which breaks HDF5 breaks
 * nothing else.
 *
 * An image is walked twice with the same functions: by the child, which copies texts of its own
 * (such as "") into the memory that its parent will see, and by the parent, which believes nothing:
 * every pointer must lead into that memory, and every count must fit there.
 *
 * Invariant: after see_image() has said so, whatever trace.h lets a caller read can be read. */
#include "determinism/trace/trace_confined.h"

#include <string.h>

#include "base/confined.h"
#include "determinism/foreign.h"
#include "determinism/trace/trace_block.h"

struct seeing {
    struct arena *arena; /* the child's; NULL in the parent */
    enum status status;
    int bad;
    int later;       /* rows of ours are in the file, `ends` in their place */
    uint64_t length; /* of the file, then */
};

static void see_text(struct seeing *s, const char **text) {
    char *copy;
    if (*text != NULL && confined_text(*text)) return;
    if (s->arena == NULL || *text == NULL) {
        s->bad = 1;
        return;
    }
    if (s->status == STATUS_OK) s->status = arena_text(s->arena, *text, strlen(*text), &copy);
    if (s->status == STATUS_OK) *text = copy;
}

static void see_optional(struct seeing *s, const char **text) {
    if (*text != NULL) see_text(s, text);
}

/* Whether an array can be walked. */
static int see(struct seeing *s, const void *array, uint64_t count, size_t size) {
    if (confined_holds(array, count, size)) return 1;
    s->bad = 1;
    return 0;
}

static void see_names(struct seeing *s, const char *const *names, uint64_t count) {
    const char **writable;
    memcpy(&writable, &names, sizeof writable); /* the reader made them, as an array of its own */
    if (count == 0 || !see(s, names, count, sizeof *names)) return;
    for (uint64_t i = 0; i < count; i++)
        see_text(s, &writable[i]);
}

static void see_consumers(struct seeing *s, const struct trace_run_plan *plan) {
    struct record_consumer *consumers;
    memcpy(&consumers, &plan->consumers, sizeof consumers);
    const uint32_t count = plan->shape.consumers;
    if (count == 0 || !see(s, consumers, count, sizeof *consumers)) return;
    for (uint32_t i = 0; i < count; i++)
        see_text(s, &consumers[i].name);
}

static void see_foreign(struct seeing *s, const struct trace_run_plan *plan) {
    struct trace_foreign *foreign;
    memcpy(&foreign, &plan->foreign, sizeof foreign);
    if (foreign == NULL || !see(s, foreign, 1, sizeof *foreign)) return;
    see_text(s, &foreign->digest);
    see_text(s, &foreign->causes);
    see_names(s, foreign->dtypes, plan->shape.tensors);
    see_names(s, foreign->shapes, plan->shape.tensors);
    if (foreign->initial != NULL) see_names(s, foreign->initial, plan->shape.tensors);
    if (foreign->groups == NULL ||
        !see(s, foreign->groups, plan->shape.tensors, sizeof *foreign->groups))
        return;
    for (uint32_t i = 0; i < plan->shape.tensors; i++)
        if (foreign->groups[i] >= plan->shape.groups) s->bad = 1;
}

static void see_record(struct seeing *s, const struct record *record,
                       const struct record_shape *shape) {
    see(s, record->groups, shape->groups, sizeof *record->groups);
    see(s, record->tensors, shape->tensors, sizeof *record->tensors);
    see(s, record->tensor_digests, shape->tensors, sizeof *record->tensor_digests);
    see(s, record->phases, shape->phases, sizeof *record->phases);
    see(s, record->phase_places, shape->phases, sizeof *record->phase_places);
    see(s, record->sites, shape->sites, sizeof *record->sites);
    see(s, record->micros, shape->micros, sizeof *record->micros);
    see(s, record->ledger, shape->consumers, sizeof *record->ledger);
    see(s, record->places, shape->streams, sizeof *record->places);
    see(s, record->rank_digests, shape->ranks, sizeof *record->rank_digests);
    see(s, record->ranks, shape->ranks, sizeof *record->ranks);
}

/* Steps begin above `last` and increase. */
static void see_step(struct seeing *s, uint64_t step, uint64_t *last, int is_first) {
    if (step > INT64_MAX || (!is_first && step <= *last)) s->bad = 1;
    *last = step;
}

/* Records of a run of that shape, or of a pair (NULL), of updates after *last. */
static void see_records(struct seeing *s, const void *records, uint64_t count,
                        const struct record_shape *shape, uint64_t *last) {
    const struct record *const run = (const struct record *)records;
    const struct pair_record *const pair = (const struct pair_record *)records;
    if (!see(s, records, count, shape != NULL ? sizeof *run : sizeof *pair)) return;
    for (uint64_t i = 0; i < count; i++) {
        see_step(s, shape != NULL ? run[i].step : pair[i].step, last, 0);
        if (shape != NULL) see_record(s, &run[i], shape);
    }
}

/* What stands in place of rows: memory that is taken by these numbers later is bounded by the
 * file, where each number that is counted takes 8 bytes. */
static void see_ends(struct seeing *s, const uint64_t *ends, uint64_t updates,
                     const struct record_shape *shape) {
    const uint64_t most = s->length / sizeof *ends;
    uint64_t last = 0;
    if (updates > most ||
        (shape != NULL && (shape->groups > most || shape->micros > most || shape->ranks > most))) {
        s->bad = 1;
        return;
    }
    const uint64_t room = block_rows_apart(shape), blocks = (updates + room - 1) / room;
    if (!see(s, ends, blocks, sizeof *ends)) return;
    for (uint64_t i = 0; i < blocks; i++)
        see_step(s, ends[i], &last, 0);
}

/* No child has windows: whoever leaves one has been taken over. */
static void see_series(struct seeing *s, int later, const void *records, const uint64_t *ends,
                       const struct trace_window *window, uint64_t updates,
                       const struct record_shape *shape) {
    uint64_t last = 0;
    if (window != NULL || (later && records != NULL))
        s->bad = 1;
    else if (later)
        see_ends(s, ends, updates, shape);
    else
        see_records(s, records, updates, shape, &last);
}

static void see_rows(struct seeing *s, const struct trace_run *run) {
    uint64_t last = 0;
    see_series(s, s->later && run->plan.foreign == NULL, run->records, run->ends, run->window,
               run->updates, &run->plan.shape);
    if (!see(s, run->snapshot_steps, run->snapshots, sizeof *run->snapshot_steps)) return;
    for (uint64_t i = 0; i < run->snapshots; i++)
        see_step(s, run->snapshot_steps[i], &last, i == 0);
}

static void see_run(struct seeing *s, struct trace_run *run) {
    struct trace_run_plan *plan = &run->plan;
    see_text(s, &plan->id);
    see_text(s, &plan->arm);
    see_text(s, &plan->groups);
    see_text(s, &plan->configuration);
    see_names(s, plan->phases, plan->shape.phases);
    see_names(s, plan->sites, plan->shape.sites);
    see_names(s, plan->tensors, plan->shape.tensors);
    see_names(s, plan->streams, plan->shape.streams);
    see_consumers(s, plan);
    see_foreign(s, plan);
    see_rows(s, run);
}

/* A pair has no shape: its rows are all alike (NULL). */
static void see_pair(struct seeing *s, struct trace_pair *pair) {
    see_text(s, &pair->plan.a);
    see_text(s, &pair->plan.b);
    see_series(s, s->later, pair->records, pair->ends, pair->window, pair->updates, NULL);
}

static void see_array(struct seeing *s, struct trace_array *array) {
    const uint64_t *shape = array->plan.shape;
    const uint64_t columns = array->plan.rank == 2 ? shape[1] : 1;
    see_text(s, &array->plan.path);
    see_text(s, &array->plan.units);
    see_text(s, &array->plan.long_name);
    if (array->plan.rank < 1 || array->plan.rank > 2 ||
        (columns != 0 && shape[0] > UINT64_MAX / columns) || array->later != NULL)
        s->bad = 1;
    else
        see(s, array->values, shape[0] * columns, sizeof *array->values);
}

static void see_content(struct seeing *s, struct trace_text *text) {
    see_text(s, &text->path);
    if (text->length == SIZE_MAX)
        s->bad = 1;
    else if (see(s, text->text, text->length + 1, 1) && text->text[text->length] != '\0')
        s->bad = 1;
}

static void see_attribute(struct seeing *s, struct trace_attribute *attribute) {
    see_text(s, &attribute->path);
    see_text(s, &attribute->name);
    see_text(s, &attribute->text);
}

static void see_image(struct seeing *s, struct trace_image *image) {
    if (!see(s, image, 1, sizeof *image)) return;
    see_optional(s, &image->writer);
    see_optional(s, &image->writer_version);
    if ((int)image->seal < 0 || image->seal > TRACE_SEAL_WHOLE) s->bad = 1;
    if (image->source != NULL) s->bad = 1;
    if (see(s, image->runs, image->run_count, sizeof *image->runs))
        for (uint32_t i = 0; i < image->run_count; i++)
            see_run(s, &image->runs[i]);
    if (see(s, image->pairs, image->pair_count, sizeof *image->pairs))
        for (uint32_t i = 0; i < image->pair_count; i++)
            see_pair(s, &image->pairs[i]);
    if (see(s, image->arrays, image->array_count, sizeof *image->arrays))
        for (uint32_t i = 0; i < image->array_count; i++)
            see_array(s, &image->arrays[i]);
    if (see(s, image->texts, image->text_count, sizeof *image->texts))
        for (uint32_t i = 0; i < image->text_count; i++)
            see_content(s, &image->texts[i]);
    if (see(s, image->attributes, image->attribute_count, sizeof *image->attributes))
        for (uint32_t i = 0; i < image->attribute_count; i++)
            see_attribute(s, &image->attributes[i]);
}

/* ---- a trace ---- */

static enum status open_there(const void *asked, struct arena *arena, void *answer) {
    const struct apart_image *want = (const struct apart_image *)asked;
    struct seeing s = {.arena = arena, .later = want->later != NULL, .length = UINT64_MAX};
    struct trace_image *image;
    TRY(reader_image(want->path, want->lenient, want->later, arena, &image));
    see_image(&s, image);
    memcpy(answer, &image, sizeof image);
    return s.status;
}

static int look_at_image(const void *asked, const void *answer) {
    const struct apart_image *want = (const struct apart_image *)asked;
    struct seeing s = {.later = want->later != NULL};
    struct trace_image *image;
    struct stat info;
    if (want->later != NULL && fstat(want->descriptor, &info) == 0 && info.st_size > 0)
        s.length = (uint64_t)info.st_size;
    memcpy(&image, answer, sizeof image);
    see_image(&s, image);
    return !s.bad;
}

enum status apart_open(const struct apart_image *asked, struct arena *arena,
                       struct trace_image **out) {
    const struct confined confined = {
        .path = asked->path, .asked = asked, .work = open_there, .look = look_at_image};
    TRY(reader_refuse_loose(asked->path));
    return confined_run(&confined, out, sizeof *out, arena);
}

enum status trace_open(const char *path, struct arena *arena, struct trace_image **out) {
    const struct apart_image asked = {.path = path};
    return apart_open(&asked, arena, out);
}

enum status trace_open_damaged(const char *path, struct arena *arena, struct trace_image **out) {
    const struct apart_image asked = {.path = path, .lenient = 1};
    return apart_open(&asked, arena, out);
}

/* ---- a block of rows ---- */

static enum status read_rows_there(const void *asked, struct arena *arena, void *answer) {
    void *records;
    TRY(reader_rows_of((const struct reader_block *)asked, arena, &records));
    memcpy(answer, &records, sizeof records);
    return STATUS_OK;
}

static int look_at_rows(const void *asked, const void *answer) {
    const struct reader_block *const block = (const struct reader_block *)asked;
    struct seeing s = {.bad = 0};
    uint64_t last = block->after;
    void *records;
    memcpy(&records, answer, sizeof records);
    see_records(&s, records, block->count, block->shape, &last);
    return !s.bad && last == block->end;
}

enum status apart_rows(const struct reader_block *asked, struct arena *arena, void **out_records) {
    const struct confined confined = {
        .path = asked->path, .asked = asked, .work = read_rows_there, .look = look_at_rows};
    return confined_run(&confined, out_records, sizeof *out_records, arena);
}

/* ---- a stored state ---- */

struct state_asked {
    const char *path;
    const struct trace_run *run;
    uint64_t index;
};

static enum status read_state_there(const void *asked, struct arena *arena, void *answer) {
    const struct state_asked *state = (const struct state_asked *)asked;
    unsigned char *bytes;
    TRY(reader_state(state->path, state->run, state->index, arena, &bytes));
    memcpy(answer, &bytes, sizeof bytes);
    return STATUS_OK;
}

static int look_at_state(const void *asked, const void *answer) {
    const struct state_asked *state = (const struct state_asked *)asked;
    unsigned char *bytes;
    memcpy(&bytes, answer, sizeof bytes);
    return confined_holds(bytes, state->run->plan.snapshots.bytes, 1);
}

enum status trace_snapshot_read(const char *path, const struct trace_run *run, uint64_t index,
                                struct arena *arena, unsigned char **out_bytes) {
    const struct state_asked asked = {path, run, index};
    const struct confined confined = {
        .path = path, .asked = &asked, .work = read_state_there, .look = look_at_state};
    return confined_run(&confined, out_bytes, sizeof *out_bytes, arena);
}

static enum status check_states_there(const void *asked, struct arena *arena, void *answer) {
    const struct apart_states *states = (const struct apart_states *)asked;
    struct arena room = ARENA_EMPTY; /* what is read stays in this process */
    struct trace_states found;
    (void)arena;
    TRY(reader_check_states(states->path, states->same, states->run, &room, &found));
    memcpy(answer, &found, sizeof found);
    return STATUS_OK;
}

static int look_at_damage(const void *asked, const void *answer) {
    const struct apart_states *states = (const struct apart_states *)asked;
    struct trace_states found;
    memcpy(&found, answer, sizeof found);
    if (found.damaged > states->run->snapshots) return 0;
    for (uint64_t i = 0; i < found.damaged && i < TRACE_STATES_NAMED; i++)
        if (found.index[i] >= states->run->snapshots ||
            (i > 0 && found.index[i] <= found.index[i - 1]))
            return 0;
    return 1;
}

enum status apart_check_states(const struct apart_states *asked, struct trace_states *out) {
    struct arena arena = ARENA_EMPTY;
    const struct confined confined = {
        .path = asked->path, .asked = asked, .work = check_states_there, .look = look_at_damage};
    const enum status status = confined_run(&confined, out, sizeof *out, &arena);
    arena_close(&arena);
    return status;
}

/* ---- the form of a foreign trace ---- */

static enum status check_there(const void *asked, struct arena *arena, void *answer) {
    const char *const path = (const char *)asked;
    struct foreign_report report;
    TRY(reader_report(path, arena, &report));
    memcpy(answer, &report, sizeof report);
    return STATUS_OK;
}

static int look_at_report(const void *asked, const void *answer) {
    struct seeing s = {.bad = 0};
    struct foreign_report report;
    (void)asked;
    memcpy(&report, answer, sizeof report);
    see_names(&s, report.problems, report.problem_count);
    see_names(&s, report.notes, report.note_count);
    return !s.bad;
}

enum status foreign_check(const char *path, struct arena *arena, struct foreign_report *out) {
    const struct confined confined = {
        .path = path, .asked = path, .work = check_there, .look = look_at_report};
    return confined_run(&confined, out, sizeof *out, arena);
}

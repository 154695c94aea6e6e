/* SPDX-License-Identifier: Apache-2.0
 * Digests the cells of a watched update and compares two updates. Keys are found by walking:
 * updates repeat themselves, so the next key is nearly always the one that came next the last time.
 * Memory that fails ends the digests and is reported after the update. */
#include "experiment/locate/locate_cells.h"

#include <string.h>

#include "determinism/digest.h"
#include "experiment/locate/locate_capture.h"

void locate_cells_open(struct arena *arena, struct locate_cells *out) {
    memset(out, 0, sizeof *out);
    out->arena = arena;
}

static size_t extent_of(const struct watch_view *view) {
    if (view->axis == WATCH_WHOLE) return view->parameter == WATCH_NO_PARAMETER ? 0 : view->count;
    return view->columns == WATCH_KEYS ? 0 : view->width;
}

static int same_key(const struct locate_key *key, enum watch_stage stage, uint32_t layer,
                    struct watch_name op, struct watch_name tensor) {
    return key->stage == stage && key->layer == layer && watch_name_equal(key->op, op) &&
           watch_name_equal(key->tensor, tensor);
}

const struct locate_key *locate_cells_key(const struct locate_cells *cells,
                                          const struct locate_key *like) {
    for (uint32_t i = 0; i < cells->count; i++)
        if (same_key(&cells->keys[i], like->stage, like->layer, like->op, like->tensor))
            return &cells->keys[i];
    return NULL;
}

const struct locate_cell *locate_cells_at(const struct locate_key *key, uint32_t level,
                                          uint32_t index) {
    const struct locate_level *at = key->levels;
    for (; at != NULL && level > 0; level--)
        at = at->next;
    if (at == NULL || index >= at->capacity || at->cells[index].event == 0) return NULL;
    return &at->cells[index];
}

static enum status key_of(struct locate_cells *cells, const struct watch_view *view,
                          struct locate_key **out) {
    for (uint32_t i = 0; i < cells->count; i++) {
        const uint32_t at = (cells->last + 1 + i) % cells->count;
        if (!same_key(&cells->keys[at], view->stage, view->layer, view->op, view->tensor)) continue;
        cells->last = at;
        *out = &cells->keys[at];
        return STATUS_OK;
    }
    TRY(arena_grow(cells->arena, cells->count + (size_t)1, &cells->capacity, sizeof *cells->keys,
                   "digests of an update", &cells->keys));
    char *op; /* copied, because names of parameters go with their run */
    TRY(arena_text(cells->arena, view->op.text, strlen(view->op.text), &op));
    cells->last = cells->count++;
    *out = &cells->keys[cells->last];
    **out = (struct locate_key){.stage = view->stage,
                                .layer = view->layer,
                                .op = {view->op.label, op},
                                .tensor = view->tensor,
                                .axis = view->axis,
                                .kind = view->kind,
                                .dtype = view->dtype,
                                .parameter = view->parameter,
                                .extent = extent_of(view),
                                .event = cells->events};
    return STATUS_OK;
}

/* Finds the first level whose cell `index` is free. */
static enum status free_cell(struct locate_cells *cells, struct locate_key *key, uint32_t index,
                             uint32_t *out_level, struct locate_cell **out) {
    struct locate_level **at = &key->levels;
    for (*out_level = 0;; at = &(*at)->next, ++*out_level) {
        if (*at == NULL) TRY(arena_take(cells->arena, 1, sizeof **at, "digests of an update", at));
        TRY(arena_grow(cells->arena, index + (size_t)1, &(*at)->capacity, sizeof *(*at)->cells,
                       "digests of an update", &(*at)->cells));
        *out = &(*at)->cells[index];
        if ((*out)->event == 0) return STATUS_OK;
    }
}

static void flush(struct locate_cells *cells, struct digest_stream *stream, size_t *used) {
    struct digest digest;
    if (*used == 0) return;
    digest_bytes("cell", cells->buffer, *used * sizeof *cells->buffer, &digest);
    digest_stream_add(stream, &digest);
    *used = 0;
}

static void digest_cell(struct locate_cells *cells, const struct watch_view *view,
                        const struct watch_cell *cell, uint8_t out[16]) {
    struct digest_stream stream;
    struct digest digest;
    size_t used = 0;
    digest_stream_init(&stream, "cell");
    for (uint32_t r = 0; r < cell->rows; r++) {
        const void *row = watch_row(view, cell, r);
        const uint32_t position = watch_position(view, cell, r);
        for (size_t c = 0; c < view->width;) {
            used += watch_live_bits(view, row, position, &c, LOCATE_BUFFER - used,
                                    cells->buffer + used);
            if (used == LOCATE_BUFFER) flush(cells, &stream, &used);
        }
    }
    flush(cells, &stream, &used);
    digest_stream_close(&stream, &digest);
    memcpy(out, digest.byte, 16);
}

static enum status see(struct locate_cells *cells, const struct watch_view *view) {
    struct locate_key *key;
    cells->events++;
    TRY(key_of(cells, view, &key));
    const uint32_t count = watch_cells(view);
    for (uint32_t i = 0; i < count; i++) {
        const struct watch_cell cell = watch_cell_of(view, i);
        struct locate_cell *fresh;
        uint32_t level;
        TRY(free_cell(cells, key, cell.index, &level, &fresh));
        digest_cell(cells, view, &cell, fresh->digest);
        fresh->event = cells->events;
        fresh->micro = view->micro;
        fresh->from = cell.from;
        if (cells->capture != NULL) TRY(locate_capture_see(cells->capture, view, &cell, level));
    }
    return STATUS_OK;
}

void locate_cells_see(void *context, const struct watch_view *view) {
    struct locate_cells *cells = (struct locate_cells *)context;
    if (cells->status == STATUS_OK) cells->status = see(cells, view);
}

/* Whether a cell need not have a partner: sums over samples stop where a micro-batch stops, and
 * tables are as long as the longest sequence. */
static int may_lack(const struct locate_key *key, uint32_t index) {
    return key->axis == WATCH_POSITIONS || (key->axis == WATCH_WHOLE && index > 0);
}

static void note_only(struct locate_first *first, enum locate_structure structure,
                      const struct locate_key *key, uint32_t index, uint32_t event) {
    if (first->structure != LOCATE_SAME && first->only_event <= event) return;
    first->structure = structure;
    first->only = key;
    first->only_index = index;
    first->only_event = event;
}

static void note_value(struct locate_first *first, const struct locate_key *key, uint32_t level,
                       uint32_t index, uint32_t event) {
    if (first->key != NULL &&
        (first->event < event || (first->event == event && first->index <= index)))
        return;
    first->key = key;
    first->level = level;
    first->index = index;
    first->event = event;
}

static void compare_key(const struct locate_key *a, const struct locate_key *b,
                        struct locate_first *out) {
    uint32_t level = 0;
    if (a->extent != b->extent) {
        note_only(out, LOCATE_SHAPE, a, 0, a->event);
        if (out->only == a) out->other = b;
        return;
    }
    for (const struct locate_level *at = a->levels; at != NULL; at = at->next, level++)
        for (uint32_t i = 0; i < at->capacity; i++) {
            if (at->cells[i].event == 0) continue;
            const struct locate_cell *other = locate_cells_at(b, level, i);
            if (other == NULL && !may_lack(a, i))
                note_only(out, LOCATE_ONLY_A, a, i, at->cells[i].event);
            if (other != NULL && other->from == at->cells[i].from &&
                memcmp(at->cells[i].digest, other->digest, 16) != 0)
                note_value(out, a, level, i, at->cells[i].event);
        }
}

/* Notes the cells of B that A lacks, at the place of A's first cell of that tensor. */
static void look_for_more(const struct locate_key *a, const struct locate_key *b,
                          struct locate_first *out) {
    uint32_t level = 0;
    for (const struct locate_level *at = b->levels; at != NULL; at = at->next, level++)
        for (uint32_t i = 0; i < at->capacity; i++)
            if (at->cells[i].event != 0 && !may_lack(b, i) && locate_cells_at(a, level, i) == NULL)
                note_only(out, LOCATE_ONLY_B, b, i, a->event);
}

void locate_cells_first(const struct locate_cells *a, const struct locate_cells *b,
                        struct locate_first *out) {
    memset(out, 0, sizeof *out);
    for (uint32_t i = 0; i < a->count; i++) {
        const struct locate_key *other = locate_cells_key(b, &a->keys[i]);
        if (other == NULL)
            note_only(out, LOCATE_ONLY_A, &a->keys[i], 0, a->keys[i].event);
        else
            compare_key(&a->keys[i], other, out);
    }
    uint32_t before = 0; /* place in A of the last tensor of B that A has, too */
    for (uint32_t i = 0; i < b->count; i++) {
        const struct locate_key *other = locate_cells_key(a, &b->keys[i]);
        if (other == NULL)
            note_only(out, LOCATE_ONLY_B, &b->keys[i], 0, before);
        else
            look_for_more(other, &b->keys[i], out);
        if (other != NULL && other->event > before) before = other->event;
    }
}

int locate_structure_first(const struct locate_first *first) {
    if (first->structure == LOCATE_SAME) return 0;
    return first->key == NULL || first->only_event < first->event ||
           (first->only_event == first->event && first->structure == LOCATE_ONLY_A);
}

int locate_cells_equal(const struct locate_cells *a, const struct locate_cells *b) {
    struct locate_first first;
    locate_cells_first(a, b, &first);
    return first.key == NULL && first.structure == LOCATE_SAME && a->events == b->events;
}

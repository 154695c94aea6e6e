/* SPDX-License-Identifier: Apache-2.0
 * Compares and mixes resolved configurations, row by row. The rows of a class count only where both
 * arms chose that class; where the choice differs, the whole class goes with it. Invariant:
 * swapping every cause of factors_of(a, b) from b into a gives b, byte by byte. */
#include "scenarios/scenario.h"

#include <stdio.h>
#include <string.h>

#include "scenarios/inert.h"
#include "scenarios/row_value.h"
#include "scenarios/selection.h"

/* One row of a configuration, or of a pair, wherever its bytes lie. */
struct place {
    const struct key_row *row;
    const char *prefix; /* of a row of a class; NULL for the schema's */
    const void *base[2];
};

/* Visits every row that holds in configuration a: the schema's rows, with those of a class right
 * behind the key that selects it. `b` may be NULL. */
typedef enum status (*visit_row)(void *context, const struct place *place);

static enum status visit_class(const struct schema *schema, const struct config *a,
                               const struct config *b, enum selection selection, visit_row visit,
                               void *context) {
    const struct config_class *of_a = selection_read(a, selection);
    const struct config_class *of_b = b == NULL ? NULL : selection_read(b, selection);
    const struct schema_class *rows = selection_class(schema, a, selection);
    if (rows == NULL) return STATUS_OK;
    for (size_t i = 0; i < rows->key_count; i++) {
        struct place place = {
            &rows->keys[i], rows->prefix, {of_a->values, of_b == NULL ? NULL : of_b->values}};
        TRY(visit(context, &place));
    }
    return STATUS_OK;
}

static enum status visit_rows(const struct schema *schema, const struct config *a,
                              const struct config *b, visit_row visit, void *context) {
    size_t count = 0;
    const struct key_row *rows = schema_rows(&count);
    for (size_t i = 0; i < count; i++) {
        struct place place = {&rows[i], NULL, {a, b}};
        TRY(visit(context, &place));
        for (int s = 0; s < SELECT_COUNT; s++)
            if (i == selection_row((enum selection)s, "name"))
                TRY(visit_class(schema, a, b, (enum selection)s, visit, context));
    }
    return STATUS_OK;
}

static enum status full_path(const struct place *place, struct arena *arena, const char **out) {
    char *path = NULL;
    if (place->prefix == NULL)
        TRY(arena_format(arena, &path, "%s", place->row->path));
    else
        TRY(arena_format(arena, &path, "%s.%s", place->prefix, place->row->path));
    *out = path;
    return STATUS_OK;
}

/* A key with its value in one configuration, or in two that differ in it. */
struct entry {
    enum cause cause;
    const char *key;
    const char *values[2];
    struct entry *next;
};

struct listing {
    const struct schema *schema;
    const struct config *configs[2];
    struct arena *arena;
    struct entry *first, *last;
};

static enum status note(struct listing *listing, enum cause cause, const char *key, const char *a,
                        const char *b) {
    struct entry *entry = NULL;
    TRY(arena_take(listing->arena, 1, sizeof *entry, "a key of a configuration", &entry));
    *entry = (struct entry){cause, key, {a, b}, NULL};
    if (listing->last == NULL)
        listing->first = entry;
    else
        listing->last->next = entry;
    listing->last = entry;
    return STATUS_OK;
}

/* Keys of later versions are left out where they say nothing, so that the text is that of a version
 * which did not have them, and traces of that version are replayed (schema_is_later). */
static int is_left_out(const struct place *place, const char *value) {
    const struct config *const config = (const struct config *)place->base[0];
    if (place->prefix != NULL || !schema_is_later(place->row)) return 0;
    if (place->row->cause == CAUSE_CORRUPTION) return config->fault.update == 0;
    return strcmp(value, place->row->standard) == 0;
}

static enum status write_line(void *context, const struct place *place) {
    struct listing *listing = (struct listing *)context;
    const char *key = NULL;
    char *value = NULL;
    TRY(full_path(place, listing->arena, &key));
    TRY(row_text(place->row, place->base[0], listing->arena, &value));
    if (is_left_out(place, value)) return STATUS_OK;
    return note(listing, place->row->cause, key, value, NULL);
}

enum status config_text(const struct schema *schema, const struct config *config,
                        struct arena *arena, char **out_text) {
    struct listing listing = {.arena = arena};
    TRY(visit_rows(schema, config, NULL, write_line, &listing));
    size_t size = 1;
    for (const struct entry *line = listing.first; line != NULL; line = line->next)
        size += strlen(line->key) + 2 + strlen(line->values[0]) + 1;
    TRY(arena_take(arena, size, 1, "the text of a configuration", out_text));
    size_t used = 0;
    for (const struct entry *line = listing.first; line != NULL; line = line->next)
        used +=
            (size_t)snprintf(*out_text + used, size - used, "%s: %s\n", line->key, line->values[0]);
    return STATUS_OK;
}

static int same_class(const struct config *a, const struct config *b, enum selection selection) {
    const struct config_class *of_a = selection_read(a, selection);
    const struct config_class *of_b = selection_read(b, selection);
    return strcmp(of_a->name, of_b->name) == 0 &&
           strcmp(of_a->module_sha256, of_b->module_sha256) == 0;
}

/* The arm that alone reads a key, or -1. */
static int read_alone(const struct listing *listing, const struct key_row *row) {
    int read[2];
    for (int i = 0; i < 2; i++)
        read[i] = inert_reason(listing->configs[i], row->path) == NULL;
    return read[0] == read[1] ? -1 : read[1];
}

/* Where one arm alone reads the key, the other one has "(none)". Of a restart both arms then hold
 * the same value (scenarios/inert.h), so nothing differs, but resume.wrong and resume.after say
 * only what went wrong and when: the ranks, the weight decay and what is restored stand in keys of
 * their own, which are told where they are not at their defaults. Only keys of that cause make each
 * other inert, so such a key stands in no factor of its own. */
static enum status note_row(struct listing *listing, const struct place *place) {
    const int equal = row_equal(place->row, place->base[0], place->base[1]);
    const int alone = place->prefix == NULL ? read_alone(listing, place->row) : -1;
    if (equal && (alone < 0 || place->row->cause != CAUSE_RESUME)) return STATUS_OK;
    const char *key = NULL;
    char *values[2] = {NULL, NULL};
    TRY(full_path(place, listing->arena, &key));
    for (int i = 0; i < 2; i++) {
        if (alone >= 0 && i != alone)
            TRY(arena_format(listing->arena, &values[i], "(none)"));
        else
            TRY(row_text(place->row, place->base[i], listing->arena, &values[i]));
    }
    if (equal && strcmp(values[alone], place->row->standard) == 0) return STATUS_OK;
    return note(listing, place->row->cause, key, values[0], values[1]);
}

/* Notes the keys of two different classes: those of another name, or of one name from two modules
 * (optimizer.module_sha256, a row of the schema, shows which). A key that both have is shown where
 * its values differ, any other against "(none)". All of them belong to the cause of the selecting
 * key. */
static enum status note_classes(struct listing *listing, enum selection selection) {
    const struct config *const *configs = listing->configs;
    size_t count = 0;
    enum cause cause = schema_rows(&count)[selection_row(selection, "name")].cause;
    const struct schema_class *classes[2];
    for (int i = 0; i < 2; i++)
        classes[i] = selection_class(listing->schema, configs[i], selection);
    for (int side = 0; side < 2; side++) {
        for (size_t k = 0; classes[side] != NULL && k < classes[side]->key_count; k++) {
            const struct key_row *row = &classes[side]->keys[k];
            const struct key_row *other =
                classes[!side] == NULL ? NULL : selection_key(classes[!side], row->path);
            if (side == 1 && other != NULL) continue;
            struct place place = {row, classes[side]->prefix, {NULL, NULL}};
            const char *key = NULL;
            char *values[2] = {NULL, NULL};
            TRY(full_path(&place, listing->arena, &key));
            TRY(row_text(row, selection_read(configs[side], selection)->values, listing->arena,
                         &values[side]));
            if (other != NULL)
                TRY(row_text(other, selection_read(configs[!side], selection)->values,
                             listing->arena, &values[!side]));
            else
                TRY(arena_format(listing->arena, &values[!side], "(none)"));
            if (strcmp(values[0], values[1]) == 0) continue;
            TRY(note(listing, cause, key, values[0], values[1]));
        }
    }
    return STATUS_OK;
}

static enum status compare_row(void *context, const struct place *place) {
    struct listing *listing = (struct listing *)context;
    if (place->prefix == NULL) return note_row(listing, place);
    int s = 0;
    while (strcmp(selection_prefix((enum selection)s), place->prefix) != 0)
        s++;
    if (!same_class(listing->configs[0], listing->configs[1], (enum selection)s))
        return STATUS_OK; /* note_classes shows them */
    return note_row(listing, place);
}

static enum status gather(const struct listing *listing, enum cause cause, uint32_t count,
                          struct factor *factor) {
    factor->cause = cause;
    TRY(arena_take(listing->arena, count, sizeof *factor->keys, "a factor", &factor->keys));
    for (int i = 0; i < 2; i++)
        TRY(arena_take(listing->arena, count, sizeof *factor->values[i], "a factor",
                       &factor->values[i]));
    for (const struct entry *d = listing->first; d != NULL; d = d->next) {
        if (d->cause != cause) continue;
        factor->keys[factor->key_count] = d->key;
        factor->values[0][factor->key_count] = d->values[0];
        factor->values[1][factor->key_count] = d->values[1];
        factor->key_count++;
    }
    return STATUS_OK;
}

/* Rows of a class are compared where both configurations chose the same one; else note_classes
 * lists all that differ. A cause in which nothing differs is no factor. */
enum status factors_of(const struct schema *schema, const struct config *a, const struct config *b,
                       struct arena *arena, struct factor **out, uint32_t *out_count) {
    struct listing listing = {.schema = schema, .configs = {a, b}, .arena = arena};
    TRY(visit_rows(schema, a, b, compare_row, &listing));
    for (int s = 0; s < SELECT_COUNT; s++)
        if (!same_class(a, b, (enum selection)s)) TRY(note_classes(&listing, (enum selection)s));
    uint32_t counts[CAUSE_COUNT] = {0};
    uint32_t factors = 0;
    for (const struct entry *d = listing.first; d != NULL; d = d->next)
        factors += counts[d->cause]++ == 0;
    TRY(arena_take(arena, factors, sizeof **out, "factors", out));
    *out_count = 0;
    for (int cause = 0; cause < CAUSE_COUNT; cause++)
        if (counts[cause] != 0)
            TRY(gather(&listing, (enum cause)cause, counts[cause], &(*out)[(*out_count)++]));
    return STATUS_OK;
}

/* Swaps the rows of a class. It runs before the schema's rows are swapped, because it looks at the
 * class that `into` still has. */
static void swap_class(const struct schema *schema, struct config *into, const struct config *from,
                       enum selection selection, enum cause cause) {
    size_t count = 0;
    struct config_class *to = selection_of(into, selection);
    const struct config_class *source = selection_read(from, selection);
    if (!same_class(into, from, selection)) {
        if (schema_rows(&count)[selection_row(selection, "name")].cause == cause) *to = *source;
        return;
    }
    const struct schema_class *rows = selection_class(schema, from, selection);
    for (size_t i = 0; rows != NULL && i < rows->key_count; i++)
        if (rows->keys[i].cause == cause) row_copy(&rows->keys[i], to->values, source->values);
}

void config_swap_cause(const struct schema *schema, struct config *into, const struct config *from,
                       enum cause cause) {
    size_t count = 0;
    const struct key_row *rows = schema_rows(&count);
    for (int s = 0; s < SELECT_COUNT; s++)
        swap_class(schema, into, from, (enum selection)s, cause);
    for (size_t i = 0; i < count; i++)
        if (rows[i].cause == cause) row_copy(&rows[i], into, from);
}

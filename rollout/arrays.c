/* SPDX-License-Identifier: Apache-2.0
 * Which arrays there are, how they cut the tokens into sequences, and one sequence after the other.
 * Reads a row at a time, so memory is that of the longest row. */
#include "rollout/arrays.h"

#include <stdio.h>
#include <string.h>

#include "base/real.h"

struct rollout_arrays {
    const char *path;
    struct arena *arena;
    struct rollout_array *of[ROLLOUT_FIELDS];
    struct rollout_array *offsets, *length;
    const char *names[ROLLOUT_FIELDS];
    uint64_t sequences, at;
    uint64_t token; /* flat: where the next sequence begins */
    double *row;    /* room for one row */
    size_t row_room;
    void (*end)(void *resource); /* NULL: nothing is open */
    void *resource;
};

void rollout_arrays_own(struct rollout_arrays *a, void (*end)(void *resource), void *resource) {
    a->end = end;
    a->resource = resource;
}

void rollout_arrays_close(struct rollout_arrays *a) {
    if (a->end != NULL) a->end(a->resource);
    a->end = NULL;
}

static uint64_t elements(const struct rollout_array *array) {
    uint64_t n = 1;
    for (uint32_t i = 0; i < array->rank; i++)
        n *= array->shape[i];
    return n;
}

static int is_flat(const struct rollout_arrays *a) {
    return a->of[ROLLOUT_ENGINE]->rank == 1;
}

static enum status check_sides(const struct rollout_arrays *a) {
    const struct rollout_array *x = a->of[ROLLOUT_ENGINE], *y = a->of[ROLLOUT_TRAINER];
    for (int side = 0; side < 2; side++)
        if (a->of[side] == NULL)
            FAIL(STATUS_INPUT,
                 "%s: expected an array of log-probs of the %s (%s); name yours with --field "
                 "%s=NAME",
                 a->path, side == 0 ? "engine that generated" : "trainer",
                 side == 0 ? "rollout_logprobs, rollout_log_probs, ..."
                           : "trainer_logprobs, old_log_probs, ...",
                 rollout_field_words[side]);
    if (x->rank < 1 || x->rank > 2 || x->rank != y->rank || x->shape[0] != y->shape[0])
        FAIL(STATUS_INPUT,
             "%s: %s and %s: expected two arrays of the same shape, (sequences, tokens) or "
             "(tokens)",
             a->path, x->name, y->name);
    return STATUS_OK;
}

static enum status count_sequences(struct rollout_arrays *a) {
    TRY(check_sides(a));
    if (!is_flat(a)) {
        a->sequences = a->of[ROLLOUT_ENGINE]->shape[0];
    } else if (a->offsets != NULL && a->offsets->rank == 1 && a->offsets->shape[0] > 0) {
        a->sequences = a->offsets->shape[0] - 1;
    } else if (a->length != NULL && a->length->rank == 1) {
        a->sequences = a->length->shape[0];
    } else {
        FAIL(STATUS_INPUT,
             "%s: %s is flat: expected \"offsets\" (sequences + 1) or \"length\" (sequences) that "
             "say where each sequence ends",
             a->path, a->of[ROLLOUT_ENGINE]->name);
    }
    return STATUS_OK;
}

/* The reward of a sequence is one number, or one for each token, and nothing deeper. */
static enum status check_reward(const struct rollout_arrays *a) {
    const struct rollout_array *array = a->of[ROLLOUT_REWARD];
    const uint32_t most = is_flat(a) ? 1 : 2;
    if (array == NULL || array->rank <= most) return STATUS_OK;
    FAIL(STATUS_INPUT,
         "%s: %s: expected rewards of shape (sequences) or %s, got an array of %u axes", a->path,
         array->name, is_flat(a) ? "(tokens)" : "(sequences, tokens)", array->rank);
}

enum status rollout_arrays_set(const char *path, const struct rollout_naming *naming,
                               struct rollout_array *list, size_t count, struct arena *arena,
                               struct rollout_arrays **out) {
    struct rollout_arrays *a;
    int best[ROLLOUT_FIELDS] = {0};
    TRY(arena_take(arena, 1, sizeof *a, "arrays", &a));
    a->path = path;
    a->arena = arena;
    for (size_t i = 0; i < count; i++) {
        int rank, pairs;
        struct rollout_array *array = &list[i];
        const enum rollout_field field = rollout_field_of(naming, array->name, strlen(array->name),
                                                          ROLLOUT_FIELDS, &rank, &pairs);
        if (strcmp(array->name, "offsets") == 0) a->offsets = array;
        if (strcmp(array->name, "length") == 0 || strcmp(array->name, "response_length") == 0)
            a->length = array;
        if (field == ROLLOUT_FIELDS || (a->of[field] != NULL && best[field] < rank)) continue;
        best[field] = rank;
        a->of[field] = array;
        a->names[field] = array->name;
    }
    *out = a;
    TRY(count_sequences(a));
    return check_reward(a);
}

/* ---- one sequence ---- */

static enum status read_row(struct rollout_arrays *a, struct rollout_array *array, uint64_t first,
                            uint64_t count) {
    if (first + count > elements(array))
        FAIL(STATUS_INPUT, "%s: %s: expected at least %ju elements, for sequence %ju, got %ju",
             a->path, array->name, (uintmax_t)(first + count), (uintmax_t)(a->at + 1),
             (uintmax_t)elements(array));
    TRY(arena_grow(a->arena, count, &a->row_room, sizeof *a->row, "a row", &a->row));
    return array->read(array, first, count, a->row);
}

static enum status read_one(struct rollout_arrays *a, struct rollout_array *array, uint64_t index,
                            double *out) {
    TRY(read_row(a, array, index, 1));
    *out = a->row[0];
    return STATUS_OK;
}

/* Where the sequence begins and how many elements it has in a flat file, or in its padded row. */
static enum status extent(struct rollout_arrays *a, uint64_t *first, uint64_t *count) {
    double value[2];
    const uint64_t width =
        is_flat(a) ? elements(a->of[ROLLOUT_ENGINE]) - a->token : a->of[ROLLOUT_ENGINE]->shape[1];
    *first = is_flat(a) ? a->token : a->at * width;
    *count = width;
    if (is_flat(a) && a->offsets != NULL) {
        TRY(read_one(a, a->offsets, a->at, &value[0]));
        TRY(read_one(a, a->offsets, a->at + 1, &value[1]));
        if (!(value[0] >= 0.0) || !(value[1] >= value[0]) ||
            value[1] > (double)elements(a->of[ROLLOUT_ENGINE]))
            FAIL(STATUS_INPUT, "%s: offsets[%ju]: expected increasing indices into %s, got %g, %g",
                 a->path, (uintmax_t)a->at, a->of[ROLLOUT_ENGINE]->name, value[0], value[1]);
        *first = (uint64_t)value[0];
        *count = (uint64_t)(value[1] - value[0]);
    } else if (a->length != NULL && a->length->rank == 1) {
        TRY(read_one(a, a->length, a->at, &value[0]));
        if (!(value[0] >= 0.0) || value[0] > (double)width)
            FAIL(STATUS_INPUT, "%s: %s[%ju]: expected 0 to %ju tokens, got %g", a->path,
                 a->length->name, (uintmax_t)a->at, (uintmax_t)width, value[0]);
        *count = (uint64_t)value[0];
    }
    a->token += is_flat(a) ? *count : 0;
    return STATUS_OK;
}

/* A list of experts is one number: FNV-1a over them, 53 bits. */
static double fold(const double *value, uint64_t count) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (uint64_t i = 0; i < count; i++)
        hash = (hash ^ real_bits_f64(value[i])) * 0x100000001b3u;
    return (double)(hash >> 11);
}

static enum status read_field(struct rollout_arrays *a, int field, uint64_t first, uint64_t count,
                              struct rollout_sequence *out) {
    struct rollout_array *array = a->of[field];
    struct rollout_list *list = &out->list[field];
    const uint32_t token_rank = is_flat(a) ? 1 : 2;
    const int by_token =
        field <= ROLLOUT_POSITION || field == ROLLOUT_EXPERTS || field == ROLLOUT_EXPERTS_HERE;
    const int is_column =
        field == ROLLOUT_REWARD && array->rank == 2 && array->shape[1] == 1 && !is_flat(a);
    const int scalar = array->rank == 0 || is_column || (array->rank == 1 && !is_flat(a)) ||
                       (is_flat(a) && !by_token && array->shape[0] == a->sequences &&
                        array->shape[0] != elements(a->of[ROLLOUT_ENGINE]));
    if (scalar) {
        TRY(read_row(a, array, array->rank == 0 ? 0 : a->at, 1));
        list->given = 2;
        return rollout_list_add(list, a->arena, a->row[0]);
    }
    const uint64_t deep = array->rank > token_rank ? array->shape[token_rank] : 1;
    const uint64_t width = is_flat(a) ? 0 : array->shape[1];
    const uint64_t start = is_flat(a) ? first : a->at * width;
    const uint64_t tokens = is_flat(a) || width <= a->of[ROLLOUT_ENGINE]->shape[1] ? count : width;
    if (!is_flat(a) && width < count)
        FAIL(STATUS_INPUT, "%s: %s: expected %ju columns as %s has, got %ju", a->path, array->name,
             (uintmax_t)a->of[ROLLOUT_ENGINE]->shape[1], a->of[ROLLOUT_ENGINE]->name,
             (uintmax_t)width);
    TRY(read_row(a, array, start * deep, tokens * deep));
    list->given = 1;
    for (uint64_t i = 0; i < tokens; i++)
        TRY(rollout_list_add(list, a->arena,
                             deep == 1 ? a->row[i] : fold(a->row + i * deep, deep)));
    return STATUS_OK;
}

/* Padding of a row without mask and length: where both sides end in NaN. */
static void cut_padding(const struct rollout_arrays *a, struct rollout_sequence *out) {
    struct rollout_list *x = &out->list[ROLLOUT_ENGINE], *y = &out->list[ROLLOUT_TRAINER];
    if (is_flat(a) || x->count != y->count) return;
    size_t n = x->count;
    while (n > 0 && x->value[n - 1] != x->value[n - 1] && y->value[n - 1] != y->value[n - 1])
        n--;
    for (int i = 0; i < ROLLOUT_FIELDS; i++)
        if (out->list[i].given == 1 && out->list[i].count == x->count && i > ROLLOUT_TRAINER)
            out->list[i].count = n;
    x->count = y->count = n;
}

enum status rollout_arrays_next(struct rollout_arrays *a, struct rollout_sequence *out,
                                int *out_more) {
    uint64_t first, count;
    rollout_sequence_clear(out);
    *out_more = a->at < a->sequences;
    if (!*out_more) return STATUS_OK;
    out->file = a->path;
    out->line = (uint32_t)(a->at + 1);
    TRY(extent(a, &first, &count));
    for (int field = 0; field < ROLLOUT_FIELDS; field++) {
        if (a->of[field] == NULL) continue;
        TRY(read_field(a, field, first, count, out));
        if (field == ROLLOUT_ID)
            snprintf(out->id, sizeof out->id, "%.17g", out->list[ROLLOUT_ID].value[0]);
    }
    cut_padding(a, out);
    out->padded = !is_flat(a) && (a->length == NULL || a->length->rank != 1);
    a->at++;
    return STATUS_OK;
}

void rollout_arrays_names(const struct rollout_arrays *a, const char **names) {
    memcpy(names, a->names, sizeof a->names);
}

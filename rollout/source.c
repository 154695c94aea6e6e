/* SPDX-License-Identifier: Apache-2.0
 * Opens files by their first bytes, walks over lines, and joins two files by id.
 *
 * The second of two files is indexed once: hash and place of each id, sorted by hash. The sequences
 * come in the order of the first file. */
#include "rollout/source.h"

#include <stdio.h>
#include <string.h>

#include "base/sort.h"
#include "logs/map_file.h"
#include "logs/unpack.h"
#include "rollout/arrays.h"
#include "rollout/json_lines.h"

struct place {
    uint64_t hash;
    size_t offset;
    uint32_t line;
    uint32_t taken;
};

struct text {
    struct log_mapping mapping;
    const char *path;
    enum rollout_field lone;
    size_t at;
    uint32_t line; /* of the last line that was read */
};

struct rollout_source {
    struct arena *arena;
    struct rollout_naming naming;
    struct text text[2];
    int texts;                     /* files of lines that are open */
    struct rollout_arrays *arrays; /* NULL: lines */
    struct rollout_facts facts;
    uint32_t first_line;  /* of the first sequence; 0: none was read */
    int masked;           /* 1: the first sequence has a mask */
    struct place *places; /* of the second file, sorted */
    size_t place_count;
    struct rollout_sequence other; /* the sequence of the second file */
};

/* ---- lines ---- */

static int is_blank(const unsigned char *bytes, size_t length) {
    for (size_t i = 0; i < length; i++)
        if (bytes[i] != ' ' && bytes[i] != '\t' && bytes[i] != '\r') return 0;
    return 1;
}

/* Moves to the next line that is not empty. Returns 0 at the end. */
static int next_line(struct text *text, const unsigned char **out, size_t *out_length) {
    const unsigned char *const bytes = text->mapping.bytes;
    while (text->at < text->mapping.length) {
        const size_t start = text->at;
        const void *end = memchr(bytes + start, '\n', text->mapping.length - start);
        *out = bytes + start;
        *out_length = end == NULL ? text->mapping.length - start
                                  : (size_t)((const unsigned char *)end - *out);
        text->at = start + *out_length + 1;
        text->line++;
        if (!is_blank(*out, *out_length)) return 1;
    }
    return 0;
}

static enum status read_line(struct rollout_source *source, int which, const unsigned char *bytes,
                             size_t length, uint32_t number, struct rollout_sequence *out) {
    const struct text *text = &source->text[which];
    const struct rollout_line line = {.naming = &source->naming,
                                      .lone = text->lone,
                                      .file = text->path,
                                      .bytes = bytes,
                                      .length = length,
                                      .number = number,
                                      .names = source->facts.names,
                                      .arena = source->arena};
    return rollout_line_read(&line, out);
}

/* ---- the index of the second file ---- */

static uint64_t hash_of(const char *id) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *id != '\0'; id++)
        hash = (hash ^ (unsigned char)*id) * 0x100000001b3u;
    return hash;
}

static int place_before(const void *a, const void *b, const void *context) {
    const struct place *x = (const struct place *)a, *y = (const struct place *)b;
    (void)context;
    return x->hash < y->hash || (x->hash == y->hash && x->offset < y->offset);
}

static enum status need_id(const struct rollout_sequence *sequence) {
    if (sequence->id[0] != '\0') return STATUS_OK;
    FAIL(STATUS_INPUT,
         "%s:%u: expected an id (id, sequence_id, uid, request_id, index) by which two files are "
         "joined; name yours with --field id=NAME",
         sequence->file, sequence->line);
}

static enum status index_second(struct rollout_source *source) {
    struct text *text = &source->text[1];
    struct rollout_sequence *s = &source->other;
    const unsigned char *bytes;
    size_t length, room = 0;
    while (next_line(text, &bytes, &length)) {
        TRY(arena_grow(source->arena, source->place_count + 1, &room, sizeof *source->places,
                       "the index of a file", &source->places));
        TRY(read_line(source, 1, bytes, length, text->line, s));
        TRY(need_id(s));
        source->places[source->place_count++] =
            (struct place){hash_of(s->id), (size_t)(bytes - text->mapping.bytes), text->line, 0};
        log_map_release(&text->mapping, text->at);
    }
    struct place *spare;
    TRY(arena_take(source->arena, source->place_count, sizeof *spare, "the index of a file",
                   &spare));
    source->places = (struct place *)sort_stable(source->places, spare, source->place_count,
                                                 sizeof *spare, place_before, NULL);
    return STATUS_OK;
}

/* Finds the sequence of this id in the second file and reads it. *out_found 0: it is not there. */
static enum status find_other(struct rollout_source *source, const struct rollout_sequence *first,
                              int *out_found) {
    const uint64_t hash = hash_of(first->id);
    struct text *text = &source->text[1];
    size_t low = 0, high = source->place_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (source->places[middle].hash < hash)
            low = middle + 1;
        else
            high = middle;
    }
    *out_found = 0;
    for (; low < source->place_count && source->places[low].hash == hash; low++) {
        struct place *place = &source->places[low];
        const unsigned char *bytes;
        size_t length;
        text->at = place->offset;
        text->line = place->line - 1;
        if (!next_line(text, &bytes, &length)) break;
        TRY(read_line(source, 1, bytes, length, place->line, &source->other));
        if (strcmp(source->other.id, first->id) != 0) continue;
        if (place->taken || *out_found)
            FAIL(STATUS_INPUT, "%s:%u: id \"%s\" is there more than once, so it joins nothing",
                 place->taken ? first->file : text->path, place->taken ? first->line : place->line,
                 first->id);
        place->taken = 1;
        *out_found = 1;
    }
    return STATUS_OK;
}

static enum status copy_list(struct rollout_source *source, struct rollout_sequence *out,
                             enum rollout_field from, enum rollout_field to) {
    const struct rollout_list *list = &source->other.list[from];
    struct rollout_list *target = &out->list[to];
    target->count = 0;
    target->given = list->given;
    for (size_t i = 0; i < list->count; i++)
        TRY(rollout_list_add(target, source->arena, list->value[i]));
    return STATUS_OK;
}

/* Which side the second file is: the one that the first one lacks. */
static enum status join(struct rollout_source *source, struct rollout_sequence *out) {
    const struct rollout_sequence *other = &source->other;
    for (int i = 0; i < ROLLOUT_FIELDS; i++) {
        const enum rollout_field field = (enum rollout_field)i;
        if (other->list[i].given && !out->list[i].given) TRY(copy_list(source, out, field, field));
    }
    out->odd_reward = out->odd_reward || other->odd_reward;
    if (other->list[ROLLOUT_TOKENS].given && !out->list[ROLLOUT_TRAINER_IDS].given)
        return copy_list(source, out, ROLLOUT_TOKENS, ROLLOUT_TRAINER_IDS);
    return STATUS_OK;
}

/* ---- opening ---- */

enum kind { KIND_LINES, KIND_NPZ, KIND_HDF5 };

static enum kind kind_of(const struct log_mapping *mapping) {
    static const unsigned char hdf5[] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
    if (mapping->length >= 4 && memcmp(mapping->bytes, "PK\3\4", 4) == 0) return KIND_NPZ;
    return mapping->length >= sizeof hdf5 && memcmp(mapping->bytes, hdf5, sizeof hdf5) == 0
               ? KIND_HDF5
               : KIND_LINES;
}

static enum status open_arrays(struct rollout_source *source, enum kind kind) {
    struct text *text = &source->text[0];
    source->facts.format = kind == KIND_NPZ ? "npz" : "HDF5";
    if (kind == KIND_NPZ)
        return rollout_npz_open(text->path, text->mapping.bytes, text->mapping.length,
                                &source->naming, source->arena, &source->arrays);
    return rollout_hdf5_open(text->path, &source->naming, source->arena, &source->arrays);
}

/* Puts what a packed file holds in its place. */
static enum status unpack(struct text *text) {
    const struct log_source packed = {
        .name = text->path, .bytes = text->mapping.bytes, .length = text->mapping.length};
    struct log_mapping plain;
    int cut = 0;
    const char *packer = text->mapping.length == 0 ? NULL : log_packed(&packed);
    if (packer == NULL) return STATUS_OK;
    TRY(log_unpack(&packed, &plain, &cut));
    log_unmap(&text->mapping);
    text->mapping = plain;
    if (cut)
        FAIL(STATUS_INPUT, "%s: expected the end of what %s packed, and the file ends before",
             text->path, packer);
    return STATUS_OK;
}

/* A byte order mark, which Windows' tools write, is no part of the first line. */
static void skip_mark(struct text *text) {
    static const unsigned char mark[] = {0xef, 0xbb, 0xbf};
    if (text->mapping.length >= sizeof mark && memcmp(text->mapping.bytes, mark, sizeof mark) == 0)
        text->at = sizeof mark;
}

static enum status open_all(struct rollout_source *source, const struct rollout_files *files) {
    for (int i = 0; i < 2 && files->path[i] != NULL; i++) {
        struct text *text = &source->text[i];
        text->path = files->path[i];
        text->lone =
            files->path[1] == NULL ? ROLLOUT_FIELDS : (i == 0 ? ROLLOUT_ENGINE : ROLLOUT_TRAINER);
        TRY(log_map(text->path, &text->mapping));
        source->texts = i + 1;
        TRY(unpack(text));
        if (text->mapping.length == 0)
            FAIL(STATUS_INPUT, "%s: expected sequences, got an empty file", text->path);
        const enum kind kind = kind_of(&text->mapping);
        if (kind == KIND_LINES) {
            skip_mark(text);
            continue;
        }
        if (files->path[1] != NULL)
            FAIL(STATUS_UNSUPPORTED,
                 "%s: two files are joined line by line, so both must be JSONL; put both sides "
                 "into one %s file",
                 text->path, kind == KIND_NPZ ? ".npz" : "HDF5");
        return open_arrays(source, kind);
    }
    if (files->path[1] != NULL) return index_second(source);
    return STATUS_OK;
}

enum status rollout_open(const struct rollout_files *files, struct arena *arena,
                         struct rollout_source **out) {
    struct rollout_source *source;
    TRY(arena_take(arena, 1, sizeof *source, "a file of sequences", &source));
    source->arena = arena;
    source->naming = files->naming;
    source->facts.format = "JSONL";
    const enum status status = open_all(source, files);
    if (status == STATUS_OK)
        *out = source;
    else
        rollout_close(source);
    return status;
}

void rollout_close(struct rollout_source *source) {
    if (source->arrays != NULL) rollout_arrays_close(source->arrays);
    for (int i = 0; i < source->texts; i++)
        log_unmap(&source->text[i].mapping);
    source->texts = 0;
}

/* ---- sequences ---- */

static enum status need_sides(const struct rollout_source *source,
                              const struct rollout_sequence *s) {
    static const char *const hint[2] = {
        "rollout_logprobs, rollout_log_probs, sampling_per_token_logps, generation_logprobs, ...",
        "trainer_logprobs, old_log_probs, old_per_token_logps, prev_logprobs, ..."};
    for (int side = 0; side < 2; side++) {
        if (s->list[side].given == 1) continue;
        const char *named = source->naming.name[side];
        FAIL(STATUS_INPUT,
             "%s:%u: expected log-probs of the %s (%s); name yours with --field %s=NAME, or give "
             "the other engine's file as a second one",
             s->file, s->line, side == 0 ? "engine that generated" : "trainer",
             named != NULL ? named : hint[side], rollout_field_words[side]);
    }
    return STATUS_OK;
}

/* A log-prob above 0 is none; 1e-3 is more than any rounding of a probability of 1. */
static enum status check_values(const struct rollout_sequence *s) {
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < s->list[side].count; i++)
            if (s->list[side].value[i] > 1e-3)
                FAIL(STATUS_INPUT,
                     "%s:%u: %s[%zu]: expected a log-prob, which is at most 0, got %g%s", s->file,
                     s->line, side == 0 ? "rollout log-probs" : "trainer log-probs", i,
                     s->list[side].value[i],
                     s->list[side].value[i] <= 1.0 ? "; is it a probability?" : "");
    return STATUS_OK;
}

/* What is said of the whole sequence is one number, in a list of one at most (NeMo-RL). */
static enum status check_whole(const struct rollout_sequence *s) {
    static const enum rollout_field whole[] = {ROLLOUT_KEPT, ROLLOUT_REMOVED};
    for (size_t i = 0; i < COUNT_OF(whole); i++)
        if (s->list[whole[i]].count > 1)
            FAIL(STATUS_INPUT,
                 "%s:%u: %s: expected one number for the whole sequence, got a list of %zu",
                 s->file, s->line, rollout_field_words[whole[i]], s->list[whole[i]].count);
    return STATUS_OK;
}

/* A mask that some sequences have and others lack (null, or no such name) leaves open whether all
 * tokens of the others count, so it is refused. */
static enum status check_mask(struct rollout_source *source, const struct rollout_sequence *s) {
    const int masked = s->list[ROLLOUT_MASK].given != 0;
    if (source->first_line == 0) {
        source->first_line = s->line;
        source->masked = masked;
    }
    if (masked == source->masked) return STATUS_OK;
    const char *const name = source->facts.names[ROLLOUT_MASK];
    FAIL(STATUS_INPUT,
         "%s:%u: %s: expected %s as in line %u, got %s; write a mask of ones where every token "
         "counts",
         s->file, s->line, name != NULL ? name : "mask", source->masked ? "a list" : "no mask",
         source->first_line, masked ? "a list" : "null or no such name");
}

static enum status next_of_lines(struct rollout_source *source, struct rollout_sequence *out,
                                 int *out_more) {
    struct text *text = &source->text[0];
    const unsigned char *bytes;
    size_t length;
    for (;;) {
        int found = 1;
        *out_more = next_line(text, &bytes, &length);
        if (!*out_more) return STATUS_OK;
        TRY(read_line(source, 0, bytes, length, text->line, out));
        log_map_release(&text->mapping, text->at);
        if (source->texts == 1) return STATUS_OK;
        TRY(need_id(out));
        TRY(find_other(source, out, &found));
        if (found) return join(source, out);
        source->facts.alone[0]++;
    }
}

enum status rollout_next(struct rollout_source *source, struct rollout_sequence *out,
                         int *out_more) {
    if (source->arrays != NULL)
        TRY(rollout_arrays_next(source->arrays, out, out_more));
    else
        TRY(next_of_lines(source, out, out_more));
    if (!*out_more) return STATUS_OK;
    TRY(need_sides(source, out));
    TRY(check_values(out));
    TRY(check_whole(out));
    if (source->arrays == NULL) TRY(check_mask(source, out));
    return rollout_align(out);
}

void rollout_source_facts(const struct rollout_source *source, struct rollout_facts *out) {
    *out = source->facts;
    if (source->arrays != NULL) rollout_arrays_names(source->arrays, out->names);
    for (size_t i = 0; i < source->place_count; i++)
        out->alone[1] += source->places[i].taken == 0;
}

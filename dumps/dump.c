/* SPDX-License-Identifier: Apache-2.0
 * Opens a dump, tells its format, and keeps what the readers hand in. */
#include "dumps/dump.h"

#include <inttypes.h>
#include <string.h>

#include "dumps/dump_private.h"
#include "logs/map_file.h"
#include "logs/unpack.h"

/* ---- texts ---- */

enum status dump_text_add(struct arena *arena, struct dump_text *text, const char *bytes,
                          size_t length) {
    TRY(arena_grow(arena, text->length + length + 1, &text->room, 1, "a text", &text->bytes));
    if (length > 0) memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
    return STATUS_OK;
}

enum status dump_hashes_add(struct arena *arena, struct dump_hashes *hashes, struct log_span text) {
    TRY(arena_grow(arena, hashes->count + 1, &hashes->room, sizeof *hashes->list, "hashes",
                   &hashes->list));
    hashes->list[hashes->count++] = text;
    return STATUS_OK;
}

static int is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Reads "t: f32[24, 64]{stride=..}" at `at`, with "t$5", "dt" and "ft", too. Returns its length, or
 * 0 where no tensor stands. */
static size_t tensor_at(struct log_span text, size_t at, struct log_span *out) {
    const char *s = text.text, *end = s + text.length, *p = s + at;
    if (at > 0 && is_letter(p[-1])) return 0;
    if (p < end && (*p == 'd' || *p == 'f')) p++;
    if (p == end || *p++ != 't') return 0;
    if (p < end && *p == '$')
        for (p++; p < end && *p >= '0' && *p <= '9';)
            p++;
    if (end - p < 2 || p[0] != ':' || p[1] != ' ') return 0;
    const char *start = p += 2;
    while (p < end && is_letter(*p))
        p++;
    if (p == start || p == end || *p != '[') return 0;
    const void *close = memchr(p, ']', (size_t)(end - p));
    if (close == NULL) return 0;
    p = (const char *)close + 1;
    *out = (struct log_span){start, (size_t)(p - start)};
    if (p < end && *p == '{') { /* attributes that the user asked for: they are not compared */
        const void *brace = memchr(p, '}', (size_t)(end - p));
        if (brace != NULL) p = (const char *)brace + 1;
    }
    return (size_t)(p - s) - at;
}

enum status dump_find_tensors(struct arena *arena, struct log_span text,
                              struct dump_hashes *tensors, struct dump_text *rest) {
    size_t kept = 0;
    if (text.length == 0) return STATUS_OK;
    for (size_t at = 0; at < text.length;) {
        struct log_span tensor;
        const size_t length = tensor_at(text, at, &tensor);
        if (length == 0) {
            at++;
            continue;
        }
        TRY(dump_hashes_add(arena, tensors, tensor));
        if (rest != NULL) {
            TRY(dump_text_add(arena, rest, text.text + kept, at - kept));
            TRY(dump_text_add(arena, rest, "_", 1));
        }
        kept = at += length;
    }
    if (rest != NULL) TRY(dump_text_add(arena, rest, text.text + kept, text.length - kept));
    return STATUS_OK;
}

/* ---- ops and values ---- */

enum status dump_add_op(struct dump_reader *reader, uint32_t module, struct dump_op **out) {
    struct dump *dump = reader->dump;
    struct arena *arena = reader->words->arena;
    if (dump->count >= UINT32_MAX || dump->value_count >= UINT32_MAX / 2)
        FAIL(STATUS_UNSUPPORTED, "%s: more than 2^31 ops or values", dump->path);
    TRY(arena_grow(arena, dump->count + 1, &dump->room, sizeof *dump->ops, "ops", &dump->ops));
    *out = &dump->ops[dump->count++];
    **out = (struct dump_op){.module = module,
                             .scope = module,
                             .place = reader->entry.place,
                             .first = (uint32_t)dump->value_count};
    return STATUS_OK;
}

static enum dump_hash kind_of(struct log_span hash) {
    if (hash.text[0] == '"') return DUMP_HASH_TEXT;
    for (size_t i = 0; i < hash.length; i++)
        if (hash.text[i] != '-' && (hash.text[i] < '0' || hash.text[i] > '9'))
            return DUMP_HASH_REAL;
    return DUMP_HASH_WHOLE;
}

enum status dump_note_hashes(struct dump_reader *reader, const struct log_span *hashes,
                             size_t count) {
    struct dump *dump = reader->dump;
    if (dump->hashes != 0) return STATUS_OK;
    if (count > DUMP_HASHES_MOST)
        FAIL(STATUS_INPUT, "%s: entry %" PRIu32 ": expected at most %d hashes of a tensor, got %zu",
             dump->path, reader->entry.place, DUMP_HASHES_MOST, count);
    dump->hashes = count;
    for (size_t i = 0; i < count; i++)
        dump->kind[i] = kind_of(hashes[i]);
    return STATUS_OK;
}

enum status dump_add_value(struct dump_reader *reader, struct log_span tensor,
                           const struct log_span *hashes, size_t count) {
    struct arena *arena = reader->words->arena;
    struct dump *dump = reader->dump;
    struct dump_text *text = &reader->value;
    text->length = 0;
    TRY(dump_text_add(arena, text, tensor.text, tensor.length));
    for (size_t i = 0; i < count; i++) {
        if (hashes[i].length == 3 && memcmp(hashes[i].text, "nan", 3) == 0) dump->nan++;
        TRY(dump_text_add(arena, text, "|", 1));
        TRY(dump_text_add(arena, text, hashes[i].text, hashes[i].length));
    }
    TRY(arena_grow(arena, dump->value_count + 1, &dump->value_room, sizeof *dump->values, "values",
                   &dump->values));
    return words_number(reader->words, text->bytes, text->length,
                        &dump->values[dump->value_count++]);
}

/* ---- files ---- */

static enum status need_inputs(const struct dump *dump) {
    if (dump->count == 0 && dump->without == 0)
        FAIL(STATUS_INPUT, "%s: expected the ops of a step, got none", dump->path);
    for (size_t i = 0; i < dump->count; i++)
        if (dump->ops[i].inputs > 0) return STATUS_OK;
    if (dump->shapeless)
        FAIL(STATUS_INPUT,
             "%s: expected lines \"Input hashes:\", got none: without them nobody can say where a "
             "value was made; a torchtitan that writes them is needed",
             dump->path);
    FAIL(STATUS_INPUT,
         "%s: expected hashes of inputs and outputs, got none of inputs; record with DebugMode."
         "log_tensor_hashes(hash_fn=[\"norm\", \"hash_tensor\"], hash_inputs=True)",
         dump->path);
}

static enum status read_source(const struct log_source *source, struct words *words,
                               struct dump **out) {
    struct dump_reader *reader;
    size_t at = 0;
    TRY(arena_take(words->arena, 1, sizeof *reader, "a dump", &reader));
    TRY(arena_take(words->arena, 1, sizeof **out, "a dump", out));
    reader->source = source;
    reader->words = words;
    reader->dump = *out;
    TRY(arena_format(words->arena, (char **)&(*out)->path, "%s", source->name));
    while (at < source->length && strchr(" \t\r\n", source->bytes[at]) != NULL &&
           source->bytes[at] != '\0')
        at++;
    if (at == source->length)
        FAIL(STATUS_INPUT, "%s: expected a dump of ops, got an empty file", source->name);
    if (source->bytes[at] == '{')
        TRY(dump_read_debug_mode(reader));
    else if (dump_is_torchtitan(source))
        TRY(dump_read_torchtitan(reader));
    else
        FAIL(STATUS_INPUT,
             "%s:1: expected JSON of DebugMode.save_logs(), which begins with '{', or torchtitan's "
             "rank_N_activations.log, which begins with \"Total captured activations:\"",
             source->name);
    return need_inputs(*out);
}

enum status dump_read_bytes(const char *name, const void *bytes, size_t length, struct words *words,
                            struct dump **out) {
    const struct log_source source = {
        .name = name, .bytes = (const unsigned char *)bytes, .length = length};
    return read_source(&source, words, out);
}

static enum status read_mapping(const char *path, const struct log_mapping *mapping,
                                struct words *words, struct dump **out) {
    const struct log_source source = {
        .name = path, .bytes = mapping->bytes, .length = mapping->length};
    const char *packer = mapping->length == 0 ? NULL : log_packed(&source);
    if (packer == NULL) return read_source(&source, words, out);
    struct log_mapping plain;
    int cut = 0;
    TRY(log_unpack(&source, &plain, &cut));
    enum status status;
    if (cut)
        status = status_fail(STATUS_INPUT,
                             "%s: expected the end of what %s packed, and the file ends before",
                             path, packer);
    else
        status = dump_read_bytes(path, plain.bytes, plain.length, words, out);
    log_unmap(&plain);
    return status;
}

enum status dump_read(const char *path, struct words *words, struct dump **out) {
    struct log_mapping mapping;
    TRY(log_map(path, &mapping));
    const enum status status = read_mapping(path, &mapping, words, out);
    log_unmap(&mapping);
    return status;
}

enum status dump_comparable(const struct dump *a, const struct dump *b) {
    static const char *const names[] = {[DUMP_HASH_REAL] = "a real number (as \"norm\")",
                                        [DUMP_HASH_WHOLE] = "a whole number (as \"hash_tensor\")",
                                        [DUMP_HASH_TEXT] = "a text"};
    if (a->shapeless != b->shapeless)
        FAIL(STATUS_INPUT, "%s is %s and %s is %s: their hashes cannot be compared", a->path,
             a->format, b->path, b->format);
    if (a->hashes != b->hashes)
        FAIL(STATUS_INPUT,
             "%s has %zu hashes of each tensor and %s has %zu; record both with the same hash_fn",
             a->path, a->hashes, b->path, b->hashes);
    for (size_t i = 0; i < a->hashes; i++)
        if (a->kind[i] != b->kind[i])
            FAIL(STATUS_INPUT,
                 "hash %zu of a tensor is %s in %s and %s in %s; record both with the same hash_fn",
                 i + 1, names[a->kind[i]], a->path, names[b->kind[i]], b->path);
    return STATUS_OK;
}

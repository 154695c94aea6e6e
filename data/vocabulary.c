/* SPDX-License-Identifier: Apache-2.0
 * Reads tokenizer.json with jansson: first all sizes, then every token's bytes into one piece of
 * memory.
 *
 * Invariant: no token is longer than its name in the file, which is how the piece is sized. */
#include "data/vocabulary.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/input.h"
#include "data/tokenizer.h"

struct reader {
    const char *source;
    struct arena *arena;
    struct vocabulary *out;
    size_t bytes; /* of all names */
    char *text;   /* NULL while sizes are measured */
    size_t used;
};

/* In GPT-2's alphabet the printing bytes of Latin-1 are themselves, and the others follow from
 * U+0100 on in their order (bytes_to_unicode of openai/gpt-2, src/encoder.py). */
static int prints(uint32_t byte) {
    return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || (byte >= 174);
}

static int byte_of(uint32_t character) {
    if (character < 256) return prints(character) ? (int)character : -1;
    uint32_t rest = character - 256;
    for (uint32_t byte = 0; byte < 256; byte++)
        if (!prints(byte) && rest-- == 0) return (int)byte;
    return -1;
}

/* Takes the next character. The UTF-8 is valid, because jansson accepts no other. */
static uint32_t character_next(const char **at) {
    const unsigned char *byte = (const unsigned char *)*at;
    const size_t more = byte[0] < 0x80 ? 0 : byte[0] < 0xE0 ? 1 : byte[0] < 0xF0 ? 2 : 3;
    uint32_t character = more == 0 ? byte[0] : byte[0] & (0x3Fu >> more);
    for (size_t i = 1; i <= more; i++)
        character = character << 6 | (byte[i] & 0x3Fu);
    *at += more + 1;
    return character;
}

static enum status id_check(const struct reader *reader, const char *name, const json_t *value,
                            uint32_t *out) {
    if (!json_is_integer(value) || json_integer_value(value) < 0 ||
        json_integer_value(value) >= (json_int_t)VOCABULARY_MAX_ID)
        FAIL(STATUS_INPUT, "%s: token \"%.40s\": expected an id from 0 to %" PRIu32, reader->source,
             name, VOCABULARY_MAX_ID - 1);
    *out = (uint32_t)json_integer_value(value);
    return STATUS_OK;
}

/* Adds a token. With `alphabet` its name is spelled in GPT-2's alphabet, else the name is its
 * text. */
static enum status token_add(struct reader *reader, const char *name, uint32_t id, int alphabet) {
    struct vocabulary_token *token = &reader->out->token[id];
    char *to = reader->text + reader->used;
    size_t length = 0;
    if (token->text != NULL)
        FAIL(STATUS_INPUT, "%s: token \"%.40s\": its id %" PRIu32 " is that of another token",
             reader->source, name, id);
    for (const char *at = name; *at != '\0';) {
        if (!alphabet) {
            to[length++] = *at++;
            continue;
        }
        const int byte = byte_of(character_next(&at));
        if (byte < 0)
            FAIL(STATUS_INPUT,
                 "%s: token \"%.40s\" is not spelled in the byte-level alphabet of GPT-2",
                 reader->source, name);
        to[length++] = (char)(unsigned char)byte;
    }
    reader->used += length;
    *token = (struct vocabulary_token){to, length};
    return STATUS_OK;
}

static int is_added(const json_t *added, const char *name) {
    for (size_t i = 0; i < json_array_size(added); i++)
        if (strcmp(json_string_value(json_object_get(json_array_get(added, i), "content")), name) ==
            0)
            return 1;
    return 0;
}

/* Measures a token, or adds it where there is memory. */
static enum status token_take(struct reader *reader, const char *name, const json_t *value,
                              int alphabet) {
    uint32_t id = 0;
    TRY(id_check(reader, name, value, &id));
    if (reader->text != NULL) return token_add(reader, name, id, alphabet);
    reader->bytes += strlen(name);
    if (id >= reader->out->ids) reader->out->ids = (size_t)id + 1;
    return STATUS_OK;
}

/* Walks all tokens: first to find the sizes of both pieces of memory and to refuse tokens without
 * an id or a text, then to add them. An added token may stand in the vocabulary as well; it is its
 * own text all the same. */
static enum status tokens_walk(struct reader *reader, json_t *vocab, const json_t *added) {
    const char *name;
    json_t *value;
    json_object_foreach(vocab, name, value) {
        if (reader->text != NULL && is_added(added, name)) continue;
        TRY(token_take(reader, name, value, 1));
    }
    for (size_t i = 0; i < json_array_size(added); i++) {
        const json_t *token = json_array_get(added, i);
        name = json_string_value(json_object_get(token, "content"));
        if (name == NULL)
            FAIL(STATUS_INPUT, "%s: added_tokens[%zu]: expected \"content\"", reader->source, i);
        TRY(token_take(reader, name, json_object_get(token, "id"), 0));
    }
    return STATUS_OK;
}

static const char *type_of(const json_t *object) {
    const char *type = json_string_value(json_object_get(object, "type"));
    return type == NULL ? "none" : type;
}

/* Whether the decoder is ByteLevel, or a sequence with it. */
static int is_byte_level(const json_t *decoder) {
    const json_t *list = json_object_get(decoder, "decoders");
    if (strcmp(type_of(decoder), "ByteLevel") == 0) return 1;
    for (size_t i = 0; i < json_array_size(list); i++)
        if (strcmp(type_of(json_array_get(list, i)), "ByteLevel") == 0) return 1;
    return 0;
}

static enum status root_read(struct reader *reader, const json_t *root) {
    const json_t *model = json_object_get(root, "model");
    json_t *vocab = json_object_get(model, "vocab");
    const json_t *added = json_object_get(root, "added_tokens");
    const json_t *decoder = json_object_get(root, "decoder");
    if (!json_is_object(vocab))
        FAIL(STATUS_INPUT, "%s: expected a tokenizer.json whose model.vocab gives ids to tokens",
             reader->source);
    if (strcmp(type_of(model), "BPE") != 0)
        FAIL(STATUS_INPUT, "%s: model.type: expected BPE, got %.40s", reader->source,
             type_of(model));
    if (!is_byte_level(decoder))
        FAIL(STATUS_INPUT, "%s: decoder.type: expected ByteLevel, got %.40s", reader->source,
             type_of(decoder));
    TRY(tokens_walk(reader, vocab, added));
    TRY(arena_take(reader->arena, reader->out->ids, sizeof *reader->out->token, "vocabulary",
                   &reader->out->token));
    TRY(arena_take(reader->arena, reader->bytes, 1, "vocabulary", &reader->text));
    return tokens_walk(reader, vocab, added);
}

enum status vocabulary_parse(const char *source, const char *bytes, size_t length,
                             struct arena *arena, struct vocabulary *out) {
    struct reader reader = {.source = source, .arena = arena, .out = out};
    json_error_t error;
    *out = (struct vocabulary){0, NULL};
    json_t *root = json_loadb(bytes, length, JSON_REJECT_DUPLICATES, &error);
    if (root == NULL)
        FAIL(STATUS_INPUT, "%s:%d:%d: not JSON: %s", source, error.line, error.column, error.text);
    enum status status = root_read(&reader, root);
    json_decref(root);
    return status;
}

static enum status file_read(FILE *file, const char *path, uint64_t size, struct arena *arena,
                             struct vocabulary *out) {
    char *bytes;
    if (size > VOCABULARY_MAX_BYTES)
        FAIL(STATUS_INPUT, "%s: expected at most %zu bytes, got %llu", path, VOCABULARY_MAX_BYTES,
             (unsigned long long)size);
    TRY(arena_take(arena, (size_t)size, 1, path, &bytes));
    const size_t length = fread(bytes, 1, (size_t)size, file);
    if (ferror(file)) FAIL(STATUS_IO, "%s: cannot be read: %s", path, strerror(errno));
    return vocabulary_parse(path, bytes, length, arena, out);
}

enum status vocabulary_open(const char *path, struct arena *arena, struct vocabulary *out) {
    struct stat info;
    const char *name = path;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) {
        char *inside;
        TRY(arena_format(arena, &inside, "%s/tokenizer.json", path));
        name = inside;
    }
    FILE *file;
    struct input input;
    TRY(input_open_stream(name, INPUT_FILE, name, "a tokenizer.json or the folder that holds one",
                          &file, &input));
    enum status status = file_read(file, name, input.length, arena, out);
    fclose(file);
    return status;
}

void vocabulary_show(const struct vocabulary *vocabulary, uint32_t token, char *out, size_t size) {
    static const char dots[] = "...";
    size_t used = 0;
    out[0] = '\0';
    if (token >= vocabulary->ids || vocabulary->token[token].text == NULL) {
        snprintf(out, size, "<%" PRIu32 ">", token);
        return;
    }
    const struct vocabulary_token *here = &vocabulary->token[token];
    for (size_t i = 0; i < here->length; i++) {
        char shown[TOKENIZER_SHOW];
        tokenizer_show((unsigned char)here->text[i], shown);
        const int last = i + 1 == here->length;
        if (used + strlen(shown) + (last ? 0 : sizeof dots - 1) >= size) {
            snprintf(out + used, size - used, "%s", dots);
            return;
        }
        used += (size_t)snprintf(out + used, size - used, "%s", shown);
    }
}

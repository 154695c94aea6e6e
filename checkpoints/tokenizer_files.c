/* SPDX-License-Identifier: Apache-2.0
 * The spelling of bytes in a byte-level vocabulary is that of GPT-2's bytes_to_unicode
 * (openai/gpt-2, src/encoder.py): printable characters of Latin-1 stand for themselves, the others
 * for 256 and up, in their order. */
#include "checkpoints/tokenizer_files.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/macro.h"
#include "base/publish.h"
#include "checkpoints/mapped.h"

/* What transformers' tokenizers save, read in v4 and v5. */
static const char *const names[] = {
    "tokenizer.json",      "tokenizer_config.json",   "tokenizer.model",   "vocab.json",
    "merges.txt",          "special_tokens_map.json", "added_tokens.json", "vocab.txt",
    "chat_template.jinja", "chat_template.json",      "spiece.model"};

static enum status write_file(const char *folder, const char *name, const void *bytes,
                              size_t length, struct arena *arena) {
    char *path, *live;
    TRY(arena_format(arena, &path, "%s/%s", folder, name));
    TRY(arena_format(arena, &live, "%s.part", path));
    return publish_bytes(live, path, 1, bytes, length);
}

static enum status remove_file(const char *folder, const char *name, struct arena *arena) {
    char *path;
    TRY(arena_format(arena, &path, "%s/%s", folder, name));
    if (unlink(path) != 0 && errno != ENOENT)
        FAIL(STATUS_IO, "%s: cannot remove: %s", path, strerror(errno));
    return STATUS_OK;
}

static enum status copy_file(const char *from, const char *folder, const char *name,
                             struct arena *arena) {
    struct mapped mapped;
    struct stat info;
    char *path;
    TRY(arena_format(arena, &path, "%s/%s", from, name));
    if (stat(path, &info) != 0) return remove_file(folder, name, arena);
    TRY(mapped_open(path, &mapped));
    const enum status status = write_file(folder, name, mapped.bytes, mapped.length, arena);
    mapped_close(&mapped);
    return status;
}

enum status tokenizer_files_copy(const char *from, const char *folder, struct arena *arena) {
    for (size_t i = 0; i < COUNT_OF(names); i++)
        TRY(copy_file(from, folder, names[i], arena));
    return STATUS_OK;
}

uint64_t tokenizer_files_bytes_of(const char *from) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        char path[4096];
        struct stat info;
        const int length = snprintf(path, sizeof path, "%s/%s", from, names[i]);
        if (length > 0 && (size_t)length < sizeof path && stat(path, &info) == 0)
            bytes += (uint64_t)info.st_size;
    }
    return bytes;
}

static enum status remove_all(const char *folder, struct arena *arena) {
    for (size_t i = 0; i < COUNT_OF(names); i++)
        TRY(remove_file(folder, names[i], arena));
    return STATUS_OK;
}

#define LAYOUT (JSON_INDENT(2) | JSON_ENSURE_ASCII)

/* Takes over the reference to `value`. */
static enum status text_of(json_t *value, struct arena *arena, char **out) {
    const size_t length = value == NULL ? 0 : json_dumpb(value, NULL, 0, LAYOUT);
    enum status status = length > 0 ? arena_take(arena, length + 1, 1, "a text", out)
                                    : status_fail(STATUS_MEMORY, "no memory for JSON");
    if (status == STATUS_OK && json_dumpb(value, *out, length, LAYOUT) != length)
        status = status_fail(STATUS_INTERNAL, "JSON of another length");
    json_decref(value);
    return status;
}

static enum status write_json(const char *folder, const char *name, json_t *value,
                              struct arena *arena) {
    char *text;
    TRY(text_of(value, arena, &text));
    return write_file(folder, name, text, strlen(text), arena);
}

/* ---- bytes ---- */

static int is_printable(unsigned byte) {
    return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

/* Writes the character that spells a byte, as UTF-8 of one or two bytes. */
static void spell(unsigned byte, char out[3]) {
    unsigned character = byte;
    if (!is_printable(byte)) {
        character = 256;
        for (unsigned b = 0; b < byte; b++)
            character += (unsigned)!is_printable(b);
    }
    if (character < 0x80) {
        out[0] = (char)character;
        out[1] = '\0';
        return;
    }
    out[0] = (char)(0xC0 | character >> 6);
    out[1] = (char)(0x80 | (character & 0x3F));
    out[2] = '\0';
}

static json_t *added(const char *content, unsigned id) {
    return json_pack("{s:i,s:s,s:b,s:b,s:b,s:b,s:b}", "id", (int)id, "content", content,
                     "single_word", 0, "lstrip", 0, "rstrip", 0, "normalized", 0, "special", 1);
}

static json_t *byte_level(void) {
    return json_pack("{s:s,s:b,s:b,s:b}", "type", "ByteLevel", "add_prefix_space", 0,
                     "trim_offsets", 1, "use_regex", 0);
}

static json_t *tokenizer_json(const struct tokenizer_specials *specials) {
    json_t *const vocabulary = json_object();
    for (unsigned byte = 0; byte < 256; byte++) {
        char text[3];
        spell(byte, text);
        json_object_set_new(vocabulary, text, json_integer((json_int_t)byte));
    }
    json_t *const model =
        json_pack("{s:s,s:n,s:n,s:n,s:n,s:b,s:b,s:o,s:[]}", "type", "BPE", "dropout", "unk_token",
                  "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", 0, "byte_fallback",
                  0, "vocab", vocabulary, "merges");
    return json_pack("{s:s,s:n,s:n,s:[o,o,o],s:n,s:o,s:n,s:o,s:o}", "version", "1.0", "truncation",
                     "padding", "added_tokens", added("<bos>", specials->bos),
                     added("<eos>", specials->eos), added("<pad>", specials->pad), "normalizer",
                     "pre_tokenizer", byte_level(), "post_processor", "decoder", byte_level(),
                     "model", model);
}

enum status tokenizer_files_bytes(const struct tokenizer_specials *specials, const char *folder,
                                  struct arena *arena) {
    TRY(remove_all(folder, arena));
    TRY(write_json(folder, "tokenizer.json", tokenizer_json(specials), arena));
    return write_json(folder, "tokenizer_config.json",
                      json_pack("{s:s,s:s,s:s,s:s,s:b,s:b}", "tokenizer_class",
                                "PreTrainedTokenizerFast", "bos_token", "<bos>", "eos_token",
                                "<eos>", "pad_token", "<pad>", "add_bos_token", 0,
                                "clean_up_tokenization_spaces", 0),
                      arena);
}

static json_t *none_config(void) {
    return json_pack("{s:s}", "tokenizer_class", "PreTrainedTokenizerFast");
}

enum status tokenizer_files_none(const char *folder, struct arena *arena) {
    TRY(remove_all(folder, arena));
    return write_json(folder, "tokenizer_config.json", none_config(), arena);
}

/* ---- recognised again ---- */

static int is_text(const char *folder, const char *name, json_t *value) {
    struct arena arena = ARENA_EMPTY;
    struct mapped mapped;
    char *text, *path;
    int is_equal = 0;
    if (text_of(value, &arena, &text) == STATUS_OK &&
        arena_format(&arena, &path, "%s/%s", folder, name) == STATUS_OK &&
        access(path, R_OK) == 0 && mapped_open(path, &mapped) == STATUS_OK) {
        is_equal = mapped.length == strlen(text) && memcmp(mapped.bytes, text, mapped.length) == 0;
        mapped_close(&mapped);
    }
    arena_close(&arena);
    return is_equal;
}

int tokenizer_files_are_ours(const struct tokenizer_specials *specials, const char *folder) {
    return is_text(folder, "tokenizer.json", tokenizer_json(specials)) ||
           is_text(folder, "tokenizer_config.json", none_config());
}

/* SPDX-License-Identifier: Apache-2.0
 * Calls jansson with its strict flags, and turns its complaints into ours. */
#include "checkpoints/strict_json.h"

#include <stdio.h>
#include <string.h>

#include "checkpoints/mapped.h"

/* The index of a model of a hundred thousand tensors takes about a sixth of this. */
#define FILE_LIMIT ((size_t)64 << 20)

enum status strict_json_object(const char *name, const unsigned char *bytes, size_t length,
                               json_t **out) {
    json_error_t error;
    *out = json_loadb((const char *)bytes, length, JSON_REJECT_DUPLICATES, &error);
    if (*out == NULL)
        FAIL(STATUS_INPUT, "%s: expected JSON: line %d, column %d: %s", name, error.line,
             error.column, error.text);
    if (json_is_object(*out)) return STATUS_OK;
    const char *kind = strict_json_kind(*out);
    json_decref(*out);
    *out = NULL;
    FAIL(STATUS_INPUT, "%s: expected a JSON object, got %s", name, kind);
}

static enum status parse_mapped(const char *path, const struct mapped *file, json_t **out) {
    if (file->length == 0) FAIL(STATUS_INPUT, "%s: expected a JSON object, got no bytes", path);
    if (file->length > FILE_LIMIT)
        FAIL(STATUS_INPUT, "%s: expected at most %zu bytes of JSON, got %zu", path, FILE_LIMIT,
             file->length);
    return strict_json_object(path, file->bytes, file->length, out);
}

enum status strict_json_file(const char *path, json_t **out) {
    struct mapped file;
    *out = NULL;
    TRY(mapped_open(path, &file));
    const enum status status = parse_mapped(path, &file, out);
    mapped_close(&file);
    return status;
}

const char *strict_json_kind(const json_t *value) {
    static const char *const kinds[] = {"an object",     "an array", "a string", "an integer",
                                        "a real number", "true",     "false",    "null"};
    return value == NULL ? "nothing" : kinds[json_typeof(value)];
}

int strict_json_count(const json_t *value, uint64_t *out) {
    if (!json_is_integer(value) || json_integer_value(value) < 0) return 0;
    *out = (uint64_t)json_integer_value(value);
    return 1;
}

struct strict_quoted strict_quote(const char *name) {
    struct strict_quoted quoted;
    const size_t room = sizeof quoted.text - 8;
    size_t used = 0;
    quoted.text[used++] = '"';
    for (; *name != '\0' && used < room; name++) {
        const unsigned char byte = (unsigned char)*name;
        if (byte < 0x20 || byte == 0x7F)
            used += (size_t)snprintf(quoted.text + used, 5, "\\x%02x", (unsigned)byte);
        else
            quoted.text[used++] = *name;
    }
    snprintf(quoted.text + used, sizeof quoted.text - used, "%s\"", *name == '\0' ? "" : "...");
    return quoted;
}

struct strict_quoted strict_show(const json_t *value) {
    struct strict_quoted shown;
    if (value == NULL) {
        snprintf(shown.text, sizeof shown.text, "nothing");
        return shown;
    }
    const size_t room = sizeof shown.text - 4;
    const size_t used =
        json_dumpb(value, shown.text, room, JSON_ENCODE_ANY | JSON_COMPACT | JSON_ENSURE_ASCII);
    const size_t kept = used < room ? used : room;
    snprintf(shown.text + kept, sizeof shown.text - kept, "%s", used > room ? "..." : "");
    return shown;
}

/* Room that is kept free for the last words, " and 4 more". */
#define LAST_WORDS 40

void listing_add_text(struct listing *listing, const char *text) {
    const size_t used = listing->count == 0 ? 0 : strlen(listing->text);
    listing->count++;
    if (listing->shown + 1 < listing->count) return; /* it was full before */
    if (used + strlen(text) + 2 + LAST_WORDS >= sizeof listing->text) return;
    snprintf(listing->text + used, sizeof listing->text - used, "%s%s", used > 0 ? ", " : "", text);
    listing->shown++;
}

void listing_add(struct listing *listing, const char *name) {
    listing_add_text(listing, strict_quote(name).text);
}

const char *listing_close(struct listing *listing) {
    if (listing->count == 0) return "none";
    const size_t used = strlen(listing->text);
    if (listing->shown < listing->count)
        snprintf(listing->text + used, sizeof listing->text - used, " and %zu more",
                 listing->count - listing->shown);
    return listing->text;
}

/* SPDX-License-Identifier: Apache-2.0
 * The text of a place: a table of its keys, read and written by the same rows. Names of tensors
 * hold no newline, since a checkpoint with such a name is refused. */
#include "evidence/first_place.h"

#include <stddef.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "base/number.h"

enum { PLACE_UPDATE = 0, PLACE_MICRO, PLACE_LAYER, PLACE_NUMBERS };

static const char *const numbers[PLACE_NUMBERS] = {"update", "micro_batch", "layer"};

static const struct {
    const char *key;
    size_t offset; /* of a const char * in struct first_place */
} texts[] = {
    {"phase", offsetof(struct first_place, phase)},
    {"op", offsetof(struct first_place, op)},
    {"tensor", offsetof(struct first_place, tensor)},
    {"words", offsetof(struct first_place, words)},
    {"structure", offsetof(struct first_place, structure)},
    {"undecided", offsetof(struct first_place, undecided)},
};

/* Where the place keeps the text of a row, to be read or set. */
static const char **text_at(struct first_place *place, size_t row) {
    return (const char **)(void *)((char *)place + texts[row].offset);
}

enum status first_place_write(const struct first_place *place, struct arena *arena, char **out) {
    struct first_place copy = *place;
    TRY(arena_format(arena, out, "update: %ju\nmicro_batch: %u\nlayer: %jd\n",
                     (uintmax_t)place->update, place->micro, (intmax_t)place->layer));
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        TRY(arena_format(arena, out, "%s%s: %s\n", *out, texts[i].key, *text_at(&copy, i)));
    return STATUS_OK;
}

/* The value of the line `key: value`; NULL: there is no such line. */
static enum status value_of(const char *lines, const char *key, struct arena *arena, char **out) {
    const size_t length = strlen(key);
    *out = NULL;
    while (*lines != '\0') {
        const size_t line = strcspn(lines, "\n");
        if (line >= length + 2 && memcmp(lines, key, length) == 0 &&
            memcmp(lines + length, ": ", 2) == 0)
            return arena_text(arena, lines + length + 2, line - length - 2, out);
        lines += line + (lines[line] == '\n');
    }
    FAIL(STATUS_INPUT, "trace: text %s: expected a line \"%s: ...\"", FIRST_PLACE_PATH, key);
}

enum status first_place_read(const struct trace_image *image, struct arena *arena,
                             struct first_place *out) {
    const struct trace_text *text = trace_text_of(image, FIRST_PLACE_PATH);
    char *value;
    double number[PLACE_NUMBERS];
    *out = (struct first_place){.layer = -1};
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        *text_at(out, i) = "";
    if (text == NULL || text->length == 0) return STATUS_OK;
    for (int i = 0; i < PLACE_NUMBERS; i++) {
        TRY(value_of(text->text, numbers[i], arena, &value));
        const enum status status = number_parse_real(value, 0, &number[i]);
        if (status != STATUS_OK)
            return status_prefix(status, "trace: text %s: %s", FIRST_PLACE_PATH, numbers[i]);
        if (!(number[i] >= -1 && number[i] <= 0x1p31))
            FAIL(STATUS_INPUT, "trace: text %s: %s: expected -1 to 2^31, got %s", FIRST_PLACE_PATH,
                 numbers[i], value);
    }
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        TRY(value_of(text->text, texts[i].key, arena, &value));
        *text_at(out, i) = value;
    }
    out->update = number[PLACE_UPDATE] < 0 ? 0 : (uint64_t)number[PLACE_UPDATE];
    out->micro = number[PLACE_MICRO] < 0 ? 0 : (uint32_t)number[PLACE_MICRO];
    out->layer = (int64_t)number[PLACE_LAYER];
    return STATUS_OK;
}

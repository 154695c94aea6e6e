/* SPDX-License-Identifier: Apache-2.0
 * Reads in growing pieces and not by the size that stat() tells, because pipes and devices have
 * none. */
#include "scenarios/textfile.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define FIRST_PIECE ((size_t)16 * 1024)

static enum status read_stream(struct arena *arena, FILE *file, const char *label, size_t limit,
                               char **out_text, size_t *out_length) {
    size_t capacity = FIRST_PIECE;
    size_t length = 0;
    char *text = NULL;
    TRY(arena_take(arena, capacity + 1, 1, label, &text));
    for (;;) {
        length += fread(text + length, 1, capacity - length, file);
        if (ferror(file)) FAIL(STATUS_IO, "%s: error: cannot read: %s", label, strerror(errno));
        if (length < capacity) break;
        if (capacity > limit)
            FAIL(STATUS_INPUT, "%s: error: expected at most %zu bytes, got more", label, limit);
        char *larger = NULL;
        TRY(arena_take(arena, 2 * capacity + 1, 1, label, &larger));
        memcpy(larger, text, length);
        text = larger;
        capacity *= 2;
    }
    if (length > limit)
        FAIL(STATUS_INPUT, "%s: error: expected at most %zu bytes, got %zu", label, limit, length);
    text[length] = '\0';
    *out_text = text;
    *out_length = length;
    return STATUS_OK;
}

enum status textfile_read(struct arena *arena, const char *path, size_t limit, char **out_text,
                          size_t *out_length) {
    if (strcmp(path, "-") == 0)
        return read_stream(arena, stdin, "<stdin>", limit, out_text, out_length);
    FILE *file = fopen(path, "rb");
    if (file == NULL) FAIL(STATUS_IO, "%s: error: cannot open: %s", path, strerror(errno));
    enum status status = read_stream(arena, file, path, limit, out_text, out_length);
    fclose(file);
    return status;
}

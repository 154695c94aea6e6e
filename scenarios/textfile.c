/* SPDX-License-Identifier: Apache-2.0
 * Reads text in growing pieces and not by the size that stat() tells, because pipes and devices
 * have none; and checks its bytes in one pass before libfyaml sees them, because libfyaml hangs on
 * a `%` in column 0 that is followed by invalid UTF-8. Overlong forms, surrogates and everything
 * past U+10FFFF are invalid. Control characters other than tab and line breaks are refused, too,
 * because they hide text on a screen. */
#include "scenarios/textfile.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/input.h"

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
    FILE *file;
    struct input input;
    char *label_of_refusal;
    TRY(arena_format(arena, &label_of_refusal, "%s: error", path));
    TRY(input_open_stream(path, INPUT_FILE_OR_STREAM, label_of_refusal, "a file of text", &file,
                          &input));
    enum status status = read_stream(arena, file, path, limit, out_text, out_length);
    fclose(file);
    return status;
}

/* The number of bytes of the sequence at `text`, and its value in *out_point; 0 when it is not
 * UTF-8. `smallest` refuses overlong forms. */
static size_t decode(const unsigned char *text, size_t left, uint32_t *out_point) {
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char lead = text[0];
    size_t size = lead < 0x80 ? 1 : lead < 0xc0 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    if (size == 0 || lead >= 0xf8 || size > left) return 0;
    uint32_t point = size == 1 ? lead : lead & (0xffu >> (size + 1));
    for (size_t i = 1; i < size; i++) {
        if ((text[i] & 0xc0) != 0x80) return 0;
        point = point << 6 | (text[i] & 0x3fu);
    }
    if (point < smallest[size] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) return 0;
    *out_point = point;
    return size;
}

/* C0 and C1 controls, U+2028 and U+2029 (line breaks that no editor shows), and two numbers that
 * are no characters. */
static int is_control(uint32_t point) {
    if (point < 0x20) return point != '\t' && point != '\n' && point != '\r';
    return (point >= 0x7f && point < 0xa0) || point == 0x2028 || point == 0x2029 ||
           point == 0xfffe || point == 0xffff;
}

enum status plaintext_check(const char *source, const char *text, size_t length) {
    const unsigned char *bytes = (const unsigned char *)text;
    size_t line = 1;
    size_t start = 0;
    for (size_t i = 0; i < length;) {
        uint32_t point = 0;
        size_t size = decode(bytes + i, length - i, &point);
        size_t column = i - start + 1;
        if (size == 0)
            FAIL(STATUS_INPUT, "%s:%zu:%zu: error: expected UTF-8 text, got byte 0x%02x", source,
                 line, column, (unsigned)bytes[i]);
        if (point == 0xfeff)
            FAIL(STATUS_INPUT,
                 "%s:%zu:%zu: error: expected text, got a byte order mark (U+FEFF): save the file "
                 "as UTF-8 without it",
                 source, line, column);
        if (is_control(point))
            FAIL(STATUS_INPUT, "%s:%zu:%zu: error: expected text, got control character U+%04X",
                 source, line, column, (unsigned)point);
        i += size;
        if (point == '\n') {
            line++;
            start = i;
        }
    }
    return STATUS_OK;
}

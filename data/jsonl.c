/* SPDX-License-Identifier: Apache-2.0
 * Reads JSONL with jansson, one line at a time. The function that makes a jansson value releases
 * it.
 *
 * Invariant: on an error the text names file and line, and nothing of that row is kept. */
#include "data/jsonl.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/input.h"
#include "data/chat.h"
#include "data/jsonl_private.h"

static int line_blank(const char *line, size_t length) {
    for (size_t i = 0; i < length; i++)
        if (line[i] != ' ' && line[i] != '\t' && line[i] != '\r') return 0;
    return 1;
}

static enum status line_read(struct jsonl_reader *reader, const char *line, size_t length) {
    if (line_blank(line, length)) return STATUS_OK;
    const char *nul = (const char *)memchr(line, '\0', length);
    if (nul != NULL)
        FAIL(STATUS_INPUT, "%s:%zu:%zu: a NUL byte: this is not a text file", reader->source,
             reader->line, (size_t)(nul - line) + 1);
    json_error_t error;
    json_t *object = json_loadb(line, length, JSON_REJECT_DUPLICATES, &error);
    if (object == NULL && json_error_code(&error) == json_error_null_character)
        FAIL(STATUS_INPUT, "%s:%zu:%d: a NUL character (\\u0000), which no text of a row may hold",
             reader->source, reader->line, error.column);
    if (object == NULL)
        FAIL(STATUS_INPUT, "%s:%zu:%d: not one JSON object: %s", reader->source, reader->line,
             error.column, error.text);
    enum status status = jsonl_row_read(reader, object);
    json_decref(object);
    return status;
}

static size_t lines_count(const char *bytes, size_t length) {
    size_t lines = 1;
    for (size_t i = 0; i < length; i++)
        lines += bytes[i] == '\n';
    return lines;
}

enum status jsonl_parse(const char *source, const char *bytes, size_t length,
                        const struct jsonl_options *options, struct arena *arena,
                        struct datarow_table *out_table) {
    if (length >= 3 && memcmp(bytes, "\xEF\xBB\xBF", 3) == 0)
        FAIL(STATUS_INPUT, "%s:1:1: a byte order mark: save the file as UTF-8 without it", source);
    *out_table = (struct datarow_table){.source = source};
    struct jsonl_reader reader = {.source = source,
                                  .options = *options,
                                  .arena = arena,
                                  .table = out_table,
                                  .capacity = length};
    TRY(arena_take(arena, length, 1, "JSONL text", &reader.text));
    TRY(arena_take(arena, lines_count(bytes, length), sizeof *out_table->row, "JSONL rows",
                   &out_table->row));
    while (length > 0) {
        const char *stop = (const char *)memchr(bytes, '\n', length);
        size_t line = stop == NULL ? length : (size_t)(stop - bytes);
        reader.line++;
        TRY(line_read(&reader, bytes, line));
        size_t step = stop == NULL ? line : line + 1;
        bytes += step;
        length -= step;
    }
    if (out_table->rows == 0)
        FAIL(STATUS_INPUT, "%s: the file holds no row; expected one JSON object per line", source);
    return reader.chat ? STATUS_OK : chat_rows(options->chat, arena, out_table);
}

/* Tells files apart that the library `datasets` writes, by their first bytes: a Parquet file, an
 * Arrow file, and a stream of Arrow messages, which begins with its continuation marker. */
static enum status refuse_columns(const char *path, const char *bytes, size_t length) {
    static const struct {
        const char *start, *name;
    } formats[] = {{"PAR1", "Parquet"}, {"ARROW1", "Arrow"}, {"\xff\xff\xff\xff", "Arrow"}};
    for (size_t i = 0; i < COUNT_OF(formats); i++) {
        const size_t size = strlen(formats[i].start);
        if (length >= size && memcmp(bytes, formats[i].start, size) == 0)
            FAIL(STATUS_INPUT,
                 "%s: expected JSONL, got %s; dataset.to_json(\"x.jsonl\") of datasets writes "
                 "JSONL",
                 path, formats[i].name);
    }
    return STATUS_OK;
}

static enum status file_read(FILE *file, const char *path, uint64_t bytes, struct arena *arena,
                             char **out_bytes, size_t *out_length) {
    if (bytes > JSONL_MAX_BYTES)
        FAIL(STATUS_INPUT, "%s: %llu bytes; a data file has at most %llu (1 GiB)", path,
             (unsigned long long)bytes, (unsigned long long)JSONL_MAX_BYTES);
    size_t length = (size_t)bytes;
    TRY(arena_take(arena, length, 1, path, out_bytes));
    *out_length = fread(*out_bytes, 1, length, file);
    if (ferror(file)) FAIL(STATUS_IO, "%s: cannot be read: %s", path, strerror(errno));
    return refuse_columns(path, *out_bytes, *out_length);
}

static enum status path_read(const char *path, struct arena *arena, char **out_bytes,
                             size_t *out_length) {
    FILE *file;
    struct input input;
    TRY(input_open_stream(path, INPUT_FILE, path, "a file of JSONL", &file, &input));
    enum status status = file_read(file, path, input.length, arena, out_bytes, out_length);
    fclose(file);
    return status;
}

enum status jsonl_read(const char *path, const struct jsonl_options *options, struct arena *arena,
                       struct datarow_table *out_table) {
    char *bytes = NULL;
    size_t length = 0;
    TRY(path_read(path, arena, &bytes, &length));
    return jsonl_parse(path, bytes, length, options, arena, out_table);
}

enum status jsonl_task_of(const char *path, struct arena *arena, int *out_task) {
    char *bytes = NULL;
    size_t length = 0;
    TRY(path_read(path, arena, &bytes, &length));
    *out_task = TASK_DPO;
    for (size_t line = 0; length > 0; length -= line, bytes += line) {
        const char *stop = (const char *)memchr(bytes, '\n', length);
        line = stop == NULL ? length : (size_t)(stop - bytes) + 1;
        if (line_blank(bytes, stop == NULL ? line : line - 1)) continue;
        json_t *object = json_loadb(bytes, line, JSON_REJECT_DUPLICATES, NULL);
        if (object != NULL) *out_task = (int)jsonl_form_task(object);
        json_decref(object);
        return STATUS_OK;
    }
    return STATUS_OK;
}

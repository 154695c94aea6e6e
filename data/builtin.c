/* SPDX-License-Identifier: Apache-2.0
 * Reads the embedded tables and draws the rejected answers.
 *
 * A row's candidates are counted and picked in two walks over its table: tables are short, and no
 * list of them is kept. Invariant: a row's rejected answer depends on the seed, the row's number
 * and its table alone. */
#include "data/builtin.h"

#include <string.h>

#include "determinism/stream.h"

enum { FIELD_TABLE, FIELD_QUESTION, FIELD_ANSWER, FIELDS };

struct builtin_file builtin_at(size_t index) {
    const struct builtin_file files[BUILTIN_COUNT] = {
        {"quiz", "quiz.tsv", "question and answer pairs of the BSD game quiz", builtin_quiz_bytes,
         builtin_quiz_length},
        {"devil", "devil.tsv", "words and definitions of The Devil's Dictionary",
         builtin_devil_bytes, builtin_devil_length},
    };
    return index < BUILTIN_COUNT ? files[index] : (struct builtin_file){.name = NULL};
}

struct reader {
    const char *source;
    size_t line;
    char *pool; /* holds the unescaped text: never longer than the file and one space per row */
    size_t used;
};

/* Unescapes one field into the pool. A field may write a line end as \n and a backslash as two. */
static enum status field_read(struct reader *reader, const char *from, size_t length,
                              struct datarow_part *out) {
    char *to = reader->pool + reader->used;
    size_t count = 0;
    for (size_t i = 0; i < length; i++) {
        char c = from[i];
        if (c == '\\') {
            char next = i + 1 < length ? from[++i] : '\0';
            if (next != 'n' && next != '\\')
                FAIL(STATUS_INPUT, "%s:%zu: a backslash is followed by n or a backslash",
                     reader->source, reader->line);
            c = next == 'n' ? '\n' : '\\';
        }
        to[count++] = c;
    }
    if (count == 0) FAIL(STATUS_INPUT, "%s:%zu: an empty field", reader->source, reader->line);
    reader->used += count;
    *out = (struct datarow_part){to, NULL, count};
    return STATUS_OK;
}

static enum status line_read(struct reader *reader, const char *from, size_t length,
                             struct datarow_part field[FIELDS]) {
    const char *end = from + length;
    for (size_t i = 0; i < FIELDS; i++) {
        const char *stop = (const char *)memchr(from, '\t', (size_t)(end - from));
        if ((stop == NULL) != (i + 1 == FIELDS))
            FAIL(STATUS_INPUT, "%s:%zu: expected table, question and answer between tabs",
                 reader->source, reader->line);
        TRY(field_read(reader, from, (size_t)((stop == NULL ? end : stop) - from), &field[i]));
        if (i == FIELD_QUESTION) {
            /* a prompt ends with the space that joins its answer */
            reader->pool[reader->used++] = ' ';
            field[i].length++;
        }
        from = stop == NULL ? end : stop + 1;
    }
    return STATUS_OK;
}

static size_t lines_count(const char *bytes, size_t length) {
    size_t lines = length > 0 && bytes[length - 1] != '\n';
    for (size_t i = 0; i < length; i++)
        lines += bytes[i] == '\n';
    return lines;
}

static int part_equal(const struct datarow_part *a, const struct datarow_part *b) {
    return a->length == b->length && memcmp(a->text, b->text, a->length) == 0;
}

/* Puts answer number `wanted` of those in the table whose text is not `answer` into `out`, and
 * returns how many such answers there are. */
static uint32_t candidate_find(const struct datarow_part (*field)[FIELDS], size_t first, size_t end,
                               const struct datarow_part *answer, uint32_t wanted,
                               struct datarow_part *out) {
    uint32_t count = 0;
    for (size_t i = first; i < end; i++) {
        if (part_equal(&field[i][FIELD_ANSWER], answer)) continue;
        if (count == wanted) *out = field[i][FIELD_ANSWER];
        count++;
    }
    return count;
}

static enum status rejected_draw(const struct datarow_part (*field)[FIELDS], size_t rows,
                                 uint64_t seed, struct datarow_table *table) {
    /* A row takes one 64-bit word, which is two elements of the stream. */
    const struct stream_address address = {
        .stream = STREAM_DATA, .op = DATA_OP_REJECT, .last_element = 2 * (uint64_t)rows - 1};
    struct stream_site site;
    TRY(stream_pack(&address, &site));
    size_t first = 0;
    size_t end = 0; /* rows first to end - 1 are the current row's table */
    for (size_t i = 0; i < rows; i++) {
        if (i == end)
            for (first = i;
                 end < rows && part_equal(&field[end][FIELD_TABLE], &field[first][FIELD_TABLE]);)
                end++;
        struct datarow_part *part = table->row[i].part;
        const struct datarow_part *answer = &field[i][FIELD_ANSWER];
        uint32_t candidates = candidate_find(field, first, end, answer, UINT32_MAX, &part[2]);
        if (candidates == 0)
            FAIL(STATUS_INPUT, "%s:%zu: table %.*s holds no other answer", table->source,
                 table->row[i].line, (int)field[i][FIELD_TABLE].length, field[i][FIELD_TABLE].text);
        uint32_t pick = stream_bounded(stream_word64(seed, site, i), candidates);
        (void)candidate_find(field, first, end, answer, pick, &part[2]);
    }
    table->words = 2 * (uint64_t)rows;
    return STATUS_OK;
}

enum status builtin_parse(const char *source, const char *bytes, size_t length, enum task task,
                          uint64_t seed, struct arena *arena, struct datarow_table *out_table) {
    size_t rows = lines_count(bytes, length);
    if (rows == 0) FAIL(STATUS_INPUT, "%s: no rows", source);
    struct reader reader = {source, 0, NULL, 0};
    struct datarow_part(*field)[FIELDS];
    struct datarow *row;
    TRY(arena_take(arena, length + rows, 1, "builtin text", &reader.pool));
    TRY(arena_take(arena, rows, sizeof *field, "builtin fields", &field));
    TRY(arena_take(arena, rows, sizeof *row, "builtin rows", &row));
    for (size_t i = 0; i < rows; i++) {
        const char *stop = (const char *)memchr(bytes, '\n', length);
        size_t line = stop == NULL ? length : (size_t)(stop - bytes);
        reader.line = i + 1;
        TRY(line_read(&reader, bytes, line, field[i]));
        row[i].part[0] = field[i][FIELD_QUESTION];
        row[i].part[1] = field[i][FIELD_ANSWER];
        row[i].line = i + 1;
        bytes += stop == NULL ? line : line + 1;
        length -= stop == NULL ? line : line + 1;
    }
    *out_table = (struct datarow_table){.source = source, .row = row, .rows = rows};
    out_table->form = task == TASK_DPO ? DATAROW_PAIR_TEXT : DATAROW_COMPLETION_TEXT;
    if (task == TASK_DPO)
        return rejected_draw((const struct datarow_part(*)[FIELDS])field, rows, seed, out_table);
    return STATUS_OK;
}

/* Makes each row one text, prompt and completion, which follow each other in the pool. */
static void join_parts(struct datarow_table *table) {
    for (size_t i = 0; i < table->rows; i++)
        table->row[i].part[0].length += table->row[i].part[1].length;
    table->form = DATAROW_PLAIN_TEXT;
}

enum status builtin_rows(const char *name, enum task task, uint64_t seed, struct arena *arena,
                         struct datarow_table *out_table) {
    if (strcmp(name, "devil-text") == 0) {
        if (task != TASK_SFT)
            FAIL(STATUS_INPUT, "builtin:devil-text: these are whole texts, for task sft; expected "
                               "builtin:devil or builtin:quiz with task dpo");
        TRY(builtin_rows("devil", task, seed, arena, out_table));
        join_parts(out_table);
        return STATUS_OK;
    }
    for (size_t i = 0; i < BUILTIN_COUNT; i++) {
        struct builtin_file file = builtin_at(i);
        if (strcmp(name, file.name) == 0)
            return builtin_parse(file.file, (const char *)file.bytes, file.length, task, seed,
                                 arena, out_table);
    }
    FAIL(STATUS_INPUT,
         "builtin:%s: no such text; there are builtin:quiz, builtin:devil and, for task sft, "
         "builtin:devil-text",
         name);
}

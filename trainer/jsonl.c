/* SPDX-License-Identifier: Apache-2.0
 * JSONL rows by jansson, one line at a time. Strings and ids are copied into two pools whose sizes
 * the file's length bounds: decoded text is never longer than its JSON, and an id takes at least
 * two bytes. Every jansson value is released on the line that made it. Invariant: on error the text
 * names file and line, and nothing of the row is kept. */
#include "trainer/jsonl.h"

#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum part_type { PART_TEXT, PART_IDS, PART_LABELS };

struct key_rule {
    const char *key;
    enum part_type type;
    bool may_be_empty;
};

struct form_rule {
    enum task task;
    size_t keys;
    struct key_rule key[DATAROW_PARTS];
    const char *names; /* as errors print them */
};

/* By enum datarow_form. */
static const struct form_rule form_rules[] = {
    {TASK_DPO,
     3,
     {{"prompt", PART_TEXT, true}, {"chosen", PART_TEXT, false}, {"rejected", PART_TEXT, false}},
     "prompt, chosen, rejected"},
    {TASK_DPO,
     3,
     {{"prompt_ids", PART_IDS, true},
      {"chosen_ids", PART_IDS, false},
      {"rejected_ids", PART_IDS, false}},
     "prompt_ids, chosen_ids, rejected_ids"},
    {TASK_SFT,
     2,
     {{"prompt", PART_TEXT, true}, {"completion", PART_TEXT, false}, {NULL, PART_TEXT, false}},
     "prompt, completion"},
    {TASK_SFT,
     1,
     {{"text", PART_TEXT, false}, {NULL, PART_TEXT, false}, {NULL, PART_TEXT, false}},
     "text"},
    {TASK_SFT,
     2,
     {{"input_ids", PART_IDS, false}, {"labels", PART_LABELS, false}, {NULL, PART_TEXT, false}},
     "input_ids, labels"},
};

struct reader {
    const char *source;
    size_t line;
    struct jsonl_options options;
    struct arena *arena;
    struct datarow_table *table;
    size_t capacity; /* bytes of the source: bounds both pools */
    char *text;
    size_t text_used;
    int32_t *ids; /* NULL until the first row of ids */
    size_t ids_used;
};

static const char *task_name(enum task task) {
    return task == TASK_DPO ? "dpo" : "sft";
}

static const char *json_kind(const json_t *value) {
    static const char *const kinds[] = {"an object",     "an array", "a string", "an integer",
                                        "a real number", "true",     "false",    "null"};
    return kinds[json_typeof(value)];
}

#define ROW_FAIL(reader, ...) return row_fail((reader), __VA_ARGS__)

static enum status row_fail(const struct reader *reader, const char *format, ...)
    TWINSTEP_PRINTF(2, 3);

/* "file:line: " and the reason. */
static enum status row_fail(const struct reader *reader, const char *format, ...) {
    char reason[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    return status_fail(STATUS_INPUT, "%s:%zu: %s", reader->source, reader->line, reason);
}

/* How many of the form's keys the row has. */
static size_t form_matches(const struct form_rule *rule, const json_t *object) {
    size_t found = 0;
    for (size_t i = 0; i < rule->keys; i++)
        found += json_object_get(object, rule->key[i].key) != NULL;
    return found;
}

/* The row's keys for an error text, cut where they get long. */
static void keys_print(const json_t *object, char *out, size_t size) {
    size_t used = 0;
    out[0] = '\0';
    for (void *iter = json_object_iter((json_t *)object); iter != NULL;
         iter = json_object_iter_next((json_t *)object, iter)) {
        int wrote = snprintf(out + used, size - used, "%s%.40s", used > 0 ? ", " : "",
                             json_object_iter_key(iter));
        if (wrote < 0 || (size_t)wrote >= size - used) return;
        used += (size_t)wrote;
    }
    if (used == 0) snprintf(out, size, "none");
}

/* No form is complete: name the form that comes nearest and what it lacks. */
static enum status form_fail(const struct reader *reader, const json_t *object) {
    const struct form_rule *nearest = NULL;
    size_t best = 0;
    for (size_t i = 0; i < COUNT_OF(form_rules); i++) {
        size_t found = form_matches(&form_rules[i], object);
        if (form_rules[i].task != reader->options.task) {
            if (found == form_rules[i].keys)
                ROW_FAIL(reader, "a row of %s is for task %s, but the task is %s",
                         form_rules[i].names, task_name(form_rules[i].task),
                         task_name(reader->options.task));
        } else if (found > best) {
            best = found;
            nearest = &form_rules[i];
        }
    }
    for (size_t i = 0; nearest != NULL && i < nearest->keys; i++)
        if (json_object_get(object, nearest->key[i].key) == NULL)
            ROW_FAIL(reader, "key \"%s\" is missing; a row has %s", nearest->key[i].key,
                     nearest->names);
    char keys[256];
    keys_print(object, keys, sizeof keys);
    ROW_FAIL(reader, "expected the keys %s; the row has: %s",
             reader->options.task == TASK_DPO
                 ? "prompt, chosen, rejected (or prompt_ids, chosen_ids, rejected_ids)"
                 : "prompt, completion (or text, or input_ids, labels)",
             keys);
}

static enum status form_find(const struct reader *reader, const json_t *object,
                             enum datarow_form *out_form) {
    const struct form_rule *found = NULL;
    for (size_t i = 0; i < COUNT_OF(form_rules); i++) {
        const struct form_rule *rule = &form_rules[i];
        if (rule->task != reader->options.task || form_matches(rule, object) != rule->keys)
            continue;
        if (found != NULL)
            ROW_FAIL(reader, "the row has both %s and %s; keep one of them", found->names,
                     rule->names);
        found = rule;
        *out_form = (enum datarow_form)i;
    }
    if (found == NULL) return form_fail(reader, object);
    const struct datarow_table *table = reader->table;
    if (table->rows > 0 && table->form != *out_form)
        ROW_FAIL(reader, "a row of %s in a file whose line %zu has %s", found->names,
                 table->row[0].line, form_rules[table->form].names);
    return STATUS_OK;
}

static enum status text_read(struct reader *reader, const char *key, const json_t *value,
                             struct datarow_part *out) {
    if (!json_is_string(value))
        ROW_FAIL(reader, "\"%s\": expected a string, got %s%s", key, json_kind(value),
                 json_is_array(value) ? " (conversations: apply the chat template first)" : "");
    size_t length = json_string_length(value);
    char *to = reader->text + reader->text_used;
    memcpy(to, json_string_value(value), length);
    reader->text_used += length;
    *out = (struct datarow_part){to, NULL, length};
    return STATUS_OK;
}

static enum status id_check(const struct reader *reader, const struct key_rule *rule, size_t index,
                            const json_t *value) {
    if (!json_is_integer(value))
        ROW_FAIL(reader, "\"%s\"[%zu]: expected an integer, got %s", rule->key, index,
                 json_kind(value));
    json_int_t id = json_integer_value(value);
    if (rule->type == PART_LABELS && id == DATAROW_MASKED) return STATUS_OK;
    if (id < 0)
        ROW_FAIL(reader, "\"%s\"[%zu]: id %lld is negative%s", rule->key, index, (long long)id,
                 rule->type == PART_LABELS ? " and not -100" : "");
    if ((uint64_t)id >= reader->options.vocab)
        ROW_FAIL(reader, "\"%s\"[%zu]: id %lld is not below the vocabulary size %llu", rule->key,
                 index, (long long)id, (unsigned long long)reader->options.vocab);
    return STATUS_OK;
}

static enum status ids_read(struct reader *reader, const struct key_rule *rule, const json_t *value,
                            struct datarow_part *out) {
    if (!json_is_array(value))
        ROW_FAIL(reader, "\"%s\": expected an array of ids, got %s", rule->key, json_kind(value));
    size_t length = json_array_size(value);
    if (reader->ids == NULL)
        TRY(arena_take(reader->arena, reader->capacity / 2 + 1, sizeof *reader->ids, "JSONL ids",
                       &reader->ids));
    int32_t *to = reader->ids + reader->ids_used;
    for (size_t i = 0; i < length; i++) {
        const json_t *item = json_array_get(value, i);
        TRY(id_check(reader, rule, i, item));
        to[i] = (int32_t)json_integer_value(item);
    }
    reader->ids_used += length;
    *out = (struct datarow_part){NULL, to, length};
    return STATUS_OK;
}

/* Labels stand at their token, unshifted: anything but the token itself or -100 is a mistake, most
 * often labels that were shifted already. */
static enum status labels_check(const struct reader *reader, const struct datarow *row) {
    const struct datarow_part *ids = &row->part[0];
    const struct datarow_part *labels = &row->part[1];
    if (labels->length != ids->length)
        ROW_FAIL(reader, "\"labels\" has %zu entries, \"input_ids\" has %zu", labels->length,
                 ids->length);
    for (size_t i = 0; i < ids->length; i++)
        if (labels->ids[i] != DATAROW_MASKED && labels->ids[i] != ids->ids[i])
            ROW_FAIL(reader,
                     "\"labels\"[%zu] is %ld, \"input_ids\"[%zu] is %ld: a label is -100 or the "
                     "token at the same place (the shift by one is made here)",
                     i, (long)labels->ids[i], i, (long)ids->ids[i]);
    return STATUS_OK;
}

static enum status extras_count(struct reader *reader, const struct form_rule *rule,
                                const json_t *object) {
    size_t extra = json_object_size(object) - rule->keys;
    if (extra == 0) return STATUS_OK;
    reader->table->extra_keys += extra;
    if (reader->table->extra_first != NULL) return STATUS_OK;
    for (void *iter = json_object_iter((json_t *)object); iter != NULL;
         iter = json_object_iter_next((json_t *)object, iter)) {
        const char *key = json_object_iter_key(iter);
        bool known = false;
        for (size_t i = 0; i < rule->keys; i++)
            known = known || strcmp(key, rule->key[i].key) == 0;
        if (known) continue;
        char *copy;
        TRY(arena_text(reader->arena, key, strlen(key), &copy));
        reader->table->extra_first = copy;
        return STATUS_OK;
    }
    return STATUS_OK;
}

static enum status row_read(struct reader *reader, const json_t *object) {
    if (!json_is_object(object))
        ROW_FAIL(reader, "expected an object {...}, got %s", json_kind(object));
    enum datarow_form form = DATAROW_PAIR_TEXT;
    TRY(form_find(reader, object, &form));
    const struct form_rule *rule = &form_rules[form];
    struct datarow *row = &reader->table->row[reader->table->rows];
    row->line = reader->line;
    for (size_t i = 0; i < rule->keys; i++) {
        const struct key_rule *key = &rule->key[i];
        const json_t *value = json_object_get(object, key->key);
        if (key->type == PART_TEXT)
            TRY(text_read(reader, key->key, value, &row->part[i]));
        else
            TRY(ids_read(reader, key, value, &row->part[i]));
        if (row->part[i].length == 0 && !key->may_be_empty)
            ROW_FAIL(reader, "\"%s\" is empty", key->key);
    }
    if (form == DATAROW_LABELLED_IDS) TRY(labels_check(reader, row));
    TRY(extras_count(reader, rule, object));
    reader->table->form = form;
    reader->table->rows++;
    return STATUS_OK;
}

static bool line_blank(const char *line, size_t length) {
    for (size_t i = 0; i < length; i++)
        if (line[i] != ' ' && line[i] != '\t' && line[i] != '\r') return false;
    return true;
}

static enum status line_read(struct reader *reader, const char *line, size_t length) {
    if (line_blank(line, length)) return STATUS_OK;
    const char *nul = (const char *)memchr(line, '\0', length);
    if (nul != NULL)
        FAIL(STATUS_INPUT, "%s:%zu:%zu: a NUL byte: this is not a text file", reader->source,
             reader->line, (size_t)(nul - line) + 1);
    json_error_t error;
    json_t *object = json_loadb(line, length, JSON_REJECT_DUPLICATES, &error);
    if (object == NULL)
        FAIL(STATUS_INPUT, "%s:%zu:%d: not one JSON object: %s", reader->source, reader->line,
             error.column, error.text);
    enum status status = row_read(reader, object);
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
    struct reader reader = {.source = source,
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
    return STATUS_OK;
}

static enum status file_read(FILE *file, const char *path, struct arena *arena, char **out_bytes,
                             size_t *out_length) {
    struct stat info;
    if (fstat(fileno(file), &info) != 0)
        FAIL(STATUS_IO, "%s: cannot be examined: %s", path, strerror(errno));
    if (!S_ISREG(info.st_mode)) FAIL(STATUS_INPUT, "%s: not a regular file", path);
    if ((uint64_t)info.st_size > JSONL_MAX_BYTES)
        FAIL(STATUS_INPUT, "%s: %llu bytes; a data file has at most %llu (1 GiB)", path,
             (unsigned long long)info.st_size, (unsigned long long)JSONL_MAX_BYTES);
    size_t length = (size_t)info.st_size;
    TRY(arena_take(arena, length, 1, path, out_bytes));
    *out_length = fread(*out_bytes, 1, length, file);
    if (ferror(file)) FAIL(STATUS_IO, "%s: cannot be read: %s", path, strerror(errno));
    return STATUS_OK;
}

enum status jsonl_read(const char *path, const struct jsonl_options *options, struct arena *arena,
                       struct datarow_table *out_table) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) FAIL(STATUS_IO, "%s: cannot be opened: %s", path, strerror(errno));
    char *bytes = NULL;
    size_t length = 0;
    enum status status = file_read(file, path, arena, &bytes, &length);
    fclose(file);
    TRY(status);
    return jsonl_parse(path, bytes, length, options, arena, out_table);
}

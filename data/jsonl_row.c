/* SPDX-License-Identifier: Apache-2.0
 * Reads the values of one row: text, ids, labels, masks, log-probs. They are copied into two pools
 * that the file's length bounds: decoded text is never longer than its JSON, and an id or a label
 * takes at least two bytes with its comma.
 *
 * Invariant: every id is below the vocabulary, and a label is its token or -100. */
#include "data/jsonl_private.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *jsonl_kind(const json_t *value) {
    static const char *const kinds[] = {"an object",     "an array", "a string", "an integer",
                                        "a real number", "true",     "false",    "null"};
    return kinds[json_typeof(value)];
}

enum status jsonl_row_fail(const struct jsonl_reader *reader, const char *format, ...) {
    char reason[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    return status_fail(STATUS_INPUT, "%s:%zu: %s", reader->source, reader->line, reason);
}

static enum status text_read(struct jsonl_reader *reader, const char *key, const json_t *value,
                             struct datarow_part *out) {
    if (!json_is_string(value))
        ROW_FAIL(reader, "\"%s\": expected a string, got %s", key, jsonl_kind(value));
    size_t length = json_string_length(value);
    char *to = reader->text + reader->text_used;
    memcpy(to, json_string_value(value), length);
    reader->text_used += length;
    *out = (struct datarow_part){to, NULL, length};
    return STATUS_OK;
}

static enum status id_check(const struct jsonl_reader *reader, const struct key_rule *rule,
                            size_t index, const json_t *value) {
    if (!json_is_integer(value))
        ROW_FAIL(reader, "\"%s\"[%zu]: expected an integer, got %s", rule->key, index,
                 jsonl_kind(value));
    json_int_t id = json_integer_value(value);
    if (rule->type == PART_MASK) {
        if (id != 0 && id != 1)
            ROW_FAIL(reader, "\"%s\"[%zu]: expected 0 or 1, got %lld", rule->key, index,
                     (long long)id);
        return STATUS_OK;
    }
    if (rule->type == PART_LABELS && id == DATAROW_MASKED) return STATUS_OK;
    if (id < 0)
        ROW_FAIL(reader, "\"%s\"[%zu]: id %lld is negative%s", rule->key, index, (long long)id,
                 rule->type == PART_LABELS ? " and not -100" : "");
    if ((uint64_t)id >= reader->options.vocab)
        ROW_FAIL(reader, "\"%s\"[%zu]: id %lld is not below the vocabulary size %llu", rule->key,
                 index, (long long)id, (unsigned long long)reader->options.vocab);
    return STATUS_OK;
}

static enum status ids_read(struct jsonl_reader *reader, const struct key_rule *rule,
                            const json_t *value, struct datarow_part *out) {
    if (!json_is_array(value))
        ROW_FAIL(reader, "\"%s\": expected an array of %s, got %s", rule->key,
                 rule->type == PART_MASK ? "0 and 1" : "ids", jsonl_kind(value));
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

/* Checks that labels or a mask have one entry per id. They are not shifted yet: entry i is about
 * token i. */
static enum status length_check(const struct jsonl_reader *reader, const char *key, size_t length,
                                const struct key_rule *ids_rule, const struct datarow_part *ids) {
    if (length != ids->length)
        ROW_FAIL(reader, "\"%s\" has %zu entries, \"%s\" has %zu", key, length, ids_rule->key,
                 ids->length);
    return STATUS_OK;
}

/* A label must be the token at its place, or -100. Anything else is a mistake, most often labels
 * that were shifted already. */
static enum status labels_check(const struct jsonl_reader *reader, const struct key_rule *rule,
                                const struct datarow_part *labels, const struct key_rule *ids_rule,
                                const struct datarow_part *ids) {
    TRY(length_check(reader, rule->key, labels->length, ids_rule, ids));
    for (size_t i = 0; i < ids->length; i++)
        if (labels->ids[i] != DATAROW_MASKED && labels->ids[i] != ids->ids[i])
            ROW_FAIL(reader,
                     "\"%s\"[%zu] is %ld, \"%s\"[%zu] is %ld: a label is -100 or the token at the "
                     "same place (the shift by one is made here)",
                     rule->key, i, (long)labels->ids[i], ids_rule->key, i, (long)ids->ids[i]);
    return STATUS_OK;
}

/* Turns a mask into labels in the place where it lies, in the pool behind the ids. A second mask
 * narrows them: a token is labelled where both are 1, as TRL's SFTTrainer folds completion_mask and
 * assistant_masks. */
static enum status mask_fold(struct jsonl_reader *reader, const struct form_rule *rule, size_t part,
                             struct datarow *row) {
    const struct datarow_part *ids = &row->part[0];
    TRY(length_check(reader, rule->key[part].key, row->part[part].length, &rule->key[0], ids));
    int32_t *label = reader->ids + (row->part[1].ids - reader->ids);
    const int32_t *mask = row->part[part].ids;
    for (size_t i = 0; i < ids->length; i++)
        label[i] = mask[i] == 1 && (part == 1 || label[i] != DATAROW_MASKED) ? ids->ids[i]
                                                                             : DATAROW_MASKED;
    return STATUS_OK;
}

/* Checks that an attention mask is all ones. A zero would be padding, which has no place in a row:
 * its tokens would be trained on and attended to. */
static enum status whole_check(struct jsonl_reader *reader, const char *key, const json_t *value,
                               const struct key_rule *ids_rule, const struct datarow_part *ids) {
    if (!json_is_array(value))
        ROW_FAIL(reader, "\"%s\": expected an array of ones, got %s", key, jsonl_kind(value));
    size_t length = json_array_size(value);
    TRY(length_check(reader, key, length, ids_rule, ids));
    for (size_t i = 0; i < length; i++) {
        const json_t *item = json_array_get(value, i);
        if (!json_is_integer(item) || json_integer_value(item) != 1)
            ROW_FAIL(reader, "\"%s\"[%zu] is not 1: write rows without padding", key, i);
    }
    return STATUS_OK;
}

static enum status part_read(struct jsonl_reader *reader, const struct form_rule *rule, size_t i,
                             const json_t *object, struct datarow *row) {
    const struct key_rule *key = &rule->key[i];
    const json_t *value = json_object_get(object, key->key);
    struct datarow_part *part = &row->part[rule->first + i];
    if (key->type == PART_TEXT)
        TRY(text_read(reader, key->key, value, part));
    else
        TRY(ids_read(reader, key, value, part));
    if (part->length == 0 && !key->may_be_empty) ROW_FAIL(reader, "\"%s\" is empty", key->key);
    if (key->type == PART_LABELS)
        TRY(labels_check(reader, key, &row->part[i], &rule->key[i - 1], &row->part[i - 1]));
    if (key->type == PART_MASK) TRY(mask_fold(reader, rule, i, row));
    return STATUS_OK;
}

static int row_is_chat(const struct form_rule *rule, const json_t *object) {
    for (size_t i = 0; i < rule->keys; i++) {
        enum part_type type = rule->key[i].type;
        const json_t *value = json_object_get(object, rule->key[i].key);
        if (type == PART_CHAT || (type == PART_TEXT && json_is_array(value))) return 1;
    }
    return 0;
}

static enum status parts_read(struct jsonl_reader *reader, const struct form_rule *rule,
                              const json_t *object, struct datarow *row) {
    const int chat = row_is_chat(rule, object);
    if (reader->rule != NULL && chat != reader->chat)
        ROW_FAIL(reader, "a row of %s in a file whose line %zu has %s", chat ? "messages" : "text",
                 reader->table->row[0].line, chat ? "text" : "messages");
    reader->chat = chat;
    if (chat) return jsonl_chat_read(reader, rule, object, row);
    for (size_t i = 0; i < rule->keys; i++)
        TRY(part_read(reader, rule, i, object, row));
    return rule->first == 1 ? jsonl_prompt_split(reader, row) : STATUS_OK;
}

/* Checks the attention masks that the row has. They count as keys that are known. */
static enum status wholes_read(struct jsonl_reader *reader, const struct form_rule *rule,
                               const json_t *object, const struct datarow *row, size_t *out_known) {
    *out_known = rule->keys;
    for (size_t i = 0; i < 2; i++) {
        const json_t *value =
            rule->whole[i] == NULL ? NULL : json_object_get(object, rule->whole[i]);
        if (value == NULL) continue;
        TRY(whole_check(reader, rule->whole[i], value, &rule->key[2 * i], &row->part[2 * i]));
        ++*out_known;
    }
    return STATUS_OK;
}

/* Reads the reference's log-probs. They are at most 0, being sums of logarithms of probabilities;
 * NaN is refused by the same test. */
static enum status reference_read(struct jsonl_reader *reader, const json_t *object,
                                  struct datarow *row) {
    for (size_t i = 0; i < JSONL_REFERENCES; i++) {
        const char *key = jsonl_reference_keys[i];
        const json_t *value = json_object_get(object, key);
        if (value == NULL)
            ROW_FAIL(reader, "key \"%s\" is missing; dpo.reference given reads it in every row",
                     key);
        if (!json_is_number(value))
            ROW_FAIL(reader, "\"%s\": expected a number, got %s", key, jsonl_kind(value));
        row->reference[i] = json_number_value(value);
        if (!(row->reference[i] <= 0))
            ROW_FAIL(reader, "\"%s\": expected a log-probability of at most 0, got %g", key,
                     row->reference[i]);
    }
    return STATUS_OK;
}

static int key_known(const struct jsonl_reader *reader, const struct form_rule *rule,
                     const char *key) {
    if (jsonl_rule_has(rule, key)) return 1;
    for (size_t i = 0; i < 2; i++) {
        if (rule->whole[i] != NULL && strcmp(key, rule->whole[i]) == 0) return 1;
        if (reader->options.reference && strcmp(key, jsonl_reference_keys[i]) == 0) return 1;
    }
    return 0;
}

static enum status extras_count(struct jsonl_reader *reader, const struct form_rule *rule,
                                size_t known, const json_t *object) {
    size_t extra = json_object_size(object) - known;
    if (extra == 0) return STATUS_OK;
    reader->table->extra_keys += extra;
    if (reader->table->extra_first != NULL) return STATUS_OK;
    for (void *iter = json_object_iter((json_t *)object); iter != NULL;
         iter = json_object_iter_next((json_t *)object, iter)) {
        const char *key = json_object_iter_key(iter);
        if (key_known(reader, rule, key)) continue;
        char *copy;
        TRY(arena_text(reader->arena, key, strlen(key), &copy));
        reader->table->extra_first = copy;
        return STATUS_OK;
    }
    return STATUS_OK;
}

enum status jsonl_row_read(struct jsonl_reader *reader, const json_t *object) {
    const struct form_rule *rule = NULL;
    size_t known;
    if (!json_is_object(object))
        ROW_FAIL(reader, "expected an object {...}, got %s", jsonl_kind(object));
    TRY(jsonl_form_find(reader, object, &rule));
    struct datarow *row = &reader->table->row[reader->table->rows];
    row->line = reader->line;
    TRY(parts_read(reader, rule, object, row));
    TRY(wholes_read(reader, rule, object, row, &known));
    if (reader->options.reference) {
        TRY(reference_read(reader, object, row));
        known += JSONL_REFERENCES;
    }
    TRY(extras_count(reader, rule, known, object));
    reader->rule = rule;
    reader->table->form = reader->chat && reader->options.task == TASK_DPO ? DATAROW_PAIR_LABELLED
                          : reader->chat                                   ? DATAROW_LABELLED_IDS
                                                                           : rule->form;
    reader->table->bytes = reader->chat;
    reader->table->rows++;
    return STATUS_OK;
}

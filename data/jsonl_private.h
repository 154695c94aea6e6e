/* SPDX-License-Identifier: Apache-2.0
 * What the parts of the JSONL reader share: its state, and the forms a row may have. jsonl.c cuts
 * lines, jsonl_forms.c says which form a row has, jsonl_row.c takes its values.
 * Invariant: an error of a row reads `file:line: reason`. */
#ifndef TWINSTEP_DATA_JSONL_PRIVATE_H
#define TWINSTEP_DATA_JSONL_PRIVATE_H

#include <jansson.h>
#include <stdbool.h>

#include "data/jsonl.h"

enum part_type {
    PART_TEXT, /* a string, or a list of messages */
    PART_CHAT, /* a list of messages */
    PART_IDS,
    PART_LABELS, /* the ids of the part before, or -100 */
    PART_MASK    /* 1 where the ids of the first part are labelled, else 0 */
};

struct key_rule {
    const char *key;
    enum part_type type;
    bool may_be_empty;
};

struct form_rule {
    enum task task;
    enum datarow_form form;
    size_t keys, first; /* key i is part first + i */
    struct key_rule key[DATAROW_PARTS];
    const char *names;    /* as errors print them */
    const char *whole[2]; /* optional: an attention mask of all ones, of the first ids, of the
                             second */
};

struct jsonl_reader {
    const char *source;
    size_t line;
    struct jsonl_options options;
    struct arena *arena;
    struct datarow_table *table;
    const struct form_rule *rule; /* of the first row */
    bool chat;                    /* its values are lists of messages */
    size_t capacity;              /* bytes of the source: bounds both pools */
    char *text;
    size_t text_used;
    int32_t *ids; /* NULL until the first row of ids */
    size_t ids_used;
};

#define JSONL_REFERENCES 2
extern const char *const jsonl_reference_keys[JSONL_REFERENCES]; /* chosen, rejected */

#define ROW_FAIL(reader, ...) return jsonl_row_fail((reader), __VA_ARGS__)

/* STATUS_INPUT with "file:line: " and the reason. */
TWINSTEP_MUST_USE enum status jsonl_row_fail(const struct jsonl_reader *reader, const char *format,
                                             ...) TWINSTEP_PRINTF(2, 3);

/* "an array", for error texts. */
const char *jsonl_kind(const json_t *value);

/* The only form whose keys the row has. Of forms whose keys include another's, the longer one. */
TWINSTEP_MUST_USE enum status jsonl_form_find(const struct jsonl_reader *reader,
                                              const json_t *object, const struct form_rule **out);

/* The task of the first form that the row has, or of the one it has most keys of; TASK_DPO when it
 * has none. */
enum task jsonl_form_task(const json_t *object);

/* jsonl_chat.c: a row of conversations, rendered to ids and labels. */
TWINSTEP_MUST_USE enum status jsonl_chat_read(struct jsonl_reader *reader,
                                              const struct form_rule *rule, const json_t *object,
                                              struct datarow *row);

/* The prompt of a row that has none: what chosen and rejected begin with alike. */
TWINSTEP_MUST_USE enum status jsonl_prompt_split(const struct jsonl_reader *reader,
                                                 struct datarow *row);

/* Appends one row to the table. */
TWINSTEP_MUST_USE enum status jsonl_row_read(struct jsonl_reader *reader, const json_t *object);

#endif

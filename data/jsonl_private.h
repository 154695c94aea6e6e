/* SPDX-License-Identifier: Apache-2.0
 * What the parts of the JSONL reader share: its state, and the forms that a row may have. jsonl.c
 * cuts the file into lines, jsonl_forms.c says which form a row has, jsonl_row.c reads its values,
 * jsonl_chat.c its conversations.
 *
 * Invariant: an error about a row reads `file:line: reason`. */
#ifndef TWINSTEP_DATA_JSONL_PRIVATE_H
#define TWINSTEP_DATA_JSONL_PRIVATE_H

#include <jansson.h>

#include "data/jsonl.h"

enum part_type {
    PART_TEXT, /* a string; or a list of messages, in rows of conversations */
    PART_CHAT, /* a list of messages */
    PART_IDS,
    PART_LABELS, /* the ids of the part before it, or -100 where there is no loss */
    PART_MASK    /* 1 where the id of the first part is labelled, else 0 */
};

struct key_rule {
    const char *key;
    enum part_type type;
    int may_be_empty;
};

struct form_rule {
    enum task task;
    enum datarow_form form;
    size_t keys, first; /* key i is read into part first + i */
    struct key_rule key[DATAROW_PARTS];
    const char *names; /* the keys as errors print them */
    /* names of optional attention masks, which must be all ones: one for the first ids, one for the
     * second */
    const char *whole[2];
};

struct jsonl_reader {
    const char *source;
    size_t line;
    struct jsonl_options options;
    struct arena *arena;
    struct datarow_table *table;
    /* the form of the first row, which all others must have; NULL before it */
    const struct form_rule *rule;
    int chat;        /* the rows are conversations: their values are lists of messages */
    size_t capacity; /* bytes of the source, which bound the length of both pools */
    char *text;
    size_t text_used;
    int32_t *ids; /* NULL until a row of ids comes */
    size_t ids_used;
};

#define JSONL_REFERENCES 2
extern const char *const jsonl_reference_keys[JSONL_REFERENCES]; /* for chosen and for rejected */

#define ROW_FAIL(reader, ...) return jsonl_row_fail((reader), __VA_ARGS__)

/* Fails with STATUS_INPUT and the text "file:line: " and the reason. */
TWINSTEP_MUST_USE enum status jsonl_row_fail(const struct jsonl_reader *reader, const char *format,
                                             ...) TWINSTEP_PRINTF(2, 3);

/* The type of a value in words, such as "an array", for errors. */
const char *jsonl_kind(const json_t *value);

/* Finds the form whose keys the row has. Where one form's keys include another's, the longer form
 * is meant; where a row has two forms that do not, it is refused. */
TWINSTEP_MUST_USE enum status jsonl_form_find(const struct jsonl_reader *reader,
                                              const json_t *object, const struct form_rule **out);

/* The task of the first form that the row has in full, or else of the one of which it has the most
 * keys; TASK_DPO where it has none. */
enum task jsonl_form_task(const json_t *object);

/* Whether the form has the key. */
int jsonl_rule_has(const struct form_rule *rule, const char *key);

/* jsonl_chat.c: reads a row of conversations and renders it to ids and labels. */
TWINSTEP_MUST_USE enum status jsonl_chat_read(struct jsonl_reader *reader,
                                              const struct form_rule *rule, const json_t *object,
                                              struct datarow *row);

/* Gives a prompt to a pair of texts that names none: what chosen and rejected both begin with. */
TWINSTEP_MUST_USE enum status jsonl_prompt_split(const struct jsonl_reader *reader,
                                                 struct datarow *row);

/* Reads one object and appends it to the table as a row. */
TWINSTEP_MUST_USE enum status jsonl_row_read(struct jsonl_reader *reader, const json_t *object);

#endif

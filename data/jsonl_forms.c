/* SPDX-License-Identifier: Apache-2.0
 * The forms that a row of JSONL may have, by the names of TRL 1.16 (DataCollatorForPreference,
 * SFTTrainer) and of open-instruct (dataset_transformation.py), and which of them a row has.
 * Nothing is guessed: a row with the keys of two forms, or of none, is an error that names them. */
#include "data/jsonl_private.h"

#include <stdio.h>
#include <string.h>

#include "base/macro.h"

/* A key whose value may not be empty, and one whose value may. */
#define KEY(name, part)                                                                            \
    { name, part, 0 }
#define OPEN_KEY(name, part)                                                                       \
    { name, part, 1 }

/* Task, form, the names of the keys, how many they are, and the keys. */
#define FORM(task_of, form_of, list, count, ...)                                                   \
    .task = (task_of), .form = (form_of), .names = (list), .keys = (count), .key = {__VA_ARGS__}

static const struct form_rule form_rules[] = {
    {FORM(TASK_DPO, DATAROW_PAIR_TEXT, "prompt, chosen, rejected", 3, OPEN_KEY("prompt", PART_TEXT),
          KEY("chosen", PART_TEXT), KEY("rejected", PART_TEXT))},
    {FORM(TASK_DPO, DATAROW_PAIR_TEXT, "chosen, rejected", 2, KEY("chosen", PART_TEXT),
          KEY("rejected", PART_TEXT)),
     .first = 1},
    {FORM(TASK_DPO, DATAROW_PAIR_IDS, "prompt_ids, chosen_ids, rejected_ids", 3,
          OPEN_KEY("prompt_ids", PART_IDS), KEY("chosen_ids", PART_IDS),
          KEY("rejected_ids", PART_IDS))},
    {FORM(TASK_DPO, DATAROW_PAIR_LABELLED,
          "chosen_input_ids, chosen_labels, rejected_input_ids, rejected_labels", 4,
          KEY("chosen_input_ids", PART_IDS), KEY("chosen_labels", PART_LABELS),
          KEY("rejected_input_ids", PART_IDS), KEY("rejected_labels", PART_LABELS)),
     .whole = {"chosen_attention_mask", "rejected_attention_mask"}},
    {FORM(TASK_SFT, DATAROW_COMPLETION_TEXT, "prompt, completion", 2, OPEN_KEY("prompt", PART_TEXT),
          KEY("completion", PART_TEXT))},
    {FORM(TASK_SFT, DATAROW_PLAIN_TEXT, "text", 1, KEY("text", PART_TEXT))},
    {FORM(TASK_SFT, DATAROW_LABELLED_IDS, "messages", 1, KEY("messages", PART_CHAT))},
    {FORM(TASK_SFT, DATAROW_LABELLED_IDS, "input_ids, labels", 2, KEY("input_ids", PART_IDS),
          KEY("labels", PART_LABELS)),
     .whole = {"attention_mask"}},
    {FORM(TASK_SFT, DATAROW_LABELLED_IDS, "input_ids, completion_mask", 2,
          KEY("input_ids", PART_IDS), KEY("completion_mask", PART_MASK)),
     .whole = {"attention_mask"}},
    {FORM(TASK_SFT, DATAROW_LABELLED_IDS, "input_ids, assistant_masks", 2,
          KEY("input_ids", PART_IDS), KEY("assistant_masks", PART_MASK)),
     .whole = {"attention_mask"}},
    {FORM(TASK_SFT, DATAROW_LABELLED_IDS, "input_ids, completion_mask, assistant_masks", 3,
          KEY("input_ids", PART_IDS), KEY("completion_mask", PART_MASK),
          KEY("assistant_masks", PART_MASK)),
     .whole = {"attention_mask"}},
    {FORM(TASK_SFT, DATAROW_COMPLETION_IDS, "prompt_ids, completion_ids", 2,
          OPEN_KEY("prompt_ids", PART_IDS), KEY("completion_ids", PART_IDS))},
};

const char *const jsonl_reference_keys[JSONL_REFERENCES] = {"ref_chosen_logps",
                                                            "ref_rejected_logps"};

static const char *task_name(enum task task) {
    return task == TASK_DPO ? "dpo" : "sft";
}

/* Counts how many of the form's keys the row has. */
static size_t form_matches(const struct form_rule *rule, const json_t *object) {
    size_t found = 0;
    for (size_t i = 0; i < rule->keys; i++)
        found += json_object_get(object, rule->key[i].key) != NULL;
    return found;
}

/* Prints the row's keys for an error; the list is cut where it gets long. */
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

/* Returns the form of the other task whose keys the row has in full, or NULL. */
static const struct form_rule *form_elsewhere(const struct jsonl_reader *reader,
                                              const json_t *object) {
    for (size_t i = 0; i < COUNT_OF(form_rules); i++)
        if (form_rules[i].task != reader->options.task &&
            form_matches(&form_rules[i], object) == form_rules[i].keys)
            return &form_rules[i];
    return NULL;
}

/* Says why the row has no form: it is one of the other task, or the nearest form lacks a key, or no
 * key is known. */
static enum status form_fail(const struct jsonl_reader *reader, const json_t *object) {
    const struct form_rule *nearest = NULL;
    const struct form_rule *other = form_elsewhere(reader, object);
    size_t best = 0;
    if (other != NULL)
        ROW_FAIL(reader, "a row of %s is for task %s, but the task is %s", other->names,
                 task_name(other->task), task_name(reader->options.task));
    for (size_t i = 0; i < COUNT_OF(form_rules); i++) {
        size_t found = form_matches(&form_rules[i], object);
        if (form_rules[i].task != reader->options.task || found <= best) continue;
        best = found;
        nearest = &form_rules[i];
    }
    for (size_t i = 0; nearest != NULL && i < nearest->keys; i++)
        if (json_object_get(object, nearest->key[i].key) == NULL)
            ROW_FAIL(reader, "key \"%s\" is missing; a row has %s%s", nearest->key[i].key,
                     nearest->names,
                     nearest->keys > 1 && nearest->form == DATAROW_LABELLED_IDS
                         ? " (or completion_mask or assistant_masks for labels)"
                         : "");
    char keys[256];
    keys_print(object, keys, sizeof keys);
    static const char pair[] =
        "prompt, chosen, rejected (or chosen, rejected, or prompt_ids, chosen_ids, rejected_ids, "
        "or chosen_input_ids, chosen_labels, rejected_input_ids, rejected_labels)";
    static const char sample[] =
        "prompt, completion (or messages, or text, or input_ids, labels, or prompt_ids, "
        "completion_ids)";
    const int is_pair = reader->options.task == TASK_DPO;
    ROW_FAIL(reader, "expected the keys %s; the row has: %s (rows of task %s have %s)",
             is_pair ? pair : sample, keys, task_name(is_pair ? TASK_SFT : TASK_DPO),
             is_pair ? sample : pair);
}

static int form_complete(const struct form_rule *rule, const struct jsonl_reader *reader,
                         const json_t *object) {
    return rule->task == reader->options.task && form_matches(rule, object) == rule->keys;
}

enum task jsonl_form_task(const json_t *object) {
    enum task nearest = TASK_DPO;
    size_t best = 0;
    for (size_t i = 0; i < COUNT_OF(form_rules); i++) {
        const size_t found = form_matches(&form_rules[i], object);
        if (found == form_rules[i].keys) return form_rules[i].task;
        if (found <= best) continue;
        best = found;
        nearest = form_rules[i].task;
    }
    return nearest;
}

int jsonl_rule_has(const struct form_rule *rule, const char *key) {
    for (size_t i = 0; i < rule->keys; i++)
        if (strcmp(rule->key[i].key, key) == 0) return 1;
    return 0;
}

static int rule_includes(const struct form_rule *rule, const struct form_rule *part) {
    for (size_t i = 0; i < part->keys; i++)
        if (!jsonl_rule_has(rule, part->key[i].key)) return 0;
    return 1;
}

enum status jsonl_form_find(const struct jsonl_reader *reader, const json_t *object,
                            const struct form_rule **out) {
    const struct form_rule *found = NULL;
    for (size_t i = 0; i < COUNT_OF(form_rules); i++)
        if (form_complete(&form_rules[i], reader, object) &&
            (found == NULL || form_rules[i].keys > found->keys))
            found = &form_rules[i];
    if (found == NULL) return form_fail(reader, object);
    for (size_t i = 0; i < COUNT_OF(form_rules); i++)
        if (form_complete(&form_rules[i], reader, object) && !rule_includes(found, &form_rules[i]))
            ROW_FAIL(reader, "the row has both %s and %s; keep one of them", found->names,
                     form_rules[i].names);
    if (reader->rule != NULL && reader->rule != found)
        ROW_FAIL(reader, "a row of %s in a file whose line %zu has %s", found->names,
                 reader->table->row[0].line, reader->rule->names);
    *out = found;
    return STATUS_OK;
}

/* SPDX-License-Identifier: Apache-2.0
 * Reads rows of conversations: lists of {"role", "content"}, as TRL has them under prompt, chosen,
 * rejected, completion and messages. Also finds prompts that a pair does not name: what both sides
 * begin with, as TRL's extract_prompt does (trl/data_utils.py). Where one side is the beginning of
 * the other TRL cuts it; here such a pair is refused. What the templates here cannot say, tool
 * calls for one, is refused and not dropped. */
#include <string.h>

#include "data/chat.h"
#include "data/jsonl_private.h"

/* One list of messages and the key that it stands under. */
struct messages {
    const char *key;
    const json_t *list;
    struct chat_message *message;
    size_t count;
};

static enum status message_read(const struct jsonl_reader *reader, const struct messages *from,
                                size_t index, const json_t *value, struct chat_message *out) {
    if (!json_is_object(value))
        ROW_FAIL(reader, "\"%s\"[%zu]: expected {\"role\", \"content\"}, got %s", from->key, index,
                 jsonl_kind(value));
    static const char *const keys[2] = {"role", "content"};
    const json_t *text[2];
    for (size_t i = 0; i < 2; i++) {
        text[i] = json_object_get(value, keys[i]);
        if (!json_is_string(text[i]))
            ROW_FAIL(reader, "\"%s\"[%zu]: \"%s\": expected a string, got %s", from->key, index,
                     keys[i], text[i] == NULL ? "nothing" : jsonl_kind(text[i]));
    }
    out->role = chat_role_find(json_string_value(text[0]));
    if (out->role == CHAT_ROLES)
        ROW_FAIL(reader, "\"%s\"[%zu]: \"role\": expected system, user or assistant, got \"%.40s\"",
                 from->key, index, json_string_value(text[0]));
    for (void *iter = json_object_iter((json_t *)value); iter != NULL;
         iter = json_object_iter_next((json_t *)value, iter)) {
        const char *key = json_object_iter_key(iter);
        if (strcmp(key, "role") != 0 && strcmp(key, "content") != 0 &&
            !json_is_null(json_object_iter_value(iter)))
            ROW_FAIL(reader,
                     "\"%s\"[%zu]: \"%.40s\": the templates here know role and content only",
                     from->key, index, key);
    }
    out->content = json_string_value(text[1]);
    out->length = json_string_length(text[1]);
    return STATUS_OK;
}

static enum status messages_read(const struct jsonl_reader *reader, const json_t *object,
                                 const char *key, struct messages *out) {
    *out = (struct messages){.key = key, .list = json_object_get(object, key)};
    if (!json_is_array(out->list))
        ROW_FAIL(reader, "\"%s\": expected a list of messages as in the row's other keys, got %s%s",
                 key, jsonl_kind(out->list),
                 strcmp(key, "prompt") == 0 && json_is_string(out->list)
                     ? "; where chosen and rejected hold the prompt, leave it out"
                     : "");
    out->count = json_array_size(out->list);
    if (out->count == 0) ROW_FAIL(reader, "\"%s\" is empty", key);
    TRY(arena_take(reader->arena, out->count, sizeof *out->message, "messages", &out->message));
    for (size_t i = 0; i < out->count; i++)
        TRY(message_read(reader, out, i, json_array_get(out->list, i), &out->message[i]));
    return STATUS_OK;
}

static int message_equal(const struct chat_message *a, const struct chat_message *b) {
    return a->role == b->role && a->length == b->length &&
           memcmp(a->content, b->content, a->length) == 0;
}

static enum status prefix_fail(const struct jsonl_reader *reader) {
    ROW_FAIL(reader, "without \"prompt\", \"chosen\" and \"rejected\" must begin alike and then "
                     "differ: one of them is the beginning of the other");
}

/* Renders a prompt and its answer, whose first `first` messages belong to the prompt. The answer
 * must begin with a turn of the assistant, because the template's generation prompt is that turn's
 * header. */
static enum status render(const struct jsonl_reader *reader, const struct messages *prompt,
                          size_t prompt_count, const struct messages *answer, size_t first,
                          struct datarow_part *out) {
    const size_t count = prompt_count + answer->count - first;
    struct chat_message *all;
    if (prompt_count == 0)
        ROW_FAIL(reader, "\"%s\": the first message differs already: there is no prompt",
                 answer->key);
    if (answer->message[first].role != CHAT_ASSISTANT)
        ROW_FAIL(reader, "\"%s\"[%zu]: \"role\": a completion begins with the assistant",
                 answer->key, first);
    TRY(arena_take(reader->arena, count, sizeof *all, "messages", &all));
    memcpy(all, prompt->message, prompt_count * sizeof *all);
    memcpy(all + prompt_count, answer->message + first, (count - prompt_count) * sizeof *all);
    return chat_render(reader->options.chat, all, count, prompt_count, reader->arena, &out[0],
                       &out[1]);
}

/* Reads lists of a row that names no prompt: the first messages that both share are it. */
static enum status read_implicit(const struct jsonl_reader *reader, const json_t *object,
                                 struct datarow *row) {
    struct messages side[2];
    TRY(messages_read(reader, object, "chosen", &side[0]));
    TRY(messages_read(reader, object, "rejected", &side[1]));
    const size_t shorter = side[0].count < side[1].count ? side[0].count : side[1].count;
    size_t same = 0;
    while (same < shorter && message_equal(&side[0].message[same], &side[1].message[same]))
        same++;
    if (same == shorter) return prefix_fail(reader);
    for (size_t i = 0; i < 2; i++)
        TRY(render(reader, &side[0], same, &side[i], same, &row->part[2 * i]));
    return STATUS_OK;
}

/* Reads rows of prompt and completion, or of prompt, chosen and rejected. */
static enum status read_prompted(const struct jsonl_reader *reader, const struct form_rule *rule,
                                 const json_t *object, struct datarow *row) {
    struct messages prompt;
    TRY(messages_read(reader, object, rule->key[0].key, &prompt));
    for (size_t i = 1; i < rule->keys; i++) {
        struct messages answer;
        TRY(messages_read(reader, object, rule->key[i].key, &answer));
        TRY(render(reader, &prompt, prompt.count, &answer, 0, &row->part[2 * (i - 1)]));
    }
    return STATUS_OK;
}

static enum status read_turns(const struct jsonl_reader *reader, const struct form_rule *rule,
                              const json_t *object, struct datarow *row) {
    struct messages all;
    TRY(messages_read(reader, object, rule->key[0].key, &all));
    for (size_t i = 0; i < all.count; i++)
        if (all.message[i].role == CHAT_ASSISTANT)
            return chat_render(reader->options.chat, all.message, all.count, CHAT_EVERY_TURN,
                               reader->arena, &row->part[0], &row->part[1]);
    ROW_FAIL(reader, "\"%s\": no message is the assistant's: nothing has a loss", all.key);
}

enum status jsonl_chat_read(struct jsonl_reader *reader, const struct form_rule *rule,
                            const json_t *object, struct datarow *row) {
    if (rule->keys == 1 && rule->key[0].type == PART_TEXT)
        ROW_FAIL(reader,
                 "\"%s\": expected a string, got an array (a list of messages has the key "
                 "messages)",
                 rule->key[0].key);
    if (reader->options.chat == CHAT_NONE)
        ROW_FAIL(reader, "messages need a chat template: data.template plain, chatml, llama3 or "
                         "olmo (another one: docs/DATA.md, pretokenise.py)");
    if (rule->first == 1) return read_implicit(reader, object, row);
    if (rule->keys == 1) return read_turns(reader, rule, object, row);
    return read_prompted(reader, rule, object, row);
}

/* Returns how many bytes both begin with. The end is moved back to the start of a UTF-8 character,
 * and before a space, which goes to the completions as in TRL: tokenizers join a space to the word
 * behind it. */
static size_t common_prefix(const struct datarow_part *a, const struct datarow_part *b) {
    const size_t shorter = a->length < b->length ? a->length : b->length;
    size_t same = 0;
    while (same < shorter && a->text[same] == b->text[same])
        same++;
    if (same == shorter) return same;
    while (same > 0 && ((unsigned char)a->text[same] & 0xC0) == 0x80)
        same--;
    return same > 0 && a->text[same - 1] == ' ' ? same - 1 : same;
}

enum status jsonl_prompt_split(const struct jsonl_reader *reader, struct datarow *row) {
    struct datarow_part *part = row->part;
    const size_t same = common_prefix(&part[1], &part[2]);
    if (same == part[1].length || same == part[2].length) return prefix_fail(reader);
    part[0] = (struct datarow_part){part[1].text, NULL, same};
    for (size_t i = 1; i <= 2; i++)
        part[i] = (struct datarow_part){part[i].text + same, NULL, part[i].length - same};
    return STATUS_OK;
}

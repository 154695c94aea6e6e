/* SPDX-License-Identifier: Apache-2.0
 * The chat templates as a table, and the one loop that writes them. A conversation is written
 * twice: first to nowhere, which measures it, then into memory of that size.
 *
 * Invariant: a label is the token at its place, or -100. */
#include "data/chat.h"

#include <string.h>

#include "base/macro.h"
#include "data/tokenizer.h"

/* What a template writes around contents; NULL writes nothing. */
struct chat_rule {
    const char *begin;         /* once, before the first message */
    const char *gap;           /* between messages */
    const char *open, *opened; /* stand around the role's name; NULL: messages have no header */
    const char *close, *close_assistant;
    const char *gap_assistant; /* stands behind a turn of the assistant that is not the last */
    int strip;                 /* white space around a content is removed */
    int specials;              /* <bos> stands before and <eos> behind the whole */
};

static const struct chat_rule rules[CHATS] = {
    [CHAT_PLAIN] = {.gap = "\n", .specials = 1},
    [CHAT_CHATML] = {.open = "<|im_start|>",
                     .opened = "\n",
                     .close = "<|im_end|>\n",
                     .close_assistant = "<|im_end|>\n"},
    [CHAT_LLAMA3] = {.begin = "<|begin_of_text|>",
                     .open = "<|start_header_id|>",
                     .opened = "<|end_header_id|>\n\n",
                     .close = "<|eot_id|>",
                     .close_assistant = "<|eot_id|>",
                     .strip = 1},
    [CHAT_OLMO] = {.begin = "<|endoftext|>",
                   .open = "<|",
                   .opened = "|>\n",
                   .close = "\n",
                   .close_assistant = "<|endoftext|>",
                   .gap_assistant = "\n"},
};

static const char *const role_names[CHAT_ROLES] = {"system", "user", "assistant"};

struct writer {
    int32_t *ids, *labels; /* NULL: nothing is written, the length is measured */
    size_t length;
};

static void put_token(struct writer *writer, uint32_t token, int labelled) {
    if (writer->ids != NULL) {
        writer->ids[writer->length] = (int32_t)token;
        writer->labels[writer->length] = labelled ? (int32_t)token : DATAROW_MASKED;
    }
    writer->length++;
}

static void put(struct writer *writer, const char *text, size_t length, int labelled) {
    for (size_t i = 0; i < length; i++)
        put_token(writer, (unsigned char)text[i], labelled);
}

static void put_text(struct writer *writer, const char *text, int labelled) {
    if (text != NULL) put(writer, text, strlen(text), labelled);
}

/* Returns how many bytes the character at text[0] has if it is white space, or 0. White space is
 * what Python's str.strip() removes, because Jinja's trim filter calls it; `length` bytes of UTF-8
 * may be read. */
static size_t space_at(const char *text, size_t length) {
    static const char *const wide[] = {
        "\xC2\x85",     "\xC2\xA0",     "\xE1\x9A\x80", "\xE2\x80\x80", "\xE2\x80\x81",
        "\xE2\x80\x82", "\xE2\x80\x83", "\xE2\x80\x84", "\xE2\x80\x85", "\xE2\x80\x86",
        "\xE2\x80\x87", "\xE2\x80\x88", "\xE2\x80\x89", "\xE2\x80\x8A", "\xE2\x80\xA8",
        "\xE2\x80\xA9", "\xE2\x80\xAF", "\xE2\x81\x9F", "\xE3\x80\x80"};
    const unsigned char byte = length > 0 ? (unsigned char)text[0] : 0;
    if (byte == ' ' || (byte >= 0x09 && byte <= 0x0D) || (byte >= 0x1C && byte <= 0x1F)) return 1;
    for (size_t i = 0; byte >= 0xC2 && i < COUNT_OF(wide); i++)
        if (strlen(wide[i]) <= length && memcmp(text, wide[i], strlen(wide[i])) == 0)
            return strlen(wide[i]);
    return 0;
}

static void strip(const char **text, size_t *length) {
    size_t size;
    while ((size = space_at(*text, *length)) > 0) {
        *text += size;
        *length -= size;
    }
    /* From the end a character is found by trying its lengths: white space has 1 to 3 bytes. */
    for (int cut = 1; cut;) {
        cut = 0;
        for (size = 1; size <= 3 && size <= *length && !cut; size++)
            cut = space_at(*text + *length - size, size) == size;
        if (cut) *length -= size - 1;
    }
}

static void put_turn(struct writer *writer, const struct chat_rule *rule,
                     const struct chat_message *message, int header, int body) {
    const char *content = message->content;
    size_t length = message->length;
    if (rule->strip) strip(&content, &length);
    if (rule->open != NULL) {
        put_text(writer, rule->open, header);
        put_text(writer, role_names[message->role], header);
        put_text(writer, rule->opened, header);
    }
    put(writer, content, length, body);
    put_text(writer, message->role == CHAT_ASSISTANT ? rule->close_assistant : rule->close, body);
}

static void put_all(struct writer *writer, const struct chat_rule *rule,
                    const struct chat_message *message, size_t count, size_t completion) {
    const int every = completion == CHAT_EVERY_TURN;
    if (rule->specials) put_token(writer, TOKENIZER_BOS, 0);
    put_text(writer, rule->begin, 0);
    for (size_t i = 0; i < count; i++) {
        const int assistant = message[i].role == CHAT_ASSISTANT;
        const int inside = !every && i > completion;
        const int body = every ? assistant : i >= completion;
        if (i > 0) put_text(writer, rule->gap, inside);
        put_turn(writer, rule, &message[i], inside, body);
        if (assistant && i + 1 < count)
            put_text(writer, rule->gap_assistant, !every && i >= completion);
        if (rule->specials && i + 1 == count) put_token(writer, TOKENIZER_EOS, body);
    }
}

enum status chat_render(enum chat chat, const struct chat_message *message, size_t count,
                        size_t completion, struct arena *arena, struct datarow_part *out_ids,
                        struct datarow_part *out_labels) {
    const struct chat_rule *rule = &rules[chat];
    struct writer writer = {NULL, NULL, 0};
    put_all(&writer, rule, message, count, completion);
    TRY(arena_take(arena, writer.length, sizeof *writer.ids, "conversation", &writer.ids));
    TRY(arena_take(arena, writer.length, sizeof *writer.labels, "conversation", &writer.labels));
    writer.length = 0;
    put_all(&writer, rule, message, count, completion);
    *out_ids = (struct datarow_part){NULL, writer.ids, writer.length};
    *out_labels = (struct datarow_part){NULL, writer.labels, writer.length};
    return STATUS_OK;
}

/* Rendering puts ids and labels where the texts stood, so the texts' places are copied first. */
static enum status row_render(enum chat chat, size_t sides, struct arena *arena,
                              struct datarow *row) {
    const struct datarow_part prompt = row->part[0];
    const struct datarow_part answer[2] = {row->part[1], row->part[2]};
    for (size_t side = 0; side < sides; side++) {
        const struct chat_message message[2] = {
            {CHAT_USER, prompt.text, prompt.length},
            {CHAT_ASSISTANT, answer[side].text, answer[side].length}};
        TRY(chat_render(chat, message, 2, 1, arena, &row->part[2 * side],
                        &row->part[2 * side + 1]));
    }
    return STATUS_OK;
}

enum status chat_rows(enum chat chat, struct arena *arena, struct datarow_table *table) {
    if (chat == CHAT_NONE) return STATUS_OK;
    if (table->form != DATAROW_PAIR_TEXT && table->form != DATAROW_COMPLETION_TEXT)
        FAIL(STATUS_INPUT,
             "%s: data.template: a template goes around prompts and completions; rows of %s have "
             "no roles: expected none",
             table->source, table->form == DATAROW_PLAIN_TEXT ? "text" : "ids");
    const size_t sides = table->form == DATAROW_PAIR_TEXT ? 2 : 1;
    for (size_t row = 0; row < table->rows; row++)
        TRY(row_render(chat, sides, arena, &table->row[row]));
    table->form = sides == 2 ? DATAROW_PAIR_LABELLED : DATAROW_LABELLED_IDS;
    table->bytes = 1;
    return STATUS_OK;
}

enum chat_role chat_role_find(const char *name) {
    int role = 0;
    while (role < CHAT_ROLES && strcmp(role_names[role], name) != 0)
        role++;
    return (enum chat_role)role;
}

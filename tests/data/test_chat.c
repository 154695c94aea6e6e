/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Chat templates: every conversation of tests/golden/chat/rendered.jsonl, whose text and labelled
 * spans are those of transformers (chat_golden.py), byte by byte; rows of JSONL in every form of
 * conversation; text rows under a template; and every refusal. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "data/chat.h"
#include "data/jsonl.h"
#include "data/tokenizer.h"
#include "tests/data/helper_data.h"

#define MESSAGES_MAX 8
#define TEXT_SIZE 4096

static const char *const names[CHATS] = {"none", "plain", "chatml", "llama3", "olmo"};

static enum chat chat_of(const char *name) {
    for (int chat = 0; chat < CHATS; chat++)
        if (strcmp(names[chat], name) == 0) return (enum chat)chat;
    fail_msg("no template %s", name);
    return CHAT_NONE;
}

static size_t messages_of(const json_t *list, struct chat_message *out) {
    const size_t count = json_array_size(list);
    assert_true(count <= MESSAGES_MAX);
    for (size_t i = 0; i < count; i++) {
        const json_t *item = json_array_get(list, i);
        const json_t *content = json_object_get(item, "content");
        out[i].role = chat_role_find(json_string_value(json_object_get(item, "role")));
        assert_int_not_equal(out[i].role, CHAT_ROLES);
        out[i].content = json_string_value(content);
        out[i].length = json_string_length(content);
    }
    return count;
}

/* Spells ids as text. <bos> is left out and <eos> is spelled, as in the golden file. */
static void text_of(const struct datarow_part *ids, char out[TEXT_SIZE]) {
    size_t used = 0;
    for (size_t i = 0; i < ids->length; i++) {
        assert_true(used + 8 < TEXT_SIZE);
        if (ids->ids[i] == (int32_t)TOKENIZER_EOS)
            used += (size_t)snprintf(out + used, TEXT_SIZE - used, "<eos>");
        else if (ids->ids[i] < 256)
            out[used++] = (char)(unsigned char)ids->ids[i];
        else
            assert_int_equal(ids->ids[i], TOKENIZER_BOS);
    }
    out[used] = '\0';
}

static int in_spans(const json_t *spans, size_t at) {
    for (size_t i = 0; i < json_array_size(spans); i++) {
        const json_t *span = json_array_get(spans, i);
        if ((json_int_t)at >= json_integer_value(json_array_get(span, 0)) &&
            (json_int_t)at < json_integer_value(json_array_get(span, 1)))
            return 1;
    }
    return 0;
}

static void expect_rendered(const json_t *row) {
    struct chat_message message[MESSAGES_MAX];
    struct datarow_part ids;
    struct datarow_part labels;
    struct arena arena = ARENA_EMPTY;
    char text[TEXT_SIZE];
    const enum chat chat = chat_of(json_string_value(json_object_get(row, "template")));
    const size_t count = messages_of(json_object_get(row, "messages"), message);
    const json_int_t completion = json_integer_value(json_object_get(row, "completion"));
    const json_t *spans = json_object_get(row, "spans");
    assert_int_equal(chat_render(chat, message, count,
                                 completion < 0 ? CHAT_EVERY_TURN : (size_t)completion, &arena,
                                 &ids, &labels),
                     STATUS_OK);
    assert_int_equal(ids.length, labels.length);
    text_of(&ids, text);
    assert_string_equal(text, json_string_value(json_object_get(row, "text")));
    assert_int_equal(spans == NULL, chat == CHAT_PLAIN);
    for (size_t i = 0; spans != NULL && i < labels.length; i++)
        if (labels.ids[i] != (in_spans(spans, i) ? ids.ids[i] : DATAROW_MASKED))
            fail_msg("%s: label %zu is %d", text, i, labels.ids[i]);
    arena_close(&arena);
}

static void corroborate_transformers(void **state) {
    (void)state;
    FILE *file = fopen(TWINSTEP_SOURCE_DIR "/tests/golden/chat/rendered.jsonl", "rb");
    char line[TEXT_SIZE];
    int rows = 0;
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        json_t *row = json_loads(line, 0, NULL);
        assert_non_null(row);
        expect_rendered(row);
        json_decref(row);
        rows++;
    }
    fclose(file);
    assert_int_equal(rows, 40);
}

/* Reads one row and prints its text, with labelled parts in brackets and sides separated by " |
 * ". */
static enum status row_text(enum task task, enum chat chat, const char *json, char out[TEXT_SIZE]) {
    const struct jsonl_options options = {task, TOKENIZER_VOCAB, 0, chat};
    struct arena arena = ARENA_EMPTY;
    struct datarow_table table;
    size_t used = 0;
    enum status status = jsonl_parse("x.jsonl", json, strlen(json), &options, &arena, &table);
    out[0] = '\0';
    if (status == STATUS_OK) {
        assert_int_equal(table.bytes, 1);
        assert_int_equal(table.form,
                         task == TASK_DPO ? DATAROW_PAIR_LABELLED : DATAROW_LABELLED_IDS);
    }
    for (size_t side = 0; status == STATUS_OK && side < (task == TASK_DPO ? 2 : 1); side++) {
        const struct datarow_part *part = &table.row[0].part[2 * side];
        int before = 0;
        if (side == 1) used += (size_t)snprintf(out + used, TEXT_SIZE - used, " | ");
        for (size_t i = 0; i <= part[0].length; i++) {
            const int now = i < part[0].length && part[1].ids[i] != DATAROW_MASKED;
            char shown[TOKENIZER_SHOW] = "";
            if (i < part[0].length) tokenizer_show((uint32_t)part[0].ids[i], shown);
            used += (size_t)snprintf(out + used, TEXT_SIZE - used, "%s%s",
                                     now == before ? ""
                                     : now         ? "["
                                                   : "]",
                                     shown);
            before = now;
        }
    }
    arena_close(&arena);
    return status;
}

#define ASK "{\"role\": \"user\", \"content\": \"Q\"}"
#define SAY(text) "{\"role\": \"assistant\", \"content\": \"" text "\"}"

static void validate_rows(void **state) {
    (void)state;
    static const struct {
        enum task task;
        enum chat chat;
        const char *json, *text;
    } cases[] = {
        {TASK_DPO, CHAT_OLMO,
         "{\"prompt\": [" ASK "], \"chosen\": [" SAY("a") "], \"rejected\": [" SAY("b") "]}",
         "<|endoftext|><|user|>\\nQ\\n<|assistant|>\\n[a<|endoftext|>] | "
         "<|endoftext|><|user|>\\nQ\\n<|assistant|>\\n[b<|endoftext|>]"},
        {TASK_DPO, CHAT_CHATML,
         "{\"chosen\": [" ASK ", " SAY("a") "], \"rejected\": [" ASK ", " SAY("b") "]}",
         "<|im_start|>user\\nQ<|im_end|>\\n<|im_start|>assistant\\n[a<|im_end|>\\n] | "
         "<|im_start|>user\\nQ<|im_end|>\\n<|im_start|>assistant\\n[b<|im_end|>\\n]"},
        /* a completion of several turns is labelled as a whole, as TRL does */
        {TASK_DPO, CHAT_OLMO,
         "{\"prompt\": [" ASK
         "], \"chosen\": [" SAY("a") ", " ASK ", " SAY("c") "], "
                                                            "\"rejected\": [" SAY("b") "]}",
         "<|endoftext|><|user|>\\nQ\\n<|assistant|>\\n[a<|endoftext|>\\n<|user|>\\nQ\\n<|assistant|"
         ">"
         "\\nc<|endoftext|>] | <|endoftext|><|user|>\\nQ\\n<|assistant|>\\n[b<|endoftext|>]"},
        {TASK_SFT, CHAT_PLAIN, "{\"messages\": [" ASK ", " SAY("a") ", " ASK ", " SAY("b") "]}",
         "<bos>Q\\n[a]\\nQ\\n[b<eos>]"},
        {TASK_SFT, CHAT_PLAIN, "{\"messages\": [" SAY("a") ", " ASK "]}", "<bos>[a]\\nQ<eos>"},
        {TASK_SFT, CHAT_LLAMA3,
         "{\"prompt\": [" ASK "], \"completion\": [{\"content\": \" a\", \"role\": \"assistant\", "
         "\"tool_calls\": null}], \"id\": 1}",
         "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\\n\\nQ<|eot_id|>"
         "<|start_header_id|>assistant<|end_header_id|>\\n\\n[a<|eot_id|>]"},
        {TASK_SFT, CHAT_PLAIN, "{\"prompt\": \"Q\", \"completion\": \"a\"}", "<bos>Q\\n[a<eos>]"},
        {TASK_DPO, CHAT_CHATML, "{\"prompt\": \"\", \"chosen\": \"a\", \"rejected\": \"b\"}",
         "<|im_start|>user\\n<|im_end|>\\n<|im_start|>assistant\\n[a<|im_end|>\\n] | "
         "<|im_start|>user\\n<|im_end|>\\n<|im_start|>assistant\\n[b<|im_end|>\\n]"},
        {TASK_DPO, CHAT_PLAIN, "{\"chosen\": \"Q: yes\", \"rejected\": \"Q: no\"}",
         "<bos>Q:\\n[ yes<eos>] | <bos>Q:\\n[ no<eos>]"},
        {TASK_DPO, CHAT_PLAIN, "{\"chosen\": \"x\\u00e9\", \"rejected\": \"x\\u00e8\"}",
         "<bos>x\\n[\\xC3\\xA9<eos>] | <bos>x\\n[\\xC3\\xA8<eos>]"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char text[TEXT_SIZE];
        if (row_text(cases[i].task, cases[i].chat, cases[i].json, text) != STATUS_OK)
            fail_msg("case %zu: %s", i, status_text());
        assert_string_equal(text, cases[i].text);
    }
}

static void validate_refused(void **state) {
    (void)state;
    static const struct {
        enum task task;
        enum chat chat;
        const char *json, *error;
    } cases[] = {
        {TASK_SFT, CHAT_NONE, "{\"messages\": [" SAY("a") "]}",
         "x.jsonl:1: messages need a chat template: data.template plain, chatml, llama3 or olmo "
         "(another one: docs/DATA.md, pretokenise.py)"},
        {TASK_SFT, CHAT_OLMO, "{\"messages\": []}", "x.jsonl:1: \"messages\" is empty"},
        {TASK_SFT, CHAT_OLMO, "{\"messages\": \"Q\"}",
         "x.jsonl:1: \"messages\": expected a list of messages as in the row's other keys, got a "
         "string"},
        {TASK_SFT, CHAT_OLMO, "{\"messages\": [" ASK "]}",
         "x.jsonl:1: \"messages\": no message is the assistant's: nothing has a loss"},
        {TASK_SFT, CHAT_OLMO, "{\"messages\": [1]}",
         "x.jsonl:1: \"messages\"[0]: expected {\"role\", \"content\"}, got an integer"},
        {TASK_SFT, CHAT_OLMO, "{\"messages\": [{\"content\": \"a\"}]}",
         "x.jsonl:1: \"messages\"[0]: \"role\": expected a string, got nothing"},
        {TASK_SFT, CHAT_OLMO, "{\"messages\": [" ASK ", {\"role\": \"tool\", \"content\": \"a\"}]}",
         "x.jsonl:1: \"messages\"[1]: \"role\": expected system, user or assistant, got \"tool\""},
        {TASK_SFT, CHAT_OLMO,
         "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"text\"}]}]}",
         "x.jsonl:1: \"messages\"[0]: \"content\": expected a string, got an array"},
        {TASK_SFT, CHAT_OLMO,
         "{\"messages\": [{\"role\": \"assistant\", \"content\": \"\", \"tool_calls\": []}]}",
         "x.jsonl:1: \"messages\"[0]: \"tool_calls\": the templates here know role and content "
         "only"},
        {TASK_SFT, CHAT_OLMO, "{\"text\": [" ASK "]}",
         "x.jsonl:1: \"text\": expected a string, got an array (a list of messages has the key "
         "messages)"},
        {TASK_SFT, CHAT_OLMO, "{\"text\": \"t\"}",
         "x.jsonl: data.template: a template goes around prompts and completions; rows of text "
         "have no roles: expected none"},
        {TASK_SFT, CHAT_OLMO, "{\"input_ids\": [1], \"labels\": [1]}",
         "x.jsonl: data.template: a template goes around prompts and completions; rows of ids have "
         "no roles: expected none"},
        {TASK_SFT, CHAT_OLMO, "{\"prompt\": [" ASK "], \"completion\": \"a\"}",
         "x.jsonl:1: \"completion\": expected a list of messages as in the row's other keys, got a "
         "string"},
        {TASK_DPO, CHAT_OLMO,
         "{\"prompt\": \"Q\", \"chosen\": [" ASK ", " SAY("a") "], \"rejected\": [" ASK
                                                               ", " SAY("b") "]}",
         "x.jsonl:1: \"prompt\": expected a list of messages as in the row's other keys, got a "
         "string; where chosen and rejected hold the prompt, leave it out"},
        {TASK_DPO, CHAT_OLMO,
         "{\"prompt\": [" ASK "], \"chosen\": [" SAY("a") "], \"rejected\": [" ASK "]}",
         "x.jsonl:1: \"rejected\"[0]: \"role\": a completion begins with the assistant"},
        {TASK_DPO, CHAT_OLMO, "{\"chosen\": [" SAY("a") "], \"rejected\": [" SAY("b") "]}",
         "x.jsonl:1: \"chosen\": the first message differs already: there is no prompt"},
        {TASK_DPO, CHAT_OLMO,
         "{\"chosen\": [" ASK ", " SAY("a") "], \"rejected\": [" ASK ", " SAY("a") "]}",
         "x.jsonl:1: without \"prompt\", \"chosen\" and \"rejected\" must begin alike and then "
         "differ: one of them is the beginning of the other"},
        {TASK_DPO, CHAT_NONE, "{\"chosen\": \"ab\", \"rejected\": \"a\"}",
         "x.jsonl:1: without \"prompt\", \"chosen\" and \"rejected\" must begin alike and then "
         "differ: one of them is the beginning of the other"},
        {TASK_SFT, CHAT_OLMO,
         "{\"prompt\": \"Q\", \"completion\": \"a\"}\n"
         "{\"prompt\": [" ASK "], \"completion\": [" SAY("a") "]}",
         "x.jsonl:2: a row of messages in a file whose line 1 has text"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char text[TEXT_SIZE];
        assert_int_equal(row_text(cases[i].task, cases[i].chat, cases[i].json, text), STATUS_INPUT);
        if (strcmp(status_text(), cases[i].error) != 0)
            fail_msg("case %zu\n  expected %s\n  got      %s", i, cases[i].error, status_text());
    }
}

/* A row whose prompt is not named must train as one whose prompt is. Templates must reach the
 * embedded pairs, too. */
static void verify_datasets(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct dataset named;
    struct dataset unnamed;
    struct dataset chat;
    assert_int_equal(
        helper_jsonl_open(TASK_DPO,
                          "{\"prompt\": \"Q:\", \"chosen\": \" yes\", \"rejected\": \" no\"}", 96,
                          &arena, &named),
        STATUS_OK);
    assert_int_equal(helper_jsonl_open(TASK_DPO,
                                       "{\"chosen\": \"Q: yes\", \"rejected\": \"Q: no\"}", 96,
                                       &arena, &unnamed),
                     STATUS_OK);
    assert_int_equal(digest_compare(&named.digest, &unnamed.digest), 0);
    struct dataset_options options = {.task = TASK_DPO,
                                      .source = "builtin:quiz",
                                      .max_len = 4096,
                                      .vocab = TOKENIZER_VOCAB,
                                      .samples = 2};
    assert_int_equal(dataset_open(&options, &arena, &named), STATUS_OK);
    options.chat = CHAT_CHATML;
    assert_int_equal(dataset_open(&options, &arena, &chat), STATUS_OK);
    const size_t around = strlen("<|im_start|>user\n<|im_end|>\n<|im_start|>assistant\n"
                                 "<|im_end|>\n");
    for (size_t i = 0; i < 4; i++) { /* <bos> and <eos> give way to the markers */
        assert_int_equal(chat.sequence[i].length, named.sequence[i].length - 2 + around);
        assert_int_equal(chat.sequence[i].labels,
                         named.sequence[i].labels - 1 + strlen("<|im_end|>\n"));
    }
    assert_int_equal(chat.bytes, 1);
    options.vocab = 256;
    assert_int_equal(dataset_open(&options, &arena, &chat), STATUS_INPUT);
    assert_string_equal(status_text(), "quiz.tsv: text needs a vocabulary of 259 (256 bytes and 3 "
                                       "specials), got 256");
    arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corroborate_transformers),
        cmocka_unit_test(validate_rows),
        cmocka_unit_test(validate_refused),
        cmocka_unit_test(verify_datasets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

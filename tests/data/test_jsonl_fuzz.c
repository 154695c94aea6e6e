/* SPDX-License-Identifier: Apache-2.0
 * labels: unit memory
 * The JSONL reader under damage: cut at every byte, and changed at random by an addressed stream
 * (seed below). It must return rows that keep every promise of datarow.h, or an error that names
 * the source; sanitizer builds see the rest. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/macro.h"
#include "data/jsonl.h"
#include "determinism/stream.h"

#define VOCAB 300
#define SEED 0x5EED0F7A7ADA7A01u
#define MUTATIONS 20000
#define TEXT_SIZE 1024

static const struct {
    enum task task;
    const char *text;
} sources[] = {
    {TASK_DPO, "{\"prompt\": \"2+2?\", \"chosen\": \"\\u00e94\", \"rejected\": \" 5\\n\"}\n"
               "{\"prompt\": \"\", \"id\": {\"k\": [1, 2.5e3, null]}, \"chosen\": \"\xC3\xA9\", "
               "\"rejected\": \"r\"}\n"},
    {TASK_DPO, "{\"prompt_ids\": [], \"chosen_ids\": [0, 258], \"rejected_ids\": [7]}\n"
               "{\"prompt_ids\":[1,2,3,4,5,6,7,8,9],\"chosen_ids\":[1],\"rejected_ids\":[299]}"},
    {TASK_SFT, "{\"prompt\": \"p\", \"completion\": \"\\ud83d\\ude00\"}\r\n\r\n"
               "{\"completion\": \"d\", \"prompt\": \"q\"}\n"},
    {TASK_SFT, "{\"text\": \"plain\"}\n{\"text\": \"\\\\ \\\" \\/ \\b\\f\\t\", \"x\": true}\n"},
    {TASK_SFT, "{\"input_ids\": [5, 6, 7], \"labels\": [-100, -100, 7]}\n"
               "{\"labels\":[1,2,3],\"input_ids\":[1,2,3]}\n"},
    {TASK_SFT, "{\"input_ids\":[5,6,7],\"assistant_masks\":[0,1,1],\"completion_mask\":[1,0,1],"
               "\"attention_mask\":[1,1,1]}\n"},
    {TASK_SFT, "{\"prompt_ids\":[],\"completion_ids\":[1,2]}\n"},
    {TASK_DPO, "{\"chosen_input_ids\":[1,2],\"chosen_labels\":[-100,2],\"rejected_input_ids\":[3],"
               "\"rejected_labels\":[3],\"chosen_attention_mask\":[1,1],\"x\":0}\n"},
};

static enum status parse(enum task task, const char *bytes, size_t length, struct arena *arena,
                         struct datarow_table *table) {
    const struct jsonl_options options = {task, VOCAB, 0, CHAT_NONE};
    return jsonl_parse("fuzz.jsonl", bytes, length, &options, arena, table);
}

static int form_of_text(enum datarow_form form) {
    return form == DATAROW_PAIR_TEXT || form == DATAROW_COMPLETION_TEXT ||
           form == DATAROW_PLAIN_TEXT;
}

static int form_of_pairs(enum datarow_form form) {
    return form == DATAROW_PAIR_TEXT || form == DATAROW_PAIR_IDS || form == DATAROW_PAIR_LABELLED;
}

static void assert_part(const struct datarow_part *part, int text, int labels) {
    assert_int_equal(part->text != NULL, text);
    assert_int_equal(part->ids != NULL, !text);
    for (size_t i = 0; !text && i < part->length; i++) {
        int32_t id = part->ids[i];
        assert_true((id >= 0 && id < VOCAB) || (labels && id == DATAROW_MASKED));
    }
}

static void assert_table(const struct datarow_table *table, enum task task) {
    static const size_t parts[] = {3, 3, 2, 1, 2, 2, 4};
    const int text = form_of_text(table->form);
    const int labelled =
        table->form == DATAROW_LABELLED_IDS || table->form == DATAROW_PAIR_LABELLED;
    assert_int_equal(form_of_pairs(table->form), task == TASK_DPO);
    assert_true(table->rows > 0);
    size_t line = 0;
    for (size_t i = 0; i < table->rows; i++) {
        const struct datarow *row = &table->row[i];
        assert_true(row->line > line);
        line = row->line;
        for (size_t p = 0; p < parts[table->form]; p++) {
            assert_part(&row->part[p], text, labelled && p % 2 == 1);
            if (labelled && p % 2 == 1)
                assert_int_equal(row->part[p].length, row->part[p - 1].length);
            if (p > 0 || parts[table->form] == 1) assert_true(row->part[p].length > 0);
        }
    }
}

/* A beginning of the file must be accepted exactly when it ends with a whole row, since an object
 * that was cut is no object. */
static void verify_every_prefix(void **state) {
    (void)state;
    for (size_t s = 0; s < COUNT_OF(sources); s++) {
        const char *text = sources[s].text;
        for (size_t length = 0; length <= strlen(text); length++) {
            size_t content = length;
            while (content > 0 && strchr("\r\n", text[content - 1]) != NULL)
                content--;
            char next = text[content];
            int whole = content > 0 && (next == '\r' || next == '\n' || next == '\0');
            struct arena arena = ARENA_EMPTY;
            struct datarow_table table;
            enum status status = parse(sources[s].task, text, length, &arena, &table);
            assert_int_equal(status, whole ? STATUS_OK : STATUS_INPUT);
            if (status == STATUS_OK) assert_table(&table, sources[s].task);
            arena_close(&arena);
        }
    }
}

static const char *const splices[] = {"\"",
                                      "{",
                                      "}",
                                      "[",
                                      "]",
                                      ",",
                                      ":",
                                      "\n",
                                      "\\u0000",
                                      "-1",
                                      "300",
                                      "1e9",
                                      "null",
                                      "\\",
                                      "-100",
                                      "true",
                                      "\"\"",
                                      "[]",
                                      "\"ids\"",
                                      "\xEF\xBB\xBF",
                                      "99999999999999999999",
                                      "\\ud800"};

/* Makes one change at a random place: sets a byte, removes bytes, doubles a piece, or inserts a
 * token. */
static size_t mutate(const uint32_t *word, char *text, size_t length) {
    size_t at = word[0] % (length + 1);
    size_t count = 1 + word[2] % 8;
    if (count > length - at) count = length - at;
    switch (word[1] % 4) {
    case 0:
        if (at < length) /* half of the bytes are printable */
            text[at] =
                (char)(unsigned char)(word[2] >> 31 ? 0x20 + word[2] % 0x5F : word[2] & 0xFF);
        return length;
    case 1:
        memmove(text + at, text + at + count, length - at - count);
        return length - count;
    case 2:
        memmove(text + at + count, text + at, length - at);
        return length + count;
    default: {
        const char *piece = splices[word[2] % COUNT_OF(splices)];
        memmove(text + at + strlen(piece), text + at, length - at);
        memcpy(text + at, piece, strlen(piece));
        return length + strlen(piece);
    }
    }
}

static void verify_mutations(void **state) {
    (void)state;
    const struct stream_address address = {
        .stream = STREAM_DATA, .op = 511, .last_element = 1 << 30};
    struct stream_site site;
    assert_int_equal(stream_pack(&address, &site), STATUS_OK);
    size_t good = 0;
    size_t bad = 0;
    for (uint64_t i = 0; i < MUTATIONS; i++) {
        uint32_t word[16];
        stream_words(SEED, site, i * COUNT_OF(word), COUNT_OF(word), word);
        size_t s = i % COUNT_OF(sources);
        char text[TEXT_SIZE];
        size_t length = strlen(sources[s].text);
        memcpy(text, sources[s].text, length);
        for (size_t m = 0; m <= (word[15] & 1 ? 0 : word[15] >> 1 & 3); m++)
            length = mutate(word + 3 * m, text, length);
        struct arena arena = ARENA_EMPTY;
        struct datarow_table table;
        enum status status = parse(sources[s].task, text, length, &arena, &table);
        if (status == STATUS_OK) {
            assert_table(&table, sources[s].task);
            good++;
        } else {
            assert_int_equal(status, STATUS_INPUT);
            assert_int_equal(strncmp(status_text(), "fuzz.jsonl:", 11), 0);
            bad++;
        }
        arena_close(&arena);
    }
    print_message("seed %llx: %zu mutants read, %zu refused\n", (unsigned long long)SEED, good,
                  bad);
    assert_true(good > MUTATIONS / 50 && bad > MUTATIONS / 2); /* both sides were exercised */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_every_prefix),
        cmocka_unit_test(verify_mutations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

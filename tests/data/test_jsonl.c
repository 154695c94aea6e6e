/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The JSONL reader: every form of row, every class of bad row with its exact error text, and every
 * kind of file that is not JSONL. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "data/jsonl.h"
#include "tests/data/helper_data.h"

#define VOCAB 259

static enum status parse(enum task task, const char *bytes, size_t length, struct arena *arena,
                         struct datarow_table *table) {
    const struct jsonl_options options = {task, VOCAB, 0, CHAT_NONE};
    return jsonl_parse("x.jsonl", bytes, length, &options, arena, table);
}

static void assert_text(const struct datarow_part *part, const char *text) {
    assert_non_null(part->text);
    assert_null(part->ids);
    assert_int_equal(part->length, strlen(text));
    assert_memory_equal(part->text, text, part->length);
}

static void assert_ids(const struct datarow_part *part, const int32_t *ids, size_t length) {
    assert_null(part->text);
    assert_int_equal(part->length, length);
    for (size_t i = 0; i < length; i++)
        assert_int_equal(part->ids[i], ids[i]);
}

static void validate_pair_text(void **state) {
    (void)state;
    static const char text[] =
        "{\"prompt\": \"2+2?\", \"chosen\": \" 4\", \"rejected\": \" 5\"}\r\n"
        "\n"
        "  \t\r\n"
        "{\"score\": 1.5, \"rejected\": \"\\n\\\"\\u00e9\\ud83d\\ude00\", \"chosen\": \"b\", "
        "\"prompt\": \"\", \"meta\": {\"a\": [null]}}"; /* the last line has no line end */
    struct arena arena = ARENA_EMPTY;
    struct datarow_table table;
    assert_int_equal(parse(TASK_DPO, text, sizeof text - 1, &arena, &table), STATUS_OK);
    assert_int_equal(table.form, DATAROW_PAIR_TEXT);
    assert_int_equal(table.rows, 2);
    assert_text(&table.row[0].part[0], "2+2?");
    assert_text(&table.row[0].part[1], " 4");
    assert_text(&table.row[0].part[2], " 5");
    assert_int_equal(table.row[0].line, 1);
    assert_int_equal(table.row[1].line, 4);
    assert_text(&table.row[1].part[0], "");
    assert_text(&table.row[1].part[1], "b");
    assert_text(&table.row[1].part[2], "\n\"\xC3\xA9\xF0\x9F\x98\x80");
    assert_int_equal(table.extra_keys, 2);
    assert_string_equal(table.extra_first, "score");
    arena_close(&arena);
}

static void validate_other_forms(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct datarow_table table;
    const char *text = "{\"prompt_ids\": [], \"chosen_ids\": [0, 258], \"rejected_ids\": [7]}\n";
    assert_int_equal(parse(TASK_DPO, text, strlen(text), &arena, &table), STATUS_OK);
    assert_int_equal(table.form, DATAROW_PAIR_IDS);
    assert_ids(&table.row[0].part[0], NULL, 0);
    assert_ids(&table.row[0].part[1], (const int32_t[]){0, 258}, 2);
    assert_ids(&table.row[0].part[2], (const int32_t[]){7}, 1);
    assert_int_equal(table.extra_keys, 0);
    assert_null(table.extra_first);

    text = "{\"prompt\": \"p\", \"completion\": \"c\"}\n{\"prompt\": \"q\", \"completion\": \"d\"}";
    assert_int_equal(parse(TASK_SFT, text, strlen(text), &arena, &table), STATUS_OK);
    assert_int_equal(table.form, DATAROW_COMPLETION_TEXT);
    assert_int_equal(table.rows, 2);
    assert_text(&table.row[1].part[0], "q");
    assert_text(&table.row[1].part[1], "d");

    text = "{\"text\": \"plain\"}";
    assert_int_equal(parse(TASK_SFT, text, strlen(text), &arena, &table), STATUS_OK);
    assert_int_equal(table.form, DATAROW_PLAIN_TEXT);
    assert_text(&table.row[0].part[0], "plain");

    text = "{\"input_ids\": [5, 6, 7], \"labels\": [-100, -100, 7], \"attention_mask\": [1, 1, 1], "
           "\"seq_lengths\": [3]}";
    assert_int_equal(parse(TASK_SFT, text, strlen(text), &arena, &table), STATUS_OK);
    assert_int_equal(table.form, DATAROW_LABELLED_IDS);
    assert_ids(&table.row[0].part[0], (const int32_t[]){5, 6, 7}, 3);
    assert_ids(&table.row[0].part[1], (const int32_t[]){-100, -100, 7}, 3);
    assert_string_equal(table.extra_first, "seq_lengths");
    assert_int_equal(table.extra_keys, 1);
    arena_close(&arena);
}

/* Masks become labels, and a label need not be at the end. */
static void validate_masks(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int32_t labels[4];
    } cases[] = {
        {"{\"input_ids\": [5, 6, 7, 8], \"completion_mask\": [0, 1, 0, 1]}", {-100, 6, -100, 8}},
        {"{\"assistant_masks\": [1, 1, 0, 0], \"input_ids\": [5, 6, 7, 8]}", {5, 6, -100, -100}},
        {"{\"assistant_masks\": [0, 1, 1, 0], \"input_ids\": [5, 6, 7, 8], "
         "\"completion_mask\": [0, 0, 1, 1], \"attention_mask\": [1, 1, 1, 1]}",
         {-100, -100, 7, -100}},
        {"{\"input_ids\": [0, 0, 0, 0], \"labels\": [0, -100, 0, -100]}", {0, -100, 0, -100}},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct arena arena = ARENA_EMPTY;
        struct datarow_table table;
        assert_int_equal(parse(TASK_SFT, cases[i].text, strlen(cases[i].text), &arena, &table),
                         STATUS_OK);
        assert_int_equal(table.form, DATAROW_LABELLED_IDS);
        assert_int_equal(table.row[0].part[0].length, 4);
        assert_ids(&table.row[0].part[1], cases[i].labels, 4);
        assert_int_equal(table.extra_keys, 0);
        arena_close(&arena);
    }
}

static void validate_labelled_pair(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct datarow_table table;
    const char *text = "{\"chosen_input_ids\": [1, 2, 3], \"chosen_labels\": [-100, 2, -100], "
                       "\"chosen_attention_mask\": [1, 1, 1], \"rejected_input_ids\": [1, 9], "
                       "\"rejected_labels\": [-100, 9], \"rejected_attention_mask\": [1, 1], "
                       "\"ref_chosen_logps\": -1.5}";
    assert_int_equal(parse(TASK_DPO, text, strlen(text), &arena, &table), STATUS_OK);
    assert_int_equal(table.form, DATAROW_PAIR_LABELLED);
    assert_ids(&table.row[0].part[0], (const int32_t[]){1, 2, 3}, 3);
    assert_ids(&table.row[0].part[1], (const int32_t[]){-100, 2, -100}, 3);
    assert_ids(&table.row[0].part[2], (const int32_t[]){1, 9}, 2);
    assert_ids(&table.row[0].part[3], (const int32_t[]){-100, 9}, 2);
    assert_int_equal(table.extra_keys, 1); /* these keys are read only where they are asked for */
    assert_string_equal(table.extra_first, "ref_chosen_logps");

    text = "{\"prompt_ids\": [1], \"completion_ids\": [2, 3]}";
    assert_int_equal(parse(TASK_SFT, text, strlen(text), &arena, &table), STATUS_OK);
    assert_int_equal(table.form, DATAROW_COMPLETION_IDS);
    assert_ids(&table.row[0].part[1], (const int32_t[]){2, 3}, 2);
    arena_close(&arena);
}

static void validate_references(void **state) {
    (void)state;
    static const char row[] = "{\"prompt\": \"p\", \"chosen\": \"c\", \"rejected\": \"r\"%s}";
    static const struct {
        const char *keys, *error;
    } bad[] = {
        {"", "key \"ref_chosen_logps\" is missing; dpo.reference given reads it in every row"},
        {", \"ref_chosen_logps\": -1",
         "key \"ref_rejected_logps\" is missing; dpo.reference given reads it in every row"},
        {", \"ref_chosen_logps\": [-1], \"ref_rejected_logps\": -1",
         "\"ref_chosen_logps\": expected a number, got an array"},
        {", \"ref_chosen_logps\": -1, \"ref_rejected_logps\": 0.25",
         "\"ref_rejected_logps\": expected a log-probability of at most 0, got 0.25"},
    };
    const struct jsonl_options options = {TASK_DPO, VOCAB, 1, CHAT_NONE};
    char text[512];
    char error[512];
    struct datarow_table table;
    struct arena arena = ARENA_EMPTY;
    snprintf(text, sizeof text, row,
             ", \"ref_chosen_logps\": -12.345678901234567, \"ref_rejected_logps\": 0, \"id\": 1");
    assert_int_equal(jsonl_parse("x.jsonl", text, strlen(text), &options, &arena, &table),
                     STATUS_OK);
    assert_true(table.row[0].reference[0] == -12.345678901234567);
    assert_true(table.row[0].reference[1] == 0);
    assert_int_equal(table.extra_keys, 1);
    assert_string_equal(table.extra_first, "id");
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        snprintf(text, sizeof text, row, bad[i].keys);
        snprintf(error, sizeof error, "x.jsonl:1: %s", bad[i].error);
        assert_int_equal(jsonl_parse("x.jsonl", text, strlen(text), &options, &arena, &table),
                         STATUS_INPUT);
        assert_string_equal(status_text(), error);
    }
    arena_close(&arena);
}

/* A file of ids alone, written as densely as JSON allows, must fill the pool up to its bound. */
static void verify_pool_bounds(void **state) {
    (void)state;
    char text[8192];
    size_t used = (size_t)snprintf(text, sizeof text, "{\"prompt_ids\":[");
    for (int i = 0; i < 2000; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%d", i > 0 ? "," : "", i % 10);
    used += (size_t)snprintf(text + used, sizeof text - used,
                             "],\"chosen_ids\":[1],\"rejected_ids\":[2]}");
    struct arena arena = ARENA_EMPTY;
    struct datarow_table table;
    assert_int_equal(parse(TASK_DPO, text, used, &arena, &table), STATUS_OK);
    assert_int_equal(table.row[0].part[0].length, 2000);
    for (int i = 0; i < 2000; i++)
        assert_int_equal(table.row[0].part[0].ids[i], i % 10);
    arena_close(&arena);
}

struct bad_case {
    enum task task;
    const char *text;
    const char *error;
};

#define GOOD_PAIR "{\"prompt\": \"p\", \"chosen\": \"c\", \"rejected\": \"r\"}\n"

static const struct bad_case bad_cases[] = {
    /* not JSON */
    {TASK_DPO, "{\"prompt\": \"p\",", "x.jsonl:1:15: not one JSON object: "},
    {TASK_DPO, GOOD_PAIR "nonsense", "x.jsonl:2:8: not one JSON object: "},
    {TASK_DPO, GOOD_PAIR "{\"prompt\": 'p'}", "x.jsonl:2:12: not one JSON object: "},
    {TASK_DPO, GOOD_PAIR "{} {}", "x.jsonl:2:4: not one JSON object: end of file expected"},
    {TASK_SFT, "{\"text\": \"a\", \"text\": \"b\"}",
     "x.jsonl:1:20: not one JSON object: duplicate object key near '\"text\"'"},
    {TASK_SFT, "{\"text\": \"a\\u0000b\"}",
     "x.jsonl:1:19: a NUL character (\\u0000), which no text of a row may hold"},
    {TASK_SFT, "{\"text\": \"\xff\"}",
     "x.jsonl:1:10: not one JSON object: unable to decode byte 0xff"},
    {TASK_SFT, "{\"text\": \"\xc3\x28\"}",
     "x.jsonl:1:10: not one JSON object: unable to decode byte 0xc3"},
    {TASK_SFT, "{\"text\": \"\\ud800\"}", "x.jsonl:1:17: not one JSON object: invalid Unicode"},
    {TASK_SFT, "{\"text\": NaN}", "x.jsonl:1:12: not one JSON object: invalid token near 'NaN'"},
    {TASK_SFT, "{\"input_ids\": [99999999999999999999], \"labels\": [1]}",
     "x.jsonl:1:35: not one JSON object: too big integer"},
    /* not a row */
    {TASK_DPO, "[1, 2]", "x.jsonl:1: expected an object {...}, got an array"},
    {TASK_DPO, "{}",
     "x.jsonl:1: expected the keys prompt, chosen, rejected (or chosen, rejected, or prompt_ids, "
     "chosen_ids, rejected_ids, or chosen_input_ids, chosen_labels, rejected_input_ids, "
     "rejected_labels); the row has: none (rows of task sft have prompt, completion (or messages, "
     "or text, or input_ids, labels, or prompt_ids, completion_ids))"},
    {TASK_SFT, "{\"message\": [], \"id\": 3}",
     "x.jsonl:1: expected the keys prompt, completion (or messages, or text, or input_ids, labels, "
     "or prompt_ids, completion_ids); the row has: message, id (rows of task dpo have prompt, "
     "chosen, rejected (or chosen, rejected, or prompt_ids, chosen_ids, rejected_ids, or "
     "chosen_input_ids, chosen_labels, rejected_input_ids, rejected_labels))"},
    {TASK_DPO, "{\"prompt\": \"p\", \"chosen\": \"c\"}",
     "x.jsonl:1: key \"rejected\" is missing; a row has prompt, chosen, rejected"},
    {TASK_DPO, "{\"prompt_ids\": [1], \"rejected_ids\": [2], \"chosen\": \"c\"}",
     "x.jsonl:1: key \"chosen_ids\" is missing; a row has prompt_ids, chosen_ids, rejected_ids"},
    {TASK_SFT, "{\"input_ids\": [1]}",
     "x.jsonl:1: key \"labels\" is missing; a row has input_ids, labels (or completion_mask or "
     "assistant_masks for labels)"},
    {TASK_DPO, "{\"chosen_input_ids\": [1], \"rejected_input_ids\": [2], \"chosen_labels\": [1]}",
     "x.jsonl:1: key \"rejected_labels\" is missing; a row has chosen_input_ids, chosen_labels, "
     "rejected_input_ids, rejected_labels"},
    {TASK_SFT, "{\"input_ids\": [1], \"labels\": [1], \"completion_mask\": [1]}",
     "x.jsonl:1: the row has both input_ids, labels and input_ids, completion_mask; keep one of "
     "them"},
    {TASK_SFT,
     "{\"input_ids\": [1, 2], \"completion_mask\": [0, 1]}\n"
     "{\"input_ids\": [1, 2], \"assistant_masks\": [0, 1]}",
     "x.jsonl:2: a row of input_ids, assistant_masks in a file whose line 1 has input_ids, "
     "completion_mask"},
    {TASK_SFT, GOOD_PAIR,
     "x.jsonl:1: a row of prompt, chosen, rejected is for task dpo, but the task is sft"},
    {TASK_DPO, "{\"text\": \"t\"}",
     "x.jsonl:1: a row of text is for task sft, but the task is dpo"},
    {TASK_SFT, "{\"text\": \"t\", \"prompt\": \"p\", \"completion\": \"c\"}",
     "x.jsonl:1: the row has both prompt, completion and text; keep one of them"},
    {TASK_SFT, "{\"text\": \"t\"}\n\n{\"prompt\": \"p\", \"completion\": \"c\"}",
     "x.jsonl:3: a row of prompt, completion in a file whose line 1 has text"},
    /* wrong values */
    {TASK_SFT, "{\"text\": 3}", "x.jsonl:1: \"text\": expected a string, got an integer"},
    {TASK_SFT, "{\"text\": null}", "x.jsonl:1: \"text\": expected a string, got null"},
    {TASK_SFT, "{\"text\": \"\"}", "x.jsonl:1: \"text\" is empty"},
    {TASK_SFT, "{\"prompt\": \"p\", \"completion\": \"\"}", "x.jsonl:1: \"completion\" is empty"},
    {TASK_DPO, GOOD_PAIR "{\"prompt\": \"p\", \"chosen\": \"\", \"rejected\": \"r\"}",
     "x.jsonl:2: \"chosen\" is empty"},
    {TASK_DPO, "{\"prompt\": \"p\", \"chosen\": \"c\", \"rejected\": \"\"}",
     "x.jsonl:1: \"rejected\" is empty"},
    {TASK_DPO, "{\"prompt\": [{\"role\": \"user\"}], \"chosen\": \"c\", \"rejected\": \"r\"}",
     "x.jsonl:1: messages need a chat template: data.template plain, chatml, llama3 or olmo "
     "(another one: docs/DATA.md, pretokenise.py)"},
    {TASK_DPO, "{\"prompt_ids\": \"p\", \"chosen_ids\": [1], \"rejected_ids\": [2]}",
     "x.jsonl:1: \"prompt_ids\": expected an array of ids, got a string"},
    {TASK_DPO, "{\"prompt_ids\": [1], \"chosen_ids\": [], \"rejected_ids\": [2]}",
     "x.jsonl:1: \"chosen_ids\" is empty"},
    {TASK_DPO, "{\"prompt_ids\": [1], \"chosen_ids\": [1.0], \"rejected_ids\": [2]}",
     "x.jsonl:1: \"chosen_ids\"[0]: expected an integer, got a real number"},
    {TASK_DPO, "{\"prompt_ids\": [1, true], \"chosen_ids\": [1], \"rejected_ids\": [2]}",
     "x.jsonl:1: \"prompt_ids\"[1]: expected an integer, got true"},
    {TASK_DPO, "{\"prompt_ids\": [1], \"chosen_ids\": [258], \"rejected_ids\": [2, 259]}",
     "x.jsonl:1: \"rejected_ids\"[1]: id 259 is not below the vocabulary size 259"},
    {TASK_DPO, "{\"prompt_ids\": [-1], \"chosen_ids\": [1], \"rejected_ids\": [2]}",
     "x.jsonl:1: \"prompt_ids\"[0]: id -1 is negative"},
    {TASK_SFT, "{\"input_ids\": [-100], \"labels\": [-100]}",
     "x.jsonl:1: \"input_ids\"[0]: id -100 is negative"},
    {TASK_SFT, "{\"input_ids\": [4294967297], \"labels\": [1]}",
     "x.jsonl:1: \"input_ids\"[0]: id 4294967297 is not below the vocabulary size 259"},
    {TASK_SFT, "{\"input_ids\": [1, 2], \"completion_mask\": [0, 2]}",
     "x.jsonl:1: \"completion_mask\"[1]: expected 0 or 1, got 2"},
    {TASK_SFT, "{\"input_ids\": [1, 2], \"completion_mask\": [0, true]}",
     "x.jsonl:1: \"completion_mask\"[1]: expected an integer, got true"},
    {TASK_SFT, "{\"input_ids\": [1, 2], \"completion_mask\": \"01\"}",
     "x.jsonl:1: \"completion_mask\": expected an array of 0 and 1, got a string"},
    {TASK_SFT,
     "{\"input_ids\": [1, 2], \"completion_mask\": [0, 1], \"assistant_masks\": [1, 1, 1]}",
     "x.jsonl:1: \"assistant_masks\" has 3 entries, \"input_ids\" has 2"},
    {TASK_SFT, "{\"input_ids\": [1, 2], \"labels\": [1, 2], \"attention_mask\": [1, 0]}",
     "x.jsonl:1: \"attention_mask\"[1] is not 1: write rows without padding"},
    {TASK_SFT, "{\"input_ids\": [1, 2], \"labels\": [1, 2], \"attention_mask\": [1]}",
     "x.jsonl:1: \"attention_mask\" has 1 entries, \"input_ids\" has 2"},
    {TASK_SFT, "{\"input_ids\": [1, 2], \"labels\": [1, 2], \"attention_mask\": 1}",
     "x.jsonl:1: \"attention_mask\": expected an array of ones, got an integer"},
    {TASK_DPO,
     "{\"chosen_input_ids\": [1, 2], \"chosen_labels\": [-100, 2], \"rejected_input_ids\": [3, 4], "
     "\"rejected_labels\": [-100, 2]}",
     "x.jsonl:1: \"rejected_labels\"[1] is 2, \"rejected_input_ids\"[1] is 4: a label is -100 or "
     "the token at the same place (the shift by one is made here)"},
    {TASK_SFT, "{\"input_ids\": [1, 2], \"labels\": [1]}",
     "x.jsonl:1: \"labels\" has 1 entries, \"input_ids\" has 2"},
    {TASK_SFT, "{\"input_ids\": [1, 2], \"labels\": [1, -1]}",
     "x.jsonl:1: \"labels\"[1]: id -1 is negative and not -100"},
    {TASK_SFT, "{\"input_ids\": [1, 2, 3], \"labels\": [2, 3, -100]}",
     "x.jsonl:1: \"labels\"[0] is 2, \"input_ids\"[0] is 1: a label is -100 or the token at the "
     "same place (the shift by one is made here)"},
    /* not text */
    {TASK_DPO, "", "x.jsonl: the file holds no row; expected one JSON object per line"},
    {TASK_DPO, "\n \n\r\n", "x.jsonl: the file holds no row; expected one JSON object per line"},
    {TASK_DPO, "\xEF\xBB\xBF" GOOD_PAIR,
     "x.jsonl:1:1: a byte order mark: save the file as UTF-8 without it"},
};

static void validate_bad_rows(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad_cases); i++) {
        struct arena arena = ARENA_EMPTY;
        struct datarow_table table;
        const struct bad_case *c = &bad_cases[i];
        assert_int_equal(parse(c->task, c->text, strlen(c->text), &arena, &table), STATUS_INPUT);
        if (strncmp(status_text(), c->error, strlen(c->error)) != 0)
            fail_msg("case %zu\n  expected %s\n  got      %s", i, c->error, status_text());
        arena_close(&arena);
    }
}

static void validate_nul_byte(void **state) {
    (void)state;
    static const char text[] = GOOD_PAIR "{\"pro\0mpt\": 1}";
    struct arena arena = ARENA_EMPTY;
    struct datarow_table table;
    assert_int_equal(parse(TASK_DPO, text, sizeof text - 1, &arena, &table), STATUS_INPUT);
    assert_string_equal(status_text(), "x.jsonl:2:6: a NUL byte: this is not a text file");
    arena_close(&arena);
}

static void assert_read_fails(const char *path, enum status expected, const char *part) {
    const struct jsonl_options options = {TASK_DPO, VOCAB, 0, CHAT_NONE};
    struct arena arena = ARENA_EMPTY;
    struct datarow_table table;
    assert_int_equal(jsonl_read(path, &options, &arena, &table), expected);
    assert_ptr_equal(strstr(status_text(), path), status_text());
    assert_non_null(strstr(status_text(), part));
    arena_close(&arena);
}

static void validate_files(void **state) {
    (void)state;
    char path[HELPER_PATH_SIZE];
    assert_read_fails("/nonexistent/pairs.jsonl", STATUS_IO, "cannot open: No such file");
    assert_read_fails("/", STATUS_INPUT, "/: expected a file of JSONL, got a folder");
    helper_file_write("", 0, path);
    assert_read_fails(path, STATUS_INPUT, "holds no row");
    assert_int_equal(truncate(path, (off_t)JSONL_MAX_BYTES + 1), 0); /* a sparse file */
    assert_read_fails(path, STATUS_INPUT, "1073741825 bytes; a data file has at most 1073741824");
    unlink(path);
    helper_file_write("\x7f"
                      "ELF\x02\x01\x01\0\0\0",
                      10, path);
    assert_read_fails(path, STATUS_INPUT, ":1:8: a NUL byte");
    unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_pair_text),  cmocka_unit_test(validate_other_forms),
        cmocka_unit_test(validate_masks),      cmocka_unit_test(validate_labelled_pair),
        cmocka_unit_test(validate_references), cmocka_unit_test(verify_pool_bounds),
        cmocka_unit_test(validate_bad_rows),   cmocka_unit_test(validate_nul_byte),
        cmocka_unit_test(validate_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What data_check counts, one oddity at a time, and its notes word for word; ordinary data must
 * have none. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "data/data_check.h"
#include "tests/data/helper_data.h"

#define TEXT_SIZE 1024

/* Prints the notes, one on each line. */
static void notes_of(enum task task, uint64_t max_len, const char *json, char out[TEXT_SIZE]) {
    struct arena arena = ARENA_EMPTY;
    struct dataset dataset;
    struct data_check check;
    size_t used = 0;
    if (helper_jsonl_open(task, json, max_len, &arena, &dataset) != STATUS_OK)
        fail_msg("%s", status_text());
    data_check(&dataset, &check);
    out[0] = '\0';
    for (size_t i = 0; i <= DATA_CHECK_NOTES; i++) {
        char note[TEXT_SIZE];
        if (data_check_note(&dataset, &check, i, note, sizeof note))
            used += (size_t)snprintf(out + used, TEXT_SIZE - used, "%s\n", note);
    }
    arena_close(&arena);
}

#define DOUBLED_BEGIN                                                                              \
    "1 of 1 sequences begin with a doubled token or marker: was the beginning of text added "      \
    "twice, by a template and by a tokenizer?\n"
#define DOUBLED_END                                                                                \
    "1 of 1 uncut sequences end with a doubled token or marker: was the end of text added "        \
    "twice?\n"

static const struct {
    enum task task;
    uint64_t max_len;
    const char *json, *notes;
} cases[] = {
    {TASK_SFT, 96, "{\"text\": \"aa\"}\n{\"text\": \"b <s> </s> b\"}", ""},
    {TASK_DPO, 96, "{\"prompt\": \"p\", \"chosen\": \"c\", \"rejected\": \"r\"}", ""},
    {TASK_SFT, 96, "{\"text\": \"<|begin_of_text|>a\"}", DOUBLED_BEGIN},
    {TASK_SFT, 96, "{\"text\": \"<s>\"}", DOUBLED_BEGIN},
    {TASK_SFT, 96, "{\"text\": \"a <s>\"}", ""},
    {TASK_SFT, 96, "{\"text\": \"a</s>\"}", DOUBLED_END},
    {TASK_SFT, 96, "{\"text\": \"a<|im_end|>\\n\"}", DOUBLED_END},
    {TASK_SFT, 8, "{\"text\": \"abcdefgh</s>\"}", ""}, /* the sequence is cut before its end */
    {TASK_SFT, 96, "{\"input_ids\": [1, 1, 2, 3], \"labels\": [1, 1, 2, 3]}", DOUBLED_BEGIN},
    {TASK_SFT, 96, "{\"input_ids\": [1, 2, 3, 3], \"labels\": [1, 2, 3, 3]}", DOUBLED_END},
    {TASK_SFT, 96, "{\"input_ids\": [1, 2], \"labels\": [1, 2]}", ""},
    {TASK_SFT, 96,
     "{\"input_ids\": [1, 9], \"labels\": [1, 9]}\n{\"input_ids\": [1, 8], \"labels\": [1, 8]}\n"
     "{\"input_ids\": [1, 9], \"labels\": [1, 9]}\n{\"input_ids\": [1, 9], \"labels\": [1, 9]}",
     "3 of 4 uncut sequences end with token 9, the others do not: no common end of text is "
     "learned\n"},
    {TASK_SFT, 96, "{\"input_ids\": [1, 2, 3], \"labels\": [1, 2, -100]}",
     "1 of 1 uncut sequences have no loss on their last token\n"},
    {TASK_DPO, 96, "{\"prompt\": \"p\", \"chosen\": \"c\", \"rejected\": \"c\"}",
     "1 of 1 pairs have the same tokens on both sides\n"},
    {TASK_DPO, 96,
     "{\"chosen_input_ids\": [1, 2, 3], \"chosen_labels\": [-100, -100, 3], "
     "\"rejected_input_ids\": [1, 4, 3], \"rejected_labels\": [-100, -100, 3]}",
     "1 of 1 pairs have other tokens before the first label of chosen than of rejected\n"},
};

static void validate_notes(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char notes[TEXT_SIZE];
        notes_of(cases[i].task, cases[i].max_len, cases[i].json, notes);
        if (strcmp(notes, cases[i].notes) != 0)
            fail_msg("case %zu\n  expected %s\n  got      %s", i, cases[i].notes, notes);
    }
}

/* A template put around text that already has the template's markers. */
static void validate_template_twice(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct dataset dataset;
    struct data_check check;
    char path[HELPER_PATH_SIZE];
    static const char text[] =
        "{\"prompt\": \"q\", \"completion\": \"a<|eot_id|>\"}\n{\"prompt\": \"q\", "
        "\"completion\": \"<|eot_id|> a\"}\n";
    helper_file_write(text, sizeof text - 1, path);
    const struct dataset_options options = {
        .task = TASK_SFT, .source = path, .max_len = 4096, .vocab = 259, .chat = CHAT_LLAMA3};
    assert_int_equal(dataset_open(&options, &arena, &dataset), STATUS_OK);
    remove(path);
    data_check(&dataset, &check);
    assert_int_equal(check.end_doubled, 1);
    assert_int_equal(check.begin_doubled, 0);
    arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_notes),
        cmocka_unit_test(validate_template_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

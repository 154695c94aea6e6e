/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * From rows to sequences: tokens, targets and lengths written out by hand for every form of row;
 * truncation; what is refused; what the digest covers; and what a person sees. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "data/tokenizer.h"
#include "tests/data/helper_data.h"

#define LONG 4096
#define NONE DATASET_NO_TARGET

static void assert_sequence(const struct dataset *dataset, size_t sample, uint32_t side,
                            uint32_t prompt, const int32_t *token, const int32_t *target,
                            uint32_t length) {
    const struct dataset_sequence *sequence = dataset_side(dataset, sample, side);
    assert_int_equal(sequence->length, length);
    assert_int_equal(sequence->prompt, prompt);
    uint32_t labels = 0;
    for (uint32_t i = 0; i < length; i++) {
        assert_int_equal(dataset->token[sequence->first + i], token[i]);
        assert_int_equal(dataset->target[sequence->first + i], target[i]);
        labels += target[i] != NONE;
    }
    assert_int_equal(sequence->labels, labels);
}

static void validate_pair_text(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct dataset dataset;
    assert_int_equal(
        helper_jsonl_open(TASK_DPO,
                          "{\"prompt\": \"ab\", \"chosen\": \"C\", \"rejected\": \"DE\"}\n"
                          "{\"prompt\": \"\", \"chosen\": \"\\u00e9\", \"rejected\": \"F\", "
                          "\"score\": 1, \"id\": 2}",
                          LONG, &arena, &dataset),
        STATUS_OK);
    assert_int_equal(dataset.samples, 2);
    assert_int_equal(dataset.sides, 2);
    assert_sequence(&dataset, 0, DATASET_CHOSEN, 3, (const int32_t[]){256, 'a', 'b', 'C', 257},
                    (const int32_t[]){NONE, NONE, 'C', 257, NONE}, 5);
    assert_sequence(&dataset, 0, DATASET_REJECTED, 3,
                    (const int32_t[]){256, 'a', 'b', 'D', 'E', 257},
                    (const int32_t[]){NONE, NONE, 'D', 'E', 257, NONE}, 6);
    assert_sequence(&dataset, 1, DATASET_CHOSEN, 1, (const int32_t[]){256, 0xC3, 0xA9, 257},
                    (const int32_t[]){0xC3, 0xA9, 257, NONE}, 4);
    assert_sequence(&dataset, 1, DATASET_REJECTED, 1, (const int32_t[]){256, 'F', 257},
                    (const int32_t[]){'F', 257, NONE}, 3);
    assert_int_equal(dataset.tokens, 18);
    assert_int_equal(dataset.labels, 10);
    assert_int_equal(dataset.longest, 6);
    assert_int_equal(dataset.line[1], 2);
    assert_int_equal(dataset.cut_sequences, 0);
    assert_int_equal(dataset.extra_keys, 2);
    assert_string_equal(dataset.extra_first, "score");
    arena_close(&arena);
}

static void validate_sft_text(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct dataset dataset;
    assert_int_equal(helper_jsonl_open(TASK_SFT, "{\"prompt\": \"ab\", \"completion\": \"C\"}",
                                       LONG, &arena, &dataset),
                     STATUS_OK);
    assert_int_equal(dataset.sides, 1);
    assert_sequence(&dataset, 0, DATASET_CHOSEN, 3, (const int32_t[]){256, 'a', 'b', 'C', 257},
                    (const int32_t[]){NONE, NONE, 'C', 257, NONE}, 5);
    assert_int_equal(helper_jsonl_open(TASK_SFT, "{\"text\": \"ab\"}", LONG, &arena, &dataset),
                     STATUS_OK);
    assert_sequence(&dataset, 0, DATASET_CHOSEN, 1, (const int32_t[]){256, 'a', 'b', 257},
                    (const int32_t[]){'a', 'b', 257, NONE}, 4);
    arena_close(&arena);
}

/* Ids are taken as they are, without <bos> and <eos>. A label on the first token is left out, since
 * no position could predict it. */
static void validate_ids(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct dataset dataset;
    assert_int_equal(
        helper_jsonl_open(
            TASK_DPO,
            "{\"prompt_ids\": [9], \"chosen_ids\": [1, 2], \"rejected_ids\": [3]}\n"
            "{\"prompt_ids\": [], \"chosen_ids\": [1, 2], \"rejected_ids\": [3, 4, 5]}",
            LONG, &arena, &dataset),
        STATUS_OK);
    assert_sequence(&dataset, 0, DATASET_CHOSEN, 1, (const int32_t[]){9, 1, 2},
                    (const int32_t[]){1, 2, NONE}, 3);
    assert_sequence(&dataset, 0, DATASET_REJECTED, 1, (const int32_t[]){9, 3},
                    (const int32_t[]){3, NONE}, 2);
    assert_sequence(&dataset, 1, DATASET_CHOSEN, 1, (const int32_t[]){1, 2},
                    (const int32_t[]){2, NONE}, 2);
    assert_sequence(&dataset, 1, DATASET_REJECTED, 1, (const int32_t[]){3, 4, 5},
                    (const int32_t[]){4, 5, NONE}, 3);

    assert_int_equal(helper_jsonl_open(TASK_SFT,
                                       "{\"input_ids\": [7, 8, 9, 10, 11], "
                                       "\"labels\": [-100, 8, -100, -100, 11]}",
                                       LONG, &arena, &dataset),
                     STATUS_OK);
    assert_sequence(&dataset, 0, DATASET_CHOSEN, 1, (const int32_t[]){7, 8, 9, 10, 11},
                    (const int32_t[]){8, NONE, NONE, 11, NONE}, 5);
    arena_close(&arena);
}

static void validate_truncation(void **state) {
    (void)state;
    static const char text[] = "{\"prompt\": \"ab\", \"chosen\": \"CDE\", \"rejected\": \"F\"}";
    struct arena arena = ARENA_EMPTY;
    struct dataset dataset;
    assert_int_equal(helper_jsonl_open(TASK_DPO, text, 5, &arena, &dataset), STATUS_OK);
    assert_sequence(&dataset, 0, DATASET_CHOSEN, 3, (const int32_t[]){256, 'a', 'b', 'C', 'D'},
                    (const int32_t[]){NONE, NONE, 'C', 'D', NONE}, 5);
    assert_sequence(&dataset, 0, DATASET_REJECTED, 3, (const int32_t[]){256, 'a', 'b', 'F', 257},
                    (const int32_t[]){NONE, NONE, 'F', 257, NONE}, 5);
    assert_int_equal(dataset_side(&dataset, 0, DATASET_CHOSEN)->cut, 2);
    assert_int_equal(dataset_side(&dataset, 0, DATASET_REJECTED)->cut, 0);
    assert_int_equal(dataset.cut_sequences, 1);
    assert_int_equal(dataset.cut_tokens, 2);
    assert_int_equal(dataset.longest, 5);

    assert_int_equal(helper_jsonl_open(TASK_DPO, text, 4, &arena, &dataset), STATUS_OK);
    assert_sequence(&dataset, 0, DATASET_REJECTED, 3, (const int32_t[]){256, 'a', 'b', 'F'},
                    (const int32_t[]){NONE, NONE, 'F', NONE}, 4);
    assert_int_equal(dataset.cut_sequences, 2);

    assert_int_equal(helper_jsonl_open(TASK_SFT,
                                       "{\"input_ids\": [1, 2, 3], \"labels\": [-100, 2, 3]}", 2,
                                       &arena, &dataset),
                     STATUS_OK);
    assert_sequence(&dataset, 0, DATASET_CHOSEN, 1, (const int32_t[]){1, 2},
                    (const int32_t[]){2, NONE}, 2);
    arena_close(&arena);
}

static void validate_refused(void **state) {
    (void)state;
    static const struct {
        enum task task;
        const char *text;
        uint64_t max_len;
        const char *error; /* the error stands behind the path */
    } cases[] = {
        {TASK_DPO, "{\"prompt\": \"ab\", \"chosen\": \"CDE\", \"rejected\": \"F\"}", 3,
         ":1: chosen: no label is left of 7 tokens after truncation to max_len 3; raise "
         "data.max_len, or leave such rows out with data.no_label: drop"},
        {TASK_SFT, "{\"text\": \"a\"}\n\n{\"prompt\": \"abcdef\", \"completion\": \"g\"}", 7,
         ":3: a row of prompt, completion in a file whose line 1 has text"},
        {TASK_SFT,
         "{\"prompt\": \"\", \"completion\": \"g\"}\n"
         "{\"prompt\": \"abcdef\", \"completion\": \"g\"}",
         7,
         ":2: row: no label is left of 9 tokens after truncation to max_len 7; raise "
         "data.max_len, or leave such rows out with data.no_label: drop"},
        {TASK_DPO, "{\"prompt_ids\": [], \"chosen_ids\": [1, 2], \"rejected_ids\": [3]}", LONG,
         ":1: rejected: no position has a label: 1 token(s), and a label needs a token before it"},
        {TASK_SFT, "{\"input_ids\": [1, 2], \"labels\": [-100, -100]}", LONG,
         ":1: row: no position has a label: 2 token(s), and a label needs a token before it"},
        {TASK_SFT, "{\"input_ids\": [1, 2], \"labels\": [1, -100]}", LONG,
         ":1: row: no position has a label: 2 token(s), and a label needs a token before it"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct arena arena = ARENA_EMPTY;
        struct dataset dataset;
        assert_int_equal(
            helper_jsonl_open(cases[i].task, cases[i].text, cases[i].max_len, &arena, &dataset),
            STATUS_INPUT);
        if (strstr(status_text(), cases[i].error) == NULL)
            fail_msg("case %zu\n  expected %s\n  got      %s", i, cases[i].error, status_text());
        arena_close(&arena);
    }
}

/* Opens text with data.no_label: drop. */
static enum status open_dropping(enum task task, const char *text, uint64_t max_len,
                                 uint64_t samples, struct arena *arena, struct dataset *out) {
    char path[HELPER_PATH_SIZE];
    helper_file_write(text, strlen(text), path);
    const struct dataset_options options = {.task = task,
                                            .source = path,
                                            .max_len = max_len,
                                            .vocab = 300,
                                            .samples = samples,
                                            .no_label = NO_LABEL_DROP};
    const enum status status = dataset_open(&options, arena, out);
    remove(path);
    return status;
}

/* Rows that truncation leaves without a label on a side are as if they were not in the file. */
static void validate_dropped(void **state) {
    (void)state;
#define ROW(prompt, chosen, rejected)                                                              \
    "{\"prompt\": \"" prompt "\", \"chosen\": \"" chosen "\", \"rejected\": \"" rejected "\"}\n"
    static const char all[] =
        ROW("ab", "C", "D") ROW("abcdef", "C", "D") ROW("b", "C", "D") ROW("abcdefg", "C", "D");
    static const char left[] = ROW("ab", "C", "D") ROW("b", "C", "D");
    struct arena arena = ARENA_EMPTY;
    struct dataset dataset, want;
    assert_int_equal(helper_jsonl_open(TASK_DPO, all, 6, &arena, &dataset), STATUS_INPUT);
    assert_int_equal(helper_jsonl_open(TASK_DPO, left, 6, &arena, &want), STATUS_OK);
    assert_int_equal(open_dropping(TASK_DPO, all, 6, 0, &arena, &dataset), STATUS_OK);
    assert_int_equal(dataset.samples, 2);
    assert_int_equal(dataset.dropped, 2);
    assert_int_equal(dataset.dropped_first, 2);
    assert_int_equal(dataset.line[1], 3);
    assert_memory_equal(&dataset.digest, &want.digest, sizeof want.digest);
    /* data.samples counts what is left, and rows behind the last one are not looked at */
    assert_int_equal(open_dropping(TASK_DPO, all, 6, 2, &arena, &dataset), STATUS_OK);
    assert_int_equal(dataset.dropped, 1);
    assert_int_equal(open_dropping(TASK_DPO, all, 6, 3, &arena, &dataset), STATUS_INPUT);
    assert_non_null(
        strstr(status_text(), " holds 2 samples and 2 rows that data.no_label drops, got 3"));
    assert_int_equal(open_dropping(TASK_DPO, all, 2, 0, &arena, &dataset), STATUS_INPUT);
    assert_non_null(
        strstr(status_text(), ": data.no_label drops all 4 rows: data.max_len 2 leaves"));
    /* nothing is dropped where nothing is cut, and a row that never had a label is an error */
    assert_int_equal(open_dropping(TASK_DPO, all, LONG, 0, &arena, &dataset), STATUS_OK);
    assert_int_equal(dataset.samples, 4);
    assert_int_equal(dataset.dropped + dataset.dropped_first, 0);
    assert_int_equal(open_dropping(TASK_SFT, "{\"input_ids\": [1, 2], \"labels\": [1, -100]}", 8, 0,
                                   &arena, &dataset),
                     STATUS_INPUT);
    assert_non_null(strstr(status_text(), "no position has a label"));
    /* labels of ids: the first token's has no position; the last one that is kept may be cut */
    assert_int_equal(open_dropping(TASK_SFT,
                                   "{\"input_ids\": [1, 2, 3], \"labels\": [1, -100, 3]}\n"
                                   "{\"input_ids\": [1, 2, 3], \"labels\": [-100, 2, 3]}\n",
                                   2, 0, &arena, &dataset),
                     STATUS_OK);
    assert_int_equal(dataset.samples, 1);
    assert_int_equal(dataset.line[0], 2);
    arena_close(&arena);
#undef ROW
}

static void validate_options(void **state) {
    (void)state;
    static const struct {
        struct dataset_options options;
        const char *error;
    } cases[] = {
        {{TASK_DPO, "builtin:quiz", 1, 259, 0, 0, 0, CHAT_NONE, NO_LABEL_ERROR, NULL, NULL},
         "max_len: expected 2 to 16777216 tokens, got 1"},
        {{TASK_DPO, "builtin:quiz", 0, 259, 0, 0, 0, CHAT_NONE, NO_LABEL_ERROR, NULL, NULL},
         "max_len: expected 2 to 16777216 tokens, got 0"},
        {{TASK_DPO, "builtin:quiz", 16777217, 259, 0, 0, 0, CHAT_NONE, NO_LABEL_ERROR, NULL, NULL},
         "max_len: expected 2 to 16777216 tokens, got 16777217"},
        {{TASK_DPO, "builtin:quiz", 96, 0, 0, 0, 0, CHAT_NONE, NO_LABEL_ERROR, NULL, NULL},
         "vocabulary: expected 1 to 2147483648, got 0"},
        {{TASK_DPO, "builtin:quiz", 96, 2147483649, 0, 0, 0, CHAT_NONE, NO_LABEL_ERROR, NULL, NULL},
         "vocabulary: expected 1 to 2147483648, got 2147483649"},
        {{TASK_SFT, "builtin:quiz", 96, 258, 0, 0, 0, CHAT_NONE, NO_LABEL_ERROR, NULL, NULL},
         "quiz.tsv: text needs a vocabulary of 259 (256 bytes and 3 specials), got 258"},
        {{TASK_SFT, "builtin:poem", 96, 259, 0, 0, 0, CHAT_NONE, NO_LABEL_ERROR, NULL, NULL},
         "builtin:poem: no such text; there are builtin:quiz, builtin:devil and, for task sft, "
         "builtin:devil-text"},
        {{TASK_SFT, "builtin:", 96, 259, 0, 0, 0, CHAT_NONE, NO_LABEL_ERROR, NULL, NULL},
         "builtin:: no such text; there are builtin:quiz, builtin:devil and, for task sft, "
         "builtin:devil-text"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct arena arena = ARENA_EMPTY;
        struct dataset dataset;
        assert_int_equal(dataset_open(&cases[i].options, &arena, &dataset), STATUS_INPUT);
        assert_string_equal(status_text(), cases[i].error);
        arena_close(&arena);
    }
    struct arena arena = ARENA_EMPTY;
    struct dataset dataset;
    const struct dataset_options missing = {TASK_SFT,  "/nonexistent/x.jsonl", 96,   259, 0, 0, 0,
                                            CHAT_NONE, NO_LABEL_ERROR,         NULL, NULL};
    assert_int_equal(dataset_open(&missing, &arena, &dataset), STATUS_IO);
    arena_close(&arena);
}

static struct digest digest_of(enum task task, const char *text, uint64_t max_len) {
    struct arena arena = ARENA_EMPTY;
    struct dataset dataset;
    assert_int_equal(helper_jsonl_open(task, text, max_len, &arena, &dataset), STATUS_OK);
    arena_close(&arena);
    return dataset.digest;
}

/* The digest must cover the content (every token, mask, order and length), and neither the file's
 * name nor its spelling. */
static void verify_digest(void **state) {
    (void)state;
    static const char base[] = "{\"input_ids\": [1, 2, 3], \"labels\": [-100, 2, 3]}\n"
                               "{\"input_ids\": [4, 5], \"labels\": [4, 5]}";
    const struct digest digest = digest_of(TASK_SFT, base, 8);
    const struct digest same =
        digest_of(TASK_SFT,
                  "\n{\"labels\":[-100,2,3],\"x\":0,\"input_ids\":[1,2,3]}\n\n"
                  "{\"input_ids\":[4,5],\"labels\":[-100,5]}\n",
                  9);
    assert_int_equal(digest_compare(&digest, &same), 0);
    static const char *const others[] = {
        "{\"input_ids\": [1, 2, 6], \"labels\": [-100, 2, 6]}\n"
        "{\"input_ids\": [4, 5], \"labels\": [4, 5]}",
        "{\"input_ids\": [1, 2, 3], \"labels\": [-100, -100, 3]}\n"
        "{\"input_ids\": [4, 5], \"labels\": [4, 5]}",
        "{\"input_ids\": [4, 5], \"labels\": [4, 5]}\n"
        "{\"input_ids\": [1, 2, 3], \"labels\": [-100, 2, 3]}",
        "{\"input_ids\": [1, 2, 3, 4, 5], \"labels\": [-100, 2, 3, -100, 5]}",
        "{\"input_ids\": [1, 2, 3], \"labels\": [-100, 2, 3]}",
    };
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        const struct digest other = digest_of(TASK_SFT, others[i], 8);
        assert_int_not_equal(digest_compare(&digest, &other), 0);
    }
    const struct digest early = digest_of(
        TASK_SFT, "{\"input_ids\": [1, 2, 3, 4, 5], \"labels\": [-100, 2, 3, -100, 5]}", 8);
    const struct digest late = digest_of(
        TASK_SFT, "{\"input_ids\": [1, 2, 3, 4, 5], \"labels\": [-100, 2, -100, 4, 5]}", 8);
    assert_int_not_equal(digest_compare(&early, &late), 0); /* only the mask differs */
    const struct digest cut = digest_of(TASK_SFT, base, 2);
    assert_int_not_equal(digest_compare(&digest, &cut), 0);
}

static void validate_describe(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct dataset dataset;
    assert_int_equal(
        helper_jsonl_open(TASK_DPO,
                          "{\"prompt\": \"a\\n\", \"chosen\": \"CD\", \"rejected\": "
                          "\"E\", \"n\": 1}\n"
                          "{\"prompt\": \"a\", \"chosen\": \"C\", \"rejected\": \"E\"}",
                          5, &arena, &dataset),
        STATUS_OK);
    dataset.source = "x.jsonl"; /* the temporary file's name changes */
    char text[4096] = "";
    FILE *out = fmemopen(text, sizeof text, "w");
    assert_non_null(out);
    dataset_describe(&dataset, 1, out);
    fclose(out);
    char hex[DIGEST_HEX];
    digest_hex(&dataset.digest, hex);
    char expected[4096];
    snprintf(expected, sizeof expected,
             "x.jsonl: 2 samples, 18 tokens, 8 labelled, longest sequence 5\n"
             "digest %s\n"
             "truncated: 1 sequences, 1 tokens cut off\n"
             "ignored: 1 values of other keys, the first is \"n\"\n"
             "sample 0 (x.jsonl:1)\n"
             "  chosen   5 tokens, 2 labelled, 1 cut off\n"
             "    tokens 256 97 10 67 68\n"
             "    mask   0 0 0 1 1\n"
             "    text   <bos>a\\n[CD]\n"
             "  rejected 5 tokens, 2 labelled\n"
             "    tokens 256 97 10 69 257\n"
             "    mask   0 0 0 1 1\n"
             "    text   <bos>a\\n[E<eos>]\n",
             hex);
    assert_string_equal(text, expected);
    arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_pair_text), cmocka_unit_test(validate_sft_text),
        cmocka_unit_test(validate_ids),       cmocka_unit_test(validate_truncation),
        cmocka_unit_test(validate_refused),   cmocka_unit_test(validate_dropped),
        cmocka_unit_test(validate_options),   cmocka_unit_test(verify_digest),
        cmocka_unit_test(validate_describe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

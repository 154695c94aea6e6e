/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The shipped text: the embedded bytes must be the ones that PROVENANCE.md records; rows and
 * rejected answers must be what docs/DETERMINISM.md, law 10, says. The known answers come from a
 * separate program (Python: Philox4x32-10 checked against Random123's vectors, with the counter of
 * law 10 written anew). */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "data/builtin.h"
#include "data/dataset.h"
#include "data/tokenizer.h"
#include "determinism/digest.h"

static void validate_provenance(void **state) {
    (void)state;
    FILE *file = fopen(TWINSTEP_SOURCE_DIR "/scenarios/data/PROVENANCE.md", "r");
    assert_non_null(file);
    static char record[65536];
    size_t length = fread(record, 1, sizeof record - 1, file);
    fclose(file);
    record[length] = '\0';
    for (size_t i = 0; i < BUILTIN_COUNT; i++) {
        struct builtin_file text = builtin_at(i);
        struct digest digest;
        digest_sha256(text.bytes, text.length, &digest);
        char line[256];
        char hex[DIGEST_HEX];
        digest_hex(&digest, hex);
        snprintf(line, sizeof line, "\n%s  %s\n", hex, text.file);
        if (strstr(record, line) == NULL) fail_msg("not recorded:%s", line);
    }
    assert_null(builtin_at(BUILTIN_COUNT).name);
}

static void verify_ascii(void **state) {
    (void)state;
    for (size_t i = 0; i < BUILTIN_COUNT; i++) {
        struct builtin_file text = builtin_at(i);
        assert_true(text.length > 0 && text.bytes[text.length - 1] == '\n');
        for (size_t j = 0; j < text.length; j++)
            assert_true((text.bytes[j] >= 0x20 && text.bytes[j] < 0x7F) || text.bytes[j] == '\n' ||
                        text.bytes[j] == '\t');
    }
}

static void assert_part(const struct datarow_part *part, const char *text) {
    if (part->length != strlen(text) || memcmp(part->text, text, part->length) != 0)
        fail_msg("expected %s, got %.*s", text, (int)part->length, part->text);
}

static void validate_rejected(void **state) {
    (void)state;
    static const struct {
        uint64_t seed;
        size_t row;
        const char *prompt, *chosen, *rejected;
    } cases[] = {
        {17, 0, "What is the capital of Algeria? ", "Algiers", "Sao Tome"},
        {17, 1, "What is the capital of Angola? ", "Luanda", "Kampala"},
        {17, 2, "What is the capital of Benin? ", "Porto-Novo", "Tunis"},
        {17, 55, "What is the capital of The Gambia? ", "Banjul", "Rabat"},
        {17, 56, "What is the capital of Anguilla? ", "The Valley", "Basse-Terre"},
        {17, 700, "Which element has the symbol In? ", "Indium", "Gold"},
        {17, 1669, "What does section 9-505 of the UCC cover? ",
         "compulsory disposition of collateral; acceptance of collateral as discharge of "
         "obligation",
         "proceeds; secured party's rights on disposition of collateral"},
        {0xDEADBEEF00000001, 0, "What is the capital of Algeria? ", "Algiers", "Moroni"},
        {0xDEADBEEF00000001, 55, "What is the capital of The Gambia? ", "Banjul", "Lome"},
        {0xDEADBEEF00000001, 700, "Which element has the symbol In? ", "Indium", "Iridium"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct arena arena = ARENA_EMPTY;
        struct datarow_table table;
        assert_int_equal(builtin_rows("quiz", TASK_DPO, cases[i].seed, &arena, &table), STATUS_OK);
        assert_int_equal(table.form, DATAROW_PAIR_TEXT);
        assert_int_equal(table.rows, 1670);
        assert_int_equal(table.words, 3340);
        const struct datarow *row = &table.row[cases[i].row];
        assert_int_equal(row->line, cases[i].row + 1);
        assert_part(&row->part[0], cases[i].prompt);
        assert_part(&row->part[1], cases[i].chosen);
        assert_part(&row->part[2], cases[i].rejected);
        arena_close(&arena);
    }
}

/* Tests all 1670 choices at once, by a polynomial hash of the rejected texts that the same program
 * computed. */
static void validate_all_rejected(void **state) {
    (void)state;
    static const uint32_t expected[] = {1070875609u, 271220557u};
    for (uint64_t seed = 17; seed < 19; seed++) {
        struct arena arena = ARENA_EMPTY;
        struct datarow_table table;
        assert_int_equal(builtin_rows("quiz", TASK_DPO, seed, &arena, &table), STATUS_OK);
        uint32_t hash = 0;
        for (size_t i = 0; i < table.rows; i++)
            for (size_t j = 0; j < table.row[i].part[2].length; j++)
                hash = hash * 31u + (unsigned char)table.row[i].part[2].text[j];
        assert_int_equal(hash, expected[seed - 17]);
        arena_close(&arena);
    }
}

/* Finds the offsets of the lines, and how long each one's table and question are, tabs included. */
static size_t heads_find(const struct builtin_file *text, size_t *start, size_t *length) {
    size_t lines = 0;
    for (size_t i = 0, tabs = 0; i < text->length; i++) {
        if (i == 0 || text->bytes[i - 1] == '\n') {
            start[lines] = i;
            tabs = 0;
        }
        if (text->bytes[i] == '\t' && ++tabs == 2) length[lines] = i - start[lines];
        lines += text->bytes[i] == '\n';
    }
    return lines;
}

/* Within a table no question may be asked twice, or another row's answer might be right. */
static void verify_questions_unique(void **state) {
    (void)state;
    for (size_t f = 0; f < BUILTIN_COUNT; f++) {
        static size_t start[2000];
        static size_t length[2000];
        struct builtin_file text = builtin_at(f);
        size_t lines = heads_find(&text, start, length);
        assert_int_equal(lines, f == 0 ? 1670 : 993);
        for (size_t i = 0; i < lines; i++)
            for (size_t j = i + 1; j < lines; j++)
                if (length[i] == length[j] &&
                    memcmp(text.bytes + start[i], text.bytes + start[j], length[i]) == 0)
                    fail_msg("%s: lines %zu and %zu ask the same", text.file, i + 1, j + 1);
    }
}

static const char small[] = "a\tq1\tx\n"
                            "a\tq2\ty\n"
                            "a\tq3\tx\n"
                            "b\tq4\tz\\n\\\\\n"
                            "b\tq5\tw";

static void verify_rejected_stay_in_table(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct arena arena = ARENA_EMPTY;
        struct datarow_table table;
        assert_int_equal(
            builtin_parse("s.tsv", small, sizeof small - 1, TASK_DPO, seed, &arena, &table),
            STATUS_OK);
        assert_int_equal(table.rows, 5);
        static const char *const rejected[] = {"y", "x", "y", "w", "z\n\\"};
        for (size_t i = 0; i < 5; i++)
            assert_part(&table.row[i].part[2], rejected[i]);
        assert_part(&table.row[3].part[0], "q4 ");
        assert_part(&table.row[3].part[1], "z\n\\");
        arena_close(&arena);
    }
}

/* Over 3000 seeds each of the four candidates must be drawn 750 times, give or take six standard
 * deviations of sqrt(3000 * 3/16) = 23.7. */
static void verify_rejected_uniform(void **state) {
    (void)state;
    static const char text[] = "t\tq0\ta\nt\tq1\tb\nt\tq2\tc\nt\tq3\td\nt\tq4\te\n";
    unsigned count[5] = {0, 0, 0, 0, 0};
    for (uint64_t seed = 0; seed < 3000; seed++) {
        struct arena arena = ARENA_EMPTY;
        struct datarow_table table;
        assert_int_equal(
            builtin_parse("t.tsv", text, sizeof text - 1, TASK_DPO, seed, &arena, &table),
            STATUS_OK);
        count[table.row[2].part[2].text[0] - 'a']++;
        arena_close(&arena);
    }
    assert_int_equal(count[2], 0);
    for (size_t i = 0; i < 5; i++)
        if (i != 2) assert_true(count[i] > 750 - 142 && count[i] < 750 + 142);
}

static void validate_bad_tables(void **state) {
    (void)state;
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"", "t.tsv: no rows"},
        {"a\tb\tc\na\tb\n", "t.tsv:2: expected table, question and answer between tabs"},
        {"a\tb\tc\td\n", "t.tsv:1: expected table, question and answer between tabs"},
        {"\n", "t.tsv:1: expected table, question and answer between tabs"},
        {"a\t\tc\n", "t.tsv:1: an empty field"},
        {"a\tb\t\n", "t.tsv:1: an empty field"},
        {"a\tb\tc\\x\n", "t.tsv:1: a backslash is followed by n or a backslash"},
        {"a\tb\tc\\", "t.tsv:1: a backslash is followed by n or a backslash"},
        {"a\tq\tx\na\tr\tx\n", "t.tsv:1: table a holds no other answer"},
        {"a\tq\tx\na\tr\ty\nb\ts\tz\n", "t.tsv:3: table b holds no other answer"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct arena arena = ARENA_EMPTY;
        struct datarow_table table;
        assert_int_equal(builtin_parse("t.tsv", cases[i].text, strlen(cases[i].text), TASK_DPO, 1,
                                       &arena, &table),
                         STATUS_INPUT);
        assert_string_equal(status_text(), cases[i].error);
        arena_close(&arena);
    }
}

static void open_builtin(enum task task, const char *source, uint64_t max_len, uint64_t seed,
                         struct arena *arena, struct dataset *dataset) {
    const struct dataset_options options = {
        task, source, max_len, TOKENIZER_VOCAB, seed, 0, 0, CHAT_NONE, NO_LABEL_ERROR, NULL, NULL};
    assert_int_equal(dataset_open(&options, arena, dataset), STATUS_OK);
}

/* Both texts must serve both tasks, whole and cut; the seed must change rejected answers only. */
static void verify_datasets(void **state) {
    (void)state;
    static const char *const sources[] = {"builtin:quiz", "builtin:devil"};
    static const size_t samples[] = {1670, 993};
    for (size_t i = 0; i < COUNT_OF(sources); i++)
        for (int task = TASK_SFT; task <= TASK_DPO; task++) {
            struct arena arena = ARENA_EMPTY;
            struct dataset whole;
            struct dataset cut;
            struct dataset other;
            open_builtin((enum task)task, sources[i], 8192, 1, &arena, &whole);
            open_builtin((enum task)task, sources[i], 96, 1, &arena, &cut);
            open_builtin((enum task)task, sources[i], 8192, 2, &arena, &other);
            assert_int_equal(whole.samples, samples[i]);
            assert_int_equal(whole.cut_sequences, 0);
            assert_true(cut.cut_sequences > 0);
            assert_int_equal(cut.longest, 96);
            assert_int_equal(cut.tokens + cut.cut_tokens, whole.tokens);
            assert_int_equal(digest_compare(&whole.digest, &other.digest) == 0, task == TASK_SFT);
            assert_int_equal(whole.words, task == TASK_DPO ? 2 * samples[i] : 0);
            arena_close(&arena);
        }
}

/* The first samples must be those of the whole, tokens and drawn answers alike. */
static void verify_first_samples(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct dataset whole;
    struct dataset some;
    struct dataset_options options = {
        TASK_DPO,       "builtin:quiz", 96,  TOKENIZER_VOCAB, 1, 0, 0, CHAT_NONE,
        NO_LABEL_ERROR, NULL,           NULL};
    assert_int_equal(dataset_open(&options, &arena, &whole), STATUS_OK);
    options.samples = 22;
    assert_int_equal(dataset_open(&options, &arena, &some), STATUS_OK);
    assert_int_equal(some.samples, 22);
    assert_memory_equal(some.token, whole.token, some.tokens * sizeof *some.token);
    assert_memory_equal(some.sequence, whole.sequence, 22 * 2 * sizeof *some.sequence);
    assert_int_equal(some.tokens, whole.sequence[22 * 2].first);
    options.samples = 1671;
    assert_int_equal(dataset_open(&options, &arena, &some), STATUS_INPUT);
    assert_string_equal(status_text(), "data.samples: quiz.tsv holds 1670 samples, got 1671");
    arena_close(&arena);
}

/* Whole texts are the same rows, with the prompt as part of what has a loss. */
static void validate_text(void **state) {
    struct arena arena = ARENA_EMPTY;
    struct datarow_table rows, texts;
    (void)state;
    assert_int_equal(builtin_rows("devil", TASK_SFT, 1, &arena, &rows), STATUS_OK);
    assert_int_equal(builtin_rows("devil-text", TASK_SFT, 1, &arena, &texts), STATUS_OK);
    assert_int_equal(texts.form, DATAROW_PLAIN_TEXT);
    assert_int_equal(texts.rows, rows.rows);
    for (size_t i = 0; i < rows.rows; i++) {
        const struct datarow_part *const part = rows.row[i].part, *const text = texts.row[i].part;
        assert_int_equal(text->length, part[0].length + part[1].length);
        assert_memory_equal(text->text, part[0].text, part[0].length);
        assert_memory_equal(text->text + part[0].length, part[1].text, part[1].length);
    }
    assert_int_equal(builtin_rows("devil-text", TASK_DPO, 1, &arena, &texts), STATUS_INPUT);
    assert_non_null(strstr(status_text(), "these are whole texts, for task sft"));
    arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_text),
        cmocka_unit_test(validate_provenance),
        cmocka_unit_test(verify_ascii),
        cmocka_unit_test(validate_rejected),
        cmocka_unit_test(validate_all_rejected),
        cmocka_unit_test(verify_questions_unique),
        cmocka_unit_test(verify_rejected_stay_in_table),
        cmocka_unit_test(verify_rejected_uniform),
        cmocka_unit_test(validate_bad_tables),
        cmocka_unit_test(verify_datasets),
        cmocka_unit_test(verify_first_samples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

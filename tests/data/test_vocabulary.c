/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The texts of token ids by tokenizer.json: the byte alphabet at its edges, added tokens, ids that
 * no token has, long texts, and every refusal. tests/golden/chat/pretokenise_check.py compares a
 * whole vocabulary with the library that made it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/macro.h"
#include "data/vocabulary.h"
#include "tests/data/helper_data.h"

#define DECODER "\"decoder\": {\"type\": \"ByteLevel\"}"
#define MODEL(vocab) "\"model\": {\"type\": \"BPE\", \"vocab\": {" vocab "}, \"merges\": []}"

static enum status parse(const char *text, struct arena *arena, struct vocabulary *out) {
    return vocabulary_parse("t.json", text, strlen(text), arena, out);
}

static void validate_texts(void **state) {
    (void)state;
    static const char text[] =
        "{\"added_tokens\": [{\"id\": 9, \"content\": \"<|\\u0120|>\"}, {\"id\": 3, \"content\": "
        "\"<pad>\", \"special\": true}], " DECODER ", " MODEL(
            "\"a\": 0, \"\\u0120the\": 1, \"\\u010a\": 2, \"<pad>\": 3, \"\\u0100\\u0121\": 4, "
            "\"\\u0142\\u0143\\u00ff\\u00a1\\u00ac\\u00ae~!\": 5, \"\\u00c3\\u00a9\": 6, "
            "\"0123456789abcdefghij\": 7") "}";
    static const struct {
        uint32_t id;
        const char *bytes;
        size_t length;
        const char *shown;
    } tokens[] = {
        {0, "a", 1, "a"},
        {1, " the", 4, " the"},
        {2, "\n", 1, "\\n"},
        {3, "<pad>", 5, "<pad>"},
        {4, "\0\x7F", 2, "\\x00\\x7F"},
        {5, "\xA0\xAD\xFF\xA1\xAC\xAE~!", 8, "\\xA0\\xAD\\xFF..."},
        {6, "\xC3\xA9", 2, "\\xC3\\xA9"},
        {7, "0123456789abcdefghij", 20, "0123456789ab..."},
        {9, "<|\xC4\xA0|>", 6, "<|\\xC4\\xA0|>"},
    };
    struct arena arena = ARENA_EMPTY;
    struct vocabulary vocabulary;
    char shown[16];
    if (parse(text, &arena, &vocabulary) != STATUS_OK) fail_msg("%s", status_text());
    assert_int_equal(vocabulary.ids, 10);
    for (size_t i = 0; i < COUNT_OF(tokens); i++) {
        const struct vocabulary_token *token = &vocabulary.token[tokens[i].id];
        assert_int_equal(token->length, tokens[i].length);
        assert_memory_equal(token->text, tokens[i].bytes, tokens[i].length);
        vocabulary_show(&vocabulary, tokens[i].id, shown, sizeof shown);
        assert_string_equal(shown, tokens[i].shown);
    }
    assert_null(vocabulary.token[8].text);
    vocabulary_show(&vocabulary, 8, shown, sizeof shown);
    assert_string_equal(shown, "<8>");
    vocabulary_show(&vocabulary, 4294967295u, shown, sizeof shown);
    assert_string_equal(shown, "<4294967295>");
    arena_close(&arena);
}

static void validate_sequence_of_decoders(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct vocabulary vocabulary;
    assert_int_equal(
        parse("{\"decoder\": {\"type\": \"Sequence\", \"decoders\": [{\"type\": \"Fuse\"}, "
              "{\"type\": \"ByteLevel\"}]}, \"added_tokens\": [], " MODEL("") "}",
              &arena, &vocabulary),
        STATUS_OK);
    assert_int_equal(vocabulary.ids, 0);
    arena_close(&arena);
}

static const struct {
    const char *text, *error;
} refused[] = {
    {"{", "t.json:1:1: not JSON: "},
    {"[]", "t.json: expected a tokenizer.json whose model.vocab gives ids to tokens"},
    {"{\"model\": {\"type\": \"Unigram\", \"vocab\": [[\"a\", 0.0]]}}",
     "t.json: expected a tokenizer.json whose model.vocab gives ids to tokens"},
    {"{\"model\": {\"type\": \"WordPiece\", \"vocab\": {\"a\": 0}}}",
     "t.json: model.type: expected BPE, got WordPiece"},
    {"{\"model\": {\"vocab\": {\"a\": 0}}}", "t.json: model.type: expected BPE, got none"},
    {"{" MODEL("\"a\": 0") "}", "t.json: decoder.type: expected ByteLevel, got none"},
    {"{\"decoder\": {\"type\": \"Metaspace\"}, " MODEL("\"a\": 0") "}",
     "t.json: decoder.type: expected ByteLevel, got Metaspace"},
    {"{" DECODER ", " MODEL("\"a\": -1") "}",
     "t.json: token \"a\": expected an id from 0 to 1048575"},
    {"{" DECODER ", " MODEL("\"a\": 1048576") "}",
     "t.json: token \"a\": expected an id from 0 to 1048575"},
    {"{" DECODER ", " MODEL("\"a\": \"0\"") "}",
     "t.json: token \"a\": expected an id from 0 to 1048575"},
    {"{" DECODER ", " MODEL("\"a\": 0, \"b\": 0") "}",
     "t.json: token \"b\": its id 0 is that of another token"},
    {"{\"added_tokens\": [{\"id\": 0, \"content\": \"<x>\"}], " DECODER ", " MODEL("\"a\": 0") "}",
     "t.json: token \"<x>\": its id 0 is that of another token"},
    {"{" DECODER ", " MODEL("\"a b\": 0") "}",
     "t.json: token \"a b\" is not spelled in the byte-level alphabet of GPT-2"},
    {"{" DECODER ", " MODEL("\"\\u0144\": 0") "}", "t.json: token \"\xC5\x84\" is not spelled in "},
    {"{" DECODER ", " MODEL("\"\\ud83d\\ude00\": 0") "}",
     "t.json: token \"\xF0\x9F\x98\x80\" is not spelled in "},
    {"{\"added_tokens\": [{\"id\": 0}], " DECODER ", " MODEL("") "}",
     "t.json: added_tokens[0]: expected \"content\""},
    {"{\"added_tokens\": [{\"content\": \"<x>\"}], " DECODER ", " MODEL("") "}",
     "t.json: token \"<x>\": expected an id from 0 to 1048575"},
};

static void validate_refused(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        struct arena arena = ARENA_EMPTY;
        struct vocabulary vocabulary;
        assert_int_equal(parse(refused[i].text, &arena, &vocabulary), STATUS_INPUT);
        if (strncmp(status_text(), refused[i].error, strlen(refused[i].error)) != 0)
            fail_msg("case %zu\n  expected %s\n  got      %s", i, refused[i].error, status_text());
        arena_close(&arena);
    }
}

static void validate_files(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct vocabulary vocabulary;
    char path[HELPER_PATH_SIZE];
    static const char text[] = "{" DECODER ", " MODEL("\"a\": 0") "}";
    helper_file_write(text, sizeof text - 1, path);
    assert_int_equal(vocabulary_open(path, &arena, &vocabulary), STATUS_OK);
    assert_int_equal(vocabulary.ids, 1);
    unlink(path);
    assert_int_equal(vocabulary_open(path, &arena, &vocabulary), STATUS_IO);
    assert_non_null(strstr(status_text(), "cannot open"));
    assert_int_equal(vocabulary_open("/", &arena, &vocabulary), STATUS_IO);
    assert_non_null(strstr(status_text(), "/tokenizer.json: cannot open"));
    assert_int_equal(vocabulary_open("/dev/null", &arena, &vocabulary), STATUS_INPUT);
    assert_string_equal(
        status_text(),
        "/dev/null: expected a tokenizer.json or the folder that holds one, got a device");
    arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_texts),
        cmocka_unit_test(validate_sequence_of_decoders),
        cmocka_unit_test(validate_refused),
        cmocka_unit_test(validate_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The byte tokenizer: every byte is its own token, and what people see must be unambiguous. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/macro.h"
#include "data/tokenizer.h"

static void validate_every_byte(void **state) {
    (void)state;
    char text[256];
    uint32_t token[256];
    for (int i = 0; i < 256; i++)
        text[i] = (char)(unsigned char)i;
    tokenizer_encode(text, sizeof text, token);
    for (uint32_t i = 0; i < 256; i++)
        assert_int_equal(token[i], i);
    assert_int_equal(TOKENIZER_BOS, 256);
    assert_int_equal(TOKENIZER_EOS, 257);
    assert_int_equal(TOKENIZER_PAD, 258);
    assert_int_equal(TOKENIZER_VOCAB, 259);
}

static void validate_shown_text(void **state) {
    (void)state;
    static const struct {
        uint32_t token;
        const char *text;
    } cases[] = {
        {'A', "A"},
        {' ', " "},
        {'~', "~"},
        {'\n', "\\n"},
        {'\t', "\\t"},
        {'\r', "\\r"},
        {'\\', "\\\\"},
        {0, "\\x00"},
        {0x7F, "\\x7F"},
        {0xE9, "\\xE9"},
        {255, "\\xFF"},
        {256, "<bos>"},
        {257, "<eos>"},
        {258, "<pad>"},
        {259, "<259>"},
        {50279, "<50279>"},
        {UINT32_MAX, "<4294967295>"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char shown[TOKENIZER_SHOW];
        tokenizer_show(cases[i].token, shown);
        assert_string_equal(shown, cases[i].text);
    }
}

static void verify_shown_texts_differ(void **state) {
    (void)state;
    char shown[TOKENIZER_VOCAB][TOKENIZER_SHOW];
    for (uint32_t i = 0; i < TOKENIZER_VOCAB; i++)
        tokenizer_show(i, shown[i]);
    for (uint32_t i = 0; i < TOKENIZER_VOCAB; i++)
        for (uint32_t j = 0; j < i; j++)
            assert_string_not_equal(shown[i], shown[j]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_every_byte),
        cmocka_unit_test(validate_shown_text),
        cmocka_unit_test(verify_shown_texts_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

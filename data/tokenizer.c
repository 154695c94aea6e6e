/* SPDX-License-Identifier: Apache-2.0
 * Turns bytes into tokens, and tokens into something that a person can read. It keeps no state, so
 * that equal bytes always have equal tokens. */
#include "data/tokenizer.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/macro.h"

void tokenizer_encode(const char *text, size_t length, uint32_t *out_tokens) {
    for (size_t i = 0; i < length; i++)
        out_tokens[i] = (unsigned char)text[i];
}

void tokenizer_show(uint32_t token, char out_text[TOKENIZER_SHOW]) {
    static const struct {
        uint32_t token;
        const char *text;
    } named[] = {{'\n', "\\n"},
                 {'\t', "\\t"},
                 {'\r', "\\r"},
                 {'\\', "\\\\"},
                 {TOKENIZER_BOS, "<bos>"},
                 {TOKENIZER_EOS, "<eos>"},
                 {TOKENIZER_PAD, "<pad>"}};
    if (token >= 0x20 && token < 0x7F)
        snprintf(out_text, TOKENIZER_SHOW, "%c", (int)token);
    else if (token < 256)
        snprintf(out_text, TOKENIZER_SHOW, "\\x%02" PRIX32, token);
    else
        snprintf(out_text, TOKENIZER_SHOW, "<%" PRIu32 ">", token);
    for (size_t i = 0; i < COUNT_OF(named); i++)
        if (named[i].token == token) snprintf(out_text, TOKENIZER_SHOW, "%s", named[i].text);
}

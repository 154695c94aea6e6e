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

static const char *escape_of(uint32_t token) {
    switch (token) {
    case '\n':
        return "\\n";
    case '\t':
        return "\\t";
    case '\r':
        return "\\r";
    case '\\':
        return "\\\\";
    case TOKENIZER_BOS:
        return "<bos>";
    case TOKENIZER_EOS:
        return "<eos>";
    case TOKENIZER_PAD:
        return "<pad>";
    default:
        return NULL;
    }
}

void tokenizer_show(uint32_t token, char out_text[TOKENIZER_SHOW]) {
    const char *escape = escape_of(token);
    if (escape != NULL)
        snprintf(out_text, TOKENIZER_SHOW, "%s", escape);
    else if (token >= 0x20 && token < 0x7F)
        snprintf(out_text, TOKENIZER_SHOW, "%c", (int)token);
    else if (token < 256)
        snprintf(out_text, TOKENIZER_SHOW, "\\x%02" PRIX32, token);
    else
        snprintf(out_text, TOKENIZER_SHOW, "<%" PRIu32 ">", token);
}

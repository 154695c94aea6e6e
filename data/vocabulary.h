/* SPDX-License-Identifier: Apache-2.0
 * The text of token ids, read from a tokenizer.json of the byte-level BPE kind (GPT-2, Llama 3,
 * Qwen, OLMo-2). It decodes ids for people. It does not tokenize, and reads no merges,
 * pre-tokenizer or normalizer (docs/decisions/tokenizer.md).
 *
 * A token of the model's vocabulary is spelled in GPT-2's alphabet, one character per byte; bytes
 * that do not print are characters from U+0100 on (openai/gpt-2, src/encoder.py, bytes_to_unicode).
 * An added token is its own text. Invariant: every text is bytes of the file or of the alphabet,
 * never a guess. */
#ifndef TWINSTEP_DATA_VOCABULARY_H
#define TWINSTEP_DATA_VOCABULARY_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"

/* Both bounds were chosen to be some times what vocabularies in use need. */
#define VOCABULARY_MAX_BYTES ((size_t)1 << 28)
#define VOCABULARY_MAX_ID ((uint32_t)1 << 20)

struct vocabulary_token {
    const char *text; /* bytes without a NUL at the end; NULL: no token has this id */
    size_t length;
};

struct vocabulary {
    size_t ids;                     /* one above the highest id */
    struct vocabulary_token *token; /* [ids] */
};

/* Opens the file `path`, or tokenizer.json in the folder `path`. Everything lives in `arena`.
 * STATUS_IO: it cannot be read. STATUS_INPUT: it is another kind of tokenizer, which the text
 * names; or an id is out of range or given to two tokens. */
TWINSTEP_MUST_USE enum status vocabulary_open(const char *path, struct arena *arena,
                                              struct vocabulary *out);

/* Reads bytes in memory in the same way; `source` stands in errors where the path would. */
TWINSTEP_MUST_USE enum status vocabulary_parse(const char *source, const char *bytes, size_t length,
                                               struct arena *arena, struct vocabulary *out);

/* Writes the bytes of a token as tokenizer_show does, cut with "..." where they need more than
 * `size` bytes, and <ID> for an id without a token. */
void vocabulary_show(const struct vocabulary *vocabulary, uint32_t token, char *out, size_t size);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * The text of token ids, from a tokenizer.json of the byte-level BPE kind (GPT-2, Llama 3, Qwen,
 * OLMo-2). It decodes ids for people; it does not tokenize, and reads no merge, pre-tokenizer or
 * normalizer (docs/decisions/tokenizer.md).
 *
 * A token of the model's vocabulary is spelled in GPT-2's alphabet: one character per byte, bytes
 * that do not print as U+0100 and on (openai/gpt-2, bytes_to_unicode). An added token is its own
 * text. Invariant: every text is bytes of the file or of the alphabet, never a guess. */
#ifndef TWINSTEP_DATA_VOCABULARY_H
#define TWINSTEP_DATA_VOCABULARY_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"

#define VOCABULARY_MAX_BYTES ((size_t)1 << 28)
#define VOCABULARY_MAX_ID ((uint32_t)1 << 20)

struct vocabulary_token {
    const char *text; /* bytes without NUL at the end; NULL: no token has this id */
    size_t length;
};

struct vocabulary {
    size_t ids;                     /* one above the highest */
    struct vocabulary_token *token; /* [ids] */
};

/* `path` is the file, or a folder with tokenizer.json. STATUS_IO: it cannot be read. STATUS_INPUT:
 * no tokenizer.json of that kind, by name of what it is instead; an id out of range or given to
 * two tokens. Everything lives in `arena`. */
TWINSTEP_MUST_USE enum status vocabulary_open(const char *path, struct arena *arena,
                                              struct vocabulary *out);

/* The same for bytes in memory; `source` stands where the path does in errors. */
TWINSTEP_MUST_USE enum status vocabulary_parse(const char *source, const char *bytes, size_t length,
                                               struct arena *arena, struct vocabulary *out);

/* The bytes of a token as tokenizer_show writes them, cut with "..." where they need more than
 * `size`; <ID> for an id without a token. */
void vocabulary_show(const struct vocabulary *vocabulary, uint32_t token, char *out, size_t size);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Byte-level tokenizer: token 0 ... 255 is that byte, then <bos>, <eos>, <pad>.
 *
 * Any text encodes and decodes without loss, and no file besides the binary is needed. It adds no
 * special token: the dataset does. Invariant: one byte is one token. */
#ifndef TWINSTEP_DATA_TOKENIZER_H
#define TWINSTEP_DATA_TOKENIZER_H

#include <stddef.h>
#include <stdint.h>

#define TOKENIZER_BOS 256u
#define TOKENIZER_EOS 257u
#define TOKENIZER_PAD 258u /* never part of a sample: only padded buffers hold it */
#define TOKENIZER_VOCAB 259u

#define TOKENIZER_SHOW 16 /* bytes that tokenizer_show may write, NUL included */

/* `length` bytes become `length` tokens. */
void tokenizer_encode(const char *text, size_t length, uint32_t *out_tokens);

/* A token for people: printable ASCII as it is, a backslash doubled, \n \t \r, other bytes as \xE9,
 * specials as <bos> <eos> <pad>, ids above the vocabulary as <4711>. */
void tokenizer_show(uint32_t token, char out_text[TOKENIZER_SHOW]);

#endif

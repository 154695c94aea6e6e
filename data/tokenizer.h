/* SPDX-License-Identifier: Apache-2.0
 * The byte-level tokenizer: tokens 0 to 255 are those bytes, and three more are <bos>, <eos> and
 * <pad>.
 *
 * With it every text encodes and decodes without loss and needs no file besides the binary. It adds
 * no special token to a text: dataset.c and chat.c decide where those stand. Invariant: one byte is
 * one token. */
#ifndef TWINSTEP_DATA_TOKENIZER_H
#define TWINSTEP_DATA_TOKENIZER_H

#include <stddef.h>
#include <stdint.h>

#define TOKENIZER_BOS 256u
#define TOKENIZER_EOS 257u
#define TOKENIZER_PAD 258u /* no sample holds it; only padded buffers do */
#define TOKENIZER_VOCAB 259u

#define TOKENIZER_SHOW 16 /* bytes that tokenizer_show may write, the final NUL included */

/* Writes one token for each of the `length` bytes. */
void tokenizer_encode(const char *text, size_t length, uint32_t *out_tokens);

/* Spells a token for people: printable ASCII stands for itself, a backslash is doubled, line ends
 * and tabs are \n \t \r, other bytes are like \xE9, special tokens are <bos> <eos> <pad>, and an id
 * above the vocabulary is like <4711>. */
void tokenizer_show(uint32_t token, char out_text[TOKENIZER_SHOW]);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * The tokenizer's files beside a model's weights, in the spellings that transformers reads.
 *
 * A folder without any is no folder without a tokenizer to transformers 5: AutoTokenizer makes one
 * with a vocabulary of 1 for it, and every text becomes nothing. So each of the three kinds of
 * model gets files. Invariant: a file is there whole or not at all. */
#ifndef TWINSTEP_CHECKPOINTS_TOKENIZER_FILES_H
#define TWINSTEP_CHECKPOINTS_TOKENIZER_FILES_H

#include <stdint.h>

#include "base/arena.h"

/* Copies the tokenizer files of the folder `from`, byte by byte, and removes those in `folder` that
 * `from` has not. STATUS_IO names the file. */
TWINSTEP_MUST_USE enum status tokenizer_files_copy(const char *from, const char *folder,
                                                   struct arena *arena);

/* How many bytes that copy takes; 0 for files that are not there. */
uint64_t tokenizer_files_bytes_of(const char *from);

/* The three tokens behind the 256 bytes. */
struct tokenizer_specials {
    unsigned bos, eos, pad; /* ids, from 256 on */
};

/* Writes a tokenizer whose token i is the byte i, with special tokens behind: tokenizer.json of the
 * tokenizers library (a byte-level BPE without merges) and tokenizer_config.json. */
TWINSTEP_MUST_USE enum status tokenizer_files_bytes(const struct tokenizer_specials *specials,
                                                    const char *folder, struct arena *arena);

/* Writes a tokenizer_config.json that names a tokenizer of which there is no file, so that
 * AutoTokenizer fails. */
TWINSTEP_MUST_USE enum status tokenizer_files_none(const char *folder, struct arena *arena);

/* Whether the folder's tokenizer is what one of the last two functions writes: it has none of its
 * own. 0 where files cannot be read. */
int tokenizer_files_are_ours(const struct tokenizer_specials *specials, const char *folder);

#endif

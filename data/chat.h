/* SPDX-License-Identifier: Apache-2.0
 * Chat templates by name: they turn messages into tokens of the byte tokenizer, and say which
 * tokens are labelled. A template is text around contents, never a program.
 *
 *   chatml   <|im_start|>ROLE\nCONTENT<|im_end|>\n                 TRL's ChatML, Qwen without tools
 *   llama3   <|begin_of_text|> once, then per message
 *            <|start_header_id|>ROLE<|end_header_id|>\n\nCONTENT<|eot_id|>, CONTENT stripped
 *   olmo     <|endoftext|> once, then <|ROLE|>\nCONTENT\n; an assistant's turn ends with
 *            <|endoftext|>, and with \n too when another follows; OLMo-2-1124 Instruct and Tulu 3
 *   plain    contents with \n between them, <bos> before and <eos> behind
 *            open-instruct's simple_concat_with_new_line
 * Markers are text, byte by byte; only plain's <bos> and <eos> are tokens of their own.
 *
 * What a template writes for a turn behind its header is labelled: content, end marker and chatml's
 * newline, as in TRL's training templates. The newline that olmo writes between turns is not. The
 * texts are those of the chat_template in each family's tokenizer_config.json, and
 * tests/data/test_chat.c holds what transformers renders from them. */
#ifndef TWINSTEP_DATA_CHAT_H
#define TWINSTEP_DATA_CHAT_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "data/datarow.h"
#include "scenarios/config.h"

enum chat_role { CHAT_SYSTEM = 0, CHAT_USER, CHAT_ASSISTANT, CHAT_ROLES };

struct chat_message {
    enum chat_role role;
    const char *content; /* bytes without a NUL at the end */
    size_t length;
};

/* The value of `completion` for a conversation in which each turn of the assistant is labelled by
 * itself and nothing between them is. */
#define CHAT_EVERY_TURN SIZE_MAX

/* Renders `count` >= 1 messages. Messages from number `completion` on are labelled with their
 * headers, but for the header of the first: it is the generation prompt that an inference engine
 * writes itself. `out_ids` and `out_labels` have equal lengths and live in `arena`. */
TWINSTEP_MUST_USE enum status chat_render(enum chat chat, const struct chat_message *message,
                                          size_t count, size_t completion, struct arena *arena,
                                          struct datarow_part *out_ids,
                                          struct datarow_part *out_labels);

/* Turns text rows into conversations of one message by the user and one by the assistant. With
 * CHAT_NONE nothing changes. STATUS_INPUT: rows of `text` or of ids, which have no roles. */
TWINSTEP_MUST_USE enum status chat_rows(enum chat chat, struct arena *arena,
                                        struct datarow_table *table);

/* The role of a name; CHAT_ROLES: there is none of that name. */
enum chat_role chat_role_find(const char *name);

#endif

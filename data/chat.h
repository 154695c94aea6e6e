/* SPDX-License-Identifier: Apache-2.0
 * Chat templates by name: messages to the tokens of the byte tokenizer, and which of them are
 * labelled. A template is text around contents, never a program.
 *
 *   chatml   <|im_start|>ROLE\nCONTENT<|im_end|>\n                 TRL's ChatML, Qwen without tools
 *   llama3   <|begin_of_text|> once, then per message
 *            <|start_header_id|>ROLE<|end_header_id|>\n\nCONTENT<|eot_id|>, CONTENT stripped
 *   olmo     <|endoftext|> once, then <|ROLE|>\nCONTENT\n; an assistant's turn ends with
 *            <|endoftext|>, and with \n too when another follows        OLMo-2-1124 Instruct, Tulu
 * 3 plain    contents with \n between them, <bos> before and <eos> behind (open-instruct's
 * simple_concat_with_new_line) Markers are text, byte by byte: only plain's <bos> and <eos> are
 * tokens of their own.
 *
 * Labelled is what a template writes for a turn behind its header: content, end marker and chatml's
 * newline, as in TRL's training templates; olmo's newline between turns is not. Source of the
 * texts: the chat_template of each family's tokenizer_config.json; tests/data/test_chat.c holds
 * what transformers renders. */
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
    const char *content; /* bytes without NUL at the end */
    size_t length;
};

/* `completion` of a conversation whose assistant turns are labelled, each for itself. */
#define CHAT_EVERY_TURN SIZE_MAX

/* Renders `count` >= 1 messages. Messages from number `completion` on are labelled, headers too,
 * but for the header of the first. `out_ids` and `out_labels` have equal lengths and live in
 * `arena`. */
TWINSTEP_MUST_USE enum status chat_render(enum chat chat, const struct chat_message *message,
                                          size_t count, size_t completion, struct arena *arena,
                                          struct datarow_part *out_ids,
                                          struct datarow_part *out_labels);

/* Text rows become conversations of one user and one assistant message. Without a template nothing
 * changes. STATUS_INPUT: rows of `text` or of ids, which have no roles. */
TWINSTEP_MUST_USE enum status chat_rows(enum chat chat, struct arena *arena,
                                        struct datarow_table *table);

/* STATUS_INPUT: no role of that name. */
TWINSTEP_MUST_USE enum status chat_role_find(const char *name, enum chat_role *out);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * What the readers of dumps share. Private to dumps/. */
#ifndef TWINSTEP_DUMPS_DUMP_PRIVATE_H
#define TWINSTEP_DUMPS_DUMP_PRIVATE_H

#include "dumps/dump.h"
#include "logs/reader.h"

/* A text that grows, and texts in a list, reused from op to op. */
struct dump_text {
    char *bytes;
    size_t length, room;
};

struct dump_hashes {       /* the hashes of some tensors, in the order in which they were written */
    struct log_span *list; /* texts of a user's own have their first quote */
    size_t count, room;
};

/* One op as a reader met it; its spans point into the file. */
struct dump_entry {
    struct log_span op, args, kwargs, output;
    struct dump_hashes in, out;
    uint32_t place;
};

struct dump_reader {
    const struct log_source *source;
    struct words *words;
    struct dump *dump;
    struct dump_text shapes, literals, value;
    struct dump_hashes tensors; /* dtype and shape of each tensor in a text */
    struct dump_entry entry;
};

TWINSTEP_MUST_USE enum status dump_read_debug_mode(struct dump_reader *reader);
TWINSTEP_MUST_USE enum status dump_read_torchtitan(struct dump_reader *reader);
/* Says whether the first line of torchtitan's text stands in the bytes. */
int dump_is_torchtitan(const struct log_source *source);

TWINSTEP_MUST_USE enum status dump_text_add(struct arena *arena, struct dump_text *text,
                                            const char *bytes, size_t length);
TWINSTEP_MUST_USE enum status dump_hashes_add(struct arena *arena, struct dump_hashes *hashes,
                                              struct log_span text);

/* Finds the tensors in arguments as DebugMode writes them, "t: f32[24, 64], 1, ['t: i64[6]']":
 * appends "f32[24, 64]" to `tensors`, and to `rest` (where it is not NULL) the text with "_" for
 * each. */
TWINSTEP_MUST_USE enum status dump_find_tensors(struct arena *arena, struct log_span text,
                                                struct dump_hashes *tensors,
                                                struct dump_text *rest);

/* Puts the name of a module without those of wrappers into `out`; its first *out_root bytes are the
 * class of the model. Sets *out_wrapped if there were some, and leaves it else. */
TWINSTEP_MUST_USE enum status dump_unwrap(struct arena *arena, struct log_span tag,
                                          struct dump_text *out, size_t *out_root,
                                          int *out_wrapped);

/* Appends a new op with the module, and hands it out. */
TWINSTEP_MUST_USE enum status dump_add_op(struct dump_reader *reader, uint32_t module,
                                          struct dump_op **out);
/* Appends a value. */
TWINSTEP_MUST_USE enum status dump_add_value(struct dump_reader *reader, struct log_span tensor,
                                             const struct log_span *hashes, size_t count);
/* Notes how many hashes a tensor has and what they look like, by the first that is met. */
TWINSTEP_MUST_USE enum status dump_note_hashes(struct dump_reader *reader,
                                               const struct log_span *hashes, size_t count);

/* What is known of an op by its name (dumps/moves.c): whether it only moves values, where its first
 * tensor has dtype `from` and its output `to`; and whether the inputs that it returns are written
 * over unread. */
int dump_moves(struct log_span op, struct log_span from, struct log_span to);
int dump_overwrites(struct log_span op);
/* Says whether it is a collective: DebugMode takes the hashes when the call returns, and what it
 * gathers may not have arrived by then. */
int dump_is_collective(struct log_span op);

#endif

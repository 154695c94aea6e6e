/* SPDX-License-Identifier: Apache-2.0
 * A dump of ops: what a training step of another program computed, op by op, with hashes of the
 * values that went in and came out.
 *
 * Two formats are read, told by their content, packed or not: the JSON of PyTorch's
 * DebugMode.save_logs(), and the text of torchtitan's activation tracer. Invariant: any bytes give
 * a dump, or an error that names file, line and column, what was expected and what came. */
#ifndef TWINSTEP_DUMPS_DUMP_H
#define TWINSTEP_DUMPS_DUMP_H

#include "dumps/dump_words.h"

/* A hash that is longer is none: the longest that is known is a digest of 64 hex digits. */
#define DUMP_HASH_MOST 128
/* More hashes of one tensor than this are refused. */
#define DUMP_HASHES_MOST 8

struct dump_op {
    uint32_t module;   /* word: the innermost module; 0: outside of all modules */
    uint32_t scope;    /* word: the same without the class of the whole model; 0 for that itself */
    uint32_t op;       /* word: "aten::mm" */
    uint32_t shapes;   /* word: dtypes and shapes of the tensors among the arguments */
    uint32_t literals; /* word: the arguments with "_" for each tensor */
    uint32_t args;     /* word: the arguments as written */
    uint32_t location; /* word: "model.py:225 in forward", the line that called it; 0: not known */
    uint32_t place;    /* the entry of "logs", counted from 1; or the line of the text */
    uint32_t first;    /* of its values in `values`: inputs, then outputs */
    uint32_t inputs, outputs;
    uint8_t moves;    /* it only moves values: view, copy, slice, cast without rounding */
    uint32_t ignored; /* inputs from the first on whose old content does not matter: copy_ has 1 */
};

enum dump_hash { /* what a hash looks like; the file does not say which function made it */
                 DUMP_HASH_REAL,  /* a real number, as DebugMode's "norm" */
                 DUMP_HASH_WHOLE, /* a whole number, as DebugMode's "hash_tensor" */
                 DUMP_HASH_TEXT   /* a text: the user's own function */
};

struct dump {
    const char *path, *format;
    struct dump_op *ops;
    size_t count, room;
    uint32_t *values; /* words: "f32[2, 3]|0.5|17" */
    size_t value_count, value_room;
    size_t hashes; /* of each tensor; 0 until one is met */
    enum dump_hash kind[DUMP_HASHES_MOST];
    uint64_t without; /* ops of which no hash was taken (aten::empty), and collectives */
    uint64_t nan;     /* hashes that are NaN: they are equal whatever the values are */
    int is_wrapped;   /* 1: the model is inside a wrapper (DDP, FSDP, torch.compile) */
    int shapeless;    /* 1: the format gives no shape of an input, so a value is its hash alone */
};

/* Reads a file; "-" is standard input. The dump lives in the arena of `words`. STATUS_INPUT also
 * where the file has no hashes of inputs, without which nothing can be said of an op. */
TWINSTEP_MUST_USE enum status dump_read(const char *path, struct words *words, struct dump **out);
/* Does the same from bytes in memory; errors call them `name`. Fuzzers and tests use it. */
TWINSTEP_MUST_USE enum status dump_read_bytes(const char *name, const void *bytes, size_t length,
                                              struct words *words, struct dump **out);

/* Says whether two dumps hold hashes of one kind. STATUS_INPUT says how they differ. */
TWINSTEP_MUST_USE enum status dump_comparable(const struct dump *a, const struct dump *b);

#endif

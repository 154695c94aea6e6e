/* SPDX-License-Identifier: Apache-2.0
 * A file of torch.save: a zip whose members are stored as they are, of which one, data.pkl, is a
 * pickle, and the others are the bytes of the tensors.
 *
 * Nothing in the file is ever executed. The pickle is read as data: only the opcodes that
 * torch.save writes with its default protocol 2, and of the names (globals) in it only those that
 * make tensors and containers; all others are errors that name them. The file is mapped, and
 * tensors are read where they lie, so a file of any size takes memory for its pickle alone.
 * Source: torch.serialization, torch._utils and pickletools, read and compared with torch 2.15.0
 * (tests/bench/torch_files.py); the zip format's APPNOTE 6.3.10. */
#ifndef TWINSTEP_CHECKPOINTS_TORCH_FILE_H
#define TWINSTEP_CHECKPOINTS_TORCH_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "checkpoints/mapped.h"
#include "checkpoints/safetensors.h"

enum torch_kind {
    TORCH_NONE = 0,
    TORCH_BOOL,
    TORCH_INT,  /* a whole number that an int64_t holds */
    TORCH_BIG,  /* a larger one, as its bytes: two's complement, little-endian */
    TORCH_REAL, /* Python's float */
    TORCH_TEXT,
    TORCH_BYTES,
    TORCH_LIST,
    TORCH_TUPLE, /* torch.Size, too */
    TORCH_DICT,  /* OrderedDict, too */
    TORCH_TENSOR,
    TORCH_OPAQUE,  /* a thing with a name that nobody here understands */
    TORCH_STORAGE, /* a tensor's bytes without the tensor */
    TORCH_KINDS
};

struct torch_value {
    enum torch_kind kind;
    union {
        int64_t integer; /* TORCH_INT, TORCH_BOOL */
        double real;
        const struct torch_text *text; /* TORCH_TEXT, TORCH_BYTES, TORCH_BIG */
        struct torch_members *members; /* TORCH_LIST, TORCH_TUPLE, TORCH_DICT */
        const struct torch_tensor *tensor;
        struct torch_opaque *opaque;
        const struct torch_storage *storage;
    } as;
};

struct torch_text {
    const char *bytes; /* UTF-8 where it is a text; a NUL stands behind the last byte */
    size_t length;
};

/* The members of a list, a tuple or a dict, in the order of the file. */
struct torch_members {
    size_t count;
    struct torch_value *values;        /* [count] */
    struct torch_value *keys;          /* [count] for a dict, else NULL */
    const struct torch_value **sorted; /* pointers into `keys`, by kind, then by key */
    size_t room;
    unsigned height; /* how many containers stand in each other here; 0 with none inside */
    int sealed;      /* it is a member itself, so it does not grow any more */
};

/* A thing that stands in the file as a name: a class, a function, or what one was to make of
 * arguments. It is kept so that others can read around it, and never called. Arguments and state
 * are kept where they are plain data (numpy's arrays, a set, torch.device), else dropped. */
struct torch_opaque {
    const char *name; /* "numpy.dtype" */
    const struct torch_members *arguments;
    struct torch_value state;
    unsigned height;
    int is_data;
    int is_tensor; /* an instance of a class that is derived from torch.Tensor */
    int sealed;
    int callee; /* what it makes of arguments: private to the reader, as is what follows */
    enum safetensors_dtype dtype;
};

struct torch_storage {
    int is_typed;
    enum safetensors_dtype dtype;
    const char *key, *location; /* "0", "cuda:0" */
    const unsigned char *bytes; /* in the map, not aligned */
    uint64_t length;            /* bytes */
};

struct torch_tensor {
    struct torch_storage storage;
    enum safetensors_dtype dtype;
    size_t rank;
    const uint64_t *shape, *strides; /* [rank], in elements */
    uint64_t offset;                 /* of the first element, in elements */
    uint64_t count;                  /* number of elements */
    int is_contiguous;               /* its elements lie row-major, one behind the other */
};

struct torch_file {
    const char *path;
    struct mapped mapped;
    struct torch_value root;
};

/* Which names a file may hold. TORCH_STRICT takes only those that make tensors, containers and
 * plain data. TORCH_OPAQUE_NAMES takes every other one as opaque, too, because checkpoints hold
 * objects of their users (hyper-parameters, callbacks) beside what is read; names of the modules
 * that reach the system are refused there as well, since such a file is no checkpoint. */
enum torch_names { TORCH_STRICT = 0, TORCH_OPAQUE_NAMES };

/* Opens a file, and reads the whole pickle. STATUS_INPUT and STATUS_IO name the file, the member,
 * the offset in the pickle, the opcode and the name; then nothing is open. All but the tensors'
 * bytes lives in `arena`. */
TWINSTEP_MUST_USE enum status torch_file_open(const char *path, enum torch_names names,
                                              struct arena *arena, struct torch_file *out);
/* Does the same with bytes that stay the caller's; `name` stands for the path. */
TWINSTEP_MUST_USE enum status torch_file_open_bytes(const char *name, const unsigned char *bytes,
                                                    size_t length, enum torch_names names,
                                                    struct arena *arena, struct torch_file *out);
/* Closes the file. No tensor may be looked at afterwards. */
void torch_file_close(struct torch_file *file);

/* Whether the bytes begin as torch.save's zip does, and whether they begin as its files before
 * torch 1.6 do. */
int torch_file_is_zip(const unsigned char *bytes, size_t length);
int torch_file_is_legacy(const unsigned char *bytes, size_t length);

/* A place in a file: a value, and the way to it, which errors print ("optimizer.pt:
 * state[3].exp_avg"). A place points to the one it was reached from, which must outlive it. */
struct torch_place {
    const struct torch_file *file;
    const struct torch_place *parent;
    const char *key; /* NULL: `index` led here */
    int64_t index;
    struct torch_value value;
};

struct torch_place torch_root(const struct torch_file *file);

/* Stores the place of a key. Returns 0 if the value is no dict or has no such key. */
int torch_find(const struct torch_place *in, const char *key, struct torch_place *out);
int torch_find_number(const struct torch_place *in, int64_t key, struct torch_place *out);

/* Store a place that must be there: of a key in a dict, of a number in a list or a tuple. */
TWINSTEP_MUST_USE enum status torch_key(const struct torch_place *in, const char *key,
                                        struct torch_place *out);
TWINSTEP_MUST_USE enum status torch_item(const struct torch_place *in, size_t at,
                                         struct torch_place *out);
/* Stores how many members a list, tuple or dict has; any other kind is an error that says `what`
 * was expected. */
TWINSTEP_MUST_USE enum status torch_count(const struct torch_place *in, const char *what,
                                          size_t *out);
/* Stores the place of entry `at` of a dict whose keys are texts or whole numbers. */
TWINSTEP_MUST_USE enum status torch_entry(const struct torch_place *in, size_t at,
                                          struct torch_place *out);

/* Store the value, which must be of that kind. A number is a whole one, a float, or a tensor of one
 * element of any of base/dtype.h's dtypes, i64 or i32; a whole number is one that has no
 * fraction. */
TWINSTEP_MUST_USE enum status torch_number(const struct torch_place *at, double *out);
TWINSTEP_MUST_USE enum status torch_integer(const struct torch_place *at, int64_t *out);
TWINSTEP_MUST_USE enum status torch_flag(const struct torch_place *at, int *out);
TWINSTEP_MUST_USE enum status torch_text_of(const struct torch_place *at, const char **out);
TWINSTEP_MUST_USE enum status torch_tensor_of(const struct torch_place *at,
                                              const struct torch_tensor **out);
/* Whether torch_number would store a number. */
int torch_is_number(const struct torch_value *value);

/* Whether it is a tensor of a class that is not read: a shard, quantised numbers. */
int torch_is_other_tensor(const struct torch_value *value);

/* Fails with STATUS_INPUT: the path, "expected `wanted`, got ..." and what is there. */
enum status torch_unexpected(const struct torch_place *at, const char *wanted);

/* Fails with STATUS_INPUT: the path, then the text. */
enum status torch_refuse(const struct torch_place *at, const char *format, ...)
    TWINSTEP_PRINTF(2, 3);

/* What the value is, for errors and listings: "a tensor F32 [2, 3]", "the whole number 3",
 * "opaque argparse.Namespace". */
#define TORCH_SHOWN_SIZE 256
void torch_show(const struct torch_value *value, char out[TORCH_SHOWN_SIZE]);

/* Writes the way to a place, without the file: "state[3].exp_avg". */
void torch_way(const struct torch_place *at, char out[TORCH_SHOWN_SIZE]);

/* Stores a tensor as one of safetensors: its bytes in place if it is contiguous, else copied to the
 * arena in row-major order. A view that repeats elements of its storage (expand) is copied up to a
 * million elements. `name` is kept, not copied. */
TWINSTEP_MUST_USE enum status torch_tensor_rows(const struct torch_file *file,
                                                const struct torch_tensor *tensor, const char *name,
                                                struct arena *arena,
                                                struct safetensors_tensor *out);

#endif

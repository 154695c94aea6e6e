/* SPDX-License-Identifier: Apache-2.0
 * What the parts of the reader of torch.save's files share: the zip's directory, and the machine
 * that reads the pickle. */
#ifndef TWINSTEP_CHECKPOINTS_TORCH_PRIVATE_H
#define TWINSTEP_CHECKPOINTS_TORCH_PRIVATE_H

#include "checkpoints/torch_file.h"

struct torch_member {
    const char *name; /* whole, with the archive's name before the first '/' */
    uint64_t header;  /* offset of its local header */
    const unsigned char *bytes;
    uint64_t length;
    uint32_t checksum;
};

struct torch_zip {
    const char *path;
    const unsigned char *bytes;
    size_t length;
    const char *stem; /* the archive's name with the '/': every member's name begins with it */
    size_t count;
    const struct torch_member **members; /* sorted by name */
};

/* Walks the central directory. Every member is stored, lies inside the file and before the
 * directory, overlaps none, and has a name of its own; data.pkl has its checksum. */
TWINSTEP_MUST_USE enum status torch_zip_open(const char *path, const unsigned char *bytes,
                                             size_t length, struct arena *arena,
                                             struct torch_zip *out);
/* The member STEM/name, or NULL. */
const struct torch_member *torch_zip_find(const struct torch_zip *zip, const char *name);

/* What a name in the pickle stands for. */
enum torch_callee {
    CALLEE_NONE = 0, /* it has been made already: nothing calls it again */
    CALLEE_TENSOR,   /* torch._utils._rebuild_tensor_v2 */
    CALLEE_TENSOR_V3,
    CALLEE_PARAMETER,
    CALLEE_FROM_TYPE,   /* torch._tensor._rebuild_from_type_v2 */
    CALLEE_TENSOR_TYPE, /* torch.Tensor and classes that add nothing to its values */
    CALLEE_ORDERED_DICT,
    CALLEE_SIZE,
    CALLEE_COUNTER, /* MultiStepLR's milestones: the dict that it is made of */
    CALLEE_ENCODE,  /* _codecs.encode: protocol 2 spells bytes as latin1 text */
    CALLEE_BYTES,
    CALLEE_STORAGE,
    CALLEE_UNTYPED_STORAGE,
    CALLEE_DTYPE,
    CALLEE_DATA, /* makes plain data that stays opaque */
    CALLEE_USER  /* a name of the user's, under TORCH_OPAQUE_NAMES */
};

struct torch_machine {
    const struct torch_zip *zip;
    struct arena *arena;
    enum torch_names names;
    const unsigned char *bytes; /* the pickle */
    size_t length, at;
    size_t opcode_at; /* of the opcode that is being executed */
    size_t steps;     /* opcodes so far */
    struct torch_value *stack;
    size_t count, room;
    size_t *marks; /* how high the stack was at each open MARK */
    size_t mark_count, mark_room;
    struct torch_value *memo;
    unsigned char *memo_known;
    size_t memo_room, memo_known_room;
};

/* Runs the pickle, and stores what it leaves. */
TWINSTEP_MUST_USE enum status torch_pickle_read(const struct torch_zip *zip, enum torch_names names,
                                                struct arena *arena, struct torch_value *out);

/* Fails with file, offset and opcode before the text. */
enum status torch_machine_fail(const struct torch_machine *machine, const char *format, ...)
    TWINSTEP_PRINTF(2, 3);
#define MACHINE_FAIL(machine, ...) return torch_machine_fail((machine), __VA_ARGS__)

/* Store the next bytes of the pickle, and a whole number of them, little-endian. */
TWINSTEP_MUST_USE enum status torch_take(struct torch_machine *machine, size_t count,
                                         const unsigned char **out);
TWINSTEP_MUST_USE enum status torch_take_number(struct torch_machine *machine, size_t width,
                                                uint64_t *out);

/* Where the values above the last open MARK begin: none below may be taken. */
size_t torch_floor(const struct torch_machine *machine);
TWINSTEP_MUST_USE enum status torch_push(struct torch_machine *machine, struct torch_value value);
TWINSTEP_MUST_USE enum status torch_pop(struct torch_machine *machine, struct torch_value *out);
/* The value on top, which stays. */
TWINSTEP_MUST_USE enum status torch_peek(const struct torch_machine *machine,
                                         struct torch_value *out);

/* Executes an opcode that pushes a plain value; *out_is_scalar is 0 if it is none. */
TWINSTEP_MUST_USE enum status torch_push_scalar(struct torch_machine *machine, unsigned char opcode,
                                                int *out_is_scalar);

/* Pushes a container of values, and adds values to the list on top or pairs to the dict on top. */
TWINSTEP_MUST_USE enum status torch_push_container(struct torch_machine *machine,
                                                   enum torch_kind kind,
                                                   const struct torch_value *values, size_t count);
TWINSTEP_MUST_USE enum status torch_extend(struct torch_machine *machine, enum torch_kind kind,
                                           const struct torch_value *values, size_t count);
/* Seals a value that a container or an object takes in, and raises its height. */
TWINSTEP_MUST_USE enum status torch_raise(const struct torch_machine *machine,
                                          const struct torch_value *value, unsigned *height);

/* Makes a value a member or an argument: from then on it does not grow. Stores its height. */
TWINSTEP_MUST_USE enum status torch_seal(const struct torch_machine *machine,
                                         const struct torch_value *value, unsigned *out_height);

/* Orders keys of a dict, given as struct torch_value, by kind, then texts byte by byte and whole
 * numbers by size. Keys of other kinds are equal. */
int torch_compare_keys(const void *a, const void *b);

/* The name of an opcode, of any protocol; NULL if no protocol has it. */
const char *torch_opcode_name(unsigned char opcode);

/* What to do where a class of tensors cannot be read; NULL for all other names. */
#define TORCH_SHARDED_ADVICE                                                                       \
    "it holds the part of one process: save what get_state_dict of "                               \
    "torch.distributed.checkpoint.state_dict returns with "                                        \
    "options=StateDictOptions(full_state_dict=True)"
const char *torch_class_advice(const char *name);

/* Finds out what a GLOBAL stands for, or refuses it by name. */
TWINSTEP_MUST_USE enum status torch_global(const struct torch_machine *machine, const char *module,
                                           const char *name, struct torch_value *out);

/* What REDUCE makes of a name and its arguments, and what BINPERSID makes of its tuple. */
TWINSTEP_MUST_USE enum status torch_reduce(const struct torch_machine *machine,
                                           const struct torch_opaque *callee,
                                           const struct torch_members *arguments,
                                           struct torch_value *out);
TWINSTEP_MUST_USE enum status torch_persistent(const struct torch_machine *machine,
                                               const struct torch_value *id,
                                               struct torch_value *out);

#endif

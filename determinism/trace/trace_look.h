/* SPDX-License-Identifier: Apache-2.0
 * One look at one object of a foreign trace: is it there, of the type and shape that it must have,
 * and stored plainly? What is not so becomes a line of text. The file is private to
 * determinism/trace/trace_check.c and trace_look.c. */
#ifndef TWINSTEP_DETERMINISM_TRACE_TRACE_LOOK_H
#define TWINSTEP_DETERMINISM_TRACE_TRACE_LOOK_H

#include "determinism/foreign.h"
#include "determinism/trace/hdf5_reader.h"

struct checker {
    struct reader *reader;
    const char *path; /* of the group that is looked at: "runs/main/steps" */
    char **problems;
    uint32_t problem_count, left_out;
    char **notes;
    uint32_t note_count;
    enum status status; /* of what went wrong with the checking itself */
};

enum look_type { LOOK_F64 = 0, LOOK_I64, LOOK_U32, LOOK_U8, LOOK_TEXT };

struct look_form {
    enum look_type type;
    int rank; /* 0: one value */
    /* Lengths of the axes; 0 admits any. That of the first axis may be larger where `grows`. */
    hsize_t shape[HDF5_MAX_RANK];
    int grows, required;
};

/* The bytes of the character at `text`, which a terminal does not obey: well-formed UTF-8 (RFC
 * 3629) that is no control. 0 for anything else, and at the end. */
size_t look_character(const char *text);

/* Adds a problem or a note. Beyond FOREIGN_PROBLEMS they are counted only. */
void look_problem(struct checker *checker, const char *name, const char *format, ...)
    TWINSTEP_PRINTF(3, 4);
void look_note(struct checker *checker, const char *name);

/* Looks at a dataset or a group that lies directly in `where`. Returns 1 if it is there and as it
 * should be. `out_shape` gets the extent; a group is opened. */
int look_dataset(struct checker *checker, hid_t where, const char *name,
                 const struct look_form *form, hsize_t out_shape[HDF5_MAX_RANK]);
int look_group(struct checker *checker, hid_t where, const char *name, int required,
               hid_t *out_group);

/* Looks at an attribute, one value of `type`. */
int look_attribute(struct checker *checker, hid_t object, const char *name, enum look_type type,
                   int required);

#endif

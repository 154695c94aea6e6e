/* SPDX-License-Identifier: Apache-2.0
 * The one way in which a file of somebody else is opened for reading.
 *
 * open() of a named pipe waits until somebody writes to it, which may be never; so a name in a
 * file system must be a regular file's. A pipe without a name, which a shell hands over as
 * /dev/fd/N for `<(command)`, has its writer from the start, and whoever reads a stream from its
 * beginning to its end may take it. What a library opens by itself (HDF5, SQLite, dlopen) is asked
 * for here first. */
#ifndef TWINSTEP_BASE_INPUT_H
#define TWINSTEP_BASE_INPUT_H

#include <stdint.h>
#include <stdio.h>

#include "base/status.h"

enum input_kinds { INPUT_FILE, INPUT_FILE_OR_STREAM };

struct input {
    int descriptor;
    int is_stream;   /* 1: a pipe, whose length nobody knows */
    uint64_t length; /* bytes, of a file */
};

/* Opens PATH for reading, never waiting for another program. `label` begins the text of a refusal
 * (the path, mostly), `expected` names what should be there ("a trace"). STATUS_IO where it cannot
 * be opened, STATUS_INPUT where it is another kind of thing. Then nothing is open. */
TWINSTEP_MUST_USE enum status input_open(const char *path, enum input_kinds kinds,
                                         const char *label, const char *expected,
                                         struct input *out);

/* The same with a stream of stdio, which fclose() closes. */
TWINSTEP_MUST_USE enum status input_open_stream(const char *path, enum input_kinds kinds,
                                                const char *label, const char *expected,
                                                FILE **out_stream, struct input *out);

/* Says as input_open does whether PATH is a regular file that may be read. */
TWINSTEP_MUST_USE enum status input_try(const char *path, const char *expected);

#endif

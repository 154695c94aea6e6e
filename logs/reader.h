/* SPDX-License-Identifier: Apache-2.0
 * What a reader of one format is: how it knows its bytes, and how it reads them. Private to logs/.
 *
 * Readers are tried in the order of the table in logs/readers.h; the surest claim wins. */
#ifndef TWINSTEP_LOGS_READER_H
#define TWINSTEP_LOGS_READER_H

#include "logs/build.h"

struct log_mapping;

/* The bytes of one file, mapped or in memory. They are never NUL-terminated and hold no byte order
 * mark. */
struct log_source {
    const char *name; /* what errors call it */
    const unsigned char *bytes;
    size_t length;
    uint32_t part;               /* number of the file in a run of several files */
    const char *path;            /* NULL: there is no file, only these bytes */
    struct log_mapping *mapping; /* NULL: not a mapped file */
};

/* Tells that a reader is done with the bytes before `offset`, so that a long file need not stay in
 * memory. They may still be read. The call is cheap: make it for every line. */
void log_source_release(const struct log_source *source, size_t offset);

struct log_reader {
    const char *name, *title;
    /* Says how sure the reader is that it knows the format: 0 no, 1 perhaps (generic CSV), 2
     * likely, 3 certain. It looks at the first 64 KiB at most. */
    int (*claim)(const struct log_source *source);
    TWINSTEP_MUST_USE enum status (*read)(const struct log_source *source, struct log_build *build);
    int64_t
        step_base; /* what the format calls update 1; INT64_MIN: 0 if there is a step 0, else 1 */
};

#endif

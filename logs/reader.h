/* SPDX-License-Identifier: Apache-2.0
 * What a reader of one format is: how it knows its bytes, and how it reads them. Private to logs/.
 * Readers are tried in the order of the table in logs/readers.h; the surest claim wins. */
#ifndef TWINSTEP_LOGS_READER_H
#define TWINSTEP_LOGS_READER_H

#include "logs/build.h"

struct log_mapping;

/* The bytes of one file, mapped or in memory; never NUL-terminated; without a byte order mark. */
struct log_source {
    const char *name; /* in errors */
    const unsigned char *bytes;
    size_t length;
    uint32_t part;               /* number of the file in a run of several */
    const char *path;            /* NULL: only these bytes are there */
    struct log_mapping *mapping; /* NULL: not a mapped file */
};

/* Says that a reader is done with the bytes before `offset`, so that a long file need not stay in
 * memory. They may still be read. Cheap: call it for every line. */
void log_source_release(const struct log_source *source, size_t offset);

struct log_reader {
    const char *name, *title;
    /* 0 no, 1 perhaps (generic CSV), 2 likely, 3 certain. Looks at the first 64 KiB at most. */
    int (*claim)(const struct log_source *source);
    TWINSTEP_MUST_USE enum status (*read)(const struct log_source *source, struct log_build *build);
    int64_t
        step_base; /* what the format calls update 1; INT64_MIN: 0 if a step 0 is there, else 1 */
};

#endif

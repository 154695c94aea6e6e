/* SPDX-License-Identifier: Apache-2.0
 * What a reader of one format is: how it knows its bytes, and how it reads them. Private to logs/.
 * Readers are tried in the order of the table in logs/import.c; the surest claim wins. */
#ifndef TWINSTEP_LOGS_READER_H
#define TWINSTEP_LOGS_READER_H

#include "logs/build.h"

/* The bytes of one file, mapped or read whole; never NUL-terminated. */
struct log_source {
    const char *name; /* in errors */
    const unsigned char *bytes;
    size_t length;
    uint32_t part; /* number of the file in a run of several */
};

struct log_reader {
    const char *name, *title;
    /* 0 no, 1 perhaps (generic CSV), 2 likely, 3 certain. Looks at the first 64 KiB at most. */
    int (*claim)(const struct log_source *source);
    TWINSTEP_MUST_USE enum status (*read)(const struct log_source *source, struct log_build *build);
    int64_t step_base; /* what the format calls update 1 */
};

#endif

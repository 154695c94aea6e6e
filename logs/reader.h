/* SPDX-License-Identifier: Apache-2.0
 * What a reader of one format is: how it knows its bytes, and how it reads them. Private to logs/.
 *
 * Readers are tried in the order of the table in logs/readers.h; the surest claim wins. */
#ifndef TWINSTEP_LOGS_READER_H
#define TWINSTEP_LOGS_READER_H

#include "logs/build.h"

struct log_mapping;
struct log_grammar;
struct log_dialect;

struct log_span {
    const char *text;
    size_t length;
};

/* The bytes of one file, mapped or in memory. They are never NUL-terminated and hold no byte order
 * mark. */
struct log_source {
    const char *name; /* what errors call it */
    const unsigned char *bytes;
    size_t length;
    uint32_t part;      /* number of the file in a run of several files */
    const char *series; /* the column that a file of one column holds; NULL: it says so itself */
    const char *path;   /* NULL: there is no file, only these bytes */
    struct log_mapping *mapping; /* NULL: not a mapped file */
};

/* Tells that a reader is done with the bytes before `offset`, so that a long file need not stay in
 * memory. They may still be read. The call is cheap: make it for every line. */
void log_source_release(const struct log_source *source, size_t offset);

/* How the first bytes are claimed and how a file is read: by functions of the reader's own, or by
 * those that a grammar (logs/lines.h) or a dialect (logs/json_row.h) is the argument of. */
struct log_reader {
    /* What the format calls update 1; INT64_MIN or LOG_BASE_OF_UPDATES: what its rows say
     * (log_build_finish). */
    int64_t step_base;
    const struct log_grammar *grammar; /* NULL: it is no format of lines */
    const struct log_dialect *dialect; /* NULL: it is no format of JSON rows */
    /* Claims as log_reader_claim says, and reads one file into the log that is built; NULL: the
     * grammar or the dialect does. */
    int (*claim)(const struct log_source *source);
    enum status (*read)(const struct log_source *source, struct log_build *build);
    int lines; /* 1: its rows are lines that may begin anywhere in a file (so they may with a
                  grammar) */
    /* Says as a claim does whether a line is a row by itself, so that rows of one format among
     * those of another are seen; NULL: the grammar does, where there is one. */
    int (*claim_line)(struct log_span line);
    /* 1: it takes any line of names and values with an update. Programs say such lines beside the
     * rows of their own format, so they are told only where these rows say no update. */
    int any_line;
    /* For the error about a file that nobody knows: a text that every row of the format holds, and
     * what its rows look like. NULL: the format has no such text. */
    const char *sign, *shape;
};

/* Says how sure the reader is that it knows the format: 0 no, 1 perhaps (generic CSV), 2 likely, 3
 * certain. It looks at the first 64 KiB at most; readers of lines are asked about later pieces,
 * too. LOG_CLAIM_FAILED: it lacked memory to look, and status_text() says so; whoever took that for
 * 0 would have another reader read the file. */
#define LOG_CLAIM_FAILED (-1)
int log_reader_claim(const struct log_reader *reader, const struct log_source *source);

#endif

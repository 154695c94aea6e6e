/* SPDX-License-Identifier: Apache-2.0
 * Rows as a source gives them, before tokens: what jsonl.c and builtin.c produce and dataset.c
 * reads. A row has the parts of its form, in the order of the form's keys.
 * Invariant: all rows of a table have one form; a part is text or ids, never both. */
#ifndef TWINSTEP_DATA_DATAROW_H
#define TWINSTEP_DATA_DATAROW_H

#include <stddef.h>
#include <stdint.h>

/* Operations of STREAM_DATA: the `op` field of their addresses. The numbers never change. */
enum data_op { DATA_OP_PERMUTE = 0, DATA_OP_REJECT = 1 };

enum datarow_form {
    DATAROW_PAIR_TEXT = 0,   /* prompt, chosen, rejected              DPO */
    DATAROW_PAIR_IDS,        /* prompt_ids, chosen_ids, rejected_ids  DPO */
    DATAROW_COMPLETION_TEXT, /* prompt, completion                    SFT */
    DATAROW_PLAIN_TEXT,      /* text                                  SFT */
    DATAROW_LABELLED_IDS,    /* input_ids, labels                     SFT */
    DATAROW_COMPLETION_IDS,  /* prompt_ids, completion_ids            SFT */
    DATAROW_PAIR_LABELLED    /* chosen_input_ids, chosen_labels, rejected_...  DPO */
};

#define DATAROW_PARTS 4
#define DATAROW_MASKED (-100) /* in `labels`: no loss on this token */

struct datarow_part {
    const char *text; /* bytes without NUL at the end, or NULL */
    const int32_t *ids;
    size_t length;
};

struct datarow {
    struct datarow_part part[DATAROW_PARTS];
    double reference[2]; /* log-probs of chosen and rejected, where the reading asked for them */
    size_t line;         /* 1-based, in the source */
};

struct datarow_table {
    const char *source; /* for error texts: "quiz.tsv" or the path as given */
    enum datarow_form form;
    struct datarow *row;
    size_t rows;
    int bytes;               /* ids are the byte tokenizer's: a chat template wrote them */
    uint64_t words;          /* random words drawn for the rows */
    size_t extra_keys;       /* keys beyond the form's, over all rows */
    const char *extra_first; /* the first such key; NULL when there is none */
};

#endif

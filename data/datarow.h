/* SPDX-License-Identifier: Apache-2.0
 * Rows as a source gives them, before they are tokens: jsonl.c and builtin.c make them, chat.c may
 * render them, dataset.c reads them. A row has one part per key of its form, in the order of the
 * form's keys.
 *
 * Invariant: all rows of a table have one form, and a part is either text or ids. */
#ifndef TWINSTEP_DATA_DATAROW_H
#define TWINSTEP_DATA_DATAROW_H

#include <stddef.h>
#include <stdint.h>

/* The `op` field of addresses in STREAM_DATA. The numbers are part of the addresses, so they never
 * change; GENERATE_OP of model/generate_sample.c is another one. */
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
/* a label that says: no loss on this token, as PyTorch's ignore_index */
#define DATAROW_MASKED (-100)

struct datarow_part {
    const char *text; /* bytes without a NUL at the end; NULL where the part is ids */
    const int32_t *ids;
    size_t length;
};

struct datarow {
    struct datarow_part part[DATAROW_PARTS];
    /* log-probs of chosen and rejected; only read where a scenario asks for them */
    double reference[2];
    size_t line; /* 1-based, in the source */
};

struct datarow_table {
    const char *source; /* names the source in errors: "quiz.tsv", or the path as given */
    enum datarow_form form;
    struct datarow *row;
    size_t rows;
    int bytes;      /* 1: a chat template made the ids, so they are those of the byte tokenizer */
    uint64_t words; /* how many random words were drawn for the rows */
    size_t extra_keys;       /* how many keys the rows have beyond those of the form */
    const char *extra_first; /* the first such key; NULL: there is none */
};

#endif

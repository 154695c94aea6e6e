/* SPDX-License-Identifier: Apache-2.0
 * The data of a training in memory: token sequences, and what each position must predict. One
 * struct serves both tasks. It knows sources, special tokens, masks and truncation; it knows no
 * batches (sampler.h), no padding and no model.
 *
 * Sequences, with [] around the labelled tokens:
 *   pair, text             <bos> prompt [chosen <eos>]      <bos> prompt [rejected <eos>]
 *   completion, text       <bos> prompt [completion <eos>]
 *   plain text             <bos> [text <eos>]
 *   with a chat template   as chat.h says; no other special token is added
 *   ids                    as they are: prompt_ids [chosen_ids]; input_ids, labelled where labels
 *                          is not -100, which need not be at the end. No special token is added.
 * The shift by one is made here: target[i] is token i + 1 where that token is labelled, else
 * DATASET_NO_TARGET. A position with a target has logits and a loss term, and no other position has
 * either (docs/DETERMINISM.md, law 3). The last position never has one.
 *
 * Invariant: after dataset_open every sequence has at least one target, every token is below
 * `vocab`, and nothing changes any more. */
#ifndef TWINSTEP_DATA_DATASET_H
#define TWINSTEP_DATA_DATASET_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/status.h"
#include "determinism/digest.h"
#include "scenarios/config.h"

#define DATASET_NO_TARGET (-1)
/* an address of a random number has 24 bits for a position (law 10) */
#define DATASET_MAX_LEN ((uint64_t)1 << 24)
#define DATASET_MAX_VOCAB ((uint64_t)1 << 31) /* a target is an int32_t */

struct dataset_options {
    enum task task;
    const char *source; /* builtin:quiz, builtin:devil, or the path of a JSONL file */
    /* tokens, 2 to DATASET_MAX_LEN; longer sequences keep their start, as TRL's max_length does */
    uint64_t max_len;
    uint64_t vocab;   /* of the model; at least TOKENIZER_VOCAB for text */
    uint64_t seed;    /* draws the rejected answers of a builtin source; nothing else reads it */
    uint64_t samples; /* how many samples are used, from the first on; 0: all */
    int reference;    /* 1: rows must carry the reference's log-probs */
    /* the template of text and conversations; ids and `text` rows must go without */
    enum chat chat;
    /* rows that truncation leaves without a label on a side: an error, or left out */
    enum no_label no_label;
    /* Called where the rows are text, before any is cut to max_len: what it fails with is the
     * answer. NULL: text is taken. */
    enum status (*check_text)(const void *context);
    const void *context;
};

/* Whether both options give the same data, apart from what is asked of text. */
int dataset_options_equal(const struct dataset_options *a, const struct dataset_options *b);

/* Sides of a sample: DPO has both, SFT only DATASET_CHOSEN. Sums take chosen first. */
enum { DATASET_CHOSEN = 0, DATASET_REJECTED = 1 };

struct dataset_sequence {
    uint64_t first;  /* where its tokens begin in dataset.token and dataset.target */
    uint32_t length; /* tokens, after truncation; at least 2 */
    uint32_t prompt; /* tokens before the first one that has a loss term; at least 1 */
    uint32_t labels; /* positions with a target; at least 1 */
    uint32_t cut;    /* tokens that truncation removed */
};

struct dataset {
    const char *source; /* names the source for people: "quiz.tsv", or the path */
    enum task task;
    uint32_t sides;          /* 2 for DPO, 1 for SFT */
    size_t samples;          /* below 2^32 */
    size_t tokens;           /* of all sequences */
    size_t labels;           /* targets of all sequences */
    uint32_t longest;        /* length of the longest sequence */
    size_t cut_sequences;    /* sequences that truncation shortened */
    size_t cut_tokens;       /* tokens it removed */
    size_t dropped;          /* rows that it left without a label, so that they are left out */
    size_t dropped_first;    /* the line of the first of them; 0: there is none */
    size_t extra_keys;       /* JSONL keys that were ignored, over all rows */
    const char *extra_first; /* the first of these keys, or NULL */
    uint64_t words;          /* how many random words were drawn (op DATA_OP_REJECT) */
    const uint32_t *token;   /* [tokens] */
    const int32_t *target;   /* [tokens]: the next token, or DATASET_NO_TARGET */
    const uint32_t *line;    /* [samples]: the sample's 1-based line in the source */
    const struct dataset_sequence *sequence; /* [samples][sides]; dataset_side() finds one */
    /* [samples][sides]: 1 where the first token is labelled, as a collator does that copies
     * input_ids of plain text to labels; such labels are only counted */
    const uint8_t *opens;
    /* [samples]: log-probs of chosen and rejected; NULL: none are known */
    const double (*reference)[2];
    int bytes;            /* 1: tokens are those of the byte tokenizer */
    struct digest digest; /* covers task, shapes, tokens and targets: a key for caches */
};

/* Whether `source` names a text that comes with twinstep. The rejected answers of its pairs are
 * drawn. */
int dataset_is_builtin(const char *source);

/* Reads the whole source; everything lives in `arena`. STATUS_INPUT: a bad row, an option out of
 * range, fewer rows than `samples`, a source whose rows are for the other task, or a sequence in
 * which truncation leaves no label, unless such rows are left out (`file:line: reason`). STATUS_IO:
 * the file cannot be read. */
TWINSTEP_MUST_USE enum status dataset_open(const struct dataset_options *options,
                                           struct arena *arena, struct dataset *out_dataset);

static inline const struct dataset_sequence *dataset_side(const struct dataset *dataset,
                                                          size_t sample, uint32_t side) {
    return &dataset->sequence[sample * dataset->sides + side];
}

/* Prints for the verb `check` the totals, then the first `samples` samples: their tokens, their
 * label mask (1 where the token is labelled) and, where the text is known, the text with its
 * labelled parts in brackets. */
void dataset_describe(const struct dataset *dataset, size_t samples, FILE *out);

/* Prints what was cut off and which keys were ignored, or nothing where neither happened. */
void dataset_describe_lost(const struct dataset *dataset, FILE *out);

#endif

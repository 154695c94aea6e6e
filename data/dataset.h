/* SPDX-License-Identifier: Apache-2.0
 * The data of a training in memory: token sequences with what each position must predict. One
 * struct for both tasks. Knows sources, special tokens, masks and truncation; knows no batches
 * (sampler.h), no padding and no model.
 *
 * Sequences, with [] around the labelled tokens:
 *   pair, text             <bos> prompt [chosen <eos>]      <bos> prompt [rejected <eos>]
 *   completion, text       <bos> prompt [completion <eos>]
 *   plain text             <bos> [text <eos>]
 *   with a chat template   as chat.h says; no other special token is added
 *   ids                    as they are: prompt_ids [chosen_ids]; input_ids, labelled where labels
 *                          is not -100, which need not be at the end. No special token is added.
 * The shift by one is made here: target[i] is token i + 1 where that token is labelled, else
 * DATASET_NO_TARGET. A position with a target has logits and a loss term; no other position has
 * either (laws.md, section 3). The last position never has one.
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
#define DATASET_MAX_LEN ((uint64_t)1 << 24)   /* a position has 24 bits (laws.md, section 10) */
#define DATASET_MAX_VOCAB ((uint64_t)1 << 31) /* a target is an int32_t */

struct dataset_options {
    enum task task;
    const char *source; /* builtin:quiz, builtin:devil, or the path of a JSONL file */
    uint64_t max_len;   /* tokens; longer sequences keep their start, as TRL's max_length does;
                           2 ... DATASET_MAX_LEN */
    uint64_t vocab;     /* of the model; at least TOKENIZER_VOCAB for text */
    uint64_t seed;      /* draws the rejected answers of a builtin source; else unread */
    uint64_t samples;   /* the first ones are used; 0: all */
    int reference;      /* rows must carry the reference's log-probs */
    enum chat chat;     /* of text and conversations; ids and `text` rows must go without */
};

/* Whether both give the same data. */
int dataset_options_equal(const struct dataset_options *a, const struct dataset_options *b);

/* Sides of a sample: DPO has both, SFT only DATASET_CHOSEN. Order of sums: chosen first. */
enum { DATASET_CHOSEN = 0, DATASET_REJECTED = 1 };

struct dataset_sequence {
    uint64_t first;  /* of its tokens in dataset.token and dataset.target */
    uint32_t length; /* tokens, after truncation; at least 2 */
    uint32_t prompt; /* tokens before the first that has a loss term; at least 1 */
    uint32_t labels; /* positions with a target; at least 1 */
    uint32_t cut;    /* tokens that truncation removed */
};

struct dataset {
    const char *source; /* for people: "quiz.tsv" or the path */
    enum task task;
    uint32_t sides;                          /* 2 for DPO, 1 for SFT */
    size_t samples;                          /* below 2^32 */
    size_t tokens;                           /* over all sequences */
    size_t labels;                           /* targets over all sequences */
    uint32_t longest;                        /* length of the longest sequence */
    size_t cut_sequences;                    /* sequences that truncation shortened */
    size_t cut_tokens;                       /* tokens it removed */
    size_t extra_keys;                       /* ignored JSONL keys, over all rows */
    const char *extra_first;                 /* the first of them, or NULL */
    uint64_t words;                          /* random words drawn (op DATA_OP_REJECT) */
    const uint32_t *token;                   /* [tokens] */
    const int32_t *target;                   /* [tokens]: next token, or DATASET_NO_TARGET */
    const uint32_t *line;                    /* [samples]: 1-based line in the source */
    const struct dataset_sequence *sequence; /* [samples][sides]; read by dataset_side */
    const uint8_t *opens; /* [samples][sides]: 1 where the first token is labelled, as that of plain
                             text is by a collator that copies input_ids to labels; only counted */
    const double (*reference)[2]; /* [samples]: log-probs of chosen and rejected, or NULL */
    int bytes;                    /* tokens are those of the byte tokenizer */
    struct digest digest;         /* of task, shapes, tokens and targets: a key for caches */
};

/* Whether `source` names text that comes with twinstep; of pairs, their rejected answers are drawn.
 */
int dataset_is_builtin(const char *source);

/* Reads the whole source. STATUS_INPUT: a bad row, an option out of range, fewer rows than
 * `samples`, a source whose rows are for the other task, or a sequence that truncation leaves
 * without a label (`file:line: reason`); STATUS_IO: the file cannot be read. Everything lives in
 * `arena`. */
TWINSTEP_MUST_USE enum status dataset_open(const struct dataset_options *options,
                                           struct arena *arena, struct dataset *out_dataset);

static inline const struct dataset_sequence *dataset_side(const struct dataset *dataset,
                                                          size_t sample, uint32_t side) {
    return &dataset->sequence[sample * dataset->sides + side];
}

/* For `check`: the totals, then the first `samples` samples with their tokens,
 * label mask (1 where the token is labelled) and, where it is known, text with the labelled part in
 * brackets. */
void dataset_describe(const struct dataset *dataset, size_t samples, FILE *out);

/* What was cut off and which keys were ignored; nothing where neither was. */
void dataset_describe_lost(const struct dataset *dataset, FILE *out);

#endif

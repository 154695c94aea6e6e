/* SPDX-License-Identifier: Apache-2.0
 * One sequence as two engines saw it: token ids, and two log-probs for each of them.
 *
 * Every field is a list of numbers, since ids, positions and versions below 2^53 are exact in f64.
 * A value that the file leaves open (null) is NaN. Whoever reads fills the lists; whoever measures
 * reads them. Knows no format and judges nothing. */
#ifndef TWINSTEP_ROLLOUT_ROLLOUT_SEQUENCE_H
#define TWINSTEP_ROLLOUT_ROLLOUT_SEQUENCE_H

#include <stdint.h>

#include "base/arena.h"

enum rollout_field {
    ROLLOUT_ENGINE = 0,   /* log-probs of the engine that generated */
    ROLLOUT_TRAINER,      /* log-probs of the training forward over the same tokens */
    ROLLOUT_TOKENS,       /* token ids, of both where there is no list of each */
    ROLLOUT_TRAINER_IDS,  /* token ids as the trainer was given them */
    ROLLOUT_MASK,         /* above 0: the token counts */
    ROLLOUT_POSITION,     /* of each token; one number: of the first */
    ROLLOUT_VERSION,      /* of the weights that generated; one number or one a token */
    ROLLOUT_NOW,          /* version of the weights that the trainer used */
    ROLLOUT_EXPERTS,      /* which experts the engine chose; one number for each list of them */
    ROLLOUT_EXPERTS_HERE, /* which the trainer chose */
    ROLLOUT_BATCH,
    ROLLOUT_KEPT,    /* one number: 0 where the trainer leaves the sequence out */
    ROLLOUT_REMOVED, /* one number: above 0 where it does */
    ROLLOUT_REWARD,  /* one number, or a list that counts as its sum */
    ROLLOUT_ID,
    ROLLOUT_FIELDS
};

struct rollout_list {
    double *value;
    size_t count, room;
    int given; /* 1: the sequence has this field; 2: as one number, not as a list */
};

#define ROLLOUT_ID_ROOM 96

struct rollout_sequence {
    struct rollout_list list[ROLLOUT_FIELDS];
    char id[ROLLOUT_ID_ROOM]; /* as the file spells it, cut off at the end; "" without one */
    const char *file;
    uint32_t line; /* line of a text, row of an array, from 1 */
    /* How many log-probs each side had, before rollout_align() left out what only one side has. */
    size_t length[2];
    /* What it found; the flags of enum rollout_shape. */
    unsigned shapes;
    size_t count; /* tokens that both sides have: all lists are this long after rollout_align() */
    int padded;   /* 1: a row of an array, which is as wide as its longest sequence */
    /* 1: the reward is an object, a text or a list of lists, and is left out. */
    int odd_reward;
};

/* What is plain from the lists alone, before any arithmetic. */
enum rollout_shape {
    SHAPE_SHORT = 1, /* one side ends earlier */
    SHAPE_FRONT = 2, /* one side has more tokens in front: the prompt */
    SHAPE_IDS = 4,   /* the token ids of both sides differ from some token on */
    SHAPE_BOTH = 8   /* there are token ids of both sides */
};

void rollout_sequence_clear(struct rollout_sequence *sequence);
TWINSTEP_MUST_USE enum status rollout_list_add(struct rollout_list *list, struct arena *arena,
                                               double value);

/* Cuts every list to the tokens that both sides have, so that element i of each is about the same
 * token. Ids and mask that are longer than the log-probs begin with the prompt, as slime writes
 * them, so their last elements count. STATUS_INPUT says file, line, field, and both lengths. */
TWINSTEP_MUST_USE enum status rollout_align(struct rollout_sequence *sequence);

#endif

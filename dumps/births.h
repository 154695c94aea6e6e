/* SPDX-License-Identifier: Apache-2.0
 * Where two dumps part: the births.
 *
 * A value is dtype, shape and hashes. V holds all values of A, inputs and outputs. B is walked in
 * its order: an op is clean where each of its inputs is in V or was only moved (views, copies,
 * slices, casts without rounding) from such values. A clean op that is no move and whose output is
 * not in V is a birth: from values that both have, it made one that the other has not. What comes
 * behind only inherits. An input that no op of the dump made and that the other side has not comes
 * from outside; where it is only moved (the flat parameter of FSDP, a bucket of DDP), nothing is
 * said until something is computed of what was moved. The same is done with A and B swapped,
 * because a fused op has no counterpart. Births that also occur between A and a further dump of it
 * are noise.
 *
 * A hash is no proof: values with equal hashes count as equal. */
#ifndef TWINSTEP_DUMPS_BIRTHS_H
#define TWINSTEP_DUMPS_BIRTHS_H

#include "dumps/dump.h"

enum dump_event_kind {
    DUMP_BIRTH,
    DUMP_OUTSIDE /* an input that the other side has not and that no op before it made */
};

struct dump_event {
    enum dump_event_kind kind;
    int side;             /* 0: in A, 1: in B */
    uint32_t op;          /* its index in that dump */
    uint32_t input;       /* of DUMP_OUTSIDE: which tensor, counted from 0 */
    uint32_t counterpart; /* the op that is aligned with it; UINT32_MAX: none */
    int noise;            /* 1: a floor shows it, too */
    int site;             /* 1: a birth, and the other side has one in the same module */
    int64_t place;        /* order among the events of both sides */
};

enum dump_verdict { DUMP_EQUAL, DUMP_DIFFERS, DUMP_ONLY_NOISE, DUMP_UNDECIDED };

struct dump_judgement {
    const struct words *words;
    const struct dump *dump[2];
    struct dump_event *events; /* sorted by place */
    size_t event_count, event_room;
    uint64_t births[2], noise, outside[2]; /* births without noise; noise of both kinds and sides */
    uint32_t *counterpart[2]; /* the op that is aligned with each op; UINT32_MAX: none */
    int is_aligned;
    int by_scope;       /* 1: a model is in a wrapper, so modules are compared without its class */
    uint64_t aligned;   /* pairs of ops */
    uint64_t differing; /* pairs with unlike values */
    uint64_t inherited; /* those of them of which neither op is a birth */
    uint32_t first_differing; /* the first such pair, in A; UINT32_MAX: none */
    /* Values with no hash but NaN, which are equal whatever they are, and the first op with one */
    uint64_t blank;
    int blank_side;
    uint32_t first_blank;
    size_t floors;
    const struct dump_event *first; /* the one that the first line names; NULL: none */
    enum dump_verdict verdict;
};

/* Judges. `floors` are further dumps of A. All were read with the same words. */
TWINSTEP_MUST_USE enum status dump_judge(const struct dump *a, const struct dump *b,
                                         const struct dump *const *floors, size_t floor_count,
                                         struct words *words, struct dump_judgement *out);

/* The first input of the op that is another value than its counterpart's, counted from 0, or that
 * only one of them has: then they are not one call. -1: there is none. */
int64_t dump_other_input(const struct dump_judgement *judgement, const struct dump_event *event);

/* The span of two texts of arguments that differs, cut at separators: "0.5" and "0.25". Lengths are
 * 0 where they are equal. */
struct dump_change {
    const char *text[2];
    size_t length[2];
};
void dump_changed(const char *a, const char *b, struct dump_change *out);

#endif

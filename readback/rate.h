/* SPDX-License-Identifier: Apache-2.0
 * The learning rate that one update of one parameter group applied, and the weight decay that acted
 * on the weights directly, each with a bar that holds the truth if the optimizer did what its rule
 * says. Whether it did is tested: by the residual of the fit, or by the share of elements that
 * agree.
 *
 * Three methods, chosen by what is stored:
 *   least squares   weights in f32 or f64: every element of d = -lr u - c old, weighed by its ulp
 *   votes           bf16 or f16 without wider masters: intervals of each element (votes.h)
 *   least squares over copies   weights that were rounded from wider masters at both ends
 * Adafactor gives a lower bound alone. A decay has a method of its own: inert elements, with u = 0
 * and old != 0, are moved by the decay alone. */
#ifndef TWINSTEP_READBACK_RATE_H
#define TWINSTEP_READBACK_RATE_H

#include "readback/step_direction.h"
#include "readback/votes.h"

enum rate_state {
    RATE_UNKNOWN = 0, /* nothing tells it; `why` says what is missing */
    RATE_READ,        /* low <= truth <= high, and 0 lies outside */
    RATE_AT_MOST,     /* 0 lies inside: no more is known than a bound of the size */
    RATE_AT_LEAST,   /* low <= truth: Adafactor's updates have a norm of 1 at most before scaling */
    RATE_UNEXPLAINED /* the elements contradict each other: the rule is not what moved them */
};

enum rate_method { RATE_LEAST_SQUARES = 0, RATE_COPIES, RATE_VOTES, RATE_INERT, RATE_BOUND };

struct rate {
    enum rate_state state;
    enum rate_method method;
    double value, low, high; /* value lies in the middle of the bar */
    const char *why;         /* of RATE_UNKNOWN */
};

struct rate_reading {
    struct rate lr, decay; /* decay is c / lr: what weight_decay would have to be */
    struct rate shrink;    /* c itself, of inert elements */
    double residual; /* least squares: root mean square of what is left, in ulp, less what roundings
                        of the state may leave; NaN: not measured */
    double agreeing; /* votes: share of elements whose interval holds the LR; NaN: not measured */
    int needs_decay; /* least squares: without a decay they would not explain the movement */
    int torch_loops; /* votes: most agree if each operation rounds to the stored dtype */
    enum dtype weights, state;
    uint64_t elements, moved;    /* of tensors that the optimizer has state for */
    uint64_t inert, inert_moved; /* u is 0, without error, and old not; those that changed */
    uint64_t lost;               /* u != 0, but the weight stayed */
};

/* One block's terms in units of its ulp: direction u, old value p, change d, how far u may be off,
 * and magnitudes. */
struct rate_terms {
    double u[READBACK_BLOCK], p[READBACK_BLOCK], d[READBACK_BLOCK], e[READBACK_BLOCK];
    double u_size[READBACK_BLOCK], p_size[READBACK_BLOCK], one[READBACK_BLOCK];
};

/* Room that readings share. */
struct rate_room {
    struct direction_block block, other;
    struct rate_terms terms;
    struct votes votes;
};
TWINSTEP_MUST_USE enum status rate_room_open(struct arena *arena, struct rate_room **out);

/* The tensors that a reading takes in: those of `group`, or the one of index `only` alone. */
struct rate_scope {
    uint32_t group;
    uint32_t only;  /* STEP_NO_GROUP: all of the group */
    int is_rounded; /* read as if the update had begun from weights rounded to `rounded` */
    enum dtype rounded;
    double ahead; /* read as if Adam's count were so much larger than the stored one */
    /* Read with this group's numbers instead of the file's, unless NULL. */
    const struct step_group *instead;
};

void rate_read(const struct step *step, struct rate_scope scope, struct rate_room *room,
               struct rate_reading *out);

/* What least squares with a decay leave of the tensors' changes, root mean square in ulp, whatever
 * is stored; NaN where no direction is known. Small only if state and weights belong together. */
double rate_residual(const struct step *step, struct rate_scope scope, struct rate_room *room);

/* The largest residual, in ulp, that roundings alone leave: each element is rounded once, twice
 * with decay, by half an ulp at most, and what the optimizer computes in f32 adds a little. */
#define RATE_RESIDUAL_LINE 1.0
/* The same of weights in f64, in which this program computes, too: where a weight is no larger than
 * its update, the direction, the LR and their product are off by a unit each. Measured: up to 2.
 * What is wrong leaves 1e9 and more. */
#define RATE_RESIDUAL_LINE_F64 8.0
/* Which of the two lines belongs to weights of that dtype. */
double rate_residual_line(enum dtype weights);

/* The least share of elements that agree where the rule is right. Measured over real trainings
 * (docs/measurements/readback.md). */
#define RATE_AGREEING_LINE 0.99

#endif

/* SPDX-License-Identifier: Apache-2.0
 * The parts of trajectory_judge, one file each. Private to forensics/trajectory*.c. */
#ifndef TWINSTEP_FORENSICS_TRAJECTORY_PARTS_H
#define TWINSTEP_FORENSICS_TRAJECTORY_PARTS_H

#include "base/arena.h"
#include "forensics/series.h"
#include "forensics/trajectory.h"

/* One column at one update in both logs. */
struct trajectory_pairing {
    uint64_t update;
    const struct series_point *before, *after;
};

/* The last row of each update of a series, by update. A log that repeats updates is read as its
 * last rows say. */
struct trajectory_rows {
    const struct series_point **last;
    size_t count;
};

struct trajectory_column {
    const char *name; /* as AFTER spells it */
    struct series before, after;
    struct trajectory_rows before_rows, after_rows;
    struct trajectory_pairing *pairs; /* after the restart, ascending */
    size_t count;
};

/* The LR of a further parameter group in both logs. */
struct trajectory_group {
    uint32_t number;
    struct trajectory_column lr;
};

struct trajectory_judging {
    const struct trajectory_side *before, *after;
    struct arena *arena;
    struct trajectory *out;
    struct trajectory_column lr, loss, norm, tokens;
    struct trajectory_group *groups;
    size_t group_count;
    const char *alone; /* the LR column of a further group that one log alone has; NULL: none */
    double variation;  /* the median change of the loss from row to row; 0: too few rows */
    int windowed;      /* a row of the loss is a mean over several updates */
    int unnumbered; /* rows of one number need not be of one update, so none is known to differ */
};

/* Judges a part, in words. */
TWINSTEP_MUST_USE enum status trajectory_say(struct trajectory_judging *judging,
                                             enum trajectory_part part, enum trajectory_state state,
                                             const char *bug, const char *format, ...)
    TWINSTEP_PRINTF(5, 6);

/* ---- the rows of both logs (forensics/trajectory_columns.c) ---- */

/* Opens the columns that are judged and pairs their rows behind the restart. */
TWINSTEP_MUST_USE enum status trajectory_open(struct trajectory_judging *judging);
/* Returns the last row of an update, or NULL. */
const struct series_point *trajectory_last_at(const struct trajectory_rows *rows, uint64_t update);
/* Returns the pair of an update, or NULL. */
const struct trajectory_pairing *trajectory_pair_at(const struct trajectory_column *column,
                                                    uint64_t update);
double trajectory_gap(const struct trajectory_pairing *pair);
/* Tells whether two values are one within their printed precision. */
int trajectory_agrees(const struct series_point *a, const struct series_point *b);
/* NaN and infinity are what every broken run prints, so that they prove nothing of a restart. */
int trajectory_are_numbers(const struct trajectory_pairing *pair);
/* Tells whether an update has one LR in both logs, in every parameter group; what is not in both
 * does not speak against it. */
int trajectory_same_lrs(const struct trajectory_judging *judging, uint64_t update);
/* Tells whether two counts are one. */
int trajectory_agree_counts(const struct trajectory_pairing *pair);
/* Tells whether the losses of an update are those of one batch, draw and weights, up to noise. */
int trajectory_is_alike(const struct trajectory_judging *judging,
                        const struct trajectory_pairing *pair);
/* Tells whether all values of a series are one. */
int trajectory_is_constant(const struct series *series);

/* ---- what is judged by what ---- */

/* The scheduler, by the LRs of every parameter group (forensics/trajectory_lr.c). */
TWINSTEP_MUST_USE enum status trajectory_judge_lr(struct trajectory_judging *judging);
/* Data, random draws, weights and optimizer, by losses, norms and tokens
 * (forensics/trajectory_loss.c). */
TWINSTEP_MUST_USE enum status trajectory_judge_loss(struct trajectory_judging *judging);
/* The same by the digests that two traces of runs recorded (forensics/trajectory_digest.c). */
TWINSTEP_MUST_USE enum status trajectory_judge_digests(struct trajectory_judging *judging);
/* Notes which settings of the optimizer and of clipping are other ones behind the restart
 * (forensics/trajectory_settings.c): of `x` before and `y` after it, one update. */
TWINSTEP_MUST_USE enum status trajectory_note_settings(struct trajectory_judging *judging,
                                                       const struct record *x,
                                                       const struct record *y);
/* ---- digests of two rows (forensics/trajectory_states.c) ---- */

/* Tells whether two rows have one digest: 1: yes, 0: no, -1: not recorded on both sides. */
int trajectory_equal_digest(const struct record *a, const struct record *b, int column);
/* The generators, by the states that other programs recorded (forensics/trajectory_states.c): of
 * `x` before and `y` after the restart, one update. `same_weights`: whether it began from the same
 * ones, as above. */
TWINSTEP_MUST_USE enum status trajectory_judge_states(struct trajectory_judging *judging,
                                                      const struct record *x,
                                                      const struct record *y, int same_weights);

#endif

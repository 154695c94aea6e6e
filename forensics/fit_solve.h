/* SPDX-License-Identifier: Apache-2.0
 * Numbers of one model that reproduce a window of a series: peak, warm-up, total, floor, stride.
 * Private to forensics/fit*.c.
 *
 * The numbers are constructed: the warm-up from the knee, the total from the ratio of two points,
 * the floor from the tail, the peak from the intersection of what every point admits. Every
 * candidate is then verified on every point. Invariant: whatever is emitted reproduces the whole
 * window. */
#ifndef TWINSTEP_FORENSICS_FIT_SOLVE_H
#define TWINSTEP_FORENSICS_FIT_SOLVE_H

#include "base/real.h"
#include "forensics/fit_model.h"

#define FIT_PROBES 32
/* Pairs of warm-up and total that are taken from other models. */
#define FIT_SEEDS 6

enum fit_turn {
    FIT_TURN_FULL = 0,
    FIT_TURN_SEEDS, /* the warm-ups and totals that explain the column under other models, alone */
    FIT_TURN_LISTED /* these, and the warm-ups that are listed: none is solved for */
};

struct fit_window {
    const struct series_point *points;
    size_t count;
    double scale;  /* the largest |value| */
    int64_t shift; /* the column is model(k + shift) */
    uint64_t known_total[8];
    size_t known_totals;  /* totals to try first: the one asked for, the one that the log says, the
                             last update, those that a flat end shows */
    size_t end_totals;    /* how many of them a flat end shows: the last ones */
    size_t said_totals;   /* how many of them somebody said */
    double known_warmup;  /* NaN: unknown */
    double known_ratio;   /* NaN: unknown */
    double known_lr;      /* NaN: unknown */
    uint64_t known_epoch; /* updates per epoch; 0: unknown */
    double known_floor;   /* share of L; NaN: unknown */
    const double *strides;
    size_t stride_count;
    int free_strides;  /* 1: also strides that no known total or warm-up supports */
    int no_scan;       /* 1: known totals only */
    size_t *budget;    /* evaluations of models that are left */
    uint64_t *walk;    /* steps of recursive schedules that are left */
    size_t *suspect;   /* the point at which the last verification failed; NULL: it is not kept */
    int deep;          /* 1: try more warm-ups and floors */
    int typed_floors;  /* 1: try the floors that configurations have, and no other */
    double only_floor; /* with typed_floors, the one LR that is tried; NaN: all of them */
    int solved_floors; /* 1: try the floors that the rows give with each warm-up and known total */
    double floor_peak; /* the peak that it is a share of; NaN or 0: the largest LR of the rows */
    int every_model;   /* 1: every model gets a turn, a brief one where evaluations are spent */
    int turn;          /* enum fit_turn */
    struct fit_numbers seeds[FIT_SEEDS]; /* what explains the column under other models */
    size_t seed_count;
    int whole;    /* 1: it is the whole series, whose first row may lie behind the warm-up */
    uint32_t lag; /* how far the counter may be behind: skipped updates */
    int only_total, only_warmup; /* 1: the first known total, the known warm-up, and no other */
    /* The members below are filled by fit_window_open. */
    size_t probes[FIT_PROBES], probe_count;
    size_t top, top_last; /* first and last point of the first stretch at the maximum */
    size_t descent[2]; /* two points of the first descent, one near 0.4 of the maximum and its end;
                          0: none */
    double tail;       /* the constant value at the end; NaN: none */
    uint64_t epoch;    /* updates between the changes of a staircase; 0: none */
    int first_apart; /* 1: update 1 stands above a rise: a start of its own, or the end of a wave */
    double least;    /* the smallest value behind the top, plus its half quantum */
    int constant;    /* 1: all values are equal within their precision */
};

struct fit_solution {
    size_t model; /* its index, set by the caller */
    struct fit_numbers numbers;
    int64_t shift;
    double max_error, rms_error;
};

#define FIT_SOLUTIONS 48
struct fit_solutions {
    struct fit_solution at[FIT_SOLUTIONS];
    size_t count;
};

/* Returns half the printed interval of a point plus the slack of rounding; `scale` is the largest
 * |LR| around. */
static inline double fit_half(const struct series_point *point, double scale) {
    const double value = real_abs_f64(point->value);
    /* 4 ulp of the value and one of the scale (2^-52 relative each), as fit_matches says. */
    const double slack = 0x1p-50 * value + 0x1p-52 * scale;
    return point->quantum > 0.0 ? 0.5 * point->quantum * (1.0 + 0x1p-20) + slack : slack;
}
/* Returns the largest |value|; a NaN counts as none. */
double fit_scale(const struct series_point *points, size_t count);
/* Returns how many of the first points can be prints of one value. */
size_t fit_alike(const struct series_point *points, size_t count, double scale);

void fit_window_open(struct fit_window *window, const struct series_point *points, size_t count);
void fit_solve(struct fit_model *model, const struct fit_window *window, struct fit_solutions *out);
/* Sets the errors of the model as it is set. Returns 0 when a point differs, or when the walk is
 * spent. */
int fit_verify(const struct fit_model *model, const struct fit_window *window, double *max_error,
               double *rms_error);

/* A line that the rows of a decay lie on, as they are printed (forensics/fit_vertex.c). */
struct fit_line {
    double update, value; /* of the last row on it */
    double slope;         /* LR per update, below 0 */
    double half;          /* by how much the value may be off */
    double slope_off;     /* and the slope */
};
/* Finds it where the rows behind the top lie on one; returns 0 elsewhere. */
int fit_find_line(const struct fit_window *window, struct fit_line *out);

/* The end of a decay that is a parabola (forensics/fit_vertex.c). */
struct fit_vertex {
    double update; /* at which the LR comes to its floor, as the column counts: T, or one behind */
    double floor;  /* an LR that somebody may have typed */
};
/* Finds it where the decay's rows lie on one parabola and fix its end; returns 0 elsewhere. */
int fit_find_vertex(const struct fit_window *window, struct fit_vertex *out);

/* A cosine that falls to a floor, once or in cycles (forensics/fit_cycles.c), under one peak. */
struct fit_cycles {
    double floor; /* as a share of the peak; the caller sets it */
    /* Where the search goes on; the caller sets 0, 1 and 0 before the first call. */
    int rows;    /* 0: the rows behind the first rise, 1: all */
    int digits;  /* of the peaks that are tried */
    double next; /* the next of them, in units of the last digit */
    /* What is found. Updates are as the column counts. */
    double peak;
    double begin, length; /* the first update of the cosine, or of the first cycle of which the rows
                             show anything, and how long it falls */
    double begin_off, length_off; /* by how much the printed digits leave them open */
    double middle, angle; /* an update in the middle of the rows, and how far it is from there,
                             which the digits leave least open: pi is a length */
    size_t beginnings;    /* of cycles that the rows show; 0: it falls once */
};
/* Finds it under the next peak of two digits (of three, where a cycle begins), or the known one,
 * under which all rows that are looked at lie on such a cosine. Returns 0 where none is left. */
int fit_next_cycles(const struct fit_window *window, struct fit_cycles *io);
/* Tells whether there is one under any peak, or the known one (NaN: none), to a floor that
 * configurations have. It asks nothing of the updates but that the rows are evenly apart. */
int fit_lies_on_cosine(const struct series *series, double known_lr);

#define FIT_WARMUPS 640
#define FIT_SLOT_BITS 11 /* of the table that finds them: a third of its slots are used at most */
struct fit_warmups {
    double at[FIT_WARMUPS];
    size_t count;
    uint16_t slots[1 << FIT_SLOT_BITS]; /* 0, or 1 + the place in `at` of what hashes to it */
    size_t likely; /* those from here on are for where none before explains anything */
};
/* What a decay may fall to. */
struct fit_floor_trial {
    double value;
    int absolute;
    int at_end; /* 1: read off the last point, so the total is there or before */
};
#define FIT_FLOORS 20
/* Floors that configurations have: shares of the peak, and below 1e-4 LRs. Returns how many. */
size_t fit_typed_floors(const double **out);
/* Lists what the decay may fall to, with the schedule's own default first; returns how many. */
size_t fit_list_floors(const struct fit_model *model, const struct fit_window *window,
                       struct fit_floor_trial *floors);
/* Tells whether the rows show a peak, and a decay that is no line: every line to a floor is one to
 * another floor with another total or a scheduler one update apart. */
int fit_may_solve_floor(const struct fit_window *window);
/* Lists the floors with which the numbers' warm-up and total explain the rows that are looked at:
 * one that somebody may have typed as a share of the peak, and one typed as an LR where that has
 * fewer digits. Returns how many. Every row is still to be verified. */
size_t fit_solve_floors(struct fit_model *model, const struct fit_window *window,
                        const struct fit_numbers *numbers, struct fit_floor_trial floors[2]);
/* Lists the warm-ups that the knee admits, in updates of the contract, likely ones first. */
void fit_list_warmups(const struct fit_model *model, const struct fit_window *window, double stride,
                      struct fit_warmups *warmups);
/* Tells whether two numbers are one that a person typed: within 1e-9, far above the rounding of an
 * LR that was computed and far below its last typed digit. */
int fit_near(double a, double b);
/* Returns the shortest decimal in [low, high], or NaN when the interval is empty. */
double fit_shortest(double low, double high);
/* Returns the same if it has at most so many digits, else NaN. */
double fit_shortest_of(double low, double high, int digits);
/* Return whole numbers near 0 <= x < 2^52; larger x come back unchanged. */
double fit_floor(double x);
double fit_ceil(double x);
double fit_round(double x);
/* Returns the significant digits of the shortest decimal of x. */
int fit_digits(double x);
/* Digits of an LR, of a floor, or of a share of the peak, up to which somebody may have typed it.
 * Chosen: the smallest LRs and the peaks in configurations have one digit or two. */
#define FIT_TYPED_DIGITS 2

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Numbers of one model that reproduce a window of a series: peak, warm-up, total, floor, stride.
 *
 * Constructive: the warm-up comes from the knee, the total from the ratio of two points, the floor
 * from the tail, the peak from the intersection of what every point admits. Every candidate is then
 * verified on every point. Private to forensics/fit*.c.
 * Invariant: whatever is emitted reproduces the whole window. */
#ifndef TWINSTEP_FORENSICS_FIT_SOLVE_H
#define TWINSTEP_FORENSICS_FIT_SOLVE_H

#include "forensics/fit_model.h"

#define FIT_PROBES 32

struct fit_window {
    const struct series_point *points;
    size_t count;
    double scale;  /* largest |value| */
    int64_t shift; /* column is model(k + shift) */
    uint64_t known_total[4];
    size_t known_totals;  /* totals to try first: asked for, said by the log, last update */
    size_t said_totals;   /* how many of them somebody said */
    double known_warmup;  /* NaN: unknown */
    double known_ratio;   /* NaN: unknown */
    double known_lr;      /* NaN: unknown */
    uint64_t known_epoch; /* updates per epoch; 0: unknown */
    double known_floor;   /* share of L; NaN: unknown */
    const double *strides;
    size_t stride_count;
    int free_strides;            /* strides that no known total or warm-up supports, too */
    int no_scan;                 /* known totals only */
    size_t *budget;              /* evaluations of models that are left */
    uint64_t *walk;              /* steps of recursive schedules that are left */
    int deep;                    /* try more warm-ups */
    int only_total, only_warmup; /* the first known total, the known warm-up, and no other */
    /* filled by fit_window_open */
    size_t probes[FIT_PROBES], probe_count;
    size_t top, top_last; /* first and last point of the first stretch at the maximum */
    size_t descent[2];    /* two points of the first descent, .5 and end; 0: none */
    double tail;          /* constant value at the end; NaN: none */
    uint64_t epoch;       /* updates between changes of a staircase; 0: none */
    int first_apart;      /* update 1 stands above a rise: a start of its own, or a wave's end */
    double least;         /* smallest value behind the top, with its half quantum */
    int rises;            /* again, behind the first descent */
    int constant;         /* all values equal within precision */
};

struct fit_solution {
    size_t model; /* index, set by the caller */
    struct fit_numbers numbers;
    int64_t shift;
    double max_error, rms_error;
    uint8_t warmup_hidden, total_hidden; /* the window admits others, too */
};

#define FIT_SOLUTIONS 48
struct fit_solutions {
    struct fit_solution at[FIT_SOLUTIONS];
    size_t count;
};

/* Half the printed interval of a point, and the rounding slack; scale: largest |LR| around. */
double fit_half(const struct series_point *point, double scale);

void fit_window_open(struct fit_window *window, const struct series_point *points, size_t count);
void fit_solve(struct fit_model *model, const struct fit_window *window, struct fit_solutions *out);
/* Errors of the model as it is set; 0 when a point differs, or the walk is spent. */
int fit_verify(const struct fit_model *model, const struct fit_window *window, double *max_error,
               double *rms_error);
/* Charges the steps that a recursive schedule takes from *at to `update`; 0 when none are left. */
int fit_walk(const struct fit_model *model, const struct fit_window *window, uint64_t *at,
             uint64_t update);

#define FIT_WARMUPS 640
struct fit_warmups {
    double at[FIT_WARMUPS];
    size_t count;
};
/* Warm-ups that the knee admits, in updates of the contract, likely ones first. */
void fit_list_warmups(const struct fit_model *model, const struct fit_window *window, double stride,
                      struct fit_warmups *warmups);
/* Shortest decimal in [low, high]; NaN when the interval is empty. */
double fit_shortest(double low, double high);
/* Whole numbers near 0 <= x < 2^52; larger x come back. */
double fit_floor(double x);
double fit_ceil(double x);
double fit_round(double x);
/* Significant digits of the shortest decimal of x. */
int fit_digits(double x);

#endif

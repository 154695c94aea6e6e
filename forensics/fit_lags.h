/* SPDX-License-Identifier: Apache-2.0
 * The lags that a column admits: how many updates can have been skipped before each row, for a
 * model whose numbers are set. Private to forensics/fit*.c.
 *
 * A log of a resumed run has parts, and each goes on from the latest row before it that is an
 * earlier update: rows of updates that were run again belong to a branch that was thrown away. A
 * part begins with the lag that was saved there, with none (the counter was set to the number of
 * updates), or with another one. Invariant: what a lag says of a row is verified through the
 * contract, with the part's own list of skipped updates. */
#ifndef TWINSTEP_FORENSICS_FIT_LAGS_H
#define TWINSTEP_FORENSICS_FIT_LAGS_H

#include "forensics/fit_search.h"

/* Parts of a log that are told apart; one with more resumes is out of order and gets no fit with
 * skipped updates. */
#define FIT_PARTS 64
#define FIT_NO_POINT SIZE_MAX

struct fit_lag {
    uint32_t low, high;
};

struct fit_lag_part {
    size_t first, end; /* points */
    size_t before;     /* the point from behind which it went on; FIT_NO_POINT: the log has none */
    int32_t begins;    /* enum fit_part_begins, as fit_lags_follow found it */
};

struct fit_lags {
    struct fit_search *search;
    const struct fit_window *window; /* all points of the series */
    struct fit_model *model;
    uint32_t most; /* skipped updates that are believed */
    double blur;   /* how far the peak may be off, as a share of it: rows admit that much more */
    /* (points) how many updates were skipped that the row's LR has seen, and with the row's own. */
    struct fit_lag *seen, *all;
    struct fit_lag *want; /* (points) scratch */
    struct fit_lag_part parts[FIT_PARTS];
    size_t part_count; /* 0: too many */
};

/* Finds the parts and takes the memory of all rows from `scratch`, which the caller closes when no
 * lag is asked for any more. Model and `most` are set by the caller. */
TWINSTEP_MUST_USE enum status fit_lags_open(struct fit_search *search,
                                            const struct fit_window *window, struct arena *scratch,
                                            struct fit_lags *out);
/* Returns how many updates can have been skipped before the LR of this row was read. */
uint64_t fit_lags_before(const struct fit_model *model, const struct series_point *point);
/* Returns the LR that the row prints after `lag` skipped updates, lag <= fit_lags_before(). */
double fit_lagged(struct fit_lags *lags, const struct series_point *point, uint32_t lag);
/* Narrows `range` to what lies between the least and the largest lag in it that the point admits.
 * Returns 0 when there is none. */
int fit_lags_narrow(struct fit_lags *lags, const struct series_point *point, struct fit_lag *range);
/* Tells whether the first row admits as many skipped updates before it as the log shows. Needs
 * search, window, model and `most` alone. */
int fit_lags_admit_first(struct fit_lags *lags);
/* Finds the lags of every row that lead to the fewest skipped updates. Returns 0 where no staircase
 * explains the column. */
int fit_lags_follow(struct fit_lags *lags);
/* Tells whether the lags that were followed are those of a log without skipped updates. */
int fit_lags_none(const struct fit_lags *lags);
/* Writes the skipped updates of every part, each at the last update where the rows leave it, and
 * the ranges in which they lie. */
TWINSTEP_MUST_USE enum status fit_lags_list(const struct fit_lags *lags, struct fit_found *found);
/* Verifies the model with what was listed, part by part. */
int fit_lags_verify(struct fit_model *model, const struct fit_window *window,
                    struct fit_found *found);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * What a fit of reduce_lr_on_plateau knows of its column (forensics/fit_plateau_levels.c), and what
 * its trials keep. Private to forensics/fit_plateau*.c. */
#ifndef TWINSTEP_FORENSICS_FIT_PLATEAU_LEVELS_H
#define TWINSTEP_FORENSICS_FIT_PLATEAU_LEVELS_H

#include "forensics/fit_search.h"

#define PLATEAU_NAME "reduce_lr_on_plateau"
#define PLATEAU_LEVELS 64
/* Fits kept of one column: the plain one, and one for each number of processes tried. */
#define PLATEAU_ROOM 8

struct level {
    size_t first; /* the point where the level begins */
    double value;
    unsigned falls; /* how many factors below the first level it lies; a wrapper of P processes may
                       reduce P times at once */
};

struct plateau {
    const struct fit_search *search;
    const struct series *series;
    struct level levels[PLATEAU_LEVELS];
    size_t count;
    double factor, peak, min_lr; /* min_lr is 0 unless the last level is a floor */
    size_t budget;               /* points and values that trials may still look at */
    struct fit fits[PLATEAU_ROOM];
    size_t fit_count;
};

/* Fills levels, factor, peak and min_lr. Returns 0 where the column does not consist of constant
 * levels that fall by one factor. */
int plateau_find(struct plateau *p);

/* plateau_given returns what is believed of a parameter of the schedule, or NULL; plateau_is_fixed
 * tells whether only that value may fit. */
const char *plateau_given(const struct plateau *p, const char *key);
int plateau_is_fixed(const struct plateau *p, const char *key);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * What a fit of reduce_lr_on_plateau knows of its column (fit_plateau_levels.c), and what its
 * trials keep. Private to forensics/fit_plateau*.c. */
#ifndef TWINSTEP_FORENSICS_FIT_PLATEAU_LEVELS_H
#define TWINSTEP_FORENSICS_FIT_PLATEAU_LEVELS_H

#include "forensics/fit_search.h"

#define PLATEAU_NAME "reduce_lr_on_plateau"
#define PLATEAU_LEVELS 64
#define PLATEAU_ROOM 8 /* fits of one column */

struct level {
    size_t first; /* point */
    double value;
    unsigned falls; /* factors below the first; a wrapper of P processes may reduce P times at once
                     */
};

struct plateau {
    const struct fit_search *search;
    const struct series *series;
    struct level levels[PLATEAU_LEVELS];
    size_t count;
    double factor, peak, min_lr; /* min_lr: 0 but where the last level is a floor */
    const char *parameters;
    size_t budget; /* points and values that trials may still look at */
    struct fit fits[PLATEAU_ROOM];
    size_t fit_count;
};

/* Fills levels, factor, peak and min_lr; 0 where the column is none of constant levels that fall by
 * one factor. */
int plateau_find(struct plateau *p);

/* What is believed of a parameter of the schedule, or NULL; whether only that value may fit. */
const char *plateau_given(const struct plateau *p, const char *key);
int plateau_is_fixed(const struct plateau *p, const char *key);

#endif

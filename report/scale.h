/* SPDX-License-Identifier: Apache-2.0
 * An axis of a drawing: from values to places, linear or logarithmic, with ticks at round numbers.
 *
 * Draws nothing. Invariant: ticks are multiples of 1, 2 or 5 times a power of ten, and their labels
 * are those numbers exactly. */
#ifndef TWINSTEP_REPORT_SCALE_H
#define TWINSTEP_REPORT_SCALE_H

#include <stddef.h>
#include <stdint.h>

#define SCALE_TICKS_MAX 16
#define SCALE_LABEL 32

struct scale {
    double low, high; /* values; low < high; above 0 where logarithmic */
    double from, to;  /* places of low and high */
    int logarithmic;
    int count; /* of ticks */
    double tick[SCALE_TICKS_MAX];
    char label[SCALE_TICKS_MAX][SCALE_LABEL];
    double log_low, log_high; /* of a logarithmic axis */
};

/* An axis over finite values from least to most, equal ones and any order allowed, widened to round
 * numbers. Places are 0 and 1 until scale_place_between. At most `ticks` (3 ... 12) are made. */
void scale_init_linear(struct scale *scale, double least, double most, int ticks);
/* The same for values above 0. */
void scale_init_log(struct scale *scale, double least, double most, int ticks);
/* Whole numbers; the axis is not widened but by half a number at both ends. */
void scale_init_counts(struct scale *scale, double least, double most, int ticks);

void scale_place_between(struct scale *scale, double from, double to);
/* Place of a value, clamped to the axis. */
double scale_place(const struct scale *scale, double value);
/* Bytes of the longest label. */
size_t scale_widest(const struct scale *scale);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * An axis of a drawing: a map from values to places, linear or logarithmic, with ticks at round
 * numbers.
 *
 * Draws nothing. Invariant: ticks are multiples of 1, 2 or 5 times a power of ten, and their labels
 * are these numbers exactly. */
#ifndef TWINSTEP_REPORT_SCALE_H
#define TWINSTEP_REPORT_SCALE_H

#include <stddef.h>
#include <stdint.h>

#define SCALE_TICKS_MAX 16
#define SCALE_LABEL 32

struct scale {
    double low, high; /* the values at its ends; low < high, and above 0 where logarithmic */
    double from, to;  /* the places of low and high */
    int logarithmic;
    int count; /* of ticks */
    double tick[SCALE_TICKS_MAX];
    char label[SCALE_TICKS_MAX][SCALE_LABEL];
    double log_low, log_high; /* natural logarithms of the ends, of a logarithmic axis */
};

/* Makes an axis that holds two finite values, which may be equal and in any order, widened to round
 * numbers, with at most `ticks` (3 ... 12) ticks. Its ends are at the places 0 and 1 until
 * scale_place_between. */
void scale_init_linear(struct scale *scale, double least, double most, int ticks);
/* The same for values above 0, logarithmic. */
void scale_init_log(struct scale *scale, double least, double most, int ticks);
/* The same for whole numbers; the axis is widened by half a number at both ends only. */
void scale_init_counts(struct scale *scale, double least, double most, int ticks);

void scale_place_between(struct scale *scale, double from, double to);
/* The place of a value, clamped to the axis. */
double scale_place(const struct scale *scale, double value);
/* The length of the longest label in bytes. */
size_t scale_widest(const struct scale *scale);

#endif

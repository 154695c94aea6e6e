/* SPDX-License-Identifier: Apache-2.0
 * Bars in table cells: a share with its interval, or the shares of several causes end to end.
 *
 * A bar is decoration, because its numbers stand beside it. Knows no page. Invariant: all bars of
 * one `struct bars` have one scale, so their lengths compare; what is not finite is not drawn. */
#ifndef TWINSTEP_REPORT_BARS_H
#define TWINSTEP_REPORT_BARS_H

#include <stdint.h>

#include "report/html.h"

#define BARS_PARTS_MAX                                                                             \
    5 /* fills that the style sheet knows; further parts begin anew with them                      \
       */

struct bars {
    double low, high; /* the ends of the scale; low <= 0 < high */
};

/* Stretches the scale so that it holds `value`. */
void bars_stretch(struct bars *bars, double value);
/* Stretches it so that the parts fit end to end, those below 0 to the left of it. */
void bars_stretch_parts(struct bars *bars, const double *parts, uint32_t count);

/* A bar from 0 to `value`, with a whisker from `low` to `high` unless these are NaN or too near to
 * each other to be seen. */
void bars_write(struct html *html, const struct bars *bars, double value, double low, double high);
/* The parts end to end, each with a fill of its own. */
void bars_write_parts(struct html *html, const struct bars *bars, const double *parts,
                      uint32_t count);
/* A patch of the fill of part i, for a legend. */
void bars_write_key(struct html *html, uint32_t i);

#endif

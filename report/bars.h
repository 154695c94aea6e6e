/* SPDX-License-Identifier: Apache-2.0
 * Bars in table cells: one share with its interval, or the shares of several causes end to end.
 *
 * Decoration: every bar stands beside its numbers. Knows no page. Invariant: all bars of one
 * `struct bars` have one scale, so their lengths compare; what is not finite is not drawn. */
#ifndef TWINSTEP_REPORT_BARS_H
#define TWINSTEP_REPORT_BARS_H

#include <stdint.h>

#include "report/html.h"

#define BARS_PARTS_MAX 5 /* with a fill of their own */

struct bars {
    double low, high; /* of the scale; low <= 0 < high */
};

void bars_stretch(struct bars *bars, double value);
/* So that the parts fit end to end, those below 0 to the left of it. */
void bars_stretch_parts(struct bars *bars, const double *parts, uint32_t count);

/* From 0 to `value`; with a whisker from low to high unless these are NaN or too near to be seen.
 */
void bars_write(struct html *html, const struct bars *bars, double value, double low, double high);
void bars_write_parts(struct html *html, const struct bars *bars, const double *parts,
                      uint32_t count);
/* A patch of the fill of part i. */
void bars_write_key(struct html *html, uint32_t i);

#endif

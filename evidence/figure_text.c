/* SPDX-License-Identifier: Apache-2.0
 * Figures of causes as text. A comparison with NaN, which stands for a figure that was not trained,
 * is false, so that no such figure is called small or none. */
#include "evidence/figure_text.h"

#include <math.h>
#include <stdio.h>

/* Narrower than this, both ends of an interval are as the figure where a reader would act on it.
 * One that holds 0 is shown all the same: the figure's sign, and all of its digits, are not known.
 */
#define WIDTH_SHOWN 0.002

static const char *percent(const struct attributed *of, int is_signed, char text[FIGURE_TEXT]) {
    if (isnan(of->value)) {
        snprintf(text, FIGURE_TEXT, "unknown");
        return text;
    }
    const int length =
        snprintf(text, FIGURE_TEXT, is_signed ? "%+.4g %%" : "%.4g %%", 100.0 * of->value);
    if (of->high - of->low > WIDTH_SHOWN ||
        (of->low < 0.0 && of->high > 0.0 && of->high - of->low > SHARE_TIE))
        snprintf(text + length, FIGURE_TEXT - (size_t)length, " (%.3g to %.3g)", 100.0 * of->low,
                 100.0 * of->high);
    return text;
}

const char *figure_text(const struct attributed *of, char text[FIGURE_TEXT]) {
    return percent(of, 0, text);
}

const char *share_text(const struct attributed *share, int is_signed, char text[FIGURE_TEXT]) {
    if (share_is_none(share) || !(fabs(share->low) <= SHARE_TIE && fabs(share->high) <= SHARE_TIE))
        return percent(share, is_signed, text);
    snprintf(text, FIGURE_TEXT, "within %g %% of 0", 100.0 * SHARE_TIE);
    return text;
}

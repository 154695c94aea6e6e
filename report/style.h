/* SPDX-License-Identifier: Apache-2.0
 * The style sheet of the page, for screens, phones and paper, light and dark. It loads nothing.
 * Whatever a colour says, a second sign (dashes, a shape, words) says as well, and text has a
 * contrast of at least 4.5 in both schemes (WCAG 2.1, level AA). */
#ifndef TWINSTEP_REPORT_STYLE_H
#define TWINSTEP_REPORT_STYLE_H

#include "report/html.h"

void style_write(struct html *html);

#endif

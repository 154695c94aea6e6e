/* SPDX-License-Identifier: Apache-2.0
 * The style sheet: screen, phone, paper, light and dark. Loads nothing. Colours come with a second
 * sign (dashes, shape, words), and text has a contrast of at least 4.5 in both schemes. */
#ifndef TWINSTEP_REPORT_STYLE_H
#define TWINSTEP_REPORT_STYLE_H

#include "report/html.h"

void style_write(struct html *html);

#endif

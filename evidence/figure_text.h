/* SPDX-License-Identifier: Apache-2.0
 * Writes the figures of causes as text: which digits a share has in a sentence, which share is too
 * small for them, and which is nothing at all.
 *
 * The sentences of `run` and of `ablate` both take their figures from here, so that one rule
 * decides what a reader sees of a share. Computes nothing but percentages. */
#ifndef TWINSTEP_EVIDENCE_FIGURE_TEXT_H
#define TWINSTEP_EVIDENCE_FIGURE_TEXT_H

#include "evidence/attribution.h"

#define FIGURE_TEXT 96 /* bytes that hold any of these texts */

/* "99.9 %", with its interval where that is wide enough to show in three digits; "unknown" where it
 * was not trained. Returns `text`. */
const char *figure_text(const struct attributed *of, char text[FIGURE_TEXT]);

/* The same of a share. One whose interval stays inside the last digit of the table, SHARE_TIE, is
 * "within 0.001 % of 0": its sign and its digits are mostly rounding. With `is_signed`, one above 0
 * has a plus. */
const char *share_text(const struct attributed *share, int is_signed, char text[FIGURE_TEXT]);

#endif

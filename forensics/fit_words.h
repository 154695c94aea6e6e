/* SPDX-License-Identifier: Apache-2.0
 * Fits in words, and the catalogue's names for what departs from plain use. Private to
 * forensics/fit*.c. */
#ifndef TWINSTEP_FORENSICS_FIT_WORDS_H
#define TWINSTEP_FORENSICS_FIT_WORDS_H

#include "forensics/fit_search.h"

TWINSTEP_MUST_USE enum status fit_describe(const struct fit *fit, struct arena *arena,
                                           const char **out);
/* Sets the fit's text and bug. */
TWINSTEP_MUST_USE enum status fit_words(const struct fit_search *search, struct fit *fit);
TWINSTEP_MUST_USE enum status fit_words_partial(const struct fit_search *search, const char **out);
/* Returns the first update that the two apply differently within the run, or 0. */
uint64_t fit_applied_apart(const struct fit *a, const struct fit *b, const struct fit_set *set);

#endif

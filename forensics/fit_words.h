/* SPDX-License-Identifier: Apache-2.0
 * Fits in words, and the catalogue's names for what departs from plain use. Private to
 * forensics/fit*.c. */
#ifndef TWINSTEP_FORENSICS_FIT_WORDS_H
#define TWINSTEP_FORENSICS_FIT_WORDS_H

#include "forensics/fit_search.h"

/* Sets text and bug. */
TWINSTEP_MUST_USE enum status fit_words(const struct fit_search *search, struct fit *fit);
TWINSTEP_MUST_USE enum status fit_words_partial(const struct fit_search *search, const char **out);

#endif

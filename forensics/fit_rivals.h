/* SPDX-License-Identifier: Apache-2.0
 * What else would have logged the same as an expectation. Private to forensics/fit*.c. */
#ifndef TWINSTEP_FORENSICS_FIT_RIVALS_H
#define TWINSTEP_FORENSICS_FIT_RIVALS_H

#include "forensics/fit.h"

/* Finds the fits with the expectation's numbers under every other contract that can log them. */
TWINSTEP_MUST_USE enum status fit_find_rivals(const struct series *series,
                                              const struct fit_known *known,
                                              const struct fit *expected, struct arena *arena,
                                              struct fit_set *out);
/* Sets verdict, rival and needs: a match passes only where no rival applies other LRs. */
TWINSTEP_MUST_USE enum status fit_judge_rivals(const struct fit_known *known, int applied,
                                               struct arena *arena, struct fit_check *out);

/* Looks for a much simpler explanation, where nothing but the contract was given: a match may then
 * lean on numbers that nobody would type. It stays a pass only while no other contract explains the
 * column much more simply and applies other LRs. */
TWINSTEP_MUST_USE enum status fit_judge_plainer(const struct series *series,
                                                const struct fit_known *known, struct arena *arena,
                                                struct fit_check *out);

#endif

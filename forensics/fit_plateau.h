/* SPDX-License-Identifier: Apache-2.0
 * Fits of feedback schedules, which no counter explains. Private to forensics/fit*.c. */
#ifndef TWINSTEP_FORENSICS_FIT_PLATEAU_H
#define TWINSTEP_FORENSICS_FIT_PLATEAU_H

#include "forensics/fit_search.h"

/* Adds what reduce_lr_on_plateau explains to the list, in its rank. With the request's metric the
 * fit follows that metric, and patience and the rest are found. Without one, or where it explains
 * nothing, the drops are taken as they are, and the text says what the log does not tell. */
TWINSTEP_MUST_USE enum status fit_plateau(const struct fit_search *search, struct fit_set *set);

/* Returns "onecycle_overrun" where a one-cycle schedule ran out of steps before the log ended, else
 * NULL. */
const char *fit_cycle_bug(const struct fit_search *search, const struct fit *fit);

#endif

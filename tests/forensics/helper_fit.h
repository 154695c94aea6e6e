/* SPDX-License-Identifier: Apache-2.0
 * Fits that a test makes by hand, which no search has found: for tests of what is said and decided
 * of a fit. */
#ifndef TWINSTEP_TESTS_FORENSICS_HELPER_FIT_H
#define TWINSTEP_TESTS_FORENSICS_HELPER_FIT_H

#include "forensics/fit.h"

/* A request of these five; the contract must be one. Fails the test otherwise. */
struct contract_request helper_fit_request(const char *contract, const char *schedule, double lr,
                                           double warmup, uint64_t steps);

/* Makes the fit of a request, whose plan lies in `arena`: one segment of `segments`, a warm-up that
 * is taken, a counter that moves one per update, no floor, text "a fit", and 0 in all else. Fails
 * the test where the contract takes no such request. */
void helper_fit_make(struct fit *out, struct arena *arena, const struct contract_request *request,
                     const struct fit_segment *segments);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * The grammar of expect.shares: entries `CAUSE SHARE +- TOLERANCE` with `;` between them, as in
 *
 *     schedule 3.0 +- 0.05; normalisation -2.0 +- 0.05
 *
 * A share is a part of the way from the baseline to the test arm, as JSON has it: 3.0 is 300 %. It
 * is met where it is at most the tolerance away, but for EXPECT_SHARE_SLACK. */
#ifndef TWINSTEP_SCENARIOS_EXPECT_SHARES_H
#define TWINSTEP_SCENARIOS_EXPECT_SHARES_H

#include "scenarios/scenario.h"

/* What rounding may do to a share and to the numbers of an entry; far below any share that matters.
 * A tolerance of 0 so means equal to nine decimals. */
#define EXPECT_SHARE_SLACK 1e-9

struct expected_share {
    enum cause cause;
    double share, tolerance;
    char text[96]; /* "3.0 +- 0.05" as it was written */
};

/* Reads all entries; none from "". STATUS_INPUT says what was expected and what came. */
TWINSTEP_MUST_USE enum status expect_shares_read(const char *text,
                                                 struct expected_share out[CAUSE_COUNT],
                                                 uint32_t *out_count);

#endif

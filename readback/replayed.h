/* SPDX-License-Identifier: Apache-2.0
 * An update made once more with a learning rate that is only supposed: how many of the moved
 * weights come out as they are stored, to the bit.
 *
 * Where a bar holds two learning rates, this tells them apart: rounding makes most weights differ
 * as soon as the rate is off by a few parts in ten million. Not every kernel rounds as the loops
 * that are imitated here, so the shares of two rates are compared with each other, never with 1. */
#ifndef TWINSTEP_READBACK_REPLAYED_H
#define TWINSTEP_READBACK_REPLAYED_H

#include "readback/rate.h"

struct replayed {
    uint64_t moved, equal; /* weights that moved, and those of them that come out alike */
};

/* Makes the update of one group with `lr`, in the arithmetic of torch's single-tensor and foreach
 * loops: every operation rounded to the dtype of the weights. Both numbers are 0 for rules other
 * than Adam's, and where the state has another dtype than the weights. */
struct replayed replayed_with(const struct step *step, uint32_t group, double lr,
                              struct rate_room *room);

/* Which of two rates made the update: 1 the first, 2 the second, 0 neither is far ahead. */
int replayed_which(struct replayed first, struct replayed second);

#endif

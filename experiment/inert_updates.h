/* SPDX-License-Identifier: Apache-2.0
 * Says for how many updates two trainings are certain to be the same although their configurations
 * differ.
 *
 * This follows from what an update reads and never from comparing states, in which two differences
 * may cancel. The keys that act only from a known update on are
 *
 *     schedule.*           the first counter at which a learning rate differs, bit for bit, or a
 *                          restart that gets something wrong (resume.wrong) and may read any other
 *     resume.*             the first restart that only one has, or that restores something else
 *     rng.*                the first event of a stream that only one has
 *     loop.eval*           the first evaluation that differs
 *     loop.epoch           the end of the first epoch
 *     batch.tail           the same: an epoch's last update
 *     loop.skip_sigma,     the first update that loop.skip olmo-outlier may skip
 *       loop.on_skip
 *     scaler.growth_*      the first growth of a dynamic loss scale
 *
 * The earliest of several counts. Any other key may act in the first update. Whatever these keys
 * hold, the layout of the state is the same, but for the peak of a schedule that resume.wrong
 * overwrites. Private to the experiment.
 * Invariant: after the updates found, the states of both are equal, byte by byte, and so are all
 * roots. */
#ifndef TWINSTEP_EXPERIMENT_INERT_UPDATES_H
#define TWINSTEP_EXPERIMENT_INERT_UPDATES_H

#include "scenarios/scenario.h"

/* The number of updates, from the first one on, whose results cannot differ between a and b; at
 * most `steps`, and 0 when nothing is certain. `samples` is the size of the data set of `a`. */
TWINSTEP_MUST_USE enum status inert_updates(const struct config *a, const struct config *b,
                                            uint64_t steps, uint64_t samples, uint64_t *out);

#endif

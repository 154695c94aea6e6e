/* SPDX-License-Identifier: Apache-2.0
 * How long two trainings are sure to be one: updates that two configurations share although their
 * schedules differ.
 *
 * Only where the arms differ in a schedule's shape, total or warm-up, and nothing else: then an
 * update is the same as long as every learning rate up to it is, bit for bit. Every other
 * difference may act in the first update, whatever the states of whole arms say of their sum: two
 * differences may cancel. Private to the experiment. */
#ifndef TWINSTEP_TRAINER_SILENT_H
#define TWINSTEP_TRAINER_SILENT_H

#include "scenarios/scenario.h"

/* Updates from the first one on whose results cannot differ between a and b; 0 when nothing is
 * sure. At most steps. */
TWINSTEP_MUST_USE enum status silent_updates(const struct config *a, const struct config *b,
                                             uint64_t steps, uint64_t *out);

#endif

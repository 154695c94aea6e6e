/* SPDX-License-Identifier: Apache-2.0
 * Two folders that a trainer left, as one update: which tensor before is which one after, which
 * state moved it, and what the trainer wrote about it. */
#ifndef TWINSTEP_READBACK_FOLDERS_H
#define TWINSTEP_READBACK_FOLDERS_H

#include "checkpoints/training_folder.h"
#include "readback/update.h"

/* Joins the two. Parameters that the folder could not name get the name of the weight that their
 * state explains, where only one does (`after` is changed). STATUS_INPUT, with what to do: they are
 * not one update apart, or hold other tensors, or numbers that cannot be read. Tensors stay where
 * they lie in the folders, which must stay open. */
TWINSTEP_MUST_USE enum status folders_join(const struct training_folder *before,
                                           struct training_folder *after, struct rate_room *room,
                                           struct arena *arena, struct step *out_step,
                                           struct update_said *out_said);

#endif

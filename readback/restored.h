/* SPDX-License-Identifier: Apache-2.0
 * What a restart restored: the checkpoint that it began from, and the first one after it, held
 * against each other. Each part is restored, not restored, or cannot be told from these files; for
 * the last the text says what would tell it. */
#ifndef TWINSTEP_READBACK_RESTORED_H
#define TWINSTEP_READBACK_RESTORED_H

#include "checkpoints/training_folder.h"
#include "readback/update.h"

enum restart_part {
    RESTART_WEIGHTS = 0,
    RESTART_MOMENTS,
    RESTART_COUNT,
    RESTART_SCHEDULER,
    RESTART_SETTINGS, /* of the optimizer's groups, but for the LR */
    RESTART_SCALER,
    RESTART_GENERATORS,
    RESTART_POSITION, /* in the data */
    RESTART_PARTS
};
extern const char *const restart_part_names[RESTART_PARTS];

enum restart_state {
    RESTART_RESTORED = 0,
    RESTART_LOST,   /* not restored, or restored as something else */
    RESTART_UNTOLD, /* these files cannot tell */
    RESTART_ABSENT  /* the training has no such part, as far as these files show */
};
extern const char *const restart_state_names[4];

/* What a log, or the same update of a run that was not interrupted, adds. NaN: nothing. */
struct restart_more {
    double loss_before, loss_after; /* the loss of this update, before the restart and after it */
    /* The checkpoint after this update of the run without interruption; NULL: there is none. */
    const struct training_folder *of_whole;
    struct input_apart whole; /* this gradient and that of the run without interruption */
};

/* Holds the gradient that the update after the restart took in against that of the same update in a
 * run that was not interrupted. */
TWINSTEP_MUST_USE enum status restart_compare(const struct step *step,
                                              const struct update_reading *reading,
                                              const struct step *whole,
                                              const struct update_reading *whole_reading,
                                              struct rate_room *room, struct arena *arena,
                                              struct input_apart *out);

struct restart_item {
    enum restart_state state;
    const char *text;
    /* Of the position, where it is not told: the update is another one than before the restart, or
     * than that of the run without interruption, by batch or by something else. */
    int is_apart;
};

/* Judges what `reading` and the two folders show. */
TWINSTEP_MUST_USE enum status restart_read(const struct training_folder *before,
                                           const struct training_folder *after,
                                           const struct step *step,
                                           const struct update_reading *reading,
                                           const struct restart_more *more, struct arena *arena,
                                           struct restart_item out[RESTART_PARTS]);

#endif

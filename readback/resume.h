/* SPDX-License-Identifier: Apache-2.0
 * What a restart restored: the checkpoint that it began from, and the first one after it, held
 * against each other. Each part is restored, not restored, or cannot be told from these files; for
 * the last the text says what would tell it. */
#ifndef TWINSTEP_READBACK_RESUME_H
#define TWINSTEP_READBACK_RESUME_H

#include "checkpoints/training_folder.h"
#include "readback/update.h"

enum resume_part {
    RESUME_WEIGHTS = 0,
    RESUME_MOMENTS,
    RESUME_COUNT,
    RESUME_SCHEDULER,
    RESUME_SCALER,
    RESUME_GENERATORS,
    RESUME_POSITION, /* in the data */
    RESUME_PARTS
};
extern const char *const resume_part_names[RESUME_PARTS];

enum resume_state {
    RESUME_RESTORED = 0,
    RESUME_LOST,   /* not restored, or restored as something else */
    RESUME_UNTOLD, /* these files cannot tell */
    RESUME_ABSENT  /* the training has no such part, as far as these files show */
};
extern const char *const resume_state_names[4];

/* What a log, or the same update of a run that was not interrupted, adds. NaN: nothing. */
struct resume_more {
    double loss_before, loss_after; /* the loss of this update, before the restart and after it */
    double norm_whole, norm_whole_error; /* the gradient norm of the run that was not interrupted */
};

struct resume_item {
    enum resume_state state;
    const char *text;
};

/* Judges what `reading` and the two folders show. */
TWINSTEP_MUST_USE enum status resume_read(const struct training_folder *before,
                                          const struct training_folder *after,
                                          const struct step *step,
                                          const struct update_reading *reading,
                                          const struct resume_more *more, struct arena *arena,
                                          struct resume_item out[RESUME_PARTS]);

#endif

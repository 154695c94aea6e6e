/* SPDX-License-Identifier: Apache-2.0
 * Notes for `check`: what the numerics of a configuration do not promise, or do without effect. */
#ifndef TWINSTEP_CLI_CHECK_NOTES_H
#define TWINSTEP_CLI_CHECK_NOTES_H

#include "base/arena.h"
#include "data/dataset.h"
#include "scenarios/config.h"

#define NOTES_MAX 16
struct notes {
    const char *text[NOTES_MAX]; /* one sentence each, without its full stop */
    uint32_t count;
};

/* `dataset` is asked for its longest sequence, which bounds the lengths of sums. */
TWINSTEP_MUST_USE enum status notes_of(const struct config *config, const struct dataset *dataset,
                                       struct arena *arena, struct notes *out);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Which settings of two trainings make one batch: rows of a micro-batch, micro-batches of an
 * update, and processes, as PyTorch's trainers call them. Where two or three differ and their
 * product does not, an update has the same rows in both, and half of such a change trains with a
 * batch that neither has. A name is a guess about a program, so who asks proposes, and decides
 * nothing. */
#ifndef TWINSTEP_ABLATE_ABLATE_BATCH_H
#define TWINSTEP_ABLATE_ABLATE_BATCH_H

#include "base/arena.h"

/* A setting that differs, by its name (an option or the path of a leaf) and its two values; a NULL
 * is no value that could be counted. `joins` is written: it is one of the settings of the batch. */
struct batch_setting {
    const char *name, *values[2];
    int joins;
};

/* Marks the settings that make the same batch in both, and writes a comment that says so; *out_note
 * is NULL where there are none. */
TWINSTEP_MUST_USE enum status ablate_find_batch(struct batch_setting *settings, size_t count,
                                                struct arena *arena, char **out_note);

#endif

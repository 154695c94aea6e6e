/* SPDX-License-Identifier: Apache-2.0
 * Which settings of two trainings make one batch: rows of a micro-batch, micro-batches of an
 * update, and processes, as PyTorch's trainers call them. Where two or three differ and their
 * product does not, an update has the same rows in both, and half of such a change trains with a
 * batch that neither has. A name is a guess about a program, so who asks proposes, and decides
 * nothing. */
#ifndef TWINSTEP_ABLATE_ABLATE_BATCH_H
#define TWINSTEP_ABLATE_ABLATE_BATCH_H

#include <stdint.h>

#include "base/arena.h"

/* A setting that differs, by its name (an option or the path of a leaf) and its two values; a NULL
 * is no value that could be counted. `joins` is written: it is one of the settings of the batch. */
struct batch_setting {
    const char *name, *values[2];
    int joins;
};

/* What was found: "ROWS x MICRO-BATCHES" and the product that both have; `names` is NULL where
 * there is none. */
struct batch {
    char *names;
    uint64_t product;
};

/* Says whether a setting is one of those, whose value is one number. */
int ablate_is_of_batch(const char *name);

/* Says whether it is the number of processes. */
int ablate_is_processes(const char *name);

/* Marks the settings that make the same batch in both. */
TWINSTEP_MUST_USE enum status ablate_find_batch(struct batch_setting *settings, size_t count,
                                                struct arena *arena, struct batch *out);

/* Writes the comment that says so. `between`: the word that stands between the settings, so that
 * they cannot be one factor; NULL: they are. */
TWINSTEP_MUST_USE enum status ablate_note_batch(const struct batch *batch, const char *between,
                                                struct arena *arena, char **out_note);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Uses a floor file in place of runs that would have to be trained: checks it against the
 * configuration it is used for, and puts its distances where the judge looks. Trains nothing.
 * Invariant: a floor of another configuration is refused, never used. */
#ifndef TWINSTEP_EXPERIMENT_NOISE_NOISE_USE_H
#define TWINSTEP_EXPERIMENT_NOISE_NOISE_USE_H

#include "determinism/floor_file.h"
#include "determinism/trace.h"
#include "scenarios/scenario.h"

/* Checks that the file's floor may be used for `config` and `steps` updates. An order seed that the
 * file leaves free may be anything in `config`. STATUS_INPUT, with `path` first in the text: the
 * file is of a configuration that trains something else (the first such key is named), or holds too
 * few updates. */
TWINSTEP_MUST_USE enum status noise_use_check(const struct schema *schema, const char *path,
                                              const struct floor_file *file,
                                              const struct config *config, uint64_t steps,
                                              struct arena *arena);

/* Makes the image of a finished trace that has the file as its floor; the image given is not
 * changed, and `out` shares its arrays. STATUS_INPUT: as above, or the trace holds no run a floor
 * could be held against. */
TWINSTEP_MUST_USE enum status noise_use_image(const struct schema *schema, const char *path,
                                              const struct floor_file *file,
                                              const struct trace_image *image, struct arena *arena,
                                              struct trace_image *out);

#endif

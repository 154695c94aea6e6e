/* SPDX-License-Identifier: Apache-2.0
 * A floor file in the place of runs that would have to be trained: checked against what it is held
 * against, and put where the judge looks.
 * Invariant: a floor of another configuration is refused, never used. */
#ifndef TWINSTEP_EXPERIMENT_NOISE_NOISE_USE_H
#define TWINSTEP_EXPERIMENT_NOISE_NOISE_USE_H

#include "determinism/floor_file.h"
#include "determinism/trace.h"
#include "scenarios/scenario.h"

/* STATUS_INPUT, `path` first: the file is of a configuration that trains something else (names the
 * first key), or holds fewer than `steps` updates. An order seed that the file leaves free may be
 * anything in `config`. */
TWINSTEP_MUST_USE enum status noise_use_check(const struct schema *schema, const char *path,
                                              const struct floor_file *file,
                                              const struct config *config, uint64_t steps,
                                              struct arena *arena);

/* The image of a finished trace with the file as its floor; the image given is not changed.
 * STATUS_INPUT as above, or the trace holds no distance of its arms. */
TWINSTEP_MUST_USE enum status noise_use_image(const struct schema *schema, const char *path,
                                              const struct floor_file *file,
                                              const struct trace_image *image, struct arena *arena,
                                              struct trace_image *out);

#endif

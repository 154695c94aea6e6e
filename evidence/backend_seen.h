/* SPDX-License-Identifier: Apache-2.0
 * What the operations of a run were computed on, as a trace or a floor file says it. Reads
 * attributes; asks no device.
 *
 * In such a file the attribute RUN of /backend names the group of this run: "cpu", which is no
 * group in the file, or NAME, where /backend/NAME holds the SHA-256 of the module and its facts
 * (kernels/backend_abi.h), and /backend/NAME/volatile those facts that hold for the moment only.
 * Where all runs were computed on the CPU the file has no /backend. */
#ifndef TWINSTEP_EVIDENCE_BACKEND_SEEN_H
#define TWINSTEP_EVIDENCE_BACKEND_SEEN_H

#include "determinism/floor_file.h"
#include "determinism/trace.h"

#define BACKENDS_OWN "cpu"             /* what runs without a module have for a group */
#define BACKENDS_FOLDER "backend/"     /* the path of a group begins so */
#define BACKENDS_MOMENTARY "/volatile" /* the path of its momentary facts ends so */

/* Whether an attribute holds for the moment only, so that a reproducible file leaves it out. */
int backends_is_volatile(const struct trace_attribute *attribute);

struct backend_seen {
    const struct trace_attribute *attributes; /* all of the file */
    uint32_t attribute_count;
    const char *group; /* "cpu", NAME, or NULL: it was not recorded */
};

/* What run `run` of a trace was computed on; it points into `image`. */
struct backend_seen backends_of_run(const struct trace_image *image, const char *run);

/* What the runs of a floor file were computed on; it points into `file`. */
struct backend_seen backends_of_floor(const struct floor_file *file);

/* In one line: "cuda: NVIDIA A100-SXM4-40GB, compute_capability 8.0, ...", "cpu", "not recorded".
 * Lives in `arena`. */
TWINSTEP_MUST_USE enum status backends_line(const struct backend_seen *seen, struct arena *arena,
                                            char **out);

/* Names for backends_difference of a floor file ("there") and of a run of this program ("here"). */
extern const char *const backends_here[2];

/* What differs, "device: X in A, Y in B; driver: ...", with `names` "in A" and "in B"; "" when
 * nothing differs that both sides recorded. Momentary facts do not count. Lives in `arena`. */
TWINSTEP_MUST_USE enum status backends_difference(const struct backend_seen seen[2],
                                                  const char *const names[2], struct arena *arena,
                                                  char **out);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * What a run's ops ran on, as a trace or a floor file holds it. Reads attributes; asks no device.
 *
 * In a file attribute RUN of /backend names the run's group there, "cpu" none; /backend/NAME holds
 * the module's SHA-256 and the facts of kernels/backend_abi.h, /backend/NAME/volatile those that
 * are momentary. Where every run is the CPU's there is no /backend. */
#ifndef TWINSTEP_EVIDENCE_BACKEND_SEEN_H
#define TWINSTEP_EVIDENCE_BACKEND_SEEN_H

#include "determinism/floor_file.h"
#include "determinism/trace.h"

#define BACKENDS_OWN "cpu"         /* the group of this program's own ops */
#define BACKENDS_FOLDER "backend/" /* of the groups of others */
#define BACKENDS_MOMENTARY "/volatile"

/* Whether an attribute is of now only, and does not belong into a reproducible file. */
int backends_is_volatile(const struct trace_attribute *attribute);

/* Reading: the attributes of a file and the group in it ("cpu", or NULL: not recorded). */
struct backend_seen {
    const struct trace_attribute *attributes;
    uint32_t attribute_count;
    const char *group;
};
struct backend_seen backends_of_run(const struct trace_image *image, const char *run);

/* Of a floor file. */
struct backend_seen backends_of_floor(const struct floor_file *file);

/* "cuda: NVIDIA A100-SXM4-40GB, compute_capability 8.0, ..."; "cpu". */
TWINSTEP_MUST_USE enum status backends_line(const struct backend_seen *seen, struct arena *arena,
                                            char **out);

extern const char *const backends_here[2]; /* names of a floor file's and a run's side */

/* What differs, "device: X in A, Y in B; driver: ..."; "": nothing that is recorded on both sides.
 * Momentary facts do not count. `names`: "in A", "in B". */
TWINSTEP_MUST_USE enum status backends_difference(const struct backend_seen seen[2],
                                                  const char *const names[2], struct arena *arena,
                                                  char **out);

#endif

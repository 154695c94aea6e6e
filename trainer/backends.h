/* SPDX-License-Identifier: Apache-2.0
 * The backend behind numerics.backend: opened, and what it runs on put into traces and floor files
 * and read back. Who needs ops and the memory they see asks here.
 *
 * In a file attribute RUN of /backend names the run's group there, "cpu" none; /backend/NAME holds
 * the module's SHA-256 and the facts of kernels/backend_abi.h, /backend/NAME/volatile those that
 * are momentary. Where every run is the CPU's there is no /backend. */
#ifndef TWINSTEP_TRAINER_BACKENDS_H
#define TWINSTEP_TRAINER_BACKENDS_H

#include "determinism/floor_file.h"
#include "kernels/backend_module.h"
#include "scenarios/config.h"

#define BACKENDS_OWN "cpu" /* the group of this program's own ops */

/* NULL: this program's own ops. Errors begin with the key. */
TWINSTEP_MUST_USE enum status backends_open(const struct config *config,
                                            const struct backend **out);

/* Of what a configuration's ops read and write, for an arena's source. NULL: the C library's. */
TWINSTEP_MUST_USE enum status backends_memory(const struct config *config,
                                              const struct arena_source **out);

/* A module and what it runs on. */
struct backend_site {
    const struct backend *backend;
    char path[CONFIG_PATH_SIZE];
    char sha256[DIGEST_HEX];
    struct backend_fact facts[BACKEND_FACTS_MAX];
    uint32_t count;
};

/* `module`: a file, or BACKEND_MODULE_AUTO. */
TWINSTEP_MUST_USE enum status backends_site(const char *module, struct backend_site *out);

/* What the backends of some configurations put into a file; attribute_count 0: all are "cpu". */
struct backend_record {
    const char **group; /* (configurations) "cpu", or the group's name under /backend */
    struct trace_attribute *attributes; /* of the groups; who writes adds those of /backend */
    uint32_t attribute_count;
};
TWINSTEP_MUST_USE enum status backends_record(const struct config *const *configs, uint32_t count,
                                              struct arena *arena, struct backend_record *out);

/* Whether an attribute is of now only, and does not belong into a reproducible file. */
int backends_is_volatile(const struct trace_attribute *attribute);

/* Reading: the attributes of a file and the group in it ("cpu", or NULL: not recorded). */
struct backend_seen {
    const struct trace_attribute *attributes;
    uint32_t attribute_count;
    const char *group;
};
struct backend_seen backends_of_run(const struct trace_image *image, const char *run);

/* Of a configuration, asked now; attribute_count 0: the CPU. */
TWINSTEP_MUST_USE enum status backends_of_config(const struct config *config, struct arena *arena,
                                                 struct backend_seen *out);

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

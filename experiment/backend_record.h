/* SPDX-License-Identifier: Apache-2.0
 * What the backends of some configurations run on, asked of them now and put into a trace or a
 * floor file (evidence/backend_seen.h says how it stands there). */
#ifndef TWINSTEP_EXPERIMENT_BACKEND_RECORD_H
#define TWINSTEP_EXPERIMENT_BACKEND_RECORD_H

#include "determinism/digest.h"
#include "evidence/backend_seen.h"
#include "kernels/backend_abi.h"
#include "model/backends.h"

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

/* Of a configuration, asked now; attribute_count 0: the CPU. */
TWINSTEP_MUST_USE enum status backends_of_config(const struct config *config, struct arena *arena,
                                                 struct backend_seen *out);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Asks the backends that some configurations name what they run on, and turns the answers into
 * attributes of a trace or a floor file. evidence/backend_seen.h says how the attributes stand
 * there and reads them back. Trains nothing; the answers are those of the moment of the call. */
#ifndef TWINSTEP_EXPERIMENT_BACKEND_RECORD_H
#define TWINSTEP_EXPERIMENT_BACKEND_RECORD_H

#include "determinism/digest.h"
#include "evidence/backend_seen.h"
#include "evidence/products_seen.h"
#include "kernels/backend_abi.h"
#include "model/backends.h"

/* A backend module: where its file is, the file's hash, and what it says of its device. */
struct backend_site {
    const struct backend *backend;
    char path[CONFIG_PATH_SIZE];
    char sha256[DIGEST_HEX];
    struct backend_fact facts[BACKEND_FACTS_MAX];
    uint32_t count;
};

/* Opens and describes `module`, which is the path of a file or BACKEND_MODULE_AUTO. STATUS_INPUT:
 * the module cannot be opened, or it has vanished since. */
TWINSTEP_MUST_USE enum status backends_site(const char *module, struct backend_site *out);

/* What the backends of some configurations put into a file. attribute_count 0 says that all of them
 * run on the CPU. */
struct backend_record {
    /* (configurations) "cpu", or the name of the module's group under /backend */
    const char **group;
    /* of the groups; the caller adds those of /backend itself */
    struct trace_attribute *attributes;
    uint32_t attribute_count;
};
TWINSTEP_MUST_USE enum status backends_record(const struct config *const *configs, uint32_t count,
                                              struct arena *arena, struct backend_record *out);

/* Describes the backend of one configuration as it is now; attribute_count 0 means the CPU. The
 * result lives in `arena`. */
TWINSTEP_MUST_USE enum status backends_of_config(const struct config *config, struct arena *arena,
                                                 struct backend_seen *out);

struct run;
/* Counts the products that the linear layers of an open run asked a device's library for since it
 * was opened; evidence/products_seen.h says what the columns are. All are NaN when no library
 * multiplies for it. */
void products_of_run(const struct run *run, double out[PRODUCTS_COLUMNS]);

#endif

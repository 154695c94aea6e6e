/* SPDX-License-Identifier: Apache-2.0
 * Facts about this build and this machine, for the groups env and env/volatile of a trace. No
 * result depends on them. */
#ifndef TWINSTEP_CLI_ENVIRONMENT_H
#define TWINSTEP_CLI_ENVIRONMENT_H

#include "cli/verb.h"
#include "determinism/trace.h"

/* Lists the facts as attributes of a trace. Group env has what may decide a bit: version, compiler,
 * flags, instruction set, libraries, floating-point environment and, with `blas`, OpenBLAS, which
 * is opened for it. Group env/volatile has host, processor, date, folder and command line. */
TWINSTEP_MUST_USE enum status environment_attributes(const struct cli *cli, int blas,
                                                     struct arena *arena,
                                                     const struct trace_attribute **out,
                                                     uint32_t *out_count);

#endif

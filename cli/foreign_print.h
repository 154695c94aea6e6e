/* SPDX-License-Identifier: Apache-2.0
 * `twinstep import --check`: what is not as docs/FOREIGN.md says in a trace that another program
 * wrote, or what it is understood to hold. */
#ifndef TWINSTEP_CLI_FOREIGN_PRINT_H
#define TWINSTEP_CLI_FOREIGN_PRINT_H

#include "cli/options.h"
#include "cli/verb.h"
#include "determinism/trace.h"

/* Prints the problems and fails with STATUS_INPUT, or prints what the trace holds. */
TWINSTEP_MUST_USE enum status foreign_print_check(struct cli *cli, const struct options *options,
                                                  int *out_exit);

/* Fails if the trace holds runs of another program, with the reason and with what would do. */
TWINSTEP_MUST_USE enum status foreign_refuse(const struct trace_image *image, const char *path,
                                             const char *instead);

#endif

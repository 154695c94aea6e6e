/* SPDX-License-Identifier: Apache-2.0
 * Results of a suite that are kept, a file for each scenario, so that a suite can be dealt out to
 * several machines or jobs, be killed, and go on (docs/SUITES.md).
 *
 * Each file NAME.json holds one row of the table and the digest of all that decides it: this
 * program, the scenario's text and what --set changed, and the bytes of every file that its arms
 * read; of a checkpoint, its tensors. Whoever takes a result over compares the digest, so
 * no row is taken that this program would not make from these files. Invariant: a file appears
 * whole or not at all. */
#ifndef TWINSTEP_CLI_SUITE_RESULTS_H
#define TWINSTEP_CLI_SUITE_RESULTS_H

#include "cli/suite.h"
#include "determinism/digest.h"
#include "scenarios/scenario.h"

/* Makes the digest of what decides the result of a loaded scenario. STATUS_INPUT, STATUS_IO: a file
 * that it reads is no regular file, or cannot be read; `name`, of its file, is not UTF-8, so that
 * no JSON could hold it. */
TWINSTEP_MUST_USE enum status suite_result_digest(const struct scenario *scenario, const char *name,
                                                  char out[DIGEST_HEX]);

/* Writes a result; one that is there is replaced at once. STATUS_IO. */
TWINSTEP_MUST_USE enum status suite_result_write(const char *path, const char *digest,
                                                 const struct suite_result *result);

enum suite_kept {
    SUITE_KEPT_NOT = 0, /* there is no file */
    SUITE_KEPT_OTHER,   /* it has another digest */
    SUITE_KEPT          /* it is the result */
};

/* Reads a result; the texts live in `arena`, the name is the caller's. STATUS_INPUT: the file holds
 * something else ("PATH: expected ..., got ..."). STATUS_IO. */
TWINSTEP_MUST_USE enum status suite_result_read(const char *path, const char *digest,
                                                struct arena *arena, enum suite_kept *out_kept,
                                                struct suite_result *out);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * A suite: scenarios, each run against its own expect block, and what came out. */
#ifndef TWINSTEP_CLI_SUITE_H
#define TWINSTEP_CLI_SUITE_H

#include <jansson.h>
#include <stdio.h>

#include "base/arena.h"
#include "cli/catalog.h"
#include "evidence/judge.h"
#include "scenarios/scenario.h"

struct suite_case {
    const char *name;                /* file name without .yaml */
    const char *path;                /* NULL: of the catalogue */
    const struct catalog_file *file; /* NULL: of a folder */
    const char *trace;               /* where its trace goes */
};

struct suite_result {
    const char *name;
    enum status status; /* not STATUS_OK: `error` says why, and nothing below holds */
    const char *error;
    enum verdict verdict;
    const char *cause;  /* with the largest share; "" none */
    int64_t first_step; /* -1: no difference */
    const char *first_phase;
    enum expectation expectation;
    const char *missed;
    double seconds;
};

struct suite {
    struct suite_case *cases;
    size_t case_count;
    const char *folder; /* of the traces */
    int temporary;      /* removed afterwards */
    struct suite_result *results;
    size_t result_count; /* fewer than case_count after an interruption */
    double seconds;
};

/* Every *.yaml of `folder` by name (bytes), or the catalogue for NULL. STATUS_INPUT: there is none.
 */
TWINSTEP_MUST_USE enum status suite_collect(const char *folder, struct arena *arena,
                                            struct suite *suite);

/* Makes the folder for traces: `keep`, or a new temporary one for NULL. */
TWINSTEP_MUST_USE enum status suite_open_folder(const char *keep, struct arena *arena,
                                                struct suite *suite);
/* Removes a temporary folder and what the suite put there. */
void suite_close_folder(const struct suite *suite);

size_t suite_count(const struct suite *suite, enum expectation expectation);
size_t suite_errors(const struct suite *suite);

void suite_print_head(FILE *out);
void suite_print_result(const struct suite_result *result, FILE *out);
void suite_print_sum(const struct suite *suite, FILE *out);
json_t *suite_json(const struct suite *suite);

/* JUnit XML, as CI services read it. STATUS_IO names the file. */
TWINSTEP_MUST_USE enum status junit_write(const struct suite *suite, const char *path);

#endif

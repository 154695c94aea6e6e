/* SPDX-License-Identifier: Apache-2.0
 * A suite: scenarios that are each run against their own expect block, and what came out. */
#ifndef TWINSTEP_CLI_SUITE_H
#define TWINSTEP_CLI_SUITE_H

#include <jansson.h>
#include <stdio.h>

#include "base/arena.h"
#include "cli/catalog.h"
#include "determinism/digest.h"
#include "evidence/judge.h"
#include "scenarios/scenario.h"

struct suite_case {
    const char *name;                /* file name without .yaml */
    const char *path;                /* of the scenario file; NULL: it is one of the catalogue */
    const struct catalog_file *file; /* in the catalogue; NULL: it is one of a folder */
    const char *trace;               /* the path of its trace */
    const char *result;              /* the path of its kept result; NULL: none is kept */
    char of[DIGEST_HEX];       /* what decides the result (cli/suite_results.h); "": unknown */
    int taken;                 /* its result is there already: of --resume or --join */
    struct scenario *scenario; /* loaded; NULL: it could not be */
    enum status status;        /* and why */
    const char *error;
};

struct suite_result {
    const char *name;
    enum status status; /* if not STATUS_OK, `error` says why, and no member below is set */
    const char *error;
    enum verdict verdict;
    const char *cause;  /* the cause with the largest share; "" if there is none */
    int64_t first_step; /* the first update that differs; -1: none */
    const char *first_phase;
    enum expectation expectation;
    const char *missed;
    double seconds;
};

struct suite {
    struct suite_case *cases;
    size_t case_count;
    const char *folder; /* where the traces go */
    int temporary;      /* the folder is removed afterwards */
    /* folders that were made for the suite, NULL where they were there before */
    const char *made_results, *made_folder;
    struct suite_result *results;
    size_t result_count; /* fewer than case_count after an interruption */
    size_t taken;        /* results that were there, while others were trained */
    size_t stale;        /* results of other scenarios, data or programs */
    size_t strays;       /* of --join: results of no scenario of the suite */
    int joined;          /* nothing was trained here: all results were taken over */
    double seconds;      /* by the clock; of joined results the sum of theirs */
};

/* Collects every *.yaml of `folder` in the order of their names' bytes, or, for NULL, the
 * catalogue. STATUS_INPUT: there is none. */
TWINSTEP_MUST_USE enum status suite_collect(const char *folder, struct arena *arena,
                                            struct suite *suite);

/* Keeps the scenarios of part `number` (from 1 on) of `parts` alone: every parts-th one, so that
 * neighbours in the order of names, which take about the same time, go to different parts. A part
 * may have none. */
void suite_deal(struct suite *suite, uint64_t number, uint64_t parts);

/* Makes the folder for kept results, and their paths. Joined ones must be there: STATUS_IO. */
TWINSTEP_MUST_USE enum status suite_open_results(const char *folder, struct arena *arena,
                                                 struct suite *suite);

/* Makes the folder for the traces: `keep`, or for NULL a new temporary one. */
TWINSTEP_MUST_USE enum status suite_open_folder(const char *keep, struct arena *arena,
                                                struct suite *suite);
/* Removes a temporary folder and what the suite put there. */
void suite_close_folder(const struct suite *suite);

/* Removes the folders that were made for a suite that is refused, if nothing is in them. */
void suite_remove_empty(const struct suite *suite);

size_t suite_count(const struct suite *suite, enum expectation expectation);
size_t suite_errors(const struct suite *suite);

void suite_print_head(FILE *out);
void suite_print_result(const struct suite_result *result, FILE *out);
void suite_print_sum(const struct suite *suite, FILE *out);
json_t *suite_json(const struct suite *suite);
/* One element of its array `scenarios`. NULL: no memory, or a text that is not UTF-8. */
json_t *suite_result_json(const struct suite_result *result);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Fits and checks of a log's LR column: reading the log, and printing what was found. */
#ifndef TWINSTEP_CLI_LR_REPORT_H
#define TWINSTEP_CLI_LR_REPORT_H

#include <jansson.h>

#include "cli/log_options.h"
#include "cli/verb.h"
#include "forensics/fit_rows.h"

struct lr_report {
    const struct log *log;
    struct series series;
    struct fit_known known;
    size_t skipped;        /* updates that the log itself calls skipped */
    struct fit_rows rows;  /* of a log without update numbers */
    const char *numbering; /* ... in words; NULL: the log prints them */
};

/* Opens the log named by the first argument; reads the numbers of LR_OPTION_ROWS. */
TWINSTEP_MUST_USE enum status lr_report_open(struct cli *cli, const struct options *options,
                                             struct lr_report *out);
/* Numbers the rows of a log that prints no update numbers (--log-every, else what the log tells);
 * known.steps_guessed stays where that is open. To be called when the contract is known. */
TWINSTEP_MUST_USE enum status lr_report_number(struct cli *cli, const struct options *options,
                                               struct lr_report *report);
/* "LOG: Megatron-LM console, 120 rows, LR column ..., updates 1 to 120" and the notes. */
void lr_report_print_head(const struct lr_report *report);
/* The list, with what tells the fits of a group apart. */
TWINSTEP_MUST_USE enum status lr_report_print_fits(const struct lr_report *report,
                                                   const struct fit_set *set, struct arena *arena);
/* How the rows were numbered; null where the log numbers them. */
json_t *lr_report_rows_json(const struct lr_report *report);
json_t *lr_report_fit_json(const struct fit *fit);
json_t *lr_report_fits_json(const struct fit_set *set);
/* ["few", "constant", ...] */
json_t *lr_report_why_json(uint32_t why);
/* The reasons in words; "" for none. */
void lr_report_print_why(uint32_t why);

/* ::error and ::warning lines of GitHub Actions. line 0: none. */
void github_annotation(const char *level, const char *file, uint32_t line, const char *title,
                       const char *message);
/* One testcase. kind: "failure", "skipped" or NULL. STATUS_IO. */
TWINSTEP_MUST_USE enum status lr_report_junit(const char *path, const char *name, const char *kind,
                                              const char *message);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * What the lr verbs that read a log share: opening it, numbering its rows, and printing the fits
 * and checks of its LR column. */
#ifndef TWINSTEP_CLI_LR_REPORT_H
#define TWINSTEP_CLI_LR_REPORT_H

#include <jansson.h>

#include "cli/log_options.h"
#include "cli/verb.h"
#include "forensics/fit_rows.h"
#include "forensics/fit_used.h"

struct lr_report {
    struct log *log;
    struct series series;
    int of_applied; /* 1: the log prints no LR, and the series is of those that were applied */
    struct fit_known known;
    size_t skipped;        /* updates that the log itself calls skipped */
    struct fit_rows rows;  /* how the rows were numbered if the log has no update numbers */
    struct fit_used used;  /* what the log records as applied */
    const char *numbering; /* the same in words; NULL: the log prints the numbers */
};

/* Opens the log that the first argument names, and reads the numbers of LR_OPTION_ROWS. */
TWINSTEP_MUST_USE enum status lr_report_open(struct cli *cli, const struct options *options,
                                             struct lr_report *out);
/* Numbers the rows of a log that prints no update numbers, by --log-every or else by what the log
 * tells; known.steps_guessed stays set as long as that is open. Call it when the contract is known.
 */
TWINSTEP_MUST_USE enum status lr_report_number(struct cli *cli, const struct options *options,
                                               struct lr_report *report);
/* Prints "LOG: Megatron-LM console, 120 rows, LR column ..., updates 1 to 120" and the notes. */
void lr_report_print_head(const struct lr_report *report);
/* Prints the list of fits, with what would tell the fits of a group apart. */
TWINSTEP_MUST_USE enum status lr_report_print_fits(const struct fit_set *set, struct arena *arena);
/* Returns the number under which the list prints fit i: its own, or that of an earlier fit which
 * differs from it in the contract's name alone. */
size_t lr_report_line_of(const struct fit_set *set, size_t i);
/* Says that skipped updates, of which the log shows some, cannot be seen in the LR, where the
 * schedule of the fit goes on at them. */
void lr_report_print_unseen(const struct lr_report *report, const struct fit *fit);
/* Returns how the rows were numbered, or null if the log numbers them. */
json_t *lr_report_rows_json(const struct lr_report *report);
/* Returns where updates were skipped, or null where the fit needs none. */
json_t *lr_report_skips_json(const struct fit *fit);
json_t *lr_report_fit_json(const struct fit *fit);
json_t *lr_report_fits_json(const struct fit_set *set);
/* Returns the reasons by name: ["few", "constant", ...]. */
json_t *lr_report_why_json(uint32_t why);
/* Prints the reasons in words; nothing if there are none. */
void lr_report_print_why(uint32_t why);

#endif

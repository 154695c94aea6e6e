/* SPDX-License-Identifier: Apache-2.0
 * An ablation's plan and verdict, as text and as JSON. Neither holds a time, so that a continued
 * ablation ends with the bytes of one that was never interrupted. */
#ifndef TWINSTEP_CLI_ABLATE_ABLATE_PRINT_H
#define TWINSTEP_CLI_ABLATE_ABLATE_PRINT_H

#include "ablate/ablate_judge.h"
#include "cli/json.h"

/* Say what would be run, and how many runs that are. */
TWINSTEP_MUST_USE enum status ablate_print_plan(const struct ablate_plan *plan, const char *folder,
                                                struct arena *arena);
TWINSTEP_MUST_USE enum status ablate_json_plan(const struct ablate_plan *plan, const char *folder,
                                               struct arena *arena);

void ablate_print(const struct ablate_folder *folder, const struct ablate_result *results,
                  const struct ablate_verdict *verdict);
/* Prints the runs that failed, and why. */
void ablate_print_failed(const struct ablate_folder *folder, const struct ablate_result *results);
/* Prints the commands that look into the arms' traces or logs, where they are outside the floor. */
TWINSTEP_MUST_USE enum status ablate_print_next(const struct ablate_folder *folder,
                                                const struct ablate_verdict *verdict,
                                                struct arena *arena);
TWINSTEP_MUST_USE enum status ablate_json(const struct ablate_folder *folder,
                                          const struct ablate_result *results,
                                          const struct ablate_verdict *verdict);

/* The floor of a verdict as an object of JSON; the caller owns it. */
json_t *ablate_json_floor(const struct ablate_verdict *verdict);

/* "identical", "inside-floor", "outside-floor", "untestable" */
const char *ablate_verdict_name(const struct ablate_verdict *verdict);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Prints a comparison of two logs as text, as a block to paste into an issue, and as JSON. */
#ifndef TWINSTEP_CLI_COMPARE_PRINT_H
#define TWINSTEP_CLI_COMPARE_PRINT_H

#include <stdio.h>

#include "forensics/compare.h"

/* The text has at most about 40 lines, the Markdown about 25. */
void compare_print_text(const struct compare_input *input, const struct compare_report *report,
                        FILE *out);
void compare_print_markdown(const struct compare_input *input, const struct compare_report *report,
                            FILE *out);
TWINSTEP_MUST_USE enum status compare_print_json(const struct compare_input *input,
                                                 const struct compare_report *report);

#endif

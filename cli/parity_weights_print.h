/* SPDX-License-Identifier: Apache-2.0
 * What weights_compare found in two checkpoints, as text and as JSON. */
#ifndef TWINSTEP_CLI_PARITY_WEIGHTS_PRINT_H
#define TWINSTEP_CLI_PARITY_WEIGHTS_PRINT_H

#include "checkpoints/weights.h"

/* Prints a summary and a table of the worst tensors. */
void weights_print_text(const struct checkpoint *a, const struct checkpoint *b,
                        const struct weights_report *report);
/* Prints the summary and every tensor. */
TWINSTEP_MUST_USE enum status weights_print_json(const struct checkpoint *a,
                                                 const struct checkpoint *b,
                                                 const struct weights_report *report);

#endif

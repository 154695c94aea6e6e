/* SPDX-License-Identifier: Apache-2.0
 * LR columns on stdout, as the lr verbs print them. */
#ifndef TWINSTEP_CLI_LR_PRINT_H
#define TWINSTEP_CLI_LR_PRINT_H

#include <stdint.h>

/* "NAME": [5e-07, 4e-07, null]: the fewest digits that read back; null where there is no rate.
 * No line end. By hand, because jansson prints 17 digits. */
void lr_print_json(const char *name, const double *values, uint64_t count);

#endif

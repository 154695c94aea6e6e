/* SPDX-License-Identifier: Apache-2.0
 * Prints and forgets. A full disk is noticed when stdout is closed. */
#include "cli/lr_print.h"

#include <stdio.h>

#include "base/number.h"

void lr_print_json(const char *name, const double *values, uint64_t count) {
    printf("\"%s\": [", name);
    for (uint64_t i = 0; i < count; i++)
        printf("%s%s", i == 0 ? "" : ", ",
               values[i] == values[i] ? number_text_f64(values[i]).text : "null");
    putchar(']');
}

/* SPDX-License-Identifier: Apache-2.0
 * Prints and forgets. A full disk is noticed when stdout is closed. */
#include "cli/json.h"

#include <math.h>
#include <stdio.h>

enum status json_print(json_t *value) {
    if (value == NULL) FAIL(STATUS_MEMORY, "JSON: no memory, or a text that is not UTF-8");
    (void)json_dumpf(value, stdout, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
    putchar('\n');
    json_decref(value);
    return STATUS_OK;
}

json_t *json_finite(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

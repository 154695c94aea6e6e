/* SPDX-License-Identifier: Apache-2.0
 * Prints numbers through the C library and reads them back, as logs are written and read. */
#include "tests/forensics/helper_lr.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/real.h"

static double power_of_ten(int exponent) {
    char text[16];
    snprintf(text, sizeof text, "1e%d", exponent);
    return strtod(text, NULL);
}

void lr_print_point(struct series_point *point, double value, int print) {
    char text[64];
    point->value = value;
    point->quantum = 0.0;
    if (print == LR_EXACT || value == 0.0) return; /* 0.00e+00 is 0 */
    if (print == LR_F32) {
        const float rounded = (float)value;
        point->value = (double)rounded;
        point->quantum = (double)(real_next_up_f32(real_abs_f32(rounded)) - real_abs_f32(rounded));
        return;
    }
    const int digits = print == LR_E2 ? 2 : 5;
    snprintf(text, sizeof text, "%.*e", digits, value);
    point->value = strtod(text, NULL);
    int exponent = 0;
    for (const char *at = text; *at != '\0'; at++)
        if (*at == 'e') exponent = atoi(at + 1);
    point->quantum = power_of_ten(exponent - digits);
}

size_t lr_log_points(const struct lr_log *log, struct series_point *points) {
    size_t count = 0;
    for (uint64_t k = log->first; k <= log->last; k += log->every) {
        points[count] = (struct series_point){.update = k, .row = count};
        lr_print_point(&points[count++], contract_logged(log->plan, k), log->print);
    }
    return count;
}

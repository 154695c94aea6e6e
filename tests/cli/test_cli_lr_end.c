/* SPDX-License-Identifier: Apache-2.0
 * labels: cli short
 * Logs that end with a row without an LR, as those of W&B do: Trainer logs a summary and an
 * evaluation at the last update. Nothing else says the total. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "tests/cli/helper_cli.h"

/* Writes a line from 5e-5 at update 0 to 0 at update 10360 in rows that are 100 updates apart, of
 * which a loss scaler skipped these updates, and a last row at `end`. */
static void write_log(const char *name, const int *skipped, size_t count, int end) {
    static char text[16384];
    size_t used = (size_t)snprintf(text, sizeof text, "step,loss,lr,eval_loss\n");
    for (int k = 100; k < 10360; k += 100) {
        int n = k;
        for (size_t i = 0; i < count; i++)
            n -= skipped[i] <= k;
        used += (size_t)snprintf(text + used, sizeof text - used, "%d,%.4f,%.17g,\n", k,
                                 2.0 + 100.0 / k, 5e-5 * ((10360 - n) / 10360.0));
    }
    if (end > 0) snprintf(text + used, sizeof text - used, "%d,,,1.5\n", end);
    helper_write(name, text);
}

static void verify_skips(void **state) {
    static const int skipped[] = {37, 450, 2550, 4633, 6600, 8521};
    static const char line[] = "hf-4.50 linear, peak 5e-05 (not shown), no warm-up, total 10360; "
                               "skipped: 1 of the updates 1 to 100, 1 of the updates 401 to 500";
    (void)state;
    write_log("end.csv", skipped, 6, 10360);
    struct said said = helper_run(0, "lr fit end.csv --contract hf-4.50");
    assert_non_null(strstr(said.out, line));
    helper_free(&said);
    write_log("none.csv", skipped, 6, 0);
    said = helper_run(1, "lr fit none.csv --contract hf-4.50");
    assert_non_null(strstr(said.out, "Nothing fits."));
    helper_free(&said);
    /* Behind where the next LR would have stood a row says nothing of where the run ended. */
    write_log("far.csv", skipped, 6, 10560);
    said = helper_run(1, "lr fit far.csv --contract hf-4.50");
    assert_non_null(strstr(said.out, "Nothing fits."));
    helper_free(&said);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(verify_skips)};
    return cmocka_run_group_tests(tests, helper_enter, helper_leave);
}

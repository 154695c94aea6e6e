/* SPDX-License-Identifier: Apache-2.0
 * labels: cli short
 * `lr check` of a log that records which LR was applied and prints none: a recorded training says
 * what it applied, so no explanation may be offered that applies another LR. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "tests/cli/helper_cli.h"

enum { UPDATES = 12 };

#define QUESTION "--expect hf --schedule linear --lr 3e-3 --steps 12 --warmup 0"

/* Writes the LRs of a linear decay, `ahead` updates early. */
static void write_log(const char *path, int ahead) {
    FILE *const file = fopen(path, "w");
    assert_non_null(file);
    fputs("update,lr_applied,loss\n", file);
    for (int k = 1; k <= UPDATES; k++)
        fprintf(file, "%d,%.17g,%d.5\n", k, 3e-3 * (UPDATES - (k - 1 + ahead)) / UPDATES, k);
    assert_int_equal(fclose(file), 0);
}

static void assert_says(const char *line, int status, const char *verdict, const char *fits) {
    struct said said = helper_run(status, line);
    if (strstr(said.out, verdict) == NULL || (fits != NULL && strstr(said.out, fits) == NULL))
        fail_msg("%s: %s", line, said.out);
    helper_free(&said);
}

/* hf-4.50 prints the LR of the next update and trains as hf does, so a printed column that is one
 * update ahead would be its column, too. What was applied is ahead here, so it is not. */
static void validate_ahead(void **state) {
    (void)state;
    write_log("ahead.csv", 1);
    assert_says("lr check ahead.csv " QUESTION, 1,
                "FAIL: fits olmo-core: every LR is one update ahead of hf\n",
                "  1  olmo-core linear, peak 0.003, no warm-up, total 12\n");
    assert_says("lr check ahead.csv --logged " QUESTION, 1, "or hf-4.50, which trains as hf", NULL);
}

static void validate_sound(void **state) {
    (void)state;
    write_log("sound.csv", 0);
    assert_says("lr check sound.csv " QUESTION, 0,
                "pass: every applied LR is the one that hf applies (hf linear, peak 0.003, no "
                "warm-up, total 12)\n",
                NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_ahead),
        cmocka_unit_test(validate_sound),
    };
    return cmocka_run_group_tests(tests, helper_enter, helper_leave);
}

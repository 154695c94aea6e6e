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

/* A warm-up of 3 updates, then a line. */
static double warmed(int n) {
    return n < 3 ? 3e-3 * n / 3.0 : 3e-3 * (UPDATES - n) / (UPDATES - 3.0);
}

/* Contracts that apply the same and log the LR of another update: a check of one against a log of
 * the other fails, since printed LRs differ, and says that the training is as expected. */
static void validate_logged_otherwise(void **state) {
    static const char *const ahead[] = {"hf-4.50", "open-instruct-tune-cache", "step-then-set-f0"};
    (void)state;
    for (int next = 0; next < 2; next++) {
        FILE *const file = fopen(next ? "next.csv" : "used.csv", "w");
        assert_non_null(file);
        fputs("step,learning_rate,lr_applied\n", file);
        for (int k = 1; k <= UPDATES; k++)
            fprintf(file, "%d,%.17g,%.17g\n", k, warmed(k - 1 + next), warmed(k - 1));
        assert_int_equal(fclose(file), 0);
    }
    for (size_t i = 0; i < sizeof ahead / sizeof *ahead; i++) {
        char line[160], says[160];
        snprintf(line, sizeof line,
                 "lr check used.csv --expect %s --lr 3e-3 --steps 12 --schedule linear --warmup 3",
                 ahead[i]);
        snprintf(says, sizeof says,
                 "FAIL: fits hf, which trains as %s and only logs the LR of another update: every "
                 "printed LR is one update behind %s\n",
                 ahead[i], ahead[i]);
        assert_says(line, 1, says, NULL);
    }
    assert_says(
        "lr check next.csv --expect hf --schedule linear --lr 3e-3 --steps 12 --warmup 3", 1,
        "which trains as hf and only logs the LR of another update: every printed LR is one "
        "update ahead of hf\n",
        "known as: log_next_lr");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_ahead),
        cmocka_unit_test(validate_sound),
        cmocka_unit_test(validate_logged_otherwise),
    };
    return cmocka_run_group_tests(tests, helper_enter, helper_leave);
}

/* SPDX-License-Identifier: Apache-2.0
 * labels: cli short
 * compare of the state file and the console of one training that logs every second update: the
 * console prints no step, and its epochs say which updates its rows are. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "tests/cli/helper_cli.h"

enum { EVERY = 2, UPDATES = 24 };

static double loss_of(int k) {
    return 3.0 - 0.0123 * k;
}
static double lr_of(int k) {
    return 1e-3 * (UPDATES + 1 - k) / UPDATES;
}

static void write_state(const char *path) {
    static char text[8192];
    size_t used = (size_t)snprintf(text, sizeof text, "{\"log_history\": [\n");
    for (int k = EVERY; k <= UPDATES; k += EVERY)
        used += (size_t)snprintf(text + used, sizeof text - used,
                                 "{\"epoch\": %.6f, \"grad_norm\": %.17g, \"learning_rate\": "
                                 "%.17g, \"loss\": %.17g, \"step\": %d}%s\n",
                                 k / 32.0, 1.0 + 0.0107 * k, lr_of(k), loss_of(k), k,
                                 k < UPDATES ? "," : "");
    snprintf(text + used, sizeof text - used,
             "], \"logging_steps\": %d, \"max_steps\": %d, \"global_step\": %d, "
             "\"best_global_step\": null}\n",
             EVERY, UPDATES, UPDATES);
    helper_write(path, text);
}

static void write_console(const char *path, double every) {
    static char text[8192];
    size_t used = 0;
    for (int k = EVERY; k <= UPDATES; k += EVERY)
        used += (size_t)snprintf(text + used, sizeof text - used,
                                 "{'loss': '%.4g', 'grad_norm': '%.4g', 'learning_rate': '%.4g', "
                                 "'epoch': '%.4g'}\n",
                                 loss_of(k), 1.0 + 0.0107 * k, lr_of(k), every * k / 32.0);
    helper_write(path, text);
}

static void validate_rows(void **state) {
    (void)state;
    write_state("trainer_state.json");
    write_console("console.txt", 1.0);
    struct said said = helper_run(0, "compare trainer_state.json console.txt");
    assert_non_null(strstr(said.out, "its rows are 2 updates apart"));
    helper_free(&said);
    helper_accept(0, "compare console.txt trainer_state.json");
    write_console("console.txt", 0.7); /* epochs that agree on no distance */
    said = helper_run(1, "compare trainer_state.json console.txt");
    assert_non_null(strstr(said.out, "rows are numbered from 1"));
    helper_free(&said);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(validate_rows)};
    return cmocka_run_group_tests(tests, helper_enter, helper_leave);
}

/* SPDX-License-Identifier: Apache-2.0
 * labels: cli short
 * Which release of transformers wrote a trainer_state.json, by the fields of its state and by its
 * losses, which version 5 does not round: before 4.51 a row shows the LR of the next update, so the
 * same rows are those of a training in float16 that skipped its first update, or of one since then
 * that skipped none. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/cli/helper_cli.h"

/* Writes 5e-5 (1 - (k - 1) / 1155) every 10 updates, behind these fields. */
static void write_state(const char *name, const char *fields) {
    static char text[16384];
    size_t used = (size_t)snprintf(
        text, sizeof text, "{%s\"global_step\": 1155, \"max_steps\": 1155, \"log_history\": [",
        fields);
    for (int k = 10; k <= 1155; k += 10)
        used +=
            (size_t)snprintf(text + used, sizeof text - used,
                             "%s{\"step\": %d, \"learning_rate\": %.17g, \"loss\": %.4f}",
                             k > 10 ? ", " : "", k, 5e-5 * ((1156 - k) / 1155.0), 2.0 + 1.0 / k);
    snprintf(text + used, sizeof text - used, "]}\n");
    helper_write(name, text);
}

#define OLD                                                                                        \
    "\"best_metric\": null, \"best_model_checkpoint\": null, \"is_world_process_zero\": true, "    \
    "\"total_flos\": 0, "

static void hold(const char *fields, int status, const char *answer, int noted) {
    write_state("trainer_state.json", fields);
    struct said said = helper_run(status, "lr fit trainer_state.json");
    assert_non_null(strstr(said.out, answer));
    assert_int_equal(strstr(said.out, "by transformers before 4.50") != NULL, noted);
    helper_free(&said);
}

static void verify_release(void **state) {
    (void)state;
    static const char skipped[] =
        "likeliest, but undecided: hf-4.50 linear, peak 5e-05 (not shown), no warm-up, "
        "total 1155; skipped: 1 of the updates 1 to 10\n";
    static const char none[] =
        "likeliest: hf linear, peak 5e-05 (not shown), no warm-up, total 1155\n";
    /* Nothing but the LRs shows the skip, so a scheduler that is late may be behind them. */
    hold(OLD, 3, skipped, 1);
    hold(OLD "\"best_global_step\": null, ", 0, none, 0); /* 4.50 or later */
    hold("", 0, none, 0); /* no state of a release, so nothing is missing */
    hold("\"best_metric\": null, \"total_flos\": 0, ", 0, none, 0);
}

/* The contract that somebody expects is looked for all the same, and is no pass where the file says
 * that it cannot be. */
static void verify_check(void **state) {
    (void)state;
    write_state("trainer_state.json", OLD);
    struct said said =
        helper_run(3, "lr check trainer_state.json --expect hf --lr 5e-5 --warmup 0");
    assert_non_null(strstr(said.out, "what would decide: --expect hf-4.50: by its fields"));
    helper_free(&said);
    write_state("trainer_state.json", OLD "\"best_global_step\": null, ");
    helper_accept(0, "lr check trainer_state.json --expect hf --lr 5e-5 --warmup 0");
}

/* A LambdaLR that counts one more, 1e-3 (k + 1) / 7 and a line, under the Trainer: hf-4.50 prints
 * the same and applies 0 at update 1. */
static void write_ahead(const char *loss) {
    static char text[16384];
    size_t used = (size_t)snprintf(text, sizeof text, "{%s\"max_steps\": 60, \"log_history\": [",
                                   OLD "\"best_global_step\": null, ");
    for (int k = 1; k <= 60; k++)
        used += (size_t)snprintf(text + used, sizeof text - used,
                                 "%s{\"step\": %d, \"learning_rate\": %.17g, \"loss\": 2.%s}",
                                 k > 1 ? ", " : "", k,
                                 k < 7 ? 1e-3 * (k / 7.0) : 1e-3 * ((61 - k) / 54.0), loss);
    snprintf(text + used, sizeof text - used, "]}\n");
    helper_write("trainer_state.json", text);
}

/* The schedule of "Attention is all you need", with a warm-up of 10 updates. */
static void write_noam(void) {
    static char text[16384];
    size_t used = (size_t)snprintf(text, sizeof text, "{%s\"max_steps\": 60, \"log_history\": [",
                                   OLD "\"best_global_step\": null, ");
    for (int k = 1; k <= 60; k++)
        used += (size_t)snprintf(
            text + used, sizeof text - used,
            "%s{\"step\": %d, \"learning_rate\": %.17g, \"loss\": 2.345678901}", k > 1 ? ", " : "",
            k, 1e-3 * (k < 10 ? k * (1.0 / (10.0 * sqrt(10.0))) : 1.0 / sqrt((double)k)));
    snprintf(text + used, sizeof text - used, "]}\n");
    helper_write("trainer_state.json", text);
}

static void say(int status, const char *command, const char *answer) {
    struct said said = helper_run(status, command);
    assert_non_null(strstr(said.out, answer));
    helper_free(&said);
}

static void verify_unrounded_losses(void **state) {
    (void)state;
    static const char *const rounded[] = {"3456", "345600000001", "345599999999", "3456781"};
    write_noam();
    say(3, "lr fit trainer_state.json",
        "fit 1 is of a release that logs the LR of the next update, and by its losses");
    write_ahead("345678901");
    say(3, "lr fit trainer_state.json", "is not of the framework that wrote the log");
    say(3,
        "lr check trainer_state.json --expect hf-4.50 --schedule linear --lr 1e-3 --warmup 7 "
        "--steps 61",
        "what would decide: --expect hf: by its losses, which are not rounded");
    struct said said = helper_run(0, "doctor trainer_state.json");
    assert_null(strstr(said.out, "under hf-4.50"));
    helper_free(&said);
    for (size_t i = 0; i < sizeof rounded / sizeof *rounded; i++) {
        write_ahead(rounded[i]);
        say(0, "lr fit trainer_state.json", "likeliest: hf-4.50 linear");
        said = helper_run(0, "doctor trainer_state.json");
        assert_non_null(strstr(said.out, "LR 0"));
        helper_free(&said);
    }
    helper_accept(0, "lr check trainer_state.json --expect hf-4.50 --schedule linear --lr 1e-3 "
                     "--warmup 7 --steps 61");
}

/* CyclicLR from 0, six updates up and six down: what puts it together out of breaks is no answer.
 */
static void verify_many_breaks(void **state) {
    (void)state;
    static char text[8192];
    size_t used = (size_t)snprintf(text, sizeof text, "{\"max_steps\": 60, \"log_history\": [");
    for (int k = 1; k <= 60; k++) {
        const int at = (k - 1) % 12;
        used += (size_t)snprintf(text + used, sizeof text - used,
                                 "%s{\"step\": %d, \"learning_rate\": %.17g}", k > 1 ? ", " : "", k,
                                 1e-3 * ((at < 6 ? at : 12 - at) / 6.0));
    }
    snprintf(text + used, sizeof text - used, "]}\n");
    helper_write("trainer_state.json", text);
    say(3, "lr fit trainer_state.json", "breaks its schedule many times where");
    say(0, "doctor trainer_state.json", "the whole column repeats after 12 updates");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_release), cmocka_unit_test(verify_check),
        cmocka_unit_test(verify_unrounded_losses), cmocka_unit_test(verify_many_breaks)};
    return cmocka_run_group_tests(tests, helper_enter, helper_leave);
}

/* SPDX-License-Identifier: Apache-2.0
 * labels: cli short
 * Loops that hold their LR from below, lr = max(lr, lowest), whose rows a known bug prints as well:
 * no bug is named then. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/cli/helper_cli.h"

#define PI 3.14159265358979323846

/* transformers/optimization.py, _get_cosine_with_min_lr_schedule_with_warmup_lr_lambda. */
static double cosine(double n, double warmup, double total, double floor) {
    if (n < warmup) return n / warmup;
    const double wave = 0.5 * (1.0 + cos(PI * 0.5 * 2.0 * (n - warmup) / (total - warmup)));
    return fmax(0.0, wave * (1.0 - floor) + floor);
}

/* The same, get_polynomial_decay_schedule_with_warmup with a power of 1, to an LR of `end`. */
static double line(double n, double warmup, double total, double peak, double end) {
    if (n < warmup) return n / warmup;
    return ((peak - end) * (1.0 - (n - warmup) / (total - warmup)) + end) / peak;
}

/* The same, get_wsd_schedule with lines up and down to 0. */
static double plateau(double n, double warmup, double total, double decay) {
    if (n < warmup) return n / warmup;
    if (n < total - decay) return 1.0;
    return (total - n) / decay;
}

/* Writes a trainer_state.json; every norm is finite, so no update was skipped. */
static void write_state(const char *name, int total, double (*lr)(int update)) {
    static char text[65536];
    size_t used = (size_t)snprintf(text, sizeof text,
                                   "{\"global_step\": %d, \"max_steps\": %d, \"log_history\": [",
                                   total, total);
    for (int k = 1; k <= total; k++)
        used += (size_t)snprintf(text + used, sizeof text - used,
                                 "%s{\"step\": %d, \"learning_rate\": %.17g, \"loss\": %.4f, "
                                 "\"grad_norm\": %.9f}",
                                 k > 1 ? ",\n" : "", k, lr(k), 2.0 + 1.0 / k, 1.0 + 0.1 * sin(k));
    snprintf(text + used, sizeof text - used, "]}\n");
    helper_write(name, text);
}

/* The first update has the LR of the second one, 1/20 of the peak, at which the cosine ends: so it
 * is of a scheduler whose first call is lost, too, with that floor. */
static double held_from_the_first(int k) {
    return fmax(5e-7, 1e-5 * cosine(k - 1, 20, 240, 0.05));
}
static void verify_first_rows(void **state) {
    (void)state;
    write_state("first.json", 240, held_from_the_first);
    struct said said = helper_run(3, "lr check first.json --expect hf");
    assert_non_null(strstr(said.out, "undecided: fits lag1 "));
    helper_free(&said);
    said = helper_run(0, "doctor first.json --verbose");
    assert_non_null(
        strstr(said.out, "reads as lag1, and just as well as a loop that holds the LR"));
    helper_free(&said);
}

/* The last row alone is held, where a scheduler that begins anew has its LR, too. */
static void verify_last_row(void **state) {
    static char text[4096];
    size_t used = (size_t)snprintf(text, sizeof text, "epoch,lr-AdamW,step,train_loss\n");
    (void)state;
    for (int k = 10; k <= 500; k += 10)
        used +=
            (size_t)snprintf(text + used, sizeof text - used, "0,%.17g,%d,%.6f\n",
                             fmax(1e-5, 1e-4 * plateau(k - 1, 50, 500, 100)), k - 1, 2.0 + 1.0 / k);
    helper_write("last.csv", text);
    struct said said = helper_run(3, "lr check last.csv --expect lightning-step");
    assert_null(strstr(said.out, "known bug"));
    helper_free(&said);
}

/* A line that is held on its way is one with a larger total and that floor under VeOmni, which did
 * not write the log. */
static double held_on_its_way(int k) {
    const double lr = 6e-6 * line(k, 30, 300, 6e-6, 1e-6);
    return k < 30 ? lr : fmax(1.2000000000000002e-06, lr);
}
static void verify_total_of_another_framework(void **state) {
    (void)state;
    write_state("way.json", 300, held_on_its_way);
    helper_accept(3, "lr check way.json --expect hf-4.50");
    struct said said = helper_run(0, "doctor way.json --verbose");
    assert_non_null(strstr(said.out, "another framework than the one that wrote the log"));
    helper_free(&said);
}

/* Megatron's console, whose line to 0 at the log's own total of 600 updates is held at 1/20 of the
 * peak: one to that floor ends at 571 updates, and prints the same. */
static void verify_line_in_samples(void **state) {
    static char text[32768];
    size_t used = 0;
    (void)state;
    for (int k = 10; k <= 600; k += 10)
        used += (size_t)snprintf(
            text + used, sizeof text - used,
            " [2025-01-01 00:00:00] iteration %8d/     600 | consumed samples: %12d | learning "
            "rate: %.6E | global batch size:     8 | lm loss: %.6E | loss scale: 1.0 | grad norm: "
            "%.3f | number of skipped iterations:   0 | number of nan iterations:   0 |\n",
            k, 8 * k, fmax(1e-5, 2e-4 * (k < 20 ? k / 20.0 : (600 - k) / 580.0)), 2.0 + 1.0 / k,
            1.0 + 0.1 * sin(k));
    helper_write("train.log", text);
    struct said said = helper_run(3, "lr fit train.log");
    assert_non_null(
        strstr(said.out, "a line to 0 with that one, whose LR a loop holds at the floor"));
    helper_free(&said);
    said = helper_run(3, "lr check train.log --expect megatron");
    assert_non_null(strstr(said.out, "whose LR the loop holds at 1e-05 from below"));
    helper_free(&said);
    helper_accept(0, "lr check train.log --expect megatron --min-lr-ratio 0.05");
}

/* Lightning's scheduler that moves once per epoch: the warm-up is one epoch, and not three updates
 * with a peak that no row shows. */
static void verify_warmup_of_an_epoch(void **state) {
    static char text[8192];
    size_t used = (size_t)snprintf(text, sizeof text, "epoch,lr-AdamW,step,train_loss\n");
    (void)state;
    for (int k = 5; k <= 300; k += 5) {
        const int epoch = (k - 1) / 25;
        used += (size_t)snprintf(text + used, sizeof text - used, "%d,%.17g,%d,%.6f\n", epoch,
                                 1.5e-4 * (epoch < 1 ? 0.0 : (12 - epoch) / 11.0), k - 1,
                                 2.0 + 1.0 / k);
    }
    helper_write("stairs.csv", text);
    struct said said = helper_run(0, "lr fit stairs.csv");
    assert_non_null(strstr(said.out, "likeliest: lightning-epoch linear, peak 0.00015, warm-up 25, "
                                     "total 300, one move every 25 updates\n"));
    helper_free(&said);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verify_first_rows), cmocka_unit_test(verify_last_row),
        cmocka_unit_test(verify_total_of_another_framework),
        cmocka_unit_test(verify_line_in_samples), cmocka_unit_test(verify_warmup_of_an_epoch)};
    return cmocka_run_group_tests(tests, helper_enter, helper_leave);
}

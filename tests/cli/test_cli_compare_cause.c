/* SPDX-License-Identifier: Apache-2.0
 * labels: cli memory
 * compare of two arms whose cause is known: what it accuses, and what it does not. Each pair is
 * trained once and compared twice, as a trace and as the CSV of it, which holds no digest. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "tests/cli/helper_cli.h"

/* What a text says, and which cause it names; "": none. */
struct claim {
    const char *says, *cause;
};

static const struct pair {
    const char *name, *common, *test;
    struct claim trace, log;
} pairs[] = {
    {"the loss of rank 0",
     "optimizer: {lr: 5e-7}\n"
     "  numerics: {shards: 4}\n"
     "  parallel: {ranks: 2}\n"
     "  loop: {update: [reduce, clip, optimize, log, count, schedule, zero]}",
     "parallel: {logged: rank0}",
     {"What differs is what is logged (loss)", ""},
     {"What differs is what is logged (loss)", ""}},
    {"the loss of rank 0 in supervised fine-tuning",
     "task: sft\n"
     "  optimizer: {lr: 1e-3}\n"
     "  numerics: {shards: 4}\n"
     "  parallel: {ranks: 2}\n"
     "  loop: {update: [reduce, clip, optimize, log, count, schedule, zero]}",
     "parallel: {logged: rank0}",
     {"by their digests, so the two train alike", ""},
     {"agree in every update to the last bit, so the two train alike", ""}},
    {"another beta, of which the weights know",
     "optimizer: {lr: 1e-3}",
     "dpo: {beta: 0.2}",
     {"what the rewards are scaled by (beta) is not", "objective"},
     {"what the rewards are scaled by (beta) is not", "objective"}},
    {"label smoothing, of plain SGD",
     "optimizer: {name: sgd, lr: 1e-3}\n"
     "  clip: {max_norm: 0}",
     "dpo: {loss: cdpo, label_smoothing: 0.1}",
     {"the losses leave ln 2 with their margins in that ratio, too", "objective"},
     {"is 1.25 in 4 of 4 pairs: the slopes of the two losses where they are ln 2", "objective"}},
    {"a gradient that is summed, of plain SGD",
     "optimizer: {name: sgd, lr: 1e-4}\n"
     "  clip: {max_norm: 0}\n"
     "  loss: {divisor: mean-of-means}",
     "batch: {micro: 2}, loss: {divisor: sum-of-means, logged: mean}",
     {"label smoothing (a factor of 1 - 2 s) or loss type does this (objective), and so", ""},
     {"or a loss that is divided once too often or too rarely", ""}},
    {"a gradient that is summed, of AdamW",
     "optimizer: {lr: 5e-7}\n"
     "  loss: {divisor: mean-of-means}",
     "batch: {micro: 2}, loss: {divisor: sum-of-means, logged: mean}",
     {"is divided, summed or counted differently.\n", "normalisation"},
     {"is divided, summed or counted differently.\n", "normalisation"}},
    {"weight decay",
     "optimizer: {lr: 1e-2, weight_decay: 0}",
     "optimizer: {weight_decay: 0.5}",
     {"the step differs in something else", "optimizer"},
     {"the step differs in something else", "optimizer"}},
    {"a forgotten zero_grad",
     "optimizer: {name: sgd, lr: 0.01}\n"
     "  clip: {max_norm: 0}\n"
     "  schedule: {name: constant}",
     "loop: {update: [clip, optimize, log, count, schedule]}",
     {"an update in which B called no zero_grad and A did", "schedule"},
     {"no step before it differed. Gradients that one of the two kept", ""}},
    {"a bit that flips in the forward pass of update 2",
     "optimizer: {lr: 1e-4}",
     "fault: {update: 2, micro: 1, layer: 0, op: attention, element: 1000, bit: 29}",
     {"the forward pass of it is not: no step differed", ""},
     {"the forward pass of update 2 does not: no step differed that this norm shows", ""}},
};

static void hold(const struct pair *pair, const char *how, const struct claim *claim,
                 const char *command) {
    char line[64];
    struct said said = helper_run(1, command);
    const char *const points = strstr(said.out, "\nPoints to: ");
    snprintf(line, sizeof line, "\nPoints to: %s\n", claim->cause);
    if (strstr(said.out, claim->says) == NULL ||
        (claim->cause[0] == '\0' ? points != NULL
                                 : points == NULL || strstr(said.out, line) == NULL))
        fail_msg("%s, %s: expected \"%s\" and the cause \"%s\":\n%s", pair->name, how, claim->says,
                 claim->cause, said.out);
    helper_free(&said);
}

static void export_arm(const char *arm, const char *path) {
    char command[128];
    snprintf(command, sizeof command, "export p.h5 --run %s --to csv", arm);
    struct said said = helper_run(0, command);
    helper_write_bytes(path, said.out, said.out_length);
    helper_free(&said);
}

static void validate_what_is_accused(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(pairs); i++) {
        const struct pair *const pair = &pairs[i];
        helper_scenario("p.yaml", "name: p\nsteps: 4", pair->common, pair->test);
        struct said said = helper_run(1, "run p.yaml -o p.h5 --overwrite --quiet");
        helper_free(&said);
        export_arm("baseline", "a.csv");
        export_arm("test", "b.csv");
        hold(pair, "as a trace", &pair->trace, "compare p.h5 p.h5 --run-b test");
        hold(pair, "as logs", &pair->log, "compare a.csv b.csv");
    }
}

/* A trace says of each update whether it was skipped, and one in which all were says 1 in each row:
 * no verb may take that for a total of 1, also of its CSV. */
static void validate_a_run_that_skips_all(void **state) {
    (void)state;
    static const char *const logs[2][2] = {{"p.h5 --run baseline", "p.h5 --run test"},
                                           {"a.csv", "b.csv"}};
    helper_scenario("p.yaml", "name: p\nsteps: 10",
                    "optimizer: {lr: 1e-3}\n"
                    "  numerics: {compute: f16}\n"
                    "  scaler: {kind: dynamic, init_scale: 65536}\n"
                    "  loop: {update: [unscale, clip, optimize, log, count, schedule, zero], skip: "
                    "nonfinite}",
                    "scaler: {init_scale: 4e6}");
    struct said said = helper_run(1, "run p.yaml -o p.h5 --overwrite --quiet");
    assert_non_null(strstr(said.out, "in test the optimizer made no step in 10 of 10 updates"));
    helper_free(&said);
    export_arm("baseline", "a.csv");
    export_arm("test", "b.csv");
    for (size_t i = 0; i < COUNT_OF(logs); i++) {
        char line[128];
        snprintf(line, sizeof line, "lr fit %s", logs[i][1]);
        said = helper_run(3, line);
        assert_non_null(strstr(said.out, "skipped updates: 10, as the log says"));
        helper_free(&said);
        snprintf(line, sizeof line, "doctor %s", logs[i][1]);
        said = helper_run(1, line);
        assert_non_null(strstr(said.out, "The last 10 updates were all skipped"));
        assert_null(strstr(said.out, "loss_stuck_at_ln2"));
        helper_free(&said);
        said = helper_run(1, i == 0 ? "compare p.h5 p.h5 --run-b test" : "compare a.csv b.csv");
        assert_non_null(strstr(said.out, "Other updates were skipped, and nothing differs before"));
        assert_non_null(strstr(said.out, "\n    A: hf linear, peak 0.001, no warm-up, total 10; "
                                         "skipped: updates 1 to "));
        assert_null(strstr(said.out, "Points to:"));
        helper_free(&said);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(validate_what_is_accused),
                                       cmocka_unit_test(validate_a_run_that_skips_all)};
    return cmocka_run_group_tests(tests, helper_enter, helper_leave);
}

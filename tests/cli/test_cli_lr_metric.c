/* SPDX-License-Identifier: Apache-2.0
 * labels: cli short
 * Schedules that follow a metric, and those whose parameters are lists, at the command line: what
 * is given must be used, and what is missing or wrong must be refused by name. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "tests/cli/helper_cli.h"

#define PLATEAU "lr table --contract hf --schedule reduce_lr_on_plateau --lr 1 --steps 6 --csv "

static void write_file(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static const struct {
    const char *line, *out;
} tables[] = {
    {PLATEAU "--value patience=0 --metric 2,3,1,1",
     "update,lr_applied,lr_logged\n1,1,1\n2,1,1\n3,0.1,0.1\n4,0.1,0.1\n5,0.010000000000000002,"
     "0.010000000000000002\n6,0.010000000000000002,0.010000000000000002\n"},
    {PLATEAU "--value patience=0 --metric 1:2,4:3",
     "update,lr_applied,lr_logged\n1,1,1\n2,1,1\n3,1,1\n4,1,1\n5,0.1,0.1\n6,0.1,0.1\n"},
    {PLATEAU "--value patience=0 --metric-every 2 --metric 2,3",
     "update,lr_applied,lr_logged\n1,1,1\n2,1,1\n3,1,1\n4,1,1\n5,0.1,0.1\n6,0.1,0.1\n"},
    {PLATEAU "--value patience=0 --metric m.jsonl",
     "update,lr_applied,lr_logged\n1,1,1\n2,1,1\n3,1,1\n4,1,1\n5,0.1,0.1\n6,0.1,0.1\n"},
    {PLATEAU "--value patience=0 --metric m.jsonl:loss",
     "update,lr_applied,lr_logged\n1,1,1\n2,1,1\n3,0.1,0.1\n4,0.1,0.1\n5,0.1,0.1\n6,0.1,0.1\n"},
    {PLATEAU "--value patience=0 --value mode=max --metric m.jsonl:score",
     "update,lr_applied,lr_logged\n1,1,1\n2,1,1\n3,1,1\n4,1,1\n5,0.1,0.1\n6,0.1,0.1\n"},
    {"lr table --contract accelerate --processes 3 --schedule reduce_lr_on_plateau --lr 1 --steps "
     "3 --csv --value patience=2 --metric 2,3",
     "update,lr_applied,lr_logged\n1,1,1\n2,1,1\n3,0.1,0.1\n"},
    {"lr table --contract olmo-core --schedule composable --lr 1 --steps 1 --count 5 --csv "
     "--value stages=linear:2:0:1,linear:2:=0.5",
     "update,lr_applied,lr_logged\n1,0.5,0.5\n2,1,1\n3,0.75,0.75\n4,0.5,0.5\n5,0.5,0.5\n"},
    {"lr table --contract olmo-core-tokens --tokens 512 --schedule composable --lr 1 --steps 1 "
     "--count 4 --csv --value stages=linear:2:0:1,linear:2:=0.5",
     "update,lr_applied,lr_logged\n1,0.5,0.5\n2,1,1\n3,0.75,0.75\n4,0.5,0.5\n"},
    {"lr table --contract olmo-core --schedule wsds --lr 1 --steps 6 --csv --value periods=4,2 "
     "--value peaks=1,0.5 --value decay=1",
     "update,lr_applied,lr_logged\n1,1,1\n2,1,1\n3,1,1\n4,0,0\n5,0.5,0.5\n6,0,0\n"},
    {"lr table --contract hf --schedule torch.one_cycle --lr 1 --steps 4 --count 7 --csv --value "
     "anneal_strategy=linear --value pct_start=0.5 --value div_factor=2 --value final_div_factor=1",
     "update,lr_applied,lr_logged\n1,0.5,0.5\n2,1,1\n3,0.75,0.75\n4,0.5,0.5\n5,0.25,0.25\n"
     "6,0.25,0.25\n7,0.25,0.25\n"},
};

static void validate_tables(void **state) {
    (void)state;
    write_file("m.jsonl", "{\"step\":1,\"loss\":2,\"score\":1}\n"
                          "{\"step\":2,\"loss\":3,\"eval_loss\":1,\"score\":2}\n"
                          "{\"step\":4,\"loss\":1,\"eval_loss\":2,\"score\":2}\n");
    for (size_t i = 0; i < COUNT_OF(tables); i++) {
        struct said said = helper_run(0, tables[i].line);
        assert_string_equal(said.err, "");
        assert_string_equal(said.out, tables[i].out);
        helper_free(&said);
    }
}

static const struct {
    const char *line, *needle;
} refusals[] = {
    {PLATEAU, "reduce_lr_on_plateau follows a metric, and there is none"},
    {PLATEAU "--metric 1,x", "cannot"},
    {PLATEAU "--metric 1,,2", "--metric: expected values between commas, as 2.1,1.9"},
    {PLATEAU "--metric 5:1,4:2", "--metric: expected updates from 1 on in ascending order"},
    {PLATEAU "--metric 1 --metric-every 0", "--metric-every: expected a whole number >= 1"},
    {PLATEAU "--metric n.jsonl:score", "--metric: n.jsonl has no column score"},
    {"lr table --contract olmo-core --schedule hf.reduce_lr_on_plateau --lr 1 --steps 2 --metric 1",
     "olmo-core sets the LR another way"},
    {"lr table --contract olmo-core --schedule composable --lr 1 --steps 2",
     "schedule.stages: expected stages, as linear:1000:0:1"},
    {"lr table --contract olmo-core --schedule composable --lr 1 --steps 2 --value stages=sine:2:1",
     "expected linear, cosine or constant"},
    {"lr table --contract olmo-core --schedule composable --lr 1 --steps 2 --value "
     "stages=linear:2:1,linear:x:1",
     "got \"x\" in \"linear:2:1,linear:x:1\""},
    {"lr table --contract olmo-core --schedule wsds --lr 1 --steps 6 --value periods=4,2 --value "
     "peaks=1",
     "schedule.peaks: expected as many as there are periods, 2, got 1"},
    {"lr table --contract olmo-core --schedule sequential --lr 1 --steps 6 --value "
     "stages=linear:3,exp",
     "with NAME one of constant, constant_with_warmup"},
    {"lr table --contract olmo-core --schedule sequential --lr 1 --steps 6 --value "
     "stages=linear:6,constant",
     "they are as long as the total of 6"},
    {"lr table --contract hf --schedule torch.sequential --lr 1 --steps 6 --value "
     "stages=linear:3:gamma=2,constant",
     "linear has no parameter \"gamma\""},
    {"lr table --contract hf --schedule torch.one_cycle --lr 1 --steps 10 --value pct_start=0.1",
     "OneCycleLR divides by zero"},
};

static void validate_refusals(void **state) {
    (void)state;
    write_file("n.jsonl", "{\"step\":1,\"loss\":2}\n");
    for (size_t i = 0; i < COUNT_OF(refusals); i++)
        helper_refuse(2, refusals[i].line, refusals[i].needle);
}

/* Without an evaluation there is no metric. A scenario must then be refused, not trained with
 * something else. */
static void validate_scenario(void **state) {
    (void)state;
    write_file("s.yaml", "twinstep: 1\nname: plateau\nsteps: 3\ncommon: {schedule: {name: "
                         "reduce_lr_on_plateau}}\n");
    helper_refuse(2, "run s.yaml", "a scenario evaluates nothing, so no run can follow it");
    write_file("t.yaml", "twinstep: 1\nname: stages\nsteps: 3\ncommon: {schedule: {contract: "
                         "olmo-core, name: composable, stages: \"sine:2:1\"}}\n");
    helper_refuse(2, "run t.yaml", "expected linear, cosine or constant");
}

static void validate_check(void **state) {
    (void)state;
    write_file("run.jsonl", "{\"step\":1,\"lr\":1.000e-3,\"eval_loss\":2}\n"
                            "{\"step\":2,\"lr\":1.000e-3,\"eval_loss\":3}\n"
                            "{\"step\":3,\"lr\":5.000e-4,\"eval_loss\":3}\n"
                            "{\"step\":4,\"lr\":2.500e-4,\"eval_loss\":3}\n");
    helper_accept(0, "lr check run.jsonl --expect hf --schedule reduce_lr_on_plateau --lr 1e-3 "
                     "--value patience=0 --value factor=0.5");
    struct said said =
        helper_run(1, "lr check run.jsonl --expect hf --schedule reduce_lr_on_plateau "
                      "--lr 1e-3 --warmup 0 --steps 4 --value patience=1 --value factor=0.5");
    assert_non_null(strstr(said.out, "first difference at update 3"));
    assert_non_null(strstr(said.out, "reduce_lr_on_plateau (factor=0.5, patience=0)"));
    helper_free(&said);
    write_file("bare.csv", "step,learning_rate\n1,0.001\n2,0.001\n3,0.0005\n4,0.00025\n");
    said = helper_run(3, "lr check bare.csv --expect hf --schedule reduce_lr_on_plateau");
    assert_non_null(strstr(said.out, "undecided: the log has no metric"));
    helper_free(&said);
    helper_accept(0, "lr check bare.csv --expect hf --schedule reduce_lr_on_plateau --value "
                     "patience=0 --value factor=0.5 --metric 2,3,3");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_tables),
        cmocka_unit_test(validate_refusals),
        cmocka_unit_test(validate_scenario),
        cmocka_unit_test(validate_check),
    };
    return cmocka_run_group_tests(tests, helper_enter, helper_leave);
}

/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * What a schedule refuses, with the whole of its text, and beside each refusal the nearest call
 * that is taken: a bound that moves, and a value or a key that is missing in a text, show here.
 * Where a framework raises or divides by zero, the case says so. */
#include "sched/sched.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/macro.h"
#include "base/real.h"

static double values[32], state_of_schedule[64];

/* A call of a schedule with L = 1e-3, and what is said of it; "" is nothing: it is taken. */
static const struct refusal {
    const char *schedule;
    double warmup, total;
    const char *set[2][2]; /* keys and values */
    const char *text;
} refusals[] = {
    /* A text is a text: what stands in quotation marks is what was given. */
    {"olmo-core.composable",
     0,
     10,
     {{NULL}},
     "schedule.stages: expected stages, as linear:1000:0:1,cosine:5000:0.1 (shape, length, start, "
     "end); got none"},
    {"olmo-core.composable", 0, 10, {{"stages", "constant:5"}}, ""},
    {"olmo-core.composable",
     0,
     10,
     {{"stages", "constant:5:1"}},
     "schedule.stages: expected constant:LENGTH, got \"constant:5:1\" in \"constant:5:1\""},
    {"olmo-core.composable",
     0,
     10,
     {{"stages", "constant:5,linear:5"}},
     "schedule.stages: expected SHAPE:LENGTH:END or SHAPE:LENGTH:START:END, got \"linear:5\" in "
     "\"constant:5,linear:5\""},
    {"olmo-core.composable",
     0,
     10,
     {{"stages", "linear"}},
     "schedule.stages: expected linear, cosine or constant, then numbers between colons, got "
     "\"linear\" in \"linear\""},
    {"olmo-core.composable",
     0,
     10,
     {{"stages", "linear:5:0:1:2"}},
     "schedule.stages: expected linear, cosine or constant, then numbers between colons, got "
     "\"linear:5:0:1:2\" in \"linear:5:0:1:2\""},
    {"olmo-core.composable",
     0,
     10,
     {{"stages", "cubic:5:0"}},
     "schedule.stages: expected linear, cosine or constant, then numbers between colons, got "
     "\"cubic:5:0\" in \"cubic:5:0\""},
    {"olmo-core.composable", 0, 10, {{"stages", "linear:1e-9:1"}}, ""},
    {"olmo-core.composable", 0, 10, {{"stages", "linear:9007199254740992:1"}}, ""},
    {"olmo-core.composable",
     0,
     10,
     {{"stages", "linear:0:1"}},
     "schedule.stages: expected a number from 1.0000000000000001e-09 to 9007199254740992, got "
     "\"0\" in \"linear:0:1\""},
    {"olmo-core.composable",
     0,
     10,
     {{"stages", "linear:9007199254740994:1"}},
     "schedule.stages: expected a number from 1.0000000000000001e-09 to 9007199254740992, got "
     "\"9007199254740994\" in \"linear:9007199254740994:1\""},
    {"olmo-core.composable", 0, 10, {{"stages", "linear:5:0:=1000000"}}, ""},
    {"olmo-core.composable",
     0,
     10,
     {{"stages", "linear:5:0:1000001"}},
     "schedule.stages: expected a number from 0 to 1000000, got \"1000001\" in "
     "\"linear:5:0:1000001\""},
    {"olmo-core.composable",
     0,
     10,
     {{"stages", "linear:5:-1:1"}},
     "schedule.stages: expected a number from 0 to 1000000, got \"-1\" in \"linear:5:-1:1\""},
    {"olmo-core.composable",
     0,
     10,
     {{"stages", "constant:5"}, {"override_decay", "linear:0:5:0"}},
     ""},
    {"olmo-core.composable",
     0,
     10,
     {{"stages", "constant:5"}, {"override_decay", "linear:5:0"}},
     "schedule.override_decay: expected linear or cosine:START:LENGTH:END, got \"linear:5:0\""},
    {"olmo-core.composable",
     0,
     10,
     {{"stages", "constant:5"}, {"override_decay", "constant:1:5:0"}},
     "schedule.override_decay: expected linear or cosine:START:LENGTH:END, got "
     "\"constant:1:5:0\""},
    {"olmo-core.composable",
     0,
     10,
     {{"stages", "constant:5"}, {"override_decay", "linear:-1:5:0"}},
     "schedule.override_decay: expected a number from 0 to 9007199254740992, got \"-1\" in "
     "\"linear:-1:5:0\""},
    {"olmo-core.composable",
     0,
     10,
     {{"stages", "constant:5"}, {"override_decay", "linear:1:0:0"}},
     "schedule.override_decay: expected a number from 1.0000000000000001e-09 to 9007199254740992, "
     "got \"0\" in \"linear:1:0:0\""},
    {"olmo-core.composable",
     0,
     10,
     {{"stages", "constant:5"}, {"override_decay", "linear:1:5:x"}},
     "schedule.override_decay: expected a number from 0 to 1000000, got \"x\" in "
     "\"linear:1:5:x\""},
    /* scheduler.py, SequentialScheduler: its stages, but the last, have a length. */
    {"olmo-core.sequential", 0, 10, {{"stages", "linear:4,cosine"}}, ""},
    {"olmo-core.sequential", 0, 10, {{"stages", " linear : 4 , cosine "}}, ""},
    {"olmo-core.sequential", 0, 10, {{"stages", "linear:4:warmup=0,cosine"}}, ""},
    {"olmo-core.sequential",
     0,
     10,
     {{"stages", "constant_with_warmup:4:warmup=9007199254740992,cosine"}},
     ""},
    {"olmo-core.sequential",
     0,
     10,
     {{"stages", "constant_with_warmup:4:warmup=9007199254740994,cosine"}},
     "schedule.stages: expected a number from 0 to 9007199254740992, got \"9007199254740994\" in "
     "\"constant_with_warmup:4:warmup=9007199254740994,cosine\""},
    {"olmo-core.sequential",
     0,
     10,
     {{"stages", "linear:4:min_lr_ratio=2,cosine"}},
     "schedule.stages, min_lr_ratio=2: min_lr_ratio: expected a number from 0 to 1, got \"2\""},
    {"olmo-core.sequential",
     0,
     10,
     {{"stages", "linear:10,cosine"}},
     "schedule.stages: they are as long as the total of 10"},
    {"olmo-core.sequential", 0, 10, {{"change", "9"}}, ""},
    {"olmo-core.sequential",
     0,
     10,
     {{"change", "10"}},
     "schedule.change: expected less than the total of 10, got 10"},
    {"olmo-core.sequential", 0, 10, {{"warmup_min_lr", "9e-4"}}, ""},
    {"olmo-core.sequential",
     0,
     10,
     {{"warmup_min_lr", "0.5"}},
     "schedule.warmup_min_lr: expected less than the base rate 0.001, got 0.5"},
    /* scheduler.py: "warmup_min_lr < initial_lr", and the same of decay_min_lr. */
    {"olmo-core.constant_with_warmup",
     2,
     10,
     {{"warmup_min_lr", "0.001"}},
     "schedule.warmup_min_lr: expected less than the base rate 0.001, got 0.001"},
    {"olmo-core.constant_with_warmup", 2, 10, {{"warmup_min_lr", "0.0009"}}, ""},
    {"olmo-core.wsd",
     2,
     10,
     {{"decay_min_lr", "0.001"}},
     "schedule.decay_min_lr: expected less than the base rate 0.001, got 0.001"},
    {"olmo-core.wsd", 2, 10, {{"decay_min_lr", "0.0009"}}, ""},
    {"olmo-core.power",
     0,
     10,
     {{NULL}},
     "schedule.warmup: L (c / W)^b expects a warm-up above 0, got 0"},
    {"olmo-core.power", 1, 10, {{NULL}}, ""},
    {"olmo-core.wsds",
     0,
     10,
     {{"peaks", "1,0.5"}},
     "schedule.peaks: expected schedule.periods with it, got none"},
    {"olmo-core.wsds", 0, 20, {{"periods", "10,10"}, {"peaks", "1,0.5"}}, ""},
    {"olmo-core.wsds",
     0,
     10,
     {{"periods", "5,5"}, {"peaks", "1"}},
     "schedule.peaks: expected as many as there are periods, 2, got 1"},
    {"olmo-core.wsds",
     0,
     10,
     {{"periods", "5,5"}, {"period", "5"}},
     "schedule.period and schedule.periods: expected one of them, got both"},
    {"olmo-core.wsds",
     0,
     10,
     {{"periods", "5,5"}, {"decay", "0"}},
     "schedule.decay: expected above 0, got 0 in period 1"},
    {"olmo-core.wsds",
     0,
     10,
     {{"periods", "10,1"}},
     "schedule.decay: expected above 0, got 0 in period 2"}, /* a tenth of 1, rounded */
    {"olmo-core.wsds", 2, 10, {{"periods", "5,3"}, {"decay", "3"}}, ""},
    {"olmo-core.wsds",
     2,
     10,
     {{"periods", "4,3"}, {"decay", "3"}},
     "schedule.periods: warm-up 2 and decay 3 exceed period 1 of 4"},
    {"olmo-core.wsds", /* the warm-up is part of the first period alone */
     2,
     10,
     {{"periods", "5,2"}, {"decay", "3"}},
     "schedule.periods: warm-up 0 and decay 3 exceed period 2 of 2"},
    {"olmo-core.wsds", 0, 10, {{"decay", "0"}}, "schedule.decay: expected above 0, got 0"},
    {"olmo-core.wsds", 4, 10, {{"period", "5"}, {"decay", "1"}}, ""},
    {"olmo-core.wsds",
     4,
     10,
     {{"period", "5"}, {"decay", "2"}},
     "schedule.period: warm-up 4 and decay 2 exceed the first period of 5"},
    {"olmo-core.wsds",
     0,
     10,
     {{"periods", "1,2,x"}},
     "schedule.periods: expected a number from 1.0000000000000001e-09 to 9007199254740992, got "
     "\"x\" in \"1,2,x\""},
    {"deepspeed.warmup_cosine", 2, 3, {{NULL}}, ""},
    {"deepspeed.warmup_cosine", /* lr_schedules.py takes a warm-up of at least 2 */
     0,
     2,
     {{NULL}},
     "schedule.total: WarmupCosineLR expects more than its warm-up of 2 (at least 2), got 2"},
    {"deepspeed.warmup_cosine",
     5,
     5,
     {{NULL}},
     "schedule.total: WarmupCosineLR expects more than its warm-up of 5 (at least 2), got 5"},
    {"polynomial", 3, 4, {{NULL}}, ""},
    {"polynomial", 4, 3, {{NULL}}, ""},
    {"polynomial",
     4,
     4,
     {{NULL}},
     "schedule.total: polynomial divides by zero where total and warm-up are both 4"},
    {"polynomial", 0, 4, {{"lr_end", "9e-4"}}, ""},
    {"polynomial",
     0,
     4,
     {{"lr_end", "0.001"}},
     "schedule.lr_end: expected less than the base rate 0.001, got 0.001"},
    {"reduce_lr_on_plateau",
     0,
     4,
     {{NULL}},
     "schedule.name: reduce_lr_on_plateau follows a metric, and there is none; a scenario "
     "evaluates nothing, so no run can follow it (lr table takes a metric as an option, lr check "
     "and lr fit find it in the log)"},
    {"megatron.linear", 0, 4, {{"min_lr", "0.001"}, {"init_lr", "0.001"}}, ""},
    {"megatron.linear",
     0,
     4,
     {{"min_lr", "0.002"}},
     "schedule.min_lr: expected at most the base rate 0.001, got 0.002"},
    {"megatron.linear",
     0,
     4,
     {{"init_lr", "0.002"}},
     "schedule.init_lr: expected at most the base rate 0.001, got 0.002"},
    {"megatron.linear",
     4,
     4,
     {{NULL}},
     "schedule.warmup: Megatron expects less than the total of 4, got 4"},
    {"torch.cosine_annealing", 0, 4, {{"min_lr", "0.001"}}, ""},
    {"torch.cosine_annealing",
     0,
     4,
     {{"min_lr", "0.002"}},
     "schedule.min_lr: expected at most the base rate 0.001, got 0.002"},
    /* one_cycle: the first phase ends at 0.3 T - 1, the last begins there and ends at T - 1. */
    {"torch.one_cycle", 0, 10, {{NULL}}, ""},
    {"torch.one_cycle", 0, 0, {{NULL}}, "schedule.total: expected at least 1, got 0"},
    {"torch.one_cycle",
     0,
     10,
     {{"pct_start", "0.1"}},
     "schedule.pct_start: OneCycleLR divides by zero for 0.10000000000000001 of a total of 10"},
    {"torch.one_cycle",
     0,
     10,
     {{"pct_start", "1"}},
     "schedule.pct_start: OneCycleLR divides by zero for 1 of a total of 10"},
    {"torch.sequential",
     0,
     10,
     {{NULL}},
     "schedule.stages: expected stages, as linear:20:start_factor=0.1:total_iters=20,"
     "cosine:500:t_max=500,constant:factor=0.1; got none"},
    {"torch.sequential", 0, 10, {{"stages", "cosine"}}, ""}, /* t_max is what is left */
    {"torch.sequential", 0, 1, {{"stages", "cosine"}}, ""},
    {"torch.sequential",
     0,
     0,
     {{"stages", "cosine"}},
     "schedule.stages: expected t_max=N, got \"cosine\" in \"cosine\""},
    {"torch.sequential", 0, 10, {{"stages", "cosine:min_lr=0.001"}}, ""},
    {"torch.sequential",
     0,
     10,
     {{"stages", "cosine:min_lr=0.002"}},
     "schedule.stages: expected min_lr of at most 0.001, got \"cosine:min_lr=0.002\""},
    {"torch.sequential", 0, 10, {{"stages", "step:step_size=1"}}, ""},
    {"torch.sequential",
     0,
     10,
     {{"stages", "step"}},
     "schedule.stages: expected step_size=N, got \"step\" in \"step\""},
    {"torch.sequential",
     0,
     10,
     {{"stages", "step:t_max=4"}},
     "schedule.stages: step has no parameter \"t_max\", in \"step:t_max=4\""},
    {"torch.sequential",
     0,
     10,
     {{"stages", "linear:gam=4"}},
     "schedule.stages: linear has no parameter \"gam\", in \"linear:gam=4\""},
    {"torch.sequential",
     0,
     10,
     {{"stages", "linear:5,"}},
     "schedule.stages: expected NAME:LENGTH:KEY=VALUE with NAME one of constant, linear, "
     "exponential, step, polynomial, cosine, and no LENGTH in the last one, got \"\" in "
     "\"linear:5,\""},
    {"veomni.linear", 0, 10, {{"min_lr", "0.001"}}, ""},
    {"veomni.linear",
     0,
     10,
     {{"min_lr", "0.002"}},
     "schedule.min_lr: expected at most the base rate 0.001, got 0.002"},
};

static struct sched_call call_of(const struct sched_class *schedule, double warmup, double total) {
    memset(values, 0, sizeof values);
    memset(state_of_schedule, 0, sizeof state_of_schedule);
    assert_int_equal(sched_values_standard(schedule, values), STATUS_OK);
    return (struct sched_call){.size = sizeof(struct sched_call),
                               .base_lr = 1e-3,
                               .warmup = warmup,
                               .total = total,
                               .values = values,
                               .state = state_of_schedule};
}

static void expect_text(const char *what, enum status status, const char *text) {
    const char *got = status == STATUS_OK ? "" : status_text();
    if (status != STATUS_OK && status != STATUS_INPUT) fail_msg("%s: status %d", what, (int)status);
    if (strcmp(got, text) != 0) fail_msg("%s:\nexpected \"%s\"\ngot      \"%s\"", what, text, got);
}

static void validate_refusals(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(refusals); i++) {
        const struct refusal *of = &refusals[i];
        const struct sched_class *schedule = sched_find(of->schedule);
        assert_non_null(schedule);
        const struct sched_call call = call_of(schedule, of->warmup, of->total);
        for (size_t k = 0; k < COUNT_OF(of->set) && of->set[k][0] != NULL; k++)
            if (sched_values_set(schedule, values, of->set[k][0], of->set[k][1]) != STATUS_OK)
                fail_msg("%s: %s", of->schedule, status_text());
        expect_text(of->schedule, schedule->validate(&call), of->text);
    }
}

/* VeOmni's multipliers are shares of lr, which it divides by; the others take a rate of 0, also
 * OLMo-core, whose floor of 0 is not below it. */
static void validate_a_rate_of_nothing(void **state) {
    (void)state;
    for (size_t i = 0; sched_classes()[i] != NULL; i++) {
        const struct sched_class *schedule = sched_classes()[i];
        if (strncmp(schedule->name, "veomni.", 7) != 0 &&
            strncmp(schedule->name, "olmo-core.c", 11) != 0)
            continue;
        struct sched_call call = call_of(schedule, 2.0, 10.0);
        call.base_lr = 0.0;
        if (sched_row(schedule, "stages") != NULL) continue;
        expect_text(schedule->name, schedule->validate(&call),
                    schedule->name[0] == 'v'
                        ? "optimizer.lr: VeOmni divides by it; expected above 0, got 0"
                        : "");
    }
}

/* The number beside x, on the side of `sign`. */
static double beside(double x, int sign) {
    uint64_t bits = real_bits_f64(x);
    if (x == 0.0) return sign * 0x1p-1074;
    bits += (x > 0.0) == (sign > 0) ? 1 : (uint64_t)-1;
    return real_from_bits_f64(bits);
}

/* Every key takes both of its bounds and nothing beyond, and says so with them; the least step is a
 * unit in the last place. */
static void verify_bounds_of_keys(void **state) {
    (void)state;
    size_t count = 0;
    for (size_t i = 0; sched_classes()[i] != NULL; i++) {
        const struct sched_class *schedule = sched_classes()[i];
        for (size_t k = 0; k < schedule->key_count; k++) {
            const struct key_row *row = &schedule->keys[k];
            if (row->type != KEY_REAL) continue;
            const double tried[4] = {row->low, row->high, beside(row->low, -1),
                                     beside(row->high, 1)};
            for (int t = 0; t < 4; t++) {
                char text[64], expected[320];
                snprintf(text, sizeof text, "%.17g", tried[t]);
                snprintf(expected, sizeof expected,
                         "%s: expected a number from %.17g to %.17g%s%s, got \"%s\"", row->path,
                         row->low, row->high, row->word == NULL ? "" : ", or ",
                         row->word == NULL ? "" : row->word, text);
                expect_text(row->path, sched_values_set(schedule, values, row->path, text),
                            t < 2 ? "" : expected);
                if (t < 2) {
                    double kept;
                    memcpy(&kept, (const char *)values + row->offset, sizeof kept);
                    assert_true(kept == tried[t]);
                }
                count++;
            }
        }
    }
    assert_true(count > 200);
}

/* A flag and a word, and what is said where a text is none of them. */
static void validate_words(void **state) {
    (void)state;
    static const struct {
        const char *schedule, *key, *value, *text;
    } words[] = {
        {"torch.one_cycle", "three_phase", "true", ""},
        {"torch.one_cycle", "three_phase", "false", ""},
        {"torch.one_cycle", "three_phase", "1", "three_phase: expected true or false, got \"1\""},
        {"torch.one_cycle", "anneal_strategy", "linear", ""},
        {"torch.one_cycle", "anneal_strategy", "line",
         "anneal_strategy: expected one of cos, linear, got \"line\""},
        {"hf.constant", "alpha", "1", "schedule constant has no parameter \"alpha\"; it has none"},
        {"hf.linear", "alpha", "1",
         "schedule linear has no parameter \"alpha\"; it has min_lr_ratio"},
    };
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        const struct sched_class *schedule = sched_find_in("hf", words[i].schedule);
        assert_non_null(schedule);
        (void)call_of(schedule, 0, 10);
        expect_text(words[i].value,
                    sched_values_set(schedule, values, words[i].key, words[i].value),
                    words[i].text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_refusals),
        cmocka_unit_test(validate_a_rate_of_nothing),
        cmocka_unit_test(verify_bounds_of_keys),
        cmocka_unit_test(validate_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

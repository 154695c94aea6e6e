/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Scenarios that name a shipped LR contract: the lengths of their arms in units of the counter, the
 * parameters of the schedule, and what is refused at which place. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/trainer/helper_train.h"
#include "trainer/schema_classes.h"

/* The scenario's section `schedule`, and the lines expected in the resolved arm. batch.size is 4
 * and batch.micro 2. */
static const struct {
    const char *schedule;
    const char *lines[4];
} numbers[] = {
    {"contract: hf, warmup_ratio: 0.07, total: 100",
     {"\nschedule.warmup: 8\n", "\nschedule.warmup_ratio: 0.07\n", "\nschedule.name: linear\n"}},
    {"contract: trl", {"\nschedule.contract: hf\n", "\nschedule.total: 6\n"}},
    {"contract: open-instruct-dpo, warmup_ratio: 0.1, total: 25",
     {"\nschedule.warmup: 2\n", "\nschedule.name: olmo-core.linear\n",
      "\nschedule.min_lr_ratio: 0\n"}},
    {"contract: olmo-core, total: 25", {"\nschedule.min_lr_ratio: 0\n"}},
    {"contract: olmo-core, name: cosine, total: 25", {"\nschedule.min_lr_ratio: 0.1\n"}},
    {"contract: open-instruct-dpo, total: 25, min_lr_ratio: 0.3",
     {"\nschedule.min_lr_ratio: 0.3\n"}},
    {"contract: open-instruct-dpo, name: cosine", {"\nschedule.min_lr_ratio: 0.1\n"}},
    {"contract: megatron, warmup_ratio: 0.1, total: 25",
     {"\nschedule.warmup: 10\n", "\nschedule.total: 100\n", "\nschedule.increment: 4\n",
      "\nschedule.warmup_rounding: none\n"}},
    {"contract: megatron, warmup_ratio: 0.1, total: 6",
     {"\nschedule.warmup: 2.4000000000000004\n", "\nschedule.total: 24\n"}},
    {"contract: megatron, name: wsd, total: 25, decay: 5", {"\nschedule.decay: 20\n"}},
    {"contract: accelerate, processes: 8, warmup: 3, total: 10",
     {"\nschedule.warmup: 24\n", "\nschedule.total: 80\n", "\nschedule.increment: 8\n"}},
    {"contract: accelerate, processes: 8, rescaled: warmup, warmup: 3, total: 10",
     {"\nschedule.warmup: 24\n", "\nschedule.total: 10\n"}},
    {"contract: per-micro-batch, warmup: 3, total: 10",
     {"\nschedule.warmup: 3\n", "\nschedule.total: 10\n", "\nschedule.increment: 2\n"}},
    {"contract: lightning-epoch, updates_per_epoch: 4, warmup: 2, total: 10",
     {"\nschedule.warmup: 0.5\n", "\nschedule.total: 3\n", "\nschedule.increment: 1\n"}},
    {"contract: deepspeed-warmup, total: 10",
     {"\nschedule.shift: -1\n", "\nschedule.start: min\n",
      "\nschedule.name: deepspeed.warmup_decay\n"}},
};

static void validate_numbers(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    const struct schema *schema;
    assert_int_equal(schema_with_classes(&arena, &schema), STATUS_OK);
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        struct config config;
        char *text;
        helper_config(6, &config, "batch: {size: 4, micro: 2}, schedule: {%s}",
                      numbers[i].schedule);
        assert_int_equal(config_text(schema, &config, &arena, &text), STATUS_OK);
        for (size_t k = 0; k < COUNT_OF(numbers[i].lines) && numbers[i].lines[k] != NULL; k++)
            if (strstr(text, numbers[i].lines[k]) == NULL)
                fail_msg("%s: no line %sin%s", numbers[i].schedule, numbers[i].lines[k],
                         strstr(text, "\nschedule."));
    }
    arena_close(&arena);
}

static const struct {
    const char *schedule; /* section of the scenario */
    enum status status;
    const char *message; /* part of it */
} refusals[] = {
    {"contract: olmo-cor", STATUS_INPUT, "got \"olmo-cor\"; did you mean olmo-core?"},
    {"contract: olmo-core-tokens", STATUS_UNSUPPORTED,
     "schedule.contract: no training here obeys contract olmo-core-tokens: it counts tokens, and "
     "updates here have unequal numbers of them"},
    {"contract: hf, start: base", STATUS_INPUT,
     "schedule.start: schedule.contract hf (line 3) sets it to f0; give a contract or a loop, not "
     "both"},
    {"contract: accelerate, increment: 2", STATUS_INPUT,
     "schedule.increment: schedule.contract accelerate (line 3) sets it to schedule.processes; "},
    {"contract: accelerate, processes: 2}, parallel: {ranks: 4}, numerics: {shards: 4",
     STATUS_INPUT,
     "schedule.processes: 2 contradicts parallel.ranks 4, which train; leave it out, or write "
     "auto"},
    {"contract: per-micro-batch}, parallel: {ranks: 3}, numerics: {shards: 4}, batch: {micro: 1",
     STATUS_INPUT,
     "f.yaml:3:67: error: parallel.ranks: contract per-micro-batch counts the micro-batches of one "
     "rank, so expected ranks that have equally many, as a divisor of numerics.shards (4) and of "
     "batch.size (8) gives, got 3, whose rank 0 has 2 micro-batches and rank 2 has 4"},
    /* One shard is no number that anything has to divide. */
    {"contract: per-micro-batch}, parallel: {ranks: 5}, numerics: {shards: 1}, batch: {micro: 1",
     STATUS_INPUT,
     "rank, so expected ranks that have equally many, as a divisor of batch.size (8) gives, got 5, "
     "whose rank 0 has "},
    /* P divides V, but not the samples: 3 and 2. */
    {"contract: per-micro-batch}, parallel: {ranks: 2}, numerics: {shards: 4}, batch: {size: 5, "
     "micro: 1",
     STATUS_INPUT, "got 2, whose rank 0 has 3 micro-batches and rank 1 has 2"},
    /* What other checks refuse keeps their words. */
    {"contract: per-micro-batch}, parallel: {ranks: 3}, numerics: {shards: 2}, batch: {micro: 1",
     STATUS_INPUT, "parallel.ranks: expected at most numerics.shards (2), got 3"},
    {"contract: hf, processes: 2", STATUS_INPUT,
     "schedule.processes: schedule.contract hf (line 3) sets it to 1; "},
    {"contract: llmc, total: 4", STATUS_INPUT,
     "f.yaml:3:44: error: schedule.total: contract llmc aborts after its last update, 4; the "
     "scenario trains 6"},
    {"contract: lightning-epoch, total: 6", STATUS_INPUT,
     "schedule.updates_per_epoch: lightning-epoch counts epochs; expected updates per epoch"},
    {"contract: hf, warmup: 2.5", STATUS_INPUT,
     "f.yaml:3:43: error: schedule.warmup: hf counts whole updates, got 2.5; a share of the total "
     "is schedule.warmup_ratio"},
    {"contract: megatron, name: linear, warmup: 7, total: 6", STATUS_INPUT, "schedule.warmup"},
    {"contract: hf, name: wsd", STATUS_INPUT,
     "schedule.name: contract hf has no schedule \"wsd\"; it has constant, linear, cosine, "},
    {"contract: olmo-core, lr_end: 1", STATUS_INPUT, "schedule.lr_end belongs to polynomial; "},
};

static void validate_refusals(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    const struct schema *schema;
    assert_int_equal(schema_with_classes(&arena, &schema), STATUS_OK);
    for (size_t i = 0; i < COUNT_OF(refusals); i++) {
        char text[512];
        struct scenario *scenario;
        int length =
            snprintf(text, sizeof text, "twinstep: 1\nsteps: 6\ncommon: {schedule: {%s}}\n",
                     refusals[i].schedule);
        enum status status =
            scenario_parse(&arena, schema, "f.yaml", text, (size_t)length, NULL, 0, &scenario);
        if (status != refusals[i].status || strstr(status_text(), refusals[i].message) == NULL)
            fail_msg("%s: status %d, %s", refusals[i].schedule, (int)status,
                     status == STATUS_OK ? "accepted" : status_text());
    }
    arena_close(&arena);
}

/* The epochs of the data are not as long as the contract was told, which must be refused. */
static void validate_epochs(void **state) {
    (void)state;
    struct config config;
    struct arena arena = ARENA_EMPTY;
    struct dataset dataset;
    struct run run;
    helper_config(6, &config,
                  "schedule: {contract: lightning-epoch, total: 6, "
                  "updates_per_epoch: 3}, data: {max_len: 16}, batch: {size: 4, micro: 2}, "
                  "model: {layers: 1, hidden: 16, heads: 2, mlp: 20, vocab: 19}");
    helper_ids_open(&config, 8, 20, 16, &arena, &dataset);
    struct run_options options = {.steps = 6};
    assert_int_equal(run_open_at(&config, &dataset, &options, &run), STATUS_INPUT);
    assert_string_equal(status_text(),
                        "schedule.updates_per_epoch: an epoch of this data has 5 updates, got 3; "
                        "contract lightning-epoch counts them");
    arena_close(&arena);
}

/* Processes are the ranks that train. A contract's loop joins them first, in the arm with one rank
 * as well, so that the arms have one loop; and ranks have micro-batches of their own. */
static void validate_ranks(void **state) {
    static const char text[] =
        "twinstep: 1\nsteps: 6\n"
        "common: {schedule: {contract: accelerate, total: 6}, numerics: {shards: 4}}\n"
        "arms: {one: {}, four: {parallel: {ranks: 4}}}\n";
    struct arena arena = ARENA_EMPTY;
    const struct schema *schema;
    struct scenario *scenario;
    (void)state;
    assert_int_equal(schema_with_classes(&arena, &schema), STATUS_OK);
    assert_int_equal(
        scenario_parse(&arena, schema, "f.yaml", text, sizeof text - 1, NULL, 0, &scenario),
        STATUS_OK);
    const struct config *const one = &scenario->arms[0].config, *const four =
                                                                    &scenario->arms[1].config;
    assert_int_equal(one->schedule.processes, 1);
    assert_int_equal(four->schedule.processes, 4);
    assert_true(four->schedule.increment == 4 && one->schedule.increment == 1);
    assert_int_equal(one->loop.update.item[0], PHASE_REDUCE);
    assert_memory_equal(&one->loop.update, &four->loop.update, sizeof one->loop.update);
    assert_int_equal(loop_check(four, NULL), STATUS_OK);
    arena_close(&arena);
}

/* A contract that counts micro-batches counts those of each rank, where all have equally many:
 * ranks of 2, 2 and 4 samples have one of up to 4 each. */
static void validate_micros_of_ranks(void **state) {
    static const struct {
        uint64_t ranks, micro, increment;
    } cases[] = {{1, 1, 8}, {2, 1, 4}, {4, 1, 2}, {4, 2, 1}, {3, 4, 1}};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct config config;
        helper_config(6, &config,
                      "schedule: {contract: per-micro-batch}, parallel: {ranks: %u}, numerics: "
                      "{shards: 4}, batch: {size: 8, micro: %u}",
                      (unsigned)cases[i].ranks, (unsigned)cases[i].micro);
        assert_int_equal(config.schedule.increment, cases[i].increment);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_numbers),         cmocka_unit_test(validate_refusals),
        cmocka_unit_test(validate_epochs),          cmocka_unit_test(validate_ranks),
        cmocka_unit_test(validate_micros_of_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

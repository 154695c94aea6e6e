/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * Three golden tables of learning rates: (a) linear without a warm-up, (b) linear and its relatives
 * with one, (c) cosine. Their numbers were computed by a script from the formulas and the order of
 * calls of each framework's source at the commits that sched/contract_table.c names. Every row is
 * asked of the contract of that framework and must agree to the last printed digit, one update past
 * the end where that is printed. */
#include "sched/contract.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/macro.h"
#include "base/real.h"

enum table { TABLE_A, TABLE_B, TABLE_C };

static const struct table_numbers {
    double lr, warmup, unit;
    uint64_t steps;
} tables[] = {[TABLE_A] = {5e-7, 0, 1e-7, 5},
              [TABLE_B] = {1e-3, 3, 1e-3, 10},
              [TABLE_C] = {1e-3, 2, 1e-3, 10}};

/* The fields of the request that a row sets. What is not given keeps its default. */
struct more {
    double floor; /* min_lr_ratio; 0 stands for "not given", -1 for 0 */
    uint64_t processes, accumulate, per_epoch, steps, batch;
    int32_t rescaled;
    const char *key, *text;
};

static const struct golden {
    int table;
    const char *contract, *schedule, *row;
    struct more more;
} goldens[] = {
    {TABLE_A, "hf", "linear", "5 4 3 2 1 0", {.floor = 0}},
    {TABLE_A, "trl", "linear", "5 4 3 2 1 0", {.floor = 0}},
    {TABLE_A, "hf-4.50", "linear", "5 4 3 2 1 0", {.floor = 0}},
    {TABLE_A, "open-instruct-tune-cache", "linear", "5 4 3 2 1 0", {.floor = 0}},
    {TABLE_A, "open-instruct-tune-cache", "linear", "5 4 3 2 1 0", {.processes = 8}},
    {TABLE_A, "lightning-step", "linear", "5 4 3 2 1 0", {.floor = 0}},
    {TABLE_A, "accelerate", "linear", "5 4 3 2 1 0", {.floor = 0}},
    {TABLE_A, "accelerate-split-batches", "linear", "5 4 3 2 1 0", {.processes = 8}},
    {TABLE_A, "megatron", "linear", "5 4 3 2 1 0", {.batch = 64}},
    {TABLE_A, "megatron-bridge", "linear", "5 4 3 2 1 0", {.batch = 64}},
    {TABLE_A, "nemo-rl-dtensor", "linear", "5 4 3 2 1 0", {.floor = 0}},
    {TABLE_A, "nemo-rl-megatron", "linear", "5 4 3 2 1 0", {.batch = 64}},
    {TABLE_A, "deepspeed-torch", "linear", "5 4 3 2 1 0", {.floor = 0}},
    {TABLE_A, "step-then-set-f0", "linear", "5 4 3 2 1 0", {.floor = 0}},
    {TABLE_A, "olmo-core", "linear", "4 3 2 1 0 0", {.floor = 0}},
    {TABLE_A, "open-instruct-dpo", "linear", "4 3 2 1 0 0", {.floor = 0}},
    {TABLE_A, "olmo-core", "linear", "4.1 3.2 2.3 1.4 0.5 0.5", {.floor = 0.1}},
    {TABLE_A, "open-instruct-h17", "linear", "5 4 3 2 1 0", {.floor = 0}},
    {TABLE_A, "open-instruct-h17-h25", "linear", "0 4 3 2 1 0", {.floor = 0}},
    {TABLE_A,
     "accelerate",
     "linear",
     "5 3 1 0 0 0",
     {.processes = 2, .rescaled = CONTRACT_RESCALED_NONE}},
    {TABLE_A, "hf-x-processes", "linear", "5 3 1 0 0 0", {.processes = 2}},
    {TABLE_A,
     "accelerate",
     "linear",
     "5 0 0 0 0 0",
     {.processes = 8, .rescaled = CONTRACT_RESCALED_NONE}},
    {TABLE_A,
     "accelerate",
     "linear",
     "5 4 3 2 1 0",
     {.processes = 2, .rescaled = CONTRACT_RESCALED_TOTAL}},
    {TABLE_A, "accelerate", "linear", "5 4 3 2 1 0", {.processes = 2}},
    {TABLE_A, "per-micro-batch", "linear", "5 3 1 0 0 0", {.accumulate = 2}},
    {TABLE_A, "lag1", "linear", "5 5 4 3 2 1", {.floor = 0}},
    {TABLE_A, "torchtitan", "linear", "5 4 3 2 1", {.floor = 0}},
    {TABLE_A, "llmc", "linear", "5 4 3 2 1 assert", {.floor = 0}},
    {TABLE_A, "veomni", "linear", "5 4 3 2 1 1", {.floor = 0}},
    {TABLE_A,
     "deepspeed-warmup",
     "warmup_decay",
     "0 0 2.5 5 3.3333 1.6667",
     {.key = "warmup_type", .text = "linear"}},
    {TABLE_A, "deepspeed-warmup", "warmup_decay", "0 0 5 5 3.3333 1.6667", {.floor = 0}},
    {TABLE_A, "deepspeed-warmup-old", "warmup_decay", "5 0 5 5 3.3333 1.6667", {.floor = 0}},
    {TABLE_A,
     "lightning-epoch",
     "linear",
     "5 5 5 5 5 5",
     {.per_epoch = 6, .rescaled = CONTRACT_RESCALED_NONE}},
    {TABLE_A,
     "lightning-epoch",
     "linear",
     "5 5 4 4 3 3",
     {.per_epoch = 2, .rescaled = CONTRACT_RESCALED_NONE}},
    {TABLE_A, "lightning-epoch", "linear", "5 5 4 4 3 3", {.per_epoch = 2, .steps = 10}},
    {TABLE_A,
     "open-instruct-dpo",
     "linear",
     "4.98188 4.96377 4.94565 4.92754 4.90942 4.89130",
     {.steps = 276}},
    {TABLE_B,
     "hf",
     "linear",
     "0 .333333 .666667 1 .857143 .714286 .571429 .428571 .285714 .142857",
     {.floor = 0}},
    {TABLE_B,
     "megatron",
     "linear",
     "0 .333333 .666667 1 .857143 .714286 .571429 .428571 .285714 .142857",
     {.batch = 48}},
    {TABLE_B,
     "veomni",
     "linear",
     "0 .333333 .666667 1 .857143 .714286 .571429 .428571 .285714 .142857",
     {.floor = 0}},
    {TABLE_B,
     "accelerate",
     "linear",
     "0 .333333 .666667 1 .857143 .714286 .571429 .428571 .285714 .142857",
     {.processes = 2}},
    {TABLE_B,
     "olmo-core",
     "linear",
     ".333333 .666667 1 .857143 .714286 .571429 .428571 .285714 .142857 0",
     {.floor = -1}},
    {TABLE_B,
     "olmo-core-tokens",
     "linear",
     ".333333 .666667 1 .857143 .714286 .571429 .428571 .285714 .142857 0",
     {.floor = -1}},
    {TABLE_B,
     "olmo-core",
     "linear",
     ".333333 .666667 1 .871429 .742857 .614286 .485714 .357143 .228571 .1",
     {.floor = 0.1}},
    {TABLE_B,
     "olmo-core",
     "wsd",
     ".333333 .666667 1 1 1 1 1 .666667 .333333 0",
     {.key = "decay", .text = "3"}},
    {TABLE_B,
     "torchtitan",
     "linear",
     ".333333 .666667 1 1 .857143 .714286 .571429 .428571 .285714 .142857",
     {.floor = 0}},
    {TABLE_B,
     "llmc",
     "linear",
     ".333333 .666667 1 1 .857143 .714286 .571429 .428571 .285714 .142857",
     {.floor = 0}},
    {TABLE_B,
     "open-instruct-h17",
     "linear",
     "1 .333333 .666667 1 .857143 .714286 .571429 .428571 .285714 .142857",
     {.floor = 0}},
    {TABLE_B,
     "accelerate",
     "linear",
     "0 .666667 .857143 .571429 .285714 0 0 0 0 0",
     {.processes = 2, .rescaled = CONTRACT_RESCALED_NONE}},
    {TABLE_B,
     "accelerate",
     "linear",
     "0 .666667 .941176 .823529 .705882 .588235 .470588 .352941 .235294 .117647",
     {.processes = 2, .rescaled = CONTRACT_RESCALED_TOTAL}},
    {TABLE_B,
     "deepspeed-warmup",
     "warmup_decay",
     "0 0 .333333 .666667 1 .857143 .714286 .571429 .428571 .285714",
     {.key = "warmup_type", .text = "linear"}},
    {TABLE_B,
     "deepspeed-warmup",
     "warmup_decay",
     "0 0 .630930 1 1 .857143 .714286 .571429 .428571 .285714",
     {.floor = 0}},
    {TABLE_B,
     "deepspeed-warmup-old",
     "warmup_decay",
     "1 0 .630930 1 1 .857143 .714286 .571429 .428571 .285714",
     {.floor = 0}},
    {TABLE_B, "deepspeed-warmup", "warmup", "0 0 .630930 1 1 1 1 1 1 1", {.floor = 0}},
    {TABLE_B, "hf", "constant_with_warmup", "0 .333333 .666667 1 1 1 1 1 1 1", {.floor = 0}},
    {TABLE_B,
     "hf",
     "polynomial",
     "0 .333333 .666667 1 .857157 .714314 .571471 .428629 .285786 .142943",
     {.floor = 0}},
    {TABLE_B,
     "hf",
     "inverse_sqrt",
     "0 .333333 .666667 1 .866025 .774597 .707107 .654654 .612372 .577350",
     {.floor = 0}},
    {TABLE_C,
     "hf",
     "cosine",
     "0 .5 1 .961940 .853553 .691342 .5 .308658 .146447 .0380602",
     {.floor = 0}},
    {TABLE_C,
     "torchtune",
     "cosine",
     "0 .5 1 .961940 .853553 .691342 .5 .308658 .146447 .0380602",
     {.floor = 0}},
    {TABLE_C,
     "open-instruct-tune-cache",
     "cosine",
     "0 .5 1 .961940 .853553 .691342 .5 .308658 .146447 .0380602",
     {.processes = 4}},
    {TABLE_C,
     "hf",
     "cosine_with_min_lr",
     "0 .5 1 .965746 .868198 .722208 .55 .377792 .231802 .134254",
     {.floor = 0.1}},
    {TABLE_C,
     "megatron",
     "cosine",
     "0 .5 1 .965746 .868198 .722208 .55 .377792 .231802 .134254",
     {.key = "min_lr", .text = "1e-4", .batch = 16}},
    {TABLE_C,
     "veomni",
     "cosine",
     "0 .5 1 .965746 .868198 .722208 .55 .377792 .231802 .134254",
     {.floor = 0.1}},
    {TABLE_C,
     "hf",
     "cosine_warmup_with_min_lr",
     ".5 1 .965746 .868198 .722208 .55 .377792 .231802 .134254 .1",
     {.floor = 0.1}},
    {TABLE_C,
     "olmo-core",
     "cosine",
     ".5 1 .965746 .868198 .722208 .55 .377792 .231802 .134254 .1",
     {.floor = 0}},
    {TABLE_C,
     "open-instruct-dpo",
     "cosine",
     ".5 1 .965746 .868198 .722208 .55 .377792 .231802 .134254 .1",
     {.floor = 0}},
    {TABLE_C,
     "torchtitan",
     "cosine",
     ".5 1 1 .965746 .868198 .722208 .55 .377792 .231802 .134254",
     {.floor = 0.1}},
    {TABLE_C,
     "llmc",
     "cosine",
     ".5 1 1 .965746 .868198 .722208 .55 .377792 .231802 .134254",
     {.floor = 0.1}},
    {TABLE_C,
     "deepspeed-cosine",
     "warmup_cosine",
     "0 0 .5 .965746 .868198 .722208 .55 .377792 .231802 .134254",
     {.floor = 0.1, .key = "warmup_type", .text = "linear"}},
    {TABLE_C,
     "hf",
     "cosine_with_restarts",
     "0 .5 1 .853553 .5 .146447 1 .853553 .5 .146447",
     {.key = "num_cycles", .text = "2"}},
    {TABLE_C,
     "accelerate",
     "cosine",
     "0 1 .853553 .5 .146447 0 .146447 .5 .853553 1",
     {.processes = 2, .rescaled = CONTRACT_RESCALED_NONE}},
};

static struct contract_request request_of(const struct golden *g) {
    struct contract_request r;
    contract_request_init(&r);
    r.contract = contract_find(g->contract);
    assert_non_null(r.contract);
    r.schedule = g->schedule;
    r.lr = tables[g->table].lr;
    r.warmup = tables[g->table].warmup;
    r.steps = g->more.steps == 0 ? tables[g->table].steps : g->more.steps;
    if (g->more.floor != 0.0) r.min_lr_ratio = g->more.floor < 0.0 ? 0.0 : g->more.floor;
    r.processes = g->more.processes;
    r.accumulate = g->more.accumulate;
    r.updates_per_epoch = g->more.per_epoch;
    r.global_batch = g->more.batch;
    r.rescaled = g->more.rescaled;
    r.tokens = 4096;
    if (g->more.key != NULL) {
        r.values[0].key = g->more.key;
        r.values[0].text = g->more.text;
        r.value_count = 1;
    }
    return r;
}

/* Prints with as many decimals as the table shows. */
static void check_cell(const struct golden *g, unsigned k, const char *cell, double lr) {
    char text[64];
    const char *dot = strchr(cell, '.');
    const int decimals = dot == NULL ? 0 : (int)strlen(dot + 1);
    if (strcmp(cell, "assert") == 0) {
        if (lr == lr) fail_msg("%s, %s, k = %u: expected no LR", g->contract, g->schedule, k);
        return;
    }
    snprintf(text, sizeof text, "%.*f", decimals, lr / tables[g->table].unit);
    const char *shown = cell[0] == '.' && text[0] == '0' ? text + 1 : text;
    if (strcmp(shown, cell) != 0)
        fail_msg("%s, %s, table %d, k = %u: expected %s, got %s", g->contract, g->schedule,
                 g->table, k, cell, shown);
}

static void validate_golden_tables(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(goldens); i++) {
        const struct golden *g = &goldens[i];
        const struct contract_request request = request_of(g);
        struct arena arena = ARENA_EMPTY;
        struct contract_plan plan;
        char row[128];
        unsigned k = 0;
        if (contract_resolve(&request, &arena, &plan) != STATUS_OK)
            fail_msg("%s, %s: %s", g->contract, g->schedule, status_text());
        snprintf(row, sizeof row, "%s", g->row);
        char *rest = NULL;
        for (char *cell = strtok_r(row, " ", &rest); cell != NULL;
             cell = strtok_r(NULL, " ", &rest)) {
            ++k;
            check_cell(g, k, cell, contract_applied(&plan, k));
        }
        assert_true(k >= 5);
        arena_close(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(validate_golden_tables)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

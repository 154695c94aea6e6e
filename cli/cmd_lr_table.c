/* SPDX-License-Identifier: Apache-2.0
 * twinstep lr table: prints the LR that a framework applies and the one that it logs, update by
 * update. */
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "cli/json.h"
#include "cli/lr_options.h"
#include "cli/verb.h"

#define COUNT_LIMIT 10000000u

enum { KEY_CONTRACT = KEY_OWN, KEY_COUNT, KEY_CSV };

struct table {
    struct contract_plan plan;
    uint64_t count;
    double *applied, *logged;
};

/* Returns the name as --schedule takes it: without its prefix if the contract's own family has the
 * schedule. */
static const char *name_of(const struct contract_plan *plan) {
    const char *bare = sched_bare_name(plan->schedule);
    return sched_find_in(plan->contract->family, bare) == plan->schedule ? bare
                                                                         : plan->schedule->name;
}

/* Names are put into JSON as they are: all are plain ASCII. */
static void print_json(const struct table *table) {
    printf("{\n  \"contract\": \"%s\",\n  \"schedule\": \"%s\",\n", table->plan.contract->name,
           name_of(&table->plan));
    fputs("  ", stdout);
    json_print_reals("applied", table->applied, table->count);
    fputs(",\n  ", stdout);
    json_print_reals("logged", table->logged, table->count);
    puts("\n}");
}

static void print_csv(const struct table *table) {
    puts("update,lr_applied,lr_logged");
    for (uint64_t i = 0; i < table->count; i++)
        printf("%llu,%s,%s\n", (unsigned long long)(i + 1), number_text_f64(table->applied[i]).text,
               number_text_f64(table->logged[i]).text);
}

static int is_skipped(const struct contract_plan *plan, uint64_t k) {
    for (size_t i = 0; i < plan->skipped_count; i++)
        if (plan->skipped[i] == k) return 1;
    return 0;
}

static const char *note_of(const struct contract_plan *plan, uint64_t k) {
    if (is_skipped(plan, k)) return "skipped";
    if (k <= plan->steps) return "";
    return plan->contract->past_end == CONTRACT_PAST_ABORT ? "aborts" : "past the end";
}

static void print_text(const struct table *table) {
    const struct contract_plan *plan = &table->plan;
    printf("%s, %s: %s\n", plan->contract->name, plan->schedule->name, plan->contract->help);
    printf("evidence: %s (%s)\n", contract_evidence_name(plan->contract->evidence),
           plan->contract->source);
    /* Ten digits leave out the rounding of a share of the total: 0.07 * 700 is not 49. A large
     * warm-up needs the sixteen of 2^53 to be printed whole. */
    printf("total %llu updates, warm-up %.*g updates\n\n", (unsigned long long)plan->steps,
           plan->warmup_updates < 1e9 ? 10 : 16, plan->warmup_updates);
    printf("%8s  %-24s %s\n", "update", "applied", "logged");
    for (uint64_t i = 0; i < table->count; i++) {
        const char *note = note_of(plan, i + 1);
        printf("%8llu  %-24s %s%s%s\n", (unsigned long long)(i + 1),
               number_text_f64(table->applied[i]).text, number_text_f64(table->logged[i]).text,
               note[0] == '\0' ? "" : "  ", note);
    }
}

static enum status fill(struct cli *cli, const struct options *options, struct table *table) {
    struct contract_request request;
    const char *name = options_value(options, KEY_CONTRACT);
    TRY(lr_options_read(options, &cli->arena, &request));
    if (name == NULL)
        FAIL(STATUS_INPUT, "--contract: expected a name, got none; see twinstep list contracts");
    TRY(lr_contract("--contract", name, &request.contract));
    TRY(contract_resolve(&request, &cli->arena, &table->plan));
    table->count = table->plan.steps;
    TRY(lr_option_count(options, KEY_COUNT, "--count", &table->count));
    if (table->count > COUNT_LIMIT)
        FAIL(STATUS_INPUT, "--count: expected at most %u updates, got %llu", COUNT_LIMIT,
             (unsigned long long)table->count);
    TRY(arena_take(&cli->arena, table->count, sizeof(double), "LR table", &table->applied));
    TRY(arena_take(&cli->arena, table->count, sizeof(double), "LR table", &table->logged));
    contract_columns(&table->plan, table->count, table->applied, table->logged);
    return STATUS_OK;
}

static enum status run(struct cli *cli, const struct options *options, int *out_exit) {
    struct table table;
    memset(&table, 0, sizeof table);
    if (options->json && options_given(options, KEY_CSV))
        FAIL(STATUS_INPUT, "--json and --csv: expected one of them, got both");
    TRY(fill(cli, options, &table));
    *out_exit = EXIT_AS_EXPECTED;
    if (options->json)
        print_json(&table);
    else if (options_given(options, KEY_CSV))
        print_csv(&table);
    else
        print_text(&table);
    return STATUS_OK;
}

static const struct argp_option option_rows[] = {
    OPTION("contract", KEY_CONTRACT, "C", "Framework (twinstep list contracts)"),
    LR_OPTION_ROWS,
    OPTION("count", KEY_COUNT, "N", "Updates to print; default is the total"),
    OPTION_JSON,
    OPTION("csv", KEY_CSV, NULL, "Print as CSV"),
    OPTIONS_END};

const struct verb verb_lr_table = {
    .name = "lr table",
    .brief = "the LR that a framework applies and the one it logs, update by update",
    .arguments = "",
    .text = "Prints, for every update, the learning rate that the optimizer uses and the one that "
            "the log shows. They differ in real frameworks.\v"
            "Example: twinstep lr table --contract hf --schedule linear --lr 5e-7 --steps 5",
    .options = option_rows,
    .run = run,
};

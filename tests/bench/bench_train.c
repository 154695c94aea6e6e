/* SPDX-License-Identifier: Apache-2.0
 * Tokens per second of whole updates (fetch to zero, records included) at three sizes, for 1 and 2
 * threads, invariant and shuffled. Not a test: prints a table. Figures: docs/measurements/train.md.
 * Sequences come from builtin:devil (SFT) and builtin:quiz (DPO); tokens are real tokens.
 *
 *     bench_train [--short]
 *     bench_train --one NAME UPDATES KEY=VALUE...
 *
 * --one trains one configuration without records, as a product would, and prints one line of fields
 * with tabs between: NAME, parameters, tokens of an update, median and best seconds of an update
 * behind the first. Exit status 1 when it cannot run: the line is NAME, "-" and the reason. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "trainer/experiment.h"

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

struct size_row {
    const char *name;
    const char *overrides[10];
};

static const struct size_row sizes[] = {
    {"dpo L2 C64 batch 8", {"common.task=dpo", "common.batch.size=8", "common.data.max_len=96"}},
    {"sft L4 C256 V8192 batch 16",
     {"common.task=sft", "common.model.layers=4", "common.model.hidden=256", "common.model.heads=4",
      "common.model.mlp=688", "common.model.vocab=8192", "common.batch.size=16",
      "common.data.max_len=256"}},
    {"sft L12 C768 V50257 batch 4",
     {"common.task=sft", "common.model.layers=12", "common.model.hidden=768",
      "common.model.heads=12", "common.model.mlp=2048", "common.model.vocab=50257",
      "common.batch.size=4", "common.data.max_len=256"}},
};

static const struct size_row modes[] = {
    {"1 thread", {"common.numerics.threads=1"}},
    {"2 threads", {"common.numerics.threads=2"}},
    {"2 threads, shuffled",
     {"common.numerics.threads=2", "common.numerics.mode=shuffled",
      "common.numerics.order_seed=1"}},
};

static size_t add_overrides(const struct size_row *row, const char **out, size_t count) {
    for (size_t i = 0; i < COUNT_OF(row->overrides) && row->overrides[i] != NULL; i++)
        out[count++] = row->overrides[i];
    return count;
}

static enum status open_bench(const char *const *overrides, size_t count, struct arena *arena,
                              const struct config **out, struct dataset *dataset) {
    static const char text[] = "twinstep: 1\nname: bench\nsteps: 64\n";
    const struct schema *schema;
    struct scenario *scenario;
    TRY(experiment_schema(arena, &schema));
    TRY(scenario_parse(arena, schema, "bench", text, sizeof text - 1, overrides, count, &scenario));
    *out = &scenario->arms[0].config;
    struct dataset_options source = run_dataset_options(*out);
    return dataset_open(&source, arena, dataset);
}

#define MOST_UPDATES 1000

/* Smaller ones first. */
static void insert(double *sorted, size_t count, double x) {
    for (; count > 0 && sorted[count - 1] > x; count--)
        sorted[count] = sorted[count - 1];
    sorted[count] = x;
}

static enum status train_one(const char *name, uint64_t updates, const char *const *overrides,
                             size_t count, struct arena *arena) {
    double times[MOST_UPDATES];
    const struct config *config;
    struct dataset dataset;
    struct run run;
    if (updates < 2 || updates > MOST_UPDATES)
        FAIL(STATUS_INPUT, "updates: expected 2 to %d", MOST_UPDATES);
    TRY(open_bench(overrides, count, arena, &config, &dataset));
    const struct run_options options = {.steps = updates, .order_seed = 1};
    TRY(run_open(config, &dataset, &options, &run));
    for (uint64_t i = 0; i < updates; i++) {
        const struct record *record;
        const double start = seconds();
        const enum status status = run_step(&run, &record);
        if (status != STATUS_OK) {
            run_close(&run);
            return status;
        }
        if (i > 0) insert(times, (size_t)i - 1, seconds() - start);
    }
    printf("%s\t%.0f\t%.0f\t%.6g\t%.6g\n", name, (double)run.table.elements,
           (double)run.plan.tokens, times[(updates - 1) / 2], times[0]);
    run_close(&run);
    return STATUS_OK;
}

static int one(int argc, char **argv) {
    struct arena arena = ARENA_EMPTY;
    const char *const *overrides = (const char *const *)(void *)(argv + 2);
    const uint64_t updates = strtoull(argv[1], NULL, 10);
    const enum status status = train_one(argv[0], updates, overrides, (size_t)argc - 2, &arena);
    if (status != STATUS_OK) printf("%s\t-\t%s\n", argv[0], status_text());
    arena_close(&arena);
    return status == STATUS_OK ? 0 : 1;
}

static enum status measure(const struct size_row *size, const struct size_row *mode, uint64_t steps,
                           struct arena *arena) {
    const char *overrides[20];
    size_t count = add_overrides(mode, overrides, add_overrides(size, overrides, 0));
    const struct config *config;
    struct dataset dataset;
    TRY(open_bench(overrides, count, arena, &config, &dataset));
    struct run_options options = {.tensors = 1, .phases = 1, .steps = steps, .order_seed = 1};
    struct run run;
    TRY(run_open(config, &dataset, &options, &run));
    double best = 0.0, parameters = (double)run.table.elements;
    for (uint64_t i = 0; i < steps; i++) {
        const struct record *record;
        double start = seconds();
        TRY(run_step(&run, &record));
        double rate = (double)run.plan.tokens / (seconds() - start);
        if (rate > best) best = rate;
    }
    printf("%-30s %-22s %9.2f M parameters %10.0f tokens/s %8.1f GFLOP/s\n", size->name, mode->name,
           parameters / 1e6, best, 6.0 * parameters * best / 1e9);
    fflush(stdout);
    run_close(&run);
    return STATUS_OK;
}

int main(int argc, char **argv) {
    if (argc > 3 && strcmp(argv[1], "--one") == 0) return one(argc - 2, argv + 2);
    uint64_t most = argc > 1 && strcmp(argv[1], "--short") == 0 ? 2 : 0;
    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
        for (size_t m = 0; m < COUNT_OF(modes); m++) {
            static const uint64_t steps[] = {40, 8, 3};
            struct arena arena = ARENA_EMPTY;
            enum status status = measure(&sizes[s], &modes[m], most != 0 ? most : steps[s], &arena);
            if (status != STATUS_OK) printf("%s: %s\n", sizes[s].name, status_text());
            arena_close(&arena);
        }
    }
    return 0;
}

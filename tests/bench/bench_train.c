/* SPDX-License-Identifier: Apache-2.0
 * Tokens per second of whole updates (fetch to zero, records included) at three sizes, for 1 and 2
 * threads, invariant and shuffled. Not a test: prints a table. Figures: docs/measurements/train.md.
 * Sequences come from builtin:devil (SFT) and builtin:quiz (DPO); tokens are real tokens. */
#include <stdio.h>
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

static enum status measure(const struct size_row *size, const struct size_row *mode, uint64_t steps,
                           struct arena *arena) {
    static const char text[] = "twinstep: 1\nname: bench\nsteps: 64\n";
    const char *overrides[20];
    size_t count = add_overrides(mode, overrides, add_overrides(size, overrides, 0));
    const struct schema *schema;
    struct scenario *scenario;
    TRY(experiment_schema(arena, &schema));
    TRY(scenario_parse(arena, schema, "bench", text, sizeof text - 1, overrides, count, &scenario));
    const struct config *config = &scenario->arms[0].config;
    struct dataset_options source = run_dataset_options(config);
    struct dataset dataset;
    TRY(dataset_open(&source, arena, &dataset));
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

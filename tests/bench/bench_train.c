/* SPDX-License-Identifier: Apache-2.0
 * Measures the tokens per second of whole updates (fetch to zero, records included) at three sizes,
 * for 1 and 2 threads, invariant and shuffled. This is not a test: it prints a table
 * (docs/measurements/train.md). Sequences come from builtin:devil (SFT) and builtin:quiz (DPO);
 * padding is not counted among the tokens.
 *
 *     bench_train [--short]
 *     bench_train --one | --bare | --carried | --recorded | --pair NAME UPDATES SECONDS GIB
 *                 KEY=VALUE...
 *
 * --one trains one configuration without records, as a product would, but with the root and the
 * norms that every trace has, --bare the same without these, --carried it with all numbers of its
 * state in carriers (docs/decisions/carriers.md), --recorded one with all that
 * `twinstep run` records by default, --pair two arms of it in lockstep, as `twinstep run` trains
 * them while they are equal (which ends the measurement if they are not): one update does not
 * count; UPDATES - 1 follow, or fewer, but at least one, when SECONDS have passed. The memory that
 * it would take is printed on stderr before it takes it; more than GIB (0: no bound), or than three
 * quarters of the device, is refused. Where bf16 products go by vdpbf16ps, stderr tells how many of
 * their tiles did not. It prints one line of fields with tabs between:
 *
 *     NAME parameters tokens median best rows passes count GiB
 *
 * These are tokens and rows of logits of an update; median and best seconds of an update; median
 * seconds of its forward and backward; the updates that were timed; and the GiB that it took. A
 * pair has the median seconds of its comparison and copies in the place of those of forward and
 * backward, and the seconds of a pair's update are those of both arms. Where it cannot run the exit
 * status is 1 and the line is NAME, "-" and the reason. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiment/pair.h"
#include "tests/bench/helper_bench.h"
#include "trainer/run_private.h"
#include "trainer/run_tensors.h"

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

#define MOST_UPDATES 1000

/* The counts of the present update. */
struct watched {
    const struct run *run;
    double passes, since; /* seconds of forward and backward; when one began */
    uint64_t tokens, rows;
};

static void at_phase(void *context, enum phase phase, int ended) {
    struct watched *const of = (struct watched *)context;
    if (phase != PHASE_FORWARD && phase != PHASE_BACKWARD) return;
    const double now = bench_seconds();
    if (ended) of->passes += now - of->since;
    of->since = now;
    if (phase == PHASE_BACKWARD || !ended) return;
    of->tokens += of->run->batch.token_count;
    of->rows += of->run->batch.label_count;
}

struct asked {
    const char *name;
    uint64_t updates;
    double seconds, bytes; /* bounds; 0: none */
    int recorded;          /* 1: with digests of tensors and phases, and the read-back */
    int carried;           /* 1: all numbers of the state lie in carriers */
    int bare;              /* 1: nothing is measured */
};

struct times {
    double update[MOST_UPDATES], passes[MOST_UPDATES]; /* sorted */
    size_t count;
};

/* Times at least two updates: the first one finds cold caches, and algorithms that nobody has
 * chosen yet, and does not count. */
static enum status time_updates(const struct asked *asked, struct run *run, struct watched *watched,
                                struct times *times) {
    const double begin = bench_seconds();
    for (uint64_t i = 0; i < asked->updates; i++) {
        const struct record *record;
        const double start = bench_seconds();
        if (i > 1 && asked->seconds > 0.0 && start - begin > asked->seconds) break;
        watched->passes = 0.0;
        watched->tokens = watched->rows = 0;
        TRY(run_step(run, &record));
        if (i == 0) continue;
        bench_insert(times->update, times->count, bench_seconds() - start);
        bench_insert(times->passes, times->count++, watched->passes);
    }
    return STATUS_OK;
}

static enum status train_one(const struct asked *asked, const char *const *overrides, size_t count,
                             struct arena *arena) {
    const struct config *config;
    struct dataset dataset;
    struct bench_memory memory;
    struct run run;
    struct watched watched = {.run = &run};
    struct times times = {.count = 0};
    if (asked->updates < 2 || asked->updates > MOST_UPDATES)
        FAIL(STATUS_INPUT, "updates: expected 2 to %d", MOST_UPDATES);
    TRY(bench_open(overrides, count, arena, &config, &dataset));
    TRY(bench_memory_check(config, &dataset, asked->bytes, &memory));
    const double gib = (double)memory.total / 1073741824.0;
    fprintf(stderr, "%s: %.3g GiB will be taken\n", asked->name, gib);
    const struct run_options options = {.steps = asked->updates,
                                        .tensors = asked->recorded,
                                        .phases = asked->recorded,
                                        .readback = asked->recorded,
                                        .carriers = asked->carried,
                                        .bare = asked->bare,
                                        .order_seed = 1,
                                        .at_phase = at_phase,
                                        .at_phase_context = &watched};
    TRY(run_open_at(config, &dataset, &options, &run));
    const enum status status = time_updates(asked, &run, &watched, &times);
    const size_t middle = times.count / 2;
    if (status == STATUS_OK)
        printf("%s\t%.0f\t%.0f\t%.6g\t%.6g\t%.0f\t%.6g\t%zu\t%.4g\n", asked->name,
               (double)run.table.elements, (double)watched.tokens, times.update[middle],
               times.update[0], (double)watched.rows, times.passes[middle], times.count, gib);
    const struct bf16_tiles tiles = run.model.bf16;
    if (tiles.tiles > 0)
        fprintf(stderr, "%s: %ju of %ju tiles of bf16 products by fma\n", asked->name,
                (uintmax_t)tiles.by_fma, (uintmax_t)tiles.tiles);
    run_close(&run);
    return status;
}

/* Compares both arms and keeps what experiment.c keeps of them while they are equal. */
static enum status keep_pair(const struct run *a, const struct run *b,
                             const struct run_kept *kept) {
    int equal;
    TRY(run_equal(a, b, &equal));
    if (!equal) FAIL(STATUS_INTERNAL, "the arms are no longer equal");
    TRY(run_keep(a, kept));
    return model_wait(run_model(a)); /* so that the copy's time is counted here */
}

static enum status time_pair(const struct asked *asked, struct run *a, struct run *b,
                             const struct run_kept *kept, const struct pair_room *room,
                             struct times *times) {
    const double begin = bench_seconds();
    for (uint64_t i = 0; i < asked->updates; i++) {
        const struct record *record;
        struct pair_record pair;
        const double start = bench_seconds();
        if (i > 1 && asked->seconds > 0.0 && start - begin > asked->seconds) break;
        TRY(keep_pair(a, b, kept));
        const double kept_at = bench_seconds();
        TRY(run_step(a, &record));
        TRY(run_step(b, &record));
        const double stepped_at = bench_seconds();
        TRY(pair_measure(a, b, room, &pair));
        if (i == 0) continue;
        bench_insert(times->update, times->count, bench_seconds() - start);
        bench_insert(times->passes, times->count++,
                     bench_seconds() - start - (stepped_at - kept_at));
    }
    return STATUS_OK;
}

static enum status train_pair(const struct asked *asked, const char *const *overrides, size_t count,
                              struct arena *arena) {
    const struct config *config;
    struct dataset dataset;
    struct bench_memory memory;
    struct run *arm[2] = {NULL, NULL};
    struct pair_room room;
    struct times times = {.count = 0};
    struct run_kept kept;
    if (asked->updates < 2 || asked->updates > MOST_UPDATES)
        FAIL(STATUS_INPUT, "updates: expected 2 to %d", MOST_UPDATES);
    TRY(bench_open(overrides, count, arena, &config, &dataset));
    TRY(bench_memory_check(config, &dataset, asked->bytes / 2, &memory));
    const double gib = 2.0 * (double)memory.total / 1073741824.0;
    fprintf(stderr, "%s: %.3g GiB will be taken, and what is kept\n", asked->name, gib);
    const struct run_options options = {
        .steps = asked->updates, .tensors = 1, .phases = 1, .readback = 1, .order_seed = 1};
    enum status status = run_open(config, &dataset, &options, &arm[0]);
    if (status == STATUS_OK) status = run_open(config, &dataset, &options, &arm[1]);
    if (status == STATUS_OK) status = pair_open(arm[0], arm[1], &room);
    if (status == STATUS_OK) {
        status = run_kept_open(arm[0], &kept);
        if (status == STATUS_OK) status = time_pair(asked, arm[0], arm[1], &kept, &room, &times);
        run_kept_close(&kept);
        pair_close(&room);
    }
    const size_t middle = times.count / 2;
    if (status == STATUS_OK)
        printf("%s\t%.0f\t%.0f\t%.6g\t%.6g\t%.0f\t%.6g\t%zu\t%.4g\n", asked->name,
               (double)run_table(arm[0])->elements, 2.0 * (double)run_sampler_plan(arm[0])->tokens,
               times.update[middle], times.update[0],
               2.0 * (double)run_sampler_plan(arm[0])->labels, times.passes[middle], times.count,
               gib);
    run_close(arm[1]);
    run_close(arm[0]);
    return status;
}

enum told { TOLD_PLAIN, TOLD_BARE, TOLD_CARRIED, TOLD_RECORDED, TOLD_PAIR };

static int one(int argc, char **argv, enum told told) {
    struct arena arena = ARENA_EMPTY;
    const char *const *overrides = (const char *const *)(void *)(argv + 4);
    const struct asked asked = {argv[0],
                                strtoull(argv[1], NULL, 10),
                                strtod(argv[2], NULL),
                                1073741824.0 * strtod(argv[3], NULL),
                                told >= TOLD_RECORDED,
                                told == TOLD_CARRIED,
                                told == TOLD_BARE};
    const enum status status =
        (told == TOLD_PAIR ? train_pair : train_one)(&asked, overrides, (size_t)argc - 4, &arena);
    if (status != STATUS_OK) printf("%s\t-\t%s\n", asked.name, status_text());
    arena_close(&arena);
    return status == STATUS_OK ? 0 : 1;
}

static enum status measure(const struct size_row *size, const struct size_row *mode, uint64_t steps,
                           struct arena *arena) {
    const char *overrides[20];
    size_t count = add_overrides(mode, overrides, add_overrides(size, overrides, 0));
    const struct config *config;
    struct dataset dataset;
    TRY(bench_open(overrides, count, arena, &config, &dataset));
    struct run_options options = {.tensors = 1, .phases = 1, .steps = steps, .order_seed = 1};
    struct run run;
    TRY(run_open_at(config, &dataset, &options, &run));
    double best = 0.0, parameters = (double)run.table.elements;
    for (uint64_t i = 0; i < steps; i++) {
        const struct record *record;
        double start = bench_seconds();
        TRY(run_step(&run, &record));
        double rate = (double)run.plan.tokens / (bench_seconds() - start);
        if (rate > best) best = rate;
    }
    printf("%-30s %-22s %9.2f M parameters %10.0f tokens/s %8.1f GFLOP/s\n", size->name, mode->name,
           parameters / 1e6, best, 6.0 * parameters * best / 1e9);
    fflush(stdout);
    run_close(&run);
    return STATUS_OK;
}

int main(int argc, char **argv) {
    if (argc > 5 && strcmp(argv[1], "--one") == 0) return one(argc - 2, argv + 2, TOLD_PLAIN);
    if (argc > 5 && strcmp(argv[1], "--bare") == 0) return one(argc - 2, argv + 2, TOLD_BARE);
    if (argc > 5 && strcmp(argv[1], "--carried") == 0) return one(argc - 2, argv + 2, TOLD_CARRIED);
    if (argc > 5 && strcmp(argv[1], "--recorded") == 0)
        return one(argc - 2, argv + 2, TOLD_RECORDED);
    if (argc > 5 && strcmp(argv[1], "--pair") == 0) return one(argc - 2, argv + 2, TOLD_PAIR);
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

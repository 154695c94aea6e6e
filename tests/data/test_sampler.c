/* SPDX-License-Identifier: Apache-2.0
 * labels: unit short
 * The plan of an update: permutations with known answers (from a separate Python program, see
 * test_dataset_builtin.c), access in any order, epochs, micro-batches, token counts, and
 * refusals. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "data/batch.h"
#include "data/sampler.h"
#include "tests/data/helper_data.h"

#define SAMPLES_MAX 64

/* Writes `samples` rows. Row i holds i % 7 + 1 labelled answer bytes as chosen, and one as
 * rejected. */
static void data_open(enum task task, size_t samples, struct arena *arena,
                      struct dataset *dataset) {
    char text[SAMPLES_MAX * 64];
    size_t used = 0;
    for (size_t i = 0; i < samples; i++)
        used += (size_t)snprintf(text + used, sizeof text - used,
                                 "{\"prompt\": \"p\", \"%s\": \"%.*s\"%s}\n",
                                 task == TASK_DPO ? "chosen" : "completion", (int)(i % 7 + 1),
                                 "aaaaaaa", task == TASK_DPO ? ", \"rejected\": \"r\"" : "");
    assert_int_equal(helper_jsonl_open(task, text, 4096, arena, dataset), STATUS_OK);
    assert_int_equal(dataset->samples, samples);
}

static void validate_known_orders(void **state) {
    (void)state;
    static const struct {
        uint64_t seed, epoch;
        uint32_t samples;
        uint32_t order[12];
    } cases[] = {
        {17, 0, 10, {2, 1, 7, 6, 0, 8, 4, 9, 5, 3}},
        {17, 1, 10, {8, 1, 2, 0, 6, 5, 4, 9, 7, 3}},
        {((uint64_t)1 << 40) + 5, 3, 12, {2, 1, 11, 5, 0, 9, 4, 3, 6, 7, 10, 8}},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct arena arena = ARENA_EMPTY;
        struct dataset dataset;
        data_open(TASK_DPO, cases[i].samples, &arena, &dataset);
        const struct sampler_options options = {.seed = cases[i].seed,
                                                .size = cases[i].samples,
                                                .micro = 1,
                                                .ranks = 1,
                                                .shuffle = 1,
                                                0,
                                                0};
        struct sampler sampler;
        struct sampler_plan plan;
        assert_int_equal(sampler_init(&options, &dataset, &arena, &sampler), STATUS_OK);
        assert_int_equal(
            sampler_plan_update(&sampler, sampler_seek(&sampler, cases[i].epoch), &plan),
            STATUS_OK);
        assert_int_equal(plan.samples, cases[i].samples);
        assert_memory_equal(plan.sample, cases[i].order, cases[i].samples * sizeof(uint32_t));
        arena_close(&arena);
    }
}

static void plan_at(struct sampler *sampler, uint64_t done, struct sampler_plan *plan) {
    assert_int_equal(sampler_plan_update(sampler, sampler_seek(sampler, done), plan), STATUS_OK);
}

/* Checks the counts of a plan by adding them up from the dataset. */
static void assert_counts(const struct sampler_plan *plan, const struct dataset *dataset,
                          uint64_t micro) {
    uint64_t tokens = 0;
    uint64_t labels = 0;
    uint32_t first = 0;
    assert_int_equal(plan->micros, (plan->samples + micro - 1) / micro);
    for (uint32_t m = 0; m < plan->micros; m++) {
        uint64_t micro_tokens = 0;
        uint64_t micro_labels = 0;
        uint32_t longest = 0;
        assert_int_equal(plan->micro[m].first, first);
        uint32_t left = plan->samples - first;
        assert_int_equal(plan->micro[m].samples, left < micro ? left : micro);
        for (uint32_t i = 0; i < plan->micro[m].samples; i++, first++) {
            uint32_t answer = plan->sample[first] % 7 + 1; /* data_open */
            micro_tokens += answer + 3 + (dataset->sides == 2 ? 4 : 0);
            micro_labels += answer + 1 + (dataset->sides == 2 ? 2 : 0);
            if (answer + 3 > longest) longest = answer + 3;
        }
        if (dataset->sides == 2 && longest < 4) longest = 4;
        assert_int_equal(plan->micro[m].tokens, micro_tokens);
        assert_int_equal(plan->micro[m].labels, micro_labels);
        assert_int_equal(plan->micro[m].longest, longest);
        tokens += micro_tokens;
        labels += micro_labels;
    }
    assert_int_equal(first, plan->samples);
    assert_int_equal(plan->tokens, tokens);
    assert_int_equal(plan->labels, labels);
}

struct shape_case {
    enum task task;
    uint32_t samples;
    uint64_t size, micro;
    int shuffle, keep_last;
    uint64_t epoch_updates;
};

static const struct shape_case shapes[] = {
    {TASK_DPO, 10, 4, 2, 1, 0, 2},  {TASK_DPO, 10, 4, 3, 1, 1, 3},  {TASK_SFT, 10, 5, 5, 1, 0, 2},
    {TASK_SFT, 10, 5, 1, 0, 1, 2},  {TASK_SFT, 7, 7, 4, 1, 0, 1},   {TASK_DPO, 5, 8, 8, 1, 1, 1},
    {TASK_SFT, 64, 6, 4, 0, 0, 10}, {TASK_DPO, 64, 1, 1, 1, 0, 64},
};

/* Every epoch must use each sample at most once, and all but the dropped rest; shuffled epochs must
 * differ; counts must be right; and words must be drawn once per shuffled epoch. */
static void verify_epochs(void **state) {
    (void)state;
    for (size_t c = 0; c < COUNT_OF(shapes); c++) {
        const struct shape_case *shape = &shapes[c];
        struct arena arena = ARENA_EMPTY;
        struct dataset dataset;
        data_open(shape->task, shape->samples, &arena, &dataset);
        const struct sampler_options options = {.seed = 3,
                                                .size = shape->size,
                                                .micro = shape->micro,
                                                .ranks = 1,
                                                .shuffle = shape->shuffle,
                                                .keep_last = shape->keep_last};
        struct sampler sampler;
        assert_int_equal(sampler_init(&options, &dataset, &arena, &sampler), STATUS_OK);
        assert_int_equal(sampler.epoch_updates, shape->epoch_updates);
        struct sampler_state at = {0, 0};
        for (uint64_t epoch = 0; epoch < 4; epoch++) {
            unsigned used[SAMPLES_MAX] = {0};
            uint32_t total = 0;
            for (uint64_t u = 0; u < shape->epoch_updates; u++) {
                struct sampler_plan plan;
                assert_int_equal(sampler_plan_update(&sampler, at, &plan), STATUS_OK);
                assert_int_equal(plan.epoch, epoch);
                assert_int_equal(plan.position, u);
                assert_int_equal(plan.words,
                                 shape->shuffle && u == 0 ? 2 * (uint64_t)shape->samples : 0);
                assert_counts(&plan, &dataset, shape->micro);
                for (uint32_t i = 0; i < plan.samples; i++, total++) {
                    assert_int_equal(used[plan.sample[i]]++, 0);
                    if (!shape->shuffle) assert_int_equal(plan.sample[i], total);
                }
                at = sampler_next(&sampler, at);
            }
            assert_int_equal(total, shape->keep_last ? shape->samples
                                                     : shape->epoch_updates * shape->size);
            assert_int_equal(at.epoch, epoch + 1);
            assert_int_equal(at.position, 0);
        }
        arena_close(&arena);
    }
}

/* A plan may depend neither on what was planned before it nor on the micro-batch. */
static void verify_any_order(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct dataset dataset;
    data_open(TASK_DPO, 23, &arena, &dataset);
    struct sampler_options options = {.seed = 99, .size = 4, .micro = 4, .ranks = 1, .shuffle = 1};
    struct sampler walker;
    assert_int_equal(sampler_init(&options, &dataset, &arena, &walker), STATUS_OK);
    options.micro = 3;
    struct sampler jumper;
    assert_int_equal(sampler_init(&options, &dataset, &arena, &jumper), STATUS_OK);
    uint32_t walked[40][4];
    struct sampler_state at = {0, 0};
    for (uint64_t u = 0; u < 40; u++) {
        struct sampler_plan plan;
        struct sampler_state sought = sampler_seek(&walker, u);
        assert_int_equal(at.epoch, sought.epoch);
        assert_int_equal(at.position, sought.position);
        assert_int_equal(sampler_plan_update(&walker, at, &plan), STATUS_OK);
        memcpy(walked[u], plan.sample, sizeof walked[u]);
        at = sampler_next(&walker, at);
    }
    for (uint64_t i = 0; i < 40; i++) {
        uint64_t u = (i * 17 + 23) % 40; /* begins in another epoch */
        struct sampler_plan plan;
        plan_at(&jumper, u, &plan);
        assert_memory_equal(plan.sample, walked[u], sizeof walked[u]);
        assert_counts(&plan, &dataset, 3);
    }
    for (uint64_t u = 1; u < 40; u++) /* consecutive updates are different samples */
        assert_memory_not_equal(walked[u], walked[u - 1], sizeof walked[u]);
    for (uint64_t u = 5; u < 40; u++) /* and so are those of consecutive epochs */
        assert_memory_not_equal(walked[u], walked[u - 5], sizeof walked[u]);
    arena_close(&arena);
}

/* The seed and the epoch must each change the order, and the batch size must not. */
static void verify_order_inputs(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct dataset dataset;
    data_open(TASK_SFT, 24, &arena, &dataset);
    uint32_t order[4][24];
    static const struct {
        uint64_t seed, size, done;
    } cases[] = {{5, 24, 0}, {6, 24, 0}, {5, 24, 1}, {5, 8, 0}};
    for (size_t i = 0; i < 4; i++) {
        const struct sampler_options options = {
            .seed = cases[i].seed, .size = cases[i].size, .micro = 1, .ranks = 1, .shuffle = 1};
        struct sampler sampler;
        assert_int_equal(sampler_init(&options, &dataset, &arena, &sampler), STATUS_OK);
        for (uint64_t u = 0; u < 24 / cases[i].size; u++) {
            struct sampler_plan plan;
            plan_at(&sampler, cases[i].done + u, &plan);
            memcpy(order[i] + u * cases[i].size, plan.sample, cases[i].size * sizeof(uint32_t));
        }
    }
    assert_memory_not_equal(order[0], order[1], sizeof order[0]);
    assert_memory_not_equal(order[0], order[2], sizeof order[0]);
    assert_memory_equal(order[0], order[3], sizeof order[0]);
    arena_close(&arena);
}

struct leak_case {
    uint32_t samples;
    uint64_t size, micro, epoch_updates;
    uint32_t rest, micros; /* the samples that leak */
};

/* A rest with as many micro-batches as an update is an update, because its window is full. */
static const struct leak_case leaks[] = {
    {22, 8, 2, 2, 6, 3}, {23, 8, 2, 3, 0, 0}, {17, 8, 2, 2, 1, 1}, {16, 8, 2, 2, 0, 0},
    {10, 4, 4, 3, 0, 0}, {11, 4, 1, 2, 3, 3}, {13, 4, 2, 3, 1, 1},
};

static void expect_leaked(struct sampler *sampler, const struct leak_case *leak,
                          const struct dataset *dataset, uint64_t epoch) {
    uint32_t order[SAMPLES_MAX];
    struct sampler_plan plan;
    const uint64_t size = leak->size;
    for (uint64_t u = 0; u < dataset->samples / size && epoch > 0; u++) {
        plan_at(sampler, (epoch - 1) * leak->epoch_updates + u, &plan);
        memcpy(order + u * size, plan.sample, size * sizeof *order);
    }
    plan_at(sampler, epoch * leak->epoch_updates, &plan);
    assert_int_equal(plan.leaked.samples, epoch == 0 ? 0 : leak->rest);
    assert_int_equal(plan.leaked.micros, epoch == 0 ? 0 : leak->micros);
    assert_int_equal(plan.samples, size);
    assert_int_equal(plan.micros, plan.leaked.micros + (size + leak->micro - 1) / leak->micro);
    if (plan.leaked.samples == 0) return;
    unsigned used[SAMPLES_MAX] = {
        0}; /* the epoch before and what it left over have each sample once */
    uint64_t labels = 0;
    memcpy(order + dataset->samples - leak->rest, plan.leaked_sample, leak->rest * sizeof *order);
    for (size_t i = 0; i < dataset->samples; i++)
        assert_int_equal(used[order[i]]++, 0);
    for (uint32_t i = 0; i < leak->rest; i++)
        for (uint32_t side = 0; side < dataset->sides; side++)
            labels += dataset_side(dataset, plan.leaked_sample[i], side)->labels;
    assert_int_equal(plan.leaked.labels, labels);
    assert_int_equal(plan.micro[leak->micros].first, 0);
}

static void verify_leaks(void **state) {
    (void)state;
    for (size_t c = 0; c < COUNT_OF(leaks); c++) {
        const struct leak_case *leak = &leaks[c];
        struct arena arena = ARENA_EMPTY;
        struct dataset dataset;
        data_open(TASK_SFT, leak->samples, &arena, &dataset);
        const struct sampler_options options = {.seed = 3,
                                                .size = leak->size,
                                                .micro = leak->micro,
                                                .ranks = 1,
                                                .shuffle = 1,
                                                .leak = 1};
        struct sampler sampler;
        assert_int_equal(sampler_init(&options, &dataset, &arena, &sampler), STATUS_OK);
        assert_int_equal(sampler.epoch_updates, leak->epoch_updates);
        for (uint64_t epoch = 0; epoch < 3; epoch++)
            expect_leaked(&sampler, leak, &dataset, epoch);
        arena_close(&arena);
    }
}

/* Shares of the update's labels, counted over both sides. */
static void verify_rank_labels(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct dataset dataset;
    data_open(TASK_DPO, 24, &arena, &dataset);
    const struct sampler_options options = {
        .seed = 3, .size = 8, .micro = 8, .ranks = 1, .shuffle = 1, .loss_ranks = 4};
    struct sampler sampler;
    struct sampler_plan plan;
    assert_int_equal(sampler_init(&options, &dataset, &arena, &sampler), STATUS_OK);
    plan_at(&sampler, 1, &plan);
    uint64_t all = 0;
    for (uint32_t rank = 0; rank < 4; rank++) {
        uint64_t labels = 0;
        for (uint32_t i = 2 * rank; i < 2 * rank + 2; i++)
            for (uint32_t side = 0; side < 2; side++)
                labels += dataset_side(&dataset, plan.sample[i], side)->labels;
        assert_int_equal(plan.rank_labels[rank], labels);
        all += labels;
    }
    assert_int_equal(all, plan.labels);
    arena_close(&arena);
}

/* Walks an epoch and adds up what each rank has, as the recording writes it: "0 4|1 5". */
static void write_dealt(struct sampler *sampler, char *out, size_t room) {
    static uint32_t share[8][2 * SAMPLES_MAX];
    const uint32_t ranks = (uint32_t)sampler->options.ranks;
    uint32_t count = 0;
    size_t at = 0;
    for (uint64_t u = 0; u < sampler->epoch_updates; u++) {
        struct sampler_plan plan;
        plan_at(sampler, u, &plan);
        const uint32_t each = plan.samples / ranks;
        assert_int_equal(plan.samples, each * ranks);
        assert_true(each >= 1 && plan.samples <= sampler->options.size);
        for (uint32_t i = 0; i < plan.samples; i++)
            share[i / each][count + i % each] = plan.sample[i];
        /* micro-batches are of one rank each */
        for (uint32_t m = 0; m < plan.micros; m++)
            assert_int_equal(plan.micro[m].first / each,
                             (plan.micro[m].first + plan.micro[m].samples - 1) / each);
        count += each;
    }
    out[0] = '\0';
    for (uint32_t rank = 0; rank < ranks; rank++)
        for (uint32_t i = 0; i < count; i++)
            at += (size_t)snprintf(out + at, room - at, "%s%u",
                                   i > 0      ? " "
                                   : rank > 0 ? "|"
                                              : "",
                                   share[rank][i]);
}

/* An epoch's updates, put together, are what torch's DistributedSampler and Accelerate's
 * BatchSamplerShard gave each rank (tests/golden/ranks/deals.txt), with one batch a rank in an
 * update and with two. */
static void corroborate_dealt_epochs(void **state) {
    static char line[4096], shares[4096];
    FILE *const file = fopen(TWINSTEP_SOURCE_DIR "/tests/golden/ranks/deals.txt", "rb");
    int compared[DEAL_COUNT] = {0}, padded = 0;
    (void)state;
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        unsigned long long count, ranks, batch;
        int drop, even, behind = 0;
        char kind[16], whole = 0;
        if (sscanf(line, "%15s %llu %llu %llu %d %d%n", kind, &count, &ranks, &batch, &drop, &even,
                   &behind) != 6)
            continue; /* a comment */
        enum deal_kind deal = DEAL_CYCLIC;
        while (strcmp(deal_name(deal), kind) != 0)
            deal = (enum deal_kind)(deal + 1);
        if (ranks < 2 || (!drop && !even)) continue;
        if (deal == DEAL_SLICES) batch /= ranks;                       /* of a rank */
        for (char *at = line + behind + 1, *to = line; !whole; at++) { /* batches are not told */
            whole = *at == '\n' || *at == '\0';
            *to++ = *at == ',' ? ' ' : whole ? '\0' : *at;
        }
        for (uint64_t batches = 1; batches <= 2; batches++) {
            struct arena arena = ARENA_EMPTY;
            struct dataset dataset;
            struct sampler sampler;
            const struct sampler_options options = {.size = ranks * batch * batches,
                                                    .micro = batch,
                                                    .ranks = ranks,
                                                    .shards = ranks,
                                                    .keep_last = 1,
                                                    .dealt = 1,
                                                    .deal = deal,
                                                    .uneven = drop ? DEAL_DROP : DEAL_PAD};
            data_open(TASK_SFT, count, &arena, &dataset);
            const enum status status = sampler_init(&options, &dataset, &arena, &sampler);
            assert_int_equal(status, line[0] == '|' ? STATUS_INPUT : STATUS_OK);
            if (status == STATUS_OK) {
                write_dealt(&sampler, shares, sizeof shares);
                assert_string_equal(shares, line);
                compared[deal]++;
                padded += !drop && count % (ranks * batch) != 0;
            }
            arena_close(&arena);
        }
    }
    fclose(file);
    assert_true(compared[DEAL_CYCLIC] >= 60 && compared[DEAL_MICROS] >= 100);
    assert_true(compared[DEAL_SLICES] >= 100 && padded >= 100);
}

/* torch without set_epoch: every epoch has the first one's order, and draws it anew. */
static void verify_one_order(void **state) {
    (void)state;
    struct arena arena = ARENA_EMPTY;
    struct dataset dataset;
    data_open(TASK_SFT, 24, &arena, &dataset);
    struct sampler_options options = {.seed = 5, .size = 8, .micro = 8, .ranks = 1, .shuffle = 1};
    struct sampler own, first;
    assert_int_equal(sampler_init(&options, &dataset, &arena, &own), STATUS_OK);
    options.one_order = 1;
    assert_int_equal(sampler_init(&options, &dataset, &arena, &first), STATUS_OK);
    for (uint64_t u = 0; u < 9; u++) {
        struct sampler_plan expected, plan;
        plan_at(&own, u % 3, &expected);
        plan_at(&first, u, &plan);
        assert_int_equal(plan.samples, 8);
        assert_memory_equal(plan.sample, expected.sample, 8 * sizeof(uint32_t));
        assert_int_equal(plan.epoch, u / 3);
        assert_int_equal(plan.words, u % 3 == 0 ? 48 : 0);
    }
    arena_close(&arena);
}

/* Each rank has micro-batches of its own shards' samples, and its last one may be short. Eight
 * shards of 16 samples are two samples each: three ranks have 2, 3 and 3 shards. */
static void validate_ranks(void **state) {
    static const struct {
        uint64_t size, micro, ranks;
        uint32_t micros, samples[16];
    } cases[] = {
        {16, 4, 3, 5, {4, 4, 2, 4, 2}}, {16, 16, 3, 3, {4, 6, 6}},
        {16, 4, 4, 4, {4, 4, 4, 4}},    {16, 2, 8, 8, {2, 2, 2, 2, 2, 2, 2, 2}},
        {5, 5, 2, 2, {3, 2}}, /* shards 0, 1, 3 | 4, 6 have a sample */
        {5, 1, 5, 5, {1, 1, 1, 1, 1}},  {3, 3, 8, 3, {1, 1, 1}}, /* five ranks have none */
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct arena arena = ARENA_EMPTY;
        struct dataset dataset;
        struct sampler sampler;
        struct sampler_plan plan;
        struct config config = {0};
        data_open(TASK_DPO, 24, &arena, &dataset);
        const struct sampler_options options = {.seed = 3,
                                                .size = cases[i].size,
                                                .micro = cases[i].micro,
                                                .ranks = cases[i].ranks,
                                                .shuffle = 1,
                                                .shards = 8};
        assert_int_equal(sampler_init(&options, &dataset, &arena, &sampler), STATUS_OK);
        plan_at(&sampler, 0, &plan);
        assert_int_equal(plan.micros, cases[i].micros);
        uint32_t first = 0;
        for (uint32_t m = 0; m < plan.micros; m++) {
            assert_int_equal(plan.micro[m].first, first);
            assert_int_equal(plan.micro[m].samples, cases[i].samples[m]);
            first += plan.micro[m].samples;
        }
        assert_int_equal(first, cases[i].size);
        config.batch.size = cases[i].size;
        config.batch.micro = cases[i].micro;
        config.parallel.ranks = cases[i].ranks;
        config.numerics.shards = 8;
        assert_int_equal(batch_micro_batches(&config), cases[i].micros);
        arena_close(&arena);
    }
}

static void validate_refused(void **state) {
    (void)state;
    static const struct {
        struct sampler_options options;
        enum status status;
        const char *error;
    } cases[] = {
        {{.size = 11, .micro = 1, .ranks = 1, .shuffle = 1},
         STATUS_INPUT,
         "d: batch.size is 11 samples, but the data hold 10: not one full update"},
        {{.size = 0, .micro = 1, .ranks = 1, .shuffle = 1},
         STATUS_INPUT,
         "batch.size: expected 1 to 4194304 samples, got 0"},
        {{.size = 4194305, .micro = 1, .ranks = 1, .shuffle = 1, .keep_last = 1},
         STATUS_INPUT,
         "batch.size: expected 1 to 4194304 samples, got 4194305"},
        {{.size = 4, .micro = 0, .ranks = 1, .shuffle = 1},
         STATUS_INPUT,
         "batch.micro: expected 1 to batch.size (4), got 0"},
        {{.size = 4, .micro = 5, .ranks = 1, .shuffle = 1},
         STATUS_INPUT,
         "batch.micro: expected 1 to batch.size (4), got 5"},
        {{.size = 4, .micro = 2, .ranks = 2, .shuffle = 1, .shards = 1},
         STATUS_INPUT,
         "parallel.ranks: expected 1 to numerics.shards (1, at most 256), got 2"},
        {{.size = 4, .micro = 2, .ranks = 0, .shuffle = 1, .shards = 1},
         STATUS_INPUT,
         "parallel.ranks: expected 1 to numerics.shards (1, at most 256), got 0"},
        {{.size = 4, .micro = 2, .ranks = 2, .shuffle = 1, .keep_last = 1, .shards = 2},
         STATUS_INPUT,
         "batch.tail: expected drop with 2 ranks"},
        {{.size = 4, .micro = 2, .ranks = 1, .shuffle = 1, .loss_ranks = 3},
         STATUS_INPUT,
         "loss.ranks: expected a divisor of batch.size (4), got 3"},
        {{.size = 4, .micro = 2, .ranks = 1, .shards = 2, .dealt = 1},
         STATUS_INPUT,
         "parallel.ranks: expected at least 2 with a deal, and a divisor of batch.size (4) and of "
         "the shards (2), got 1"},
        {{.size = 5, .micro = 2, .ranks = 2, .shards = 2, .dealt = 1},
         STATUS_INPUT,
         "parallel.ranks: expected at least 2 with a deal, and a divisor of batch.size (5) and of "
         "the shards (2), got 2"},
        {{.size = 12, .micro = 2, .ranks = 2, .shards = 2, .dealt = 1, .uneven = DEAL_DROP},
         STATUS_INPUT,
         "d: each of 2 ranks is dealt 5 of 10 samples (parallel.uneven: drop), and its share of an "
         "update is 6: not one full update"},
    };
    struct arena arena = ARENA_EMPTY;
    struct dataset dataset;
    data_open(TASK_DPO, 10, &arena, &dataset);
    dataset.source = "d";
    struct sampler sampler;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(sampler_init(&cases[i].options, &dataset, &arena, &sampler),
                         cases[i].status);
        assert_string_equal(status_text(), cases[i].error);
    }
    const struct sampler_options options = {.size = 4, .micro = 2, .ranks = 1, .shuffle = 1};
    struct sampler_plan plan;
    assert_int_equal(sampler_init(&options, &dataset, &arena, &sampler), STATUS_OK);
    assert_int_equal(sampler_plan_update(&sampler, (struct sampler_state){0, 2}, &plan),
                     STATUS_INTERNAL);
    assert_string_equal(status_text(), "data position 2 in an epoch of 2 updates");
    assert_int_equal(
        sampler_plan_update(&sampler, (struct sampler_state){(uint64_t)1 << 32, 0}, &plan),
        STATUS_INPUT);
    arena_close(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate_known_orders),
        cmocka_unit_test(verify_epochs),
        cmocka_unit_test(verify_any_order),
        cmocka_unit_test(verify_order_inputs),
        cmocka_unit_test(verify_leaks),
        cmocka_unit_test(verify_rank_labels),
        cmocka_unit_test(corroborate_dealt_epochs),
        cmocka_unit_test(verify_one_order),
        cmocka_unit_test(validate_ranks),
        cmocka_unit_test(validate_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

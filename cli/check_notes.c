/* SPDX-License-Identifier: Apache-2.0
 * Writes the notes on a configuration's numerics. Each follows from a law (docs/DETERMINISM.md) and
 * from the sizes of the configuration; none is a guess. The sizes are the largest possible, so that
 * a note which says "no noise" holds for every update. */
#include "cli/check.h"

#include <string.h>

#include "base/sum.h"
#include "data/batch.h"
#include "kernels/op.h"
#include "ranks/deal.h"
#include "scenarios/selection.h"
#include "trainer/loop.h"
#include "trainer/rank_gradients.h"

#define CHUNKS_FOR_NOISE 3 /* fewer make no noise: a + b = b + a to the bit */

static enum status add(struct notes *notes, const char *text) {
    if (notes->count == NOTES_MAX) FAIL(STATUS_INTERNAL, "check: more than %d notes", NOTES_MAX);
    notes->text[notes->count++] = text;
    return STATUS_OK;
}

static uint64_t larger(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

struct sum_size {
    const char *name;
    enum sum_kind kind;
    uint64_t terms; /* terms of the longest sum of this kind in one call */
};

/* Fills `sizes` by the indices that shuffle.kinds uses. */
static void measure_sums(const struct config *config, const struct dataset *dataset,
                         struct sum_size out[6]) {
    uint64_t tokens = config->batch.micro * dataset->sides * dataset->longest;
    uint64_t width = larger(larger(config->model.hidden, config->model.mlp),
                            larger(config->model.vocab, dataset->longest));
    width = larger(width, config->model.heads * config->model.head_dim);
    out[0] = (struct sum_size){"forward", SUM_FORWARD, width};
    out[1] = (struct sum_size){"weight", SUM_WEIGHT, tokens};
    out[2] = (struct sum_size){"dq", SUM_DQ, dataset->longest};
    out[3] = (struct sum_size){"embedding", SUM_EMBEDDING, tokens};
    out[4] = (struct sum_size){"norm", SUM_NORM,
                               larger(tokens, config->model.hidden * config->model.vocab)};
    out[5] = (struct sum_size){"loss", SUM_LOSS, config->batch.micro};
}

/* Whether the terms of ranks are added in an order that is drawn. */
static int arrives(const struct config *config) {
    return config_ranks_close(config) && config->parallel.reduce == REDUCE_ARRIVAL;
}

static enum status note_shuffle(const struct config *config, const struct dataset *dataset,
                                struct arena *arena, struct notes *out) {
    struct sum_size sizes[6];
    uint64_t chunk = config->shuffle.chunk;
    uint32_t noisy = 0;
    char *text;
    if (config->numerics.mode != MODE_SHUFFLED) return STATUS_OK;
    measure_sums(config, dataset, sizes);
    for (uint8_t i = 0; i < config->shuffle.kinds.count; i++) {
        const struct sum_size *size = &sizes[config->shuffle.kinds.item[i]];
        uint64_t chunks = size->terms / chunk + (size->terms % chunk != 0);
        if (chunks >= CHUNKS_FOR_NOISE) {
            noisy++;
            continue;
        }
        TRY(arena_format(arena, &text,
                         "shuffle.kinds %s makes no noise: its sums have at most %llu terms, fewer "
                         "than %d chunks of %llu (shuffle.chunk)",
                         size->name, (unsigned long long)size->terms, CHUNKS_FOR_NOISE,
                         (unsigned long long)chunk));
        TRY(add(out, text));
    }
    if (noisy > 0 || (arrives(config) && config->parallel.ranks >= CHUNKS_FOR_NOISE))
        return STATUS_OK;
    return add(out, "numerics.mode shuffled makes no noise at all here: no kind of sum that is "
                    "shuffled has 3 chunks");
}

static enum status note_atomic(const struct config *config, const struct dataset *dataset,
                               struct arena *arena, struct notes *out) {
    struct sum_size sizes[6];
    const uint64_t chunk = config->atomic.chunk;
    char *text;
    if (config->numerics.mode != MODE_ATOMIC) return STATUS_OK;
    if (config->numerics.threads == 1 && config->numerics.backend == BACKEND_CPU)
        return add(out, "numerics.mode atomic races with nobody at numerics.threads 1: repeats are "
                        "equal, and the floor is still measured");
    if (config->atomic.kinds.count == 0)
        return add(out, "numerics.mode atomic: atomic.kinds is empty, so nothing races");
    measure_sums(config, dataset, sizes);
    for (uint8_t i = 0; i < config->atomic.kinds.count; i++) {
        const struct sum_size *size = &sizes[config->atomic.kinds.item[i]];
        /* Sums of squares race block by block where a chunk is longer than a block. */
        const int squares = size->kind == SUM_NORM && chunk > SUM_BLOCK;
        const uint64_t one = squares ? SUM_BLOCK : chunk;
        if (size->terms > one) continue;
        TRY(arena_format(arena, &text,
                         "atomic.kinds %s does not race: its sums have at most %llu terms, one "
                         "chunk of %llu (atomic.chunk)",
                         size->name, (unsigned long long)size->terms, (unsigned long long)one));
        TRY(add(out, text));
    }
    return STATUS_OK;
}

static int opens_any(const struct dataset *dataset) {
    for (size_t i = 0; i < dataset->samples * dataset->sides; i++)
        if (dataset->opens[i]) return 1;
    return 0;
}

static enum status note_unshifted(const struct config *config, const struct dataset *dataset,
                                  struct notes *out) {
    if (config->task == TASK_DPO)
        return add(out,
                   "loss.divisor update-unshifted is that of the update here: it counts pairs");
    if (opens_any(dataset)) return STATUS_OK;
    return add(out, "loss.divisor update-unshifted is that of the update here: no first token is "
                    "labelled");
}

static enum status note_divisor(const struct config *config, const struct dataset *dataset,
                                struct arena *arena, struct notes *out) {
    const int32_t divisor = config->loss.divisor;
    const int dpo = config->task == TASK_DPO;
    if (divisor == DIVISOR_MEAN_OF_RANKS && config->loss.ranks == 1)
        return add(out, "loss.divisor mean-of-ranks is that of the update here: there is one rank");
    if (divisor == DIVISOR_MEAN_OF_RANKS && dpo)
        return add(out, "loss.divisor mean-of-ranks is that of the update here: ranks of dpo have "
                        "equally many pairs");
    if (divisor == DIVISOR_UPDATE_UNSHIFTED) return note_unshifted(config, dataset, out);
    if (divisor == DIVISOR_UPDATE || divisor == DIVISOR_MEAN_OF_RANKS ||
        divisor == DIVISOR_MEANS_OVER_SIZE)
        return STATUS_OK;
    if (batch_micro_batches(config) == 1) {
        char *text;
        TRY(arena_format(arena, &text,
                         "loss.divisor %s is that of the update here: there is one micro-batch",
                         schema_find("loss.divisor", NULL)->names[divisor]));
        return add(out, text);
    }
    if (divisor == DIVISOR_MEAN_OF_MEANS && dpo && config->batch.tail == TAIL_DROP)
        return add(out, "loss.divisor mean-of-means gives the gradients of update here, bit for "
                        "bit: micro-batches of dpo have equally many pairs");
    return STATUS_OK;
}

/* The samples of an epoch, with what a deal to ranks leaves out of it or repeats. Of
 * tensor-parallel ranks with samples of their own these are one rank's. */
static uint64_t epoch_samples(const struct config *config, const struct dataset *dataset) {
    const uint64_t ranks = config->parallel.ranks;
    if (ranks <= 1 || config->parallel.deal == DEALS_BLOCKS)
        return dataset->samples / config_fed_ranks(config);
    const struct deal_call deal = {
        .kind = config->parallel.deal == DEALS_MICROS ? DEAL_MICROS : DEAL_CYCLIC,
        .tail = config->parallel.uneven == UNEVEN_PAD ? DEAL_PAD : DEAL_DROP,
        .count = dataset->samples,
        .ranks = (uint32_t)ranks,
        .batch = config->batch.micro};
    return deal_length(&deal, 0) * ranks;
}

static enum status note_tail(const struct config *config, const struct dataset *dataset,
                             struct notes *out) {
    const uint64_t samples = epoch_samples(config, dataset);
    const int dealt = config->parallel.ranks > 1 && config->parallel.deal != DEALS_BLOCKS;
    if (dealt && config->parallel.uneven == UNEVEN_PAD && samples == dataset->samples)
        TRY(add(out, "parallel.uneven is without effect here: the samples of an epoch give every "
                     "rank equally many"));
    if (config->batch.tail == TAIL_DROP) return STATUS_OK;
    const uint64_t rest = samples % config->batch.size;
    if (rest == 0) return add(out, "batch.tail is without effect here: updates fill the epoch");
    const uint64_t micros = (rest - 1) / config->batch.micro + 1;
    if (config->batch.tail != TAIL_KEEP && micros == batch_micro_batches(config))
        return add(out,
                   "batch.tail is keep in effect here: what does not fill an update has as many "
                   "micro-batches as one");
    return STATUS_OK;
}

/* The updates of an epoch (data/sampler.h). */
static uint64_t epoch_updates(const struct config *config, const struct dataset *dataset) {
    const uint64_t samples = epoch_samples(config, dataset);
    const uint64_t full = samples / config->batch.size, rest = samples % config->batch.size;
    if (rest == 0 || config->batch.tail == TAIL_DROP) return full;
    const uint64_t micros = (rest - 1) / config->batch.micro + 1;
    return full + (config->batch.tail != TAIL_LEAK || micros == batch_micro_batches(config));
}

/* A restart and events of rng.data may lead into later epochs sooner. */
static enum status note_order(const struct config *config, const struct dataset *dataset,
                              uint64_t steps, struct notes *out) {
    const int jumps = config->resume.after != 0 || strcmp(config->rng.data, "none") != 0;
    if (config->data.epoch_seed != EPOCH_SEED_FIRST || !config->data.shuffle || jumps ||
        steps > epoch_updates(config, dataset))
        return STATUS_OK;
    return add(out, "data.epoch_seed is without effect here: the training ends within the first "
                    "epoch");
}

static enum status note_fp8(const struct config *config, struct notes *out) {
    const int unmastered = config->numerics.master == CONFIG_MASTER_NONE;
    if (dtype_width((enum dtype)config->numerics.param) == 1 && unmastered)
        TRY(add(out, "fp8 parameters without masters: an update is lost unless it reaches half a "
                     "spacing, which is 2^-10 at least in e4m3 (2^-17 in e5m2) and 1/16 (1/8) of a "
                     "weight that is a power of two"));
    if (dtype_width((enum dtype)config->numerics.gradient) == 1)
        TRY(add(out, "fp8 gradients have no scale of their own: what is below 2^-10 in e4m3 (2^-17 "
                     "in e5m2) becomes 0; scaler.* moves them up"));
    return STATUS_OK;
}

static enum status note_dtypes(const struct config *config, struct notes *out) {
    if (config->numerics.grad_accumulate == GRAD_ACCUMULATE_STORAGE)
        TRY(add(out, "numerics.grad_accumulate storage rounds the gradient after each micro-batch: "
                     "another batch.micro gives other bits, whatever numerics.mode promises"));
    if (config->numerics.param == DTYPE_BF16 && config->numerics.master == CONFIG_MASTER_NONE)
        TRY(add(out, "bf16 parameters without masters: most updates round to nothing at small "
                     "learning rates, and the rate read back from them is likely untestable"));
    return note_fp8(config, out);
}

static enum status note_threads(const struct config *config, struct notes *out) {
    if (config->numerics.threads == 1) return STATUS_OK;
    if (config->numerics.mode == MODE_INVARIANT)
        return add(out, "numerics.threads moves no bit in mode invariant");
    if (config->numerics.mode == MODE_ORDER_FREE)
        return add(out, "numerics.threads moves no bit in mode order-free");
    return STATUS_OK;
}

static enum status note_shards(const struct config *config, struct notes *out) {
    if (config->numerics.shards > 1 && config->numerics.mode == MODE_ORDER_FREE)
        TRY(add(out, "numerics.shards moves no bit in mode order-free"));
    if (config->numerics.cuts > 1 && config->numerics.mode == MODE_ORDER_FREE)
        return add(out, "numerics.cuts moves no bit in mode order-free");
    return STATUS_OK;
}

/* Whether an element's place in its message decides which terms are added, or in which order. */
static int reads_places(const struct config *config) {
    const int32_t reduce = config->parallel.reduce;
    if (config->parallel.race != RACE_NONE) return 1;
    if (config->parallel.ranks < CHUNKS_FOR_NOISE) return 0;
    return reduce == REDUCE_RING || reduce == REDUCE_RING_SCATTER || reduce == REDUCE_GLOO ||
           reduce == REDUCE_NCCL_RING || reduce == REDUCE_NCCL_RING_SCATTER ||
           reduce == REDUCE_ARRIVAL;
}

static enum status note_ranks(const struct config *config, uint64_t steps, struct arena *arena,
                              struct notes *out) {
    const uint64_t ranks = config->parallel.ranks;
    const int few = ranks < CHUNKS_FOR_NOISE;
    int alone;
    if (!config_ranks_close(config)) return STATUS_OK;
    TRY(rank_gradients_races_alone(config, steps, arena, &alone));
    if (alone)
        TRY(add(out, "parallel.race moves no bit here: all gradients are in one bucket, which no "
                     "other one overwrites"));
    if (few && arrives(config))
        TRY(add(out,
                "parallel.reduce arrival makes no noise with 2 ranks: a + b = b + a to the bit"));
    else if (few)
        TRY(add(out, "parallel.reduce moves no bit with 2 ranks: a + b = b + a to the bit"));
    if ((ranks & (ranks - 1)) == 0)
        TRY(add(out, "parallel.average moves no bit here but where numbers overflow or are "
                     "subnormal: dividing by a power of two is exact"));
    if (reads_places(config)) return STATUS_OK;
    return add(out, "parallel.buckets and parallel.bucket move no bit here: all elements are added "
                    "in one order");
}

enum status notes_of(const struct config *config, const struct dataset *dataset, uint64_t steps,
                     struct arena *arena, struct notes *out) {
    memset(out, 0, sizeof *out);
    TRY(note_shuffle(config, dataset, arena, out));
    TRY(note_atomic(config, dataset, arena, out));
    TRY(note_divisor(config, dataset, arena, out));
    TRY(note_tail(config, dataset, out));
    TRY(note_order(config, dataset, steps, out));
    TRY(note_dtypes(config, out));
    TRY(note_shards(config, out));
    TRY(note_ranks(config, steps, arena, out));
    return note_threads(config, out);
}

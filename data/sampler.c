/* SPDX-License-Identifier: Apache-2.0
 * Draws permutations by address, takes updates as consecutive slices of them, and micro-batches as
 * slices of those.
 *
 * Invariant: two samplers with equal options and equal datasets give equal plans for equal states,
 * whatever either of them has planned before. */
#include "data/sampler.h"

#include <inttypes.h>
#include <string.h>

#include "data/datarow.h"
#include "determinism/stream.h"
#include "ranks/tree.h"

static enum status options_check(const struct sampler_options *options,
                                 const struct dataset *dataset) {
    if (options->size < 1 || options->size > SAMPLER_MAX_BATCH)
        FAIL(STATUS_INPUT, "batch.size: expected 1 to %" PRIu64 " samples, got %" PRIu64,
             SAMPLER_MAX_BATCH, options->size);
    if (options->micro < 1 || options->micro > options->size)
        FAIL(STATUS_INPUT, "batch.micro: expected 1 to batch.size (%" PRIu64 "), got %" PRIu64,
             options->size, options->micro);
    if (options->ranks < 1 || (options->ranks > 1 && options->ranks > options->shards) ||
        options->shards > TREE_SHARDS_MAX)
        FAIL(STATUS_INPUT,
             "parallel.ranks: expected 1 to numerics.shards (%" PRIu64
             ", at most %d), got %" PRIu64,
             options->shards, TREE_SHARDS_MAX, options->ranks);
    if (options->ranks > 1 && ((options->keep_last && !options->dealt) || options->leak))
        FAIL(STATUS_INPUT, "batch.tail: expected drop with %" PRIu64 " ranks", options->ranks);
    if (options->dealt &&
        (options->ranks < 2 || options->size % options->ranks + options->shards % options->ranks))
        FAIL(
            STATUS_INPUT,
            "parallel.ranks: expected at least 2 with a deal, and a divisor of batch.size (%" PRIu64
            ") and of the shards (%" PRIu64 "), got %" PRIu64,
            options->size, options->shards, options->ranks);
    if (!options->dealt && dataset->samples < (options->keep_last ? 1 : options->size))
        FAIL(STATUS_INPUT,
             "%s: batch.size is %" PRIu64 " samples, but the data hold %zu: not one full update",
             dataset->source, options->size, dataset->samples);
    if (options->loss_ranks != 0 && options->size % options->loss_ranks != 0)
        FAIL(STATUS_INPUT,
             "loss.ranks: expected a divisor of batch.size (%" PRIu64 "), got %" PRIu64,
             options->size, options->loss_ranks);
    return STATUS_OK;
}

static uint64_t divide_up(uint64_t value, uint64_t by) {
    return value / by + (value % by != 0);
}

/* Behind the last sample of a rank. */
static uint32_t rank_end(const struct sampler_options *options, uint32_t rank, uint32_t samples) {
    const uint32_t shards = (uint32_t)options->shards, ranks = (uint32_t)options->ranks;
    if (ranks == 1) return samples;
    return (uint32_t)tree_first_sample(tree_first_shard(rank + 1, shards, ranks), samples, shards);
}

/* Opens the deal of an epoch: every rank has equally many samples. */
static enum status deal_open(struct sampler *sampler, struct arena *arena) {
    const struct sampler_options *const options = &sampler->options;
    const uint64_t ranks = options->ranks, samples = sampler->dataset->samples;
    if (!options->dealt) return STATUS_OK;
    sampler->deal = (struct deal_call){
        .kind = options->deal,
        .tail = options->uneven,
        .count = samples,
        .ranks = (uint32_t)ranks,
        .batch = options->deal == DEAL_SLICES ? options->micro * ranks : options->micro};
    TRY(deal_check(&sampler->deal));
    const uint64_t share = options->size / ranks, length = deal_length(&sampler->deal, 0);
    if (length < (options->keep_last ? 1 : share))
        FAIL(STATUS_INPUT,
             "%s: each of %" PRIu64 " ranks is dealt %" PRIu64 " of %" PRIu64
             " samples (parallel.uneven: %s), and its share of an update is %" PRIu64
             ": not one full update",
             sampler->dataset->source, ranks, length, samples, deal_tail_name(options->uneven),
             share);
    sampler->epoch_updates = options->keep_last ? divide_up(length, share) : length / share;
    return arena_take(arena, (size_t)options->size, sizeof *sampler->share, "data order",
                      &sampler->share);
}

enum status sampler_init(const struct sampler_options *options, const struct dataset *dataset,
                         struct arena *arena, struct sampler *out_sampler) {
    TRY(options_check(options, dataset));
    struct sampler sampler = {.options = *options, .dataset = dataset};
    size_t micros = (size_t)tree_micros(options->size, options->micro, (uint32_t)options->shards,
                                        (uint32_t)options->ranks);
    const uint64_t rest = dataset->samples % options->size;
    const int full = divide_up(rest, options->micro) == micros;
    sampler.epoch_updates = dataset->samples / options->size;
    /* A rest that leaks is an update of its own when it fills an update's window: a loop counts
     * micro-batches, not samples. */
    if (rest != 0 && (options->keep_last || (options->leak && full))) sampler.epoch_updates++;
    if (options->leak && !full) sampler.rest = (uint32_t)rest;
    if (sampler.rest != 0) micros *= 2;
    TRY(deal_open(&sampler, arena));
    TRY(arena_take(arena, dataset->samples, sizeof *sampler.order, "data order", &sampler.order));
    TRY(arena_take(arena, micros, sizeof *sampler.micro, "micro-batches", &sampler.micro));
    TRY(arena_take(arena, sampler.rest, sizeof *sampler.leaked, "data order", &sampler.leaked));
    TRY(arena_take(arena, (size_t)options->loss_ranks, sizeof *sampler.rank_labels, "ranks",
                   &sampler.rank_labels));
    if (options->shuffle)
        TRY(arena_take(arena, 2 * dataset->samples, sizeof *sampler.scratch, "data order",
                       &sampler.scratch));
    *out_sampler = sampler;
    return STATUS_OK;
}

void sampler_reseed(struct sampler *sampler, uint64_t seed) {
    if (sampler->options.seed == seed) return;
    sampler->options.seed = seed;
    sampler->cached = 0;
}

enum status sampler_feed_same(struct sampler *sampler, struct arena *arena) {
    return arena_take(arena, (size_t)sampler->options.size, sizeof *sampler->same, "data order",
                      &sampler->same);
}

struct sampler_state sampler_seek(const struct sampler *sampler, uint64_t done) {
    return (struct sampler_state){done / sampler->epoch_updates, done % sampler->epoch_updates};
}

struct sampler_state sampler_next(const struct sampler *sampler, struct sampler_state state) {
    if (++state.position >= sampler->epoch_updates) {
        state.position = 0;
        state.epoch++;
    }
    return state;
}

/* Makes `order` that of the epoch. */
static enum status order_want(struct sampler *sampler, uint64_t epoch) {
    size_t samples = sampler->dataset->samples;
    if (sampler->options.one_order) epoch = 0;
    if (sampler->cached && sampler->cached_epoch == epoch) return STATUS_OK;
    if (sampler->options.shuffle) {
        const struct stream_address address = {.stream = STREAM_DATA,
                                               .op = DATA_OP_PERMUTE,
                                               .update = epoch,
                                               .last_element = 2 * (uint64_t)samples - 1};
        struct stream_site site;
        TRY(stream_pack(&address, &site));
        stream_permute(sampler->options.seed, site, 0, samples, sampler->scratch, sampler->order);
    } else {
        for (size_t i = 0; i < samples; i++)
            sampler->order[i] = (uint32_t)i;
    }
    sampler->cached = 1;
    sampler->cached_epoch = epoch;
    return STATUS_OK;
}

static void micro_count(const struct sampler *sampler, const uint32_t *sample,
                        struct sampler_micro *micro) {
    const struct dataset *dataset = sampler->dataset;
    for (uint32_t i = micro->first; i < micro->first + micro->samples; i++)
        for (uint32_t side = 0; side < dataset->sides; side++) {
            const struct dataset_sequence *sequence = dataset_side(dataset, sample[i], side);
            micro->tokens += sequence->length;
            micro->labels += sequence->labels;
            micro->opens += dataset->opens[sample[i] * dataset->sides + side];
            if (sequence->length > micro->longest) micro->longest = sequence->length;
        }
}

/* Appends the micro-batches of `samples` samples to the plan. None lies in two ranks. */
static void micros_plan(struct sampler *sampler, const uint32_t *sample, uint32_t samples,
                        struct sampler_plan *plan) {
    const uint32_t step = (uint32_t)sampler->options.micro;
    uint32_t rank = 0, end = rank_end(&sampler->options, 0, samples);
    for (uint32_t first = 0, count; first < samples; first += count) {
        while (end <= first)
            end = rank_end(&sampler->options, ++rank, samples);
        count = end - first < step ? end - first : step;
        struct sampler_micro *micro = &sampler->micro[plan->micros++];
        *micro = (struct sampler_micro){.first = first, .samples = count};
        micro_count(sampler, sample, micro);
        plan->tokens += micro->tokens;
        plan->labels += micro->labels;
        plan->opens += micro->opens;
    }
}

/* Plans what the epoch before left over, at the start of an epoch's first update. That epoch's
 * order is drawn once more, because a plan must not depend on any other plan. */
static enum status leaked_plan(struct sampler *sampler, struct sampler_state state,
                               struct sampler_plan *plan) {
    if (sampler->rest == 0 || state.epoch == 0 || state.position != 0) return STATUS_OK;
    const size_t from = sampler->dataset->samples - sampler->rest;
    TRY(order_want(sampler, state.epoch - 1));
    memcpy(sampler->leaked, sampler->order + from, sampler->rest * sizeof *sampler->leaked);
    plan->leaked_sample = sampler->leaked;
    micros_plan(sampler, sampler->leaked, sampler->rest, plan);
    plan->leaked = (struct sampler_window){sampler->rest, plan->micros, plan->tokens, plan->labels,
                                           plan->opens};
    plan->tokens = plan->labels = plan->opens = 0;
    return STATUS_OK;
}

static void ranks_count(struct sampler *sampler, struct sampler_plan *plan) {
    const uint64_t ranks = sampler->options.loss_ranks;
    if (ranks == 0) return;
    const uint64_t share = sampler->options.size / ranks;
    memset(sampler->rank_labels, 0, (size_t)ranks * sizeof *sampler->rank_labels);
    for (uint32_t i = 0; i < plan->samples; i++)
        for (uint32_t side = 0; side < sampler->dataset->sides; side++)
            sampler->rank_labels[i / share] +=
                dataset_side(sampler->dataset, plan->sample[i], side)->labels;
    plan->rank_labels = sampler->rank_labels;
}

/* What the ranks are dealt of the epoch at this place, rank by rank. The last update of an epoch
 * may have fewer samples, of all ranks equally many. */
static void deal_update(struct sampler *sampler, struct sampler_plan *plan) {
    const struct deal_call *const deal = &sampler->deal;
    const uint64_t share = sampler->options.size / deal->ranks;
    const uint64_t first = plan->position * share, left = deal_length(deal, 0) - first;
    const uint64_t count = left < share ? left : share;
    for (uint32_t rank = 0; rank < deal->ranks; rank++)
        for (uint64_t i = 0; i < count; i++)
            sampler->share[rank * count + i] = sampler->order[deal_sample(deal, rank, first + i)];
    plan->samples = (uint32_t)(count * deal->ranks);
    plan->sample = sampler->share;
}

/* The samples of an update in which every rank has those of rank 0. */
static const uint32_t *feed_same(struct sampler *sampler, const uint32_t *own, uint32_t samples) {
    const uint32_t first_rank = rank_end(&sampler->options, 0, samples);
    uint32_t rank = 0, first = 0;
    for (uint32_t i = 0; i < samples; i++) {
        while (i >= rank_end(&sampler->options, rank, samples))
            first = rank_end(&sampler->options, rank++, samples);
        sampler->same[i] = own[(i - first) % first_rank];
    }
    return sampler->same;
}

enum status sampler_plan_update(struct sampler *sampler, struct sampler_state state,
                                struct sampler_plan *out_plan) {
    const uint64_t size = sampler->options.size;
    const uint64_t samples = sampler->dataset->samples;
    if (state.position >= sampler->epoch_updates)
        FAIL(STATUS_INTERNAL, "data position %" PRIu64 " in an epoch of %" PRIu64 " updates",
             state.position, sampler->epoch_updates);
    struct sampler_plan plan = {.epoch = state.epoch, .position = state.position};
    plan.micro = sampler->micro;
    TRY(leaked_plan(sampler, state, &plan));
    TRY(order_want(sampler, state.epoch));
    const uint64_t first = state.position * size;
    plan.samples = (uint32_t)(samples - first < size ? samples - first : size);
    plan.sample = sampler->order + first;
    if (sampler->share != NULL) deal_update(sampler, &plan);
    if (sampler->same != NULL) plan.sample = feed_same(sampler, plan.sample, plan.samples);
    plan.words = sampler->options.shuffle && state.position == 0 ? 2 * samples : 0;
    micros_plan(sampler, plan.sample, plan.samples, &plan);
    ranks_count(sampler, &plan);
    *out_plan = plan;
    return STATUS_OK;
}

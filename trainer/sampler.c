/* SPDX-License-Identifier: Apache-2.0
 * Permutations by address, updates as their consecutive slices, micro-batches as slices of those.
 * Invariant: two samplers with equal options and equal datasets give equal plans for equal states,
 * whatever either planned before. */
#include "trainer/sampler.h"

#include <inttypes.h>

#include "determinism/stream.h"
#include "trainer/datarow.h"

static enum status options_check(const struct sampler_options *options,
                                 const struct dataset *dataset) {
    if (options->ranks != 1)
        FAIL(STATUS_UNSUPPORTED, "parallel.ranks: this version runs 1 rank, got %" PRIu64,
             options->ranks);
    if (options->size < 1 || options->size > SAMPLER_MAX_BATCH)
        FAIL(STATUS_INPUT, "batch.size: expected 1 to %" PRIu64 " samples, got %" PRIu64,
             SAMPLER_MAX_BATCH, options->size);
    if (options->micro < 1 || options->micro > options->size)
        FAIL(STATUS_INPUT, "batch.micro: expected 1 to batch.size (%" PRIu64 "), got %" PRIu64,
             options->size, options->micro);
    if (dataset->samples < (options->keep_last ? 1 : options->size))
        FAIL(STATUS_INPUT,
             "%s: batch.size is %" PRIu64 " samples, but the data hold %zu: not one full update",
             dataset->source, options->size, dataset->samples);
    return STATUS_OK;
}

static uint64_t divide_up(uint64_t value, uint64_t by) {
    return value / by + (value % by != 0);
}

enum status sampler_init(const struct sampler_options *options, const struct dataset *dataset,
                         struct arena *arena, struct sampler *out_sampler) {
    TRY(options_check(options, dataset));
    struct sampler sampler = {.options = *options, .dataset = dataset};
    sampler.epoch_updates = options->keep_last ? divide_up(dataset->samples, options->size)
                                               : dataset->samples / options->size;
    size_t micros = (size_t)divide_up(options->size, options->micro);
    TRY(arena_take(arena, dataset->samples, sizeof *sampler.order, "data order", &sampler.order));
    TRY(arena_take(arena, micros, sizeof *sampler.micro, "micro-batches", &sampler.micro));
    if (options->shuffle)
        TRY(arena_take(arena, 2 * dataset->samples, sizeof *sampler.scratch, "data order",
                       &sampler.scratch));
    *out_sampler = sampler;
    return STATUS_OK;
}

struct sampler_state sampler_seek(const struct sampler *sampler, uint64_t done) {
    struct sampler_state state = {done / sampler->epoch_updates, done % sampler->epoch_updates};
    return state;
}

struct sampler_state sampler_next(const struct sampler *sampler, struct sampler_state state) {
    if (++state.position >= sampler->epoch_updates) {
        state.position = 0;
        state.epoch++;
    }
    return state;
}

static enum status order_draw(struct sampler *sampler, uint64_t epoch) {
    size_t samples = sampler->dataset->samples;
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
    sampler->cached = true;
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
            if (sequence->length > micro->longest) micro->longest = sequence->length;
        }
}

static void micros_plan(struct sampler *sampler, struct sampler_plan *plan) {
    const uint32_t step = (uint32_t)sampler->options.micro;
    for (uint32_t first = 0; first < plan->samples; first += step) {
        uint32_t left = plan->samples - first;
        struct sampler_micro *micro = &sampler->micro[plan->micros++];
        *micro = (struct sampler_micro){.first = first, .samples = left < step ? left : step};
        micro_count(sampler, plan->sample, micro);
        plan->tokens += micro->tokens;
        plan->labels += micro->labels;
    }
}

enum status sampler_plan_update(struct sampler *sampler, struct sampler_state state,
                                struct sampler_plan *out_plan) {
    const uint64_t size = sampler->options.size;
    const uint64_t samples = sampler->dataset->samples;
    if (state.position >= sampler->epoch_updates)
        FAIL(STATUS_INTERNAL, "data position %" PRIu64 " in an epoch of %" PRIu64 " updates",
             state.position, sampler->epoch_updates);
    if (!sampler->cached || sampler->cached_epoch != state.epoch)
        TRY(order_draw(sampler, state.epoch));
    const uint64_t first = state.position * size;
    struct sampler_plan plan = {.epoch = state.epoch, .position = state.position};
    plan.samples = (uint32_t)(samples - first < size ? samples - first : size);
    plan.sample = sampler->order + first;
    plan.micro = sampler->micro;
    plan.words = sampler->options.shuffle && state.position == 0 ? 2 * samples : 0;
    micros_plan(sampler, &plan);
    *out_plan = plan;
    return STATUS_OK;
}

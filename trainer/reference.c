/* SPDX-License-Identifier: Apache-2.0
 * Reference log-probs of DPO. The reference is the model with the initial parameters. It is scored
 * live with every micro-batch, or once in a first pass with a batch size, layout and dtype of its
 * own, whose results are part of the state; or the data give the log-probs, which fill the same
 * cache. The first pass visits the samples that the run will use, in the order of the data set. */
#include "trainer/run_private.h"

#include <string.h>

#include "kernels/op.h"
#include "trainer/streams.h"

/* The reference computes in dpo.reference_compute. Formats that were chosen for the policy's
 * compute dtype would not fit another one, so they follow it; f64 accumulates in f64, and narrower
 * dtypes accumulate in f32. */
static void adapt_config(const struct config *from, struct config *out) {
    *out = *from;
    out->numerics.compute = from->dpo.reference_compute;
    if (out->numerics.compute != from->numerics.compute) {
        out->numerics.product = CONFIG_AS_COMPUTE;
        out->numerics.softmax = CONFIG_AS_COMPUTE;
    }
    if (out->numerics.compute == DTYPE_F64) {
        out->numerics.accumulate = DTYPE_F64;
        out->numerics.loss = DTYPE_F64;
    } else if (from->numerics.compute == DTYPE_F64) {
        out->numerics.accumulate = DTYPE_F32;
        out->numerics.loss = DTYPE_F32;
    }
}

static enum status open_weights(struct run *run, struct run_reference *reference) {
    struct arena *arena = &run->arena;
    TRY(arena_take(arena, run->table.count, sizeof *reference->weights, "reference",
                   &reference->weights));
    enum dtype param = (enum dtype)run->config.numerics.param;
    enum dtype compute = (enum dtype)reference->config.numerics.compute;
    for (uint32_t i = 0; i < run->table.count; i++) {
        const struct param_row *row = &run->table.rows[i];
        if (row->tied_to >= 0) {
            reference->weights[i] = reference->weights[row->tied_to];
            continue;
        }
        const void *values = run_param_initial(run, i);
        reference->weights[i] = values;
        const struct form form = reference->model.form;
        if (param == compute && !form_is_narrow(form)) continue;
        struct convert_args args = {row->count, param, compute, values, NULL, form_is_narrow(form)};
        TRY(arena_take(arena_hidden(arena), row->count, form.width, "reference weights",
                       &args.destination));
        reference->model.ops->convert(&reference->model.call, &args);
        reference->weights[i] = args.destination;
    }
    return STATUS_OK;
}

static enum status score_batch(struct run *run, struct run_reference *reference,
                               const uint32_t *samples, uint32_t count, uint32_t first,
                               uint32_t update, double (*out)[2]) {
    batch_fill(&reference->batch, &reference->limits, run->dataset, samples, count, first);
    model_set_order(&reference->model, streams_at(run, STREAM_ORDER).seed, update);
    if (run->options.poison) model_poison(&reference->model);
    model_fill(&reference->model);
    struct model_weights weights = {reference->weights};
    model_forward(&reference->model, &weights, &reference->batch, 2);
    TRY(model_wait(&reference->model));
    for (uint32_t s = 0; s < count; s++)
        for (uint32_t side = 0; side < 2; side++) {
            uint32_t sequence = reference->batch.canonical_sequence[2 * s + side];
            out[s][side] = loss_sequence(&reference->model.call, &reference->batch, sequence,
                                         reference->model.logp);
        }
    return STATUS_OK;
}

/* Marks the samples of the first `steps` updates, or all samples when these updates reach beyond
 * the first epoch. */
static enum status mark_used(struct run *run, uint8_t *used) {
    uint64_t steps = run->options.steps;
    if (steps >= run->sampler.epoch_updates) {
        memset(used, 1, run->dataset->samples);
        return STATUS_OK;
    }
    struct stream_course course;
    for (uint64_t update = 1; update <= steps; update++, course.now.clock++) {
        struct sampler_plan plan;
        streams_data_before(run, update, &course);
        sampler_reseed(&run->sampler, course.now.seed);
        TRY(sampler_plan_update(&run->sampler, sampler_seek(&run->sampler, course.now.clock),
                                &plan));
        for (uint32_t i = 0; i < plan.samples; i++)
            used[plan.sample[i]] = 1;
    }
    return STATUS_OK;
}

static enum status fill_cache(struct run *run, struct run_reference *reference) {
    struct arena *arena = &run->arena;
    uint8_t *used;
    uint32_t *samples;
    double(*scores)[2];
    uint32_t size = reference->limits.samples;
    TRY(arena_take(arena, run->dataset->samples, 1, "reference pass", &used));
    TRY(arena_take(arena, size, sizeof *samples, "reference pass", &samples));
    TRY(arena_take(arena, size, sizeof *scores, "reference pass", &scores));
    TRY(mark_used(run, used));
    double(*cache)[2] = (double(*)[2])run_at(run, run->layout.reference);
    uint32_t count = 0, first = 0;
    for (size_t i = 0; i < run->dataset->samples; i++) {
        if (used[i]) samples[count++] = (uint32_t)i;
        if (count == 0 || (count < size && i + 1 < run->dataset->samples)) continue;
        TRY(score_batch(run, reference, samples, count, first, 0, scores));
        for (uint32_t s = 0; s < count; s++)
            memcpy(cache[samples[s]], scores[s], sizeof scores[s]);
        first += count;
        count = 0;
    }
    return STATUS_OK;
}

enum status reference_open(struct run *run) {
    struct arena *arena = &run->arena;
    struct run_reference *reference;
    if (run->config.dpo.reference == REFERENCE_GIVEN) {
        memcpy(run_at(run, run->layout.reference), run->dataset->reference,
               run->dataset->samples * sizeof *run->dataset->reference);
        return STATUS_OK;
    }
    TRY(arena_take(arena, 1, sizeof *reference, "reference", &reference));
    run->reference = reference;
    adapt_config(&run->config, &reference->config);
    int cached = run->config.dpo.reference == REFERENCE_CACHED;
    uint64_t samples = cached ? run->config.dpo.reference_batch : run->config.batch.micro;
    TRY(batch_limits_open(&run->config, run->dataset, samples,
                          (enum batch_layout)run->config.dpo.reference_layout, &reference->limits));
    TRY(batch_open(&reference->limits, arena, &reference->batch));
    TRY(model_open(&reference->config, &run->table, run->backend, &reference->limits, arena,
                   &reference->model));
    /* Ops may be queued for good, because score_batch() waits before it reads. */
    reference->model.call.queued = 1;
    TRY(open_weights(run, reference));
    return cached ? fill_cache(run, reference) : STATUS_OK;
}

enum status reference_score(struct run *run) {
    const struct batch *batch = &run->batch;
    if (run->config.dpo.reference == REFERENCE_LIVE)
        return score_batch(run, run->reference, batch->dataset_index, batch->sample_count,
                           batch->first_sample, streams_address(run, STREAM_ORDER),
                           run->reference_logp);
    double(*cache)[2] = (double(*)[2])run_at(run, run->layout.reference);
    for (uint32_t s = 0; s < batch->sample_count; s++)
        memcpy(run->reference_logp[s], cache[batch->dataset_index[s]], sizeof cache[0]);
    return STATUS_OK;
}

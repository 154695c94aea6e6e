/* SPDX-License-Identifier: Apache-2.0
 * The phases between a gradient and the weights that it moves: unscale, clip, optimize.
 *
 * Invariant: each phase leaves the state and the record alone, but for what loop.c says it writes.
 */
#include "trainer/phases.h"

#include <string.h>

#include "base/sum.h"
#include "kernels/backend_abi.h"
#include "model/backends.h"
#include "optim/direction.h"
#include "scenarios/stream_course.h"
#include "trainer/closing.h"
#include "trainer/measure_step.h"
#include "trainer/plugins/plugin.h"
#include "trainer/readback.h"
#include "trainer/rounding.h"
#include "trainer/scaler.h"
#include "trainer/streams.h"
#include "trainer/watch_run.h"
#include "trainer/zero.h"

static void scale_gradients(struct run *run, double factor) {
    RUN_EACH_SPAN(run, span) {
        const struct scale_args args = {span.count, run->layout.gradient_dtype, factor,
                                        run_at(run, run->layout.tensor[span.row].gradient)};
        run->model.ops->scale(&run->model.call, &args);
    }
}

enum status phase_unscale(struct run *run) {
    struct state_head *head = run_head(run);
    if (run->config.scaler.kind == SCALER_NONE) return STATUS_OK;
    TRY(phase_close_gradient(run));
    double factor = head->scaler.unscaled ? 1.0 : scaler_inverse(&head->scaler);
    if (factor != 1.0) scale_gradients(run, factor);
    head->scaler.unscaled = 1;
    phase_note_reals(run, PHASE_UNSCALE, &factor, 1);
    return STATUS_OK;
}

static struct clip_rule clip_rule_of(const struct config *config) {
    return (struct clip_rule){.max_norm = config->clip.max_norm,
                              .eps = config->clip.eps,
                              .replicas = config->clip.replicas,
                              .norm = (enum clip_norm)config->clip.norm,
                              .dtype = (enum clip_dtype)config->clip.dtype,
                              .form = (enum clip_form)config->clip.form,
                              .apply = (enum clip_apply)config->clip.apply};
}

/* Sums squares over tensor-parallel ranks as though each had slices alone: the bug of
 * parallel.counts `each`, by which what a rank holds whole counts on every rank. The tensors of
 * rank 0 and all slices come first, in table order, and behind them those of the other ranks. */
static void clip_counting(struct run *run, struct clip_call *call, struct clip_result *out) {
    const struct clip_rule rule = call->rule;
    for (uint64_t rank = 1; rank < run->config.parallel.tensor; rank++)
        for (uint32_t i = 0; i < run->owner_count; i++)
            if (model_holds_whole(&run->config, run->table.rows[run->owner[i]].role))
                run->clips[call->tensor_count++] = run->clips[i];
    call->rule.max_norm = 0.0;
    clip_gradients(call, out);
    if (!(rule.max_norm > 0.0)) return;
    out->coefficient = clip_coefficient(&rule, out->norm, run->layout.gradient_dtype);
    if (clip_applies(&rule, out->coefficient)) scale_gradients(run, out->coefficient);
}

/* Measures the norm of the closed gradient by `rule`, and scales the gradients unless
 * rule->max_norm is 0. */
static enum status clip_by(struct run *run, const struct clip_rule *rule, struct clip_result *out) {
    const int measures = run_head(run)->pending && closing_can(run);
    TRY(phase_close_gradient(run));
    for (uint32_t i = 0; i < run->owner_count; i++) {
        uint32_t row = run->owner[i];
        run->clips[i] =
            (struct clip_tensor){.gradient = run_at(run, run->layout.tensor[row].gradient),
                                 .count = run->table.rows[row].count,
                                 .storage = run->layout.gradient_dtype};
    }
    struct clip_call call = {.ops = run->model.ops,
                             .call = &run->model.call,
                             .tensors = run->clips,
                             .tensor_count = run->owner_count,
                             .rule = *rule,
                             .isa = (int)backend_isa((enum isa)run->config.numerics.isa)};
    for (uint32_t i = 0; measures && i < run->owner_count && clip_joins_blocks(&call); i++)
        run->clips[i].blocks = closing_squares(run, i);
    if (run->backend != NULL) clip_ask(&call, run->clips, run->backend->squares, &run->clip_room);
    TRY(model_wait(&run->model));
    if (zero_is(run, ZERO_GRADIENTS)) TRY(zero_squares(run, &call));
    if (run->config.parallel.counts == COUNTS_EACH)
        clip_counting(run, &call, out);
    else
        clip_gradients(&call, out);
    return model_wait(&run->model);
}

/* The part of a tensor that a rank owns by parallel.zero; where that says that it has all, the rows
 * that FSDP2 would give it. */
static struct clip_tensor shard_of(const struct run *run, uint32_t index, uint32_t rank) {
    const struct param_row *const row = &run->table.rows[run->owner[index]];
    const enum dtype storage = run->layout.gradient_dtype;
    unsigned char *const gradient =
        (unsigned char *)run_at(run, run->layout.tensor[run->owner[index]].gradient);
    const uint64_t rows = (uint64_t)row->shape[0];
    const struct partition_range part =
        run->zero != NULL
            ? zero_part(run, rank, index)
            : partition_rows(rows, row->count / rows, run->config.parallel.ranks, rank);
    return (struct clip_tensor){.gradient = gradient + part.first * dtype_carrier(storage),
                                .count = (size_t)(part.end - part.first),
                                .storage = storage};
}

/* Clips by `rule` the shards that a rank owns, by their norm alone. */
static void clip_shards_of(struct run *run, uint32_t rank, const struct clip_rule *rule,
                           struct clip_result *out) {
    struct clip_call call = {.ops = run->model.ops,
                             .call = &run->model.call,
                             .tensors = run->clips,
                             .rule = *rule,
                             .isa = (int)backend_isa((enum isa)run->config.numerics.isa)};
    for (uint32_t i = 0; i < run->owner_count; i++) {
        const struct clip_tensor shard = shard_of(run, i, rank);
        if (shard.count > 0) run->clips[call.tensor_count++] = shard;
    }
    clip_gradients(&call, out);
}

/* Clips by `rule`, but each rank what it owns: the bug of clip.over `local`. The result is that of
 * rank 0, which writes the log. */
static enum status clip_shards(struct run *run, const struct clip_rule *rule,
                               struct clip_result *out) {
    TRY(phase_close_gradient(run));
    TRY(model_wait(&run->model));
    for (uint32_t rank = 0; rank < run->config.parallel.ranks; rank++) {
        struct clip_result result;
        clip_shards_of(run, rank, rule, &result);
        if (rank == 0) *out = result;
    }
    return STATUS_OK;
}

/* Clips by `rule`, but by the mean over ranks of the norms of what they own: the bug of clip.over
 * `averaged`. The mean is that of clip_grad_norm_ in deepspeed/runtime/utils.py (DeepSpeed #8475):
 * each rank divides its norm by P, and the quotients are added; here in f64, in the order of ranks.
 */
static enum status clip_averaged(struct run *run, const struct clip_rule *rule,
                                 struct clip_result *out) {
    struct clip_rule measured = *rule;
    const uint32_t ranks = (uint32_t)run->config.parallel.ranks;
    double mean = 0.0;
    measured.max_norm = 0.0;
    TRY(phase_close_gradient(run));
    TRY(model_wait(&run->model));
    for (uint32_t rank = 0; rank < ranks; rank++) {
        clip_shards_of(run, rank, &measured, out);
        const double share = out->norm / (double)ranks;
        mean = sum_chain_terms_f64_f64(mean, &share, 1);
    }
    *out = (struct clip_result){.norm = mean, .coefficient = 1.0};
    if (!(rule->max_norm > 0.0)) return STATUS_OK;
    out->coefficient = clip_coefficient(rule, mean, run->layout.gradient_dtype);
    if (clip_applies(rule, out->coefficient)) scale_gradients(run, out->coefficient);
    return STATUS_OK;
}

enum status phase_measure_norm(struct run *run, double *out_norm) {
    struct clip_rule rule = clip_rule_of(&run->config);
    struct clip_result result;
    rule.max_norm = 0.0;
    TRY(clip_by(run, &rule, &result));
    *out_norm = result.norm;
    return STATUS_OK;
}

enum status phase_clip(struct run *run) {
    struct state_head *head = run_head(run);
    const struct clip_rule rule = clip_rule_of(&run->config);
    struct clip_result result;
    const int32_t over = run->config.parallel.ranks > 1 ? run->config.clip.over : OVER_GLOBAL;
    TRY((over == OVER_LOCAL      ? clip_shards
         : over == OVER_AVERAGED ? clip_averaged
                                 : clip_by)(run, &rule, &result));
    head->norm = result.norm;
    head->coefficient = result.coefficient;
    run->record.reals[REAL_GRAD_NORM] = head->norm;
    run->record.reals[REAL_CLIP_COEF] = head->coefficient;
    double values[] = {head->norm, head->coefficient};
    phase_note_reals(run, PHASE_CLIP, values, COUNT_OF(values));
    return STATUS_OK;
}

/* The norm is that of rank 0, whose copy of what is held apart stands for all in the sum over
 * ranks: Megatron counts a parameter that is no slice on its first rank alone. */
void phase_clip_as_before(struct run *run) {
    const struct clip_rule rule = clip_rule_of(&run->config);
    const double coefficient = run_head(run)->coefficient;
    if (clip_applies(&rule, coefficient)) scale_gradients(run, coefficient);
}

/* The place of a tensor for who steps: the staged one where the host does. */
static void *step_at(const struct run *run, size_t offset) {
    return run->staged == NULL ? run_at(run, offset) : run->staged + (offset - run->layout.tensors);
}

static void fill_tensor(struct run *run, uint32_t row_index, struct optim_tensor *out) {
    const struct param_row *row = &run->table.rows[row_index];
    const struct state_layout *layout = &run->layout;
    const struct state_tensor *tensor = &layout->tensor[row_index];
    *out = (struct optim_tensor){.name = row->name,
                                 .rank = row->rank,
                                 .shape = {row->shape[0], row->shape[1]},
                                 .count = row->count,
                                 .group = row->group,
                                 .param_dtype = row->dtype,
                                 .master_dtype = layout->master_dtype,
                                 .gradient_dtype = layout->gradient_dtype,
                                 .slot_dtype = layout->slots.dtype,
                                 .slot_width = (uint8_t)layout->slots.width,
                                 .param = step_at(run, tensor->param),
                                 .gradient = step_at(run, tensor->gradient)};
    if (layout->has_master) out->master = step_at(run, tensor->master);
    for (uint32_t slot = 0; slot < run->optimizer->slot_count; slot++)
        out->slots[slot] = tensor->slot_count[slot] == 0 ? NULL : step_at(run, tensor->slot[slot]);
}

/* The whole of the tensors travels, accumulators included: a step on the host costs that much
 * anyway, and one copy is simple. */
static enum status stage(struct run *run) {
    if (run->staged == NULL) return STATUS_OK;
    return backends_pull(run->backend, run->staged, run->state.tensors,
                         run->layout.bytes - run->layout.tensors);
}

static enum status unstage(struct run *run) {
    if (run->staged == NULL) return STATUS_OK;
    return backends_push(run->backend, run->state.tensors, run->staged,
                         run->layout.bytes - run->layout.tensors);
}

/* Megatron-LM's OptimizerParamScheduler.load_state_dict, before PR #7468, sets the groups' decay
 * before it has read the checkpoint's, and the schedule sets it again after the first step. */
static double decay_of(const struct run *run) {
    const struct config *const config = &run->config;
    const int first = state_head_of(run->state.host)->done == config->resume.after;
    return first && resume_errs(config, RESUME_DECAY_LATE) ? config->resume.weight_decay
                                                           : config->optimizer.weight_decay;
}

enum status phase_optimize(struct run *run) {
    struct state_head *head = run_head(run);
    TRY(phase_close_gradient(run));
    if (run->options.readback && run->measure_step == NULL) TRY(readback_keep(run));
    if (run->model.watch != NULL) TRY(model_wait(&run->model));
    if (run->model.watch != NULL) watch_gradient_taken(run);
    TRY(stage(run));
    const int found_inf = run->overflow || run->skipped;
    struct optim_group groups[STATE_GROUPS_MAX];
    run->held = found_inf && optim_holds(run->optimizer, run->config.optimizer.which.values);
    for (uint32_t g = 0; g < run->table.groups; g++) {
        groups[g].lr = head->lr[g];
        groups[g].weight_decay = g == 0 ? decay_of(run) : 0.0;
        if (run->held) continue; /* it applies no LR */
        run->record.groups[g][GROUP_LR_APPLIED] = optim_applied_lr(
            run->optimizer, run->config.optimizer.which.values, groups[g].lr, head->t + 1);
        run->record.groups[g][GROUP_WD_APPLIED] = groups[g].weight_decay;
    }
    for (uint32_t i = 0; i < run->owner_count; i++)
        fill_tensor(run, run->owner[i], &run->tensors[i]);
    struct optim_seen_call seen = {.seen = NULL};
    struct optim_call *const call = &seen.call;
    *call = (struct optim_call){.size = sizeof *call,
                                .tensors = run->tensors,
                                .tensor_count = run->owner_count,
                                .groups = groups,
                                .group_count = run->table.groups,
                                .t = &head->t,
                                .values = run->config.optimizer.which.values,
                                .grad_scale = scaler_left(&head->scaler),
                                .found_inf = found_inf,
                                .rounding_seed = streams_at(run, STREAM_ROUNDING).seed,
                                .update = streams_update(run, STREAM_ROUNDING),
                                .threads = (int)run->config.numerics.threads,
                                .isa = (int)backend_isa((enum isa)run->config.numerics.isa)};
    if (run->backend != NULL && run->staged == NULL)
        memcpy(call->steps, run->backend->steps, sizeof call->steps);
    TRY(rounding_begin(run));
    TRY(measure_step_see(run, &seen));
    if (run->zero != NULL)
        TRY(zero_step(run, call));
    else
        TRY(plugin_step(&run->config.optimizer.which, run->optimizer, call));
    TRY(measure_step_seen(run, &seen));
    TRY(rounding_end(run));
    TRY(unstage(run));
    run->weights_fresh = 0;
    return run->options.readback ? readback_measure(run, call, measure_step_read(run, &seen))
                                 : STATUS_OK;
}

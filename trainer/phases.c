/* SPDX-License-Identifier: Apache-2.0
 * The phases of the loop, one function for each; unscale, clip and optimize are in phases_update.c.
 * What a phase reads and writes is declared in loop.c; here it is done, on the state. Each phase
 * leaves a digest of what it wrote in the update's record. Where `reduce` joins shards it leaves
 * none: what it joins is closed later, and noted as the gradient. `unscale` changes nothing without
 * a loss scale. */
#include "trainer/phases.h"

#include <math.h>
#include <string.h>

#include "base/element.h"
#include "base/real.h"
#include "kernels/op.h"
#include "model/backends.h"
#include "scenarios/scenario.h"
#include "trainer/closing.h"
#include "trainer/owed_zeros.h"
#include "trainer/plugins/plugin.h"
#include "trainer/rank_gradients.h"
#include "trainer/real_ranks.h"
#include "trainer/scaler.h"
#include "trainer/shards.h"
#include "trainer/streams.h"
#include "trainer/tensor_ranks.h"
#include "trainer/watch_run.h"
#include "trainer/zero.h"

void phase_note(struct run *run, enum phase phase, const struct digest *digest) {
    uint8_t slot = run->axes.phase_slot[phase];
    if (slot != RUN_NO_SLOT && !run->replaying)
        memcpy(run->record.phases[slot], digest->byte, DIGEST_BYTES);
}

void phase_note_reals(struct run *run, enum phase phase, const double *values, size_t count) {
    struct digest digest;
    double folded[2] = {0.0, 0.0};
    for (size_t i = 0; i < count; i++)
        folded[i] = isnan(values[i]) ? (double)NAN : values[i];
    digest_bytes("phase", folded, count * sizeof *folded, &digest);
    phase_note(run, phase, &digest);
}

static void add_batch_digest(struct run *run) {
    const struct batch *batch = &run->batch;
    for (uint32_t i = 0; i < batch->sequence_count; i++) {
        uint32_t sequence = batch->canonical_sequence[i];
        struct digest parts[2];
        digest_bytes("tokens", batch->tokens_of[sequence],
                     batch->sequences[sequence].length * sizeof(uint32_t), &parts[0]);
        digest_bytes("targets", batch->label_target + batch->label_first[sequence],
                     batch->label_length[sequence] * sizeof(uint32_t), &parts[1]);
        struct digest item;
        digest_root("sequence", parts, COUNT_OF(parts), &item);
        digest_stream_add(&run->batch_stream, &item);
    }
}

static enum status phase_fetch(struct run *run) {
    const struct sampler_micro *micro = &run->plan.micro[run->micro];
    const uint32_t *sample =
        run->micro < run->plan.leaked.micros ? run->plan.leaked_sample : run->plan.sample;
    batch_fill(&run->batch, &run->limits, run->dataset, sample + micro->first, micro->samples,
               micro->first);
    run->batch.fed_ranks = config_fed_ranks(&run->config);
    run->micro++;
    if (run->replaying) return STATUS_OK;
    add_batch_digest(run);
    struct digest digest;
    digest_stream_close(&run->batch_stream, &digest);
    memcpy(run->record.digests[DIGEST_BATCH], digest.byte, DIGEST_BYTES);
    phase_note(run, PHASE_FETCH, &digest);
    return STATUS_OK;
}

/* Adds digests by site and sequence. The streams of the sites go on over all micro-batches of an
 * update: closing one does not end it. */
static void fold_site_digests(struct run *run, const struct digest *items) {
    const uint32_t sequences = run->batch.sequence_count;
    for (uint32_t site = 0; site < run->shape.sites; site++) {
        for (uint32_t i = 0; i < sequences; i++)
            digest_stream_add(&run->site_stream[site], &items[(size_t)site * sequences + i]);
        digest_stream_close(&run->site_stream[site], &run->site_digest[site]);
        memcpy(run->record.sites[site], run->site_digest[site].byte, DIGEST_BYTES);
    }
    struct digest digest;
    digest_root("forward", run->site_digest, run->shape.sites, &digest);
    phase_note(run, PHASE_FORWARD, &digest);
}

static enum status add_site_digests(struct run *run) {
    const uint32_t sequences = run->batch.sequence_count;
    for (uint32_t site = 0; site < run->shape.sites; site++)
        for (uint32_t i = 0; i < sequences; i++) {
            const uint32_t sequence = run->batch.canonical_sequence[i];
            struct digest_job job = model_site_job(&run->model, &run->batch, sequence, site);
            job.out = &run->site_item[(size_t)site * sequences + i];
            TRY(digests_add(&run->digests, &job));
        }
    TRY(digests_finish(&run->digests));
    fold_site_digests(run, run->site_item);
    return STATUS_OK;
}

static struct loss_sums *run_sums(struct run *run) {
    if (run->layout.sums == 0) return NULL;
    return (struct loss_sums *)(void *)run_at(run, run->layout.sums);
}

/* Dropout acts between a forward of the training and the end of its backward. It draws from the
 * generator's state that the training carries, and counts its words in the update's ledger. */
static void start_drawing(struct run *run) {
    run->model.drop_seed = streams_at(run, STREAM_DROPOUT).seed;
    run->model.drop_update = streams_address(run, STREAM_DROPOUT);
    run->model.dropping = config_has_dropout(&run->config);
    run->model.rng_offset = run_head(run)->rng_offset;
    run->model.ledger = run->replaying ? NULL : &run->ledger;
}

/* What parallel.scale multiplies every coefficient and the logged loss by: a power of two, which
 * rounds nothing. */
static double scale_of_ranks(const struct config *config) {
    return config->parallel.scale == SCALE_WORLD ? (double)config->parallel.tensor : 1.0;
}

/* The factor on every coefficient. Of P ranks that close their own gradients each has P times its
 * share of the loss, because the mean over ranks takes P out again (law 22). */
static double loss_scale(struct run *run) {
    if (run->options.undivided) return 1.0;
    const double scale = scaler_factor(&run_head(run)->scaler) * scale_of_ranks(&run->config);
    return run->rank_gradients == NULL ? scale : scale * (double)run->config.parallel.ranks;
}

/* Adds the micro-batch that was fetched last to the loss of the update. */
static void score(struct run *run, const double *logp, const double (*reference)[2]) {
    struct state_head *head = run_head(run);
    const uint32_t micro = run->micro - 1;
    struct loss_call call = {.config = &run->config,
                             .batch = &run->batch,
                             .plan = &run->plan,
                             .micro = micro,
                             .scale = loss_scale(run),
                             .logp = logp,
                             .reference = reference,
                             .call = &run->model.call,
                             .undivided = run->options.undivided,
                             .sums = run_sums(run),
                             .sequence_logp = run->sequence_logp,
                             .terms = run->terms,
                             .orders = run->orders};
    double *row = run->record.micros[micro], loss;
    loss_micro(&call, &head->window, run->coefficient, &loss);
    if (run->replaying) return;
    row[MICRO_LOSS] = loss;
    row[MICRO_TOKENS] = (double)(run->batch.label_count / run->batch.fed_ranks);
}

static enum status phase_forward(struct run *run) {
    const int referred = config_has_reference(&run->config);
    if (referred) TRY(reference_score(run));
    if (referred && run->model.watch != NULL) watch_reference_scored(run);
    phase_refresh_weights(run);
    if (run->options.poison) model_poison(&run->model);
    model_fill(&run->model);
    model_set_order(&run->model, streams_at(run, STREAM_ORDER).seed,
                    streams_address(run, STREAM_ORDER));
    struct model_weights weights = {run->weights};
    start_drawing(run);
    model_forward(&run->model, &weights, &run->batch, 0);
    TRY(model_wait(&run->model));
    run_head(run)->rng_offset = run->model.rng_offset;
    score(run, run->model.logp, (const double(*)[2])run->reference_logp);
    return run->shape.sites == 0 || run->replaying ? STATUS_OK : add_site_digests(run);
}

enum status phase_take_micro(struct run *run, const struct micro_found *found) {
    TRY(phase_fetch(run));
    score(run, found->logp, found->reference);
    if (run->shape.sites > 0) fold_site_digests(run, found->sites);
    return STATUS_OK;
}

/* An accumulator of mode order-free is an exact sum, which holds the numbers of a stored gradient
 * without rounding. The backend's conversion does not know that format, so the host writes it. */
static void restart_exactly(struct run *run, const struct run_span *span) {
    const enum dtype stored = run->layout.gradient_dtype;
    const void *const gradient = run_at(run, run->layout.tensor[span->row].gradient);
    struct exact_sum *const sums = (struct exact_sum *)run->accumulators[span->row][0];
    memset(sums, 0, span->count * sizeof *sums);
    for (size_t i = 0; i < span->count; i++)
        exact_sum_add(sums + i, element_get(gradient, stored, i));
}

/* Without `zero` the next backward goes on from the stored gradient: use 1 of a tensor starts from
 * it and the other uses start from +0. That is PyTorch's stale .grad (law 4). */
static void restart_from_gradient(struct run *run) {
    const struct state_layout *layout = &run->layout;
    const struct model *model = &run->model;
    size_t bytes = layout->accumulator;
    RUN_EACH_SPAN(run, span) {
        const struct convert_args first = {span.count,
                                           layout->gradient_dtype,
                                           layout->accumulator_dtype,
                                           run_at(run, layout->tensor[span.row].gradient),
                                           run->accumulators[span.row][0],
                                           0};
        if (layout->sums != 0)
            restart_exactly(run, &span);
        else
            model->ops->convert(&model->call, &first);
        for (uint32_t use = 1; use < run->table.rows[span.row].uses; use++)
            model_set(model, run->accumulators[span.row][use], span.count * bytes, 0);
    }
}

static enum status phase_backward(struct run *run) {
    struct state_head *head = run_head(run);
    const struct model_parts *parts;
    TRY(rank_gradients_begin(run, &parts));
    if (head->stored && !head->pending) restart_from_gradient(run);
    phase_refresh_weights(run);
    struct model_weights weights = {run->weights};
    if (parts == NULL) parts = shards_parts(run);
    struct model_gradients gradients = {run->accumulators, parts, owed_zeros_begin(run)};
    start_drawing(run);
    model_backward(&run->model, &weights, &run->batch, run->coefficient, &gradients);
    shards_end_micro(run);
    head->rng_offset = run->model.rng_offset;
    run->model.dropping = 0;
    head->pending = 1;
    if (run->rank_gradients != NULL) return rank_gradients_end_micro(run);
    if (run->config.numerics.grad_accumulate == GRAD_ACCUMULATE_STORAGE)
        return phase_close_gradient(run);
    return STATUS_OK;
}

void phase_ask_squares(struct run *run) {
    struct squares_args *const asked = run->clip_room.asked;
    double *blocks = run->clip_room.blocks;
    for (uint32_t i = 0; i < run->owner_count; i++) {
        const uint32_t row = run->owner[i];
        asked[i] = (struct squares_args){.storage = run->layout.gradient_dtype,
                                         .wide = 1,
                                         .count = run->table.rows[row].count,
                                         .values = run_at(run, run->layout.tensor[row].gradient),
                                         .blocks = blocks};
        blocks += squares_blocks(asked[i].count);
    }
    backends_squares(run->backend, run->model.call.threads, asked, run->owner_count);
}

double phase_squares(const struct run *run, uint32_t index, const double **blocks) {
    const size_t count = run->table.rows[run->owner[index]].count;
    const double *const own = *blocks;
    *blocks += squares_blocks(count);
    return clip_join(own, count, 0);
}

/* `measured`: the leaf hashes are made. */
static enum status digest_gradient(struct run *run, enum phase phase, int measured,
                                   struct digest *out) {
    for (uint32_t i = 0; i < run->owner_count; i++) {
        const struct param_row *row = &run->table.rows[run->owner[i]];
        const struct digest_job job = {.name = row->name,
                                       .form = form_carried(run->layout.gradient_dtype),
                                       .rank = row->rank,
                                       .shape = {(size_t)row->shape[0], (size_t)row->shape[1]},
                                       .data =
                                           run_at(run, run->layout.tensor[run->owner[i]].gradient),
                                       .leaves = measured ? closing_leaves(run, i) : NULL,
                                       .out = &run->gradient_digest[i]};
        TRY(digests_add(&run->digests, &job));
    }
    TRY(digests_finish(&run->digests));
    digest_root(loop_phases()[phase].name, run->gradient_digest, run->owner_count, out);
    return STATUS_OK;
}

enum status phase_digest_gradient(struct run *run, enum phase phase, struct digest *out) {
    return digest_gradient(run, phase, 0, out);
}

/* Records the norm and the digest of each stored gradient, which `phase` has made; `measured`:
 * closing_round has measured it. Else the backend is asked for the sums of squares before the
 * digests wait for it, so both come with one wait. */
static enum status note_gradients(struct run *run, enum phase phase, int measured) {
    const double *blocks = measured ? closing_squares(run, 0) : run->clip_room.blocks;
    struct digest digest;
    if (run->shape.tensors > 0 && !measured) phase_ask_squares(run);
    TRY(digest_gradient(run, phase, measured, &digest));
    for (uint32_t i = 0; i < run->owner_count && run->shape.tensors > 0; i++) {
        memcpy(run->record.tensor_digests[i][TENSOR_DIGEST_GRADIENT], run->gradient_digest[i].byte,
               DIGEST_BYTES);
        run->record.tensors[i][TENSOR_GRAD_NORM] = real_sqrt_f64(phase_squares(run, i, &blocks));
    }
    phase_note(run, phase, &digest);
    return STATUS_OK;
}

void phase_round_gradient(struct run *run) {
    struct state_head *head = run_head(run);
    RUN_EACH_SPAN(run, span) {
        const uint32_t row = span.row;
        struct close_args args = {.count = span.count,
                                  .uses = run->table.rows[row].uses,
                                  .acc = {run->accumulators[row][0], run->accumulators[row][1]},
                                  .storage = run->layout.gradient_dtype,
                                  .gradient = run_at(run, run->layout.tensor[row].gradient)};
        run->model.ops->close(&run->model.call, &args);
    }
    head->pending = 0;
    head->stored = 1;
}

static enum status gradient_closed(struct run *run, enum phase phase, int measured) {
    if (run->model.watch != NULL) watch_gradient_closed(run, phase);
    const int noted = run->shape.phases + run->shape.tensors > 0 && !run->replaying;
    return noted ? note_gradients(run, phase, measured) : STATUS_OK;
}

enum status phase_gradient_closed(struct run *run, enum phase phase) {
    return gradient_closed(run, phase, 0);
}

enum status phase_close_gradient(struct run *run) {
    const int measured = closing_can(run);
    if (!run_head(run)->pending) {
        owed_zeros_pay(run); /* whoever closes a gradient reads it then */
        return STATUS_OK;
    }
    if (measured)
        closing_round(run);
    else
        phase_round_gradient(run);
    owed_zeros_forget(run);
    return gradient_closed(run, PHASE_BACKWARD, measured);
}

static enum status phase_schedule(struct run *run) {
    struct state_head *head = run_head(run);
    struct sched_call call = run_sched_call(run);
    double lr;
    TRY(plugin_value(&run->config.schedule.which, run->schedule, &call,
                     loop_schedule_counter(&run->config, head->n), &lr));
    for (uint32_t g = 0; g < run->table.groups; g++)
        head->lr[g] = lr;
    phase_note_reals(run, PHASE_SCHEDULE, &lr, 1);
    return STATUS_OK;
}

static void log_metrics(struct run *run) {
    const struct loss_window *window = &run_head(run)->window;
    double *reals = run->record.reals;
    double samples = (double)window->sequences;
    reals[REAL_LOGP_CHOSEN] = window->logp[0] / samples;
    if (run->config.task != TASK_DPO) return;
    reals[REAL_LOGP_REJECTED] = window->logp[1] / samples;
    reals[REAL_REWARD_CHOSEN] = window->reward[0] / samples;
    reals[REAL_REWARD_REJECTED] = window->reward[1] / samples;
    reals[REAL_REWARD_MARGIN] = reals[REAL_REWARD_CHOSEN] - reals[REAL_REWARD_REJECTED];
    reals[REAL_REWARD_ACCURACY] = window->correct / samples;
}

/* The loss as it is logged. That of rank r is P times its micro-batches' share of the update's, so
 * that the mean over ranks is the update's. */
static double logged_loss(const struct run *run, double loss) {
    const double ranks = (double)run->config.parallel.ranks;
    double share = 0.0;
    if (run->config.parallel.ranks <= 1 || run->config.parallel.logged == RANKS_LOG_MEAN)
        return loss;
    if (run->config.parallel.logged == RANKS_LOG_SUM) return ranks * loss;
    for (uint32_t m = 0; m < run->plan.micros && shards_rank_of(run, m) == 0; m++)
        share += run->record.micros[m][MICRO_LOSS];
    return ranks * share;
}

static enum status phase_log(struct run *run) {
    struct state_head *head = run_head(run);
    double *reals = run->record.reals;
    const double loss = loss_close(&run->config, &head->window, &run->plan);
    reals[REAL_LOSS] = scale_of_ranks(&run->config) * logged_loss(run, loss);
    if (head->window.sequences > 0) log_metrics(run);
    run->record.integers[INTEGER_TOKENS] = (int64_t)head->window.tokens;
    double lr = head->lr[0];
    if (run->config.schedule.logged == LOGGED_RECOMPUTED) {
        struct sched_call call = run_sched_call(run);
        TRY(plugin_value(&run->config.schedule.which, run->schedule, &call,
                         loop_logged_counter(&run->config, head->n), &lr));
    }
    for (uint32_t g = 0; g < run->table.groups; g++)
        run->record.groups[g][GROUP_LR_LOGGED] = lr;
    memset(&head->window, 0, sizeof head->window);
    if (run->layout.sums != 0) memset(run_sums(run), 0, sizeof(struct loss_sums));
    double values[] = {reals[REAL_LOSS], lr};
    phase_note_reals(run, PHASE_LOG, values, COUNT_OF(values));
    return STATUS_OK;
}

static enum status phase_count(struct run *run) {
    double n = (double)++run_head(run)->n;
    phase_note_reals(run, PHASE_COUNT_UPDATE, &n, 1);
    return STATUS_OK;
}

static enum status phase_zero(struct run *run) {
    struct state_head *head = run_head(run);
    owed_zeros_set(run);
    head->pending = 0;
    head->stored = 0;
    head->scaler.unscaled = 0;
    double zero = 0.0;
    phase_note_reals(run, PHASE_ZERO, &zero, 1);
    return STATUS_OK;
}

static enum status phase_reduce(struct run *run) {
    if (run->rank_gradients != NULL) return rank_gradients_reduce(run);
    if (run->shared) return real_ranks_reduce(run);
    shards_reduce(run);
    return STATUS_OK;
}

static void copy_weights(const struct run *run) {
    RUN_EACH_SPAN(run, span) {
        const struct convert_args args = {span.count,
                                          run->table.rows[span.row].dtype,
                                          run->model.compute,
                                          run_param(run, span.row),
                                          run->weight_copies[span.row],
                                          form_is_narrow(run->model.form)};
        run->model.ops->convert(&run->model.call, &args);
    }
}

/* Copies of the parameters' own dtype, which ranks gather or which lie in two bytes, are the
 * parameters to who watches. */
void phase_refresh_weights(struct run *run) {
    if (run->weights_fresh) return;
    run->weights_fresh = 1;
    tensor_ranks_refresh(run);
    if (run->weight_copies == NULL) return;
    if (zero_is(run, ZERO_WEIGHTS))
        zero_gather(run);
    else
        copy_weights(run);
    const int narrows = run->config.numerics.param != run->config.numerics.compute;
    if (narrows && run->model.watch != NULL) watch_weights_copied(run);
}

/* The ops of a phase are queued on a backend, and they are done when the phase ends, also where it
 * fails. What went wrong in an op is told before what followed from it. */
static enum status run_queued(struct run *run, enum status (*function)(struct run *)) {
    run->model.call.queued = 1;
    const enum status status = function(run);
    run->model.call.queued = 0;
    TRY(model_wait(&run->model));
    return status;
}

enum status phase_run(struct run *run, enum phase phase) {
    static enum status (*const functions[PHASE_TOTAL])(struct run *) = {
        [PHASE_FETCH] = phase_fetch,        [PHASE_FORWARD] = phase_forward,
        [PHASE_BACKWARD] = phase_backward,  [PHASE_REDUCE] = phase_reduce,
        [PHASE_UNSCALE] = phase_unscale,    [PHASE_CLIP] = phase_clip,
        [PHASE_OPTIMIZE] = phase_optimize,  [PHASE_LOG] = phase_log,
        [PHASE_COUNT_UPDATE] = phase_count, [PHASE_SCHEDULE] = phase_schedule,
        [PHASE_ZERO] = phase_zero,
    };
    const struct run_options *const options = &run->options;
    if (run->model.watch != NULL) watch_phase_begin(run, phase);
    if (options->at_phase != NULL) options->at_phase(options->at_phase_context, phase, 0);
    TRY(run_queued(run, functions[phase]));
    if (options->at_phase != NULL) options->at_phase(options->at_phase_context, phase, 1);
    if (run->model.watch != NULL) watch_phase_end(run, phase);
    return STATUS_OK;
}

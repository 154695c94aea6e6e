/* SPDX-License-Identifier: Apache-2.0
 * Shows the results of phases as views: batch, loss, gradients, norm, LR, optimizer slots,
 * parameters. */
#include "trainer/watch_run.h"

#include <string.h>

#include "trainer/corruption.h"
#include "trainer/run_private.h"

void watch_hang(struct run *run, struct watch *watch) {
    run->model.watch = watch;
    if (run->reference != NULL) run->reference->model.watch = watch;
}

static void show_reals(const struct run *run, struct watch_name op, enum watch_label tensor,
                       double *values, size_t count) {
    struct watch_view view = watch_view_of(run->model.watch, op, watch_named(tensor), values);
    view.dtype = DTYPE_F64;
    view.count = view.width = count;
    watch_show(&run->model, &view);
}

/* Shows a tensor of a parameter's shape, or a slot that has another one as a vector. */
static void show_parameter(const struct run *run, uint32_t row, struct watch_name tensor,
                           struct form form, size_t count, void *data, uint32_t covered) {
    const struct param_row *param = &run->table.rows[row];
    struct watch_view view = watch_view_of(run->model.watch, watch_own(param->name), tensor, data);
    const int shaped = count == param->count;
    view.dtype = form.dtype;
    view.narrow = form_is_narrow(form);
    view.columns = shaped ? WATCH_MATRIX : WATCH_SCALARS;
    view.count = count;
    view.width = shaped ? (size_t)param->shape[1] : count;
    view.covered = covered;
    view.parameter = row;
    watch_show_tensor(&run->model, &view);
}

static void show_weights(struct run *run, uint32_t row) {
    const struct state_layout *layout = &run->layout;
    const struct state_tensor *tensor = &layout->tensor[row];
    const size_t count = run->table.rows[row].count;
    for (uint32_t slot = 0; slot < run->optimizer->slot_count; slot++)
        if (tensor->slot_count[slot] > 0)
            show_parameter(run, row, watch_own(run->optimizer->slot_names[slot]), layout->slots,
                           tensor->slot_count[slot], run_at(run, tensor->slot[slot]), 0);
    if (layout->has_master)
        show_parameter(run, row, watch_named(LABEL_MASTER), form_carried(layout->master_dtype),
                       count, run_at(run, tensor->master), 0);
    show_parameter(run, row, watch_named(LABEL_PARAMETER), form_carried(run->table.rows[row].dtype),
                   count, run_at(run, tensor->param), 0);
}

static uint32_t covered_of(const struct run *run) {
    return run->batch.first_sample + run->batch.sample_count;
}

static void show_gradients(struct run *run, enum watch_label tensor) {
    for (uint32_t i = 0; i < run->owner_count; i++) {
        const uint32_t row = run->owner[i];
        show_parameter(run, row, watch_named(tensor), form_carried(run->layout.gradient_dtype),
                       run->table.rows[row].count, run_at(run, run->layout.tensor[row].gradient),
                       covered_of(run));
    }
}

static void show_table(struct run *run, enum watch_label tensor, void *values) {
    struct watch_view view = watch_view_of(run->model.watch, watch_named(LABEL_ROTARY_TABLE),
                                           watch_named(tensor), values);
    view.axis = WATCH_POSITIONS;
    view.columns = WATCH_PAIRS;
    view.dtype = run->model.compute;
    view.narrow = form_is_narrow(run->model.form);
    view.count = run->limits.length;
    view.width = run->model.D / 2;
    watch_show_tensor(&run->model, &view);
}

void watch_start(struct run *run) {
    run->model.watch->update = run_head(run)->done + 1;
    run->model.watch->stage = WATCH_START;
    run->model.watch->micro = 0;
    const enum status flipped = corruption_start(run);
    if (flipped != STATUS_OK) run->model.watch->status = flipped;
    for (uint32_t i = 0; i < run->owner_count; i++)
        show_weights(run, run->owner[i]);
    show_table(run, LABEL_COSINE, run->model.cosine);
    show_table(run, LABEL_SINE, run->model.sine);
}

void watch_end(struct run *run) {
    run->model.watch->stage = WATCH_END;
    run->model.watch->micro = 0;
    show_reals(run, watch_named(LABEL_LOSS), LABEL_LOSS_OF_UPDATE, &run->record.reals[REAL_LOSS],
               1);
    struct watch_view view = watch_view_of(run->model.watch, watch_named(LABEL_RANDOM_NUMBERS),
                                           watch_named(LABEL_WORDS_DRAWN), run->ledger.words);
    view.kind = WATCH_WORDS;
    view.count = (size_t)STREAM_COUNT * STREAM_OPS;
    view.width = STREAM_OPS;
    view.columns = WATCH_MATRIX;
    watch_show(&run->model, &view);
}

void watch_phase_begin(struct run *run, enum phase phase) {
    struct watch *watch = run->model.watch;
    watch->stage = (enum watch_stage)(WATCH_PHASE + (int)phase);
    watch->update = run_head(run)->done + 1;
    const int often = loop_count(&run->config, LOOP_MICRO, phase) > 0;
    watch->micro = !often ? 0 : run->micro + (phase == PHASE_FETCH);
}

/* Returns a view by sequence or sample of the whole micro-batch. */
static struct watch_view batch_view(struct run *run, enum watch_label op, enum watch_label tensor,
                                    enum watch_axis axis, void *data) {
    struct watch_view view =
        watch_view_of(run->model.watch, watch_named(op), watch_named(tensor), data);
    view.axis = axis;
    view.dtype = DTYPE_F64;
    view.batch = &run->batch;
    view.sequence_count = run->batch.sequence_count;
    view.width = 1;
    return view;
}

static void show_batch(struct run *run) {
    struct watch_view view =
        batch_view(run, LABEL_DATA, LABEL_TOKENS, WATCH_LISTED, run->batch.token_id);
    view.kind = WATCH_IDS;
    watch_show(&run->model, &view);
    view = batch_view(run, LABEL_DATA, LABEL_TARGETS, WATCH_LABELS, run->batch.label_target);
    view.kind = WATCH_IDS;
    watch_show(&run->model, &view);
}

void watch_reference_scored(struct run *run) {
    if (run->config.task != TASK_DPO) return;
    struct watch_view view =
        batch_view(run, LABEL_REFERENCE, LABEL_BOTH_LOGPS, WATCH_SAMPLES, run->reference_logp);
    view.width = 2;
    watch_show(&run->model, &view);
}

static void show_optimize(struct run *run) {
    struct watch_view steps = watch_view_of(run->model.watch, watch_named(LABEL_OPTIMIZER),
                                            watch_named(LABEL_STEPS_COUNTED), &run_head(run)->t);
    steps.kind = WATCH_WORDS;
    steps.count = steps.width = 1;
    watch_show(&run->model, &steps);
    for (uint32_t i = 0; i < run->owner_count; i++) {
        const struct param_row *row = &run->table.rows[run->owner[i]];
        double lr = run->record.groups[row->group][GROUP_LR_APPLIED];
        double decay = run->record.groups[row->group][GROUP_WD_APPLIED];
        show_reals(run, watch_own(row->name), LABEL_LR_APPLIED, &lr, 1);
        show_reals(run, watch_own(row->name), LABEL_WEIGHT_DECAY, &decay, 1);
        show_weights(run, run->owner[i]);
    }
}

void watch_phase_end(struct run *run, enum phase phase) {
    struct state_head *const head = run_head(run);
    double number = 0.0;
    struct watch_view view;
    switch (phase) {
    case PHASE_FETCH:
        show_batch(run);
        break;
    case PHASE_FORWARD:
        view = batch_view(run, LABEL_LOSS, LABEL_COEFFICIENT, WATCH_LABELS, run->coefficient);
        watch_show(&run->model, &view);
        break;
    case PHASE_UNSCALE:
        show_gradients(run, LABEL_UNSCALED_GRADIENT);
        break;
    case PHASE_CLIP:
        show_reals(run, watch_named(LABEL_CLIP), LABEL_GRADIENT_NORM, &head->norm, 1);
        show_reals(run, watch_named(LABEL_CLIP), LABEL_COEFFICIENT, &head->coefficient, 1);
        show_gradients(run, LABEL_CLIPPED_GRADIENT);
        break;
    case PHASE_OPTIMIZE:
        show_optimize(run);
        break;
    case PHASE_SCHEDULE:
        show_reals(run, watch_named(LABEL_SCHEDULE), LABEL_LR, head->lr, run->table.groups);
        break;
    case PHASE_LOG:
        show_reals(run, watch_named(LABEL_LOG), LABEL_LOSS, &run->record.reals[REAL_LOSS], 1);
        show_reals(run, watch_named(LABEL_LOG), LABEL_LR_LOGGED,
                   &run->record.groups[0][GROUP_LR_LOGGED], 1);
        break;
    case PHASE_COUNT_UPDATE:
        number = (double)head->n;
        show_reals(run, watch_named(LABEL_COUNT), LABEL_UPDATES_COUNTED, &number, 1);
        break;
    case PHASE_ZERO:
        show_reals(run, watch_named(LABEL_ZERO), LABEL_GRADIENTS_LEFT, &number, 1);
        break;
    default:
        break;
    }
}

void watch_gradient_taken(struct run *run) {
    show_gradients(run, LABEL_GRADIENT_TAKEN);
}

void watch_gradient_closed(struct run *run, enum phase phase) {
    struct watch *watch = run->model.watch;
    const enum watch_stage stage = watch->stage;
    const uint32_t micro = watch->micro;
    watch->stage = (enum watch_stage)(WATCH_PHASE + (int)phase);
    watch->micro = 0;
    show_gradients(run, LABEL_GRADIENT);
    watch->stage = stage;
    watch->micro = micro;
}

void watch_weights_copied(struct run *run) {
    for (uint32_t i = 0; i < run->owner_count; i++) {
        const uint32_t row = run->owner[i];
        show_parameter(run, row, watch_named(LABEL_COMPUTE_COPY), run->model.form,
                       run->table.rows[row].count, run->weight_copies[row], 0);
    }
}

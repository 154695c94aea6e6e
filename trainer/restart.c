/* SPDX-License-Identifier: Apache-2.0
 * Puts pieces of the state back to what run_open made of them. */
#include "trainer/restart.h"

#include <string.h>

#include "base/element.h"
#include "kernels/op.h"
#include "scenarios/stream_course.h"
#include "trainer/plugin.h"
#include "trainer/run_private.h"
#include "trainer/run_tensors.h"
#include "trainer/scaler.h"

static enum status lose_schedule(struct run *run) {
    struct state_head *head = run_head(run);
    head->n = 0;
    memset(run_at(run, run->layout.schedule), 0, run->schedule->state_size);
    for (uint32_t g = 0; g < run->table.groups; g++)
        TRY(run_start_lr(run, &head->lr[g]));
    return STATUS_OK;
}

/* Masters are part of the optimizer's checkpoint file: without it frameworks make them of the
 * parameters again. */
static void lose_optimizer(struct run *run) {
    const struct state_layout *layout = &run->layout;
    run_head(run)->t = 0;
    for (uint32_t i = 0; i < run->owner_count; i++) {
        const struct param_row *row = &run->table.rows[run->owner[i]];
        const struct state_tensor *tensor = &layout->tensor[run->owner[i]];
        const struct convert_args renewed = {row->count, row->dtype, layout->master_dtype,
                                             run_at(run, tensor->param),
                                             run_at(run, tensor->master)};
        if (layout->has_master) run->model.ops->convert(&run->model.call, &renewed);
        for (uint32_t slot = 0; slot < OPTIM_SLOTS_MAX; slot++)
            if (tensor->slot_count[slot] > 0)
                model_set(&run->model, run_at(run, tensor->slot[slot]),
                          tensor->slot_count[slot] * dtype_carrier(layout->slot_dtype), 0);
    }
}

/* The LR that the counter has now, as a scheduler gives it that is made or loaded anew. */
static enum status renew_lr(struct run *run) {
    struct state_head *head = run_head(run);
    const struct sched_call call = run_sched_call(run);
    double lr;
    TRY(plugin_value(&run->config.schedule.which, run->schedule, &call,
                     loop_schedule_counter(&run->config, head->n), &lr));
    for (uint32_t g = 0; g < run->table.groups; g++)
        head->lr[g] = lr;
    return STATUS_OK;
}

/* A peak of 0 stays the configuration's: nothing would be left of the schedule. */
static enum status restore_wrongly(struct run *run) {
    const struct config *config = &run->config;
    struct state_head *head = run_head(run);
    const int doubled = resume_errs(config, RESUME_COUNTER_DOUBLED);
    if (doubled) head->n *= 2;
    if (run->layout.peak != 0) memcpy(run_at(run, run->layout.peak), &head->lr[0], sizeof(double));
    return doubled || run->layout.peak != 0 ? renew_lr(run) : STATUS_OK;
}

/* A resume that makes its masters from weights of bf16 (resume.wrong: masters-bf16): they begin
 * without the digits that bf16 has no room for. */
static enum status round_masters(struct run *run) {
    const struct state_layout *layout = &run->layout;
    for (uint32_t i = 0; i < run->owner_count; i++) {
        const struct param_row *row = &run->table.rows[run->owner[i]];
        const struct state_tensor *tensor = &layout->tensor[run->owner[i]];
        const size_t bytes = row->count * dtype_carrier(layout->master_dtype);
        void *master;
        if (!row->trainable) continue;
        TRY(run_read(run, WINDOW_NOW, run_at(run, tensor->master), bytes, &master));
        for (size_t j = 0; j < row->count; j++)
            element_set(master, layout->master_dtype, j,
                        dtype_round(element_get(master, layout->master_dtype, j), DTYPE_BF16));
        TRY(run_store(run, WINDOW_NOW, run_at(run, tensor->master), bytes));
    }
    return STATUS_OK;
}

enum status restart_begin(struct run *run) {
    const struct config *config = &run->config;
    const uint64_t update = run_head(run)->done + 1;
    const int now = config->resume.after != 0 && update == config->resume.after + 1;
    const size_t numbers = run->layout.outlier_numbers;
    /* OLMo-core's checkpoints do not hold the window (_losses and _grad_norms of
     * SkipStepOptimizer). */
    if (now && numbers > 0) memset(run_at(run, run->layout.outliers), 0, numbers * sizeof(double));
    if (!resume_restores(config, RESUME_OPTIMIZER, update)) lose_optimizer(run);
    if (now && resume_errs(config, RESUME_MASTERS_BF16)) TRY(round_masters(run));
    if (!resume_restores(config, RESUME_SCALER, update))
        scaler_open(config, &run_head(run)->scaler);
    if (!resume_restores(config, RESUME_SCHEDULE, update)) return lose_schedule(run);
    return now ? restore_wrongly(run) : STATUS_OK;
}

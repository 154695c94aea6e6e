/* SPDX-License-Identifier: Apache-2.0
 * Puts pieces of the state back to what run_open made of them. */
#include "trainer/restart.h"

#include <inttypes.h>
#include <string.h>

#include "base/element.h"
#include "kernels/op.h"
#include "ranks/partition.h"
#include "scenarios/stream_course.h"
#include "trainer/plugins/plugin.h"
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
        const struct convert_args renewed = {row->count,
                                             row->dtype,
                                             layout->master_dtype,
                                             run_at(run, tensor->param),
                                             run_at(run, tensor->master),
                                             0};
        if (layout->has_master) run->model.ops->convert(&run->model.call, &renewed);
        for (uint32_t slot = 0; slot < OPTIM_SLOTS_MAX; slot++)
            if (tensor->slot_count[slot] > 0)
                model_set(&run->model, run_at(run, tensor->slot[slot]),
                          tensor->slot_count[slot] * layout->slots.width, 0);
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

/* ---- shards of another world ---- */

/* One kind of the optimizer's numbers, of all tensors that it steps in one parameter group: the
 * vector that ZeRO cuts. */
#define ALL_GROUPS UINT32_MAX

struct flat {
    const struct run *run;
    uint32_t group; /* or ALL_GROUPS */
    int slot;       /* -1: masters */
    struct form form;
};

/* Where an element stands, and the tensor that holds it as the host sees it. */
struct flat_place {
    uint64_t first, count; /* of the tensor's elements; none before the first look */
    uint32_t row;
    unsigned char *numbers;
};

static uint64_t flat_count(const struct flat *flat, uint32_t row) {
    const struct param_row *const param = &flat->run->table.rows[row];
    if (!param->trainable) return 0;
    if (flat->group != ALL_GROUPS && param->group != flat->group) return 0;
    return flat->slot < 0 ? param->count : flat->run->layout.tensor[row].slot_count[flat->slot];
}

static uint64_t flat_total(const struct flat *flat) {
    uint64_t total = 0;
    for (uint32_t i = 0; i < flat->run->owner_count; i++)
        total += flat_count(flat, flat->run->owner[i]);
    return total;
}

static void *flat_numbers(const struct flat *flat, uint32_t row) {
    const struct state_tensor *const tensor = &flat->run->layout.tensor[row];
    return run_at(flat->run, flat->slot < 0 ? tensor->master : tensor->slot[flat->slot]);
}

static int holds(const struct flat_place *place, uint64_t index) {
    return index >= place->first && index - place->first < place->count;
}

/* Looks through `window` at the tensor that holds an element of the vector. */
static enum status look_at(const struct flat *flat, enum run_window window, uint64_t index,
                           struct flat_place *place) {
    uint64_t first = 0;
    for (uint32_t i = 0; i < flat->run->owner_count; i++) {
        const uint32_t row = flat->run->owner[i];
        *place = (struct flat_place){first, flat_count(flat, row), row, NULL};
        if (holds(place, index)) break;
        first += place->count;
    }
    return run_read(flat->run, window, flat_numbers(flat, place->row),
                    place->count * flat->form.width, &place->numbers);
}

static enum status store(const struct flat *flat, enum run_window window,
                         const struct flat_place *place) {
    if (place->count == 0) return STATUS_OK;
    return run_store(flat->run, window, flat_numbers(flat, place->row),
                     place->count * flat->form.width);
}

/* Every element comes from behind its place where parts were longer, and from before it elsewhere;
 * so the vector is moved in place, from the end at which nothing is written that is still read. */
static enum status read_by_index(const struct flat *flat, uint64_t saved, uint64_t loading) {
    const uint64_t count = flat_total(flat);
    const int up = partition_part(count, saved) >= partition_part(count, loading);
    const size_t bytes = flat->form.width;
    struct flat_place to = {.count = 0}, from = {.count = 0};
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t index = up ? i : count - 1 - i;
        const uint64_t source = partition_by_index(count, saved, loading, index);
        if (!holds(&to, index)) {
            TRY(store(flat, WINDOW_SLOT, &to));
            TRY(look_at(flat, WINDOW_SLOT, index, &to));
        }
        unsigned char *const element = to.numbers + (index - to.first) * bytes;
        if (source == PARTITION_ZERO) {
            memset(element, 0, bytes);
            continue;
        }
        if (!holds(&from, source)) TRY(look_at(flat, WINDOW_THEN, source, &from));
        memcpy(element, from.numbers + (source - from.first) * bytes, bytes);
    }
    return store(flat, WINDOW_SLOT, &to);
}

/* A rank's file holds its part of masters and moments alike (base_optimizer_state and
 * single_partition_of_fp32_groups of DeepSpeed); the count of steps is the same in all. */
static enum status read_shards_by_index(struct run *run) {
    const struct config *const config = &run->config;
    const struct state_layout *const layout = &run->layout;
    for (uint32_t group = 0; group < run->table.groups; group++)
        for (int slot = layout->has_master ? -1 : 0; slot < OPTIM_SLOTS_MAX; slot++) {
            const struct flat flat = {
                run, group, slot, slot < 0 ? form_carried(layout->master_dtype) : layout->slots};
            TRY(read_by_index(&flat, config->resume.ranks, config->parallel.ranks));
        }
    return STATUS_OK;
}

/* Looks through `window` at a tensor's numbers of one kind. */
static enum status look(const struct flat *flat, enum run_window window, uint32_t row,
                        unsigned char **out) {
    return run_read(flat->run, window, flat_numbers(flat, row),
                    flat_count(flat, row) * flat->form.width, out);
}

/* Owner `index` gets what stands at its padded place in the packed numbers: a later parameter's,
 * zeros between two, and zeros behind all. Places are read that lie behind those written, since
 * the buffer goes from the last owner to the first, and so does the caller. */
static enum status read_behind(const struct flat *flat, uint32_t index, const uint64_t *padded,
                               const uint64_t *packed) {
    const uint32_t *const owner = flat->run->owner;
    const uint64_t count = flat_count(flat, owner[index]);
    const size_t bytes = flat->form.width;
    unsigned char *to, *from = NULL;
    uint32_t source = index, seen = UINT32_MAX;
    if (count == 0 || padded[index] == packed[index]) return STATUS_OK;
    TRY(look(flat, WINDOW_SLOT, owner[index], &to));
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t place = padded[index] + i;
        while (source > 0 && packed[source - 1] <= place)
            source--;
        const uint64_t within = place - packed[source];
        if (within >= flat_count(flat, owner[source])) {
            memset(to + i * bytes, 0, bytes);
            continue;
        }
        if (seen != source) TRY(look(flat, WINDOW_THEN, owner[source], &from));
        seen = source;
        memmove(to + i * bytes, from + within * bytes, bytes);
    }
    return run_store(flat->run, WINDOW_SLOT, flat_numbers(flat, owner[index]), count * bytes);
}

/* Megatron-LM pull request 5077: sharded_param_state_fully_reshardable takes each parameter's
 * numbers at its offset in the buffer, out of numbers that were written without the padding at the
 * ends of buckets. The buffer holds all groups. */
static enum status read_padded(struct run *run) {
    const struct state_layout *const layout = &run->layout;
    const uint32_t count = run->owner_count;
    struct arena scratch = ARENA_EMPTY;
    uint64_t *places = NULL;
    enum status status = arena_take(&scratch, 3 * (size_t)count, sizeof *places, "buffer", &places);
    for (uint32_t i = 0; status == STATUS_OK && i < count; i++)
        places[i] =
            run->table.rows[run->owner[i]].trainable ? run->table.rows[run->owner[i]].count : 0;
    if (status == STATUS_OK)
        partition_buffer(places, count, run->config.resume.bucket, run->config.resume.ranks,
                         places + count, places + 2 * (size_t)count);
    for (int slot = layout->has_master ? -1 : 0; slot < OPTIM_SLOTS_MAX; slot++) {
        const struct flat flat = {run, ALL_GROUPS, slot,
                                  slot < 0 ? form_carried(layout->master_dtype) : layout->slots};
        for (uint32_t i = count; status == STATUS_OK && i-- > 0;)
            status = read_behind(&flat, i, places + count, places + 2 * (size_t)count);
    }
    arena_close(&scratch);
    return status;
}

/* Whether an update reads any number that the optimizer kept from the one before it. */
static int keeps_numbers(const struct config *config, const struct optim_class *class_) {
    static const uint64_t shape[2] = {4, 1};
    const void *const values = config->optimizer.which.values;
    double keep, take;
    uint64_t kept = 0;
    if (config->numerics.master != CONFIG_MASTER_NONE) return 1;
    if ((class_->flags & OPTIM_PLAIN) != 0 && !class_->moment(values, 1, &keep, &take)) return 0;
    for (uint32_t slot = 0; slot < class_->slot_count; slot++)
        kept += optim_slot_elements(class_, values, slot, 1, shape);
    return kept > 0;
}

/* Whether any parameter's numbers stand elsewhere in the buffer than they were written. */
static enum status check_padding(const struct config *config, struct arena *arena,
                                 struct fault *fault) {
    struct param_table table;
    uint64_t *sizes, trained = 0;
    uint32_t count = 0, moved = 0;
    TRY(params_open(config, arena, &table));
    TRY(arena_take(arena, 3 * (size_t)table.count, sizeof *sizes, "buffer", &sizes));
    for (uint32_t i = 0; i < table.count; i++)
        if (table.rows[i].tied_to < 0) {
            sizes[count] = table.rows[i].trainable ? table.rows[i].count : 0;
            trained += sizes[count++];
        }
    uint64_t *const padded = sizes + count, *const packed = padded + count;
    partition_buffer(sizes, count, config->resume.bucket, config->resume.ranks, padded, packed);
    for (uint32_t i = 0; i < count; i++)
        moved += sizes[i] > 0 && padded[i] != packed[i];
    if (moved > 0) return STATUS_OK;
    return fault_set(fault, STATUS_INPUT, "resume.bucket",
                     "expected a bucket whose end is filled up before another begins, with "
                     "padded-offsets: each of %" PRIu64 " parameters in buckets of %" PRIu64
                     " is read where it was written",
                     trained, config->resume.bucket);
}

enum status restart_check(const struct config *config, struct fault *fault) {
    const struct optim_class *class_;
    const int by_index = resume_errs(config, RESUME_SHARDS_BY_INDEX);
    const char *const error = by_index ? "shards-by-index" : "padded-offsets";
    if (!by_index && !resume_errs(config, RESUME_PADDED_OFFSETS)) return STATUS_OK;
    TRY(plugin_optimizer(&config->optimizer.which, &class_));
    if ((class_->flags & OPTIM_ELEMENTWISE) == 0)
        return fault_set(fault, STATUS_INPUT, "resume.wrong",
                         "%s needs an optimizer whose elements stand alone, and %s looks at whole "
                         "tensors, which no shard holds",
                         error, class_->name);
    if (!keeps_numbers(config, class_))
        return fault_set(fault, STATUS_INPUT, "resume.wrong",
                         "%s needs moments or masters, and this %s keeps neither", error,
                         class_->name);
    if (by_index) return STATUS_OK;
    struct arena arena = ARENA_EMPTY;
    const enum status status = check_padding(config, &arena, fault);
    arena_close(&arena);
    return status;
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
    if (now && resume_errs(config, RESUME_SHARDS_BY_INDEX)) TRY(read_shards_by_index(run));
    if (now && resume_errs(config, RESUME_PADDED_OFFSETS)) TRY(read_padded(run));
    if (!resume_restores(config, RESUME_SCALER, update))
        scaler_open(config, &run_head(run)->scaler);
    if (!resume_restores(config, RESUME_SCHEDULE, update)) return lose_schedule(run);
    return now ? restore_wrongly(run) : STATUS_OK;
}
